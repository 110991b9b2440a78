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

/* One of the threads' share of a step. */
typedef int team_fn(void *ctx, int worker, int workers);

/* What a worker writes lies apart from what the others write. */
typedef struct team_seat {
    TEAM_ALIGN(64) atomic_uint met; /* meetings that it came to */
    atomic_int cpu;                 /* where it came to the last one; -1: nobody knows */
    size_t reads;                   /* calls of team_warm_up */
    struct team *team;
    pthread_t thread;
    int worker;
} team_seat;

/* What a thread does of something that all share: worker n as if there were so many workers. */
typedef struct team_chunk {
    int n, of;
} team_chunk;

struct team {
    atomic_int workers;
    team_fn *run; /* NULL: the threads end */
    void *ctx;
    int failed[2]; /* by meetings: what the first thread came with */
    struct {
        TEAM_ALIGN(64) atomic_uint n;
    } taken[2]; /* by meetings: pieces, beside those that threads begin with */
    pthread_mutex_t lock;
    struct {
        atomic_uint n;
        pthread_cond_t woken;
    } asleep[2]; /* the first thread; others */
    team_seat seats[TEAM_MOST];
};

/* Starts threads beside the caller's until there are `workers`, or as many as there are processors:
 * more would only wait for each other (workers < 0: -workers of them all the same), TEAM_MOST, or
 * the system gives no more; the result is how many they are in all. The team must stay where it is.
 */
int team_start(team *t, int workers);
void team_stop(team *t);

/* How many threads run at once: processors that this process may use. */
int team_processors(void);

/* Every thread runs fn; the result is that of worker 0. */
int team_run(team *t, team_fn *fn, void *ctx);

/* Called by all workers: none goes on before all have come. The result is what worker 0 gave.
 * Whoever waits asks meanwhile for what lies at `next`, unless it is NULL: it will be read soon. */
int team_barrier(team *t, int worker, int failed, const void *next);

/* The same in two steps: it is true for worker 0, once all have come. That worker alone goes on,
 * and must let the others go; they all get, in *failed, what it then gives. */
int team_barrier_enter(team *t, int worker, int *failed, const void *next);
void team_barrier_release(team *t, int failed);

/* Called by all workers: they read what lies at p, two of them the same, all of it in the first
 * four calls and from then on one of `of` slices at each. What two processors have read, the third
 * cache keeps as shared, and some (Intel's servers) then give it to one of them up to half as fast
 * again: it need not come back from the second cache. It is forgotten with time, hence the slices.
 */
void team_warm_up(team *t, int worker, const void *p, size_t size, size_t of);

/* Between two meetings, once: *p, {0} at first, becomes the next piece of what the workers share,
 * until it is 0: there are none left. Each begins with half of its worker; of the rest whoever
 * comes takes pieces, half as large in every round, so that quick threads do more and all end about
 * together. Which pieces there are depends on the number of threads alone. */
int team_next_chunk(team *t, int worker, team_chunk *p);

#ifdef __cplusplus
}
#endif

#endif
