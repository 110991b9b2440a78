/* precision.c: preferences.default_precision of a device. Ops that can round their factors to that
 * type are computed so, whatever the graph says: their attribute `act` gets another value where
 * the program is bound, so simulator and synthesizer see the same program. Which ops these are
 * stands in their rows: the words of `act`. Variables keep their dtypes. What has too few rows to
 * fill the units that a device has for such products stays as it is written, and so does what has
 * as many as a run says: weights would take longer to round than to multiply. */
#include "program/bind.h"

/* The attribute that says how an op's float factors take part, where it knows this word. */
static const oi_op_attr *act_of(const oi_op *op, const char *word)
{
    const oi_op_attr *act = oi_op_attr_find(op, "act");
    for (const char *const *v = act ? act->values : NULL; v && *v; v++)
        if (strcmp(*v, word) == 0)
            return act;
    return NULL;
}

#define ROWS 16 /* of a tile */

static bool has_rows(const oi_pvar *x)
{
    uint64_t rows = x->rank > 0;
    for (uint32_t i = 0; i + 1 < x->rank && rows < ROWS; i++)
        rows *= x->dims[i];
    return rows >= ROWS && !x->has_run_dims;
}

void oi_bind_precision(oi_binder *b, oi_pnode *n, oi_pattr *attrs)
{
    const oi_dtype want = b->p->precision;
    const bool rounds = want == OI_BF16 || want == OI_F16;
    const oi_op_attr *act = rounds ? act_of(n->as.op.op, oi_dtype_name(want)) : NULL;
    const oi_pref *x = n->as.op.n_in ? &n->as.op.in[0] : NULL;
    if (!act || !x || x->is_index || x->var == OI_NO_ID || b->vars[x->var].dtype != OI_F32 ||
        !has_rows(&b->vars[x->var]))
        return;
    uint32_t at = 0;
    while (at < n->as.op.n_attrs && attrs[at].attr != act)
        at++;
    const bool is_written = at < n->as.op.n_attrs;
    const oi_op_value *old = is_written ? &attrs[at].one.value : &act->def;
    if (old->tag == OI_VALUE_STRING && strcmp(old->s, oi_dtype_name(want)) == 0)
        return;
    attrs[at] = (oi_pattr){.attr = act, .span = is_written ? attrs[at].span : n->source->span};
    attrs[at].one.kind = OI_PV_KNOWN;
    attrs[at].one.value = (oi_op_value){.tag = OI_VALUE_STRING, .s = oi_dtype_name(want)};
    n->as.op.n_attrs += !is_written;
    n->is_lowered = true;
    b->p->n_lowered++;
}
