/* custom.c: ops that are no loops of their own: a body of text (src/kernel/order.h, fft.h, taps.h)
 * between casts. What it reads becomes f64, i64 or u64; what hangs on sizes and attributes alone is
 * a table in the weights; results are cast to what they are declared as. A length that only the
 * data says is told by the body and set behind it. */
#include "kernel/custom.h"

#include "kernel/fft.h"
#include "synth/lengths.h"

typedef struct custom {
    oi_unit *u;
    uint32_t graph;
    const oi_pnode *n;
    const oi_kernel_query *q;
    const oi_port *in;
    oi_port to[4]; /* outputs: where they go */
    oi_stmts *out;
    oi_skernel *k; /* the body being put together */
    oi_recipe_plan *plan;
    uint32_t *ports;
} custom;

/* -- tensors -- */

static oi_port add_tensor(custom *x, const char *stem, oi_dtype dtype, uint32_t rank,
                          const int64_t *dims, const void *bytes)
{
    oi_tensor t = {.name = oi_arena_printf(x->u->arena, "%s_%s", x->q->op->name, stem),
                   .dtype = dtype,
                   .rank = rank,
                   .space = bytes ? OI_SPACE_WEIGHTS : OI_SPACE_ARENA,
                   .graph = x->graph,
                   .bytes = bytes,
                   .is_written = !bytes};
    for (uint32_t d = 0; d < rank; d++)
        t.dims[d] = dims[d];
    return (oi_port){.tensor = oi_unit_add_tensor(x->u, &t)};
}

static oi_port add_line(custom *x, const char *stem, oi_dtype dtype, int64_t n)
{
    return add_tensor(x, stem, dtype, 1, &n, NULL);
}

static oi_port add_table(custom *x, const char *stem, oi_dtype dtype, int64_t n, const void *bytes)
{
    return add_tensor(x, stem, dtype, 1, &n, bytes);
}

/* -- steps -- */

static void call_op(custom *x, const char *name, const oi_port *in, size_t n_in, oi_port to,
                    const char *attr, oi_op_value value)
{
    oi_arena *a = x->u->arena;
    const oi_op *op = oi_op_find(name);
    oi_port *ports = oi_arena_alloc(a, (n_in + 2) * sizeof *ports);
    oi_operand *ops = oi_arena_alloc(a, (n_in + 2) * sizeof *ops);
    oi_op_value *attrs = oi_arena_alloc(a, (op->n_attrs + 1) * sizeof *attrs);
    uint32_t *scalars = oi_arena_alloc(a, (op->n_attrs + 1) * sizeof *scalars);
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        attrs[i] = strcmp(op->attrs[i].name, attr) == 0 ? value : op->attrs[i].def;
        scalars[i] = OI_NO_ID;
    }
    memcpy(ports, in, n_in * sizeof *ports);
    ports[n_in] = to;
    for (size_t i = 0; i <= n_in; i++)
        oi_lower_operand(x->u, &ports[i], &ops[i]);
    oi_kernel_query *q = oi_arena_alloc(a, sizeof *q);
    *q = (oi_kernel_query){
        .op = op, .in = ops, .n_in = n_in, .out = ops + n_in, .n_out = 1, .attrs = attrs};
    oi_lowered call = {.q = q, .scalars = scalars, .in = ports, .to = ports + n_in};
    oi_lower_call(x->u, x->graph, x->n, &call, x->out);
}

static void cast(custom *x, oi_port from, oi_port to)
{
    oi_op_value type = {.tag = OI_VALUE_DTYPE, .dtype = x->u->tensors.at[to.tensor].dtype};
    call_op(x, "cast", &from, 1, to, "to", type);
}

/* The port as elements of the type: itself, or a copy. */
static oi_port as(custom *x, oi_port p, oi_dtype type)
{
    const oi_tensor *t = &x->u->tensors.at[p.tensor];
    if (t->dtype == type)
        return p;
    int64_t dims[OI_MAX_RANK];
    memcpy(dims, t->dims, sizeof dims);
    oi_port wide = add_tensor(x, "wide", type, t->rank, dims, NULL);
    cast(x, p, wide);
    return wide;
}

/* What becomes the port's value: itself, or something wide that `finish` casts. */
static oi_port wide_of(custom *x, oi_port p)
{
    const oi_tensor *t = &x->u->tensors.at[p.tensor];
    int64_t dims[OI_MAX_RANK];
    memcpy(dims, t->dims, sizeof dims);
    return t->dtype == OI_F64 ? p : add_tensor(x, "wide", OI_F64, t->rank, dims, NULL);
}

static void finish(custom *x, oi_port wide, oi_port p)
{
    if (wide.tensor != p.tensor)
        cast(x, wide, p);
}

/* -- bodies -- */

static const oi_recipe own_body = {"a body of its own", "", 0, NULL};

static void begin(custom *x, const char *function)
{
    x->plan = oi_arena_alloc(x->u->arena, sizeof *x->plan);
    x->ports = oi_arena_alloc(x->u->arena, OI_RECIPE_ARGS * sizeof *x->ports);
    x->k = oi_lower_kernel(x->u, x->q->op->name, x->n);
    x->plan->function = function;
    x->k->recipe = &own_body;
    x->k->plan = x->plan;
    x->k->arg_ports = x->ports;
    x->k->graph = x->graph;
}

static void give(custom *x, oi_port p, bool is_written)
{
    p.is_written = is_written;
    x->ports[x->plan->n_args] = (uint32_t)x->k->ports.n;
    *OI_PUSH(x->u->arena, &x->k->ports) = p;
    oi_recipe_arg_add(x->plan, is_written ? OI_ARG_OUT : OI_ARG_IN, 0);
}

static void give_sizes(custom *x, const int64_t *sizes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x->ports[x->plan->n_args] = OI_NO_ID;
        oi_recipe_arg_add(x->plan, OI_ARG_SIZE, sizes[i]);
    }
}

/* A length that is known although it was declared open. */
static void fix_length(custom *x, oi_port p, uint32_t dim, int64_t length)
{
    if (x->u->tensors.at[p.tensor].run_dims >> dim & 1)
        *OI_PUSH(x->u->arena, &x->k->lengths) =
            (oi_set_length){.tensor = p.tensor, .dim = dim, .value = length};
}

static void end(custom *x)
{
    *OI_PUSH(x->u->arena, x->out) = (oi_stmt){
        .kind = OI_STMT_KERNEL, .node = x->n, .kernel = (uint32_t)(x->k - x->u->kernels.at)};
}

/* -- order -- */

static int64_t attr_int(const custom *x, const char *name, int64_t absent)
{
    const oi_op_value *v = oi_kernel_attr(x->q, name);
    return v && v->tag == OI_VALUE_INT ? v->i : absent;
}

static bool attr_is(const custom *x, const char *name)
{
    const oi_op_value *v = oi_kernel_attr(x->q, name);
    return v && v->tag == OI_VALUE_BOOL && v->b;
}

static uint32_t axis_of(const custom *x)
{
    int64_t axis = attr_int(x, "axis", 0);
    return (uint32_t)(axis < 0 ? axis + x->q->in[0].rank : axis);
}

/* Elements before and behind an axis; `last` dims at the end do not count. */
static void around(const oi_operand *o, uint32_t axis, uint32_t last, int64_t *outer,
                   int64_t *inner)
{
    *outer = *inner = 1;
    for (uint32_t d = 0; d + last < o->rank; d++)
        if (d != axis)
            *(d < axis ? outer : inner) *= o->dims[d];
}

static oi_dtype key_dtype(oi_dtype t)
{
    return oi_dtype_is_float(t) ? OI_F64 : oi_dtype_name(t)[0] == 'u' ? OI_U64 : OI_I64;
}

static int64_t key_kind(oi_dtype t)
{
    return key_dtype(t) == OI_F64 ? 0 : key_dtype(t) == OI_I64 ? 1 : 2;
}

static void order(custom *x, oi_port keys, oi_port to, int64_t outer, int64_t n, int64_t inner,
                  int64_t k, bool descends)
{
    oi_port work = add_line(x, "work", OI_U64, 4 * k);
    begin(x, "oi_order");
    give(x, keys, false);
    give(x, to, true);
    give(x, work, true);
    give_sizes(x, (const int64_t[]){outer, n, inner, k, descends, key_kind(x->q->in[0].dtype)}, 6);
    end(x);
}

static void lower_sort(custom *x)
{
    const oi_operand *in = &x->q->in[0];
    bool gives_places = x->q->op->id == OI_OP_ARGSORT, is_topk = x->q->op->id == OI_OP_TOPK;
    uint32_t axis = axis_of(x);
    int64_t outer, inner, n = in->dims[axis], k = is_topk ? attr_int(x, "k", 0) : n;
    around(in, axis, 0, &outer, &inner);
    oi_port places = gives_places      ? x->to[0]
                     : x->q->n_out > 1 ? x->to[1]
                                       : add_line(x, "places", OI_I64, outer * k * inner);
    order(x, as(x, x->in[0], key_dtype(in->dtype)), places, outer, n, inner, k,
          attr_is(x, is_topk ? "largest" : "descending"));
    if (gives_places)
        return;
    begin(x, "oi_take_along");
    give(x, x->in[0], false);
    give(x, places, false);
    give(x, x->to[0], true);
    give_sizes(x, (const int64_t[]){outer, n, inner, k, oi_dtype_bits(in->dtype)}, 5);
    end(x);
}

/* -- lengths that the data says -- */

static void set_length(custom *x, oi_port found, oi_port of, uint32_t dim)
{
    *OI_PUSH(x->u->arena, x->out) =
        (oi_stmt){.kind = OI_STMT_LENGTH, .node = x->n, .a = found, .b = of, .limit = dim};
}

static void lower_unique(custom *x)
{
    const oi_operand *in = &x->q->in[0];
    int64_t n = oi_operand_count(in), most = x->q->out[0].dims[0];
    oi_port keys = as(x, x->in[0], key_dtype(in->dtype)), at = add_line(x, "order", OI_I64, n);
    oi_port found = add_tensor(x, "found", OI_I64, 0, NULL, NULL);
    order(x, keys, at, 1, n, 1, n, false);
    const int64_t rooms[4] = {0, most, n, most};
    oi_port outs[4];
    for (size_t i = 0; i < 4; i++)
        outs[i] = i < x->q->n_out ? x->to[i] : add_line(x, "unused", OI_I64, rooms[i]);
    begin(x, "oi_unique");
    give(x, keys, false);
    give(x, at, false);
    give(x, x->in[0], false);
    for (size_t i = 0; i < 4; i++)
        give(x, outs[i], true);
    give(x, found, true);
    give_sizes(x, (const int64_t[]){n, most, oi_dtype_bits(in->dtype), key_kind(in->dtype)}, 4);
    if (x->q->n_out > 2)
        fix_length(x, x->to[2], 0, n);
    end(x);
    for (size_t i = 0; i < x->q->n_out; i++)
        if (i != 2)
            set_length(x, found, x->to[i], 0);
}

static void lower_nonzero(custom *x)
{
    const oi_operand *in = &x->q->in[0];
    int64_t n = oi_operand_count(in),
            *dims = oi_arena_alloc(x->u->arena, (in->rank + 1) * sizeof *dims);
    memcpy(dims, in->dims, in->rank * sizeof *dims);
    oi_port truths = as(x, x->in[0], OI_BOOL);
    oi_port sizes = add_table(x, "dims", OI_I64, in->rank, dims);
    oi_port found = add_tensor(x, "found", OI_I64, 0, NULL, NULL);
    begin(x, "oi_nonzero");
    give(x, truths, false);
    give(x, sizes, false);
    give(x, x->to[0], true);
    give(x, found, true);
    give_sizes(x, (const int64_t[]){n, in->rank, x->q->out[0].dims[1]}, 3);
    fix_length(x, x->to[0], 0, in->rank);
    end(x);
    set_length(x, found, x->to[0], 1);
}

/* -- transforms -- */

static void lower_dft(custom *x)
{
    const oi_operand *in = &x->q->in[0], *out = &x->q->out[0];
    uint32_t axis = axis_of(x), last = in->rank - 1;
    bool inverse = attr_is(x, "inverse"), onesided = attr_is(x, "onesided");
    int64_t outer, inner, k = in->dims[axis];
    int64_t n = attr_int(x, "length", inverse && onesided ? 2 * (k - 1) : k);
    around(in, axis, 1, &outer, &inner);
    oi_port from = as(x, x->in[0], OI_F64), to = wide_of(x, x->to[0]);
    if (n > 0) {
        oi_port work = add_line(x, "work", OI_F64, oi_fft_room(n));
        begin(x, "oi_dft");
        give(x, from, false);
        give(x, to, true);
        give(x, work, true);
        give_sizes(x,
                   (const int64_t[]){outer, k, inner, in->dims[last], n, out->dims[axis],
                                     out->dims[last], inverse, onesided},
                   9);
        end(x);
    }
    finish(x, to, x->to[0]);
}

/* The window of frames: an input, or ones. */
static oi_port window(custom *x, int64_t n)
{
    if (x->q->n_in > 1)
        return as(x, x->in[1], OI_F64);
    double *ones = oi_arena_alloc(x->u->arena, ((size_t)n + 1) * sizeof *ones);
    for (int64_t i = 0; i < n; i++)
        ones[i] = 1;
    return add_table(x, "window", OI_F64, n, ones);
}

static void lower_stft(custom *x)
{
    const oi_operand *in = &x->q->in[0], *out = &x->q->out[0];
    int64_t n = x->q->n_in > 1 ? x->q->in[1].dims[0] : attr_int(x, "frame_length", in->dims[1]);
    oi_port from = as(x, x->in[0], OI_F64), frame = window(x, n), to = wide_of(x, x->to[0]);
    if (n > 0) {
        oi_port work = add_line(x, "work", OI_F64, oi_fft_room(n));
        begin(x, "oi_stft");
        give(x, from, false);
        give(x, frame, false);
        give(x, to, true);
        give(x, work, true);
        give_sizes(x,
                   (const int64_t[]){in->dims[0], in->dims[1], in->rank == 3 ? in->dims[2] : 1,
                                     out->dims[1], attr_int(x, "frame_step", 1), n, out->dims[2]},
                   7);
        end(x);
    }
    finish(x, to, x->to[0]);
}

static void lower_istft(custom *x)
{
    const oi_operand *in = &x->q->in[0], *out = &x->q->out[0];
    int64_t n = x->q->in[1].dims[0], length = out->dims[1];
    oi_port from = as(x, x->in[0], OI_F64), frame = window(x, n), to = wide_of(x, x->to[0]);
    oi_port work = add_line(x, "work", OI_F64, oi_fft_room(n ? n : 1) + 2 * length);
    begin(x, "oi_istft");
    give(x, from, false);
    give(x, frame, false);
    give(x, to, true);
    give(x, work, true);
    give_sizes(
        x,
        (const int64_t[]){in->dims[0], in->dims[1], in->dims[2], attr_int(x, "hop", 1), n, length},
        6);
    end(x);
    finish(x, to, x->to[0]);
}

/* -- pictures -- */

/* One axis of `from`, as long as the result's; places move bits. */
static oi_port resize_axis(custom *x, uint32_t d, oi_port from, bool nearest)
{
    const oi_tensor *t = &x->u->tensors.at[from.tensor];
    int64_t dims[OI_MAX_RANK], m = x->q->out[0].dims[d], n = t->dims[d];
    int64_t *first = oi_arena_alloc(x->u->arena, ((size_t)m + 1) * sizeof *first), taps = 1;
    double *weight = oi_arena_alloc(x->u->arena, (4 * (size_t)m + 1) * sizeof *weight);
    oi_operand shape = {.rank = t->rank};
    memcpy(dims, t->dims, sizeof dims);
    memcpy(shape.dims, dims, t->rank * sizeof *dims);
    dims[d] = m;
    oi_port to = add_tensor(x, "resized", t->dtype, t->rank, dims, NULL);
    for (int64_t o = 0; o < m; o++) {
        oi_taps own = oi_resize_taps(x->q, d, o);
        taps = own.n;
        first[o] = own.first;
        if (nearest)
            first[o] = own.first < 0 ? 0 : own.first >= n ? n - 1 : own.first;
        memcpy(weight + 4 * o, own.weight, sizeof own.weight);
    }
    oi_port places = add_table(x, "places", OI_I64, m, first);
    if (nearest) {
        const oi_port in[2] = {from, places};
        call_op(x, "gather", in, 2, to, "axis", (oi_op_value){.tag = OI_VALUE_INT, .i = d});
        return to;
    }
    int64_t outer, inner;
    around(&shape, d, 0, &outer, &inner);
    oi_port weights = add_table(x, "weights", OI_F64, 4 * m, weight);
    begin(x, "oi_resample");
    give(x, from, false);
    give(x, places, false);
    give(x, weights, false);
    give(x, to, true);
    give_sizes(x, (const int64_t[]){outer, n, inner, m, taps}, 5);
    end(x);
    return to;
}

static void lower_resize(custom *x)
{
    const oi_operand *in = &x->q->in[0], *out = &x->q->out[0];
    bool nearest = strcmp(oi_kernel_attr(x->q, "mode")->s, "nearest") == 0;
    if (oi_operand_count(in) == 0 || oi_operand_count(out) == 0)
        return;
    oi_port now = nearest ? x->in[0] : as(x, x->in[0], OI_F64);
    for (uint32_t d = 0; d < in->rank; d++)
        if (!oi_resize_keeps(x->q, d))
            now = resize_axis(x, d, now, nearest);
    if (x->u->tensors.at[now.tensor].dtype != out->dtype)
        cast(x, now, x->to[0]);
    else
        oi_lower_copy(x->u, x->graph, x->n, now, x->to[0], x->out);
}

static void lower_grid_sample(custom *x)
{
    const oi_operand *in = &x->q->in[0], *out = &x->q->out[0];
    uint32_t spatial = in->rank - 2;
    int64_t places = 1, *dims = oi_arena_alloc(x->u->arena, (spatial + 1) * sizeof *dims);
    oi_sampling how = oi_grid_sampling(x->q);
    for (uint32_t d = 0; d < spatial; d++) {
        dims[d] = in->dims[2 + d];
        places *= out->dims[2 + d];
    }
    oi_port from = as(x, x->in[0], OI_F64), grid = as(x, x->in[1], OI_F64);
    oi_port sizes = add_table(x, "dims", OI_I64, spatial, dims), to = wide_of(x, x->to[0]);
    begin(x, "oi_grid_sample");
    give(x, from, false);
    give(x, grid, false);
    give(x, sizes, false);
    give(x, to, true);
    give_sizes(x,
               (const int64_t[]){in->dims[0], in->dims[1], places, spatial, how.mode, how.padding,
                                 how.corners},
               7);
    end(x);
    finish(x, to, x->to[0]);
}

/* -- what has no inputs -- */

/* Known now: the simulator's kernel computes it. */
static void lower_known(custom *x)
{
    const oi_tensor *t = &x->u->tensors.at[x->to[0].tensor];
    oi_choice *c = oi_arena_alloc(x->u->arena, sizeof *c);
    void *bytes = oi_arena_alloc(x->u->arena, (size_t)t->size_bytes + OI_ALIGN);
    void *outs[1] = {bytes};
    oi_kernel_fault fault = {0};
    oi_kernel_io io = {.out = outs};
    if (!oi_kernel_choose(x->q, OI_CPU_SCALAR, c) || c->scratch_bytes ||
        !oi_kernel_call(x->q, c, &io, &fault)) {
        oi_unit_refuse(x->u, x->graph, x->n, x->n->source->name.span,
                       fault.code ? fault.code : "E060", "%s: %s", x->q->op->name, fault.message);
        return;
    }
    int64_t dims[OI_MAX_RANK];
    memcpy(dims, t->dims, sizeof dims);
    oi_port known = add_tensor(x, "table", t->dtype, t->rank, dims, bytes);
    oi_lower_copy(x->u, x->graph, x->n, known, x->to[0], x->out);
}

/* -- a call -- */

typedef void lower_fn(custom *x);

static lower_fn *const lowers[OI_OP_COUNT] = {
    [OI_OP_SORT] = lower_sort,        [OI_OP_ARGSORT] = lower_sort,
    [OI_OP_TOPK] = lower_sort,        [OI_OP_UNIQUE] = lower_unique,
    [OI_OP_NONZERO] = lower_nonzero,  [OI_OP_DFT] = lower_dft,
    [OI_OP_RFFT] = lower_dft,         [OI_OP_IFFT] = lower_dft,
    [OI_OP_STFT] = lower_stft,        [OI_OP_ISTFT] = lower_istft,
    [OI_OP_RESIZE] = lower_resize,    [OI_OP_GRID_SAMPLE] = lower_grid_sample,
    [OI_OP_MEL_FILTER] = lower_known,
};

static bool is_input(const oi_lowered *call, uint32_t tensor)
{
    for (size_t i = 0; i < call->q->n_in; i++)
        if (call->in[i].tensor == tensor)
            return true;
    return false;
}

bool oi_lower_custom(oi_unit *u, uint32_t graph, const oi_pnode *n, const oi_lowered *call,
                     oi_stmts *out)
{
    lower_fn *lower = lowers[call->q->op->id];
    custom x = {.u = u, .graph = graph, .n = n, .q = call->q, .in = call->in, .out = out};
    if (!lower || call->n_numbers || call->q->n_out > OI_COUNT(x.to))
        return false;
    for (size_t i = 0; i < call->q->n_out; i++) {
        x.to[i] = call->to[i];
        if (!is_input(call, call->to[i].tensor))
            continue;
        const oi_operand *o = &call->q->out[i];
        x.to[i] = add_tensor(&x, "new", o->dtype, o->rank, o->dims, NULL);
    }
    lower(&x);
    for (size_t i = 0; i < call->q->n_out && u->status == OI_OK; i++)
        if (x.to[i].tensor != call->to[i].tensor) {
            oi_port to = call->to[i];
            to.is_written = true;
            oi_lower_copy(u, graph, n, x.to[i], to, out);
        }
    return true;
}
