/* join.c: joins maps of one kernel with equal loops over the same input.
 *
 * rope computes the even and the odd elements of a row from both. One loop loads them once and
 * stores neighbours together. Because all loads of an iteration come before its stores, the result
 * may overwrite the input. */
#include "synth/compose.h"

static bool is_plain(const oi_unit *u, const oi_skernel *k, const oi_snest *n)
{
    bool is = n->kind == OI_NEST_MAP && !n->is_serial && !n->is_scan && !n->combines_out &&
              !n->extents && !n->skips;
    for (size_t i = 0; is && i < n->pre.n; i++) {
        const oi_sop *op = &n->pre.at[i];
        if (op->kind == OI_SOP_LOAD || op->kind == OI_SOP_STORE)
            is = oi_sop_is_affine(u, k, op) && oi_dtype_bits(op->type) >= 8;
        else
            is = op->kind == OI_SOP_EVAL || op->kind == OI_SOP_CONVERT || op->kind == OI_SOP_CONST;
    }
    return is;
}

/* Whether some instruction of that kind in the nest goes to the tensor. */
static bool touches(const oi_skernel *k, const oi_snest *n, oi_sop_kind kind, uint32_t tensor)
{
    for (size_t i = 0; i < n->pre.n; i++)
        if (n->pre.at[i].kind == kind && k->ports.at[n->pre.at[i].port].tensor == tensor)
            return true;
    return false;
}

static bool may_join(const oi_unit *u, const oi_skernel *k, const oi_snest *a, const oi_snest *b)
{
    bool may = is_plain(u, k, a) && is_plain(u, k, b) && a->n_axes == b->n_axes;
    bool share = false;
    for (uint32_t i = 0; may && i < a->n_axes; i++)
        may = a->axes[i].extent == b->axes[i].extent;
    for (size_t i = 0; may && i < k->ports.n; i++) {
        const uint32_t t = k->ports.at[i].tensor;
        const bool reads = touches(k, a, OI_SOP_LOAD, t), also = touches(k, b, OI_SOP_LOAD, t);
        share |= reads && also;
        may =
            !(reads && touches(k, b, OI_SOP_STORE, t)) && !(also && touches(k, a, OI_SOP_STORE, t));
    }
    return may && share;
}

/* The load among those that does the same; OI_NO_ID: there is none. */
static uint32_t same_load(const oi_unit *u, const oi_skernel *k, const oi_sops *in,
                          const oi_sop *op)
{
    for (size_t i = 0; op->kind == OI_SOP_LOAD && i < in->n; i++) {
        const oi_sop *other = &in->at[i];
        if (other->kind == OI_SOP_LOAD && other->port == op->port && other->type == op->type &&
            other->is_raw == op->is_raw &&
            oi_sop_same_place(other, op, u->tensors.at[k->ports.at[op->port].tensor].rank))
            return (uint32_t)i;
    }
    return OI_NO_ID;
}

static void take(oi_unit *u, oi_skernel *k, const oi_snest *from, uint32_t *ids, bool stores,
                 oi_sops *out)
{
    oi_moving m = {.u = u, .to = k, .from = k, .nest = from, .ids = ids};
    for (size_t i = 0; i < from->pre.n; i++) {
        const oi_sop *op = &from->pre.at[i];
        if ((op->kind == OI_SOP_STORE) != stores)
            continue;
        ids[i] = same_load(u, k, out, op);
        if (ids[i] != OI_NO_ID)
            continue;
        const oi_sop own = oi_sop_moved(&m, op);
        ids[i] = (uint32_t)out->n;
        *OI_PUSH(u->arena, out) = own;
    }
}

void oi_kernel_join_maps(oi_unit *u, oi_skernel *k)
{
    for (size_t i = 0; i + 1 < k->nests.n;) {
        oi_snest *a = &k->nests.at[i], *b = a + 1;
        if (oi_kernel_streams(k) || !may_join(u, k, a, b)) {
            i++;
            continue;
        }
        oi_sops all = {0};
        uint32_t *of_a = oi_arena_alloc(u->arena, (a->pre.n + 1) * sizeof *of_a);
        uint32_t *of_b = oi_arena_alloc(u->arena, (b->pre.n + 1) * sizeof *of_b);
        for (int stores = 0; stores < 2; stores++) {
            take(u, k, a, of_a, stores, &all);
            take(u, k, b, of_b, stores, &all);
        }
        a->pre = all;
        k->nests.n--;
        memmove(b, b + 1, (k->nests.n - i - 1) * sizeof *b);
    }
}
