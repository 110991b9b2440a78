/* bodies.c: recipes for calls: packed weights, prologues, and kernels that implement a whole call
 * instead of its nests.
 *
 * A product is a single nest: match.c and recipes.c pick its recipe when it is fused. Other calls
 * are composites of many nests; their recipe is picked before they are lowered. */
#include "program/composite.h"
#include "synth/compose.h"
#include "synth/lower.h"

#include <inttypes.h>

/* -- packed weights -- */

/* Entries are packed one by one, so all sources are tables of one shape at one entry. */
static bool can_pack(const oi_unit *u, const oi_lowered *call, const oi_packing *p)
{
    const oi_port *first = &call->in[p->in[0]];
    const oi_tensor *t = &u->tensors.at[first->tensor];
    for (uint32_t i = 0; i < p->n_in; i++) {
        const oi_port *port = &call->in[p->in[i]];
        const oi_tensor *own = &u->tensors.at[port->tensor];
        if (own->space != OI_SPACE_WEIGHTS || own->packing || own->is_row_major ||
            !oi_port_same_entry(port, first) || own->n_table != t->n_table ||
            memcmp(own->table, t->table, t->n_table * sizeof *t->table) != 0)
            return false;
    }
    return true;
}

/* The same for packings that give the same bytes. */
static const char *packing_key(oi_arena *a, const oi_packing *p, const uint32_t *from)
{
    oi_buf b = {0};
    oi_buf_printf(&b, "packing %s %016" PRIx64, p->name, oi_hash64(&p->pack, sizeof p->pack, 1));
    for (uint32_t i = 0; i < p->n_in; i++)
        oi_buf_printf(&b, " %" PRIu32, from[i]);
    for (size_t i = 0; i < OI_COUNT(p->sizes); i++)
        oi_buf_printf(&b, "/%" PRId64, p->sizes[i]);
    return oi_buf_to_arena(&b, a);
}

/* An entry exists if all its sources do. */
static const size_t *entries(oi_unit *u, const oi_tensor *t, const oi_packing *p,
                             const uint32_t *from)
{
    uint64_t n = 1;
    for (uint32_t a = 0; a < t->n_table; a++)
        n *= (uint64_t)t->table[a];
    size_t *list = oi_arena_alloc(u->arena, (size_t)(n + 1) * sizeof *list);
    for (uint64_t e = 0; e < n; e++)
        for (uint32_t i = 0; i < p->n_in; i++) {
            const size_t *own = u->tensors.at[from[i]].sources;
            if (own && own[e] == OI_NO_SOURCE)
                list[e] = OI_NO_SOURCE;
        }
    return list;
}

uint32_t oi_recipe_pack(oi_unit *u, const oi_lowered *call, const oi_packing *p)
{
    uint32_t *from = oi_arena_alloc(u->arena, (p->n_in + 1) * sizeof *from);
    for (uint32_t i = 0; i < p->n_in; i++)
        from[i] = call->in[p->in[i]].tensor;
    const char *key = packing_key(u->arena, p, from);
    const uint32_t known = oi_map_get(&u->known, key);
    if (known != OI_MAP_NONE)
        return known;
    const oi_tensor *main = &u->tensors.at[from[0]];
    oi_packing *own = oi_arena_alloc(u->arena, sizeof *own);
    *own = *p;
    oi_dtype dtype = p->dtype ? p->dtype : OI_U8;
    oi_tensor t = {.name = oi_arena_printf(u->arena, "%s_packed", main->name),
                   .dtype = dtype,
                   .rank = 1,
                   .dims = {(int64_t)p->size_bytes * 8 / oi_dtype_bits(dtype)},
                   .space = OI_SPACE_WEIGHTS,
                   .graph = main->graph,
                   .n_table = main->n_table,
                   .packing = own,
                   .packed = from};
    memcpy(t.table, main->table, sizeof t.table);
    t.sources = entries(u, &t, p, from);
    const uint32_t id = oi_unit_add_tensor(u, &t);
    oi_map_set(&u->known, key, id);
    return id;
}

/* -- what it costs -- */

/* What the call's own loops multiply and add. */
static uint64_t macs_of_nests(oi_unit *u, const oi_kernel_query *q)
{
    uint64_t sum = 0;
    oi_nest *n = oi_arena_alloc(u->arena, sizeof *n);
    for (size_t i = 0; i < oi_nest_count(q); i++) {
        uint64_t all = 1;
        *n = (oi_nest){0};
        oi_nest_make(q, i, n);
        for (uint32_t a = 0; a < n->n_axes; a++)
            all *= (uint64_t)n->axes[a].extent; /* an estimate: a wrap is only a wrong number */
        sum += n->kind == OI_NEST_CONTRACT ? all : 0;
    }
    return sum;
}

/* As many multiply-accumulates as the op's definition has. */
static uint64_t macs_of(oi_unit *u, const oi_kernel_query *q)
{
    const oi_expansion *e;
    oi_infer_fail fail;
    uint64_t all = 0;
    if (q->op->cls != OI_OP_CLASS_COMPOSITE)
        return macs_of_nests(u, q);
    if (!oi_composite_expand(u->arena, q, &e, &fail))
        return 0;
    for (uint32_t c = 0; c < e->n_calls; c++) {
        const oi_exp_call *call = &e->calls[c];
        oi_operand *ops = oi_arena_alloc(u->arena, (call->n_in + call->n_out + 1) * sizeof *ops);
        for (uint32_t i = 0; i < call->n_in; i++)
            ops[i] = e->values[call->in[i]].type;
        for (uint32_t i = 0; i < call->n_out; i++)
            ops[call->n_in + i] = e->values[call->out[i]].type;
        oi_kernel_query own = {.op = call->op,
                               .in = ops,
                               .n_in = call->n_in,
                               .out = ops + call->n_in,
                               .n_out = call->n_out,
                               .attrs = call->attrs};
        if (call->op->cls == OI_OP_CLASS_CONTRACT)
            all += macs_of_nests(u, &own);
    }
    return all;
}

/* -- a call -- */

static bool is_read(const oi_lowered *call, uint32_t tensor)
{
    for (size_t i = 0; i < call->q->n_in; i++)
        if (call->in[i].tensor == tensor)
            return true;
    return false;
}

/* The ports of the outputs; an output that is also an input gets a temporary that is copied. */
static oi_port *outputs(oi_unit *u, uint32_t graph, const oi_lowered *call, bool is_in_place)
{
    oi_port *to = oi_arena_alloc(u->arena, (call->q->n_out + 1) * sizeof *to);
    for (size_t o = 0; o < call->q->n_out; o++) {
        to[o] = call->to[o];
        if (is_in_place || !is_read(call, to[o].tensor))
            continue;
        const oi_tensor *own = &u->tensors.at[to[o].tensor];
        oi_tensor t = {.name = oi_arena_printf(u->arena, "%s_new", own->name),
                       .dtype = own->dtype,
                       .rank = own->rank,
                       .space = OI_SPACE_ARENA,
                       .is_written = true,
                       .graph = graph};
        memcpy(t.dims, own->dims, sizeof t.dims);
        to[o] = (oi_port){.tensor = oi_unit_add_tensor(u, &t)};
    }
    return to;
}

/* The op rounds its inputs to few bits, or makes integers or bools of floats. */
static bool rounds(const oi_program *p, const oi_pnode *n)
{
    bool has_float = false, has_other = false;
    for (uint32_t i = 0; i < n->as.op.n_attrs; i++) {
        const oi_pattr *a = &n->as.op.attrs[i];
        if (strcmp(a->attr->name, "act") == 0 && a->one.value.tag == OI_VALUE_STRING &&
            strcmp(a->one.value.s, "float") != 0)
            return true;
    }
    for (uint32_t i = 0; i < n->as.op.n_in; i++)
        has_float |=
            !n->as.op.in[i].is_index && oi_dtype_is_float(p->vars[n->as.op.in[i].var].dtype);
    for (uint32_t i = 0; i < n->as.op.n_out; i++)
        has_other |= !oi_dtype_is_float(p->vars[n->as.op.out[i].var].dtype);
    return has_float && has_other;
}

bool oi_program_keeps_bits(const oi_program *p)
{
    for (size_t i = 0; i < p->graph->nodes.n; i++)
        if (p->nodes[i].kind == OI_NODE_OP && rounds(p, &p->nodes[i]))
            return true;
    return false;
}

bool oi_recipe_of(oi_unit *u, const oi_lowered *call, const oi_recipe **recipe,
                  oi_recipe_plan *plan)
{
    const oi_kernel_query *q = call->q;
    if (!u->can.recipes)
        return false;
    bool *is_weight = oi_arena_alloc(u->arena, q->n_in + 1);
    for (size_t i = 0; i < q->n_in; i++) { /* that may be packed */
        const oi_tensor *t = &u->tensors.at[call->in[i].tensor];
        is_weight[i] = t->space == OI_SPACE_WEIGHTS && !t->is_row_major;
    }
    for (size_t i = 0; i < q->n_in + q->n_out; i++) { /* sizes are literals */
        const oi_port *port = i < q->n_in ? &call->in[i] : &call->to[i - q->n_in];
        if (u->tensors.at[port->tensor].run_dims && !call->is_counted)
            return false;
    }
    *recipe = oi_recipe_find(&(oi_recipe_call){.q = q,
                                               .is_weight = is_weight,
                                               .target = u->target,
                                               .table = u->can.recipes,
                                               .may_regroup = !u->keeps_bits},
                             plan);
    bool takes = *recipe;
    for (uint32_t i = 0; takes && i < plan->n_packings; i++)
        takes = can_pack(u, call, &plan->packings[i]);
    return takes;
}

/* -- what is made ready -- */

static uint32_t add_port(oi_unit *u, oi_skernel *k, oi_port p, bool is_written)
{
    p.is_written = is_written;
    for (uint32_t i = 0; i < k->ports.n; i++)
        if (oi_port_same(&k->ports.at[i], &p) && k->ports.at[i].is_written == is_written)
            return i;
    *OI_PUSH(u->arena, &k->ports) = p;
    return (uint32_t)k->ports.n - 1;
}

/* How the prologue computes its arrays: its rows are partitioned. */
static oi_recipe_plan *ready_plan(oi_unit *u, const oi_prologue *r)
{
    oi_recipe_plan *p = oi_arena_alloc(u->arena, sizeof *p);
    p->function = r->function;
    p->verb = r->verb;
    p->doc = r->doc;
    p->extent = r->rows;
    p->unit = 1;
    p->reads_partitioned = r->has_dim;
    p->read_dim = r->dim;
    p->is_cast = r->is_cast;
    oi_recipe_arg_add(p, OI_ARG_IN, 0);
    for (uint32_t i = 0; i < r->n_arrays; i++)
        oi_recipe_arg_add(p, OI_ARG_OUT, i);
    for (uint32_t i = 0; i < r->n_sizes; i++)
        oi_recipe_arg_add(p, OI_ARG_SIZE, r->sizes[i]);
    oi_recipe_arg_add(p, OI_ARG_FIRST, 0);
    oi_recipe_arg_add(p, OI_ARG_LAST, 0);
    return p;
}

/* Equal prologues are merged later (cse.c); for now each call has its own kernel. */
void oi_recipe_prologue(oi_unit *u, uint32_t graph, const oi_pnode *n, const oi_lowered *call,
                        const oi_prologue *r, oi_port *arrays, oi_stmts *out)
{
    const oi_tensor *in = &u->tensors.at[call->in[r->in].tensor];
    const char *x = in->var ? in->var->name : in->origin ? in->origin->name : in->name;
    oi_skernel *k = oi_lower_kernel(u, r->verb, n);
    k->recipe = r->recipe;
    k->plan = ready_plan(u, r);
    k->graph = graph;
    uint32_t *ports = oi_arena_alloc(u->arena, (k->plan->n_args + 1) * sizeof *ports);
    for (uint32_t i = 0; i < k->plan->n_args; i++)
        ports[i] = OI_NO_ID;
    ports[0] = add_port(u, k, call->in[r->in], false);
    for (uint32_t i = 0; i < r->n_arrays; i++) {
        const char *name = oi_arena_printf(u->arena, "%s_%s", x, r->arrays[i].name);
        oi_tensor t = {.name = name,
                       .label = name,
                       .dtype = r->arrays[i].dtype,
                       .rank = 2,
                       .dims = {r->rows, r->arrays[i].width},
                       .space = OI_SPACE_ARENA,
                       .is_written = true,
                       .graph = graph};
        arrays[i] = (oi_port){.tensor = oi_unit_add_tensor(u, &t)};
        ports[1 + i] = add_port(u, k, arrays[i], true);
    }
    k->arg_ports = ports;
    *OI_PUSH(u->arena, out) =
        (oi_stmt){.kind = OI_STMT_KERNEL, .node = n, .kernel = (uint32_t)u->kernels.n - 1};
}

static void add_ports(oi_unit *u, const oi_lowered *call, const oi_port *to, const oi_port *ready,
                      const oi_recipe_plan *plan, oi_skernel *kernel, const uint32_t *packed)
{
    uint32_t *ports = oi_arena_alloc(u->arena, (plan->n_args + 1) * sizeof *ports);
    for (uint32_t i = 0; i < plan->n_args; i++) {
        int64_t n = plan->args[i].n;
        ports[i] = OI_NO_ID;
        if (plan->args[i].kind == OI_ARG_IN) {
            ports[i] = add_port(u, kernel, call->in[n], false);
        } else if (plan->args[i].kind == OI_ARG_PROLOGUE) {
            ports[i] = add_port(u, kernel, ready[n], false);
        } else if (plan->args[i].kind == OI_ARG_OUT) {
            ports[i] = add_port(u, kernel, to[n], true);
        } else if (plan->args[i].kind == OI_ARG_PACKED) {
            oi_port p = call->in[plan->packings[n].in[0]];
            p.tensor = packed[n];
            p.ref = NULL;
            ports[i] = add_port(u, kernel, p, false);
        }
    }
    kernel->arg_ports = ports;
}

static bool is_product(const oi_kernel_query *q)
{
    return q->op->cls == OI_OP_CLASS_CONTRACT && oi_nest_count(q) == 1;
}

bool oi_lower_recipe(oi_unit *u, uint32_t graph, const oi_pnode *n, const oi_lowered *call,
                     oi_stmts *out)
{
    const oi_kernel_query *q = call->q;
    const oi_recipe *recipe;
    oi_recipe_plan found = {0};
    uint32_t packed[OI_RECIPE_PACKS];
    if (oi_unit_skips(u, "recipes") || is_product(q) || !oi_recipe_of(u, call, &recipe, &found))
        return false;
    if (!call->is_counted && !oi_lower_checks(u, graph, n, call, out))
        return false;
    oi_recipe_plan *plan = oi_arena_alloc(u->arena, sizeof *plan);
    *plan = found;
    for (uint32_t i = 0; i < plan->n_packings; i++)
        packed[i] = oi_recipe_pack(u, call, &plan->packings[i]);
    oi_port ready[OI_PROLOGUE_ARRAYS], *to = outputs(u, graph, call, plan->in_place);
    if (plan->prologue.function)
        oi_recipe_prologue(u, graph, n, call, &plan->prologue, ready, out);
    oi_skernel *k = oi_lower_kernel(u, q->op->name, n);
    for (uint32_t i = 0; i < call->n_numbers; i++)
        *OI_PUSH(u->arena, &k->scalars) = call->numbers[i];
    oi_scall *own = oi_arena_alloc(u->arena, sizeof *own);
    *own = (oi_scall){.op = q->op, .attrs = q->attrs, .scalars = call->scalars, .node = n};
    plan->macs = macs_of(u, q);
    k->recipe = recipe;
    k->plan = plan;
    k->call = own;
    k->taken = q;
    k->graph = graph;
    add_ports(u, call, to, ready, plan, k, packed);
    *OI_PUSH(u->arena, out) =
        (oi_stmt){.kind = OI_STMT_KERNEL, .node = n, .kernel = (uint32_t)u->kernels.n - 1};
    for (size_t o = 0; o < q->n_out; o++)
        if (to[o].tensor != call->to[o].tensor)
            oi_lower_copy(u, graph, n, to[o], call->to[o], out);
    return true;
}

/* -- results of another shape -- */

static int64_t stride_of(const int64_t *dims, uint32_t rank, uint32_t dim)
{
    int64_t stride = 1;
    for (uint32_t d = dim + 1; d < rank; d++)
        stride *= dims[d];
    return stride;
}

void oi_recipe_resplit(oi_recipe_plan *p, const int64_t *dims, uint32_t rank, const oi_tensor *to)
{
    uint32_t d = 0, n_out = 0;
    if (!p->extent || (to->rank == rank && memcmp(to->dims, dims, rank * sizeof *dims) == 0))
        return;
    for (uint32_t i = 0; i < p->n_args; i++)
        n_out += p->args[i].kind == OI_ARG_OUT;
    while (d < to->rank &&
           (to->dims[d] != dims[p->split_dim] ||
            stride_of(to->dims, to->rank, d) != stride_of(dims, rank, p->split_dim)))
        d++;
    p->is_scattered |= d == to->rank || (n_out > 1 && d != p->split_dim);
    p->split_dim = d < to->rank ? d : p->split_dim;
}

/* -- lengths that only the run knows -- */

/* The time dim of k and v, if it is the only dim with a run-time length and all before it are 1:
 * then elements lie as with the maximum length. Else OI_NO_ID. */
static uint32_t open_time(const oi_unit *u, const oi_lowered *call)
{
    const oi_kernel_query *q = call->q;
    const uint32_t time = q->in[0].rank == 2 ? 0 : q->in[0].rank - 2;
    bool fits = true;
    for (size_t i = 0; i < q->n_in + q->n_out; i++) {
        const oi_port *port = i < q->n_in ? &call->in[i] : &call->to[i - q->n_in];
        const oi_tensor *t = &u->tensors.at[port->tensor];
        const bool is_key = i == 1 || i == 2;
        fits &= t->run_dims == (is_key ? 1u << time : 0);
        for (uint32_t d = 0; is_key && d < time; d++)
            fits &= t->dims[d] == 1;
    }
    return fits ? time : OI_NO_ID;
}

bool oi_lower_counted(oi_unit *u, uint32_t graph, const oi_pnode *n, const oi_lowered *call,
                      oi_stmts *out)
{
    const oi_op *op = call->q->op;
    const oi_op_attr *length = oi_op_attr_find(op, "kv_len");
    const uint32_t time = length ? open_time(u, call) : OI_NO_ID;
    if (time == OI_NO_ID)
        return false;
    const size_t at = (size_t)(length - op->attrs);
    if (call->q->attrs[at].tag != OI_VALUE_NONE || call->scalars[at] != OI_NO_ID)
        return false;
    oi_kernel_query *q = oi_arena_alloc(u->arena, sizeof *q);
    oi_operand *types = oi_arena_alloc(u->arena, op->n_attrs * sizeof *types);
    uint32_t *scalars = oi_arena_alloc(u->arena, op->n_attrs * sizeof *scalars);
    oi_kscalar *numbers = oi_arena_alloc(u->arena, (call->n_numbers + 1) * sizeof *numbers);
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        types[i].dtype = call->q->run_attrs ? call->q->run_attrs[i].dtype : OI_NONE;
        scalars[i] = call->scalars[i];
    }
    memcpy(numbers, call->numbers, call->n_numbers * sizeof *numbers);
    numbers[call->n_numbers] = oi_length_number(u, call->in[1].tensor, time);
    types[at].dtype = OI_I64;
    scalars[at] = call->n_numbers;
    *q = *call->q;
    q->run_attrs = types;
    oi_lowered own = *call;
    own.q = q;
    own.scalars = scalars;
    own.numbers = numbers;
    own.n_numbers++;
    own.is_counted = true;
    return oi_lower_recipe(u, graph, n, &own, out);
}
