/* mac.h: the steps of products of small integers, with the packed instructions of Arm's DSP
 * extension: SMLAD multiplies two pairs of 16-bit numbers and adds both products. */
#ifndef OI_RECIPE_DSP_MAC_H
#define OI_RECIPE_DSP_MAC_H

#include <stdint.h>

/* What a strip holds; how many of them a step takes of each operand. */
typedef int16_t oi_mac_number;

enum { OI_MAC_RUN = 4 };

/* Sums of two filters at two places. */
typedef struct oi_mac_sums {
    int32_t a0, a1, b0, b1; /* place a or b, filter 0 or 1 */
} oi_mac_sums;

typedef uint32_t __attribute__((may_alias, aligned(2))) oi_mac_word;

/* sum + the products of the two numbers in either word. */
static inline __attribute__((always_inline)) int32_t oi_mac_dual(uint32_t x, uint32_t w,
                                                                 int32_t sum)
{
    int32_t more;
    __asm__("smlad %0, %1, %2, %3" : "=r"(more) : "r"(x), "r"(w), "r"(sum));
    return more;
}

/* Two numbers side by side, as one word. */
static inline __attribute__((always_inline)) uint32_t oi_mac_pair(const oi_mac_number *x)
{
    return *(const oi_mac_word *)(const void *)x;
}

/* Of four bytes, 0 and 2, or 1 and 3, as 16-bit numbers. */
static inline __attribute__((always_inline)) uint32_t oi_mac_even(uint32_t w)
{
    uint32_t both;
    __asm__("sxtb16 %0, %1" : "=r"(both) : "r"(w));
    return both;
}

static inline __attribute__((always_inline)) uint32_t oi_mac_odd(uint32_t w)
{
    uint32_t both;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(both) : "r"(w));
    return both;
}

/* The lower halves of two words, and their upper halves. */
static inline __attribute__((always_inline)) uint32_t oi_mac_lows(uint32_t a, uint32_t b)
{
    return (a & 0xffff) | b << 16; /* PKHBT */
}

static inline __attribute__((always_inline)) uint32_t oi_mac_highs(uint32_t a, uint32_t b)
{
    return a >> 16 | (b & 0xffff0000u); /* PKHTB */
}

typedef uint32_t __attribute__((may_alias, aligned(1))) oi_mac_bytes;

/* n bytes as the strip has them. */
static inline void oi_mac_copy(const int8_t *x, oi_mac_number *out, int32_t n)
{
    for (; n >= 4; n -= 4, x += 4, out += 4) {
        const uint32_t w = *(const oi_mac_bytes *)(const void *)x;
        const uint32_t even = oi_mac_even(w), odd = oi_mac_odd(w);
        *(oi_mac_word *)(void *)out = oi_mac_lows(even, odd);
        *(oi_mac_word *)(void *)(out + 2) = oi_mac_highs(even, odd);
    }
    while (n-- > 0)
        *out++ = *x++;
}

/* Interleaves n bytes of a and of b; each pair is `step` numbers after the one before. */
static inline void oi_mac_weave(const int8_t *a, const int8_t *b, oi_mac_number *out, int32_t step,
                                int32_t n)
{
    for (; n >= 4; n -= 4, a += 4, b += 4) {
        const uint32_t v = *(const oi_mac_bytes *)(const void *)a;
        const uint32_t w = *(const oi_mac_bytes *)(const void *)b;
        const uint32_t even_v = oi_mac_even(v), odd_v = oi_mac_odd(v);
        const uint32_t even_w = oi_mac_even(w), odd_w = oi_mac_odd(w);
        *(oi_mac_word *)(void *)out = oi_mac_lows(even_v, even_w);
        *(oi_mac_word *)(void *)(out += step) = oi_mac_lows(odd_v, odd_w);
        *(oi_mac_word *)(void *)(out += step) = oi_mac_highs(even_v, even_w);
        *(oi_mac_word *)(void *)(out += step) = oi_mac_highs(odd_v, odd_w);
        out += step;
    }
    for (; n > 0; n--, out += step) {
        out[0] = *a++;
        out[1] = *b++;
    }
}

/* What a step leaves for the next. */
typedef struct oi_mac_at {
    const oi_mac_number *a, *b;
    const int8_t *w;
    oi_mac_sums s;
} oi_mac_at;

/* Four numbers of place a times two filters: SXTB16 takes bytes 0 and 2 of a word, turned by 8 bits
 * bytes 1 and 3. In assembler because all registers are in use: compilers would spill sums. */
static inline __attribute__((always_inline)) oi_mac_at oi_mac_step_one(oi_mac_at p)
{
    uint32_t w0, w1, x0, x1, t;
    __asm__("ldrd %[w0], %[w1], [%[w]], #8\n\t"
            "ldrd %[x0], %[x1], [%[a]], #8\n\t"
            "sxtb16 %[t], %[w0]\n\t"
            "smlad %[a0], %[x0], %[t], %[a0]\n\t"
            "sxtb16 %[w0], %[w0], ror #8\n\t"
            "smlad %[a0], %[x1], %[w0], %[a0]\n\t"
            "sxtb16 %[t], %[w1]\n\t"
            "smlad %[a1], %[x0], %[t], %[a1]\n\t"
            "sxtb16 %[w1], %[w1], ror #8\n\t"
            "smlad %[a1], %[x1], %[w1], %[a1]"
            : [a] "+r"(p.a), [w] "+r"(p.w), [a0] "+r"(p.s.a0), [a1] "+r"(p.s.a1), [w0] "=&r"(w0),
              [w1] "=&r"(w1), [x0] "=&r"(x0), [x1] "=&r"(x1), [t] "=&r"(t)
            :
            : "memory");
    return p;
}

/* Four numbers of two places: unpacked weights serve both. */
static inline __attribute__((always_inline)) oi_mac_at oi_mac_step_two(oi_mac_at p)
{
    uint32_t w0, w1, x0, x1, t0, t1;
    __asm__("ldrd %[w0], %[w1], [%[w]], #8\n\t"
            "ldrd %[x0], %[x1], [%[a]], #8\n\t"
            "sxtb16 %[t0], %[w0]\n\t"
            "sxtb16 %[w0], %[w0], ror #8\n\t"
            "sxtb16 %[t1], %[w1]\n\t"
            "sxtb16 %[w1], %[w1], ror #8\n\t"
            "smlad %[a0], %[x0], %[t0], %[a0]\n\t"
            "smlad %[a1], %[x0], %[t1], %[a1]\n\t"
            "smlad %[a0], %[x1], %[w0], %[a0]\n\t"
            "smlad %[a1], %[x1], %[w1], %[a1]\n\t"
            "ldrd %[x0], %[x1], [%[b]], #8\n\t"
            "smlad %[b0], %[x0], %[t0], %[b0]\n\t"
            "smlad %[b1], %[x0], %[t1], %[b1]\n\t"
            "smlad %[b0], %[x1], %[w0], %[b0]\n\t"
            "smlad %[b1], %[x1], %[w1], %[b1]"
            : [a] "+r"(p.a), [b] "+r"(p.b), [w] "+r"(p.w), [a0] "+r"(p.s.a0), [a1] "+r"(p.s.a1),
              [b0] "+r"(p.s.b0), [b1] "+r"(p.s.b1), [w0] "=&r"(w0), [w1] "=&r"(w1), [x0] "=&r"(x0),
              [x1] "=&r"(x1), [t0] "=&r"(t0), [t1] "=&r"(t1)
            :
            : "memory");
    return p;
}

/* Runs of 4 * steps numbers of place a times two filters. w: of every four numbers 0, 2, 1 and 3 of
 * the one filter, then of the other. */
static inline __attribute__((always_inline)) oi_mac_sums oi_mac_one(const oi_mac_number *a,
                                                                    const int8_t *w, int32_t steps,
                                                                    oi_mac_sums s)
{
    oi_mac_at p = {a, a, w, s};
#pragma GCC unroll 8
    for (int32_t i = 0; i < steps; i++)
        p = oi_mac_step_one(p);
    return p.s;
}

/* Two places, and `rows` runs of either, each `skip` numbers after the end of the one before. */
static inline __attribute__((always_inline)) oi_mac_sums oi_mac_two(const oi_mac_number *a,
                                                                    const oi_mac_number *b,
                                                                    const int8_t *w, int32_t steps,
                                                                    int32_t rows, int32_t skip,
                                                                    oi_mac_sums s)
{
    oi_mac_at p = {a, b, w, s};
    for (int32_t r = 0; r < rows; r++) {
#pragma GCC unroll 8
        for (int32_t i = 0; i < steps; i++)
            p = oi_mac_step_two(p);
        p.a += skip;
        p.b += skip;
    }
    return p.s;
}

#endif
