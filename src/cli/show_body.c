#include "cli/show_body.h"

#include <stdio.h>

#include "base/utf8.h"

#define BYTES_A_LINE 16

int
show_body_is_text(const char *body, size_t len)
{
        const unsigned char *bytes = (const unsigned char *)body;

        if (len > 0 && !utf8_is_valid(body, len))
                return 0;
        for (size_t i = 0; i < len; i++) {
                if ((bytes[i] < 0x20 && bytes[i] != '\t' && bytes[i] != '\n' && bytes[i] != '\r') ||
                    bytes[i] == 0x7f)
                        return 0;
                if (bytes[i] == 0xc2 && bytes[i + 1] < 0xa0) /* U+0080 to U+009F: control characters too */
                        return 0;
        }
        return 1;
}

static void
dump_line(const unsigned char *bytes, size_t at, size_t n)
{
        printf("%08zx ", at);
        for (size_t i = 0; i < BYTES_A_LINE; i++) {
                if (i < n)
                        printf("%s%02x", i == BYTES_A_LINE / 2 ? "  " : " ", bytes[i]);
                else
                        printf("%s", i == BYTES_A_LINE / 2 ? "    " : "   ");
        }
        printf("  |");
        for (size_t i = 0; i < n; i++)
                putchar(bytes[i] >= 0x20 && bytes[i] < 0x7f ? bytes[i] : '.');
        printf("|\n");
}

void
show_body(const char *body, size_t len)
{
        if (show_body_is_text(body, len)) {
                (void)fwrite(body, 1, len, stdout);
                if (len > 0 && body[len - 1] != '\n')
                        putchar('\n');
                return;
        }
        for (size_t at = 0; at < len; at += BYTES_A_LINE)
                dump_line((const unsigned char *)body + at, at,
                          len - at < BYTES_A_LINE ? len - at : BYTES_A_LINE);
}
