/* custom.h: what kernels of class custom know about a call, for those who do it otherwise. */
#ifndef OI_CUSTOM_H
#define OI_CUSTOM_H

#include "kernel/kernel.h"
#include "kernel/taps.h"

/* resize.c: place o of axis d of the result, and whether the axis stays as it is. */
oi_taps oi_resize_taps(const oi_kernel_query *q, uint32_t d, int64_t o);
bool oi_resize_keeps(const oi_kernel_query *q, uint32_t d);
oi_sampling oi_grid_sampling(const oi_kernel_query *q); /* grid_sample.c */

#endif
