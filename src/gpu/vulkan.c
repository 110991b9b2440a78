/* vulkan.c: the backend: opening, closing, and what it says when something fails. */
#include "gpu/gpu.h"

#include <stdlib.h>

static gpu *of(oi_backend *b)
{
    return (gpu *)b;
}

oi_status gpu_fail(gpu *g, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(g->why, sizeof g->why, fmt, args);
    va_end(args);
    return OI_ERR_ENV;
}

oi_status gpu_judge(gpu *g, oi_vk_status s)
{
    if (s == OI_VK_OK)
        return OI_OK;
    snprintf(g->why, sizeof g->why, "%s", oi_vk_why(g->d));
    return s == OI_VK_NO_MEMORY ? OI_NOT_FOUND : OI_ERR_ENV;
}

static const char *why(const oi_backend *b)
{
    return ((const gpu *)b)->why;
}

static void close_gpu(oi_backend *b)
{
    gpu *g = of(b);
    if (g->d)
        (void)gpu_sync(g); /* nothing may use what goes */
    for (size_t i = 0; i < g->calls.n; i++)
        gpu_call_free(g, g->calls.at[i]);
    gpu_memory_free(g);
    oi_vk_close(g->d);
    oi_device_free(g->device);
    gpu_compiler_free(&g->compiler);
    oi_arena_free(g->arena);
    free(g);
}

static oi_status open_device(gpu *g, const char *device, oi_diag *d)
{
    const oi_vk_choice choice = {.device = device, .wants = GPU_FEATURES};
    const oi_vk_status s = oi_vk_open(&g->d, &choice, g->why);
    if (s != OI_VK_OK)
        return oi_diag_env(d, "vulkan", "%s", g->why);
    OI_TRY(gpu_describe(oi_vk_about(g->d), oi_vk_enabled(g->d), &g->device, d));
    if (gpu_recorder_new(g) != OI_OK)
        return oi_diag_env(d, "vulkan", "%s", g->why);
    return OI_OK;
}

static oi_status open_gpu(const char *device, uint64_t limit, oi_backend **out, oi_diag *d)
{
    gpu *g = calloc(1, sizeof *g);
    *out = NULL;
    if (!g || !(g->arena = oi_arena_new())) {
        free(g);
        return oi_diag_env(d, "vulkan", "out of memory");
    }
    g->base.fns = &oi_backend_vulkan;
    g->keys.arena = g->arena;
    g->memory.limit = limit;
    oi_status status = open_device(g, device, d);
    if (status == OI_OK)
        status = gpu_compiler_find(&g->compiler, d);
    if (status == OI_OK)
        *out = &g->base;
    else
        close_gpu(&g->base);
    return status;
}

static oi_status reserve(oi_backend *b, uint64_t bytes, oi_remote **out)
{
    return gpu_reserve(of(b), bytes, out);
}

static void release(oi_backend *b, oi_remote *r)
{
    gpu_release(of(b), r);
}

static oi_status upload(oi_backend *b, oi_remote *to, uint64_t at, const void *from, uint64_t bytes)
{
    return gpu_upload(of(b), to, at, from, bytes);
}

static oi_status download(oi_backend *b, void *to, oi_remote *from, uint64_t bytes)
{
    return gpu_download(of(b), to, from, bytes);
}

static oi_status prepare(oi_backend *b, const oi_kernel_query *q, oi_remote_call **out)
{
    return gpu_prepare(of(b), q, out);
}

static oi_status expect(oi_backend *b, const oi_kernel_query *const *queries, size_t n)
{
    return gpu_expect(of(b), queries, n);
}

static oi_status run(oi_backend *b, oi_remote_call *c, oi_remote_io *io)
{
    return gpu_run(of(b), c, io);
}

const oi_backend_fns oi_backend_vulkan = {.name = "vulkan",
                                          .open = open_gpu,
                                          .close = close_gpu,
                                          .why = why,
                                          .reserve = reserve,
                                          .release = release,
                                          .upload = upload,
                                          .download = download,
                                          .expect = expect,
                                          .prepare = prepare,
                                          .run = run};
