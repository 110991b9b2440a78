/* shapes_quant.c: shape rules of ops on quantised tensors. */
#include "program/program.h"

/* x [..., K], w [N, K], scale and offset [N, blocks], and last perhaps a bias [N]. */

static bool check_blocks(const oi_call *c, size_t n)
{
    const oi_type *w = &c->in[1], *scale = &c->in[2];
    for (size_t i = 2; i < n; i++) {
        const oi_type *t = &c->in[i];
        bool is_shared = t->rank == 2 && t->dims[0].known && t->dims[0].value == 1;
        if (t->rank != 2 || (!is_shared && oi_dim_differ(t->dims[0], w->dims[0])))
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

/* -- quantize, dequantize -- */

static bool is_one(const oi_type *t)
{
    for (uint32_t a = 0; a < t->rank; a++)
        if (!t->dims[a].known || t->dims[a].value != 1)
            return false;
    return true;
}

/* scale and zp in blocks along the axis: as x, with fewer elements there. */
static bool check_axis_blocks(const oi_call *c, size_t i, uint32_t axis, int64_t block)
{
    const oi_type *x = &c->in[0], *s = &c->in[i];
    bool fits = s->rank == x->rank;
    for (uint32_t a = 0; fits && a < x->rank; a++) {
        oi_dim want = x->dims[a];
        if (a == axis && want.known)
            want = oi_dim_of(want.value / block + (want.value % block != 0));
        fits = !oi_dim_differ(s->dims[a], a == axis && !x->dims[a].known ? s->dims[a] : want);
    }
    return fits || oi_shape_fail_pair(c, i, 0, "wants one element per block of ", x, ", found ", s);
}

/* Of x's rank, every axis as long or 1. */
static bool stretches(const oi_type *x, const oi_type *s)
{
    bool fits = s->rank == x->rank;
    for (uint32_t a = 0; fits && a < x->rank; a++)
        fits =
            (s->dims[a].known && s->dims[a].value == 1) || !oi_dim_differ(s->dims[a], x->dims[a]);
    return fits;
}

static bool check_along(const oi_call *c, size_t i, uint32_t axis)
{
    const oi_type *x = &c->in[0], *s = &c->in[i];
    return (s->rank == 1 && !oi_dim_differ(s->dims[0], x->dims[axis])) || stretches(x, s) ||
           oi_shape_fail_pair(c, i, 0, "wants one element, or one along the axis of ", x,
                              ", found ", s);
}

bool oi_shape_quantize(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    int64_t axis = 1, block = 0;
    uint32_t at = 0;
    bool known = oi_call_int(c, "axis", &axis), in_blocks = oi_call_int(c, "block_size", &block);
    out->type = c->in[0];
    for (size_t i = 1; i < c->n_in; i++) {
        if (i > 1 && oi_dims_equal(&c->in[1], &c->in[i]) == OI_DIFFERENT)
            return oi_shape_fail_pair(c, i, 1, "scale and zp differ in shape: ", &c->in[1], " and ",
                                      &c->in[i]);
        if (!known || !in_blocks || (block == 0 && is_one(&c->in[i])))
            continue;
        bool needs_axis = block > 0 || !stretches(&c->in[0], &c->in[i]);
        if (needs_axis && !oi_shape_axis(c, oi_call_arg(c, "axis"), axis, &at))
            return false;
        if (block > 0 ? !check_axis_blocks(c, i, at, block) : !check_along(c, i, at))
            return false;
    }
    return true;
}

bool oi_shape_dynamic_quantize(const oi_call *c, size_t o, oi_shape *out)
{
    out->type = c->in[0];
    if (o > 0)
        out->type.rank = 0;
    return true;
}

/* -- products of quantised tensors: a, scale, zp, b, scale, zp, scale of the result, its zp, bias
 * -- */

/* The rule of the plain product for inputs 0 and 3. */
static bool as_product(const oi_call *c, oi_shape_fn *rule, size_t o, oi_shape *out)
{
    const oi_type in[2] = {c->in[0], c->in[3]};
    oi_call plain = *c;
    plain.in = in;
    plain.n_in = 2;
    if (rule(&plain, o, out))
        return true;
    if (c->fail->at == OI_AT_INPUT && c->fail->index == 1)
        c->fail->index = 3;
    return false;
}

/* One element, or one for each of `n`. */
static bool check_scale(const oi_call *c, size_t i, oi_dim n)
{
    const oi_type *s = &c->in[i];
    return is_one(s) || (s->rank == 1 && !oi_dim_differ(s->dims[0], n)) ||
           oi_shape_fail_one(c, i, "wants one element, or one for each row, column or filter: ", s);
}

bool oi_shape_qmatmul(const oi_call *c, size_t o, oi_shape *out)
{
    if (!as_product(c, oi_shape_matmul, o, out))
        return false;
    const oi_type *a = &c->in[0], *b = &c->in[3];
    if (a->rank < 2 || b->rank < 2)
        return oi_shape_fail_pair(c, 3, 0, "wants matrices: ", a, " and ", b);
    oi_dim rows = a->dims[a->rank - 2], columns = b->dims[b->rank - 1], one = oi_dim_of(1);
    if (!check_scale(c, 1, rows) || !check_scale(c, 2, rows) || !check_scale(c, 4, columns) ||
        !check_scale(c, 5, columns) || !check_scale(c, 6, one) || !check_scale(c, 7, one))
        return false;
    return c->n_in < 9 || (c->in[8].rank == 1 && !oi_dim_differ(c->in[8].dims[0], columns)) ||
           oi_shape_fail_pair(c, 8, 3, "bias wants one element per column of ", b, ", found ",
                              &c->in[8]);
}

bool oi_shape_qconv(const oi_call *c, size_t o, oi_shape *out)
{
    if (!as_product(c, oi_shape_conv, o, out))
        return false;
    oi_dim filters = c->in[3].dims[0], one = oi_dim_of(1);
    if (!check_scale(c, 1, one) || !check_scale(c, 2, one) || !check_scale(c, 4, filters) ||
        !check_scale(c, 5, filters) || !check_scale(c, 6, one) || !check_scale(c, 7, one))
        return false;
    return c->n_in < 9 || (c->in[8].rank == 1 && !oi_dim_differ(c->in[8].dims[0], filters)) ||
           oi_shape_fail_pair(c, 8, 3, "b wants one element per filter of ", &c->in[3], ", found ",
                              &c->in[8]);
}
