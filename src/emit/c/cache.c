/* cache.c: prints cache.write, increment, decrement and reset on persistent memory. Storage
 * has the maximum sizes, so growing only changes counters; cells beyond the current sizes hold the
 * initial value. Selections are processed run by run: a contiguous run is copied at once. */
#include "emit/c/c.h"

#include <inttypes.h>

typedef struct access {
    oi_cprog *c;
    const oi_stmt *s;
    const oi_store_var *v;
    const oi_tensor *t;
    const oi_paccess *a;
    bool writes, resets;
    const char *size[2 * OI_MAX_RANK];  /* current sizes */
    const char *own[OI_MAX_RANK];       /* meaning of the names in its own index expressions */
    const char *start[2 * OI_MAX_RANK]; /* of the selection */
    const char *count[2 * OI_MAX_RANK];
    oi_selection known; /* of the selection, before the program runs */
} access;

static void fail_if(access *x, int code, const char *what, const char *fmt, ...) OI_PRINTF(4, 5);
static void fail_if(access *x, int code, const char *what, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *cond = oi_arena_vprintf(x->c->arena, fmt, args);
    va_end(args);
    oi_out_line(&x->c->out, "if (%s)", cond);
    oi_out_line(&x->c->out, "    return %d; /* E%03d: %s */", code, code, what);
}

static void note(access *x, oi_undo_what what, const char *at, const char *n)
{
    oi_c_put_log(x->c, x->s, what, at, n);
}

static void note_sizes(access *x)
{
    if (x->v->grows)
        note(x, OI_UNDO_SIZES,
             oi_arena_printf(x->c->arena, "s->oi_state_data.oi_size_%s", oi_c_field(x->c, x->t)),
             oi_arena_printf(x->c->arena, "sizeof s->oi_state_data.oi_size_%s",
                             oi_c_field(x->c, x->t)));
}

static const char *number(access *x, int64_t v)
{
    return oi_arena_printf(x->c->arena, "%" PRId64, v);
}

static bool is_counted(const access *x, uint32_t axis)
{
    return x->v->grows >> axis & 1;
}

static void set_sizes(access *x)
{
    const oi_pvar *var = x->t->var;
    for (uint32_t i = 0; i < x->v->rank; i++) {
        x->size[i] = is_counted(x, i)
                         ? oi_arena_printf(x->c->arena, "s->oi_state_data.oi_size_%s[%u]",
                                           oi_c_field(x->c, x->t), i)
                         : number(x, x->v->most[i]);
        if (i < var->n_axes && i < OI_MAX_RANK)
            x->own[i] = i < var->n_table ? x->size[i]
                                         : oi_arena_printf(x->c->arena, "(%s - %" PRIu64 ")",
                                                           x->size[i], var->dims[i - var->n_table]);
    }
}

/* The number of a selector: a literal, or a local variable. */
static const char *local(access *x, const char *stem, uint32_t axis, const oi_code *code)
{
    int64_t fixed;
    if (oi_code_is_int(code, &fixed))
        return number(x, fixed);
    const char *name = oi_arena_printf(x->c->arena, "%s%u", stem, axis);
    oi_out_line(&x->c->out, "const int64_t %s = %s;", name, oi_c_code(x->c, code, x->own));
    return name;
}

static const char *limit_text(access *x, uint32_t axis)
{
    return is_counted(x, axis) && x->writes ? number(x, x->v->most[axis]) : x->size[axis];
}

static bool asks(const access *x, uint32_t axis, oi_axis_check check)
{
    return x->known.axes[axis].checks & check;
}

static void select_slice(access *x, uint32_t i, const oi_psel *sel)
{
    const oi_selected_axis *known = &x->known.axes[i];
    int64_t fixed;
    const char *from = sel->start.n ? local(x, "from", i, &sel->start) : "0";
    if (asks(x, i, OI_AXIS_NEGATIVE))
        fail_if(x, 42, "a negative start", "%s < 0", from);
    const char *to = x->size[i];
    if (sel->end.n) {
        const char *end = local(x, "end", i, &sel->end);
        const bool is_known = oi_code_is_int(&sel->end, &fixed);
        to = oi_arena_printf(x->c->arena, "to%u", i);
        if (!is_known || (fixed < 0 && is_counted(x, i)))
            oi_out_line(&x->c->out, "const int64_t to%u = oi_end(%s, %s);", i, end, x->size[i]);
        else
            to = number(x, fixed < 0 ? fixed + x->v->most[i] : fixed);
    }
    if (asks(x, i, OI_AXIS_BACKWARD))
        fail_if(x, 46, "a slice that ends before it starts", "%s < %s", to, from);
    if (asks(x, i, OI_AXIS_END))
        fail_if(x, 47, "out of range", "%s > %s", to, limit_text(x, i));
    x->start[i] = from;
    x->count[i] = known->given >= 0   ? number(x, known->given)
                  : known->start == 0 ? to
                                      : oi_arena_printf(x->c->arena, "(%s - %s)", to, from);
}

/* The end of the selection. */
static const char *end_text(const access *x, uint32_t i)
{
    return x->known.axes[i].start == 0
               ? x->count[i]
               : oi_arena_printf(x->c->arena, "%s + %s", x->start[i], x->count[i]);
}

static void select_one(access *x, uint32_t i, const oi_psel *sel)
{
    int64_t fixed;
    x->count[i] = "1";
    if (x->known.axes[i].is_inside && !oi_code_is_int(&sel->start, &fixed)) {
        x->start[i] = oi_c_code(x->c, &sel->start, x->own);
        return;
    }
    x->start[i] = local(x, "at", i, &sel->start);
    if (asks(x, i, OI_AXIS_NEGATIVE))
        fail_if(x, 42, "a negative index", "%s < 0", x->start[i]);
    if (asks(x, i, OI_AXIS_END))
        fail_if(x, 47, "out of range", "%s >= %s", x->start[i], limit_text(x, i));
}

static void select_axis(access *x, uint32_t i, const oi_psel *sel)
{
    if (sel && sel->is_slice) {
        select_slice(x, i, sel);
    } else if (sel) {
        select_one(x, i, sel);
    } else {
        x->start[i] = "0";
        x->count[i] = x->size[i];
    }
}

/* All auto axes are scalars: the selectors say how far the tensor has grown. */
static void grow_auto(access *x)
{
    const oi_pvar *var = x->t->var;
    for (uint32_t i = var->n_table; i < var->n_axes; i++) {
        const char *to = local(x, "grown", i, &x->a->sels[i].start);
        fail_if(x, 42, "a negative index", "%s < 0", to);
        fail_if(x, 47, "growth beyond the bound", "%s > %" PRId64, to,
                x->v->most[i] - (int64_t)var->dims[i - var->n_table]);
        oi_out_line(&x->c->out, "if (%s + %" PRIu64 " > %s)", to, var->dims[i - var->n_table],
                    x->size[i]);
        oi_out_line(&x->c->out, "    %s = %s + %" PRIu64 ";", x->size[i], to,
                    var->dims[i - var->n_table]);
    }
}

static void make_selection(access *x)
{
    const oi_pvar *var = x->t->var;
    set_sizes(x);
    oi_selection_find(oi_c_program(x->c), x->v, x->t, &x->c->p->tensors.at[x->s->b.tensor], x->s,
                      &x->known);
    if (x->known.grows) {
        note_sizes(x);
        grow_auto(x);
    }
    for (uint32_t i = 0; i < x->v->rank; i++) {
        bool given = i < x->a->n && !(x->known.grows && i >= var->n_table);
        select_axis(x, i, given ? &x->a->sels[i] : NULL);
    }
}

static void check_length(access *x, uint32_t axis, uint32_t d)
{
    fail_if(x, 51, "another shape", "%s != %s", x->count[axis],
            oi_c_length(x->c, x->s->b.tensor, d));
}

/* Checks that the other operand has the selection's shape. */
static void check_shape(access *x, const oi_tensor *other)
{
    uint32_t d = 0;
    for (uint32_t i = 0; i < x->v->rank; i++) {
        if (!x->known.axes[i].keeps)
            continue;
        if (other->run_dims >> d & 1) {
            check_length(x, i, d);
        } else if (asks(x, i, OI_AXIS_SHAPE)) {
            fail_if(x, 51, "another shape", "%s != %" PRId64, x->count[i], other->dims[d]);
            x->count[i] = number(x, other->dims[d]);
        }
        d++;
    }
}

/* -- walking -- */

static bool reaches_beyond(const access *x, uint32_t i)
{
    return is_counted(x, i) && i < x->v->n_table && !x->known.axes[i].is_inside;
}

/* The position along an axis before that: a loop counter, or the only position. */
static const char *position(access *x, uint32_t axis)
{
    return x->known.axes[axis].count == 1 ? x->start[axis]
                                          : oi_arena_printf(x->c->arena, "i%u", axis);
}

static const char *offset_text(access *x, uint32_t q)
{
    oi_buf b = {0};
    int64_t stride = 1;
    for (uint32_t i = x->v->rank; i-- > 0; stride *= x->v->most[i]) {
        bool first = x->known.axes[i].start == 0 && (i == q || x->known.axes[i].count == 1);
        if (i > q || first)
            continue;
        const char *at = i < q ? position(x, i) : x->start[i];
        oi_buf_printf(&b, "%s%s * %" PRId64, b.n ? " + " : "", at, stride);
    }
    return b.n ? oi_buf_to_arena(&b, x->c->arena) : "0";
}

static const char *run_length(access *x, uint32_t q)
{
    int64_t inner = 1;
    for (uint32_t i = q + 1; i < x->v->rank; i++)
        inner *= x->v->most[i];
    if (q == x->v->rank)
        return "1";
    if (x->known.axes[q].count >= 0)
        return number(x, x->known.axes[q].count * inner);
    return oi_arena_printf(x->c->arena, "%s * %" PRId64, x->count[q], inner);
}

static const char *beyond_text(access *x, uint32_t q)
{
    oi_buf b = {0};
    for (uint32_t i = 0; i < q && i < x->v->n_table; i++)
        if (reaches_beyond(x, i))
            oi_buf_printf(&b, "%s%s >= %" PRId64, b.n ? " || " : "", position(x, i), x->v->most[i]);
    return b.n ? oi_buf_to_arena(&b, x->c->arena) : NULL;
}

/* body(x, offset, length) for every run. */
static void walk(access *x,
                 void (*body)(access *x, const char *at, const char *n, const char *beyond))
{
    const uint32_t q = x->known.run;
    for (uint32_t i = 0; i < q; i++)
        if (x->known.axes[i].count != 1)
            oi_out_open(&x->c->out, "for (int64_t i%u = %s; i%u < %s; i%u++)", i, x->start[i], i,
                        end_text(x, i), i);
    body(x, offset_text(x, q), run_length(x, q), beyond_text(x, q));
    for (uint32_t i = 0; i < q; i++)
        if (x->known.axes[i].count != 1)
            oi_out_close(&x->c->out, "");
}

static const char *storage(const access *x)
{
    return x->t->rank
               ? oi_arena_printf(x->c->arena, "s->oi_state_data.%s", oi_c_field(x->c, x->t))
               : oi_arena_printf(x->c->arena, "(&s->oi_state_data.%s)", oi_c_field(x->c, x->t));
}

static const char *place_text(const access *x, const char *at)
{
    return strcmp(at, "0") == 0 ? storage(x)
                                : oi_arena_printf(x->c->arena, "%s + %s", storage(x), at);
}

static const char *init_text(const access *x)
{
    if (oi_dtype_bits(x->t->dtype) < 8)
        return oi_c_literal(x->c->arena, x->t->dtype, x->t->init);
    if (oi_form_of(x->t->dtype) != x->t->dtype)
        return oi_arena_printf(x->c->arena, "%" PRIu64, x->t->init);
    return oi_c_literal(x->c->arena, x->t->dtype, x->t->init);
}

static void fill_run(access *x, const char *to, const char *n)
{
    oi_out_line(&x->c->out, "for (int64_t e = 0; e < %s; e++)", n);
    if (oi_dtype_bits(x->t->dtype) < 8)
        oi_out_line(&x->c->out, "    oi_put_%s(%s + e, %s);", oi_dtype_name(x->t->dtype), to,
                    init_text(x));
    else
        oi_out_line(&x->c->out, "    %s[e] = %s;", to, init_text(x));
}

/* Logs the contents of a run. */
static void note_run(access *x, const char *at, const char *n)
{
    const unsigned bits = oi_dtype_bits(x->t->dtype);
    if (bits < 8)
        note(x, OI_UNDO_ELEMENTS,
             oi_arena_printf(x->c->arena, "%s + (%s) * %u / 8", storage(x), at, bits), "1");
    else
        note(x, OI_UNDO_ELEMENTS, place_text(x, at),
             oi_arena_printf(x->c->arena, "(size_t)(%s) * sizeof *%s", n, storage(x)));
}

static void write_run(access *x, const char *at, const char *n, const char *beyond)
{
    (void)beyond; /* writes were checked before */
    note_run(x, at, n);
    if (oi_dtype_bits(x->t->dtype) < 8) {
        const char *t = oi_dtype_name(x->t->dtype);
        oi_out_line(&x->c->out, "oi_put_%s(%s, %s, oi_get_%s(from, e++));", t, storage(x), at, t);
        return;
    }
    oi_out_line(&x->c->out, "memcpy(%s, from, (size_t)(%s) * sizeof *from);", place_text(x, at), n);
    oi_out_line(&x->c->out, "from += %s;", n);
}

static void reset_run(access *x, const char *at, const char *n, const char *beyond)
{
    if (beyond) {
        oi_out_open(&x->c->out, "if (!(%s))", beyond);
    }
    note_run(x, at, n);
    const char *t = oi_dtype_name(x->t->dtype), *first = init_text(x);
    if (x->t->start == OI_START_MODEL && oi_dtype_bits(x->t->dtype) < 8)
        first = oi_arena_printf(x->c->arena, "oi_get_%s(%s, %s)", t,
                                oi_c_address(x->c, &(oi_port){.tensor = x->t->from}), at);
    if (oi_dtype_bits(x->t->dtype) < 8)
        oi_out_line(&x->c->out, "oi_put_%s(%s, %s, %s);", t, storage(x), at, first);
    else if (x->t->start == OI_START_MODEL)
        oi_out_line(&x->c->out, "memcpy(%s, %s + %s, (size_t)(%s) * sizeof *%s);",
                    place_text(x, at), oi_c_address(x->c, &(oi_port){.tensor = x->t->from}), at, n,
                    storage(x));
    else
        fill_run(x, oi_arena_printf(x->c->arena, "(%s + %s)", storage(x), at), n);
    if (beyond)
        oi_out_close(&x->c->out, "");
}

/* -- which entries exist -- */

/* The index of the entry at the loops' positions. */
static const char *entry_text(access *x, const bool *has_loop)
{
    oi_buf at = {0};
    int64_t stride = 1;
    for (uint32_t i = x->v->n_table; i-- > 0; stride *= x->v->most[i]) {
        const char *own = has_loop[i] ? oi_arena_printf(x->c->arena, "i%u", i) : x->start[i];
        oi_buf_printf(&at, stride == 1 ? "%s%s" : "%s%s * %" PRId64, at.n ? " + " : "", own,
                      stride);
    }
    return oi_buf_to_arena(&at, x->c->arena);
}

static void mark(access *x, int value)
{
    if (!x->v->has_marks)
        return;
    bool has_loop[2 * OI_MAX_RANK];
    for (uint32_t i = 0; i < x->v->n_table; i++) { /* writes were checked before */
        has_loop[i] = x->known.axes[i].count != 1 || !(x->writes || x->known.axes[i].is_inside);
        if (has_loop[i])
            oi_out_open(&x->c->out, "for (int64_t i%u = %s; i%u < %s && i%u < %" PRId64 "; i%u++)",
                        i, x->start[i], i, end_text(x, i), i, x->v->most[i], i);
    }
    const char *text = entry_text(x, has_loop);
    note(x, OI_UNDO_MARKS,
         oi_arena_printf(x->c->arena, "&s->oi_state_data.oi_written_%s[%s]", oi_c_field(x->c, x->t),
                         text),
         "1");
    oi_out_line(&x->c->out, "s->oi_state_data.oi_written_%s[%s] = %d;", oi_c_field(x->c, x->t),
                text, value);
    for (uint32_t i = 0; i < x->v->n_table; i++)
        if (has_loop[i])
            oi_out_close(&x->c->out, "");
}

/* Computes growable sizes from the remaining entries. */
static void measure(access *x)
{
    if (!x->v->has_marks)
        return;
    bool has_loop[2 * OI_MAX_RANK];
    memset(has_loop, true, sizeof has_loop);
    const char *text = entry_text(x, has_loop);
    for (uint32_t i = 0; i < x->v->n_table; i++)
        if (is_counted(x, i))
            oi_out_line(&x->c->out, "%s = 0;", x->size[i]);
    for (uint32_t i = 0; i < x->v->n_table; i++)
        oi_out_open(&x->c->out, "for (int64_t i%u = 0; i%u < %" PRId64 "; i%u++)", i, i,
                    x->v->most[i], i);
    oi_out_open(&x->c->out, "if (s->oi_state_data.oi_written_%s[%s])", oi_c_field(x->c, x->t),
                text);
    for (uint32_t i = 0; i < x->v->n_table; i++)
        if (is_counted(x, i)) {
            oi_out_line(&x->c->out, "if (i%u >= %s)", i, x->size[i]);
            oi_out_line(&x->c->out, "    %s = i%u + 1;", x->size[i], i);
        }
    oi_out_close(&x->c->out, "");
    for (uint32_t i = 0; i < x->v->n_table; i++)
        oi_out_close(&x->c->out, "");
}

/* -- the operations -- */

/* The condition that the selection is not empty: "" always, "0" never. */
static const char *any_text(access *x)
{
    oi_buf b = {0};
    bool never = false;
    for (uint32_t i = 0; i < x->v->rank; i++) {
        never |= x->known.axes[i].count == 0;
        if (x->known.axes[i].count < 0)
            oi_buf_printf(&b, "%s%s > 0", b.n ? " && " : "", x->count[i]);
    }
    const char *text = b.n ? oi_buf_to_arena(&b, x->c->arena) : "";
    return never ? "0" : text;
}

/* A write marks its entries as existing and extends the sizes to them. */
static void grow_written(access *x)
{
    mark(x, 1);
    if (!x->known.grows)
        note_sizes(x);
    for (uint32_t i = 0; i < x->v->rank && i < x->t->var->n_axes; i++) {
        if (!is_counted(x, i) || x->start[i] == x->size[i] ||
            strcmp(end_text(x, i), x->size[i]) == 0)
            continue;
        oi_out_line(&x->c->out, "if (%s > %s)", end_text(x, i), x->size[i]);
        oi_out_line(&x->c->out, "    %s = %s;", x->size[i], end_text(x, i));
    }
}

static void write_cache(access *x)
{
    const oi_tensor *from = &x->c->p->tensors.at[x->s->b.tensor];
    oi_c_check_entry(x->c, &x->s->b);
    check_shape(x, from);
    oi_out_line(&x->c->out, "const %s *from = %s;", oi_c_type(from->dtype),
                oi_c_address(x->c, &x->s->b));
    if (oi_dtype_bits(from->dtype) < 8)
        oi_out_line(&x->c->out, "int64_t e = 0;");
    walk(x, write_run);
    const char *any = any_text(x); /* an empty write does not grow anything */
    if (strcmp(any, "0") == 0 || (!x->v->grows && !x->v->has_marks))
        return;
    if (*any)
        oi_out_open(&x->c->out, "if (%s)", any);
    grow_written(x);
    if (*any)
        oi_out_close(&x->c->out, "");
}

static void reset_cache(access *x)
{
    note_sizes(x);
    if (oi_access_is_whole(x->a)) { /* everything stored, and the initial sizes */
        for (uint32_t i = 0; i < x->v->rank; i++) {
            x->start[i] = "0";
            x->count[i] = number(x, x->v->most[i]);
        }
        walk(x, reset_run);
        mark(x, 0);
        for (uint32_t i = 0; i < x->v->rank; i++)
            if (is_counted(x, i))
                oi_out_line(&x->c->out, "%s = %" PRId64 ";", x->size[i], x->v->first[i]);
        return;
    }
    walk(x, reset_run);
    mark(x, 0);
    measure(x);
}

static void count_cache(access *x)
{
    const oi_pnode *n = x->s->node;
    bool down = n->kind == OI_NODE_CACHE_DECREMENT;
    const char *amount = oi_arena_printf(x->c->arena, "%" PRIu64, n->as.move.amount);
    if (n->as.move.amount_is_index)
        amount = oi_c_index(x->c, n->as.move.amount_var);
    else if (n->as.move.amount_var != OI_NO_ID)
        amount = oi_c_number(x->c, n->as.move.amount_var);
    const char *place = oi_arena_printf(x->c->arena, "s->oi_state_data.%s", oi_c_field(x->c, x->t));
    oi_dtype t = x->t->dtype;
    note(x, OI_UNDO_ELEMENTS, oi_arena_printf(x->c->arena, "&%s", place),
         oi_arena_printf(x->c->arena, "sizeof %s", place));
    if (!oi_dtype_is_float(t))
        oi_out_line(&x->c->out, "%s = (%s)((uint64_t)%s %c (uint64_t)%s);", place, oi_c_type(t),
                    place, down ? '-' : '+', amount);
    else if (oi_form_of(t) != t)
        oi_out_line(&x->c->out, "%s = oi_near_%s_f64((double)oi_f32_of_%s(%s) %c (double)%s);",
                    place, oi_dtype_name(t), oi_dtype_name(t), place, down ? '-' : '+', amount);
    else
        oi_out_line(&x->c->out, "%s = (%s)((double)%s %c (double)%s);", place, oi_c_type(t), place,
                    down ? '-' : '+', amount);
}

void oi_c_cache(oi_cprog *c, const oi_stmt *s)
{
    access x = {
        .c = c, .s = s, .v = oi_plan_store(c->p, s->a.tensor), .a = &s->node->as.move.cache};
    x.t = &c->p->tensors.at[s->a.tensor];
    x.writes = s->node->kind == OI_NODE_CACHE_WRITE;
    x.resets = s->node->kind == OI_NODE_CACHE_RESET;
    oi_out_brace(&c->out);
    if (s->node->kind == OI_NODE_CACHE_INCREMENT || s->node->kind == OI_NODE_CACHE_DECREMENT) {
        count_cache(&x);
    } else {
        make_selection(&x);
        if (x.writes) {
            write_cache(&x);
        } else {
            reset_cache(&x);
        }
    }
    oi_out_close(&c->out, "");
}
