/* remote.c: ops and values on a device (backend.h). A value has a copy there, its twin, from the
 * first op that needs it; a result stays there until the host reads it. Tensors of the model go
 * there once. Under the memory limit, and when the device has no more room, twins leave that were
 * not used for the longest time; a value that only the device has comes back first. What finds no
 * room even so runs on the host. */
#include "sim/backend.h"
#include "sim/sim.h"

#include "oinf/oinf.h"

#define PART_BYTES (1u << 20) /* of a tensor that is streamed from its file */

struct oi_twin {
    oi_remotes *of;
    oi_remote *memory;
    oi_buffer *owner; /* the value's; NULL: a tensor of the model, or nobody's */
    size_t tensor;    /* OI_NO_TENSOR */
    uint64_t bytes;
    uint32_t pins;          /* the running op uses it */
    oi_twin *older, *newer; /* by use */
};

struct oi_remotes {
    oi_backend *backend;
    pthread_mutex_t lock; /* executors on several threads share the device */
    oi_twin **tensors;    /* of the model, by number */
    oi_twin ends;         /* of the list by use: .newer is the oldest, .older the newest */
};

const char *oi_remote_name(const oi_sim *s)
{
    return s->remotes ? s->remotes->backend->fns->name : NULL;
}

oi_status oi_remote_open(oi_sim *s, oi_diag *d)
{
    const oi_backend_fns *fns = s->options.device == OI_VULKAN ? &oi_backend_vulkan : NULL;
    if (!fns)
        return OI_OK;
    const size_t n = s->program->model ? s->program->model->n_stored : 0;
    oi_remotes *r = calloc(1, sizeof *r);
    if (!r || !(r->tensors = calloc(n + 1, sizeof *r->tensors))) {
        free(r);
        return oi_diag_env(d, "simulator", "out of memory");
    }
    pthread_mutex_init(&r->lock, NULL);
    r->ends.older = r->ends.newer = &r->ends;
    s->remotes = r;
    return fns->open(s->options.device_name, s->options.memory_limit, &r->backend, d);
}

oi_status oi_remote_expect(oi_sim *s, const oi_kernel_query *const *queries, size_t n, oi_diag *d)
{
    oi_backend *b = s->remotes->backend;
    const oi_status status = b->fns->expect(b, queries, n);
    return status == OI_OK ? OI_OK : oi_diag_env(d, b->fns->name, "%s", b->fns->why(b));
}

/* -- twins -- */

static void unlink_twin(oi_twin *t)
{
    t->older->newer = t->newer;
    t->newer->older = t->older;
}

static void link_newest(oi_twin *t)
{
    oi_twin *ends = &t->of->ends;
    t->newer = ends;
    t->older = ends->older;
    t->older->newer = ends->older = t;
}

static void drop(oi_twin *t)
{
    oi_remotes *r = t->of;
    unlink_twin(t);
    if (t->owner) {
        t->owner->twin = NULL;
        t->owner->is_remote = false;
    } else if (t->tensor != OI_NO_TENSOR) {
        r->tensors[t->tensor] = NULL;
    }
    r->backend->fns->release(r->backend, t->memory);
    free(t);
}

void oi_twin_forget(oi_buffer *b)
{
    if (!b->twin)
        return;
    oi_remotes *r = b->twin->of;
    pthread_mutex_lock(&r->lock);
    drop(b->twin);
    pthread_mutex_unlock(&r->lock);
}

void oi_remote_close(oi_sim *s)
{
    oi_remotes *r = s->remotes;
    if (!r)
        return;
    while (r->backend && r->ends.newer != &r->ends)
        drop(r->ends.newer);
    if (r->backend)
        r->backend->fns->close(r->backend);
    pthread_mutex_destroy(&r->lock);
    free(r->tensors);
    free(r);
    s->remotes = NULL;
}

static oi_status fetch(oi_remotes *r, oi_buffer *b, uint64_t bytes)
{
    OI_TRY(r->backend->fns->download(r->backend, b->data, b->twin->memory, bytes));
    b->is_remote = false;
    return OI_OK;
}

/* Ends the twin that was not used for the longest time. OI_NOT_FOUND: all are in use. */
static oi_status evict(oi_remotes *r)
{
    oi_twin *t = r->ends.newer;
    while (t != &r->ends && t->pins)
        t = t->newer;
    if (t == &r->ends)
        return OI_NOT_FOUND;
    if (t->owner && t->owner->is_remote)
        OI_TRY(fetch(r, t->owner, t->bytes));
    drop(t);
    return OI_OK;
}

static oi_status reserve(oi_remotes *r, uint64_t bytes, oi_remote **out)
{
    oi_status s;
    while ((s = r->backend->fns->reserve(r->backend, bytes, out)) == OI_NOT_FOUND)
        OI_TRY(evict(r));
    return s;
}

/* Pinned. */
static oi_status add_twin(oi_remotes *r, uint64_t bytes, oi_twin **out)
{
    oi_twin *t = calloc(1, sizeof *t);
    if (!t)
        return OI_NOT_FOUND;
    const oi_status s = reserve(r, bytes, &t->memory);
    if (s != OI_OK) {
        free(t);
        return s;
    }
    t->of = r;
    t->bytes = bytes;
    t->tensor = OI_NO_TENSOR;
    t->pins = 1;
    link_newest(t);
    *out = t;
    return OI_OK;
}

static void use(oi_twin *t)
{
    t->pins++;
    unlink_twin(t);
    link_newest(t);
}

/* -- tensors of the model -- */

/* Part by part: the host need not have room for all of it. */
static oi_status stream(oi_ctx *c, const oi_slot *s, oi_twin *t)
{
    oi_remotes *r = t->of;
    const oi_dtype dtype = c->exec->sim->program->model->tensors[s->tensor].dtype;
    const uint64_t each = PART_BYTES * 8 / oi_dtype_bits(dtype);
    uint8_t *part = malloc(PART_BYTES);
    oi_status status = part ? OI_OK : OI_NOT_FOUND;
    for (uint64_t e = 0; status == OI_OK && e < s->n_elements; e += each) {
        const uint64_t n = s->n_elements - e < each ? s->n_elements - e : each;
        uint64_t bytes = 0;
        (void)oi_dtype_bytes(dtype, n, &bytes);
        status = oi_weights_read(c->exec->sim->weights, s->tensor, e, n, part, 0, c->diag);
        if (status != OI_OK)
            status = oi_ctx_reported(c, status);
        else
            status =
                r->backend->fns->upload(r->backend, t->memory, e / each * PART_BYTES, part, bytes);
    }
    free(part);
    return status;
}

static oi_status send_tensor(oi_ctx *c, oi_slot *s, oi_twin *t)
{
    oi_remotes *r = t->of;
    oi_weights *w = c->exec->sim->weights;
    const void *data;
    if (!oi_weights_is_stable(w))
        return stream(c, s, t);
    const oi_status status = oi_weights_get(w, s->tensor, &data, c->diag);
    return status == OI_OK ? r->backend->fns->upload(r->backend, t->memory, 0, data, s->size_bytes)
                           : oi_ctx_reported(c, status);
}

/* -- operands -- */

static oi_status send(oi_ctx *c, oi_input *in, oi_twin *t)
{
    oi_remotes *r = t->of;
    if (in->slot && in->slot->is_weight)
        return send_tensor(c, in->slot, t);
    return r->backend->fns->upload(r->backend, t->memory, 0, in->data, in->size_bytes);
}

/* The buffer whose bytes the value is: not of metadata, of persistent memory, of a loop's index. */
static oi_buffer *owner_of(const oi_input *in)
{
    const oi_slot *s = in->slot;
    return s && !s->is_weight && s->buffer && s->data == s->buffer->data ? s->buffer : NULL;
}

static oi_twin *find_twin(const oi_remotes *r, const oi_input *in)
{
    const oi_buffer *b = owner_of(in);
    if (b)
        return b->twin;
    return in->slot && in->slot->is_weight ? r->tensors[in->slot->tensor] : NULL;
}

static oi_status take_input(oi_ctx *c, oi_input *in, oi_twin **out)
{
    oi_remotes *r = c->exec->sim->remotes;
    oi_twin *t = find_twin(r, in);
    if (t) {
        use(t);
        *out = t;
        return OI_OK;
    }
    OI_TRY(add_twin(r, in->size_bytes, &t));
    const oi_status s = send(c, in, t);
    if (s != OI_OK) {
        drop(t);
        return s;
    }
    t->owner = owner_of(in);
    if (t->owner)
        t->owner->twin = t;
    else if (in->slot && in->slot->is_weight)
        r->tensors[t->tensor = in->slot->tensor] = t;
    *out = t;
    return OI_OK;
}

/* A result's buffer: its twin, which replaces what was there. */
static void give(oi_out *out, oi_twin *t)
{
    oi_buffer *b = out->fresh ? out->fresh : out->slot->buffer;
    if (b->twin)
        drop(b->twin);
    t->owner = b;
    b->twin = t;
    b->is_remote = true;
}

/* -- running -- */

typedef struct running {
    oi_ctx *c;
    const oi_kernel_query *q;
    oi_input *in;
    oi_out *out;
    oi_twin *twins[2 * OI_KERNEL_PORTS]; /* of inputs, then outputs */
    size_t n;
} running;

static oi_status take_operands(running *x)
{
    oi_remotes *r = x->c->exec->sim->remotes;
    for (size_t i = 0; i < x->q->n_in; i++) {
        OI_TRY(take_input(x->c, &x->in[i], &x->twins[x->n]));
        x->n++;
    }
    for (size_t i = 0; i < x->q->n_out; i++) {
        OI_TRY(add_twin(r, x->out[i].size_bytes, &x->twins[x->n]));
        x->n++;
    }
    return OI_OK;
}

static oi_status run_call(running *x, oi_remote_call *call, bool *done)
{
    oi_remotes *r = x->c->exec->sim->remotes;
    oi_remote *all[2 * OI_KERNEL_PORTS];
    OI_TRY(take_operands(x));
    for (size_t i = 0; i < x->n; i++)
        all[i] = x->twins[i]->memory;
    oi_remote_io io = {.in = all,
                       .out = all + x->q->n_in,
                       .attrs = x->q->attrs,
                       .is_timed = x->c->exec->sim->options.timer};
    oi_status s;
    while ((s = r->backend->fns->run(r->backend, call, &io)) == OI_NOT_FOUND)
        OI_TRY(evict(r));
    if (s != OI_OK || io.has_failed)
        return s;
    for (size_t i = 0; i < x->q->n_out; i++)
        give(&x->out[i], x->twins[x->q->n_in + i]);
    x->c->device_ns = io.ns;
    *done = true;
    return OI_OK;
}

/* Frees buffers without an owner, once they are no longer used. */
static void put_back(running *x)
{
    for (size_t i = 0; i < x->n; i++) {
        oi_twin *t = x->twins[i];
        if (--t->pins == 0 && !t->owner && t->tensor == OI_NO_TENSOR)
            drop(t);
    }
}

static oi_status fail(oi_ctx *c, oi_status s)
{
    const oi_remotes *r = c->exec->sim->remotes;
    if (s == OI_OK || c->fail.is_set)
        return s;
    oi_ctx_fail(c, (oi_span){0}, "", "%s", r->backend->fns->why(r->backend));
    c->fail.status = OI_ERR_ENV;
    return OI_ERR_ENV;
}

oi_status oi_remote_run(oi_ctx *c, const oi_kernel_query *q, oi_input *in, oi_out *out, bool *done)
{
    oi_remotes *r = c->exec->sim->remotes;
    running x = {.c = c, .q = q, .in = in, .out = out};
    oi_remote_call *call;
    *done = false;
    pthread_mutex_lock(&r->lock);
    oi_status s = r->backend->fns->prepare(r->backend, q, &call);
    if (s == OI_OK && call)
        s = run_call(&x, call, done);
    put_back(&x);
    pthread_mutex_unlock(&r->lock);
    c->on_device = *done;
    return s == OI_NOT_FOUND ? OI_OK : fail(c, s); /* no room: the host has some */
}

oi_status oi_remote_fetch(oi_ctx *c, oi_buffer *b, uint64_t size_bytes)
{
    oi_remotes *r = c->exec->sim->remotes;
    pthread_mutex_lock(&r->lock);
    const oi_status s = fetch(r, b, size_bytes);
    pthread_mutex_unlock(&r->lock);
    return fail(c, s == OI_NOT_FOUND ? OI_ERR_ENV : s);
}
