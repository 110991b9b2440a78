/* facts.h: what is known of statements before a program runs: which of them may fail, how often
 * they run, which part of persistent memory they select. Passes and emitters ask here; nothing here
 * changes the unit. Grouped by the file that implements it. */
#ifndef OI_FACTS_H
#define OI_FACTS_H

#include "synth/synth.h"

/* -- codes.c: arithmetic of index expressions -- */

typedef enum oi_code_check {
    OI_CHECK_OVERFLOW = 1, /* the result may not fit 64 bits */
    OI_CHECK_ZERO = 2      /* the divisor may be 0 */
} oi_code_check;

/* By instruction of the code: what the program must check at run time (bits of oi_code_check). */
const uint8_t *oi_code_checks(oi_arena *a, const oi_program *p, const oi_code *code);
bool oi_code_may_fail(const oi_program *p, const oi_code *code);
/* The model lacks some entry of the table that the port may select. */
bool oi_entry_may_lack(const oi_tensor *t, const oi_port *p);
/* Selecting the entry may fail: an index is out of range, or the entry is missing. */
bool oi_entry_may_fail(const oi_program *p, const oi_tensor *t, const oi_port *port);

/* -- selection.c: selections of persistent memory -- */

typedef enum oi_axis_check {
    OI_AXIS_NEGATIVE = 1, /* the start may be below 0 */
    OI_AXIS_BACKWARD = 2, /* the end may be before the start */
    OI_AXIS_END = 4,      /* the end may be beyond the limit */
    OI_AXIS_SHAPE = 8,    /* the number of positions may differ from the other operand's */
    OI_AXIS_BOUND = 16    /* a run-time length may exceed its bound */
} oi_axis_check;

typedef struct oi_selected_axis {
    int64_t start, given; /* the first position and how many; -1: known only at run time */
    int64_t count;        /* the same as `given` once the checks of the shape have passed */
    bool keeps;           /* the axis stays in the result */
    bool is_inside;       /* a single position, known to be inside the storage */
    uint8_t checks;       /* bits of oi_axis_check */
} oi_selected_axis;

typedef struct oi_selection {
    uint32_t rank;
    oi_selected_axis axes[2 * OI_MAX_RANK];
    uint32_t run; /* from this axis on the selection is contiguous; rank: single elements */
    bool grows;   /* the selectors say how far the variable has grown (oi_access_is_growth) */
    bool may_fail;
} oi_selection;

/* Of a cache statement that is no increment or decrement. */
void oi_selection_find(const oi_unit *u, uint32_t graph, const oi_stmt *s, oi_selection *out);

/* The dim from which on the part of the state is contiguous; its rank: single elements. */
uint32_t oi_part_run(const oi_tensor *t, const oi_port *part);
uint64_t oi_part_most(const oi_tensor *t, const oi_port *part, uint32_t dim); /* positions */

/* -- calls.c: which blocks call which, how often, and what may fail -- */

/* Fills in the order and the run counts of the graph's blocks, and may_fail of all statements. */
void oi_calls_find(oi_unit *u, uint32_t graph);
uint64_t oi_loop_times(const oi_stmt *loop);               /* iterations; UINT64_MAX: unbounded */
uint64_t oi_times_of(uint64_t a, uint64_t b);              /* a product of such numbers */
bool oi_yield_runs(const oi_program *p, const oi_stmt *s); /* a yield that may run consumers */

#endif
