#include "base/text.h"

#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"

#define CLOSEST_MAX_LEN 63

/*
 * What may follow the first byte of a multi-byte character (RFC 3629 section 4): the number of bytes, and the
 * range of the next byte, which excludes overlong forms, surrogates and code points that are too large.
 * n_following is 0 if the byte cannot be first.
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

/* Return the length of the ASCII run at the start of text, in whole words. */
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
text_is_utf8(const char *text, size_t len)
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

/*
 * Unicode characters that are invisible or change how others are displayed: soft hyphen, zero-width
 * characters and joiners, direction marks and overrides, line separators, annotations and tags.
 */
static const struct {
        uint32_t first, last;
} invisible[] = {{0xad, 0xad},      {0x34f, 0x34f},   {0x61c, 0x61c},     {0x115f, 0x1160},
                 {0x17b4, 0x17b5},  {0x180b, 0x180f}, {0x200b, 0x200f},   {0x2028, 0x202e},
                 {0x2060, 0x206f},  {0x3164, 0x3164}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
                 {0xffa0, 0xffa0},  {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
                 {0xe0000, 0xe0fff}};

static int
is_invisible(const unsigned char *bytes, size_t n)
{
        uint32_t code = n < 2 ? bytes[0] : bytes[0] & (0x7fu >> n);

        for (size_t i = 1; i < n; i++)
                code = code << 6 | (bytes[i] & 0x3fu);
        for (size_t i = 0; i < ARRAY_LEN(invisible); i++) {
                if (code >= invisible[i].first && code <= invisible[i].last)
                        return 1;
        }
        return 0;
}

size_t
text_printable(const char *text, size_t len)
{
        const unsigned char *bytes = (const unsigned char *)text;
        size_t n = bytes[0] < 0x80 ? 1 : bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;

        if (bytes[0] >= 0x20 && bytes[0] < 0x7f)
                return 1;
        if (n == 1 || n > len || !text_is_utf8(text, n))
                return 0;
        return (bytes[0] == 0xc2 && bytes[1] < 0xa0) || is_invisible(bytes, n) ? 0 : n;
}

void
text_print(FILE *out, const char *text, size_t len)
{
        for (size_t i = 0, n; i < len; i += n) {
                n = text_printable(text + i, len - i);
                if (n > 0) {
                        (void)fwrite(text + i, 1, n, out);
                        continue;
                }
                fprintf(out, "\\x%02x", (unsigned char)text[i]);
                n = 1;
        }
}

void
text_print_column(const char *text, size_t len, size_t width)
{
        text_print(stdout, text, len);
        printf("%*s ", len < width ? (int)(width - len) : 0, "");
}

static size_t
min_of(size_t a, size_t b)
{
        return a < b ? a : b;
}

/*
 * Return the optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
 */
static size_t
distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
        size_t rows[3][CLOSEST_MAX_LEN + 1];

        for (size_t j = 0; j <= b_len; j++)
                rows[0][j] = j;
        for (size_t i = 1; i <= a_len; i++) {
                size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];

                row[0] = i;
                for (size_t j = 1; j <= b_len; j++) {
                        size_t cost = a[i - 1] != b[j - 1];

                        row[j] = min_of(min_of(above[j] + 1, row[j - 1] + 1), above[j - 1] + cost);
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                                row[j] = min_of(row[j], two_above[j - 2] + 1);
                }
        }
        return rows[a_len % 3][b_len];
}

const char *
text_closest(const char *name, const char *const *candidates, size_t n)
{
        size_t len = strlen(name), best = len < 5 ? 2 : 3;
        const char *closest = NULL;

        if (len > CLOSEST_MAX_LEN)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                size_t candidate_len = strlen(candidates[i]), d;

                if (candidate_len > CLOSEST_MAX_LEN)
                        continue;
                d = distance(name, len, candidates[i], candidate_len);
                if (d < best) {
                        best = d;
                        closest = candidates[i];
                }
        }
        return closest;
}

char *
text_for_shell(const char *text)
{
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/:,+@%";
        static const char quote[] = "'\\''";
        size_t len = strlen(text);
        char *word, *end;

        if (len > 0 && strspn(text, plain) == len)
                return mem_strdup(text);
        end = word = mem_alloc(len * strlen(quote) + sizeof("''"));
        *end++ = '\'';
        for (; *text != '\0'; text++) {
                if (*text == '\'')
                        end = stpcpy(end, quote);
                else
                        *end++ = *text;
        }
        *end = '\'';
        return word;
}
