#include "model/pointer.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Undo RFC 6901's escapes in place: ~1 is a slash, ~0 a tilde. Returns -1 at any other tilde. */
static int
unescape(char *segment)
{
        char *to = segment;

        for (const char *from = segment; *from != '\0'; from++) {
                if (*from != '~') {
                        *to++ = *from;
                        continue;
                }
                from++;
                if (*from != '0' && *from != '1')
                        return -1;
                *to++ = *from == '0' ? '~' : '/';
        }
        *to = '\0';
        return 0;
}

int
pointer_parse(const char *text, struct pointer *pointer, struct error *error)
{
        const char *start = text;

        memset(pointer, 0, sizeof(*pointer));
        if (text[0] != '/')
                return error_set(error,
                                 "'%.64s' is not a JSON Pointer: it begins with a slash, such as /event",
                                 text);
        pointer->text = mem_strdup(text);
        while (*start == '/') {
                size_t len = strcspn(++start, "/");
                char *segment;

                if (pointer->n_segments == POINTER_MAX_SEGMENTS) {
                        pointer_clear(pointer);
                        return error_set(error, "a JSON Pointer of more than %d steps", POINTER_MAX_SEGMENTS);
                }
                segment = mem_strndup(start, len);
                pointer->segments[pointer->n_segments++] = segment;
                if (unescape(segment) != 0) {
                        pointer_clear(pointer);
                        return error_set(error,
                                         "'%.64s': in a JSON Pointer ~ is written ~0 and / in a name ~1",
                                         text);
                }
                start += len;
        }
        return 0;
}

void
pointer_clear(struct pointer *pointer)
{
        for (size_t i = 0; i < pointer->n_segments; i++)
                free(pointer->segments[i]);
        free(pointer->text);
        memset(pointer, 0, sizeof(*pointer));
}
