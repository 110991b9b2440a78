/* check.h: what the files of the typed check share: a graph, maybe its model, and the types that
 * follow. */
#ifndef OI_PROGRAM_CHECK_H
#define OI_PROGRAM_CHECK_H

#include "graph/graph.h"
#include "oinf/oinf.h"
#include "program/program.h"

/* Dims of a symbol, evaluated once. */
typedef struct oi_dims {
    const oi_dim *at;
    uint32_t n;
    bool known; /* computed already */
} oi_dims;

/* -- quant.c: quantisation data of tensors -- */

enum { OI_QUANT_SCALE, OI_QUANT_ZP, OI_QUANT_PARTS };

/* Operands that a call leaves out and the data of one of its tensors stands in for. */
typedef struct oi_fill {
    bool is_wanted;          /* the call leaves them out */
    uint32_t at, n;          /* operands at ... at + n - 1; n = 0 without data */
    const oi_access *of;     /* what they describe */
    const oi_symbol *symbol; /* the same */
    oi_type types[OI_QUANT_PARTS];
} oi_fill;
/* Without a model there may be data: a scale of unknown size then. */
void oi_quant_fill(const oi_symbols *syms, const oi_model *m, const oi_node *n, const oi_op *op,
                   oi_arena *a, oi_fill *out);
/* The tensor that holds a part; of a prefix table: of one of its entries. */
bool oi_quant_find(const oi_model *m, const oi_symbol *s, uint32_t part, oi_arena *a,
                   oi_tensor_info *out);
const char *oi_quant_suffix(uint32_t part); /* of its name: "#scale" */
/* name[0 ... n) is one of those that the pattern of a prefix table makes. */
bool oi_pattern_makes(const char *pattern, const char *name, size_t n);

typedef struct oi_typer {
    const oi_graph *g;
    oi_model *model;      /* NULL: sizes stay names */
    const oi_size *given; /* sizes with another value than the model's */
    size_t n_given;
    bool strict;
    bool is_complete;                            /* without a model there is none */
    void (*on_tensor)(void *ctx, size_t tensor); /* told what is linked; or NULL */
    void *on_tensor_ctx;
    bool *has_value; /* by place in syms->list: the model or @init sets it */
    oi_diag *d;
    oi_arena *a; /* scratch */
    const oi_symbols *syms;
    OI_VEC(oi_dims) dims;     /* by place in syms->list */
    OI_VEC(oi_type) types;    /* of the call being judged; reused */
    OI_VEC(oi_attr_arg) args; /* likewise */
    OI_VEC(size_t) arg_at;    /* which attribute of the node each argument is */
    oi_fill fill;             /* likewise: operands that it leaves out */
    oi_map sizes;             /* names of the model -> size_values */
    OI_VEC(int64_t) size_values;
    oi_map linked;            /* keys of prefix tables that were looked up -> the table */
    oi_map refused;           /* those found wrong */
    OI_VEC(char) key;         /* the one being looked up */
    uint64_t n_keys;          /* looked up so far */
    oi_graph *spare;          /* holds expressions that come with the model, or NULL */
    struct json_object *json; /* the state spec being read, or NULL */
    bool is_broken;           /* the structure is wrong: what runs after what is not known */
    bool tells_types;         /* a wrong call is shown with the types of its operands */
    bool unreadable;          /* the check ended because the model cannot be read */
} oi_typer;

/* -- sizes.c: names that the model gives a value -- */
/* Ends the check when the model cannot be read; the diagnostics say why. */
void oi_typer_must(oi_typer *t, oi_status status);
/* An oi_lookup over given sizes, the model's sizevars and integer metadata; ctx is the typer. */
bool oi_typer_size(void *ctx, const char *name, int64_t *out);
/* The value of a rank-0 integer constant, as far as it is known without reading tensors. */
bool oi_typer_constant(oi_typer *t, const oi_symbol *s, int64_t *out);
/* The dim an expression over sizes gives; unknown when it does not compute. */
oi_dim oi_typer_dim(oi_typer *t, const oi_expr *e);
/* Reports sizes among `given` that neither the graph nor the model has. */
void oi_typer_check_given(oi_typer *t);
bool oi_typer_eval(oi_typer *t, const oi_expr *e, int64_t *out); /* an index expression */

/* -- typing.c: types of nodes -- */
oi_place oi_typer_at(const oi_typer *t, const oi_node *n, oi_span span);
void oi_typer_note(const oi_typer *t, const oi_symbol *s); /* "'x' is declared here" */
/* The declared type; false when it has more than OI_MAX_RANK dims. */
bool oi_typer_type(oi_typer *t, const oi_symbol *s, oi_type *out);
void oi_typer_check_node(oi_typer *t, const oi_node *n);
/* Results of a call that are not declared yet: the node needs no outputs. False after an error,
 * or when the row of the op refuses the call (oi_graph_check_call). */
bool oi_typer_results(oi_typer *t, const oi_node *n, oi_type *out, size_t n_out);

/* -- select.c: what an access to persistent memory selects -- */
/* False after an error, or when the access itself is wrong (reported before). */
bool oi_typer_select(oi_typer *t, const oi_node *n, const oi_access *a, const oi_symbol *s,
                     oi_type *out);

/* -- args.c: attributes of a call, from the graph's values to the op's -- */
/* One value that is not a list; false when only the run knows it. */
bool oi_typer_value(oi_typer *t, const oi_value *v, oi_op_value *out);
/* A word where an attribute wants a text, as in approximate=tanh: hints at the quotes. False when
 * the name is nothing of that sort. */
bool oi_hint_quotes(oi_diag *d, const oi_node *n, const char *name);
/* Without a model: W111 for such words, which might still be names of its metadata. */
void oi_warn_quotes(oi_typer *t, const oi_node *n);
/* Fills t->args; false when the row knows an attribute not or twice (reported before). */
bool oi_typer_args(oi_typer *t, const oi_node *n, const oi_op *op);

/* -- link*.c: the graph against its model -- */
typedef enum oi_found {
    OI_FOUND_NOTHING,
    OI_FOUND_WRONG, /* reported */
    OI_FOUND_NO_DATA,
    OI_FOUND_DATA
} oi_found;
/* What the model has under a key: a tensor, metadata or a size that suits the declaration. */
oi_found oi_link_key(oi_typer *t, oi_place at, const oi_type *declared, const char *key);
void oi_link_vars(oi_typer *t);
void oi_link_names(oi_typer *t, const oi_node *n);
void oi_link_keys(oi_typer *t);
void oi_link_uses(oi_typer *t, const char *key); /* tells on_tensor, when it is a tensor */
/* link_reads.c: W110, E023: variables that are read before anything sets them. */
void oi_link_reads(oi_typer *t);
void oi_link_states(oi_typer *t);
/* The dims of the state spec `oi.state.NAME` as expressions over sizes; false: none, or an error.
 */
bool oi_link_dims(oi_typer *t, const char *name, oi_exprs *out);
/* The initial value that the model's state spec gives a variable without @init; false: none. */
bool oi_link_init(oi_typer *t, const oi_symbol *s, oi_scalar *out);

#endif
