/* custom.c: the ops whose row names a file of custom/. */
#include "kernel/custom.h"

#define DECLARE(op, name) extern const oi_custom oi_custom_##name;
OI_OP_KERNELS(DECLARE)

#define ROW(op, name) [op] = &oi_custom_##name,
static const oi_custom *const customs[OI_OP_COUNT] = {OI_OP_KERNELS(ROW)};

const oi_custom *oi_custom_of(const oi_op *op)
{
    return customs[op->id];
}
