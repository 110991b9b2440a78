/* epilogue.h: what a kernel does with the results of a product of floats. */
#ifndef OI_RECIPE_EPILOGUE_H
#define OI_RECIPE_EPILOGUE_H

#include <stddef.h>
#include <stdint.h>

/* Takes the result at three positions, of which the last is k + p; ports: what it reads and writes.
 */
typedef void oi_epilogue(void *const *ports, int64_t i, int64_t j, int64_t k, int64_t p, float sum);

/* Applies the epilogue to rows and columns of results (m, n) that a body has stored and that are
 * still in cache, long rows rather than many, as memory is read best. NULL: there is none. It
 * overwrites them by a pointer that does not come from `sums`, so the compiler must not move the
 * body's stores behind it. */
static inline __attribute__((always_inline)) void oi_epilogue_block(
    oi_epilogue *finish, void *const *ports, const float *sums, int64_t n, int64_t row,
    int64_t row_end, int64_t column, int64_t column_end)
{
    if (!finish)
        return;
    __asm__ volatile("" : : : "memory");
    for (int64_t r = row; r < row_end; r++)
        for (int64_t c = column; c < column_end; c++)
            finish(ports, r, c, 0, 0, sums[r * n + c]);
}

#endif
