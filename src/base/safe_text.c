#include "base/safe_text.h"

#include <stdint.h>

#include "base/compiler.h"
#include "base/utf8.h"

/*
 * Characters of Unicode that are not seen, or that change how others are shown: soft hyphen, zero-width and joining ones,
 * marks and overrides of direction, separators of lines, annotations and tags.
 */
static const struct {
        uint32_t first, last;
} unseen[] = {{0xad, 0xad},       {0x34f, 0x34f},    {0x61c, 0x61c},   {0x115f, 0x1160}, {0x17b4, 0x17b5},
              {0x180b, 0x180f},   {0x200b, 0x200f},  {0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164},
              {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},  {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3},
              {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};

static int
is_unseen(const unsigned char *bytes, size_t n)
{
        uint32_t code = n < 2 ? bytes[0] : bytes[0] & (0x7fu >> n);

        for (size_t i = 1; i < n; i++)
                code = code << 6 | (bytes[i] & 0x3fu);
        for (size_t i = 0; i < ARRAY_LEN(unseen); i++) {
                if (code >= unseen[i].first && code <= unseen[i].last)
                        return 1;
        }
        return 0;
}

size_t
safe_text_char(const char *text, size_t len)
{
        const unsigned char *bytes = (const unsigned char *)text;
        size_t n = bytes[0] < 0x80 ? 1 : bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;

        if (bytes[0] < 0x20 || bytes[0] == 0x7f || n > len || !utf8_is_valid(text, n))
                return 0;
        if (n == 1)
                return n;
        return (bytes[0] == 0xc2 && bytes[1] < 0xa0) || is_unseen(bytes, n) ? 0 : n;
}

void
safe_text_print(FILE *out, const char *text, size_t len)
{
        for (size_t i = 0, n; i < len; i += n) {
                n = safe_text_char(text + i, len - i);
                if (n > 0) {
                        (void)fwrite(text + i, 1, n, out);
                        continue;
                }
                fprintf(out, "\\x%02x", (unsigned char)text[i]);
                n = 1;
        }
}

void
safe_text_column(const char *text, size_t len, size_t width)
{
        safe_text_print(stdout, text, len);
        printf("%*s ", len < width ? (int)(width - len) : 0, "");
}
