#include "daemon/page_write.h"

#include <string.h>

#include "base/compiler.h"

static void
write_char(FILE *out, char c)
{
        static const struct {
                char c;
                const char *entity;
        } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};

        for (size_t i = 0; i < ARRAY_LEN(entities); i++) {
                if (entities[i].c == c) {
                        fputs(entities[i].entity, out);
                        return;
                }
        }
        putc(c, out);
}

void
page_write_text(FILE *out, const char *text)
{
        for (const char *c = text; *c != '\0'; c++)
                write_char(out, *c);
}

void
page_write_name(FILE *out, const char *name)
{
        for (const char *c = name; *c != '\0'; c++) {
                write_char(out, *c);
                if (strchr("._-/:", *c) != NULL)
                        fputs("<wbr>", out);
        }
}

void
page_write_count(FILE *out, double count)
{
        char digits[320];
        size_t len = (size_t)snprintf(digits, sizeof(digits), "%.0f", count);

        for (size_t i = 0; i < len; i++) {
                putc(digits[i], out);
                if (i + 1 < len && (len - i - 1) % 3 == 0 && digits[i] != '-')
                        putc(',', out);
        }
}

void
page_write_data(FILE *out, const char *prefix, const char *key, double count)
{
        fprintf(out, "<data data-key=\"%s", prefix);
        page_write_text(out, key);
        fprintf(out, "\" value=\"%.0f\">", count);
        page_write_count(out, count);
        fputs("</data>", out);
}
