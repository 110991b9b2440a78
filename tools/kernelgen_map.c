/* kernelgen_map.c: kernels of maps: one row, element by element. */
#include "kernelgen.h"

/* A truth may be any byte but 0. */
static void add_input(kg_kernel *k, size_t i, oi_dtype t)
{
    char spell[80];
    if (i >= sizeof k->in / sizeof k->in[0]) {
        fprintf(stderr, "kernelgen: %s has more inputs than a map may have\n", k->op->name);
        exit(1);
    }
    const char *name = k->op->inputs[i].name;
    snprintf(spell, sizeof spell, t == OI_BOOL ? "(%s[i] != 0)" : "%s[i]", name);
    k->in[i] = t;
    kg_add_name(k, name, t, spell);
}

/* Ops that count take no more than the shape from an input. */
static bool reads(const oi_op *op)
{
    return op->loops != OI_LOOPS_COUNT_UP;
}

static void print_map(kg_kernel *k)
{
    char name[96], *body = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&body, &size);
    if (!f)
        exit(3);
    const char *text = kg_text(k->op, OI_PART_EXPR, k->in[0] ? k->in[0] : k->out, k->out);
    fprintf(f, "/* %s */\nvoid OI_KERNEL(@)(const oi_map_row *row)\n{\n", text);
    for (size_t i = 0; i < 3; i++)
        if (k->in[i] && kg_mentions(k, text, k->op->inputs[i].name))
            fprintf(f, "    const %s *%s = row->in[%zu];\n", kg_type(k->in[i]),
                    k->op->inputs[i].name, i);
    if (kg_mentions(k, text, "i"))
        fprintf(f, "    const int64_t *at = row->in[%u];\n", reads(k->op) ? k->op->n_inputs : 0);
    fprintf(f, "    %s *out = row->out;\n", kg_type(k->out));
    kg_put_attrs(f, k, &text, 1);
    fputs("    OI_ROW_LOOP\n    for (size_t i = 0; i < row->n; i++) {\n", f);
    kg_expression(f, k, text, k->out, "        ", "out[i] = ");
    fputs("    }\n}\n", f);
    fclose(f);
    kg_name(k, name);
    kg_row("MAP", k,
           kg_symbol(name, body, k->op->outputs[0].out_rule == OI_OUT_ATTR ? "cast" : "map"));
    free(body);
}

/* The forms that input i may have when the shared one is t. */
static oi_dtypes forms_of(const oi_op *op, size_t i, oi_dtype t)
{
    const oi_op_input *in = &op->inputs[i];
    if (in->shares_dtype)
        return OI_DTYPES(t);
    oi_dtypes set = kg_forms(in->dtypes & ~OI_DTYPES_SAME);
    return in->dtypes & OI_DTYPES_SAME ? set | OI_DTYPES(t) : set;
}

static oi_dtypes results_of(const oi_op *op, oi_dtype t)
{
    const oi_op_output *out = &op->outputs[0];
    if (out->out_rule == OI_OUT_ATTR) /* stored as it is: a conversion rounds only once */
        return op->attrs[out->out_attr].dtypes;
    if (out->out_rule != OI_OUT_LIST)
        return OI_DTYPES(t);
    oi_dtypes set = kg_forms(out->out_dtypes & ~OI_DTYPES_SAME);
    return out->out_dtypes & OI_DTYPES_SAME ? set | OI_DTYPES(t) : set;
}

/* Inputs from i on, in every form they may have; then the result. */
static void each_input(kg_kernel *k, size_t i, oi_dtype t)
{
    const oi_op *op = k->op;
    if (reads(op) && i < op->n_inputs) {
        oi_dtypes forms = forms_of(op, i, t);
        for (int u = 1; u < OI_DTYPE_COUNT; u++)
            if (forms & OI_DTYPES(u)) {
                kg_kernel one = *k;
                add_input(&one, i, (oi_dtype)u);
                each_input(&one, i + 1, t);
            }
        if (!op->inputs[i].optional)
            return;
    }
    bool numbers_as_out = op->outputs[0].out_rule == OI_OUT_LIST;
    oi_dtypes results = results_of(op, t);
    for (int u = 1; u < OI_DTYPE_COUNT; u++)
        if (results & OI_DTYPES(u)) {
            kg_kernel one = *k;
            one.out = (oi_dtype)u;
            kg_add_attrs(&one, numbers_as_out ? one.out : t);
            kg_add_name(&one, "i", OI_I64, "at[i]");
            kg_each_variant(&one, kg_text(op, OI_PART_EXPR, t, one.out), print_map);
        }
}

/* Packed elements arrive extended, so a conversion reads them as what they were extended to. */
static oi_dtypes sources(const oi_op *op)
{
    oi_dtypes forms = kg_forms(op->dtypes);
    if (op->outputs[0].out_rule != OI_OUT_ATTR)
        return forms;
    oi_dtypes whole = 0;
    for (int t = 1; t < OI_DTYPE_COUNT; t++)
        if (forms & OI_DTYPES(t) && oi_dtype_bits((oi_dtype)t) >= 8)
            whole |= OI_DTYPES(t);
    return whole;
}

void kg_map(const oi_op *op)
{
    if (op->n_inputs > 3 || op->n_attrs > 15) {
        kg_complain(op, "a map takes at most 3 inputs and 15 attributes");
        return;
    }
    oi_dtypes forms = reads(op) ? sources(op) : OI_DTYPES(OI_I64);
    for (int t = 1; t < OI_DTYPE_COUNT; t++)
        if (forms & OI_DTYPES(t)) {
            kg_kernel k = {.op = op};
            each_input(&k, 0, (oi_dtype)t);
        }
    if (oi_op_meaning_find(op, OI_PART_COMBINE, OI_BOOL, OI_BOOL))
        kg_fold(op);
}
