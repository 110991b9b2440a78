/* pass.h: declarations shared by passes. */
#ifndef OI_PASS_H
#define OI_PASS_H

#include "device/cost.h"
#include "synth/unit.h"

/* -- pass.c -- */

bool oi_loop_surely_runs(const oi_stmt *loop); /* at least once, as far as is known */
void oi_stmts_remove(oi_stmts *list, size_t i);
/* Adds a line to the report: why a pass did not apply. */
void oi_unit_note(oi_unit *u, const char *pass, uint32_t graph, const oi_pnode *n, const char *fmt,
                  ...) OI_PRINTF(5, 6);

/* -- match.c -- */

#define OI_OFFER_INPUTS 3 /* of a product: two factors, and a bias */

/* The port of every input of the product `sums`; OI_NO_ID: no instruction reads it. False if the
 * factors are no longer plain loads. */
bool oi_offer_inputs(const oi_unit *u, const oi_skernel *k, uint32_t *ports);
/* Whether the recipe on offer needs instruction `op` of the first nest as it is. */
bool oi_offer_keeps(const oi_skernel *k, size_t op);
/* Whether the recipe on offer stores the sums itself, so that only its hooks may follow. */
bool oi_offer_stores(const oi_skernel *k);

/* -- mention.c: what statements refer to -- */

typedef struct oi_mention {
    oi_port *port;   /* NULL: mentioned by name in a code, number or condition */
    uint32_t tensor; /* OI_NO_ID for a loop's index */
    uint32_t index;  /* OI_NO_ID for a tensor */
    bool reads, writes;
    bool is_length; /* reads only its length, a `?` dim */
} oi_mention;

typedef void oi_mention_fn(void *ctx, const oi_mention *m);

/* Visits everything that the statement itself mentions, without its body and the blocks it calls.
 */
void oi_stmt_mentions(const oi_unit *u, uint32_t graph, oi_stmt *s, oi_mention_fn *fn, void *ctx);
/* Visits the mentions of all statements, including loop bodies. */
void oi_stmts_mentions(const oi_unit *u, uint32_t graph, const oi_stmts *list, oi_mention_fn *fn,
                       void *ctx);

/* How many mentions of a tensor a graph's statements contain. */
typedef struct oi_tally {
    uint32_t all, reads, writes;
    uint32_t lengths; /* of all: mentions of its lengths only */
} oi_tally;

oi_tally *oi_graph_tally(oi_unit *u, uint32_t graph); /* by tensor */

/* Adds the statement's mentions to a tally, or subtracts them. */
void oi_tally_stmt(const oi_unit *u, uint32_t graph, oi_stmt *s, oi_tally *tally, bool add);

/* -- fold.c -- */

/* The elements of a constant tensor. NULL: it is not constant, or its model cannot be read. */
const void *oi_tensor_contents(oi_unit *u, const oi_tensor *t);

/* -- calls.c: which blocks call which, how often, and what may fail -- */

/* Fills in the order and the run counts of the graph's blocks, and may_fail of all statements. */
void oi_calls_find(oi_unit *u, uint32_t graph);
uint64_t oi_loop_times(const oi_stmt *loop);               /* iterations; UINT64_MAX: unbounded */
uint64_t oi_times_of(uint64_t a, uint64_t b);              /* a product of such numbers */
bool oi_yield_runs(const oi_program *p, const oi_stmt *s); /* a yield that may run consumers */

/* -- names.c -- */

void oi_unit_name_kernels(oi_unit *u); /* final names */
void oi_unit_name_functions(oi_unit *u);

/* -- functions.c -- */

bool oi_value_same(const oi_op_value *a, const oi_op_value *b); /* of equal attributes */
void oi_unit_share_functions(oi_unit *u); /* sets oi_skernel.function and next_alike */

/* -- check.c -- */

/* NULL if every invariant of the unit holds, else the violated one. */
const char *oi_unit_check(oi_unit *u);

/* -- cost.c -- */

uint64_t oi_sops_steps(const oi_sops *ops); /* arithmetic steps per element */

/* The work of one run of the kernel, and the bytes that it touches of each port. The caller decides
 * which memory level those bytes come from. */
void oi_kernel_work(oi_unit *u, const oi_skernel *k, uint64_t *touched, oi_cost *cost,
                    oi_work_size *w);

/* -- schedule.c -- */

/* Which loops of a sum run through contiguous memory. */
typedef struct oi_strides {
    bool along;    /* the last reduced axis, in all operands */
    bool across;   /* the last output axis */
    bool is_plain; /* no load depends on data or is out of bounds */
    unsigned bits; /* of the narrowest elements that are read along the axis; 0: there are none */
} oi_strides;

/* Of a nest whose last loop is a reduced axis. */
oi_strides oi_nest_strides(const oi_unit *u, const oi_skernel *k, const oi_snest *n);

/* -- groups.c -- */

void oi_kernel_schedule_groups(const oi_unit *u, oi_skernel *k); /* for targets with workgroups */
/* How groups that stay share a kernel: the outermost one or two of the axes that they count
 * through. */
oi_partition oi_kernel_group_partition(const oi_skernel *k);

/* -- chunks.c -- */

void oi_graph_mark_chunks(oi_unit *u, uint32_t graph); /* needs the barriers of partition.c */

/* -- prefetch.c -- */

void oi_graph_mark_prefetch(oi_unit *u, uint32_t graph); /* needs the barriers of partition.c */

/* The call with its kernel scalars renumbered: each moves up by n. */
const oi_scall *oi_call_shifted(oi_unit *u, const oi_scall *c, uint32_t n);

#endif
