#include "base/hex.h"

void
hex_encode(const uint8_t *bytes, size_t len, char *text)
{
        static const char digits[] = "0123456789abcdef";

        for (size_t i = 0; i < len; i++) {
                text[2 * i] = digits[bytes[i] >> 4];
                text[2 * i + 1] = digits[bytes[i] & 0x0f];
        }
        text[2 * len] = '\0';
}

/* The value of each digit and one more; 0: it is none. */
static const uint8_t values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

int
hex_digit(char c)
{
        return values[(unsigned char)c] - 1;
}

static int
lowercase_digit(char c)
{
        return c >= 'A' && c <= 'F' ? -1 : hex_digit(c);
}

int
hex_decode(const char *text, uint8_t *bytes, size_t len)
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
