/* interval.c: arithmetic of intervals. */
#include "plan/interval.h"

const oi_range oi_range_any = {INT64_MIN, INT64_MAX};

oi_range oi_range_of_type(oi_dtype t)
{
    if (oi_dtype_is_float(t) || t == OI_U64 || t == OI_BOOL)
        return oi_range_any;
    return (oi_range){oi_dtype_get(t)->min, (int64_t)oi_dtype_get(t)->max};
}

oi_range oi_range_within(oi_range r, oi_dtype t)
{
    const oi_range all = oi_range_of_type(t);
    return r.from < all.from || r.to > all.to ? all : r;
}

oi_range oi_range_add(oi_range a, oi_range b)
{
    oi_range r;
    bool wraps = __builtin_add_overflow(a.from, b.from, &r.from);
    wraps |= __builtin_add_overflow(a.to, b.to, &r.to);
    return wraps ? oi_range_any : r;
}

oi_range oi_range_negative(oi_range a)
{
    return a.from == INT64_MIN || a.to == INT64_MAX ? oi_range_any : (oi_range){-a.to, -a.from};
}

oi_range oi_range_times(oi_range a, oi_range b)
{
    oi_range r = {INT64_MAX, INT64_MIN};
    bool wraps = false;
    for (int i = 0; i < 4; i++) {
        int64_t p;
        wraps |= __builtin_mul_overflow(i & 1 ? a.from : a.to, i & 2 ? b.from : b.to, &p);
        r.from = p < r.from ? p : r.from;
        r.to = p > r.to ? p : r.to;
    }
    return wraps ? oi_range_any : r;
}

oi_range oi_range_either(oi_range a, oi_range b)
{
    return (oi_range){a.from < b.from ? a.from : b.from, a.to > b.to ? a.to : b.to};
}

oi_range oi_range_shifted(oi_range a, oi_range by)
{
    return by.from == by.to && by.from >= 0 && by.from < 64
               ? (oi_range){a.from >> by.from, a.to >> by.from}
               : oi_range_any;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

oi_range oi_range_min(oi_range a, oi_range b)
{
    return (oi_range){least(a.from, b.from), least(a.to, b.to)};
}

oi_range oi_range_max(oi_range a, oi_range b)
{
    return (oi_range){most(a.from, b.from), most(a.to, b.to)};
}

oi_range oi_range_clamped(oi_range a, oi_range to)
{
    return (oi_range){least(most(a.from, to.from), to.to), most(least(a.to, to.to), to.from)};
}
