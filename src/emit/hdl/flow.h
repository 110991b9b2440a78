/* flow.h: the pipelined form of a circuit, in which every kernel works at once on another step.
 *
 * The iterations of a kernel's nests become copies of their instructions: wires, one per value, as
 * narrow as what they can hold. Wires are cut into stages by registers. Kernels are connected by
 * streams whose beats are whole tensors, with a FIFO before every consumer. Where a kernel is
 * folded, it works on a beat in several phases, with as many copies less. Grouped by the file that
 * implements it. */
#ifndef OI_EMIT_HDL_FLOW_H
#define OI_EMIT_HDL_FLOW_H

#include "emit/hdl/hdl.h"
#include "plan/interval.h"

/* -- flow_wires.c: values -- */

typedef enum oi_wire_kind {
    OI_WIRE_CONST, /* `value` */
    OI_WIRE_IN,    /* element `value` of the kernel's stream args[0] */
    OI_WIRE_TABLE, /* by phase: a constant */
    OI_WIRE_PICK,  /* by phase: one of the wires */
    OI_WIRE_LOOK,  /* `value` constants, of which the argument selects one */
    OI_WIRE_ADD,
    OI_WIRE_SUB,
    OI_WIRE_NEG,
    OI_WIRE_MUL,
    OI_WIRE_LEFT, /* shifted by `value` */
    OI_WIRE_RIGHT,
    OI_WIRE_WRAP,   /* modulo 2^width, into `type` */
    OI_WIRE_SELECT, /* the second if the first is true, else the third */
    OI_WIRE_CALL    /* `helper` of arguments with types `of`, into `type` */
} oi_wire_kind;

typedef struct oi_wire {
    oi_wire_kind kind;
    oi_helper_id helper;
    oi_dtype type, of[OI_M_ARGS];
    bool is_truth, is_needed;
    uint32_t n_args, args[OI_M_ARGS];
    const int64_t *phases; /* TABLE, LOOK: values; PICK: wires */
    int64_t value;
    oi_range range;  /* all that it can be */
    uint32_t stage;  /* in which it is computed; stages.c */
    uint32_t last;   /* in which it is still used */
    double ready_ns; /* from the beginning of the stage */
} oi_wire;

typedef struct oi_wires {
    oi_arena *arena;
    OI_VEC(oi_wire) list;
    oi_map known;      /* equal wires are one */
    uint32_t n_phases; /* 1: it is not folded */
    uint32_t digits;   /* a product with a constant of at most so many digits is a sum of shifts */
} oi_wires;

uint32_t oi_wire_const(oi_wires *w, int64_t value);
uint32_t oi_wire_truth(oi_wires *w, bool value);
uint32_t oi_wire_in(oi_wires *w, uint32_t stream, uint64_t element, oi_range range);
uint32_t oi_wire_by_phase(oi_wires *w, const uint32_t *each); /* one per phase */
/* The constant at this place, which is at least 0 and less than n. */
uint32_t oi_wire_look(oi_wires *w, const int64_t *values, uint32_t n, uint32_t place);
uint32_t oi_wire_call(oi_wires *w, oi_helper_id helper, oi_dtype type, const oi_dtype *of,
                      const uint32_t *args, uint32_t n);
uint32_t oi_wire_wrap(oi_wires *w, uint32_t a, oi_dtype to);
uint32_t oi_wire_sum(oi_wires *w, uint32_t *terms, size_t n); /* exact, as a tree */
bool oi_wire_is_const(const oi_wires *w, uint32_t id, int64_t *value);
uint32_t oi_range_bits(oi_range r);                           /* as a signed number */
bool oi_wire_multiplies(const oi_wires *w, const oi_wire *x); /* it takes a multiplier */

/* -- the parts -- */

/* A tensor on its way: one beat holds all elements that are not constants. */
typedef struct oi_flow_stream {
    uint32_t tensor, producer; /* a kernel of the flow, or OI_NO_ID: an input, or state */
    bool is_state;             /* what the step before has left */
    bool is_early;             /* it hangs on state alone: it is there before the step begins */
    const char *name;
    uint64_t n;             /* elements */
    oi_range *range;        /* by element; a constant has one value */
    uint32_t *offset, bits; /* by element: where its bits begin; all of them */
    uint64_t latency;       /* clocks from the inputs to its beat */
    uint64_t interval;      /* between two of them, as long as nothing waits */
    uint32_t n_consumers;   /* edges that begin here */
} oi_flow_stream;

/* Persistent memory: its value goes from step to step in a FIFO that begins with one beat. */
typedef struct oi_flow_state {
    const oi_store_var *var;
    uint32_t from, to; /* streams: what a step reads, and what it leaves */
    uint32_t edge;     /* of `to`, that leads back */
} oi_flow_state;

/* A FIFO before a consumer. */
typedef struct oi_flow_edge {
    uint32_t stream, consumer; /* a kernel of the flow, or OI_NO_ID: an output */
    uint32_t number;           /* of those of the stream */
    bool is_sent;              /* it is an output */
    uint32_t shows;            /* an output: the stream whose elements it sends */
    uint64_t depth;            /* beats */
} oi_flow_edge;

typedef struct oi_flow_result {
    uint32_t stream;
    uint64_t n;
    const uint32_t *wires, *phases; /* by element: its wire, and the phase in which it is there */
} oi_flow_result;

typedef struct oi_flow_kernel {
    uint32_t kernel; /* of the plan */
    const char *entity;
    oi_wires wires;
    OI_VEC(uint32_t) in; /* streams */
    OI_VEC(oi_flow_result) out;
    const char **in_names, **out_names; /* of their ports */
    uint32_t depth;                     /* stages */
    uint64_t latency, multipliers, luts, ffs, memory_bits;
} oi_flow_kernel;

typedef struct oi_flow {
    oi_circuit *h;
    OI_VEC(oi_flow_stream) streams;
    OI_VEC(oi_flow_kernel) kernels;
    OI_VEC(oi_flow_edge) edges;
    OI_VEC(oi_flow_state) states;
    uint64_t *base;           /* by tensor: of a view, its first element */
    uint32_t *current;        /* by tensor: the stream of its present value, or OI_NO_ID */
    const void **contents;    /* by tensor: of a constant */
    OI_VEC(uint32_t) outputs; /* streams, by output of the graph */
    uint64_t interval, latency;
    uint32_t fold, digits; /* at most so many phases; see oi_wires */
    const char *why;       /* it has no such form */
} oi_flow;

/* -- flow_unroll.c: nests as wires -- */

/* Fills the last kernel of the flow with at most *left instructions; false: f->why says what is in
 * the way. */
bool oi_flow_unroll(oi_flow *f, oi_flow_kernel *k, uint64_t *left);
/* An element of a constant, or of what a tensor holds before it is written. */
bool oi_flow_element(const oi_flow *f, uint32_t tensor, uint64_t e, int64_t *value);

/* The first element of what a port sees; f->why, if only the run knows. */
uint64_t oi_flow_base(oi_flow *f, const oi_port *p);

/* -- flow_stages.c: registers -- */

/* Cuts the wires of a kernel into stages, and counts what they take. */
void oi_flow_stages(const oi_flow *f, oi_flow_kernel *k);

/* -- flow.c: the design -- */

/* The pipelined form; NULL: the graph has none, and *why says why, or files->status. */
oi_flow *oi_flow_new(oi_circuit *h, const char **why);

/* -- flow_kernel.c, flow_top.c, flow_bench.c: its text -- */

void oi_flow_put_kernels(oi_flow *f);
void oi_flow_put_top(oi_flow *f);
void oi_flow_put_bench(const oi_flow *f);

#endif
