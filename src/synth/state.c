/* state.c: statements about persistent memory become checks, kernels and new sizes: a cache.read or
 * cache.write copies, a cache.reset fills, a cache.increment adds.
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

typedef OI_VEC(oi_code) oi_codes;

/* A part of a tensor: first positions and how many, by dim. */
typedef struct box {
    uint32_t tensor, rank;
    const oi_code *start, *count;
} box;

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
    const bool has_other = s->other.tensor != OI_NO_ID;
    const uint32_t open = has_other && !s->writes ? s->u->tensors.at[s->other.tensor].run_dims : 0;
    uint32_t bounds = 0, d = 0;
    while (bounds < s->x->n_needs && s->x->needs[bounds].kind != OI_NEED_BOUND)
        *OI_PUSH(s->u->arena, &needs) = s->x->needs[bounds++];
    for (uint32_t i = 0; has_other && i < s->x->rank; i++) {
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

/* -- filling -- */

static bool is_number(const oi_code *c, int64_t n)
{
    int64_t v;
    return oi_code_is_int(c, &v) && v == n;
}

static void set_box(oi_port *p, const oi_tensor *t, const box *x)
{
    bool is_whole = true;
    for (uint32_t d = 0; d < x->rank; d++)
        is_whole &= is_number(&x->start[d], 0) && is_number(&x->count[d], t->dims[d]);
    p->entry = is_whole ? NULL : x->start;
    p->n_entry = is_whole ? 0 : x->rank;
    p->count = is_whole ? NULL : x->count;
}

/* One axis per dim of the box that is not single; the coordinates over them. `is_inside`: they
 * begin at numbers inside the kernel, else at the port's positions. */
static oi_sop box_access(lowering_state *s, oi_skernel *k, uint32_t port, const box *x,
                         bool is_inside)
{
    oi_arena *a = s->u->arena;
    const oi_tensor *t = &s->u->tensors.at[k->ports.at[port].tensor];
    oi_nest_coord *at = oi_arena_alloc(a, (x->rank + 1) * sizeof *at);
    oi_coord_fns *fns = oi_arena_alloc(a, (x->rank + 1) * sizeof *fns);
    bool any = false;
    for (uint32_t d = 0, axis = 0; d < x->rank; d++) {
        at[d].index = OI_NEST_NONE;
        if (is_inside && !oi_code_is_int(&x->start[d], &at[d].base)) {
            fns[d].base = oi_code_fn(s->u, k, oi_arena_printf(a, "from%u", d), &x->start[d]);
            any = true;
        }
        if (!is_number(&x->count[d], 1))
            at[d].step[axis++] = 1;
    }
    k->is_dynamic |= any;
    return (oi_sop){
        .type = t->dtype, .port = port, .at = at, .fns = any ? fns : NULL, .is_raw = true};
}

static void box_axes(lowering_state *s, oi_skernel *k, oi_snest *nest, const box *x)
{
    const oi_tensor *t = &s->u->tensors.at[x->tensor];
    oi_fn *extents = oi_arena_alloc(s->u->arena, OI_NEST_AXES * sizeof *extents);
    bool any = false;
    for (uint32_t d = 0; d < x->rank; d++) {
        if (is_number(&x->count[d], 1))
            continue;
        oi_saxis *axis = &nest->axes[nest->n_axes];
        axis->extent = t->dims[d];
        if (!oi_code_is_int(&x->count[d], &axis->extent)) {
            extents[nest->n_axes] =
                oi_code_fn(s->u, k, oi_arena_printf(s->u->arena, "count%u", d), &x->count[d]);
            any = true;
        }
        nest->n_axes++;
    }
    nest->extents = any ? extents : NULL;
    k->is_dynamic |= any;
}

/* An axis of one place, or of none if the number is 0. */
static void add_condition(lowering_state *s, oi_skernel *k, oi_snest *nest, const oi_code *number)
{
    const oi_code one = oi_code_int(s->u->arena, 1);
    const oi_code any = oi_code_join(s->u->arena, OI_INS_MIN, number, &one);
    oi_fn *extents = oi_arena_alloc(s->u->arena, OI_NEST_AXES * sizeof *extents);
    if (nest->extents)
        memcpy(extents, nest->extents, OI_NEST_AXES * sizeof *extents);
    extents[nest->n_axes] = oi_code_fn(s->u, k, "any", &any);
    nest->axes[nest->n_axes++] = (oi_saxis){.extent = 1};
    nest->extents = extents;
    k->is_dynamic = true;
}

static oi_skernel *begin_kernel(lowering_state *s, const char *what, oi_nest_kind kind)
{
    oi_skernel *k = oi_lower_kernel(s->u, what, s->n);
    oi_snest *nest = OI_PUSH(s->u->arena, &k->nests);
    memset(nest, 0, sizeof *nest);
    nest->kind = kind;
    k->graph = s->graph;
    return k;
}

static void end_kernel(lowering_state *s)
{
    add(s, OI_STMT_KERNEL)->kernel = (uint32_t)s->u->kernels.n - 1;
}

static oi_sop store_of(oi_sop access, uint32_t value)
{
    access.kind = OI_SOP_STORE;
    access.args[0] = value;
    access.n_args = 1;
    return access;
}

/* The box becomes `bits`, or what lies at the same place in tensor `from`; OI_NO_ID: none. Where a
 * variable is larger than what it came from, the rest becomes `bits`. Nothing changes if one of
 * `unless` is 0. */
static void add_fill(lowering_state *s, const box *x, uint64_t bits, uint32_t from,
                     const oi_codes *unless)
{
    oi_arena *a = s->u->arena;
    oi_skernel *k = begin_kernel(s, "fill", OI_NEST_MAP);
    oi_snest *nest = &k->nests.at[0];
    const oi_tensor *t = &s->u->tensors.at[x->tensor];
    oi_port to = {.tensor = x->tensor, .is_written = true};
    set_box(&to, t, x);
    if (from != OI_NO_ID)
        *OI_PUSH(a, &k->ports) = (oi_port){.tensor = from};
    *OI_PUSH(a, &k->ports) = to;
    box_axes(s, k, nest, x);
    for (size_t i = 0; i < unless->n; i++)
        add_condition(s, k, nest, &unless->at[i]);
    if (from == OI_NO_ID) {
        *OI_PUSH(a, &nest->pre) =
            (oi_sop){.kind = OI_SOP_CONST, .type = t->dtype, .is_raw = true, .fill = bits};
    } else {
        oi_sop load = box_access(s, k, 0, x, true);
        load.kind = OI_SOP_LOAD;
        load.fill = bits;
        for (uint32_t d = 0; d < x->rank; d++)
            if (s->u->tensors.at[from].dims[d] < t->dims[d]) {
                ((oi_nest_coord *)load.at)[d].may_leave = true;
                load.may_leave = true;
            }
        *OI_PUSH(a, &nest->pre) = load;
    }
    const bool is_inside = oi_dtype_bits(t->dtype) < 8;
    oi_sop at = box_access(s, k, (uint32_t)k->ports.n - 1, x, is_inside);
    if (!is_inside)
        for (uint32_t d = 0; d < x->rank; d++)
            ((oi_nest_coord *)at.at)[d].base = 0; /* the port begins there */
    *OI_PUSH(a, &nest->pre) = store_of(at, 0);
    end_kernel(s);
}

/* -- which entries exist -- */

/* The number is above 0: a constant, or the size of an axis that is never 0. */
static bool is_positive(const lowering_state *s, const oi_code *c, uint32_t axis)
{
    int64_t n = s->v->first[axis];
    const bool is_size = c->at[0].kind == OI_INS_SIZE && c->at[0].id == axis &&
                         (c->n == 1 || c->at[c->n - 1].kind == OI_INS_MAX);
    return (oi_code_is_int(c, &n) || is_size) && n > 0;
}

/* Sets the marks of the box's entries, unless it holds no element. */
static void add_marks(lowering_state *s, const box *x, uint64_t value)
{
    oi_codes unless = {0};
    for (uint32_t d = s->v->n_table; d < x->rank; d++)
        if (!is_positive(s, &x->count[d], d))
            *OI_PUSH(s->u->arena, &unless) = x->count[d];
    if (s->v->has_marks)
        add_fill(s, &(box){s->v->marks, s->v->n_table, x->start, x->count}, value, OI_NO_ID,
                 &unless);
}

/* -- sizes -- */

/* A write of no element changes nothing but what an access with growth counts asks for. */
static void add_resize(lowering_state *s)
{
    oi_resize *r = oi_arena_alloc(s->u->arena, sizeof *r);
    oi_code *counts = oi_arena_alloc(s->u->arena, (s->x->rank + 1) * sizeof *counts);
    bool is_empty = false;
    int64_t n;
    for (uint32_t i = 0; i < s->x->rank; i++) {
        const oi_code *count = &s->x->axes[i].count;
        if (oi_code_is_int(count, &n))
            is_empty |= n <= 0;
        else if (!is_positive(s, count, i))
            counts[r->n_counts++] = *count;
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

/* -- sizes from the entries that are left -- */

static const oi_scall *call_of(lowering_state *s, oi_op_id id, oi_dtype t)
{
    const oi_op *op = oi_op_at(id);
    oi_op_value *attrs = oi_arena_alloc(s->u->arena, (op->n_attrs + 1) * sizeof *attrs);
    oi_scall *call = oi_arena_alloc(s->u->arena, sizeof *call);
    for (uint32_t i = 0; i < op->n_attrs; i++)
        attrs[i] = op->attrs[i].def;
    *call = (oi_scall){.op = op, .attrs = attrs, .in0 = t, .node = s->n};
    return call;
}

static oi_sop evaluate(lowering_state *s, oi_op_id id, oi_dtype t, uint32_t x, uint32_t y)
{
    oi_sop op = {.kind = OI_SOP_EVAL, .type = t, .part = OI_PART_EXPR, .n_args = OI_SOP_ARGS};
    for (uint32_t i = 0; i < OI_SOP_ARGS; i++)
        op.args[i] = OI_NO_ID;
    op.call = call_of(s, id, t);
    op.place = OI_NO_ID;
    op.args[0] = x;
    op.args[1] = y;
    return op;
}

static oi_sop converted(uint32_t value, oi_dtype from, oi_dtype to)
{
    return (oi_sop){.kind = OI_SOP_CONVERT, .type = to, .from = from, .args = {value}, .n_args = 1};
}

/* 1 + the last position along the axis whose entry is marked, or 0: a tensor of rank 0. */
static uint32_t add_measure(lowering_state *s, uint32_t axis)
{
    oi_arena *a = s->u->arena;
    const oi_tensor own = {.name = oi_arena_printf(a, "%s_size%u", state_of(s)->name, axis),
                           .dtype = OI_I64,
                           .space = OI_SPACE_ARENA,
                           .graph = s->graph,
                           .is_written = true};
    const uint32_t size = oi_unit_add_tensor(s->u, &own);
    oi_skernel *k = begin_kernel(s, "measure", OI_NEST_REDUCE);
    oi_snest *nest = &k->nests.at[0];
    oi_nest_coord *place = oi_arena_alloc(a, sizeof *place);
    oi_nest_coord *at = oi_arena_alloc(a, (s->v->n_table + 1) * sizeof *at);
    *place = (oi_nest_coord){.base = 1, .index = OI_NEST_NONE};
    place->step[axis] = 1;
    nest->n_axes = s->v->n_table;
    for (uint32_t d = 0; d < s->v->n_table; d++) {
        nest->axes[d] = (oi_saxis){.extent = s->v->most[d], .is_reduced = true};
        at[d].index = OI_NEST_NONE;
        at[d].step[d] = 1;
    }
    *OI_PUSH(a, &k->ports) = (oi_port){.tensor = s->v->marks};
    *OI_PUSH(a, &k->ports) = (oi_port){.tensor = size, .is_written = true};
    *OI_PUSH(a, &nest->pre) = (oi_sop){.kind = OI_SOP_PLACE, .type = OI_I64, .at = place};
    *OI_PUSH(a, &nest->pre) = (oi_sop){.kind = OI_SOP_LOAD, .type = OI_U8, .port = 0, .at = at};
    *OI_PUSH(a, &nest->pre) = converted(1, OI_U8, OI_I64);
    *OI_PUSH(a, &nest->pre) = evaluate(s, OI_OP_MUL, OI_I64, 0, 2);
    nest->reduce = call_of(s, OI_OP_MAX_AXIS, OI_I64);
    nest->acc = OI_I64;
    nest->element = 3;
    *OI_PUSH(a, &nest->post) = (oi_sop){.kind = OI_SOP_ACC, .type = OI_I64};
    *OI_PUSH(a, &nest->post) = store_of((oi_sop){.type = OI_I64, .port = 1, .at = at}, 4);
    end_kernel(s);
    return size;
}

static oi_code measured(lowering_state *s, uint32_t axis)
{
    oi_ins *one = oi_arena_alloc(s->u->arena, sizeof *one);
    *one = (oi_ins){OI_INS_CELL, 0, add_measure(s, axis)};
    const oi_code found = {one, 1, NULL}, zero = oi_code_int(s->u->arena, 0);
    return oi_code_join(s->u->arena, OI_INS_MAX, &found, &zero); /* a table without entries */
}

/* -- the statements -- */

/* The part that a reset or write selects, as far as it is stored. */
static box selected_box(lowering_state *s, bool is_all)
{
    oi_arena *a = s->u->arena;
    oi_code *start = oi_arena_alloc(a, (s->x->rank + 1) * sizeof *start);
    oi_code *count = oi_arena_alloc(a, (s->x->rank + 1) * sizeof *count);
    const oi_code zero = oi_code_int(a, 0);
    for (uint32_t i = 0; i < s->x->rank; i++) {
        const oi_part_axis *x = &s->x->axes[i];
        const oi_code most = oi_code_int(a, s->v->most[i]);
        start[i] = is_all ? zero : x->start;
        count[i] = is_all ? most : x->count;
        if (is_all || !x->may_leave)
            continue;
        const oi_code end = oi_code_join(a, OI_INS_MIN, &x->end, &most);
        count[i] = oi_code_join(a, OI_INS_SUB, &end, &x->start);
        count[i] = oi_code_join(a, OI_INS_MAX, &count[i], &zero);
    }
    return (box){s->state.tensor, s->x->rank, start, count};
}

/* Everything becomes what it was at first, sizes too; or a part, and then table sizes follow from
 * the entries that are left. */
static void lower_reset(lowering_state *s)
{
    const oi_tensor *t = state_of(s);
    const bool is_all = oi_access_is_whole(&s->n->as.move.cache);
    const uint32_t from = t->start == OI_START_MODEL ? t->from : OI_NO_ID;
    const uint64_t bits = t->init;
    oi_resize *r = oi_arena_alloc(s->u->arena, sizeof *r);
    oi_code *sizes = oi_arena_alloc(s->u->arena, (s->x->rank + 1) * sizeof *sizes);
    bool any = false;
    if (!is_all)
        add_needs(s);
    const box x = selected_box(s, is_all);
    add_fill(s, &x, bits, from, &(oi_codes){0});
    add_marks(s, &x, 0);
    for (uint32_t i = 0; i < s->x->rank; i++) {
        if (!(s->v->grows >> i & 1) || (!is_all && i >= s->v->n_table))
            continue;
        sizes[i] = is_all ? oi_code_int(s->u->arena, s->v->first[i]) : measured(s, i);
        r->always |= 1u << i;
        any = true;
    }
    r->sizes = sizes;
    if (any)
        add(s, OI_STMT_RESIZE)->resize = r;
}

static uint32_t push(lowering_state *s, oi_skernel *k, oi_sop op)
{
    *OI_PUSH(s->u->arena, &k->nests.at[0].pre) = op;
    return (uint32_t)k->nests.at[0].pre.n - 1;
}

static uint32_t push_literal(lowering_state *s, oi_skernel *k, oi_dtype t)
{
    const double real = (double)s->n->as.move.amount;
    uint64_t bits = s->n->as.move.amount;
    if (t == OI_F64)
        memcpy(&bits, &real, sizeof bits);
    else if (oi_dtype_bits(t) < 64)
        bits &= ((uint64_t)1 << oi_dtype_bits(t)) - 1;
    return push(s, k, (oi_sop){.kind = OI_SOP_CONST, .type = t, .fill = bits});
}

/* The amount in `t`; returns the number of its instruction. */
static uint32_t push_amount(lowering_state *s, oi_skernel *k, oi_dtype t)
{
    oi_arena *a = s->u->arena;
    const oi_pnode *n = s->n;
    oi_nest_coord *at = oi_arena_alloc(a, sizeof *at);
    at->index = OI_NEST_NONE;
    if (n->as.move.amount_is_index) {
        oi_coord_fns *fns = oi_arena_alloc(a, sizeof *fns);
        oi_ins *one = oi_arena_alloc(a, sizeof *one);
        *one = (oi_ins){OI_INS_INDEX, n->as.move.amount_var, 0};
        fns->base = oi_code_fn(s->u, k, "by", &(oi_code){one, 1, NULL});
        k->is_dynamic = true;
        const uint32_t v =
            push(s, k, (oi_sop){.kind = OI_SOP_PLACE, .type = OI_I64, .at = at, .fns = fns});
        return t == OI_I64 ? v : push(s, k, converted(v, OI_I64, t));
    }
    if (n->as.move.amount_var == OI_NO_ID)
        return push_literal(s, k, t);
    const uint32_t by = s->u->graphs.at[s->graph].tensor_of[n->as.move.amount_var];
    oi_dtype from = s->u->tensors.at[by].dtype;
    *OI_PUSH(a, &k->ports) = (oi_port){.tensor = by};
    uint32_t v = push(
        s, k,
        (oi_sop){.kind = OI_SOP_LOAD, .type = from, .port = (uint32_t)k->ports.n - 1, .at = at});
    if (t == OI_F64 && from != OI_I64) { /* as an i64, then as a real number */
        v = push(s, k, converted(v, from, OI_I64));
        from = OI_I64;
    }
    return from == t ? v : push(s, k, converted(v, from, t));
}

/* Floats are added as f64 and rounded once. */
static void lower_count(lowering_state *s)
{
    oi_skernel *k = begin_kernel(s, "count", OI_NEST_MAP);
    const oi_dtype own = state_of(s)->dtype, t = oi_dtype_is_float(own) ? OI_F64 : own;
    const bool down = s->n->kind == OI_NODE_CACHE_DECREMENT;
    oi_nest_coord *at = oi_arena_alloc(s->u->arena, sizeof *at);
    *OI_PUSH(s->u->arena, &k->ports) = (oi_port){.tensor = s->state.tensor, .is_written = true};
    uint32_t v = push(s, k, (oi_sop){.kind = OI_SOP_LOAD, .type = own, .at = at});
    if (own != t)
        v = push(s, k, converted(v, own, t));
    const uint32_t by = push_amount(s, k, t);
    v = push(s, k, evaluate(s, down ? OI_OP_SUB : OI_OP_ADD, t, v, by));
    if (own != t)
        v = push(s, k, converted(v, t, own));
    push(s, k, store_of((oi_sop){.type = own, .at = at}, v));
    end_kernel(s);
}

static void lower_access(lowering_state *s)
{
    add_needs(s);
    add_copy(s);
    if (s->writes) {
        const box x = selected_box(s, false);
        add_marks(s, &x, 1);
    }
    if (s->x->grows)
        add_resize(s);
}

void oi_lower_cache(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_stmts *out)
{
    const oi_sgraph *g = &u->graphs.at[graph];
    const uint32_t state = g->tensor_of[n->as.move.cache.var];
    const bool writes = n->kind == OI_NODE_CACHE_WRITE, resets = n->kind == OI_NODE_CACHE_RESET;
    const oi_pref *other = writes ? &n->as.move.from : &n->as.move.to;
    lowering_state s = {.u = u, .graph = graph, .n = n, .out = out, .writes = writes};
    uint32_t open = 0;
    s.v = oi_unit_store(u, state);
    s.state = (oi_port){.tensor = state};
    s.other = (oi_port){.tensor = OI_NO_ID};
    if (writes || n->kind == OI_NODE_CACHE_READ) {
        s.other = (oi_port){.tensor = g->tensor_of[other->var],
                            .entry = other->codes,
                            .n_entry = other->n_codes,
                            .ref = other};
        open = writes ? 0 : u->tensors.at[s.other.tensor].run_dims;
    }
    s.x = oi_state_part_of(u->arena, g->program, &n->as.move.cache,
                           writes   ? OI_SELECT_WRITE
                           : resets ? OI_SELECT_RESET
                                    : OI_SELECT_READ,
                           state, open);
    if (n->kind == OI_NODE_CACHE_INCREMENT || n->kind == OI_NODE_CACHE_DECREMENT)
        lower_count(&s);
    else if (resets)
        lower_reset(&s);
    else
        lower_access(&s);
}
