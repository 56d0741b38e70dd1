#ifndef CLI_JSON_ESCAPES_H
#define CLI_JSON_ESCAPES_H

#include <stddef.h>

/*
 * The same JSON text with other escapes in its strings, as different libraries write them. Each returns *changed_len
 * bytes, which the caller frees; NULL where a text beyond ASCII is not UTF-8. The text need not be right JSON.
 */
char *json_escapes_add_slashes(const char *text, size_t len, size_t *changed_len);  /* / to \/ */
char *json_escapes_lose_slashes(const char *text, size_t len, size_t *changed_len); /* \/ to / */
char *json_escapes_add_unicode(const char *text, size_t len,
                               size_t *changed_len); /* letters to \u, lowercase */
char *json_escapes_lose_unicode(const char *text, size_t len,
                                size_t *changed_len); /* \u to letters, beyond ASCII */

#endif
