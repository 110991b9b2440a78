/* base.h: what every folder may use: memory, text, diagnostics, dtypes, numbers, maps.
 * Grouped by the file that implements it. */
#ifndef OI_BASE_H
#define OI_BASE_H

#include "openinfer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#define OI_TRY(call)                    \
    do {                                \
        oi_status try_status_ = (call); \
        if (try_status_ != OI_OK)       \
            return try_status_;         \
    } while (0)
#define OI_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define OI_PRINTF(f, a) __attribute__((format(printf, f, a)))

typedef struct oi_bytes {
    const uint8_t *ptr;
    uint64_t size;
} oi_bytes;

/* Dims of a variable, indices of a table. Real models stay at 6 axes, attention with split heads at
 * 8; twice that costs nothing: a type is below 400 bytes and lives on the stack. */
#define OI_MAX_RANK 16

/* -- arena.c -- */

/* Memory that ends all at once. Running out jumps to the nearest oi_arena_guard of that arena, so
 * code inside a guard never checks for NULL; everything it owns must live in arenas. */
typedef struct oi_arena oi_arena;

oi_arena *oi_arena_new(void); /* NULL when memory is out */
void oi_arena_free(oi_arena *a);
void *oi_arena_alloc(oi_arena *a, size_t size);               /* zeroed, aligned to 16 */
char *oi_arena_text(oi_arena *a, const char *text, size_t n); /* copy, NUL-terminated */
char *oi_arena_printf(oi_arena *a, const char *fmt, ...) OI_PRINTF(2, 3);
char *oi_arena_vprintf(oi_arena *a, const char *fmt, va_list args);
void oi_arena_own(oi_arena *a, void *block, size_t size); /* of malloc: freed with the arena */
size_t oi_arena_used(const oi_arena *a);
/* Runs fn(ctx); OI_ERR_ENV when the arena ran out inside, else OI_OK. */
oi_status oi_arena_guard(oi_arena *a, void (*fn)(void *ctx), void *ctx);
void oi_arena_fail(oi_arena *a); /* for callees (json-c) that ran out on our behalf */

/* Grows `array` (element size `each`) so that index n fits; returns the array, maybe moved. */
void *oi_arena_grow(oi_arena *a, void *array, size_t each, size_t n, size_t *cap);

/* A growable array inside a struct: OI_VEC(oi_node) nodes; *OI_PUSH(arena, &g->nodes) = node; */
#define OI_VEC(type)   \
    struct {           \
        type *at;      \
        size_t n, cap; \
    }
#define OI_PUSH(arena, vec)                                                                   \
    ((vec)->at = oi_arena_grow((arena), (vec)->at, sizeof *(vec)->at, (vec)->n, &(vec)->cap), \
     &(vec)->at[(vec)->n++])
/* Room for n elements in an empty one whose size is known. */
#define OI_RESERVE(arena, vec, count) \
    ((vec)->at = oi_arena_alloc((arena), (count) * sizeof *(vec)->at), (vec)->cap = (count))

/* -- buf.c: text being written -- */

/* Grows on the heap so that the result can be handed to the caller; a failed allocation is sticky
 * and shows up once, in oi_buf_take. */
typedef struct oi_buf {
    char *text;
    size_t n, cap;
    bool failed;
} oi_buf;

void oi_buf_add(oi_buf *b, const char *text, size_t n);
void oi_buf_puts(oi_buf *b, const char *text);
void oi_buf_putc(oi_buf *b, char c);
void oi_buf_fill(oi_buf *b, char c, size_t n);
void oi_buf_printf(oi_buf *b, const char *fmt, ...) OI_PRINTF(2, 3);
oi_status oi_buf_take(oi_buf *b, char **out); /* NUL-terminated; leaves the buffer empty */
/* The text moves into the arena; the buffer is empty afterwards, also when memory was out. */
char *oi_buf_to_arena(oi_buf *b, oi_arena *a);
void oi_buf_free(oi_buf *b);

/* -- map.c: names to numbers -- */

/* Keys are borrowed, values are any u32. Hashing is seeded per map against chosen collisions. */
typedef struct oi_map {
    oi_arena *arena;
    struct oi_map_slot *slots;
    size_t n, cap;
    uint64_t seed;
} oi_map;

#define OI_MAP_NONE UINT32_MAX
uint32_t oi_map_get(const oi_map *m, const char *key);       /* OI_MAP_NONE when absent */
uint32_t oi_map_put(oi_map *m, const char *key, uint32_t v); /* the value that is now there: an
                                                                earlier one stays */
void oi_map_set(oi_map *m, const char *key, uint32_t v);     /* replaces */
void oi_map_reserve(oi_map *m, size_t n); /* room for n keys at once; only while empty */

/* -- source.c: a text and its lines -- */

typedef struct oi_source {
    const char *name; /* as shown in diagnostics */
    const char *text;
    size_t size;
    uint32_t first_line;    /* 1, or where the text begins in a larger file */
    bool is_embedded;       /* the arguments of a call of OI_GRAPH on that line, see embedded.c */
    OI_VEC(uint32_t) lines; /* byte offset of each line start */
    struct oi_source_memo
        *memo; /* the last position that was computed, so that one long line stays cheap */
} oi_source;

/* Text position: line and column are 1-based and count code points; len >= 1. line 0 = nowhere. */
typedef struct oi_span {
    uint32_t line, col, len;
} oi_span;

void oi_source_init(oi_arena *a, oi_source *s, const char *name, const char *text, size_t size);
/* Position of bytes [start, end); the span never runs past its first line. */
oi_span oi_source_span(const oi_source *s, size_t start, size_t end);
oi_bytes oi_source_line(const oi_source *s, uint32_t line);  /* without its end-of-line */
bool oi_utf8_valid(const char *text, size_t n, size_t *bad); /* bad: offset of the first bad byte */
size_t oi_utf8_decode(const char *text, size_t n, uint32_t *out); /* bytes used, 0 if malformed */
size_t oi_utf8_encode(uint32_t code_point, char out[4]); /* bytes written, 0 if not a scalar */
/* Bytes of the text's longest start of at most `max` bytes that cuts no code point: for %.*s. */
int oi_utf8_fit(const char *text, int max);

/* -- embedded.c: OI_GRAPH -- */

typedef struct oi_call_place {
    oi_span span;  /* in the C file */
    oi_bytes line; /* the first line of the span, in `file` */
    char *file;    /* all of it */
} oi_call_place;

/* Finds a span of an embedded text in its C file. False, with nothing to free, when the file cannot
 * be read or has no such call. */
bool oi_call_find(oi_call_place *e, const oi_source *s, oi_span span);
void oi_call_free(oi_call_place *e);

/* -- diag.c -- */

/* Where a message points. Give either a span (with its source), a JSON pointer, or neither. */
typedef struct oi_place {
    const oi_source *source; /* may be NULL */
    const char *file;        /* used when source is NULL */
    oi_span span;
    const char *pointer;
    bool is_line; /* the message is the whole line: printed without file and severity */
} oi_place;

/* Both return OI_ERR_INPUT for errors and OI_OK for warnings; d may be NULL. */
oi_status oi_diag_error(oi_diag *d, oi_place at, const char *code, const char *fmt, ...)
    OI_PRINTF(4, 5);
oi_status oi_diag_warn(oi_diag *d, oi_place at, const char *code, const char *fmt, ...)
    OI_PRINTF(4, 5);
/* Belong to the message before them. */
void oi_diag_note(oi_diag *d, oi_place at, const char *fmt, ...) OI_PRINTF(3, 4);
void oi_diag_hint(oi_diag *d, const char *fmt, ...) OI_PRINTF(2, 3);
/* A whole-file failure in the surroundings: "cannot open FILE: REASON". Returns OI_ERR_ENV. */
oi_status oi_diag_env(oi_diag *d, const char *file, const char *fmt, ...) OI_PRINTF(3, 4);
void oi_diag_sort(oi_diag *d, size_t first); /* messages from `first` on, by position */
bool oi_diag_full(const oi_diag *d);         /* the error limit is reached: stop looking */

/* The candidate nearest to `word` within a third of its length, or NULL. */
typedef struct oi_nearest {
    const char *word, *best;
    size_t distance;
} oi_nearest;
oi_nearest oi_nearest_start(const char *word);
void oi_nearest_offer(oi_nearest *n, const char *candidate);

/* -- dtype.c -- */

/* What kind of number a dtype holds. */
typedef enum oi_dtype_class {
    OI_CLASS_NONE,
    OI_CLASS_FLOAT,
    OI_CLASS_SIGNED,   /* i8 … i64 */
    OI_CLASS_UNSIGNED, /* u8 … u64 */
    OI_CLASS_PACKED_SIGNED,
    OI_CLASS_PACKED_UNSIGNED,
    OI_CLASS_TERNARY,
    OI_CLASS_BOOL,
    OI_CLASS_BITSET
} oi_dtype_class;

typedef struct oi_dtype_info {
    const char *name; /* DSL spelling */
    const char *json; /* graph JSON spelling */
    unsigned bits;    /* stored bits per element */
    oi_dtype_class cls;
    uint8_t exp_bits, man_bits; /* floats only */
    int64_t min;                /* integers only; floats 0 */
    uint64_t max;
} oi_dtype_info;

const oi_dtype_info *oi_dtype_get(oi_dtype t); /* never NULL; the OI_NONE row for bad values */
oi_dtype oi_dtype_find_n(const char *name, size_t n); /* DSL spelling */
oi_dtype oi_dtype_find_json(const char *name);        /* JSON spelling, DSL spelling accepted */
bool oi_dtype_is_tensor(oi_dtype t);                  /* may a tensor have this type */
bool oi_dtype_is_float(oi_dtype t);
bool oi_dtype_is_integer(oi_dtype t); /* signed, unsigned and packed; not bool, bitset, t1, t2 */

/* The stored bits of element e, zero-extended. */
uint64_t oi_element_bits(oi_dtype t, const void *data, uint64_t e);

/* Bits of a float of `t` (f8 bf16 f16 f32 f64) nearest to v, ties to even; NaN canonical. */
uint64_t oi_float_encode(oi_dtype t, double v);
double oi_float_decode(oi_dtype t, uint64_t bits);

/* -- number.c: text <-> numbers, independent of the locale -- */

#define OI_NUMBER_TEXT 32
/* Fewest digits that read back as the same value, laid out like 0.01, 5.0, 1e-6, 1e16, inf, -inf,
 * nan. Returns the length. */
size_t oi_print_f64(char out[OI_NUMBER_TEXT], double v);
size_t oi_print_f32(char out[OI_NUMBER_TEXT], float v);
/* Decimal digits with optional point and exponent, no sign, no underscores; correctly rounded.
 * False when the text is not of that form; overflow gives inf. */
bool oi_parse_f64(const char *text, size_t n, double *out);
bool oi_parse_f32(const char *text, size_t n, float *out); /* one rounding, not through f64 */
bool oi_parse_u64(const char *text, size_t n, unsigned base, uint64_t *out); /* false: overflow */

/* -- slice.c: where slices and splits of an axis begin and how long they are -- */

/* ONNX Slice: negative counts from the end, then clamped into the axis. step is not 0. */
int64_t oi_slice_start(int64_t dim, int64_t start, int64_t step);
int64_t oi_slice_length(int64_t dim, int64_t start, int64_t end, int64_t step);
/* Part i of n equal ones; the last may be short. */
int64_t oi_split_length(int64_t dim, size_t n_parts, size_t part);

/* -- hash.c -- */

void oi_sha1(const oi_bytes *parts, size_t n_parts, uint8_t out[20]); /* of their concatenation */
uint64_t oi_hash64(const void *data, size_t n, uint64_t seed);
uint64_t oi_splitmix64(uint64_t *state);
uint64_t oi_entropy64(void); /* unpredictable, for uuids and hash seeds only */

/* -- file.c -- */

#define OI_TEXT_LIMIT (256u << 20) /* bytes of DSL or JSON: positions are 32-bit */
/* Whole file into memory (NUL-terminated, NUL not counted), at most `limit` bytes. */
oi_status oi_file_read(const char *path, uint64_t limit, char **out, size_t *n, oi_diag *d);
/* Through a temporary file in the same folder and a rename: all or nothing. */
oi_status oi_file_write(const char *path, const void *data, size_t n, oi_diag *d);
/* The same, the bytes coming from fn as it goes. */
typedef oi_status (*oi_file_fn)(void *ctx, int fd, oi_diag *d);
oi_status oi_file_write_with(const char *path, oi_file_fn fn, void *ctx, oi_diag *d);
void oi_folder_remove(const char *dir);               /* with the files in it */
bool oi_file_put(int fd, const void *data, size_t n); /* all of it, or false with errno */

/* -- process.c -- */

/* Runs a program in the folder, what it says goes into the file `log`, and waits for its end: the
 * status of waitpid, -1: it could not start. */
int oi_child_run(const char *dir, const char *const *argv, const char *log);
int oi_child_wait(int pid); /* until it has ended: the status of waitpid, or -1 */

/* -- partition.c -- */

/* A fixed team of threads (openinfer.h). Tasks are numbered by the plan, not by who runs them. */
unsigned oi_threads_count(const oi_threads *t); /* 1 for NULL */
/* task(ctx, 0) ... task(ctx, n_tasks - 1), in any order, each once; returns when all are done. One
 * call at a time; a task must not call it. `threads` is an oi_threads, or NULL: in order, here. */
void oi_threads_run(void *threads, size_t n_tasks, void (*task)(void *ctx, size_t i), void *ctx);

/* -- json.c: reading, through json-c -- */

struct json_object;
#define OI_JSON_DEPTH 256
#define OI_JSON_LIMIT (256u << 20) /* bytes of text accepted unless the caller says otherwise */

/* RFC 8259 only; duplicate keys, NUL in keys and integers beyond 64 bits are errors with line and
 * column. The result is released with oi_json_free. */
oi_status oi_json_parse(const char *name, const char *text, size_t n, struct json_object **out,
                        oi_diag *d);
void oi_json_free(struct json_object *j);
/* Value of a JSON number, read from its source text by oi_parse_f64: json-c's own reading depends
 * on the C library. 0 for anything but a number. */
double oi_json_f64(struct json_object *j);
float oi_json_f32(struct json_object *j);

/* -- escape.c: text from outside in the languages that we write -- */

typedef void oi_put_text(oi_buf *b, const char *text);
oi_put_text oi_put_c_comment;    /* inside a comment of C, GLSL or a linker script */
oi_put_text oi_put_line_comment; /* in a comment that ends with the line: make, CMake */
oi_put_text oi_put_c_string;     /* with its quotes */
oi_put_text oi_put_xml;          /* HTML and SVG: between tags, or in a quoted attribute */
oi_put_text oi_put_dot;          /* with its quotes */
void oi_put_json(oi_buf *b, const char *text, size_t n); /* with its quotes */
const char *oi_escaped(oi_arena *a, oi_put_text *put, const char *text);

/* -- jsonw.c: writing; keys must come in ascending order -- */

typedef struct oi_jsonw {
    oi_buf *out;
    unsigned depth;
    bool compact;     /* no line ends, no spaces */
    bool any_order;   /* keys in the order of a format that fixes its own (traces) */
    bool pending_key; /* a key was written, its value follows on the same line */
    uint64_t has_items[OI_JSON_DEPTH / 64]; /* bit per depth: a comma is due */
    size_t last_key[OI_JSON_DEPTH]; /* where in the text the last key starts, for the order check */
} oi_jsonw;

void oi_jsonw_open(oi_jsonw *w, char bracket);  /* '{' or '[' */
void oi_jsonw_close(oi_jsonw *w, char bracket); /* '}' or ']' */
void oi_jsonw_key(oi_jsonw *w, const char *key);
void oi_jsonw_str(oi_jsonw *w, const char *s);
void oi_jsonw_strn(oi_jsonw *w, const char *s, size_t n);
void oi_jsonw_i64(oi_jsonw *w, int64_t v);
void oi_jsonw_u64(oi_jsonw *w, uint64_t v);
void oi_jsonw_f64(oi_jsonw *w, double v); /* non-finite as "inf", "-inf", "nan" */
void oi_jsonw_f32(oi_jsonw *w, float v);
void oi_jsonw_bool(oi_jsonw *w, bool v);
void oi_jsonw_null(oi_jsonw *w);
void oi_jsonw_raw(oi_jsonw *w, const char *json, size_t n); /* a value already spelled */
void oi_jsonw_tree(oi_jsonw *w, struct json_object *j);     /* a whole json-c tree, keys sorted */

/* -- window.c: one axis along which a window slides (conv, pooling) -- */

typedef enum oi_auto_pad {
    OI_PAD_NOTSET,
    OI_PAD_SAME_UPPER,
    OI_PAD_SAME_LOWER,
    OI_PAD_VALID
} oi_auto_pad;

typedef struct oi_window {
    int64_t in, kernel, stride, dilation;
    int64_t before, after; /* padding */
} oi_window;

oi_auto_pad oi_auto_pad_find(const char *word);
/* How many places it has; sets the padding unless NOTSET. -1 when it fits nowhere or a number is
 * beyond 2^40. */
int64_t oi_window_slide(oi_window *w, oi_auto_pad pad, bool ceil_mode);
/* The other way round (conv_transpose): the length that slides into `in` places. `wanted`: the
 * output's length when given, else -1; then the padding is what makes it so. */
int64_t oi_window_spread(oi_window *w, oi_auto_pad pad, int64_t output_padding, int64_t wanted);

/* -- einsum.c -- */

#define OI_EINSUM_RANK   16
#define OI_EINSUM_INPUTS 6 /* what a nest reads */

/* Labels are numbers: 0 ... n_out - 1 are the axes of the result, the others are summed. */
typedef struct oi_einsum {
    uint32_t n_in, n_out, n_labels;
    uint32_t rank[OI_EINSUM_INPUTS];
    uint8_t in[OI_EINSUM_INPUTS][OI_EINSUM_RANK]; /* the label of each axis */
} oi_einsum;

/* False when the equation is malformed or does not fit operands of these ranks. */
bool oi_einsum_read(const char *equation, uint32_t n_in, const uint32_t *ranks, oi_einsum *out);

#endif
