#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/text.h"

static void *
allocate(void *arg, size_t size)
{
        (void)arg;
        return mem_resize(NULL, size, 1);
}

static void *
reallocate(void *arg, void *data, size_t size)
{
        (void)arg;
        return mem_resize(data, size, 1);
}

static void
release(void *arg, void *data)
{
        (void)arg;
        free(data);
}

yajl_alloc_funcs *
json_allocation(void)
{
        static yajl_alloc_funcs functions = {allocate, reallocate, release, NULL};

        return &functions;
}

yajl_gen
json_new(int beautify)
{
        yajl_gen json = yajl_gen_alloc(json_allocation());

        (void)yajl_gen_config(json, yajl_gen_beautify, beautify);
        return json;
}

char *
json_take(yajl_gen json, size_t *len)
{
        const unsigned char *text = (const unsigned char *)"";
        char *copy;

        *len = 0;
        (void)yajl_gen_get_buf(json, &text, len);
        copy = mem_strndup((const char *)text, *len);
        yajl_gen_free(json);
        return copy;
}

/*
 * JSON permits the control characters U+007F to U+009F unescaped, but a terminal may act on them, so write
 * them as escapes. They only occur in strings.
 */
static void
write_safely(const unsigned char *text, size_t len, FILE *out)
{
        for (size_t i = 0; i < len; i++) {
                if (text[i] == 0x7f)
                        fputs("\\u007f", out);
                else if (text[i] == 0xc2 && i + 1 < len && text[i + 1] < 0xa0)
                        fprintf(out, "\\u00%02x", text[++i]);
                else
                        (void)putc_unlocked(text[i], out);
        }
}

void
json_write(yajl_gen json, FILE *out)
{
        const unsigned char *text;
        size_t len;

        if (yajl_gen_get_buf(json, &text, &len) == yajl_gen_status_ok) {
                write_safely(text, len, out);
                if (len > 0 && text[len - 1] != '\n')
                        (void)putc('\n', out);
        }
        yajl_gen_free(json);
}

void
json_print(yajl_gen json)
{
        json_write(json, stdout);
}

void
json_text(yajl_gen json, const char *text)
{
        (void)yajl_gen_string(json, (const unsigned char *)text, strlen(text));
}

void
json_member(yajl_gen json, const char *name, const char *text)
{
        json_text(json, name);
        if (text == NULL)
                (void)yajl_gen_null(json);
        else
                json_text(json, text);
}

void
json_number(yajl_gen json, const char *name, int64_t value)
{
        json_text(json, name);
        (void)yajl_gen_integer(json, value);
}

void
json_flag(yajl_gen json, const char *name, int value)
{
        json_text(json, name);
        (void)yajl_gen_bool(json, value);
}

int
json_is_space(const char *text, size_t len)
{
        while (len > 0 && memchr(" \t\r\n", *text, 4) != NULL) {
                text++;
                len--;
        }
        return len == 0;
}

void
json_null(yajl_gen json, const char *name)
{
        json_text(json, name);
        (void)yajl_gen_null(json);
}

/*
 * Write the name of a member from untrusted bytes. If it is not UTF-8, write U+FFFD for every byte beyond
 * ASCII.
 */
static void
put_name(yajl_gen json, const char *name)
{
        char *text = NULL;
        size_t len;
        FILE *out = text_is_utf8(name, strlen(name)) ? NULL : open_memstream(&text, &len);

        for (; out != NULL && *name != '\0'; name++) {
                if ((unsigned char)*name < 0x80)
                        (void)putc(*name, out);
                else
                        fputs("\xef\xbf\xbd", out);
        }
        if (out != NULL)
                (void)fclose(out);
        json_text(json, text != NULL ? text : name);
        free(text);
}

static void
put_base64(yajl_gen json, const char *name, const void *bytes, size_t len)
{
        char *base64 = bytes_to_base64(bytes, len), *other = mem_printf("%sBase64", name);

        put_name(json, other);
        json_text(json, base64);
        free(other);
        free(base64);
}

void
json_bytes(yajl_gen json, const char *name, const void *bytes, size_t len)
{
        if (len > 0 && !text_is_utf8(bytes, len)) {
                put_base64(json, name, bytes, len);
                return;
        }
        put_name(json, name);
        (void)yajl_gen_string(json, len == 0 ? (const unsigned char *)"" : bytes, len);
}
