/* scalar.c: binds the expressions of instructions to constants. */
#include "plan/scalar.h"

#define EXACT ((int64_t)1 << 53) /* integers below it are exact as doubles */

/* A number in the dtype of the first input. */
static void set_number(oi_m_name *name, oi_dtype t, uint64_t bits)
{
    const oi_dtype_info *info = oi_dtype_get(t);
    if (oi_dtype_is_float(t)) {
        name->is_number = true;
        name->number = oi_element_f64(t, &bits, 0);
        return;
    }
    if (t == OI_BOOL || t == OI_BITSET)
        return;
    if (t == OI_U64) {
        name->is_number = bits < (uint64_t)EXACT;
        name->limit = bits == UINT64_MAX ? 1 : bits == 0 ? -1 : 0;
    } else {
        const int64_t v = oi_element_i64(t, &bits, 0);
        name->is_number = v > -EXACT && v < EXACT;
        name->limit = v == info->min ? -1 : v > 0 && (uint64_t)v == info->max ? 1 : 0;
    }
    name->number = name->is_number ? oi_element_f64(t, &bits, 0) : 0;
}

static void set_known(oi_m_name *name, const oi_op_attr *attr, const oi_op_value *v, oi_dtype in0)
{
    switch (attr->kind) {
    case OI_ATTR_BOOL:
    case OI_ATTR_STRING:
        name->is_bound = true;
        name->value = attr->kind == OI_ATTR_BOOL ? v->b : (int)oi_op_attr_word(attr, v->s);
        break;
    case OI_ATTR_INT:
        name->is_number = v->i > -EXACT && v->i < EXACT;
        name->number = (double)v->i;
        break;
    default: set_number(name, in0, oi_kernel_number(in0, v)); break;
    }
}

size_t oi_scalar_attrs(const oi_scall *c, oi_m_name names[OI_SCALAR_NAMES])
{
    size_t n = 0;
    for (uint32_t i = 0; i < c->op->n_attrs && n < OI_SCALAR_NAMES; i++) {
        const oi_op_attr *attr = &c->op->attrs[i];
        const bool is_run = c->scalars && c->scalars[i] != OI_NO_ID;
        oi_m_name *name = &names[n];
        *name = (oi_m_name){.name = attr->name, .words = attr->values};
        switch (attr->kind) {
        case OI_ATTR_NUMBER: name->type = oi_form_of(c->in0); break;
        case OI_ATTR_INT: name->type = OI_I64; break;
        case OI_ATTR_BOOL: name->type = OI_BOOL; break;
        case OI_ATTR_STRING: name->type = OI_I32; break;
        default: continue;
        }
        n++;
        name->is_absent = !is_run && c->attrs[i].tag == OI_VALUE_NONE;
        if (!is_run && !name->is_absent)
            set_known(name, attr, &c->attrs[i], c->in0);
    }
    return n;
}

const oi_m_expr *oi_scalar_part(const oi_scall *c, oi_op_part part, oi_dtype of, oi_dtype to)
{
    static const oi_m_node zero = {.kind = OI_M_NUMBER};
    static const oi_m_expr nothing = {.nodes = &zero, .n_nodes = 1};
    const oi_op_meaning *m = oi_op_meaning_find(c->op, part, of, to);
    return m ? &m->expr : &nothing;
}

bool oi_scalar_bind(const oi_m_expr *e, oi_m_name *names, size_t n, oi_dtype want, oi_meaning *m)
{
    for (size_t i = 0; i < n; i++) /* without a test for presence, an absent value is 0 */
        names[i].is_absent &= oi_m_asks(e, names[i].name);
    oi_meaning_start(m, e);
    return oi_meaning_bind(m, names, n, want);
}
