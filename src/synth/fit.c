/* fit.c: which line goes through points. The points are samples of what shape rules and loops make
 * of lengths: sums, windows (a division), cuts (a limit). A line through all of them is taken
 * for the rule itself; there are far more points than such a rule has numbers. */
#include "synth/fit.h"

#define MOST_BY 32 /* strides and group sizes; a rule that divides by more is refused */

typedef struct points {
    const int64_t *m, *f;
    const bool *use;
    size_t n;
} points;

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t oi_line_at(const oi_line *l, int64_t m)
{
    int64_t v = floor_div(l->slope * m + l->base, l->by);
    if (l->has_least && v < l->least)
        v = l->least;
    if (l->has_most && v > l->most)
        v = l->most;
    return v;
}

/* The base with which a line of this slope passes through all points; limits say which of them it
 * may pass by.
 */
static bool find_base(const points *p, oi_line *l)
{
    bool any = false;
    int64_t low = 0, high = 0; /* base in low ... high */
    for (size_t i = 0; i < p->n; i++) {
        if (!p->use[i] || (l->has_least && p->f[i] == l->least) ||
            (l->has_most && p->f[i] == l->most))
            continue;
        int64_t a = p->f[i] * l->by - l->slope * p->m[i], b = a + l->by - 1;
        low = !any || a > low ? a : low;
        high = !any || b < high ? b : high;
        any = true;
    }
    if (!any || low > high)
        return false;
    /* limits narrow it further: try what is left, the roundest first */
    int64_t first = low <= 0 && high >= 0 ? 0 : low;
    for (int64_t k = -1; k <= high - low; k++) {
        l->base = k < 0 ? first : low + k;
        bool fits = true;
        for (size_t i = 0; i < p->n && fits; i++)
            fits = !p->use[i] || oi_line_at(l, p->m[i]) == p->f[i];
        if (fits)
            return true;
    }
    return false;
}

/* Slopes that pairs of points suggest. */
static bool try_slopes(const points *p, oi_line *l)
{
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < p->n; i++) {
        bool skip = !p->use[i] || (l->has_least && p->f[i] == l->least) ||
                    (l->has_most && p->f[i] == l->most);
        if (skip)
            continue;
        if (last != SIZE_MAX && p->m[i] != p->m[last]) {
            int64_t rise = (p->f[i] - p->f[last]) * l->by, run = p->m[i] - p->m[last];
            for (int64_t k = -1; k <= 1; k++) {
                l->slope = floor_div(rise, run) + k;
                if (l->slope && find_base(p, l))
                    return true;
            }
        }
        last = last == SIZE_MAX ? i : last;
    }
    l->slope = 1; /* limits may leave one point between them */
    return (l->has_least || l->has_most) && l->by == 1 && find_base(p, l);
}

bool oi_fit_line(const int64_t *m, const int64_t *f, const bool *use, size_t n, oi_line *out)
{
    points p = {m, f, use, n};
    bool any = false;
    int64_t least = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        if (!use[i])
            continue;
        least = !any || f[i] < least ? f[i] : least;
        most = !any || f[i] > most ? f[i] : most;
        any = true;
    }
    for (unsigned limits = 0; any && limits < 4; limits++)
        for (int64_t by = 1; by <= MOST_BY; by++) {
            *out = (oi_line){.by = by,
                             .has_least = limits & 1,
                             .has_most = limits >> 1 & 1,
                             .least = least,
                             .most = most};
            if (try_slopes(&p, out))
                return true;
        }
    return false;
}
