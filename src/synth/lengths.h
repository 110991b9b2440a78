/* lengths.h: calls with run-time lengths. */
#ifndef OI_LENGTHS_H
#define OI_LENGTHS_H

#include "program/composite.h"
#include "synth/lower.h"

#define OI_LENGTH_VARS   12 /* `?` dims of one call's inputs; more are refused */
#define OI_LENGTH_POINTS 192

/* A `?` dim of an input. */
typedef struct oi_length_var {
    uint32_t tensor, dim;
    int64_t bound;
    uint32_t group;
    bool may_be_one; /* and then repeats: broadcast */
} oi_length_var;

/* Lengths that must be equal, or one that must be a certain number. */
typedef struct oi_length_group {
    int64_t base; /* a value that is right */
    bool is_pinned;
    int64_t greatest;
} oi_length_group;

struct oi_dyn {
    oi_unit *u;
    uint32_t graph;
    const oi_pnode *n;
    const oi_kernel_query *q; /* with the greatest lengths */
    const oi_port *in, *to;
    uint32_t n_vars, n_groups;
    oi_length_var vars[OI_LENGTH_VARS];
    oi_length_group groups[OI_LENGTH_VARS];
    /* samples; the first has the greatest lengths */
    size_t n_points;
    int64_t (*points)[OI_LENGTH_VARS]; /* by variable */
    oi_kernel_query *queries;          /* by point: the whole call */
    const oi_expansion **expansions;   /* of a composite */
    OI_VEC(oi_length_check) checks;
    oi_type *types; /* room for one call's */
    oi_attr_arg *args;
};

/* What a length of the node's variables means to the call: which are equal, what is right. Bounds
 * of `?` inputs are their tensors' dims. False when it could not be found out: the node is refused.
 */
bool oi_dyn_study(oi_dyn *d);
/* The calls that a composite is, at every point; nothing for others. */
bool oi_dyn_expand(oi_dyn *d);
/* One of them at a point; of others the call itself. */
void oi_dyn_leaf(const oi_dyn *d, size_t point, uint32_t leaf, oi_kernel_query *out);
/* Whether lengths of 0 or 1 stand in the point beside those that may be 1. */
bool oi_dyn_is_small(const oi_dyn *d, size_t point);
bool oi_dyn_refuse(const oi_dyn *d, const char *why); /* E062 at the node, then false */

/* -- lower.c -- */

bool oi_lower_study(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_dyn *out); /* an op's call */

/* -- open.c -- */

/* A call some of whose operands have open lengths; `to` are its outputs' ports. */
void oi_lower_open(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_lowered *call, oi_port *to,
                   oi_stmts *out);

/* -- bounds.c -- */

/* Dims of the graph's `?` tensors become the greatest they can be. */
oi_status oi_bounds_find(oi_unit *u, uint32_t graph);

/* -- dynamic.c: formulas of kernels -- */

/* A length as a number that a kernel is handed, and which of the kernel's numbers that is. */
oi_kscalar oi_length_number(oi_unit *u, uint32_t tensor, uint32_t dim);
uint32_t oi_length_scalar(oi_unit *u, oi_skernel *k, uint32_t tensor, uint32_t dim);
uint32_t oi_kscalar_add(oi_unit *u, oi_skernel *k, const oi_kscalar *s); /* one of another kernel */
/* The number as a formula of the kernel. */
oi_fn oi_code_fn(oi_unit *u, oi_skernel *k, const char *name, const oi_code *code);
/* The formula as one of another kernel. */
oi_fn oi_fn_moved(oi_unit *u, oi_skernel *to, const oi_skernel *from, oi_fn fn);
/* The length along a dim as a number of the kernel; 0 where it is fixed. */
oi_fn oi_length_fn(oi_unit *u, oi_skernel *k, uint32_t tensor, uint32_t dim);

/* Formulas beside the numbers of a nest. */
typedef struct oi_nest_fns {
    oi_fn extents[OI_NEST_AXES];
    const oi_coord_fns *reads[OI_NEST_READS], *write, *guard; /* by dim */
} oi_nest_fns;

/* Nest i of a leaf, with its formulas; `in` and `to` are the leaf's ports. */
bool oi_dyn_nest(oi_dyn *d, uint32_t leaf, size_t i, oi_skernel *k, const oi_port *in,
                 const oi_port *to, oi_nest *nest, oi_nest_fns *out);
/* The lengths of what the leaf writes. */
bool oi_dyn_lengths(oi_dyn *d, uint32_t leaf, oi_skernel *k, const oi_port *to);
/* The greatest dims of a value of the expansion; returns which of them vary. */
uint32_t oi_dyn_value(const oi_dyn *d, uint32_t value, int64_t *dims);

#endif
