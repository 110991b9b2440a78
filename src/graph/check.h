/* check.h: what the files of the static check share. Each check_*.c holds one family of rules of
 * spec/dsl.md; check.c runs them. */
#ifndef OI_CHECK_H
#define OI_CHECK_H

#include "graph/graph.h"

/* One call of a block; a conditional branch makes two. */
typedef struct oi_call_edge {
    const oi_node *branch;
    uint32_t to;
    bool surely; /* whenever the branch is reached */
} oi_call_edge;
typedef OI_VEC(oi_call_edge) oi_call_edges;

/* What is known of a block before its nodes are looked at. */
typedef struct oi_block_facts {
    oi_call_edges calls; /* by its branch nodes, loops included; missing blocks left out */
    oi_ids awaits;       /* its await nodes */
    uint32_t call;       /* a branch node that calls it, or OI_NO_ID */
    bool is_consumer;    /* not entry, has an await; branching to it is E036 */
    bool runs;           /* reached from entry or a consumer */
} oi_block_facts;

/* A name that means a loop index of the block's caller. */
typedef struct oi_free_use {
    uint32_t block;
    const oi_node *node;
    oi_span span;
    bool is_loop;  /* not a use: a loop of the block binds the name again */
    uint32_t next; /* use of the same name, or OI_NO_ID */
} oi_free_use;

typedef struct oi_free_name {
    const char *name;
    uint32_t first; /* of its uses */
} oi_free_name;

typedef struct oi_checker {
    const oi_graph *g;
    bool strict;
    oi_diag *d;
    oi_arena *a; /* scratch; everything below lives in it */
    const oi_symbols *syms;
    oi_block_facts *blocks; /* by block id */
    uint32_t entry;         /* block id, or OI_NO_ID */
    oi_ids order;           /* blocks, callers before callees; empty when there is a cycle */
    OI_VEC(oi_free_use) free_uses;
    OI_VEC(oi_free_name) free_names;
    oi_map free_ids; /* name -> free_names */
} oi_checker;

/* -- check.c: shared helpers -- */

bool oi_check_stop(const oi_checker *c); /* the diagnostics are full */
oi_place oi_check_at(const oi_checker *c, const oi_node *n, oi_span span);
oi_place oi_check_at_var(const oi_checker *c, const oi_var *v, oi_span span);
/* "'x' is declared here" for the message before. */
void oi_check_note_symbol(const oi_checker *c, const oi_symbol *s);
void oi_check_hint(const oi_checker *c, const oi_nearest *near); /* "did you mean 'x'?" */
void oi_check_hint_symbol(const oi_checker *c, const oi_node *n, const char *word);
/* Literal parts of an expression must compute: `code` is E011 in dims (exact), E047 in indices.
 * 1: *out is the value, 0: it depends on names, -1: reported. */
int oi_check_fold(const oi_checker *c, oi_place at, const oi_expr *e, bool exact, const char *code,
                  int64_t *out);
int oi_check_node_fold(const oi_checker *c, const oi_node *n, const oi_expr *e, int64_t *out);

/* -- check_names.c -- */
void oi_check_duplicates(oi_checker *c);
void oi_check_names(oi_checker *c, const oi_node *n);
/* -- check_scope.c -- */
void oi_check_add_free(oi_checker *c, const oi_node *n, const char *name, oi_span span,
                       bool is_loop);
void oi_check_scopes(oi_checker *c);
/* -- check_decl.c -- */
void oi_check_var(const oi_checker *c, const oi_var *v);
void oi_check_dims(const oi_checker *c, const oi_node *n); /* of an assign */
/* -- check_block.c -- */
void oi_check_blocks(oi_checker *c);
/* -- check_access.c -- */
void oi_check_access(const oi_checker *c, const oi_node *n);
/* -- check_op.c -- */
void oi_check_op(const oi_checker *c, const oi_node *n);
void oi_check_hints(const oi_checker *c, const oi_node *n);
/* -- check_async.c: consumers -- */

#define OI_MANY (UINT32_MAX - 1) /* more than one consumer */

typedef struct oi_consumer {
    uint32_t block;
    oi_ids awaited;   /* variables below, each once */
    uint32_t n_first; /* how many of them its first await names */
    uint32_t n_lent;  /* how many of those are lent at the moment */
    uint8_t done;     /* whether it has finished the round: a mask of OI_NO, OI_YES */
} oi_consumer;

/* A place where a variable is used. */
typedef struct oi_touch {
    uint32_t var;
    const oi_node *node;
    oi_span span;
    bool writes;
} oi_touch;

enum { OI_NO = 1, OI_YES = 2 }; /* a set of both: depends on the path */

/* A variable that entry lends, or that consumers write or (when persistent) read. */
typedef struct oi_shared {
    const char *name;
    oi_ids consumers;        /* that await it */
    uint32_t writer, reader; /* consumer, OI_MANY or OI_NO_ID */
    oi_touch first_write, first_read;
    bool is_lendable;       /* entry yields it somewhere */
    uint8_t lent;           /* a mask of OI_NO, OI_YES */
    const oi_node *yielded; /* by this node, when lent */
} oi_shared;

typedef struct oi_async {
    oi_checker *c;
    OI_VEC(oi_consumer) consumers;
    OI_VEC(oi_shared) vars;
    oi_map ids;       /* name -> vars */
    uint32_t *owner;  /* by block: the consumer that runs it, OI_MANY or OI_NO_ID */
    uint32_t *second; /* by block with OI_MANY: another of them */
} oi_async;

void oi_check_async(oi_checker *c);
const char *oi_async_consumer(const oi_async *x, uint32_t consumer); /* its block's name */
uint32_t oi_async_var(oi_async *x, const char *name);                /* found or added */
/* -- check_lend.c: what entry does between yield and await -- */
void oi_check_lending(oi_async *x);

#endif
