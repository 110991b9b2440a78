/* check.c: rules of the format that reader and writer share. */
#include "oinf/oinf.h"

bool oi_oinf_is_plain_name(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = name[i], lower = (char)(c | 0x20);
        if (!((lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
              c == '-'))
            return false;
    }
    return n > 0;
}

/* Zero dims are left out of the check, so that any partial product (a stride) fits as well. */
bool oi_oinf_count(const uint64_t *dims, uint32_t rank, uint64_t *out)
{
    uint64_t product = 1;
    bool is_empty = false;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] == 0)
            is_empty = true;
        else if (dims[i] > INT64_MAX / product)
            return false;
        else
            product *= dims[i];
    }
    *out = is_empty ? 0 : product;
    return true;
}

static const char *mode_problem(oi_quant_mode mode, uint64_t axis, uint64_t count, uint32_t rank,
                                const uint64_t *dims)
{
    if (mode == OI_PER_TENSOR && axis != 0)
        return "scale: per tensor, yet its axis is not 0";
    if (mode == OI_PER_TENSOR && count != 1)
        return "scale: per tensor, yet its count is not 1";
    if (mode == OI_PER_CHANNEL && axis >= rank)
        return "scale: per channel, yet its axis is not below the rank";
    if (mode == OI_PER_CHANNEL && count != dims[axis])
        return "scale: per channel, yet its count is not the dim of its axis";
    return NULL;
}

static const char *zero_point_problem(const oi_quant *q)
{
    if (q->zero_point_mode == OI_QUANT_NONE)
        return q->zero_point_axis || q->n_zero_points
                   ? "zero point: there is none, yet its axis or count is not 0"
                   : NULL;
    if (q->scheme == OI_SYMMETRIC)
        return "zero point: the symmetric scheme has none";
    if (q->zero_point_mode != q->scale_mode)
        return "zero point: its mode is not the scale's";
    if (q->zero_point_axis != q->scale_axis || q->n_zero_points != q->n_scales)
        return "zero point: its axis and count are not the scale's";
    return NULL;
}

const char *oi_oinf_quant_problem(const oi_quant *q, uint32_t rank, const uint64_t *dims)
{
    if (q->scheme != OI_SYMMETRIC && q->scheme != OI_ASYMMETRIC)
        return "scheme: not 1 (symmetric) or 2 (asymmetric)";
    if (q->scale_mode != OI_PER_TENSOR && q->scale_mode != OI_PER_CHANNEL)
        return "scale: its mode is not 1 (per tensor) or 2 (per channel)";
    if ((uint32_t)q->zero_point_mode > OI_PER_CHANNEL)
        return "zero point: its mode is not 0, 1 or 2";
    const char *problem = mode_problem(q->scale_mode, q->scale_axis, q->n_scales, rank, dims);
    return problem ? problem : zero_point_problem(q);
}

uint64_t oi_oinf_bad_value(oi_dtype t, const uint8_t *p, uint64_t n_elements)
{
    if (t == OI_BOOL) {
        for (uint64_t i = 0; i < n_elements; i++)
            if (p[i] > 1)
                return i;
    } else if (t == OI_T2) {
        for (uint64_t i = 0; i < n_elements; i++)
            if (oi_element_bits(OI_T2, p, i) == 2)
                return i;
    }
    return n_elements;
}
