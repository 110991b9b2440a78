/* typing.c: element types and shapes of every node (spec/dsl.md §8: E050, E051; ops through
 * oi_infer). A node whose names are wrong was reported by the structure check and is passed over.
 */
#include "program/check.h"

oi_place oi_typer_at(const oi_typer *t, const oi_node *n, oi_span span)
{
    return oi_graph_place_node(t->g, t->a, n, span);
}

void oi_typer_note(const oi_typer *t, const oi_symbol *s)
{
    oi_place at =
        s->var ? oi_graph_place_var(t->g, t->a, s->var, s->span) : oi_typer_at(t, s->node, s->span);
    if (s->kind == OI_SYM_INDEX)
        oi_diag_note(t->d, at, "'%s' is the index of this loop", s->name);
    else
        oi_diag_note(t->d, at, "'%s' is declared here", s->name);
}

bool oi_typer_type(oi_typer *t, const oi_symbol *s, oi_type *out)
{
    size_t place = (size_t)(s - t->syms->list.at);
    if (s->dims->n > OI_MAX_RANK)
        return false;
    while (t->dims.n <= place)
        *OI_PUSH(t->a, &t->dims) = (oi_dims){0};
    oi_dims *cached = &t->dims.at[place];
    if (!cached->known) {
        oi_dim *dims = oi_arena_alloc(t->a, s->dims->n * sizeof *dims);
        for (size_t i = 0; i < s->dims->n; i++)
            dims[i] = oi_typer_dim(t, s->dims->at[i]);
        *cached = (oi_dims){dims, (uint32_t)s->dims->n, true};
    }
    out->dtype = s->dtype;
    out->rank = cached->n;
    for (uint32_t i = 0; i < cached->n; i++)
        out->dims[i] = cached->at[i];
    return true;
}

/* -- operands -- */

/* The type of an operand or output. */
static bool operand(oi_typer *t, const oi_node *n, const oi_access *a, oi_type *out)
{
    const oi_symbol *s = oi_symbols_at(t->syms, n, a->base.text);
    if (!s || s->kind == OI_SYM_PERSISTENT || a->sels.n != s->n_axes)
        return false;
    return oi_typer_type(t, s, out);
}

static void note_access(const oi_typer *t, const oi_node *n, const oi_access *a)
{
    const oi_symbol *s = oi_symbols_at(t->syms, n, a->base.text);
    if (s)
        oi_typer_note(t, s);
}

/* -- ops -- */

/* Operand i of the call, where some may come from quantisation data. */
static const oi_access *operand_at(const oi_typer *t, const oi_node *n, uint32_t i)
{
    const oi_accesses *in = &n->as.op.inputs;
    if (t->fill.n && i >= t->fill.at) {
        if (i < t->fill.at + t->fill.n)
            return t->fill.of;
        i -= t->fill.n;
    }
    return i < in->n ? &in->at[i] : NULL;
}

static const char *shape_text(const oi_typer *t, const oi_type *type)
{
    char text[OI_INFER_TEXT];
    oi_text out = {text, 0, sizeof text};
    oi_text_dims(&out, type);
    oi_text_sizes(&out, &type, 1);
    return oi_arena_text(t->a, text, strlen(text));
}

/* Inferred types are shown at the operands. */
static void note_types(const oi_typer *t, const oi_node *n)
{
    for (uint32_t i = 0; i < t->types.n; i++) {
        const oi_access *in = operand_at(t, n, i);
        if (in)
            oi_diag_note(t->d, oi_typer_at(t, n, in->span), "this is %s%s",
                         oi_dtype_name(t->types.at[i].dtype), shape_text(t, &t->types.at[i]));
    }
}

static void report(const oi_typer *t, const oi_node *n, const oi_infer_fail *f)
{
    const oi_accesses *out = &n->as.op.outputs;
    const oi_access *access = NULL;
    oi_span span = n->name.span;
    if (f->at == OI_AT_INPUT)
        access = operand_at(t, n, f->index);
    else if (f->at == OI_AT_OUTPUT && f->index < out->n)
        access = &out->at[f->index];
    else if (f->at == OI_AT_ATTR && f->index < t->arg_at.n)
        span = n->as.op.attrs.at[t->arg_at.at[f->index]].value.span;
    if (access)
        span = access->span;
    oi_diag_error(t->d, oi_typer_at(t, n, span), f->code, "%s", f->message);
    if (t->tells_types) {
        note_types(t, n);
        return;
    }
    if (access)
        note_access(t, n, access);
    const oi_access *other = operand_at(t, n, f->other);
    if (f->other != OI_INFER_NONE && other && other != access)
        note_access(t, n, other);
}

static oi_type *push_type(oi_typer *t)
{
    return OI_PUSH(t->a, &t->types);
}

/* Neither an operand nor data of the model says the scale. */
static void no_data(const oi_typer *t, const oi_node *n, const oi_op *row)
{
    oi_diag_error(t->d, oi_typer_at(t, n, t->fill.of->span), "E056",
                  "%s: no %s is given, and '%s' has no quantisation data in the model", row->name,
                  row->inputs[t->fill.at].name, t->fill.symbol->name);
    oi_typer_note(t, t->fill.symbol);
}

/* Integers with a zero point where the op takes them as they are: a result that is rarely wanted.
 */
static bool has_zero_point(oi_typer *t, const oi_node *n, const oi_op *row)
{
    const oi_accesses *in = &n->as.op.inputs;
    oi_tensor_info unused;
    if (!(row->flags & OI_OP_FLAG_ZERO_IS_0) || !t->model || !in->n)
        return false;
    const oi_symbol *s = oi_symbols_at(t->syms, n, in->at[0].base.text);
    if (!s || s->kind == OI_SYM_INDEX || !oi_quant_find(t->model, s, OI_QUANT_ZP, t->a, &unused))
        return false;
    oi_diag_error(t->d, oi_typer_at(t, n, in->at[0].span), "E060",
                  "%s: '%s' has a zero point in the model, which %s does not take (conv_integer "
                  "does, or dequantize it first)",
                  row->name, s->name, row->name);
    oi_typer_note(t, s);
    return true;
}

/* Arguments and types of operands of a call; false when nothing more can be said of it. *typed:
 * every operand has a type. */
static bool prepare(oi_typer *t, const oi_node *n, const oi_op *row, bool *typed)
{
    const oi_accesses *in = &n->as.op.inputs;
    t->types.n = 0;
    if (!oi_typer_args(t, n, row) || has_zero_point(t, n, row))
        return false;
    oi_quant_fill(t->syms, t->model, n, row, t->a, &t->fill);
    if (t->fill.is_wanted && !t->fill.n && in->n < row->min_inputs) {
        no_data(t, n, row);
        return false;
    }
    *typed = true;
    for (size_t i = 0, k = 0; i < in->n + t->fill.n; i++)
        if (t->fill.n && i >= t->fill.at && i < t->fill.at + t->fill.n)
            *push_type(t) = t->fill.types[i - t->fill.at];
        else
            *typed &= operand(t, n, &in->at[k++], push_type(t));
    return true;
}

static void op(oi_typer *t, const oi_node *n)
{
    const oi_op *row = oi_op_find(n->name.text);
    const oi_accesses *out = &n->as.op.outputs;
    bool typed;
    if (!row || !prepare(t, n, row, &typed))
        return;
    size_t n_in = t->types.n;
    for (size_t i = 0; i < out->n; i++)
        typed &= operand(t, n, &out->at[i], push_type(t));
    oi_infer_fail fail;
    const oi_type *types = t->types.at;
    if (typed) {
        if (!oi_infer(row, types, n_in, t->args.at, t->args.n, types + n_in, out->n, &fail))
            report(t, n, &fail);
        return;
    }
    /* what can be said without the operands */
    oi_call c = {.op = row,
                 .in = types,
                 .n_in = n_in,
                 .attrs = t->args.at,
                 .n_attrs = t->args.n,
                 .n_out = out->n,
                 .fail = &fail};
    if (!oi_attrs_check(&c))
        report(t, n, &fail);
}

bool oi_typer_results(oi_typer *t, const oi_node *n, oi_type *out, size_t n_out)
{
    const oi_op *row = oi_op_find(n->name.text);
    oi_infer_fail fail;
    bool typed;
    if (!row || !prepare(t, n, row, &typed) || !typed)
        return false;
    if (oi_infer_result(row, t->types.at, t->types.n, t->args.at, t->args.n, NULL, out, n_out,
                        &fail))
        return true;
    report(t, n, &fail);
    return false;
}

/* -- moves -- */

/* cache.read, cache.write and transfer copy: equal dtype (E050), equal shape (E051). */
static void copies(oi_typer *t, const oi_node *n, const oi_type *from, const oi_type *to)
{
    const oi_access *source = &n->as.move.from, *target = &n->as.move.to;
    const char *verb = oi_node_table[n->kind].keyword;
    const char *from_name = oi_access_text(t->a, source), *to_name = oi_access_text(t->a, target);
    if (from->dtype != to->dtype)
        oi_diag_error(t->d, oi_typer_at(t, n, target->span), "E050", "%s: '%s' is %s, '%s' is %s",
                      verb, from_name, oi_dtype_name(from->dtype), to_name,
                      oi_dtype_name(to->dtype));
    else if (oi_dims_equal(from, to) == OI_DIFFERENT)
        oi_diag_error(t->d, oi_typer_at(t, n, target->span), "E051", "%s: '%s' is %s, '%s' is %s",
                      verb, from_name, shape_text(t, from), to_name, shape_text(t, to));
    else
        return;
    note_access(t, n, target);
    note_access(t, n, source);
}

static bool selection(oi_typer *t, const oi_node *n, const oi_access *a, oi_type *out)
{
    const oi_symbol *s = oi_symbols_at(t->syms, n, a->base.text);
    return s && s->kind == OI_SYM_PERSISTENT && oi_typer_select(t, n, a, s, out);
}

static void move(oi_typer *t, const oi_node *n)
{
    oi_type from, to;
    const oi_access *source = &n->as.move.from, *target = &n->as.move.to;
    bool known = n->kind == OI_NODE_CACHE_READ ? selection(t, n, source, &from)
                                               : operand(t, n, source, &from);
    known &=
        n->kind == OI_NODE_CACHE_WRITE ? selection(t, n, target, &to) : operand(t, n, target, &to);
    if (known)
        copies(t, n, &from, &to);
}

void oi_typer_check_node(oi_typer *t, const oi_node *n)
{
    oi_type unused;
    switch (n->kind) {
    case OI_NODE_OP: op(t, n); break;
    case OI_NODE_CACHE_READ:
    case OI_NODE_CACHE_WRITE:
    case OI_NODE_TRANSFER: move(t, n); break;
    case OI_NODE_CACHE_RESET: selection(t, n, &n->as.move.to, &unused); break;
    default: break;
    }
}
