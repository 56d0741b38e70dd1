#include "base/base64.h"

#include <openssl/evp.h>

#include "base/mem.h"

char *
base64_encode(const void *bytes, size_t len)
{
        char *text = mem_alloc(len / 3 * 4 + 8);

        (void)EVP_EncodeBlock((unsigned char *)text, bytes, (int)len);
        return text;
}
