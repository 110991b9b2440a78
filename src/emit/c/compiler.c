/* compiler.c: pragmas and checks that replace compiler flags: instruction sets, and no contraction
 * of products and sums. If only a flag can set something, an #error names the flag. */
#include "emit/c/c.h"

#include "device/device.h"
#include "recipe/recipe.h"

#include <inttypes.h>
#include <stdlib.h>

/* Instruction sets that compilers enable only on request. */
typedef struct instructions {
    oi_isa isa;
    const char *target; /* as the target attribute names them */
    const char *flag; /* for compilers without the attribute: the flag; `lacks` is the preprocessor
                         condition */
    const char *lacks;
} instructions;

static const instructions table[] = {
    {OI_ISA_AVX2, "avx2", NULL, NULL},
    {OI_ISA_FMA, "fma", NULL, NULL},
    {OI_ISA_F16C, "f16c", NULL, NULL},
    {OI_ISA_AVX512F, "avx512f", NULL, NULL},
    {OI_ISA_AVX512BW, "avx512bw,avx512vl,avx512dq", NULL, NULL},
    {OI_ISA_AVX512VNNI, "avx512vnni", NULL, NULL},
    {OI_ISA_AVX512BF16, "avx512bf16", NULL, NULL},
    {OI_ISA_AMX_INT8, "amx-tile,amx-int8", NULL, NULL},
    {OI_ISA_AMX_BF16, "amx-tile,amx-bf16", NULL, NULL},
    /* arm_neon.h of clang before 16 declares only what the command line enables */
    {OI_ISA_DOTPROD, "arch=armv8.2-a+dotprod", "-march=armv8.2-a+dotprod",
     "defined(__clang__) && __clang_major__ < 16 && !defined(__ARM_FEATURE_DOTPROD)"},
};

static bool asks_for(const oi_cprog *c, size_t i)
{
    return c->p->target->cpu.isa >> table[i].isa & 1;
}

const char *oi_c_flags(oi_cprog *c)
{
    oi_buf b = {0};
    for (size_t i = 0; i < OI_COUNT(table); i++)
        if (asks_for(c, i) && table[i].flag)
            oi_buf_printf(&b, "%s%s", b.n ? " " : "", table[i].flag);
    return b.n ? oi_buf_to_arena(&b, c->arena) : "";
}

const char *oi_c_needs(oi_cprog *c)
{
    oi_buf b = {0};
    for (size_t i = 0; i < OI_COUNT(table); i++)
        if (asks_for(c, i))
            oi_buf_printf(&b, "%s%s", b.n ? " " : "", oi_isa_name(table[i].isa));
    return b.n ? oi_buf_to_arena(&b, c->arena) : "";
}

static const char *targets(oi_cprog *c)
{
    oi_buf b = {0};
    for (size_t i = 0; i < OI_COUNT(table); i++)
        if (asks_for(c, i))
            oi_buf_printf(&b, "%s%s", b.n ? "," : "", table[i].target);
    return b.n ? oi_buf_to_arena(&b, c->arena) : NULL;
}

static void put_error(oi_out *o, const char *when, const char *says)
{
    oi_out_line(o, "#if %s", when);
    oi_out_line(o, "#error \"%s\"", says);
    oi_out_line(o, "#endif");
}

/* The processor itself: no attribute can change it. */
static void put_processor(oi_cprog *c, oi_out *o)
{
    const oi_device_info *t = c->p->target;
    const oi_recipe_folder *folder = oi_recipe_folder_of(t);
    const char *header = folder ? folder->header : NULL;
    if (header && strcmp(header, "immintrin.h") == 0)
        put_error(o, "!defined(__x86_64__) && !defined(__i386__)",
                  "this program is for x86 processors");
    if (header && strcmp(header, "arm_neon.h") == 0)
        put_error(o, "!defined(__ARM_NEON)", "this program is for Arm processors with NEON");
    if (t->mcu.mve && folder)
        put_error(o, "defined(__arm__) && !defined(__ARM_FEATURE_MVE)",
                  "this program needs Helium: name the core, as -mcpu=cortex-m55 "
                  "-mfloat-abi=hard");
    else if (t->mcu.dsp && folder)
        put_error(o, "defined(__arm__) && !defined(__ARM_FEATURE_DSP)",
                  "this program needs the DSP instructions: name the core, as -mcpu=cortex-m4");
    if (!oi_c_is_board(c))
        put_error(o, "defined(__i386__) && !defined(__SSE2_MATH__)",
                  "floats must be rounded as they are stored: use -msse2 -mfpmath=sse");
}

void oi_c_put_compiler_checks(oi_cprog *c, oi_out *o)
{
    put_error(o,
              "defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && "
              "__FINITE_MATH_ONLY__)",
              "results need every rounding, NaN and infinity: do not use -ffast-math, -Ofast or "
              "-ffinite-math-only");
    put_error(o, "defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__",
              "weights and packed elements are little-endian");
    put_processor(c, o);
    for (size_t i = 0; i < OI_COUNT(table); i++)
        if (asks_for(c, i) && table[i].flag)
            put_error(o, table[i].lacks,
                      oi_arena_printf(c->arena, "this compiler needs %s", table[i].flag));
    if (targets(c))
        put_error(o, "!defined(__GNUC__)", "this program is for gcc and clang");
    oi_out_line(o, "%s", "");
}

/* GCC contracts products and sums by default. It also does not vectorise comparisons, to preserve
 * floating-point exception flags, which the program never reads. */
void oi_c_put_compiler(oi_cprog *c, oi_out *o)
{
    const char *target = targets(c);
    oi_out_line(o, "/* Instruction sets of the functions below. Products and sums are not "
                   "contracted. */");
    oi_out_line(o, "#if defined(__GNUC__) && !defined(__clang__)");
    oi_out_line(o, "#pragma GCC push_options");
    if (target)
        oi_out_line(o, "#pragma GCC target(\"%s\")", target);
    oi_out_line(o, "#pragma GCC optimize(\"fp-contract=off\", \"no-trapping-math\")");
    oi_out_line(o, "#else");
    oi_out_line(o, "#pragma STDC FP_CONTRACT OFF");
    if (target)
        oi_out_line(o,
                    "#pragma clang attribute push(__attribute__((target(\"%s\"))), apply_to = "
                    "function)",
                    target);
    oi_out_line(o, "#endif");
    oi_out_line(o, "%s", "");
}

void oi_c_put_compiler_end(oi_cprog *c, oi_out *o)
{
    oi_out_line(o, "%s", "");
    oi_out_line(o, "#if defined(__GNUC__) && !defined(__clang__)");
    oi_out_line(o, "#pragma GCC pop_options");
    if (targets(c)) {
        oi_out_line(o, "#else");
        oi_out_line(o, "#pragma clang attribute pop");
    }
    oi_out_line(o, "#endif");
}

/* -- memory that is used again -- */

/* Types that compilers distinguish in alias analysis; bytes alias everything. */
typedef enum kind { BYTES, BITS16, BITS32, BITS64, F32, F64, KINDS } kind;

static kind kind_of(oi_dtype t)
{
    const bool is_number = oi_dtype_is_float(t) && oi_form_of(t) == t; /* not copied as bits */
    switch (oi_dtype_bits(t)) {
    case 16: return BITS16;
    case 32: return is_number ? F32 : BITS32;
    case 64: return is_number ? F64 : BITS64;
    default: return BYTES;
    }
}

static int by_offset(const void *a, const void *b)
{
    const oi_tensor *x = *(const oi_tensor *const *)a, *y = *(const oi_tensor *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static bool is_beyond(const uint64_t *edge, kind own, uint64_t place)
{
    for (kind k = BYTES + 1; k < KINDS; k++)
        if (k != own && edge[k] > place)
            return true;
    return false;
}

/* Finds tensors whose memory holds values of another kind at another time: one sweep upwards over
 * those that begin earlier, one downwards over those that begin later. Edges are numbered from 1; 0
 * is none. */
void oi_c_find_reuse(oi_cprog *c)
{
    const oi_plan *u = c->p;
    const oi_tensor **list = oi_arena_alloc(c->arena, (u->tensors.n + 1) * sizeof *list);
    uint64_t ends[KINDS] = {0}, starts[KINDS] = {0};
    size_t n = 0;
    c->is_retyped = oi_arena_alloc(c->arena, u->tensors.n + 1);
    for (size_t i = 0; i < u->tensors.n; i++) {
        const oi_tensor *t = &u->tensors.at[i];
        if (t->space == OI_SPACE_ARENA && !t->is_private && kind_of(t->dtype) != BYTES)
            list[n++] = t;
    }
    qsort(list, n, sizeof *list, by_offset);
    for (size_t i = 0; i < n; i++) {
        const kind k = kind_of(list[i]->dtype);
        const uint64_t end = list[i]->offset + oi_tensor_bytes(list[i]);
        if (is_beyond(ends, k, list[i]->offset))
            c->is_retyped[list[i] - u->tensors.at] = true;
        ends[k] = end > ends[k] ? end : ends[k];
    }
    for (size_t i = n; i-- > 0;) {
        const kind k = kind_of(list[i]->dtype);
        const uint64_t end = list[i]->offset + oi_tensor_bytes(list[i]);
        if (is_beyond(starts, k, UINT64_MAX - end))
            c->is_retyped[list[i] - u->tensors.at] = true;
        starts[k] = UINT64_MAX - list[i]->offset; /* the lowest so far */
    }
}

void oi_c_put_reuse(oi_cprog *c, uint32_t tensor)
{
    if (tensor != OI_NO_ID && c->is_retyped[tensor])
        oi_out_line(&c->out, "oi_reuse(s->oi_arena);");
}

void oi_c_put_kernel_reuse(oi_cprog *c, const oi_skernel *k)
{
    for (size_t i = 0; i < k->ports.n; i++)
        if (k->ports.at[i].is_written && c->is_retyped[k->ports.at[i].tensor]) {
            oi_c_put_reuse(c, k->ports.at[i].tensor);
            return;
        }
}

void oi_c_put_reuse_function(oi_cprog *c)
{
    bool any = false;
    for (size_t i = 0; i < c->p->tensors.n; i++)
        any |= c->is_retyped[i];
    if (!any)
        return;
    oi_out_line(&c->out, "/* From here on, working memory holds values of another type. Compilers "
                         "reorder accesses");
    oi_out_line(&c->out, " * of different types; this compiler barrier stops them. */");
    oi_out_line(&c->out, "static inline void oi_reuse(const void *arena)");
    oi_out_brace(&c->out);
    oi_out_line(&c->out, "__asm__ volatile(\"\" : : \"r\"(arena) : \"memory\");");
    oi_out_close(&c->out, "");
    oi_out_line(&c->out, "%s", "");
}
