/* state.c: a cache.read or cache.write becomes checks, a kernel that copies, and new sizes.
 *
 * What it selects, and when it fails, is described in src/program/selection.c. A selection begins
 * at positions that only the run knows. The port of the kernel carries them, so that coordinates
 * count from there and the kernel is like any other. Only where a position decides more than an
 * address is it a number inside the kernel: where elements share a byte, and where a read may go
 * past what is stored. */
#include "synth/lengths.h"

typedef struct lowering_state {
    oi_unit *u;
    uint32_t graph;
    const oi_pnode *n;
    oi_stmts *out;
    const oi_store_var *v;
    const oi_state_part *x;
    oi_port state, other; /* what is selected, and the variable on the other side */
    bool writes;
} lowering_state;

static const oi_tensor *state_of(const lowering_state *s)
{
    return &s->u->tensors.at[s->state.tensor];
}

static oi_stmt *add(lowering_state *s, oi_stmt_kind kind)
{
    oi_stmt *own = OI_PUSH(s->u->arena, s->out);
    *own = (oi_stmt){.kind = kind, .node = s->n, .a = {.tensor = s->state.tensor}};
    return own;
}

/* -- checks -- */

static oi_code length_of(lowering_state *s, uint32_t dim)
{
    const oi_tensor *t = &s->u->tensors.at[s->other.tensor];
    if (!(t->run_dims >> dim & 1))
        return oi_code_int(s->u->arena, t->dims[dim]);
    oi_ins *one = oi_arena_alloc(s->u->arena, sizeof *one);
    *one = (oi_ins){OI_INS_LENGTH, dim, s->other.tensor};
    return (oi_code){one, 1, NULL};
}

/* The lengths of the other side must be those of the selection, or become them. Those come before
 * the bounds of what becomes a `?`. */
static void add_needs(lowering_state *s)
{
    OI_VEC(oi_need) needs = {0};
    const uint32_t open = s->writes ? 0 : s->u->tensors.at[s->other.tensor].run_dims;
    uint32_t bounds = 0, d = 0;
    while (bounds < s->x->n_needs && s->x->needs[bounds].kind != OI_NEED_BOUND)
        *OI_PUSH(s->u->arena, &needs) = s->x->needs[bounds++];
    for (uint32_t i = 0; i < s->x->rank; i++) {
        if (!s->x->axes[i].keeps || open >> d++ & 1)
            continue;
        const oi_code length = length_of(s, d - 1);
        if (!oi_code_same(&s->x->axes[i].count, &length))
            *OI_PUSH(s->u->arena, &needs) =
                (oi_need){OI_NEED_EQUAL, i, s->x->axes[i].count, length};
    }
    for (; bounds < s->x->n_needs; bounds++)
        *OI_PUSH(s->u->arena, &needs) = s->x->needs[bounds];
    if (!needs.n)
        return;
    oi_stmt *own = add(s, OI_STMT_NEED);
    own->needs = needs.at;
    own->n_checks = (uint32_t)needs.n;
}

/* -- the copy -- */

/* Whether positions along the axis are numbers inside the kernel. */
static bool is_inside(const lowering_state *s, uint32_t axis)
{
    return oi_dtype_bits(state_of(s)->dtype) < 8 || s->x->axes[axis].may_leave;
}

/* Fills in the port: where the selection begins and how long it is. */
static void set_part(lowering_state *s)
{
    oi_code *entry = oi_arena_alloc(s->u->arena, (s->x->rank + 1) * sizeof *entry);
    oi_code *count = oi_arena_alloc(s->u->arena, (s->x->rank + 1) * sizeof *count);
    bool is_whole = true;
    int64_t n;
    for (uint32_t i = 0; i < s->x->rank; i++) {
        const oi_part_axis *x = &s->x->axes[i];
        entry[i] = x->may_leave ? oi_code_int(s->u->arena, 0) : x->start;
        count[i] = x->count;
        is_whole &= oi_code_is_int(&entry[i], &n) && n == 0;
        is_whole &= oi_code_is_int(&x->count, &n) && n == s->v->most[i];
    }
    s->state.entry = is_whole ? NULL : entry;
    s->state.n_entry = is_whole ? 0 : s->x->rank;
    s->state.count = is_whole ? NULL : count;
}

/* The coordinates of the selected elements over the axes of the other side. */
static oi_sop state_access(lowering_state *s, oi_skernel *k, uint32_t port)
{
    oi_arena *a = s->u->arena;
    const oi_tensor *t = state_of(s);
    oi_nest_coord *at = oi_arena_alloc(a, (s->x->rank + 1) * sizeof *at);
    oi_coord_fns *fns = oi_arena_alloc(a, (s->x->rank + 1) * sizeof *fns);
    oi_sop op = {.type = t->dtype, .port = port, .at = at, .is_raw = true, .fill = t->init};
    bool any = false;
    uint32_t d = 0;
    for (uint32_t i = 0; i < s->x->rank; i++) {
        const oi_part_axis *x = &s->x->axes[i];
        at[i].index = OI_NEST_NONE;
        at[i].may_leave = x->may_leave;
        op.may_leave |= x->may_leave;
        if (is_inside(s, i) && !oi_code_is_int(&x->start, &at[i].base)) {
            fns[i].base =
                oi_code_fn(s->u, k, oi_arena_printf(a, "%s_from%u", t->name, i), &x->start);
            any = true;
        }
        if (x->keeps)
            at[i].step[d++] = 1;
    }
    op.fns = any ? fns : NULL;
    k->is_dynamic |= any;
    return op;
}

static oi_sop other_access(lowering_state *s, uint32_t port)
{
    const oi_tensor *t = &s->u->tensors.at[s->other.tensor];
    oi_nest_coord *at = oi_arena_alloc(s->u->arena, (t->rank + 1) * sizeof *at);
    for (uint32_t d = 0; d < t->rank; d++) {
        at[d].index = OI_NEST_NONE;
        at[d].step[d] = 1;
    }
    return (oi_sop){.type = t->dtype, .port = port, .at = at, .is_raw = true};
}

/* Axes are the dims of the other side; a read gives `?` dims their lengths. */
static void set_axes(lowering_state *s, oi_skernel *k, oi_snest *nest)
{
    const oi_tensor *t = &s->u->tensors.at[s->other.tensor];
    oi_fn *extents = oi_arena_alloc(s->u->arena, OI_NEST_AXES * sizeof *extents);
    uint32_t d = 0;
    nest->n_axes = t->rank;
    for (uint32_t i = 0; i < s->x->rank; i++) {
        if (!s->x->axes[i].keeps)
            continue;
        nest->axes[d].extent = t->dims[d];
        extents[d] = oi_length_fn(s->u, k, s->other.tensor, d);
        if (extents[d] && !s->writes) {
            oi_set_length set = {.tensor = s->other.tensor, .dim = d};
            const oi_code *count = &s->x->axes[i].count;
            if (!oi_code_is_int(count, &set.value))
                set.fn = oi_code_fn(s->u, k, oi_arena_printf(s->u->arena, "%s_count%u", t->name, d),
                                    count);
            *OI_PUSH(s->u->arena, &k->lengths) = set;
        }
        d++;
    }
    if (!t->run_dims)
        return;
    nest->extents = extents;
    k->is_dynamic = true;
}

static void add_copy(lowering_state *s)
{
    oi_arena *a = s->u->arena;
    oi_skernel *k = oi_lower_kernel(s->u, "copy", s->n);
    oi_snest *nest = OI_PUSH(a, &k->nests);
    memset(nest, 0, sizeof *nest);
    nest->kind = OI_NEST_MAP;
    set_part(s);
    s->state.is_written = s->writes;
    s->other.is_written = !s->writes;
    *OI_PUSH(a, &k->ports) = s->writes ? s->other : s->state;
    *OI_PUSH(a, &k->ports) = s->writes ? s->state : s->other;
    set_axes(s, k, nest);
    oi_sop load = s->writes ? other_access(s, 0) : state_access(s, k, 0);
    oi_sop store = s->writes ? state_access(s, k, 1) : other_access(s, 1);
    load.kind = OI_SOP_LOAD;
    store.kind = OI_SOP_STORE;
    store.n_args = 1;
    *OI_PUSH(a, &nest->pre) = load;
    *OI_PUSH(a, &nest->pre) = store;
    k->graph = s->graph;
    add(s, OI_STMT_KERNEL)->kernel = (uint32_t)s->u->kernels.n - 1;
}

/* -- sizes -- */

/* A write of no element changes nothing but what an access with growth counts asks for. */
static void add_resize(lowering_state *s)
{
    oi_resize *r = oi_arena_alloc(s->u->arena, sizeof *r);
    oi_code *counts = oi_arena_alloc(s->u->arena, (s->x->rank + 1) * sizeof *counts);
    bool is_empty = false;
    int64_t n = 1;
    for (uint32_t i = 0; i < s->x->rank; i++) {
        if (!oi_code_is_int(&s->x->axes[i].count, &n))
            counts[r->n_counts++] = s->x->axes[i].count;
        else
            is_empty |= n <= 0;
        r->always |= (uint32_t)(s->x->is_growth && i >= s->v->n_table) << i;
    }
    if (is_empty && !s->x->is_growth)
        return;
    if (is_empty)
        counts[r->n_counts++] = oi_code_int(s->u->arena, 0);
    r->sizes = s->x->size;
    r->counts = counts;
    add(s, OI_STMT_RESIZE)->resize = r;
}

void oi_lower_cache(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_stmts *out)
{
    const oi_sgraph *g = &u->graphs.at[graph];
    const uint32_t state = g->tensor_of[n->as.move.cache.var];
    const bool writes = n->kind == OI_NODE_CACHE_WRITE;
    const oi_pref *other = writes ? &n->as.move.from : &n->as.move.to;
    lowering_state s = {.u = u, .graph = graph, .n = n, .out = out, .writes = writes};
    s.v = oi_unit_store(u, state);
    s.state = (oi_port){.tensor = state};
    s.other = (oi_port){.tensor = g->tensor_of[other->var],
                        .entry = other->codes,
                        .n_entry = other->n_codes,
                        .ref = other};
    s.x = oi_state_part_of(u->arena, g->program, &n->as.move.cache,
                           writes ? OI_SELECT_WRITE : OI_SELECT_READ, state,
                           writes ? 0 : u->tensors.at[s.other.tensor].run_dims);
    add_needs(&s);
    add_copy(&s);
    if (s.x->grows)
        add_resize(&s);
}
