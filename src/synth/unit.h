/* unit.h: a plan while it is made. Lowering (build.c) turns each graph into a tree of statements
 * over tensors; passes rewrite them; freeze.c makes the plan (plan/plan.h) that emitters read.
 * Everything lives in the unit's arena. Grouped by the file that implements it. */
#ifndef OI_UNIT_H
#define OI_UNIT_H

#include "plan/plan.h"

/* -- the unit -- */

typedef struct oi_unit oi_unit;

struct oi_unit {
    oi_arena *arena;
    const oi_device *device;
    const oi_device_info *target;
    oi_caps can; /* what it can do */
    const char *name;
    oi_host_lang host_lang; /* of main, which the kernels' language does not follow */
    oi_diag *diag;
    oi_status status;
    OI_VEC(oi_sgraph) graphs;
    OI_VEC(oi_tensor) tensors;
    OI_VEC(oi_store_var) stores;
    OI_VEC(oi_skernel) kernels;
    OI_VEC(oi_pass_note) notes;
    oi_map names;               /* taken identifiers */
    OI_VEC(oi_renamed) renamed; /* names that differ from those in the graph */
    oi_map known;               /* tensors by key: "state NAME", "tensor MODEL N", "packing ..." */
    bool per_node;
    bool partition_all; /* partition kernels however small they are */
    bool timed;         /* the program reports when a kernel begins and ends */
    bool keeps_bits;    /* some op converts floats to integers: a difference in the last bit may
                           become a large one */
    bool embeds;        /* weights are compiled into the program */
    const char *const *skip; /* passes to skip, NULL-terminated; or NULL */
    const char *dump_after;  /* the pass to dump after, or NULL */
    const char *dump;        /* that text */
    uint64_t weights_bytes, state_bytes, arena_bytes;
    oi_undo undo; /* of every step */
    oi_sync sync;
    uint64_t arena_bound; /* lower bound for any layout in multiples of the alignment */
    uint64_t arena_alive; /* maximum number of live bytes */
};

/* -- unit.c -- */

void oi_unit_begin(oi_unit *u); /* once its arena and settings are there */
const char *oi_unit_identifier(oi_unit *u, const char *wanted); /* made unique */
/* Records that the program calls `is` what the graph or the caller calls `was`. */
void oi_unit_note_name(oi_unit *u, const char *was, const char *is);
uint64_t oi_unit_aligned(const oi_unit *u, uint64_t n); /* rounded up to the alignment of tensors */
bool oi_unit_is_parallel(const oi_unit *u); /* some graph's steps are run by several threads */
uint32_t oi_unit_add_tensor(oi_unit *u, const oi_tensor *t); /* its name too */
void oi_tensor_measure(oi_tensor *t);                        /* computes sizes from dims */
/* The tensor of a graph variable. has_own: it has storage of its own, not the model's, because
 * statements write it or the host reads it. */
uint32_t oi_unit_add_var(oi_unit *u, uint32_t graph, uint32_t var, bool has_own);
/* The tensor of a variable inside a block. */
uint32_t oi_block_tensor(const oi_unit *u, uint32_t graph, uint32_t block, uint32_t var);
oi_store_var *oi_unit_store(const oi_unit *u, uint32_t tensor); /* NULL: not persistent */
/* Records why the target cannot run the graph. `at` with line 0: use the node's position. */
oi_status oi_unit_refuse(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_span at,
                         const char *code, const char *fmt, ...) OI_PRINTF(6, 7);

bool oi_unit_skips(const oi_unit *u, const char *pass); /* --without names it */

/* -- build.c: statements of a graph -- */

oi_status oi_unit_add_graph(oi_unit *u, const oi_program *p, const char *name);

/* -- bodies.c -- */

bool oi_program_keeps_bits(const oi_program *p); /* computes oi_unit.keeps_bits */

/* -- lower.c: the kernels of an op -- */

void oi_lower_op(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_stmts *out);
/* Copies the elements of src to dst: for transfers, and for results that were made elsewhere. */
void oi_lower_copy(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_port src, oi_port dst,
                   oi_stmts *out);

/* -- call.c: a call on its own -- */

/* The tensors of its operands, and those of attributes that only the run knows (run_attrs; else
 * OI_NO_ID), which kernel scalars and statements refer to as variables, by number. */
typedef struct oi_call_tensors {
    const uint32_t *in, *out, *attrs;
    oi_stmts stmts; /* in their order */
} oi_call_tensors;

/* Lowers the call into an empty unit and schedules its kernels. Operands are dense, and what the
 * query points to outlives the unit. Other tensors than these and tables of constants are in
 * OI_SPACE_ARENA, without a place. */
oi_status oi_unit_add_call(oi_unit *u, const oi_kernel_query *q, oi_call_tensors *out);

/* -- state.c: accesses to persistent memory -- */

/* The statements of a cache.read, write, increment, decrement or reset. */
void oi_lower_cache(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_stmts *out);

/* -- passes, in their order -- */

oi_status oi_pass_fold(oi_unit *u);
oi_status oi_pass_match(oi_unit *u);
oi_status oi_pass_dead(oi_unit *u);
oi_status oi_pass_ssa(oi_unit *u);
oi_status oi_pass_cse(oi_unit *u);
oi_status oi_pass_hoist(oi_unit *u);
oi_status oi_pass_copy_prop(oi_unit *u);
oi_status oi_pass_inline(oi_unit *u);
oi_status oi_pass_fuse(oi_unit *u);
oi_status oi_pass_recipes(oi_unit *u);
oi_status oi_pass_rows(oi_unit *u);
oi_status oi_pass_narrow32(oi_unit *u);
oi_status oi_pass_narrow16(oi_unit *u);
oi_status oi_pass_int_clamp(oi_unit *u);
oi_status oi_pass_view(oi_unit *u);
oi_status oi_pass_layout(oi_unit *u);
oi_status oi_pass_tiles(oi_unit *u);
oi_status oi_pass_schedule(oi_unit *u);
oi_status oi_pass_pipeline(oi_unit *u);
oi_status oi_pass_inplace(oi_unit *u);
oi_status oi_pass_log(oi_unit *u);
oi_status oi_pass_memory(oi_unit *u);
oi_status oi_pass_values(oi_unit *u);
oi_status oi_pass_partition(oi_unit *u);
oi_status oi_pass_merge(oi_unit *u);
oi_status oi_pass_cost(oi_unit *u);
oi_status oi_pass_slow(oi_unit *u);
oi_status oi_pass_undo(oi_unit *u);
oi_status oi_passes_run(oi_unit *u); /* runs all passes except those in u->skip */

/* -- freeze.c -- */

/* Fills in what statements refer to, and how workers wait for each other. Runs after the passes. */
void oi_unit_refer(oi_unit *u);
void oi_unit_freeze(const oi_unit *u, oi_plan *out); /* what it points to stays the unit's */

#endif
