/* groups.c: levels of a kernel on a target whose workers are groups of invocations: a GPU.
 *
 * The output axes of a nest are counted through together, and a group takes a tile of these
 * positions, one per invocation. If a sum is long and contiguous in memory, several invocations,
 * the lanes, compute it together: neighbouring lanes read neighbouring elements. Their partial sums
 * are combined pairwise, in an order that depends neither on the group nor on the subgroup. If
 * neighbouring results are contiguous instead, and few, the invocations of a sum are apart. Nests
 * that share a row (softmax, norms) are one group per row; the row lies in shared memory.
 *
 * Float sums follow the same rules as elsewhere (schedule.c): a declared order is followed,
 * products and reductions of any order may be regrouped. */
#include "synth/pass.h"

#define GROUP       64    /* invocations of a group: one or two subgroups of most GPUs */
#define BUSY        16384 /* invocations that keep a GPU busy */
#define LANES       32    /* a subgroup, if its size is not known */
#define LEAST       8     /* fewer lanes are not worth the barriers */
#define ROW         16    /* neighbouring results that read whole cache lines */
#define WIDEST      16    /* bytes of a partial sum: there may be sums of several types */
#define MOST_PLACES 16    /* of a lane: more only repeat the text */
#define GROUPS      128   /* units that keep the groups of a GPU busy */
#define LINE        32    /* neighbouring results that fill cache lines */
#define SUMS        4     /* neighbouring results of sums that lanes make together */

static bool is_number(const oi_snest *n, uint32_t axis)
{
    return !n->extents || !n->extents[axis];
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Positions of the first axes; those whose length is a run-time number count with the maximum. */
static int64_t count(const oi_snest *n, uint32_t axes)
{
    int64_t all = 1;
    for (uint32_t a = 0; a < axes; a++)
        if (__builtin_mul_overflow(all, n->axes[a].extent, &all))
            return INT64_MAX;
    return all;
}

/* A group takes `each` neighbouring positions of the first axes. */
static void take_positions(const oi_unit *u, oi_snest *n, uint32_t axes, int64_t each)
{
    for (uint32_t a = 0; a < axes && !u->can.groups_stay; a++) /* else partition.c says whether */
        n->axes[a].factor[OI_AXIS_WORKER] = a + 1 < axes ? 1 : each;
    if (axes && each > 1)
        n->axes[axes - 1].factor[OI_AXIS_GROUP] = each;
}

/* -- lanes -- */

static bool is_in_order(const oi_snest *n)
{
    return n->is_serial || n->combines_out || n->is_scan || n->finds_position || n->skips;
}

/* Invocations that keep the device busy. */
static int64_t busy_with(const oi_unit *u)
{
    return u->can.groups_stay ? GROUPS * (int64_t)u->can.group_size : BUSY;
}

/* Lanes for so many places along an axis, while `rows` such sums are made at one time. */
static int64_t lanes_for(const oi_unit *u, int64_t places, int64_t rows)
{
    const int64_t most = (int64_t)u->can.group_size, busy = busy_with(u);
    const int64_t first = u->can.subgroup_size ? (int64_t)u->can.subgroup_size : LANES;
    int64_t lanes = 1; /* a power of two: sums are added pairwise */
    while (2 * lanes <= smaller(first, most) && 4 * lanes <= places)
        lanes *= 2;
    while (2 * lanes <= most && 8 * lanes <= places && rows < busy / lanes)
        lanes *= 2;
    return lanes;
}

/* Neighbouring places that a lane reads at once: as many as divide the axis among full lanes. */
static int64_t lane_places(const oi_unit *u, const oi_skernel *k, const oi_snest *n)
{
    const int64_t extent = n->axes[n->n_axes - 1].extent;
    const oi_strides s = oi_nest_strides(u, k, n);
    int64_t v = s.bits ? (int64_t)u->can.load_bytes * 8 / s.bits : 0;
    v = smaller(v, MOST_PLACES);
    while (v > 1 && extent % (LANES * v) != 0)
        v /= 2;
    return n->lanes || v < 2 ? 1 : v;
}

/* Whether several invocations may make a sum of the nest together. */
static bool may_share(const oi_skernel *k, const oi_snest *n)
{
    const uint32_t last = n->n_axes - 1;
    if (n->kind == OI_NEST_MAP || is_in_order(n) || k->can_fail || n->n_axes == 0 ||
        !n->axes[last].is_reduced || !is_number(n, last) || oi_dtype_bits(n->acc) < 32)
        return false;
    return n->kind == OI_NEST_CONTRACT || n->lanes || n->reduce->op->order == OI_REDUCE_ANY;
}

/* The lanes that compute a sum along contiguous memory together; 0: one invocation does. */
static int64_t lanes_of_sum(const oi_unit *u, const oi_skernel *k, const oi_snest *n, int64_t rows)
{
    const uint32_t last = n->n_axes - 1;
    if (!may_share(k, n))
        return 0;
    const int64_t places = n->axes[last].extent / lane_places(u, k, n);
    int64_t lanes = n->lanes ? n->lanes : lanes_for(u, places, rows);
    while (!n->lanes && lanes > 1 && places % lanes != 0 && places < n->axes[last].extent)
        lanes /= 2;
    const bool fits = 2 * lanes <= n->axes[last].extent && (uint64_t)lanes <= u->can.group_size &&
                      (uint64_t)lanes * WIDEST <= u->can.shared_bytes;
    return lanes >= LEAST && fits && oi_nest_strides(u, k, n).along ? lanes : 0;
}

/* Neighbouring results read neighbouring elements. If there are few of them, several invocations,
 * ROW results apart, make a sum together. 0: one does. */
static int64_t group_of_sum(const oi_unit *u, const oi_skernel *k, const oi_snest *n, int64_t rows)
{
    const uint32_t last = n->n_axes - 1;
    if (!may_share(k, n) || !oi_nest_strides(u, k, n).across || rows < ROW)
        return 0;
    const int64_t places = n->axes[last].extent, most = (int64_t)u->can.group_size / ROW;
    int64_t lanes = n->lanes ? n->lanes : 1;
    while (!n->lanes && 2 * lanes <= most && 16 * lanes <= places && rows < busy_with(u) / lanes)
        lanes *= 2;
    const bool fits = lanes <= most && 2 * lanes <= places && rows < busy_with(u) &&
                      (uint64_t)(lanes * ROW) * WIDEST <= u->can.shared_bytes;
    return lanes > 1 && fits ? lanes : 0;
}

/* One invocation makes the partial sums that the op declares. */
static void follow_declared(oi_snest *n)
{
    if (n->n_axes && is_number(n, n->n_axes - 1))
        n->axes[n->n_axes - 1].factor[OI_AXIS_VECTOR] = n->lanes;
}

/* -- nests on their own -- */

static void schedule_nest(const oi_unit *u, const oi_skernel *k, oi_snest *n)
{
    const uint32_t out = oi_nest_counted(n);
    const int64_t positions = count(n, out), lanes = lanes_of_sum(u, k, n, positions);
    const int64_t apart = lanes ? 0 : group_of_sum(u, k, n, positions);
    const int64_t most = smaller(GROUP, (int64_t)u->can.group_size);
    int64_t each = lanes > most ? 1 : lanes ? most / lanes : apart ? ROW : most;
    while (lanes && each > 1 && (uint64_t)(each * lanes) * WIDEST > u->can.shared_bytes)
        each /= 2;
    if (lanes) {
        const int64_t places = lane_places(u, k, n);
        n->axes[n->n_axes - 1].factor[OI_AXIS_LANE] = lanes;
        n->axes[n->n_axes - 1].factor[OI_AXIS_VECTOR] = places > 1 ? places : 0;
    } else if (apart)
        n->axes[n->n_axes - 1].factor[OI_AXIS_GROUP] = apart;
    else {
        follow_declared(n);
    }
    if (lanes || positions == 1) /* a group that is full does no harm */
        each = smaller(each, positions > 0 ? positions : 1);
    take_positions(u, n, out, each);
}

/* -- nests that share a row -- */

/* Rows that a kernel keeps to itself, if a group shares them, and the sums of its lanes; elements
 * are held in 32 bits or more. */
static uint64_t shared_bytes(const oi_unit *u, const oi_skernel *k, int64_t lanes)
{
    uint64_t all = (uint64_t)lanes * WIDEST;
    for (size_t i = 0; i < k->ports.n; i++) {
        const oi_tensor *t = &u->tensors.at[k->ports.at[i].tensor];
        const uint64_t bits = oi_dtype_bits(t->dtype), held = bits > 32 ? bits : 32;
        if (t->space == OI_SPACE_LOCAL)
            all += t->size_bytes / bits * held;
    }
    return all;
}

/* Lanes exchange rows through shared memory. What a nest reads from other memory is not written by
 * an earlier one, unless a barrier of the group orders that, too. */
static bool rows_are_local(const oi_unit *u, const oi_skernel *k)
{
    bool are = true;
    for (size_t i = 0; i < k->ports.n && !u->can.groups_stay; i++)
        are &= !k->ports.at[i].is_written || !oi_kernel_reads(k, k->ports.at[i].tensor) ||
               u->tensors.at[k->ports.at[i].tensor].space == OI_SPACE_LOCAL;
    return are;
}

/* The axis of the nest that lanes can share: of a sum, or the last one of the results inside the
 * row. OI_NO_ID: none. *lanes: those of a sum. */
static uint32_t shared_axis(const oi_unit *u, const oi_skernel *k, const oi_snest *n,
                            int64_t *lanes)
{
    const uint32_t last = n->n_axes - 1;
    *lanes = lanes_of_sum(u, k, n, count(n, k->n_shared));
    const bool is_map = n->kind == OI_NEST_MAP && !is_in_order(n) && n->n_axes > k->n_shared &&
                        n->axes[last].extent > 1;
    const uint32_t out = oi_nest_counted(n);
    const bool has_results = n->kind != OI_NEST_MAP && u->can.groups_stay && !n->is_scan &&
                             out > k->n_shared && n->axes[out - 1].extent > 1;
    return *lanes || is_map ? last : has_results ? out - 1 : OI_NO_ID;
}

/* Lanes of the group: as many as the longest axis that they can share wants; 0: one invocation
 * does a row. */
static int64_t lanes_of_row(const oi_unit *u, const oi_skernel *k)
{
    int64_t longest = 0, lanes = 0, own;
    for (size_t i = 0; i < k->nests.n; i++) {
        const oi_snest *n = &k->nests.at[i];
        const uint32_t axis = shared_axis(u, k, n, &own);
        if (axis != OI_NO_ID && n->axes[axis].extent > longest)
            longest = n->axes[axis].extent;
        lanes = own > lanes ? own : lanes;
    }
    if (!lanes || k->can_fail || !rows_are_local(u, k))
        return 0;
    own = lanes_for(u, longest, count(&k->nests.at[0], k->n_shared));
    lanes = own > lanes ? own : lanes;
    return shared_bytes(u, k, lanes) <= u->can.shared_bytes ? lanes : 0;
}

static void schedule_row(const oi_unit *u, oi_skernel *k)
{
    const int64_t lanes = lanes_of_row(u, k), rows = count(&k->nests.at[0], k->n_shared);
    const int64_t each = lanes || rows == 1 ? 1 : smaller(GROUP, (int64_t)u->can.group_size);
    for (size_t i = 0; i < k->nests.n; i++) {
        oi_snest *n = &k->nests.at[i];
        int64_t own = 0;
        const uint32_t axis = lanes ? shared_axis(u, k, n, &own) : OI_NO_ID;
        if (axis == OI_NO_ID || (n->kind != OI_NEST_MAP && !own))
            follow_declared(n);
        if (axis != OI_NO_ID)
            n->axes[axis].factor[OI_AXIS_LANE] = own ? own : lanes;
        take_positions(u, n, k->n_shared, each);
    }
}

void oi_kernel_schedule_groups(const oi_unit *u, oi_skernel *k)
{
    if (oi_kernel_is_joint(u->tensors.at, k)) {
        schedule_row(u, k);
        return;
    }
    for (size_t i = 0; i < k->nests.n; i++)
        schedule_nest(u, k, &k->nests.at[i]);
}

/* -- groups that stay: partition.c asks -- */

/* The first axis, or pair of neighbouring axes, with enough places for all groups; else the one
 * with the most. */
static oi_partition most_places(const oi_snest *n, uint32_t axes, uint32_t most_axes)
{
    oi_partition best = {.unit = 1};
    for (uint32_t together = 1; together <= most_axes; together++)
        for (uint32_t a = 0; a + together <= axes; a++) {
            const int64_t first = n->axes[a].extent, last = n->axes[a + together - 1].extent;
            const int64_t extent = together == 2 ? first * last : first;
            if (best.extent < GROUPS && first > 1 && last > 1 && extent > best.extent)
                best = (oi_partition){a, together, extent, 1};
        }
    return best;
}

oi_partition oi_kernel_group_partition(const oi_skernel *k)
{
    const oi_snest *n = &k->nests.at[0];
    const uint32_t axes = k->n_shared ? k->n_shared : oi_nest_counted(n);
    const int64_t least = k->n_shared ? 1 : oi_nest_lane_count(n) > 1 ? SUMS : LINE;
    int64_t inner = 1;
    oi_partition p = most_places(n, axes, k->n_shared || k->nests.n == 1 ? 2 : 1);
    for (uint32_t a = p.axis + p.n_axes; a < axes; a++)
        inner *= n->axes[a].extent;
    while (p.unit * inner < least && p.extent >= 2 * GROUPS * p.unit)
        p.unit *= 2;
    return p;
}
