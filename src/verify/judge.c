/* judge.c: how far two values may differ: spec/ops.md §0, node by node and free-running. */
#include "verify/verify.h"

#include <math.h>
#include <stdlib.h>

/* The catalog's limits of a free-running comparison: of f32 and f64, where activations are rounded
 * to few bits, and for narrow floats in multiples of what the type promises. */
#define FREE_LIMIT   1e-3
#define COARSE_LIMIT 3e-2
#define NARROW_LIMIT 4

#define MAX_SAMPLES 4096 /* of a value, for its typical magnitude */

oi_rule oi_rule_node(oi_dtype t, const char *op, uint64_t reduced)
{
    oi_rule r = {0};
    oi_ops_tolerance(oi_ops_find(op), t, reduced, &r.atol, &r.rtol);
    r.is_exact = r.rtol == 0;
    return r;
}

/* Tolerances of nodes that follow each other add up; a path of exact nodes allows nothing. */
oi_drift oi_drift_after(oi_drift in, oi_dtype t, const char *op, uint64_t reduced)
{
    oi_rule r = oi_rule_node(t, op, reduced);
    bool is_narrow = t != OI_F32 && t != OI_F64;
    double limit = is_narrow ? NARROW_LIMIT * r.rtol : FREE_LIMIT;
    in.rtol += r.rtol;
    in.atol = r.atol > in.atol ? r.atol : in.atol;
    in.limit = limit > in.limit ? limit : in.limit;
    return in;
}

oi_drift oi_drift_join(oi_drift a, oi_drift b)
{
    return (oi_drift){.rtol = a.rtol > b.rtol ? a.rtol : b.rtol,
                      .atol = a.atol > b.atol ? a.atol : b.atol,
                      .limit = a.limit > b.limit ? a.limit : b.limit};
}

oi_rule oi_rule_free(oi_dtype t, bool from_floats, bool is_coarse, oi_drift drift)
{
    if (oi_dtype_is_float(t)) {
        double limit = is_coarse && drift.limit < COARSE_LIMIT ? COARSE_LIMIT : drift.limit;
        double rtol = is_coarse || drift.rtol > limit ? limit : drift.rtol;
        return (oi_rule){
            .atol = drift.atol, .rtol = rtol, .is_scaled = true, .is_exact = rtol == 0};
    }
    /* quantised values may land next door; choices and counts may not */
    if (from_floats && oi_dtype_bits(t) <= 8 && t != OI_BOOL && t != OI_BITSET)
        return (oi_rule){.slack = 1};
    return (oi_rule){.is_exact = true};
}

static bool same_bits(oi_dtype t, const void *want, uint64_t a, const void *got, uint64_t b)
{
    return oi_element_bits(t, want, a) == oi_element_bits(t, got, b);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median magnitude of the elements that are finite and not 0, of many a sample; 1 where there
 * are none. A few huge elements do not move it. */
static double typical(oi_dtype t, const void *want, uint64_t n)
{
    double some[MAX_SAMPLES];
    size_t k = 0;
    for (uint64_t i = 0, m = n < MAX_SAMPLES ? n : MAX_SAMPLES; i < m; i++) {
        /* one of every n / m elements, not always at the same place of a row */
        uint64_t stretch = n / m, e = i * stretch + i * 7919 % stretch;
        double v = fabs(oi_element_f64(t, want, e));
        if (isfinite(v) && v > 0)
            some[k++] = v;
    }
    qsort(some, k, sizeof some[0], by_value);
    return k ? some[k / 2] : 1;
}

/* What stays of the error where sums of typical elements cancel: without it a value near 0 would
 * have to be exact. */
static double absolute(oi_rule r, oi_dtype t, const void *want, uint64_t n)
{
    if (!r.is_scaled)
        return r.atol;
    double scale = typical(t, want, n);
    return r.rtol * scale + r.atol * (scale < 1 ? scale : 1);
}

/* How far apart; 0 for two NaN, infinite for one or for another infinity. */
static double distance(double a, double b)
{
    if (isnan(a) && isnan(b))
        return 0;
    if (a == b)
        return 0;
    double d = fabs(a - b);
    return isnan(d) ? INFINITY : d;
}

oi_finding oi_judge(oi_rule r, oi_dtype t, const void *want, const void *got, uint64_t n,
                    oi_place_fn at, const void *ctx)
{
    oi_finding f = {.agrees = true};
    double atol = -1, worst_share = -1;
    for (uint64_t e = 0; e < n; e++) {
        uint64_t place = at ? at(ctx, e) : e;
        if (same_bits(t, want, e, got, place))
            continue;
        if (atol < 0) /* most values are equal: the scale is computed late */
            atol = r.is_exact ? 0 : absolute(r, t, want, n);
        double a = oi_element_f64(t, want, e), b = oi_element_f64(t, got, place);
        double allowed = r.is_exact ? 0 : r.slack > 0 ? r.slack : atol + r.rtol * fabs(a);
        double d = distance(a, b);
        /* bits may differ where values do not: the sign of zero, what a NaN carries */
        bool ok = (d == 0 || d <= allowed) && (!r.is_exact || oi_dtype_is_float(t));
        double share = d == 0 ? 0 : allowed > 0 ? d / allowed : INFINITY;
        if (share > worst_share || (f.agrees && !ok)) {
            worst_share = share;
            f = (oi_finding){.worst = d,
                             .relative = d == 0   ? 0
                                         : a == 0 ? INFINITY
                                                  : d / fabs(a),
                             .allowed = allowed,
                             .atol = r.slack > 0 ? r.slack : atol,
                             .rtol = r.is_exact ? 0 : r.rtol,
                             .wanted = a,
                             .found = b,
                             .element = e,
                             .agrees = f.agrees};
        }
        f.agrees = f.agrees && ok;
    }
    return f;
}
