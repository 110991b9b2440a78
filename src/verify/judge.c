/* judge.c: how far two values may differ: spec/ops.md §0, node by node and free-running. */
#include "verify/verify.h"

#include <math.h>

/* What a float type promises, per element (both atol and rtol). */
static double promise(oi_dtype t)
{
    switch (t) {
    case OI_F64: return 1e-12;
    case OI_F32: return 1e-5;
    case OI_F16: return 1e-3;
    case OI_BF16: return 8e-3;
    default: return 0.26; /* f8 */
    }
}

static bool moves_only(const char *op)
{
    oi_ops_info info;
    return oi_ops_get(oi_ops_find(op), &info) && strcmp(info.cls, "move") == 0;
}

oi_rule oi_rule_node(oi_dtype t, const char *op, uint64_t reduced)
{
    if (!oi_dtype_is_float(t) || !*op || moves_only(op))
        return (oi_rule){.is_exact = true};
    bool grows = t == OI_F32 || t == OI_F64;
    return (oi_rule){.atol = promise(t),
                     .rtol = promise(t) * (grows && reduced > 1 ? sqrt((double)reduced) : 1)};
}

oi_rule oi_rule_free(oi_dtype t, bool from_floats, bool is_coarse)
{
    double whole = is_coarse ? 3e-2 : 1e-3;
    if (oi_dtype_is_float(t)) {
        bool is_wide = t == OI_F32 || t == OI_F64;
        return (oi_rule){.whole = is_wide || promise(t) < whole ? whole : promise(t)};
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

static double greatest(oi_dtype t, const void *want, uint64_t n)
{
    double most = 0;
    for (uint64_t e = 0; e < n; e++) {
        double v = fabs(oi_element_f64(t, want, e));
        if (isfinite(v) && v > most)
            most = v;
    }
    return most;
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
    bool by_element = r.atol > 0 || r.rtol > 0;
    double whole = r.whole > 0 ? r.whole * greatest(t, want, n) : 0;
    double worst_share = -1;
    for (uint64_t e = 0; e < n; e++) {
        uint64_t place = at ? at(ctx, e) : e;
        if (same_bits(t, want, e, got, place))
            continue;
        double a = oi_element_f64(t, want, e), b = oi_element_f64(t, got, place);
        double allowed = r.is_exact ? 0 : by_element ? r.atol + r.rtol * fabs(a) : whole;
        allowed = r.slack > 0 ? r.slack : allowed;
        double d = distance(a, b);
        /* bits may differ where values do not: the sign of zero, what a NaN carries */
        bool ok = (d == 0 || d <= allowed) && (!r.is_exact || oi_dtype_is_float(t));
        double share = d == 0 ? 0 : allowed > 0 ? d / allowed : INFINITY;
        if (share > worst_share || (f.agrees && !ok)) {
            worst_share = share;
            f = (oi_finding){d, allowed, a, b, e, f.agrees};
        }
        f.agrees = f.agrees && ok;
    }
    return f;
}
