/* budget.c: who holds how much memory, and the limit on all of it. Model tensors that no node uses
 * leave when something else needs their place; everything else is either granted or refused. */
#include "sim/sim.h"

void oi_budget_init(oi_budget *b, uint64_t limit)
{
    *b = (oi_budget){.limit = limit};
    pthread_mutex_init(&b->lock, NULL);
}

void oi_budget_end(oi_budget *b)
{
    pthread_mutex_destroy(&b->lock);
}

void oi_budget_count(oi_budget *b, oi_held kind, uint64_t n)
{
    b->now[kind] += n;
    b->total += n;
    b->peak[kind] = b->now[kind] > b->peak[kind] ? b->now[kind] : b->peak[kind];
    b->total_peak = b->total > b->total_peak ? b->total : b->total_peak;
}

void oi_budget_uncount(oi_budget *b, oi_held kind, uint64_t n)
{
    b->now[kind] -= n;
    b->total -= n;
}

bool oi_budget_fits(const oi_budget *b, uint64_t n)
{
    return b->limit == 0 || (n <= b->limit && b->total <= b->limit - n);
}

bool oi_budget_take(oi_budget *b, oi_held kind, uint64_t n)
{
    if (!b)
        return true;
    pthread_mutex_lock(&b->lock);
    if (!oi_budget_fits(b, n) && b->weights)
        oi_weights_make_room(b->weights, n);
    bool fits = oi_budget_fits(b, n);
    if (fits)
        oi_budget_count(b, kind, n);
    else
        b->refused = b->total > UINT64_MAX - n ? UINT64_MAX : b->total + n;
    pthread_mutex_unlock(&b->lock);
    return fits;
}

void oi_budget_give(oi_budget *b, oi_held kind, uint64_t n)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    oi_budget_uncount(b, kind, n);
    pthread_mutex_unlock(&b->lock);
}

uint64_t oi_budget_room(oi_budget *b)
{
    if (b->limit == 0)
        return UINT64_MAX;
    pthread_mutex_lock(&b->lock);
    uint64_t kept = b->total - (b->weights ? oi_weights_idle(b->weights) : 0);
    pthread_mutex_unlock(&b->lock);
    return kept < b->limit ? b->limit - kept : 0;
}

uint64_t oi_budget_refused(oi_budget *b)
{
    pthread_mutex_lock(&b->lock);
    uint64_t n = b->refused;
    b->refused = 0;
    pthread_mutex_unlock(&b->lock);
    return n;
}
