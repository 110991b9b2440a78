/* scalar.h: the expressions of instructions, bound to what is known now. For the passes that look
 * at values, and for what prints them. */
#ifndef OI_SCALAR_H
#define OI_SCALAR_H

#include "kernel/meaning.h"
#include "plan/plan.h"

#define OI_SCALAR_NAMES 24

/* The attributes of a call that expressions may mention, as names: a truth, a word or a number that
 * is known now is bound. Their spelling is the printer's. Returns how many there are. */
size_t oi_scalar_attrs(const oi_scall *c, oi_m_name names[OI_SCALAR_NAMES]);

/* Its expression; 0 where the row has none for these types. */
const oi_m_expr *oi_scalar_part(const oi_scall *c, oi_op_part part, oi_dtype of, oi_dtype to);
/* Fits the names to the expression, then folds and types it. False: m->error says why not. */
bool oi_scalar_bind(const oi_m_expr *e, oi_m_name *names, size_t n, oi_dtype want, oi_meaning *m);

#endif
