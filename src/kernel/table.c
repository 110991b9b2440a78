/* table.c: the generated kernels, one row per op, forms and decided attributes; each row names its
 * text compiled for every kind of instructions. */
#include "kernel/kernel.h"

/* On other processors there is the plain text only. Conversions gain nothing from AVX alone. */
#if defined(__x86_64__)
#define ISA_LIST(X, name) X(name, scalar) X(name, avx) X(name, avx2) X(name, avx512)
#define ISA_ARRAY(X, name)                                            \
    {                                                                 \
        X(name, scalar), X(name, avx), X(name, avx2), X(name, avx512) \
    }
#else
#define ISA_LIST(X, name) X(name, scalar)
#define ISA_ARRAY(X, name)                                                 \
    {                                                                      \
        X(name, scalar), X(name, scalar), X(name, scalar), X(name, scalar) \
    }
#endif

#define SYMBOL(name, isa)           oi_k_##name##_##isa
#define ADDRESS(name, isa)          &oi_k_##name##_##isa
#define DECLARE_MAP(name, isa)      void SYMBOL(name, isa)(const oi_map_row *r);
#define DECLARE_REDUCE(name, isa)   extern const oi_reduce_fns SYMBOL(name, isa);
#define DECLARE_TILE(name, isa)     extern const oi_tile_fns SYMBOL(name, isa);
#define DECLARE_CONTRACT(name, isa) extern const oi_contract_fns SYMBOL(name, isa);
#define DECLARE_FORMS(name, isa)    extern const oi_form_fns SYMBOL(name, isa);

/* -- declarations -- */

#define OI_MAP_ROW(op, a, b, c, o, w0, v0, w1, v1, name)      ISA_LIST(DECLARE_MAP, name)
#define OI_REDUCE_ROW(op, a, b, c, o, w0, v0, w1, v1, name)   ISA_LIST(DECLARE_REDUCE, name)
#define OI_TILE_ROW(op, a, b, c, o, w0, v0, w1, v1, name)     ISA_LIST(DECLARE_TILE, name)
#define OI_CONTRACT_ROW(op, a, b, c, o, w0, v0, w1, v1, name) ISA_LIST(DECLARE_CONTRACT, name)
#include "kernel/kernels.inc"
#undef OI_MAP_ROW
#undef OI_REDUCE_ROW
#undef OI_TILE_ROW
#undef OI_CONTRACT_ROW

ISA_LIST(DECLARE_FORMS, forms)
#define DECLARE_DOTS(name, isa) extern const oi_dot_fns SYMBOL(name, isa)[2];
ISA_LIST(DECLARE_DOTS, dots)
const oi_dot_fns *const oi_dots[OI_CPU_COUNT] = ISA_ARRAY(SYMBOL, dots);
#define DECLARE_QTILES(name, isa) extern const oi_qtile_fns SYMBOL(name, isa);
ISA_LIST(DECLARE_QTILES, qtiles)
const oi_qtile_fns *const oi_qtiles[OI_CPU_COUNT] = ISA_ARRAY(ADDRESS, qtiles);
const oi_form_fns *const oi_forms[OI_CPU_COUNT] = ISA_ARRAY(ADDRESS, forms);

/* -- rows -- */

/* `what`: an attribute that must have that value; 16 + attribute: whether it is given. -1: none. */
typedef struct key {
    uint16_t op;
    uint8_t in[3], out;
    struct {
        int8_t what;
        uint8_t value;
    } when[2];
    const char *name;
} key;

typedef struct map_row {
    key key;
    oi_map_fn *fn[OI_CPU_COUNT];
} map_row;
typedef struct reduce_row {
    key key;
    const oi_reduce_fns *fns[OI_CPU_COUNT];
} reduce_row;
typedef struct tile_row {
    key key;
    const oi_tile_fns *fns[OI_CPU_COUNT];
} tile_row;
typedef struct contract_row {
    key key;
    const oi_contract_fns *fns[OI_CPU_COUNT];
} contract_row;

#define KEY(op, a, b, c, o, w0, v0, w1, v1, name)             \
    {                                                         \
        OI_OP_##op, {a, b, c}, o, {{w0, v0}, {w1, v1}}, #name \
    }
#define NOTHING(...)

#define OI_MAP_ROW(op, a, b, c, o, w0, v0, w1, v1, name) \
    {KEY(op, a, b, c, o, w0, v0, w1, v1, name), ISA_ARRAY(SYMBOL, name)},
#define OI_REDUCE_ROW   NOTHING
#define OI_TILE_ROW     NOTHING
#define OI_CONTRACT_ROW NOTHING
static const map_row maps[] = {
#include "kernel/kernels.inc"
};
#undef OI_MAP_ROW
#undef OI_REDUCE_ROW

#define OI_MAP_ROW NOTHING
#define OI_REDUCE_ROW(op, a, b, c, o, w0, v0, w1, v1, name) \
    {KEY(op, a, b, c, o, w0, v0, w1, v1, name), ISA_ARRAY(ADDRESS, name)},
static const reduce_row reduces[] = {
#include "kernel/kernels.inc"
};
#undef OI_REDUCE_ROW
#undef OI_TILE_ROW

#define OI_REDUCE_ROW NOTHING
#define OI_TILE_ROW(op, a, b, c, o, w0, v0, w1, v1, name) \
    {KEY(op, a, b, c, o, w0, v0, w1, v1, name), ISA_ARRAY(ADDRESS, name)},
static const tile_row tiles[] = {
#include "kernel/kernels.inc"
};
#undef OI_TILE_ROW
#undef OI_CONTRACT_ROW

#define OI_TILE_ROW NOTHING
#define OI_CONTRACT_ROW(op, a, b, c, o, w0, v0, w1, v1, name) \
    {KEY(op, a, b, c, o, w0, v0, w1, v1, name), ISA_ARRAY(ADDRESS, name)},
static const contract_row contracts[] = {
#include "kernel/kernels.inc"
};

/* Tuned by hand; each stands for the generated kernel of the same op and form. */
#if defined(__x86_64__)
#define TUNED_LIST(X)                        \
    X(MATMUL, F32, AVX, tile_f32, avx)       \
    X(MATMUL, F32, AVX2, tile_f32, avx2)     \
    X(MATMUL, F32, AVX512, tile_f32, avx512) \
    X(MATMUL, F64, AVX, tile_f64, avx)       \
    X(MATMUL, F64, AVX2, tile_f64, avx2) X(MATMUL, F64, AVX512, tile_f64, avx512)
#else
#define TUNED_LIST(X)
#endif

#define DECLARE_TUNED(op, form, cpu, name, isa) DECLARE_TILE(name, isa)
TUNED_LIST(DECLARE_TUNED)

static const struct tuned_row {
    oi_op_id op;
    oi_dtype form;
    oi_cpu cpu;
    const oi_tile_fns *fns;
} tuned[] = {
#define TUNED_ROW(op, form, cpu, name, isa) \
    {OI_OP_##op, OI_##form, OI_CPU_##cpu, ADDRESS(name, isa)},
    TUNED_LIST(TUNED_ROW){OI_OP_COUNT, OI_NONE, OI_CPU_SCALAR, NULL},
};

/* -- finding -- */

static bool fits(const key *row, const oi_kernel_key *k)
{
    if (row->out != k->out || row->in[0] != k->in[0] || row->in[1] != k->in[1] ||
        row->in[2] != k->in[2])
        return false;
    for (int w = 0; w < 2; w++) {
        int what = row->when[w].what, value = row->when[w].value;
        if (what >= 16 ? (int)(k->given >> (what - 16) & 1) != value
                       : what >= 0 && k->values[what] != value)
            return false;
    }
    return true;
}

/* Rows stand in the registry's order, so those of one op are found by halving. */
static size_t first_row(const void *rows, size_t n, size_t size, oi_op_id op)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const key *row = (const key *)((const char *)rows + mid * size);
        if (row->op < op)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static const void *find(const void *rows, size_t n, size_t size, const oi_kernel_key *k)
{
    for (size_t i = first_row(rows, n, size, k->op); i < n; i++) {
        const key *row = (const key *)((const char *)rows + i * size);
        if (row->op != (unsigned)k->op)
            return NULL;
        if (fits(row, k))
            return row;
    }
    return NULL;
}

oi_map_fn *oi_table_map(const oi_kernel_key *k, oi_cpu cpu, const char **name)
{
    const map_row *row = find(maps, OI_COUNT(maps), sizeof maps[0], k);
    if (row && name)
        *name = row->key.name;
    return row ? row->fn[cpu] : NULL;
}

const oi_reduce_fns *oi_table_reduce(const oi_kernel_key *k, oi_cpu cpu, const char **name)
{
    const reduce_row *row = find(reduces, OI_COUNT(reduces), sizeof reduces[0], k);
    if (row && name)
        *name = row->key.name;
    return row ? row->fns[cpu] : NULL;
}

const oi_tile_fns *oi_table_tile(const oi_kernel_key *k, oi_cpu cpu, const char **name)
{
    const tile_row *row = find(tiles, OI_COUNT(tiles), sizeof tiles[0], k);
    if (row && name)
        *name = row->key.name;
    for (const struct tuned_row *t = tuned; row && t->fns; t++)
        if (t->op == k->op && t->form == k->in[0] && t->cpu == cpu)
            return t->fns;
    return row ? row->fns[cpu] : NULL;
}

const oi_contract_fns *oi_table_contract(const oi_kernel_key *k, oi_cpu cpu, const char **name)
{
    const contract_row *row = find(contracts, OI_COUNT(contracts), sizeof contracts[0], k);
    if (row && name)
        *name = row->key.name;
    return row ? row->fns[cpu] : NULL;
}

oi_map_fn *oi_table_cast(oi_dtype from, oi_dtype to, oi_cpu cpu)
{
    static const uint8_t values[OI_KERNEL_ATTRS] = {0};
    oi_kernel_key k = {.op = OI_OP_CAST, .in = {oi_form_source(from)}, .out = to, .values = values};
    return oi_table_map(&k, cpu, NULL);
}
