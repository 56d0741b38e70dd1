#include "cli/json_escapes.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

char *
json_escapes_add_slashes(const char *text, size_t len, size_t *changed_len)
{
        char *changed = mem_alloc(2 * len + 1);
        size_t n = 0;

        for (size_t i = 0; i < len; i++) {
                if (text[i] == '/')
                        changed[n++] = '\\';
                changed[n++] = text[i];
                if (text[i] == '\\' && i + 1 < len)
                        changed[n++] = text[++i];
        }
        *changed_len = n;
        return changed;
}

char *
json_escapes_lose_slashes(const char *text, size_t len, size_t *changed_len)
{
        char *changed = mem_alloc(len + 1);
        size_t n = 0;

        for (size_t i = 0; i < len; i++) {
                if (text[i] == '\\' && i + 1 < len && text[i + 1] != '/')
                        changed[n++] = text[i++];
                else if (text[i] == '\\' && i + 1 < len)
                        i++;
                changed[n++] = text[i];
        }
        *changed_len = n;
        return changed;
}

/* The code point that begins at text, which is UTF-8. Returns how many bytes it has. */
static size_t
decode(const char *text, uint32_t *code)
{
        uint8_t first = (uint8_t)text[0];
        size_t len = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

        *code = len == 1 ? first : first & (0x7fu >> len);
        for (size_t i = 1; i < len; i++)
                *code = *code << 6 | ((uint8_t)text[i] & 0x3f);
        return len;
}

static size_t
encode(uint32_t code, char *text)
{
        size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

        if (len == 1) {
                text[0] = (char)code;
                return 1;
        }
        for (size_t i = len - 1; i > 0; i--, code >>= 6)
                text[i] = (char)(0x80 | (code & 0x3f));
        text[0] = (char)((0xf00u >> len) | code);
        return len;
}

char *
json_escapes_add_unicode(const char *text, size_t len, size_t *changed_len)
{
        char *changed;
        size_t n = 0;
        uint32_t code;

        if (!text_is_utf8(text, len))
                return NULL;
        changed = mem_alloc(6 * len + 1);
        for (size_t i = 0; i < len;) {
                i += decode(text + i, &code);
                if (code < 0x80)
                        changed[n++] = (char)code;
                else if (code < 0x10000)
                        n += (size_t)sprintf(changed + n, "\\u%04x", (unsigned)code);
                else
                        n += (size_t)sprintf(changed + n, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (code >> 10)),
                                             (unsigned)(0xdc00 + (code & 0x3ff)));
        }
        *changed_len = n;
        return changed;
}

/* The unit of a \uXXXX at text. Returns 0 when there is none, or one that must stay. */
static uint32_t
read_unit(const char *text, size_t len)
{
        char digits[5] = "";

        if (len < 6 || text[0] != '\\' || text[1] != 'u')
                return 0;
        memcpy(digits, text + 2, 4);
        if (strspn(digits, "0123456789abcdefABCDEF") != 4)
                return 0;
        return (uint32_t)strtoul(digits, NULL, 16);
}

/* The letter that is escaped at text. Returns how many bytes the escape has; 0 when there is none beyond ASCII. */
static size_t
read_escape(const char *text, size_t len, uint32_t *code)
{
        uint32_t high = read_unit(text, len), low;

        *code = high;
        if (high < 0xd800 || high > 0xdfff)
                return high < 0x80 ? 0 : 6;
        low = read_unit(text + 6, len - 6);
        if (high > 0xdbff || low < 0xdc00 || low > 0xdfff)
                return 0;
        *code = 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff);
        return 12;
}

char *
json_escapes_lose_unicode(const char *text, size_t len, size_t *changed_len)
{
        char *changed = mem_alloc(len + 1);
        size_t n = 0, escape;
        uint32_t code;

        for (size_t i = 0; i < len; i++) {
                escape = read_escape(text + i, len - i, &code);
                if (escape > 0) {
                        n += encode(code, changed + n);
                        i += escape - 1;
                        continue;
                }
                changed[n++] = text[i];
                if (text[i] == '\\' && i + 1 < len)
                        changed[n++] = text[++i];
        }
        *changed_len = n;
        return changed;
}
