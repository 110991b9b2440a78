/* table.c: the recipes there are. */
#include "recipe/recipe.h"

#define BIT(isa) (1u << OI_ISA_##isa)
#define AVX2     (BIT(AVX2) | BIT(FMA) | BIT(F16C))
#define AVX512   (AVX2 | BIT(AVX512F) | BIT(AVX512BW))
#define AMX      (BIT(AVX512BF16) | BIT(AMX_INT8) | BIT(AMX_BF16))
#define DSP      (1u << 31) /* mcu.dsp: no word of cpu.isa */
#define MVE      (1u << 30) /* mcu.mve */

const oi_recipe_folder oi_recipe_folders[] = {
    {"scalar", NULL, NULL, BIT(SCALAR), 0},
    {"dsp", "scalar", NULL, BIT(SCALAR) | DSP, 0},
    {"mve", "dsp", "arm_mve.h", BIT(SCALAR) | DSP | MVE, 0},
    {"avx2", NULL, "immintrin.h", AVX2, 8},
    {"avx512", "avx2", "immintrin.h", AVX512, 16},
    {"avx512vnni", "avx512", "immintrin.h", AVX512 | BIT(AVX512VNNI), 16},
    {"amx", "avx512vnni", "immintrin.h", AVX512 | BIT(AVX512VNNI) | AMX, 16},
    {"neon", NULL, "arm_neon.h", BIT(NEON), 4},
    {"dotprod", "neon", "arm_neon.h", BIT(NEON) | BIT(DOTPROD), 4},
    {0},
};

const oi_recipe oi_recipes[] = {
    {"qlinear in tiles of rows", OI_OP_QLINEAR, true, oi_recipe_qlinear},
    {"matmul in tiles of parts", OI_OP_MATMUL, true, oi_recipe_bf16x3},
    {"matmul in tiles", OI_OP_MATMUL, true, oi_recipe_matmul},
    {"matmul with weights of 16 bits", OI_OP_MATMUL, true, oi_recipe_matmul_halves},
    {"sdpa in tiles of keys", OI_OP_SDPA, true, oi_recipe_sdpa},
    {"conv in tiles of parts", OI_OP_CONV, true, oi_recipe_conv_bf16x3},
    {"conv in tiles", OI_OP_CONV, true, oi_recipe_conv},
    {"conv in tiles of windows", OI_OP_CONV, true, oi_recipe_conv_windows},
    {"conv_transpose in tiles", OI_OP_CONV_TRANSPOSE, true, oi_recipe_conv_transpose},
    {"conv of bytes in tiles", OI_OP_CONV, true, oi_recipe_bytes_conv},
    {"matmul of bytes in tiles", OI_OP_MATMUL, true, oi_recipe_bytes_matmul},
    {"qconv in tiles", OI_OP_QCONV, true, oi_recipe_qconv},
    {"conv_integer in tiles", OI_OP_CONV_INTEGER, true, oi_recipe_conv_integer},
    {"qmatmul in tiles", OI_OP_QMATMUL, true, oi_recipe_qmatmul},
    {"matmul_integer in tiles", OI_OP_MATMUL_INTEGER, true, oi_recipe_matmul_integer},
    {"conv of bytes", OI_OP_CONV, false, oi_recipe_mac_conv},
    {"matmul of bytes", OI_OP_MATMUL, false, oi_recipe_mac_matmul},
    {"lstm in one pass", OI_OP_LSTM_CELL, true, oi_recipe_lstm},
    {"gru in one pass", OI_OP_GRU_CELL, true, oi_recipe_gru},
    {"largest of rows, then of columns", OI_OP_MAX_POOL, true, oi_recipe_max_pool},
    {"means of rows side by side", OI_OP_GLOBAL_AVG_POOL, true, oi_recipe_global_avg_pool},
    {0},
};

static const oi_recipe_folder *find_folder(const char *name)
{
    const oi_recipe_folder *f = oi_recipe_folders;
    while (f->name && strcmp(f->name, name) != 0)
        f++;
    return f->name ? f : NULL;
}

const oi_recipe_folder *oi_recipe_folder_of(const oi_device_info *target)
{
    const oi_recipe_folder *found = NULL;
    const uint32_t more = target->mcu.mve ? DSP | MVE : target->mcu.dsp ? DSP : 0;
    const uint32_t isa = target->cpu.isa | more;
    for (const oi_recipe_folder *f = oi_recipe_folders; f->name; f++)
        if (!(f->isa & ~isa))
            found = f;
    return found;
}

uint32_t oi_recipe_height(const oi_device_info *target, const char *folder)
{
    uint32_t height = 0;
    for (const oi_recipe_folder *f = oi_recipe_folder_of(target); f;
         f = f->extends ? find_folder(f->extends) : NULL)
        if (height || strcmp(f->name, folder) == 0)
            height++;
    return height;
}

int64_t oi_recipe_lanes(const oi_device_info *target)
{
    const oi_recipe_folder *f = oi_recipe_folder_of(target);
    return f ? f->lanes : 0;
}

const oi_recipe *oi_recipe_find(const oi_recipe_call *c, oi_recipe_plan *out)
{
    const bool has_vectors = oi_recipe_lanes(c->target) > 0;
    for (const oi_recipe *r = c->table ? c->table : oi_recipes; r->name; r++) {
        if (r->op != c->q->op->id || (r->needs_vectors && !has_vectors))
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

void oi_recipe_scratch_add(oi_recipe_plan *p, const char *name, oi_dtype dtype, int64_t count)
{
    const uint32_t i = p->n_scratch++;
    p->scratch[i].name = name;
    p->scratch[i].dtype = dtype;
    p->scratch[i].count = count;
    oi_recipe_arg_add(p, OI_ARG_SCRATCH, i);
}

void oi_recipe_prologue_add(oi_recipe_plan *p, const char *name, oi_dtype dtype, int64_t width)
{
    const uint32_t i = p->prologue.n_arrays++;
    p->prologue.arrays[i].name = name;
    p->prologue.arrays[i].dtype = dtype;
    p->prologue.arrays[i].width = width;
    oi_recipe_arg_add(p, OI_ARG_PROLOGUE, i);
}

void oi_recipe_epilogue_add(oi_recipe_plan *p, uint32_t dim)
{
    oi_recipe_arg_add(p, OI_ARG_EPILOGUE, 0);
    p->epilogue[0] = dim;
    p->epilogue[1] = dim ? dim + 1 : 0;
    p->sums_in_result = true;
}

void oi_recipe_arg_real(oi_recipe_plan *p, double real)
{
    p->args[p->n_args++] = (oi_recipe_arg){.kind = OI_ARG_REAL, .real = real};
}
