/* instr.c: prints the instructions of a nest: loads, arithmetic and stores, and what follows a sum.
 */
#include "emit/nest.h"
#include "plan/scalar.h"

#include <math.h>

/* -- types and numbers -- */

static const char *literal(const oi_printing *x, oi_dtype t, uint64_t bits)
{
    return x->p->lang->literal(x->p->arena, t, bits);
}

/* The type that holds a stored element while nothing computes with it: a bool may be any byte. */
static oi_dtype raw_form(oi_dtype t)
{
    return t == OI_BOOL ? OI_U8 : t;
}

/* A literal as a stored element: narrow floats are their bits. */
static const char *raw_text(const oi_printing *x, oi_dtype t, uint64_t bits)
{
    return literal(x, oi_form_of(t) != t ? OI_U16 : raw_form(t), bits);
}

/* "float", "precise float": of a variable. */
const char *oi_instr_type(const oi_printing *x, oi_dtype t)
{
    const oi_dialect *d = x->p->lang->dialect;
    return oi_arena_printf(x->p->arena, "%s%s",
                           oi_dtype_is_float(t) && oi_form_of(t) == t ? x->p->lang->exact : "",
                           d->types[t]);
}

/* A position, or an unsigned number, as an i64 where the language does not widen it by itself. */
static const char *widened(const oi_printing *x, bool is_unsigned, const char *text)
{
    const oi_dialect *d = x->p->lang->dialect;
    if (x->p->lang->wide)
        return x->p->lang->wide(x->p->arena, text);
    return d->of_narrow ? oi_arena_printf(x->p->arena, "%s%s(%s)", d->of_narrow,
                                          d->types[is_unsigned ? OI_U32 : OI_I32], text)
                        : text;
}

/* -- evaluating -- */

static const char *new_name(oi_printing *x, const char *stem)
{
    return oi_arena_printf(x->p->arena, "%s%u", stem, x->n_names++);
}

#define MAX_NAMES OI_SCALAR_NAMES
#define MAX_TEXT  4096 /* of one expression */

typedef struct binding {
    oi_m_name names[MAX_NAMES];
    size_t n;
} binding;

static void bind_name(binding *b, const char *name, oi_dtype type, const char *spell)
{
    if (b->n < MAX_NAMES)
        b->names[b->n++] = (oi_m_name){.name = name, .type = type, .spell = spell};
}

static void bind_attrs(const oi_printing *x, binding *b, const oi_scall *c)
{
    oi_m_name attrs[OI_SCALAR_NAMES];
    const size_t n = oi_scalar_attrs(c, attrs);
    for (size_t k = 0; k < n && b->n < MAX_NAMES; k++) {
        oi_m_name *name = &b->names[b->n++];
        const oi_op_attr *attr = oi_op_attr_find(c->op, attrs[k].name);
        const uint32_t i = (uint32_t)(attr - c->op->attrs);
        const oi_op_value *v = &c->attrs[i];
        *name = attrs[k];
        if (c->scalars && c->scalars[i] != OI_NO_ID)
            name->spell = oi_place_scalar(x->p, c->scalars[i]);
        else if (name->is_absent)
            name->spell = literal(x, name->type, 0);
        else if (attr->kind == OI_ATTR_INT)
            name->spell = literal(x, OI_I64, (uint64_t)v->i);
        else if (attr->kind == OI_ATTR_NUMBER)
            name->spell = literal(x, c->in0, oi_kernel_number(c->in0, v));
    }
}

static void define(oi_printing *x, oi_dtype form, const char *name, const char *text)
{
    if (x->p->lang->define)
        x->p->lang->define(x, form, name, text);
    else
        oi_out_line(x->p->out, "const %s %s = %s;", oi_instr_type(x, form), name, text);
}

/* The text of an expression; lines that define its parts are printed first. */
static const char *expression(oi_printing *x, const oi_m_expr *e, binding *b, oi_dtype want)
{
    oi_meaning m;
    char text[MAX_TEXT];
    const oi_dialect *d = x->p->lang->dialect;
    if (!oi_scalar_bind(e, b->names, b->n, want, &m))
        return oi_arena_printf(x->p->arena, "#error \"%s\"", m.error);
    if (x->p->lang->evaluate)
        return x->p->lang->evaluate(x, &m, b->names, b->n);
    for (size_t i = 0; i <= m.n_lets; i++) {
        if (i < m.n_lets && !oi_meaning_needs(&m, i))
            continue;
        oi_m_text out = {text, 0, sizeof text, false};
        uint16_t node = i < m.n_lets ? m.lets[i].node : m.root;
        text[0] = '\0';
        if (!oi_meaning_print(&m, node, b->names, b->n, d, &out))
            return "#error \"too long\"";
        if (i == m.n_lets)
            return oi_arena_text(x->p->arena, text, strlen(text));
        /* two expressions may use one name for different definitions */
        const char *own = oi_arena_text(x->p->arena, m.lets[i].text, m.lets[i].len);
        const char *name = new_name(x, own);
        define(x, m.nodes[node].type, name, text);
        if (b->n < MAX_NAMES)
            b->names[b->n++] = (oi_m_name){.name = own, .type = m.nodes[node].type, .spell = name};
    }
    return "0";
}

/* Converts a value of type t from its stored form to its compute type. */
static const char *widen(oi_printing *x, oi_dtype t, const char *bits)
{
    x->widened = oi_form_of(t) == t ? NULL : bits;
    x->widened_type = t;
    return x->widened ? oi_arena_printf(x->p->arena, "oi_f32_of_%s(%s)", oi_dtype_name(t), bits)
                      : bits;
}

/* The value as a conversion reads it, in languages where an i4 is no i8. */
static const char *source_text(const oi_printing *x, oi_dtype form, const char *v)
{
    const oi_dtype source = oi_form_source(form);
    return x->p->lang->cast && source != form && form != OI_BITSET
               ? x->p->lang->cast(x->p->arena, form, source, v)
               : v;
}

/* The op `cast` for a value that is known to neither saturate nor need a rounding mode. */
static const char *convert_text(oi_printing *x, const oi_sop *op)
{
    static const oi_op_value no = {.tag = OI_VALUE_BOOL},
                             trunc = {.tag = OI_VALUE_STRING, .s = "trunc"};
    const char *v = x->values[op->args[0]];
    oi_arena *a = x->p->arena;
    if (op->fits)
        return x->p->lang->cast ? x->p->lang->cast(a, x->forms[op->args[0]], op->type, v)
                                : oi_arena_printf(a, "(%s)%s", oi_instr_type(x, op->type), v);
    if (oi_form_of(op->from) != op->from) /* the stored type is narrower than the compute type:
                                             round first */
        v = widen(x, op->from,
                  oi_arena_printf(a, "oi_near_%s_f32(%s)", oi_dtype_name(op->from), v));
    if (op->from == op->type || oi_form_source(op->from) == oi_form_source(op->type))
        if (oi_form_of(op->type) == op->type)
            return x->p->lang->cast ? x->p->lang->cast(a, x->forms[op->args[0]], op->type, v) : v;
    v = source_text(x, x->forms[op->args[0]], v);
    oi_op_value attrs[3] = {{.tag = OI_VALUE_DTYPE, .dtype = op->type}, trunc, no};
    oi_scall call = {.op = oi_op_at(OI_OP_CAST), .attrs = attrs, .in0 = op->from};
    binding b = {.n = 0};
    const oi_dtype source = oi_form_source(op->from), to = op->type;
    bind_name(&b, "x", source, v);
    bind_attrs(x, &b, &call);
    return widen(x, to, expression(x, oi_scalar_part(&call, OI_PART_EXPR, source, to), &b, to));
}

/* A cast to a float type that the value is held in already: f16 to f32. */
static bool is_held_so(const oi_printing *x, const oi_sop *op)
{
    return op->part == OI_PART_EXPR && op->call->op->id == OI_OP_CAST && op->args[0] != OI_NO_ID &&
           oi_dtype_is_float(op->type) && x->forms[op->args[0]] == op->type;
}

static const char *eval_text(oi_printing *x, const oi_sop *op)
{
    const oi_scall *c = op->call;
    bool is_cast = c->op->outputs[0].out_rule == OI_OUT_ATTR && op->part == OI_PART_EXPR;
    oi_dtype want = is_cast ? op->type : oi_form_of(op->type), of = OI_NONE;
    binding b = {.n = 0};
    if (is_held_so(x, op))
        return x->values[op->args[0]];
    if (op->part == OI_PART_FINISH || op->part == OI_PART_COMBINE) {
        of = x->forms[op->args[0]];
        bind_name(&b, "acc", of, x->values[op->args[0]]);
        if (op->part == OI_PART_COMBINE)
            bind_name(&b, "x", of, x->values[op->args[1]]);
        else
            bind_name(&b, "n", OI_I64, widened(x, false, "n"));
    }
    if (op->part == OI_PART_FINISH && c->op->n_inputs > 2) { /* a bias, or none */
        bind_name(&b, c->op->inputs[2].name, of,
                  op->args[2] == OI_NO_ID ? literal(x, of, 0) : x->values[op->args[2]]);
        b.names[b.n - 1].is_absent = op->args[2] == OI_NO_ID;
    }
    for (uint32_t i = 0; op->part == OI_PART_EXPR && i < OI_SOP_ARGS && i < c->op->n_inputs; i++) {
        if (op->args[i] == OI_NO_ID)
            continue;
        oi_dtype t = x->forms[op->args[i]];
        const char *v =
            is_cast ? source_text(x, t, x->values[op->args[i]]) : x->values[op->args[i]];
        t = is_cast ? oi_form_source(t) : t;
        of = of == OI_NONE ? t : of;
        bind_name(&b, c->op->inputs[i].name, t, v);
    }
    if (op->part == OI_PART_EXPR && op->place != OI_NO_ID)
        bind_name(&b, "i", OI_I64, x->values[op->place]);
    bind_attrs(x, &b, c);
    if (of == OI_NONE && op->part == OI_PART_EXPR) /* no input is used */
        of = is_cast ? oi_form_source(c->in0) : oi_form_of(c->in0);
    const char *text = expression(x, oi_scalar_part(c, op->part, of ? of : want, want), &b, want);
    return is_cast ? widen(x, op->type, text) : text;
}

/* -- instructions -- */

static bool is_leaf(const char *text)
{
    if (*text == '-') /* after another minus it would be a decrement */
        return false;
    for (; *text; text++)
        if (*text == ' ' || *text == '(' || *text == '?')
            return false;
    return true;
}

/* Values that are used more than once, or are not simple, get a name. */
static void name_value(oi_printing *x, uint32_t id, oi_dtype form, const char *text, bool must)
{
    x->forms[id] = form;
    if (!must || (is_leaf(text) && !x->names_all)) {
        x->values[id] = text;
        return;
    }
    const char *name = new_name(x, "v");
    define(x, form, name, text);
    x->values[id] = name;
}

const char *oi_instr_value(oi_printing *x, const oi_sop *op)
{
    return op->kind == OI_SOP_EVAL ? eval_text(x, op) : convert_text(x, op);
}

static const char *load_text(const oi_printing *x, const oi_sop *op)
{
    oi_buf text = {0};
    int64_t part = 0;
    unsigned bits = oi_dtype_bits(op->type);
    const char *at =
        bits < 8 && x->p->lang->load_part ? oi_place_group(x, op, 8 / bits, &part) : NULL;
    if (at)
        x->p->lang->load_part(x->p, op, at, (unsigned)part, &text);
    else
        x->p->lang->load(x->p, op, oi_place_element(x, op), &text);
    return oi_buf_to_arena(&text, x->p->arena);
}

/* An index that is data. A negative one counts from the end. Out of range it is an error, or counts
 * as out of bounds. An unsigned one that exceeds every length must not turn negative. */
static void print_index(oi_printing *x, uint32_t id, const oi_sop *op)
{
    bool is_wide = op->type == OI_I64 || op->type == OI_U32 || op->length > INT32_MAX;
    const char *name = new_name(x, "at"), *v = load_text(x, op);
    if (op->type == OI_U8 || op->type == OI_U16)
        v = oi_place_position(x, v);
    if (is_wide && op->type != OI_I64 && op->type != OI_U64)
        v = widened(x, op->type == OI_U32, v);
    const char *length = oi_place_number(x, op->length, op->length_fn);
    v = oi_arena_printf(x->p->arena, "oi_position_%s(%s, %s)",
                        op->type == OI_U64 ? "u64"
                        : is_wide          ? "i64"
                                           : "i32",
                        v, is_wide || op->type == OI_U64 ? widened(x, false, length) : length);
    if (is_wide || op->type == OI_U64)
        v = oi_place_position(x, v);
    oi_out_line(x->p->out, "const %s %s = %s;", x->p->lang->index, name, v);
    if (!op->may_leave) {
        oi_out_open(x->p->out, "if (%s < 0)", name);
        x->p->lang->fail(x->p->out, 47, "E047: an index out of range");
        oi_out_close(x->p->out, "");
    }
    x->values[id] = name;
    x->forms[id] = OI_I64;
}

static void print_load(oi_printing *x, uint32_t id, const oi_sop *op)
{
    const char *t = load_text(x, op), *inside = NULL;
    oi_dtype form = op->is_raw ? raw_form(op->type) : oi_form_of(op->type);
    if (op->may_leave && !x->n->skips)
        inside = oi_place_inside(x, op);
    if (inside)
        t = oi_arena_printf(x->p->arena, "%s ? %s : %s", inside, t,
                            op->is_raw ? raw_text(x, op->type, op->fill)
                                       : literal(x, op->type, op->fill));
    name_value(x, id, form, t, true);
}

/* `bits` is the value in its stored form if it was just widened from there, or NULL. */
static void print_store(oi_printing *x, const oi_sop *op, const char *bits)
{
    oi_buf text = {0};
    oi_sop own = *op;
    own.is_raw |= bits != NULL;
    x->p->lang->store(x->p, &own, oi_place_element(x, op), bits ? bits : x->values[op->args[0]],
                      &text);
    uint32_t rank = x->p->plan->tensors.at[x->p->kernel->ports.at[op->port].tensor].rank;
    const char *guard = "";
    for (uint32_t d = 0; !op->is_flat && d < rank; d++)
        if (op->at[d].index != OI_NEST_NONE && op->at[d].may_leave) /* the place does not exist */
            guard = oi_arena_printf(x->p->arena, "if (%s >= 0) ", x->values[op->at[d].index]);
    oi_out_line(x->p->out, "%s%s;", guard, oi_buf_to_arena(&text, x->p->arena));
}

/* A coordinate as a value. */
static void print_place(oi_printing *x, uint32_t id, const oi_sop *op)
{
    const char *name = new_name(x, "v");
    oi_out_line(x->p->out, "const %s %s = %s;", oi_instr_type(x, OI_I64), name,
                widened(x, false, oi_place_coord(x, &op->at[0], oi_place_fns(op, 0))));
    x->values[id] = name;
    x->forms[id] = OI_I64;
}

void oi_instr_print(oi_printing *x, const oi_sops *ops, uint32_t base, const char *acc)
{
    for (size_t i = 0; i < ops->n; i++) {
        const oi_sop *op = &ops->at[i];
        uint32_t id = base + (uint32_t)i;
        if ((x->early && x->early[id] != x->is_early) || (x->only && !(x->only >> op->kind & 1)))
            continue;
        const bool follows = i > 0 && op->kind == OI_SOP_STORE && op->args[0] == id - 1 &&
                             x->widened_type == op->type && !op->is_raw;
        const char *bits = follows ? x->widened : NULL;
        x->widened = NULL;
        bool feeds_store = !x->only && i + 1 < ops->n && ops->at[i + 1].kind == OI_SOP_STORE;
        switch (op->kind) {
        case OI_SOP_LOAD: print_load(x, id, op); break;
        case OI_SOP_INDEX: print_index(x, id, op); break;
        case OI_SOP_PLACE: print_place(x, id, op); break;
        case OI_SOP_CONST:
            x->forms[id] = op->is_raw ? raw_form(op->type) : oi_form_of(op->type);
            x->values[id] =
                op->is_raw ? raw_text(x, op->type, op->fill) : literal(x, op->type, op->fill);
            if (x->values[id][0] == '-') /* after another minus it would be a decrement */
                x->values[id] = oi_arena_printf(x->p->arena, "(%s)", x->values[id]);
            break;
        case OI_SOP_EVAL:
            name_value(x, id, oi_form_of(op->type), eval_text(x, op), !feeds_store);
            break;
        case OI_SOP_CONVERT:
            name_value(x, id, oi_form_of(op->type), convert_text(x, op), !feeds_store);
            break;
        case OI_SOP_ACC:
            x->values[id] =
                x->n->finds_position && op->type == OI_I64 ? widened(x, false, acc) : acc;
            x->forms[id] = oi_form_of(op->type);
            break;
        case OI_SOP_COUNT:
            x->values[id] = widened(x, false, "n");
            x->forms[id] = OI_I64;
            break;
        case OI_SOP_STORE: print_store(x, op, bits); break;
        }
        if (!feeds_store)
            x->widened = NULL; /* it has a name */
    }
}

/* -- sums -- */

static const char *combination(oi_printing *x, oi_op_part part, oi_dtype form, const char *acc,
                               const char *element)
{
    const oi_scall *c = x->n->reduce;
    binding b = {.n = 0};
    bind_name(&b, "acc", form, acc);
    bind_name(&b, "x", form, element);
    if (x->n->kind == OI_NEST_CONTRACT) /* a product; in other reductions p may be an attribute */
        bind_name(&b, "p", form, element);
    bind_attrs(x, &b, c);
    return expression(x, oi_scalar_part(c, part, form, form), &b,
                      part == OI_PART_BETTER ? OI_BOOL : form);
}

const char *oi_instr_combined(oi_printing *x, oi_dtype form, const char *acc, const char *element)
{
    return combination(x, OI_PART_COMBINE, form, acc, element);
}

const char *oi_instr_better(oi_printing *x, oi_dtype form, const char *acc, const char *element)
{
    return combination(x, OI_PART_BETTER, form, acc, element);
}

/* One of several positions, beside `acc`, with an index of its own. */
static void combine_position(oi_printing *x, const char *acc, const char *element)
{
    const char *k = oi_place_axis(x, x->n->n_axes - 1);
    const bool is_max = x->n->reduce->op->id == OI_OP_ARGMAX_AXIS;
    oi_out_line(x->p->out, "const %s key = oi_rank_f32(%s%s);", oi_instr_type(x, OI_I32),
                is_max ? "" : "-", element);
    oi_out_line(x->p->out, "best%s = key > %s ? (%s)%s : best%s;", strchr(acc, '['), acc,
                oi_instr_type(x, OI_I32), k, strchr(acc, '['));
    oi_out_line(x->p->out, "%s = key > %s ? key : %s;", acc, acc, acc);
}

void oi_instr_combine(oi_printing *x, oi_dtype form, const char *acc, const char *element)
{
    if (x->n->finds_position && x->n->compares_keys) {
        combine_position(x, acc, element);
        return;
    }
    if (x->n->finds_position) {
        uint32_t last = x->n->n_axes - 1;
        const char *k = oi_place_has_loop(x->n, last) ? oi_place_axis(x, last) : "0";
        if (x->n->finds_element)
            k = oi_place_element(x, &x->n->pre.at[0]);
        oi_out_open(x->p->out, "if (best < 0 || (%s))", oi_instr_better(x, form, acc, element));
        oi_out_line(x->p->out, "acc = %s;", element);
        oi_out_line(x->p->out, "best = %s;", k);
        oi_out_close(x->p->out, "");
        return;
    }
    oi_out_line(x->p->out, "%s = %s;", acc, oi_instr_combined(x, form, acc, element));
}

const char *oi_instr_init(oi_printing *x)
{
    binding b = {.n = 0};
    oi_dtype form = oi_form_of(x->n->acc);
    bind_attrs(x, &b, x->n->reduce);
    return expression(x, oi_scalar_part(x->n->reduce, OI_PART_INIT, form, form), &b, form);
}

/* Whether the end of the reduction uses the number of elements. */
bool oi_instr_counts(const oi_printing *x)
{
    const oi_snest *n = x->n;
    for (size_t i = 0; i < n->post.n; i++) {
        const oi_sop *op = &n->post.at[i];
        if (op->kind != OI_SOP_EVAL || op->part != OI_PART_FINISH)
            continue;
        oi_dtype form = oi_form_of(n->acc);
        if (oi_m_uses(oi_scalar_part(op->call, op->part, form, form), "n"))
            return true;
    }
    return false;
}
