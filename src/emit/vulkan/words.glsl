// words.glsl: 64-bit integers on devices that have none: a uvec2, the low word first. Signed and
// unsigned ones are the same words, and most functions are of both. Equality and bits are GLSL's
// own. tools/glslgen.c spells C's operators by these names, as dialect.c does.

uvec2 oi_words_of_int(int v)
{
    return uvec2(uint(v), uint(v >> 31));
}

uvec2 oi_words_of_uint(uint v)
{
    return uvec2(v, 0u);
}

uvec2 oi_words_of_uvec2(uvec2 v)
{
    return v;
}

uvec2 oi_words_add(uvec2 a, uvec2 b)
{
    const uint low = a.x + b.x;
    return uvec2(low, a.y + b.y + (low < a.x ? 1u : 0u));
}

uvec2 oi_words_sub(uvec2 a, uvec2 b)
{
    return uvec2(a.x - b.x, a.y - b.y - (a.x < b.x ? 1u : 0u));
}

uvec2 oi_words_mul(uvec2 a, uvec2 b)
{
    return uvec2(a.x * b.x, oi_mul_high_u32(a.x, b.x) + a.x * b.y + a.y * b.x);
}

bool oi_words_less_u64(uvec2 a, uvec2 b)
{
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

bool oi_words_less_i64(uvec2 a, uvec2 b)
{
    return int(a.y) < int(b.y) || (a.y == b.y && a.x < b.x);
}

// By 0 ... 63.
uvec2 oi_words_left(uvec2 v, int n)
{
    if (n >= 32) {
        return uvec2(0u, v.x << (n - 32));
    }
    return n == 0 ? v : uvec2(v.x << n, v.y << n | v.x >> (32 - n));
}

uvec2 oi_words_right(uvec2 v, int n)
{
    if (n >= 32) {
        return uvec2(v.y >> (n - 32), 0u);
    }
    return n == 0 ? v : uvec2(v.x >> n | v.y << (32 - n), v.y >> n);
}

uvec2 oi_words_right_signed(uvec2 v, int n)
{
    const int high = int(v.y);
    if (n >= 32) {
        return uvec2(uint(high >> (n - 32)), uint(high >> 31));
    }
    return n == 0 ? v : uvec2(v.x >> n | v.y << (32 - n), uint(high >> n));
}

// A bit of the quotient at a time; b is not 0.
uvec2 oi_words_div(uvec2 a, uvec2 b)
{
    uvec2 q = uvec2(0u, 0u), r = uvec2(0u, 0u);
    for (int i = 63; i >= 0; i--) {
        const bool spills = (r.y >> 31) != 0u;
        r = oi_words_left(r, 1);
        r.x |= oi_words_right(a, i).x & 1u;
        if (spills || !oi_words_less_u64(r, b)) {
            r = oi_words_sub(r, b);
            q |= oi_words_left(uvec2(1u, 0u), i);
        }
    }
    return q;
}

uvec2 oi_words_rem(uvec2 a, uvec2 b)
{
    return oi_words_sub(a, oi_words_mul(oi_words_div(a, b), b));
}

uvec2 oi_words_abs(uvec2 v)
{
    return int(v.y) < 0 ? oi_words_sub(uvec2(0u, 0u), v) : v;
}

uvec2 oi_words_div_signed(uvec2 a, uvec2 b)
{
    const uvec2 q = oi_words_div(oi_words_abs(a), oi_words_abs(b));
    return int(a.y ^ b.y) < 0 ? oi_words_sub(uvec2(0u, 0u), q) : q;
}

uvec2 oi_words_rem_signed(uvec2 a, uvec2 b)
{
    return oi_words_sub(a, oi_words_mul(oi_words_div_signed(a, b), b));
}

// Rounded once: what does not fit 31 bits stays visible in the last of those, so that the
// conversion of an int sees no tie that is none.
precise float oi_f32_of_unsigned_words(uvec2 v)
{
    int down = v.y != 0u ? findMSB(v.y) + 2 : (v.x >> 31 != 0u ? 1 : 0);
    const uvec2 kept = oi_words_right(v, down);
    const bool is_cut = oi_words_left(kept, down) != v;
    const precise float whole = float(int(kept.x | (is_cut ? 1u : 0u)));
    return whole * uintBitsToFloat(uint(down + 127) << 23);
}

precise float oi_f32_of_signed_words(uvec2 v)
{
    const precise float size = oi_f32_of_unsigned_words(oi_words_abs(v));
    return int(v.y) < 0 ? -size : size;
}

// Towards 0; the value fits.
uvec2 oi_unsigned_words_of_f32(float v)
{
    const uint u = floatBitsToUint(v), m = (u & 0x7fffffu) | 0x800000u;
    const int up = int(u >> 23 & 0xffu) - 150;
    if (up <= -32) {
        return uvec2(0u, 0u);
    }
    return up < 0 ? uvec2(m >> -up, 0u) : oi_words_left(uvec2(m, 0u), min(up, 63));
}

uvec2 oi_signed_words_of_f32(float v)
{
    const uvec2 size = oi_unsigned_words_of_f32(abs(v));
    return v < 0.0 ? oi_words_sub(uvec2(0u, 0u), size) : size;
}

// Conversions of any number to a float: near(x) of the meaning language.
precise float oi_near_f32_i64(uvec2 v)
{
    return oi_f32_of_signed_words(v);
}

precise float oi_near_f32_u64(uvec2 v)
{
    return oi_f32_of_unsigned_words(v);
}

precise float oi_near_f32_i32(int v)
{
    return float(v);
}

precise float oi_near_f32_u32(uint v)
{
    return float(v);
}

precise float oi_near_f32_f32(float v)
{
    return v;
}

precise float oi_near_f32_f64(double v)
{
    return float(v);
}

precise double oi_near_f64_i64(uvec2 v)
{
    return double(int(v.y)) * 4294967296.0lf + double(v.x);
}

precise double oi_near_f64_u64(uvec2 v)
{
    return double(v.y) * 4294967296.0lf + double(v.x);
}

precise double oi_near_f64_i32(int v)
{
    return double(v);
}

precise double oi_near_f64_u32(uint v)
{
    return double(v);
}

precise double oi_near_f64_f32(float v)
{
    return double(v);
}

precise double oi_near_f64_f64(double v)
{
    return v;
}

uvec2 oi_bits_f64(double v)
{
    return unpackDouble2x32(v);
}

precise double oi_float_f64(uvec2 u)
{
    return packDouble2x32(u);
}

int oi_ones(uvec2 v)
{
    return bitCount(v.x) + bitCount(v.y);
}
