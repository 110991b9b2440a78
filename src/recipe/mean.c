/* mean.c: which means the bodies of mean.h take. */
#include "recipe/recipe.h"

#define SHORT 8 /* numbers of a row, with less of them plain loops do */

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
    out->ops = (uint64_t)(8 * oi_operand_count(x)); /* transposed, and one sum for each row */
    return true;
}
