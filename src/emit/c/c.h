/* c.h: the C target inside. Grouped by the file that implements it. */
#ifndef OI_EMIT_C_H
#define OI_EMIT_C_H

#include "device/device.h"
#include "emit/emit.h"

typedef struct oi_cprog oi_cprog;

/* A tensor by the name that a function gives it. */
typedef struct oi_cplace {
    uint32_t tensor;
    const char *name;
} oi_cplace;
typedef struct oi_cplaces {
    oi_cplace *at;
    size_t n, cap;
    oi_map of;    /* by the tensor's own name, which is unique: where it is in `at` */
    oi_map names; /* the names in `at` */
    oi_map next;  /* by stem: the number that the next tensor of that name may have */
} oi_cplaces;

/* One program being spelled. */
typedef struct oi_clayout {
    uint64_t size, align;
} oi_clayout;

/* A language whose kernels run on a device, in memory that the host does not see. The host runs
 * everything else; `is_known` of the program says which values it has. */
typedef struct oi_cdevice {
    void (*before)(oi_cprog *c, const oi_stmt *s); /* waits for values that it needs */
    void (*wait)(oi_cprog *c);                     /* for everything that was begun */
    void (*call)(oi_cprog *c, const oi_skernel *k);
    void (*set)(oi_cprog *c, const oi_stmt *s, const char *value);
    void (*view)(oi_cprog *c, const oi_stmt *s);
    /* Logs `bytes` bytes of the part s->a, from element `run` of it on. */
    void (*log)(oi_cprog *c, const oi_stmt *s, const char *run, const char *bytes);
    void (*check)(oi_cprog *c, const oi_stmt *s);
    /* What the tensor holds at first. */
    void (*start)(oi_cprog *c, oi_out *o, uint32_t tensor);
    const char *(*place_line)(oi_cprog *c, uint32_t tensor, const char *name);
    void (*members)(oi_cprog *c, oi_out *o);     /* of the struct, instead of working memory */
    void (*certificate)(oi_cprog *c, oi_out *o); /* the rest of that comment */
    const char *init_text, *state_text; /* of NAME.h: what a caller reads about init, and save */
    /* Where main finds the contents of a tensor that is not in the struct, by functions that
     * main_text defines. */
    const char *(*fetched)(oi_cprog *c, uint32_t tensor);
    const char *main_text;
} oi_cdevice;

/* What a language spells otherwise that prints steps, memory and kernels as C does. A worker of
 * such a language may be several invocations that run the same statements together. */
typedef struct oi_cform {
    const char *function; /* before a function of a step: "static" */
    const char *shared;   /* before one that several kernels call; NULL: the same */
    const char *apart;    /* of a pointer to memory that no other one reaches: "restrict " */
    const char *overflow; /* "__builtin_": before add_overflow, sub_overflow, mul_overflow */
    bool has_team;        /* workers are threads of the host */
    /* Steps run on a device that has the program's memory. The host's struct has copies of inputs,
     * results and lengths; the persistent state is a type of its own, NAME_state. */
    bool is_remote;
    const oi_lang *lang, *lang32; /* positions of 64 bits, and of 32 */
    bool prefers_32;              /* 32 wherever the tensors of a kernel allow it */
    const char *each; /* head of a loop over `e` that all invocations share, with %s for how many
                         places there are; NULL: one does them all */
    const char *copy_out, *copy_in; /* the state, to `at + 40` of the host's memory and back */
    /* Members that steps need besides the graph's; NULL: none. */
    void (*put_members)(oi_cprog *c, oi_out *o);
    /* The lines between the two write memory that all invocations of a worker read; NULL: a worker
     * is one thread. */
    void (*begin_write)(oi_cprog *c);
    void (*end_write)(oi_cprog *c);
    void (*wait)(
        oi_cprog *c); /* all invocations of the worker have read what they needed; or NULL */
    /* What a kernel's function does; NULL: plain loops. */
    void (*put_body)(oi_cprog *c, const oi_skernel *k, const oi_nest_printer *p);
    const oi_cdevice *device; /* kernels run there; NULL: here */
    /* A worker's own copy of a tensor: the definition of its name, or NULL: an array. */
    const char *(*private_copy)(oi_cprog *c, const oi_tensor *t, const char *name);
} oi_cform;

extern const oi_cform oi_cform_c;

struct oi_cprog {
    const oi_plan *p;
    const oi_cform *form;
    const char *self; /* the type of what s points to in a step */
    oi_arena *arena;
    oi_out out;
    const char *name;
    uint32_t graph, block; /* whose code is being written */
    oi_settler *settler;
    /* by block of the graph: bit per loop index that its code mentions */
    uint64_t **mentions;
    bool *is_retyped;   /* by tensor: its memory holds values of another type at another time */
    uint32_t n_numbers; /* that codes have given names */
    const char *rows;   /* the last arguments of kernels that take turns */
    oi_cplaces *places; /* of the function being written; NULL: tensors go by their offsets */
    oi_map called;      /* names that no place may have, in the graph `called_graph` - 1 */
    uint32_t called_graph;
    const bool **scalars; /* by kernel and scalar: the function receives it */
    oi_out aside;         /* functions that the present block calls */
    unsigned n_aside;
    oi_clayout layout;        /* of the struct whose members are being written */
    const bool *is_known;     /* by tensor, with a device: the host has it, too */
    uint64_t apart_bytes;     /* of the state on the device */
    const uint64_t *apart_at; /* by tensor: where it is in there */
    void *own;                /* of the target */
    oi_certificate certificate;
};

/* -- names.c -- */

/* Whether C or C++ may have another use for the word wherever it stands. */
bool oi_c_is_forbidden(const char *name);
const char *oi_c_field(const oi_cprog *c,
                       const oi_tensor *t); /* its member, of what the host sees */
/* Reports members that are called otherwise. */
void oi_c_note_names(const oi_plan *p, void (*note)(void *ctx, const char *was, const char *is),
                     void *ctx);
const char *oi_c_program_name(oi_arena *a, const char *wanted);
const char *oi_c_graph_name(oi_arena *a, const char *wanted);
const char **oi_c_scalar_names(oi_cprog *c, const oi_skernel *k); /* by scalar, marked */
/* By port: what the kernel calls it, marked. */
const char **oi_c_port_names(oi_cprog *c, const oi_skernel *k);

/* -- places.c -- */

const char *oi_c_place(oi_cprog *c, uint32_t tensor); /* what the function calls it */
const char *oi_c_place_lines(oi_cprog *c);            /* the definitions of those names */

/* -- memory.c: where tensors lie -- */

const char *oi_c_member(oi_cprog *c, const oi_tensor *t); /* where the host finds it */
const char *oi_c_lent(oi_cprog *c, const oi_tensor *t);   /* the pointer to it, marked */
const char *oi_c_type(oi_dtype t); /* of a stored element, or of a byte of packed ones */
/* A pointer to the entry, as an expression of the right type. */
const char *oi_c_address(oi_cprog *c, const oi_port *p);
/* The index of the entry in its table; NULL: the first. */
const char *oi_c_entry_text(oi_cprog *c, const oi_tensor *t, const oi_port *p);
/* " + step * 64": the first element of a part of the state. */
const char *oi_c_part_text(oi_cprog *c, const oi_tensor *t, const oi_port *p);
bool oi_c_is_here(const oi_cprog *c, uint32_t tensor); /* the host has it in memory */
/* The length of a tensor along a dim: a number, or where it is kept. */
const char *oi_c_length(oi_cprog *c, uint32_t tensor, uint32_t dim);
const char *oi_c_size(oi_cprog *c, uint32_t tensor, uint32_t axis); /* of growing state */
const oi_program *oi_c_program(const oi_cprog *c);                  /* of the present graph */
/* How many bytes the tensor holds now; a number when it always is. */
const char *oi_c_bytes(oi_cprog *c, uint32_t tensor);
/* The value of a rank-0 variable as int64_t, or as a truth. */
const char *oi_c_number(oi_cprog *c, uint32_t var);
const char *oi_c_truth(oi_cprog *c, uint32_t var);
const char *oi_c_code(oi_cprog *c, const oi_code *code, const char *const *own);
const char *oi_c_index(oi_cprog *c, uint32_t index); /* a loop index */
/* Checks that entries of tables exist; prints nothing when that is sure. */
void oi_c_check_entry(oi_cprog *c, const oi_port *p);
void oi_c_members(oi_cprog *c, oi_out *o);        /* of the program's struct */
void oi_c_shared_members(oi_cprog *c, oi_out *o); /* of them, inputs, results and lengths */
void oi_c_keep_members(oi_cprog *c, oi_out *o);   /* of them, the persistent state */
void oi_c_put_state_type(oi_cprog *c, oi_out *o); /* of a device's memory: NAME_state */
/* A member of that many bytes was written: the layout grows as C lays it out. */
void oi_c_count(oi_cprog *c, uint64_t align, uint64_t bytes);
uint64_t oi_c_pointer_bytes(const oi_cprog *c);

/* -- kernel.c -- */

void oi_c_kernel(oi_cprog *c, const oi_skernel *k);         /* the function */
void oi_c_kernel_lengths(oi_cprog *c, const oi_skernel *k); /* what it writes gets its lengths */
bool oi_c_is_mixed(const oi_skernel *k);                    /* rows are unrolled and jammed in it */
void oi_c_kernel_call(oi_cprog *c, const oi_skernel *k);    /* a call of it */
/* Where the weights begin that a thread reads for it; NULL where entries may be missing. */
const char *oi_c_weights(oi_cprog *c, uint32_t kernel);
const char *oi_c_scalar(oi_cprog *c, const oi_pvalue *v); /* a number that the run knows */
/* The same for a scalar of a kernel, in its compute type. */
const char *oi_c_scalar_value(oi_cprog *c, const oi_kscalar *s);
void oi_c_put_failed(oi_cprog *c); /* leave with what failed, if it did */
void oi_c_put_recipe(oi_cprog *c, const oi_skernel *k, const char *const *names); /* its call */
void oi_c_put_share(oi_cprog *c, const oi_skernel *k); /* `first` and `last` of the worker */

/* -- form.c -- */

/* Around lines that write memory which other statements of the worker read. */
void oi_c_begin_write(oi_cprog *c);
void oi_c_end_write(oi_cprog *c);
void oi_c_wait(oi_cprog *c); /* after reading numbers that later lines may change */

/* -- access.c: statements about the state -- */

void oi_c_need(oi_cprog *c, const oi_stmt *s);
void oi_c_resize(oi_cprog *c, const oi_stmt *s);
void oi_c_log(oi_cprog *c, const oi_stmt *s);
bool oi_c_logs(const oi_cprog *c, const oi_stmt *s); /* it prints something */
void oi_c_view(oi_cprog *c, const oi_stmt *s);
/* Logs n bytes before they change if the plan says that the statement logs this. */
void oi_c_put_log(oi_cprog *c, const oi_stmt *s, oi_undo_what what, const char *at, const char *n);

/* -- step.c -- */

const char *oi_c_std_name(const oi_cprog *c); /* for -std= */
bool oi_c_is_shared(const oi_cprog *c);       /* some graph's steps are run by several threads */
void oi_c_blocks(oi_cprog *c);
const char *oi_c_block_name(oi_cprog *c, uint32_t block);

/* -- uses.c -- */

/* What the code of statements refers to. */
typedef struct oi_cuses {
    bool failed;          /* what a call failed with */
    bool memory;          /* the program's struct */
    bool worker, workers; /* the worker's number, and how many there are */
} oi_cuses;

/* is_shared: all workers run the list. */
oi_cuses oi_c_uses(oi_cprog *c, const oi_stmts *list, bool is_shared);
bool oi_c_is_spelled(const oi_cprog *c, const oi_stmts *list); /* some statement becomes code */

/* -- async.c -- */

bool oi_c_runs_consumers(const oi_cprog *c, const oi_pnode *yield);
void oi_c_yield(oi_cprog *c, const oi_pnode *n);
void oi_c_await(oi_cprog *c, const oi_pnode *n);
void oi_c_async_members(oi_cprog *c, oi_out *o);
void oi_c_async_reset(oi_cprog *c); /* at the beginning of a step */

/* -- undo.c -- */

void oi_c_undo_members(oi_cprog *c, oi_out *o);
void oi_c_undo_functions(oi_cprog *c);

/* -- state.c: reset, save, load; init, check_weights -- */

void oi_c_state(oi_cprog *c);                 /* all of them */
void oi_c_put_reset(oi_cprog *c, oi_out *o);  /* the lines that reset the persistent state */
void oi_c_put_inputs(oi_cprog *c, oi_out *o); /* the lines that give inputs their values */
void oi_c_put_weights_checks(oi_cprog *c, oi_out *o); /* of their head, and of all of them */
void oi_c_put_save(oi_cprog *c, oi_out *o);           /* save and load */
void oi_c_put_host_start(oi_cprog *c, oi_out *o, uint32_t tensor); /* in the host's memory */
uint64_t oi_c_fill_pattern(const oi_tensor *t); /* of its first contents: 8 bytes, repeated */
void oi_c_put_start(oi_cprog *c, oi_out *o, uint32_t tensor); /* what it holds at first */

/* -- header.c -- */

/* Errors that only programs have whose steps run on a device. */
#define OI_DEVICE_ERRORS_FIRST (-12)
#define OI_DEVICE_ERRORS_LAST  (-16)

void oi_c_put_align(oi_out *o);                  /* defines OI_ALIGNED */
void oi_c_put_functions(oi_cprog *c, oi_out *o); /* errors, sizes and declarations */

/* -- files.c -- */

/* NAME.h */
void oi_c_put_header(oi_cprog *c, oi_emitted *files);
/* The same around these members of the program's struct. */
void oi_c_put_header_around(oi_cprog *c, oi_out *members, oi_emitted *files);

void oi_emit_c(const oi_plan *p, const oi_certificate *k, oi_emitted *files);
void oi_c_certify(const oi_plan *u, oi_certificate *out); /* what the program will need */
const char *oi_c_step_name(oi_cprog *c, size_t graph);
void oi_c_put_banner(oi_cprog *c, oi_out *o, const char *what);
void oi_c_put_certificate(oi_cprog *c, oi_out *o);
void oi_c_put_name_rule(oi_cprog *c, oi_out *o);
void oi_c_put_struct(oi_cprog *c, oi_out *o); /* the program's struct; computes its layout */
void oi_c_put_kernels(oi_cprog *c);           /* the functions of all kernels */
void oi_c_put_steps_section(oi_cprog *c);     /* the title above the present graph */
void oi_c_put_section(oi_out *o, const char *title);
void oi_c_put_starts(oi_cprog *c); /* what tensors of the graph hold when a step begins */
void oi_c_put_holes(oi_cprog *c);  /* tables whose missing entries a step looks for */

void oi_c_checkpoint(oi_cprog *c, const oi_stmt *s);
void oi_c_add_file(oi_cprog *c, oi_emitted *files, const char *name, oi_out *o);

/* -- main_file.c -- */

void oi_c_main(oi_cprog *c, oi_emitted *files);
void oi_c_build_files(oi_cprog *c, oi_emitted *files);
const char *oi_c_main_name(const oi_cprog *c); /* main.c or main.cpp */
bool oi_c_is_cpp(const oi_cprog *c);           /* main is C++ */
/* A file of the table, called `name` in the program's folder. */
void oi_c_add_host_file(oi_cprog *c, oi_emitted *files, const oi_embedded *table,
                        const char *embedded, const char *name);
/* CMakeLists.txt in parts: what stands before the library, and the demo. */
void oi_c_put_cmake_top(const char *n, oi_out *o);
void oi_c_put_cmake_demo(oi_cprog *c, const char *sources, oi_out *o);

extern const oi_embedded oi_host_files[]; /* generated from host/ */

/* -- compiler.c: what a file tells its compiler -- */

const char *oi_c_flags(oi_cprog *c); /* that compilers need which cannot be told so; "": none */
const char *oi_c_needs(oi_cprog *c); /* instruction sets that the processor must have, by name */
void oi_c_put_compiler_checks(oi_cprog *c,
                              oi_out *o);       /* before its headers: what cannot be right */
void oi_c_put_compiler(oi_cprog *c, oi_out *o); /* behind them */
void oi_c_put_compiler_end(oi_cprog *c, oi_out *o);
void oi_c_find_reuse(oi_cprog *c);
/* Before a statement that writes the tensor, or all that the kernel writes: what was read and
 * written there under another type comes first. */
void oi_c_put_reuse(oi_cprog *c, uint32_t tensor);
void oi_c_put_kernel_reuse(oi_cprog *c, const oi_skernel *k);
void oi_c_put_reuse_function(oi_cprog *c); /* if it is called */

/* -- tool.c, measure.c: building and running on this machine; oi_target has the contracts -- */

oi_tool oi_c_tool(const oi_device_info *device, const char *compiler);
bool oi_c_explain(const oi_device_info *device, const char *log, oi_diag *d);
oi_status oi_c_measure(const oi_plan *p, const char *dir, oi_plan_measured *out, oi_diag *d);

/* -- mcu.c: programs without a C library -- */

bool oi_c_is_freestanding(const oi_cprog *c);
bool oi_c_is_board(const oi_cprog *c);                       /* and on a microcontroller */
oi_status oi_c_check_library(oi_cprog *c, const char *text); /* refuses what would not link: E060 */
void oi_c_freestanding_files(oi_cprog *c, oi_emitted *files);
void oi_c_mcu_files(oi_cprog *c, oi_emitted *files); /* instead of hal.c, Makefile ... */

#endif
