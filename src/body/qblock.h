/* qblock.h: from the sums of a block to results, alike in all bodies of qlinear. */
#ifndef OI_RECIPE_QBLOCK_H
#define OI_RECIPE_QBLOCK_H

#include "body/scalar.h"
#include "body/vec.h"

/* What the sums of a block begin with: the bits of 1.5 * 2^23, so that a float is there once an
 * integer within +-2^22 is added. */
enum { OI_Q_BEGIN = 0x4b400000 };

/* OI_VF scales or offsets of `size` bytes. */
static inline oi_vf oi_q_scales(const uint8_t *restrict p, int64_t size)
{
    if (size == 2)
        return oi_vf_load_f16(p);
    return oi_vf_load((const float *)(const void *)p);
}

/* What an integer of every row stands for: scale * w + offset, rounded after every step; it is the
 * byte from bit `shift` on or, of nibbles, the half of one. */
static inline __attribute__((always_inline)) oi_vf oi_q_real(oi_vi v, int shift, oi_vf scale,
                                                             oi_vf offset, int64_t has_offset,
                                                             int64_t bits, int64_t zero)
{
    oi_vi w = bits == 4 ? oi_vi_bits(v, shift, 15) : oi_vi_byte(v, shift);
    if (zero)
        w = oi_vi_add(w, oi_vi_set((int32_t)zero));
    const oi_vf real = oi_vf_mul(oi_vf_of_vi(w), scale);
    return has_offset ? oi_vf_add(real, offset) : real;
}

/* Whether an offset times a sum of q is exact, and added to something is rounded once either way:
 * 11 bits of f16, and 13 bits of so many numbers within +-127. */
static inline int64_t oi_q_is_short(int64_t scale_size, int64_t group)
{
    return scale_size == 2 && group <= 64;
}

/* acc + d * (scale * (sum + zero * sum of q) + offset * sum of q), rounded after every step as the
 * op's definition does: the result is the simulator's, bit by bit. */
static inline __attribute__((always_inline)) oi_vf oi_q_block(oi_vf acc, oi_vi sum, oi_vf scale,
                                                              oi_vf offset, float d, float sum_of_q,
                                                              int64_t zero, int64_t has_offset,
                                                              int64_t is_short)
{
    const oi_vf of_q = oi_vf_set(sum_of_q);
    if (zero)
        sum = oi_vi_add(sum, oi_vi_set((int32_t)zero * (int32_t)sum_of_q));
    oi_vf v = oi_vf_mul(oi_vf_of_vi(sum), scale);
    if (has_offset)
        v = is_short ? oi_vf_fma(offset, of_q, v) : oi_vf_add(v, oi_vf_mul(offset, of_q));
    return oi_vf_add(acc, oi_vf_mul(v, oi_vf_set(d)));
}

static inline oi_vf oi_q_scaled(oi_vf acc, oi_vi sum, oi_vf scale, oi_vf offset, float d,
                                float sum_of_q, int64_t zero, int64_t has_offset)
{
    return oi_q_block(acc, sum, scale, offset, d, sum_of_q, zero, has_offset, 0);
}

/* Results of a tile: b is added where there is one, rows of w beyond n are left out. */
static inline void oi_q_put(float *restrict out, oi_vf acc, const float *restrict bias, int64_t at,
                            int64_t n)
{
    if (bias)
        acc = oi_vf_add(acc, oi_vf_load(bias + at));
    if (at + OI_VF <= n)
        oi_vf_store(out + at, acc);
    else
        oi_vf_store_some(out + at, acc, n - at);
}

#endif
