/* range.c: interval analysis of kernel values, from the contents of weights, the ranges of types
 * and the instructions. */
#include "synth/range.h"
#include "plan/scalar.h"

#include <math.h>

#include "oinf/oinf.h"

#define MOST_READ (1 << 20) /* elements of a tensor that are looked at */

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

/* An expression whose names have these ranges. */
typedef struct evaluation {
    const oi_meaning *m;
    const oi_m_name *names;
    const oi_range *of;
    size_t n;
} evaluation;

static oi_range of_node(const evaluation *x, uint16_t at);

static oi_range of_name(const evaluation *x, const oi_m_node *n)
{
    for (size_t i = 0; i < x->m->n_lets; i++)
        if (x->m->lets[i].len == n->len && memcmp(x->m->lets[i].text, n->text, n->len) == 0)
            return of_node(x, x->m->lets[i].node);
    for (size_t i = 0; i < x->n; i++)
        if (strlen(x->names[i].name) == n->len && memcmp(x->names[i].name, n->text, n->len) == 0)
            return x->of[i];
    return oi_range_of_type(n->type);
}

/* A conversion. What is no number becomes 0; floats are exact up to 2^24. */
static oi_range converted(const evaluation *x, const oi_m_node *n, oi_range a)
{
    const oi_range all = oi_range_of_type(n->type);
    if (oi_dtype_is_float(n->type))
        return a.from >= -(1 << 24) && a.to <= 1 << 24 && oi_form_of(n->type) == n->type
                   ? a
                   : oi_range_any;
    if (n->type == OI_U64 || n->type == OI_BOOL)
        return oi_range_any;
    if (n->type == OI_T1) /* there is no 0 */
        return all;
    if (oi_dtype_is_float(x->m->nodes[n->args[0]].type))
        a = oi_range_either(a, (oi_range){0, 0});
    if (n->helper != OI_H_SAT)
        return oi_range_within(a, n->type);
    return oi_range_clamped(a, all);
}

static oi_range of_call(const evaluation *x, const oi_m_node *n)
{
    const bool is_float = oi_dtype_is_float(n->type);
    oi_range a[OI_M_ARGS] = {oi_range_any, oi_range_any, oi_range_any};
    for (unsigned i = 0; i < n->n_args; i++)
        a[i] = of_node(x, n->args[i]);
    switch (n->helper) {
    case OI_H_ADD: return is_float ? oi_range_any : oi_range_add(a[0], a[1]);
    case OI_H_SUB: return is_float ? oi_range_any : oi_range_add(a[0], oi_range_negative(a[1]));
    case OI_H_MUL: return is_float ? oi_range_any : oi_range_times(a[0], a[1]);
    case OI_H_NEG: return oi_range_negative(a[0]);
    case OI_H_MIN: return oi_range_min(a[0], a[1]);
    case OI_H_MAX: return oi_range_max(a[0], a[1]);
    case OI_H_SELECT: return oi_range_either(a[1], a[2]);
    case OI_H_SHR: return oi_range_shifted(a[0], a[1]);
    case OI_H_FLOOR:
    case OI_H_CEIL:
    case OI_H_TRUNC:
    case OI_H_ROUND_EVEN:
    case OI_H_ROUND_AWAY: return a[0];
    case OI_H_SAT:
    case OI_H_WRAP:
    case OI_H_NEAR:
    case OI_H_I64: return converted(x, n, a[0]);
    case OI_H_LOWEST:
    case OI_H_HIGHEST: {
        const oi_range all = oi_range_of_type(n->type);
        const int64_t v = n->helper == OI_H_LOWEST ? all.from : all.to;
        return is_float ? oi_range_any : (oi_range){v, v};
    }
    default: return oi_range_any;
    }
}

static oi_range of_number(double v)
{
    return fabs(v) < 0x1p53 ? (oi_range){(int64_t)floor(v), (int64_t)ceil(v)} : oi_range_any;
}

static oi_range of_node(const evaluation *x, uint16_t at)
{
    const oi_m_node *n = &x->m->nodes[at];
    oi_range r = n->kind == OI_M_NUMBER ? of_number(n->number)
                 : n->kind == OI_M_NAME ? of_name(x, n)
                 : n->kind == OI_M_CALL ? of_call(x, n)
                                        : oi_range_any;
    return n->type == OI_U64 || n->type == OI_BOOL ? oi_range_any
           : oi_dtype_is_float(n->type)            ? r
                                                   : oi_range_within(r, n->type);
}

/* The row's expression over the ranges of what it reads. */
static oi_range range_of_eval(const oi_sop *op, const oi_range *in, const oi_dtype *forms)
{
    const oi_scall *c = op->call;
    const bool is_cast = c->op->outputs[0].out_rule == OI_OUT_ATTR;
    const oi_dtype want = is_cast ? op->type : oi_form_of(op->type);
    oi_m_name names[OI_SCALAR_NAMES + OI_SOP_ARGS];
    oi_range of[OI_SCALAR_NAMES + OI_SOP_ARGS];
    oi_meaning m;
    oi_dtype first = OI_NONE;
    size_t n = oi_scalar_attrs(c, names);
    if (op->part != OI_PART_EXPR || op->place != OI_NO_ID || oi_form_of(op->type) != op->type)
        return oi_range_of_type(op->type);
    for (size_t i = 0; i < n; i++)
        of[i] = names[i].is_number ? of_number(names[i].number) : oi_range_any;
    for (uint32_t i = 0; i < op->n_args && i < c->op->n_inputs; i++) {
        if (op->args[i] == OI_NO_ID)
            continue;
        const oi_dtype t = is_cast ? oi_form_source(forms[op->args[i]]) : forms[op->args[i]];
        first = first == OI_NONE ? t : first;
        names[n] = (oi_m_name){.name = c->op->inputs[i].name, .type = t};
        of[n++] = in[op->args[i]];
    }
    const oi_m_expr *e = oi_scalar_part(c, op->part, first == OI_NONE ? want : first, want);
    if (first == OI_NONE || !oi_scalar_bind(e, names, n, want, &m))
        return oi_range_of_type(op->type);
    const oi_range r = of_node(&(evaluation){&m, names, of, n}, m.root);
    return oi_dtype_is_float(op->type) ? r : oi_range_within(r, op->type);
}

/* Of an instruction, given those of the instructions before it and what they are held in. */
static oi_range range_of_sop(oi_ranges *x, const oi_skernel *k, const oi_sop *op,
                             const oi_range *in, const oi_dtype *forms)
{
    if (op->kind == OI_SOP_LOAD && !op->is_raw && !op->may_leave && !op->guard)
        return oi_range_of_tensor(x, k->ports.at[op->port].tensor);
    if (op->kind == OI_SOP_CONST && !op->is_raw && !oi_dtype_is_float(op->type)) {
        int64_t v = oi_element_i64(op->type, &op->fill, 0);
        return (oi_range){v, v};
    }
    if (op->kind == OI_SOP_EVAL)
        return range_of_eval(op, in, forms);
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

bool oi_nest_has_type(const oi_snest *n, oi_dtype t)
{
    for (size_t i = 0; i < n->pre.n; i++)
        if (n->pre.at[i].type == t)
            return true;
    for (size_t i = 0; i < n->post.n; i++)
        if (n->post.at[i].type == t)
            return true;
    return false;
}

void oi_nest_rewrite(oi_ranges *x, oi_skernel *k, oi_snest *n, oi_rewrite_fn *fn, void *ctx)
{
    const size_t all = n->pre.n + n->post.n;
    uint32_t *ids = oi_arena_alloc(x->u->arena, (all + 1) * sizeof *ids);
    oi_range *ranges = oi_arena_alloc(x->u->arena, (all + 1) * sizeof *ranges);
    oi_dtype *forms = oi_arena_alloc(x->u->arena, (all + 1) * sizeof *forms);
    oi_moving own = {.u = x->u, .to = k, .from = k, .nest = n, .ids = ids};
    oi_sops lists[2] = {{0}, {0}};
    oi_rewriting r = {.x = x, .k = k, .n = n, .ranges = ranges, .to = &lists[0]};
    for (uint32_t i = 0; i < all; i++) {
        const bool post = i >= n->pre.n;
        const oi_sop *op = post ? &n->post.at[i - n->pre.n] : &n->pre.at[i];
        r.to = &lists[post];
        r.base = post ? (uint32_t)lists[0].n : 0;
        oi_sop moved = oi_sop_moved(&own, op);
        forms[i] =
            op->kind == OI_SOP_INDEX || op->kind == OI_SOP_PLACE ? OI_I64 : oi_form_of(op->type);
        ranges[i] = range_of_sop(x, k, op, ranges, forms);
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
