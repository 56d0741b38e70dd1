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

int
hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
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
