/* kernelgen.h: what the files of the kernel generator share. */
#ifndef KERNELGEN_H
#define KERNELGEN_H

#include "base/base.h"
#include "base/ops.h"
#include "kernel/meaning.h"

#define KG_NAMES 16
#define KG_WHENS 2

/* A condition for a kernel: attributes with few values are decided when it is chosen, not inside
 * its loop. `what` as in src/kernel/kernel.h. */
typedef struct kg_when {
    int what, value;
} kg_when;

/* One kernel to print. */
typedef struct kg_kernel {
    const oi_op *op;
    oi_dtype in[3]; /* in the form it computes in; OI_NONE where an input is left out */
    oi_dtype out;
    kg_when when[KG_WHENS];
    size_t n_when;
    oi_m_name names[KG_NAMES];
    char spells[KG_NAMES][80];
    size_t n_names;
    uint32_t attrs; /* bit i: attribute i of the op is among the names */
} kg_kernel;

/* -- kernelgen.c -- */

void kg_complain(const oi_op *op, const char *fmt, ...) OI_PRINTF(2, 3);
oi_dtype kg_form(oi_dtype t); /* what elements of t are computed in */
oi_dtypes kg_forms(oi_dtypes set);
const char *kg_member(oi_dtype t); /* of oi_kernel_scalar */
/* Parses, binds and prints one expression; lets come first, each a line. */
void kg_expression(FILE *f, const kg_kernel *k, const char *text, oi_dtype want, const char *indent,
                   const char *target);
void kg_add_name(kg_kernel *k, const char *name, oi_dtype type, const char *spell);
void kg_add_attrs(kg_kernel *k, oi_dtype number);
/* Whether an expression needs a name once everything decided is simplified away. */
bool kg_mentions(const kg_kernel *k, const char *text, const char *name);
/* "    const float value = row->attrs[0].f32;" for each attribute that the texts mention */
void kg_put_attrs(FILE *f, const kg_kernel *k, const char *const *texts, size_t n_texts);
const char *kg_type(oi_dtype t);
const char *kg_text(const oi_op *op, oi_op_part part, oi_dtype of, oi_dtype to);
/* Calls print for every way to decide the attributes that the text asks about. */
void kg_each_variant(kg_kernel *k, const char *text, void (*print)(kg_kernel *k));
/* Writes a function or table once per different body; returns the symbol that has it. The body
 * says @ where its own name belongs. */
const char *kg_symbol(const char *name, const char *body, const char *group);
void kg_name(const kg_kernel *k, char out[96]);
void kg_row(const char *table, const kg_kernel *k, const char *symbol);

/* -- kernelgen_map.c, kernelgen_reduce.c -- */

void kg_map(const oi_op *op);
void kg_reduce(const oi_op *op);
void kg_contract(const oi_op *op);
void kg_scatter(const oi_op *op);
void kg_fold(const oi_op *op); /* a map that can also tell about all elements at once */

#endif
