/* verify.h: simulator and synthesized program side by side. Grouped by the file that implements
 * it. */
#ifndef OI_VERIFY_H
#define OI_VERIFY_H

#include "base/base.h"
#include "plan/target.h"

#include <sys/types.h>

/* -- tool.c: building with the tools that the target names (oi_target.tool) -- */

/* OI_ERR_ENV, with what to install, when this machine cannot build for the device or run that. */
oi_status oi_tool_find(const oi_device *device, const char *compiler, oi_tool *out, oi_diag *d);
oi_status oi_tool_check(const oi_tool_need *needs, oi_diag *d);
oi_status oi_tool_build(const oi_tool *t, const oi_device *device, const char *dir,
                        const char *flags, oi_diag *d);

/* -- child.c: a program that runs -- */

typedef struct oi_child {
    pid_t pid;          /* 0: none */
    int fd;             /* its stdin and stdout */
    const char *device; /* what it is made for */
    const char *needs;  /* what its machine may lack: "instructions that the program is made of" */
} oi_child;

/* Runs argv in the folder, with both ends on `fd`. */
bool oi_child_start(oi_child *c, const char *dir, const char *const *argv);
bool oi_child_write(oi_child *c, const void *data, size_t n);
bool oi_child_read(oi_child *c, void *data, size_t n); /* false: it ended, or is silent too long */
/* A child that is abandoned, or that ended too early; `how`: "it was ended by signal 11".
 * OI_ERR_ENV, said to d: this machine cannot run it. */
void oi_child_end(oi_child *c);
oi_status oi_child_lost(oi_child *c, char *how, size_t cap, oi_diag *d);

/* -- judge.c: how far two values may differ -- */

typedef struct oi_rule {
    bool is_exact;
    double slack;      /* integers that come from floats: this much */
    double atol, rtol; /* per element: atol + rtol * |it| */
    bool is_scaled;    /* atol is for values of about 1; and rtol also holds for typical elements */
} oi_rule;

/* What the tolerances of the nodes before it let a value differ by, when a program runs freely. */
typedef struct oi_drift {
    double rtol, atol; /* along the longest path; the greatest */
    double limit;      /* rtol counts no further */
} oi_drift;

oi_rule oi_rule_node(oi_dtype t, const char *op, uint64_t reduced);
oi_drift oi_drift_after(oi_drift in, oi_dtype t, const char *op, uint64_t reduced);
oi_drift oi_drift_join(oi_drift a, oi_drift b);
oi_rule oi_rule_free(oi_dtype t, bool from_floats, bool is_coarse, oi_drift drift);

typedef struct oi_finding {
    /* where the difference is greatest beside what may be */
    double worst, relative, allowed, atol, rtol, wanted, found;
    uint64_t element;
    bool agrees;
} oi_finding;

/* n elements, from element 0 on; `at` maps an element of `want` to one of `got` (NULL: the same).
 */
typedef uint64_t (*oi_place_fn)(const void *ctx, uint64_t e);
oi_finding oi_judge(oi_rule r, oi_dtype t, const void *want, const void *got, uint64_t n,
                    oi_place_fn at, const void *ctx);

/* -- run.c: step by step -- */

typedef struct oi_verify_graph {
    const char *name;
    oi_sim *sim;
    oi_exec *exec;
    oi_sim *written_sim; /* without the device's precision, where that has changed something */
    oi_exec *written;
    uint8_t *from_floats; /* by variable: a float had a say in it */
    oi_drift *drift;      /* by variable, as far as the program has come */
    void **inputs;        /* by variable: what it gets, or NULL */
    bool is_coarse;
} oi_verify_graph;

typedef OI_VEC(oi_verify_row) oi_verify_rows;

/* Everything of one comparison. */
typedef struct oi_trial {
    oi_arena *arena;
    const oi_verify_options *options;
    oi_verify_graph *graphs;
    size_t n_graphs;
    oi_child child;
    oi_verify_rows rows;
    oi_map row_of; /* "graph/kind/name" */
    oi_verify_lowered lowered;
    bool per_node;
    oi_diag *diag;                  /* the caller's */
    oi_diag *step_diag;             /* what the simulator says about a failing step */
    char *failure;                  /* the first divergence, or NULL */
    uint64_t n_nodes, n_node_bytes; /* computed, and of their results, estimated */
    uint64_t n_steps, n_failed;     /* done; of these with an error, the same in both */
} oi_trial;

/* OI_OK also when they differ: then `failure` is set. */
oi_status oi_trial_run(oi_trial *t);

/* -- work.c: the way to a running program -- */

typedef struct oi_work {
    const oi_device *device;
    oi_model *model;
    const oi_synth_graph *graphs;
    oi_verify_options options;
    oi_trial trial;
    oi_tool tool;
    char folder[4096]; /* "" until it is made */
    bool is_temporary, is_synthesized;
    double run_seconds; /* of the last run: built, stepped, compared */
    oi_plan *plan;
    oi_status status;
    oi_diag *diag;
} oi_work;

/* What the caller gave, with standards where it did not say. */
void oi_work_init(oi_work *w, const oi_device *device, oi_model *model,
                  const oi_synth_graph *graphs, size_t n_graphs, const oi_verify_options *options,
                  oi_diag *diag);
/* Inside a guard of the trial's arena. has_written: with what lowered precision is measured by. */
oi_status oi_work_simulators(oi_work *w, oi_run_on on, bool has_written);
/* Of the first n graphs, the first that has a persistent variable in common with this one; any will
 * do when there is none. */
const oi_verify_graph *oi_work_beside(const oi_trial *t, size_t n, const oi_sim *sim);
oi_status oi_work_program(oi_work *w); /* synthesized, emitted, built */
oi_status oi_work_start(oi_work *w, const char *more);
/* Runs fn under a guard, then ends the program, the simulators and a temporary folder. */
oi_status oi_work_run(oi_work *w, oi_arena *arena, bool per_node, oi_status (*fn)(oi_work *w));

/* -- written.c: the graph as written beside what the device's precision makes of it -- */

oi_status oi_written_new(oi_work *w, oi_sim_options options);
/* After a step of the graph's simulator; its inputs have been inserted. */
void oi_written_step(oi_trial *t, const oi_verify_graph *g, uint64_t step);

/* -- record.c: what the program says -- */

typedef struct oi_record {
    int kind; /* 'n' node, 'o' output, 's' state, 'e' end */
    char name[256];
    uint32_t rank;
    int64_t room[2 * OI_MAX_RANK], used[2 * OI_MAX_RANK];
    void *data;
    uint64_t size, cap;
} oi_record;

/* False when the program ended or says nonsense. The data stays until the next read. */
bool oi_record_read(oi_child *c, oi_record *r);

#endif
