/* kernels.h: declares the generated kernels for the kind of instructions OI_ISA. */
#ifndef OI_KERNELS_H
#define OI_KERNELS_H

#include "kernel/rows.h"

#define OI_MAP_ROW(op, in0, in1, in2, out, w0, v0, w1, v1, name) \
    void OI_KERNEL(name)(const oi_map_row *r);
#define OI_REDUCE_ROW(op, in0, in1, in2, out, w0, v0, w1, v1, name) \
    extern const oi_reduce_fns OI_KERNEL(name);
#define OI_TILE_ROW(op, in0, in1, in2, out, w0, v0, w1, v1, name) \
    extern const oi_tile_fns OI_KERNEL(name);
#define OI_CONTRACT_ROW(op, in0, in1, in2, out, w0, v0, w1, v1, name) \
    extern const oi_contract_fns OI_KERNEL(name);
#include "kernel/kernels.inc"
#undef OI_MAP_ROW
#undef OI_REDUCE_ROW
#undef OI_TILE_ROW
#undef OI_CONTRACT_ROW

#endif
