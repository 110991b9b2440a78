/* team.c: POSIX threads. A waiting thread spins for a while, then sleeps. */
#define _GNU_SOURCE /* sched_getaffinity, sched_getcpu */
#include "team.h"

#include <sched.h>
#include <stddef.h>
#include <unistd.h>

#define LOOKS  2000 /* spins: some tens of microseconds, more than workers of one phase differ */
#define STACK  (8u << 20) /* of a thread: kernels repack matrices there */
#define ROUNDS 4          /* rounds of chunks before the last one */
#define AHEAD  256        /* lines of 64 bytes to prefetch while waiting: a part of the L2 cache */
#define BLOCK  1024       /* lines to read between two barriers */
#define WHOLE  4          /* calls that read it all: after one, a third is shared, then most */

static void pause_a_little(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#if defined(__linux__)

/* Publishes the processor that the worker runs on; written only if it changed. */
static void note_place(team *t, int worker)
{
    const int cpu = sched_getcpu();
    if (atomic_load_explicit(&t->seats[worker].cpu, memory_order_relaxed) != cpu)
        atomic_store_explicit(&t->seats[worker].cpu, cpu, memory_order_relaxed);
}

/* Systems tend to wake a thread on the processor of the thread that wakes it, and leave it there.
 * Then two workers share a processor, and each waits until the other sleeps. Such a worker moves to
 * a processor without a worker, if there is one; it is not bound to it. */
static void step_aside(team *t, int worker)
{
    cpu_set_t own, others;
    const int cpu = sched_getcpu();
    int is_shared = 0;
    if (cpu < 0 || sched_getaffinity(0, sizeof own, &own) != 0)
        return;
    others = own;
    for (int i = 0; i < t->workers; i++) {
        const int at = atomic_load_explicit(&t->seats[i].cpu, memory_order_relaxed);
        if (i == worker || at < 0 || at >= CPU_SETSIZE)
            continue;
        is_shared |= at == cpu;
        CPU_CLR((unsigned)at, &others);
    }
    if (is_shared && CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
        sched_setaffinity(0, sizeof own, &own);
}

#else
static void note_place(team *t, int worker)
{
    (void)t, (void)worker;
}

static void step_aside(team *t, int worker)
{
    (void)t, (void)worker;
}
#endif

static int has_met(team *t, int worker, unsigned met)
{
    return (int)(atomic_load(&t->seats[worker].met) - met) >= 0;
}

static void sleep_until(team *t, int worker, int other, unsigned met)
{
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->asleep[worker > 0].n, 1u);
    while (!has_met(t, other, met))
        pthread_cond_wait(&t->asleep[worker > 0].woken, &t->lock);
    atomic_fetch_sub(&t->asleep[worker > 0].n, 1u);
    pthread_mutex_unlock(&t->lock);
}

/* Worker 0 is the caller's own thread, which is never moved. */
static void wait_for(team *t, int worker, int other, unsigned met, const void *next)
{
    for (int i = 0; i < LOOKS; i++) {
        if (has_met(t, other, met))
            return;
        if (next && i < AHEAD)
            __builtin_prefetch((const char *)next + 64 * i, 0, 2);
        else
            pause_a_little();
    }
    sleep_until(t, worker, other, met);
    if (worker > 0)
        step_aside(t, worker);
}

/* Announces that the worker has reached so many barriers. Worker 0 waits for the others, and they
 * for worker 0. */
static void tell(team *t, int worker, unsigned met)
{
    atomic_store(&t->seats[worker].met, met);
    if (atomic_load(&t->asleep[worker == 0].n)) {
        pthread_mutex_lock(&t->lock);
        pthread_cond_broadcast(&t->asleep[worker == 0].woken);
        pthread_mutex_unlock(&t->lock);
    }
}

/* Worker 0 does this before it announces. A write must fetch the line back from the others' caches,
 * so unchanged values are not written. */
static void get_ready(team *t, unsigned met, int failed)
{
    atomic_uint *taken = &t->taken[met & 1].n;
    if (atomic_load_explicit(taken, memory_order_relaxed))
        atomic_store_explicit(taken, 0u, memory_order_relaxed);
    if (t->failed[met & 1] != failed)
        t->failed[met & 1] = failed;
}

static unsigned next_meeting(team *t, int worker)
{
    note_place(t, worker);
    return atomic_load_explicit(&t->seats[worker].met, memory_order_relaxed) + 1;
}

int team_barrier_enter(team *t, int worker, int *failed, const void *next)
{
    const unsigned met = next_meeting(t, worker);
    if (worker == 0) {
        for (int i = 1; i < t->workers; i++)
            wait_for(t, 0, i, met, next);
        return 1;
    }
    tell(t, worker, met);
    wait_for(t, worker, 0, met, next);
    *failed = t->failed[met & 1];
    return 0;
}

void team_barrier_release(team *t, int failed)
{
    const unsigned met = atomic_load_explicit(&t->seats[0].met, memory_order_relaxed) + 1;
    get_ready(t, met, failed);
    tell(t, 0, met);
}

/* Two workers wait for each other directly. More wait for worker 0, which waits for all. */
int team_barrier(team *t, int worker, int failed, const void *next)
{
    if (t->workers == 2 && worker == 0) {
        const unsigned met = next_meeting(t, worker);
        team_barrier_release(t, failed);
        wait_for(t, 0, 1, met, next);
    } else if (team_barrier_enter(t, worker, &failed, next)) {
        team_barrier_release(t, failed);
    }
    return failed;
}

/* A single thread takes everything at once. Round r = 0, 1 ... has as many chunks as threads, which
 * together are half of the rest; those of the last round are all of it. */
int team_next_chunk(team *t, int worker, team_chunk *p)
{
    const unsigned met = atomic_load_explicit(&t->seats[worker].met, memory_order_relaxed);
    const int n = t->workers;
    int k = worker;
    if (n == 1)
        return p->of++ == 0;
    if (p->of)
        k = n + (int)atomic_fetch_add_explicit(&t->taken[met & 1].n, 1u, memory_order_relaxed);
    const int round = k / n;
    if (round > ROUNDS)
        return 0;
    p->of = n << (round < ROUNDS ? round + 1 : ROUNDS);
    p->n = p->of - (round < ROUNDS ? 2 : 1) * n + k % n;
    return 1;
}

/* One block at a time, so that the second reader still finds it in the other's cache. */
void team_warm_up(team *t, int worker, const void *p, size_t size, size_t of)
{
    const size_t call = t->seats[worker].reads++, slices = call < WHOLE ? 1 : of;
    const size_t pairs = (size_t)t->workers / 2, lines = (size + 63) / 64;
    const size_t pair = (size_t)worker / 2 < pairs ? (size_t)worker / 2 : pairs - 1;
    if (pairs == 0)
        return;
    const size_t all = slices * pairs, own = call % slices * pairs + pair;
    const size_t end = lines * (own + 1) / all;
    size_t at = lines * own / all;
    for (size_t n = 0; n <= lines / all; n += BLOCK) { /* the same number for all pairs */
        team_barrier(t, worker, 0, NULL);
        for (const size_t stop = at + BLOCK < end ? at + BLOCK : end; at < stop; at++)
            (void)*((const volatile char *)p + 64 * at);
    }
}

static void *work(void *seat)
{
    const team_seat *own = seat;
    team *t = own->team;
    for (;;) {
        team_barrier(t, own->worker, 0, NULL);
        if (!t->run)
            return NULL;
        t->run(t->ctx, own->worker, t->workers);
        team_barrier(t, own->worker, 0, NULL);
    }
}

int team_processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
#if defined(__linux__)
    cpu_set_t own; /* the processors that this process may use */
    if (sched_getaffinity(0, sizeof own, &own) == 0)
        n = CPU_COUNT(&own);
#endif
    return n < 1 ? 1 : n > TEAM_MOST ? TEAM_MOST : (int)n;
}

int team_start(team *t, int workers)
{
    int n = 1;
    pthread_attr_t own;
    const int most = workers < 0 ? TEAM_MOST : team_processors();
    workers = workers < 0 ? -workers : workers;
    workers = workers < 1 ? 1 : workers > most ? most : workers;
    t->run = NULL;
    t->failed[0] = t->failed[1] = 0;
    atomic_init(&t->workers, workers);
    atomic_init(&t->asleep[0].n, 0u);
    atomic_init(&t->asleep[1].n, 0u);
    atomic_init(&t->taken[0].n, 0u);
    atomic_init(&t->taken[1].n, 0u);
    if (pthread_mutex_init(&t->lock, NULL) != 0 ||
        pthread_cond_init(&t->asleep[0].woken, NULL) != 0 ||
        pthread_cond_init(&t->asleep[1].woken, NULL) != 0)
        workers = 1;
    if (pthread_attr_init(&own) != 0) {
        atomic_store(&t->workers, 1);
        return 1;
    }
    pthread_attr_setstacksize(&own, STACK);
    for (int i = 0; i < TEAM_MOST; i++) {
        t->seats[i].reads = 0;
        atomic_init(&t->seats[i].met, 0u);
        atomic_init(&t->seats[i].cpu, -1);
    }
    for (; n < workers; n++) {
        t->seats[n].team = t;
        t->seats[n].worker = n;
        if (pthread_create(&t->seats[n].thread, &own, work, &t->seats[n]) != 0)
            break;
    }
    pthread_attr_destroy(&own);
    atomic_store(&t->workers, n);
    return n;
}

void team_stop(team *t)
{
    t->run = NULL;
    team_barrier(t, 0, 0, NULL);
    for (int i = 1; i < t->workers; i++)
        pthread_join(t->seats[i].thread, NULL);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->asleep[0].woken);
    pthread_cond_destroy(&t->asleep[1].woken);
}

int team_run(team *t, team_fn *fn, void *ctx)
{
    t->run = fn;
    t->ctx = ctx;
    team_barrier(t, 0, 0, NULL);
    const int result = fn(ctx, 0, t->workers);
    team_barrier(t, 0, 0, NULL);
    return result;
}
