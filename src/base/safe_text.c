#include "base/safe_text.h"

#include "base/utf8.h"

size_t
safe_text_char(const char *text, size_t len)
{
        const unsigned char *bytes = (const unsigned char *)text;
        size_t n = bytes[0] < 0x80 ? 1 : bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;

        if (bytes[0] < 0x20 || bytes[0] == 0x7f || n > len || !utf8_is_valid(text, n))
                return 0;
        return n == 2 && bytes[0] == 0xc2 && bytes[1] < 0xa0 ? 0 : n;
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
