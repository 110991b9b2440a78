/* table.c: the recipes there are. */
#include "recipe/recipe.h"

#define AVX2 (1u << OI_ISA_AVX2 | 1u << OI_ISA_FMA | 1u << OI_ISA_F16C)
#define NEON (1u << OI_ISA_NEON)

const oi_recipe oi_recipes[] = {
    {"qlinear in tiles of rows", "qlinear", AVX2, oi_recipe_qlinear},
    {"qlinear in tiles of rows", "qlinear", NEON, oi_recipe_qlinear},
    {"matmul in tiles", "matmul", AVX2, oi_recipe_matmul},
    {"matmul in tiles", "matmul", NEON, oi_recipe_matmul},
    {"gemm in tiles", "gemm", AVX2, oi_recipe_gemm},
    {"gemm in tiles", "gemm", NEON, oi_recipe_gemm},
    {"sdpa in tiles of keys", "sdpa", AVX2, oi_recipe_sdpa},
    {"sdpa in tiles of keys", "sdpa", NEON, oi_recipe_sdpa},
    {"conv in tiles", "conv", AVX2, oi_recipe_conv},
    {"conv in tiles", "conv", NEON, oi_recipe_conv},
    {0},
};

int64_t oi_recipe_lanes(const oi_device_info *target)
{
    return target->cpu.isa >> OI_ISA_AVX2 & 1 ? 8 : 4;
}

const oi_recipe *oi_recipe_find(const oi_recipe_call *c, oi_recipe_plan *out)
{
    for (const oi_recipe *r = oi_recipes; r->name; r++) {
        if (strcmp(r->op, c->q->op->name) != 0 || (r->isa & ~c->target->cpu.isa))
            continue;
        *out = (oi_recipe_plan){0};
        if (r->plan(c, out))
            return r;
    }
    return NULL;
}

void oi_recipe_arg_add(oi_recipe_plan *p, oi_recipe_arg_kind kind, int64_t n)
{
    p->args[p->n_args++] = (oi_recipe_arg){.kind = kind, .n = n};
}

void oi_recipe_arg_real(oi_recipe_plan *p, double real)
{
    p->args[p->n_args++] = (oi_recipe_arg){.kind = OI_ARG_REAL, .real = real};
}
