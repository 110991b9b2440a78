/* layout.c: interleaves rows of weights for products without a recipe.
 * needs:  kernels in their final form, before their loops are ordered
 * keeps:  results; every sum takes its terms in the same order
 * makes:  a last output axis of `lanes` places along which all accesses are contiguous; weights
 *         packed in that order at synthesis time; rows local to such a tile
 *
 * A product that reads its weights row by row sums along a row. If the sum must keep its order, it
 * is one long dependency chain. Interleaving `lanes` rows gives as many independent chains, and
 * each step of them is one vector instruction, including the unpacking of small elements and the
 * scales. */
#include "device/cost.h"
#include "synth/compose.h"
#include "synth/lower.h"

#define LEAST_LANES 32 /* fewest chains, if registers are narrow */

/* -- the order of weights -- */

/* The order of a weight's elements: axes of the nest, slowest first. */
typedef struct digits {
    uint32_t n;
    uint32_t of[OI_NEST_AXES];
    int64_t stride[OI_NEST_AXES];
} digits;

/* False if the axes do not visit every element exactly once. */
static bool find_digits(const oi_snest *n, const oi_nest_coord *number, int64_t total, digits *out)
{
    bool taken[OI_NEST_AXES] = {false};
    int64_t rest = total;
    out->n = 0;
    while (rest > 1) {
        uint32_t next = OI_NO_ID;
        for (uint32_t a = 0; a < n->n_axes; a++)
            if (!taken[a] && n->axes[a].extent > 1 && rest % n->axes[a].extent == 0 &&
                number->step[a] == rest / n->axes[a].extent)
                next = a;
        if (next == OI_NO_ID)
            return false;
        taken[next] = true;
        rest = number->step[next];
        out->of[out->n] = next;
        out->stride[out->n++] = rest;
    }
    for (uint32_t a = 0; a < n->n_axes; a++)
        if (!taken[a] && number->step[a] != 0 && n->axes[a].extent > 1)
            return false;
    return number->base == 0;
}

static uint64_t element(const uint8_t *data, unsigned bits, int64_t e)
{
    uint64_t v = 0;
    if (bits < 8)
        return (data[e * bits / 8] >> (e * bits % 8)) & ((1u << bits) - 1);
    memcpy(&v, data + e * (bits / 8), bits / 8);
    return v;
}

static void set_element(uint8_t *data, unsigned bits, int64_t e, uint64_t v)
{
    if (bits < 8)
        data[e * bits / 8] |= (uint8_t)(v << (e * bits % 8));
    else
        memcpy(data + e * (bits / 8), &v, bits / 8);
}

/* sizes: extent and old stride of each digit of the new order. */
static void pack_digits(const oi_packing *p, const void *const *in, void *out)
{
    const unsigned bits = oi_dtype_bits(p->dtype);
    int64_t at[OI_PACK_SIZES / 2] = {0}, from = 0;
    memset(out, 0, (size_t)p->size_bytes);
    for (int64_t e = 0, n = (int64_t)(p->size_bytes * 8 / bits); e < n; e++) {
        set_element(out, bits, e, element(in[0], bits, from));
        for (int d = OI_PACK_SIZES / 2; d-- > 0;) {
            if (p->sizes[2 * d] == 0)
                continue;
            from += p->sizes[2 * d + 1];
            if (++at[d] < p->sizes[2 * d])
                break;
            from -= p->sizes[2 * d] * p->sizes[2 * d + 1];
            at[d] = 0;
        }
    }
}

/* Merges digits that need not be separate. Of digit i: its index, and how far it moves that. */
static uint32_t set_sizes(const oi_snest *n, const digits *d, oi_packing *p, uint32_t *group,
                          int64_t *step)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < d->n; i++) {
        const int64_t extent = n->axes[d->of[i]].extent;
        int64_t *last = used ? &p->sizes[2 * (used - 1)] : NULL;
        if (last && last[1] == extent * d->stride[i]) {
            last[0] *= extent;
            last[1] = d->stride[i];
        } else {
            p->sizes[2 * used] = extent;
            p->sizes[2 * used + 1] = d->stride[i];
            used++;
        }
        group[i] = used - 1;
    }
    for (uint32_t i = d->n; i-- > 0;)
        step[i] = i + 1 < d->n && group[i + 1] == group[i]
                      ? step[i + 1] * n->axes[d->of[i + 1]].extent
                      : 1;
    return used;
}

/* -- what a kernel may be -- */

typedef struct laying {
    oi_unit *u;
    oi_skernel *k;
    uint32_t axis;  /* the axis that becomes contiguous */
    int64_t lanes;  /* places per tile */
    uint32_t found; /* operands that are read along it and are not contiguous yet */
} laying;

static const oi_tensor *tensor_of(const laying *x, const oi_sop *op)
{
    return &x->u->tensors.at[x->k->ports.at[op->port].tensor];
}

/* How many elements of the tensor share a byte. */
static int64_t per_byte(const oi_tensor *t)
{
    unsigned bits = oi_dtype_bits(t->dtype);
    return bits < 8 ? 8 / bits : 1;
}

static uint32_t count_accesses(const oi_skernel *k, uint32_t port)
{
    uint32_t n = 0;
    const oi_sops *ops;
    for (size_t l = 0; (ops = oi_kernel_sops(k, l)) != NULL; l++)
        for (size_t i = 0; i < ops->n; i++)
            n += oi_sop_is_access(&ops->at[i]) && ops->at[i].port == port;
    return n;
}

static bool may_move(const laying *x, const oi_snest *n, const oi_sop *op,
                     const oi_nest_coord *number)
{
    const oi_tensor *t = tensor_of(x, op);
    const unsigned bits = oi_dtype_bits(t->dtype);
    const int64_t each = per_byte(t);
    const uint32_t last = n->n_axes - 1;
    digits d;
    if (t->space != OI_SPACE_WEIGHTS || t->packing || t->is_row_major ||
        (bits < 8 && 8 % bits != 0) || !find_digits(n, number, oi_tensor_count(t), &d) ||
        d.n + 2 > OI_PACK_SIZES / 2 || count_accesses(x->k, op->port) != 1)
        return false;
    return each == 1 || (n->axes[last].is_reduced && number->step[last] == 1 &&
                         n->axes[last].extent % each == 0);
}

static bool fits_access(laying *x, const oi_snest *n, const oi_sop *op)
{
    const oi_tensor *t = tensor_of(x, op);
    if (op->kind == OI_SOP_INDEX || !oi_sop_is_affine(x->u, x->k, op))
        return false;
    if (t->space == OI_SPACE_LOCAL)
        return !op->is_flat;
    const oi_nest_coord number = oi_sop_number(x->u, x->k, op);
    const int64_t step = number.step[x->axis];
    if (op->kind == OI_SOP_STORE)
        return step == 1 && oi_dtype_bits(t->dtype) >= 8 && !op->is_flat;
    x->found += step != 0 && (step != 1 || x->k->n_shared);
    if (step == 0 || step == 1)
        return oi_dtype_bits(t->dtype) >= 8;
    return may_move(x, n, op, &number);
}

static bool fits_nest(laying *x, const oi_snest *n)
{
    if (n->is_serial || n->is_scan || n->combines_out || n->finds_position || n->skips ||
        n->lanes || n->extents || n->n_axes + 2 >= OI_NEST_AXES)
        return false;
    for (int post = 0; post < 2; post++) {
        const oi_sops *ops = post ? &n->post : &n->pre;
        for (size_t i = 0; i < ops->n; i++)
            if (ops->at[i].kind == OI_SOP_PLACE ||
                (oi_sop_is_access(&ops->at[i]) && !fits_access(x, n, &ops->at[i])))
                return false;
    }
    return true;
}

/* As many places as a register has bytes, so that the smallest elements fill one register. 0: the
 * extent is not a multiple. */
static int64_t find_lanes(int64_t vector_lanes, int64_t extent)
{
    int64_t lanes = vector_lanes * (int64_t)sizeof(float);
    while (lanes > LEAST_LANES && extent % lanes != 0)
        lanes /= 2;
    lanes = lanes < LEAST_LANES ? LEAST_LANES : lanes;
    return extent > 0 && extent % lanes == 0 ? lanes : 0;
}

static bool fits_kernel(laying *x)
{
    const oi_skernel *k = x->k;
    if (!k->is_used || k->is_dynamic || k->can_fail || k->recipe || k->n_shared > 1 ||
        (k->n_shared == 0 && k->nests.n != 1) || !k->nests.n ||
        k->nests.at[0].kind != OI_NEST_CONTRACT)
        return false;
    const oi_snest *first = &k->nests.at[0];
    uint32_t out = 0;
    while (out < first->n_axes && !first->axes[out].is_reduced)
        out++;
    if (out == 0 || out == first->n_axes)
        return false;
    x->axis = k->n_shared ? 0 : out - 1;
    x->lanes = find_lanes(x->u->can.vector_lanes, first->axes[x->axis].extent);
    if (x->lanes == 0)
        return false;
    for (size_t i = 0; i < k->nests.n; i++)
        if (!fits_nest(x, &k->nests.at[i]))
            return false;
    for (size_t i = 0; i < k->ports.n; i++) {
        const oi_tensor *t = &x->u->tensors.at[k->ports.at[i].tensor];
        if (t->space == OI_SPACE_LOCAL && t->rank + 1 > OI_MAX_RANK)
            return false;
    }
    return x->found > 0;
}

/* -- axes that all nests have -- */

static bool touches(const laying *x, const oi_snest *n, uint32_t tensor)
{
    for (int post = 0; post < 2; post++) {
        const oi_sops *ops = post ? &n->post : &n->pre;
        for (size_t i = 0; i < ops->n; i++)
            if (oi_sop_is_access(&ops->at[i]) && x->k->ports.at[ops->at[i].port].tensor == tensor)
                return true;
    }
    return false;
}

/* The tensor that one nest passes to another; OI_NO_ID: there are several. */
static uint32_t find_link(const laying *x)
{
    uint32_t link = OI_NO_ID;
    for (size_t p = 0; p < x->k->ports.n; p++) {
        const uint32_t tensor = x->k->ports.at[p].tensor;
        uint32_t nests = 0;
        for (size_t m = 0; m < x->k->nests.n; m++)
            nests += touches(x, &x->k->nests.at[m], tensor);
        if (!x->k->ports.at[p].is_written || nests < 2 || tensor == link)
            continue;
        if (link != OI_NO_ID)
            return OI_NO_ID;
        link = tensor;
    }
    return link;
}

/* By nest: the output axis that indexes dim d of the local tensor in all accesses. */
static bool find_common(const laying *x, uint32_t tensor, uint32_t d, uint32_t *axes)
{
    for (size_t m = 0; m < x->k->nests.n; m++) {
        const oi_snest *n = &x->k->nests.at[m];
        axes[m] = OI_NO_ID;
        for (int post = 0; post < 2; post++) {
            const oi_sops *ops = post ? &n->post : &n->pre;
            for (size_t i = 0; i < ops->n; i++) {
                if (!oi_sop_is_access(&ops->at[i]) ||
                    x->k->ports.at[ops->at[i].port].tensor != tensor)
                    continue;
                uint32_t own = oi_coord_axis(n, &ops->at[i].at[d]);
                if (own == OI_NO_ID || own < x->k->n_shared ||
                    (axes[m] != OI_NO_ID && axes[m] != own))
                    return false;
                axes[m] = own;
            }
        }
        if (axes[m] == OI_NO_ID)
            return false;
    }
    return true;
}

/* The local tensor gets a last dim of `lanes` places, indexed by axis `lane` of each nest. */
static void add_lanes(laying *x, uint32_t tensor, const uint32_t *lane)
{
    oi_tensor *t = &x->u->tensors.at[tensor];
    for (size_t l = 0; l < 2 * x->k->nests.n; l++) {
        oi_sops *ops = oi_kernel_sops(x->k, l);
        for (size_t i = 0; i < ops->n; i++) {
            oi_sop *op = &ops->at[i];
            if (!oi_sop_is_access(op) || x->k->ports.at[op->port].tensor != tensor)
                continue;
            oi_nest_coord *at = oi_arena_alloc(x->u->arena, (t->rank + 1) * sizeof *at);
            memcpy(at, op->at, t->rank * sizeof *at);
            at[t->rank] = (oi_nest_coord){.index = OI_NEST_NONE};
            at[t->rank].step[lane[l / 2]] = 1;
            op->at = at;
        }
    }
    t->dims[t->rank++] = x->lanes;
    oi_tensor_measure(t);
}

/* The tile's results must stay in cache, so all nests process one place of their shared axes at a
 * time. */
static void share_more(laying *x)
{
    uint32_t *axes = oi_arena_alloc(x->u->arena, (x->k->nests.n + 1) * sizeof *axes);
    const uint32_t link = x->k->n_shared ? find_link(x) : OI_NO_ID;
    if (link == OI_NO_ID || x->u->tensors.at[link].space != OI_SPACE_LOCAL)
        return;
    for (uint32_t d = x->u->tensors.at[link].rank; d-- > 0;) {
        if (!find_common(x, link, d, axes))
            continue;
        for (size_t m = 0; m < x->k->nests.n; m++)
            oi_nest_bring(x->u, x->k, &x->k->nests.at[m], axes[m], x->k->n_shared);
        x->k->n_shared++;
        oi_kernel_drop_dim(x->u, x->k, link, d);
    }
}

/* -- laying -- */

/* The weight in its new order: contiguous along `lane`, elements of one byte together. */
static void move_weight(laying *x, const oi_snest *n, oi_sop *op, uint32_t lane)
{
    const oi_tensor old = *tensor_of(x, op);
    const oi_nest_coord number = oi_sop_number(x->u, x->k, op);
    oi_packing p = {.name = "rows side by side",
                    .n_in = 1,
                    .size_bytes = old.size_bytes,
                    .dtype = old.dtype,
                    .pack = pack_digits};
    digits was, d = {0};
    find_digits(n, &number, oi_tensor_count(&old), &was);
    for (int turn = 0; turn < 3; turn++) /* all other axes, the lanes, the elements of a byte */
        for (uint32_t i = 0; i < was.n; i++) {
            const bool is_inner = per_byte(&old) > 1 && was.stride[i] == 1;
            if ((was.of[i] == lane ? 1 : is_inner ? 2 : 0) == turn) {
                d.of[d.n] = was.of[i];
                d.stride[d.n++] = was.stride[i];
            }
        }
    uint32_t group[OI_NEST_AXES];
    int64_t step[OI_NEST_AXES];
    const uint32_t rank = set_sizes(n, &d, &p, group, step);
    const uint32_t made = oi_recipe_pack(x->u, &(oi_lowered){.in = &x->k->ports.at[op->port]}, &p);
    oi_tensor *t = &x->u->tensors.at[made];
    oi_nest_coord *at = oi_arena_alloc(x->u->arena, (rank + 1) * sizeof *at);
    t->rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        t->dims[i] = p.sizes[2 * i];
        at[i] = (oi_nest_coord){.index = OI_NEST_NONE};
    }
    for (uint32_t i = 0; i < d.n; i++)
        at[group[i]].step[d.of[i]] = step[i];
    oi_tensor_measure(t);
    t->origin = old.origin ? old.origin : old.var;
    op->at = at;
    op->is_flat = false;
    x->k->ports.at[op->port].tensor = made;
}

/* Splits the axis; the inner part becomes the last output axis. */
static uint32_t split_lanes(laying *x, oi_snest *n)
{
    uint32_t out = 1, lane = x->axis + 1;
    oi_nest_split_axis(x->u, x->k, n, &(oi_split){x->axis, x->lanes});
    while (out < n->n_axes && !n->axes[out].is_reduced)
        out++;
    oi_nest_bring(x->u, x->k, n, lane, out - 1);
    oi_nest_bring(x->u, x->k, n, x->axis, 0);
    return out - 1;
}

static void lay_nest(laying *x, oi_snest *n, uint32_t lane)
{
    int64_t each = 1;
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < n->pre.n + n->post.n; i++) {
            oi_sop *op = i < n->pre.n ? &n->pre.at[i] : &n->post.at[i - n->pre.n];
            if (op->kind != OI_SOP_LOAD || tensor_of(x, op)->space != OI_SPACE_WEIGHTS ||
                oi_sop_number(x->u, x->k, op).step[lane] <= 1)
                continue;
            if (turn == 0)
                each = per_byte(tensor_of(x, op)) > each ? per_byte(tensor_of(x, op)) : each;
            else
                move_weight(x, n, op, lane);
        }
        if (turn == 0 && each > 1 && n->axes[n->n_axes - 1].extent > each)
            oi_nest_split_axis(x->u, x->k, n, &(oi_split){n->n_axes - 1, each});
    }
}

static void lay_kernel(laying *x)
{
    uint32_t *lanes = oi_arena_alloc(x->u->arena, (x->k->nests.n + 1) * sizeof *lanes);
    share_more(x);
    for (size_t m = 0; m < x->k->nests.n; m++)
        lanes[m] = split_lanes(x, &x->k->nests.at[m]);
    for (size_t p = 0; p < x->k->ports.n; p++)
        if (x->u->tensors.at[x->k->ports.at[p].tensor].space == OI_SPACE_LOCAL)
            add_lanes(x, x->k->ports.at[p].tensor, lanes);
    for (size_t m = 0; m < x->k->nests.n; m++)
        lay_nest(x, &x->k->nests.at[m], lanes[m]);
}

oi_status oi_pass_layout(oi_unit *u)
{
    if (!u->can.vector_lanes)
        return OI_OK;
    for (size_t i = 0; i < u->kernels.n; i++) {
        laying x = {.u = u, .k = &u->kernels.at[i]};
        if (fits_kernel(&x))
            lay_kernel(&x);
    }
    return OI_OK;
}
