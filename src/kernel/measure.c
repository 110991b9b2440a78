/* measure.c: lengths that only the data says, asked before there is an output to write. */
#include "kernel/lines.h"

#include <inttypes.h>

bool oi_kernel_is_measured(const oi_op *op, size_t *scratch_bytes, const oi_kernel_query *q)
{
    *scratch_bytes = op->id == OI_OP_UNIQUE    ? oi_unique_scratch(q)
                     : op->id == OI_OP_NONZERO ? oi_nonzero_scratch(q)
                                               : 0;
    return op->id == OI_OP_UNIQUE || op->id == OI_OP_NONZERO;
}

bool oi_kernel_measure(const oi_kernel_query *q, const oi_kernel_io *io, int64_t *length)
{
    return q->op->id == OI_OP_UNIQUE ? oi_unique_measure(q, io, length)
                                     : oi_nonzero_measure(q, io, length);
}

bool oi_kernel_measured(int64_t found, int64_t declared, oi_kernel_fault *fault)
{
    if (found == declared)
        return true;
    *fault = (oi_kernel_fault){.code = "E051"};
    snprintf(fault->message, sizeof fault->message,
             "found %" PRId64 " elements, the output is declared for %" PRId64, found, declared);
    return false;
}
