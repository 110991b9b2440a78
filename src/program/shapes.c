/* shapes.c: the shape rules of the op registry, one function each.
 *
 * Counts, attributes and dtypes have been checked; what is missing here is only the model's sizes
 * and attributes that are variables. Unknown sizes pass, and make unknown results. */
#include "program/program.h"

#include <inttypes.h>

bool oi_shape_fail_pair(const oi_call *c, size_t i, size_t other, const char *text,
                        const oi_type *a, const char *joint, const oi_type *b)
{
    char message[OI_INFER_TEXT];
    oi_text t = {message, 0, sizeof message};
    oi_text_add(&t, "%s", text);
    oi_text_dims(&t, a);
    oi_text_add(&t, "%s", joint);
    oi_text_dims(&t, b);
    oi_text_sizes(&t, (const oi_type *const[]){a, b}, 2);
    oi_call_fail(c, "E051", OI_AT_INPUT, i, "%s", message);
    c->fail->other = (uint32_t)other;
    return false;
}

static bool fail_at(const oi_call *c, oi_infer_at at, size_t i, const char *text, const oi_type *a)
{
    char message[OI_INFER_TEXT];
    oi_text t = {message, 0, sizeof message};
    oi_text_add(&t, "%s", text);
    oi_text_dims(&t, a);
    oi_text_sizes(&t, &a, 1);
    return oi_call_fail(c, "E051", at, i, "%s", message);
}

bool oi_shape_fail_one(const oi_call *c, size_t i, const char *text, const oi_type *a)
{
    return fail_at(c, OI_AT_INPUT, i, text, a);
}

bool oi_shape_fail_attr(const oi_call *c, const char *name, const char *text, const oi_type *a)
{
    const oi_attr_arg *arg = oi_call_arg(c, name);
    return fail_at(c, arg ? OI_AT_ATTR : OI_AT_OP, arg ? (size_t)(arg - c->attrs) : 0, text, a);
}

bool oi_dim_differ(oi_dim a, oi_dim b)
{
    return oi_dim_equal(a, b) == OI_DIFFERENT;
}

/* -- elementwise -- */

static bool same(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    out->type = c->in[0];
    return true;
}

static bool broadcast(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    out->type = c->in[0];
    for (size_t i = 1; i < c->n_in; i++)
        if (!oi_dims_broadcast(&out->type, &c->in[i], &out->type))
            return oi_shape_fail_pair(c, i, 0, "cannot broadcast ", &out->type, " with ",
                                      &c->in[i]);
    return true;
}

static bool scalar_or_same(const oi_call *c, size_t o, oi_shape *out)
{
    out->type = c->in[0];
    if (c->declared && c->declared[o].rank == 0)
        out->type.rank = 0;
    return true;
}

/* -- reductions -- */

/* A negative axis counts from the end. */
bool oi_shape_axis(const oi_call *c, const oi_attr_arg *arg, int64_t axis, uint32_t *out)
{
    const oi_type *x = &c->in[0];
    if (axis >= -(int64_t)x->rank && axis < (int64_t)x->rank) {
        *out = (uint32_t)(axis < 0 ? axis + x->rank : axis);
        return true;
    }
    char message[OI_INFER_TEXT];
    oi_text t = {message, 0, sizeof message};
    oi_text_add(&t, "axis %" PRId64 " is out of range for ", axis);
    oi_text_dims(&t, x);
    oi_text_add(&t, " (rank %u)", x->rank);
    if (arg)
        return oi_call_fail(c, "E051", OI_AT_ATTR, (size_t)(arg - c->attrs), "%s", message);
    return oi_call_fail(c, "E051", OI_AT_INPUT, 0, "%s", message);
}

/* Bit a is set when axis a goes. Naming an axis twice changes nothing. */
static void drop_axes(const oi_type *x, uint32_t gone, bool keep, oi_type *out)
{
    out->rank = 0;
    for (uint32_t a = 0; a < x->rank; a++) {
        bool goes = gone >> a & 1;
        if (!goes || keep)
            out->dims[out->rank++] = goes ? oi_dim_of(1) : x->dims[a];
    }
}

static bool reduce(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_attr_arg *arg = oi_call_arg(c, "axes");
    if (!arg->known) {
        out->is_open = true;
        return true;
    }
    const oi_op_value *v = &arg->value;
    const int64_t *axes = v->tag == OI_VALUE_INT ? &v->i : v->ints;
    size_t n = v->tag == OI_VALUE_INT ? 1 : v->n;
    uint32_t gone = 0, axis = 0;
    for (size_t i = 0; i < n; i++) {
        if (!oi_shape_axis(c, arg, axes[i], &axis))
            return false;
        gone |= 1u << axis;
    }
    bool keep = false;
    out->is_open = !oi_call_bool(c, "keepdims", &keep);
    drop_axes(&c->in[0], gone, keep, &out->type);
    return true;
}

static bool argreduce(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0];
    const oi_attr_arg *arg = oi_call_arg(c, "axis");
    if (!arg->known) {
        out->is_open = true;
        return true;
    }
    uint32_t axis;
    if (!oi_shape_axis(c, arg, arg->value.i, &axis))
        return false;
    if (x->dims[axis].known && x->dims[axis].value == 0) {
        char text[64];
        snprintf(text, sizeof text, "axis %u is empty in ", axis);
        return oi_shape_fail_one(c, 0, text, x);
    }
    bool keep = false;
    out->is_open = !oi_call_bool(c, "keepdims", &keep);
    drop_axes(x, 1u << axis, keep, &out->type);
    return true;
}

/* -- matmul -- */

/* The operand as a stack of matrices: a rank-1 one is promoted, transposition is done. */
static void as_matrix(const oi_type *x, bool known, bool transpose, bool is_left, oi_type *out)
{
    *out = *x;
    if (x->rank == 1) {
        out->rank = 2;
        out->dims[is_left ? 1 : 0] = x->dims[0];
        out->dims[is_left ? 0 : 1] = oi_dim_of(1);
        return;
    }
    oi_dim *last = &out->dims[out->rank - 2];
    oi_dim swap = last[0];
    if (!known) {
        last[0] = last[1] = (oi_dim){0};
    } else if (transpose) {
        last[0] = last[1];
        last[1] = swap;
    }
}

bool oi_shape_matmul(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *x = &c->in[0], *y = &c->in[1];
    for (size_t i = 0; i < 2; i++)
        if (c->in[i].rank == 0)
            return oi_call_fail(c, "E051", OI_AT_INPUT, i,
                                "input '%s' has rank 0, wants a matrix or vector",
                                c->op->inputs[i].name);
    bool ta = false, tb = false;
    /* an op without the attribute does not transpose */
    bool ta_known = oi_call_bool(c, "transpose_a", &ta) || !oi_op_attr_find(c->op, "transpose_a"),
         tb_known = oi_call_bool(c, "transpose_b", &tb) || !oi_op_attr_find(c->op, "transpose_b");
    oi_type a, b;
    as_matrix(x, ta_known, ta, true, &a);
    as_matrix(y, tb_known, tb, false, &b);
    if (oi_dim_differ(a.dims[a.rank - 1], b.dims[b.rank - 2]))
        return oi_shape_fail_pair(c, 1, 0,
                                  ta || tb ? "inner dimensions differ after transposing: "
                                           : "inner dimensions differ: ",
                                  ta || tb ? &a : x, " x ", ta || tb ? &b : y);
    oi_dim m = a.dims[a.rank - 2], n = b.dims[b.rank - 1];
    a.rank -= 2;
    b.rank -= 2;
    if (!oi_dims_broadcast(&a, &b, &out->type))
        return oi_shape_fail_pair(c, 1, 0, "cannot broadcast leading dimensions: ", x, " x ", y);
    if (x->rank > 1)
        out->type.dims[out->type.rank++] = m;
    if (y->rank > 1)
        out->type.dims[out->type.rank++] = n;
    return true;
}

/* -- gather -- */

static bool gather(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *data = &c->in[0], *idx = &c->in[1];
    if (data->rank == 0)
        return oi_call_fail(c, "E051", OI_AT_INPUT, 0,
                            "input 'data' has rank 0, nothing to choose from");
    if (data->rank - 1 + idx->rank > OI_MAX_RANK)
        return oi_call_fail(c, "E051", OI_AT_INPUT, 1, "the result would have rank %u, at most %d",
                            data->rank - 1 + idx->rank, OI_MAX_RANK);
    int64_t given;
    uint32_t axis;
    if (!oi_call_int(c, "axis", &given)) { /* a variable: the rank is certain, the sizes are not */
        out->type.rank = data->rank - 1 + idx->rank;
        return true;
    }
    if (!oi_shape_axis(c, oi_call_arg(c, "axis"), given, &axis))
        return false;
    oi_type *t = &out->type;
    for (uint32_t i = 0; i < axis; i++)
        t->dims[t->rank++] = data->dims[i];
    for (uint32_t i = 0; i < idx->rank; i++)
        t->dims[t->rank++] = idx->dims[i];
    for (uint32_t i = axis + 1; i < data->rank; i++)
        t->dims[t->rank++] = data->dims[i];
    return true;
}

/* -- attention -- */

/* The sizes of an attention in any of its layouts; an unknown one is unknown. */
typedef struct attention {
    oi_dim b, h, hk, tq, tk, dh, dv;
} attention;

/* whole = parts * size, where two are known; *bad when it does not divide. */
static oi_dim quotient(oi_dim whole, oi_dim parts, bool *bad)
{
    if (!whole.known || !parts.known)
        return (oi_dim){0};
    if (parts.value <= 0 || whole.value % parts.value != 0) {
        *bad = true;
        return (oi_dim){0};
    }
    return oi_dim_of(whole.value / parts.value);
}

static oi_dim attr_dim(const oi_call *c, const char *name, oi_dim absent)
{
    int64_t v;
    if (oi_call_int(c, name, &v))
        return oi_dim_of(v);
    return oi_call_arg(c, name) ? (oi_dim){0} : absent;
}

static bool sdpa_equal(const oi_call *c, size_t i, size_t j, uint32_t axis_i, uint32_t axis_j,
                       const char *what)
{
    if (!oi_dim_differ(c->in[i].dims[axis_i], c->in[j].dims[axis_j]))
        return true;
    char text[120];
    snprintf(text, sizeof text, "%s of '%s' and '%s' differ: ", what, c->op->inputs[j].name,
             c->op->inputs[i].name);
    return oi_shape_fail_pair(c, i, j, text, &c->in[j], " and ", &c->in[i]);
}

static bool sdpa_heads(const oi_call *c, const attention *a)
{
    if (!a->h.known || !a->hk.known || (a->hk.value > 0 && a->h.value % a->hk.value == 0))
        return true;
    return oi_call_fail(c, "E051", OI_AT_OP, 0,
                        "%" PRId64 " query heads are no multiple of %" PRId64 " key heads",
                        a->h.value, a->hk.value);
}

/* Layout (a): every head has its own axis. */
static bool sdpa_split(const oi_call *c, attention *a)
{
    const oi_type *q = &c->in[0], *k = &c->in[1], *v = &c->in[2];
    *a = (attention){.b = q->dims[0],
                     .h = q->dims[1],
                     .tq = q->dims[2],
                     .dh = q->dims[3],
                     .hk = k->dims[1],
                     .tk = k->dims[2],
                     .dv = v->dims[3]};
    static const char *const names[] = {"heads", "kv_heads"};
    for (size_t i = 0; i < 2; i++) {
        const oi_attr_arg *arg = oi_call_arg(c, names[i]);
        oi_dim given = attr_dim(c, names[i], (oi_dim){0}), real = i ? a->hk : a->h;
        if (arg && oi_dim_differ(given, real))
            return oi_call_fail(c, "E051", OI_AT_ATTR, (size_t)(arg - c->attrs),
                                "attribute '%s' is %" PRId64 " but axis 1 of '%s' is %" PRId64,
                                names[i], given.value, c->op->inputs[i].name, real.value);
    }
    return sdpa_equal(c, 1, 0, 0, 0, "batch sizes") && sdpa_equal(c, 2, 0, 0, 0, "batch sizes") &&
           sdpa_equal(c, 1, 0, 3, 3, "head sizes") && sdpa_equal(c, 2, 1, 1, 1, "head counts") &&
           sdpa_equal(c, 2, 1, 2, 2, "lengths") && sdpa_heads(c, a);
}

/* Layouts (b) and (c): the heads are packed in the last axis. */
static bool sdpa_packed(const oi_call *c, attention *a)
{
    const oi_type *q = &c->in[0], *k = &c->in[1], *v = &c->in[2];
    bool decode = q->rank == 2, bad = false;
    uint32_t batch = decode ? 1 : 0, time = decode ? 0 : 1;
    *a = (attention){.b = q->dims[0], .tk = k->dims[time]};
    a->tq = decode ? oi_dim_of(1) : q->dims[1];
    a->h = attr_dim(c, "heads", oi_dim_of(1));
    if (!sdpa_equal(c, 1, 0, batch, 0, "batch sizes") ||
        !sdpa_equal(c, 2, 0, batch, 0, "batch sizes") ||
        !sdpa_equal(c, 2, 1, time, time, "lengths"))
        return false;
    oi_dim q_last = q->dims[q->rank - 1], k_last = k->dims[2], v_last = v->dims[2];
    a->dh = quotient(q_last, a->h, &bad);
    if (bad)
        return oi_shape_fail_one(c, 0, "the last axis does not split into the heads: ", q);
    oi_dim held = a->dh.known && a->dh.value == 0 ? (oi_dim){0} : quotient(k_last, a->dh, &bad);
    a->hk = attr_dim(c, "kv_heads", held);
    if (bad || oi_dim_differ(held, a->hk))
        return oi_shape_fail_pair(c, 1, 0, "key and query heads differ in size: ", q, " and ", k);
    if (!sdpa_heads(c, a))
        return false;
    a->dv = quotient(v_last, a->hk, &bad);
    if (bad)
        return oi_shape_fail_one(c, 2, "the last axis does not split into the key heads: ", v);
    return true;
}

static bool sdpa_mask(const oi_call *c, const attention *a)
{
    const oi_type want = {.rank = 4, .dims = {a->b, a->h, a->tq, a->tk}};
    const oi_type *mask = &c->in[3];
    bool ok = mask->rank <= 4;
    for (uint32_t i = 0; ok && i < mask->rank; i++) {
        oi_dim m = mask->dims[i];
        ok = (m.known && m.value == 1) || !oi_dim_differ(m, want.dims[4 - mask->rank + i]);
    }
    return ok || oi_shape_fail_pair(c, 3, 0, "cannot broadcast the mask ", mask,
                                    " to [B, H, Tq, Tk] = ", &want);
}

static bool sdpa_kv_len(const oi_call *c, const attention *a)
{
    const oi_attr_arg *arg = oi_call_arg(c, "kv_len");
    if (!arg || !arg->var || arg->var->rank == 0 || !oi_dim_differ(arg->var->dims[0], a->b))
        return true;
    char text[200];
    oi_text t = {text, 0, sizeof text};
    oi_text_add(&t, "attribute 'kv_len' has shape ");
    oi_text_dims(&t, arg->var);
    oi_text_add(&t, ", wants [] or the batch [");
    oi_text_dim(&t, a->b);
    oi_text_add(&t, "]");
    return oi_call_fail(c, "E051", OI_AT_ATTR, (size_t)(arg - c->attrs), "%s", text);
}

/* heads * Dv, or as q when k and v are alike. False when the product is too large. */
static bool packed_result(const oi_call *c, const attention *a, oi_dim *out)
{
    int64_t product;
    if (oi_dim_equal(c->in[1].dims[2], c->in[2].dims[2]) == OI_EQUAL)
        *out = c->in[0].dims[c->in[0].rank - 1];
    else if (!a->h.known || !a->dv.known)
        *out = (oi_dim){0};
    else if (__builtin_mul_overflow(a->h.value, a->dv.value, &product))
        return oi_call_fail(c, "E051", OI_AT_OP, 0,
                            "heads times the size of a value head is too large");
    else
        *out = oi_dim_of(product);
    return true;
}

static bool sdpa(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *q = &c->in[0];
    if (q->rank < 2 || q->rank > 4)
        return oi_shape_fail_one(
            c, 0, "q wants rank 4 (split heads), 3 (packed) or 2 (decode), found ", q);
    uint32_t wanted = q->rank == 4 ? 4 : 3;
    for (size_t i = 1; i <= 2; i++)
        if (c->in[i].rank != wanted) {
            char text[100];
            snprintf(text, sizeof text, "with q of rank %u input '%s' wants rank %u: ", q->rank,
                     c->op->inputs[i].name, wanted);
            return oi_shape_fail_pair(c, i, 0, text, q, " and ", &c->in[i]);
        }
    attention a;
    if (!(q->rank == 4 ? sdpa_split(c, &a) : sdpa_packed(c, &a)))
        return false;
    if ((c->n_in > 3 && !sdpa_mask(c, &a)) || !sdpa_kv_len(c, &a))
        return false;
    out->type = *q;
    if (q->rank < 4)
        return packed_result(c, &a, &out->type.dims[q->rank - 1]);
    out->type.dims[3] = a.dv;
    return true;
}

static bool attn(const oi_call *c, size_t o, oi_shape *out)
{
    (void)o;
    const oi_type *h = &c->in[0], *k = &c->in[1], *v = &c->in[2], *w = &c->in[3];
    if (h->rank != 2)
        return oi_shape_fail_one(c, 0, "h wants shape [B, D], found ", h);
    if (w->rank != 2 || oi_dim_differ(w->dims[0], h->dims[1]) ||
        oi_dim_differ(w->dims[1], h->dims[1]))
        return oi_shape_fail_pair(c, 3, 0, "W wants shape [D, D] for h ", h, ", found ", w);
    if (k->rank != 2 && k->rank != 3)
        return oi_shape_fail_one(c, 1, "k wants shape [H, Dh] or [T, H, Dh], found ", k);
    if (oi_dims_equal(k, v) == OI_DIFFERENT)
        return oi_shape_fail_pair(c, 2, 1, "k and v differ in shape: ", k, " and ", v);
    oi_dim heads = k->dims[k->rank - 2], size = k->dims[k->rank - 1], whole = h->dims[1];
    int64_t product;
    if (heads.known && size.known && whole.known &&
        (__builtin_mul_overflow(heads.value, size.value, &product) || product != whole.value))
        return oi_shape_fail_pair(c, 1, 0, "the heads of k do not make up D: h ", h, ", k ", k);
    out->type = *h;
    return true;
}

/* -- the table -- */

static oi_shape_fn *const rules[OI_SHAPE_COUNT] = {
    [OI_SHAPE_SAME] = same,
    [OI_SHAPE_BROADCAST] = broadcast,
    [OI_SHAPE_SCALAR_OR_SAME] = scalar_or_same,
    [OI_SHAPE_REDUCE] = reduce,
    [OI_SHAPE_ARGREDUCE] = argreduce,
    [OI_SHAPE_MATMUL] = oi_shape_matmul,
    [OI_SHAPE_GATHER] = gather,
    [OI_SHAPE_RESHAPE] = oi_shape_reshape,
    [OI_SHAPE_FLATTEN] = oi_shape_flatten,
    [OI_SHAPE_SQUEEZE] = oi_shape_squeeze,
    [OI_SHAPE_UNSQUEEZE] = oi_shape_unsqueeze,
    [OI_SHAPE_TRANSPOSE] = oi_shape_transpose,
    [OI_SHAPE_EXPAND] = oi_shape_expand,
    [OI_SHAPE_TILE] = oi_shape_tile,
    [OI_SHAPE_CONCAT] = oi_shape_concat,
    [OI_SHAPE_SPLIT] = oi_shape_split,
    [OI_SHAPE_SLICE] = oi_shape_slice,
    [OI_SHAPE_PAD] = oi_shape_pad,
    [OI_SHAPE_NONZERO] = oi_shape_nonzero,
    [OI_SHAPE_UNIQUE] = oi_shape_unique,
    [OI_SHAPE_TOPK] = oi_shape_topk,
    [OI_SHAPE_RESIZE] = oi_shape_resize,
    [OI_SHAPE_GRID_SAMPLE] = oi_shape_grid_sample,
    [OI_SHAPE_DFT] = oi_shape_dft,
    [OI_SHAPE_STFT] = oi_shape_stft,
    [OI_SHAPE_ISTFT] = oi_shape_istft,
    [OI_SHAPE_MEL_FILTER] = oi_shape_mel_filter,
    [OI_SHAPE_WINDOW] = oi_shape_window,
    [OI_SHAPE_ALONG_AXES] = oi_shape_along_axes,
    [OI_SHAPE_MATRIX] = oi_shape_matrix,
    [OI_SHAPE_SAME_BITS] = oi_shape_same_bits,
    [OI_SHAPE_DEPTH_TO_SPACE] = oi_shape_depth_to_space,
    [OI_SHAPE_SPACE_TO_DEPTH] = oi_shape_space_to_depth,
    [OI_SHAPE_GATHER_ELEMENTS] = oi_shape_gather_elements,
    [OI_SHAPE_GATHER_ND] = oi_shape_gather_nd,
    [OI_SHAPE_SCATTER] = oi_shape_scatter,
    [OI_SHAPE_SCATTER_ND] = oi_shape_scatter_nd,
    [OI_SHAPE_ONE_HOT] = oi_shape_one_hot,
    [OI_SHAPE_RANGE] = oi_shape_range,
    [OI_SHAPE_SHAPE_OF] = oi_shape_shape_of,
    [OI_SHAPE_SCALAR] = oi_shape_scalar,
    [OI_SHAPE_SDPA] = sdpa,
    [OI_SHAPE_ATTN] = attn,
    [OI_SHAPE_ALONG] = oi_shape_along,
    [OI_SHAPE_NORM] = oi_shape_norm,
    [OI_SHAPE_CHANNELS] = oi_shape_channels,
    [OI_SHAPE_PAIRS] = oi_shape_pairs,
    [OI_SHAPE_ROPE] = oi_shape_rope,
    [OI_SHAPE_CELL] = oi_shape_cell,
    [OI_SHAPE_SEQUENCE] = oi_shape_sequence,
    [OI_SHAPE_QLINEAR] = oi_shape_qlinear,
    [OI_SHAPE_GEMM] = oi_shape_gemm,
    [OI_SHAPE_EINSUM] = oi_shape_einsum,
    [OI_SHAPE_QUANTIZE] = oi_shape_quantize,
    [OI_SHAPE_DYNAMIC_QUANTIZE] = oi_shape_dynamic_quantize,
    [OI_SHAPE_QMATMUL] = oi_shape_qmatmul,
    [OI_SHAPE_QCONV] = oi_shape_qconv,
    [OI_SHAPE_CONV] = oi_shape_conv,
    [OI_SHAPE_CONV_TRANSPOSE] = oi_shape_conv_transpose,
    [OI_SHAPE_POOL] = oi_shape_pool,
    [OI_SHAPE_GLOBAL_POOL] = oi_shape_global_pool,
    [OI_SHAPE_IM2COL] = oi_shape_im2col,
    [OI_SHAPE_COL2IM] = oi_shape_col2im,
};

bool oi_shape_infer(const oi_call *c, size_t o, oi_shape *out)
{
    *out = (oi_shape){0};
    return rules[c->op->shape_rule](c, o, out);
}
