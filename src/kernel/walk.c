/* walk.c: several tensors side by side, with as few axes as their strides allow. */
#include "kernel/kernel.h"

void oi_walk_init(oi_walk *w, const oi_operand *shape, const oi_operand *const *operands, size_t n)
{
    w->rank = shape->rank;
    w->n_operands = (uint32_t)n;
    for (uint32_t a = 0; a < shape->rank; a++) {
        w->dims[a] = shape->dims[a];
        for (size_t k = 0; k < n; k++) {
            const oi_operand *o = operands[k];
            int64_t own = (int64_t)a - ((int64_t)shape->rank - (int64_t)o->rank);
            w->steps[k][a] = own < 0 || o->dims[own] == 1 ? 0 : o->strides[own];
        }
    }
    oi_walk_join(w);
}

static bool joins(const oi_walk *w, uint32_t outer, uint32_t inner)
{
    for (uint32_t k = 0; k < w->n_operands; k++)
        if (w->steps[k][outer] != w->steps[k][inner] * w->dims[inner])
            return false;
    return true;
}

static void move_axis(oi_walk *w, uint32_t to, uint32_t from)
{
    w->dims[to] = w->dims[from];
    for (uint32_t k = 0; k < w->n_operands; k++)
        w->steps[k][to] = w->steps[k][from];
}

void oi_walk_join(oi_walk *w)
{
    uint32_t rank = 0;
    for (uint32_t a = 0; a < w->rank; a++) {
        if (w->dims[a] == 1)
            continue;
        move_axis(w, rank, a);
        if (rank > 0 && joins(w, rank - 1, rank)) {
            int64_t outer = w->dims[rank - 1];
            move_axis(w, rank - 1, rank);
            w->dims[rank - 1] *= outer;
        } else {
            rank++;
        }
    }
    if (rank == 0) {
        w->dims[0] = 1;
        for (uint32_t k = 0; k < w->n_operands; k++)
            w->steps[k][0] = 1; /* a single element is a row like any other */
        rank = 1;
    }
    w->rank = rank;
}

int64_t oi_walk_count(const oi_walk *w, uint32_t rank)
{
    int64_t n = 1;
    for (uint32_t a = 0; a < rank; a++)
        n *= w->dims[a];
    return n;
}

void oi_walk_seek(const oi_walk *w, uint32_t rank, int64_t index, int64_t *at)
{
    for (uint32_t a = rank; a-- > 0;) {
        int64_t here = index % w->dims[a];
        index /= w->dims[a];
        for (uint32_t k = 0; k < w->n_operands; k++)
            at[k] += here * w->steps[k][a];
    }
}

/* -- copying -- */

void oi_copy(const oi_operand *dst, void *to, int64_t to_at, const oi_operand *src,
             const void *from, int64_t from_at)
{
    oi_walk w;
    oi_walk_init(&w, dst, (const oi_operand *const[]){dst, src}, 2);
    const oi_form_fns *f = oi_forms[OI_CPU_SCALAR];
    /* the bits themselves: a narrow float is not rounded again */
    unsigned bits = oi_dtype_bits(dst->dtype);
    oi_dtype raw = bits == 16 ? OI_U16 : bits == 8 ? OI_U8 : dst->dtype;
    raw = dst->dtype == OI_T2 ? OI_U2 : dst->dtype == OI_T1 ? OI_U1 : raw;
    uint64_t buffer[OI_CHUNK];
    int64_t rows = oi_walk_count(&w, w.rank - 1), n = w.dims[w.rank - 1];
    for (int64_t r = 0; r < rows; r++) {
        int64_t at[2] = {to_at, from_at},
                *step = (int64_t[]){w.steps[0][w.rank - 1], w.steps[1][w.rank - 1]};
        oi_walk_seek(&w, w.rank - 1, r, at);
        if (bits >= 8 && step[0] == 1 && step[1] == 1) {
            memcpy((char *)to + at[0] * (bits / 8), (const char *)from + at[1] * (bits / 8),
                   (size_t)n * (bits / 8));
            continue;
        }
        for (int64_t i = 0; i < n; i += OI_CHUNK) {
            size_t m = (size_t)(n - i < OI_CHUNK ? n - i : OI_CHUNK);
            f->load[raw](buffer, from, at[1] + i * step[1], step[1], m);
            f->store[raw](to, at[0] + i * step[0], step[0], buffer, m);
        }
    }
}
