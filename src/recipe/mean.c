/* mean.c: which means the bodies of mean.h take. */
#include "recipe/recipe.h"

#define SHORT 8 /* numbers of a row, with less of them plain loops do */
#define FEW   4 /* rows, likewise */

/* Over all that follows the channels. */
bool oi_recipe_global_avg_pool(const oi_recipe_call *c, oi_recipe_plan *out)
{
    const oi_operand *x = &c->q->in[0];
    int64_t n = 1;
    for (uint32_t i = 2; i < x->rank; i++)
        n *= x->dims[i];
    if (x->dtype != OI_F32 || n < SHORT || x->dims[0] == 0 || x->dims[1] == 0)
        return false;
    out->function = "oi_mean_rows";
    oi_recipe_arg_add(out, OI_ARG_IN, 0);
    oi_recipe_arg_add(out, OI_ARG_OUT, 0);
    oi_recipe_arg_add(out, OI_ARG_SIZE, x->dims[0]);
    oi_recipe_arg_add(out, OI_ARG_SIZE, x->dims[1]);
    oi_recipe_arg_add(out, OI_ARG_SIZE, n);
    oi_recipe_arg_add(out, OI_ARG_FIRST, 0);
    oi_recipe_arg_add(out, OI_ARG_LAST, 0);
    out->extent = x->dims[1];
    out->unit = oi_recipe_lanes(c->target);
    out->split_dim = 1;
    return true;
}

/* How much is added; false: only the run knows. */
static bool eps_of(const oi_kernel_query *q, double *eps)
{
    const oi_op_value *v = oi_kernel_attr(q, "eps");
    *eps = v->tag == OI_VALUE_INT ? (double)v->i : v->f;
    return !q->run_attrs && (v->tag == OI_VALUE_INT || v->tag == OI_VALUE_FLOAT);
}

/* Rows lie along one dim, and the order of their sums must be kept: else plain loops have lanes. */
bool oi_recipe_rmsnorm(const oi_recipe_call *c, oi_recipe_plan *out)
{
    const oi_operand *x = &c->q->in[0], *scale = &c->q->in[1];
    const int64_t given = oi_kernel_attr(c->q, "axis")->i;
    const uint32_t axis = (uint32_t)(given < 0 ? given + x->rank : given);
    int64_t n = 1, rows = 1;
    uint32_t dim = x->rank;
    double eps;
    for (uint32_t i = 0; i < x->rank; i++)
        *(i < axis ? &rows : &n) *= x->dims[i];
    for (uint32_t i = axis; i-- > 0;)
        dim = x->dims[i] == rows ? i : dim;
    if (c->may_regroup || !eps_of(c->q, &eps) || x->dtype != OI_F32 || scale->dtype != OI_F32 ||
        n < SHORT || rows < FEW || dim == x->rank || oi_operand_count(scale) != n)
        return false;
    out->function = "oi_rmsnorm_rows";
    oi_recipe_arg_add(out, OI_ARG_IN, 0);
    oi_recipe_arg_add(out, OI_ARG_IN, 1);
    oi_recipe_arg_add(out, OI_ARG_OUT, 0);
    oi_recipe_arg_add(out, OI_ARG_SIZE, n);
    oi_recipe_arg_real(out, eps);
    oi_recipe_arg_add(out, OI_ARG_FIRST, 0);
    oi_recipe_arg_add(out, OI_ARG_LAST, 0);
    out->extent = rows;
    out->unit = 1;
    out->split_dim = out->read_dim = dim;
    out->reads_alike = true;
    return true;
}
