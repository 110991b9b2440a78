/* slice.c: from where to where a slice runs: shapes and loops must agree on it. */
#include "base/base.h"

static int64_t clamped(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* Negative counts from the end; what lies beyond becomes the nearest place a step can leave from.
 */
static int64_t place(int64_t dim, int64_t v, int64_t step)
{
    v = v < 0 && v >= -dim ? v + dim : v < -dim ? -1 : v;
    return step > 0 ? clamped(v, 0, dim) : clamped(v, -1, dim - 1);
}

int64_t oi_slice_start(int64_t dim, int64_t start, int64_t step)
{
    int64_t at = place(dim, start, step);
    return at < 0 ? 0 : at;
}

int64_t oi_slice_length(int64_t dim, int64_t start, int64_t end, int64_t step)
{
    int64_t from = oi_slice_start(dim, start, step), to = place(dim, end, step);
    if (dim == 0 || (step > 0 ? from >= to : from <= to))
        return 0;
    uint64_t reach = (uint64_t)(step > 0 ? to - from : from - to);
    uint64_t stride = step > 0 ? (uint64_t)step : -(uint64_t)step;
    return 1 + (int64_t)((reach - 1) / stride);
}

int64_t oi_split_length(int64_t dim, size_t n_parts, size_t part)
{
    int64_t n = (int64_t)n_parts, each = dim / n + (dim % n != 0);
    int64_t before = clamped(each * (int64_t)part, 0, dim);
    return dim - before < each ? dim - before : each;
}
