/* sim.h: the executor inside the library. Grouped by the file that implements it.
 *
 * A simulator holds what never changes (program, prepared ops, weights); an executor holds the
 * values. Each thread of execution (entry, and every consumer) is a context with its own view of
 * the variables; buffers are shared between views until somebody writes. */
#ifndef OI_SIM_H
#define OI_SIM_H

#include "kernel/kernel.h"
#include "program/bind.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct oi_ctx oi_ctx;
typedef struct oi_twin oi_twin;       /* the copy of a tensor on a device */
typedef struct oi_remotes oi_remotes; /* a device that runs ops */

/* -- budget.c: who holds how much, and the limit on all of it -- */

typedef struct oi_weights oi_weights;

typedef enum oi_held {
    OI_HELD_TENSORS, /* the model's, as a whole */
    OI_HELD_CHUNKS,  /* parts of them */
    OI_HELD_VALUES,  /* variables, and copies that were fetched */
    OI_HELD_SCRATCH, /* of the node that runs */
    OI_HELD_STATE,   /* persistent variables, and what takes a step back */
    OI_HELD_COUNT
} oi_held;

typedef struct oi_budget {
    pthread_mutex_t lock;
    uint64_t limit; /* 0: none; everything is counted all the same */
    uint64_t now[OI_HELD_COUNT], peak[OI_HELD_COUNT], total, total_peak;
    uint64_t refused;    /* what the limit would have had to be; 0: nothing was refused */
    oi_weights *weights; /* whose tensors may leave; NULL: none */
} oi_budget;

void oi_budget_init(oi_budget *b, uint64_t limit);
void oi_budget_end(oi_budget *b);
/* False when the limit has no room for it. A budget of NULL grants everything. */
bool oi_budget_take(oi_budget *b, oi_held kind, uint64_t n);
void oi_budget_give(oi_budget *b, oi_held kind, uint64_t n);
uint64_t oi_budget_room(oi_budget *b);    /* that can be had, once idle tensors have left */
uint64_t oi_budget_refused(oi_budget *b); /* the last refusal since the last call; 0: none */
/* For weights.c, which holds the lock. */
bool oi_budget_fits(const oi_budget *b, uint64_t n);
void oi_budget_count(oi_budget *b, oi_held kind, uint64_t n);
void oi_budget_uncount(oi_budget *b, oi_held kind, uint64_t n);

/* -- buffer.c: bytes with owners -- */

#define OI_BUFFER_ALIGN 64u /* a cache line, and the widest vector */

typedef struct oi_buffer {
    atomic_uint refs;
    oi_held kind;
    uint64_t size; /* usable bytes */
    void *data;
    oi_budget *budget;
    oi_twin *twin; /* a copy on a device, or NULL: remote.c */
    bool is_mapping;
    bool is_remote; /* the twin has the value, and data does not */
} oi_buffer;

/* Not cleared. NULL when memory is out, or the limit refuses. */
oi_buffer *oi_buffer_new(oi_budget *budget, oi_held kind, uint64_t size);
uint64_t oi_buffer_cost(uint64_t size);   /* what such a buffer counts */
oi_buffer *oi_buffer_share(oi_buffer *b); /* NULL stays NULL */
void oi_buffer_drop(oi_buffer *b);
bool oi_buffer_is_own(const oi_buffer *b); /* it has no other reader */

/* n elements from position `at` of dst become `bits`; packed types keep their neighbours. */
void oi_elements_fill(oi_dtype t, void *dst, uint64_t at, uint64_t n, uint64_t bits);
/* n elements from src[from] to dst[to]; the two do not overlap. */
void oi_elements_copy(oi_dtype t, void *dst, uint64_t to, const void *src, uint64_t from,
                      uint64_t n);

/* -- weights.c: model tensors, least recently used out first -- */

oi_weights *oi_weights_new(oi_model *m, oi_budget *budget); /* NULL: no memory */
void oi_weights_free(oi_weights *w);
/* True when a lent pointer stays good without asking again. */
bool oi_weights_is_stable(const oi_weights *w);
/* Lends tensor i. Unless stable, pinned until the matching release. */
oi_status oi_weights_get(oi_weights *w, size_t i, const void **out, oi_diag *d);
void oi_weights_release(oi_weights *w, size_t i);
oi_status oi_weights_check(oi_weights *w, oi_diag *d); /* is the file still whole? once a step */
/* n elements of tensor i from element `from` on, to element `at` of dst. Nothing stays resident. */
oi_status oi_weights_read(oi_weights *w, size_t i, uint64_t from, uint64_t n, void *dst,
                          uint64_t at, oi_diag *d);
bool oi_weights_is_resident(oi_weights *w, size_t i);
void oi_weights_trim(oi_weights *w); /* gives back what a limit counts and no node uses now */
/* For budget.c, which holds its lock. */
void oi_weights_make_room(oi_weights *w, uint64_t n); /* for n more bytes, as far as it goes */
uint64_t oi_weights_idle(const oi_weights *w);        /* bytes that could leave */

/* -- grid.c: arrays that grow along any axis -- */

#define OI_GRID_RANK (2 * OI_MAX_RANK) /* table axes, then the dims of an entry */

typedef struct oi_box {
    uint64_t start[OI_GRID_RANK], count[OI_GRID_RANK];
} oi_box;

/* Storage may be smaller than the sizes: what is not stored reads as `init`. */
typedef struct oi_grid {
    oi_dtype dtype;
    uint32_t rank, n_table;
    uint64_t init;               /* bits */
    uint64_t size[OI_GRID_RANK]; /* as the graph sees it */
    uint64_t cap[OI_GRID_RANK];  /* as stored */
    oi_budget *budget;           /* that counts the storage */
    uint8_t *data;               /* row-major over cap; NULL when nothing is stored */
    uint8_t *written;            /* a byte per stored table entry; NULL without table axes */
} oi_grid;

void oi_grid_free(oi_grid *g);
bool oi_grid_copy(const oi_grid *from, oi_grid *to); /* false: no memory */
/* Room for the box. Axes double, but not past most[]. False: no memory. */
bool oi_grid_reserve(oi_grid *g, const oi_box *box, const uint64_t *most);
void oi_grid_read(const oi_grid *g, const oi_box *box, void *dst);  /* dense, row-major */
void oi_grid_write(oi_grid *g, const oi_box *box, const void *src); /* what is stored of it */
void oi_grid_fill(oi_grid *g, const oi_box *box);                   /* with init, where stored */
/* The table entries of a box: marks them; whether any is marked. */
void oi_grid_mark(oi_grid *g, const oi_box *box, bool written);
bool oi_grid_is_marked(const oi_grid *g, const oi_box *box);
void oi_grid_measure(const oi_grid *g, uint64_t *sizes); /* of table axes, from the marks */
void oi_grid_save_marks(const oi_grid *g, const oi_box *box, uint8_t *dst);
void oi_grid_load_marks(oi_grid *g, const oi_box *box, const uint8_t *src);
bool oi_box_count(const oi_grid *g, const oi_box *box, uint64_t *elements, uint64_t *bytes);
/* The box where it is one stored range of whole bytes, else NULL. */
const void *oi_grid_view(const oi_grid *g, const oi_box *box);
/* Whether all of a box is stored, and then the bytes from its first element to its last. */
bool oi_grid_range(const oi_grid *g, const oi_box *box, const uint8_t **from, const uint8_t **to);

/* -- state.c: a persistent variable and how to take a step back -- */

typedef struct oi_undo oi_undo;
typedef struct oi_slot oi_slot;

/* A variable that shows part of the grid instead of a copy; see oi_state_recall. */
typedef struct oi_lend {
    oi_slot *slot;
    const uint8_t *data;
    uint64_t n_bytes;
} oi_lend;

/* Shared by executors made beside each other. One mutator at a time touches it. */
typedef struct oi_state {
    const oi_pvar *var; /* of the executor that made it */
    oi_sim *sim;        /* likewise: kept alive, for its model data */
    atomic_uint refs;
    oi_grid grid;
    uint64_t most[OI_GRID_RANK]; /* per axis; UINT64_MAX when unbounded */
    oi_undo *undo;               /* newest first; NULL when the step has changed nothing */
    uint64_t undo_bytes;
    bool has_shadow; /* `shadow` is the grid as it was: nothing more to log */
    oi_grid shadow;
    oi_lend *lends; /* some may be over: the slot then holds something else */
    uint32_t n_lends, cap_lends;
    pthread_mutex_t lock; /* in parallel: one access at a time */
} oi_state;

oi_status oi_state_new(oi_sim *sim, const oi_pvar *v, oi_state **out, oi_diag *d);
void oi_state_drop(oi_state *s);
/* The slot, which has just borrowed data, is told before that changes. False: no memory. */
bool oi_state_view(oi_state *s, oi_slot *slot);
/* Before the box is written (NULL: before storage moves or goes): who shows it gets a copy. */
bool oi_state_recall(oi_state *s, const oi_box *box);
bool oi_state_log(oi_state *s, const oi_box *box); /* before the box is overwritten */
bool oi_state_log_sizes(oi_state *s);              /* before only sizes change */
/* Takes everything out, which only a commit ends. The grid is empty afterwards. */
bool oi_state_log_all(oi_state *s);
void oi_state_commit(oi_state *s);                /* the step succeeded */
void oi_state_rollback(oi_state *s);              /* the step failed */
oi_status oi_state_load(oi_state *s, oi_diag *d); /* the initial value, from the model or init */
void oi_state_whole(const oi_state *s, oi_box *out);

/* -- memory.c, prefix.c: the variables of a context -- */

/* The value of a variable (or of one entry of a prefix table) in one context. */
struct oi_slot {
    const void *data;  /* good when epoch is the step's */
    oi_buffer *buffer; /* owns data, unless is_weight; kept for the next write otherwise */
    oi_buffer *spare;  /* the buffer before, for ops that cannot work in place */
    const uint64_t *dims;
    uint64_t *own_dims; /* `?` variables: room for dims */
    uint64_t n_elements, size_bytes;
    uint64_t epoch;   /* the step this holds for */
    size_t tensor;    /* is_weight: which */
    bool is_weight;   /* data is the model's */
    bool is_borrowed; /* data is persistent memory's */
    bool is_lent;     /* yielded by entry */
    bool is_dirty;    /* written in this context since it started */
    bool is_inserted; /* by the host, for the next step */
};

/* Which model tensor an entry of a prefix table is: found once, for all contexts. */
typedef struct oi_prefix oi_prefix;

typedef struct oi_entries { /* of one prefix table, that this context has used */
    oi_slot **at;           /* by entry; NULL until used */
    size_t n;
} oi_entries;

typedef struct oi_input {
    const void *data;
    const uint64_t *dims;
    uint32_t rank;
    oi_dtype dtype;
    uint64_t n_elements, size_bytes;
    oi_slot *slot; /* NULL for a loop index */
} oi_input;

typedef struct oi_out {
    void *data;
    const uint64_t *dims;
    uint32_t rank;
    oi_dtype dtype;
    uint64_t n_elements, size_bytes;
    oi_slot *slot;
    oi_buffer *fresh;   /* becomes the slot's buffer; NULL: the slot's own is used */
    uint64_t *own_dims; /* likewise its dims; NULL: they are in place */
} oi_out;

oi_prefix *oi_prefix_new(uint32_t n_axes); /* NULL: no memory */
void oi_prefix_free(oi_prefix *p);
#define OI_NO_TENSOR SIZE_MAX /* an entry that is in the model, without data */
/* The entry for these indices. Reports through the context. */
oi_status oi_prefix_find(oi_ctx *c, oi_span at, const oi_pvar *v, const int64_t *indices,
                         size_t *entry, size_t *tensor);

void oi_slot_drop(oi_slot *s);
oi_status oi_mem_read(oi_ctx *c, const oi_pref *ref, oi_input *out);
/* As oi_mem_read, but data of the model's tensors, and of values on a device, is NULL until it is
 * fetched. */
oi_status oi_mem_locate(oi_ctx *c, const oi_pref *ref, oi_input *out);
oi_status oi_mem_fetch(oi_ctx *c, oi_input *in);
oi_status oi_mem_read_var(oi_ctx *c, uint32_t var, oi_span span, oi_input *out);
/* Lent or not; `indices` of a prefix table, else NULL. */
oi_status oi_mem_peek(oi_ctx *c, uint32_t var, const int64_t *indices, oi_input *out);
/* Room for a value of exactly the declared size, which holds for the current step. */
void *oi_mem_insert(oi_ctx *c, uint32_t var);
/* The whole value will be written. `dims` for `?` variables; NULL: the declared ones. With `apart`
 * the old bytes stay readable until the commit. Nothing is seen before the commit. */
oi_status oi_mem_write(oi_ctx *c, const oi_pref *ref, const uint64_t *dims, bool apart,
                       oi_out *out);
/* The whole value is what lies at data, until oi_slot_own. NULL slot: not possible, write it. */
oi_status oi_mem_borrow(oi_ctx *c, const oi_pref *ref, const uint64_t *dims, const void *data,
                        oi_slot **slot);
bool oi_slot_own(oi_budget *budget,
                 oi_slot *s); /* a borrowed value becomes a copy; false: no memory */
void oi_mem_commit(oi_ctx *c, oi_out *out);
void oi_mem_cancel(oi_out *out);
oi_status oi_mem_transfer(oi_ctx *c, const oi_pref *from, const oi_pref *to);
oi_status oi_mem_i64(oi_ctx *c, uint32_t var, oi_span span, int64_t *out); /* rank 0 */
oi_status oi_mem_truth(oi_ctx *c, uint32_t var, oi_span span, bool *out);
void oi_mem_release(oi_ctx *c); /* what the node has pinned */
/* `to` sees what `from` sees now. False: no memory. */
bool oi_mem_view(oi_ctx *to, oi_ctx *from, uint32_t var);
void oi_mem_publish(oi_ctx *from, oi_ctx *to, uint32_t var); /* what `from` has written */

/* -- cache.c: cache.read, write, increment, decrement, reset -- */

oi_status oi_cache_run(oi_ctx *c, const oi_pnode *n);

/* -- op.c: ops through the kernels -- */

typedef struct oi_op_plan oi_op_plan;

oi_status oi_op_prepare(oi_sim *s, oi_diag *d); /* every node whose types are known now */
void oi_op_release(oi_sim *s);
oi_status oi_op_expect(oi_sim *s, oi_diag *d); /* tells the device the calls of those nodes */
oi_status oi_op_execute(oi_ctx *c, const oi_pnode *n);

/* -- remote.c: ops and values on a device -- */

/* Opens the device that the options name. Without one nothing below does anything. */
oi_status oi_remote_open(oi_sim *s, oi_diag *d);
void oi_remote_close(oi_sim *s);
/* Calls that are known before the run: their shaders are compiled together. */
oi_status oi_remote_expect(oi_sim *s, const oi_kernel_query *const *queries, size_t n, oi_diag *d);
const char *oi_remote_name(const oi_sim *s); /* of the device in traces; NULL: there is none */
/* The host is about to replace the contents, or they end: the copy goes. */
void oi_twin_forget(oi_buffer *b);
/* What the device has becomes the buffer's data: size_bytes of it. */
oi_status oi_remote_fetch(oi_ctx *c, oi_buffer *b, uint64_t size_bytes);
/* Runs a call there, its inputs located, its outputs apart from them. *done: it did; else the host
 * must. */
oi_status oi_remote_run(oi_ctx *c, const oi_kernel_query *q, oi_input *in, oi_out *out, bool *done);

/* -- exec.c: running -- */

typedef struct oi_node_text { /* for traces */
    const char *const *params, *const *output;
    uint32_t n_params, n_output;
} oi_node_text;

struct oi_sim {
    oi_program *program;
    oi_arena *arena;
    oi_sim_options options;
    oi_budget budget;     /* of all its executors */
    oi_weights *weights;  /* NULL without a model */
    oi_remotes *remotes;  /* NULL: ops run on the host */
    oi_prefix **prefixes; /* by variable; NULL for others */
    oi_op_plan **plans;   /* by node */
    oi_node_text *texts;  /* by node */
    char (*uuids)[OI_UUID_TEXT];
    atomic_uint users; /* executors and states alive; the handle counts as one */
};

typedef struct oi_frame {
    const oi_ids *list;
    uint32_t at;
    const oi_pnode *loop; /* NULL for a block */
    int64_t end, saved;   /* of the loop; the index before it */
} oi_frame;

/* Why a context cannot go on. */
typedef struct oi_fail {
    bool is_set;
    oi_status status;
    const char *code;
    const oi_node *node;
    oi_span span;
    char text[OI_INFER_TEXT];
} oi_fail;

typedef enum oi_run_state {
    OI_RUN_IDLE,      /* a consumer before its round */
    OI_RUN_READY,     /* has nodes to run */
    OI_RUN_SUSPENDED, /* a consumer in an await that cannot go on */
    OI_RUN_DONE
} oi_run_state;

#define OI_MAX_PINS \
    64u /* tensors one node may use at once; variadic ops beyond it copy nothing: E060 */

/* One thread of execution: entry or a consumer. */
struct oi_ctx {
    oi_exec *exec;
    uint32_t block, id; /* id: 0 entry, else 1 + place among the consumers */
    _Atomic oi_run_state state;
    pthread_t thread; /* consumers in parallel: runs it up to its end or an await */
    bool has_thread;
    oi_slot *slots;      /* by variable */
    oi_entries *entries; /* by variable; used for prefix tables */
    int64_t *indices;    /* by loop index */
    oi_frame *frames;
    uint32_t n_frames, cap_frames;
    const oi_pnode *node; /* being run */
    uint64_t *taken;      /* consumers: by variable, the round it has taken */
    uint64_t order;       /* entry: nodes it has run; consumers: at which of those they are */
    oi_buffer *scratch;
    uint64_t ns;    /* the last node took; 0 when the timer is off */
    bool on_device; /* that node ran there, for so long: */
    uint64_t device_ns;
    size_t pins[OI_MAX_PINS];
    uint32_t n_pins;
    oi_diag *diag; /* of the thread that runs it; NULL drops */
    oi_fail fail;
};

typedef struct oi_record { /* an executed node */
    uint32_t node, ctx;
    uint64_t step, start_ns, ns;
    uint64_t order, seq; /* nodes entry had run; records before this one */
    int64_t *iter;       /* values of the loops around it, outermost first */
    uint64_t *dims;      /* of what it wrote, where only the run knows them; else NULL */
    char *stats;         /* JSON, or NULL */
    bool on_device;
} oi_record;

typedef struct oi_group { /* executors that share state */
    atomic_uint refs;
    atomic_flag busy; /* one of them is in a step */
} oi_group;

struct oi_exec {
    oi_sim *sim;
    oi_group *group;
    oi_ctx *entry;
    oi_ctx **consumers;           /* in declaration order */
    oi_state **states;            /* by variable; NULL for others */
    uint64_t *rounds;             /* by variable: how often it was lent */
    uint64_t *lent_at;            /* by variable: entry's order when it was lent last */
    bool has_lent;                /* something was lent in this step */
    bool is_parallel;             /* consumers have threads in this step */
    pthread_mutex_t lock;         /* in parallel: what is lent, and who waits for it */
    uint64_t epoch;               /* of the current or last step; 1 before the first */
    uint64_t n_steps;             /* finished */
    atomic_uint_fast64_t n_nodes; /* begun, when options.max_nodes counts them */
    bool in_step;
    bool at_end;     /* oi_next has run the last node, the next call says so */
    oi_ctx *running; /* whose node ran last, while in a step */
    uint32_t *queue; /* consumers to run before entry goes on */
    uint32_t n_queue, at_queue;
    const oi_pnode *returned; /* entry's return of the last finished step */
    pthread_mutex_t trace_lock;
    oi_record *records;
    size_t n_records, cap_records;
    size_t step_records; /* of them before the current step */
    bool records_failed; /* memory ran out: the trace has holes */
    uint64_t start_ns;
    oi_threads *threads; /* of the kernels that entry runs; NULL: one */
    oi_buffer **fetched; /* by variable: copies of scattered persistent memory */
    uint64_t (*fetched_dims)[OI_GRID_RANK];
};

/* Records why the context cannot go on; returns OI_ERR_INPUT. */
oi_status oi_ctx_fail(oi_ctx *c, oi_span span, const char *code, const char *fmt, ...)
    OI_PRINTF(4, 5);
/* The machine has no memory for so many bytes, or the limit refuses them. */
oi_status oi_ctx_no_memory(oi_ctx *c, uint64_t bytes);
oi_status oi_sim_no_memory(oi_sim *s, const char *what, uint64_t bytes, oi_diag *d);
oi_status oi_ctx_reported(oi_ctx *c, oi_status status); /* the callee has written diagnostics */
oi_status oi_ctx_code(oi_ctx *c, const oi_code *code, const int64_t *own, int64_t *out);
oi_status oi_ctx_start(oi_ctx *c);
/* Runs one node. *ran is NULL when the context has finished or is suspended. */
oi_status oi_ctx_next(oi_ctx *c, const oi_pnode **ran);
void *oi_ctx_scratch(oi_ctx *c, uint64_t bytes);             /* NULL: no memory */
oi_ctx *oi_ctx_new(oi_exec *e, uint32_t block, uint32_t id); /* NULL: no memory */
void oi_ctx_free(oi_ctx *c);

/* -- async.c: yield and await -- */

oi_status oi_async_yield(oi_ctx *c, const oi_pnode *n);
oi_status oi_async_await(oi_ctx *c, const oi_pnode *n, bool *suspended);
oi_status oi_async_return(oi_ctx *entry); /* implicit await of all that is lent */
void oi_async_reset(oi_exec *e);          /* before a step, and after a failure */
/* Waits for all threads. The consumer that failed first in the order of the execution model, or
 * NULL. */
oi_ctx *oi_async_join(oi_exec *e);

/* -- trace.c -- */

void oi_trace_prepare(oi_sim *s); /* inside the guard of its arena */
void oi_trace_sort(oi_exec *e);   /* the current step's events, after a parallel run */
void oi_trace_add(oi_ctx *c, const oi_pnode *n, uint64_t start_ns, uint64_t ns);
void oi_event_fill(const oi_ctx *c, const oi_pnode *n, uint64_t ns, oi_event *out);
uint64_t oi_now_ns(void);

#endif
