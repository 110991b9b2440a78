/* null.c: the smallest complete target. It writes the plan as a readable listing: memory, what
 * every kernel computes, and the order of a step. Copy this folder to begin a target. */
#include "emit/nest.h"

#include <inttypes.h>

/* -- the language: elements are read and written by name, whatever their type -- */

static void load(const oi_nest_printer *p, const oi_sop *op, const char *at, oi_buf *out)
{
    oi_buf_printf(out, "%s[%s]", p->ports[op->port], at);
}

static void store(const oi_nest_printer *p, const oi_sop *op, const char *at, const char *value,
                  oi_buf *out)
{
    oi_buf_printf(out, "%s[%s] = %s", p->ports[op->port], at, value);
}

static void fail(oi_out *o, int code, const char *why)
{
    oi_out_line(o, "fail E%03d; /* %s */", code, why);
}

static const oi_helper no_helpers[] = {{0}};

static const oi_lang lang = {.dialect = &oi_dialect_c,
                             .helpers = no_helpers,
                             .index = "int",
                             .exact = "",
                             .load = load,
                             .store = store,
                             .fail = fail,
                             .literal = oi_c_literal};

/* -- memory -- */

static void put_space(const oi_plan *u, oi_out *o, oi_space space, const char *title)
{
    bool any = false;
    for (size_t i = 0; i < u->tensors.n; i++) {
        const oi_tensor *t = &u->tensors.at[i];
        if (t->space != space)
            continue;
        if (!any)
            oi_out_line(o, "%s", title);
        any = true;
        oi_buf dims = {0};
        for (uint32_t d = 0; d < t->rank; d++)
            oi_buf_printf(&dims, "%s%" PRId64, d ? ", " : "", t->dims[d]);
        oi_out_line(o, "    %10" PRIu64 "  %s: %s[%s], %" PRIu64 " bytes", t->offset, t->name,
                    oi_dtype_name(t->dtype), dims.n ? oi_buf_to_arena(&dims, u->arena) : "",
                    oi_tensor_bytes(t));
    }
}

static void put_memory(const oi_plan *u, oi_out *o)
{
    put_space(u, o, OI_SPACE_WEIGHTS, "weights, by offset");
    put_space(u, o, OI_SPACE_STATE, "state");
    put_space(u, o, OI_SPACE_INPUT, "inputs");
    put_space(u, o, OI_SPACE_OUTPUT, "outputs");
    put_space(u, o, OI_SPACE_ARENA, "working memory, by offset");
}

/* -- kernels -- */

/* "i: worker 8; k: vector 16": axes that are no serial loops. */
static void put_levels(const oi_plan *u, const oi_snest *n, oi_out *o)
{
    oi_printing x = {.p = &(oi_nest_printer){.arena = u->arena}, .n = n};
    oi_buf all = {0};
    for (uint32_t a = 0; a < n->n_axes; a++) {
        oi_buf own = {0};
        oi_axis_put_levels(&n->axes[a], &own);
        if (own.n)
            oi_buf_printf(&all, "%s%s:%s", all.n ? "; " : "", oi_place_axis(&x, a),
                          oi_buf_to_arena(&own, u->arena));
    }
    if (all.n)
        oi_out_line(o, "/* %s */", oi_buf_to_arena(&all, u->arena));
}

static void put_nests(const oi_plan *u, const oi_skernel *k, const char **names, oi_out *o)
{
    const oi_nest_printer p = {.arena = u->arena,
                               .out = o,
                               .lang = &lang,
                               .plan = u,
                               .kernel = k,
                               .ports = names,
                               .fns = oi_kernel_fn_names(u->arena, k, NULL),
                               .n_open = k->n_shared};
    if (k->n_shared)
        oi_nest_open_shared(&p, &k->nests.at[0]);
    for (size_t i = 0; i < k->nests.n; i++) {
        put_levels(u, &k->nests.at[i], o);
        oi_nest_print(&p, &k->nests.at[i]);
    }
    for (uint32_t a = 0; a < k->n_shared; a++)
        oi_out_close(o, "");
}

static void put_kernel(const oi_plan *u, const oi_skernel *k, oi_out *o)
{
    if (k->function_name != k->name)
        oi_out_line(o, "kernel %s is %s", k->name, k->function_name);
    if (!oi_kernel_has_function(u, k))
        return;
    const char **names = oi_kernel_port_names(u->arena, u, k);
    oi_buf list = {0};
    for (size_t i = 0; i < k->ports.n; i++)
        if (!k->ports.at[i].is_dropped)
            oi_buf_printf(&list, "%s%s%s", list.n ? ", " : "",
                          k->ports.at[i].is_written ? "out " : "", names[i]);
    oi_out_line(o, "%s", "");
    oi_kernel_put_source(o, u->arena, u, k);
    oi_out_open(o, "kernel %s(%s)", k->function_name,
                list.n ? oi_buf_to_arena(&list, u->arena) : "");
    if (k->recipe)
        oi_out_line(o, "recipe \"%s\";", k->recipe->name);
    put_nests(u, k, names, o);
    oi_out_close(o, "");
}

/* -- the target -- */

static bool takes(const oi_device_info *d)
{
    return d->api == OI_DEVICE_NULL;
}

static oi_caps caps(const oi_device_info *d)
{
    return (oi_caps){
        .goal = OI_GOAL_TIME, .workers = 1, .alignment = 8, .ram_bytes = d->memory.global_bytes};
}

static void certify(const oi_plan *u, oi_certificate *out)
{
    *out = (oi_certificate){.state_bytes = u->state_bytes,
                            .arena_bytes = u->arena_bytes,
                            .ram_bytes = u->state_bytes + u->arena_bytes,
                            .weights_bytes = u->weights_bytes};
}

static void emit(const oi_plan *u, const oi_certificate *c, oi_emitted *files)
{
    oi_out o = {0};
    oi_buf steps = {0};
    oi_out_line(&o,
                "%s: weights %016" PRIx64 ", %" PRIu64 " bytes; state %" PRIu64
                ", working memory %" PRIu64,
                u->name, u->weights_hash, c->weights_bytes, c->state_bytes, c->arena_bytes);
    put_memory(u, &o);
    for (size_t i = 0; i < u->kernels.n; i++)
        if (u->kernels.at[i].is_used)
            put_kernel(u, &u->kernels.at[i], &o);
    oi_out_line(&o, "%s", "");
    oi_plan_put_steps(u, &steps);
    oi_out_text(&o, oi_buf_to_arena(&steps, u->arena));
    oi_emit_file(u, files, oi_arena_printf(u->arena, "%s.txt", u->name), &o.buf);
}

const oi_target oi_target_null = {.name = "null",
                                  .writes = OI_SYNTH_LISTING,
                                  .takes = takes,
                                  .caps = caps,
                                  .certify = certify,
                                  .emit = emit};
