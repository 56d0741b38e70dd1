#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/mem.h"

void
bytes_to_hex(const uint8_t *bytes, size_t len, char *text)
{
        static const char digits[] = "0123456789abcdef";

        for (size_t i = 0; i < len; i++) {
                text[2 * i] = digits[bytes[i] >> 4];
                text[2 * i + 1] = digits[bytes[i] & 0x0f];
        }
        text[2 * len] = '\0';
}

/* The value of each digit plus 1; 0: not a digit. */
static const uint8_t digit_values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

int
bytes_hex_digit(char c)
{
        return digit_values[(unsigned char)c] - 1;
}

static int
lowercase_digit(char c)
{
        return c >= 'A' && c <= 'F' ? -1 : bytes_hex_digit(c);
}

int
bytes_from_hex(const char *text, uint8_t *bytes, size_t len)
{
        for (size_t i = 0; i < len; i++) {
                int high = lowercase_digit(text[2 * i]);
                int low = high < 0 ? -1 : lowercase_digit(text[2 * i + 1]);

                if (low < 0)
                        return -1;
                bytes[i] = (uint8_t)(high << 4 | low);
        }
        return 0;
}

char *
bytes_to_base64(const void *bytes, size_t len)
{
        char *text = mem_alloc(len / 3 * 4 + 8);

        (void)EVP_EncodeBlock((unsigned char *)text, bytes, (int)len);
        return text;
}

char *
bytes_random_uuid(char id[BYTES_UUID_SIZE])
{
        uint8_t b[16];

        if (RAND_bytes(b, sizeof(b)) != 1) {
                fputs("out of random bytes: RAND_bytes() failed\n", stderr);
                _exit(EX_OSERR);
        }
        b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
        b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
        (void)snprintf(id, BYTES_UUID_SIZE,
                       "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
                       b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
                       b[15]);
        return id;
}
