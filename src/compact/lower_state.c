/* lower_state.c: kv_cache, kv_write and kv_read -> two tables and accesses to them; and how many
 * rows of what was read count, which attention wants to know. */
#include "compact/lower.h"

enum { KEYS, VALUES };

static const oi_operand bad = {.kind = OI_OPERAND_BAD};

void oi_compact_states(oi_lowerer *l)
{
    for (size_t i = 0; i < l->c->states.n && !oi_diag_full(l->d); i++) {
        const oi_cstate *s = &l->c->states.at[i];
        if (oi_name_find(l, s->name.text)) {
            oi_diag_error(l->d, oi_compact_at(l, s->name.span), "E010", "'%s' exists already",
                          s->name.text);
            continue;
        }
        *OI_PUSH(l->a, &l->states) = (oi_lowered_state){.text = s};
        oi_name_bind(l, &s->name, &bad);
        l->bindings.at[l->bindings.n - 1].state = (uint32_t)l->states.n - 1;
    }
}

bool oi_compact_is_state_call(const oi_cexpr *e)
{
    return e->kind == OI_CEXPR_CALL &&
           (strcmp(e->name.text, "kv_write") == 0 || strcmp(e->name.text, "kv_read") == 0);
}

/* -- declarations -- */

/* NAME(l, t): dtype[shape] @table @fixed(l=LAYERS, t=CAP) */
static const char *declare(oi_lowerer *l, const oi_cstate *s, const char *suffix,
                           const oi_exprs *shape)
{
    const char *wanted = oi_arena_printf(l->a, "%s_%s", s->name.text, suffix);
    oi_var v = {.kind = OI_PERSISTENT, .dtype = s->dtype, .dims = *shape, .table = true};
    v.name = (oi_name){oi_name_new(l, wanted), s->name.span};
    v.at[OI_AT_TABLE] = v.at[OI_AT_FIXED] = s->name.span;
    static const char *const indices[] = {"l", "t"};
    const oi_expr *const limits[] = {s->layers, s->cap};
    for (size_t i = 0; i < 2; i++) {
        oi_name index = {indices[i], s->name.span};
        *OI_PUSH(l->g->arena, &v.indices) = index;
        *OI_PUSH(l->g->arena, &v.fixed) = (oi_bound){index, limits[i]};
    }
    oi_compact_declare(l, &v);
    return v.name.text;
}

/* The shape of a table: as the text says, that of the first value written, or the model's. */
static bool shape_of(oi_lowerer *l, const oi_cstate *s, const char *suffix, const oi_type *written,
                     oi_span span, oi_exprs *out)
{
    *out = s->shape;
    if (s->has_shape)
        return true;
    if (written)
        return oi_compact_dims(l, written, span, out);
    oi_exprs found = {0};
    const char *name = oi_arena_printf(l->a, "%s_%s", s->name.text, suffix);
    size_t before = oi_diag_errors(l->d);
    if (l->typer.model &&
        (oi_link_dims(&l->typer, name, &found) || oi_link_dims(&l->typer, s->name.text, &found))) {
        for (size_t i = 0; i < found.n; i++) {
            const char *text = oi_expr_text(l->a, found.at[i]);
            *OI_PUSH(l->g->arena, out) = oi_expr_parse(l->g, text, strlen(text), true, "", l->d);
        }
        return true;
    }
    if (oi_diag_errors(l->d) == before)
        oi_diag_error(l->d, oi_compact_at(l, span), "E051",
                      "the shape of '%s' is not known here: nothing was written to it",
                      s->name.text);
    oi_diag_hint(l->d, "say it: kv_cache(…, shape=[…])");
    return false;
}

static bool tables(oi_lowerer *l, oi_lowered_state *state, const oi_type *k, const oi_type *v,
                   oi_span span)
{
    oi_exprs keys, values;
    if (state->tables[KEYS])
        return true;
    if (!shape_of(l, state->text, "k", k, span, &keys) ||
        !shape_of(l, state->text, "v", v, span, &values))
        return false;
    state->tables[KEYS] = declare(l, state->text, "k", &keys);
    state->tables[VALUES] = declare(l, state->text, "v", &values);
    return true;
}

/* -- arguments -- */

enum { LAYER, STEP, K, V, N_ARGS };

typedef struct state_call {
    const oi_cexpr *e;
    oi_lowered_state *state;
    const oi_cexpr *args[N_ARGS];
    const oi_expr *layer, *step; /* in selectors */
    oi_operand step_value;       /* kv_read: a literal, or a rank-0 variable or index */
} state_call;

static bool named_arg(oi_lowerer *l, state_call *c, const oi_carg *a, size_t n_args)
{
    static const char *const names[N_ARGS] = {"layer", "step", "k", "v"};
    for (size_t i = 0; i < n_args; i++) {
        if (strcmp(a->name.text, names[i]) != 0)
            continue;
        if (!c->args[i]) {
            c->args[i] = a->expr;
            return true;
        }
        oi_diag_error(l->d, oi_compact_at(l, a->name.span), "E054", "'%s' is given twice",
                      names[i]);
        return false;
    }
    oi_diag_error(l->d, oi_compact_at(l, a->name.span), "E052", "%s has no argument '%s'",
                  c->e->name.text, a->name.text);
    return false;
}

static bool arguments(oi_lowerer *l, state_call *c, size_t n_args)
{
    const oi_cargs *args = &c->e->args;
    const char *usage = n_args == N_ARGS ? "kv_write(KV, layer=…, step=…, k=…, v=…)"
                                         : "kv_read(KV, layer=…, step=…)";
    const oi_cexpr *first = args->n && !args->at[0].name.text ? args->at[0].expr : NULL;
    const oi_binding *b =
        first && first->kind == OI_CEXPR_NAME ? oi_name_find(l, first->name.text) : NULL;
    if (!b || b->state == OI_NO_ID) {
        oi_diag_error(l->d, oi_compact_at(l, first ? first->span : c->e->name.span), "E030",
                      "%s works on a key-value cache of the state: %s", c->e->name.text, usage);
        return false;
    }
    c->state = &l->states.at[b->state];
    for (size_t i = 1; i < args->n; i++) {
        const oi_carg *a = &args->at[i];
        if (a->name.text && a->expr ? !named_arg(l, c, a, n_args) : true) {
            if (!a->name.text || !a->expr)
                oi_diag_error(l->d, oi_compact_at(l, a->expr ? a->expr->span : a->value.span),
                              "E056", "its arguments have names: %s", usage);
            return false;
        }
    }
    for (size_t i = 0; i < n_args; i++)
        if (!c->args[i]) {
            oi_diag_error(l->d, oi_compact_at(l, c->e->name.span), "E056",
                          "an argument is missing: %s", usage);
            return false;
        }
    return true;
}

/* -- layer and step -- */

static const oi_expr *new_expr(oi_lowerer *l, oi_expr e, oi_span span)
{
    oi_expr *out = oi_arena_alloc(l->g->arena, sizeof *out);
    *out = e;
    out->span = span;
    out->depth = (uint16_t)(1 + (e.lhs ? e.lhs->depth : 0) + (e.rhs ? e.rhs->depth : 0));
    return out;
}

/* The expression when it holds only integers, sizes and loop indices; else NULL. */
static const oi_expr *plain(oi_lowerer *l, const oi_cexpr *e)
{
    static const oi_expr_kind kinds[] = {[OI_CEXPR_NEG] = OI_EXPR_NEG,
                                         [OI_CEXPR_ADD] = OI_EXPR_ADD,
                                         [OI_CEXPR_SUB] = OI_EXPR_SUB,
                                         [OI_CEXPR_MUL] = OI_EXPR_MUL,
                                         [OI_CEXPR_DIV] = OI_EXPR_DIV};
    const oi_binding *b = e->kind == OI_CEXPR_NAME ? oi_name_find(l, e->name.text) : NULL;
    switch (e->kind) {
    case OI_CEXPR_NUMBER:
        if (e->value.kind != OI_VAL_INT)
            return NULL;
        return new_expr(l,
                        (oi_expr){.kind = OI_EXPR_INT,
                                  .negative = e->value.negative,
                                  .magnitude = e->value.magnitude},
                        e->span);
    case OI_CEXPR_NAME:
        if (b && (b->value.is_variable || !b->value.is_steady ||
                  !oi_symbols_index(&l->syms, b->value.access.base.text)))
            return NULL;
        return new_expr(l, (oi_expr){.kind = OI_EXPR_NAME, .name = e->name.text}, e->span);
    case OI_CEXPR_NEG:
    case OI_CEXPR_ADD:
    case OI_CEXPR_SUB:
    case OI_CEXPR_MUL:
    case OI_CEXPR_DIV: break;
    default: return NULL;
    }
    const oi_expr *x = plain(l, e->lhs), *y = x && e->rhs ? plain(l, e->rhs) : NULL;
    if (!x || (e->rhs && !y) || x->depth + (y ? y->depth : 0u) > OI_MAX_EXPR_DEPTH)
        return NULL;
    return new_expr(l, (oi_expr){.kind = kinds[e->kind], .lhs = x, .rhs = y}, e->span);
}

/* An index as a selector, and as a value where that is wanted; NULL after an error. */
static const oi_expr *selector(oi_lowerer *l, const oi_cexpr *e, oi_operand *value)
{
    const oi_expr *x = plain(l, e), *out = x ? oi_name_expr(l, x) : NULL;
    int64_t n;
    if (x && !out)
        return NULL;
    if (out && !value)
        return out;
    if (out && oi_typer_eval(&l->typer, out, &n)) {
        *value = (oi_operand){.kind = OI_OPERAND_LITERAL, .span = e->span};
        value->literal = (oi_value){.kind = OI_VAL_INT,
                                    .negative = n < 0,
                                    .magnitude = n < 0 ? 0 - (uint64_t)n : (uint64_t)n,
                                    .span = e->span};
        return out;
    }
    oi_operand y = oi_compact_expr(l, e);
    oi_type type;
    if (y.kind == OI_OPERAND_LITERAL)
        oi_diag_error(l->d, oi_compact_at(l, e->span), "E050", "an index is an integer");
    if (y.kind != OI_OPERAND_REF || !oi_compact_type(l, &y, &type))
        return NULL;
    if (type.rank || !oi_dtype_is_integer(type.dtype) || y.access.bracketed) {
        oi_diag_error(l->d, oi_compact_at(l, e->span), type.rank ? "E051" : "E050",
                      "an index is one integer; this is %s", oi_compact_type_text(l, &type));
        return NULL;
    }
    if (value)
        *value = y;
    return out ? out
               : new_expr(l, (oi_expr){.kind = OI_EXPR_NAME, .name = y.access.base.text}, e->span);
}

/* E047 where it can be seen before the run: an index that computes, outside of 0 … limit. */
static bool in_range(oi_lowerer *l, const oi_cexpr *e, const oi_expr *index, const oi_expr *limit)
{
    int64_t at, n;
    if (!oi_typer_eval(&l->typer, index, &at) || !oi_typer_eval(&l->typer, limit, &n) ||
        (at >= 0 && at < n))
        return true;
    oi_diag_error(l->d, oi_compact_at(l, e->span), "E047",
                  "%lld is outside of the cache, which has %lld here", (long long)at, (long long)n);
    return false;
}

static oi_access entry(oi_lowerer *l, const state_call *c, const char *table, bool all)
{
    oi_access a = {.base = {table, c->e->span}, .bracketed = true, .span = c->e->span};
    oi_sel t = {.start = c->step, .span = c->e->span};
    if (all) {
        t.is_slice = true;
        t.start = new_expr(l, (oi_expr){.kind = OI_EXPR_INT}, c->e->span);
        t.end = c->state->text->cap;
    }
    *OI_PUSH(l->g->arena, &a.sels) = (oi_sel){.start = c->layer, .span = c->e->span};
    *OI_PUSH(l->g->arena, &a.sels) = t;
    return a;
}

/* -- lengths -- */

const oi_length *oi_length_find(const oi_lowerer *l, const oi_operand *x)
{
    if (x->kind != OI_OPERAND_REF)
        return NULL;
    uint32_t at = oi_map_get(&l->length_of, x->access.base.text);
    return at == OI_MAP_NONE ? NULL : &l->lengths.at[at];
}

/* The length that a variable keeps, made when it has none. */
static oi_length keep_length(oi_lowerer *l, const char *variable, oi_dtype dtype, oi_span span)
{
    uint32_t at = oi_map_get(&l->length_of, variable);
    static const oi_exprs no_dims;
    if (at != OI_MAP_NONE)
        return l->lengths.at[at];
    oi_length x = {variable, oi_name_temp(l), dtype};
    oi_compact_assign(l, x.length, dtype, &no_dims, span);
    *OI_PUSH(l->a, &l->lengths) = x;
    oi_map_set(&l->length_of, variable, (uint32_t)l->lengths.n - 1);
    return x;
}

/* An op without attributes of its own but `to`, on settled rank-0 operands. */
static void small_op(oi_lowerer *l, const char *name, const oi_operand *x, const oi_operand *y,
                     oi_dtype to, const char *out, oi_span span)
{
    oi_node n = {.kind = OI_NODE_OP, .name = {name, span}, .span = span};
    *OI_PUSH(l->g->arena, &n.as.op.inputs) = x->access;
    if (y)
        *OI_PUSH(l->g->arena, &n.as.op.inputs) = y->access;
    if (to != OI_NONE)
        *OI_PUSH(l->g->arena, &n.as.op.attrs) =
            (oi_attr){{"to", span}, {.kind = OI_VAL_DTYPE, .dtype = to, .span = span}};
    *OI_PUSH(l->g->arena, &n.as.op.outputs) = (oi_access){.base = {out, span}, .span = span};
    oi_compact_add(l, &n);
}

/* length = value, whatever its type. */
static void set_length(oi_lowerer *l, const oi_length *length, const oi_operand *value,
                       oi_dtype dtype, oi_span span)
{
    oi_operand x = *value;
    if (x.kind == OI_OPERAND_LITERAL)
        x = oi_compact_literal(l, &x.literal, length->dtype);
    if (x.kind != OI_OPERAND_REF)
        return;
    if (value->kind == OI_OPERAND_LITERAL || dtype == length->dtype)
        oi_compact_transfer(l, &x, length->length, span);
    else
        small_op(l, "cast", &x, NULL, length->dtype, length->length, span);
}

/* All rows count. */
static void set_full(oi_lowerer *l, const oi_length *length, oi_span span)
{
    oi_operand variable = oi_name_operand(length->variable, span);
    oi_type type;
    oi_operand n = {.kind = OI_OPERAND_LITERAL, .span = span};
    if (!oi_compact_type(l, &variable, &type) || !type.rank || !type.dims[0].known)
        return;
    n.literal = (oi_value){.kind = OI_VAL_INT, .span = span};
    n.literal.magnitude = (uint64_t)type.dims[0].value;
    set_length(l, length, &n, OI_NONE, span);
}

void oi_length_changed(oi_lowerer *l, const char *variable, const oi_operand *from, oi_span span)
{
    oi_operand to = oi_name_operand(variable, span);
    const oi_length *source = from ? oi_length_find(l, from) : NULL, *old = oi_length_find(l, &to);
    if (!source && !old)
        return;
    oi_length length = keep_length(l, variable, source ? source->dtype : old->dtype, span);
    if (!source) {
        set_full(l, &length, span);
        return;
    }
    source = oi_length_find(l, from); /* the list may have moved */
    oi_operand value = oi_name_operand(source->length, span);
    set_length(l, &length, &value, source->dtype, span);
}

void oi_length_expect(oi_lowerer *l, const oi_cstmt *loop)
{
    for (size_t i = 0; i < loop->body.n; i++) {
        const oi_cstmt *s = loop->body.at[i];
        if (s->kind == OI_CSTMT_FOR)
            oi_length_expect(l, s);
        if (s->kind != OI_CSTMT_BIND || !s->names.n || s->expr->kind != OI_CEXPR_CALL ||
            strcmp(s->expr->name.text, "kv_read") != 0)
            continue;
        const oi_binding *b = oi_name_find(l, s->names.at[0].text);
        if (!b || !b->value.is_variable || oi_length_find(l, &b->value))
            continue;
        oi_length length = keep_length(l, b->value.access.base.text, OI_I64, s->span);
        set_full(l, &length, s->span);
    }
}

/* The rows up to the step count: step + 1. */
static void read_length(oi_lowerer *l, const state_call *c, const char *keys)
{
    oi_span span = c->e->span;
    oi_operand value = c->step_value;
    oi_type type = {.dtype = OI_I64};
    if (value.kind == OI_OPERAND_LITERAL) {
        int64_t step;
        if (!oi_value_i64(&value.literal, &step) || step < 0 || step == INT64_MAX)
            return; /* the selector of the write is wrong, and reported */
        value.literal.magnitude++;
        oi_length length = keep_length(l, keys, OI_I64, span);
        set_length(l, &length, &value, OI_NONE, span);
        return;
    }
    if (!oi_compact_type(l, &value, &type))
        return;
    oi_operand one = oi_compact_literal(
        l, &(oi_value){.kind = OI_VAL_INT, .magnitude = 1, .span = span}, type.dtype);
    oi_length length = keep_length(l, keys, type.dtype, span);
    if (one.kind != OI_OPERAND_REF)
        return;
    if (length.dtype == type.dtype) {
        small_op(l, "add", &value, &one, OI_NONE, length.length, span);
        return;
    }
    const char *sum = oi_name_temp(l);
    static const oi_exprs no_dims;
    oi_compact_assign(l, sum, type.dtype, &no_dims, span);
    small_op(l, "add", &value, &one, OI_NONE, sum, span);
    oi_operand x = oi_name_operand(sum, span);
    set_length(l, &length, &x, type.dtype, span);
}

/* -- kv_write, kv_read -- */

/* A value to write, of the cache's element type. */
static bool written(oi_lowerer *l, const state_call *c, const oi_cexpr *e, oi_operand *out,
                    oi_type *type)
{
    *out = oi_compact_expr(l, e);
    oi_dtype dtype = c->state->text->dtype;
    if (out->kind == OI_OPERAND_LITERAL)
        oi_diag_error(l->d, oi_compact_at(l, e->span), "E051", "a literal is no row of '%s'",
                      c->state->text->name.text);
    if (out->kind != OI_OPERAND_REF || !oi_compact_type(l, out, type))
        return false;
    if (type->dtype == dtype)
        return true;
    oi_node n = {.name = {"cast", e->span}, .span = e->span};
    oi_access a = out->access;
    a.span = e->span;
    *OI_PUSH(l->g->arena, &n.as.op.inputs) = a;
    *OI_PUSH(l->g->arena, &n.as.op.attrs) =
        (oi_attr){{"to", e->span}, {.kind = OI_VAL_DTYPE, .dtype = dtype, .span = e->span}};
    return oi_compact_op(l, &n, NULL, out, 1);
}

static void kv_write(oi_lowerer *l, state_call *c)
{
    oi_operand x[2];
    oi_type types[2];
    if (!written(l, c, c->args[K], &x[KEYS], &types[KEYS]) ||
        !written(l, c, c->args[V], &x[VALUES], &types[VALUES]) ||
        !tables(l, c->state, &types[KEYS], &types[VALUES], c->e->span))
        return;
    for (size_t i = 0; i < 2; i++) {
        oi_node n = {.kind = OI_NODE_CACHE_WRITE, .span = c->e->span};
        n.as.move.from = x[i].access;
        n.as.move.from.span = c->args[K + i]->span;
        n.as.move.to = entry(l, c, c->state->tables[i], false);
        oi_compact_add(l, &n);
    }
}

/* [CAP, shape of an entry] */
static bool read_type(oi_lowerer *l, const state_call *c, const char *table, oi_type *out)
{
    oi_operand x = oi_name_operand(table, c->e->span);
    oi_type one;
    if (!oi_compact_type(l, &x, &one) || one.rank == OI_MAX_RANK)
        return false;
    *out = (oi_type){.dtype = one.dtype, .rank = one.rank + 1};
    out->dims[0] = oi_typer_dim(&l->typer, c->state->text->cap);
    memcpy(out->dims + 1, one.dims, one.rank * sizeof one.dims[0]);
    return true;
}

static bool kv_read(oi_lowerer *l, state_call *c, const oi_names *names)
{
    if (!tables(l, c->state, NULL, NULL, c->e->span))
        return false;
    for (size_t i = 0; i < 2; i++) {
        oi_type type;
        const char *to = read_type(l, c, c->state->tables[i], &type)
                             ? oi_name_target(l, &names->at[i], &type)
                             : NULL;
        if (!to)
            return false;
        oi_node n = {.kind = OI_NODE_CACHE_READ, .span = c->e->span};
        n.as.move.from = entry(l, c, c->state->tables[i], true);
        n.as.move.to = (oi_access){.base = {to, names->at[i].span}, .span = names->at[i].span};
        oi_compact_add(l, &n);
        if (i == KEYS)
            read_length(l, c, to);
        else
            oi_length_changed(l, to, NULL, c->e->span);
    }
    return true;
}

static bool count_is_right(oi_lowerer *l, const oi_cexpr *e, const oi_names *names, bool reads)
{
    size_t n = names ? names->n : 1;
    if (n == (reads ? 2 : 0))
        return true;
    oi_diag_error(l->d, oi_compact_at(l, e->span), "E056", "%s",
                  reads ? "kv_read gives two values: let (k, v) = kv_read(…);"
                        : "kv_write gives no value: it is a statement by itself");
    return false;
}

void oi_compact_state_call(oi_lowerer *l, const oi_cexpr *e, const oi_names *names)
{
    bool reads = strcmp(e->name.text, "kv_read") == 0;
    state_call c = {.e = e};
    bool ok = count_is_right(l, e, names, reads) && arguments(l, &c, reads ? STEP + 1 : N_ARGS);
    if (ok && e->hints.n) {
        oi_diag_error(l->d, oi_compact_at(l, e->hints.at[0].name.span), "E052",
                      "hints are for ops, and %s is none", e->name.text);
        ok = false;
    }
    if (ok) {
        c.layer = selector(l, c.args[LAYER], NULL);
        c.step = selector(l, c.args[STEP], reads ? &c.step_value : NULL);
        ok = c.layer && c.step && in_range(l, c.args[LAYER], c.layer, c.state->text->layers) &&
             in_range(l, c.args[STEP], c.step, c.state->text->cap);
    }
    if (ok && reads)
        ok = kv_read(l, &c, names);
    else if (ok)
        kv_write(l, &c);
    for (size_t i = 0; !ok && names && i < names->n; i++)
        oi_name_bind(l, &names->at[i], &bad);
}
