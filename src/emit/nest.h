/* nest.h: what the files that print a nest share. */
#ifndef OI_EMIT_NEST_H
#define OI_EMIT_NEST_H

#include "emit/emit.h"

/* A nest being printed. */
typedef struct oi_printing {
    const oi_nest_printer *p;
    const oi_snest *n;
    const char **values; /* by instruction: how its value is spelled */
    oi_dtype *forms;     /* by instruction: the type it is held in */
    const char *widened; /* the last value, which the next store takes, as it is stored; or NULL */
    oi_dtype widened_type;
    unsigned n_names;
    bool names_all; /* what is loaded, too: a store may come before its use */
    int64_t round;  /* place along the last axis, where that is spelled */
    uint32_t row;   /* behind the first of those abreast */
    unsigned only;  /* not 0: bit by kind of instruction, those are printed */
    bool *early;    /* by instruction: it is printed before the sum is made; NULL: none is */
    bool is_early;  /* those are printed now */
    /* rows of rings that have a name, where they are the same for all loops inside */
    struct {
        const char *text, *name;
        uint32_t axis; /* inside its loop */
    } rows[8];
    uint32_t n_rows;
} oi_printing;

/* -- place.c -- */

const char *oi_place_axis(const oi_printing *x, uint32_t a); /* the counter of the axis */
bool oi_place_has_loop(const oi_snest *n, uint32_t a);       /* else it has no counter */
const char *oi_place_number(const oi_printing *x, int64_t value, oi_fn fn);
const char *oi_place_dim(const oi_printing *x, uint32_t port, uint32_t d); /* its length */
const char *oi_place_position(const oi_printing *x, const char *text);     /* made one */
const oi_coord_fns *oi_place_fns(const oi_sop *op, uint32_t d);
const char *oi_place_coord(const oi_printing *x, const oi_nest_coord *c, const oi_coord_fns *f);
const oi_tensor *oi_place_tensor(const oi_printing *x, const oi_sop *op);
const char *oi_place_element(const oi_printing *x, const oi_sop *op); /* counted in elements */
/* In groups of `each` elements, and which one of its group it is; NULL when that varies. */
const char *oi_place_group(const oi_printing *x, const oi_sop *op, int64_t each, int64_t *part);
const char *oi_place_inside(const oi_printing *x, const oi_sop *op); /* it exists; NULL: surely */
/* Inside the loop over the axis, or outside of those from that one on: rows of rings get a name, or
 * lose it. */
void oi_place_name_rows(oi_printing *x, uint32_t axis);
void oi_place_forget_rows(oi_printing *x, uint32_t axis);

/* -- instr.c -- */

const char *oi_instr_type(const oi_printing *x, oi_dtype t); /* "float": of a variable */
/* Instructions, whose values are counted from `base`; `acc` is how a sum is spelled. */
void oi_instr_print(oi_printing *x, const oi_sops *ops, uint32_t base, const char *acc);
const char *oi_instr_init(oi_printing *x); /* what a sum begins with */
/* acc after one more element, both of a form. */
void oi_instr_combine(oi_printing *x, oi_dtype form, const char *acc, const char *element);
bool oi_instr_counts(const oi_printing *x); /* its end asks over how many elements it went */

#endif
