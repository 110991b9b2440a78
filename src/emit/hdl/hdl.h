/* hdl.h: private to the VHDL target. Grouped by the file that implements it.
 *
 * A tensor is a memory of its own, one element a word; a kernel is an entity that walks its nests,
 * one iteration a clock; the statements of the plan are the states of a control unit, which starts
 * one kernel after the other. Nothing is decided here but the clock of every register. */
#ifndef OI_EMIT_HDL_H
#define OI_EMIT_HDL_H

#include "emit/nest.h"

/* A kernel as an entity. */
typedef struct oi_hdl_kernel {
    const char *entity;   /* its name */
    const char **ports;   /* by port: its name */
    const char **scalars; /* by scalar: its name */
    uint32_t *reads;      /* by port: elements that an iteration reads at once */
    bool *writes;         /* by port */
    uint64_t cycles;      /* from its start to the last write */
    uint64_t multipliers;
} oi_hdl_kernel;

/* A memory: one tensor, whole with all its entries and parts. */
typedef struct oi_hdl_memory {
    const char *name;     /* NULL: nothing uses it */
    uint64_t depth;       /* elements */
    OI_VEC(oi_buf) reads; /* per element that is read at once: addresses of all readers, joined */
    oi_buf we;            /* of all writers */
    const char *waddr, *wdata; /* of the one that writes */
    bool has_value;            /* one element, which the control unit looks at */
    const char *base;          /* a view: the signal that says where it begins */
} oi_hdl_memory;

typedef struct oi_circuit oi_circuit;

struct oi_circuit {
    const oi_plan *p;
    oi_arena *arena;
    oi_emitted *files;
    oi_hdl_kernel *kernels;  /* by kernel; those that are not used are empty */
    oi_hdl_memory *memories; /* by tensor */
    oi_clocks *clocks;       /* by graph */
    bool is_flow;            /* pipelined: flow.h */
    bool is_trial;           /* only its clocks are wanted: nothing is reported */
    const char *why_not;     /* it is not pipelined; NULL: it is */
    const oi_circuit_cost *cost;
    const char **first; /* by graph: its first state */
    oi_map names;       /* in the architecture of the top level, in lower case */
    /* the control unit, while it is made */
    uint32_t graph, block;
    uint32_t n_states;
    bool has_kernels, has_roms; /* files of their own */
    uint32_t n_nests;           /* of the kernel being printed */
    oi_out states;              /* what each does */
    oi_buf state_names;
    oi_buf *active;            /* by kernel: the states in which it works */
    uint32_t *block_of;        /* by kernel: the block that runs it */
    const char **indices;      /* by loop index of the graph */
    const char ***all_indices; /* by graph */
    oi_map index_names;
    oi_out signals, places; /* of the architecture: declarations, concurrent statements */
};

/* Refuses the plan: files->status. */
void oi_hdl_refuse(oi_circuit *h, uint32_t graph, const oi_pnode *n, const char *code,
                   const char *fmt, ...) OI_PRINTF(5, 6);

static inline void oi_hdl_gap(oi_out *o) /* an empty line, whatever the depth */
{
    oi_buf_putc(&o->buf, '\n');
}

/* -- names.c -- */

/* The text as a VHDL identifier, unlike all in the map whatever the case, to which it is added. */
const char *oi_hdl_name(oi_arena *a, oi_map *taken, const char *text);

/* -- dialect.c: expressions and elements -- */

extern const oi_dialect oi_dialect_vhdl;
extern const oi_lang oi_lang_vhdl;
uint32_t oi_hdl_bits(oi_dtype t);                                    /* of a stored element */
const char *oi_hdl_word(oi_arena *a, uint32_t bits, uint64_t value); /* "x"08"", or "101" */
const char *oi_hdl_load(oi_arena *a, oi_dtype t, bool is_raw, const char *data);
const char *oi_hdl_store(oi_arena *a, oi_dtype t, bool is_raw, const char *value);
uint32_t oi_hdl_log2(uint64_t n); /* bits that count to n - 1, at least 1 */

/* -- nest.c: a nest as a pipeline -- */

typedef struct oi_hdl_nest {
    uint64_t iterations, cycles;
    uint32_t stages; /* registers between an address and the write */
} oi_hdl_nest;

/* Prints the nest as a block of the kernel's architecture. */
oi_hdl_nest oi_hdl_put_nest(oi_circuit *h, const oi_skernel *k, const oi_hdl_kernel *own,
                            uint32_t number, oi_out *o);

/* -- kernel.c: entities -- */

void oi_hdl_kernels(oi_circuit *h);         /* adds their file; fills h->kernels */
uint64_t oi_hdl_extent(const oi_tensor *t); /* elements of one entry */

/* -- control.c: statements as states -- */

void oi_hdl_control(oi_circuit *h);                             /* of all graphs */
const char *oi_hdl_failed(const oi_circuit *h, uint32_t graph); /* where an error leads */
const char *oi_hdl_state(oi_circuit *h, const char *name); /* declares one; NULL: the next number */

/* -- code.c: numbers that the control unit computes -- */

const char *oi_hdl_code(oi_circuit *h, const oi_code *code);     /* an integer */
const char *oi_hdl_scalar(oi_circuit *h, const oi_pvalue *v);    /* an i64 */
const char *oi_hdl_element(oi_circuit *h, uint32_t tensor);      /* the word of rank 0 */
const char *oi_hdl_truth(oi_circuit *h, const oi_pnode *branch); /* its condition */
/* Where the port's part begins, in elements: "0". */
const char *oi_hdl_base(oi_circuit *h, const oi_port *p);

/* -- memory.c: memories and who uses them -- */

uint32_t oi_hdl_root(const oi_plan *p, uint32_t tensor); /* what holds a view */
oi_hdl_memory *oi_hdl_memory_of(oi_circuit *h, uint32_t tensor);
void oi_hdl_add_read(oi_circuit *h, uint32_t tensor, uint32_t channel, const char *addr);
void oi_hdl_add_write(oi_circuit *h, uint32_t tensor, const char *we, const char *waddr,
                      const char *wdata);
const char *oi_hdl_found(oi_circuit *h, uint32_t tensor, uint32_t channel); /* "x_rdata_1" */
void oi_hdl_connect(oi_circuit *h);      /* instances of kernels */
void oi_hdl_put_memories(oi_circuit *h); /* the memories themselves; adds the file of constants */

/* -- top.c: the top level and its streams -- */

void oi_hdl_top(oi_circuit *h);
bool oi_hdl_is_output(const oi_plan *p, uint32_t tensor); /* it is sent after a step */

/* -- budget.c: what the device has -- */

typedef enum oi_budget {
    OI_BUDGET_MULTIPLIERS,
    OI_BUDGET_DSPS,
    OI_BUDGET_LUTS,
    OI_BUDGET_FFS,
    OI_BUDGET_MEMORY,
    OI_BUDGETS
} oi_budget;

oi_budget oi_hdl_exceeded(
    const oi_circuit *h);                /* the first that h->cost exceeds; OI_BUDGETS: none */
void oi_hdl_check_budget(oi_circuit *h); /* refuses what exceeds one, with the shares */

/* -- measure.c: what synthesis made of it -- */

bool oi_hdl_is_placed(const oi_device_info *d); /* its family has an open place and route */
oi_status oi_hdl_measure(const oi_plan *p, const char *dir, oi_plan_measured *out, oi_diag *d);
void oi_hdl_put_measuring(const oi_circuit *h, oi_out *o); /* goals of the Makefile */

/* -- bench.c: the test bench, and what builds and runs it -- */

void oi_hdl_bench(oi_circuit *h);
void oi_hdl_build_files(oi_circuit *h); /* what every design carries along, and the Makefile */

#endif
