/* freestanding.c: functions of a C library that compilers call on their own or that freestanding.h
 * declares. The mathematical ones are correctly rounded, so their bits equal those of every other
 * such implementation. */
#include <stddef.h>
#include <stdint.h>

/* A project's own functions of these names take precedence. Loops in here must not be compiled into
 * calls of these functions themselves. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#define OWN __attribute__((weak, no_builtin("memcpy", "memmove", "memset")))
#else
#pragma GCC optimize("fp-contract=off", "no-tree-loop-distribute-patterns")
#define OWN __attribute__((weak))
#endif

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int value, size_t n);
int memcmp(const void *a, const void *b, size_t n);
float fabsf(float x);
float floorf(float x);
float ceilf(float x);
float truncf(float x);
float rintf(float x);
float copysignf(float x, float sign);
float fmaf(float x, float y, float z);
float fmodf(float x, float y);
float sqrtf(float x);
double fabs(double x);
double floor(double x);
double ceil(double x);
double trunc(double x);
double rint(double x);
double copysign(double x, double sign);
double fmod(double x, double y);
double sqrt(double x);

/* -- memory -- */

typedef uint32_t __attribute__((may_alias)) word;

OWN void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    if ((((uintptr_t)t | (uintptr_t)f) & 3) == 0)
        for (; n >= 4; n -= 4, t += 4, f += 4)
            *(word *)(void *)t = *(const word *)(const void *)f;
    while (n--)
        *t++ = *f++;
    return to;
}

OWN void *memmove(void *to, const void *from, size_t n)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    if ((uintptr_t)t - (uintptr_t)f >= n)
        return memcpy(to, from, n);
    while (n--)
        t[n] = f[n];
    return to;
}

OWN void *memset(void *to, int value, size_t n)
{
    unsigned char *t = to;
    uint32_t all = (unsigned char)value * 0x01010101u;
    for (; n && ((uintptr_t)t & 3) != 0; n--)
        *t++ = (unsigned char)value;
    for (; n >= 4; n -= 4, t += 4)
        *(word *)(void *)t = all;
    while (n--)
        *t++ = (unsigned char)value;
    return to;
}

OWN int memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *p = a, *q = b;
    for (; n; n--, p++, q++)
        if (*p != *q)
            return *p < *q ? -1 : 1;
    return 0;
}

/* -- bits of floats -- */

typedef union single {
    float f;
    uint32_t u;
} single;

typedef union twice {
    double f;
    uint64_t u;
} twice;

OWN float fabsf(float x)
{
    single s = {x};
    s.u &= 0x7fffffffu;
    return s.f;
}

OWN double fabs(double x)
{
    twice s = {x};
    s.u &= ~(1ull << 63);
    return s.f;
}

OWN float copysignf(float x, float sign)
{
    single s = {x}, t = {sign};
    s.u = (s.u & 0x7fffffffu) | (t.u & 0x80000000u);
    return s.f;
}

OWN double copysign(double x, double sign)
{
    twice s = {x}, t = {sign};
    s.u = (s.u & ~(1ull << 63)) | (t.u & 1ull << 63);
    return s.f;
}

/* -- whole numbers -- */

OWN float truncf(float x)
{
    single s = {x};
    int e = (int)(s.u >> 23 & 255) - 127;
    if (e < 23)
        s.u &= e < 0 ? 0x80000000u : ~(0x7fffffu >> e);
    return s.f;
}

OWN double trunc(double x)
{
    twice s = {x};
    int e = (int)(s.u >> 52 & 2047) - 1023;
    if (e < 52)
        s.u &= e < 0 ? 1ull << 63 : ~(0xfffffffffffffull >> e);
    return s.f;
}

OWN float floorf(float x)
{
    float t = truncf(x);
    return t > x ? t - 1.0f : t;
}

OWN double floor(double x)
{
    double t = trunc(x);
    return t > x ? t - 1.0 : t;
}

OWN float ceilf(float x)
{
    float t = truncf(x);
    return t < x ? t + 1.0f : t;
}

OWN double ceil(double x)
{
    double t = trunc(x);
    return t < x ? t + 1.0 : t;
}

/* Adding 2^23 leaves no bits for a fraction, so the addition rounds, ties to even. */
OWN float rintf(float x)
{
    float a = fabsf(x);
    if (!(a < 0x1p23f))
        return x;
    volatile float sum = a + 0x1p23f;
    return copysignf(sum - 0x1p23f, x);
}

OWN double rint(double x)
{
    double a = fabs(x);
    if (!(a < 0x1p52))
        return x;
    volatile double sum = a + 0x1p52;
    return copysign(sum - 0x1p52, x);
}

/* -- remainders -- */

/* The mantissa as an integer, and its exponent. */
static uint64_t split(uint64_t u, int *e)
{
    *e = (int)(u >> 52 & 2047);
    uint64_t m = u & 0xfffffffffffffull;
    if (*e)
        return m | 1ull << 52;
    *e = 1;
    while (m && !(m >> 52)) {
        m <<= 1;
        (*e)--;
    }
    return m;
}

/* Long division that keeps only the remainder. */
OWN double fmod(double x, double y)
{
    twice a = {x}, b = {y}, r;
    int ea, eb;
    uint64_t ma = split(a.u & ~(1ull << 63), &ea), mb = split(b.u & ~(1ull << 63), &eb);
    if (mb == 0 || !(fabs(x) < (double)__builtin_inff()) || y != y)
        return (x * y) / (x * y);
    if (fabs(x) < fabs(y) || ma == 0)
        return x;
    for (;; ea--) {
        if (ma >= mb)
            ma -= mb;
        if (ea == eb)
            break;
        ma <<= 1;
    }
    while (ma && !(ma >> 52) && ea > 1) {
        ma <<= 1;
        ea--;
    }
    for (; ea < 1; ea++) /* undo the shift by split: those bits are zero */
        ma >>= 1;
    r.u = (ma & 0xfffffffffffffull) | (ma >> 52 ? (uint64_t)ea << 52 : 0) | (a.u & 1ull << 63);
    return r.f;
}

OWN float fmodf(float x, float y)
{
    return (float)fmod((double)x, (double)y); /* exact: it is a multiple of y's last place */
}

/* -- roots -- */

/* Digit by digit: the square root of m * 2^52 or m * 2^53, with one bit more than rounding needs.
 */
static double root_of(double x)
{
    twice s = {x};
    int e;
    if (x == 0.0 || !(x < (double)__builtin_inff()))
        return x;
    if (x < 0.0)
        return (x - x) / (x - x);
    uint64_t m = split(s.u, &e);
    e -= 1023;
    if (e & 1) {
        m <<= 1;
        e--;
    }
    uint64_t root = 0, rest = 0;
    for (int i = 0; i < 54; i++) { /* two bits of m per iteration, from the top; m has 54 */
        rest = rest << 2 | (m >> 52 & 3);
        m = (m << 2) & ((1ull << 54) - 1);
        uint64_t trial = root << 2 | 1;
        root <<= 1;
        if (rest >= trial) {
            rest -= trial;
            root |= 1;
        }
    }
    root = (root >> 1) + (root & 1 & ((rest != 0) | (root >> 1 & 1)));
    s.u = root + ((uint64_t)(e / 2 + 1022) << 52); /* its top bit adds one to the exponent */
    return s.f;
}

OWN double sqrt(double x)
{
    return root_of(x);
}

/* A double has more than twice the bits of a float, so rounding twice changes nothing. It does not
 * call sqrt, because compilers would turn that into sqrtf again. */
OWN float sqrtf(float x)
{
    return (float)root_of((double)x);
}

/* -- product and sum, rounded once -- */

/* The product is exact in a double. The sum is rounded to odd: cut-off bits stay visible in the
 * last bit, so the rounding to float does not decide a tie twice. */
OWN float fmaf(float x, float y, float z)
{
    double p = (double)x * (double)y, q = (double)z;
    twice sum = {p + q};
    if (!(fabs(sum.f) < (double)__builtin_inff()))
        return (float)sum.f;
    volatile double worker = sum.f - p;
    volatile double first = sum.f - worker;
    double lost = (p - first) + (q - worker);
    if (lost != 0.0 && !(sum.u & 1))
        sum.u += (lost > 0.0) == (sum.f > 0.0) ? 1 : ~0ull;
    return (float)sum.f;
}
