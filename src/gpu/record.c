/* record.c: commands in the order of the calls. They are recorded into one of a few lists; the
 * device works on those that were submitted meanwhile. A list waits for what was submitted before
 * it, and within a list a barrier stands before every command, so all see what was done before. */
#include "gpu/gpu.h"

oi_status gpu_recorder_new(gpu *g)
{
    gpu_recorder *r = &g->recorder;
    oi_vk_status s = OI_VK_OK;
    for (uint32_t i = 0; s == OI_VK_OK && i < GPU_LISTS; i++)
        s = oi_vk_list_new(g->d, &r->lists[i]);
    if (s == OI_VK_OK)
        s = oi_vk_buffer_new(g->d, GPU_RING, OI_VK_UPLOAD, &r->ring);
    if (s == OI_VK_OK)
        s = oi_vk_buffer_new(g->d, sizeof(uint32_t), OI_VK_READBACK, &r->failure);
    return gpu_judge(g, s);
}

oi_vk_list *gpu_record(gpu *g)
{
    gpu_recorder *r = &g->recorder;
    if (!r->is_held && r->n_orders >= GPU_MOST_ORDERS && gpu_flush(g) != OI_OK)
        return NULL;
    oi_vk_list *l = r->lists[r->at];
    if (!r->is_open && gpu_judge(g, oi_vk_list_clear(l)) != OI_OK)
        return NULL;
    if (r->is_open)
        oi_vk_list_barrier(l);
    r->is_open = true;
    r->n_orders++;
    return l;
}

oi_status gpu_flush(gpu *g)
{
    gpu_recorder *r = &g->recorder;
    if (!r->is_open)
        return OI_OK;
    oi_vk_list *l = r->lists[r->at];
    r->at = (r->at + 1) % GPU_LISTS;
    r->n_orders = 0;
    r->is_open = false;
    OI_TRY(gpu_judge(g, oi_vk_list_end(l)));
    return gpu_judge(g, oi_vk_list_submit(l));
}

oi_status gpu_sync(gpu *g)
{
    gpu_recorder *r = &g->recorder;
    oi_status status = gpu_flush(g);
    for (uint32_t i = 0; i < GPU_LISTS; i++) {
        const oi_status s = gpu_judge(g, oi_vk_list_wait(r->lists[i]));
        status = status == OI_OK ? s : status;
    }
    r->ring_at = 0;
    return status;
}

oi_status gpu_ring_put(gpu *g, const void *from, uint64_t bytes, oi_vk_part *out)
{
    gpu_recorder *r = &g->recorder;
    const uint64_t align = 256, /* no device wants more of a binding */
        room = (bytes + align - 1) / align * align;
    if (r->ring_at + room > GPU_RING)
        OI_TRY(gpu_sync(g));
    *out = (oi_vk_part){r->ring, r->ring_at, bytes};
    memcpy((char *)oi_vk_buffer_map(r->ring) + r->ring_at, from, (size_t)bytes);
    r->ring_at += room;
    return OI_OK;
}
