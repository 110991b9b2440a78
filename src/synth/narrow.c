/* narrow.c: integers of 64 bits that need only 32.
 * needs:  kernels with all their instructions
 * keeps:  results: what becomes narrower is proved to fit
 * makes:  weights of half the size; casts from 32 bits
 *
 * Integer layers come back to 8 bits by a product of 64, a shift and a cast. The factors are known,
 * so is what the cast can meet. Ranges are intervals; where an operation could wrap they are those
 * of its type. */
#include "oinf/oinf.h"
#include "synth/compose.h"
#include "synth/lower.h"

#define MOST_READ (1 << 20) /* elements of a tensor that are looked at */

typedef struct range {
    int64_t from, to; /* INT64_MIN, INT64_MAX: anything */
} range;

typedef struct narrowing {
    oi_unit *u;
    range *of;         /* by tensor: of its contents */
    bool *is_found;    /* by tensor: `of` is */
    uint32_t *becomes; /* by tensor: the narrower one, or OI_NO_ID */
    uint32_t n;        /* tensors when the pass began */
} narrowing;

static bool is_narrow(range r)
{
    return r.from >= INT32_MIN && r.to <= INT32_MAX;
}

static range range_of_type(oi_dtype t)
{
    const range any = {INT64_MIN, INT64_MAX};
    if (oi_dtype_is_float(t) || t == OI_U64 || t == OI_BOOL)
        return any;
    return (range){oi_dtype_get(t)->min, (int64_t)oi_dtype_get(t)->max};
}

/* -- what weights hold -- */

static void look_at(const oi_tensor *t, const void *data, range *r)
{
    for (int64_t e = 0; e < oi_tensor_count(t); e++) {
        int64_t v = oi_element_i64(t->dtype, data, (uint64_t)e);
        r->from = v < r->from ? v : r->from;
        r->to = v > r->to ? v : r->to;
    }
}

static range range_of_contents(const oi_tensor *t)
{
    range all = range_of_type(t->dtype), r = {INT64_MAX, INT64_MIN};
    int64_t n = oi_tensor_count(t);
    if (t->space != OI_SPACE_WEIGHTS || t->packing || oi_dtype_is_float(t->dtype) ||
        t->dtype == OI_U64 || t->dtype == OI_BOOL || n < 1 ||
        t->n_entries > MOST_READ / (uint64_t)n)
        return all;
    if (t->bytes) {
        if (t->n_table)
            return all;
        look_at(t, t->bytes, &r);
        return r;
    }
    if (!t->sources) {
        uint64_t bits = t->init;
        int64_t v = oi_element_i64(t->dtype, &bits, 0);
        return (range){v, v};
    }
    for (uint64_t e = 0; e < t->n_entries; e++) {
        oi_view view;
        if (t->sources[e] == OI_NO_SOURCE)
            continue;
        const char *name = t->model->tensors[t->sources[e]].name;
        if (oi_model_tensor(t->model, name, &view, NULL) != OI_OK)
            return all;
        look_at(t, view.data, &r);
        oi_model_release(t->model, name);
    }
    return r.from <= r.to ? r : all;
}

static range range_of_tensor(narrowing *x, uint32_t tensor)
{
    if (tensor >= x->n)
        return range_of_type(x->u->tensors.at[tensor].dtype);
    if (!x->is_found[tensor])
        x->of[tensor] = range_of_contents(&x->u->tensors.at[tensor]);
    x->is_found[tensor] = true;
    return x->of[tensor];
}

/* -- what instructions make of it -- */

static range combine(const char *op, range a, range b, oi_dtype type)
{
    const range all = range_of_type(type);
    range r = all;
    bool wraps = false;
    if (strcmp(op, "add") == 0) {
        wraps = __builtin_add_overflow(a.from, b.from, &r.from);
        wraps |= __builtin_add_overflow(a.to, b.to, &r.to);
    } else if (strcmp(op, "sub") == 0) {
        wraps = __builtin_sub_overflow(a.from, b.to, &r.from);
        wraps |= __builtin_sub_overflow(a.to, b.from, &r.to);
    } else if (strcmp(op, "mul") == 0) {
        r = (range){INT64_MAX, INT64_MIN};
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

static range range_of_eval(const oi_sop *op, const range *in)
{
    const range all = range_of_type(op->type);
    const char *name = op->call->op->name;
    const range a = op->args[0] != OI_NO_ID ? in[op->args[0]] : all;
    const bool has_b = op->n_args > 1 && op->args[1] != OI_NO_ID;
    if (op->part != OI_PART_EXPR || oi_dtype_is_float(op->type))
        return all;
    if (strcmp(name, "cast") == 0)
        return a.from >= all.from && a.to <= all.to ? a : all;
    const oi_op_value *bits =
        strcmp(name, "shr") == 0 && !has_b ? number_attr(op->call, "bits") : NULL;
    if (bits && bits->i >= 0 && bits->i < 64)
        return (range){a.from >> bits->i, a.to >> bits->i};
    return has_b ? combine(name, a, in[op->args[1]], op->type) : all;
}

static range range_of(narrowing *x, const oi_skernel *k, const oi_sop *op, const range *in)
{
    if (op->kind == OI_SOP_LOAD && !op->is_raw && !op->may_leave && !op->guard)
        return range_of_tensor(x, k->ports.at[op->port].tensor);
    if (op->kind == OI_SOP_CONST && !op->is_raw && !oi_dtype_is_float(op->type)) {
        int64_t v = oi_element_i64(op->type, &op->fill, 0);
        return (range){v, v};
    }
    if (op->kind == OI_SOP_EVAL)
        return range_of_eval(op, in);
    range all = range_of_type(op->type);
    if (op->kind == OI_SOP_CONVERT && !oi_dtype_is_float(op->from)) {
        range a = in[op->args[0]];
        return a.from >= all.from && a.to <= all.to ? a : all;
    }
    return all;
}

/* -- weights -- */

static void pack_narrow(const oi_packing *p, const void *const *in, void *out)
{
    const int64_t *from = in[0];
    int32_t *to = out;
    for (int64_t i = 0; i < p->sizes[0]; i++)
        to[i] = (int32_t)from[i];
}

/* The same numbers in 32 bits each. */
static uint32_t narrower(narrowing *x, const oi_port *port)
{
    const oi_tensor old = x->u->tensors.at[port->tensor];
    const int64_t n = oi_tensor_count(&old);
    const oi_packing p = {.name = "32 bits",
                          .n_in = 1,
                          .sizes = {n},
                          .size_bytes = (uint64_t)n * 4,
                          .dtype = OI_I32,
                          .pack = pack_narrow};
    uint32_t made = oi_recipe_pack(x->u, &(oi_lowered){.in = port}, &p);
    oi_tensor *t = &x->u->tensors.at[made];
    t->rank = old.rank;
    memcpy(t->dims, old.dims, sizeof t->dims);
    oi_tensor_measure(t);
    t->origin = old.origin ? old.origin : old.var;
    return made;
}

/* Loads are all that is done with it: whatever else mentions it wants it as it is. */
static void find_loads(narrowing *x, uint32_t *loads)
{
    for (size_t i = 0; i < x->u->kernels.n; i++) {
        const oi_skernel *k = &x->u->kernels.at[i];
        for (uint32_t p = 0; k->is_used && p < k->ports.n; p++) {
            bool is_plain = !k->is_dynamic && !k->ports.at[p].is_dropped;
            const oi_sops *ops;
            for (size_t l = 0; (ops = oi_kernel_sops(k, l)) != NULL; l++)
                for (size_t s = 0; s < ops->n; s++)
                    if (oi_sop_is_access(&ops->at[s]) && ops->at[s].port == p)
                        is_plain &= ops->at[s].kind == OI_SOP_LOAD && !ops->at[s].is_raw &&
                                    !ops->at[s].may_leave && !ops->at[s].guard;
            for (uint32_t a = 0; k->recipe && a < k->plan->n_args; a++)
                is_plain &= k->arg_ports[a] != p;
            loads[k->ports.at[p].tensor] += is_plain;
        }
    }
}

static void count(void *ctx, const oi_mention *m)
{
    uint32_t *mentions = ctx;
    if (m->tensor != OI_NO_ID)
        mentions[m->tensor]++;
}

static void find_narrow(narrowing *x)
{
    oi_unit *u = x->u;
    uint32_t *loads = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *loads);
    uint32_t *mentions = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *mentions);
    find_loads(x, loads);
    for (uint32_t g = 0; g < u->graphs.n; g++)
        for (uint32_t b = 0; b < u->graphs.at[g].program->n_blocks; b++)
            oi_stmts_mentions(u, g, &u->graphs.at[g].blocks[b].stmts, count, mentions);
    for (size_t i = 0; i < u->tensors.n; i++) /* first values are copied as they are */
        if (u->tensors.at[i].start == OI_START_MODEL)
            mentions[u->tensors.at[i].from]++;
    for (uint32_t i = 0; i < x->n; i++)
        if (u->tensors.at[i].dtype == OI_I64 && u->tensors.at[i].space == OI_SPACE_WEIGHTS &&
            loads[i] && loads[i] == mentions[i] && is_narrow(range_of_tensor(x, i)))
            x->becomes[i] = i; /* itself, until it is made */
}

/* -- kernels -- */

static void put(narrowing *x, oi_sops *list, const oi_sop *op)
{
    *OI_PUSH(x->u->arena, list) = *op;
}

static oi_sop convert(oi_dtype from, oi_dtype to, uint32_t value)
{
    return (oi_sop){.kind = OI_SOP_CONVERT, .type = to, .from = from, .args = {value}, .n_args = 1};
}

static oi_dtype type_of(const oi_snest *n, uint32_t id)
{
    return id < n->pre.n ? n->pre.at[id].type : n->post.at[id - n->pre.n].type;
}

static bool is_cast(const oi_sop *op)
{
    return op->kind == OI_SOP_EVAL && op->part == OI_PART_EXPR &&
           strcmp(op->call->op->name, "cast") == 0;
}

static void narrow_nest(narrowing *x, oi_skernel *k, oi_snest *n)
{
    const size_t all = n->pre.n + n->post.n;
    uint32_t *ids = oi_arena_alloc(x->u->arena, (all + 1) * sizeof *ids);
    range *ranges = oi_arena_alloc(x->u->arena, (all + 1) * sizeof *ranges);
    oi_moving own = {.u = x->u, .to = k, .from = k, .nest = n, .ids = ids};
    oi_sops lists[2] = {{0}, {0}};
    for (uint32_t i = 0; i < all; i++) {
        const bool post = i >= n->pre.n;
        const oi_sop *op = post ? &n->post.at[i - n->pre.n] : &n->pre.at[i];
        oi_sops *to = &lists[post];
        const uint32_t base = post ? (uint32_t)lists[0].n : 0;
        const uint32_t tensor = op->kind == OI_SOP_LOAD ? k->ports.at[op->port].tensor : OI_NO_ID;
        oi_sop moved = oi_sop_moved(&own, op);
        ranges[i] = range_of(x, k, op, ranges);
        if (is_cast(op) && !oi_dtype_is_float(op->type) && type_of(n, op->args[0]) == OI_I64 &&
            is_narrow(ranges[op->args[0]])) {
            const oi_sop cut = convert(OI_I64, OI_I32, moved.args[0]);
            put(x, to, &cut);
            moved.args[0] = base + (uint32_t)to->n - 1;
        }
        const bool widens = tensor < x->n && x->becomes[tensor] != OI_NO_ID;
        moved.type = widens ? OI_I32 : moved.type;
        put(x, to, &moved);
        if (widens) {
            const oi_sop wide = convert(OI_I32, OI_I64, base + (uint32_t)to->n - 1);
            put(x, to, &wide);
        }
        ids[i] = base + (uint32_t)to->n - 1;
    }
    n->pre = lists[0];
    n->post = lists[1];
    n->element = n->kind == OI_NEST_MAP || !lists[0].n ? 0 : ids[n->element];
}

oi_status oi_pass_narrow(oi_unit *u)
{
    narrowing x = {.u = u, .n = (uint32_t)u->tensors.n};
    x.of = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *x.of);
    x.is_found = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *x.is_found);
    x.becomes = oi_arena_alloc(u->arena, (u->tensors.n + 1) * sizeof *x.becomes);
    for (uint32_t i = 0; i < x.n; i++)
        x.becomes[i] = OI_NO_ID;
    find_narrow(&x);
    for (size_t i = 0; i < u->kernels.n; i++) {
        oi_skernel *k = &u->kernels.at[i];
        if (!k->is_used || k->is_dynamic)
            continue;
        for (size_t m = 0; m < k->nests.n; m++)
            narrow_nest(&x, k, &k->nests.at[m]);
        if (k->finish)
            narrow_nest(&x, k, k->finish);
        for (size_t p = 0; p < k->ports.n; p++) {
            uint32_t t = k->ports.at[p].tensor;
            if (t < x.n && x.becomes[t] != OI_NO_ID) {
                x.becomes[t] = x.becomes[t] == t ? narrower(&x, &k->ports.at[p]) : x.becomes[t];
                k->ports.at[p].tensor = x.becomes[t];
            }
        }
    }
    return OI_OK;
}
