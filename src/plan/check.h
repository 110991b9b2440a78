/* check.h: an independent check of a finished plan.
 *
 * It reads what emitters read: statements, kernels, buffers. It shares no code with the passes that
 * made the plan, so a mistake of theirs does not hide itself. Grouped by the file that implements
 * it. */
#ifndef OI_PLAN_CHECK_H
#define OI_PLAN_CHECK_H

#include "plan/plan.h"

/* -- check.c -- */

/* What was looked at; part of the certificate. */
typedef struct oi_plan_verdict {
    uint64_t accesses; /* of statements to memory that several workers, or tensors, share */
    uint64_t barriers;
    const char *why; /* the plan is wrong; NULL: it is right */
} oi_plan_verdict;

/* Every two accesses to the same bytes by different workers, one of them a write, are ordered by a
 * barrier or by the partition; all workers come to every barrier; every tensor lies inside its
 * arena; every read of the arena finds what was written for it, also around loops; the undo holds
 * all state that changes before a possible failure. */
oi_plan_verdict oi_plan_check(const oi_plan *u);

/* -- access.c: what a statement touches -- */

typedef enum oi_access_by {
    OI_BY_FIRST,    /* the first worker */
    OI_BY_ALL,      /* every worker, the same */
    OI_BY_PARTITION /* every worker its own part */
} oi_access_by;

/* One access of a statement. Of a partitioned kernel: where its coordinates come from. */
typedef struct oi_touch {
    uint32_t tensor; /* a view is the tensor that it is a view of */
    bool writes;
    oi_access_by by;
    const oi_stmt *stmt;
    const oi_skernel *kernel;
    const oi_snest *nest; /* a load or store of it; NULL: the rest says */
    const oi_sop *op;
    uint32_t dim;      /* without a nest: the positions are places of this dim; OI_NO_ID: all */
    bool is_scattered; /* parts are apart though no dim separates them */
    uint32_t group;    /* statements that workers run chunk by chunk share a number; 0: none */
} oi_touch;
typedef OI_VEC(oi_touch) oi_touches;

/* Those of the statement itself, in order: reads of a nest before its writes. Not those of its body
 * or of called blocks, but for row pipelines, whose body is one dispatch. */
void oi_touch_stmt(const oi_plan *u, uint32_t graph, const oi_stmt *s, oi_touches *out);

/* Whether a loop runs at least once, as far as is known now. */
bool oi_loop_runs(const oi_stmt *loop);

/* Whether worker p of n and worker q of n may touch the same bytes; in one run of a statement, or
 * in any. */
bool oi_touch_meet(const oi_plan *u, const oi_touch *a, int64_t p, const oi_touch *b, int64_t q,
                   int64_t n, bool same_run);
/* Whether the tensors share bytes that workers share. */
bool oi_touch_overlap(const oi_plan *u, uint32_t a, uint32_t b);

/* -- failing.c -- */

/* Whether the statement itself may end the step; not its body or the blocks that it calls. */
bool oi_stmt_fails(const oi_plan *u, uint32_t graph, const oi_stmt *s);
/* Whether an entry of a table may be out of range, or missing in the model. */
bool oi_entry_misses(const oi_plan *u, uint32_t graph, const oi_port *port);

/* -- races.c, memory.c, undo.c -- */

void oi_plan_check_races(const oi_plan *u, uint32_t graph, oi_plan_verdict *v);
void oi_plan_check_memory(const oi_plan *u, uint32_t graph, oi_plan_verdict *v);
void oi_plan_check_undo(const oi_plan *u, uint32_t graph, oi_plan_verdict *v);

#endif
