/* lower_expr.c: expressions of the compact form -> ops, one per call, in the order of the text. */
#include "compact/lower.h"

#include "base/ops.h"

static const oi_operand bad = {.kind = OI_OPERAND_BAD};

/* -- one op -- */

static void push_output(oi_lowerer *l, oi_node *n, const char *variable, oi_span span)
{
    *OI_PUSH(l->g->arena, &n->as.op.outputs) = (oi_access){.base = {variable, span}, .span = span};
}

static bool outputs(oi_lowerer *l, oi_node *n, const oi_names *names, const oi_type *types,
                    oi_operand *out, size_t n_out)
{
    for (size_t i = 0; i < n_out; i++) {
        oi_exprs dims = {0};
        oi_span span = names ? names->at[i].span : n->span;
        const char *variable = NULL;
        if (names) {
            variable = oi_name_target(l, &names->at[i], &types[i]);
        } else if (oi_compact_dims(l, &types[i], span, &dims)) {
            variable = oi_name_temp(l);
            oi_compact_assign(l, variable, types[i].dtype, &dims, span);
        }
        if (!variable)
            return false;
        push_output(l, n, variable, span);
        out[i] = oi_name_operand(variable, n->span);
    }
    return true;
}

bool oi_compact_op(oi_lowerer *l, oi_node *n, const oi_names *names, oi_operand *out, size_t n_out)
{
    size_t before = oi_diag_errors(l->d);
    oi_type *types = oi_arena_alloc(l->a, (n_out + 1) * sizeof *types);
    n->kind = OI_NODE_OP;
    n->parent = l->parent;
    if (!oi_typer_results(&l->typer, n, types, n_out)) {
        if (oi_diag_errors(l->d) == before)
            oi_diag_error(l->d, oi_compact_at(l, n->name.span), "E051",
                          "%s: the type of the result cannot be told", n->name.text);
        return false;
    }
    if (!outputs(l, n, names, types, out, n_out))
        return false;
    oi_compact_add(l, n);
    for (size_t i = 0; i < n_out; i++)
        oi_length_changed(l, n->as.op.outputs.at[i].base.text, NULL, n->span);
    return true;
}

/* -- arguments of a call -- */

typedef struct call {
    oi_node n;
    const oi_op *op;
    OI_VEC(oi_operand) in; /* by place */
    OI_VEC(bool) given;
    bool failed;
} call;

static void operand(oi_lowerer *l, call *c, size_t place, const oi_operand *x, oi_span span)
{
    while (c->in.n <= place) {
        *OI_PUSH(l->a, &c->in) = bad;
        *OI_PUSH(l->a, &c->given) = false;
    }
    if (c->given.at[place]) {
        oi_diag_error(l->d, oi_compact_at(l, span), "E054", "operand '%s' is given twice",
                      c->op->inputs[place].name);
        c->failed = true;
    }
    c->in.at[place] = *x;
    c->given.at[place] = true;
    c->failed |= x->kind == OI_OPERAND_BAD;
}

/* An element type by itself: cast(f16) is cast(to=f16). */
static void bare_dtype(oi_lowerer *l, call *c, const oi_carg *a)
{
    for (uint32_t i = 0; i < c->op->n_attrs; i++) {
        const oi_op_attr *attr = &c->op->attrs[i];
        if (attr->kind != OI_ATTR_DTYPE)
            continue;
        *OI_PUSH(l->g->arena, &c->n.as.op.attrs) =
            (oi_attr){.name = {attr->name, a->value.span}, .value = a->value};
        return;
    }
    oi_diag_error(l->d, oi_compact_at(l, a->value.span), "E053", "%s takes no element type",
                  c->op->name);
    c->failed = true;
}

static void named_operand(oi_lowerer *l, call *c, const oi_carg *a)
{
    size_t place = 0;
    while (strcmp(c->op->inputs[place].name, a->name.text) != 0)
        place++; /* the parser has looked */
    oi_operand x = oi_compact_expr(l, a->expr);
    operand(l, c, place, &x, a->name.span);
}

static void arguments(oi_lowerer *l, call *c, const oi_cexpr *e, const oi_operand *piped)
{
    size_t place = 0;
    if (piped)
        operand(l, c, place++, piped, piped->span);
    for (size_t i = 0; i < e->args.n; i++) {
        const oi_carg *a = &e->args.at[i];
        if (a->name.text && a->expr) {
            named_operand(l, c, a);
        } else if (a->name.text) {
            *OI_PUSH(l->g->arena, &c->n.as.op.attrs) = (oi_attr){a->name, a->value};
        } else if (a->expr) {
            oi_operand x = oi_compact_expr(l, a->expr);
            operand(l, c, place++, &x, x.span);
        } else {
            bare_dtype(l, c, a);
        }
    }
    for (size_t i = 0; i < c->in.n && !c->failed; i++)
        if (!c->given.at[i]) {
            oi_diag_error(l->d, oi_compact_at(l, c->n.name.span), "E056",
                          "%s: operand '%s' is missing", c->op->name,
                          oi_op_input_at(c->op, i)->name);
            c->failed = true;
        }
}

/* -- literals -- */

/* The dtype that the operands which share one have; OI_NONE: no operand says. */
static oi_dtype dtype_among(oi_lowerer *l, const call *c, bool shared)
{
    oi_type type;
    for (size_t i = 0; i < c->in.n; i++) {
        const oi_op_input *in = oi_op_input_at(c->op, i);
        if (c->in.at[i].kind == OI_OPERAND_REF && (!shared || !in || in->shares_dtype) &&
            oi_compact_type(l, &c->in.at[i], &type))
            return type.dtype;
    }
    return OI_NONE;
}

/* What a literal in the place of an input becomes. */
static oi_dtype literal_dtype(oi_lowerer *l, const call *c, size_t i)
{
    static const oi_dtype ints[] = {OI_I64, OI_I32, OI_U64, OI_U32, OI_F32},
                          floats[] = {OI_F32, OI_F64, OI_F16, OI_BF16, OI_F8};
    const oi_op_input *in = oi_op_input_at(c->op, i);
    oi_dtype shared = dtype_among(l, c, true), any = dtype_among(l, c, false);
    if (!in || in->shares_dtype)
        return shared;
    if (shared != OI_NONE && (in->dtypes & OI_DTYPES_SAME || in->dtypes & OI_DTYPES(shared)))
        return shared;
    if (any != OI_NONE && in->dtypes & OI_DTYPES(any))
        return any;
    const oi_dtype *among = c->in.at[i].literal.kind == OI_VAL_INT ? ints : floats;
    for (size_t k = 0; k < OI_COUNT(ints); k++)
        if (in->dtypes & OI_DTYPES(among[k]))
            return among[k];
    return any;
}

static bool settle(oi_lowerer *l, call *c)
{
    for (size_t i = 0; i < c->in.n; i++) {
        oi_operand *x = &c->in.at[i];
        oi_dtype dtype = x->kind == OI_OPERAND_LITERAL ? literal_dtype(l, c, i) : OI_NONE;
        if (x->kind != OI_OPERAND_LITERAL)
            continue;
        if (dtype == OI_NONE) {
            oi_diag_error(l->d, oi_compact_at(l, x->span), "E050",
                          "a literal takes the element type of another operand, and %s has none",
                          c->n.name.text);
            return false;
        }
        *x = oi_compact_literal(l, &x->literal, dtype);
        if (x->kind == OI_OPERAND_BAD)
            return false;
    }
    return true;
}

/* -- what the compact form adds to calls -- */

static bool has_attr(const call *c, const char *name)
{
    const oi_op_attr *attr = oi_op_attr_find(c->op, name);
    for (size_t i = 0; i < c->n.as.op.attrs.n; i++)
        if (oi_op_attr_find(c->op, c->n.as.op.attrs.at[i].name.text) == attr)
            return true;
    return false;
}

static void add_attr(oi_lowerer *l, call *c, const char *name, oi_value v)
{
    v.span = c->n.name.span;
    *OI_PUSH(l->g->arena, &c->n.as.op.attrs) =
        (oi_attr){.name = {name, c->n.name.span}, .value = v};
}

/* gather takes rows; attention over what kv_read gave ends where the cache does. */
static void additions(oi_lowerer *l, call *c)
{
    if (strcmp(c->op->name, "gather") == 0 && !has_attr(c, "axis"))
        add_attr(l, c, "axis", (oi_value){.kind = OI_VAL_INT});
    if (strcmp(c->op->name, "sdpa") != 0 || c->in.n < 2 || has_attr(c, "kv_len"))
        return;
    const oi_length *length = oi_length_find(l, &c->in.at[1]);
    if (length)
        add_attr(l, c, "kv_len", (oi_value){.kind = OI_VAL_NAME, .text = length->length});
}

/* Attributes as written must suit the op; then their names become those of the graph. */
static bool attributes(oi_lowerer *l, call *c)
{
    if (!oi_graph_check_call(l->g, &c->n, l->a, l->d))
        return false;
    bool ok = true;
    for (size_t i = 0; i < c->n.as.op.attrs.n; i++)
        ok &= oi_name_value(l, &c->n.as.op.attrs.at[i].value);
    return ok;
}

static void finish_inputs(oi_lowerer *l, call *c)
{
    for (size_t i = 0; i < c->in.n; i++) {
        oi_access a = c->in.at[i].access;
        a.span = c->in.at[i].span;
        *OI_PUSH(l->g->arena, &c->n.as.op.inputs) = a;
    }
}

/* -- calls and operators -- */

static bool run_call(oi_lowerer *l, call *c, const oi_names *names, oi_operand *out, size_t n_out)
{
    if (c->failed || !settle(l, c))
        return false;
    finish_inputs(l, c);
    return oi_compact_op(l, &c->n, names, out, n_out);
}

static bool start_call(oi_lowerer *l, call *c, const oi_cexpr *e, const oi_cexpr *whole)
{
    *c = (call){.n = {.kind = OI_NODE_OP, .name = e->name, .span = whole->span}};
    c->n.hints = whole->has_hints ? whole->hints : e->hints;
    c->n.parent = l->parent;
    c->op = oi_op_find(e->name.text);
    if (!c->op)
        oi_graph_check_call(l->g, &c->n, l->a, l->d); /* E057 */
    return c->op != NULL;
}

static bool computes(const oi_cexpr *e)
{
    return e->kind != OI_CEXPR_NAME && e->kind != OI_CEXPR_NUMBER && e->kind != OI_CEXPR_MODEL;
}

/* Results of a call that are not assigned. */
static size_t count_results(const oi_cexpr *e, const oi_names *names)
{
    const oi_op *op = oi_op_find(e->kind == OI_CEXPR_PIPE ? e->rhs->name.text : e->name.text);
    return names ? names->n : op && op->min_outputs > 1 ? op->min_outputs : 1;
}

/* An operator, a call, or a pipe into one. */
static bool compute(oi_lowerer *l, const oi_cexpr *e, const oi_names *names, oi_operand *out,
                    size_t n_out)
{
    const oi_cexpr *f = e->kind == OI_CEXPR_PIPE ? e->rhs : e;
    oi_operand piped = bad;
    call c;
    if (e->kind == OI_CEXPR_PIPE)
        piped = oi_compact_expr(l, e->lhs);
    if (oi_compact_is_state_call(f)) {
        oi_compact_state_call(l, f, NULL);
        return false;
    }
    if (!start_call(l, &c, f, e))
        return false;
    if (f->kind == OI_CEXPR_CALL) {
        arguments(l, &c, f, e->kind == OI_CEXPR_PIPE ? &piped : NULL);
        c.failed = c.failed || !attributes(l, &c);
        if (!c.failed)
            additions(l, &c);
    } else {
        oi_operand x = oi_compact_expr(l, f->lhs);
        operand(l, &c, 0, &x, x.span);
        oi_operand y = f->rhs ? oi_compact_expr(l, f->rhs) : bad;
        if (f->rhs)
            operand(l, &c, 1, &y, y.span);
    }
    return run_call(l, &c, names, out, n_out);
}

static oi_operand name_value(oi_lowerer *l, const oi_cexpr *e)
{
    const oi_binding *b = oi_name_find(l, e->name.text);
    oi_value v = {.kind = OI_VAL_NAME, .text = e->name.text, .span = e->span};
    oi_op_value number;
    if (b && b->state != OI_NO_ID) {
        oi_diag_error(l->d, oi_compact_at(l, e->span), "E051",
                      "'%s' is a key-value cache: kv_read and kv_write use it", e->name.text);
        return bad;
    }
    if (b) {
        oi_operand out = b->value;
        out.span = e->span;
        return out;
    }
    if (oi_typer_value(&l->typer, &v, &number) &&
        (number.tag == OI_VALUE_INT || number.tag == OI_VALUE_FLOAT)) {
        bool is_int = number.tag == OI_VALUE_INT;
        uint64_t size = is_int && number.i < 0 ? 0 - (uint64_t)number.i : (uint64_t)number.i;
        v = (oi_value){.kind = is_int ? OI_VAL_INT : OI_VAL_FLOAT, .span = e->span};
        v.negative = is_int && number.i < 0;
        v.magnitude = is_int ? size : 0;
        v.number = is_int ? 0 : number.f;
        return (oi_operand){.kind = OI_OPERAND_LITERAL, .literal = v, .span = e->span};
    }
    oi_name_unknown(l, &(oi_name){e->name.text, e->span});
    return bad;
}

oi_operand oi_compact_expr(oi_lowerer *l, const oi_cexpr *e)
{
    oi_operand out = bad;
    if (oi_diag_full(l->d))
        return bad;
    if (!computes(e) && e->hints.n) {
        oi_diag_error(l->d, oi_compact_at(l, e->hints.at[0].name.span), "E052",
                      "hints are for ops, and none computes this value");
        return bad;
    }
    switch (e->kind) {
    case OI_CEXPR_NAME: return name_value(l, e);
    case OI_CEXPR_NUMBER:
        return (oi_operand){.kind = OI_OPERAND_LITERAL, .literal = e->value, .span = e->span};
    case OI_CEXPR_MODEL: return oi_compact_model(l, e);
    default: break;
    }
    if (!compute(l, e, NULL, &out, 1))
        return bad;
    out.span = e->span;
    return out;
}

/* -- statements -- */

static void bind_bad(oi_lowerer *l, const oi_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        oi_name_bind(l, &names->at[i], &bad);
}

static bool names_differ(oi_lowerer *l, const oi_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(names->at[i].text, names->at[k].text) == 0) {
                oi_diag_error(l->d, oi_compact_at(l, names->at[i].span), "E010",
                              "'%s' is bound twice", names->at[i].text);
                return false;
            }
    return true;
}

/* A value that exists: what cannot change goes by another name, else it is copied. */
static bool copy(oi_lowerer *l, const oi_cstmt *s)
{
    const oi_name *name = &s->names.at[0];
    oi_operand x = oi_compact_expr(l, s->expr);
    oi_type type;
    if (s->names.n != 1) {
        oi_diag_error(l->d, oi_compact_at(l, s->names.at[1].span), "E056",
                      "one value for %zu names", s->names.n);
        return false;
    }
    if (x.kind == OI_OPERAND_LITERAL)
        oi_diag_error(l->d, oi_compact_at(l, x.span), "E050",
                      "a literal by itself has no element type");
    if (x.kind != OI_OPERAND_REF || !oi_compact_type(l, &x, &type))
        return false;
    const oi_binding *b = oi_name_find(l, name->text);
    bool outside = b && b->value.is_variable && l->loops.n;
    if (x.is_steady && !outside) {
        oi_name_bind(l, name, &x);
        return true;
    }
    const char *to = oi_name_target(l, name, &type);
    if (to && (x.access.bracketed || strcmp(to, x.access.base.text) != 0)) {
        oi_compact_transfer(l, &x, to, s->expr->span);
        oi_length_changed(l, to, &x, s->expr->span);
    }
    return to != NULL;
}

void oi_compact_bind(oi_lowerer *l, const oi_cstmt *s)
{
    const oi_cexpr *e = s->expr;
    if (!names_differ(l, &s->names)) {
        bind_bad(l, &s->names);
        return;
    }
    if (oi_compact_is_state_call(e)) {
        oi_compact_state_call(l, e, &s->names);
        return;
    }
    bool ok;
    if (computes(e)) {
        const oi_names *names = s->names.n ? &s->names : NULL;
        size_t n = count_results(e, names);
        oi_operand *out = oi_arena_alloc(l->a, (n + 1) * sizeof *out);
        ok = compute(l, e, names, out, n);
    } else {
        ok = copy(l, s);
    }
    if (!ok)
        bind_bad(l, &s->names);
}
