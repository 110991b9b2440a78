/* files.c: the files of a CUDA program: NAME.h, NAME.cu, main.c, Makefile, CMakeLists.txt. */
#include "emit/cuda/cuda.h"

#include <inttypes.h>

/* -- NAME.h -- */

static void certify(oi_cprog *c)
{
    oi_certificate *k = &c->certificate;
    k->struct_bytes = c->layout.size + oi_cuda_copy_bytes(c->p) * c->p->target->cuda.sm_count;
    k->arena_bytes = c->p->arena_bytes;
    k->weights_bytes = c->p->weights_bytes;
    k->ram_bytes = k->struct_bytes;
}

static oi_cprog program_of(const oi_plan *p)
{
    return (oi_cprog){.p = p,
                      .form = &oi_cform_cuda,
                      .arena = p->arena,
                      .name = p->name,
                      .self = oi_arena_printf(p->arena, "%s_memory", p->name),
                      .settler = oi_settler_new(p->arena, oi_c_is_forbidden)};
}

void oi_cuda_certify(const oi_plan *p, oi_certificate *out)
{
    oi_cprog c = program_of(p);
    oi_out o = {0};
    oi_c_put_struct(&c, &o);
    oi_buf_free(&o.buf);
    certify(&c);
    *out = c.certificate;
}

/* The host's struct: the first members are those of the device's memory. */
static void put_struct(oi_cprog *c, oi_out *o)
{
    const oi_clayout ours = c->layout;
    oi_c_put_state_type(c, o);
    oi_out_line(o, "%s", "");
    oi_out_open(o, "typedef struct %s", c->name);
    oi_c_shared_members(c, o);
    oi_out_line(
        o, "int oi_blocks; /* of the device run a step: as many as it runs side by side; fewer "
           "if set after init */");
    oi_out_line(o, "int oi_most_blocks, oi_is_pinned;");
    oi_out_line(o, "void *oi_memory, *oi_weights, *oi_copies, *oi_stream; /* of the device */");
    oi_out_close(o, oi_arena_printf(c->arena, " %s;", c->name));
    c->layout = ours;
}

/* -- NAME.cu -- */

/* Kernels and steps. */
static const char *device_text(oi_cprog *c)
{
    oi_c_put_kernels(c);
    for (c->graph = 0; c->graph < c->p->graphs.n; c->graph++) {
        oi_c_put_steps_section(c);
        oi_c_blocks(c);
    }
    c->graph = 0;
    oi_cuda_put_entries(c);
    const char *code = oi_buf_to_arena(&c->out.buf, c->arena);
    c->out = (oi_out){0};
    oi_c_put_holes(c);
    oi_cuda_put_undo(c);
    oi_cuda_put_sync(c);
    oi_out_text(&c->out, code);
    const char *all = oi_buf_to_arena(&c->out.buf, c->arena);
    c->out = (oi_out){0};
    return all;
}

static const char *host_text(oi_cprog *c)
{
    const char *self = c->self;
    c->form = &oi_cform_cuda_host;
    oi_c_put_section(&c->out, "the host's side");
    oi_cuda_put_host(c);
    c->form = &oi_cform_cuda;
    c->self = self;
    const char *text = oi_buf_to_arena(&c->out.buf, c->arena);
    c->out = (oi_out){0};
    return text;
}

/* Functions and tables at the beginning of a line become the device's. */
static void put_for_device(oi_out *o, const char *text)
{
    static const char *const heads[] = {"static inline ", "static const "};
    while (*text) {
        const char *end = strchr(text, '\n');
        const size_t n = end ? (size_t)(end + 1 - text) : strlen(text);
        size_t skip = 0;
        for (size_t i = 0; i < OI_COUNT(heads); i++)
            if (strncmp(text, heads[i], strlen(heads[i])) == 0) {
                oi_buf_puts(&o->buf, "static __device__ ");
                skip = strlen("static ");
            }
        oi_buf_add(&o->buf, text + skip, n - skip);
        text += n;
    }
}

static void put_helpers(oi_cprog *c, oi_out *o, const char *device, const char *host)
{
    oi_buf helpers = {0};
    oi_out own = {0};
    oi_cuda_put_helpers(c, device, &own);
    const char *ours = own.buf.n ? oi_buf_to_arena(&own.buf, c->arena) : "";
    (void)oi_helpers_for(c->arena, oi_helpers, c->p->target,
                         oi_arena_printf(c->arena, "%s%s", ours, device), false, &helpers);
    oi_c_put_section(o, "helpers");
    if (helpers.n)
        put_for_device(o, oi_buf_to_arena(&helpers, c->arena));
    oi_out_text(o, ours);
    helpers = (oi_buf){0};
    (void)oi_helpers_for(c->arena, oi_helpers, c->p->target, host, false, &helpers);
    oi_out_text(o, oi_buf_to_arena(&helpers, c->arena));
}

/* Memory of a block, and the numbers that both sides know. */
static void put_numbers(oi_cprog *c, oi_out *o, const char *device)
{
    const oi_device_info *d = c->p->target;
    oi_out_line(o, "#define OI_THREADS    %" PRIu64 " /* of a block */", oi_cuda_threads(d));
    oi_out_line(o, "#define OI_CAPABILITY %s /* the least compute capability */",
                oi_cuda_arch(c->arena, d));
    if (oi_cuda_copy_bytes(c->p))
        oi_out_line(o, "#define OI_COPY_BYTES %" PRIu64 " /* of small tensors, for each block */",
                    oi_cuda_copy_bytes(c->p));
    oi_out_line(o, "%s", "");
    if (oi_text_has_word(device, "oi_sums"))
        oi_out_line(o, "static __shared__ uint64_t oi_sums[OI_THREADS]; /* of lanes */");
    if (oi_text_has_word(device, "oi_row_memory"))
        oi_out_line(o,
                    "OI_ALIGNED(16) static __shared__ unsigned char oi_row_memory[%" PRIu64
                    "]; /* that lanes share */",
                    oi_cuda_row_bytes(c->p));
    oi_out_line(o, "%s", "");
}

static void put_source(oi_cprog *c, oi_emitted *files)
{
    oi_out o = {0}, memory = {0};
    const char *device = device_text(c), *host = host_text(c);
    oi_c_put_struct(c, &memory);
    oi_c_put_banner(
        c, &o,
        oi_arena_printf(c->arena,
                        "%s.cu: helpers, kernels, and the steps made of them: start reading there.",
                        c->name));
    oi_out_line(&o, "#ifdef __USE_FAST_MATH__");
    oi_out_line(&o, "#error \"results need every rounding, NaN and infinity: do not use "
                    "-use_fast_math\"");
    oi_out_line(&o, "#endif");
    oi_out_line(&o, "#include \"%s.h\"", c->name);
    oi_out_line(&o, "%s", "");
    oi_out_line(&o, "#include <cuda_runtime.h>");
    oi_out_line(&o, "%s", "");
    oi_out_line(&o, "#include <math.h>");
    oi_out_line(&o, "#include <stdio.h>");
    oi_out_line(&o, "#include <string.h>");
    oi_out_line(&o, "%s", "");
    oi_out_line(&o,
                "/* What lies in the device's memory; the first members are the host's, too. */");
    oi_buf_add(&o.buf, memory.buf.text, memory.buf.n);
    oi_buf_free(&memory.buf);
    oi_out_line(&o, "%s", "");
    put_numbers(c, &o, device);
    put_helpers(c, &o, device, host);
    oi_out_text(&o, device);
    oi_out_text(&o, host);
    oi_c_add_file(c, files, oi_arena_printf(c->arena, "%s.cu", c->name), &o);
}

void oi_emit_cuda(const oi_plan *p, const oi_certificate *k, oi_emitted *files)
{
    oi_cprog c = program_of(p);
    oi_out layout = {0};
    c.certificate = *k;
    if (p->per_node) {
        files->status = oi_plan_refuse(
            p, 0, NULL, (oi_span){.line = 0}, "E060",
            "a step is one kernel of the device '%s': it cannot stop after every node",
            p->target->name);
        return;
    }
    c.scalars = oi_arena_alloc(p->arena, (p->kernels.n + 1) * sizeof *c.scalars);
    c.is_retyped = oi_arena_alloc(p->arena, p->tensors.n + 1); /* barriers order all accesses */
    oi_c_put_struct(&c, &layout);
    oi_buf_free(&layout.buf);
    oi_out members = {0};
    put_struct(&c, &members);
    oi_c_put_header_around(&c, &members, files);
    put_source(&c, files);
    c.form = &oi_cform_cuda_host;
    oi_c_main(&c, files);
    oi_cuda_build_files(&c, files);
}
