/* dot.c: what thin matrix products do with rows: products summed, scaled rows added. The reference
 * keeps index order; other variants sum OI_LANES partial sums side by side, and fuse products into
 * sums (this file allows contraction). */
#include "kernel/kernel.h"
#include "kernel/scalar.h"

#define DOT_FNS(t, T)                                                                  \
    static void dot_##t(size_t n, const void *x, const void *y, void *sum)             \
    {                                                                                  \
        const T *a = x, *b = y;                                                        \
        T whole = *(T *)sum, lane[OI_LANES] = {0};                                     \
        size_t i = 0;                                                                  \
        for (; OI_LANES > 1 && i + OI_LANES <= n; i += OI_LANES)                       \
            for (int j = 0; j < OI_LANES; j++)                                         \
                lane[j] += a[i + (size_t)j] * b[i + (size_t)j];                        \
        for (int j = 0; OI_LANES > 1 && j < OI_LANES; j++)                             \
            whole += lane[j];                                                          \
        for (; i < n; i++)                                                             \
            whole += a[i] * b[i];                                                      \
        *(T *)sum = whole;                                                             \
    }                                                                                  \
    static void add_scaled_##t(size_t n, const void *factor, const void *x, void *sum) \
    {                                                                                  \
        const T f = *(const T *)factor, *a = x;                                        \
        T *s = sum;                                                                    \
        OI_ROW_LOOP                                                                    \
        for (size_t i = 0; i < n; i++)                                                 \
            s[i] += f * a[i];                                                          \
    }

/* Four rows at a time, so that a matrix streams in from as many places and a sum is loaded and
 * stored for four products. */
#if OI_LANES > 1
#define VECTOR_BYTES (OI_LANES >= 64 ? 64 : 32)
typedef float vector_f32 __attribute__((vector_size(VECTOR_BYTES)));
typedef double vector_f64 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t vector_i32 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint64_t vector_i64 __attribute__((vector_size(VECTOR_BYTES)));

#define FOUR(X) X(0) X(1) X(2) X(3)
#define ROW(k)  const T *y##k = rows[k];
#define SUM(k)  vector lo##k = {0}, hi##k = {0};
#define MUL(k)                              \
    memcpy(&b, y##k + i, sizeof b);         \
    lo##k += a0 * b;                        \
    memcpy(&b, y##k + i + lanes, sizeof b); \
    hi##k += a1 * b;
#define END(k)                      \
    lo##k += hi##k;                 \
    for (int j = 0; j < lanes; j++) \
        whole[k] += lo##k[j];
#define TAIL(k) whole[k] += x[i] * y##k[i];
#define ADD(k)                      \
    memcpy(&b, y##k + i, sizeof b); \
    sum += f##k * b;
#define FACTOR(k)   const T f##k = x[k];
#define ADD_TAIL(k) s[i] += f##k * y##k[i];

#define FOUR_FNS(t, Type)                                                                      \
    static void dot_four_##t(size_t n, const void *one, const void *const *rows, void *sums)   \
    {                                                                                          \
        typedef Type T;                                                                        \
        typedef vector_##t vector;                                                             \
        enum { lanes = sizeof(vector) / sizeof(T) };                                           \
        const T *x = one;                                                                      \
        T *whole = sums;                                                                       \
        size_t i = 0;                                                                          \
        FOUR(ROW)                                                                              \
        FOUR(SUM)                                                                              \
        for (; i + 2 * lanes <= n; i += 2 * lanes) {                                           \
            vector a0, a1, b;                                                                  \
            memcpy(&a0, x + i, sizeof a0);                                                     \
            memcpy(&a1, x + i + lanes, sizeof a1);                                             \
            FOUR(MUL)                                                                          \
        }                                                                                      \
        FOUR(END)                                                                              \
        for (; i < n; i++) {                                                                   \
            FOUR(TAIL)                                                                         \
        }                                                                                      \
    }                                                                                          \
    static void add_four_##t(size_t n, const void *factors, const void *const *rows, void *to) \
    {                                                                                          \
        typedef Type T;                                                                        \
        typedef vector_##t vector;                                                             \
        enum { lanes = sizeof(vector) / sizeof(T) };                                           \
        const T *x = factors;                                                                  \
        T *s = to;                                                                             \
        size_t i = 0;                                                                          \
        FOUR(ROW)                                                                              \
        FOUR(FACTOR)                                                                           \
        for (; i + lanes <= n; i += lanes) {                                                   \
            vector sum, b;                                                                     \
            memcpy(&sum, s + i, sizeof sum);                                                   \
            FOUR(ADD)                                                                          \
            memcpy(s + i, &sum, sizeof sum);                                                   \
        }                                                                                      \
        for (; i < n; i++) {                                                                   \
            FOUR(ADD_TAIL)                                                                     \
        }                                                                                      \
    }
#else
#define FOUR_FNS(t, Type)                                                                      \
    static void dot_four_##t(size_t n, const void *one, const void *const *rows, void *sums)   \
    {                                                                                          \
        for (int k = 0; k < 4; k++)                                                            \
            dot_##t(n, one, rows[k], (Type *)sums + k);                                        \
    }                                                                                          \
    static void add_four_##t(size_t n, const void *factors, const void *const *rows, void *to) \
    {                                                                                          \
        for (int k = 0; k < 4; k++)                                                            \
            add_scaled_##t(n, (const Type *)factors + k, rows[k], to);                         \
    }
#endif

#define ALL_FNS(t, T) DOT_FNS(t, T) FOUR_FNS(t, T)
ALL_FNS(f32, float)
ALL_FNS(f64, double)
ALL_FNS(i32, uint32_t) /* sums wrap */
ALL_FNS(i64, uint64_t)

#define FNS(t)                                              \
    {                                                       \
        dot_##t, add_scaled_##t, dot_four_##t, add_four_##t \
    }
extern const oi_dot_fns OI_KERNEL(dots)[4];
const oi_dot_fns OI_KERNEL(dots)[4] = {
    FNS(f32),
    FNS(f64),
    FNS(i32),
    FNS(i64),
};
