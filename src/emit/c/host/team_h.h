/* team.h: threads that run a step together. They are started once and sleep between steps. */
#ifndef TEAM_H
#define TEAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#define TEAM_MOST 64 /* threads */

typedef struct team team;

/* One of the threads' share of a step. */
typedef int team_fn(void *ctx, int part, int parts);

/* What a part writes lies apart from what the others write. */
typedef struct team_seat {
    _Alignas(64) atomic_uint met; /* meetings that it came to */
    atomic_int cpu;               /* where it came to the last one; -1: nobody knows */
    size_t reads;                 /* calls of team_read */
    team *team;
    pthread_t thread;
    int part;
} team_seat;

/* What a thread does of something that all share: part n as if there were so many parts. */
typedef struct team_piece {
    int n, of;
} team_piece;

struct team {
    atomic_int parts;
    team_fn *run; /* NULL: the threads end */
    void *ctx;
    int failed[2]; /* by meetings: what the first thread came with */
    struct {
        _Alignas(64) atomic_uint n;
    } taken[2]; /* by meetings: pieces, beside those that threads begin with */
    pthread_mutex_t lock;
    struct {
        atomic_uint n;
        pthread_cond_t woken;
    } asleep[2]; /* the first thread; others */
    team_seat seats[TEAM_MOST];
};

/* Starts threads beside the caller's until there are `parts`, or as many as there are processors:
 * more would only wait for each other (parts < 0: -parts of them all the same), TEAM_MOST, or the
 * system gives no more; the result is how many they are in all. The team must stay where it is. */
int team_start(team *t, int parts);
void team_stop(team *t);

/* How many threads run at once: processors that this process may use. */
int team_processors(void);

/* Every thread runs fn; the result is that of part 0. */
int team_run(team *t, team_fn *fn, void *ctx);

/* Called by all parts: none goes on before all have come. The result is what part 0 gave. Whoever
 * waits asks meanwhile for what lies at `next`, unless it is NULL: it will be read soon. */
int team_meet(team *t, int part, int failed, const void *next);

/* The same in two steps: it is true for part 0, once all have come. That part alone goes on, and
 * must let the others go; they all get, in *failed, what it then gives. */
int team_come(team *t, int part, int *failed, const void *next);
void team_go(team *t, int failed);

/* Called by all parts: they read what lies at p, two of them the same, all of it in the first four
 * calls and from then on one of `of` slices at each. What two processors have read, the third cache
 * keeps as shared, and some (Intel's servers) then give it to one of them up to half as fast again:
 * it need not come back from the second cache. It is forgotten with time, hence the slices. */
void team_read(team *t, int part, const void *p, size_t size, size_t of);

/* Between two meetings, once: *p, {0} at first, becomes the next piece of what the parts share,
 * until it is 0: there are none left. Each begins with half of its part; of the rest whoever comes
 * takes pieces, half as large in every round, so that quick threads do more and all end about
 * together. Which pieces there are depends on the number of threads alone. */
int team_take(team *t, int part, team_piece *p);

#endif
