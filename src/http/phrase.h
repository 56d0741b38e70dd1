#ifndef HTTP_PHRASE_H
#define HTTP_PHRASE_H

/* The reason phrase of a status, RFC 9110 section 15. */
const char *phrase_for(int status);

#endif
