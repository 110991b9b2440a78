/* code.c: index expressions, conditions and scalars, which the control unit computes from loop
 * indices and from tensors of one element. Positions are integers; what exceeds them is clamped,
 * and so out of range. */
#include "emit/hdl/hdl.h"

#include <inttypes.h>

const char *oi_hdl_element(oi_circuit *h, uint32_t tensor)
{
    oi_hdl_memory *m = oi_hdl_memory_of(h, tensor);
    m->has_value = true;
    return oi_arena_printf(h->arena, "%s_value", m->name);
}

static uint32_t tensor_of(const oi_circuit *h, uint32_t var)
{
    return oi_graph_tensor(&h->p->graphs.at[h->graph], h->block, var);
}

/* The typed value of a tensor of rank 0. */
static const char *value_of(oi_circuit *h, uint32_t tensor)
{
    const oi_tensor *t = &h->p->tensors.at[tensor];
    return oi_hdl_load(h->arena, t->dtype, t->dtype == OI_BOOL, oi_hdl_element(h, tensor));
}

static const char *combine(oi_arena *a, oi_ins_kind kind, const char *x, const char *y)
{
    static const char *const signs[] = {[OI_INS_ADD] = "+", [OI_INS_SUB] = "-"};
    static const char *const calls[] = {
        [OI_INS_MUL] = "oi_times",     [OI_INS_DIV] = "oi_floor_quotient",
        [OI_INS_MOD] = "oi_floor_mod", [OI_INS_MIN] = "oi_lesser",
        [OI_INS_MAX] = "oi_greater",   [OI_INS_END] = "oi_end"};
    if (kind == OI_INS_ADD || kind == OI_INS_SUB)
        return oi_arena_printf(a, "(%s %s %s)", x, signs[kind], y);
    return oi_arena_printf(a, "%s(%s, %s)", calls[kind], x, y);
}

const char *oi_hdl_code(oi_circuit *h, const oi_code *code)
{
    const char *stack[OI_CODE_STACK];
    oi_arena *a = h->arena;
    size_t n = 0;
    for (uint32_t k = 0; k < code->n; k++) {
        const oi_ins *i = &code->at[k];
        switch (i->kind) {
        case OI_INS_INT:
            stack[n++] = oi_arena_printf(a, i->value < 0 ? "(%" PRId64 ")" : "%" PRId64, i->value);
            break;
        case OI_INS_INDEX: stack[n++] = h->indices[i->id]; break;
        case OI_INS_VAR:
            stack[n++] = oi_arena_printf(a, "oi_number(%s)", value_of(h, tensor_of(h, i->id)));
            break;
        case OI_INS_CELL:
            stack[n++] = oi_arena_printf(a, "oi_number(%s)", value_of(h, (uint32_t)i->value));
            break;
        case OI_INS_NEG: stack[n - 1] = combine(a, OI_INS_SUB, "0", stack[n - 1]); break;
        case OI_INS_OWN:
        case OI_INS_SIZE:
        case OI_INS_LENGTH:
            oi_hdl_refuse(
                h, h->graph, NULL, "E062",
                "memory that grows while the program runs has no hardware form: give it a "
                "fixed size");
            return "0";
        default:
            n--;
            stack[n - 1] = combine(a, i->kind, stack[n - 1], stack[n]);
            break;
        }
    }
    return n ? stack[0] : "0";
}

const char *oi_hdl_scalar(oi_circuit *h, const oi_pvalue *v)
{
    if (v->kind == OI_PV_INDEX)
        return oi_arena_printf(h->arena, "to_signed(%s, 64)", h->indices[v->id]);
    if (v->kind == OI_PV_CODE)
        return oi_arena_printf(h->arena, "to_signed(%s, 64)", oi_hdl_code(h, &v->code));
    if (v->kind != OI_PV_VAR)
        return "to_signed(0, 64)";
    return oi_arena_printf(h->arena, "oi_to_i64(%s)", value_of(h, tensor_of(h, v->id)));
}

const char *oi_hdl_truth(oi_circuit *h, const oi_pnode *branch)
{
    if (branch->as.branch.cond_is_index)
        return oi_arena_printf(h->arena, "%s /= 0", h->indices[branch->as.branch.cond]);
    return oi_arena_printf(h->arena, "oi_is_true(%s)",
                           oi_hdl_element(h, tensor_of(h, branch->as.branch.cond)));
}

static void add_term(oi_circuit *h, oi_buf *b, const char *what, uint64_t stride)
{
    oi_buf_printf(b, "%s%s", b->n ? " + " : "", what);
    if (stride != 1)
        oi_buf_printf(b, " * %" PRIu64, stride);
    (void)h;
}

/* Coordinates of elements smaller than a byte count from the beginning of the state. */
const char *oi_hdl_base(oi_circuit *h, const oi_port *p)
{
    const oi_tensor *t = &h->p->tensors.at[p->tensor];
    const bool is_table = t->n_table > 0;
    uint64_t stride = is_table ? oi_hdl_extent(t) : 1;
    oi_buf b = {0};
    int64_t n;
    if (t->space == OI_SPACE_VIEW)
        return h->memories[p->tensor].base;
    if (!is_table && oi_dtype_bits(t->dtype) < 8)
        return "0";
    for (uint32_t i = p->n_entry; i-- > 0;) {
        if (!oi_code_is_int(&p->entry[i], &n) || n)
            add_term(h, &b, oi_hdl_code(h, &p->entry[i]), stride);
        stride *= (uint64_t)(is_table ? t->table[i] : t->dims[i]);
    }
    return b.n ? oi_buf_to_arena(&b, h->arena) : "0";
}
