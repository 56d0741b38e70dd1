#ifndef DAEMON_PAGE_H
#define DAEMON_PAGE_H

#include <stddef.h>

#include "base/compiler.h"

/*
 * The status page: one HTML text, always the same, made of page.html, page.css and page.js. Its script
 * fetches /status every two seconds and shows the numbers.
 */
struct page {
        char *text;
        size_t len;
        /*
         * The value of Content-Security-Policy: the page's own style and script, and requests to its own
         * origin.
         */
        char *policy;
};

/* Build the page. Return 0, or -1 when memory fails. page_clear() is needed in either case. */
int page_build(struct page *page) MUST_CHECK;
void page_clear(struct page *page);

#endif
