/* form.c: rows of storage to and from the form kernels compute in.
 *
 * Packed integers are extended to (u)int8_t, narrow floats to float, all others stay as they are.
 * Element e of a packed type of width w sits at bits e*w ... of the buffer, least significant
 * first. */
#include "kernel/kernel.h"
#include "body/scalar.h"
#if defined(__F16C__) && defined(__FMA__)
#include "body/half.h"
#endif

/* -- whole bytes -- */

/* memcpy: storage need not be aligned. */
#define WHOLE(name, T)                                                                         \
    static void load_##name(void *form, const void *data, int64_t at, int64_t step, size_t n)  \
    {                                                                                          \
        T *out = form, v;                                                                      \
        const char *p = (const char *)data + at * (int64_t)sizeof(T);                          \
        if (step == 1) {                                                                       \
            memcpy(out, p, n * sizeof(T));                                                     \
            return;                                                                            \
        }                                                                                      \
        if (step == 0) {                                                                       \
            memcpy(&v, p, sizeof v);                                                           \
            for (size_t i = 0; i < n; i++)                                                     \
                out[i] = v;                                                                    \
            return;                                                                            \
        }                                                                                      \
        for (size_t i = 0; i < n; i++)                                                         \
            memcpy(&out[i], p + (int64_t)i * step * (int64_t)sizeof(T), sizeof(T));            \
    }                                                                                          \
    static void store_##name(void *data, int64_t at, int64_t step, const void *form, size_t n) \
    {                                                                                          \
        const T *in = form;                                                                    \
        char *p = (char *)data + at * (int64_t)sizeof(T);                                      \
        if (step == 1) {                                                                       \
            memcpy(p, in, n * sizeof(T));                                                      \
            return;                                                                            \
        }                                                                                      \
        for (size_t i = 0; i < n; i++)                                                         \
            memcpy(p + (int64_t)i * step * (int64_t)sizeof(T), &in[i], sizeof(T));             \
    }

WHOLE(w8, uint8_t)
WHOLE(w16, uint16_t)
WHOLE(w32, uint32_t)
WHOLE(w64, uint64_t)

/* -- narrow floats -- */

#define NARROW(name, T)                                                                        \
    static void load_##name(void *form, const void *data, int64_t at, int64_t step, size_t n)  \
    {                                                                                          \
        float *out = form;                                                                     \
        const char *p = (const char *)data + at * (int64_t)sizeof(T);                          \
        for (size_t i = 0; step == 1 && i < n; i++) {                                          \
            T v;                                                                               \
            memcpy(&v, p + i * sizeof v, sizeof v);                                            \
            out[i] = oi_f32_of_##name(v);                                                      \
        }                                                                                      \
        for (size_t i = 0; step != 1 && i < n; i++) {                                          \
            T v;                                                                               \
            memcpy(&v, p + (int64_t)i * step * (int64_t)sizeof v, sizeof v);                   \
            out[i] = oi_f32_of_##name(v);                                                      \
        }                                                                                      \
    }                                                                                          \
    static void store_##name(void *data, int64_t at, int64_t step, const void *form, size_t n) \
    {                                                                                          \
        const float *in = form;                                                                \
        char *p = (char *)data + at * (int64_t)sizeof(T);                                      \
        for (size_t i = 0; step == 1 && i < n; i++) {                                          \
            T v = oi_near_##name##_f32(in[i]);                                                 \
            memcpy(p + i * sizeof v, &v, sizeof v);                                            \
        }                                                                                      \
        for (size_t i = 0; step != 1 && i < n; i++) {                                          \
            T v = oi_near_##name##_f32(in[i]);                                                 \
            memcpy(p + (int64_t)i * step * (int64_t)sizeof v, &v, sizeof v);                   \
        }                                                                                      \
    }

NARROW(f8, uint8_t)
NARROW(bf16, uint16_t)
NARROW(f16, uint16_t)

/* Those of weights and caches, by the loop of emitted programs where the processor knows them. */
#if defined(__F16C__) && defined(__FMA__)
static void load_halves(void *form, const void *data, int64_t at, int64_t step, size_t n)
{
    const uint16_t *p = (const uint16_t *)data + at;
    if (step == 1 && (uintptr_t)p % sizeof *p == 0)
        oi_half_widen(p, (int64_t)n, OI_HALF_F16, form);
    else
        load_f16(form, data, at, step, n);
}
#else
#define load_halves load_f16
#endif
#define store_halves store_f16

/* -- packed -- */

#define PACKED(name, T)                                                                        \
    static void load_##name(void *form, const void *data, int64_t at, int64_t step, size_t n)  \
    {                                                                                          \
        T *out = form;                                                                         \
        for (size_t i = 0; i < n; i++)                                                         \
            out[i] = oi_get_##name(data, at + (int64_t)i * step);                              \
    }                                                                                          \
    static void store_##name(void *data, int64_t at, int64_t step, const void *form, size_t n) \
    {                                                                                          \
        const T *in = form;                                                                    \
        for (size_t i = 0; i < n; i++)                                                         \
            oi_put_##name(data, at + (int64_t)i * step, in[i]);                                \
    }

PACKED(i1, int8_t)
PACKED(i2, int8_t)
PACKED(i4, int8_t)
PACKED(u1, uint8_t)
PACKED(u2, uint8_t)
PACKED(u4, uint8_t)
PACKED(t1, int8_t)
PACKED(t2, int8_t)

/* -- the table -- */

extern const oi_form_fns OI_KERNEL(forms);

#define BOTH(t, name) .load[t] = load_##name, .store[t] = store_##name

const oi_form_fns OI_KERNEL(forms) = {
    BOTH(OI_I8, w8),   BOTH(OI_U8, w8),     BOTH(OI_BOOL, w8),    BOTH(OI_BITSET, w8),
    BOTH(OI_I16, w16), BOTH(OI_U16, w16),   BOTH(OI_I32, w32),    BOTH(OI_U32, w32),
    BOTH(OI_F32, w32), BOTH(OI_I64, w64),   BOTH(OI_U64, w64),    BOTH(OI_F64, w64),
    BOTH(OI_F8, f8),   BOTH(OI_BF16, bf16), BOTH(OI_F16, halves), BOTH(OI_I1, i1),
    BOTH(OI_I2, i2),   BOTH(OI_I4, i4),     BOTH(OI_U1, u1),      BOTH(OI_U2, u2),
    BOTH(OI_U4, u4),   BOTH(OI_T1, t1),     BOTH(OI_T2, t2),
};
