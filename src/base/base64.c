#include "base/base64.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/mem.h"

static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_";

size_t
base64_decode(const char *text, size_t len, uint8_t *bytes)
{
        char *padded;
        size_t size;
        int n;

        while (len > 0 && text[len - 1] == '=')
                len--;
        size = (len + 3) / 4 * 4;
        if (len == 0 || len % 4 == 1)
                return 0;
        padded = mem_alloc(size + 1);
        for (size_t i = 0; i < len; i++) {
                if (text[i] == '\0' || strchr(chars, text[i]) == NULL)
                        size = 0;
                padded[i] = (char)(text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i]);
        }
        memset(padded + len, '=', (len + 3) / 4 * 4 - len);
        n = size == 0 ? -1 : EVP_DecodeBlock(bytes, (const unsigned char *)padded, (int)size);
        OPENSSL_cleanse(padded, (len + 3) / 4 * 4);
        free(padded);
        return n < 0 ? 0 : (size_t)n - (size - len);
}

char *
base64_encode(const void *bytes, size_t len)
{
        char *text = mem_alloc(len / 3 * 4 + 8);

        (void)EVP_EncodeBlock((unsigned char *)text, bytes, (int)len);
        return text;
}
