"""Windows that slide: convolution and pooling, element of the window by element."""

import itertools

import numpy as np

from reference_ops import REFERENCE, accumulate, given_out, numbers, op, result
from tensors import Tensor


def per_axis(attrs, name, n, otherwise):
    v = attrs.get(name, otherwise)
    return [v] * n if isinstance(v, int) else list(v)


def padding(attrs, spatial, kernel, n):
    """Begin and end of every spatial axis."""
    strides, dilations = per_axis(attrs, "strides", n, 1), per_axis(attrs, "dilations", n, 1)
    pads = per_axis(attrs, "pads", 2 * n, 0)
    auto = attrs.get("auto_pad", "NOTSET")
    if auto == "VALID":
        return [0] * n, [0] * n
    if auto == "NOTSET":
        return pads[:n], pads[n:]
    total = [max(0, (-(-length // s) - 1) * s + d * (k - 1) + 1 - length)
             for length, s, d, k in zip(spatial, strides, dilations, kernel)]
    small = [t // 2 for t in total]
    large = [t - s for t, s in zip(total, small)]
    return (small, large) if auto == "SAME_UPPER" else (large, small)


def places(attrs, spatial, kernel):
    """How often the window fits along every axis."""
    n = len(spatial)
    strides, dilations = per_axis(attrs, "strides", n, 1), per_axis(attrs, "dilations", n, 1)
    if attrs.get("auto_pad", "NOTSET").startswith("SAME"):
        return tuple(-(-length // s) for length, s in zip(spatial, strides))
    before, after = padding(attrs, spatial, kernel, n)
    out = []
    for length, s, d, k, b, a in zip(spatial, strides, dilations, kernel, before, after):
        room = length + a + b - (d * (k - 1) + 1)
        count = (-(-room // s) if attrs.get("ceil_mode") else room // s) + 1
        if attrs.get("ceil_mode") and (count - 1) * s >= length + b:
            count -= 1
        out.append(count)
    return tuple(out)


def elements(x, attrs, kernel, out):
    """For every element of the window in order: x there ([N, C, places]), whether that is inside, and whether it
    is at least padding."""
    spatial, n = x.shape[2:], len(kernel)
    strides, dilations = per_axis(attrs, "strides", n, 1), per_axis(attrs, "dilations", n, 1)
    before, after = padding(attrs, spatial, kernel, n)
    for k in itertools.product(*map(range, kernel)):
        at = [np.arange(o) * s + i * d - b for o, s, i, d, b in zip(out, strides, k, dilations, before)]
        inside = np.ones((), bool)
        padded = np.ones((), bool)
        for a, length, e in zip(at, spatial, after):
            inside = inside[..., None] & (a >= 0) & (a < length)
            padded = padded[..., None] & (a < length + e)
        picked = x
        for axis, (a, length) in enumerate(zip(at, spatial)):
            picked = picked.take(np.clip(a, 0, max(0, length - 1)), axis=2 + axis) if length else np.zeros(
                (*picked.shape[:2 + axis], len(a), *picked.shape[3 + axis:]), x.dtype)
        yield k, at, picked, inside, padded


@op("conv")
def _(inputs, attrs, out_dtype, out_shape):
    (x, w), acc = accumulate(inputs[:2], attrs)
    group = attrs.get("group", 1)
    y = np.zeros(out_shape, x.dtype)
    filters, channels = w.shape[0] // group, w.shape[1]
    for g in range(group):
        part = slice(g * filters, (g + 1) * filters)
        for c in range(channels):
            for k, _, v, inside, _ in elements(x[:, g * channels + c][:, None], attrs, w.shape[2:], out_shape[2:]):
                p = v * w[(part, c, *k)].reshape(1, filters, *[1] * len(k))
                y[:, part] = np.where(inside, y[:, part] + p, y[:, part])
    if len(inputs) > 2:
        (b,), _ = accumulate(inputs[2:], {"acc": acc})
        y = y + b.astype(y.dtype).reshape(1, -1, *[1] * (y.ndim - 2))
    return given_out(acc, y, out_dtype)


@op("conv_transpose")
def _(inputs, attrs, out_dtype, out_shape):
    """Every element of x adds w to the result."""
    x, w = (numbers(t) for t in inputs[:2])
    n, group = x.ndim - 2, attrs.get("group", 1)
    strides, dilations = per_axis(attrs, "strides", n, 1), per_axis(attrs, "dilations", n, 1)
    spread = [s * (length - 1) + op + d * (k - 1) + 1 for s, length, op, d, k in zip(
        strides, x.shape[2:], per_axis(attrs, "output_padding", n, 0), dilations, w.shape[2:])]
    auto = attrs.get("auto_pad", "NOTSET")
    before = per_axis(attrs, "pads", 2 * n, 0)[:n]
    if auto != "NOTSET" or "output_shape" in attrs:
        total = [max(0, s - o) for s, o in zip(spread, out_shape[2:])]
        before = [t // 2 if auto == "SAME_UPPER" else t - t // 2 for t in total]
    if auto == "VALID":
        before = [0] * n
    whole = [max(s, b + o) for s, b, o in zip(spread, before, out_shape[2:])]
    y = np.zeros((*out_shape[:2], *whole), x.dtype)
    filters, channels = w.shape[1], x.shape[1] // group
    for g, c in itertools.product(range(group), range(channels)):
        for k in itertools.product(*map(range, w.shape[2:])):
            index = tuple(slice(i * d, i * d + s * length, s) for i, d, s, length in zip(k, dilations, strides, x.shape[2:]))
            add = x[:, g * channels + c][:, None] * w[(g * channels + c, slice(None), *k)].reshape(1, -1, *[1] * n)
            y[(slice(None), slice(g * filters, (g + 1) * filters), *index)] += add
    y = y[(slice(None), slice(None), *[slice(b, b + o) for b, o in zip(before, out_shape[2:])])]
    if len(inputs) > 2:
        y = y + numbers(inputs[2]).astype(x.dtype).reshape(1, -1, *[1] * n)
    return result(out_dtype, y)


@op("max_pool")
def _(inputs, attrs, out_dtype, out_shape):
    x = inputs[0].values
    is_float = x.dtype.kind not in "iu"
    if is_float and x.dtype != np.float64:
        x = x.astype(np.float32)
    several = isinstance(out_dtype, list)
    shape = out_shape[0] if several else out_shape
    best = np.full(shape, -np.inf if is_float else np.iinfo(x.dtype).min, x.dtype)
    where, begun = np.zeros(shape, np.int64), np.zeros(shape, bool)
    rows = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * (x.ndim - 2))
    for _, at, v, inside, _ in elements(x, attrs, per_axis(attrs, "kernel", x.ndim - 2, 1), shape[2:]):
        flat = rows
        for axis, (a, length) in enumerate(zip(at, x.shape[2:])):
            flat = flat * length + a.reshape([-1 if i == axis else 1 for i in range(len(at))])
        better = inside & (~begun | (v > best) | (np.isnan(v) & ~np.isnan(best) if is_float else False))
        if is_float:  # of two zeros the positive one, at the place of the first
            best = np.where(inside & begun & (v == best) & ~np.signbit(v), v, best)
        best, where, begun = np.where(better, v, best), np.where(better, flat, where), begun | inside
    best = Tensor(inputs[0].dtype, best.astype(inputs[0].values.dtype))
    return [best, Tensor("i64", where)] if several else best


def mean_of_windows(x, attrs, kernel, shape):
    total, count = np.zeros(shape, x.dtype), np.zeros(shape, np.int64)
    for _, at, v, inside, padded in elements(x, attrs, kernel, shape[2:]):
        total = np.where(inside, total + v, total)
        count += padded if attrs.get("count_include_pad") else inside
    return total / count.astype(x.dtype)


@op("avg_pool")
def _(inputs, attrs, out_dtype, out_shape):
    x = numbers(inputs[0])
    return result(out_dtype, mean_of_windows(x, attrs, per_axis(attrs, "kernel", x.ndim - 2, 1), out_shape))


@op("global_avg_pool")
def _(inputs, attrs, out_dtype, out_shape):
    x = numbers(inputs[0])
    return result(out_dtype, mean_of_windows(x, {}, x.shape[2:], out_shape))


@op("global_max_pool")
def _(inputs, attrs, out_dtype, out_shape):
    return REFERENCE["max_axis"](inputs, {"axes": list(range(2, inputs[0].values.ndim))}, out_dtype, out_shape)


@op("col2im")
def _(inputs, attrs, out_dtype, out_shape):
    """Every column adds itself to the image, window by window."""
    x, spatial = numbers(inputs[0]), out_shape[2:]
    n = len(spatial)
    kernel, strides, dilations = (per_axis(attrs, name, n, 1) for name in ("kernel", "strides", "dilations"))
    before, after = padding(attrs, spatial, kernel, n)
    fits = places(attrs, spatial, kernel)
    image = np.zeros((*out_shape[:2], *[b + s + a for b, s, a in zip(before, spatial, after)]), x.dtype)
    columns = x.reshape(*out_shape[:2], *kernel, *fits)
    for k in itertools.product(*map(range, kernel)):
        index = tuple(slice(i * d, i * d + s * (o - 1) + 1, s) for i, d, s, o in zip(k, dilations, strides, fits))
        image[(slice(None), slice(None), *index)] += columns[(slice(None), slice(None), *k)]
    return given_out(inputs[0].dtype, image[(slice(None), slice(None), *[slice(b, b + s) for b, s in zip(before, spatial)])], out_dtype)


@op("im2col")
def _(inputs, attrs, out_dtype, out_shape):
    x = inputs[0].values
    kernel = per_axis(attrs, "kernel", x.ndim - 2, 1)
    out = places(attrs, x.shape[2:], kernel)
    columns = [np.where(inside, v, np.zeros((), x.dtype)) for _, _, v, inside, _ in elements(x, attrs, kernel, out)]
    return Tensor(out_dtype, np.stack(columns, axis=2).reshape(out_shape).astype(x.dtype))
