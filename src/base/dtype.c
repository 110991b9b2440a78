/* dtype.c: the table of element types, small floats, and element access in packed buffers. */
#include "base/base.h"

#define INT_ROW(n, J, bits_, c, lo, hi)                                     \
    {                                                                       \
        .name = n, .json = J, .bits = bits_, .cls = c, .min = lo, .max = hi \
    }
#define FLOAT_ROW(n, J, bits_, e, m)                                                             \
    {                                                                                            \
        .name = n, .json = J, .bits = bits_, .cls = OI_CLASS_FLOAT, .exp_bits = e, .man_bits = m \
    }

static const oi_dtype_info table[OI_DTYPE_COUNT] = {
    [OI_NONE] = {.name = "none", .json = "None"},
    [OI_I8] = INT_ROW("i8", "I8", 8, OI_CLASS_SIGNED, INT8_MIN, INT8_MAX),
    [OI_I16] = INT_ROW("i16", "I16", 16, OI_CLASS_SIGNED, INT16_MIN, INT16_MAX),
    [OI_I32] = INT_ROW("i32", "I32", 32, OI_CLASS_SIGNED, INT32_MIN, INT32_MAX),
    [OI_I64] = INT_ROW("i64", "I64", 64, OI_CLASS_SIGNED, INT64_MIN, INT64_MAX),
    [OI_U8] = INT_ROW("u8", "U8", 8, OI_CLASS_UNSIGNED, 0, UINT8_MAX),
    [OI_U16] = INT_ROW("u16", "U16", 16, OI_CLASS_UNSIGNED, 0, UINT16_MAX),
    [OI_U32] = INT_ROW("u32", "U32", 32, OI_CLASS_UNSIGNED, 0, UINT32_MAX),
    [OI_U64] = INT_ROW("u64", "U64", 64, OI_CLASS_UNSIGNED, 0, UINT64_MAX),
    [OI_F16] = FLOAT_ROW("f16", "F16", 16, 5, 10),
    [OI_F32] = FLOAT_ROW("f32", "F32", 32, 8, 23),
    [OI_F64] = FLOAT_ROW("f64", "F64", 64, 11, 52),
    [OI_BOOL] = INT_ROW("bool", "Bool", 8, OI_CLASS_BOOL, 0, 1),
    [OI_BITSET] = INT_ROW("bitset", "Bitset", 8, OI_CLASS_BITSET, 0, UINT8_MAX),
    [OI_STR] = {.name = "str", .json = "Str"},
    [OI_NDARRAY] = {.name = "ndarray", .json = "NdArray"},
    [OI_BF16] = FLOAT_ROW("bf16", "BF16", 16, 8, 7),
    [OI_F8] = FLOAT_ROW("f8", "F8", 8, 5, 2),
    [OI_I4] = INT_ROW("i4", "I4", 4, OI_CLASS_PACKED_SIGNED, -8, 7),
    [OI_I2] = INT_ROW("i2", "I2", 2, OI_CLASS_PACKED_SIGNED, -2, 1),
    [OI_I1] = INT_ROW("i1", "I1", 1, OI_CLASS_PACKED_SIGNED, -1, 0),
    [OI_U4] = INT_ROW("u4", "U4", 4, OI_CLASS_PACKED_UNSIGNED, 0, 15),
    [OI_U2] = INT_ROW("u2", "U2", 2, OI_CLASS_PACKED_UNSIGNED, 0, 3),
    [OI_U1] = INT_ROW("u1", "U1", 1, OI_CLASS_PACKED_UNSIGNED, 0, 1),
    [OI_T2] = INT_ROW("t2", "T2", 2, OI_CLASS_TERNARY, -1, 1),
    [OI_T1] = INT_ROW("t1", "T1", 1, OI_CLASS_TERNARY, -1, 1),
};

const oi_dtype_info *oi_dtype_get(oi_dtype t)
{
    return &table[(unsigned)t < OI_DTYPE_COUNT ? t : OI_NONE];
}

const char *oi_dtype_name(oi_dtype t)
{
    return oi_dtype_get(t)->name;
}

unsigned oi_dtype_bits(oi_dtype t)
{
    return oi_dtype_get(t)->bits;
}

bool oi_dtype_is_tensor(oi_dtype t)
{
    return oi_dtype_get(t)->cls != OI_CLASS_NONE;
}

bool oi_dtype_is_float(oi_dtype t)
{
    return oi_dtype_get(t)->cls == OI_CLASS_FLOAT;
}

bool oi_dtype_is_integer(oi_dtype t)
{
    oi_dtype_class c = oi_dtype_get(t)->cls;
    return c >= OI_CLASS_SIGNED && c <= OI_CLASS_PACKED_UNSIGNED;
}

oi_dtype oi_dtype_find_n(const char *name, size_t n)
{
    for (int t = 1; t < OI_DTYPE_COUNT; t++)
        if (oi_dtype_is_tensor(t) && strlen(table[t].name) == n && !memcmp(table[t].name, name, n))
            return (oi_dtype)t;
    if ((n == 6 && !memcmp(name, "f8e5m2", n)) || (n == 10 && !memcmp(name, "float8e5m2", n)))
        return OI_F8;
    return OI_NONE;
}

oi_dtype oi_dtype_find(const char *name)
{
    return name ? oi_dtype_find_n(name, strlen(name)) : OI_NONE;
}

oi_dtype oi_dtype_find_json(const char *name)
{
    for (int t = 1; t < OI_DTYPE_COUNT; t++)
        if (oi_dtype_is_tensor(t) && strcmp(table[t].json, name) == 0)
            return (oi_dtype)t;
    return oi_dtype_find(name);
}

bool oi_dtype_bytes(oi_dtype t, uint64_t n, uint64_t *out)
{
    uint64_t bits = oi_dtype_bits(t);
    if (bits >= 8) {
        if (n > UINT64_MAX / (bits / 8))
            return false;
        *out = n * (bits / 8);
    } else {
        uint64_t per_byte = bits ? 8 / bits : 1;
        *out = n / per_byte + (n % per_byte != 0);
    }
    return true;
}

/* -- small floats -- */

static uint64_t bits_of(double v)
{
    uint64_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static double double_of(uint64_t u)
{
    double v;
    memcpy(&v, &u, sizeof v);
    return v;
}

/* One rounding straight from f64, so that no tie is decided twice. */
uint64_t oi_float_encode(oi_dtype t, double v)
{
    const oi_dtype_info *d = oi_dtype_get(t);
    unsigned man = d->man_bits, exps = d->exp_bits;
    uint64_t u = bits_of(v), frac = u & ((1ull << 52) - 1), sign = u >> 63 << (man + exps);
    int exp = (int)(u >> 52 & 0x7ff);
    uint64_t inf = ((1ull << exps) - 1) << man;
    if (exp == 0x7ff && frac) /* canonical NaN; 0x7D for f8, as the package format says */
        return t == OI_F8 ? 0x7d : inf | 1ull << (man - 1);
    if (t == OI_F64)
        return u;
    if (exp == 0x7ff)
        return sign | inf;
    int bias = (1 << (exps - 1)) - 1;
    int e = exp - 1023 + bias; /* target's biased exponent */
    uint64_t full = exp ? frac | 1ull << 52 : frac;
    unsigned drop = 52 - man;
    if (e < 1) /* subnormal in the target: shift further, exponent field 0 */
        drop += 1 - e > 60 ? 60u : (unsigned)(1 - e);
    if (drop > 63)
        return sign;
    uint64_t kept = full >> drop, rest = full & ((1ull << drop) - 1), half = 1ull << (drop - 1);
    kept += rest > half || (rest == half && (kept & 1));
    if (e >= 1)
        kept += (uint64_t)(e - 1) << man; /* the implicit bit carries into the exponent */
    return sign | (kept >= inf ? inf : kept);
}

double oi_float_decode(oi_dtype t, uint64_t bits)
{
    const oi_dtype_info *d = oi_dtype_get(t);
    if (t == OI_F64)
        return double_of(bits);
    unsigned man = d->man_bits, exps = d->exp_bits;
    uint64_t frac = bits & ((1ull << man) - 1), exp = bits >> man & ((1ull << exps) - 1);
    uint64_t sign = (bits >> (man + exps) & 1) << 63;
    int bias = (1 << (exps - 1)) - 1;
    if (exp == (1ull << exps) - 1)
        return double_of(sign | 0x7ffull << 52 | frac << (52 - man));
    if (exp == 0) { /* frac * 2^(1 - bias - man), exact in f64 */
        double tiny = (double)frac * double_of((uint64_t)(1023 + 1 - bias - (int)man) << 52);
        return sign ? -tiny : tiny;
    }
    return double_of(sign | (uint64_t)((int)exp - bias + 1023) << 52 | frac << (52 - man));
}

/* -- elements of a buffer -------------------------------------------------------------------------
 */

/* Element e of width w sits at bits e*w … e*w+w-1, least significant bit first. */
static uint64_t load_bits(unsigned width, const void *data, uint64_t e)
{
    const uint8_t *p = data;
    if (width < 8)
        return p[e / (8 / width)] >> e % (8 / width) * width & ((1u << width) - 1);
    uint64_t v = 0;
    p += e * (width / 8);
    for (unsigned i = 0; i < width / 8; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static void store_bits(unsigned width, void *data, uint64_t e, uint64_t v)
{
    uint8_t *p = data;
    if (width < 8) {
        unsigned shift = (unsigned)(e % (8 / width)) * width, mask = ((1u << width) - 1) << shift;
        p += e / (8 / width);
        *p = (uint8_t)((*p & ~mask) | (v << shift & mask));
        return;
    }
    p += e * (width / 8);
    for (unsigned i = 0; i < width / 8; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

uint64_t oi_element_bits(oi_dtype t, const void *data, uint64_t e)
{
    unsigned bits = oi_dtype_bits(t);
    return bits ? load_bits(bits, data, e) : 0;
}

int64_t oi_element_i64(oi_dtype t, const void *data, uint64_t e)
{
    const oi_dtype_info *d = oi_dtype_get(t);
    if (d->cls == OI_CLASS_NONE)
        return 0;
    uint64_t u = load_bits(d->bits, data, e);
    switch (d->cls) {
    case OI_CLASS_FLOAT: {
        double v = oi_float_decode(t, u);
        return v >= 9223372036854775808.0    ? INT64_MAX
               : v >= -9223372036854775808.0 ? (int64_t)v
               : v < 0                       ? INT64_MIN
                                             : 0;
    }
    case OI_CLASS_SIGNED:
    case OI_CLASS_PACKED_SIGNED: return (int64_t)(u << (64 - d->bits)) >> (64 - d->bits);
    case OI_CLASS_TERNARY:
        if (t == OI_T1)
            return u ? 1 : -1;
        return u == 1 ? 1 : u ? -1 : 0; /* pattern 10 reads as -1 */
    case OI_CLASS_BOOL: return u != 0;
    default: return (int64_t)u;
    }
}

uint64_t oi_element_u64(oi_dtype t, const void *data, uint64_t e)
{
    if (oi_dtype_is_float(t)) {
        double v = oi_element_f64(t, data, e);
        if (v >= 9223372036854775808.0)
            return v >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)v;
    }
    return (uint64_t)oi_element_i64(t, data, e);
}

double oi_element_f64(oi_dtype t, const void *data, uint64_t e)
{
    if (oi_dtype_is_float(t))
        return oi_float_decode(t, load_bits(oi_dtype_bits(t), data, e));
    if (t == OI_U64)
        return (double)oi_element_u64(t, data, e);
    return (double)oi_element_i64(t, data, e);
}

/* v for rounding to `t`: f64 itself rounds to nearest; on the way to a smaller float what is cut
 * off stays visible in the last bit ("round to odd"), so that a tie is not decided twice. */
static double integer_for(oi_dtype t, uint64_t v)
{
    if (t == OI_F64 || v < 1ull << 53)
        return (double)v;
    unsigned shift = 0;
    for (; v >> shift >= 1ull << 53; shift++)
        ;
    uint64_t lost = v & ((1ull << shift) - 1);
    return (double)(((v >> shift) | (lost != 0)) << shift);
}

bool oi_element_set_u64(oi_dtype t, void *data, uint64_t e, uint64_t v)
{
    const oi_dtype_info *d = oi_dtype_get(t);
    if (d->cls == OI_CLASS_FLOAT)
        return oi_element_set_f64(t, data, e, integer_for(t, v));
    if (d->cls == OI_CLASS_NONE || v > d->max || (t == OI_T1 && v == 0))
        return false;
    store_bits(d->bits, data, e, v);
    return true;
}

bool oi_element_set_i64(oi_dtype t, void *data, uint64_t e, int64_t v)
{
    const oi_dtype_info *d = oi_dtype_get(t);
    if (v >= 0)
        return oi_element_set_u64(t, data, e, (uint64_t)v);
    if (d->cls == OI_CLASS_FLOAT)
        return oi_element_set_f64(t, data, e, -integer_for(t, 0 - (uint64_t)v));
    if (d->cls == OI_CLASS_NONE || v < d->min)
        return false;
    store_bits(d->bits, data, e, t == OI_T1 ? 0 : (uint64_t)v);
    return true;
}

bool oi_element_set_f64(oi_dtype t, void *data, uint64_t e, double v)
{
    const oi_dtype_info *d = oi_dtype_get(t);
    if (d->cls == OI_CLASS_FLOAT) {
        store_bits(d->bits, data, e, oi_float_encode(t, v));
        return true;
    }
    /* integers take only integral values, compared in f64 where the limits are exact or above */
    if (!(v >= -9223372036854775808.0 && v < 18446744073709551616.0))
        return false;
    if (v < 0)
        return (double)(int64_t)v == v && oi_element_set_i64(t, data, e, (int64_t)v);
    return (double)(uint64_t)v == v && oi_element_set_u64(t, data, e, (uint64_t)v);
}

static bool convert_one(oi_dtype to, void *dst, oi_dtype from, const void *src, uint64_t e)
{
    switch (oi_dtype_get(from)->cls) {
    case OI_CLASS_NONE: return false;
    case OI_CLASS_FLOAT: return oi_element_set_f64(to, dst, e, oi_element_f64(from, src, e));
    case OI_CLASS_UNSIGNED: return oi_element_set_u64(to, dst, e, oi_element_u64(from, src, e));
    default: return oi_element_set_i64(to, dst, e, oi_element_i64(from, src, e));
    }
}

uint64_t oi_convert(oi_dtype to, void *dst, oi_dtype from, const void *src, uint64_t n)
{
    for (uint64_t e = 0; e < n; e++)
        if (!convert_one(to, dst, from, src, e))
            return e;
    return n;
}
