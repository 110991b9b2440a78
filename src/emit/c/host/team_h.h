/* team.h: threads that run a step together. They are started once and sleep between steps. */
#ifndef TEAM_H
#define TEAM_H

#include <pthread.h>
#include <stddef.h>

#ifdef __cplusplus /* as <stdatomic.h> of C++23 does */
#include <atomic>
using std::atomic_int;
using std::atomic_uint;
#define TEAM_ALIGN(n) alignas(n)
extern "C" {
#else
#include <stdatomic.h>
#define TEAM_ALIGN(n) _Alignas(n)
#endif

#define TEAM_MOST 64 /* threads */

typedef struct team team;

/* One thread's part of a step. */
typedef int team_fn(void *ctx, int worker, int workers);

/* Each worker writes only its own cache line. */
typedef struct team_seat {
    TEAM_ALIGN(64) atomic_uint met; /* barriers that it reached */
    atomic_int cpu;                 /* its processor at the last barrier; -1: unknown */
    size_t reads;                   /* calls of team_warm_up */
    struct team *team;
    pthread_t thread;
    int worker;
} team_seat;

/* A chunk of partitioned work: the partition of worker n of `of`. */
typedef struct team_chunk {
    int n, of;
} team_chunk;

struct team {
    atomic_int workers;
    team_fn *run; /* NULL: the threads exit */
    void *ctx;
    int failed[2]; /* by barrier parity: the error of worker 0 */
    struct {
        TEAM_ALIGN(64) atomic_uint n;
    } taken[2]; /* by barrier parity: chunks taken, besides each thread's first */
    pthread_mutex_t lock;
    struct {
        atomic_uint n;
        pthread_cond_t woken;
    } asleep[2]; /* of worker 0; of the others */
    team_seat seats[TEAM_MOST];
};

/* Starts threads until there are `workers` including the caller's. There are at most as many as
 * processors, because more would only wait for each other; workers < 0 starts -workers of them
 * regardless. The limits are TEAM_MOST and what the system allows. Returns their number. The team
 * must not move in memory. */
int team_start(team *t, int workers);
void team_stop(team *t);

/* The number of processors that this process may use. */
int team_processors(void);

/* Every thread runs fn; returns the result of worker 0. */
int team_run(team *t, team_fn *fn, void *ctx);

/* A barrier: no worker returns before all have called it. Returns the `failed` of worker 0. A
 * waiting worker prefetches from `next` unless it is NULL, because it will read there soon. */
int team_barrier(team *t, int worker, int failed, const void *next);

/* The same barrier in two steps. team_barrier_enter returns 1 for worker 0, once all have arrived.
 * Worker 0 then runs alone and must call team_barrier_release; all others get its `failed` in
 * *failed. */
int team_barrier_enter(team *t, int worker, int *failed, const void *next);
void team_barrier_release(team *t, int failed);

/* Shared-cache warm-up, called by all workers. Pairs of workers read the same lines at p:
 * everything in the first four calls, later one of `of` slices per call. A line that two processors
 * have read stays in the third-level cache as shared. Some processors (Intel's servers) then
 * deliver it up to half as fast again, because it need not come back from another second-level
 * cache. The effect fades with time, hence the slices. */
void team_warm_up(team *t, int worker, const void *p, size_t size, size_t of);

/* Dynamic chunks, between two barriers: *p, {0} at first, becomes the next chunk of the workers'
 * work; returns 0 if there is none left. Each worker begins with half of its own partition. The
 * rest is taken in order of arrival, in chunks that halve every round, so that fast threads do more
 * and all finish at about the same time. The set of chunks depends only on the number of threads.
 */
int team_next_chunk(team *t, int worker, team_chunk *p);

#ifdef __cplusplus
}
#endif

#endif
