/* glslgen.h: the translator of helpers from C to GLSL inside. See glslgen.c. */
#ifndef GLSLGEN_H
#define GLSLGEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Integers narrower than 32 bits are held in int and uint, as C promotes them; conversions to them
 * cut. */
typedef enum type {
    T_VOID,
    T_BOOL,
    T_I8,
    T_I16,
    T_I32,
    T_I64,
    T_U8,
    T_U16,
    T_U32,
    T_U64,
    T_F32,
    T_F64,
    T_STRUCT, /* the first of them; see structs */
    T_COUNT = T_STRUCT + 4
} type;

typedef struct value { /* an expression: its text, and how tightly that binds */
    const char *text;
    type t;
    int level;
    bool is_number; /* a literal, which takes any type */
    bool is_hex;
    double number;
    uint64_t whole; /* of integers: two's complement */
} value;

#define MAX_ARGS 8

typedef struct function {
    const char *name;
    type result;
    type params[MAX_ARGS];
    int n_params;
} function;

typedef struct variable {
    const char *name, *spell;
    type t;
} variable;

typedef struct structure {
    const char *name;
    variable fields[8]; /* in their order */
    int n_fields;
} structure;

/* 64-bit integers are two words: a uvec2, computed by functions of words.glsl. */
extern bool has_words;

extern structure structs[T_COUNT - T_STRUCT]; /* by type - T_STRUCT */

#define MAX_VARIABLES 64
#define MAX_FUNCTIONS 2000

typedef struct translator {
    const char *p; /* what is left of the item */
    char token[128];
    bool is_over;   /* the last token was none */
    bool is_narrow; /* 64-bit integers are taken for 32-bit ones */
    function *f;    /* being translated */
    variable vars[MAX_VARIABLES];
    int n_vars;
    function functions[MAX_FUNCTIONS];
    int n_functions;
    variable arrays[8];
    int n_arrays;
    char *out; /* lines */
    int depth;
    int n_exact;  /* names made for parts of an expression */
    bool is_head; /* in the head of a loop, before which no line may be put */
} translator;

/* -- glslgen.c -- */

const char *text(const char *fmt, ...); /* never freed: this is a short-lived tool */
_Noreturn void give_up(translator *x, const char *why); /* on the present item */
void next(translator *x);
bool is(const translator *x, const char *token);
bool take(translator *x, const char *token);
void want(translator *x, const char *token);
bool type_name(const translator *x, const char *word, type *out);
const char *type_text(type t);
const char *exact_text(type t); /* of a variable or result: nothing is joined into one rounding */
void line(translator *x, const char *what);
variable *find(variable *list, int n, const char *name);
function *find_function(translator *x, const char *name);

/* -- glslgen_expr.c -- */

value expression(translator *x); /* with assignments and commas */
value assignment(translator *x); /* without commas */
value convert(translator *x, value v, type to);
value number_of(type t, uint64_t whole, double number, bool is_hex);

#endif
