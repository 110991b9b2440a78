/* access.c: what the selectors of a cache access ask for, and names of a prefix table's tensors. */
#include "program/bind.h"

bool oi_access_is_growth(const oi_pvar *v, const oi_paccess *a)
{
    bool all = v->n_table < v->n_axes && a->n == v->n_axes;
    for (uint32_t i = v->n_table; all && i < v->n_axes; i++)
        all = !a->sels[i].is_slice;
    return all;
}

bool oi_access_is_whole(const oi_paccess *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (!a->sels[i].is_slice || a->sels[i].start.n || a->sels[i].end.n)
            return false;
    return true;
}

void oi_pattern_key(const oi_pvar *v, const int64_t *indices, oi_buf *out)
{
    for (uint32_t i = 0; i < v->n_pattern; i++) {
        oi_buf_puts(out, v->pattern[i].text);
        if (v->pattern[i].axis != OI_NO_ID)
            oi_buf_printf(out, "%lld", (long long)indices[v->pattern[i].axis]);
    }
    oi_buf_putc(out, '\0');
}

bool oi_pattern_match(const oi_pvar *v, const char *name, int64_t *indices)
{
    for (uint32_t i = 0; i < v->n_pattern; i++) {
        const oi_pattern_part *part = &v->pattern[i];
        size_t n = strlen(part->text);
        if (strncmp(name, part->text, n) != 0)
            return false;
        name += n;
        if (part->axis == OI_NO_ID)
            break;
        int64_t value = 0;
        const char *first = name;
        while (*name >= '0' && *name <= '9' && value < INT32_MAX)
            value = value * 10 + (*name++ - '0');
        if (name == first || (*first == '0' && name - first > 1))
            return false;
        indices[part->axis] = value;
    }
    return *name == '\0';
}

/* -- ranges of codes -- */

typedef struct code_range {
    int64_t low, high;
    bool is_known; /* else it is any number */
} code_range;

static code_range range_of_index(const oi_program *p, uint32_t index)
{
    code_range r = {0, 0, false};
    bool any = false;
    for (size_t i = 0; i < p->graph->nodes.n; i++) {
        const oi_pnode *node = &p->nodes[i];
        int64_t from, to;
        if (node->kind != OI_NODE_LOOP || node->as.loop.index != index)
            continue;
        if (!oi_code_is_int(&node->as.loop.start, &from) ||
            !oi_code_is_int(&node->as.loop.end, &to))
            return (code_range){0, 0, false};
        to = to > from ? to - 1 : from;
        r.low = any && r.low < from ? r.low : from;
        r.high = any && r.high > to ? r.high : to;
        r.is_known = any = true;
    }
    return r;
}

static code_range range_of_leaf(const oi_program *p, const oi_ins *i)
{
    if (i->kind == OI_INS_INT)
        return (code_range){i->value, i->value, true};
    if (i->kind == OI_INS_INDEX)
        return range_of_index(p, i->id);
    if (i->kind == OI_INS_VAR && oi_dtype_bits(p->vars[i->id].dtype) <= 32) {
        const oi_dtype t = p->vars[i->id].dtype;
        if (t == OI_BOOL || t == OI_U8 || t == OI_U16 || t == OI_U32)
            return (code_range){0, ((int64_t)1 << oi_dtype_bits(t)) - 1, true};
    }
    return (code_range){0, 0, false};
}

/* Sums of the ends; a remainder by a positive number has a range whatever it is taken of. */
static code_range range_of_join(oi_ins_kind kind, code_range x, code_range y)
{
    code_range r = {0, 0, x.is_known && y.is_known};
    if (kind == OI_INS_MOD && y.is_known && y.low == y.high && y.low > 0)
        return (code_range){0, y.low - 1, true};
    if (kind == OI_INS_ADD)
        r.is_known &= !__builtin_add_overflow(x.low, y.low, &r.low) &&
                      !__builtin_add_overflow(x.high, y.high, &r.high);
    else if (kind == OI_INS_SUB)
        r.is_known &= !__builtin_sub_overflow(x.low, y.high, &r.low) &&
                      !__builtin_sub_overflow(x.high, y.low, &r.high);
    else if (kind == OI_INS_MUL && r.is_known && x.low >= 0 && y.low >= 0)
        r.is_known = !__builtin_mul_overflow(x.low, y.low, &r.low) &&
                     !__builtin_mul_overflow(x.high, y.high, &r.high);
    else
        r.is_known = false;
    return r;
}

static code_range range_of(const oi_program *p, const oi_code *code)
{
    code_range stack[OI_CODE_STACK];
    size_t n = 0;
    for (uint32_t i = 0; i < code->n; i++) {
        if (code->at[i].kind < OI_INS_NEG) {
            stack[n++] = range_of_leaf(p, &code->at[i]);
        } else if (code->at[i].kind == OI_INS_NEG) {
            stack[n - 1] = range_of_join(OI_INS_SUB, (code_range){0, 0, true}, stack[n - 1]);
        } else {
            n--;
            stack[n - 1] = range_of_join(code->at[i].kind, stack[n - 1], stack[n]);
        }
    }
    return n ? stack[0] : (code_range){0, 0, false};
}

bool oi_code_is_below(const oi_program *p, const oi_code *code, int64_t n)
{
    const code_range r = range_of(p, code);
    return r.is_known && r.low >= 0 && r.high < n;
}
