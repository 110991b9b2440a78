/* emit.h: printing a plan. Emitters decide nothing: the plan (src/plan/plan.h) says what runs, in
 * which order and in which memory. Grouped by the file that implements it. */
#ifndef OI_EMIT_H
#define OI_EMIT_H

#include "kernel/meaning.h"
#include "plan/plan.h"

/* -- targets.c: what can be emitted -- */

typedef struct oi_emitted_file {
    const char *name;
    char *text;
    size_t size;
} oi_emitted_file;

struct oi_emitted {
    oi_emitted_file *at;
    size_t n, cap;
    oi_status status; /* a target refuses */
};

/* The file takes ownership of the text. */
void oi_emit_file(const oi_plan *u, oi_emitted *files, const char *name, oi_buf *text);

/* -- out.c: text with indentation -- */

typedef struct oi_out {
    oi_buf buf;
    unsigned depth;
} oi_out;

void oi_out_line(oi_out *o, const char *fmt, ...) OI_PRINTF(2, 3); /* "" is an empty line */
void oi_out_open(oi_out *o, const char *fmt, ...) OI_PRINTF(2, 3); /* "TEXT {", then indents */
/* A call or signature on one line, or with one argument per line. */
void oi_out_call(oi_out *o, const char *text);
void oi_out_brace(oi_out *o);                    /* "{" alone */
void oi_out_close(oi_out *o, const char *after); /* "}AFTER" */
void oi_out_text(oi_out *o, const char *text);   /* several lines, unchanged */
/* The same, with NAME replaced by `name`. */
void oi_out_named(oi_out *o, const char *text, const char *name);

/* -- helpers.c: functions that emitted code calls -- */

typedef struct oi_helper {
    const char *name, *text;
    const char *isa; /* the instruction set it needs; "": none */
} oi_helper;

extern const oi_helper oi_helpers[]; /* generated; ends with a NULL name */

/* The helpers of the table that the text calls, and those that they call, in dependency order and
 * in the target's variant. Returns the header that declares their instructions, or NULL if there is
 * none. `inlines`: functions of numbers are marked always_inline. */
const char *oi_helpers_for(oi_arena *a, const oi_helper *table, const oi_device_info *target,
                           const char *text, bool inlines, oi_buf *out);

bool oi_is_word(char c); /* a letter, a digit or _ */
/* Finds the next word of code, outside comments and strings. The previous word is at *at, *size
 * characters long; *size 0 at the start. False at the end. */
bool oi_next_word(const char **at, size_t *size);

/* Name of a helper's parameter n; NULL: it has no such parameter. */
const char *oi_helper_parameter(oi_arena *a, const oi_helper *table, const char *helper,
                                uint32_t n);

/* A word of the text that looks like a helper but is not in the table; NULL: there is none. */
const char *oi_helpers_missing(oi_arena *a, const oi_helper *table, const char *text);

/* Whether a body refers to a definition that is printed with it: expressions of op rows and helpers
 * decide which types and lengths it needs. Nothing else is found by reading printed text. */
bool oi_text_has_word(const char *text, const char *word);

/* -- settle.c: names of the graph in the text of a function -- */

#define OI_FROM_GRAPH "\x01" /* prefix of such a name until the text is settled */

typedef struct oi_settler oi_settler;
oi_settler *oi_settler_new(oi_arena *a, bool (*is_forbidden)(const char *name));
/* The text from `from` on is one function: its marked names become final. */
void oi_settle(oi_settler *s, oi_buf *text, size_t from);

/* -- formula.c: numbers that hang on lengths -- */

typedef const char *oi_spell_scalar(void *ctx, uint32_t scalar);
const char *oi_formula_text(oi_arena *a, const oi_formula *f, oi_spell_scalar *spell, void *ctx);
bool oi_formula_is_length(const oi_formula *f, uint32_t *scalar); /* it is that scalar alone */

/* -- kernel.c: what kernels of all languages have in common -- */

#define OI_AXIS_LETTERS "ijkpqrtuvw" /* loop counters; l, n and e have other uses */

/* By port: its name. */
const char **oi_kernel_port_names(oi_arena *a, const oi_plan *u, const oi_skernel *k);
/* The statement as written, without its line end. NULL if the graph has no text. */
const char *oi_node_source(oi_arena *a, const oi_plan *u, uint32_t graph, const oi_pnode *n);
/* Without folders: emitted text does not depend on where it was made. */
const char *oi_file_name(const char *path);
/* The number of ops that the device's precision changed, and a sentence about them. */
uint64_t oi_plan_count_lowered(const oi_plan *u);
const char *oi_plan_lowered_text(oi_arena *a, const oi_plan *u);
/* By oi_fn: the text of the kernel's formulas: the name of a length, or of a constant. */
const char **oi_kernel_fn_names(oi_arena *a, const oi_skernel *k, const char *const *scalars);
/* Definitions of those constants that the body uses. */
const char *oi_kernel_fn_texts(oi_arena *a, const oi_skernel *k, const char *const *scalars,
                               const char *const *names, const char *index, const char *body);
/* Whether the function that the kernel calls is printed for it: kernels with equal functions share
 * the first one's. */
bool oi_kernel_has_function(const oi_plan *u, const oi_skernel *k);
/* One comment per node that the kernel implements, and those that share its function. */
void oi_kernel_put_source(oi_out *o, oi_arena *a, const oi_plan *u, const oi_skernel *k);

/* -- group.c: workgroups of a GPU -- */

/* How invocations are grouped, read off the levels of the nests of one dispatch. */
typedef struct oi_group {
    int64_t size;           /* invocations */
    int64_t lanes;          /* that work on one position together; 1: each has its own */
    int64_t positions;      /* of a group: size / lanes */
    bool is_apart;          /* lanes of a position are `positions` invocations apart */
    bool has_shuffle;       /* invocations of a subgroup exchange sums without memory */
    const char *first_lane; /* condition for the lane that keeps a result */
} oi_group;

oi_group oi_group_of(const oi_plan *u, const oi_snest *nests, size_t n);
bool oi_group_sums(const oi_snest *n); /* lanes make a sum of the nest together */

/* -- nest.c: loops in a C-like language -- */

typedef struct oi_nest_printer oi_nest_printer;
typedef struct oi_printing oi_printing; /* a nest being printed: nest.h */

/* How a language with workgroups spells what their invocations do together. */
typedef struct oi_lane_words {
    const char *number;    /* unsigned type of 32 bits */
    const char *barrier;   /* all invocations of the group wait for each other */
    const char *shuffle;   /* "shuffle_xor(", before a value and a distance */
    const char *subgroup;  /* how many exchange values so */
    int64_t subgroup_size; /* the same; 0: it is known only at run time */
    /* Before loops of sums, so that loads do not wait for each other: of one place at a time, and
     * of several; NULL: nothing. */
    const char *unroll_one, *unroll_some;
} oi_lane_words;

/* What differs between languages; expressions are printed by its dialect. */
typedef struct oi_lang {
    const oi_dialect *dialect;
    const oi_helper *helpers;
    const char *index;       /* type of positions */
    const char *whole_index; /* type of non-negative positions if it divides faster, or NULL */
    const char *as_index;    /* converts an i64 to that type; NULL: no conversion needed */
    const char *in_vectors;  /* printed before a loop that becomes vectors: compilers must not
                                unroll it first; NULL: not needed */
    const char *exact;       /* printed before a float's type, so that products and sums are not
                                contracted */
    /* Reads the element at text `at`, converted to its compute type. */
    void (*load)(const oi_nest_printer *p, const oi_sop *op, const char *at, oi_buf *out);
    /* The same for element `part` of those that share the byte at `at`; NULL: not needed. */
    void (*load_part)(const oi_nest_printer *p, const oi_sop *op, const char *at, unsigned part,
                      oi_buf *out);
    void (*store)(const oi_nest_printer *p, const oi_sop *op, const char *at, const char *value,
                  oi_buf *out);
    void (*fail)(oi_out *o, int code, const char *why); /* ends the kernel */
    const oi_lane_words *lane_words;                    /* of languages with workgroups, or NULL */
    const char *(*literal)(oi_arena *a, oi_dtype t, uint64_t bits);
    /* Languages unlike C; NULL: as C does it. A value that gets a name; a value whose type is
     * another one of the same meaning; a position as an i64; what joins two conditions. */
    void (*define)(oi_printing *x, oi_dtype form, const char *name, const char *text);
    const char *(*cast)(oi_arena *a, oi_dtype from, oi_dtype to, const char *text);
    const char *(*wide)(oi_arena *a, const char *position);
    const char *both;
    /* Takes an expression whose names are bound, instead of its text; returns the text that stands
     * for its value. NULL: it is printed. */
    const char *(*evaluate)(oi_printing *x, const oi_meaning *m, const oi_m_name *names, size_t n);
} oi_lang;

extern const oi_lang oi_lang_c, oi_lang_c32; /* positions of 64 bits, and of 32 */
const char *oi_c_literal(oi_arena *a, oi_dtype t, uint64_t bits);

struct oi_nest_printer {
    oi_arena *arena;
    oi_out *out;
    const oi_lang *lang;
    const oi_plan *plan;
    const oi_skernel *kernel;
    const char *const *ports;   /* by port: its name */
    uint32_t n_open;            /* outermost axes whose positions the surrounding text defines */
    const char *const *scalars; /* by scalar: its name; NULL: the kernel's own */
    const char *const *fns;     /* by oi_fn: the text of its value; NULL if there are none */
    const oi_group *group;      /* of a language with workgroups, or NULL */
    oi_out *declared;           /* of a language that declares names apart from their values */
};

void oi_nest_print(const oi_nest_printer *p, const oi_snest *n);
/* Prints only what follows the reduction, whose result is in `acc`. */
void oi_nest_print_end(const oi_nest_printer *p, const oi_snest *n);
/* Opens the loops that all nests of the kernel share; the caller closes as many braces. */
void oi_nest_open_shared(const oi_nest_printer *p, const oi_snest *n);

/* -- lane.c: sums that invocations of a workgroup make together -- */

const char *oi_lane_type(const oi_lang *lang, const oi_snest *n); /* of those sums */
/* Whether an earlier nest's sums have the type of nest i. */
bool oi_lane_is_declared(const oi_lang *lang, const oi_snest *nests, size_t i);
/* Where this lane's loop over an axis begins; at `end` if it has none of its places. */
const char *oi_lane_begin(const oi_nest_printer *p, int64_t lanes, const char *end);
/* The sum of what the lanes have in `acc`, in the first one. */
void oi_lane_sum(oi_printing *x, const char *acc, int64_t lanes);

/* -- c/: C -- */

/* The first f64 function that the text calls and a freestanding program lacks, *n characters long;
 * NULL: none. */
const char *oi_c_missing(const char *text, size_t *n);

/* -- glsl/: compute shaders -- */

/* generated: with 64-bit integers, and with two words instead */
extern const oi_helper oi_glsl_helpers[], oi_glsl_words_helpers[];

/* -- fit.c: what the device must have -- */

/* Clocks of a circuit from the beginning of a step to its end, and from one beginning to the next.
 */
typedef struct oi_clocks {
    uint64_t least, most; /* equal but for branches; most UINT64_MAX: unbounded */
    uint64_t interval;    /* 0: a step begins when the last one is over */
} oi_clocks;

/* What a circuit is made of, as predicted. */
typedef struct oi_circuit_part {
    const char *kernel;
    uint64_t clocks, phases; /* from its first input to its last result; a beat keeps it busy */
    uint64_t multipliers;    /* that work at once */
    uint64_t luts, ffs;      /* of pipelined circuits */
    uint64_t memory_bits;    /* of its tables; of tensors that it writes, and constants it reads */
} oi_circuit_part;

typedef struct oi_circuit_cost {
    const char *serial_why; /* one kernel runs after the other, because ...; NULL: all at once */
    const oi_circuit_part *parts;
    size_t n_parts;
    uint64_t memory_bits; /* of all other tensors */
} oi_circuit_cost;

struct oi_certificate {
    /* RAM: the program's struct, and its parts: */
    uint64_t struct_bytes, state_bytes, arena_bytes, undo_bytes, io_bytes;
    uint64_t stack_bytes;           /* reserved for a step; 0: the system provides it */
    uint64_t ram_bytes;             /* struct and stack */
    uint64_t weights_bytes;         /* read only */
    uint64_t n_checked, n_barriers; /* accesses and barriers that the plan checker verified */
    const oi_clocks *clocks;        /* by graph; NULL: the device has no clock of its own */
    const oi_circuit_cost *circuit; /* NULL: it is no circuit */
    bool is_measured;
    oi_plan_measured measured;
};

/* Refuses (E062) what the device cannot hold, with the largest users of memory. */
oi_status oi_fit_check(const oi_plan *u, const oi_certificate *c);

/* -- plan_json.c: the plan for other programs -- */

void oi_plan_json(const oi_plan *u, const oi_certificate *c, oi_buf *out);

/* -- report.c: the plan for people -- */

void oi_report_html(const oi_plan *u, const oi_certificate *c, oi_buf *out);

/* -- weights.c -- */

#define OI_WEIGHTS_VERSION 1u /* of the format */

/* Adds the contents of one entry of a tensor. */
oi_status oi_weights_entry(const oi_plan *u, const oi_tensor *t, uint64_t entry, oi_buf *out);
oi_status oi_weights_hash(const oi_plan *u, uint64_t *out);
/* Is told how many bytes of all are written; `tell` may be NULL. */
typedef struct oi_weights_progress {
    void (*tell)(void *ctx, uint64_t written, uint64_t all);
    void *ctx;
} oi_weights_progress;
/* Also finds the hash, which the plan need not have yet. */
oi_status oi_weights_write(const oi_plan *u, int fd, oi_weights_progress progress, uint64_t *hash);
/* The same as a C array; the plan has the hash. */
oi_status oi_weights_write_c(const oi_plan *u, int fd);

#endif
