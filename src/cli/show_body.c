#include "cli/show_body.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define BYTES_A_LINE 16

static int
is_text(const char *body, size_t len)
{
        for (size_t i = 0, n; i < len; i += n) {
                n = strchr("\t\n\r", body[i]) != NULL && body[i] != '\0' ? 1
                                                                         : text_printable(body + i, len - i);
                if (n == 0)
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
        if (len == 0)
                return;
        if (is_text(body, len)) {
                (void)fwrite(body, 1, len, stdout);
                if (body[len - 1] != '\n')
                        putchar('\n');
                return;
        }
        for (size_t at = 0; at < len; at += BYTES_A_LINE)
                dump_line((const unsigned char *)body + at, at,
                          len - at < BYTES_A_LINE ? len - at : BYTES_A_LINE);
}
