#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/mem.h"
#include "base/utf8.h"

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

void
json_print(yajl_gen json)
{
        const unsigned char *text;
        size_t len;

        if (yajl_gen_get_buf(json, &text, &len) == yajl_gen_status_ok) {
                (void)fwrite(text, 1, len, stdout);
                if (len > 0 && text[len - 1] != '\n')
                        putchar('\n');
        }
        yajl_gen_free(json);
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

void
json_null(yajl_gen json, const char *name)
{
        json_text(json, name);
        (void)yajl_gen_null(json);
}

static void
put_base64(yajl_gen json, const char *name, const void *bytes, size_t len)
{
        char *base64 = mem_alloc(len / 3 * 4 + 8), *other = mem_printf("%sBase64", name);
        int n = EVP_EncodeBlock((unsigned char *)base64, bytes, (int)len);

        json_text(json, other);
        (void)yajl_gen_string(json, (const unsigned char *)base64, (size_t)n);
        free(other);
        free(base64);
}

void
json_bytes(yajl_gen json, const char *name, const void *bytes, size_t len)
{
        if (len > 0 && !utf8_is_valid(bytes, len)) {
                put_base64(json, name, bytes, len);
                return;
        }
        json_text(json, name);
        (void)yajl_gen_string(json, len == 0 ? (const unsigned char *)"" : bytes, len);
}
