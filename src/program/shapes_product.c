/* shapes_product.c: shape rules of gemm and einsum. */
#include "program/program.h"

static bool swapped(const oi_call *c, const char *name, const oi_type *x, oi_dim *rows,
                    oi_dim *cols)
{
    bool swaps = false;
    if (!oi_call_bool(c, name, &swaps)) {
        *rows = *cols = (oi_dim){0};
        return true;
    }
    *rows = x->dims[swaps];
    *cols = x->dims[!swaps];
    return true;
}

bool oi_shape_gemm(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *a = &c->in[0], *b = &c->in[1];
    oi_dim m, k, k2, n;
    for (size_t i = 0; i < 2; i++)
        if (c->in[i].rank != 2)
            return oi_shape_fail_one(c, i, "wants a matrix, found ", &c->in[i]);
    swapped(c, "trans_a", a, &m, &k);
    swapped(c, "trans_b", b, &k2, &n);
    if (oi_dim_differ(k, k2))
        return oi_shape_fail_pair(c, 1, 0, "inner dimensions differ after transposing: ", a, " x ",
                                  b);
    out->type = (oi_type){.rank = 2, .dims = {m, n}};
    if (c->n_in < 3)
        return true;
    const oi_type *bias = &c->in[2];
    bool fits = bias->rank <= 2;
    for (uint32_t i = 0; fits && i < bias->rank; i++) {
        oi_dim d = bias->dims[i];
        fits = (d.known && d.value == 1) || !oi_dim_differ(d, out->type.dims[2 - bias->rank + i]);
    }
    return fits ||
           oi_shape_fail_pair(c, 2, 0, "cannot broadcast ", bias, " to the result ", &out->type);
}

bool oi_shape_einsum(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_attr_arg *arg = oi_call_arg(c, "equation");
    uint32_t ranks[OI_EINSUM_INPUTS] = {0};
    oi_einsum e;
    oi_dim extents[2 * OI_EINSUM_RANK];
    for (size_t i = 0; i < c->n_in; i++)
        ranks[i] = c->in[i].rank;
    if (!oi_einsum_read(arg->value.s, (uint32_t)c->n_in, ranks, &e))
        return oi_call_fail(c, "E053", OI_AT_ATTR, (size_t)(arg - c->attrs),
                            "the equation \"%s\" does not go with these inputs", arg->value.s);
    for (uint32_t a = 0; a < e.n_labels; a++)
        extents[a] = oi_dim_of(1);
    for (uint32_t i = 0; i < e.n_in; i++)
        for (uint32_t d = 0; d < e.rank[i]; d++)
            if (!oi_dim_broadcast(extents[e.in[i][d]], c->in[i].dims[d], &extents[e.in[i][d]]))
                return oi_shape_fail_pair(c, i, 0,
                                          "axes of one letter differ in length: ", &c->in[0],
                                          " and ", &c->in[i]);
    out->type = (oi_type){.rank = e.n_out};
    for (uint32_t d = 0; d < e.n_out; d++)
        out->type.dims[d] = extents[d];
    return true;
}
