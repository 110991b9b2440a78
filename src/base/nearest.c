/* nearest.c: "did you mean": edit distance with swaps of neighbours, over short names. */
#include "base/base.h"

#define LONGEST 40u /* names longer than this are not misspelt, they are different */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment distance. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][LONGEST + 1];
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = rows[i % 3], *prev = rows[(i + 2) % 3], *prev2 = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t cost = a[i - 1] != b[j - 1];
            now[j] = least(least(prev[j] + 1, now[j - 1] + 1), prev[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], prev2[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

oi_nearest oi_nearest_start(const char *word)
{
    /* one slip in a short word, up to a third of a long one */
    size_t n = strlen(word), allowed = n <= 2 ? 1 : n / 3 + (n % 3 != 0);
    return (oi_nearest){.word = word, .distance = allowed + 1};
}

void oi_nearest_offer(oi_nearest *near, const char *candidate)
{
    size_t n = strlen(near->word), m = strlen(candidate);
    if (n > LONGEST || m > LONGEST || n == 0)
        return;
    size_t d = distance(near->word, n, candidate, m);
    if (d < near->distance && d < n) {
        near->distance = d;
        near->best = candidate;
    }
}

const char *oi_did_you_mean(const char *word, const char *const *candidates, size_t n)
{
    oi_nearest near = oi_nearest_start(word);
    for (size_t i = 0; i < n; i++)
        oi_nearest_offer(&near, candidates[i]);
    return near.best;
}
