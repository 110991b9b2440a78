/* lower.h: what the files of the lowering share: the graph being made, and what names mean. */
#ifndef OI_COMPACT_LOWER_H
#define OI_COMPACT_LOWER_H

#include "dsl/compact.h"
#include "program/check.h"

typedef enum oi_operand_kind {
    OI_OPERAND_BAD, /* reported; what uses it is passed over */
    OI_OPERAND_REF, /* a variable of the graph, an entry of a prefix table, a loop index */
    OI_OPERAND_LITERAL
} oi_operand_kind;

/* The value of an expression. */
typedef struct oi_operand {
    oi_operand_kind kind;
    oi_access access; /* REF */
    bool is_variable; /* REF: it may be written */
    bool is_steady;   /* REF: nothing changes it while its name is in scope */
    oi_value literal; /* INT or FLOAT */
    oi_span span;
} oi_operand;

#define OI_NO_LENGTH UINT32_MAX

/* What a name of the text means from here on. */
typedef struct oi_binding {
    const char *name;
    oi_operand value;
    uint32_t state;    /* of a key-value cache: its place; else OI_NO_ID */
    uint32_t shadowed; /* the binding of the same name outside, or OI_MAP_NONE */
    unsigned loop;     /* how many loops it was bound in */
    bool owns;         /* its variable was made for it and is free when it ends */
    oi_span span;
} oi_binding;

/* Rows of a cache that hold something: a variable of the graph, kept for what kv_read gave. */
typedef struct oi_length {
    const char *variable; /* the keys */
    const char *length;
    oi_dtype dtype;
} oi_length;

/* kv: its tables are declared when their shape is known. */
typedef struct oi_lowered_state {
    const oi_cstate *text;
    const char *tables[2]; /* keys, values; NULL until declared */
} oi_lowered_state;

/* An open loop. */
typedef struct oi_lowered_loop {
    const char *index; /* in the graph */
    bool known;        /* its bounds are */
    int64_t start, end;
} oi_lowered_loop;

typedef struct oi_lowerer {
    oi_graph *g;
    const oi_compact *c;
    oi_arena *a; /* scratch */
    oi_diag *d;
    oi_typer typer;
    oi_symbols syms; /* of the graph so far */
    uint32_t parent; /* the innermost open loop, or OI_NO_ID */
    OI_VEC(oi_binding) bindings;
    oi_map scope;    /* name of the text -> its binding */
    oi_map taken;    /* names of the graph: 0 a variable, 1 a loop index */
    oi_map suffixes; /* name -> place in next_suffix */
    OI_VEC(uint32_t) next_suffix;
    oi_map unused; /* variables whose names have ended */
    oi_map made;   /* constants that exist: "f32:BITS", "key:K" and patterns -> a symbol */
    OI_VEC(oi_lowered_loop) loops;
    OI_VEC(oi_lowered_state) states;
    OI_VEC(oi_length) lengths;
    oi_map length_of; /* variable -> place in lengths */
    uint32_t n_temps, n_constants;
    uint64_t n_keys; /* of the model, tried so far */
    bool no_model_told;
    oi_status status;
} oi_lowerer;

/* -- lower.c -- */
oi_place oi_compact_at(const oi_lowerer *l, oi_span span);
uint32_t oi_compact_add(oi_lowerer *l, oi_node *n); /* at the end of what is open */
void oi_compact_declare(oi_lowerer *l, const oi_var *v);
void oi_compact_assign(oi_lowerer *l, const char *name, oi_dtype dtype, const oi_exprs *dims,
                       oi_span span);
void oi_compact_transfer(oi_lowerer *l, const oi_operand *from, const char *to, oi_span span);

/* -- names.c -- */
const oi_binding *oi_name_find(const oi_lowerer *l, const char *name); /* NULL when unknown */
oi_operand oi_name_operand(const char *variable, oi_span span); /* of a variable of the graph */
void oi_name_bind(oi_lowerer *l, const oi_name *name, const oi_operand *value);
size_t oi_scope_open(oi_lowerer *l);
void oi_scope_close(oi_lowerer *l, size_t mark);
/* A name that no variable, loop index or size has: `wanted`, or with a suffix. */
const char *oi_name_new(oi_lowerer *l, const char *wanted);
/* The same, unknown to the model too: for declarations, which it would give data. */
const char *oi_name_unlinked(oi_lowerer *l, const char *wanted);
const char *oi_name_temp(oi_lowerer *l);
const char *oi_name_index(oi_lowerer *l, const char *wanted); /* of a loop about to open */
/* The variable that `name = …` of this type writes; NULL after an error (E082). */
const char *oi_name_target(oi_lowerer *l, const oi_name *name, const oi_type *type);
/* Names in an expression over indices, as the graph calls them. NULL after an error. */
const oi_expr *oi_name_expr(oi_lowerer *l, const oi_expr *e);
bool oi_name_value(oi_lowerer *l, oi_value *v); /* likewise in an attribute; false after an error */
bool oi_name_is_size(oi_lowerer *l, const char *name, int64_t *out);
void oi_name_unknown(oi_lowerer *l, const oi_name *name);

/* -- types.c -- */
bool oi_compact_type(oi_lowerer *l, const oi_operand *x, oi_type *out);
bool oi_type_same(const oi_type *a, const oi_type *b); /* a variable of one holds the other */
/* The dims as the graph declares them; false after an error. */
bool oi_compact_dims(oi_lowerer *l, const oi_type *type, oi_span span, oi_exprs *out);
const char *oi_compact_type_text(const oi_lowerer *l, const oi_type *type);
/* A literal as a rank-0 constant of the dtype. */
oi_operand oi_compact_literal(oi_lowerer *l, const oi_value *v, oi_dtype dtype);

/* -- lower_expr.c -- */
oi_operand oi_compact_expr(oi_lowerer *l, const oi_cexpr *e);
/* expr into the names, which take over its last variable. */
void oi_compact_bind(oi_lowerer *l, const oi_cstmt *s);
/* One op whose operands are settled. `names` NULL: into temporaries. Fills out[0 … n_out). */
bool oi_compact_op(oi_lowerer *l, oi_node *n, const oi_names *names, oi_operand *out, size_t n_out);

/* -- lower_model.c -- */
oi_operand oi_compact_model(oi_lowerer *l, const oi_cexpr *e);

/* -- lower_state.c -- */
void oi_compact_states(oi_lowerer *l);
bool oi_compact_is_state_call(const oi_cexpr *e);
/* kv_write, or kv_read into names (NULL: an error, it gives two values). */
void oi_compact_state_call(oi_lowerer *l, const oi_cexpr *e, const oi_names *names);
const oi_length *oi_length_find(const oi_lowerer *l, const oi_operand *x);
/* `variable` now holds something else: all of it counts, or as much as of `from` (may be NULL). */
void oi_length_changed(oi_lowerer *l, const char *variable, const oi_operand *from, oi_span span);
/* A variable that kv_read writes in the loop about to open keeps a length from now on. */
void oi_length_expect(oi_lowerer *l, const oi_cstmt *loop);

/* -- read.c -- */
void oi_compact_lower(oi_lowerer *l);

#endif
