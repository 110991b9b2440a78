/* dispatch.c: the dispatches of a kernel: nests that share axes or private rows are one, others are
 * apart. Run-time numbers lie in a buffer, so that a recorded list of commands reads new ones in
 * every step.
 *
 * Kernels that can fail leave the number of the dispatch in the failure word. Those that change
 * state look there before they begin, so that nothing changes after a failure. */
#include "emit/vulkan/glsl.h"

static const oi_tensor *tensor_at(const oi_plan *u, const oi_skernel *k, size_t port)
{
    return &u->tensors.at[k->ports.at[port].tensor];
}

bool oi_glsl_is_value(const oi_plan *u, const oi_skernel *k, size_t port)
{
    return tensor_at(u, k, port)->by_value && !k->ports.at[port].is_written;
}

/* Parts of the state, and views of it. Packed elements count from the first one of the tensor. */
bool oi_glsl_has_base(const oi_plan *u, const oi_skernel *k, size_t port)
{
    const oi_port *p = &k->ports.at[port];
    const oi_tensor *t = tensor_at(u, k, port);
    return oi_dtype_bits(t->dtype) >= 8 &&
           (t->space == OI_SPACE_VIEW || (p->n_entry && !t->n_table));
}

/* -- what a shader uses -- */

static void find_accesses(const oi_sops *ops, bool *reads, bool *writes)
{
    for (size_t i = 0; i < ops->n; i++)
        if (oi_sop_is_access(&ops->at[i]))
            (ops->at[i].kind == OI_SOP_STORE ? writes : reads)[ops->at[i].port] = true;
}

static void find_ports(const oi_plan *u, const oi_skernel *k, oi_glsl_dispatch *d)
{
    bool *is_bound = oi_arena_alloc(u->arena, k->ports.n + 1),
         *is_written = oi_arena_alloc(u->arena, k->ports.n + 1);
    for (size_t i = 0; i < d->n_nests; i++) {
        find_accesses(&d->nests[i].pre, is_bound, is_written);
        find_accesses(&d->nests[i].post, is_bound, is_written);
    }
    for (size_t i = 0; i < k->ports.n; i++) {
        is_bound[i] |= is_written[i];
        is_bound[i] &= tensor_at(u, k, i)->space != OI_SPACE_LOCAL && !k->ports.at[i].is_dropped;
    }
    d->is_bound = is_bound;
    d->is_written = is_written;
}

/* -- the block of scalars -- */

typedef struct block {
    OI_VEC(oi_glsl_member) members;
    uint32_t bytes, align;
} block;

static void add(const oi_plan *u, block *b, oi_glsl_member m, uint32_t align)
{
    m.offset = (b->bytes + align - 1) / align * align;
    b->bytes = m.offset + m.bytes;
    b->align = align > b->align ? align : b->align;
    *OI_PUSH(u->arena, &b->members) = m;
}

static void add_scalar(const oi_plan *u, block *b, const oi_skernel *k, uint32_t i)
{
    const oi_kscalar *v = &k->scalars.at[i];
    const oi_dtype form = v->is_length ? OI_I32 : oi_form_of(v->dtype);
    const uint32_t bytes = oi_dtype_bits(form) > 32 ? 8 : 4;
    add(u, b, (oi_glsl_member){OI_GLSL_SCALAR, i, form, 0, bytes}, bytes);
}

/* Elements narrower than a word share words. */
static void add_value(const oi_plan *u, block *b, const oi_skernel *k, uint32_t port)
{
    const oi_tensor *t = tensor_at(u, k, port);
    const uint32_t align = oi_dtype_bits(t->dtype) > 32 ? 8 : 4;
    const uint32_t bytes = ((uint32_t)t->size_bytes + align - 1) / align * align;
    add(u, b, (oi_glsl_member){OI_GLSL_VALUE, port, t->dtype, 0, bytes}, align);
}

static bool mentions_failure(const oi_plan *u)
{
    for (size_t i = 0; i < u->kernels.n; i++)
        if (u->kernels.at[i].is_used && u->kernels.at[i].can_fail)
            return true;
    return false;
}

static void put_members(const oi_plan *u, const oi_skernel *k, oi_glsl_dispatch *d)
{
    block b = {.align = 4};
    bool *bound = (bool *)d->is_bound;
    for (uint32_t i = 0; i < k->scalars.n; i++)
        add_scalar(u, &b, k, i);
    for (uint32_t i = 0; i < k->ports.n; i++) {
        const oi_space space = tensor_at(u, k, i)->space;
        if (bound[i] && oi_glsl_is_value(u, k, i)) {
            add_value(u, &b, k, i);
            bound[i] = false;
        } else if (bound[i] && oi_glsl_has_base(u, k, i)) {
            add(u, &b, (oi_glsl_member){OI_GLSL_BASE, i, OI_I32, 0, 4}, 4);
        }
        d->is_guarded |= d->is_written[i] && (space == OI_SPACE_STATE || space == OI_SPACE_VIEW);
    }
    d->is_guarded &= mentions_failure(u);
    d->failure = k->can_fail || d->is_guarded ? (uint32_t)k->ports.n : OI_NO_ID;
    if (d->failure != OI_NO_ID)
        add(u, &b, (oi_glsl_member){OI_GLSL_ORDER, 0, OI_U32, 0, 4}, 4);
    d->n_bindings = (uint32_t)k->ports.n + (d->failure != OI_NO_ID);
    d->scalars = b.members.n ? d->n_bindings++ : OI_NO_ID;
    d->scalar_bytes = (b.bytes + b.align - 1) / b.align * b.align;
    d->members = b.members.at;
    d->n_members = (uint32_t)b.members.n;
}

/* -- dispatches -- */

uint64_t oi_glsl_positions(const oi_glsl_dispatch *d)
{
    uint64_t all = 1;
    for (uint32_t a = 0; a < d->n_open; a++)
        if (__builtin_mul_overflow(all, (uint64_t)d->nests[0].axes[a].extent, &all))
            return UINT64_MAX;
    return all;
}

static void complete(const oi_plan *u, const oi_skernel *k, oi_glsl_dispatch *d)
{
    d->of = oi_group_of(u, d->nests, d->n_nests);
    const uint64_t all = oi_glsl_positions(d), each = (uint64_t)d->of.positions;
    d->groups = all / each + (all % each != 0);
    d->full_subgroups = d->of.has_shuffle;
    find_ports(u, k, d);
    put_members(u, k, d);
}

const oi_glsl_dispatch *oi_glsl_dispatches(const oi_plan *u, const oi_skernel *k, size_t *n)
{
    const bool is_joint = oi_kernel_is_joint(u->tensors.at, k);
    *n = is_joint ? 1 : k->nests.n;
    oi_glsl_dispatch *all = oi_arena_alloc(u->arena, (*n + 1) * sizeof *all);
    for (size_t i = 0; i < *n; i++) {
        oi_glsl_dispatch *d = &all[i];
        const oi_snest *first = &k->nests.at[i];
        d->nests = first;
        d->n_nests = is_joint ? k->nests.n : 1;
        d->shader =
            *n > 1 ? oi_arena_printf(u->arena, "%s_%zu", k->function_name, i) : k->function_name;
        d->n_open = is_joint ? k->n_shared : 0;
        while (!is_joint && d->n_open < first->n_axes &&
               first->axes[d->n_open].factor[OI_AXIS_WORKER])
            d->n_open++;
        complete(u, k, d);
    }
    return all;
}
