/* cell.h: one step of recurrent cells, in one pass.
 *
 * Weights are in panels of 2 OI_VF positions of the state: those of W and then those of R for one
 * gate, then the next gate's. All gates of some positions are summed, and the new state follows at
 * once; no barrier is needed between positions. */
#ifndef OI_RECIPE_CELL_H
#define OI_RECIPE_CELL_H

#include "body/gemm.h"

/* made[i] = x . W + b, kept[i] = h . R + b of one gate at 2 OI_VF positions, of which `some` have a
 * bias: that of W (bw) and that of R (br), NULL: none. */
static inline __attribute__((always_inline)) void oi_cell_gate(
    const float *restrict x, const float *restrict h, const float *restrict panel, int64_t inputs,
    int64_t hidden, const float *restrict bw, const float *restrict br, int64_t some,
    float *restrict made, float *restrict kept)
{
    oi_vf s[2];
    oi_gemm_one(x, 1, panel, inputs, s);
    oi_vf_store(made, s[0]);
    oi_vf_store(made + OI_VF, s[1]);
    oi_gemm_one(h, 1, panel + 2 * OI_VF * inputs, hidden, s);
    oi_vf_store(kept, s[0]);
    oi_vf_store(kept + OI_VF, s[1]);
    for (int64_t i = 0; bw && i < some; i++) {
        made[i] = made[i] + bw[i];
        kept[i] = kept[i] + br[i];
    }
}

/* h_next and c_next, positions first ... last - 1 of (rows, hidden). Gate 0 is i; f, g and o are
 * the numbers of the others. */
static inline __attribute__((always_inline)) void oi_cell_lstm(
    const float *restrict x, const float *restrict h, const float *restrict c,
    const float *restrict packed, const float *restrict b, float *restrict h_next,
    float *restrict c_next, int64_t rows, int64_t inputs, int64_t hidden, int64_t has_bias,
    int64_t f, int64_t g, int64_t o, int64_t first, int64_t last)
{
    const int64_t panel = 2 * OI_VF * (inputs + hidden);
    for (int64_t j = first; j < last; j += 2 * OI_VF)
        for (int64_t r = 0; r < rows; r++) {
            const int64_t some = last - j < 2 * OI_VF ? last - j : 2 * OI_VF;
            float made[8 * OI_VF], kept[8 * OI_VF], state[2 * OI_VF], out[2 * OI_VF];
            for (int64_t k = 0; k < 4; k++)
                oi_cell_gate(x + r * inputs, h + r * hidden,
                             packed + (j / (2 * OI_VF) * 4 + k) * panel, inputs, hidden,
                             has_bias ? b + k * hidden + j : NULL,
                             has_bias ? b + (4 + k) * hidden + j : NULL, some, made + 2 * OI_VF * k,
                             kept + 2 * OI_VF * k);
            for (int64_t i = 0; i < 2 * OI_VF; i++)
                state[i] = i < some ? c[r * hidden + j + i] : 0;
            for (int64_t i = 0; i < 8 * OI_VF; i++)
                made[i] = made[i] + kept[i];
            for (int64_t i = 0; i < 2 * OI_VF; i++) {
                state[i] = oi_sigmoid_f32(made[2 * OI_VF * f + i]) * state[i] +
                           oi_sigmoid_f32(made[i]) * oi_tanh_f32(made[2 * OI_VF * g + i]);
                out[i] = oi_sigmoid_f32(made[2 * OI_VF * o + i]) * oi_tanh_f32(state[i]);
            }
            for (int64_t i = 0; i < some; i++) {
                c_next[r * hidden + j + i] = state[i];
                h_next[r * hidden + j + i] = out[i];
            }
        }
}

/* The same for a gated recurrent unit whose reset gate acts on R h: z and r are the numbers of its
 * gates, the last is n. */
static inline __attribute__((always_inline)) void oi_cell_gru(
    const float *restrict x, const float *restrict h, const float *restrict packed,
    const float *restrict b, float *restrict next, int64_t rows, int64_t inputs, int64_t hidden,
    int64_t has_bias, int64_t z, int64_t r, int64_t first, int64_t last)
{
    const int64_t panel = 2 * OI_VF * (inputs + hidden);
    for (int64_t j = first; j < last; j += 2 * OI_VF)
        for (int64_t row = 0; row < rows; row++) {
            const int64_t some = last - j < 2 * OI_VF ? last - j : 2 * OI_VF;
            float made[6 * OI_VF], kept[6 * OI_VF], state[2 * OI_VF], out[2 * OI_VF];
            for (int64_t k = 0; k < 3; k++)
                oi_cell_gate(x + row * inputs, h + row * hidden,
                             packed + (j / (2 * OI_VF) * 3 + k) * panel, inputs, hidden,
                             has_bias ? b + k * hidden + j : NULL,
                             has_bias ? b + (3 + k) * hidden + j : NULL, some, made + 2 * OI_VF * k,
                             kept + 2 * OI_VF * k);
            for (int64_t i = 0; i < 2 * OI_VF; i++)
                state[i] = i < some ? h[row * hidden + j + i] : 0;
            for (int64_t i = 0; i < 2 * OI_VF; i++) {
                const int64_t iz = 2 * OI_VF * z + i, ir = 2 * OI_VF * r + i;
                const float reset = oi_sigmoid_f32(made[ir] + kept[ir]);
                const float n = oi_tanh_f32(made[4 * OI_VF + i] + reset * kept[4 * OI_VF + i]);
                out[i] = n + oi_sigmoid_f32(made[iz] + kept[iz]) * (state[i] - n);
            }
            for (int64_t i = 0; i < some; i++)
                next[row * hidden + j + i] = out[i];
        }
}

#endif
