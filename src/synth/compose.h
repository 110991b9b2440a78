/* compose.h: the coordinates and instructions of one nest in terms of another's axes. Private to
 * the passes that join kernels. */
#ifndef OI_COMPOSE_H
#define OI_COMPOSE_H

#include "synth/lengths.h"
#include "synth/pass.h"

/* -- numbers: elements of a tensor counted row by row -- */

/* Digits of such a number, the most significant first: dims of a tensor or axes of a nest. Digits
 * of length 1 are left out. */
typedef struct oi_radix {
    uint32_t n;
    uint32_t of[OI_NEST_AXES]; /* which dim or axis */
    int64_t stride[OI_NEST_AXES], length[OI_NEST_AXES];
} oi_radix;

/* An axis that must become two for coordinates to stay sums: outer ones of `inner` places each. */
typedef struct oi_split {
    uint32_t axis; /* OI_NO_ID: nothing would help */
    int64_t inner;
} oi_split;

/* No data, bend or border in any coordinate: just sums over axes. */
bool oi_sop_is_affine(const oi_unit *u, const oi_skernel *k, const oi_sop *op);
/* The number of the element that an affine load or store names. */
oi_nest_coord oi_sop_number(const oi_unit *u, const oi_skernel *k, const oi_sop *op);
bool oi_radix_of_tensor(const oi_tensor *t, oi_radix *out);
/* The axes as digits of the number; false when they do not count all of 0 ... total - 1. */
bool oi_radix_of_axes(const oi_snest *n, const oi_nest_coord *number, int64_t total, oi_radix *out);
/* The digits of a number as coordinates, by `of`. False when some digit is no sum over the axes;
 * *want says what would help. */
bool oi_radix_digits(const oi_snest *n, const oi_nest_coord *number, const oi_radix *r,
                     oi_nest_coord *out, oi_split *want);
int64_t oi_tensor_count(const oi_tensor *t); /* elements of an entry */

/* -- axes -- */

void oi_nest_split_axis(oi_unit *u, const oi_skernel *k, oi_snest *n, const oi_split *s);
void oi_nest_drop_unit_axes(oi_unit *u, const oi_skernel *k, oi_snest *n);
/* Axis i of the nest was axis from[i]. */
void oi_nest_permute(oi_unit *u, const oi_skernel *k, oi_snest *n, const uint32_t *from);
/* The axis goes to place `to`; the others keep their order. */
void oi_nest_bring(oi_unit *u, const oi_skernel *k, oi_snest *n, uint32_t axis, uint32_t to);
/* The output axis that a coordinate is, OI_NO_ID when it is not one alone. */
uint32_t oi_coord_axis(const oi_snest *n, const oi_nest_coord *c);

/* -- instructions -- */

/* For every axis of a nest: where it stands in terms of the axes of the nest that takes it in. */
typedef struct oi_axis_map {
    oi_nest_coord of[OI_NEST_AXES];
    const oi_coord_fns *fns[OI_NEST_AXES]; /* beside them, or NULL: all are numbers */
} oi_axis_map;

void oi_axis_map_begin(oi_axis_map *m); /* all at 0 */
/* False when the result is no coordinate: data or a bend inside a sum. */
bool oi_coord_map(const oi_nest_coord *c, const oi_snest *n, const oi_axis_map *m,
                  oi_nest_coord *out);
bool oi_coord_has_fns(const oi_coord_fns *f); /* some of it is no number; NULL: none is */
/* The formulas beside that; false when they would have to be put together. The coordinate's own
 * ones, `f`, keep their numbers: *are_own says whether these are they. */
bool oi_coord_map_fns(const oi_nest_coord *c, const oi_coord_fns *f, const oi_snest *n,
                      const oi_axis_map *m, oi_coord_fns *out, bool *are_own);

/* What one list of instructions becomes inside another. */
typedef struct oi_moving {
    oi_unit *u;
    oi_skernel *to;
    const oi_skernel *from;
    const oi_snest *nest; /* whose axes the coordinates are over */
    const oi_axis_map *map;
    uint32_t *ids; /* by old instruction: the new one */
    bool fails;    /* some coordinate could not be mapped */
} oi_moving;

oi_sop oi_sop_moved(oi_moving *m, const oi_sop *op);
/* What a tensor would have held: the value rounded as the store would have. */
uint32_t oi_sop_as_stored(oi_unit *u, oi_sops *out, uint32_t base, const oi_sop *store,
                          uint32_t value);
/* A flat load or store whose tensor's own coordinates are sums too gets those. */
void oi_sop_unflatten(oi_unit *u, const oi_skernel *k, const oi_snest *n, oi_sop *op);
bool oi_port_same(const oi_port *a, const oi_port *b);       /* the same entry of the same tensor */
bool oi_port_same_entry(const oi_port *a, const oi_port *b); /* of whatever tables */
bool oi_tensor_same_type(const oi_tensor *a, const oi_tensor *b);
/* Whether two loads or stores name the same element in every iteration; false when unsure. */
bool oi_sop_same_place(const oi_sop *a, const oi_sop *b, uint32_t rank);

uint64_t oi_sop_work(const oi_sop *op); /* inline.c: what it costs, in additions */

/* -- kernels -- */

/* The one nest of a kernel that is a map with a single store, which comes last; NULL: it is not. */
const oi_snest *oi_kernel_map(const oi_skernel *k);
const oi_snest *oi_kernel_open_map(const oi_skernel *k); /* the same, with lengths of the run too */
/* All that goes to the tensor does so without the dim, which the tensor loses. */
void oi_kernel_drop_dim(oi_unit *u, oi_skernel *k, uint32_t tensor, uint32_t dim);
void oi_kernel_drop_port(oi_skernel *k, uint32_t tensor);
void oi_kernel_take_nodes(oi_unit *u, oi_skernel *to, const oi_skernel *from, bool first);
/* Whether statement `at` may change places with those from first to last - 1: none of them must
 * stay in place, changes what it reads or, unless only its reads matter, uses what it writes. */
bool oi_stmts_may_pass(oi_unit *u, uint32_t graph, const oi_stmts *list, size_t at, size_t first,
                       size_t last, bool reads_only);
/* rounding.c: what rounds a map's result for a tuned body becomes a map */
void oi_stmts_spell_casts(oi_unit *u, const oi_stmts *list, const oi_tally *uses);
void oi_kernel_join_maps(oi_unit *u, oi_skernel *k); /* join.c: nests that loop alike */
void oi_units_tidy_ports(oi_unit *u); /* dropped ports go; the instructions' numbers follow */

#endif
