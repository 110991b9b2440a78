/* bind_node.c: nodes and blocks of a Program: names become numbers, expressions become codes. */
#include "program/bind.h"

#include "program/check.h"

/* -- expressions -- */

typedef OI_VEC(oi_ins) ins_list;

static void emit(oi_binder *b, ins_list *out, oi_ins i)
{
    *OI_PUSH(b->p->arena, out) = i;
}

/* The index of a loop around the node, a variable, or in a block that is called the index of a
 * caller's loop; else NULL. */
static const oi_symbol *find(const oi_binder *b, const oi_node *n, const char *text)
{
    const oi_symbol *s = oi_symbols_at(b->p->symbols, n, text);
    return s || !b->is_called[n->block] ? s : oi_symbols_index(b->p->symbols, text);
}

/* Loop index, variable, size, own index: in this order. */
static void name(oi_binder *b, const oi_node *n, const oi_symbol *table, const oi_expr *e,
                 ins_list *out)
{
    const oi_symbols *syms = b->p->symbols;
    const oi_symbol *s = find(b, n, e->name);
    int64_t value;
    if (s && s->kind == OI_SYM_INDEX)
        emit(b, out, (oi_ins){OI_INS_INDEX, (uint32_t)(s - syms->list.at) - b->p->first_index, 0});
    else if (s)
        emit(b, out, (oi_ins){OI_INS_VAR, (uint32_t)(s - syms->list.at), 0});
    else if (oi_typer_size(b->typer, e->name, &value))
        emit(b, out, (oi_ins){OI_INS_INT, 0, value});
    else if (table && oi_symbol_axis(table, e->name))
        emit(b, out,
             (oi_ins){OI_INS_OWN, (uint32_t)(oi_symbol_axis(table, e->name) - table->axes), 0});
    else {
        b->status = oi_diag_error(b->d, oi_graph_place_node(b->g, b->p->arena, n, e->span), "E030",
                                  "'%s' is neither a variable nor a size of the model", e->name);
        if (!b->typer->model)
            oi_diag_hint(b->d, "no model is given: name its package with --model MODEL.oinf");
    }
}

static void code(oi_binder *b, const oi_node *n, const oi_symbol *table, const oi_expr *e,
                 ins_list *out)
{
    static const oi_ins_kind kinds[] = {
        [OI_EXPR_NEG] = OI_INS_NEG, [OI_EXPR_ADD] = OI_INS_ADD, [OI_EXPR_SUB] = OI_INS_SUB,
        [OI_EXPR_MUL] = OI_INS_MUL, [OI_EXPR_DIV] = OI_INS_DIV, [OI_EXPR_MOD] = OI_INS_MOD,
    };
    int64_t value;
    if (e->kind == OI_EXPR_NAME) {
        name(b, n, table, e, out);
        return;
    }
    if (e->kind == OI_EXPR_INT || e->kind == OI_EXPR_RUNTIME) {
        if (!oi_expr_is_literal(e, &value))
            b->status = oi_diag_error(b->d, oi_graph_place_node(b->g, b->p->arena, n, e->span),
                                      "E047", "the number does not fit a 64-bit signed integer");
        emit(b, out, (oi_ins){OI_INS_INT, 0, value});
        return;
    }
    code(b, n, table, e->lhs, out);
    if (e->rhs)
        code(b, n, table, e->rhs, out);
    emit(b, out, (oi_ins){kinds[e->kind], 0, 0});
}

oi_code oi_bind_code(oi_binder *b, const oi_node *n, const oi_symbol *table, const oi_expr *e)
{
    ins_list list = {0};
    if (!e)
        return (oi_code){0};
    code(b, n, table, e, &list);
    oi_code c = {list.at, (uint32_t)list.n, e};
    for (uint32_t i = 0; i < c.n; i++)
        if (c.at[i].kind == OI_INS_INDEX || c.at[i].kind == OI_INS_VAR ||
            c.at[i].kind == OI_INS_OWN)
            return c;
    int64_t value;
    if (b->status == OI_OK && c.n > 1 && oi_code_run(&c, &(oi_env){0}, &value) == OI_CODE_OK) {
        list.at[0] = (oi_ins){OI_INS_INT, 0, value};
        c.n = 1;
    }
    return c;
}

/* -- references -- */

/* The number of a name and whether it is a loop index. */
static uint32_t resolve(oi_binder *b, const oi_node *n, const char *text, bool *is_index)
{
    const oi_symbols *syms = b->p->symbols;
    const oi_symbol *s = find(b, n, text);
    *is_index = s && s->kind == OI_SYM_INDEX;
    if (!s)
        return OI_NO_ID;
    return (uint32_t)(s - syms->list.at) - (*is_index ? b->p->first_index : 0);
}

static oi_pref bind_ref(oi_binder *b, const oi_node *n, const oi_access *a)
{
    oi_pref r = {.source = a};
    r.var = resolve(b, n, a->base.text, &r.is_index);
    if (r.var == OI_NO_ID || r.is_index || !b->vars[r.var].is_prefix)
        return r;
    oi_code *codes = oi_arena_alloc(b->p->arena, (a->sels.n + 1) * sizeof *codes);
    for (size_t i = 0; i < a->sels.n; i++)
        codes[i] = oi_bind_code(b, n, NULL, a->sels.at[i].start);
    r.codes = codes;
    r.n_codes = (uint32_t)a->sels.n;
    return r;
}

static const oi_pref *bind_refs(oi_binder *b, const oi_node *n, const oi_accesses *list)
{
    oi_pref *refs = oi_arena_alloc(b->p->arena, (list->n + 1) * sizeof *refs);
    for (size_t i = 0; i < list->n; i++)
        refs[i] = bind_ref(b, n, &list->at[i]);
    return refs;
}

static oi_paccess bind_access(oi_binder *b, const oi_node *n, const oi_access *a)
{
    bool is_index;
    oi_paccess x = {.source = a, .n = (uint32_t)a->sels.n};
    x.var = resolve(b, n, a->base.text, &is_index);
    const oi_symbol *table = &b->p->symbols->list.at[x.var];
    oi_psel *sels = oi_arena_alloc(b->p->arena, (a->sels.n + 1) * sizeof *sels);
    for (size_t i = 0; i < a->sels.n; i++) {
        const oi_sel *s = &a->sels.at[i];
        sels[i] = (oi_psel){.is_slice = s->is_slice, .source = s};
        sels[i].start = oi_bind_code(b, n, table, s->start);
        sels[i].end = oi_bind_code(b, n, table, s->end);
    }
    x.sels = sels;
    return x;
}

/* -- attributes -- */

static oi_pvalue bind_name(oi_binder *b, const oi_node *n, const oi_value *v)
{
    bool is_index;
    oi_pvalue out = {.kind = OI_PV_KNOWN};
    out.id = resolve(b, n, v->text, &is_index);
    if (out.id != OI_NO_ID)
        out.kind = is_index ? OI_PV_INDEX : OI_PV_VAR;
    else if (!oi_typer_value(b->typer, v, &out.value)) {
        b->status = oi_diag_error(b->d, oi_graph_place_node(b->g, b->p->arena, n, v->span), "E030",
                                  "'%s' is neither a variable nor in the model", v->text);
        if (!oi_hint_quotes(b->d, n, v->text) && !b->typer->model)
            oi_diag_hint(b->d, "no model is given: name its package with --model MODEL.oinf");
    }
    return out;
}

static oi_pvalue bind_value(oi_binder *b, const oi_node *n, const oi_value *v)
{
    int64_t i;
    oi_pvalue out = {.kind = OI_PV_KNOWN};
    if (v->kind == OI_VAL_NAME)
        return bind_name(b, n, v);
    if (v->kind != OI_VAL_EXPR) {
        (void)oi_typer_value(b->typer, v, &out.value); /* a literal: lists do not nest */
        return out;
    }
    out.code = oi_bind_code(b, n, NULL, v->expr);
    out.kind = OI_PV_CODE;
    if (oi_code_is_int(&out.code, &i)) {
        out.kind = OI_PV_KNOWN;
        out.value = (oi_op_value){.tag = OI_VALUE_INT, .i = i};
    }
    return out;
}

/* A list whose items are all known, in the form the registry's defaults have. */
static oi_op_value known_list(oi_binder *b, const oi_pvalue *items, uint32_t n)
{
    oi_op_value out = {.tag = OI_VALUE_INT_LIST, .n = n};
    oi_arena *a = b->p->arena;
    oi_op_value_tag first = n ? items[0].value.tag : OI_VALUE_INT;
    int64_t *ints = oi_arena_alloc(a, (n + 1) * sizeof *ints);
    double *floats = oi_arena_alloc(a, (n + 1) * sizeof *floats);
    const char **strings = oi_arena_alloc(a, (n + 1) * sizeof *strings);
    oi_dtype *dtypes = oi_arena_alloc(a, (n + 1) * sizeof *dtypes);
    bool any_float = false;
    for (uint32_t i = 0; i < n; i++) {
        const oi_op_value *v = &items[i].value;
        any_float |= v->tag == OI_VALUE_FLOAT;
        ints[i] = v->tag == OI_VALUE_FLOAT ? 0 : v->tag == OI_VALUE_BOOL ? v->b : v->i;
        floats[i] = v->tag == OI_VALUE_FLOAT ? v->f : (double)ints[i];
        strings[i] = v->tag == OI_VALUE_STRING ? v->s : "";
        dtypes[i] = v->tag == OI_VALUE_DTYPE ? v->dtype : OI_NONE;
    }
    out.ints = ints;
    if (first == OI_VALUE_STRING) {
        out.tag = OI_VALUE_STRING_LIST;
        out.strings = strings;
    } else if (first == OI_VALUE_DTYPE) {
        out.tag = OI_VALUE_DTYPE_LIST;
        out.dtypes = dtypes;
    } else if (any_float) {
        out.tag = OI_VALUE_FLOAT_LIST;
        out.floats = floats;
    }
    return out;
}

static oi_pattr bind_attr(oi_binder *b, const oi_node *n, const oi_op *op, const oi_attr *a)
{
    oi_pattr out = {.attr = oi_op_attr_find(op, a->name.text), .span = a->value.span};
    if (a->value.kind != OI_VAL_LIST) {
        out.one = bind_value(b, n, &a->value);
        return out;
    }
    oi_pvalue *items = oi_arena_alloc(b->p->arena, (a->value.n + 1) * sizeof *items);
    bool known = true;
    out.n_items = (uint32_t)a->value.n;
    for (uint32_t i = 0; i < out.n_items; i++) {
        items[i] = bind_value(b, n, &a->value.items[i]);
        known = known && items[i].kind == OI_PV_KNOWN;
    }
    if (known)
        out.one = (oi_pvalue){.kind = OI_PV_KNOWN, .value = known_list(b, items, out.n_items)};
    else
        out.items = items;
    return out;
}

/* -- operands from quantisation data -- */

/* "W.{l}" becomes "W.{l}#scale". */
static const oi_pattern_part *quant_pattern(oi_binder *b, const oi_pvar *of, uint32_t part)
{
    oi_arena *a = b->p->arena;
    oi_pattern_part *parts = oi_arena_alloc(a, of->n_pattern * sizeof *parts);
    memcpy(parts, of->pattern, of->n_pattern * sizeof *parts);
    oi_pattern_part *last = &parts[of->n_pattern - 1];
    last->text = oi_arena_printf(a, "%s%s", last->text, oi_quant_suffix(part));
    return parts;
}

/* The variable that holds a part of a variable's data, made at its first use. */
static uint32_t quant_var(oi_binder *b, const oi_symbol *s, uint32_t part)
{
    uint32_t base = (uint32_t)(s - b->p->symbols->list.at);
    uint32_t *known = &b->quant_vars[base * OI_QUANT_PARTS + part];
    oi_tensor_info t;
    if (*known || !oi_quant_find(b->m, s, part, b->p->arena, &t))
        return *known;
    const oi_pvar *of = &b->vars[base];
    oi_pvar *v = &b->vars[b->p->n_vars];
    *v = (oi_pvar){.symbol = s,
                   .kind = OI_SYM_CONSTANT,
                   .dtype = t.dtype,
                   .rank = t.rank,
                   .n_elements = t.n_elements,
                   .size_bytes = t.data_nbytes,
                   .init = {t.dtype, 0},
                   .source = of->is_prefix ? OI_FROM_INIT : OI_FROM_TENSOR};
    v->name = oi_arena_printf(b->p->arena, "%s_%s", s->name, oi_quant_suffix(part) + 1);
    while (oi_symbols_find(b->p->symbols, v->name)) /* a name that emitted code can use */
        v->name = oi_arena_printf(b->p->arena, "%s_", v->name);
    memcpy(v->dims, t.dims, t.rank * sizeof *t.dims);
    if (of->is_prefix) {
        v->is_prefix = true;
        v->axes = of->axes;
        v->n_axes = of->n_axes;
        v->n_table = of->n_table;
        v->n_pattern = of->n_pattern;
        v->pattern = quant_pattern(b, of, part);
    } else {
        (void)oi_model_tensor_index(b->m, t.name, &v->tensor);
    }
    return *known = b->p->n_vars++;
}

/* The operands of a call, with those that it leaves out in their place. */
static const oi_pref *bind_inputs(oi_binder *b, const oi_node *n, const oi_op *op, uint32_t *n_in)
{
    const oi_accesses *list = &n->as.op.inputs;
    oi_fill fill;
    oi_quant_fill(b->p->symbols, b->m, n, op, b->p->arena, &fill);
    if (!b->m)
        fill.n = 0;
    *n_in = (uint32_t)list->n + fill.n;
    oi_pref *refs = oi_arena_alloc(b->p->arena, (*n_in + 1) * sizeof *refs);
    for (uint32_t i = 0, k = 0; i < *n_in; i++) {
        if (!fill.n || i < fill.at || i >= fill.at + fill.n) {
            refs[i] = bind_ref(b, n, &list->at[k++]);
            continue;
        }
        refs[i] = bind_ref(b, n, fill.of); /* the same entry of a table */
        refs[i].var = quant_var(b, fill.symbol, i - fill.at);
    }
    return refs;
}

static void bind_op(oi_binder *b, const oi_node *n, oi_pnode *to)
{
    const oi_op *op = oi_op_find(n->name.text);
    to->as.op.op = op;
    to->as.op.in = bind_inputs(b, n, op, &to->as.op.n_in);
    to->as.op.out = bind_refs(b, n, &n->as.op.outputs);
    to->as.op.n_out = (uint32_t)n->as.op.outputs.n;
    to->as.op.n_attrs = (uint32_t)n->as.op.attrs.n;
    oi_pattr *attrs = oi_arena_alloc(b->p->arena, (n->as.op.attrs.n + 1) * sizeof *attrs);
    for (size_t i = 0; i < n->as.op.attrs.n; i++)
        attrs[i] = bind_attr(b, n, op, &n->as.op.attrs.at[i]);
    to->as.op.attrs = attrs;
    oi_bind_precision(b, to, attrs);
}

/* -- nodes -- */

static void bind_move(oi_binder *b, const oi_node *n, oi_pnode *to)
{
    to->as.move.amount = n->as.move.amount;
    to->as.move.amount_var = OI_NO_ID;
    if (n->kind == OI_NODE_TRANSFER || n->kind == OI_NODE_CACHE_WRITE)
        to->as.move.from = bind_ref(b, n, &n->as.move.from);
    if (n->kind == OI_NODE_TRANSFER || n->kind == OI_NODE_CACHE_READ)
        to->as.move.to = bind_ref(b, n, &n->as.move.to);
    if (n->kind == OI_NODE_CACHE_READ)
        to->as.move.cache = bind_access(b, n, &n->as.move.from);
    else if (n->kind != OI_NODE_TRANSFER)
        to->as.move.cache = bind_access(b, n, &n->as.move.to);
    if (n->as.move.amount_name.text)
        to->as.move.amount_var =
            resolve(b, n, n->as.move.amount_name.text, &to->as.move.amount_is_index);
}

static void bind_branch(oi_binder *b, const oi_node *n, oi_pnode *to)
{
    to->as.branch.cond = OI_NO_ID;
    to->as.branch.else_block = OI_NO_ID;
    to->as.branch.then_block = oi_graph_find_block(b->g, n->as.branch.then_block.text);
    if (!n->as.branch.cond.text)
        return;
    to->as.branch.else_block = oi_graph_find_block(b->g, n->as.branch.else_block.text);
    to->as.branch.cond = resolve(b, n, n->as.branch.cond.text, &to->as.branch.cond_is_index);
}

static void bind_list(oi_binder *b, const oi_node *n, oi_pnode *to)
{
    const oi_names *names = &n->as.list.names;
    uint32_t *vars = oi_arena_alloc(b->p->arena, (names->n + 1) * sizeof *vars);
    bool is_index;
    for (size_t i = 0; i < names->n; i++)
        vars[i] = resolve(b, n, names->at[i].text, &is_index);
    to->as.list.vars = vars;
    to->as.list.n = (uint32_t)names->n;
}

static void bind_loop(oi_binder *b, const oi_node *n, oi_pnode *to)
{
    const oi_symbol *s = oi_symbols_index(b->p->symbols, n->as.loop.index.text);
    to->as.loop.index = (uint32_t)(s - b->p->symbols->list.at) - b->p->first_index;
    to->as.loop.start = oi_bind_code(b, n, NULL, n->as.loop.start);
    to->as.loop.end = oi_bind_code(b, n, NULL, n->as.loop.end);
}

static void mark_called(oi_binder *b)
{
    b->is_called = oi_arena_alloc(b->p->arena, b->p->n_blocks + 1);
    for (size_t i = 0; i < b->g->nodes.n; i++) {
        const oi_node *n = &b->g->nodes.at[i];
        if (n->kind != OI_NODE_BRANCH)
            continue;
        b->is_called[oi_graph_find_block(b->g, n->as.branch.then_block.text)] = 1;
        if (n->as.branch.else_block.text)
            b->is_called[oi_graph_find_block(b->g, n->as.branch.else_block.text)] = 1;
    }
}

void oi_bind_nodes(oi_binder *b)
{
    mark_called(b);
    for (size_t i = 0; i < b->g->nodes.n && !oi_diag_full(b->d); i++) {
        const oi_node *n = &b->g->nodes.at[i];
        oi_pnode *to = &b->nodes[i];
        *to = (oi_pnode){.kind = n->kind, .source = n};
        switch (n->kind) {
        case OI_NODE_OP: bind_op(b, n, to); break;
        case OI_NODE_BRANCH: bind_branch(b, n, to); break;
        case OI_NODE_LOOP: bind_loop(b, n, to); break;
        case OI_NODE_YIELD:
        case OI_NODE_AWAIT:
        case OI_NODE_RETURN: bind_list(b, n, to); break;
        case OI_NODE_ASSIGN:
        case OI_NODE_BARRIER:
        case OI_NODE_DEP: break;
        default: bind_move(b, n, to);
        }
    }
}

/* -- blocks -- */

typedef struct reach {
    oi_binder *b;
    uint64_t *uses, *writes;
    uint8_t *seen; /* by block */
    oi_ids work;
} reach;

static void add_use(void *ctx, const oi_node *n, const oi_use *u)
{
    reach *r = ctx;
    const oi_symbol *s = oi_symbols_at(r->b->p->symbols, n, u->name);
    if (!s || s->kind == OI_SYM_INDEX)
        return;
    uint32_t id = (uint32_t)(s - r->b->p->symbols->list.at);
    r->uses[id / 64] |= 1ull << id % 64;
    if (oi_use_writes(u->role))
        r->writes[id / 64] |= 1ull << id % 64;
}

static void visit(reach *r, uint32_t block)
{
    if (block == OI_NO_ID || r->seen[block])
        return;
    r->seen[block] = 1;
    *OI_PUSH(r->b->p->arena, &r->work) = block;
}

/* Quantisation data is not in the text. */
static void add_quant_uses(const oi_binder *b, const oi_pnode *n, uint64_t *uses)
{
    for (uint32_t i = 0; n->kind == OI_NODE_OP && i < n->as.op.n_in; i++) {
        uint32_t v = n->as.op.in[i].var;
        if (!n->as.op.in[i].is_index && v != OI_NO_ID && v >= b->p->first_index)
            uses[v / 64] |= (uint64_t)1 << v % 64;
    }
}

/* Everything a consumer may touch, through the blocks it calls. */
static void consumer_sets(oi_binder *b, uint32_t block)
{
    oi_arena *a = b->p->arena;
    reach r = {.b = b};
    r.uses = oi_arena_alloc(a, b->p->n_mask * sizeof *r.uses);
    r.writes = oi_arena_alloc(a, b->p->n_mask * sizeof *r.writes);
    r.seen = oi_arena_alloc(a, b->p->n_blocks + 1);
    visit(&r, block);
    while (r.work.n) {
        uint32_t at = r.work.at[--r.work.n];
        for (size_t i = 0; i < b->g->nodes.n; i++) {
            if (b->g->nodes.at[i].block != at)
                continue;
            oi_node_uses(&b->g->nodes.at[i], add_use, &r);
            add_quant_uses(b, &b->nodes[i], r.uses);
            if (b->nodes[i].kind == OI_NODE_BRANCH) {
                visit(&r, b->nodes[i].as.branch.then_block);
                visit(&r, b->nodes[i].as.branch.else_block);
            }
        }
    }
    b->blocks[block].uses = r.uses;
    b->blocks[block].writes = r.writes;
}

/* Await nodes of a block in text order, loops included. */
static void add_awaits(oi_binder *b, oi_pblock *to, const oi_ids *list, oi_ids *awaited)
{
    for (size_t i = 0; i < list->n; i++) {
        const oi_pnode *n = &b->nodes[list->at[i]];
        if (n->kind == OI_NODE_LOOP)
            add_awaits(b, to, &n->source->as.loop.body, awaited);
        if (n->kind != OI_NODE_AWAIT)
            continue;
        if (!to->first_await)
            to->first_await = n;
        for (uint32_t k = 0; k < n->as.list.n; k++) {
            bool have = false;
            for (size_t j = 0; j < awaited->n; j++)
                have |= awaited->at[j] == n->as.list.vars[k];
            if (!have)
                *OI_PUSH(b->p->arena, awaited) = n->as.list.vars[k];
        }
    }
}

void oi_bind_blocks(oi_binder *b)
{
    oi_ids consumers = {0};
    for (uint32_t i = 0; i < b->p->n_blocks; i++) {
        oi_pblock *to = &b->blocks[i];
        oi_ids awaited = {0};
        to->source = &b->g->blocks.at[i];
        if (i == b->p->entry)
            continue;
        add_awaits(b, to, &to->source->nodes, &awaited);
        to->awaited = awaited.at;
        to->n_awaited = (uint32_t)awaited.n;
        to->is_consumer = awaited.n > 0;
        if (!to->is_consumer)
            continue;
        consumer_sets(b, i);
        *OI_PUSH(b->p->arena, &consumers) = i;
    }
    b->p->consumers = consumers.at;
    b->p->n_consumers = (uint32_t)consumers.n;
}
