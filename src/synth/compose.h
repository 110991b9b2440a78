/* compose.h: rewrites coordinates and instructions of one nest over another's axes. Private to the
 * passes that join kernels. */
#ifndef OI_COMPOSE_H
#define OI_COMPOSE_H

#include "synth/lengths.h"
#include "synth/pass.h"

/* -- numbers: elements of a tensor counted row by row -- */

/* The digits of a row-major index, most significant first: dims of a tensor or axes of a nest.
 * Digits of length 1 are omitted. */
typedef struct oi_radix {
    uint32_t n;
    uint32_t of[OI_NEST_AXES]; /* which dim or axis */
    int64_t stride[OI_NEST_AXES], length[OI_NEST_AXES];
} oi_radix;

/* Splitting `axis` into an outer one and one of `inner` places would keep coordinates linear. */
typedef struct oi_split {
    uint32_t axis; /* OI_NO_ID: no split helps */
    int64_t inner;
} oi_split;

/* Every coordinate is a linear function of the axes, without data, bends or borders. */
bool oi_sop_is_affine(const oi_unit *u, const oi_skernel *k, const oi_sop *op);
/* The row-major index of an affine load or store. */
oi_nest_coord oi_sop_number(const oi_unit *u, const oi_skernel *k, const oi_sop *op);
bool oi_radix_of_tensor(const oi_tensor *t, oi_radix *out);
/* The axes as digits of the index. False if they do not count through exactly 0 ... total - 1. */
bool oi_radix_of_axes(const oi_snest *n, const oi_nest_coord *number, int64_t total, oi_radix *out);
/* The digits of the index as coordinates, by `of`. False if some digit is not linear in the axes;
 * then *want is the split that would help. */
bool oi_radix_digits(const oi_snest *n, const oi_nest_coord *number, const oi_radix *r,
                     oi_nest_coord *out, oi_split *want);
int64_t oi_tensor_count(const oi_tensor *t); /* elements of an entry */

/* -- axes -- */

void oi_nest_split_axis(oi_unit *u, const oi_skernel *k, oi_snest *n, const oi_split *s);
void oi_nest_drop_unit_axes(oi_unit *u, const oi_skernel *k, oi_snest *n);
/* Axis i of the new nest is axis from[i] of the old one. */
void oi_nest_permute(oi_unit *u, const oi_skernel *k, oi_snest *n, const uint32_t *from);
/* Moves the axis to place `to`; the others keep their order. */
void oi_nest_bring(oi_unit *u, const oi_skernel *k, oi_snest *n, uint32_t axis, uint32_t to);
/* The output axis that the coordinate equals, or OI_NO_ID. */
uint32_t oi_coord_axis(const oi_snest *n, const oi_nest_coord *c);

/* -- instructions -- */

/* For every axis of a nest: its position in terms of the axes of the nest that takes it in. */
typedef struct oi_axis_map {
    oi_nest_coord of[OI_NEST_AXES];
    const oi_coord_fns *fns[OI_NEST_AXES]; /* formulas that replace constants, or NULL */
} oi_axis_map;

void oi_axis_map_begin(oi_axis_map *m); /* all at 0 */
/* False if the result is no coordinate: data or a bend inside a sum. */
bool oi_coord_map(const oi_nest_coord *c, const oi_snest *n, const oi_axis_map *m,
                  oi_nest_coord *out);
bool oi_coord_has_fns(const oi_coord_fns *f); /* some constant is replaced; NULL: none */
/* The formulas for that. False if two formulas would have to be combined. *are_own: they are the
 * coordinate's own formulas `f`, unchanged. */
bool oi_coord_map_fns(const oi_nest_coord *c, const oi_coord_fns *f, const oi_snest *n,
                      const oi_axis_map *m, oi_coord_fns *out, bool *are_own);

/* A list of instructions that moves into another kernel. */
typedef struct oi_moving {
    oi_unit *u;
    oi_skernel *to;
    const oi_skernel *from;
    const oi_snest *nest; /* the coordinates are over its axes */
    const oi_axis_map *map;
    uint32_t *ids; /* new instruction by old one */
    bool fails;    /* some coordinate could not be mapped */
} oi_moving;

oi_sop oi_sop_moved(oi_moving *m, const oi_sop *op);
/* The value as it would be after a store and a load: rounded to the store's type. */
uint32_t oi_sop_as_stored(oi_unit *u, oi_sops *out, uint32_t base, const oi_sop *store,
                          uint32_t value);
/* Replaces the row-major index of a flat access by the tensor's own coordinates, if those are
 * linear. */
void oi_sop_unflatten(oi_unit *u, const oi_skernel *k, const oi_snest *n, oi_sop *op);
bool oi_port_same(const oi_port *a, const oi_port *b);       /* the same entry of the same tensor */
bool oi_port_same_entry(const oi_port *a, const oi_port *b); /* the same entry, of any tables */
bool oi_tensor_same_type(const oi_tensor *a, const oi_tensor *b);
/* Whether two accesses name the same element in every iteration; false if unknown. */
bool oi_sop_same_place(const oi_sop *a, const oi_sop *b, uint32_t rank);

uint64_t oi_sop_work(const oi_sop *op); /* inline.c: its cost, in additions */

/* -- hooks.c: the hooks of recipes -- */

/* By output axis: which position of the epilogue it belongs to. False: they are not the dims of the
 * sums in order. */
bool oi_hook_positions(const oi_skernel *k, const oi_recipe_plan *plan, uint32_t *position_of);
/* The coordinate over the positions; the last one is given as two that are added. */
bool oi_hook_is_linear(const oi_snest *n, const uint32_t *position_of, const oi_nest_coord *c,
                       oi_nest_coord *out);
/* The store visits the elements of its tensor in the order of the sums. */
bool oi_hook_is_in_order(const oi_unit *u, const oi_skernel *k, const oi_sop *store);
bool oi_hook_is_bound(const oi_sop *op, double *least, double *most); /* a relu or clamp */
/* Why the recipe that P is offered cannot do map R after its sums; NULL: it can. `map`: R's axes
 * over P's. */
const char *oi_hook_why_not(const oi_unit *u, const oi_skernel *p, const oi_skernel *r,
                            uint32_t tensor, const oi_axis_map *map);

/* -- kernels -- */

/* The only nest of a kernel, if it is a map with one store at its end; else NULL. */
const oi_snest *oi_kernel_map(const oi_skernel *k);
const oi_snest *oi_kernel_open_map(const oi_skernel *k); /* the same, also with run-time lengths */
/* Removes the dim from the tensor and from every access to it. */
void oi_kernel_drop_dim(oi_unit *u, oi_skernel *k, uint32_t tensor, uint32_t dim);
void oi_kernel_drop_port(oi_skernel *k, uint32_t tensor);
void oi_kernel_take_nodes(oi_unit *u, oi_skernel *to, const oi_skernel *from, bool first);
/* Whether statement `at` may move before statements first ... last - 1: none of them is fixed in
 * place, writes what it reads or, unless reads_only, uses what it writes. */
bool oi_stmts_may_pass(oi_unit *u, uint32_t graph, const oi_stmts *list, size_t at, size_t first,
                       size_t last, bool reads_only);
void oi_units_share_prologues(oi_unit *u); /* cse.c: merges equal prologues of recipes */
/* rounding.c: turns the rounding of a map's result for a tuned body into a map of its own */
void oi_stmts_spell_casts(oi_unit *u, const oi_stmts *list, const oi_tally *uses);
void oi_kernel_join_maps(oi_unit *u, oi_skernel *k); /* join.c: joins nests with equal loops */
void oi_units_tidy_ports(
    oi_unit *u); /* removes dropped ports and renumbers those of instructions */

#endif
