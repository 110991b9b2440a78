/* quant.c: quantisation data of tensors in the place of operands that a call leaves out.
 *
 * A row marks the inputs that describe another one ("quant"): first its scale, then its zero
 * point. The model lends the data of tensor W as tensors "W#scale" and "W#zp", of W's rank, so that
 * they broadcast; a call that leaves the marked inputs out gets them from there. */
#include "program/check.h"

static const char *const suffixes[OI_QUANT_PARTS] = {"#scale", "#zp"};
static const oi_dtype dtypes[OI_QUANT_PARTS] = {OI_F32, OI_I32};

const char *oi_quant_suffix(uint32_t part)
{
    return suffixes[part];
}

bool oi_pattern_makes(const char *pattern, const char *name, size_t n)
{
    const char *end = name + n;
    for (const char *p = pattern; *p; p++) {
        bool is_brace = *p == '{' || *p == '}';
        if (*p == '{' && p[1] != '{') {
            const char *first = name;
            while (name < end && *name >= '0' && *name <= '9')
                name++;
            if (name == first || !strchr(p, '}'))
                return false;
            p = strchr(p, '}');
            continue;
        }
        p += is_brace && p[1] == *p;
        if (name == end || *name++ != *p)
            return false;
    }
    return name == end;
}

/* One tensor with that suffix whose name the pattern makes; all must be alike (E013 in the run). */
static bool find_entry(const oi_model *m, const char *pattern, const char *suffix,
                       oi_tensor_info *out)
{
    size_t n_suffix = strlen(suffix);
    for (size_t i = oi_model_n_tensors(m); i < m->n_stored; i++) {
        *out = m->tensors[i];
        size_t n = strlen(out->name);
        if (n > n_suffix && strcmp(out->name + n - n_suffix, suffix) == 0 &&
            oi_pattern_makes(pattern, out->name, n - n_suffix))
            return true;
    }
    return false;
}

bool oi_quant_find(const oi_model *m, const oi_symbol *s, uint32_t part, oi_arena *a,
                   oi_tensor_info *out)
{
    if (m->n_stored == oi_model_n_tensors(m))
        return false;
    if (s->var && oi_symbol_is_prefix(s))
        return s->var->pattern && find_entry(m, s->var->pattern, suffixes[part], out);
    const char *key = s->var && s->var->ref_name ? s->var->ref_name : s->name;
    const char *name = oi_arena_printf(a, "%s%s", key, suffixes[part]);
    return oi_model_tensor_info(m, name, out) == OI_OK;
}

static uint32_t first_marked(const oi_op *op)
{
    for (uint32_t i = 0; i < op->n_inputs; i++)
        if (op->inputs[i].quant_of >= 0)
            return i;
    return OI_NO_ID;
}

/* With an input after the marked ones, an operand in their place may be that one: a vector, where
 * they would have the rank of what they describe. */
static bool leaves_out(const oi_symbols *syms, const oi_node *n, const oi_op *op, uint32_t first,
                       const oi_symbol *of)
{
    const oi_accesses *in = &n->as.op.inputs;
    if (in->n <= first)
        return true;
    const oi_symbol *s = oi_symbols_at(syms, n, in->at[first].base.text);
    return in->n == first + 1 && op->inputs[op->n_inputs - 1].quant_of < 0 && s &&
           s->dims->n == 1 && of->dims->n != 1;
}

static oi_type type_of(const oi_tensor_info *t)
{
    oi_type out = {.dtype = t->dtype, .rank = t->rank};
    for (uint32_t i = 0; i < t->rank; i++)
        out.dims[i] = oi_dim_of((int64_t)t->dims[i]);
    return out;
}

void oi_quant_fill(const oi_symbols *syms, const oi_model *m, const oi_node *n, const oi_op *op,
                   oi_arena *a, oi_fill *out)
{
    uint32_t first = first_marked(op);
    *out = (oi_fill){.at = first};
    if (first == OI_NO_ID)
        return;
    const oi_accesses *list = &n->as.op.inputs;
    size_t which = (size_t)op->inputs[first].quant_of;
    if (op->inputs[first].quant_of == OI_QUANT_OF_OUTPUT) {
        list = &n->as.op.outputs;
        which = 0;
    }
    if (which >= list->n)
        return;
    out->of = &list->at[which];
    out->symbol = oi_symbols_at(syms, n, out->of->base.text);
    if (!out->symbol || out->symbol->kind == OI_SYM_INDEX || out->symbol->dims->n > OI_MAX_RANK ||
        !leaves_out(syms, n, op, first, out->symbol))
        return;
    out->is_wanted = true;
    for (uint32_t part = 0; part < OI_QUANT_PARTS; part++) {
        oi_tensor_info info;
        if (!m && part == 0) /* a size that is not known yet */
            out->types[out->n++] =
                (oi_type){.dtype = dtypes[part], .rank = (uint32_t)out->symbol->dims->n};
        if (!m || !oi_quant_find(m, out->symbol, part, a, &info))
            return;
        out->types[out->n++] = type_of(&info);
    }
}
