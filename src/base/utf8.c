#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/*
 * How a multi-byte character goes on, by its first byte (RFC 3629 section 4): how many bytes follow, and the range of
 * the first of them, which is where overlong forms, surrogates and too large code points show. No length: not a first byte.
 */
struct lead {
        size_t n_following;
        uint8_t lowest;
        uint8_t highest;
};

static struct lead
lead_of(uint8_t c)
{
        if (c >= 0xc2 && c <= 0xdf)
                return (struct lead){1, 0x80, 0xbf};
        if (c >= 0xe0 && c <= 0xef)
                return (struct lead){2, c == 0xe0 ? 0xa0 : 0x80, c == 0xed ? 0x9f : 0xbf};
        if (c >= 0xf0 && c <= 0xf4)
                return (struct lead){3, c == 0xf0 ? 0x90 : 0x80, c == 0xf4 ? 0x8f : 0xbf};
        return (struct lead){0, 0, 0};
}

/* The length of the run of ASCII at text, counted in whole words. */
static size_t
ascii_run(const uint8_t *text, size_t len)
{
        size_t i = 0;
        uint64_t word;

        while (len - i >= sizeof(word)) {
                memcpy(&word, text + i, sizeof(word));
                if (word & UINT64_C(0x8080808080808080))
                        break;
                i += sizeof(word);
        }
        return i;
}

int
utf8_is_valid(const char *text, size_t len)
{
        const uint8_t *bytes = (const uint8_t *)text;

        for (size_t i = 0; i < len;) {
                struct lead lead;

                if (bytes[i] < 0x80) {
                        size_t run = ascii_run(bytes + i, len - i);

                        i += run > 0 ? run : 1;
                        continue;
                }
                lead = lead_of(bytes[i]);
                if (lead.n_following == 0 || lead.n_following >= len - i)
                        return 0;
                if (bytes[i + 1] < lead.lowest || bytes[i + 1] > lead.highest)
                        return 0;
                for (size_t k = 2; k <= lead.n_following; k++) {
                        if ((bytes[i + k] & 0xc0) != 0x80)
                                return 0;
                }
                i += lead.n_following + 1;
        }
        return 1;
}
