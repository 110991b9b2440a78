/* random.c: the generator that C, the command and Python share: SplitMix64, one draw per element
 * in row-major order. */
#include "sim/sim.h"

static double draw(uint64_t *state, double low, double high)
{
    double u = (double)(oi_splitmix64(state) >> 11);
    return low + (high - low) * u * 0x1p-53;
}

static uint64_t draw_int(uint64_t *state, uint64_t low, uint64_t span)
{
    uint64_t u = oi_splitmix64(state);
    return low + (span ? u % span : u); /* span 0: all 2^64 values */
}

oi_status oi_random(oi_dtype dtype, uint64_t seed, double low, double high, void *out, uint64_t n)
{
    if (!oi_dtype_is_float(dtype))
        return OI_ERR_USAGE;
    for (uint64_t i = 0; i < n; i++)
        (void)oi_element_set_f64(dtype, out, i, draw(&seed, low, high));
    return OI_OK;
}

static bool in_range(oi_dtype t, int64_t v)
{
    const oi_dtype_info *d = oi_dtype_get(t);
    return v >= d->min && (v < 0 || (uint64_t)v <= d->max);
}

oi_status oi_random_int(oi_dtype dtype, uint64_t seed, int64_t low, int64_t high, void *out,
                        uint64_t n)
{
    if (oi_dtype_is_float(dtype) || !oi_dtype_is_tensor(dtype) || low > high ||
        !in_range(dtype, low) || !in_range(dtype, high))
        return OI_ERR_USAGE;
    uint64_t span = (uint64_t)high - (uint64_t)low + 1;
    for (uint64_t i = 0; i < n; i++) {
        int64_t v = (int64_t)draw_int(&seed, (uint64_t)low, span);
        if (dtype == OI_T1 && v == 0)
            v = 1; /* t1 has no zero */
        (void)oi_element_set_i64(dtype, out, i, v);
    }
    return OI_OK;
}

void oi_random_f32(uint64_t seed, float low, float high, float *out, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        out[i] = (float)draw(&seed, (double)low, (double)high);
}

void oi_random_f64(uint64_t seed, double low, double high, double *out, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        out[i] = draw(&seed, low, high);
}

void oi_random_i32(uint64_t seed, int32_t low, int32_t high, int32_t *out, uint64_t n)
{
    (void)oi_random_int(OI_I32, seed, low, high, out, n); /* refuses only an empty range */
}

void oi_random_i64(uint64_t seed, int64_t low, int64_t high, int64_t *out, uint64_t n)
{
    (void)oi_random_int(OI_I64, seed, low, high, out, n);
}
