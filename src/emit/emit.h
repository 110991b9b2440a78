/* emit.h: spelling a plan. Emitters decide nothing: what runs, in which order and where it lies is
 * in the unit (src/synth/synth.h). Grouped by the file that implements it. */
#ifndef OI_EMIT_H
#define OI_EMIT_H

#include "kernel/meaning.h"
#include "synth/synth.h"

/* -- targets.c: what can be emitted -- */

typedef struct oi_emitted_file {
    const char *name;
    char *text;
    size_t size;
} oi_emitted_file;

struct oi_emitted {
    oi_emitted_file *at;
    size_t n, cap;
};

/* The file takes over the text. */
void oi_emit_file(oi_unit *u, oi_emitted *files, const char *name, oi_buf *text);

/* -- out.c: text with indentation -- */

typedef struct oi_out {
    oi_buf buf;
    unsigned depth;
} oi_out;

void oi_out_line(oi_out *o, const char *fmt, ...) OI_PRINTF(2, 3); /* "" is an empty line */
void oi_out_open(oi_out *o, const char *fmt, ...) OI_PRINTF(2, 3); /* "TEXT {", then deeper */
/* A call or a signature as a line, or as several with the arguments below each other. */
void oi_out_call(oi_out *o, const char *text);
void oi_out_brace(oi_out *o);                    /* "{" alone */
void oi_out_close(oi_out *o, const char *after); /* "}AFTER" */
void oi_out_text(oi_out *o, const char *text);   /* lines as they are */
/* The same with `name` for every NAME in them. */
void oi_out_named(oi_out *o, const char *text, const char *name);

/* -- helpers.c: functions that emitted code calls -- */

typedef struct oi_helper {
    const char *name, *text;
    const char *isa; /* the instructions it needs; "": none */
} oi_helper;

extern const oi_helper oi_helpers[]; /* generated; ends with a NULL name */

/* The helpers of the table that the text calls, and those they call, in an order that compilers
 * accept, as the target has them. The result is the header that declares its instructions, or NULL:
 * they use none. */
const char *oi_helpers_for(oi_arena *a, const oi_helper *table, const oi_device_info *target,
                           const char *text, oi_buf *out);

bool oi_is_word(char c); /* a letter, a digit or _ */
/* The word of code after *size characters at *at, outside of comments and strings; *size 0 begins.
 * False: there is none. */
bool oi_next_word(const char **at, size_t *size);

/* What a helper calls its parameter n; NULL: it has none. */
const char *oi_helper_parameter(oi_arena *a, const oi_helper *table, const char *helper,
                                uint32_t n);

/* A word of the text that is called like a helper but is none of the table; NULL: all are there. */
const char *oi_helpers_missing(oi_arena *a, const oi_helper *table, const char *text);

/* -- settle.c: names of the graph in the text of a function -- */

#define OI_FROM_GRAPH "\x01" /* the mark before such a name, until the text is settled */

typedef struct oi_settler oi_settler;
oi_settler *oi_settler_new(oi_arena *a, bool (*is_forbidden)(const char *name));
/* Whether unsettled text mentions the word, which is the emitter's own. */
bool oi_text_has_own(const char *text, const char *word);
/* The text from `from` on is one function: its marked names get their final form. */
void oi_settle(oi_settler *s, oi_buf *text, size_t from);

/* -- manifest.c: which files of an output folder are ours -- */

/* Lists are names, each with a line end. NULL: the folder has none. */
oi_status oi_manifest_read(const char *dir, char **list, oi_diag *d);
/* Refuses to replace what the old list does not name. */
oi_status oi_manifest_check(const char *dir, const char *old, const char *list, oi_diag *d);
/* The names of both lists; old may be NULL. */
oi_status oi_manifest_write(const char *dir, const char *old, const char *list, oi_diag *d);
/* Writes it in another folder of this file system and moves it to dir: a process that is killed
 * leaves no temporary file there. */
oi_status oi_manifest_replace(const char *dir, const char *beside, const char *old,
                              const char *list, oi_diag *d);
void oi_manifest_remove(const char *dir, const char *old, const char *list); /* old ones */
oi_status oi_folder_make_parents(const char *dir, oi_diag *d);

/* -- formula.c: numbers that hang on lengths -- */

typedef const char *oi_spell_scalar(void *ctx, uint32_t scalar);
const char *oi_formula_text(oi_arena *a, const oi_formula *f, oi_spell_scalar *spell, void *ctx);
bool oi_formula_is_length(const oi_formula *f, uint32_t *scalar); /* just that scalar */

/* -- kernel.c: what kernels of all languages have in common -- */

#define OI_AXIS_LETTERS "ijkpqrtuvw" /* loops count by these; l, n and e have other uses */

/* By port: what it is called. */
const char **oi_kernel_port_names(oi_arena *a, const oi_unit *u, const oi_skernel *k);
/* The statement as written, without its line end; NULL for a graph without text. */
const char *oi_node_source(oi_arena *a, const oi_unit *u, uint32_t graph, const oi_pnode *n);
/* Without its folders: nothing that is emitted tells where it was made. */
const char *oi_file_name(const char *path);
/* Ops that the device's precision has changed, and a sentence about them. */
uint64_t oi_unit_n_lowered(const oi_unit *u);
const char *oi_unit_lowered_text(oi_arena *a, const oi_unit *u);
/* By oi_fn: how the kernel's formulas are spelled in its text: a length by its name, others by a
 * constant. */
const char **oi_kernel_fn_names(oi_arena *a, const oi_skernel *k);
/* Definitions of those constants that the body mentions. */
const char *oi_kernel_fn_texts(oi_arena *a, const oi_skernel *k, const char *const *names,
                               const char *index, const char *body);
bool oi_text_has_word(const char *text, const char *word);
/* A comment per node that the kernel does. */
void oi_kernel_put_source(oi_out *o, oi_arena *a, const oi_unit *u, const oi_skernel *k);

/* -- nest.c: loops in a C-like language -- */

typedef struct oi_nest_printer oi_nest_printer;

/* How a language differs; expressions are its dialect's. Where an expression wants an i64, a
 * position of a narrower type must do: it widens by itself. */
typedef struct oi_lang {
    const oi_dialect *dialect;
    const oi_helper *helpers;
    const char *index;       /* type of positions */
    const char *whole_index; /* of such that are not negative, when it divides faster; or NULL */
    const char *as_index;    /* makes one of an i64; NULL: it already is */
    const char *exact;       /* before a float's type, so that no product and sum are joined */
    /* How the element at text `at` reads, in the form it is computed in. */
    void (*load)(const oi_nest_printer *p, const oi_sop *op, const char *at, oi_buf *out);
    /* The same for element `part` of those that share the byte at `at`; NULL: no need. */
    void (*load_part)(const oi_nest_printer *p, const oi_sop *op, const char *at, unsigned part,
                      oi_buf *out);
    void (*store)(const oi_nest_printer *p, const oi_sop *op, const char *at, const char *value,
                  oi_buf *out);
    void (*fail)(oi_out *o, int code, const char *why); /* ends the kernel */
    const char *(*literal)(oi_arena *a, oi_dtype t, uint64_t bits);
} oi_lang;

extern const oi_lang oi_lang_c, oi_lang_c32; /* positions of 64 bits, or of 32 */
const char *oi_c_literal(oi_arena *a, oi_dtype t, uint64_t bits);

struct oi_nest_printer {
    oi_arena *arena;
    oi_out *out;
    const oi_lang *lang;
    const oi_unit *unit;
    const oi_skernel *kernel;
    const char *const *ports; /* by port: what it is called */
    uint32_t n_open;          /* outermost axes whose positions the text around gives */
    const char *const *fns;   /* by oi_fn: how its value is spelled; NULL when there are none */
    const oi_partition *partition; /* its axis runs from `first` to `last`; NULL: from end to end */
};

void oi_nest_print(const oi_nest_printer *p, const oi_snest *n);
/* Only what follows the reduction, which left its result in `acc`. */
void oi_nest_print_end(const oi_nest_printer *p, const oi_snest *n);
/* The loops that all nests of the kernel share; close as many braces afterwards. */
void oi_nest_open_shared(const oi_nest_printer *p, const oi_snest *n);
/* A code as an expression; `var` spells a variable's value. */
typedef const char *(*oi_spell_var)(void *ctx, uint32_t var);
char *oi_code_print(oi_arena *a, const oi_code *c, const oi_program *p, oi_spell_var var, void *ctx,
                    const char *const *own);

/* -- c/: C -- */

/* The first function of f64 that the text calls and a freestanding program has not, *n characters;
 * NULL: all are there. */
const char *oi_c_missing(const char *text, size_t *n);

/* -- glsl/: compute shaders -- */

extern const oi_helper oi_glsl_helpers[]; /* generated */

/* -- fit.c: what the device must have -- */

struct oi_certificate {
    /* RAM: the program's struct, and of it: */
    uint64_t struct_bytes, state_bytes, arena_bytes, undo_bytes, io_bytes;
    uint64_t stack_bytes;           /* reserved for a step; 0: the system's own */
    uint64_t ram_bytes;             /* struct and stack */
    uint64_t weights_bytes;         /* read only */
    uint64_t n_checked, n_barriers; /* accesses and barriers that the checker of plans saw */
    bool is_measured;
    oi_plan_measured measured;
};

/* Refuses (E062) what the device cannot hold, with where the memory goes. */
oi_status oi_fit_check(oi_unit *u, const oi_certificate *c);

/* -- plan_json.c: the plan for other programs -- */

void oi_plan_json(oi_unit *u, const oi_certificate *c, uint64_t hash, oi_buf *out);

/* -- report.c: the plan for people -- */

void oi_report_html(oi_unit *u, const oi_certificate *c, uint64_t hash, oi_buf *out);

/* -- room.c: how much a program may write -- */

uint64_t oi_room_weights(const oi_unit *u); /* bytes of the file of the weights, at most */
/* E064 when bytes are more than `most` (0: 64 GiB), a failure when the file system has less. */
oi_status oi_room_check(oi_unit *u, const char *dir, uint64_t bytes, uint64_t most);

/* -- weights.c -- */

#define OI_WEIGHTS_VERSION 1u /* of the format */

oi_status oi_weights_hash(oi_unit *u, uint64_t *out);
oi_status oi_weights_write(oi_unit *u, uint64_t hash, int fd);
oi_status oi_weights_write_c(oi_unit *u, uint64_t hash, int fd); /* the same as a C array */

#endif
