/* shapes_recurrent.c: shape rules of recurrent cells. */
#include "program/program.h"

static bool differ(oi_dim a, oi_dim b)
{
    return oi_dim_equal(a, b) == OI_DIFFERENT;
}

static int64_t gates(const oi_call *c)
{
    switch (c->op->id) {
    case OI_OP_LSTM:
    case OI_OP_LSTM_CELL: return 4;
    case OI_OP_GRU:
    case OI_OP_GRU_CELL: return 3;
    default: return 1;
    }
}

/* Input i has this shape; `text` names it. */
static bool wants(const oi_call *c, size_t i, oi_dim a, oi_dim b, uint32_t rank, const char *text)
{
    const oi_type *t = &c->in[i];
    if (t->rank == rank && !differ(t->dims[0], a) && (rank < 2 || !differ(t->dims[1], b)))
        return true;
    char message[OI_INFER_TEXT];
    oi_text m = {message, 0, sizeof message};
    oi_text_add(&m, "'%s' wants shape %s, found ", c->op->inputs[i].name, text);
    oi_text_dims(&m, t);
    oi_text_add(&m, "; 'x' is ");
    oi_text_dims(&m, &c->in[0]);
    oi_text_add(&m, ", 'h' ");
    oi_text_dims(&m, &c->in[1]);
    oi_text_sizes(&m, (const oi_type *const[]){t, &c->in[0], &c->in[1]}, 3);
    return oi_call_fail(c, "E051", OI_AT_INPUT, i, "%s", message);
}

static oi_dim times(oi_dim d, int64_t n)
{
    int64_t product;
    return d.known && !__builtin_mul_overflow(d.value, n, &product) ? oi_dim_of(product)
                                                                    : (oi_dim){0};
}

/* x [B, I], h [B, H], for lstm c [B, H], W [G H, I], R [G H, H], b [2 G H] */
bool oi_shape_cell(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0], *h = &c->in[1];
    size_t w = c->op->id == OI_OP_LSTM_CELL ? 3 : 2;
    int64_t n = gates(c);
    const char *const rows[] = {"", "[H", "", "[3*H", "[4*H"};
    char text[48];
    if (x->rank != 2)
        return oi_shape_fail_one(c, 0, "x wants shape [B, I], found ", x);
    if (h->rank != 2 || !wants(c, 1, x->dims[0], h->dims[1], 2, "[B, H]"))
        return h->rank == 2 ? false : oi_shape_fail_one(c, 1, "h wants shape [B, H], found ", h);
    if (w == 3 && !wants(c, 2, h->dims[0], h->dims[1], 2, "[B, H]"))
        return false;
    snprintf(text, sizeof text, "%s, I]", rows[n]);
    if (!wants(c, w, times(h->dims[1], n), x->dims[1], 2, text))
        return false;
    snprintf(text, sizeof text, "%s, H]", rows[n]);
    if (!wants(c, w + 1, times(h->dims[1], n), h->dims[1], 2, text))
        return false;
    snprintf(text, sizeof text, "[%lld*H], of W and of R", (long long)(2 * n));
    if (c->n_in > w + 2 && !wants(c, w + 2, times(h->dims[1], 2 * n), (oi_dim){0}, 1, text))
        return false;
    out->type = *h;
    return true;
}

static bool is_shape(const oi_type *t, uint32_t rank, const oi_dim *dims)
{
    bool ok = t->rank == rank;
    for (uint32_t i = 0; ok && i < rank; i++)
        ok = !differ(t->dims[i], dims[i]);
    return ok;
}

/* x [T, B, I], W [D, G H, I], R [D, G H, H], b [D, 2 G H], states [D, B, H] */
bool oi_shape_sequence(const oi_call *c, size_t o, oi_shape *out)
{
    const oi_type *x = &c->in[0], *r = &c->in[2];
    const oi_attr_arg *way = oi_call_arg(c, "direction");
    bool both = way && way->known && strcmp(way->value.s, "bidirectional") == 0;
    oi_dim d = oi_dim_of(both ? 2 : 1);
    if (x->rank != 3)
        return oi_shape_fail_one(c, 0, "x wants shape [T, B, I], found ", x);
    if (r->rank != 3)
        return oi_shape_fail_one(c, 2, "R wants shape [D, G*H, H], found ", r);
    oi_dim h = r->dims[2], rows = times(h, gates(c));
    int64_t size;
    if (oi_call_int(c, "hidden_size", &size) && oi_dim_differ(oi_dim_of(size), h))
        return oi_shape_fail_one(c, 2, "hidden_size is not that of R ", r);
    const oi_dim wanted[][3] = {
        {x->dims[0], x->dims[1], x->dims[2]}, {d, rows, x->dims[2]}, {d, rows, h},
        {d, times(rows, 2), (oi_dim){0}},     {d, x->dims[1], h},    {d, x->dims[1], h}};
    static const char *const texts[] = {"",
                                        "W wants shape [D, G*H, I]: x is ",
                                        "R wants shape [D, G*H, H]: x is ",
                                        "b wants shape [D, 2*G*H]: x is ",
                                        "h0 wants shape [D, B, H]: x is ",
                                        "c0 wants shape [D, B, H]: x is "};
    for (size_t i = 1; i < c->n_in; i++)
        if (!is_shape(&c->in[i], i == 3 ? 2 : 3, wanted[i]))
            return oi_shape_fail_pair(c, i, 0, texts[i], x, ", it is ", &c->in[i]);
    out->type = (oi_type){.rank = 3, .dims = {d, x->dims[1], h}};
    if (o == 0)
        out->type = (oi_type){.rank = 4, .dims = {x->dims[0], d, x->dims[1], h}};
    return true;
}

/* -- rotary embedding -- */

static bool rope_layout(const oi_call *c, oi_dim *time, oi_dim *batch, oi_dim *features)
{
    const oi_type *x = &c->in[0];
    int64_t heads = 0;
    if (!oi_call_int(c, "heads", &heads))
        return false;
    bool packed = x->rank == 3 && heads > 0;
    *time = x->rank == 4 ? x->dims[2] : packed ? x->dims[1] : x->dims[0];
    *batch = x->rank == 4 || packed ? x->dims[0] : oi_dim_of(1);
    *features = x->dims[x->rank - 1];
    if (packed && features->known)
        *features = features->value % heads ? oi_dim_of(-1) : oi_dim_of(features->value / heads);
    return true;
}

bool oi_shape_rope(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0], *p = &c->in[1];
    oi_dim time, batch, features;
    int64_t dim;
    out->type = *x;
    if (x->rank != 3 && x->rank != 4)
        return oi_shape_fail_one(
            c, 0, "x wants shape [B, H, T, Dh], [T, H, Dh] or, with heads, [B, T, heads*Dh]: ", x);
    if (!rope_layout(c, &time, &batch, &features))
        return true;
    if (features.known && features.value < 0)
        return oi_shape_fail_one(c, 0, "the last axis does not split into the heads: ", x);
    if (p->rank < 1 || p->rank > 2 || differ(p->dims[p->rank - 1], time) ||
        (p->rank == 2 && differ(p->dims[0], batch)))
        return oi_shape_fail_pair(c, 1, 0, "positions want shape [T] or [B, T]: x is ", x,
                                  ", positions ", p);
    oi_dim turned = oi_call_int(c, "dim", &dim) ? oi_dim_of(dim) : features;
    if (turned.known && (turned.value % 2 || (features.known && turned.value > features.value)))
        return oi_shape_fail_one(c, 0, "only an even part of the last axis can be turned: ", x);
    for (size_t i = 2; i < c->n_in; i++)
        if (c->in[i].rank != 2 ||
            (turned.known && differ(c->in[i].dims[1], oi_dim_of(turned.value / 2))))
            return oi_shape_fail_one(c, i, "cos and sin want shape [positions, dim/2], found ",
                                     &c->in[i]);
    return c->n_in != 3 || oi_call_fail(c, "E056", OI_AT_OP, 0, "takes cos and sin, or neither");
}
