/* lower.h: what lower.c and expand.c share. */
#ifndef OI_LOWER_H
#define OI_LOWER_H

#include "synth/unit.h"

typedef struct oi_dyn oi_dyn; /* lengths.h */

/* A call whose operands are ports. */
typedef struct oi_lowered {
    const oi_kernel_query *q;
    const uint32_t *scalars;   /* per attribute: the number that only the run knows, or OI_NO_ID */
    const oi_kscalar *numbers; /* those */
    uint32_t n_numbers;
    const oi_port *in, *to;
    oi_dyn *dyn;   /* some lengths only the run knows; NULL: all are numbers */
    uint32_t leaf; /* which call of dyn this is */
    bool
        is_counted; /* operands have room for the greatest lengths, a number says how much counts */
} oi_lowered;

void oi_lower_call(oi_unit *u, uint32_t graph, const oi_pnode *n, const oi_lowered *call,
                   oi_stmts *out);
void oi_lower_composite(oi_unit *u, uint32_t graph, const oi_pnode *n, const oi_lowered *call,
                        oi_stmts *out);
/* An op of class custom as bodies of text; false: it has none. */
bool oi_lower_custom(oi_unit *u, uint32_t graph, const oi_pnode *n, const oi_lowered *call,
                     oi_stmts *out);
/* A recipe that takes the call does it; false: none does. */
bool oi_lower_recipe(oi_unit *u, uint32_t graph, const oi_pnode *n, const oi_lowered *call,
                     oi_stmts *out);
/* The same for attention over keys whose number only the run knows. */
bool oi_lower_counted(oi_unit *u, uint32_t graph, const oi_pnode *n, const oi_lowered *call,
                      oi_stmts *out);
/* The recipe for the call, its weights at hand; false: there is none. */
bool oi_recipe_of(oi_unit *u, const oi_lowered *call, const oi_recipe **recipe,
                  oi_recipe_plan *plan);
uint32_t oi_recipe_pack(oi_unit *u, const oi_lowered *call, const oi_packing *p); /* a tensor */
/* The result of these dims is stored as that tensor. The partition is along a dim of the result. A
 * tensor of another shape may have that dim, too; if not, a worker's places are scattered. */
void oi_recipe_resplit(oi_recipe_plan *p, const int64_t *dims, uint32_t rank, const oi_tensor *to);
/* Adds a kernel that computes the arrays of the prologue; `arrays` becomes their ports. */
void oi_recipe_prologue(oi_unit *u, uint32_t graph, const oi_pnode *n, const oi_lowered *call,
                        const oi_prologue *r, oi_port *arrays, oi_stmts *out);
/* What a composite demands of numbers that only the run knows. */
bool oi_lower_checks(oi_unit *u, uint32_t graph, const oi_pnode *n, const oi_lowered *call,
                     oi_stmts *out);
oi_skernel *oi_lower_kernel(oi_unit *u, const char *what, const oi_pnode *n); /* a new one */
void oi_lower_operand(const oi_unit *u, const oi_port *p, oi_operand *o);     /* one entry, dense */

#endif
