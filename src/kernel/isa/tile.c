/* tile.c: tuned tiles of a matrix product for f32 and f64.
 *
 * The tile of floats is the very one of emitted programs (body/gemm.h): six rows of two vectors.
 * Those here do the same for doubles and where there is no fused multiply-add: the sums of a tile
 * stay in registers while k advances, 6 x 2 vectors with AVX2 (12 of 16 registers), 14 x 2 with
 * AVX-512 (28 of 32), 4 x 2 where a product needs a register of its own. Per step of k: two vectors
 * of b, one broadcast of a per row. Products are fused into the sums where the processor can (this
 * file allows contraction); k ascends as in the reference. */
#include "kernel/kernel.h"
#if defined(__FMA__)
#include "body/gemm.h"
#endif

#if defined(__AVX__)

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define N_ROWS       14
#define ROWS(X)      X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)
#elif defined(__FMA__)
#define VECTOR_BYTES 32
#define N_ROWS       6
#define ROWS(X)      X(0) X(1) X(2) X(3) X(4) X(5)
#else
#define VECTOR_BYTES 32
#define N_ROWS       4
#define ROWS(X)      X(0) X(1) X(2) X(3)
#endif

typedef float vector_f32 __attribute__((vector_size(VECTOR_BYTES)));
typedef double vector_f64 __attribute__((vector_size(VECTOR_BYTES)));

/* c<row>_0 and c<row>_1 are the two vectors of sums in a row. */
#define DECLARE(i) vector c##i##_0 = {0}, c##i##_1 = {0};
#define LOAD(i)                                        \
    memcpy(&c##i##_0, c + i * r->ldc, sizeof(vector)); \
    memcpy(&c##i##_1, c + i * r->ldc + lanes, sizeof(vector));
#define STEP(i)            \
    c##i##_0 += a[i] * b0; \
    c##i##_1 += a[i] * b1;
#define STORE(i)                                       \
    memcpy(c + i * r->ldc, &c##i##_0, sizeof(vector)); \
    memcpy(c + i * r->ldc + lanes, &c##i##_1, sizeof(vector));

#define TILE(t, T)                                                       \
    static void tile_##t(const oi_tile_row *r)                           \
    {                                                                    \
        typedef vector_##t vector;                                       \
        enum { lanes = sizeof(vector) / sizeof(T) };                     \
        const T *a = r->a, *b = r->b;                                    \
        T *c = r->c;                                                     \
        ROWS(DECLARE)                                                    \
        if (!r->is_first) {                                              \
            ROWS(LOAD)                                                   \
        }                                                                \
        for (size_t k = 0; k < r->k; k++, a += N_ROWS, b += 2 * lanes) { \
            vector b0, b1;                                               \
            memcpy(&b0, b, sizeof b0);                                   \
            memcpy(&b1, b + lanes, sizeof b1);                           \
            ROWS(STEP)                                                   \
        }                                                                \
        ROWS(STORE)                                                      \
    }

TILE(f64, double)

#if defined(__FMA__)
enum { F32_ROWS = 6, F32_COLS = 2 * OI_VF };

static void tile_f32(const oi_tile_row *r)
{
    const float *a = r->a, *b = r->b;
    float *c = r->c;
    oi_vf s[2 * F32_ROWS];
    for (size_t i = 0; i < F32_ROWS; i++) {
        s[2 * i] = r->is_first ? oi_vf_set(0) : oi_vf_load(c + i * r->ldc);
        s[2 * i + 1] = r->is_first ? oi_vf_set(0) : oi_vf_load(c + i * r->ldc + OI_VF);
    }
    oi_gemm_more(a, 1, F32_ROWS, b, 0, (int64_t)r->k, s);
    for (size_t i = 0; i < F32_ROWS; i++) {
        oi_vf_store(c + i * r->ldc, s[2 * i]);
        oi_vf_store(c + i * r->ldc + OI_VF, s[2 * i + 1]);
    }
}
#else
enum { F32_ROWS = N_ROWS, F32_COLS = VECTOR_BYTES / 2 };
TILE(f32, float)
#endif

extern const oi_tile_fns OI_KERNEL(tile_f32), OI_KERNEL(tile_f64);
const oi_tile_fns OI_KERNEL(tile_f32) = {tile_f32, F32_ROWS, F32_COLS};
const oi_tile_fns OI_KERNEL(tile_f64) = {tile_f64, N_ROWS, VECTOR_BYTES / 4};

#else
extern const int OI_KERNEL(no_tiles);
const int OI_KERNEL(no_tiles) = 1; /* the generated tile is all there is */
#endif
