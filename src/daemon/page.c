#include "daemon/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#define HASH_SIZE 48 /* of SHA-256 in base64 */

/* Files with these names, defined by embed.sh. */
extern const char page_html[];
extern const char page_css[];
extern const char page_js[];

/* Write a hash of a text as Content-Security-Policy has it (CSP Level 3, section 2.3.1). Return 0 or -1. */
static int
hash(const char *text, char name[HASH_SIZE])
{
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned int len;

        if (EVP_Digest(text, strlen(text), digest, &len, EVP_sha256(), NULL) != 1)
                return -1;
        (void)EVP_EncodeBlock((unsigned char *)name, digest, (int)len);
        return 0;
}

/* Return page.html with the style and the script in the places marked for them; NULL when memory fails. */
static char *
insert_files(void)
{
        static const char style_mark[] = "{{style}}", script_mark[] = "{{script}}";
        const char *style = strstr(page_html, style_mark), *script = strstr(page_html, script_mark);
        const char *between = style + strlen(style_mark), *end = script + strlen(script_mark);
        char *text;

        return asprintf(&text, "%.*s%s%.*s%s%s", (int)(style - page_html), page_html, page_css,
                        (int)(script - between), between, page_js, end) < 0
                   ? NULL
                   : text;
}

int
page_build(struct page *page)
{
        char style[HASH_SIZE], script[HASH_SIZE];

        *page = (struct page){.text = insert_files()};
        if (page->text == NULL || hash(page_css, style) != 0 || hash(page_js, script) != 0)
                return -1;
        page->len = strlen(page->text);
        if (asprintf(&page->policy,
                     "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; img-src data:; "
                     "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                     script, style) >= 0)
                return 0;
        page->policy = NULL;
        return -1;
}

void
page_clear(struct page *page)
{
        free(page->text);
        free(page->policy);
        *page = (struct page){.text = NULL};
}
