/* raise_expr.c: ops and their operands -> expressions of the compact form. */
#include "compact/raise.h"

static oi_cexpr *new_cexpr(oi_raiser *r, oi_cexpr_kind kind, oi_span span)
{
    oi_cexpr *e = oi_arena_alloc(r->a, sizeof *e);
    e->kind = kind;
    e->depth = 1;
    e->span = span;
    return e;
}

static const oi_cexpr *name_of(oi_raiser *r, const char *name, oi_span span)
{
    oi_cexpr *e = new_cexpr(r, OI_CEXPR_NAME, span);
    e->name = (oi_name){name, span};
    return e;
}

static oi_cexpr *data(oi_raiser *r, const char *key, oi_span span)
{
    oi_cexpr *e = new_cexpr(r, OI_CEXPR_MODEL, span);
    e->name.text = "model";
    e->value = (oi_value){.kind = OI_VAL_STR, .text = key, .n = strlen(key)};
    return e;
}

static const char *key_of(const oi_symbol *s)
{
    return s->var && s->var->ref_name ? s->var->ref_name : s->name;
}

/* -- numbers -- */

/* A scalar as a literal; false for a type that has none. */
static bool literal(oi_raiser *r, oi_scalar s, oi_value *out)
{
    oi_buf text = {0};
    oi_scalar_print(&text, s);
    const char *shown = oi_buf_to_arena(&text, r->a);
    bool negative = *shown == '-';
    const char *digits = shown + negative;
    *out = (oi_value){.kind = OI_VAL_INT};
    if (oi_parse_u64(digits, strlen(digits), 10, &out->magnitude)) {
        out->negative = negative && out->magnitude;
        return true;
    }
    out->kind = OI_VAL_FLOAT;
    if (!oi_parse_f64(digits, strlen(digits), &out->number))
        return false;
    out->number = negative ? -out->number : out->number;
    return true;
}

/* Data of the model as such: its type must be what the graph declares. */
static bool same_type(oi_raiser *r, const oi_symbol *s)
{
    oi_tensor_info tensor;
    oi_meta_info meta;
    oi_model *m = r->typer.model;
    if (!m || s->dims->n || oi_model_tensor_info(m, key_of(s), &tensor) == OI_OK)
        return true; /* checked against the declaration, or told by it */
    return (oi_model_meta_info(m, key_of(s), &meta) == OI_OK ? meta.element : OI_U64) == s->dtype;
}

void oi_raise_name_data(oi_raiser *r, const oi_symbol *s)
{
    oi_raised *v = &r->vars[s - r->typer.syms->list.at];
    oi_cstmt *stmt = oi_arena_alloc(r->a, sizeof *stmt);
    if (v->is_named)
        return;
    v->is_named = true;
    stmt->is_let = true;
    *OI_PUSH(r->a, &stmt->names) = (oi_name){.text = s->name};
    stmt->expr = data(r, key_of(s), s->span);
    *OI_PUSH(r->a, &r->c.body) = stmt;
}

/* -- operands -- */

/* A key whose placeholders are loop indices, numbers, or expressions that follow it. */
static const oi_cexpr *entry(oi_raiser *r, const oi_node *n, const oi_access *a, const oi_symbol *s)
{
    oi_cexpr *e = data(r, "", a->span);
    oi_buf text = {0};
    for (const char *p = s->var->pattern; *p; p++) {
        size_t len = *p == '{' && p[1] != '{' ? strcspn(p, "}") : 0, axis = 0;
        if (!len) {
            oi_buf_putc(&text, *p);
            continue;
        }
        while (axis < s->n_axes && (strlen(s->axes[axis].name.text) != len - 1 ||
                                    memcmp(s->axes[axis].name.text, p + 1, len - 1) != 0))
            axis++;
        const oi_expr *x = axis < a->sels.n ? a->sels.at[axis].start : NULL;
        if (!x || !oi_raise_numbers(r, n, x)) {
            oi_buf_free(&text);
            return NULL;
        }
        e->is_format = true;
        if (x->kind == OI_EXPR_NAME) {
            oi_buf_printf(&text, "{%s}", x->name);
        } else {
            oi_buf_puts(&text, "{}");
            *OI_PUSH(r->a, &e->format_args) = x;
        }
        p += len;
    }
    e->value.text = oi_buf_to_arena(&text, r->a);
    e->value.n = strlen(e->value.text);
    return e;
}

static const oi_cexpr *constant(oi_raiser *r, const oi_node *n, const oi_access *a,
                                const oi_symbol *s, const oi_raised *v)
{
    oi_cexpr *e;
    if (v->is_named)
        return name_of(r, s->name, a->span);
    if (v->is_linked) {
        if (same_type(r, s))
            return data(r, key_of(s), a->span);
        oi_raise_refuse(r, n, "'%s' has another element type in the model", s->name);
        return NULL;
    }
    e = new_cexpr(r, OI_CEXPR_NUMBER, a->span);
    oi_scalar init = s->var->has_init ? s->var->init : (oi_scalar){s->dtype, 0};
    if (!s->dims->n && literal(r, init, &e->value))
        return e;
    oi_raise_refuse(r, n, "'%s' is a tensor filled with one value", s->name);
    return NULL;
}

const oi_cexpr *oi_raise_operand(oi_raiser *r, const oi_node *n, const oi_access *a)
{
    const oi_symbol *s = oi_symbols_at(r->typer.syms, n, a->base.text);
    if (!s || s->kind == OI_SYM_INDEX)
        return name_of(r, a->base.text, a->span);
    oi_raised *v = oi_raise_var(r, s->name);
    if (oi_symbol_is_prefix(s))
        return entry(r, n, a, s);
    bool is_written = v->n_writes || s->kind == OI_SYM_DYNAMIC;
    if (v->is_linked || (s->var && !is_written))
        return constant(r, n, a, s, v);
    if (v->inlined)
        return v->inlined;
    if (oi_dtype_find(s->name) != OI_NONE) {
        oi_raise_refuse(r, n, "'%s' would be read as an element type", s->name);
        return NULL;
    }
    if (v->is_bound)
        return name_of(r, s->name, a->span);
    oi_raise_refuse(r, n, "'%s' is read where nothing has been assigned to it", s->name);
    return NULL;
}

bool oi_raise_numbers(oi_raiser *r, const oi_node *n, const oi_expr *e)
{
    if (!e)
        return true;
    if (e->kind != OI_EXPR_NAME)
        return oi_raise_numbers(r, n, e->lhs) && oi_raise_numbers(r, n, e->rhs);
    const oi_symbol *s = oi_symbols_at(r->typer.syms, n, e->name);
    if (!s || s->kind == OI_SYM_INDEX)
        return true;
    const oi_raised *v = oi_raise_var(r, e->name);
    if (v->is_named || v->is_bound)
        return true;
    return oi_raise_refuse(r, n, "'%s' is no number of the compact form", e->name);
}

const oi_cexpr *oi_raise_index(oi_raiser *r, const oi_expr *e, oi_span span)
{
    static const oi_cexpr_kind kinds[] = {[OI_EXPR_NEG] = OI_CEXPR_NEG,
                                          [OI_EXPR_ADD] = OI_CEXPR_ADD,
                                          [OI_EXPR_SUB] = OI_CEXPR_SUB,
                                          [OI_EXPR_MUL] = OI_CEXPR_MUL,
                                          [OI_EXPR_DIV] = OI_CEXPR_DIV};
    if (e->kind == OI_EXPR_NAME)
        return name_of(r, e->name, span);
    oi_cexpr *x = new_cexpr(r, OI_CEXPR_NUMBER, span);
    x->value = (oi_value){.kind = OI_VAL_INT, .negative = e->negative, .magnitude = e->magnitude};
    if (e->kind == OI_EXPR_INT)
        return x;
    if (e->kind == OI_EXPR_MOD || e->kind == OI_EXPR_RUNTIME)
        return NULL;
    x->kind = kinds[e->kind];
    x->lhs = oi_raise_index(r, e->lhs, span);
    x->rhs = e->rhs ? oi_raise_index(r, e->rhs, span) : NULL;
    return x->lhs && (!e->rhs || x->rhs) ? x : NULL;
}

/* -- calls -- */

static bool value(oi_raiser *r, const oi_node *n, oi_value *v)
{
    if (v->kind == OI_VAL_EXPR)
        return oi_raise_numbers(r, n, v->expr);
    if (v->kind == OI_VAL_LIST) {
        oi_value *items = oi_arena_alloc(r->a, (v->n + 1) * sizeof *items);
        bool ok = true;
        for (size_t i = 0; i < v->n; i++) {
            items[i] = v->items[i];
            ok = ok && value(r, n, &items[i]);
        }
        v->items = items;
        return ok;
    }
    const oi_symbol *s = v->kind == OI_VAL_NAME ? oi_symbols_at(r->typer.syms, n, v->text) : NULL;
    if (!s || s->kind == OI_SYM_INDEX)
        return true;
    const oi_raised *known = oi_raise_var(r, s->name);
    if (known->is_named || known->is_bound)
        return true;
    if (s->kind == OI_SYM_CONSTANT && !known->is_linked && !s->dims->n && s->var->has_init &&
        literal(r, s->var->init, v))
        return true;
    return oi_raise_refuse(r, n, "'%s' has no value of the compact form here", s->name);
}

/* What the compact form says by itself: rows of a gather, the end of a cache. */
static bool is_implied(oi_raiser *r, const oi_node *n, const oi_attr *a)
{
    const oi_accesses *in = &n->as.op.inputs;
    if (strcmp(n->name.text, "gather") == 0)
        return strcmp(a->name.text, "axis") == 0 && a->value.kind == OI_VAL_INT &&
               !a->value.magnitude;
    if (strcmp(n->name.text, "sdpa") != 0 || in->n < 2 || strcmp(a->name.text, "kv_len") != 0)
        return false;
    const oi_raised *k = oi_raise_var(r, in->at[1].base.text);
    return k && k->length && a->value.kind == OI_VAL_NAME && !strcmp(a->value.text, k->length);
}

static bool arguments(oi_raiser *r, const oi_node *n, oi_cexpr *e)
{
    bool said_length = false;
    for (size_t i = 0; i < n->as.op.attrs.n; i++) {
        const oi_attr *a = &n->as.op.attrs.at[i];
        oi_carg arg = {.name = a->name, .value = a->value};
        said_length |= strcmp(a->name.text, "kv_len") == 0;
        if (is_implied(r, n, a))
            continue;
        if (!value(r, n, &arg.value))
            return false;
        if (strcmp(n->name.text, "cast") == 0 && strcmp(a->name.text, "to") == 0)
            arg.name.text = NULL;
        *OI_PUSH(r->a, &e->args) = arg;
    }
    const oi_accesses *in = &n->as.op.inputs;
    const oi_raised *k = strcmp(n->name.text, "sdpa") == 0 && in->n > 1
                             ? oi_raise_var(r, in->at[1].base.text)
                             : NULL;
    return !k || !k->length || said_length ||
           oi_raise_refuse(r, n, "'%s' comes from a cache: attention would end at its step",
                           in->at[1].base.text);
}

static oi_cexpr_kind operator_of(const oi_node *n)
{
    static const struct {
        const char *op;
        oi_cexpr_kind kind;
        size_t n;
    } signs[] = {{"add", OI_CEXPR_ADD, 2},
                 {"sub", OI_CEXPR_SUB, 2},
                 {"mul", OI_CEXPR_MUL, 2},
                 {"div", OI_CEXPR_DIV, 2},
                 {"neg", OI_CEXPR_NEG, 1}};
    for (size_t i = 0; i < OI_COUNT(signs); i++)
        if (strcmp(n->name.text, signs[i].op) == 0 && n->as.op.inputs.n == signs[i].n &&
            !n->as.op.attrs.n)
            return signs[i].kind;
    return OI_CEXPR_CALL;
}

static uint16_t deeper(const oi_cexpr *a, uint16_t depth)
{
    return a && a->depth >= depth ? (uint16_t)(a->depth + 1) : depth;
}

/* A literal must get the element type that the constant has: that of another operand. */
static bool literals_keep_types(oi_raiser *r, const oi_node *n, const oi_cexpr *const *in)
{
    const oi_accesses *list = &n->as.op.inputs;
    for (size_t i = 0; i < list->n; i++) {
        const oi_symbol *s = oi_symbols_at(r->typer.syms, n, list->at[i].base.text);
        bool ok = in[i]->kind != OI_CEXPR_NUMBER || !s;
        for (size_t k = 0; !ok && k < list->n; k++) {
            const oi_symbol *o = oi_symbols_at(r->typer.syms, n, list->at[k].base.text);
            ok = in[k]->kind != OI_CEXPR_NUMBER && o && o->dtype == s->dtype;
        }
        if (!ok)
            return oi_raise_refuse(r, n, "no other operand says the element type of '%s'", s->name);
    }
    return true;
}

/* The compact form gives results the type that the op gives by itself. */
static bool result_is_plain(oi_raiser *r, const oi_node *n)
{
    size_t n_out = n->as.op.outputs.n;
    oi_type *types = oi_arena_alloc(r->a, (n_out + 1) * sizeof *types), declared;
    if (!oi_typer_results(&r->typer, n, types, n_out))
        return oi_raise_refuse(r, n, "the type of the result is not known");
    for (size_t i = 0; i < n_out; i++) {
        const oi_access *out = &n->as.op.outputs.at[i];
        const oi_symbol *s = oi_symbols_at(r->typer.syms, n, out->base.text);
        if (!s || !oi_typer_type(&r->typer, s, &declared) || declared.dtype != types[i].dtype)
            return oi_raise_refuse(r, n, "'%s' is %s; by itself %s gives %s", out->base.text,
                                   s ? oi_dtype_name(s->dtype) : "unknown", n->name.text,
                                   oi_dtype_name(types[i].dtype));
    }
    return true;
}

const oi_cexpr *oi_raise_call(oi_raiser *r, const oi_node *n)
{
    const oi_accesses *in = &n->as.op.inputs;
    const oi_cexpr **x = oi_arena_alloc(r->a, (in->n + 1) * sizeof *x);
    oi_cexpr *e = new_cexpr(r, operator_of(n), n->span);
    e->name = n->name;
    e->hints = n->hints;
    e->has_hints = n->hints.n > 0;
    for (size_t i = 0; i < in->n; i++) {
        x[i] = oi_raise_operand(r, n, &in->at[i]);
        if (!x[i])
            return NULL;
        e->depth = deeper(x[i], e->depth);
    }
    if (!literals_keep_types(r, n, x) || !result_is_plain(r, n))
        return NULL;
    if (e->depth > OI_MAX_EXPR_DEPTH) {
        oi_raise_refuse(r, n, "the expression is too deep");
        return NULL;
    }
    if (e->kind != OI_CEXPR_CALL) {
        e->lhs = x[0];
        e->rhs = e->kind == OI_CEXPR_NEG ? NULL : x[1];
        return e;
    }
    /* what comes out of a call goes on through a pipe */
    bool pipes = in->n && (x[0]->kind == OI_CEXPR_CALL || x[0]->kind == OI_CEXPR_PIPE);
    for (size_t i = pipes; i < in->n; i++)
        *OI_PUSH(r->a, &e->args) = (oi_carg){.expr = x[i]};
    if (!arguments(r, n, e))
        return NULL;
    if (!pipes)
        return e;
    oi_cexpr *pipe = new_cexpr(r, OI_CEXPR_PIPE, n->span);
    pipe->lhs = x[0];
    pipe->rhs = e;
    pipe->hints = e->hints;
    pipe->has_hints = e->has_hints;
    e->has_hints = false;
    pipe->depth = (uint16_t)(e->depth + 1);
    return pipe;
}
