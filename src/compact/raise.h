/* raise.h: what the files of raising share: an explicit graph, and its compact form being made. */
#ifndef OI_COMPACT_RAISE_H
#define OI_COMPACT_RAISE_H

#include "dsl/compact.h"
#include "program/check.h"

/* What is known of a variable, by its place in the symbols. */
typedef struct oi_raised {
    uint32_t n_writes, n_reads, n_numbers; /* as outputs, as operands, as indices and attributes */
    uint32_t reader;                       /* the node that reads it, when one does */
    bool is_linked;                        /* data of the model, and nothing writes it */
    bool is_named;                         /* that data has a name in the text */
    bool is_bound;                         /* has a value where the walk is */
    unsigned loop;                         /* how many loops are around where it got it first */
    const oi_cexpr *inlined;               /* an expression that stands where it is read */
    const char *length; /* keys that kv_read gave: the variable with their number */
} oi_raised;

typedef struct oi_raiser {
    const oi_graph *g;
    oi_arena *a;
    oi_diag *d;
    oi_typer typer;
    oi_raised *vars;
    oi_compact c;
    oi_cstmt *parent; /* the innermost open loop, or NULL */
    unsigned depth;
    oi_map states;             /* name of a cache -> its place in c.states */
    oi_map lengths;            /* variables that hold how many rows kv_read gave */
    oi_raised *copied;         /* what the last transfer wrote, when it came from a cache */
    OI_VEC(oi_raised *) bound; /* in the order in which they got their values */
    oi_buf text;
    oi_status status;
} oi_raiser;

/* -- raise.c -- */
void oi_raise(oi_raiser *r);
/* E085 at a node, or at a declaration. Returns false. */
bool oi_raise_refuse(oi_raiser *r, const oi_node *n, const char *fmt, ...) OI_PRINTF(3, 4);
oi_raised *oi_raise_var(oi_raiser *r, const char *name); /* NULL for what is no variable */
oi_cstmt *oi_raise_stmt(oi_raiser *r, oi_cstmt_kind kind, const oi_node *n);
/* `name` has a value from here on; false (reported) where the compact form cannot give it one. */
bool oi_raise_bind(oi_raiser *r, const oi_node *n, const char *name);

/* -- raise_expr.c -- */
/* An operand; NULL after an error. */
const oi_cexpr *oi_raise_operand(oi_raiser *r, const oi_node *n, const oi_access *a);
const oi_cexpr *oi_raise_call(oi_raiser *r, const oi_node *n);           /* of an op */
bool oi_raise_numbers(oi_raiser *r, const oi_node *n, const oi_expr *e); /* names in it are bound */
const oi_cexpr *oi_raise_index(oi_raiser *r, const oi_expr *e, oi_span span);
/* let NAME = model["KEY"], where a number needs the name. */
void oi_raise_name_data(oi_raiser *r, const oi_symbol *s);

/* -- raise_state.c -- */
/* The statements of nodes[i …] that are one kv_write or kv_read; how many nodes that are. 0: not
 * such a pair. */
size_t oi_raise_state(oi_raiser *r, const oi_ids *nodes, size_t i);

#endif
