/* schedule.c: chooses the loop order of every nest.
 * needs:  kernels in their final form
 * keeps:  kernels, their instructions
 * makes:  levels of axes: vector (partial sums that fill vector registers, register tiles),
 *         unrolled (elements of a byte, unroll-and-jam for rows of long chains); predicates that
 *         are tested before a sum is computed
 *
 * Float sums are regrouped only by rules that are fixed here, so results do not depend on the
 * number of threads. If the last reduced axis is contiguous in every operand, a product is a dot
 * product with `lanes` partial sums, provided that the target has vectors. If the last output axis
 * is contiguous, the product keeps a register tile of accumulators and adds scaled rows. An op's
 * row may declare the order of its reduction (oi_snest.lanes); then the order is followed, and its
 * sums have the simulator's bits. There is one exception: declared partial sums over elements that
 * are not contiguous use a tile. It does not apply if the program rounds floats to a few bits,
 * where a difference in the last bit may become a large one. */
#include "synth/compose.h"

#define LANES 16 /* two registers of eight floats */
#define STRIP 64

#define UNKNOWN INT64_MIN

/* Distance in memory between two steps of the axis for this load. UNKNOWN: known only at run time.
 */
static int64_t stride_of(const oi_unit *u, const oi_skernel *k, const oi_sop *op, uint32_t axis)
{
    const oi_tensor *t = &u->tensors.at[k->ports.at[op->port].tensor];
    const uint32_t rank = op->is_flat ? 1 : t->rank;
    int64_t stride = 1, sum = 0;
    bool is_open = false;
    for (uint32_t d = rank; d-- > 0; stride *= t->dims[d]) {
        if ((op->fns && op->fns[d].step[axis]) || (is_open && op->at[d].step[axis]))
            return UNKNOWN;
        sum += stride * op->at[d].step[axis];
        is_open |= t->run_dims >> d & 1;
    }
    return sum;
}

static bool is_number(const oi_snest *n, uint32_t axis)
{
    return !n->extents || !n->extents[axis];
}

/* -- elements that share a byte -- */

/* How many elements of the load share a byte. 1: it does not matter; 0: the place inside the byte
 * does not follow from the last axis alone. */
static int64_t shares_byte(const oi_unit *u, const oi_skernel *k, const oi_snest *n,
                           const oi_sop *op)
{
    unsigned bits = oi_dtype_bits(op->type);
    uint32_t last = n->n_axes - 1;
    if (op->kind != OI_SOP_LOAD || bits >= 8)
        return 1;
    if (8 % bits != 0 || op->is_flat || !oi_sop_is_affine(u, k, op))
        return 0;
    oi_nest_coord number = oi_sop_number(u, k, op);
    int64_t each = 8 / bits;
    for (uint32_t a = 0; a < last; a++)
        if (number.step[a] % each != 0)
            return 0;
    return number.step[last] == 1 && number.base % each == 0 ? each : 0;
}

/* Splits the last axis into groups of one byte's elements and unrolls a group. Then each element
 * has a constant place in its byte, and loops over bytes vectorise. */
static void spell_bytes(oi_unit *u, const oi_skernel *k, oi_snest *n)
{
    int64_t each = 1;
    bool fits = n->n_axes > k->n_shared && n->n_axes + 1 < OI_NEST_AXES && !n->is_serial &&
                !n->is_scan && !n->combines_out && !n->finds_position && !n->skips && !n->lanes &&
                (n->kind == OI_NEST_MAP || n->axes[n->n_axes - 1].is_reduced);
    for (size_t i = 0; fits && i < n->pre.n; i++) {
        const oi_sop *op = &n->pre.at[i];
        int64_t own = shares_byte(u, k, n, op);
        fits = own != 0 && (own == 1 || each == 1 || own == each) &&
               !(op->kind == OI_SOP_STORE && oi_dtype_bits(op->type) < 8);
        each = own > 1 ? own : each;
    }
    int64_t extent = fits && each > 1 ? n->axes[n->n_axes - 1].extent : 0;
    if (extent == 0 || extent % each != 0)
        return;
    if (extent > each)
        oi_nest_split_axis(u, k, n, &(oi_split){n->n_axes - 1, each});
    n->axes[n->n_axes - 1].factor[OI_AXIS_UNROLLED] = each;
}

/* -- sums -- */

oi_strides oi_nest_strides(const oi_unit *u, const oi_skernel *k, const oi_snest *n)
{
    const int64_t each = oi_nest_unrolled(n);
    const uint32_t out = oi_nest_outputs(n), last = oi_nest_loops(n) - 1;
    oi_strides s = {
        .along = is_number(n, last), .across = out && is_number(n, out - 1), .is_plain = true};
    for (size_t i = 0; i < n->pre.n; i++) {
        const oi_sop *op = &n->pre.at[i];
        s.is_plain &= op->kind != OI_SOP_INDEX && !(op->kind == OI_SOP_LOAD && op->may_leave);
        if (op->kind != OI_SOP_LOAD)
            continue;
        int64_t along = stride_of(u, k, op, last), across = out ? stride_of(u, k, op, out - 1) : -1;
        if (along == each && (!s.bits || oi_dtype_bits(op->type) < s.bits))
            s.bits = oi_dtype_bits(op->type);
        s.along &= along == 0 || along == each;
        s.across &= across == 0 || across == 1 || across == each ||
                    (across == 2 && u->can.vectors); /* stride 2: every second element of two
                                                        vectors */
    }
    s.along &= s.is_plain;
    s.across &= s.is_plain && out > k->n_shared && n->axes[out - 1].extent >= 8;
    return s;
}

/* The number of partial sums along the last axis, if it is long enough. */
static uint32_t lanes_of(const oi_unit *u, const oi_snest *n, const oi_strides *s)
{
    if (n->lanes)
        return s->along || !s->across || u->keeps_bits ? n->lanes : 0;
    if (!s->along || !oi_dtype_is_float(n->acc))
        return 0; /* integers: compilers may regroup */
    if (n->kind == OI_NEST_CONTRACT)
        return u->can.vectors ? LANES : 0;
    if (n->finds_position)
        return LANES;
    return n->reduce->op->order == OI_REDUCE_ANY ? LANES : 0;
}

/* The largest or smallest f32, where a NaN wins: one comparison of integers instead of a choice by
 * four conditions, each of which waits for the one before. */
static bool has_keys(const oi_unit *u, const oi_snest *n)
{
    const oi_scall *c = n->reduce;
    if (!u->can.vectors || n->kind != OI_NEST_REDUCE || n->acc != OI_F32 ||
        oi_form_of(n->pre.at[n->element].type) != OI_F32)
        return false;
    if (c->op->id == OI_OP_ARGMAX_AXIS || c->op->id == OI_OP_ARGMIN_AXIS)
        return c->attrs[oi_op_attr_find(c->op, "select_first") - c->op->attrs].b;
    if (c->op->id == OI_OP_MAX_POOL)
        return true;
    if (c->op->id != OI_OP_MAX_AXIS && c->op->id != OI_OP_MIN_AXIS)
        return false;
    return strcmp(c->attrs[oi_op_attr_find(c->op, "nan") - c->op->attrs].s, "ignore") != 0;
}

/* Positions along the only reduced axis, which is the last. */
static bool may_find_in_parts(const oi_unit *u, const oi_snest *n, uint32_t out)
{
    return !n->finds_element && out + 1 == n->n_axes && oi_nest_loops(n) == n->n_axes &&
           n->axes[out].extent < INT32_MAX && has_keys(u, n);
}

static void order_nest(oi_unit *u, const oi_skernel *k, oi_snest *n)
{
    const uint32_t loops = oi_nest_loops(n), out = oi_nest_outputs(n);
    if (n->kind == OI_NEST_MAP || n->skips || n->is_scan || n->n_axes == out ||
        (n->finds_position && !may_find_in_parts(u, n, out)))
        return;
    if (loops <= out) /* the whole sum is unrolled */
        return;
    const uint32_t last = loops - 1;
    const bool is_long = is_number(n, last) && n->axes[last].extent >= 2 * LANES;
    if (!oi_dtype_is_float(n->acc) && oi_dtype_bits(n->acc) < 32)
        return;
    const oi_strides s = oi_nest_strides(u, k, n);
    if (is_long)
        n->axes[last].factor[OI_AXIS_VECTOR] = lanes_of(u, n, &s);
    if (!oi_nest_partial_sums(n) && s.across && !(s.along && is_long))
        n->axes[out - 1].factor[OI_AXIS_VECTOR] =
            n->axes[out - 1].extent < STRIP ? n->axes[out - 1].extent : STRIP;
    n->compares_keys = (oi_nest_partial_sums(n) || oi_nest_register_tile(n)) && has_keys(u, n);
}

/* 16-bit products: how many of them can be summed in 16 bits without overflow. */
static void add_in_parts(oi_unit *u, const oi_skernel *k, oi_snest *n)
{
    if (!oi_nest_register_tile(n) || !n->most ||
        n->n_axes + 1 >= OI_NEST_AXES) /* a tile adds axes */
        return;
    const uint32_t last = oi_nest_loops(n) - 1;
    const int64_t each = oi_nest_unrolled(n);
    int64_t inner = n->axes[last].extent;
    if (!n->axes[last].is_reduced)
        return;
    while (inner > 1 && (n->axes[last].extent % inner != 0 || inner * each * n->most > INT16_MAX))
        inner--;
    if (inner * each < 2)
        return;
    if (inner < n->axes[last].extent)
        oi_nest_split_axis(u, k, n, &(oi_split){last, inner});
    n->narrow_axes = n->n_axes - oi_nest_loops(n) + 1;
}

/* -- maps -- */

#define LONG 24 /* steps per element: from here on latency costs more than throughput */

/* Unroll-and-jam for rows of a map with long dependency chains, if a row fills vectors. */
static void run_abreast(oi_unit *u, const oi_skernel *k, oi_snest *n)
{
    bool can = n->kind == OI_NEST_MAP && !n->is_serial && oi_nest_loops(n) == n->n_axes &&
               !oi_kernel_streams(k) && n->n_axes >= k->n_shared + 2 && u->can.vectors &&
               oi_sops_steps(&n->pre) > LONG;
    const uint32_t last = n->n_axes - 1;
    unsigned least = 32;
    can = can && is_number(n, last) && is_number(n, last - 1) &&
          n->axes[last].extent >= 2 * LANES && n->axes[last - 1].extent >= OI_MAX_JAM / 2;
    for (size_t i = 0; can && i < n->pre.n; i++) {
        const oi_sop *op = &n->pre.at[i];
        if (op->kind == OI_SOP_EVAL || op->kind == OI_SOP_CONVERT || op->kind == OI_SOP_CONST) {
            can = oi_form_of(op->type) == OI_F32 &&
                  (op->kind != OI_SOP_EVAL || op->place == OI_NO_ID);
            continue;
        }
        can = (op->kind == OI_SOP_LOAD || op->kind == OI_SOP_STORE) && !op->may_leave &&
              oi_sop_is_affine(u, k, op) && oi_form_of(op->type) == OI_F32 &&
              !u->tensors.at[k->ports.at[op->port].tensor].ring;
        least = oi_dtype_bits(op->type) < least ? oi_dtype_bits(op->type) : least;
        const int64_t along = can ? stride_of(u, k, op, last) : UNKNOWN;
        can = along == 1 || (along == 0 && op->kind == OI_SOP_LOAD);
    }
    if (!can)
        return;
    /* narrow elements: one vector of them is several registers */
    int64_t jam = OI_MAX_JAM * least / 32;
    if (n->axes[last - 1].extent % jam != 0)
        jam = OI_MAX_JAM / 2;
    n->axes[last - 1].factor[OI_AXIS_UNROLLED] = jam;
}

/* -- sums that a condition leaves unused -- */

#define LEAST_SAVED 16 /* shortest sum that is worth a test */

/* By instruction of post: whether it depends on the sum. */
static void find_users(const oi_snest *n, bool *hangs)
{
    const uint32_t base = (uint32_t)n->pre.n;
    for (size_t i = 0; i < n->post.n; i++) {
        const oi_sop *op = &n->post.at[i];
        hangs[i] = op->kind == OI_SOP_ACC;
        for (uint32_t a = 0; a < op->n_args; a++)
            hangs[i] |= op->args[a] != OI_NO_ID && op->args[a] >= base && hangs[op->args[a] - base];
    }
}

/* The only argument that depends on the sum; OI_NO_ID: none, or several. */
static uint32_t next_user(const oi_snest *n, const oi_sop *op, const bool *hangs)
{
    uint32_t found = OI_NO_ID;
    for (uint32_t a = 0; a < op->n_args; a++) {
        if (op->args[a] == OI_NO_ID || op->args[a] < n->pre.n || !hangs[op->args[a] - n->pre.n])
            continue;
        if (found != OI_NO_ID)
            return OI_NO_ID;
        found = a;
    }
    return found;
}

/* Predicates: for where(shown, sum, -inf), as masks use it, the condition is tested first, and the
 * sum is computed only if it holds. Walks from the store back to the sum, as long as that is the
 * only path. */
static void ask_first(oi_unit *u, oi_snest *n)
{
    bool *hangs = oi_arena_alloc(u->arena, n->post.n + 1);
    int64_t count = 1;
    unsigned stores = 0;
    for (uint32_t a = 0; a < n->n_axes; a++)
        count *= n->axes[a].is_reduced ? n->axes[a].extent : 1;
    for (size_t i = 0; i < n->post.n; i++)
        stores += n->post.at[i].kind == OI_SOP_STORE;
    if (n->kind == OI_NEST_MAP || oi_nest_register_tile(n) || n->is_serial || n->is_scan ||
        n->skips || n->combines_out || n->finds_position || stores != 1 || count < LEAST_SAVED)
        return;
    find_users(n, hangs);
    const oi_sop *op = &n->post.at[n->post.n - 1];
    if (op->kind != OI_SOP_STORE)
        return;
    while (op->kind != OI_SOP_ACC && n->n_predicates < OI_MAX_PREDICATES) {
        const uint32_t arg = next_user(n, op, hangs);
        if (arg == OI_NO_ID)
            return;
        if (op->kind == OI_SOP_EVAL && op->call->op->id == OI_OP_WHERE && arg == 1)
            n->predicates[n->n_predicates++] = op->args[0];
        op = &n->post.at[op->args[arg] - n->pre.n];
    }
}

static void schedule_nest(oi_unit *u, const oi_skernel *k, oi_snest *n)
{
    if (!k->is_dynamic)
        spell_bytes(u, k, n);
    order_nest(u, k, n);
    ask_first(u, n);
    if (!k->is_dynamic) {
        add_in_parts(u, k, n);
        run_abreast(u, k, n);
    }
}

oi_status oi_pass_schedule(oi_unit *u)
{
    if (u->can.group_size) {
        for (size_t k = 0; k < u->kernels.n; k++)
            oi_kernel_schedule_groups(u, &u->kernels.at[k]);
        return OI_OK;
    }
    for (size_t k = 0; k < u->kernels.n; k++)
        oi_kernel_join_maps(u, &u->kernels.at[k]);
    for (size_t k = 0; k < u->kernels.n; k++)
        for (size_t i = 0; i < u->kernels.at[k].nests.n; i++)
            schedule_nest(u, &u->kernels.at[k], &u->kernels.at[k].nests.at[i]);
    return OI_OK;
}
