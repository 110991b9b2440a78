/* place.c: prints where elements are: coordinates, offsets, and conditions that an element exists.
 */
#include "emit/nest.h"

#include <inttypes.h>
#include <stdlib.h>

const char *oi_place_scalar(const oi_nest_printer *p, uint32_t scalar)
{
    return p->scalars ? p->scalars[scalar] : p->kernel->scalars.at[scalar].name;
}

const char *oi_place_axis(const oi_printing *x, uint32_t a)
{
    if (x->axes)
        return x->axes[a];
    if (a < sizeof OI_AXIS_LETTERS - 1 && x->row && a + 2 == x->n->n_axes)
        return oi_arena_printf(x->p->arena, "(%c + %u)", OI_AXIS_LETTERS[a], x->row);
    if (a < sizeof OI_AXIS_LETTERS - 1)
        return oi_arena_printf(x->p->arena, "%c", OI_AXIS_LETTERS[a]);
    return oi_arena_printf(x->p->arena, "i%u", a);
}

/* "i * 8 + j - 3": the sum of steps over the axes, plus data. */
typedef struct sum {
    oi_buf text;
} sum;

/* A constant, or the name of a run-time number. */
const char *oi_place_number(const oi_printing *x, int64_t value, oi_fn fn)
{
    return fn ? x->p->fns[fn] : oi_arena_printf(x->p->arena, "%" PRId64, value);
}

/* The length of a port's tensor along a dim. */
const char *oi_place_dim(const oi_printing *x, uint32_t port, uint32_t d)
{
    const oi_skernel *k = x->p->kernel;
    uint32_t tensor = k->ports.at[port].tensor;
    for (size_t i = 0; i < k->scalars.n; i++)
        if (k->scalars.at[i].is_length && k->scalars.at[i].tensor == tensor &&
            k->scalars.at[i].dim == d)
            return oi_place_scalar(x->p, (uint32_t)i);
    const oi_tensor *t = &x->p->plan->tensors.at[tensor];
    return oi_arena_printf(x->p->arena, "%" PRId64, t->ring == d + 1 ? t->rows : t->dims[d]);
}

static void add_term(sum *s, int64_t factor, const char *what)
{
    if (factor == 0)
        return;
    bool first = s->text.n == 0;
    uint64_t size = factor < 0 ? 0 - (uint64_t)factor : (uint64_t)factor;
    oi_buf_puts(&s->text, first ? (factor < 0 ? "-" : "") : factor < 0 ? " - " : " + ");
    if (!what)
        oi_buf_printf(&s->text, "%" PRIu64, size);
    else if (size == 1)
        oi_buf_puts(&s->text, what);
    else
        oi_buf_printf(&s->text, "%s * %" PRIu64, what, size);
}

static const char *sum_text(const oi_printing *x, sum *s)
{
    if (s->text.n == 0)
        oi_buf_puts(&s->text, "0");
    return oi_buf_to_arena(&s->text, x->p->arena);
}

/* A number of another type as a position. */
const char *oi_place_position(const oi_printing *x, const char *text)
{
    const char *as = x->p->lang->as_index;
    return as ? oi_arena_printf(x->p->arena, "%s(%s)", as, text) : text;
}

/* Whether the nest has a loop for the axis: one of length 1 has no counter. */
bool oi_place_has_loop(const oi_snest *n, uint32_t a)
{
    return !oi_nest_is_unrolled(n, a) && (n->axes[a].extent != 1 || (n->extents && n->extents[a]));
}

const char *oi_place_coord(const oi_printing *x, const oi_nest_coord *c, const oi_coord_fns *f)
{
    static const char *const bends[] = {
        [OI_BEND_EDGE] = "edge", [OI_BEND_REFLECT] = "reflect", [OI_BEND_WRAP] = "wrap"};
    static const oi_coord_fns none = {0};
    sum s = {{0}};
    int64_t base = c->base;
    f = f ? f : &none;
    for (uint32_t a = 0; a < x->n->n_axes; a++) {
        const char *i = oi_place_axis(x, a);
        base += oi_nest_is_unrolled(x->n, a) ? c->step[a] * x->round : 0;
        if (!oi_place_has_loop(x->n, a))
            continue;
        if (f->step[a])
            add_term(&s, 1, oi_arena_printf(x->p->arena, "%s * %s", i, x->p->fns[f->step[a]]));
        else
            add_term(&s, c->step[a], i);
    }
    if (c->index != OI_NEST_NONE)
        add_term(&s, 1, x->values[c->index]);
    if (f->base)
        add_term(&s, 1, x->p->fns[f->base]);
    else
        add_term(&s, base, NULL);
    const char *text = sum_text(x, &s);
    if (c->bend == OI_BEND_NONE)
        return text;
    return oi_arena_printf(x->p->arena, "oi_bend_%s(%s, %s, %s)", bends[c->bend], text,
                           oi_place_number(x, c->bend_from, f->bend_from),
                           oi_place_number(x, c->bend_to, f->bend_to));
}

const oi_coord_fns *oi_place_fns(const oi_sop *op, uint32_t d)
{
    return op->fns ? &op->fns[d] : NULL;
}

const oi_tensor *oi_place_tensor(const oi_printing *x, const oi_sop *op)
{
    return &x->p->plan->tensors.at[x->p->kernel->ports.at[op->port].tensor];
}

/* "(i * 4 + j) * x_n2 + k": strides depend on lengths. */
static const char *dense_text(const oi_printing *x, const oi_sop *op)
{
    const char *text = "0";
    for (uint32_t d = 0; d < oi_place_tensor(x, op)->rank; d++) {
        const char *c = oi_place_coord(x, &op->at[d], oi_place_fns(op, d)),
                   *dim = oi_place_dim(x, op->port, d);
        if (d == 0 || strcmp(text, "0") == 0)
            text = c;
        else if (strcmp(dim, "1") != 0)
            text = oi_arena_printf(x->p->arena, strchr(text, ' ') ? "(%s) * %s%s%s" : "%s * %s%s%s",
                                   text, dim, strcmp(c, "0") ? " + " : "", strcmp(c, "0") ? c : "");
    }
    return text;
}

/* A position in a line buffer of n rows. */
static const char *wrapped(const oi_printing *x, const char *at, int64_t n)
{
    const oi_lang *l = x->p->lang;
    if (!l->whole_index)
        return oi_arena_printf(x->p->arena, "(%s) %% %" PRId64, at, n);
    return oi_arena_printf(x->p->arena, "(%s)((%s)(%s) %% %" PRId64 ")", l->index, l->whole_index,
                           at, n);
}

/* The line buffer row of a load or store. */
static const char *ring_row(const oi_printing *x, const oi_sop *op)
{
    const oi_tensor *t = oi_place_tensor(x, op);
    const uint32_t d = t->ring - 1;
    const char *text = wrapped(x, oi_place_coord(x, &op->at[d], NULL), t->dims[d]);
    for (uint32_t i = 0; i < x->n_rows; i++)
        if (strcmp(x->rows[i].text, text) == 0)
            return x->rows[i].name;
    return text;
}

static void name_row(oi_printing *x, const oi_sop *op, uint32_t axis)
{
    uint32_t deepest = OI_NO_ID;
    if (op->is_flat || !op->at || op->kind == OI_SOP_PLACE || !oi_place_tensor(x, op)->ring)
        return;
    for (uint32_t a = 0; a < x->n->n_axes; a++)
        if (op->at[oi_place_tensor(x, op)->ring - 1].step[a] && oi_place_has_loop(x->n, a))
            deepest = a;
    const char *text = ring_row(x, op);
    if (deepest != axis || strchr(text, '%') == NULL || x->n_rows == OI_COUNT(x->rows))
        return;
    const char *name = oi_arena_printf(x->p->arena, "row%u", x->n_names++);
    oi_out_line(x->p->out, "const %s %s = %s;", x->p->lang->index, name, text);
    x->rows[x->n_rows].text = text;
    x->rows[x->n_rows].name = name;
    x->rows[x->n_rows++].axis = axis;
}

void oi_place_name_rows(oi_printing *x, uint32_t axis)
{
    for (size_t i = 0; i < x->n->pre.n; i++)
        name_row(x, &x->n->pre.at[i], axis);
    for (size_t i = 0; i < x->n->post.n; i++)
        name_row(x, &x->n->post.at[i], axis);
}

void oi_place_forget_rows(oi_printing *x, uint32_t axis)
{
    while (x->n_rows && x->rows[x->n_rows - 1].axis >= axis)
        x->n_rows--;
}

/* An epilogue counts places of the result; in a line buffer, places of the rows it holds. */
static const char *ring_text(const oi_printing *x, const oi_sop *op)
{
    const oi_tensor *t = oi_place_tensor(x, op);
    int64_t kept = 1;
    sum s = {{0}};
    for (uint32_t d = t->ring - 1; d < t->rank; d++)
        kept *= t->dims[d];
    for (uint32_t a = 0; a < x->n->n_axes; a++) {
        const char *i = oi_place_axis(x, a);
        if (!oi_place_has_loop(x->n, a))
            continue;
        if (a == OI_EPILOGUE_PLACE)
            i = wrapped(x, i, kept);
        add_term(&s, op->at[0].step[a], i);
    }
    return sum_text(x, &s);
}

/* "oi_q_place(at0, j, 18, 32, 272, 8)": an element of packed weights. */
static const char *packed_text(const oi_printing *x, const oi_sop *op, const oi_tensor *t)
{
    const int64_t *sizes = t->view->places[t->view_input].sizes;
    oi_buf b = {0};
    oi_buf_printf(&b, "%s(%s, %s", t->view->places[t->view_input].function,
                  oi_place_coord(x, &op->at[0], NULL), oi_place_coord(x, &op->at[1], NULL));
    for (int i = 0; i < OI_PLACE_SIZES; i++)
        oi_buf_printf(&b, ", %" PRId64, sizes[i]);
    oi_buf_putc(&b, ')');
    return oi_buf_to_arena(&b, x->p->arena);
}

const char *oi_place_element(const oi_printing *x, const oi_sop *op)
{
    const oi_tensor *t = oi_place_tensor(x, op);
    if (t->view)
        return packed_text(x, op, t);
    if (op->is_flat && t->ring)
        return ring_text(x, op);
    if (op->is_flat)
        return oi_place_coord(x, &op->at[0], oi_place_fns(op, 0));
    if (x->p->kernel->is_dynamic)
        return dense_text(x, op);
    return oi_place_group(x, op, 1, NULL);
}

/* Whether the element's group of `each` is a linear function of the axes alone. */
static bool has_groups(const oi_printing *x, const oi_sop *op, int64_t each, const int64_t *steps)
{
    for (uint32_t a = 0; a < x->n->n_axes; a++)
        if (oi_place_has_loop(x->n, a) && steps[a] % each != 0)
            return false;
    for (uint32_t d = 0; d < oi_place_tensor(x, op)->rank; d++)
        if (op->at[d].bend != OI_BEND_NONE || op->at[d].index != OI_NEST_NONE)
            return false;
    return true;
}

/* The axes' terms of an offset, largest steps first. */
static void add_axes(const oi_printing *x, sum *s, const int64_t *steps, int64_t each)
{
    uint32_t order[OI_NEST_AXES], n = 0;
    for (uint32_t a = 0; a < x->n->n_axes; a++) {
        uint32_t at = n;
        if (!oi_place_has_loop(x->n, a))
            continue;
        for (; at > 0 && llabs(steps[order[at - 1]]) < llabs(steps[a]); at--)
            order[at] = order[at - 1];
        order[at] = a;
        n++;
    }
    for (uint32_t i = 0; i < n; i++)
        add_term(s, steps[order[i]] / each, oi_place_axis(x, order[i]));
}

const char *oi_place_group(const oi_printing *x, const oi_sop *op, int64_t each, int64_t *part)
{
    const oi_tensor *t = oi_place_tensor(x, op);
    int64_t stride = 1, base = 0, steps[OI_NEST_AXES] = {0}, strides[OI_MAX_RANK];
    sum s = {{0}};
    if (op->is_flat || x->p->kernel->is_dynamic)
        return NULL;
    for (uint32_t d = t->rank; d-- > 0; stride *= t->dims[d])
        strides[d] = stride;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (op->at[d].bend != OI_BEND_NONE || t->ring == d + 1)
            continue;
        base += strides[d] * op->at[d].base;
        for (uint32_t a = 0; a < x->n->n_axes; a++)
            steps[a] += strides[d] * op->at[d].step[a];
    }
    if (part && !has_groups(x, op, each, steps))
        return NULL;
    for (uint32_t a = 0; a < x->n->n_axes; a++)
        base += oi_nest_is_unrolled(x->n, a) ? steps[a] * x->round : 0;
    add_axes(x, &s, steps, each);
    if (part) {
        *part = base % each;
        base /= each;
    }
    for (uint32_t d = 0; d < t->rank; d++) {
        if (t->ring == d + 1)
            add_term(&s, strides[d], ring_row(x, op));
        else if (op->at[d].bend != OI_BEND_NONE)
            add_term(&s, strides[d], oi_place_coord(x, &op->at[d], NULL));
        else if (op->at[d].index != OI_NEST_NONE)
            add_term(&s, strides[d], x->values[op->at[d].index]);
    }
    add_term(&s, base, NULL);
    return sum_text(x, &s);
}

/* "a >= 0 && a < 5 && ...": the condition that the element exists; NULL: always true. */
const char *oi_place_inside(const oi_printing *x, const oi_sop *op)
{
    const oi_tensor *t = oi_place_tensor(x, op);
    const char *both = x->p->lang->both ? x->p->lang->both : "&&";
    oi_buf out = {0};
    for (uint32_t d = 0; d < (op->is_flat ? 1 : t->rank); d++) {
        if (!op->at[d].may_leave)
            continue;
        const char *c = oi_place_coord(x, &op->at[d], oi_place_fns(op, d));
        oi_buf_printf(&out, "%s%s >= 0 %s %s < %s",
                      out.n ? oi_arena_printf(x->p->arena, " %s ", both) : "", c, both, c,
                      oi_place_dim(x, op->port, d));
    }
    if (op->guard)
        oi_buf_printf(&out, "%s%s >= 0", out.n ? oi_arena_printf(x->p->arena, " %s ", both) : "",
                      oi_place_coord(x, op->guard, op->guard_fns));
    return out.n ? oi_buf_to_arena(&out, x->p->arena) : NULL;
}
