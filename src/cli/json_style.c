#include "cli/json_style.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* Write the letter at text, which is UTF-8, as \u. Returns its length. */
static size_t
write_letter(FILE *out, const char *text)
{
        uint8_t first = (uint8_t)text[0];
        size_t len = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
        unsigned code = first & (0x7fu >> len);

        for (size_t i = 1; i < len; i++)
                code = code << 6 | ((uint8_t)text[i] & 0x3f);
        if (code < 0x10000)
                fprintf(out, "\\u%04x", code);
        else
                fprintf(out, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
        return len;
}

static void
write_string(FILE *out, const char *text, const struct json_style *style)
{
        static const char controls[] = "\b\f\n\r\t", letters[] = "bfnrt";

        fputc('"', out);
        while (*text != '\0') {
                const char *control = strchr(controls, *text);

                if ((*text & 0x80) != 0 && style->escapes_letters) {
                        text += write_letter(out, text);
                        continue;
                }
                if (control != NULL)
                        fprintf(out, "\\%c", letters[control - controls]);
                else if ((uint8_t)*text < 0x20)
                        fprintf(out, "\\u%04x", (unsigned)*text);
                else if (*text == '"' || *text == '\\' || (*text == '/' && style->escapes_slashes))
                        fprintf(out, "\\%c", *text);
                else
                        fputc(*text, out);
                text++;
        }
        fputc('"', out);
}

static void
write_newline(FILE *out, const struct json_style *style, unsigned depth)
{
        if (style->indent == NULL)
                return;
        fputc('\n', out);
        while (depth-- > 0)
                fputs(style->indent, out);
}

static void
write_value(FILE *out, const struct json_value *value, const struct json_style *style, unsigned depth)
{
        if (value->type == JSON_STRING)
                write_string(out, value->text, style);
        else if (value->type == JSON_NUMBER)
                fputs(value->text, out);
        else if (value->type == JSON_BOOLEAN || value->type == JSON_NULL)
                fputs(value->type == JSON_NULL ? "null" : value->flag ? "true" : "false", out);
        if (value->type != JSON_OBJECT && value->type != JSON_ARRAY)
                return;
        fputc(value->type == JSON_OBJECT ? '{' : '[', out);
        for (const struct json_value *each = value->first; each != NULL; each = each->next) {
                write_newline(out, style, depth + 1);
                if (each->name != NULL) {
                        write_string(out, each->name, style);
                        fprintf(out, ":%s", style->after_colon);
                }
                write_value(out, each, style, depth + 1);
                if (each->next != NULL)
                        fprintf(out, ",%s", style->after_comma);
        }
        if (value->first != NULL)
                write_newline(out, style, depth);
        fputc(value->type == JSON_OBJECT ? '}' : ']', out);
}

char *
json_style_write(const struct json_value *value, const struct json_style *style, size_t *len)
{
        char *text = NULL;
        FILE *out = open_memstream(&text, len);

        if (out == NULL)
                return NULL;
        write_value(out, value, style, 0);
        if (fclose(out) != 0)
                *len = 0;
        return mem_resize(text, *len + 2, 1);
}
