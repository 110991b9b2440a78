/* weights.c: the model's tensors as the executor uses them, straight from the mapping when there is
 * one. Under a limit the least recently used ones leave: mapped pages are given back to the kernel
 * and come again when touched, copies are freed. A tensor in use is pinned and stays. What is too
 * large is read in parts, through the file, so that pages of the mapping stay untouched. */
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
    oi_budget *budget; /* its lock guards what follows */
    uint64_t resident, pinned;
    uint32_t newest, oldest;
    entry *at; /* by tensor */
};

oi_weights *oi_weights_new(oi_model *m, oi_budget *budget)
{
    oi_weights *w = calloc(1, sizeof *w);
    size_t n = m->n_stored;
    if (!w || !(w->at = calloc(n ? n : 1, sizeof *w->at))) {
        free(w);
        return NULL;
    }
    w->model = m;
    w->budget = budget;
    w->newest = w->oldest = OI_NO_ID;
    budget->weights = w;
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
    oi_budget_uncount(w->budget, OI_HELD_TENSORS, t->data_nbytes);
    if (is_mapped(w))
        forget_pages(w, i);
    oi_model_release(w->model, t->name); /* the copy, where there is one */
}

void oi_weights_make_room(oi_weights *w, uint64_t n)
{
    uint32_t i = w->oldest;
    while (i != OI_NO_ID && !oi_budget_fits(w->budget, n)) {
        uint32_t next = w->at[i].newer;
        if (w->at[i].pins == 0)
            evict(w, i);
        i = next;
    }
}

uint64_t oi_weights_idle(const oi_weights *w)
{
    return w->resident - w->pinned;
}

bool oi_weights_is_stable(const oi_weights *w)
{
    return w->budget->limit == 0 && is_mapped(w);
}

/* Lent pointers are used without asking again, so a file that shrinks is noticed once a step. */
oi_status oi_weights_check(oi_weights *w, oi_diag *d)
{
    return oi_oinf_io_same(w->model, d);
}

/* With the lock held. */
static void pin(oi_weights *w, size_t i)
{
    if (w->at[i].pins++ == 0)
        w->pinned += w->model->tensors[i].data_nbytes;
}

static void unpin(oi_weights *w, size_t i)
{
    if (--w->at[i].pins == 0)
        w->pinned -= w->model->tensors[i].data_nbytes;
}

/* Room for the tensor within the limit; it is counted once, however many ask for it. */
static bool admit(oi_weights *w, size_t i)
{
    const uint64_t n = w->model->tensors[i].data_nbytes;
    if (w->at[i].is_resident)
        return true;
    if (!oi_budget_fits(w->budget, n))
        oi_weights_make_room(w, n);
    if (oi_budget_fits(w->budget, n))
        return true;
    w->budget->refused = w->budget->total + n;
    return false;
}

oi_status oi_weights_get(oi_weights *w, size_t i, const void **out, oi_diag *d)
{
    const oi_tensor_info *t = &w->model->tensors[i];
    oi_view view = {0};
    entry *e = &w->at[i];
    *out = atomic_load_explicit(&e->data, memory_order_acquire);
    if (*out)
        return OI_OK;
    pthread_mutex_lock(&w->budget->lock);
    oi_status status = OI_NOT_FOUND;
    if (admit(w, i))
        status = oi_model_tensor(w->model, t->name, &view, d);
    if (status == OI_OK) {
        if (e->is_resident) {
            unlink_entry(w, (uint32_t)i);
        } else {
            w->resident += t->data_nbytes;
            oi_budget_count(w->budget, OI_HELD_TENSORS, t->data_nbytes);
        }
        e->is_resident = true;
        link_newest(w, (uint32_t)i);
        if (oi_weights_is_stable(w))
            atomic_store_explicit(&e->data, view.data, memory_order_release);
        else
            pin(w, i);
    }
    pthread_mutex_unlock(&w->budget->lock);
    *out = view.data;
    return status;
}

void oi_weights_release(oi_weights *w, size_t i)
{
    if (oi_weights_is_stable(w))
        return;
    pthread_mutex_lock(&w->budget->lock);
    unpin(w, i);
    pthread_mutex_unlock(&w->budget->lock);
}

bool oi_weights_is_resident(oi_weights *w, size_t i)
{
    pthread_mutex_lock(&w->budget->lock);
    bool is = w->at[i].is_resident;
    pthread_mutex_unlock(&w->budget->lock);
    return is;
}

void oi_weights_trim(oi_weights *w)
{
    pthread_mutex_lock(&w->budget->lock);
    for (uint32_t i = w->budget->limit ? w->oldest : OI_NO_ID, next; i != OI_NO_ID; i = next) {
        next = w->at[i].newer;
        if (w->at[i].pins == 0)
            evict(w, i);
    }
    pthread_mutex_unlock(&w->budget->lock);
}

/* Elements that do not lie on whole bytes come through a small buffer. */
static oi_status read_shifted(oi_weights *w, size_t i, uint64_t from, uint64_t n, void *dst,
                              uint64_t at, oi_diag *d)
{
    uint8_t part[4096];
    const oi_dtype t = w->model->tensors[i].dtype;
    const unsigned width = oi_dtype_bits(t);
    const uint64_t most = (sizeof part - 1) * 8 / width;
    while (n) {
        const uint64_t now = n < most ? n : most, first = from * width / 8;
        const uint64_t end = ((from + now) * width + 7) / 8;
        OI_TRY(oi_oinf_read_file(w->model, w->model->tensors[i].data_offset + first, end - first,
                                 part, d));
        oi_elements_copy(t, dst, at, part, from - first * 8 / width, now);
        from += now;
        at += now;
        n -= now;
    }
    return OI_OK;
}

oi_status oi_weights_read(oi_weights *w, size_t i, uint64_t from, uint64_t n, void *dst,
                          uint64_t at, oi_diag *d)
{
    const oi_tensor_info *t = &w->model->tensors[i];
    const unsigned width = oi_dtype_bits(t->dtype);
    if (n == 0)
        return OI_OK;
    OI_TRY(oi_oinf_check_tensor(w->model, i, d));
    if (from * width % 8 || at * width % 8 || n * width % 8)
        return read_shifted(w, i, from, n, dst, at, d);
    return oi_oinf_read_file(w->model, t->data_offset + from * width / 8, n * width / 8,
                             (uint8_t *)dst + at * width / 8, d);
}

void oi_weights_free(oi_weights *w)
{
    if (!w)
        return;
    free(w->at);
    free(w);
}
