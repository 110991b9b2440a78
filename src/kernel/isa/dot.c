/* dot.c: what attention does with rows: products summed, scaled rows added, softmax. The reference
 * keeps index order; other variants sum OI_LANES partial sums side by side. */
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
    }                                                                                  \
    /* nothing visible, everything -inf: all weights are 0 */                          \
    static void softmax_##t(size_t n, void *row)                                       \
    {                                                                                  \
        T *s = row, top = -(T)INFINITY, sum = 0;                                       \
        for (size_t i = 0; i < n; i++)                                                 \
            top = oi_max_##t(top, s[i]);                                               \
        if (top == -(T)INFINITY) {                                                     \
            memset(row, 0, n * sizeof(T));                                             \
            return;                                                                    \
        }                                                                              \
        for (size_t i = 0; i < n; i++)                                                 \
            sum += s[i] = oi_exp_##t(s[i] - top);                                      \
        for (size_t i = 0; i < n; i++)                                                 \
            s[i] /= sum;                                                               \
    }

DOT_FNS(f32, float)
DOT_FNS(f64, double)

extern const oi_dot_fns OI_KERNEL(dots)[2];
const oi_dot_fns OI_KERNEL(dots)[2] = {
    {dot_f32, add_scaled_f32, softmax_f32},
    {dot_f64, add_scaled_f64, softmax_f64},
};
