/* qlinear.c: rows of weights in blocks, by the very bodies of emitted programs (body/qlinear.h):
 * as many rows as a vector has lanes are laid side by side into a tile, which is then multiplied by
 * all rows of x. Nibbles stay in the order in which they are stored, two to a byte; x in 8 bits is
 * brought into that order instead: the sums of a block are exact in any. */
#include "kernel/kernel.h"

#if defined(__AVX2__) && defined(__FMA__)

#include "kernel/isa/qrows.h"
#include "body/half.h"
#include "body/qlinear.h"

#define AHEAD 2048 /* bytes: as programs do that are not told otherwise */

/* -- x -- */

/* Of eight the even ones first. */
static void reorder(int8_t *q, size_t k)
{
    for (size_t i = 0; i < k; i += 8) {
        int8_t eight[8];
        memcpy(eight, q + i, sizeof eight);
        for (size_t e = 0; e < 4; e++) {
            q[i + e] = eight[2 * e];
            q[i + 4 + e] = eight[2 * e + 1];
        }
    }
}

static void quantise(const oi_qtile *t, const float *x, int8_t *q, float *d, float *sums)
{
    const size_t k = t->n_blocks * t->group;
    oi_q8_rows(x, q, d, sums, (int64_t)k, (int64_t)t->group, 0, 1);
    if (t->bits == 4)
        reorder(q, k);
}

/* -- w -- */

static void halves(size_t n, const void *from, float *out)
{
    if (n < OI_VF) {
        oi_half_widen(from, (int64_t)n, OI_HALF_F16, out);
        return;
    }
    for (size_t i = 0; i < n - OI_VF; i += OI_VF)
        oi_vf_store(out + i, oi_vf_load_f16((const uint16_t *)from + i));
    /* the last ones, some of them again: one by one they would take longer than all others */
    oi_vf_store(out + n - OI_VF, oi_vf_load_f16((const uint16_t *)from + n - OI_VF));
}

/* Two to a byte, the lower half first; sign 8: they are i4. */
static void unpack(size_t n, const uint8_t *w, uint8_t sign, uint8_t *out)
{
    for (size_t i = 0; i < n / 2; i++) {
        out[2 * i] = (uint8_t)(((w[i] & 15) ^ sign) - sign);
        out[2 * i + 1] = (uint8_t)((w[i] >> 4 ^ sign) - sign);
    }
}

static size_t block_bytes(const oi_qtile *t)
{
    return (t->group * t->bits / 8 + sizeof(float) * (1 + t->has_offset)) * OI_VF;
}

/* Words of four bytes: those of all rows side by side, `each` of them in a block. What lies `next`
 * bytes later is prefetched. */
static void lay(const void *const *rows, size_t n, size_t each, size_t step, size_t next,
                uint8_t *to)
{
    size_t j = 0, in_block = 0;
    for (; j + OI_VF <= n; j += OI_VF) {
        oi_vf v[OI_VF];
        for (size_t i = 0; next && j % 16 == 0 && i < OI_VF; i++) /* lines of 64 bytes */
            oi_prefetch((const char *)rows[i] + 4 * j + next);
        for (size_t i = 0; i < OI_VF; i++)
            v[i] = oi_vf_load((const float *)rows[i] + j);
        oi_vf_transpose(v);
        for (size_t i = 0; i < OI_VF; i++) {
            oi_vf_store((float *)(void *)(to + in_block * 4 * OI_VF), v[i]);
            to += ++in_block == each ? step : 0;
            in_block = in_block == each ? 0 : in_block;
        }
    }
    for (; j < n; j++) {
        for (size_t i = 0; i < OI_VF; i++)
            memcpy(to + (in_block * OI_VF + i) * 4, (const char *)rows[i] + 4 * j, 4);
        to += ++in_block == each ? step : 0;
        in_block = in_block == each ? 0 : in_block;
    }
}

/* What the body wants to be taken off an element before it is stored. */
static void flip(const oi_qtile *t)
{
    const uint32_t by = t->bits == 4 ? 0x88888888u : 0x80808080u;
    for (size_t b = 0; b < t->n_blocks; b++) {
        uint8_t *at = t->room + b * block_bytes(t);
        for (size_t i = 0; i < t->group * t->bits / 8 * OI_VF; i += 4) {
            uint32_t word;
            memcpy(&word, at + i, sizeof word);
            word ^= by;
            memcpy(at + i, &word, sizeof word);
        }
    }
}

static void pack(const oi_qtile *t)
{
    const size_t each = t->group * t->bits / 32, step = block_bytes(t);
    const void *rows[OI_VF];
    for (size_t i = 0; i < OI_VF; i++)
        rows[i] = t->w[i];
    lay(rows, t->n_blocks * each, each, step, t->next, t->room);
    if (t->zero)
        flip(t);
    for (size_t part = 0; part < 1u + t->has_offset; part++) {
        for (size_t i = 0; i < OI_VF; i++)
            rows[i] = (part ? t->offset : t->scale) + i * t->n_blocks;
        lay(rows, t->n_blocks, 1, step, 0, t->room + (each + part) * 4 * OI_VF);
    }
}

/* -- sums -- */

static inline __attribute__((always_inline)) void sums_of(const oi_qtile *t, const oi_qtile_x *x,
                                                          int64_t group, int64_t bits,
                                                          int64_t has_offset, int64_t zero,
                                                          float *sums)
{
    const int64_t n = (int64_t)x->n, blocks = (int64_t)t->n_blocks, k = blocks * group;
    const uint8_t *w = t->room;
    const oi_q_way way = {AHEAD, w, w}; /* straight on */
    oi_vf acc[8];
    int64_t i = 0;
    if (x->is_half) {
        oi_qh_tile(w, x->x, sums, n, k, group, bits, 4, has_offset, zero);
        return;
    }
    for (; i + 4 <= n; i += 4, sums += 4 * OI_VF) {
        if (x->q)
            oi_q_tile4(w, 0, 1, 0, x->q + i * k, x->d + i * blocks, x->sums + i * blocks, k, group,
                       bits, 4, has_offset, zero, acc);
        else
            oi_qf_tile(w, x->x + i * k, 4, k, group, bits, 4, has_offset, zero, acc);
        for (int64_t r = 0; r < 4; r++)
            oi_vf_store(sums + r * OI_VF, acc[r]);
    }
    for (; i < n; i++, sums += OI_VF) {
        if (x->q)
            acc[0] = oi_q_tile(w, x->q + i * k, x->d + i * blocks, x->sums + i * blocks, k, group,
                               bits, 4, has_offset, zero, way);
        else
            oi_qf_tile(w, x->x + i * k, 1, k, group, bits, 4, has_offset, zero, acc);
        oi_vf_store(sums, acc[0]);
    }
}

/* The common ones have nothing left to ask inside. */
static void sums(const oi_qtile *t, const oi_qtile_x *x, float *out)
{
    if (t->group == 32 && t->bits == 4 && t->zero == 0 && t->has_offset)
        sums_of(t, x, 32, 4, 1, 0, out);
    else if (t->group == 32 && t->bits == 4)
        sums_of(t, x, 32, 4, t->has_offset, t->zero, out);
    else if (t->group == 32 && t->zero == 0 && !t->has_offset)
        sums_of(t, x, 32, 8, 0, 0, out);
    else
        sums_of(t, x, (int64_t)t->group, t->bits, t->has_offset, t->zero, out);
}

static bool few(const oi_qtile *t, const oi_qtile_x *x, float *out)
{
    return qrows_few(t, x, OI_VF, out);
}

extern const oi_qtile_fns OI_KERNEL(qtiles);
const oi_qtile_fns OI_KERNEL(qtiles) = {OI_VF, quantise, halves, unpack, pack, sums, few};

#else
extern const oi_qtile_fns OI_KERNEL(qtiles);
const oi_qtile_fns OI_KERNEL(qtiles) = {0}; /* the definition is all there is */
#endif
