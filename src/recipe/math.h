/* math.h: functions of vectors, within 2 units in the last place. */
#ifndef OI_RECIPE_MATH_H
#define OI_RECIPE_MATH_H

#include "recipe/vec.h"

/* e^x: x = n ln 2 + r with |r| <= ln 2 / 2, a polynomial in r, and 2^n in two steps, as the result
 * may be subnormal. NaN stays. */
static inline oi_vf oi_vf_exp(oi_vf x)
{
    oi_vf v = oi_vf_min(oi_vf_set(89.0f), oi_vf_max(oi_vf_set(-104.0f), x)); /* NaN is kept */
    oi_vf n = oi_vf_round(oi_vf_mul(v, oi_vf_set(0x1.715476p+0f)));
    oi_vf r = oi_vf_fma(n, oi_vf_set(-0x1.62e4p-1f), v);
    r = oi_vf_fma(n, oi_vf_set(-0x1.7f7d1cp-20f), r);
    oi_vf p = oi_vf_fma(oi_vf_set(0x1.6850e4p-10f), r, oi_vf_set(0x1.123bccp-7f));
    p = oi_vf_fma(p, r, oi_vf_set(0x1.555b98p-5f));
    p = oi_vf_fma(p, r, oi_vf_set(0x1.55548ep-3f));
    p = oi_vf_fma(p, r, oi_vf_set(0x1.fffff8p-2f));
    p = oi_vf_fma(p, r, oi_vf_set(1.0f));
    p = oi_vf_fma(p, r, oi_vf_set(1.0f));
    oi_vi whole = oi_vi_of_vf(n), half = oi_vi_half(whole);
    p = oi_vf_mul(p, oi_vf_power_of_2(half));
    return oi_vf_mul(p, oi_vf_power_of_2(oi_vi_sub(whole, half)));
}

#endif
