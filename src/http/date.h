#ifndef HTTP_DATE_H
#define HTTP_DATE_H

/* What Date of an answer says now, as RFC 9110 section 5.6.7 writes it. The thread's own, until it asks again. */
const char *date_now(void);

#endif
