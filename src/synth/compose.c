/* compose.c: the coordinates and instructions of one nest in terms of another's axes. An element's
 * row-major number ties the two together: the store of the one and the load of the other name the
 * same element when their numbers agree. */
#include "synth/compose.h"

/* -- numbers -- */

int64_t oi_tensor_count(const oi_tensor *t)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        n *= t->dims[d];
    return n;
}

static const oi_tensor *tensor_of(const oi_unit *u, const oi_skernel *k, const oi_sop *op)
{
    return &u->tensors.at[k->ports.at[op->port].tensor];
}

static uint32_t n_coords(const oi_unit *u, const oi_skernel *k, const oi_sop *op)
{
    return op->is_flat || op->kind == OI_SOP_PLACE ? 1 : tensor_of(u, k, op)->rank;
}

static bool is_special(const oi_nest_coord *c)
{
    return c->index != OI_NEST_NONE || c->bend != OI_BEND_NONE || c->may_leave;
}

bool oi_sop_is_affine(const oi_unit *u, const oi_skernel *k, const oi_sop *op)
{
    if (op->guard || (op->may_leave && op->kind != OI_SOP_INDEX))
        return false;
    for (uint32_t d = 0; d < n_coords(u, k, op); d++)
        if (is_special(&op->at[d]))
            return false;
    return true;
}

oi_nest_coord oi_sop_number(const oi_unit *u, const oi_skernel *k, const oi_sop *op)
{
    const oi_tensor *t = tensor_of(u, k, op);
    oi_nest_coord sum = {.index = OI_NEST_NONE};
    int64_t stride = 1;
    if (op->is_flat)
        return op->at[0];
    for (uint32_t d = t->rank; d-- > 0; stride *= t->dims[d]) {
        sum.base += stride * op->at[d].base;
        for (uint32_t a = 0; a < OI_NEST_AXES; a++)
            sum.step[a] += stride * op->at[d].step[a];
    }
    return sum;
}

static void add_digit(oi_radix *r, uint32_t of, int64_t stride, int64_t length)
{
    r->of[r->n] = of;
    r->stride[r->n] = stride;
    r->length[r->n++] = length;
}

bool oi_radix_of_tensor(const oi_tensor *t, oi_radix *out)
{
    int64_t stride = oi_tensor_count(t);
    out->n = 0;
    for (uint32_t d = 0; stride > 0 && d < t->rank; d++) {
        stride /= t->dims[d];
        if (t->dims[d] != 1)
            add_digit(out, d, stride, t->dims[d]);
    }
    return stride > 0;
}

bool oi_radix_of_axes(const oi_snest *n, const oi_nest_coord *number, int64_t total, oi_radix *out)
{
    bool taken[OI_NEST_AXES] = {false};
    int64_t rest = total;
    out->n = 0;
    while (rest > 1) {
        uint32_t best = OI_NO_ID;
        for (uint32_t a = 0; a < n->n_axes; a++)
            if (!taken[a] && n->axes[a].extent > 1 && !n->axes[a].is_reduced &&
                rest % n->axes[a].extent == 0 && number->step[a] == rest / n->axes[a].extent)
                best = a;
        if (best == OI_NO_ID)
            return false;
        taken[best] = true;
        rest = number->step[best];
        add_digit(out, best, rest, n->axes[best].extent);
    }
    for (uint32_t a = 0; a < n->n_axes; a++)
        if (!taken[a] && n->axes[a].extent != 1 && !n->axes[a].is_reduced)
            return false; /* several places would name one element, or none does */
    return total > 0 && number->base == 0;
}

/* The digits of one term: its greatest ones first. */
static void spread(int64_t term, const oi_radix *r, int64_t *digits)
{
    bool negative = term < 0;
    int64_t left = negative ? -term : term;
    for (uint32_t d = 0; d < r->n; d++) {
        digits[d] = (negative ? -1 : 1) * (left / r->stride[d]);
        left %= r->stride[d];
    }
}

/* Where an axis runs beyond a digit that it would just fill if it were cut. */
static oi_split find_split(const oi_snest *n, const oi_nest_coord *digit, int64_t length)
{
    for (uint32_t a = 0; a < n->n_axes; a++) {
        int64_t step = digit->step[a], e = n->axes[a].extent;
        if (step <= 0 || step * (e - 1) < length || length % step != 0)
            continue;
        int64_t inner = length / step;
        if (inner > 1 && inner < e && e % inner == 0)
            return (oi_split){a, inner};
    }
    return (oi_split){.axis = OI_NO_ID};
}

bool oi_radix_digits(const oi_snest *n, const oi_nest_coord *number, const oi_radix *r,
                     oi_nest_coord *out, oi_split *want)
{
    int64_t digits[OI_NEST_AXES];
    *want = (oi_split){.axis = OI_NO_ID};
    spread(number->base, r, digits);
    for (uint32_t d = 0; d < r->n; d++)
        out[r->of[d]] = (oi_nest_coord){.base = digits[d], .index = OI_NEST_NONE};
    for (uint32_t a = 0; a < n->n_axes; a++) {
        if (n->axes[a].extent == 1)
            continue;
        spread(number->step[a], r, digits);
        for (uint32_t d = 0; d < r->n; d++)
            out[r->of[d]].step[a] = digits[d];
    }
    for (uint32_t d = 0; d < r->n; d++) {
        const oi_nest_coord *c = &out[r->of[d]];
        int64_t least = c->base, most = c->base;
        for (uint32_t a = 0; a < n->n_axes; a++) {
            int64_t way = c->step[a] * (n->axes[a].extent - 1);
            *(way < 0 ? &least : &most) += way;
        }
        if (least < 0 || most >= r->length[d]) {
            *want = find_split(n, c, r->length[d]);
            return false;
        }
    }
    return true;
}

/* -- axes -- */

/* Every coordinate of the nest as `change` makes it. */
static void change_coords(oi_unit *u, const oi_skernel *k, oi_snest *n,
                          void (*change)(oi_nest_coord *c, const void *ctx), const void *ctx)
{
    for (int post = 0; post < 2; post++) {
        oi_sops *ops = post ? &n->post : &n->pre;
        for (size_t i = 0; i < ops->n; i++) {
            oi_sop *op = &ops->at[i];
            uint32_t rank = op->at ? n_coords(u, k, op) : 0;
            if (op->at) {
                oi_nest_coord *at = oi_arena_alloc(u->arena, (rank + 1) * sizeof *at);
                memcpy(at, op->at, rank * sizeof *at);
                for (uint32_t d = 0; d < rank; d++)
                    change(&at[d], ctx);
                op->at = at;
            }
            if (op->guard) {
                oi_nest_coord *g = oi_arena_alloc(u->arena, sizeof *g);
                *g = *op->guard;
                change(g, ctx);
                op->guard = g;
            }
        }
    }
}

static void split_coord(oi_nest_coord *c, const void *ctx)
{
    const oi_split *s = ctx;
    memmove(&c->step[s->axis + 1], &c->step[s->axis],
            (OI_NEST_AXES - s->axis - 1) * sizeof c->step[0]);
    c->step[s->axis] = c->step[s->axis + 1] * s->inner;
}

void oi_nest_split_axis(oi_unit *u, const oi_skernel *k, oi_snest *n, const oi_split *s)
{
    memmove(&n->axes[s->axis + 1], &n->axes[s->axis],
            (OI_NEST_AXES - s->axis - 1) * sizeof n->axes[0]);
    n->axes[s->axis].extent /= s->inner;
    n->axes[s->axis + 1].extent = s->inner;
    n->n_axes++;
    change_coords(u, k, n, split_coord, s);
}

typedef struct picking {
    uint32_t n;
    uint32_t from[OI_NEST_AXES];
} picking;

static void pick_coord(oi_nest_coord *c, const void *ctx)
{
    const picking *p = ctx;
    oi_nest_coord old = *c;
    memset(c->step, 0, sizeof c->step);
    for (uint32_t a = 0; a < p->n; a++)
        c->step[a] = old.step[p->from[a]];
}

static void pick_axes(oi_unit *u, const oi_skernel *k, oi_snest *n, const picking *p)
{
    oi_saxis axes[OI_NEST_AXES];
    memcpy(axes, n->axes, sizeof axes);
    for (uint32_t a = 0; a < p->n; a++)
        n->axes[a] = axes[p->from[a]];
    n->n_axes = p->n;
    change_coords(u, k, n, pick_coord, p);
}

void oi_nest_permute(oi_unit *u, const oi_skernel *k, oi_snest *n, const uint32_t *from)
{
    picking p = {.n = n->n_axes};
    memcpy(p.from, from, n->n_axes * sizeof *from);
    pick_axes(u, k, n, &p);
}

void oi_nest_bring(oi_unit *u, const oi_skernel *k, oi_snest *n, uint32_t axis, uint32_t to)
{
    uint32_t from[OI_NEST_AXES], rest = 0;
    for (uint32_t a = 0; a < n->n_axes; a++) {
        rest += a != to && rest == axis;
        from[a] = a == to ? axis : rest++;
    }
    if (axis != to)
        oi_nest_permute(u, k, n, from);
}

uint32_t oi_coord_axis(const oi_snest *n, const oi_nest_coord *c)
{
    uint32_t axis = OI_NO_ID;
    for (uint32_t a = 0; a < n->n_axes; a++) {
        if (c->step[a] == 0)
            continue;
        if (axis != OI_NO_ID || c->step[a] != 1 || n->axes[a].is_reduced)
            return OI_NO_ID;
        axis = a;
    }
    return c->base == 0 && c->index == OI_NEST_NONE && c->bend == OI_BEND_NONE ? axis : OI_NO_ID;
}

void oi_nest_drop_unit_axes(oi_unit *u, const oi_skernel *k, oi_snest *n)
{
    picking p = {.n = 0};
    for (uint32_t a = 0; a < n->n_axes; a++)
        if (n->axes[a].extent != 1)
            p.from[p.n++] = a;
    if (p.n < n->n_axes && !n->is_scan && !n->finds_position)
        pick_axes(u, k, n, &p);
}

/* -- instructions -- */

bool oi_port_same_entry(const oi_port *a, const oi_port *b)
{
    bool same = a->n_entry == b->n_entry;
    for (uint32_t i = 0; same && i < a->n_entry; i++)
        same = oi_code_same(&a->entry[i], &b->entry[i]);
    return same;
}

bool oi_port_same(const oi_port *a, const oi_port *b)
{
    return a->tensor == b->tensor && oi_port_same_entry(a, b);
}

bool oi_tensor_same_type(const oi_tensor *a, const oi_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

bool oi_sop_same_place(const oi_sop *a, const oi_sop *b, uint32_t rank)
{
    if (a->is_flat != b->is_flat || a->may_leave || b->may_leave)
        return false;
    for (uint32_t d = 0; d < (a->is_flat ? 1 : rank); d++)
        if (a->at[d].base != b->at[d].base || a->at[d].bend || b->at[d].bend ||
            a->at[d].index != OI_NEST_NONE || b->at[d].index != OI_NEST_NONE ||
            memcmp(a->at[d].step, b->at[d].step, sizeof a->at[d].step) != 0)
            return false;
    return true;
}

void oi_axis_map_begin(oi_axis_map *m)
{
    memset(m, 0, sizeof *m); /* they are compared as bytes */
    for (uint32_t a = 0; a < OI_NEST_AXES; a++)
        m->of[a].index = OI_NEST_NONE;
}

bool oi_coord_map(const oi_nest_coord *c, const oi_snest *n, const oi_axis_map *m,
                  oi_nest_coord *out)
{
    uint32_t moves = 0, special = OI_NO_ID;
    *out = *c;
    memset(out->step, 0, sizeof out->step);
    for (uint32_t a = 0; a < n->n_axes; a++) {
        if (c->step[a] == 0 || n->axes[a].extent == 1)
            continue;
        moves++;
        if (is_special(&m->of[a]))
            special = a;
        out->base += c->step[a] * m->of[a].base;
        for (uint32_t b = 0; b < OI_NEST_AXES; b++)
            out->step[b] += c->step[a] * m->of[a].step[b];
    }
    if (special == OI_NO_ID)
        return true;
    bool alone = moves == 1 && c->step[special] == 1 && c->base == 0 && !is_special(c);
    *out = m->of[special];
    return alone;
}

bool oi_coord_has_fns(const oi_coord_fns *f)
{
    static const oi_coord_fns none;
    return f && memcmp(f, &none, sizeof none) != 0;
}

/* The one axis that stands there, and nothing else; OI_NO_ID: it is more. */
static uint32_t bare_axis(const oi_nest_coord *c, const oi_coord_fns *f)
{
    uint32_t axis = OI_NO_ID, n = 0;
    for (uint32_t a = 0; a < OI_NEST_AXES; a++)
        if (c->step[a] != 0) {
            axis = c->step[a] == 1 ? a : OI_NO_ID;
            n++;
        }
    return n == 1 && c->base == 0 && !is_special(c) && !oi_coord_has_fns(f) ? axis : OI_NO_ID;
}

bool oi_coord_map_fns(const oi_nest_coord *c, const oi_coord_fns *f, const oi_snest *n,
                      const oi_axis_map *m, oi_coord_fns *out, bool *are_own)
{
    const oi_coord_fns *other = NULL;
    memset(out, 0, sizeof *out);
    *are_own = oi_coord_has_fns(f);
    if (*are_own) {
        *out = *f;
        memset(out->step, 0, sizeof out->step);
    }
    for (uint32_t a = 0; a < n->n_axes; a++) {
        if ((c->step[a] == 0 && !(f && f->step[a])) || n->axes[a].extent == 1)
            continue;
        if (oi_coord_has_fns(m->fns[a]))
            other = m->fns[a];
        if (!*are_own)
            continue;
        const uint32_t b = bare_axis(&m->of[a], m->fns[a]);
        if (b == OI_NO_ID || out->step[b])
            return false;
        out->step[b] = f->step[a];
    }
    if (!other)
        return true;
    *out = *other;
    return !*are_own && bare_axis(c, f) != OI_NO_ID;
}

static uint32_t port_in(oi_unit *u, oi_skernel *to, const oi_port *p)
{
    for (uint32_t d = 0; d < u->tensors.at[p->tensor].rank; d++)
        if (u->tensors.at[p->tensor].run_dims >> d & 1)
            oi_length_scalar(u, to, p->tensor, d);
    for (size_t i = 0; i < to->ports.n; i++)
        if (oi_port_same(&to->ports.at[i], p)) {
            to->ports.at[i].is_written |= p->is_written;
            to->ports.at[i].is_dropped = false;
            return (uint32_t)i;
        }
    *OI_PUSH(u->arena, &to->ports) = *p;
    return (uint32_t)to->ports.n - 1;
}

static uint32_t scalar_in(oi_unit *u, oi_skernel *to, const oi_kscalar *s)
{
    oi_kscalar own = *s;
    unsigned same = 0;
    for (size_t i = 0; i < to->scalars.n; i++)
        same += strncmp(to->scalars.at[i].name, s->name, strlen(s->name)) == 0;
    if (same)
        own.name = oi_arena_printf(u->arena, "%s_%u", s->name, same + 1);
    *OI_PUSH(u->arena, &to->scalars) = own;
    return (uint32_t)to->scalars.n - 1;
}

/* A call whose numbers are those of another kernel now. */
static const oi_scall *call_in(oi_unit *u, oi_skernel *to, const oi_skernel *from,
                               const oi_scall *c)
{
    bool any = false;
    for (uint32_t i = 0; c && c->scalars && i < c->op->n_attrs; i++)
        any |= c->scalars[i] != OI_NO_ID;
    if (!any || to == from)
        return c;
    oi_scall *own = oi_arena_alloc(u->arena, sizeof *own);
    uint32_t *scalars = oi_arena_alloc(u->arena, c->op->n_attrs * sizeof *scalars);
    *own = *c;
    for (uint32_t i = 0; i < c->op->n_attrs; i++)
        scalars[i] = c->scalars[i] == OI_NO_ID ? OI_NO_ID
                                               : scalar_in(u, to, &from->scalars.at[c->scalars[i]]);
    own->scalars = scalars;
    return own;
}

static const oi_nest_coord *moved_coords(oi_moving *m, const oi_sop *op, uint32_t rank)
{
    bool changes = m->map != NULL;
    for (uint32_t d = 0; d < rank; d++)
        changes |= op->at[d].index != OI_NEST_NONE && op->at[d].index != m->ids[op->at[d].index];
    if (!changes)
        return op->at;
    oi_nest_coord *at = oi_arena_alloc(m->u->arena, (rank + 1) * sizeof *at);
    for (uint32_t d = 0; d < rank; d++) {
        oi_nest_coord own = op->at[d];
        if (own.index != OI_NEST_NONE) /* what is mapped below brings its own number */
            own.index = m->ids[own.index];
        at[d] = own;
        m->fails |= m->map && !oi_coord_map(&own, m->nest, m->map, &at[d]);
    }
    return at;
}

static void move_fn(const oi_moving *m, oi_fn *fn)
{
    *fn = oi_fn_moved(m->u, m->to, m->from, *fn);
}

/* What stands beside the moved coordinates; NULL: they are numbers. */
static const oi_coord_fns *moved_fns(oi_moving *m, const oi_sop *op, uint32_t rank)
{
    bool has_fns = op->fns != NULL;
    for (uint32_t a = 0; a < m->nest->n_axes; a++)
        has_fns |= m->map->fns[a] != NULL;
    if (!has_fns)
        return NULL;
    oi_coord_fns *fns = oi_arena_alloc(m->u->arena, (rank + 1) * sizeof *fns);
    bool any = false, are_own;
    for (uint32_t d = 0; d < rank; d++) {
        oi_coord_fns *f = &fns[d];
        m->fails |= !oi_coord_map_fns(&op->at[d], op->fns ? &op->fns[d] : NULL, m->nest, m->map, f,
                                      &are_own);
        any |= oi_coord_has_fns(f);
        if (!are_own)
            continue;
        oi_fn *const own[] = {&f->base, &f->bend_from, &f->bend_to, &f->counted_before,
                              &f->counted_after};
        for (size_t i = 0; i < OI_COUNT(own); i++)
            move_fn(m, own[i]);
        for (uint32_t a = 0; a < OI_NEST_AXES; a++)
            move_fn(m, &f->step[a]);
    }
    return any ? fns : NULL;
}

oi_sop oi_sop_moved(oi_moving *m, const oi_sop *op)
{
    oi_sop own = *op;
    if (op->at) {
        const uint32_t rank = n_coords(m->u, m->from, op);
        own.at = moved_coords(m, op, rank);
        if (m->map)
            own.fns = moved_fns(m, op, rank);
        if (m->to != m->from)
            move_fn(m, &own.length_fn);
        if (op->kind != OI_SOP_PLACE && m->to != m->from)
            own.port = port_in(m->u, m->to, &m->from->ports.at[op->port]);
    }
    if (op->guard && m->map) {
        oi_nest_coord *g = oi_arena_alloc(m->u->arena, sizeof *g);
        m->fails |= !oi_coord_map(op->guard, m->nest, m->map, g) || is_special(g);
        own.guard = g;
    }
    own.call = call_in(m->u, m->to, m->from, op->call);
    for (uint32_t i = 0; i < op->n_args; i++)
        if (op->args[i] != OI_NO_ID)
            own.args[i] = m->ids[op->args[i]];
    if (op->kind == OI_SOP_EVAL && op->place != OI_NO_ID)
        own.place = m->ids[op->place];
    return own;
}

uint32_t oi_sop_as_stored(oi_unit *u, oi_sops *out, uint32_t base, const oi_sop *store,
                          uint32_t value)
{
    if (oi_form_of(store->type) == store->type || store->is_raw)
        return value;
    *OI_PUSH(u->arena, out) = (oi_sop){.kind = OI_SOP_CONVERT,
                                       .type = store->type,
                                       .from = store->type,
                                       .args = {value},
                                       .n_args = 1};
    return base + (uint32_t)out->n - 1;
}

void oi_sop_unflatten(oi_unit *u, const oi_skernel *k, const oi_snest *n, oi_sop *op)
{
    const oi_tensor *t = tensor_of(u, k, op);
    oi_radix r;
    oi_split want;
    if (!op->is_flat || t->rank == 0 || k->is_dynamic || !oi_sop_is_affine(u, k, op) ||
        !oi_radix_of_tensor(t, &r))
        return;
    oi_nest_coord *at = oi_arena_alloc(u->arena, (t->rank + 1) * sizeof *at);
    for (uint32_t d = 0; d < t->rank; d++)
        at[d].index = OI_NEST_NONE;
    if (!oi_radix_digits(n, &op->at[0], &r, at, &want))
        return;
    op->at = at;
    op->is_flat = false;
}

/* -- kernels -- */

const oi_snest *oi_kernel_map(const oi_skernel *k)
{
    return k->is_dynamic ? NULL : oi_kernel_open_map(k);
}

const oi_snest *oi_kernel_open_map(const oi_skernel *k)
{
    if (k->nests.n != 1)
        return NULL;
    const oi_snest *n = &k->nests.at[0];
    if (n->kind != OI_NEST_MAP || n->is_serial || n->combines_out || n->pre.n == 0)
        return NULL;
    for (size_t i = 0; i < n->pre.n; i++)
        if ((n->pre.at[i].kind == OI_SOP_STORE) != (i + 1 == n->pre.n))
            return NULL;
    return n;
}

void oi_kernel_drop_dim(oi_unit *u, oi_skernel *k, uint32_t tensor, uint32_t dim)
{
    oi_tensor *t = &u->tensors.at[tensor];
    oi_sops *ops;
    t->rank--;
    memmove(&t->dims[dim], &t->dims[dim + 1], (t->rank - dim) * sizeof *t->dims);
    for (size_t l = 0; (ops = oi_kernel_sops(k, l)) != NULL; l++)
        for (size_t i = 0; i < ops->n; i++) {
            oi_sop *op = &ops->at[i];
            if (!oi_sop_is_access(op) || k->ports.at[op->port].tensor != tensor)
                continue;
            oi_nest_coord *at = oi_arena_alloc(u->arena, (t->rank + 1) * sizeof *at);
            for (uint32_t d = 0; d < t->rank; d++)
                at[d] = op->at[d + (d >= dim)];
            op->at = at;
        }
}

void oi_kernel_drop_port(oi_skernel *k, uint32_t tensor)
{
    for (size_t i = 0; i < k->ports.n; i++)
        if (k->ports.at[i].tensor == tensor)
            k->ports.at[i].is_dropped = true;
}

void oi_kernel_take_nodes(oi_unit *u, oi_skernel *to, const oi_skernel *from, bool first)
{
    OI_VEC(const oi_pnode *) all = {0};
    for (int half = 0; half < 2; half++) {
        const oi_skernel *k = (half == 0) == first ? from : to;
        for (size_t i = 0; i < k->nodes.n; i++) {
            bool known = false;
            for (size_t j = 0; j < all.n; j++)
                known |= all.at[j] == k->nodes.at[i];
            if (!known)
                *OI_PUSH(u->arena, &all) = k->nodes.at[i];
        }
    }
    to->nodes.at = all.at;
    to->nodes.n = all.n;
    to->nodes.cap = all.cap;
}

/* What a statement mentions, against what stands between it and its new place. */
typedef struct between {
    oi_unit *u;
    uint32_t graph;
    const oi_stmts *list;
    size_t first, last;
    bool reads_only;
    oi_mention of;
    bool meets;
} between;

static void meet(void *ctx, const oi_mention *m)
{
    between *b = ctx;
    b->meets |= m->tensor == b->of.tensor && m->tensor != OI_NO_ID && (m->writes || b->of.writes);
}

static void look_between(void *ctx, const oi_mention *m)
{
    between *b = ctx;
    if (b->reads_only && m->writes)
        return;
    b->of = *m;
    for (size_t i = b->first; i < b->last && !b->meets; i++) {
        oi_stmt *s = &b->list->at[i];
        oi_stmt_mentions(b->u, b->graph, s, meet, b);
        oi_stmts_mentions(b->u, b->graph, &s->body, meet, b);
    }
}

/* Work alone: nothing that calls, waits, shows or ends. */
static bool is_work(const oi_stmt *s)
{
    bool work = s->kind == OI_STMT_KERNEL || s->kind == OI_STMT_SET || s->kind == OI_STMT_LIMIT ||
                s->kind == OI_STMT_LOOP || s->kind == OI_STMT_SIZES || s->kind == OI_STMT_NEED ||
                s->kind == OI_STMT_RESIZE || s->kind == OI_STMT_LOG || s->kind == OI_STMT_VIEW;
    for (size_t i = 0; work && i < s->body.n; i++)
        work = is_work(&s->body.at[i]);
    return work;
}

bool oi_stmts_may_pass(oi_unit *u, uint32_t graph, const oi_stmts *list, size_t at, size_t first,
                       size_t last, bool reads_only)
{
    between b = {.u = u, .graph = graph, .list = list, .first = first, .last = last};
    b.reads_only = reads_only;
    for (size_t i = first; i < last; i++) /* what is only computed later may not be at all */
        if (!is_work(&list->at[i]) && !(reads_only && list->at[i].kind == OI_STMT_SHAPE))
            return false;
    oi_stmt_mentions(u, graph, &list->at[at], look_between, &b);
    return !b.meets;
}

void oi_units_tidy_ports(oi_unit *u)
{
    for (size_t k = 0; k < u->kernels.n; k++) {
        oi_skernel *kernel = &u->kernels.at[k];
        uint32_t *to = oi_arena_alloc(u->arena, (kernel->ports.n + 1) * sizeof *to), n = 0;
        for (size_t i = 0; i < kernel->ports.n; i++) {
            to[i] = n;
            if (!kernel->ports.at[i].is_dropped)
                kernel->ports.at[n++] = kernel->ports.at[i];
        }
        kernel->ports.n = n;
        oi_sops *ops;
        for (size_t l = 0; (ops = oi_kernel_sops(kernel, l)) != NULL; l++) {
            for (size_t i = 0; i < ops->n; i++)
                ops->at[i].port = oi_sop_is_access(&ops->at[i]) ? to[ops->at[i].port] : 0;
        }
    }
}
