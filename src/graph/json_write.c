/* json_write.c: Graph -> JSON (spec/graph-json.md §1). Objects are written with their keys in byte
 * order, so each function lists its keys alphabetically. */
#define _GNU_SOURCE /* qsort_r */
#include "graph/graph.h"

#include <stdlib.h>

typedef struct writer {
    oi_jsonw w; /* first: jsonw functions take &x->w */
    const oi_graph *g;
    bool spans;
} writer;

static void str(writer *x, const char *key, const char *text)
{
    oi_jsonw_key(&x->w, key);
    oi_jsonw_str(&x->w, text);
}

static void str_or_null(writer *x, const char *key, const char *text)
{
    oi_jsonw_key(&x->w, key);
    if (text)
        oi_jsonw_str(&x->w, text);
    else
        oi_jsonw_null(&x->w);
}

static void names(writer *x, const char *key, const oi_names *list)
{
    oi_jsonw_key(&x->w, key);
    oi_jsonw_open(&x->w, '[');
    for (size_t i = 0; i < list->n; i++)
        oi_jsonw_str(&x->w, list->at[i].text);
    oi_jsonw_close(&x->w, ']');
}

/* Opens the one-key object {"key": … }. */
static void tagged(writer *x, const char *key)
{
    oi_jsonw_open(&x->w, '{');
    oi_jsonw_key(&x->w, key);
}

static void untag(writer *x)
{
    oi_jsonw_close(&x->w, '}');
}

/* Text made by a printer, as one JSON string. */
static void expr_text(writer *x, const oi_expr *e)
{
    oi_buf b = {0};
    oi_expr_print(&b, e);
    oi_jsonw_strn(&x->w, b.text ? b.text : "", b.n);
    x->w.out->failed |= b.failed;
    oi_buf_free(&b);
}

static void access_text(writer *x, const oi_access *a)
{
    oi_buf b = {0};
    oi_access_print(&b, a, false);
    oi_jsonw_strn(&x->w, b.text ? b.text : "", b.n);
    x->w.out->failed |= b.failed;
    oi_buf_free(&b);
}

static void dims(writer *x, const oi_exprs *list)
{
    oi_jsonw_key(&x->w, "dims");
    oi_jsonw_open(&x->w, '[');
    for (size_t i = 0; i < list->n; i++)
        expr_text(x, list->at[i]);
    oi_jsonw_close(&x->w, ']');
}

/* -- values -- */

static void scalar(writer *x, oi_scalar s)
{
    double v = oi_dtype_is_float(s.dtype) ? oi_float_decode(s.dtype, s.bits) : 0;
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(s.bits >> 8 * i);
    tagged(x, oi_dtype_get(s.dtype)->json);
    switch (s.dtype) {
    case OI_F32: oi_jsonw_f32(&x->w, (float)v); break;
    case OI_F64: oi_jsonw_f64(&x->w, v); break;
    case OI_BOOL: oi_jsonw_bool(&x->w, s.bits != 0); break;
    case OI_U8:
    case OI_U16:
    case OI_U32:
    case OI_U64: oi_jsonw_u64(&x->w, s.bits); break;
    case OI_I8:
    case OI_I16:
    case OI_I32:
    case OI_I64: oi_jsonw_i64(&x->w, oi_element_i64(s.dtype, bytes, 0)); break;
    default: /* no JSON number of their own */
        tagged(x, "bits");
        oi_jsonw_u64(&x->w, s.bits);
        untag(x);
    }
    untag(x);
}

static void integer(writer *x, const oi_value *v)
{
    if (v->negative)
        oi_jsonw_i64(&x->w, (int64_t)(0 - v->magnitude));
    else
        oi_jsonw_u64(&x->w, v->magnitude);
}

/* The value without its tag. */
static void bare(writer *x, const oi_value *v)
{
    switch (v->kind) {
    case OI_VAL_INT: integer(x, v); break;
    case OI_VAL_FLOAT: oi_jsonw_f64(&x->w, v->number); break;
    case OI_VAL_BOOL: oi_jsonw_bool(&x->w, v->boolean); break;
    case OI_VAL_STR: oi_jsonw_strn(&x->w, v->text, v->n); break;
    case OI_VAL_DTYPE: oi_jsonw_str(&x->w, oi_dtype_get(v->dtype)->json); break;
    case OI_VAL_NAME: oi_jsonw_str(&x->w, v->text); break;
    default: expr_text(x, v->expr); break;
    }
}

static const char *tag_of(const oi_value *v)
{
    static const char *const tags[] = {
        [OI_VAL_INT] = "Int",   [OI_VAL_FLOAT] = "Double", [OI_VAL_BOOL] = "Bool",
        [OI_VAL_STR] = "Str",   [OI_VAL_DTYPE] = "DType",  [OI_VAL_NAME] = "Var",
        [OI_VAL_EXPR] = "Expr",
    };
    return v->kind == OI_VAL_INT && !v->negative && v->magnitude > INT64_MAX ? "UInt"
                                                                             : tags[v->kind];
}

/* The list form that all items share, or NULL when only the general "List" will do. */
static const char *list_tag(const oi_value *v)
{
    static const struct {
        const char *item, *list;
    } forms[] = {{"Int", "IntList"},
                 {"Double", "FloatList"},
                 {"Str", "StrList"},
                 {"DType", "DTypeList"},
                 {"Var", "VarList"}};
    if (v->n == 0)
        return "IntList";
    for (size_t i = 1; i < v->n; i++)
        if (strcmp(tag_of(&v->items[i]), tag_of(&v->items[0])) != 0)
            return NULL;
    for (size_t i = 0; i < OI_COUNT(forms); i++)
        if (strcmp(tag_of(&v->items[0]), forms[i].item) == 0)
            return forms[i].list;
    return NULL;
}

static void value(writer *x, const oi_value *v)
{
    if (v->kind != OI_VAL_LIST) {
        tagged(x, tag_of(v));
        bare(x, v);
        untag(x);
        return;
    }
    const char *tag = list_tag(v);
    tagged(x, tag ? tag : "List");
    oi_jsonw_open(&x->w, '[');
    for (size_t i = 0; i < v->n; i++) {
        if (tag)
            bare(x, &v->items[i]);
        else
            value(x, &v->items[i]); /* items are never lists */
    }
    oi_jsonw_close(&x->w, ']');
    untag(x);
}

static void attrs(writer *x, const oi_attrs *list)
{
    oi_jsonw_open(&x->w, '[');
    for (size_t i = 0; i < list->n; i++) {
        oi_jsonw_open(&x->w, '{');
        if (list->at[i].name.text)
            str(x, "name", list->at[i].name.text);
        oi_jsonw_key(&x->w, "value");
        value(x, &list->at[i].value);
        oi_jsonw_close(&x->w, '}');
    }
    oi_jsonw_close(&x->w, ']');
}

/* -- accesses -- */

static void index_value(writer *x, const oi_expr *e)
{
    int64_t lit;
    if (!e) {
        oi_jsonw_null(&x->w);
        return;
    }
    bool is_lit = oi_expr_is_literal(e, &lit);
    tagged(x, is_lit ? "Lit" : e->kind == OI_EXPR_NAME ? "Ident" : "Expr");
    if (is_lit)
        oi_jsonw_i64(&x->w, lit);
    else
        expr_text(x, e);
    untag(x);
}

static void selector(writer *x, const oi_sel *s)
{
    tagged(x, s->is_slice ? "Slice" : "Single");
    if (!s->is_slice) {
        index_value(x, s->start);
    } else {
        oi_jsonw_open(&x->w, '{');
        oi_jsonw_key(&x->w, "end"), index_value(x, s->end);
        oi_jsonw_key(&x->w, "start"), index_value(x, s->start);
        oi_jsonw_close(&x->w, '}');
    }
    untag(x);
}

static void access(writer *x, const char *key, const oi_access *a)
{
    oi_jsonw_key(&x->w, key);
    oi_jsonw_open(&x->w, '{');
    str(x, "base", a->base.text);
    oi_jsonw_key(&x->w, "bracketed"), oi_jsonw_bool(&x->w, a->bracketed);
    oi_jsonw_key(&x->w, "indices"), oi_jsonw_open(&x->w, '[');
    for (size_t i = 0; i < a->sels.n; i++)
        selector(x, &a->sels.at[i]);
    oi_jsonw_close(&x->w, ']');
    oi_jsonw_close(&x->w, '}');
}

static void ref(writer *x, const char *key, const oi_access *a)
{
    oi_jsonw_key(&x->w, key);
    access_text(x, a);
}

static void refs(writer *x, const char *key, const oi_accesses *list)
{
    oi_jsonw_key(&x->w, key);
    oi_jsonw_open(&x->w, '[');
    for (size_t i = 0; i < list->n; i++)
        access_text(x, &list->at[i]);
    oi_jsonw_close(&x->w, ']');
}

/* -- nodes -- */

static void nodes(writer *x, const char *key, const oi_ids *list);

static void op(writer *x, const oi_node *n)
{
    oi_jsonw_key(&x->w, "attrs");
    tagged(x, "items");
    attrs(x, &n->as.op.attrs);
    untag(x);
    refs(x, "inputs", &n->as.op.inputs);
    str(x, "op", n->name.text);
    ref(x, "output", &n->as.op.outputs.at[0]);
    if (n->as.op.outputs.n > 1)
        refs(x, "outputs", &n->as.op.outputs);
}

static void loop(writer *x, const oi_node *n)
{
    nodes(x, "body", &n->as.loop.body);
    oi_jsonw_key(&x->w, "end"), expr_text(x, n->as.loop.end);
    str(x, "index", n->as.loop.index.text);
    str(x, "name", n->name.text);
    oi_jsonw_key(&x->w, "start"), expr_text(x, n->as.loop.start);
}

static void counter(writer *x, const oi_node *n)
{
    oi_jsonw_key(&x->w, "amount"), oi_jsonw_u64(&x->w, n->as.move.amount);
    if (n->as.move.amount_name.text)
        str(x, "amount_var", n->as.move.amount_name.text);
    str(x, "target", n->as.move.to.base.text);
}

static void fields(writer *x, const oi_node *n)
{
    switch (n->kind) {
    case OI_NODE_ASSIGN:
        dims(x, &n->as.assign.dims);
        str(x, "dtype", oi_dtype_get(n->as.assign.dtype)->json);
        str(x, "name", n->name.text);
        break;
    case OI_NODE_OP: op(x, n); break;
    case OI_NODE_BRANCH:
        str_or_null(x, "cond", n->as.branch.cond.text);
        str_or_null(x, "else_block", n->as.branch.else_block.text);
        str(x, "then_block", n->as.branch.then_block.text);
        break;
    case OI_NODE_DEP:
        str(x, "after", n->as.dep.after.text);
        str(x, "before", n->as.dep.before.text);
        break;
    case OI_NODE_CACHE_READ:
        ref(x, "dst", &n->as.move.to);
        access(x, "src", &n->as.move.from);
        break;
    case OI_NODE_CACHE_WRITE:
        access(x, "dst", &n->as.move.to);
        ref(x, "src", &n->as.move.from);
        break;
    case OI_NODE_CACHE_RESET: access(x, "target", &n->as.move.to); break;
    case OI_NODE_TRANSFER:
        ref(x, "dst", &n->as.move.to);
        ref(x, "src", &n->as.move.from);
        break;
    case OI_NODE_LOOP: loop(x, n); break;
    case OI_NODE_CACHE_INCREMENT:
    case OI_NODE_CACHE_DECREMENT: counter(x, n); break;
    case OI_NODE_YIELD:
    case OI_NODE_AWAIT: names(x, "vars", &n->as.list.names); break;
    default: names(x, "values", &n->as.list.names); break; /* return */
    }
}

static void node_kind(writer *x, const oi_node *n)
{
    const char *tag = oi_node_table[n->kind].json;
    if (n->kind == OI_NODE_BARRIER || (n->kind == OI_NODE_RETURN && n->as.list.names.n == 0)) {
        oi_jsonw_str(&x->w, tag);
        return;
    }
    tagged(x, tag);
    oi_jsonw_open(&x->w, '{');
    fields(x, n);
    oi_jsonw_close(&x->w, '}');
    untag(x);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const oi_attr *const *)a)->name.text, (*(const oi_attr *const *)b)->name.text);
}

static void hints(writer *x, const oi_attrs *list)
{
    const oi_attr **sorted = malloc(list->n * sizeof *sorted);
    x->w.out->failed |= !sorted;
    for (size_t i = 0; sorted && i < list->n; i++)
        sorted[i] = &list->at[i];
    if (sorted)
        qsort(sorted, list->n, sizeof *sorted, by_name);
    oi_jsonw_key(&x->w, "hints");
    oi_jsonw_open(&x->w, '{');
    for (size_t i = 0; sorted && i < list->n; i++) {
        oi_jsonw_key(&x->w, sorted[i]->name.text);
        value(x, &sorted[i]->value);
    }
    oi_jsonw_close(&x->w, '}');
    free(sorted);
}

static void node(writer *x, const oi_node *n)
{
    char uuid[OI_UUID_TEXT];
    oi_uuid_print(n->uuid, uuid);
    oi_jsonw_open(&x->w, '{');
    if (n->hints.n)
        hints(x, &n->hints);
    oi_jsonw_key(&x->w, "index"), oi_jsonw_u64(&x->w, n->index);
    oi_jsonw_key(&x->w, "kind"), node_kind(x, n);
    if (x->spans && n->span.line) {
        oi_jsonw_key(&x->w, "span"), oi_jsonw_open(&x->w, '[');
        oi_jsonw_u64(&x->w, n->span.line);
        oi_jsonw_u64(&x->w, n->span.col);
        oi_jsonw_close(&x->w, ']');
    }
    str(x, "uuid", uuid);
    oi_jsonw_close(&x->w, '}');
}

static void nodes(writer *x, const char *key, const oi_ids *list)
{
    oi_jsonw_key(&x->w, key);
    oi_jsonw_open(&x->w, '[');
    for (size_t i = 0; i < list->n; i++)
        node(x, &x->g->nodes.at[list->at[i]]);
    oi_jsonw_close(&x->w, ']');
}

/* -- variables -- */

static void bounds(writer *x, const char *key, const oi_bounds *list)
{
    oi_jsonw_key(&x->w, key);
    oi_jsonw_open(&x->w, '[');
    for (size_t i = 0; i < list->n; i++) {
        int64_t lit;
        oi_jsonw_open(&x->w, '[');
        oi_jsonw_str(&x->w, list->at[i].index.text);
        if (oi_expr_is_literal(list->at[i].limit, &lit))
            oi_jsonw_i64(&x->w, lit);
        else
            expr_text(x, list->at[i].limit);
        oi_jsonw_close(&x->w, ']');
    }
    oi_jsonw_close(&x->w, ']');
}

static void extra(writer *x, const oi_var *v)
{
    oi_jsonw_key(&x->w, "extra_attrs");
    oi_jsonw_open(&x->w, '[');
    for (size_t i = 0; i < v->extra.n; i++) {
        oi_jsonw_open(&x->w, '{');
        oi_jsonw_key(&x->w, "args");
        attrs(x, &v->extra.at[i].args);
        str(x, "name", v->extra.at[i].name.text);
        oi_jsonw_close(&x->w, '}');
    }
    oi_jsonw_close(&x->w, ']');
}

const char *const oi_var_kind_json[] = {"Dynamic", "Volatile", "Constant", "Persistent"};

static void var(writer *x, const oi_var *v)
{
    oi_jsonw_open(&x->w, '{');
    names(x, "auto_dim", &v->auto_dim);
    if (v->cap.n)
        bounds(x, "cap", &v->cap);
    dims(x, &v->dims);
    str(x, "dtype", oi_dtype_get(v->dtype)->json);
    if (v->extra.n)
        extra(x, v);
    bounds(x, "fixed", &v->fixed);
    oi_jsonw_key(&x->w, "init");
    if (v->has_init)
        scalar(x, v->init);
    else
        oi_jsonw_null(&x->w);
    str(x, "kind", oi_var_kind_json[v->kind]);
    str(x, "name", v->name.text);
    str_or_null(x, "pattern", v->pattern);
    str_or_null(x, "ref_name", v->ref_name);
    oi_jsonw_key(&x->w, "table"), oi_jsonw_bool(&x->w, v->table);
    names(x, "table_indices", &v->indices);
    oi_jsonw_close(&x->w, '}');
}

/* -- the graph -- */

/* Vars or blocks: names in declaration order, and the ids sorted by name. */
typedef struct listing {
    size_t n;
    const char **declared; /* by id */
    uint32_t *sorted;      /* ids */
    bool entry_first;
    bool is_default; /* declaration order is what a reader assumes */
} listing;

static int by_text(const void *a, const void *b, void *declared)
{
    const char *const *names_ = declared;
    return strcmp(names_[*(const uint32_t *)a], names_[*(const uint32_t *)b]);
}

static bool default_order(const listing *l)
{
    size_t next = 0; /* in declared */
    for (size_t pass = l->entry_first ? 0 : 1; pass < 2; pass++)
        for (size_t i = 0; i < l->n; i++) {
            const char *name = l->declared[l->sorted[i]];
            bool is_entry = l->entry_first && strcmp(name, "entry") == 0;
            if (is_entry != (pass == 0))
                continue;
            if (strcmp(l->declared[next++], name) != 0)
                return false;
        }
    return true;
}

static bool sort_listing(listing *l)
{
    l->sorted = malloc((l->n + 1) * sizeof *l->sorted);
    if (!l->sorted)
        return false;
    for (size_t i = 0; i < l->n; i++)
        l->sorted[i] = (uint32_t)i;
    qsort_r(l->sorted, l->n, sizeof *l->sorted, by_text, l->declared);
    l->is_default = default_order(l);
    return true;
}

static void order(writer *x, const char *key, const listing *l)
{
    if (l->is_default)
        return;
    oi_jsonw_key(&x->w, key);
    oi_jsonw_open(&x->w, '[');
    for (size_t i = 0; i < l->n; i++)
        oi_jsonw_str(&x->w, l->declared[i]);
    oi_jsonw_close(&x->w, ']');
}

static void block(writer *x, const oi_block *b)
{
    oi_jsonw_key(&x->w, b->name.text);
    oi_jsonw_open(&x->w, '{');
    str(x, "name", b->name.text);
    nodes(x, "nodes", &b->nodes);
    oi_jsonw_close(&x->w, '}');
}

static void graph(writer *x, const listing *blocks, const listing *vars)
{
    const oi_graph *g = x->g;
    oi_jsonw_open(&x->w, '{');
    order(x, "block_order", blocks);
    oi_jsonw_key(&x->w, "blocks"), oi_jsonw_open(&x->w, '{');
    for (size_t i = 0; i < blocks->n; i++)
        block(x, &g->blocks.at[blocks->sorted[i]]);
    oi_jsonw_close(&x->w, '}');
    oi_jsonw_key(&x->w, "next_index"), oi_jsonw_u64(&x->w, g->next_index);
    if (x->spans && g->origin)
        str(x, "source", g->made_from ? g->made_from : g->origin);
    order(x, "var_order", vars);
    oi_jsonw_key(&x->w, "vars"), oi_jsonw_open(&x->w, '{');
    for (size_t i = 0; i < vars->n; i++) {
        const oi_var *v = &g->vars.at[vars->sorted[i]];
        oi_jsonw_key(&x->w, v->name.text);
        var(x, v);
    }
    oi_jsonw_close(&x->w, '}');
    oi_jsonw_close(&x->w, '}');
    oi_buf_putc(x->w.out, '\n');
}

/* Objects cannot hold two of one name. */
static oi_status no_duplicates(const oi_graph *g, const listing *l, const char *what, oi_diag *d)
{
    for (size_t i = 1; i < l->n; i++) {
        const char *name = l->declared[l->sorted[i]];
        if (strcmp(name, l->declared[l->sorted[i - 1]]) == 0)
            return oi_diag_error(d, (oi_place){.file = g->origin ? g->origin : "graph"}, "E010",
                                 "two %ss are called '%s'", what, name);
    }
    return OI_OK;
}

static oi_status write_sorted(const oi_graph *g, const oi_json_options *options, listing *blocks,
                              listing *vars, char **out, oi_diag *diag)
{
    if (!blocks->declared || !vars->declared)
        return OI_ERR_ENV;
    for (size_t i = 0; i < blocks->n; i++)
        blocks->declared[i] = g->blocks.at[i].name.text;
    for (size_t i = 0; i < vars->n; i++)
        vars->declared[i] = g->vars.at[i].name.text;
    if (!sort_listing(blocks) || !sort_listing(vars))
        return OI_ERR_ENV;
    OI_TRY(no_duplicates(g, blocks, "block", diag));
    OI_TRY(no_duplicates(g, vars, "variable", diag));
    oi_buf buf = {0};
    writer x = {.w = {.out = &buf}, .g = g, .spans = options && options->spans};
    graph(&x, blocks, vars);
    return oi_buf_take(&buf, out);
}

oi_status oi_graph_to_json(const oi_graph *g, const oi_json_options *options, char **out,
                           oi_diag *diag)
{
    listing blocks = {.n = g->blocks.n, .entry_first = true}, vars = {.n = g->vars.n};
    blocks.declared = malloc((blocks.n + 1) * sizeof *blocks.declared);
    vars.declared = malloc((vars.n + 1) * sizeof *vars.declared);
    oi_status status = write_sorted(g, options, &blocks, &vars, out, diag);
    free(blocks.declared), free(blocks.sorted);
    free(vars.declared), free(vars.sorted);
    return status;
}
