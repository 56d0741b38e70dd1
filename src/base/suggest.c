#include "base/suggest.h"

#include <string.h>

#define LONGEST 63

static size_t
min_of(size_t a, size_t b)
{
        return a < b ? a : b;
}

/* Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours. */
static size_t
distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
        size_t rows[3][LONGEST + 1];

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
suggest_closest(const char *name, const char *const *candidates, size_t n)
{
        size_t len = strlen(name), best = len < 5 ? 2 : 3;
        const char *closest = NULL;

        if (len > LONGEST)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                size_t candidate_len = strlen(candidates[i]), d;

                if (candidate_len > LONGEST)
                        continue;
                d = distance(name, len, candidates[i], candidate_len);
                if (d < best) {
                        best = d;
                        closest = candidates[i];
                }
        }
        return closest;
}
