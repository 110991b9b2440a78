/* nest.c: a loop nest as text in a C-like language. The loops and the arithmetic come from the
 * nest; the language says how types, elements and helpers are spelled. */
#include "emit/nest.h"

#include <inttypes.h>
#include <math.h>

/* -- values -- */

static const char *literal(const oi_printing *x, oi_dtype t, uint64_t bits)
{
    return x->p->lang->literal(x->p->arena, t, bits);
}

/* What a stored element is held in while nobody computes with it: a truth may be any byte. */
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
static const char *type_text(const oi_printing *x, oi_dtype t)
{
    const oi_dialect *d = x->p->lang->dialect;
    return oi_arena_printf(x->p->arena, "%s%s",
                           oi_dtype_is_float(t) && oi_form_of(t) == t ? x->p->lang->exact : "",
                           d->types[t]);
}

/* -- evaluating -- */

static const char *new_name(oi_printing *x, const char *stem)
{
    return oi_arena_printf(x->p->arena, "%s%u", stem, x->n_names++);
}

#define MAX_NAMES 24

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
    for (uint32_t i = 0; i < c->op->n_attrs && b->n < MAX_NAMES; i++) {
        const oi_op_attr *attr = &c->op->attrs[i];
        const oi_op_value *v = &c->attrs[i];
        oi_m_name *name = &b->names[b->n];
        *name = (oi_m_name){.name = attr->name, .is_absent = v->tag == OI_VALUE_NONE};
        switch (attr->kind) {
        case OI_ATTR_NUMBER: name->type = oi_form_of(c->in0); break;
        case OI_ATTR_INT: name->type = OI_I64; break;
        case OI_ATTR_BOOL: name->type = OI_BOOL; break;
        case OI_ATTR_STRING: name->type = OI_I32; break;
        default: continue;
        }
        b->n++;
        name->words = attr->values;
        if (c->scalars && c->scalars[i] != OI_NO_ID) {
            name->spell = x->p->kernel->scalars.at[c->scalars[i]].name;
            name->is_absent = false;
        } else if (name->is_absent) {
            name->spell = literal(x, name->type, 0);
        } else if (attr->kind == OI_ATTR_BOOL || attr->kind == OI_ATTR_STRING) {
            name->is_bound = true;
            name->value = attr->kind == OI_ATTR_BOOL ? v->b : (int)oi_op_attr_word(attr, v->s);
        } else if (attr->kind == OI_ATTR_INT) {
            name->spell = literal(x, OI_I64, (uint64_t)v->i);
        } else {
            uint64_t bits = oi_kernel_number(c->in0, v);
            name->spell = literal(x, c->in0, bits);
            name->is_number = oi_dtype_is_float(c->in0);
            name->number = name->is_number ? oi_float_decode(c->in0, bits) : 0;
        }
    }
}

/* The text of an expression; its definitions are printed as lines before. */
static const char *expression(oi_printing *x, const char *text, binding *b, oi_dtype want)
{
    oi_meaning *m = oi_arena_alloc(x->p->arena, sizeof *m);
    const oi_dialect *d = x->p->lang->dialect;
    for (size_t i = 0; i < b->n; i++) /* where nobody asks whether it was given, it is 0 */
        if (b->names[i].is_absent &&
            !strstr(text, oi_arena_printf(x->p->arena, "given(%s)", b->names[i].name)))
            b->names[i].is_absent = false;
    if (!oi_meaning_parse(text, m) || !oi_meaning_bind(m, b->names, b->n, want))
        return oi_arena_printf(x->p->arena, "#error \"%s\"", m->error);
    size_t cap = 4096;
    for (size_t i = 0; i <= m->n_lets; i++) {
        oi_m_text out = {oi_arena_alloc(x->p->arena, cap), 0, cap, false};
        uint16_t node = i < m->n_lets ? m->lets[i].node : m->root;
        if (!oi_meaning_print(m, node, b->names, b->n, d, &out))
            return "#error \"too long\"";
        if (i == m->n_lets)
            return out.at;
        /* definitions of two expressions may bear one name */
        const char *own = oi_arena_text(x->p->arena, m->lets[i].text, m->lets[i].len);
        const char *name = new_name(x, own);
        oi_out_line(x->p->out, "const %s %s = %s;", type_text(x, m->nodes[node].type), name,
                    out.at);
        if (b->n < MAX_NAMES)
            b->names[b->n++] = (oi_m_name){.name = own, .type = m->nodes[node].type, .spell = name};
    }
    return "0";
}

static const char *part_text(const oi_scall *c, oi_op_part part, oi_dtype of, oi_dtype to)
{
    const char *text = oi_op_meaning_find(c->op, part, of, to);
    return text ? text : "0";
}

static const char *widen(const oi_printing *x, oi_dtype t, const char *bits)
{
    return oi_form_of(t) == t
               ? bits
               : oi_arena_printf(x->p->arena, "oi_f32_of_%s(%s)", oi_dtype_name(t), bits);
}

/* What the op `cast` makes of a value when it neither saturates nor rounds but as it must. */
static const char *convert_text(oi_printing *x, const oi_sop *op)
{
    static const oi_op_value no = {.tag = OI_VALUE_BOOL},
                             trunc = {.tag = OI_VALUE_STRING, .s = "trunc"};
    const char *v = x->values[op->args[0]];
    oi_arena *a = x->p->arena;
    if (op->fits)
        return oi_arena_printf(a, "(%s)%s", type_text(x, op->type), v);
    if (oi_form_of(op->from) != op->from) /* narrower than what it is held in: round first */
        v = oi_arena_printf(a, "oi_f32_of_%s(oi_near_%s_f32(%s))", oi_dtype_name(op->from),
                            oi_dtype_name(op->from), v);
    if (op->from == op->type || oi_form_source(op->from) == oi_form_source(op->type))
        if (oi_form_of(op->type) == op->type)
            return v;
    oi_op_value attrs[3] = {{.tag = OI_VALUE_DTYPE, .dtype = op->type}, trunc, no};
    oi_scall call = {.op = oi_op_find("cast"), .attrs = attrs, .in0 = op->from};
    binding b = {.n = 0};
    const oi_dtype source = oi_form_source(op->from), to = op->type;
    bind_name(&b, "x", source, v);
    bind_attrs(x, &b, &call);
    return widen(x, to, expression(x, part_text(&call, OI_PART_EXPR, source, to), &b, to));
}

/* A cast to a float that the value is held in already: f16 to f32. */
static bool is_held_so(const oi_printing *x, const oi_sop *op)
{
    return op->part == OI_PART_EXPR && strcmp(op->call->op->name, "cast") == 0 &&
           op->args[0] != OI_NO_ID && oi_dtype_is_float(op->type) &&
           x->forms[op->args[0]] == op->type;
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
            bind_name(&b, "n", OI_I64, "n");
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
        t = is_cast ? oi_form_source(t) : t;
        of = of == OI_NONE ? t : of;
        bind_name(&b, c->op->inputs[i].name, t, x->values[op->args[i]]);
    }
    if (op->part == OI_PART_EXPR && op->place != OI_NO_ID)
        bind_name(&b, "i", OI_I64, x->values[op->place]);
    bind_attrs(x, &b, c);
    if (of == OI_NONE && op->part == OI_PART_EXPR) /* no input is mentioned */
        of = is_cast ? oi_form_source(c->in0) : oi_form_of(c->in0);
    const char *text = expression(x, part_text(c, op->part, of ? of : want, want), &b, want);
    return is_cast ? widen(x, op->type, text) : text;
}

/* -- instructions -- */

static bool is_leaf(const char *text)
{
    if (*text == '-') /* behind another minus it would decrement */
        return false;
    for (; *text; text++)
        if (*text == ' ' || *text == '(' || *text == '?')
            return false;
    return true;
}

/* Values that are used more than once, or are not plain, get a name. */
static void name_value(oi_printing *x, uint32_t id, oi_dtype form, const char *text, bool must)
{
    x->forms[id] = form;
    if (!must || (is_leaf(text) && !x->names_all)) {
        x->values[id] = text;
        return;
    }
    const char *name = new_name(x, "v");
    oi_out_line(x->p->out, "const %s %s = %s;", type_text(x, form), name, text);
    x->values[id] = name;
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

/* An index found in data: negative counts from the end; out of range is an error, or outside. An
 * unsigned one beyond any length must not turn negative. */
static void print_index(oi_printing *x, uint32_t id, const oi_sop *op)
{
    bool is_wide = op->type == OI_I64 || op->type == OI_U32 || op->length > INT32_MAX;
    const char *name = new_name(x, "at"), *v = load_text(x, op);
    if (op->type == OI_U8 || op->type == OI_U16)
        v = oi_place_position(x, v);
    v = oi_arena_printf(x->p->arena, "oi_position_%s(%s, %s)",
                        op->type == OI_U64 ? "u64"
                        : is_wide          ? "i64"
                                           : "i32",
                        v, oi_place_number(x, op->length, op->length_fn));
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

/* The bits that a value was just widened from, so that they need not be rounded again; NULL: it
 * was not. */
static const char *unwidened(const oi_printing *x, oi_dtype t, const char *text)
{
    const char *open = widen(x, t, "");
    size_t n = strlen(open) - 1, len = strlen(text), depth = 0;
    if (oi_form_of(t) == t || len <= n || strncmp(text, open, n) != 0)
        return NULL;
    for (size_t i = n; i + 1 < len; i++) { /* one call from end to end */
        if (text[i] == ')' && depth-- == 0)
            return NULL;
        depth += text[i] == '(';
    }
    return depth == 0 ? oi_arena_text(x->p->arena, text + n, len - n - 1) : NULL;
}

static void print_store(oi_printing *x, const oi_sop *op)
{
    oi_buf text = {0};
    oi_sop own = *op;
    const char *bits = op->is_raw ? NULL : unwidened(x, op->type, x->values[op->args[0]]);
    own.is_raw |= bits != NULL;
    x->p->lang->store(x->p, &own, oi_place_element(x, op), bits ? bits : x->values[op->args[0]],
                      &text);
    uint32_t rank = x->p->unit->tensors.at[x->p->kernel->ports.at[op->port].tensor].rank;
    const char *guard = "";
    for (uint32_t d = 0; !op->is_flat && d < rank; d++)
        if (op->at[d].index != OI_NEST_NONE && op->at[d].may_leave) /* a place that is not there */
            guard = oi_arena_printf(x->p->arena, "if (%s >= 0) ", x->values[op->at[d].index]);
    oi_out_line(x->p->out, "%s%s;", guard, oi_buf_to_arena(&text, x->p->arena));
}

/* A coordinate as a number to compute with. */
static void print_place(oi_printing *x, uint32_t id, const oi_sop *op)
{
    const char *name = new_name(x, "v");
    oi_out_line(x->p->out, "const %s %s = %s;", type_text(x, OI_I64), name,
                oi_place_coord(x, &op->at[0], oi_place_fns(op, 0)));
    x->values[id] = name;
    x->forms[id] = OI_I64;
}

static void print_sops(oi_printing *x, const oi_sops *ops, uint32_t base, const char *acc)
{
    for (size_t i = 0; i < ops->n; i++) {
        const oi_sop *op = &ops->at[i];
        uint32_t id = base + (uint32_t)i;
        if ((x->early && x->early[id] != x->is_early) || (x->only && !(x->only >> op->kind & 1)))
            continue;
        bool feeds_store = !x->only && i + 1 < ops->n && ops->at[i + 1].kind == OI_SOP_STORE;
        switch (op->kind) {
        case OI_SOP_LOAD: print_load(x, id, op); break;
        case OI_SOP_INDEX: print_index(x, id, op); break;
        case OI_SOP_PLACE: print_place(x, id, op); break;
        case OI_SOP_CONST:
            x->forms[id] = op->is_raw ? raw_form(op->type) : oi_form_of(op->type);
            x->values[id] =
                op->is_raw ? raw_text(x, op->type, op->fill) : literal(x, op->type, op->fill);
            if (x->values[id][0] == '-') /* behind another minus it would decrement */
                x->values[id] = oi_arena_printf(x->p->arena, "(%s)", x->values[id]);
            break;
        case OI_SOP_EVAL:
            name_value(x, id, oi_form_of(op->type), eval_text(x, op), !feeds_store);
            break;
        case OI_SOP_CONVERT:
            name_value(x, id, oi_form_of(op->type), convert_text(x, op), !feeds_store);
            break;
        case OI_SOP_ACC:
            x->values[id] = acc;
            x->forms[id] = oi_form_of(op->type);
            break;
        case OI_SOP_COUNT:
            x->values[id] = "n";
            x->forms[id] = OI_I64;
            break;
        case OI_SOP_STORE: print_store(x, op); break;
        }
    }
}

/* -- loops -- */

static bool is_split(const oi_printing *x, uint32_t axis)
{
    return x->p->split && x->p->split->axis == axis;
}

/* The positions first ... last - 1 of two axes that are counted through. */
static void open_pair(oi_printing *x, uint32_t a)
{
    const bool is_inner = a != x->p->split->axis;
    const char *index = x->p->lang->index, *i = oi_place_axis(x, a - is_inner);
    const char *j = oi_place_axis(x, a + !is_inner);
    const long long n = x->n->axes[a + !is_inner].extent;
    oi_out *o = x->p->out;
    if (!is_inner) {
        oi_out_open(o, "for (%s %s = first / %lld; %s * %lld < last; %s++)", index, i, n, i, n, i);
        return;
    }
    oi_out_line(o, "const %s from = first > %s * %lld ? first - %s * %lld : 0;", index, i, n, i, n);
    oi_out_line(o, "const %s to = last < (%s + 1) * %lld ? last - %s * %lld : %lld;", index, i, n,
                i, n, n);
    oi_out_open(o, "for (%s %s = from; %s < to; %s++)", index, j, j, j);
}

static void open_loop(oi_printing *x, uint32_t a)
{
    const char *i = oi_place_axis(x, a), *index = x->p->lang->index;
    const oi_sharing *split = x->p->split;
    if (split && split->is_pair && (a == split->axis || a == split->axis + 1))
        open_pair(x, a);
    else if (is_split(x, a))
        oi_out_open(x->p->out, "for (%s %s = first; %s < last; %s++)", index, i, i, i);
    else
        oi_out_open(x->p->out, "for (%s %s = 0; %s < %s; %s++)", index, i, i,
                    oi_place_number(x, x->n->axes[a].extent, x->n->extents ? x->n->extents[a] : 0),
                    i);
    oi_place_name_rows(x, a);
}

static void open_loops(oi_printing *x, uint32_t from, uint32_t to)
{
    from = from < x->p->n_open ? x->p->n_open : from;
    for (uint32_t a = from; a < to; a++)
        if (oi_place_has_loop(x->n, a))
            open_loop(x, a);
}

static void close_loops(oi_printing *x, uint32_t from, uint32_t to)
{
    from = from < x->p->n_open ? x->p->n_open : from;
    oi_place_forget_rows(x, from);
    for (uint32_t a = from; a < to; a++)
        if (oi_place_has_loop(x->n, a))
            oi_out_close(x->p->out, "");
}

static const char *guard_text(const oi_printing *x)
{
    oi_buf out = {0};
    for (size_t i = 0; i < x->n->pre.n; i++) {
        const oi_sop *op = &x->n->pre.at[i];
        const char *inside =
            op->kind == OI_SOP_LOAD && op->may_leave ? oi_place_inside(x, op) : NULL;
        if (inside)
            oi_buf_printf(&out, "%s%s", out.n ? " && " : "", inside);
    }
    return oi_buf_to_arena(&out, x->p->arena);
}

/* acc after one more element, both of a form. */
static void print_combine_as(oi_printing *x, oi_dtype form, const char *acc, const char *element)
{
    const oi_scall *c = x->n->reduce;
    binding b = {.n = 0};
    bind_name(&b, "acc", form, acc);
    bind_name(&b, "x", form, element);
    if (x->n->kind == OI_NEST_CONTRACT) /* a product; elsewhere p may be an attribute */
        bind_name(&b, "p", form, element);
    bind_attrs(x, &b, c);
    if (x->n->finds_position) {
        uint32_t last = x->n->n_axes - 1;
        const char *k = oi_place_has_loop(x->n, last) ? oi_place_axis(x, last) : "0";
        if (x->n->finds_element)
            k = oi_place_element(x, &x->n->pre.at[0]);
        oi_out_open(x->p->out, "if (best < 0 || (%s))",
                    expression(x, part_text(c, OI_PART_BETTER, form, form), &b, OI_BOOL));
        oi_out_line(x->p->out, "acc = %s;", element);
        oi_out_line(x->p->out, "best = %s;", k);
        oi_out_close(x->p->out, "");
        return;
    }
    oi_out_line(x->p->out, "%s = %s;", acc,
                expression(x, part_text(c, OI_PART_COMBINE, form, form), &b, form));
}

static void print_combine(oi_printing *x, const char *acc, const char *element)
{
    print_combine_as(x, oi_form_of(x->n->acc), acc, element);
}

/* An iteration's instructions, and what they do to acc; once for every place that is spelled. */
static void print_elements(oi_printing *x, const char *acc)
{
    const oi_dtype form = x->n->order.parts ? OI_I16 : oi_form_of(x->n->acc);
    int64_t n = x->n->order.spells_last ? x->n->axes[x->n->n_axes - 1].extent : 1;
    for (x->round = 0; x->round < n; x->round++) {
        print_sops(x, &x->n->pre, 0, NULL);
        if (acc)
            print_combine_as(x, form, acc, x->values[x->n->element]);
    }
    x->round = 0;
}

static const char *init_text(oi_printing *x)
{
    binding b = {.n = 0};
    oi_dtype form = oi_form_of(x->n->acc);
    bind_attrs(x, &b, x->n->reduce);
    return expression(x, part_text(x->n->reduce, OI_PART_INIT, form, form), &b, form);
}

/* Whether the end of the reduction asks over how many elements it went. */
static bool counts(const oi_printing *x)
{
    const oi_snest *n = x->n;
    for (size_t i = 0; i < n->post.n; i++) {
        const oi_sop *op = &n->post.at[i];
        if (op->kind != OI_SOP_EVAL || op->part != OI_PART_FINISH)
            continue;
        oi_meaning *m = oi_arena_alloc(x->p->arena, sizeof *m);
        oi_dtype form = oi_form_of(n->acc);
        if (!oi_meaning_parse(part_text(op->call, op->part, form, form), m) ||
            oi_meaning_uses(m, "n"))
            return true;
    }
    return false;
}

static bool counts_padding(const oi_printing *x)
{
    for (size_t i = 0; i < x->n->pre.n; i++) {
        const oi_sop *op = &x->n->pre.at[i];
        for (uint32_t d = 0;
             op->kind == OI_SOP_LOAD && op->may_leave && d < oi_place_tensor(x, op)->rank; d++)
            if (op->at[d].counted_before || op->at[d].counted_after)
                return true;
    }
    return false;
}

/* Where an iteration counts although it may lie outside. */
static const char *counted_text(const oi_printing *x)
{
    oi_buf out = {0};
    for (size_t i = 0; i < x->n->pre.n; i++) {
        const oi_sop *op = &x->n->pre.at[i];
        for (uint32_t d = 0;
             op->kind == OI_SOP_LOAD && op->may_leave && d < oi_place_tensor(x, op)->rank; d++) {
            if (!op->at[d].may_leave)
                continue;
            const char *c = oi_place_coord(x, &op->at[d], oi_place_fns(op, d));
            const oi_coord_fns *f = oi_place_fns(op, d);
            oi_buf_printf(&out, "%s%s >= -%s && %s < %s + %s", out.n ? " && " : "", c,
                          oi_place_number(x, op->at[d].counted_before, f ? f->counted_before : 0),
                          c, oi_place_dim(x, op->port, d),
                          oi_place_number(x, op->at[d].counted_after, f ? f->counted_after : 0));
        }
    }
    return oi_buf_to_arena(&out, x->p->arena);
}

/* Over how many elements the reduced axes go. */
static const char *count_text(const oi_printing *x, uint32_t n_out)
{
    int64_t all = 1;
    const char *more = "";
    for (uint32_t a = n_out; a < x->n->n_axes; a++)
        if (x->n->extents && x->n->extents[a])
            more = oi_arena_printf(x->p->arena, "%s * %s", more, x->p->fns[x->n->extents[a]]);
        else
            all *= x->n->axes[a].extent;
    return oi_arena_printf(x->p->arena, "%" PRId64 "%s", all, more);
}

static void print_count(oi_printing *x, uint32_t n_out)
{
    if (counts(x))
        oi_out_line(x->p->out, "const %s n = %s;", x->p->lang->index, count_text(x, n_out));
}

/* Marks what an instruction is made of. */
static void mark_early(oi_printing *x, const oi_sop *op)
{
    const uint32_t rank = !op->at                                   ? 0
                          : op->is_flat || op->kind == OI_SOP_PLACE ? 1
                                                                    : oi_place_tensor(x, op)->rank;
    for (uint32_t a = 0; a < op->n_args; a++)
        if (op->args[a] != OI_NO_ID)
            x->early[op->args[a]] = true;
    if (op->kind == OI_SOP_EVAL && op->place != OI_NO_ID)
        x->early[op->place] = true;
    for (uint32_t d = 0; d < rank; d++)
        if (op->at[d].index != OI_NEST_NONE)
            x->early[op->at[d].index] = true;
}

/* What must hold for the sum to be looked at: asked before it is made. */
static void open_asked(oi_printing *x)
{
    const oi_snest *n = x->n;
    const uint32_t base = (uint32_t)n->pre.n;
    oi_buf b = {0};
    x->early = oi_arena_alloc(x->p->arena, n->pre.n + n->post.n + 1);
    for (uint32_t i = 0; i < n->order.n_asked; i++)
        x->early[n->order.asked[i]] = true;
    for (size_t i = n->post.n; i-- > 0;)
        if (x->early[base + i])
            mark_early(x, &n->post.at[i]);
    x->is_early = true;
    print_sops(x, &n->post, base, NULL);
    x->is_early = false;
    for (uint32_t i = 0; i < n->order.n_asked; i++)
        oi_buf_printf(&b, "%s%s", i ? " && " : "", x->values[n->order.asked[i]]);
    oi_out_open(x->p->out, "if (%s)", oi_buf_to_arena(&b, x->p->arena));
}

/* One sum, in order. */
static void print_reduce(oi_printing *x, uint32_t n_out)
{
    const oi_snest *n = x->n;
    oi_out *o = x->p->out;
    oi_dtype form = oi_form_of(n->acc);
    open_loops(x, 0, n_out);
    oi_out_line(o, "%s acc = %s;", type_text(x, form),
                n->finds_position ? literal(x, form, 0) : init_text(x));
    if (n->finds_position)
        oi_out_line(o, "%s best = -1;", x->p->lang->index);
    if (counts(x) && n->skips)
        oi_out_line(o, "%s n = 0;", x->p->lang->index);
    else
        print_count(x, n_out);
    if (n->order.n_asked)
        open_asked(x);
    open_loops(x, n_out, n->n_axes);
    if (n->skips && counts(x) && counts_padding(x)) {
        oi_out_line(o, "if (%s)", counted_text(x));
        oi_out_line(o, "    n++;");
    }
    if (n->skips)
        oi_out_open(o, "if (%s)", guard_text(x));
    if (n->is_scan && n->excludes) {
        print_sops(x, &n->pre, 0, NULL);
        print_sops(x, &n->post, (uint32_t)n->pre.n, "acc");
        print_combine(x, "acc", x->values[n->element]);
    } else {
        print_elements(x, "acc");
    }
    if (n->skips && counts(x) && !counts_padding(x))
        oi_out_line(o, "n++;");
    if (n->is_scan && !n->excludes)
        print_sops(x, &n->post, (uint32_t)n->pre.n, "acc");
    if (n->skips)
        oi_out_close(o, "");
    close_loops(x, n_out, n->n_axes);
    if (n->order.n_asked)
        oi_out_close(o, "");
    if (!n->is_scan)
        print_sops(x, &n->post, (uint32_t)n->pre.n,
                   n->finds_element    ? "(best < 0 ? 0 : best)"
                   : n->finds_position ? "best"
                                       : "acc");
    close_loops(x, 0, n_out);
}

/* Partial sums along the last axis: lane l takes every lanes-th element. */
static void print_lanes(oi_printing *x, uint32_t n_out)
{
    const oi_snest *n = x->n;
    oi_out *o = x->p->out;
    const char *type = type_text(x, oi_form_of(n->acc)), *index = x->p->lang->index;
    uint32_t last = n->n_axes - 1 - n->order.spells_last, lanes = n->order.lanes;
    const char *k = oi_place_axis(x, last);
    int64_t all = n->axes[last].extent, whole = all / lanes * lanes;
    open_loops(x, 0, n_out);
    print_count(x, n_out);
    if (n->order.n_asked) {
        oi_out_line(o, "%s acc = %s;", type, init_text(x));
        open_asked(x);
    }
    oi_out_line(o, "%s lane[%u];", type, lanes);
    oi_out_line(o, "for (int l = 0; l < %u; l++)", lanes);
    oi_out_line(o, "    lane[l] = %s;", init_text(x));
    open_loops(x, n_out, last);
    oi_out_open(o, "for (%s at = 0; at < %" PRId64 "; at += %u)", index, whole, lanes);
    oi_out_open(o, "for (int l = 0; l < %u; l++)", lanes);
    oi_out_line(o, "const %s %s = at + l;", index, k);
    print_elements(x, "lane[l]");
    oi_out_close(o, "");
    oi_out_close(o, "");
    if (whole < all) {
        oi_out_open(o, "for (%s %s = %" PRId64 "; %s < %" PRId64 "; %s++)", index, k, whole, k, all,
                    k);
        print_elements(x, oi_arena_printf(x->p->arena, "lane[%s - %" PRId64 "]", k, whole));
        oi_out_close(o, "");
    }
    close_loops(x, n_out, last);
    oi_out_line(o, "%s%sacc = lane[0];", n->order.n_asked ? "" : type, n->order.n_asked ? "" : " ");
    oi_out_open(o, "for (int l = 1; l < %u; l++)", lanes);
    print_combine(x, "acc", "lane[l]");
    oi_out_close(o, "");
    if (n->order.n_asked)
        oi_out_close(o, "");
    print_sops(x, &n->post, (uint32_t)n->pre.n, "acc");
    close_loops(x, 0, n_out);
}

static void open_strip(oi_printing *x, const char *loop, const char *j, bool is_part)
{
    oi_out_open(x->p->out, "%s", loop);
    if (is_part)
        oi_out_line(x->p->out, "const %s %s = at + l;", x->p->lang->index, j);
}

/* The loops of the sums side by side: all at once, or in parts of 16 bits. */
static void print_strip_sum(oi_printing *x, uint32_t n_out, const char *loop, const char *j,
                            const char *acc)
{
    const oi_snest *n = x->n;
    oi_out *o = x->p->out;
    const bool is_part = n->axes[n_out - 1].extent > n->order.strip;
    const uint32_t first = n->n_axes - n->order.parts;
    const char *part = oi_arena_printf(x->p->arena, "partial%s", acc + strlen("acc"));
    open_loops(x, n_out, first);
    if (n->order.parts) {
        oi_out_line(o, "%s partial[%u];", type_text(x, OI_I16), n->order.strip);
        oi_out_line(o, "%s", loop);
        oi_out_line(o, "    %s = 0;", part);
        open_loops(x, first, n->n_axes);
    }
    open_strip(x, loop, j, is_part);
    print_elements(x, n->order.parts ? part : acc);
    oi_out_close(o, "");
    if (n->order.parts) {
        close_loops(x, first, n->n_axes);
        oi_out_open(o, "%s", loop);
        print_combine(x, acc, part);
        oi_out_close(o, "");
    }
    close_loops(x, n_out, first);
}

/* Accumulators side by side along the last output axis. */
static void print_strip(oi_printing *x, uint32_t n_out)
{
    const oi_snest *n = x->n;
    oi_out *o = x->p->out;
    const char *type = type_text(x, oi_form_of(n->acc)), *index = x->p->lang->index;
    uint32_t row = n_out - 1, strip = n->order.strip;
    int64_t all = n->axes[row].extent;
    const char *j = oi_place_axis(x, row), *width = oi_arena_printf(x->p->arena, "%u", strip);
    open_loops(x, 0, row);
    if (is_split(x, row))
        oi_out_open(o, "for (%s at = first; at < last; at += %u)", index, strip);
    else if (all > strip)
        oi_out_open(o, "for (%s at = 0; at < %" PRId64 "; at += %u)", index, all, strip);
    if (all % strip) {
        width = "width";
        oi_out_line(o, "const %s width = %" PRId64 " - at < %u ? %" PRId64 " - at : %u;", index,
                    all, strip, all, strip);
    }
    const char *l = all > strip ? "l" : j, *acc = oi_arena_printf(x->p->arena, "acc[%s]", l);
    const char *loop = oi_arena_printf(x->p->arena, "for (%s %s = 0; %s < %s; %s++)",
                                       all > strip ? "int" : index, l, l, width, l);
    oi_out_line(o, "%s acc[%u];", type, strip);
    oi_out_line(o, "%s", loop);
    oi_out_line(o, "    %s = %s;", acc, init_text(x));
    print_count(x, n_out);
    print_strip_sum(x, n_out, loop, j, acc);
    open_strip(x, loop, j, all > strip);
    print_sops(x, &n->post, (uint32_t)n->pre.n, acc);
    oi_out_close(o, "");
    if (all > strip)
        oi_out_close(o, "");
    close_loops(x, 0, row);
}

/* Some rows of a map at once, loads first and stores last: then compilers can put steps of one row
 * between those of another, each of which waits for the one before. */
static void print_abreast(oi_printing *x)
{
    static const unsigned turns[] = {1u << OI_SOP_LOAD | 1u << OI_SOP_CONST,
                                     1u << OI_SOP_EVAL | 1u << OI_SOP_CONVERT, 1u << OI_SOP_STORE};
    const uint32_t row = x->n->n_axes - 2, many = x->n->order.abreast;
    const bool has_rest = is_split(x, row) || x->n->axes[row].extent % many;
    const char *i = oi_place_axis(x, row), *first = is_split(x, row) ? "first" : "0";
    const char *last = is_split(x, row) ? "last" : oi_place_number(x, x->n->axes[row].extent, 0);
    const char **values[OI_ABREAST];
    for (uint32_t r = 0; r < many; r++)
        values[r] = oi_arena_alloc(x->p->arena, (x->n->pre.n + 1) * sizeof **values);
    open_loops(x, 0, row);
    for (uint32_t n = many; n > 0; n = n == many && has_rest ? 1 : 0) {
        oi_out_open(x->p->out, "for (%s %s = %s; %s <= %s - %u; %s += %u)", x->p->lang->index, i,
                    first, i, last, n, i, n);
        open_loops(x, row + 1, x->n->n_axes);
        for (size_t t = 0; t < OI_COUNT(turns); t++)
            for (x->row = 0, x->only = turns[t]; x->row < n; x->row++) {
                x->values = values[x->row];
                print_sops(x, &x->n->pre, 0, NULL);
            }
        x->row = 0;
        close_loops(x, row + 1, x->n->n_axes);
        oi_out_close(x->p->out, "");
        first = oi_arena_printf(x->p->arena, "%s + (%s - %s) / %u * %u", first, last, first, n, n);
    }
    close_loops(x, 0, row);
}

void oi_nest_print(const oi_nest_printer *p, const oi_snest *n)
{
    const bool two = n->pre.n > 1 && n->pre.at[n->pre.n - 2].kind == OI_SOP_STORE;
    oi_printing x = {.p = p, .n = n, .names_all = two || n->order.abreast};
    size_t all = n->pre.n + n->post.n + 1;
    uint32_t n_out = 0;
    x.values = oi_arena_alloc(p->arena, all * sizeof *x.values);
    x.forms = oi_arena_alloc(p->arena, all * sizeof *x.forms);
    while (n_out < n->n_axes && !n->axes[n_out].is_reduced)
        n_out++;
    if (n->kind != OI_NEST_MAP) {
        if (n->order.lanes)
            print_lanes(&x, n_out);
        else if (n->order.strip)
            print_strip(&x, n_out);
        else
            print_reduce(&x, n_out);
        return;
    }
    if (n->order.abreast) {
        print_abreast(&x);
        return;
    }
    open_loops(&x, 0, n->n_axes);
    print_elements(&x, NULL);
    close_loops(&x, 0, n->n_axes);
}

void oi_nest_print_end(const oi_nest_printer *p, const oi_snest *n)
{
    oi_printing x = {.p = p, .n = n};
    size_t all = n->pre.n + n->post.n + 1;
    x.values = oi_arena_alloc(p->arena, all * sizeof *x.values);
    x.forms = oi_arena_alloc(p->arena, all * sizeof *x.forms);
    print_sops(&x, &n->post, (uint32_t)n->pre.n, "acc");
}

void oi_nest_open_shared(const oi_nest_printer *p, const oi_snest *n)
{
    oi_printing x = {.p = p, .n = n};
    for (uint32_t a = 0; a < p->kernel->n_shared; a++)
        open_loop(&x, a);
}
