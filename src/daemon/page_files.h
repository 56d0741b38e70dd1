#ifndef DAEMON_PAGE_FILES_H
#define DAEMON_PAGE_FILES_H

/* The files of these names, as texts; embed.sh makes them so. */
extern const char page_html[];
extern const char page_css[];
extern const char page_js[];

#endif
