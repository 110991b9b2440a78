/* kernelgen_reduce.c: kernels of reductions and of products summed over an axis.
 *
 * A reduction is four functions (rows.h): init, fold along a row, each over a row of accumulators,
 * finish; two more where the row's order is lanes. Where regrouping is allowed, fold runs OI_LANES
 * accumulators side by side in the variants for wider instructions; the reference has one and keeps
 * the index order. */
#include "kernelgen.h"

static FILE *open_body(char **body, size_t *size)
{
    FILE *f = open_memstream(body, size);
    if (!f)
        exit(3);
    return f;
}

/* `acc`, `x` and the attributes; x is spelled as given. */
static kg_kernel with_acc(const kg_kernel *k, const char *acc, const char *x)
{
    kg_kernel one = {.op = k->op, .out = k->out, .n_when = k->n_when};
    memcpy(one.in, k->in, sizeof one.in);
    memcpy(one.when, k->when, sizeof one.when);
    kg_add_name(&one, "acc", k->in[0], acc);
    kg_add_name(&one, "x", k->in[0], x);
    kg_add_name(&one, "n", OI_I64, "row->first");
    kg_add_attrs(&one, k->in[0]);
    for (size_t i = 0; i < k->n_names; i++) /* what the variant has decided */
        for (size_t j = 0; j < one.n_names; j++)
            if (strcmp(one.names[j].name, k->names[i].name) == 0) {
                one.names[j].is_bound = k->names[i].is_bound;
                one.names[j].value = k->names[i].value;
            }
    return one;
}

static void open_function(FILE *f, const char *what, const kg_kernel *k, const char *text,
                          bool reads_x)
{
    const char *type = kg_type(k->in[0]);
    fprintf(f, "static void @_%s(const oi_reduce_row *row)\n{\n    %s *acc = row->acc;\n", what,
            type);
    if (reads_x)
        fprintf(f, "    const %s *x = row->x;\n", type);
    kg_put_attrs(f, k, &text, 1);
}

static void put_init(FILE *f, const kg_kernel *k)
{
    kg_kernel one = with_acc(k, "acc[j]", "x[j]");
    const char *text = kg_text(k->op, OI_PART_INIT, k->in[0], k->in[0]);
    open_function(f, "init", &one, text, false);
    fputs("    for (size_t j = 0; j < row->n; j++) {\n", f);
    kg_expression(f, &one, text, k->in[0], "        ", "acc[j] = ");
    fputs("    }\n}\n", f);
}

static void put_each(FILE *f, const kg_kernel *k)
{
    kg_kernel one = with_acc(k, "acc[j]", "x[j]");
    const char *text = kg_text(k->op, OI_PART_COMBINE, k->in[0], k->in[0]);
    open_function(f, "each", &one, text, true);
    fputs("    OI_ROW_LOOP\n    for (size_t j = 0; j < row->n; j++) {\n", f);
    kg_expression(f, &one, text, k->in[0], "        ", "acc[j] = ");
    fputs("    }\n}\n", f);
}

static void put_lanes(FILE *f, const kg_kernel *k, const char *text)
{
    const char *type = kg_type(k->in[0]);
    kg_kernel lanes = with_acc(k, "lane[j]", "x[i + j]"), join = with_acc(k, "whole", "lane[j]");
    fputs("#if OI_LANES > 1\n", f);
    fprintf(f, "    if (row->n >= 2 * OI_LANES) {\n        %s lane[OI_LANES];\n", type);
    fputs("        for (int j = 0; j < OI_LANES; j++) {\n", f);
    kg_expression(f, &lanes, kg_text(k->op, OI_PART_INIT, k->in[0], k->in[0]), k->in[0],
                  "            ", "lane[j] = ");
    fputs("        }\n        for (; i + OI_LANES <= row->n; i += OI_LANES) {\n"
          "            for (int j = 0; j < OI_LANES; j++) {\n",
          f);
    kg_expression(f, &lanes, text, k->in[0], "                ", "lane[j] = ");
    fputs("            }\n        }\n        for (int j = 0; j < OI_LANES; j++) {\n", f);
    kg_expression(f, &join, text, k->in[0], "            ", "whole = ");
    fputs("        }\n    }\n#endif\n", f);
}

static void put_fold(FILE *f, const kg_kernel *k)
{
    const char *type = kg_type(k->in[0]);
    const char *text = kg_text(k->op, OI_PART_COMBINE, k->in[0], k->in[0]);
    kg_kernel one = with_acc(k, "whole", "x[i]");
    open_function(f, "fold", &one, text, true);
    fprintf(f, "    %s whole = acc[0];\n    size_t i = 0;\n", type);
    if (oi_dtype_is_float(k->in[0])) /* integers a compiler regroups by itself */
        put_lanes(f, k, text);
    fputs("    for (; i < row->n; i++) {\n", f);
    kg_expression(f, &one, text, k->in[0], "        ", "whole = ");
    fputs("    }\n    acc[0] = whole;\n}\n", f);
}

/* The op's partial sums along a row, and what becomes of them. False: its order is another. */
static bool put_declared(FILE *f, const kg_kernel *k)
{
    const char *text = kg_text(k->op, OI_PART_COMBINE, k->in[0], k->in[0]);
    const char *type = kg_type(k->in[0]);
    const unsigned n = k->op->lanes;
    kg_kernel lane = with_acc(k, "lane[j]", "x[i + j]"), join = with_acc(k, "acc[j]", "acc[j + n]");
    if (k->op->order != OI_REDUCE_LANES || !oi_dtype_is_float(k->in[0]))
        return false;
    open_function(f, "lanes", &lane, text, true);
    fprintf(f, "    %s lane[%u];\n    size_t i = 0;\n", type, n);
    fprintf(f, "    for (size_t j = 0; j < %u; j++)\n        lane[j] = acc[j];\n", n);
    fprintf(f, "    for (; i + %u <= row->n; i += %u) {\n", n, n);
    fprintf(f, "        for (size_t j = 0; j < %u; j++) {\n", n);
    kg_expression(f, &lane, text, k->in[0], "            ", "lane[j] = ");
    fputs("        }\n    }\n    for (size_t j = 0; i + j < row->n; j++) {\n", f);
    kg_expression(f, &lane, text, k->in[0], "        ", "lane[j] = ");
    fprintf(f, "    }\n    for (size_t j = 0; j < %u; j++)\n        acc[j] = lane[j];\n}\n", n);
    open_function(f, "join", &join, text, false);
    fprintf(f, "    for (size_t n = %u; n > 0; n /= 2) {\n", n / 2);
    fputs("        for (size_t j = 0; j < n; j++) {\n", f);
    kg_expression(f, &join, text, k->in[0], "            ", "acc[j] = ");
    fputs("        }\n    }\n}\n", f);
    return true;
}

/* The last step; false when there is none. */
static bool put_finish(FILE *f, const kg_kernel *k)
{
    const oi_op_meaning *finish = oi_op_meaning_find(k->op, OI_PART_FINISH, k->in[0], k->in[0]);
    if (!finish)
        return false;
    const char *text = finish->text;
    kg_kernel one = with_acc(k, "acc[j]", "acc[j]");
    open_function(f, "finish", &one, text, false);
    fputs("    for (size_t j = 0; j < row->n; j++) {\n", f);
    kg_expression(f, &one, text, k->in[0], "        ", "acc[j] = ");
    fputs("    }\n}\n", f);
    return true;
}

static void put_table(FILE *f, bool has_finish, bool has_lanes)
{
    fprintf(f, "const oi_reduce_fns OI_KERNEL(@) = {@_init, @_fold, @_each, %s, %s};\n",
            has_finish ? "@_finish" : "NULL", has_lanes ? "@_lanes, @_join" : "NULL, NULL");
}

static void print_reduce(kg_kernel *k)
{
    char name[96], *body = NULL;
    size_t size = 0;
    FILE *f = open_body(&body, &size);
    put_init(f, k);
    put_fold(f, k);
    put_each(f, k);
    const bool has_lanes = put_declared(f, k);
    put_table(f, put_finish(f, k), has_lanes);
    fclose(f);
    kg_name(k, name);
    kg_row("REDUCE", k, kg_symbol(name, body, "reduce"));
    free(body);
}

/* -- positions -- */

static void put_better(FILE *f, const kg_kernel *k, const char *what, const char *acc,
                       const char *x, const char *head, const char *then)
{
    kg_kernel one = with_acc(k, acc, x);
    const char *text = kg_text(k->op, OI_PART_BETTER, k->in[0], k->in[0]);
    open_function(f, what, &one, text, true);
    fputs(head, f);
    kg_expression(f, &one, text, OI_BOOL, "        ", "const int better = ");
    fputs(then, f);
}

static void print_position(kg_kernel *k)
{
    char name[96], *body = NULL;
    size_t size = 0;
    FILE *f = open_body(&body, &size);
    open_function(f, "init", k, "0", true);
    fputs("    for (size_t j = 0; j < row->n; j++) {\n        acc[j] = x[j];\n        row->at[j] = "
          "0;\n"
          "    }\n}\n",
          f);
    put_better(f, k, "fold", "best", "x[i]",
               "    int64_t at = row->at[0];\n    for (size_t i = 0; i < row->n; i++) {\n"
               "        const int64_t here = row->first + (int64_t)i;\n",
               "        at = better ? here : at;\n        best = better ? x[i] : best;\n    }\n"
               "    acc[0] = best;\n    row->at[0] = at;\n}\n");
    put_better(f, k, "each", "acc[j]", "x[j]", "    for (size_t j = 0; j < row->n; j++) {\n",
               "        row->at[j] = better ? row->first : row->at[j];\n"
               "        acc[j] = better ? x[j] : acc[j];\n    }\n}\n");
    put_table(f, false, false);
    fclose(f);
    /* the running best is a local of fold */
    char *with_best = NULL;
    size_t n = 0;
    FILE *g = open_body(&with_best, &n);
    char *mark = strstr(body, "    int64_t at = row->at[0];\n");
    fprintf(g, "%.*s    %s best = acc[0];\n%s", (int)(mark - body), body, kg_type(k->in[0]), mark);
    fclose(g);
    kg_name(k, name);
    kg_row("REDUCE", k, kg_symbol(name, with_best, "reduce"));
    free(body);
    free(with_best);
}

void kg_reduce(const oi_op *op)
{
    oi_dtypes forms = kg_forms(op->dtypes);
    bool positions = oi_op_meaning_find(op, OI_PART_BETTER, OI_F32, OI_F32) != NULL;
    bool values = oi_op_meaning_find(op, OI_PART_COMBINE, OI_F32, OI_F32) != NULL;
    for (int t = 1; t < OI_DTYPE_COUNT; t++) {
        if (!(forms & OI_DTYPES(t)))
            continue;
        kg_kernel k = {.op = op, .in = {(oi_dtype)t}, .out = (oi_dtype)t};
        kg_add_attrs(&k, (oi_dtype)t);
        if (values)
            kg_each_variant(&k, kg_text(op, OI_PART_COMBINE, k.in[0], k.in[0]), print_reduce);
        if (positions && values) /* both: told apart by their result */
            k.out = OI_BOOL;
        if (positions)
            kg_each_variant(&k, kg_text(op, OI_PART_BETTER, k.in[0], k.in[0]), print_position);
    }
}

/* A rank-0 result of a map that tells truths: those of all elements, folded. */
void kg_fold(const oi_op *op)
{
    kg_kernel k = {.op = op, .in = {OI_BOOL}, .out = OI_BOOL};
    print_reduce(&k);
}

/* A move that combines what it moves with what is there. */
static void print_scatter(kg_kernel *k)
{
    char name[96], *body = NULL;
    size_t size = 0;
    FILE *f = open_body(&body, &size);
    put_each(f, k);
    fputs("const oi_reduce_fns OI_KERNEL(@) = {NULL, NULL, @_each, NULL, NULL, NULL};\n", f);
    fclose(f);
    kg_name(k, name);
    kg_row("REDUCE", k, kg_symbol(name, body, "reduce"));
    free(body);
}

void kg_scatter(const oi_op *op)
{
    for (int t = 1; t < OI_DTYPE_COUNT; t++) {
        oi_dtype form = (oi_dtype)t;
        if (!(kg_forms(op->dtypes) & OI_DTYPES(t)) ||
            !oi_op_meaning_find(op, OI_PART_COMBINE, form, form))
            continue;
        kg_kernel k = {.op = op, .in = {form}, .out = form};
        kg_add_attrs(&k, form);
        print_scatter(&k);
    }
}

/* -- products -- */

/* The tile of the plain text: small enough for registers, wide enough for a compiler to vectorise.
 */
#define TILE_ROWS 4
#define TILE_COLS 16

static void print_contract(kg_kernel *k)
{
    char name[96], *body = NULL;
    size_t size = 0;
    const char *type = kg_type(k->in[0]);
    const char *product = kg_text(k->op, OI_PART_EXPR, k->in[0], k->in[0]);
    const char *sum = kg_text(k->op, OI_PART_COMBINE, k->in[0], k->in[0]);
    const char *init = kg_text(k->op, OI_PART_INIT, k->in[0], k->in[0]);
    kg_add_name(k, k->op->inputs[0].name, k->in[0], "a[i]");
    kg_add_name(k, k->op->inputs[1].name, k->in[0], "b[j]");
    kg_add_name(k, "p", k->in[0], "p");
    kg_add_name(k, "acc", k->in[0], "t[i][j]");
    FILE *f = open_body(&body, &size);
    fprintf(f, "/* p = %s; %s */\nstatic void @_tile(const oi_tile_row *row)\n{\n", product, sum);
    fprintf(f, "    const %s *a = row->a, *b = row->b;\n    %s *c = row->c, t[%d][%d];\n", type,
            type, TILE_ROWS, TILE_COLS);
    fprintf(f, "    for (size_t i = 0; i < %d; i++)\n        for (size_t j = 0; j < %d; j++)\n",
            TILE_ROWS, TILE_COLS);
    char start[64];
    snprintf(start, sizeof start, "const %s zero = ", type);
    fputs("            t[i][j] = c[i * row->ldc + j];\n    if (row->is_first) {\n", f);
    kg_expression(f, k, init, k->in[0], "        ", start);
    fprintf(f,
            "        for (size_t i = 0; i < %d; i++)\n            for (size_t j = 0; j < %d; j++)\n"
            "                t[i][j] = zero;\n    }\n",
            TILE_ROWS, TILE_COLS);
    fprintf(f, "    for (size_t n = 0; n < row->k; n++, a += %d, b += %d) {\n", TILE_ROWS,
            TILE_COLS);
    fprintf(f, "        for (size_t i = 0; i < %d; i++) {\n", TILE_ROWS);
    fprintf(f, "            for (size_t j = 0; j < %d; j++) {\n", TILE_COLS);
    char target[64];
    snprintf(target, sizeof target, "const %s p = ", type);
    kg_expression(f, k, product, k->in[0], "                ", target);
    kg_expression(f, k, sum, k->in[0], "                ", "t[i][j] = ");
    fputs("            }\n        }\n    }\n", f);
    fprintf(f, "    for (size_t i = 0; i < %d; i++)\n        for (size_t j = 0; j < %d; j++)\n",
            TILE_ROWS, TILE_COLS);
    fputs("            c[i * row->ldc + j] = t[i][j];\n}\n", f);
    fprintf(f, "const oi_tile_fns OI_KERNEL(@) = {@_tile, %d, %d};\n", TILE_ROWS, TILE_COLS);
    fclose(f);
    kg_name(k, name);
    kg_row("TILE", k, kg_symbol(name, body, "contract"));
    free(body);
}

/* `acc` and two factors, spelled as given; further ones are multiplied in by the same text. */
static kg_kernel with_factors(const kg_kernel *k, const char *y)
{
    kg_kernel one = {.op = k->op, .in = {k->in[0]}, .out = k->out};
    kg_add_name(&one, k->op->inputs[0].name, k->in[0], "x[j]");
    kg_add_name(&one, k->op->inputs[1].name, k->in[0], y);
    for (uint32_t i = 2; i < k->op->n_inputs; i++) {
        kg_add_name(&one, k->op->inputs[i].name, k->in[0], "");
        one.names[one.n_names - 1].is_absent = true;
    }
    kg_add_name(&one, "p", k->in[0], "p");
    kg_add_name(&one, "acc", k->in[0], "acc[j]");
    return one;
}

static void put_products(FILE *f, const kg_kernel *k, const char *what, const char *y)
{
    const char *type = kg_type(k->in[0]);
    kg_kernel one = with_factors(k, y);
    char target[64];
    snprintf(target, sizeof target, "const %s p = ", type);
    fprintf(f, "static void @_%s(const oi_contract_row *row)\n{\n    %s *acc = row->acc;\n", what,
            type);
    fprintf(f, "    const %s *x = row->x, *y = row->y;\n", type);
    fputs("    OI_ROW_LOOP\n    for (size_t j = 0; j < row->n; j++) {\n", f);
    kg_expression(f, &one, kg_text(k->op, OI_PART_EXPR, k->in[0], k->in[0]), k->in[0], "        ",
                  target);
    kg_expression(f, &one, kg_text(k->op, OI_PART_COMBINE, k->in[0], k->in[0]), k->in[0],
                  "        ", "acc[j] = ");
    fputs("    }\n}\n", f);
}

/* The last step, with the third input or without. False when there is none. */
static bool put_last(FILE *f, const kg_kernel *k, const char *what, bool has_third)
{
    const oi_op_meaning *finish = oi_op_meaning_find(k->op, OI_PART_FINISH, k->in[0], k->in[0]);
    const char *type = kg_type(k->in[0]);
    if (!finish)
        return false;
    const char *text = finish->text;
    kg_kernel one = {.op = k->op, .in = {k->in[0]}, .out = k->out};
    kg_add_name(&one, "acc", k->in[0], "acc[j]");
    if (k->op->n_inputs > 2) {
        kg_add_name(&one, k->op->inputs[2].name, k->in[0], "x[j]");
        one.names[one.n_names - 1].is_absent = !has_third;
    }
    kg_add_attrs(&one, k->in[0]);
    fprintf(f, "static void @_%s(const oi_contract_row *row)\n{\n    %s *acc = row->acc;\n", what,
            type);
    if (has_third)
        fprintf(f, "    const %s *x = row->x;\n", type);
    kg_put_attrs(f, &one, &text, 1);
    fputs("    OI_ROW_LOOP\n    for (size_t j = 0; j < row->n; j++) {\n", f);
    kg_expression(f, &one, text, k->in[0], "        ", "acc[j] = ");
    fputs("    }\n}\n", f);
    return true;
}

static void print_contract_rows(const kg_kernel *k)
{
    char name[96], longer[108], *body = NULL;
    size_t size = 0;
    kg_kernel one = with_factors(k, "y[j]");
    FILE *f = open_body(&body, &size);
    fprintf(f, "static void @_init(const oi_contract_row *row)\n{\n    %s *acc = row->acc;\n",
            kg_type(k->in[0]));
    fputs("    for (size_t j = 0; j < row->n; j++) {\n", f);
    kg_expression(f, &one, kg_text(k->op, OI_PART_INIT, k->in[0], k->in[0]), k->in[0], "        ",
                  "acc[j] = ");
    fputs("    }\n}\n", f);
    put_products(f, k, "each", "y[j]");
    put_products(f, k, "by", "y[0]");
    bool has_last = put_last(f, k, "plain", false);
    bool has_third = has_last && k->op->n_inputs > 2 && put_last(f, k, "third", true);
    fprintf(f, "const oi_contract_fns OI_KERNEL(@) = {@_init, @_each, @_by, %s, %s};\n",
            has_last ? "@_plain" : "NULL", has_third ? "@_third" : "NULL");
    fclose(f);
    kg_name(k, name);
    snprintf(longer, sizeof longer, "%s_rows", name);
    kg_row("CONTRACT", k, kg_symbol(longer, body, "contract"));
    free(body);
}

/* Whether elements of the op can be summed in t. */
static bool sums_in(const oi_op *op, oi_dtype t)
{
    return t != OI_BOOL || op->dtypes & OI_DTYPES(OI_BOOL);
}

/* Integers narrower than 32 bits are summed in 32 and cut in the end: modulo 2^width that is the
 * same. */
void kg_contract(const oi_op *op)
{
    static const oi_dtype forms[] = {OI_F32, OI_F64, OI_I32, OI_I64, OI_BOOL};
    for (size_t i = 0; i < OI_COUNT(forms); i++) {
        kg_kernel k = {.op = op, .in = {forms[i]}, .out = forms[i]};
        if (!sums_in(op, forms[i]))
            continue;
        print_contract_rows(&k);
        if (op->loops == OI_LOOPS_MATMUL)
            print_contract(&k);
    }
}
