/* measure.c: lengths that only the data says, asked before there is an output to write. */
#include "kernel/custom.h"

#include <inttypes.h>

static const struct oi_measured *measured_of(const oi_op *op)
{
    const oi_custom *custom = oi_custom_of(op);
    return custom ? custom->measured : NULL;
}

bool oi_kernel_is_measured(const oi_op *op, size_t *scratch_bytes, const oi_kernel_query *q)
{
    const struct oi_measured *m = measured_of(op);
    *scratch_bytes = m ? m->scratch_bytes(q) : 0;
    return m != NULL;
}

bool oi_kernel_measure(const oi_kernel_query *q, const oi_kernel_io *io, int64_t *length)
{
    return measured_of(q->op)->measure(q, io, length);
}

bool oi_kernel_limits(const oi_op *op, const oi_operand *x, int64_t *dims)
{
    const struct oi_measured *m = measured_of(op);
    if (m)
        m->limit(x, dims);
    return m != NULL;
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
