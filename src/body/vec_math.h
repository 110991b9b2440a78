/* math.h: vector functions with the same steps as body/math.h, hence the same bits. */
#ifndef OI_BODY_VEC_MATH_H
#define OI_BODY_VEC_MATH_H

#include "body/vec.h"

/* oi_exp_f32 within its bounds */
static inline oi_vf oi_vf_exp_of(oi_vf c)
{
    const oi_vf whole = oi_vf_set(12582912.0f), one = oi_vf_set(1.0f);
    const oi_vf t = oi_vf_add(oi_vf_mul(c, oi_vf_set(1.44269504f)), whole), n = oi_vf_sub(t, whole);
    /* the first product has few enough bits to be exact, so that it may be rounded with the sum */
    const oi_vf r = oi_vf_sub(oi_vf_fma(n, oi_vf_set(-0x1.62e4p-1f), c),
                              oi_vf_mul(n, oi_vf_set(1.42860682e-06f)));
    oi_vf q = oi_vf_set(0.00139507239f);
    q = oi_vf_add(oi_vf_mul(q, r), oi_vf_set(0.00836902505f));
    q = oi_vf_add(oi_vf_mul(q, r), oi_vf_set(0.0416662023f));
    q = oi_vf_add(oi_vf_mul(q, r), oi_vf_set(0.166665177f));
    q = oi_vf_add(oi_vf_mul(q, r), oi_vf_set(0.5f));
    return oi_vf_times_2_to(oi_vf_add(one, oi_vf_add(r, oi_vf_mul(oi_vf_mul(r, r), q))), n);
}

/* oi_exp_f32 for x up to 89; NaN is kept */
static inline oi_vf oi_vf_exp_below(oi_vf x)
{
    return oi_vf_exp_of(oi_vf_max(oi_vf_set(-104.0f), x));
}

/* oi_exp_f32 */
static inline oi_vf oi_vf_exp(oi_vf x)
{
    return oi_vf_exp_of(oi_vf_min(oi_vf_set(89.0f), oi_vf_max(oi_vf_set(-104.0f), x)));
}

#endif
