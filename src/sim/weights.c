/* weights.c: the model's tensors as the executor uses them, straight from the mapping when there is
 * one. Under a limit the least recently used ones leave: mapped pages are given back to the kernel
 * and come again when touched, copies are freed. A tensor in use is pinned and stays. */
#define _DEFAULT_SOURCE 1 /* madvise: posix_madvise may not drop pages */
#include "sim/sim.h"

#include "oinf/oinf.h"

#include <sys/mman.h>
#include <unistd.h>

typedef struct entry {
    uint32_t newer, older; /* neighbours by last use; OI_NO_ID at the ends */
    uint32_t pins;
    bool is_resident;
    _Atomic(const void *) data; /* when stable: set once */
} entry;

struct oi_weights {
    oi_model *model;
    uint64_t limit; /* 0: none */
    uint64_t resident, peak;
    uint32_t newest, oldest;
    pthread_mutex_t lock;
    entry *at; /* by tensor */
};

oi_weights *oi_weights_new(oi_model *m, uint64_t limit)
{
    oi_weights *w = calloc(1, sizeof *w);
    size_t n = m->n_stored;
    if (!w || !(w->at = calloc(n ? n : 1, sizeof *w->at))) {
        free(w);
        return NULL;
    }
    w->model = m;
    w->limit = limit;
    w->newest = w->oldest = OI_NO_ID;
    pthread_mutex_init(&w->lock, NULL);
    return w;
}

static bool is_mapped(const oi_weights *w)
{
    return w->model->io.base != NULL;
}

static void unlink_entry(oi_weights *w, uint32_t i)
{
    entry *e = &w->at[i];
    *(e->newer == OI_NO_ID ? &w->newest : &w->at[e->newer].older) = e->older;
    *(e->older == OI_NO_ID ? &w->oldest : &w->at[e->older].newer) = e->newer;
}

static void link_newest(oi_weights *w, uint32_t i)
{
    entry *e = &w->at[i];
    e->newer = OI_NO_ID;
    e->older = w->newest;
    *(w->newest == OI_NO_ID ? &w->oldest : &w->at[w->newest].newer) = i;
    w->newest = i;
}

/* Whole pages that hold nothing but the tensor go back; the edges belong to neighbours too. */
static void forget_pages(const oi_weights *w, size_t i)
{
    const oi_tensor_info *t = &w->model->tensors[i];
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = (uintptr_t)w->model->io.base + (uintptr_t)t->data_offset;
    uintptr_t to = (from + (uintptr_t)t->data_nbytes) & ~(page - 1);
    from = from & ~(page - 1); /* a shared first page comes again when touched */
    if (to > from && w->model->io.is_mapping)
        (void)madvise((void *)from, to - from, MADV_DONTNEED);
}

static void evict(oi_weights *w, uint32_t i)
{
    const oi_tensor_info *t = &w->model->tensors[i];
    unlink_entry(w, i);
    w->at[i].is_resident = false;
    w->resident -= t->data_nbytes;
    if (is_mapped(w))
        forget_pages(w, i);
    oi_model_release(w->model, t->name); /* the copy, where there is one */
}

/* Room for n more bytes, as far as what is not pinned allows. */
static void make_room(oi_weights *w, uint64_t n)
{
    uint32_t i = w->oldest;
    while (i != OI_NO_ID && (n > w->limit || w->resident > w->limit - n)) {
        uint32_t next = w->at[i].newer;
        if (w->at[i].pins == 0)
            evict(w, i);
        i = next;
    }
}

bool oi_weights_is_stable(const oi_weights *w)
{
    return w->limit == 0 && is_mapped(w);
}

/* Lent pointers are used without asking again, so a file that shrinks is noticed once a step. */
oi_status oi_weights_check(oi_weights *w, oi_diag *d)
{
    return oi_oinf_io_same(w->model, d);
}

oi_status oi_weights_get(oi_weights *w, size_t i, const void **out, oi_diag *d)
{
    const oi_tensor_info *t = &w->model->tensors[i];
    oi_view view = {0};
    entry *e = &w->at[i];
    *out = atomic_load_explicit(&e->data, memory_order_acquire);
    if (*out)
        return OI_OK;
    pthread_mutex_lock(&w->lock);
    if (!e->is_resident && w->limit)
        make_room(w, t->data_nbytes);
    oi_status status = oi_model_tensor(w->model, t->name, &view, d);
    if (status == OI_OK) {
        if (e->is_resident)
            unlink_entry(w, (uint32_t)i);
        else /* asked for by two threads at once it is counted once */
            w->resident += t->data_nbytes;
        e->is_resident = true;
        link_newest(w, (uint32_t)i);
        if (oi_weights_is_stable(w))
            atomic_store_explicit(&e->data, view.data, memory_order_release);
        else
            e->pins++;
        w->peak = w->resident > w->peak ? w->resident : w->peak;
    }
    pthread_mutex_unlock(&w->lock);
    *out = view.data;
    return status;
}

void oi_weights_release(oi_weights *w, size_t i)
{
    if (oi_weights_is_stable(w))
        return;
    pthread_mutex_lock(&w->lock);
    w->at[i].pins--;
    /* a tensor larger than the limit does not outlive its use */
    if (w->at[i].pins == 0 && w->limit && w->resident > w->limit)
        evict(w, (uint32_t)i);
    pthread_mutex_unlock(&w->lock);
}

void oi_weights_trim(oi_weights *w)
{
    pthread_mutex_lock(&w->lock);
    for (uint32_t i = w->limit ? w->oldest : OI_NO_ID, next; i != OI_NO_ID; i = next) {
        next = w->at[i].newer;
        if (w->at[i].pins == 0)
            evict(w, i);
    }
    pthread_mutex_unlock(&w->lock);
}

uint64_t oi_weights_peak(oi_weights *w)
{
    pthread_mutex_lock(&w->lock);
    uint64_t peak = w->peak;
    pthread_mutex_unlock(&w->lock);
    return peak;
}

uint64_t oi_weights_resident(oi_weights *w)
{
    pthread_mutex_lock(&w->lock);
    uint64_t now = w->resident;
    pthread_mutex_unlock(&w->lock);
    return now;
}

void oi_weights_free(oi_weights *w)
{
    if (!w)
        return;
    pthread_mutex_destroy(&w->lock);
    free(w->at);
    free(w);
}
