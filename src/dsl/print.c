/* print.c: Graph -> canonical text, and the formatter.
 *
 * Both walk a list of items (section, declaration, block, node, loop header, closing brace). A
 * parsed text brings its own list, in source order with byte positions; for any other graph the
 * list is made from the graph. With positions, comments are merged in between and blank-line groups
 * survive; so one printer serves `openinfer graph --to text` and `openinfer fmt`. */
#include "dsl/dsl.h"
#include "dsl/flow.h"

#define INDENT 2u

typedef struct printer {
    oi_buf *out;
    const oi_graph *g;
    unsigned depth;
    bool keep;         /* comments and blank lines come from the source */
    size_t comment;    /* next comment to place */
    uint32_t last_end; /* source byte behind the last thing printed */
    bool line_open;    /* something stands on the current line */
    bool after_open;   /* the last thing was `{`: no blank line */
    bool own_line;     /* the last thing was a comment on its own line */
    bool compact;      /* the items are of the compact form */
    bool set_apart;    /* compact form: a blank line goes before the next thing */
    bool any;
} printer;

/* -- lines, blank lines and comments -- */

static void end_line(printer *p)
{
    if (p->line_open)
        oi_buf_putc(p->out, '\n');
    p->line_open = false;
}

/* Is there an empty line in source bytes [from, to)? */
static bool blank_between(const printer *p, uint32_t from, uint32_t to)
{
    unsigned line_ends = 0;
    for (uint32_t i = from; i < to; i++) {
        char c = p->g->source.text[i];
        line_ends += c == '\n';
        if (line_ends > 1)
            return true;
    }
    return false;
}

static bool same_line(const printer *p, uint32_t from, uint32_t to)
{
    return to <= from || !memchr(p->g->source.text + from, '\n', to - from);
}

/* Starts a new line at the current depth, after a blank one where the layout or the source wants
 * it. */
static void start_line(printer *p, uint32_t at, bool closing)
{
    end_line(p);
    bool blank = p->depth == 0 && !closing && (!p->compact || p->set_apart);
    if (p->keep && !closing)
        blank = blank || blank_between(p, p->last_end, at);
    if (blank && p->any && !p->after_open)
        oi_buf_putc(p->out, '\n');
    oi_buf_fill(p->out, ' ', (size_t)p->depth * INDENT);
    p->line_open = p->any = true;
    p->after_open = p->set_apart = false;
}

static void comment_text(printer *p, const oi_comment *c)
{
    const char *text = p->g->source.text + c->start;
    size_t n = c->end - c->start;
    while (n && (text[n - 1] == ' ' || text[n - 1] == '\t' || text[n - 1] == '\r'))
        n--;
    oi_buf_add(p->out, text, n);
}

/* At the top level lines are set apart, but a comment right above something belongs to it. */
static bool joins_comment(const printer *p, uint32_t start)
{
    return p->depth == 0 && p->own_line && !blank_between(p, p->last_end, start);
}

static void start_item_line(printer *p, uint32_t start, bool closing)
{
    if (joins_comment(p, start)) {
        end_line(p);
        p->line_open = true;
    } else {
        start_line(p, start, closing);
    }
}

/* Comments that begin before source byte `until`. One that shares its line with what was printed
 * last stays there; others get their own line. */
static void comments(printer *p, uint32_t until)
{
    bool may_trail = p->line_open;
    for (; p->keep && p->comment < p->g->comments.n; p->comment++) {
        const oi_comment *c = &p->g->comments.at[p->comment];
        if (c->start >= until)
            return;
        bool trails = may_trail && same_line(p, p->last_end, c->start);
        if (trails)
            oi_buf_puts(p->out, "  ");
        else
            start_item_line(p, c->start, false);
        p->own_line = p->own_line || !trails; /* behind a comment on its own line: still so */
        comment_text(p, c);
        may_trail = p->line_open && !c->is_line;
        p->last_end = c->end > p->last_end ? c->end : p->last_end;
    }
}

static void begin_item(printer *p, const oi_item *item)
{
    comments(p, item->start);
    start_item_line(p, item->start, item->kind == OI_ITEM_CLOSE);
    p->own_line = false;
}

static void end_item(printer *p, const oi_item *item)
{
    if (item->end > p->last_end)
        p->last_end = item->end;
}

/* -- declarations -- */

static void print_names(oi_buf *out, const oi_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        oi_buf_printf(out, "%s%s", i ? ", " : "", names->at[i].text);
}

void oi_dims_print(oi_buf *out, const oi_exprs *dims)
{
    if (!dims->n)
        return;
    oi_buf_putc(out, '[');
    for (size_t i = 0; i < dims->n; i++) {
        oi_buf_puts(out, i ? ", " : "");
        oi_expr_print(out, dims->at[i]);
    }
    oi_buf_putc(out, ']');
}

static void print_text_attr(oi_buf *out, const char *name, const char *text)
{
    if (!text)
        return;
    oi_value v = {.kind = OI_VAL_STR, .text = text, .n = strlen(text)};
    oi_buf_printf(out, " @%s(", name);
    oi_value_print(out, &v);
    oi_buf_putc(out, ')');
}

static void print_bounds(oi_buf *out, const char *name, const oi_bounds *bounds)
{
    if (!bounds->n)
        return;
    oi_buf_printf(out, " @%s(", name);
    for (size_t i = 0; i < bounds->n; i++) {
        oi_buf_printf(out, "%s%s=", i ? ", " : "", bounds->at[i].index.text);
        oi_expr_print(out, bounds->at[i].limit);
    }
    oi_buf_putc(out, ')');
}

static void print_args(oi_buf *out, const oi_attrs *args)
{
    for (size_t i = 0; i < args->n; i++) {
        oi_buf_puts(out, i ? ", " : "");
        if (args->at[i].name.text)
            oi_buf_printf(out, "%s=", args->at[i].name.text);
        oi_value_print(out, &args->at[i].value);
    }
}

void oi_decl_print(oi_buf *out, const oi_var *v)
{
    oi_buf_puts(out, v->name.text);
    if (v->indices.n) {
        oi_buf_putc(out, '(');
        print_names(out, &v->indices);
        oi_buf_putc(out, ')');
    }
    oi_buf_printf(out, ": %s", oi_dtype_name(v->dtype));
    oi_dims_print(out, &v->dims);
    if (v->has_init) {
        oi_buf_puts(out, " @init(");
        oi_scalar_print(out, v->init);
        oi_buf_putc(out, ')');
    }
    print_text_attr(out, "ref", v->ref_name);
    print_text_attr(out, "pattern", v->pattern);
    if (v->table)
        oi_buf_puts(out, " @table");
    if (v->auto_dim.n) {
        oi_buf_puts(out, " @auto_dim(");
        print_names(out, &v->auto_dim);
        oi_buf_putc(out, ')');
    }
    print_bounds(out, "fixed", &v->fixed);
    print_bounds(out, "cap", &v->cap);
    for (size_t i = 0; i < v->extra.n; i++) {
        oi_buf_printf(out, " @%s", v->extra.at[i].name.text);
        if (!v->extra.at[i].args.n)
            continue;
        oi_buf_putc(out, '(');
        print_args(out, &v->extra.at[i].args);
        oi_buf_putc(out, ')');
    }
    oi_buf_putc(out, ';');
}

/* -- nodes -- */

static void print_accesses(oi_buf *out, const oi_accesses *list)
{
    for (size_t i = 0; i < list->n; i++) {
        oi_buf_puts(out, i ? ", " : "");
        oi_access_print(out, &list->at[i], true);
    }
}

void oi_hints_print(oi_buf *out, const oi_attrs *hints)
{
    oi_buf_puts(out, hints->n ? " @ { " : " @ {");
    for (size_t i = 0; i < hints->n; i++) {
        oi_buf_printf(out, "%s%s: ", i ? ", " : "", hints->at[i].name.text);
        oi_value_print(out, &hints->at[i].value);
    }
    oi_buf_puts(out, hints->n ? " }" : "}");
}

static void print_op(oi_buf *out, const oi_node *n)
{
    oi_buf_printf(out, "op %s(", n->name.text);
    print_accesses(out, &n->as.op.inputs);
    if (n->as.op.inputs.n && n->as.op.attrs.n)
        oi_buf_puts(out, ", ");
    print_args(out, &n->as.op.attrs);
    oi_buf_puts(out, ") >> ");
    print_accesses(out, &n->as.op.outputs);
    if (n->hints.n)
        oi_hints_print(out, &n->hints);
}

static void print_count(oi_buf *out, const oi_node *n)
{
    oi_buf_printf(out, "%s ", oi_node_table[n->kind].keyword);
    if (n->as.move.amount_name.text)
        oi_buf_printf(out, "%s ", n->as.move.amount_name.text);
    else if (n->as.move.amount != 1)
        oi_buf_printf(out, "%llu ", (unsigned long long)n->as.move.amount);
    oi_buf_puts(out, n->as.move.to.base.text);
}

static void print_move(oi_buf *out, const oi_node *n)
{
    oi_buf_printf(out, "%s ", oi_node_table[n->kind].keyword);
    oi_access_print(out, &n->as.move.from, true);
    oi_buf_puts(out, " >> ");
    oi_access_print(out, &n->as.move.to, true);
}

static void print_branch(oi_buf *out, const oi_node *n)
{
    if (n->as.branch.cond.text)
        oi_buf_printf(out, "branch %s %s %s", n->as.branch.cond.text, n->as.branch.then_block.text,
                      n->as.branch.else_block.text);
    else
        oi_buf_printf(out, "branch %s", n->as.branch.then_block.text);
}

void oi_node_print(oi_buf *out, const oi_node *n)
{
    switch (n->kind) {
    case OI_NODE_OP: print_op(out, n); break;
    case OI_NODE_ASSIGN:
        oi_buf_printf(out, "assign %s: %s", n->name.text, oi_dtype_name(n->as.assign.dtype));
        oi_dims_print(out, &n->as.assign.dims);
        break;
    case OI_NODE_BRANCH: print_branch(out, n); break;
    case OI_NODE_DEP:
        oi_buf_printf(out, "dep after(%s) before(%s)", n->as.dep.after.text, n->as.dep.before.text);
        break;
    case OI_NODE_CACHE_READ:
    case OI_NODE_CACHE_WRITE:
    case OI_NODE_TRANSFER: print_move(out, n); break;
    case OI_NODE_CACHE_INCREMENT:
    case OI_NODE_CACHE_DECREMENT: print_count(out, n); break;
    case OI_NODE_CACHE_RESET:
        oi_buf_puts(out, "cache.reset ");
        oi_access_print(out, &n->as.move.to, true);
        break;
    case OI_NODE_LOOP:
        oi_buf_printf(out, "loop %s (%s in ", n->name.text, n->as.loop.index.text);
        oi_expr_print(out, n->as.loop.start);
        oi_buf_puts(out, "..");
        oi_expr_print(out, n->as.loop.end);
        oi_buf_puts(out, ") {");
        return;
    default: /* yield, await, return, barrier: a word and maybe names */
        oi_buf_puts(out, oi_node_table[n->kind].keyword);
        if (n->kind != OI_NODE_BARRIER && n->as.list.names.n) {
            oi_buf_putc(out, ' ');
            print_names(out, &n->as.list.names);
        }
    }
    oi_buf_putc(out, ';');
}

/* -- items -- */

static bool opens(oi_item_kind k)
{
    return k == OI_ITEM_SECTION || k == OI_ITEM_BLOCK || k == OI_ITEM_LOOP || k == OI_ITEM_INPUTS ||
           k == OI_ITEM_STATES || k == OI_ITEM_FOR;
}

static bool closes(oi_item_kind k)
{
    return k == OI_ITEM_CLOSE || k == OI_ITEM_SECTION_END || k == OI_ITEM_FOR_END;
}

static void print_item(printer *p, const oi_item *item)
{
    bool ends = closes(item->kind);
    if (ends) {
        comments(p, item->start); /* inside the braces, so before stepping out */
        p->depth--;
    }
    p->set_apart |= item->kind == OI_ITEM_INPUTS || item->kind == OI_ITEM_STATES;
    begin_item(p, item);
    switch (item->kind) {
    case OI_ITEM_SECTION: oi_buf_printf(p->out, "%s {", oi_var_kind_name(item->id)); break;
    case OI_ITEM_DECL: oi_decl_print(p->out, &p->g->vars.at[item->id]); break;
    case OI_ITEM_BLOCK:
        oi_buf_printf(p->out, "block %s {", p->g->blocks.at[item->id].name.text);
        break;
    case OI_ITEM_NODE:
    case OI_ITEM_LOOP: oi_node_print(p->out, &p->g->nodes.at[item->id]); break;
    case OI_ITEM_CLOSE: oi_buf_putc(p->out, '}'); break;
    default: oi_compact_print(p->out, p->g->compact, item); break;
    }
    if (opens(item->kind)) {
        p->depth++;
        p->after_open = true;
    }
    /* the header of the compact form stands apart from what follows */
    p->set_apart = item->kind == OI_ITEM_MODEL || item->kind == OI_ITEM_SECTION_END;
    end_item(p, item);
}

typedef OI_VEC(oi_item) item_list;

static void list_nodes(const oi_graph *g, oi_arena *a, const oi_ids *nodes, item_list *out)
{
    for (size_t i = 0; i < nodes->n; i++) {
        const oi_node *n = &g->nodes.at[nodes->at[i]];
        bool is_loop = n->kind == OI_NODE_LOOP;
        *OI_PUSH(a, out) = (oi_item){is_loop ? OI_ITEM_LOOP : OI_ITEM_NODE, nodes->at[i], 0, 0};
        if (!is_loop)
            continue;
        list_nodes(g, a, &n->as.loop.body, out);
        *OI_PUSH(a, out) = (oi_item){.kind = OI_ITEM_CLOSE};
    }
}

/* Sections by runs of equal kind, then the blocks. */
static void list_graph(const oi_graph *g, oi_arena *a, item_list *out)
{
    for (size_t i = 0; i < g->vars.n; i++) {
        if (i == 0 || g->vars.at[i].kind != g->vars.at[i - 1].kind)
            *OI_PUSH(a, out) = (oi_item){.kind = OI_ITEM_SECTION, .id = g->vars.at[i].kind};
        *OI_PUSH(a, out) = (oi_item){.kind = OI_ITEM_DECL, .id = (uint32_t)i};
        if (i + 1 == g->vars.n || g->vars.at[i].kind != g->vars.at[i + 1].kind)
            *OI_PUSH(a, out) = (oi_item){.kind = OI_ITEM_CLOSE};
    }
    for (size_t i = 0; i < g->blocks.n; i++) {
        *OI_PUSH(a, out) = (oi_item){.kind = OI_ITEM_BLOCK, .id = (uint32_t)i};
        list_nodes(g, a, &g->blocks.at[i].nodes, out);
        *OI_PUSH(a, out) = (oi_item){.kind = OI_ITEM_CLOSE};
    }
}

typedef struct print_job {
    const oi_graph *g;
    oi_arena *scratch;
    item_list items;
} print_job;

static void make_items(void *ctx)
{
    print_job *j = ctx;
    list_graph(j->g, j->scratch, &j->items);
}

static oi_status print_items(const oi_graph *g, const oi_item *items, size_t n, bool keep,
                             char **out)
{
    oi_buf buf = {0};
    printer p = {.out = &buf, .g = g, .keep = keep, .compact = keep && g->compact};
    for (size_t i = 0; i < n; i++)
        print_item(&p, &items[i]);
    comments(&p, UINT32_MAX);
    end_line(&p);
    return oi_buf_take(&buf, out);
}

oi_status oi_graph_to_text(const oi_graph *g, char **out, oi_diag *diag)
{
    (void)diag;
    print_job j = {.g = g, .scratch = oi_arena_new()};
    oi_status status = j.scratch ? oi_arena_guard(j.scratch, make_items, &j) : OI_ERR_ENV;
    if (status == OI_OK)
        status = print_items(g, j.items.at, j.items.n, false, out);
    oi_arena_free(j.scratch);
    return status;
}

oi_status oi_graph_format(const char *text, size_t n, const char *name, char **out, oi_diag *diag)
{
    oi_graph *g;
    OI_TRY(oi_dsl_read(text, n, name, 1, false, &g, diag));
    oi_status status = print_items(g, g->items.at, g->items.n, true, out);
    oi_graph_free(g);
    return status;
}
