/* memory.c: memory of the device. What is released waits for the next tensor of its size: most
 * nodes run again and again, and commands that use it still are in order before those that will. */
#include "gpu/gpu.h"

#include <stdlib.h>

#define GRAIN 256u /* sizes are multiples of it */

static void drop(gpu *g, oi_remote *r)
{
    oi_vk_buffer_free(r->buffer);
    g->memory.used -= r->bytes;
    free(r);
}

void gpu_memory_free(gpu *g)
{
    while (g->memory.free) {
        oi_remote *r = g->memory.free;
        g->memory.free = r->next;
        drop(g, r);
    }
}

oi_status gpu_trim(gpu *g)
{
    if (g->memory.free)
        OI_TRY(gpu_sync(g)); /* nothing may use it any more */
    gpu_memory_free(g);
    return OI_OK;
}

static oi_remote *find_free(gpu *g, uint64_t bytes)
{
    for (oi_remote **at = &g->memory.free; *at; at = &(*at)->next)
        if ((*at)->bytes == bytes) {
            oi_remote *r = *at;
            *at = r->next;
            return r;
        }
    return NULL;
}

static bool fits(const gpu *g, uint64_t bytes)
{
    const gpu_memory *m = &g->memory;
    return !m->limit || (bytes <= m->limit && m->used <= m->limit - bytes);
}

static oi_status make(gpu *g, uint64_t bytes, oi_remote **out)
{
    oi_remote *r = fits(g, bytes) ? calloc(1, sizeof *r) : NULL;
    if (!r)
        return OI_NOT_FOUND;
    r->bytes = bytes;
    const oi_status s = gpu_judge(g, oi_vk_buffer_new(g->d, bytes, OI_VK_DEVICE, &r->buffer));
    if (s != OI_OK) {
        free(r);
        return s;
    }
    g->memory.used += bytes;
    *out = r;
    return OI_OK;
}

oi_status gpu_reserve(gpu *g, uint64_t bytes, oi_remote **out)
{
    if (bytes > UINT64_MAX - GRAIN)
        return OI_NOT_FOUND;
    bytes = bytes ? (bytes + GRAIN - 1) / GRAIN * GRAIN : GRAIN;
    if ((*out = find_free(g, bytes)) != NULL)
        return OI_OK;
    oi_status s = make(g, bytes, out);
    if (s != OI_NOT_FOUND || !g->memory.free)
        return s;
    OI_TRY(gpu_trim(g));
    return make(g, bytes, out);
}

void gpu_release(gpu *g, oi_remote *r)
{
    if (!r)
        return;
    r->next = g->memory.free;
    g->memory.free = r;
}
