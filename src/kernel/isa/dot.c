/* dot.c: what thin matrix products do with rows, four at a time, so that a matrix streams in from
 * as many places and a sum is loaded and stored for four products. Floats are met by the very loops
 * of emitted programs (body/gemv.h); those here do the same for other numbers and where there is
 * no fused multiply-add. Products are fused into the sums where the processor can (this file allows
 * contraction). The reference has none: there the tiles do. */
#include "kernel/kernel.h"
#include "body/scalar.h"
#if defined(__FMA__)
#include "body/gemv.h"
#endif

extern const oi_dot_fns OI_KERNEL(dots)[4];

#if OI_LANES > 1

#define VECTOR_BYTES (OI_LANES >= 64 ? 64 : 32)
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

#define DOT_FNS(t, Type)                                                                       \
    static void add_scaled_##t(size_t n, const void *factor, const void *x, void *sum)         \
    {                                                                                          \
        const Type f = *(const Type *)factor, *a = x;                                          \
        Type *s = sum;                                                                         \
        OI_ROW_LOOP                                                                            \
        for (size_t i = 0; i < n; i++)                                                         \
            s[i] += f * a[i];                                                                  \
    }                                                                                          \
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

#if defined(__FMA__)
static void add_scaled_f32(size_t n, const void *factor, const void *x, void *sum)
{
    oi_gemv_add_one(*(const float *)factor, x, (int64_t)n, sum);
}

static void dot_four_f32(size_t n, const void *x, const void *const *rows, void *sums)
{
    oi_gemv_dots(x, (const float *const[]){rows[0], rows[1], rows[2], rows[3]}, (int64_t)n, sums);
}

static void add_four_f32(size_t n, const void *factors, const void *const *rows, void *sum)
{
    oi_gemv_add(factors, (const float *const[]){rows[0], rows[1], rows[2], rows[3]}, (int64_t)n,
                sum);
}
#else
typedef float vector_f32 __attribute__((vector_size(VECTOR_BYTES)));
DOT_FNS(f32, float)
#endif
DOT_FNS(f64, double)
DOT_FNS(i32, uint32_t) /* sums wrap */
DOT_FNS(i64, uint64_t)

#define FNS(t)                                     \
    {                                              \
        add_scaled_##t, dot_four_##t, add_four_##t \
    }
const oi_dot_fns OI_KERNEL(dots)[4] = {
    FNS(f32),
    FNS(f64),
    FNS(i32),
    FNS(i64),
};

#else
const oi_dot_fns OI_KERNEL(dots)[4] = {{0}};
#endif
