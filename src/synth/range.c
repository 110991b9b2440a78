/* range.c: between which numbers the values of kernels lie: intervals, from what weights hold, what
 * types can and what instructions do. */
#include "synth/range.h"

#include <math.h>

#include "oinf/oinf.h"

#define MOST_READ (1 << 20) /* elements of a tensor that are looked at */

oi_range oi_range_of_type(oi_dtype t)
{
    const oi_range any = {INT64_MIN, INT64_MAX};
    if (oi_dtype_is_float(t) || t == OI_U64 || t == OI_BOOL)
        return any;
    return (oi_range){oi_dtype_get(t)->min, (int64_t)oi_dtype_get(t)->max};
}

/* -- what weights hold -- */

typedef void look_fn(const oi_tensor *t, const void *data, void *ctx);

static void look_at(const oi_tensor *t, const void *data, void *ctx)
{
    oi_range *r = ctx;
    for (int64_t e = 0; e < oi_tensor_count(t); e++) {
        int64_t v = oi_element_i64(t->dtype, data, (uint64_t)e);
        r->from = v < r->from ? v : r->from;
        r->to = v > r->to ? v : r->to;
    }
}

static void look_at_reals(const oi_tensor *t, const void *data, void *ctx)
{
    double *r = ctx; /* from, to; both are none as soon as an element is */
    for (int64_t e = 0; e < oi_tensor_count(t); e++) {
        double v = oi_element_f64(t->dtype, data, (uint64_t)e);
        r[0] = !isfinite(v) ? -INFINITY : v < r[0] ? v : r[0];
        r[1] = !isfinite(v) ? INFINITY : v > r[1] ? v : r[1];
    }
}

/* Looks at all that weights hold; false: it is not known. */
static bool look_through(const oi_tensor *t, look_fn *look, void *ctx)
{
    int64_t n = oi_tensor_count(t);
    if (t->space != OI_SPACE_WEIGHTS || t->packing || n < 1 ||
        t->n_entries > MOST_READ / (uint64_t)n)
        return false;
    if (t->bytes) {
        if (!t->n_table)
            look(t, t->bytes, ctx);
        return !t->n_table;
    }
    for (uint64_t e = 0; t->sources && e < t->n_entries; e++) {
        oi_view view;
        if (t->sources[e] == OI_NO_SOURCE)
            continue;
        const char *name = t->model->tensors[t->sources[e]].name;
        if (oi_model_tensor(t->model, name, &view, NULL) != OI_OK)
            return false;
        look(t, view.data, ctx);
        oi_model_release(t->model, name);
    }
    return true;
}

static oi_range range_of_contents(const oi_tensor *t)
{
    oi_range all = oi_range_of_type(t->dtype), r = {INT64_MAX, INT64_MIN};
    if (oi_dtype_is_float(t->dtype) || t->dtype == OI_U64 || t->dtype == OI_BOOL ||
        !look_through(t, look_at, &r))
        return all;
    if (!t->bytes && !t->sources) {
        uint64_t bits = t->init;
        int64_t v = oi_element_i64(t->dtype, &bits, 0);
        return (oi_range){v, v};
    }
    return r.from <= r.to ? r : all;
}

bool oi_reals_of_tensor(const oi_unit *u, uint32_t tensor, double *from, double *to)
{
    const oi_tensor *t = &u->tensors.at[tensor];
    double r[2] = {INFINITY, -INFINITY};
    if (t->dtype != OI_F32 || (!t->bytes && !t->sources) || !look_through(t, look_at_reals, r))
        return false;
    *from = r[0];
    *to = r[1];
    return isfinite(r[0]) && isfinite(r[1]);
}

oi_range oi_range_of_tensor(oi_ranges *x, uint32_t tensor)
{
    if (tensor >= x->n)
        return oi_range_of_type(x->u->tensors.at[tensor].dtype);
    if (!x->is_found[tensor])
        x->of[tensor] = range_of_contents(&x->u->tensors.at[tensor]);
    x->is_found[tensor] = true;
    return x->of[tensor];
}

/* -- what instructions make of it -- */

static oi_range combine(const char *op, oi_range a, oi_range b, oi_dtype type)
{
    const oi_range all = oi_range_of_type(type);
    oi_range r = all;
    bool wraps = false;
    if (strcmp(op, "add") == 0) {
        wraps = __builtin_add_overflow(a.from, b.from, &r.from);
        wraps |= __builtin_add_overflow(a.to, b.to, &r.to);
    } else if (strcmp(op, "sub") == 0) {
        wraps = __builtin_sub_overflow(a.from, b.to, &r.from);
        wraps |= __builtin_sub_overflow(a.to, b.from, &r.to);
    } else if (strcmp(op, "mul") == 0) {
        r = (oi_range){INT64_MAX, INT64_MIN};
        for (int i = 0; i < 4; i++) {
            int64_t p;
            wraps |= __builtin_mul_overflow(i & 1 ? a.from : a.to, i & 2 ? b.from : b.to, &p);
            r.from = p < r.from ? p : r.from;
            r.to = p > r.to ? p : r.to;
        }
    }
    return wraps || r.from < all.from || r.to > all.to ? all : r;
}

static const oi_op_value *number_attr(const oi_scall *c, const char *name)
{
    const oi_op_attr *a = oi_op_attr_find(c->op, name);
    size_t i = a ? (size_t)(a - c->op->attrs) : 0;
    bool is_known = a && !(c->scalars && c->scalars[i] != OI_NO_ID);
    return is_known && c->attrs[i].tag == OI_VALUE_INT ? &c->attrs[i] : NULL;
}

/* A bound that is known, rounded away from the middle. */
static int64_t bound(const oi_scall *c, const char *name, int64_t none)
{
    const oi_op_attr *a = oi_op_attr_find(c->op, name);
    size_t i = a ? (size_t)(a - c->op->attrs) : 0;
    if (!a || (c->scalars && c->scalars[i] != OI_NO_ID))
        return none;
    if (c->attrs[i].tag == OI_VALUE_INT)
        return c->attrs[i].i;
    if (c->attrs[i].tag != OI_VALUE_FLOAT || !(fabs(c->attrs[i].f) < 0x1p53))
        return none;
    return (int64_t)(none < 0 ? floor(c->attrs[i].f) : ceil(c->attrs[i].f));
}

static oi_range range_of_float(const oi_sop *op, oi_range a)
{
    const char *name = op->call->op->name;
    oi_range r = {bound(op->call, "min", INT64_MIN), bound(op->call, "max", INT64_MAX)};
    if (strcmp(name, "clamp") == 0 && r.from <= r.to)
        return r;
    return strcmp(name, "round") == 0 || strcmp(name, "trunc") == 0 ? a
                                                                    : oi_range_of_type(op->type);
}

static bool is_product(const oi_op *op)
{
    return strcmp(op->name, "mul") == 0 || strcmp(op->name, "matmul") == 0 ||
           strcmp(op->name, "conv") == 0;
}

static oi_range range_of_eval(const oi_sop *op, const oi_range *in)
{
    const oi_range all = oi_range_of_type(op->type);
    const char *name = op->call->op->name;
    oi_range a = op->args[0] != OI_NO_ID ? in[op->args[0]] : all;
    const bool has_b = op->n_args > 1 && op->args[1] != OI_NO_ID;
    if (op->part != OI_PART_EXPR)
        return all;
    if (oi_dtype_is_float(op->type))
        return range_of_float(op, a);
    if (strcmp(name, "cast") == 0) { /* what is no number becomes 0 */
        a = (oi_range){a.from < 0 ? a.from : 0, a.to > 0 ? a.to : 0};
        return a.from >= all.from && a.to <= all.to ? a : all;
    }
    const oi_op_value *bits =
        strcmp(name, "shr") == 0 && !has_b ? number_attr(op->call, "bits") : NULL;
    if (bits && bits->i >= 0 && bits->i < 64)
        return (oi_range){a.from >> bits->i, a.to >> bits->i};
    return has_b ? combine(is_product(op->call->op) ? "mul" : name, a, in[op->args[1]], op->type)
                 : all;
}

oi_range oi_range_of_sop(oi_ranges *x, const oi_skernel *k, const oi_sop *op, const oi_range *in)
{
    if (op->kind == OI_SOP_LOAD && !op->is_raw && !op->may_leave && !op->guard)
        return oi_range_of_tensor(x, k->ports.at[op->port].tensor);
    if (op->kind == OI_SOP_CONST && !op->is_raw && !oi_dtype_is_float(op->type)) {
        int64_t v = oi_element_i64(op->type, &op->fill, 0);
        return (oi_range){v, v};
    }
    if (op->kind == OI_SOP_EVAL)
        return range_of_eval(op, in);
    oi_range all = oi_range_of_type(op->type);
    if (op->kind == OI_SOP_CONVERT && !oi_dtype_is_float(op->from)) {
        oi_range a = in[op->args[0]];
        return a.from >= all.from && a.to <= all.to ? a : all;
    }
    return all;
}

oi_ranges oi_ranges_new(oi_unit *u)
{
    oi_ranges x = {.u = u, .n = (uint32_t)u->tensors.n};
    x.of = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *x.of);
    x.is_found = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *x.is_found);
    return x;
}

/* -- rewriting -- */

uint32_t oi_rewrite_put(oi_rewriting *r, const oi_sop *op)
{
    *OI_PUSH(r->x->u->arena, r->to) = *op;
    return r->base + (uint32_t)r->to->n - 1;
}

uint32_t oi_rewrite_convert(oi_rewriting *r, oi_dtype from, oi_dtype to, uint32_t value)
{
    return oi_rewrite_put(
        r,
        &(oi_sop){.kind = OI_SOP_CONVERT, .type = to, .from = from, .args = {value}, .n_args = 1});
}

const oi_sop *oi_rewrite_made(const oi_rewriting *r, uint32_t id)
{
    return id < r->base ? NULL : &r->to->at[id - r->base];
}

void oi_nest_rewrite(oi_ranges *x, oi_skernel *k, oi_snest *n, oi_rewrite_fn *fn, void *ctx)
{
    const size_t all = n->pre.n + n->post.n;
    uint32_t *ids = oi_arena_alloc(x->u->arena, (all + 1) * sizeof *ids);
    oi_range *ranges = oi_arena_alloc(x->u->arena, (all + 1) * sizeof *ranges);
    oi_moving own = {.u = x->u, .to = k, .from = k, .nest = n, .ids = ids};
    oi_sops lists[2] = {{0}, {0}};
    oi_rewriting r = {.x = x, .k = k, .n = n, .ranges = ranges, .to = &lists[0]};
    for (uint32_t i = 0; i < all; i++) {
        const bool post = i >= n->pre.n;
        const oi_sop *op = post ? &n->post.at[i - n->pre.n] : &n->pre.at[i];
        r.to = &lists[post];
        r.base = post ? (uint32_t)lists[0].n : 0;
        oi_sop moved = oi_sop_moved(&own, op);
        ranges[i] = oi_range_of_sop(x, k, op, ranges);
        ids[i] = fn(&r, i, op, &moved, ctx);
    }
    n->pre = lists[0];
    n->post = lists[1];
    n->element = n->kind == OI_NEST_MAP || !lists[0].n ? 0 : ids[n->element];
}

/* -- who uses a tensor -- */

static bool is_plain(const oi_skernel *k, uint32_t port, bool may_store)
{
    bool plain = !k->is_dynamic && !k->ports.at[port].is_dropped;
    const oi_sops *ops;
    for (size_t l = 0; (ops = oi_kernel_sops(k, l)) != NULL; l++)
        for (size_t s = 0; s < ops->n; s++) {
            const oi_sop *op = &ops->at[s];
            if (oi_sop_is_access(op) && op->port == port)
                plain &= (op->kind == OI_SOP_LOAD || (may_store && op->kind == OI_SOP_STORE)) &&
                         !op->is_raw && !op->may_leave && !op->guard;
        }
    for (uint32_t a = 0; k->recipe && a < k->plan->n_args; a++)
        plain &= k->arg_ports[a] != port;
    return plain;
}

uint32_t *oi_plain_ports(oi_unit *u, bool may_store)
{
    uint32_t *found = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *found);
    for (size_t i = 0; i < u->kernels.n; i++) {
        const oi_skernel *k = &u->kernels.at[i];
        for (uint32_t p = 0; k->is_used && p < k->ports.n; p++)
            found[k->ports.at[p].tensor] += is_plain(k, p, may_store);
    }
    return found;
}

static void count(void *ctx, const oi_mention *m)
{
    uint32_t *mentions = ctx;
    if (m->tensor != OI_NO_ID)
        mentions[m->tensor]++;
}

uint32_t *oi_all_mentions(oi_unit *u)
{
    uint32_t *mentions = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *mentions);
    for (uint32_t g = 0; g < u->graphs.n; g++)
        for (uint32_t b = 0; b < u->graphs.at[g].program->n_blocks; b++)
            oi_stmts_mentions(u, g, &u->graphs.at[g].blocks[b].stmts, count, mentions);
    for (size_t i = 0; i < u->tensors.n; i++) /* first values are copied as they are */
        if (u->tensors.at[i].start == OI_START_MODEL)
            mentions[u->tensors.at[i].from]++;
    return mentions;
}
