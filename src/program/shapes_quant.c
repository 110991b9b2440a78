/* shapes_quant.c: shape rules of ops on quantised tensors. */
#include "program/program.h"

/* x [..., K], w [N, K], scale and offset [N, blocks], and last perhaps a bias [N]. */

static bool check_blocks(const oi_call *c, size_t n)
{
    const oi_type *w = &c->in[1], *scale = &c->in[2];
    for (size_t i = 2; i < n; i++) {
        if (c->in[i].rank != 2 || oi_dim_differ(c->in[i].dims[0], w->dims[0]))
            return oi_shape_fail_pair(c, i, 1, "wants one row of blocks for each row of w: ", w,
                                      " and ", &c->in[i]);
        if (i > 2 && oi_dim_differ(c->in[i].dims[1], scale->dims[1]))
            return oi_shape_fail_pair(c, i, 2, "scale and offset differ in shape: ", scale, " and ",
                                      &c->in[i]);
    }
    oi_dim k = w->dims[1], blocks = scale->dims[1];
    int64_t group = 0, covered;
    oi_call_int(c, "group_size", &group);
    if (!k.known || !blocks.known)
        return true;
    bool even = blocks.value ? k.value % blocks.value == 0 : k.value == 0;
    if (even && group)
        even = !__builtin_mul_overflow(group, blocks.value, &covered) && covered == k.value;
    return even || oi_shape_fail_pair(c, 2, 1,
                                      group ? "the blocks of group_size do not make up a row: w "
                                            : "the blocks do not divide a row: w ",
                                      w, ", scale ", scale);
}

bool oi_shape_qlinear(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0], *w = &c->in[1];
    size_t n = c->n_in;
    if (w->rank != 2)
        return oi_shape_fail_one(c, 1, "w wants shape [N, K], found ", w);
    if (x->rank < 1 || oi_dim_differ(x->dims[x->rank - 1], w->dims[1]))
        return oi_shape_fail_pair(c, 1, 0, "x wants shape [..., K] for w [N, K]: x ", x, ", w ", w);
    if (n > 2 && c->in[n - 1].rank == 1) {
        n--;
        if (oi_dim_differ(c->in[n].dims[0], w->dims[0]))
            return oi_shape_fail_pair(c, n, 1, "b wants shape [N] for w ", w, ", found ",
                                      &c->in[n]);
    }
    if (n > 4)
        return oi_shape_fail_one(c, 4, "b wants shape [N], found ", &c->in[4]);
    if (n == 2)
        return oi_call_fail(c, "E056", OI_AT_OP, 0,
                            "takes a scale for each block of w, which carries none of its own");
    if (!check_blocks(c, n))
        return false;
    out->type = *x;
    out->type.dims[x->rank - 1] = w->dims[0];
    return true;
}
