/*
 * The only user of yajl's generator. It does not check its allocations (version 2.1.0, the last one); those
 * here exit when memory fails.
 */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_gen.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/text.h"

struct json_writer {
        yajl_gen yajl;
};

static void *
resize(void *arg, void *data, size_t size)
{
        (void)arg;
        return mem_resize(data, size, 1);
}

static void *
allocate(void *arg, size_t size)
{
        return resize(arg, NULL, size);
}

static void
release(void *arg, void *data)
{
        (void)arg;
        free(data);
}

struct json_writer *
json_new(int beautify)
{
        const yajl_alloc_funcs functions = {allocate, resize, release, NULL};
        struct json_writer *json = mem_alloc(sizeof(*json));

        json->yajl = yajl_gen_alloc(&functions);
        (void)yajl_gen_config(json->yajl, yajl_gen_beautify, beautify);
        return json;
}

char *
json_take(struct json_writer *json, size_t *len)
{
        const unsigned char *written;
        char *text;

        (void)yajl_gen_get_buf(json->yajl, &written, len);
        text = mem_strndup(*len == 0 ? "" : (const char *)written, *len);
        yajl_gen_free(json->yajl);
        free(json);
        return text;
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
json_write(struct json_writer *json, FILE *out)
{
        size_t len;
        char *text = json_take(json, &len);

        write_safely((const unsigned char *)text, len, out);
        if (len > 0 && text[len - 1] != '\n')
                (void)putc('\n', out);
        free(text);
}

void
json_print(struct json_writer *json)
{
        json_write(json, stdout);
}

static void
put_string(struct json_writer *json, const char *text, size_t len)
{
        (void)yajl_gen_string(json->yajl, (const unsigned char *)text, len);
}

/* Write the name of a member, or nothing for NULL. */
static yajl_gen
named(struct json_writer *json, const char *name)
{
        if (name != NULL)
                put_string(json, name, strlen(name));
        return json->yajl;
}

void
json_open_object(struct json_writer *json, const char *name)
{
        (void)yajl_gen_map_open(named(json, name));
}

void
json_close_object(struct json_writer *json)
{
        (void)yajl_gen_map_close(json->yajl);
}

void
json_open_array(struct json_writer *json, const char *name)
{
        (void)yajl_gen_array_open(named(json, name));
}

void
json_close_array(struct json_writer *json)
{
        (void)yajl_gen_array_close(json->yajl);
}

void
json_string(struct json_writer *json, const char *name, const char *text, size_t len)
{
        (void)named(json, name);
        put_string(json, text, len);
}

void
json_member(struct json_writer *json, const char *name, const char *text)
{
        if (text == NULL)
                json_null(json, name);
        else
                json_string(json, name, text, strlen(text));
}

void
json_number(struct json_writer *json, const char *name, int64_t value)
{
        (void)yajl_gen_integer(named(json, name), value);
}

void
json_literal(struct json_writer *json, const char *name, const char *literal)
{
        (void)yajl_gen_number(named(json, name), literal, strlen(literal));
}

void
json_flag(struct json_writer *json, const char *name, int value)
{
        (void)yajl_gen_bool(named(json, name), value);
}

void
json_null(struct json_writer *json, const char *name)
{
        (void)yajl_gen_null(named(json, name));
}

/*
 * Write the name of a member from untrusted bytes. If it is not UTF-8, write U+FFFD for every byte beyond
 * ASCII.
 */
static void
put_name(struct json_writer *json, const char *name)
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
        (void)named(json, text != NULL ? text : name);
        free(text);
}

static void
put_base64(struct json_writer *json, const char *name, const void *bytes, size_t len)
{
        char *base64 = bytes_to_base64(bytes, len), *other = mem_printf("%sBase64", name);

        put_name(json, other);
        put_string(json, base64, strlen(base64));
        free(other);
        free(base64);
}

void
json_bytes(struct json_writer *json, const char *name, const void *bytes, size_t len)
{
        if (len > 0 && !text_is_utf8(bytes, len)) {
                put_base64(json, name, bytes, len);
                return;
        }
        put_name(json, name);
        put_string(json, len == 0 ? "" : bytes, len);
}
