/* run.c: runs a call: what it needs in between gets memory, then its dispatches are recorded. */
#include "gpu/gpu.h"

#include <stdlib.h>

static oi_status upload(gpu *g, oi_remote *to, uint64_t at, const void *from, uint64_t bytes)
{
    oi_vk_part part;
    if (bytes == 0)
        return OI_OK;
    if (bytes > GPU_RING_ITEM) {
        OI_TRY(gpu_flush(g));
        return gpu_judge(g, oi_vk_upload(to->buffer, at, from, bytes));
    }
    OI_TRY(gpu_ring_put(g, from, bytes, &part));
    oi_vk_list *l = gpu_record(g);
    if (!l)
        return OI_ERR_ENV;
    oi_vk_list_copy(l, (oi_vk_part){to->buffer, at, bytes}, part);
    return OI_OK;
}

oi_status gpu_upload(gpu *g, oi_remote *to, uint64_t at, const void *from, uint64_t bytes)
{
    return upload(g, to, at, from, bytes);
}

oi_status gpu_download(gpu *g, void *to, oi_remote *from, uint64_t bytes)
{
    OI_TRY(gpu_flush(g));
    return gpu_judge(g, oi_vk_download(to, from->buffer, 0, bytes));
}

/* -- numbers that only the run knows -- */

static int64_t attr_at(const oi_op_value *v, uint32_t i)
{
    return v->tag == OI_VALUE_INT ? v->i : v->ints[i];
}

static uint32_t attr_count(const oi_op_value *v)
{
    return v->tag == OI_VALUE_INT ? 1 : v->tag == OI_VALUE_INT_LIST ? v->n : 0;
}

static bool meets(const oi_remote_call *c, const oi_op_value *attrs)
{
    for (uint32_t k = 0; k < c->n_checks; k++) {
        const oi_op_value *v = &attrs[c->checks[k].attr];
        for (uint32_t i = 0; i < attr_count(v); i++)
            if (attr_at(v, i) < 0 || attr_at(v, i) > c->checks[k].limit)
                return false;
    }
    return true;
}

static oi_status put_block(gpu *g, const gpu_dispatch *d, const oi_op_value *attrs, oi_vk_part *out)
{
    uint8_t *block = calloc(1, d->block_bytes + 8);
    if (!block)
        return gpu_fail(g, "out of memory");
    for (uint32_t i = 0; i < d->n_members; i++) {
        const gpu_member *m = &d->members[i];
        const oi_op_value *v = &attrs[m->attr];
        for (uint32_t e = 0; e < attr_count(v) && (e + 1) * 8 <= m->bytes; e++) {
            const int64_t value = attr_at(v, e);
            memcpy(block + m->offset + 8 * e, &value, sizeof value);
        }
    }
    const oi_status s = gpu_ring_put(g, block, d->block_bytes, out);
    free(block);
    return s;
}

/* -- dispatches -- */

typedef struct running {
    gpu *g;
    oi_remote_call *c;
    const oi_remote_io *io;
    oi_remote **own; /* by number */
} running;

static oi_vk_part whole(const oi_remote *r)
{
    return (oi_vk_part){r->buffer, 0, 0};
}

static oi_vk_part part_of(const running *x, const gpu_binding *b, const oi_vk_part *block)
{
    switch (b->source) {
    case GPU_IN: return whole(x->io->in[b->id]);
    case GPU_OUT: return whole(x->io->out[b->id]);
    case GPU_OWN: return whole(x->own[b->id]);
    case GPU_FAILURE: return (oi_vk_part){x->g->recorder.failure, 0, 0};
    case GPU_BLOCK: return *block;
    case GPU_ATTR:
    case GPU_NOTHING: break;
    }
    return (oi_vk_part){NULL, 0, 0};
}

static oi_status dispatch(const running *x, const gpu_dispatch *d)
{
    oi_vk_part parts[OI_KERNEL_PORTS * 2], block = {NULL, 0, 0};
    if (d->block_bytes)
        OI_TRY(put_block(x->g, d, x->io->attrs, &block));
    for (uint32_t i = 0; i < d->n_bindings; i++)
        parts[i] = part_of(x, &d->bindings[i], &block);
    oi_vk_list *l = gpu_record(x->g);
    if (!l)
        return OI_ERR_ENV;
    oi_vk_list_dispatch(l, d->shader->pipeline, parts, NULL, d->groups);
    return OI_OK;
}

static oi_status fill(gpu *g, oi_vk_buffer *b, uint64_t at)
{
    oi_vk_list *l = gpu_record(g);
    if (!l)
        return OI_ERR_ENV;
    oi_vk_list_fill(l, (oi_vk_part){b, at, 4}, 0);
    return OI_OK;
}

static oi_status record(const running *x)
{
    const oi_remote_call *c = x->c;
    for (uint32_t i = 0; i < c->n_out; i++)
        if (c->outputs[i].shares_bytes && c->outputs[i].bytes)
            OI_TRY(fill(x->g, x->io->out[i]->buffer, (c->outputs[i].bytes - 1) / 4 * 4));
    if (c->can_fail)
        OI_TRY(fill(x->g, x->g->recorder.failure, 0));
    for (uint32_t i = 0; i < c->n_dispatches; i++)
        OI_TRY(dispatch(x, &c->dispatches[i]));
    return OI_OK;
}

/* The call alone in a list, between two timestamps. */
static oi_status run_timed(const running *x, uint64_t *ns)
{
    gpu *g = x->g;
    double times[2] = {0, 0};
    OI_TRY(gpu_flush(g));
    oi_vk_list *l = gpu_record(g);
    if (!l)
        return OI_ERR_ENV;
    g->recorder.is_held = true;
    oi_vk_list_stamp(l);
    oi_status s = record(x);
    g->recorder.is_held = false;
    oi_vk_list_stamp(l);
    if (s == OI_OK)
        s = gpu_sync(g);
    if (s == OI_OK && oi_vk_list_stamps(l) == 2)
        s = gpu_judge(g, oi_vk_list_times(l, times));
    *ns = times[1] > 0 ? (uint64_t)times[1] : 0;
    return s;
}

/* -- memory in between -- */

static oi_status find_own(gpu *g, oi_remote_call *c, oi_remote **own)
{
    for (uint32_t i = 0; i < c->n_own; i++) {
        own[i] = c->own[i].held;
        if (own[i])
            continue;
        OI_TRY(gpu_reserve(g, c->own[i].bytes, &own[i]));
        if (!c->own[i].table)
            continue;
        c->own[i].held = own[i];
        OI_TRY(upload(g, own[i], 0, c->own[i].table, c->own[i].bytes));
    }
    return OI_OK;
}

oi_status gpu_run(gpu *g, oi_remote_call *c, oi_remote_io *io)
{
    running x = {g, c, io, calloc(c->n_own + 1, sizeof *x.own)};
    io->has_failed = !meets(c, io->attrs);
    oi_status s = x.own ? OI_OK : gpu_fail(g, "out of memory");
    if (s == OI_OK && !io->has_failed)
        s = find_own(g, c, x.own);
    if (s == OI_OK && !io->has_failed)
        s = io->is_timed ? run_timed(&x, &io->ns) : record(&x);
    if (s == OI_OK && !io->has_failed && c->can_fail) {
        s = gpu_sync(g);
        io->has_failed = *(const uint32_t *)oi_vk_buffer_map(g->recorder.failure) != 0;
    }
    for (uint32_t i = 0; x.own && i < c->n_own; i++)
        if (!c->own[i].held)
            gpu_release(g, x.own[i]);
    free(x.own);
    return s;
}
