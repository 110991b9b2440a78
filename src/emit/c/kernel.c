/* kernel.c: a kernel as a C function, and calls of it. */
#include "emit/c/c.h"

#include <inttypes.h>

/* -- names -- */

/* What the functions themselves call something. */
static bool is_taken(const oi_skernel *k, const char *name)
{
    static const char *const words[] = {"acc", "best", "first", "last", "part", "parts"};
    bool taken = strlen(name) == 1; /* loop counters */
    for (size_t i = 0; i < OI_COUNT(words); i++)
        taken |= strcmp(name, words[i]) == 0;
    for (uint32_t i = 0; k->recipe && i < k->plan->n_scratch; i++)
        taken |= strcmp(name, k->plan->scratch[i].name) == 0;
    return taken;
}

static const char **port_names(oi_cprog *c, const oi_skernel *k)
{
    const char **names = oi_arena_alloc(c->arena, (k->ports.n + 1) * sizeof *names);
    for (size_t i = 0; i < k->ports.n; i++) {
        const oi_tensor *t = &c->u->tensors.at[k->ports.at[i].tensor];
        const oi_pvar *var = t->var ? t->var : t->origin;
        const char *name = var ? var->name : t->name;
        unsigned same = 0;
        for (size_t j = 0; j < i; j++)
            same += strcmp(names[j], name) == 0;
        /* values are called by a word and a number */
        char end = name[strlen(name) - 1];
        bool clashes = is_taken(k, name) || same || (end >= '0' && end <= '9');
        names[i] = clashes ? oi_arena_printf(c->arena, "%s_%zu", name, i) : name;
    }
    return names;
}

/* The statement as written, without its line end. */
static const char *source_line(oi_cprog *c, const oi_pnode *n)
{
    const oi_graph *g = c->u->graphs.at[c->graph].program->graph;
    if (!g->source.name || !n->source->span.line)
        return NULL;
    oi_bytes line = oi_source_line(&g->source, n->source->span.line);
    const char *p = (const char *)line.ptr;
    size_t len = line.size;
    while (len && (*p == ' ' || *p == '\t'))
        p++, len--;
    const char *text = oi_arena_text(c->arena, p, len);
    for (char *q = strstr(text, "//"); q; q = NULL)
        *q = '\0';
    for (char *q = strstr(text, "*/"); q; q = strstr(q, "*/"))
        *q = ' ';
    return text;
}

/* Without its folders: code does not tell where it was made. */
static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void put_source(oi_cprog *c, const oi_skernel *k)
{
    const oi_graph *g = c->u->graphs.at[k->graph].program->graph;
    for (size_t i = 0; i < k->nodes.n; i++) {
        const char *line = source_line(c, k->nodes.at[i]);
        if (line)
            oi_out_line(&c->out, "/* %s:%u: %s */", file_name(g->source.name),
                        k->nodes.at[i]->source->span.line, line);
    }
}

/* Tensors of one kernel are alive together, so they lie apart; entries of one table may be one. */
static bool lie_apart(const oi_skernel *k)
{
    for (size_t i = 0; i < k->ports.n; i++)
        for (size_t j = 0; j < i; j++)
            if (k->ports.at[i].tensor == k->ports.at[j].tensor)
                return false;
    return true;
}

/* -- lengths -- */

static const char *scalar_name(void *ctx, uint32_t scalar)
{
    const oi_skernel *k = ctx;
    return k->scalars.at[scalar].name;
}

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = strstr(text, word); p; p = strstr(p + 1, word)) {
        char before = p == text ? ' ' : p[-1], after = p[n];
        bool starts = !(before == '_' || (before >= '0' && before <= '9') ||
                        (before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z'));
        bool ends = !(after == '_' || (after >= '0' && after <= '9') ||
                      (after >= 'a' && after <= 'z') || (after >= 'A' && after <= 'Z'));
        if (starts && ends)
            return true;
    }
    return false;
}

/* How the kernel's formulas are spelled in its text: a length by its name, others by a constant. */
static const char **fn_names(oi_cprog *c, const oi_skernel *k)
{
    const char **names = oi_arena_alloc(c->arena, (k->formulas.n + 2) * sizeof *names);
    for (size_t i = 0; i < k->formulas.n; i++) {
        uint32_t scalar;
        names[i + 1] = oi_formula_is_length(&k->formulas.at[i], &scalar)
                           ? k->scalars.at[scalar].name
                           : oi_arena_printf(c->arena, "size%zu", i + 1);
    }
    return names;
}

/* Those constants that the text needs. */
static const char *fn_texts(oi_cprog *c, const oi_skernel *k, const char *const *names,
                            const char *body)
{
    oi_buf b = {0};
    for (size_t i = 0; i < k->formulas.n; i++) {
        uint32_t scalar;
        if (!oi_formula_is_length(&k->formulas.at[i], &scalar) && has_word(body, names[i + 1]))
            oi_buf_printf(&b, "    const int64_t %s = %s;\n", names[i + 1],
                          oi_formula_text(c->arena, &k->formulas.at[i], scalar_name, (void *)k));
    }
    return b.n ? oi_buf_to_arena(&b, c->arena) : "";
}

static void put_body(oi_cprog *c, const oi_skernel *k, const char *const *names);

/* Whether the kernel's text mentions the number: lengths may only serve its caller. */
static bool *used_scalars(oi_cprog *c, const oi_skernel *k)
{
    bool *used = oi_arena_alloc(c->arena, k->scalars.n + 1);
    memset(used, 1, k->scalars.n);
    if (!k->is_dynamic)
        return used;
    oi_out before = c->out;
    c->out = (oi_out){0};
    put_body(c, k, port_names(c, k));
    oi_buf_putc(&c->out.buf, '\0');
    for (size_t i = 0; i < k->scalars.n; i++)
        used[i] = has_word(c->out.buf.text, k->scalars.at[i].name);
    oi_buf_free(&c->out.buf);
    c->out = before;
    return used;
}

static void put_parameters(oi_cprog *c, const oi_skernel *k, const char *const *names)
{
    const bool *used = used_scalars(c, k);
    oi_buf text = {0};
    const char *star = lie_apart(k) ? "*restrict " : "*";
    for (size_t i = 0; i < k->ports.n; i++) {
        const oi_tensor *t = &c->u->tensors.at[k->ports.at[i].tensor];
        if (t->space == OI_SPACE_LOCAL)
            continue;
        oi_buf_printf(&text, "%s%s%s %s%s", text.n ? ", " : "",
                      k->ports.at[i].is_written ? "" : "const ", oi_c_type(t->dtype), star,
                      names[i]);
    }
    for (size_t i = 0; i < k->scalars.n; i++)
        if (used[i])
            oi_buf_printf(&text, "%s%s %s", text.n ? ", " : "",
                          oi_dialect_c.types[oi_form_of(k->scalars.at[i].dtype)],
                          k->scalars.at[i].name);
    if (k->split.extent)
        oi_buf_puts(&text, ", int part, int parts");
    const char *list = text.n ? oi_buf_to_arena(&text, c->arena) : "void";
    oi_out_line(&c->out, "static %s %s(%s)", k->can_fail ? "int" : "void", k->name, list);
}

/* Rows that only this kernel uses. */
static void put_locals(oi_cprog *c, const oi_skernel *k, const char *const *names)
{
    for (size_t i = 0; i < k->ports.n; i++) {
        const oi_tensor *t = &c->u->tensors.at[k->ports.at[i].tensor];
        if (t->space == OI_SPACE_LOCAL)
            oi_out_line(&c->out, "%s %s[%" PRIu64 "];", oi_c_type(t->dtype), names[i],
                        t->size_bytes / (oi_dtype_bits(t->dtype) / 8));
    }
}

/* -- recipes -- */

static const char *attr_text(oi_cprog *c, const oi_skernel *k, int64_t attr)
{
    uint32_t scalar = k->call->scalars ? k->call->scalars[attr] : OI_NO_ID;
    return scalar != OI_NO_ID ? k->scalars.at[scalar].name
                              : oi_arena_printf(c->arena, "%" PRId64, k->call->attrs[attr].i);
}

static const char *arg_text(oi_cprog *c, const oi_skernel *k, uint32_t arg,
                            const char *const *names)
{
    const oi_recipe_arg *a = &k->plan->args[arg];
    switch (a->kind) {
    case OI_ARG_IN:
    case OI_ARG_OUT:
    case OI_ARG_PACKED: return names[k->arg_ports[arg]];
    case OI_ARG_SCRATCH: return k->plan->scratch[a->n].name;
    case OI_ARG_SIZE: return oi_arena_printf(c->arena, "%" PRId64, a->n);
    case OI_ARG_REAL: {
        float f = (float)a->real;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        return oi_c_literal(c->arena, OI_F32, bits);
    }
    case OI_ARG_ATTR: return attr_text(c, k, a->n);
    case OI_ARG_FIRST: return k->split.extent ? "first" : "0";
    case OI_ARG_LAST:
        return k->split.extent ? "last" : oi_arena_printf(c->arena, "%" PRId64, k->plan->extent);
    }
    return "0";
}

static void put_recipe(oi_cprog *c, const oi_skernel *k, const char *const *names)
{
    const oi_recipe_plan *p = k->plan;
    oi_buf list = {0};
    for (uint32_t i = 0; i < p->n_scratch; i++)
        oi_out_line(&c->out, "_Alignas(%u) %s %s[%" PRId64 "];", OI_ALIGN,
                    oi_c_type(p->scratch[i].dtype), p->scratch[i].name,
                    p->scratch[i].count ? p->scratch[i].count : 1);
    for (uint32_t i = 0; i < p->n_args; i++)
        oi_buf_printf(&list, "%s%s", i ? ", " : "", arg_text(c, k, i, names));
    oi_out_line(&c->out, "%s(%s);", p->function, oi_buf_to_arena(&list, c->arena));
}

/* The part of a kernel that one thread does. */
static void put_share(oi_cprog *c, const oi_skernel *k)
{
    const oi_sharing *p = &k->split;
    if (!p->extent)
        return;
    oi_out_line(&c->out, "const int64_t first = oi_share(%" PRId64 ", %" PRId64 ", part, parts);",
                p->extent, p->unit);
    oi_out_line(&c->out,
                "const int64_t last = oi_share(%" PRId64 ", %" PRId64 ", part + 1, parts);",
                p->extent, p->unit);
}

static void put_body(oi_cprog *c, const oi_skernel *k, const char *const *names)
{
    const char **fns = fn_names(c, k);
    oi_nest_printer p = {.arena = c->arena,
                         .out = &c->out,
                         .lang = oi_c_is_freestanding(c) ? &oi_lang_c32 : &oi_lang_c,
                         .unit = c->u,
                         .kernel = k,
                         .ports = names,
                         .fns = fns,
                         .n_open = k->n_shared,
                         .split = k->split.extent ? &k->split : NULL};
    size_t before = c->out.buf.n;
    put_share(c, k);
    if (k->recipe)
        put_recipe(c, k, names);
    if (k->n_shared)
        oi_nest_open_shared(&p, &k->nests.at[0]);
    put_locals(c, k, names);
    for (size_t i = 0; i < k->nests.n; i++) {
        if (k->nests.n > 1)
            oi_out_brace(&c->out);
        oi_nest_print(&p, &k->nests.at[i]);
        if (k->nests.n > 1)
            oi_out_close(&c->out, "");
    }
    for (uint32_t a = 0; a < k->n_shared; a++)
        oi_out_close(&c->out, "");
    if (!k->formulas.n || c->out.buf.n == before)
        return;
    const char *body = oi_arena_text(c->arena, c->out.buf.text + before, c->out.buf.n - before);
    c->out.buf.n = before;
    oi_out_text(&c->out, fn_texts(c, k, fns, body));
    oi_out_text(&c->out, body);
}

void oi_c_kernel(oi_cprog *c, const oi_skernel *k)
{
    c->graph = k->graph;
    const char **names = port_names(c, k);
    put_source(c, k);
    put_parameters(c, k, names);
    oi_out_brace(&c->out);
    put_body(c, k, names);
    if (k->can_fail)
        oi_out_line(&c->out, "return 0;");
    oi_out_close(&c->out, "");
    oi_out_line(&c->out, "%s", "");
}

/* -- calls -- */

const char *oi_c_scalar(oi_cprog *c, const oi_pvalue *v)
{
    const oi_program *p = c->u->graphs.at[c->graph].program;
    if (v->kind == OI_PV_INDEX)
        return oi_c_index(c, v->id);
    if (v->kind == OI_PV_CODE)
        return oi_arena_printf(c->arena, "(%s)", oi_c_code(c, &v->code, NULL));
    if (v->kind != OI_PV_VAR)
        return "0";
    oi_dtype t = p->vars[v->id].dtype;
    if (!oi_dtype_is_float(t))
        return oi_c_number(c, v->id);
    oi_port port = {.tensor = c->u->graphs.at[c->graph].tensor_of[v->id]};
    const char *at = oi_arena_printf(c->arena, "*(%s)", oi_c_address(c, &port));
    return oi_form_of(t) == t ? at
                              : oi_arena_printf(c->arena, "oi_f32_of_%s(%s)", oi_dtype_name(t), at);
}

static const char *scalar_text(oi_cprog *c, const oi_kscalar *s)
{
    if (s->is_length)
        return oi_c_length(c, s->tensor, s->dim);
    return oi_arena_printf(c->arena, "(%s)%s", oi_dialect_c.types[oi_form_of(s->dtype)],
                           oi_c_scalar(c, &s->value));
}

typedef struct calling {
    oi_cprog *c;
    const oi_skernel *k;
} calling;

static const char *length_text(void *ctx, uint32_t scalar)
{
    const calling *x = ctx;
    const oi_kscalar *s = &x->k->scalars.at[scalar];
    return oi_c_length(x->c, s->tensor, s->dim);
}

/* What the kernel writes gets its lengths. */
static void put_lengths(oi_cprog *c, const oi_skernel *k)
{
    calling x = {c, k};
    for (size_t i = 0; i < k->lengths.n; i++) {
        const oi_set_length *l = &k->lengths.at[i];
        const char *value = oi_arena_printf(c->arena, "%" PRId64, l->value);
        if (l->fn)
            value = oi_formula_text(c->arena, &k->formulas.at[l->fn - 1], length_text, &x);
        oi_out_line(&c->out, "%s = %s;", oi_c_length(c, l->tensor, l->dim), value);
    }
}

void oi_c_kernel_call(oi_cprog *c, const oi_skernel *k)
{
    oi_buf text = {0};
    const bool *used = used_scalars(c, k);
    put_lengths(c, k);
    for (size_t i = 0; i < k->ports.n; i++) {
        if (c->u->tensors.at[k->ports.at[i].tensor].space == OI_SPACE_LOCAL)
            continue;
        oi_c_check_entry(c, &k->ports.at[i]);
        oi_buf_printf(&text, "%s%s", text.n ? ", " : "", oi_c_address(c, &k->ports.at[i]));
    }
    for (size_t i = 0; i < k->scalars.n; i++)
        if (used[i])
            oi_buf_printf(&text, "%s%s", text.n ? ", " : "", scalar_text(c, &k->scalars.at[i]));
    if (k->split.extent)
        oi_buf_puts(&text, ", part, parts");
    const char *list = text.n ? oi_buf_to_arena(&text, c->arena) : "";
    if (!k->can_fail) {
        oi_out_line(&c->out, "%s(%s);", k->name, list);
        return;
    }
    c->fails = true;
    oi_out_line(&c->out, "failed = %s(%s);", k->name, list);
    oi_out_line(&c->out, "if (failed)");
    oi_out_line(&c->out, "    return failed;");
}
