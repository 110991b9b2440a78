/* partition.c: a fixed team of threads that take numbered tasks.
 *
 * A waiting thread spins for a while before it sleeps: the steps of a program follow each other in
 * microseconds, and waking a sleeper takes longer than most of them. */
#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define SPINS 4000 /* some ten microseconds */

struct oi_threads {
    unsigned n_workers;
    unsigned spins; /* 0 where there are fewer processors than threads */
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    atomic_uint generation; /* rises with every job */
    atomic_uint busy;       /* workers that have not finished the present job */
    atomic_size_t next;     /* task to take */
    size_t n_tasks;
    void (*task)(void *ctx, size_t i);
    void *ctx;
    bool is_ending;
    pthread_t workers[];
};

static void take_tasks(oi_threads *t)
{
    size_t i;
    while ((i = atomic_fetch_add(&t->next, 1)) < t->n_tasks)
        t->task(t->ctx, i);
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Waits for a job later than `seen`; returns its number. */
static unsigned await_job(oi_threads *t, unsigned seen)
{
    for (unsigned i = 0; i < t->spins; i++) {
        if (atomic_load(&t->generation) != seen)
            break;
        pause_briefly();
    }
    pthread_mutex_lock(&t->lock);
    while (atomic_load(&t->generation) == seen)
        pthread_cond_wait(&t->wake, &t->lock);
    seen = atomic_load(&t->generation);
    pthread_mutex_unlock(&t->lock);
    return seen;
}

static void *work(void *arg)
{
    oi_threads *t = arg;
    unsigned seen = 0;
    for (;;) {
        seen = await_job(t, seen);
        if (t->is_ending)
            return NULL;
        take_tasks(t);
        if (atomic_fetch_sub(&t->busy, 1) == 1) {
            pthread_mutex_lock(&t->lock);
            pthread_cond_signal(&t->idle);
            pthread_mutex_unlock(&t->lock);
        }
    }
}

static void await_workers(oi_threads *t)
{
    for (unsigned i = 0; i < t->spins; i++) {
        if (atomic_load(&t->busy) == 0)
            return;
        pause_briefly();
    }
    pthread_mutex_lock(&t->lock);
    while (atomic_load(&t->busy) != 0)
        pthread_cond_wait(&t->idle, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

void oi_threads_run(void *threads, size_t n_tasks, void (*task)(void *ctx, size_t i), void *ctx)
{
    oi_threads *t = threads;
    if (!t || t->n_workers == 0 || n_tasks < 2) {
        for (size_t i = 0; i < n_tasks; i++)
            task(ctx, i);
        return;
    }
    pthread_mutex_lock(&t->lock);
    t->n_tasks = n_tasks;
    t->task = task;
    t->ctx = ctx;
    atomic_store(&t->next, 0);
    atomic_store(&t->busy, t->n_workers);
    atomic_fetch_add(&t->generation, 1);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
    take_tasks(t);
    await_workers(t);
}

static void end_workers(oi_threads *t)
{
    pthread_mutex_lock(&t->lock);
    t->is_ending = true;
    atomic_fetch_add(&t->generation, 1);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
    for (unsigned i = 0; i < t->n_workers; i++)
        pthread_join(t->workers[i], NULL);
    pthread_cond_destroy(&t->wake);
    pthread_cond_destroy(&t->idle);
    pthread_mutex_destroy(&t->lock);
}

oi_threads *oi_threads_new(unsigned n)
{
    if (n == 0 || n > 1024)
        return NULL;
    oi_threads *t = calloc(1, sizeof *t + (n - 1) * sizeof t->workers[0]);
    if (!t)
        return NULL;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    t->spins = processors >= (long)n ? SPINS : 0;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, NULL);
    pthread_cond_init(&t->idle, NULL);
    for (; t->n_workers < n - 1; t->n_workers++)
        if (pthread_create(&t->workers[t->n_workers], NULL, work, t) != 0) {
            oi_threads_free(t);
            return NULL;
        }
    return t;
}

void oi_threads_free(oi_threads *t)
{
    if (!t)
        return;
    end_workers(t);
    free(t);
}

unsigned oi_threads_count(const oi_threads *t)
{
    return t ? t->n_workers + 1 : 1;
}
