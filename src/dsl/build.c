/* build.c: making a graph call by call. Each call writes the DSL sentence it stands for and hands
 * it to the parser, so the builder can say nothing that the language cannot, and checks exist once.
 */
#include "dsl/dsl.h"

typedef struct job {
    oi_graph *g;
    oi_diag *diag;
    const oi_var_spec *var; /* a declaration of this kind, or */
    bool is_loop;           /* a loop header, or else a statement */
    const char *text;
    size_t n;
    bool ok;
} job;

static void run(void *ctx)
{
    job *j = ctx;
    oi_graph *g = j->g;
    oi_source *source = oi_arena_alloc(g->arena, sizeof *source);
    char *text = oi_arena_text(g->arena, j->text, j->n);
    oi_source_init(g->arena, source, "builder", text, j->n);
    size_t bad;
    oi_tokens tokens;
    oi_lex(g->arena, source, &tokens, NULL);
    oi_parser p = {.g = g, .block = g->build_block, .parent = g->build_parent};
    p.cur = (oi_cursor){
        .graph = g, .source = source, .tok = tokens.list.at, .diag = j->diag, .pointer = text};
    if (!oi_utf8_valid(text, j->n, &bad))
        oi_cur_error(&p.cur, p.cur.tok, "E001", "the text is not valid UTF-8");
    if (p.cur.failed)
        return;
    for (uint32_t up = g->build_parent; up != OI_NO_ID; up = g->nodes.at[up].parent)
        p.loop_depth++;
    j->ok = j->var ? oi_parse_one_decl(&p, j->var->kind)
                   : oi_parse_one_node(&p, j->is_loop, &g->build_parent);
}

static oi_status parse(job *j, oi_buf *text)
{
    if (!j->var && j->g->build_block == OI_NO_ID) {
        oi_buf_free(text);
        return oi_diag_error(j->diag, (oi_place){.file = "builder"}, "E001",
                             "open a block with oi_build_block first");
    }
    char *sentence;
    OI_TRY(oi_buf_take(text, &sentence));
    j->text = sentence;
    j->n = strlen(sentence);
    oi_status status = oi_arena_guard(j->g->arena, run, j);
    oi_free(sentence);
    return status != OI_OK ? status : j->ok ? OI_OK : OI_ERR_INPUT;
}

static oi_status statement(oi_graph *g, oi_diag *diag, const char *fmt, const char *a,
                           const char *b, const char *c)
{
    oi_buf text = {0};
    const char *args[] = {a, b, c};
    for (size_t i = 0; *fmt; fmt++) {
        if (*fmt == '%')
            oi_buf_puts(&text, args[i] ? args[i] : ""), i++;
        else
            oi_buf_putc(&text, *fmt);
    }
    job j = {.g = g, .diag = diag};
    return parse(&j, &text);
}

/* -- the graph, its variables and blocks -- */

oi_status oi_graph_new(oi_graph **out)
{
    *out = oi_graph_alloc();
    return *out ? OI_OK : OI_ERR_ENV;
}

static void attr(oi_buf *text, const char *name, const char *args)
{
    if (args)
        oi_buf_printf(text, " @%s(%s)", name, args);
}

static void quoted_attr(oi_buf *text, const char *name, const char *value)
{
    if (!value)
        return;
    oi_value v = {.kind = OI_VAL_STR, .text = value, .n = strlen(value)};
    oi_buf_printf(text, " @%s(", name);
    oi_value_print(text, &v);
    oi_buf_putc(text, ')');
}

oi_status oi_build_var(oi_graph *g, const oi_var_spec *v, oi_diag *diag)
{
    oi_buf text = {0};
    oi_buf_puts(&text, v->name ? v->name : "");
    if (v->indices)
        oi_buf_printf(&text, "(%s)", v->indices);
    oi_buf_printf(&text, ": %s", oi_dtype_name(v->dtype));
    if (v->dims)
        oi_buf_printf(&text, "[%s]", v->dims);
    attr(&text, "init", v->init);
    quoted_attr(&text, "ref", v->ref);
    quoted_attr(&text, "pattern", v->pattern);
    oi_buf_puts(&text, v->table ? " @table" : "");
    attr(&text, "auto_dim", v->auto_dim);
    attr(&text, "fixed", v->fixed);
    attr(&text, "cap", v->cap);
    oi_buf_putc(&text, ';');
    job j = {.g = g, .diag = diag, .var = v};
    return parse(&j, &text);
}

typedef struct block_job {
    oi_graph *g;
    const char *name;
} block_job;

static void add_block(void *ctx)
{
    block_job *j = ctx;
    oi_block b = {.name.text = oi_graph_intern(j->g, j->name, strlen(j->name))};
    j->g->build_block = oi_graph_add_block(j->g, &b);
}

oi_status oi_build_block(oi_graph *g, const char *name, oi_diag *diag)
{
    oi_place at = {.file = "builder"};
    if (g->build_parent != OI_NO_ID)
        return oi_diag_error(diag, at, "E001", "a loop is still open: call oi_build_end first");
    if (!oi_is_name(name))
        return oi_diag_error(diag, at, "E001", "'%.80s' is not a block name", name);
    block_job j = {g, name};
    return oi_arena_guard(g->arena, add_block, &j);
}

/* -- nodes -- */

oi_status oi_build_statement(oi_graph *g, const char *text, oi_diag *diag)
{
    return statement(g, diag, "%", text, NULL, NULL);
}

oi_status oi_build_assign(oi_graph *g, const char *name, oi_dtype dtype, const char *dims,
                          oi_diag *diag)
{
    return statement(g, diag, dims ? "assign %: %[%];" : "assign %: %;", name, oi_dtype_name(dtype),
                     dims);
}

oi_status oi_build_op(oi_graph *g, const char *op, const char *args, const char *outputs,
                      oi_diag *diag)
{
    return statement(g, diag, "op %(%) >> %;", op, args, outputs);
}

oi_status oi_build_branch(oi_graph *g, const char *cond, const char *then_block,
                          const char *else_block, oi_diag *diag)
{
    if (!cond)
        return statement(g, diag, "branch %;", then_block, NULL, NULL);
    return statement(g, diag, "branch % % %;", cond, then_block, else_block);
}

oi_status oi_build_cache_read(oi_graph *g, const char *access, const char *to, oi_diag *diag)
{
    return statement(g, diag, "cache.read % >> %;", access, to, NULL);
}

oi_status oi_build_cache_write(oi_graph *g, const char *from, const char *access, oi_diag *diag)
{
    return statement(g, diag, "cache.write % >> %;", from, access, NULL);
}

oi_status oi_build_transfer(oi_graph *g, const char *from, const char *to, oi_diag *diag)
{
    return statement(g, diag, "transfer % >> %;", from, to, NULL);
}

oi_status oi_build_yield(oi_graph *g, const char *names, oi_diag *diag)
{
    return statement(g, diag, "yield %;", names, NULL, NULL);
}

oi_status oi_build_await(oi_graph *g, const char *names, oi_diag *diag)
{
    return statement(g, diag, "await %;", names, NULL, NULL);
}

oi_status oi_build_return(oi_graph *g, const char *names, oi_diag *diag)
{
    return statement(g, diag, "return %;", names, NULL, NULL);
}

/* -- loops -- */

oi_status oi_build_loop(oi_graph *g, const char *name, const char *index, const char *start,
                        const char *end, oi_diag *diag)
{
    oi_buf text = {0};
    oi_buf_printf(&text, "loop %s (%s in %s..%s) {", name, index, start, end);
    job j = {.g = g, .diag = diag, .is_loop = true};
    return parse(&j, &text);
}

oi_status oi_build_end(oi_graph *g, oi_diag *diag)
{
    uint32_t loop = g->build_parent;
    if (loop == OI_NO_ID)
        return oi_diag_error(diag, (oi_place){.file = "builder"}, "E001", "no loop is open");
    oi_graph_number(g, loop); /* after its body */
    g->build_parent = g->nodes.at[loop].parent;
    return OI_OK;
}
