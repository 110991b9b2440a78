/* host.c: what runs on the host: the program's functions, which copy inputs and results, launch
 * steps and say what is wrong with the device. */
#include "emit/cuda/cuda.h"

#include <inttypes.h>

static const char device_text[] =
    "static NAME_memory *oi_memory(const NAME *s)\n"
    "{\n"
    "    return (NAME_memory *)s->oi_memory;\n"
    "}\n\n"
    "static int oi_error(cudaError_t e)\n"
    "{\n"
    "    switch (e) {\n"
    "    case cudaSuccess: return NAME_OK;\n"
    "    case cudaErrorInsufficientDriver: return NAME_ERROR_NO_DRIVER;\n"
    "    case cudaErrorNoDevice: return NAME_ERROR_NO_DEVICE;\n"
    "    case cudaErrorNoKernelImageForDevice: return NAME_ERROR_DEVICE_OLD;\n"
    "    case cudaErrorMemoryAllocation: return NAME_ERROR_DEVICE_MEMORY;\n"
    "    default: return NAME_ERROR_DEVICE_FAILED;\n"
    "    }\n"
    "}\n\n"
    "/* What has gone wrong last. */\n"
    "static int oi_failed(void)\n"
    "{\n"
    "    const int error = oi_error(cudaPeekAtLastError());\n"
    "    return error == NAME_OK ? NAME_ERROR_DEVICE_FAILED : error;\n"
    "}\n\n"
    "static int oi_capability(void)\n"
    "{\n"
    "    int device = 0, major = 0, minor = 0;\n"
    "    if (cudaGetDevice(&device) != cudaSuccess ||\n"
    "        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != "
    "cudaSuccess ||\n"
    "        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != "
    "cudaSuccess)\n"
    "        return 0;\n"
    "    return 10 * major + minor;\n"
    "}\n\n"
    "/* Finds the device: how many blocks run beside each other there. */\n"
    "static int oi_find_device(int *blocks)\n"
    "{\n"
    "    int n = 0, device = 0;\n"
    "    const cudaError_t e = cudaGetDeviceCount(&n);\n"
    "    if (e != cudaSuccess || n == 0)\n"
    "        return e == cudaSuccess ? NAME_ERROR_NO_DEVICE : oi_error(e);\n"
    "    if (oi_capability() < OI_CAPABILITY)\n"
    "        return NAME_ERROR_DEVICE_OLD;\n"
    "    if (cudaGetDevice(&device) != cudaSuccess ||\n"
    "        cudaDeviceGetAttribute(blocks, cudaDevAttrMultiProcessorCount, device) != "
    "cudaSuccess)\n"
    "        return oi_failed();\n"
    "    return NAME_OK;\n"
    "}\n\n"
    "/* Streams of programs do not wait for copies outside them: it is there when this returns. "
    "*/\n"
    "static cudaError_t oi_upload(void *to, const void *from, size_t size)\n"
    "{\n"
    "    const cudaError_t e = cudaMemcpy(to, from, size, cudaMemcpyHostToDevice);\n"
    "    return e == cudaSuccess ? cudaStreamSynchronize(NULL) : e;\n"
    "}\n\n"
    "static void oi_copy_out(const NAME *s, void *to)\n"
    "{\n"
    "    (void)cudaMemcpy(to, &oi_memory(s)->oi_state_data, sizeof(NAME_state), "
    "cudaMemcpyDeviceToHost);\n"
    "}\n\n"
    "static int oi_copy_in(NAME *s, const void *from)\n"
    "{\n"
    "    return oi_upload(&oi_memory(s)->oi_state_data, from, sizeof(NAME_state)) == cudaSuccess;\n"
    "}\n\n";

static const char explain_text[] =
    "void NAME_explain(int error, char *text, size_t size)\n"
    "{\n"
    "    const int found = oi_capability();\n"
    "    size_t left = 0, all = 0;\n"
    "    int driver = 0;\n"
    "    switch (error) {\n"
    "    case NAME_ERROR_NO_DRIVER:\n"
    "        (void)cudaDriverGetVersion(&driver);\n"
    "        if (driver == 0)\n"
    "            snprintf(text, size, \"NAME: this machine has no driver for NVIDIA GPUs\");\n"
    "        else\n"
    "            snprintf(text, size, \"NAME: the driver speaks CUDA %d.%d, the program needs "
    "%d.%d\",\n"
    "                     driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,\n"
    "                     CUDART_VERSION % 1000 / 10);\n"
    "        return;\n"
    "    case NAME_ERROR_NO_DEVICE:\n"
    "        snprintf(text, size, \"NAME: there is no GPU\");\n"
    "        return;\n"
    "    case NAME_ERROR_DEVICE_OLD:\n"
    "        snprintf(text, size,\n"
    "                 \"NAME: the GPU has compute capability %d.%d, the program needs %d.%d\", "
    "found / 10,\n"
    "                 found % 10, OI_CAPABILITY / 10, OI_CAPABILITY % 10);\n"
    "        return;\n"
    "    case NAME_ERROR_DEVICE_MEMORY:\n"
    "        (void)cudaMemGetInfo(&left, &all);\n"
    "        snprintf(text, size, \"NAME: the program needs %zu bytes of the GPU's memory, %zu are "
    "free\",\n"
    "                 (size_t)NAME_DEVICE_BYTES + (size_t)NAME_WEIGHTS_BYTES, left);\n"
    "        return;\n"
    "    case NAME_ERROR_DEVICE_FAILED:\n"
    "        snprintf(text, size, \"NAME: the GPU failed in a step of %s: %s\", OI_STEPS,\n"
    "                 cudaGetErrorString(cudaPeekAtLastError()));\n"
    "        return;\n"
    "    default: snprintf(text, size, \"NAME: error %d\", error); return;\n"
    "    }\n"
    "}\n\n";

static const char free_text[] = "void NAME_free(NAME *s)\n"
                                "{\n"
                                "    if (s->oi_is_pinned)\n"
                                "        (void)cudaHostUnregister(s);\n"
                                "    if (s->oi_stream)\n"
                                "        (void)cudaStreamDestroy((cudaStream_t)s->oi_stream);\n"
                                "    (void)cudaFree(s->oi_copies);\n"
                                "    (void)cudaFree(s->oi_weights);\n"
                                "    (void)cudaFree(s->oi_memory);\n"
                                "    memset(s, 0, sizeof *s);\n"
                                "}\n\n";

static const char reset_text[] = "void NAME_reset(NAME *s)\n"
                                 "{\n"
                                 "    NAME_memory *memory = oi_memory(s);\n"
                                 "    void *args[] = {&memory};\n"
                                 "    (void)cudaLaunchKernel((const void *)oi_reset, "
                                 "dim3((unsigned)s->oi_blocks), dim3(OI_THREADS), args,\n"
                                 "                           0, (cudaStream_t)s->oi_stream);\n"
                                 "    (void)cudaStreamSynchronize((cudaStream_t)s->oi_stream);\n"
                                 "}\n\n";

/* Pinned memory is copied without a detour; a machine that cannot pin it copies the other way. */
static const char open_text[] =
    "static int oi_open(NAME *s, const void *weights, size_t size)\n"
    "{\n"
    "    cudaStream_t stream = NULL;\n"
    "    const int error = oi_find_device(&s->oi_blocks);\n"
    "    if (error != NAME_OK)\n"
    "        return error;\n"
    "    if (cudaMalloc(&s->oi_memory, sizeof(NAME_memory)) != cudaSuccess ||\n"
    "        cudaMalloc(&s->oi_weights, size + 128 * OI_THREADS) != cudaSuccess || /* oi_barrier "
    "fetches ahead */\n"
    "        cudaMemset(s->oi_memory, 0, sizeof(NAME_memory)) != cudaSuccess ||\n"
    "        oi_upload(s->oi_weights, weights, size) != cudaSuccess ||\n"
    "        oi_upload(&oi_memory(s)->oi_weights, &s->oi_weights, sizeof(void *)) != cudaSuccess "
    "||\n"
    "        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)\n"
    "        return oi_failed();\n"
    "    s->oi_stream = stream;\n";

static const char copies_text[] =
    "    if (cudaMalloc(&s->oi_copies, (size_t)s->oi_blocks * OI_COPY_BYTES) != cudaSuccess ||\n"
    "        oi_upload(&oi_memory(s)->oi_copies, &s->oi_copies, sizeof(void *)) != cudaSuccess)\n"
    "        return oi_failed();\n";

static const char init_text[] = "    s->oi_is_pinned = cudaHostRegister(s, sizeof *s, "
                                "cudaHostRegisterDefault) == cudaSuccess;\n"
                                "    (void)cudaGetLastError();\n"
                                "    s->oi_most_blocks = s->oi_blocks;\n"
                                "    return NAME_OK;\n"
                                "}\n\n"
                                "int NAME_init(NAME *s, const void *weights, size_t size)\n"
                                "{\n"
                                "    int error = oi_check_head(weights, size);\n"
                                "    if (error != NAME_OK)\n"
                                "        return error;\n"
                                "    if ((uintptr_t)s % NAME_STRUCT_ALIGN != 0)\n"
                                "        return NAME_ERROR_STRUCT_ADDRESS;\n"
                                "    memset(s, 0, sizeof *s);\n"
                                "    error = oi_open(s, weights, size);\n"
                                "    if (error != NAME_OK) {\n"
                                "        NAME_free(s);\n"
                                "        return error;\n"
                                "    }\n";

static void put_init(oi_cprog *c)
{
    oi_out *o = &c->out;
    oi_out_named(o, free_text, c->name);
    oi_out_named(o, reset_text, c->name);
    oi_out_named(o, open_text, c->name);
    if (oi_cuda_copy_bytes(c->p))
        oi_out_text(o, copies_text);
    oi_out_named(o, init_text, c->name);
    o->depth++;
    oi_c_put_inputs(c, o);
    oi_out_line(o, "%s_reset(s);", c->name);
    oi_out_line(o, "return %s_OK;", c->name);
    oi_out_close(o, "");
    oi_out_line(o, "%s", "");
}

/* -- steps -- */

/* Members that lie side by side in the host's struct and in the device's memory. */
typedef struct range {
    const char *first, *last; /* "oi_prefill.x" */
} range;

static const char *name_of(oi_cprog *c, const oi_tensor *t)
{
    return oi_c_member(c, t) + strlen("s->");
}

static range inputs_of(oi_cprog *c, const oi_sgraph *g)
{
    range r = {NULL, NULL};
    for (size_t i = 0; i < g->inputs.n; i++) {
        r.last = name_of(c, &c->p->tensors.at[g->inputs.at[i]]);
        r.first = r.first ? r.first : r.last;
    }
    return r;
}

static range outputs_of(oi_cprog *c, const oi_sgraph *g)
{
    range r = {NULL, NULL};
    for (size_t i = 0; i < g->outputs.n; i++) {
        const oi_tensor *t = &c->p->tensors.at[g->outputs.at[i]];
        bool is_first = t->space == OI_SPACE_OUTPUT;
        for (size_t j = 0; j < i; j++)
            is_first &= g->outputs.at[j] != g->outputs.at[i];
        if (!is_first)
            continue;
        r.last = name_of(c, t);
        r.first = r.first ? r.first : r.last;
    }
    return r;
}

static range lengths_of(oi_cprog *c)
{
    range r = {NULL, NULL};
    for (size_t i = 0; i < c->p->tensors.n; i++) {
        const oi_tensor *t = &c->p->tensors.at[i];
        if (!t->run_dims || (t->space == OI_SPACE_NONE && !t->keeps_lengths))
            continue;
        r.last = oi_arena_printf(c->arena, "oi_dims_%s", t->name);
        r.first = r.first ? r.first : r.last;
    }
    return r;
}

/* "copied = copied && ...": one copy of the range, in or out. */
static void put_copy(oi_cprog *c, range r, bool in)
{
    if (!r.first)
        return;
    const char *host = oi_arena_printf(c->arena, "&s->%s", r.first);
    const char *device = oi_arena_printf(c->arena, "&memory->%s", r.first);
    oi_out_line(&c->out, "fine = fine && cudaMemcpyAsync((void *)%s, (const void *)%s,",
                in ? device : host, in ? host : device);
    oi_out_line(
        &c->out,
        "                               offsetof(%s, %s) + sizeof s->%s - offsetof(%s, %s),",
        c->name, r.last, r.last, c->name, r.first);
    oi_out_line(&c->out, "                               cudaMemcpy%s, stream) == cudaSuccess;",
                in ? "HostToDevice" : "DeviceToHost");
}

static void put_check(oi_cprog *c, range r)
{
    if (r.first)
        oi_out_line(&c->out,
                    "static_assert(offsetof(%s, %s) - offsetof(%s, %s) == offsetof(%s, %s) - "
                    "offsetof(%s, %s), \"both are laid out alike\");",
                    c->name, r.last, c->name, r.first, c->self, r.last, c->self, r.first);
}

static const char run_text[] =
    "    int result = 0;\n"
    "    fine = fine &&\n"
    "           cudaMemsetAsync(&memory->oi_sync, 0, sizeof memory->oi_sync, stream) == "
    "cudaSuccess;\n"
    "    fine = fine && cudaLaunchCooperativeKernel((const void *)oi_step%u, "
    "dim3((unsigned)blocks),\n"
    "                                               dim3(OI_THREADS), args, 0, stream) == "
    "cudaSuccess;\n"
    "    fine = fine && cudaMemcpyAsync(&result, &memory->oi_sync.result, sizeof result,\n"
    "                                   cudaMemcpyDeviceToHost, stream) == cudaSuccess;\n";

/* Cycles become ns by the rate that the device names. */
static const char marks_text[] =
    "void NAME_marks(const NAME *s, uint64_t *ns, uint64_t *runs)\n"
    "{\n"
    "    const NAME_memory *memory = oi_memory(s);\n"
    "    int khz = 0, device = 0;\n"
    "    (void)cudaGetDevice(&device);\n"
    "    if (cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, device) != cudaSuccess || khz <= "
    "0)\n"
    "        khz = 1000000;\n"
    "    (void)cudaMemcpy(ns, memory->oi_marks.spent, sizeof memory->oi_marks.spent, "
    "cudaMemcpyDeviceToHost);\n"
    "    (void)cudaMemcpy(runs, memory->oi_marks.runs, sizeof memory->oi_marks.runs, "
    "cudaMemcpyDeviceToHost);\n"
    "    for (size_t i = 0; i < sizeof memory->oi_marks.spent / sizeof *ns; i++)\n"
    "        ns[i] = (uint64_t)((double)ns[i] * 1e6 / khz);\n"
    "}\n\n";

static void put_undo(oi_cprog *c)
{
    const bool logs = c->p->undo.kind == OI_UNDO_LOG;
    oi_out_open(&c->out, "if (result != 0)");
    if (logs)
        oi_out_line(&c->out, "fine = cudaLaunchKernel((const void *)oi_rollback, dim3(1), "
                             "dim3(OI_THREADS), args, 0, stream) == cudaSuccess;");
    else
        oi_out_line(&c->out,
                    "fine = cudaMemcpyAsync(&memory->oi_state_data, memory->oi_undo_log, "
                    "sizeof(%s_state), cudaMemcpyDeviceToDevice, stream) == cudaSuccess;",
                    c->name);
    oi_out_line(&c->out, "if (!fine || cudaStreamSynchronize(stream) != cudaSuccess)");
    oi_out_line(&c->out, "    return oi_failed();");
    oi_out_close(&c->out, "");
}

static void put_step(oi_cprog *c)
{
    oi_out *o = &c->out;
    const oi_sgraph *g = &c->p->graphs.at[c->graph];
    const bool is_all = g->blocks[g->program->entry].is_parallel;
    const bool copies = g->needs_undo && c->p->undo.kind == OI_UNDO_COPY;
    const range in = inputs_of(c, g), out = outputs_of(c, g), lengths = lengths_of(c);
    put_check(c, in);
    put_check(c, out);
    put_check(c, lengths);
    oi_out_line(o, "int %s(%s *s)", oi_c_step_name(c, c->graph), c->name);
    oi_out_brace(o);
    oi_out_line(o, "%s *memory = oi_memory(s);", c->self);
    oi_out_line(o, "const cudaStream_t stream = (cudaStream_t)s->oi_stream;");
    if (is_all)
        oi_out_line(o, "const int wish = s->oi_blocks, most = s->oi_most_blocks;");
    oi_out_line(o, is_all ? "const int blocks = wish < 1 ? 1 : wish > most ? most : wish;"
                          : "const int blocks = 1;");
    oi_out_line(o, "void *args[] = {&memory};");
    oi_out_line(o, "bool fine = true;");
    put_copy(c, in, true);
    if (copies)
        oi_out_line(o,
                    "fine = fine && cudaMemcpyAsync(memory->oi_undo_log, &memory->oi_state_data, "
                    "sizeof(%s_state), cudaMemcpyDeviceToDevice, stream) == cudaSuccess;",
                    c->name);
    if (c->p->timed)
        oi_out_line(o,
                    "fine = fine && cudaMemsetAsync(&memory->oi_marks, 0, sizeof memory->oi_marks, "
                    "stream) == cudaSuccess;");
    oi_buf_printf(&o->buf, run_text, c->graph);
    put_copy(c, out, false);
    put_copy(c, lengths, false);
    oi_out_line(o, "if (!fine || cudaStreamSynchronize(stream) != cudaSuccess)");
    oi_out_line(o, "    return oi_failed();");
    if (g->needs_undo)
        put_undo(c);
    oi_out_line(o, "return result;");
    oi_out_close(o, "");
    oi_out_line(o, "%s", "");
}

/* "decode.oi": what the steps are of. */
static const char *steps_text(oi_cprog *c)
{
    const char *all = "";
    for (size_t g = 0; g < c->p->graphs.n; g++) {
        const oi_graph *graph = c->p->graphs.at[g].program->graph;
        const char *own = graph->source.name ? oi_file_name(graph->source.name) : c->name;
        all = oi_arena_printf(c->arena, "%s%s%s", all, g ? " or " : "", own);
    }
    return oi_escaped(c->arena, oi_put_c_string, all);
}

void oi_cuda_put_host(oi_cprog *c)
{
    oi_c_put_weights_checks(c, &c->out);
    oi_out_line(&c->out, "#define OI_STEPS %s", steps_text(c));
    oi_out_line(&c->out, "%s", "");
    oi_out_named(&c->out, device_text, c->name);
    oi_out_named(&c->out, explain_text, c->name);
    put_init(c);
    for (c->graph = 0; c->graph < c->p->graphs.n; c->graph++)
        put_step(c);
    c->graph = 0;
    if (c->p->timed)
        oi_out_named(&c->out, marks_text, c->name);
    oi_c_put_save(c, &c->out);
}
