/* What the helpers of shaders need of GLSL, for a C++ compiler: they run here against the C that
 * they were translated from. */
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>

extern "C" {
#include "body/scalar.h"
}

typedef unsigned int uint;
#define precise

struct uvec2 {
    uint x, y;
    bool operator==(const uvec2 &o) const = default;
    uvec2 operator&(uvec2 o) const { return uvec2{x & o.x, y & o.y}; }
    uvec2 operator|(uvec2 o) const { return uvec2{x | o.x, y | o.y}; }
    uvec2 operator^(uvec2 o) const { return uvec2{x ^ o.x, y ^ o.y}; }
    uvec2 operator~() const { return uvec2{~x, ~y}; }
    void operator|=(uvec2 o) { *this = *this | o; }
};

static inline uint floatBitsToUint(float v)
{
    return std::bit_cast<uint>(v);
}
static inline float uintBitsToFloat(uint u)
{
    return std::bit_cast<float>(u);
}
static inline uvec2 unpackDouble2x32(double v)
{
    return std::bit_cast<uvec2>(v);
}
static inline double packDouble2x32(uvec2 v)
{
    return std::bit_cast<double>(v);
}
static inline uint64_t packUint2x32(uvec2 v)
{
    return std::bit_cast<uint64_t>(v);
}
static inline uvec2 unpackUint2x32(uint64_t v)
{
    return std::bit_cast<uvec2>(v);
}
static inline int findMSB(uint v)
{
    return v ? 31 - __builtin_clz(v) : -1;
}
static inline int bitCount(uint v)
{
    return __builtin_popcount(v);
}
static inline int bitfieldExtract(int v, int at, int n)
{
    return (int)((uint)v << (32 - at - n)) >> (32 - n);
}
static inline uint bitfieldExtract(uint v, int at, int n)
{
    return v << (32 - at - n) >> (32 - n);
}
static inline void umulExtended(uint a, uint b, uint &high, uint &low)
{
    uint64_t p = (uint64_t)a * b;
    high = (uint)(p >> 32);
    low = (uint)p;
}
static inline float roundEven(float v)
{
    return rintf(v);
}
static inline double roundEven(double v)
{
    return rint(v);
}
using std::abs, std::ceil, std::floor, std::fma, std::isnan, std::min, std::sqrt, std::trunc;

/* -- the comparison -- */

static uint64_t seed = 1;

static uint64_t random_bits()
{
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Any value; often a small one, a limit or a power of 2 and its neighbours. */
template <class T> static T any(bool is_small)
{
    uint64_t r = random_bits(), kind = random_bits() % 4;
    if constexpr (std::is_floating_point_v<T>) {
        if (kind == 0)
            return (T)((int64_t)(r % 401) - 200) / 4;
        if (kind == 1)
            return (T)((double)(int64_t)r * 0x1p-40);
        return sizeof(T) == 4 ? (T)std::bit_cast<float>((uint32_t)r) : (T)std::bit_cast<double>(r);
    } else {
        if (is_small || kind == 0)
            return (T)((int64_t)(r % 81) - 40);
        if (kind == 1)
            return (T)((uint64_t)1 << (r & 63)) + (T)((int64_t)(r >> 8) % 3 - 1);
        return (T)r;
    }
}

template <class To, class From> static To as_glsl(From v)
{
    if constexpr (std::is_same_v<To, uvec2>)
        return std::bit_cast<uvec2>((uint64_t)v);
    else
        return (To)v;
}

template <class C, class G> static bool same(C c, G g)
{
    if constexpr (std::is_same_v<G, uvec2>)
        return std::bit_cast<uint64_t>(g) == (uint64_t)c;
    else if constexpr (std::is_floating_point_v<C>)
        return (c != c && g != g) || memcmp(&c, &g, sizeof c) == 0;
    else
        return c == (C)g;
}

static int failed, compared;

template <class R, class... A, class GR, class... GA>
static void compare(const char *name, bool is_small, R (*c)(A...), GR (*g)(GA...))
{
    compared++;
    for (int i = 0; i < 4000; i++) {
        std::tuple<A...> args{any<A>(is_small)...};
        R want = std::apply(c, args);
        GR got = std::apply([&](auto... a) { return g(as_glsl<GA>(a)...); }, args);
        if (!same(want, got)) {
            printf("%s differs:", name);
            std::apply([](auto... a) { (printf(" %.17g", (double)a), ...); }, args);
            printf("\n");
            failed++;
            return;
        }
    }
}
