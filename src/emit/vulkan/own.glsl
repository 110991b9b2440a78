// own.glsl: helpers whose C spelling (src/body/scalar.h) is about memory or calls a function that
// GLSL lacks. tools/glslgen.c puts them before those that it translates, and they replace
// translations of the same name. A function ends with a brace at the beginning of a line.

uint oi_bits_f32(float v)
{
    return floatBitsToUint(v);
}

precise float oi_float_f32(uint u)
{
    return uintBitsToFloat(u);
}

uint oi_mul_high_u32(uint a, uint b)
{
    uint high, low;
    umulExtended(a, b, high, low);
    return high;
}

// An int as 64 bits: by its words. Drivers of Mesa 22.3 narrow comparisons of int64_t(v) with a
// constant, and then find -1 above 0.
int64_t oi_wide_of_int(int v)
{
    return int64_t(packUint2x32(uvec2(uint(v), uint(v >> 31))));
}

int64_t oi_wide_of_uint(uint v)
{
    return int64_t(v);
}

int64_t oi_wide_of_int64_t(int64_t v)
{
    return v;
}

int64_t oi_wide_of_uint64_t(uint64_t v)
{
    return int64_t(v);
}

uint64_t oi_bits_f64(double v)
{
    return packUint2x32(unpackDouble2x32(v));
}

precise double oi_float_f64(uint64_t u)
{
    return packDouble2x32(unpackUint2x32(u));
}

precise float oi_copysign_f32(float x, float s)
{
    return uintBitsToFloat((floatBitsToUint(x) & 0x7fffffffu) | (floatBitsToUint(s) & 0x80000000u));
}

precise double oi_copysign_f64(double x, double s)
{
    const uvec2 a = unpackDouble2x32(x), b = unpackDouble2x32(s);
    return packDouble2x32(uvec2(a.x, (a.y & 0x7fffffffu) | (b.y & 0x80000000u)));
}

// Exact: y is scaled up by powers of two and taken off while it fits; no step rounds.
precise float oi_exact_fmod_f32(float x, float y)
{
    const float most = uintBitsToFloat(0x7f800000u);
    precise float r = abs(x), d = abs(y);
    if (isnan(x) || isnan(y) || r == most || d == 0.0) {
        return uintBitsToFloat(0x7fc00000u);
    }
    if (d == most) {
        return x;
    }
    precise float t = d;
    while (t <= r * 0.5) {
        t = t * 2.0;
    }
    while (r >= d) {
        if (r >= t) {
            r = r - t;
        }
        t = t * 0.5;
    }
    return oi_copysign_f32(r, x);
}

precise double oi_exact_fmod_f64(double x, double y)
{
    const double most = packDouble2x32(uvec2(0u, 0x7ff00000u));
    precise double r = abs(x), d = abs(y);
    if (isnan(x) || isnan(y) || r == most || d == 0.0lf) {
        return packDouble2x32(uvec2(0u, 0x7ff80000u));
    }
    if (d == most) {
        return x;
    }
    precise double t = d;
    while (t <= r * 0.5lf) {
        t = t * 2.0lf;
    }
    while (r >= d) {
        if (r >= t) {
            r = r - t;
        }
        t = t * 0.5lf;
    }
    return oi_copysign_f64(r, x);
}
