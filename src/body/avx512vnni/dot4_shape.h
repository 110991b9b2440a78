/* dot4_shape.h: the memory layout of convolutions with dot products of 4 bytes. */
#ifndef OI_RECIPE_DOT4_SHAPE_H
#define OI_RECIPE_DOT4_SHAPE_H

#include <stdint.h>

/* The problem; its members are literals after inlining. The 4-byte groups of a group: blocks * deep
 * planes, `plane` apart. Those of a row of x: phases * pitch; step_y from one row of a window to
 * the next. */
typedef struct oi_dot4_shape {
    int64_t groups, c, height, width, kept; /* c: channels of a group */
    int64_t m, out_width;                   /* filters of a group */
    int64_t kh, kw, stride_y, stride_x, dilation_x, tall, top, left;
    int64_t blocks, deep, plane, phases, pitch, step_y;
    int64_t line; /* scratch for the sums of a filter */
    int64_t is_flat, in_turns, is_unsigned;
    uint32_t zero; /* of x */
} oi_dot4_shape;

/* The offsets of a window's 4-byte groups from its first one: `deep` planes at a time, tap by tap.
 */
static inline __attribute__((always_inline)) void oi_dot4_taps(int32_t *at, oi_dot4_shape s)
{
    for (int64_t block = 0; block < s.blocks; block++)
        for (int64_t y = 0; y < s.kh; y++)
            for (int64_t x = 0; x < s.kw; x++)
                for (int64_t k = 0; k < s.deep; k++)
                    *at++ = (int32_t)((block * s.deep + k) * s.plane + y * s.step_y +
                                      x * s.dilation_x % s.stride_x * s.pitch +
                                      x * s.dilation_x / s.stride_x);
}

#endif
