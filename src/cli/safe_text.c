#include "cli/safe_text.h"

void
safe_text_print(FILE *out, const char *text, size_t len)
{
        const unsigned char *bytes = (const unsigned char *)text;

        for (size_t i = 0; i < len; i++) {
                if (bytes[i] == 0xc2 && i + 1 < len && bytes[i + 1] >= 0x80 && bytes[i + 1] < 0xa0) {
                        fprintf(out, "\\xc2\\x%02x", bytes[i + 1]);
                        i++;
                } else if (bytes[i] < 0x20 || bytes[i] == 0x7f) {
                        fprintf(out, "\\x%02x", bytes[i]);
                } else {
                        putc(bytes[i], out);
                }
        }
}

void
safe_text_column(const char *text, size_t len, size_t width)
{
        safe_text_print(stdout, text, len);
        printf("%*s ", len < width ? (int)(width - len) : 0, "");
}
