/* kernel.c: prints a kernel as a C function, and calls of it. */
#include "emit/c/c.h"
#include "emit/nest.h"

#include <inttypes.h>

/* Tensors of one kernel are live together, so they do not overlap; two entries of one table may be
 * the same. */
static bool lie_apart(const oi_skernel *k)
{
    for (size_t i = 0; i < k->ports.n; i++)
        for (size_t j = 0; j < i; j++)
            if (k->ports.at[i].tensor == k->ports.at[j].tensor)
                return false;
    return true;
}

static const char *kernel_name(oi_cprog *c, const oi_skernel *k)
{
    return oi_arena_printf(c->arena, "kernel_%s", k->function_name);
}

bool oi_c_is_mixed(const oi_skernel *k)
{
    bool is = false;
    for (size_t i = 0; i < k->nests.n; i++)
        is |= oi_nest_jam(&k->nests.at[i]) > 0;
    return is;
}

/* Every element of its tensors, and the next one, has a number of 32 bits. */
static bool fits_32(const oi_cprog *c, const oi_skernel *k)
{
    bool fits = c->form->prefers_32;
    for (size_t i = 0; i < k->ports.n; i++)
        fits &= oi_tensor_bytes(&c->p->tensors.at[k->ports.at[i].tensor]) < INT32_MAX / 8;
    return fits;
}

static const oi_lang *lang_of(const oi_cprog *c, const oi_skernel *k)
{
    return oi_c_is_board(c) || fits_32(c, k) ? c->form->lang32 : c->form->lang;
}

/* By scalar: whether the kernel's function receives it. Some lengths serve only the caller. */
static const bool *scalars_of(const oi_cprog *c, const oi_skernel *k)
{
    return c->scalars[k->function];
}

static void find_scalars(oi_cprog *c, const oi_skernel *k, const char *body)
{
    bool *used = oi_arena_alloc(c->arena, k->scalars.n + 1);
    const char **scalars = oi_c_scalar_names(c, k);
    for (size_t i = 0; i < k->scalars.n; i++)
        used[i] = !k->is_dynamic || oi_text_has_word(body, scalars[i]);
    c->scalars[k->function] = used;
}

static void put_parameters(oi_cprog *c, const oi_skernel *k, const char *const *names)
{
    const bool *used = scalars_of(c, k);
    const char **scalars = oi_c_scalar_names(c, k);
    oi_buf text = {0};
    const char *star = lie_apart(k) ? oi_arena_printf(c->arena, "*%s", c->form->apart) : "*";
    for (size_t i = 0; i < k->ports.n; i++) {
        const oi_tensor *t = &c->p->tensors.at[k->ports.at[i].tensor];
        if (t->space == OI_SPACE_LOCAL)
            continue;
        oi_buf_printf(&text, "%s%s%s %s%s", text.n ? ", " : "",
                      k->ports.at[i].is_written ? "" : "const ", oi_c_type(t->dtype), star,
                      names[i]);
    }
    for (size_t i = 0; i < k->scalars.n; i++)
        if (used[i])
            oi_buf_printf(&text, "%s%s %s", text.n ? ", " : "",
                          oi_dialect_c.types[oi_form_of(k->scalars.at[i].dtype)], scalars[i]);
    if (oi_kernel_partition(k).extent)
        oi_buf_puts(&text, ", int worker, int workers");
    if (k->has_prefetch)
        oi_buf_puts(&text, ", const void *next");
    if (oi_kernel_streams(k))
        oi_buf_printf(&text, ", %s first, %s last", lang_of(c, k)->index, lang_of(c, k)->index);
    const char *list = text.n ? oi_buf_to_arena(&text, c->arena) : "void";
    oi_out_call(&c->out,
                oi_arena_printf(c->arena, "%s%s %s %s(%s)", oi_c_is_mixed(k) ? "OI_MIXED " : "",
                                k->next_alike != OI_NO_ID && c->form->shared ? c->form->shared
                                                                             : c->form->function,
                                k->can_fail ? "int" : "void", kernel_name(c, k), list));
}

/* Rows that only this kernel uses. */
static void put_locals(oi_cprog *c, const oi_skernel *k, const char *const *names)
{
    for (size_t i = 0; i < k->ports.n; i++) {
        const oi_tensor *t = &c->p->tensors.at[k->ports.at[i].tensor];
        if (t->space == OI_SPACE_LOCAL)
            oi_out_line(&c->out, "%s %s[%" PRIu64 "];", oi_c_type(t->dtype), names[i],
                        t->size_bytes / (oi_dtype_bits(t->dtype) / 8));
    }
}

/* -- recipes -- */

static const char *attr_text(oi_cprog *c, const oi_skernel *k, int64_t attr)
{
    uint32_t scalar = k->call->scalars ? k->call->scalars[attr] : OI_NO_ID;
    return scalar != OI_NO_ID ? oi_c_scalar_names(c, k)[scalar]
                              : oi_c_literal(c->arena, OI_I64, (uint64_t)k->call->attrs[attr].i);
}

static const char *arg_text(oi_cprog *c, const oi_skernel *k, uint32_t arg,
                            const char *const *names)
{
    const oi_recipe_arg *a = &k->plan->args[arg];
    switch (a->kind) {
    case OI_ARG_IN:
    case OI_ARG_OUT:
    case OI_ARG_PACKED:
    case OI_ARG_PROLOGUE: return names[k->arg_ports[arg]];
    case OI_ARG_SCRATCH: return k->plan->scratch[a->n].name;
    case OI_ARG_SIZE: return oi_arena_printf(c->arena, "%" PRId64, a->n);
    case OI_ARG_REAL: {
        float f = (float)a->real;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        return oi_c_literal(c->arena, OI_F32, bits);
    }
    case OI_ARG_ATTR: return attr_text(c, k, a->n);
    case OI_ARG_EPILOGUE:
        return k->epilogue ? oi_arena_printf(c->arena, "finish_%s, ports", k->function_name)
                           : "NULL, NULL";
    case OI_ARG_NEXT: return k->has_prefetch ? "next" : "NULL";
    case OI_ARG_FIRST: return oi_kernel_partition(k).extent ? "first" : "0";
    case OI_ARG_LAST:
        return oi_kernel_partition(k).extent
                   ? "last"
                   : oi_arena_printf(c->arena, "%" PRId64, k->plan->extent);
    case OI_ARG_ROW: return oi_kernel_streams(k) ? "first" : "0";
    case OI_ARG_ROW_END:
        return oi_kernel_streams(k) ? "last" : oi_arena_printf(c->arena, "%" PRId64, a->n);
    }
    return "0";
}

void oi_c_put_recipe(oi_cprog *c, const oi_skernel *k, const char *const *names)
{
    const oi_recipe_plan *p = k->plan;
    uint32_t n_more = 0; /* more parameters than arguments */
    oi_buf list = {0};
    if (k->epilogue) {
        oi_buf ports = {0};
        for (size_t i = 0; i < k->ports.n; i++)
            oi_buf_printf(&ports, "%s%s%s", i ? ", " : "",
                          k->ports.at[i].is_written ? "" : "(void *)(uintptr_t)", names[i]);
        oi_out_line(&c->out, "void *const ports[] = {%s};", oi_buf_to_arena(&ports, c->arena));
    }
    for (uint32_t i = 0; i < p->n_scratch; i++)
        oi_out_line(&c->out, "OI_ALIGNED(%u) %s %s[%" PRId64 "];", (unsigned)c->p->align,
                    oi_c_type(p->scratch[i].dtype), p->scratch[i].name,
                    p->scratch[i].count ? p->scratch[i].count : 1);
    for (uint32_t i = 0; i < p->n_args; i++) {
        bool is_number = p->args[i].kind == OI_ARG_SIZE || p->args[i].kind == OI_ARG_REAL;
        const char *what = oi_helper_parameter(c->arena, oi_helpers, p->function, i + n_more);
        n_more += p->args[i].kind == OI_ARG_EPILOGUE;
        oi_buf_printf(&list, "%s", i ? ", " : "");
        if (is_number && what)
            oi_buf_printf(&list, "/* %s */ ", what);
        oi_buf_puts(&list, arg_text(c, k, i, names));
    }
    oi_out_call(&c->out, oi_arena_printf(c->arena, "%s(%s);", p->function,
                                         oi_buf_to_arena(&list, c->arena)));
}

/* The range of a kernel that is not partitioned. */
void oi_c_put_share(oi_cprog *c, const oi_skernel *k)
{
    const oi_partition p = oi_kernel_partition(k);
    if (!p.extent)
        return;
    oi_out_line(&c->out,
                "const int64_t first = oi_partition_begin(%" PRId64 ", %" PRId64
                ", worker, workers);",
                p.extent, p.unit);
    oi_out_line(&c->out,
                "const int64_t last = oi_partition_begin(%" PRId64 ", %" PRId64
                ", worker + 1, workers);",
                p.extent, p.unit);
}

/* Whether the nest's text has variables outside all loops. */
static bool has_locals(const oi_skernel *k, const oi_snest *n)
{
    for (uint32_t a = k->n_shared; a < n->n_axes && !n->axes[a].is_reduced; a++)
        if (oi_place_has_loop(n, a))
            return oi_nest_register_tile(n) > 0;
    return true;
}

static void put_body(oi_cprog *c, const oi_skernel *k, const oi_nest_printer *p)
{
    oi_c_put_share(c, k);
    if (k->recipe)
        oi_c_put_recipe(c, k, p->ports);
    if (k->n_shared)
        oi_nest_open_shared(p, &k->nests.at[0]);
    put_locals(c, k, p->ports);
    for (size_t i = 0; i < k->nests.n; i++) {
        bool apart = k->nests.n > 1 && has_locals(k, &k->nests.at[i]);
        if (apart)
            oi_out_brace(&c->out);
        oi_nest_print(p, &k->nests.at[i]);
        if (apart)
            oi_out_close(&c->out, "");
    }
    for (uint32_t a = 0; a < k->n_shared; a++)
        oi_out_close(&c->out, "");
}

/* Definitions of run-time numbers come first, those that the loops use. */
static const char *body_text(oi_cprog *c, const oi_skernel *k, const char *const *names)
{
    const oi_out outer = c->out;
    const char **scalars = oi_c_scalar_names(c, k),
               **fns = oi_kernel_fn_names(c->arena, k, scalars);
    const oi_nest_printer p = {.arena = c->arena,
                               .out = &c->out,
                               .lang = lang_of(c, k),
                               .plan = c->p,
                               .kernel = k,
                               .ports = names,
                               .scalars = scalars,
                               .fns = fns,
                               .n_open = k->n_shared};
    c->out = (oi_out){.depth = 1};
    (c->form->put_body ? c->form->put_body : put_body)(c, k, &p);
    const char *body = c->out.buf.n ? oi_buf_to_arena(&c->out.buf, c->arena) : "";
    c->out = outer;
    return oi_arena_printf(c->arena, "%s%s",
                           oi_kernel_fn_texts(c->arena, k, scalars, fns, "int64_t", body), body);
}

/* The epilogue: a function of a sum at three positions of the result. */
static void put_finish(oi_cprog *c, const oi_skernel *k, const char *const *names)
{
    oi_nest_printer p = {.arena = c->arena,
                         .out = &c->out,
                         .lang = lang_of(c, k),
                         .plan = c->p,
                         .kernel = k,
                         .ports = names};
    oi_out_line(&c->out, "%s inline __attribute__((always_inline)) void finish_%s(",
                c->form->function, k->function_name);
    const char *index = lang_of(c, k)->index;
    oi_out_line(&c->out, "    void *const *ports, %s i, %s j, %s k, %s p, %s acc)", index, index,
                index, index, oi_dialect_c.types[k->epilogue->acc]);
    oi_out_brace(&c->out);
    for (size_t i = 0; i < k->ports.n; i++) {
        const oi_tensor *t = &c->p->tensors.at[k->ports.at[i].tensor];
        bool is_used = false;
        for (size_t s = 0; s < k->epilogue->post.n; s++)
            is_used |= k->epilogue->post.at[s].at && k->epilogue->post.at[s].kind != OI_SOP_PLACE &&
                       k->epilogue->post.at[s].port == i;
        if (is_used)
            oi_out_line(&c->out, "%s%s *const %s = ports[%zu];",
                        k->ports.at[i].is_written ? "" : "const ", oi_c_type(t->dtype), names[i],
                        i);
    }
    for (uint32_t a = 0; a < k->epilogue->n_axes; a++)
        if (k->epilogue->axes[a].extent == 1)
            oi_out_line(&c->out, "(void)%c;", OI_AXIS_LETTERS[a]);
    oi_nest_print_end(&p, k->epilogue);
    oi_out_close(&c->out, "");
    oi_out_line(&c->out, "%s", "");
}

void oi_c_kernel(oi_cprog *c, const oi_skernel *k)
{
    const size_t before = c->out.buf.n;
    c->graph = k->graph;
    const char **names = oi_c_port_names(c, k);
    oi_kernel_put_source(&c->out, c->arena, c->p, k);
    if (k->recipe && (k->plan->doc || k->call)) /* its loops are elsewhere, so say what it does */
        oi_out_line(&c->out, "/* %s */", k->plan->doc ? k->plan->doc : k->call->op->doc);
    if (k->epilogue)
        put_finish(c, k, names);
    const char *body = body_text(c, k, names);
    find_scalars(c, k, body);
    put_parameters(c, k, names);
    oi_out_brace(&c->out);
    oi_out_text(&c->out, body);
    if (k->can_fail && !c->form->put_body)
        oi_out_line(&c->out, "return 0;");
    oi_out_close(&c->out, "");
    oi_out_line(&c->out, "%s", "");
    oi_settle(c->settler, &c->out.buf, before);
}

/* -- calls -- */

const char *oi_c_scalar(oi_cprog *c, const oi_pvalue *v)
{
    const oi_program *p = oi_c_program(c);
    if (v->kind == OI_PV_INDEX)
        return oi_c_index(c, v->id);
    if (v->kind == OI_PV_CODE)
        return oi_arena_printf(c->arena, "(%s)", oi_c_code(c, &v->code, NULL));
    if (v->kind != OI_PV_VAR)
        return "0";
    oi_dtype t = p->vars[v->id].dtype;
    if (!oi_dtype_is_float(t))
        return oi_c_number(c, v->id);
    oi_port port = {.tensor = oi_graph_tensor(&c->p->graphs.at[c->graph], c->block, v->id)};
    const char *at = oi_arena_printf(c->arena, "*(%s)", oi_c_address(c, &port));
    return oi_form_of(t) == t ? at
                              : oi_arena_printf(c->arena, "oi_f32_of_%s(%s)", oi_dtype_name(t), at);
}

const char *oi_c_scalar_value(oi_cprog *c, const oi_kscalar *s)
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
    return s->is_length ? oi_c_length(x->c, s->tensor, s->dim) : oi_c_scalar(x->c, &s->value);
}

void oi_c_kernel_lengths(oi_cprog *c, const oi_skernel *k)
{
    calling x = {c, k};
    if (k->lengths.n)
        oi_c_begin_write(c);
    for (size_t i = 0; i < k->lengths.n; i++) {
        const oi_set_length *l = &k->lengths.at[i];
        const char *value = oi_arena_printf(c->arena, "%" PRId64, l->value);
        if (l->fn)
            value = oi_formula_text(c->arena, &k->formulas.at[l->fn - 1], length_text, &x);
        oi_out_line(&c->out, "%s = %s;", oi_c_length(c, l->tensor, l->dim), value);
    }
    if (k->lengths.n)
        oi_c_end_write(c);
}

/* Marked as unlikely. Otherwise a compiler that considers these returns likely does not vectorise
 * the end of a long step. */
void oi_c_put_failed(oi_cprog *c)
{
    oi_out_line(&c->out, "if (__builtin_expect(failed, 0))");
    oi_out_line(&c->out, "    return failed;");
}

const char *oi_c_weights(oi_cprog *c, uint32_t kernel)
{
    const oi_skernel *k = &c->p->kernels.at[kernel];
    for (uint32_t i = 0; i < k->plan->n_args; i++) {
        if (k->plan->args[i].kind != OI_ARG_PACKED || k->plan->args[i].n != 0)
            continue;
        const oi_port *p = &k->ports.at[k->arg_ports[i]];
        bool exists = true;
        for (uint32_t a = 0; a < p->n_entry; a++)
            exists &= oi_code_is_below(oi_c_program(c), &p->entry[a],
                                       c->p->tensors.at[p->tensor].table[a]);
        const char *text =
            "%s + oi_partition_begin(%" PRId64 ", %" PRId64 ", worker, %s) * %" PRId64;
        const char *workers =
            k->is_chunked ? "2 * workers" : "workers"; /* the first chunk: team.h */
        const oi_partition own = oi_kernel_partition(k);
        return exists ? oi_arena_printf(c->arena, text, oi_c_address(c, p), own.extent, own.unit,
                                        workers, k->plan->streams)
                      : "NULL";
    }
    return "NULL";
}

void oi_c_kernel_call(oi_cprog *c, const oi_skernel *k)
{
    oi_buf text = {0};
    const bool *used = scalars_of(c, k);
    oi_c_kernel_lengths(c, k);
    if (c->form->device) {
        c->form->device->call(c, k);
        return;
    }
    oi_c_put_kernel_reuse(c, k);
    for (size_t i = 0; i < k->ports.n; i++) {
        if (c->p->tensors.at[k->ports.at[i].tensor].space == OI_SPACE_LOCAL)
            continue;
        oi_c_check_entry(c, &k->ports.at[i]);
        oi_buf_printf(&text, "%s%s", text.n ? ", " : "", oi_c_address(c, &k->ports.at[i]));
    }
    for (size_t i = 0; i < k->scalars.n; i++)
        if (used[i])
            oi_buf_printf(&text, "%s%s", text.n ? ", " : "",
                          oi_c_scalar_value(c, &k->scalars.at[i]));
    if (oi_kernel_partition(k).extent)
        oi_buf_puts(&text, k->is_chunked ? ", chunk.n, chunk.of" : ", worker, workers");
    if (k->has_prefetch)
        oi_buf_printf(&text, ", %s", oi_c_weights(c, k->prefetch));
    if (oi_kernel_streams(k))
        oi_buf_puts(&text, c->rows);
    const char *list = text.n ? oi_buf_to_arena(&text, c->arena) : "";
    if (!k->can_fail) {
        oi_out_call(&c->out, oi_arena_printf(c->arena, "%s(%s);", kernel_name(c, k), list));
        return;
    }
    oi_out_call(&c->out, oi_arena_printf(c->arena, "failed = %s(%s);", kernel_name(c, k), list));
    oi_c_put_failed(c);
}
