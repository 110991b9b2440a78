/* nest.h: shared by the files that print a nest. */
#ifndef OI_EMIT_NEST_H
#define OI_EMIT_NEST_H

#include "emit/emit.h"

/* A nest being printed. */
struct oi_printing {
    const oi_nest_printer *p;
    const oi_snest *n;
    const char *const *axes; /* by axis: its counter, if that is not its letter; or NULL */
    const char **values;     /* by instruction: the text of its value */
    oi_dtype *forms;         /* by instruction: the type it is held in */
    const char
        *widened; /* the last value in its stored form, which the next store takes; or NULL */
    oi_dtype widened_type;
    unsigned n_names;
    bool names_all; /* loads get names, too, because a store may come before their use */
    int64_t round;  /* place along the last axis, if it is unrolled */
    uint32_t row;   /* unroll-and-jam: which row, except for the first */
    unsigned only;  /* not 0: bit mask of the kinds of instructions to print */
    bool *early;    /* by instruction: it is printed before the sum, for a predicate; NULL: none */
    bool is_early;  /* those are being printed */
    /* named rows of line buffers, which do not change in inner loops */
    struct {
        const char *text, *name;
        uint32_t axis; /* inside the loop over it */
    } rows[8];
    uint32_t n_rows;
};

/* -- place.c -- */

const char *oi_place_scalar(const oi_nest_printer *p, uint32_t scalar); /* its name */

const char *oi_place_axis(const oi_printing *x, uint32_t a); /* the counter of the axis */
bool oi_place_has_loop(const oi_snest *n, uint32_t a);       /* else it has no counter */
const char *oi_place_number(const oi_printing *x, int64_t value, oi_fn fn);
const char *oi_place_dim(const oi_printing *x, uint32_t port, uint32_t d); /* its length */
const char *oi_place_position(const oi_printing *x, const char *text);     /* made one */
const oi_coord_fns *oi_place_fns(const oi_sop *op, uint32_t d);
const char *oi_place_coord(const oi_printing *x, const oi_nest_coord *c, const oi_coord_fns *f);
const oi_tensor *oi_place_tensor(const oi_printing *x, const oi_sop *op);
const char *oi_place_element(const oi_printing *x, const oi_sop *op); /* counted in elements */
/* In groups of `each` elements, and the place in the group; NULL if that varies. */
const char *oi_place_group(const oi_printing *x, const oi_sop *op, int64_t each, int64_t *part);
const char *oi_place_inside(const oi_printing *x, const oi_sop *op); /* condition for the element to
                                                                        exist; NULL: always true */
/* Called inside the loop over the axis: names rows of line buffers; called outside, removes the
 * names. */
void oi_place_name_rows(oi_printing *x, uint32_t axis);
void oi_place_forget_rows(oi_printing *x, uint32_t axis);

/* -- instr.c -- */

const char *oi_instr_type(const oi_printing *x, oi_dtype t); /* "float": of a variable */
/* Prints instructions whose values are numbered from `base`; `acc` is the text of a sum. */
void oi_instr_print(oi_printing *x, const oi_sops *ops, uint32_t base, const char *acc);
const char *oi_instr_init(oi_printing *x); /* initial value of a sum */
/* The value of an EVAL or CONVERT; lines that define its parts are printed first. */
const char *oi_instr_value(oi_printing *x, const oi_sop *op);
/* The same for acc combined with one more element, and for the condition that the element is
 * better; all have the form `form`. */
const char *oi_instr_combined(oi_printing *x, oi_dtype form, const char *acc, const char *element);
const char *oi_instr_better(oi_printing *x, oi_dtype form, const char *acc, const char *element);
/* Prints that combination. */
void oi_instr_combine(oi_printing *x, oi_dtype form, const char *acc, const char *element);
bool oi_instr_counts(const oi_printing *x); /* its end uses the number of elements */

#endif
