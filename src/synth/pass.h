/* pass.h: what passes share. */
#ifndef OI_PASS_H
#define OI_PASS_H

#include "device/cost.h"
#include "synth/synth.h"

/* -- pass.c -- */

/* The kernel's lists of instructions, pre and post of each nest in turn; NULL past the end. */
oi_sops *oi_kernel_sops(const oi_skernel *k, size_t i);
bool oi_sop_is_access(const oi_sop *op);                    /* it goes through a port */
bool oi_kernel_reads(const oi_skernel *k, uint32_t tensor); /* some load looks at it */
bool oi_stmts_call(const oi_stmts *list);                   /* a branch or yield somewhere inside */
void oi_stmts_remove(oi_stmts *list, size_t i);
/* A line for the report: why a pass left something as it is. */
void oi_unit_note(oi_unit *u, const char *pass, uint32_t graph, const oi_pnode *n, const char *fmt,
                  ...) OI_PRINTF(5, 6);

/* -- mention.c: what statements refer to -- */

typedef struct oi_mention {
    oi_port *port;   /* NULL: by name, in a code, number or condition */
    uint32_t tensor; /* OI_NO_ID for a loop's index */
    uint32_t index;  /* OI_NO_ID for a tensor */
    bool reads, writes;
    bool is_length; /* just how long it is: a `?` dim */
} oi_mention;

typedef void oi_mention_fn(void *ctx, const oi_mention *m);

/* Everything that the statement itself mentions, not what stands inside or is called. */
void oi_stmt_mentions(const oi_unit *u, uint32_t graph, oi_stmt *s, oi_mention_fn *fn, void *ctx);
/* Of all statements, loops' bodies included. */
void oi_stmts_mentions(const oi_unit *u, uint32_t graph, const oi_stmts *list, oi_mention_fn *fn,
                       void *ctx);

/* How often statements of the graph mention a tensor. */
typedef struct oi_tally {
    uint32_t all, reads, writes;
    uint32_t lengths; /* of all: those of its lengths alone */
} oi_tally;

oi_tally *oi_graph_tally(oi_unit *u, uint32_t graph); /* by tensor */

/* The statement's mentions are added to a tally, or taken away. */
void oi_tally_stmt(const oi_unit *u, uint32_t graph, oi_stmt *s, oi_tally *tally, bool add);

/* -- fold.c -- */

/* The elements of a tensor that never changes; NULL: it has none, or its model cannot be read. */
const void *oi_tensor_contents(oi_unit *u, const oi_tensor *t);

/* -- names.c -- */

void oi_unit_name_kernels(oi_unit *u); /* as they will be called */

/* -- check.c -- */

/* NULL when everything that passes rely on holds, else what does not. */
const char *oi_unit_check(oi_unit *u);

/* -- cost.c -- */

uint64_t oi_sops_steps(const oi_sops *ops); /* of one element's arithmetic */

/* What one run of the kernel does, and the bytes that it touches of each port; where these come
 * from is left to the caller. */
void oi_kernel_work(oi_unit *u, const oi_skernel *k, uint64_t *touched, oi_cost *cost,
                    oi_work_size *w);

/* -- chunks.c -- */

void oi_graph_mark_chunks(oi_unit *u, uint32_t graph); /* where threads meet must be known */

/* -- dump.c -- */

void oi_unit_dump(const oi_unit *u, const char *after, oi_buf *out);

/* The call with the numbers of its kernel moved up by n. */
const oi_scall *oi_call_shifted(oi_unit *u, const oi_scall *c, uint32_t n);

#endif
