#ifndef DAEMON_PAGE_H
#define DAEMON_PAGE_H

#include <stddef.h>
#include <stdint.h>

/*
 * The status page: one HTML page with all numbers in tables, for a person. Its script asks for the page again every two
 * seconds, takes the numbers over and draws how they went. page.html, page.css and page.js are part of the program.
 */

/* What it is made of. */
struct page_facts {
        const char *instance;
        const char *readiness; /* as health_check() writes it */
        int is_ready;
        const char *metrics; /* as metrics_render() writes them; series that are not there are left out */
        int64_t now_ms;
};

/* The page. The caller frees it; *len is its length. NULL when memory fails. */
char *page_render(const struct page_facts *facts, size_t *len);

/* Its Content-Security-Policy: nothing but its own style and script, and asking for itself. The caller frees it; NULL when memory fails. */
char *page_policy(void);

#endif
