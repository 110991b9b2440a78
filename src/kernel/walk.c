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
