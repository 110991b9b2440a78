"""Quantised tensors: what their ops mean, in numpy."""

import numpy as np

from reference_ops import ROUNDED, given_out, numbers, op, result
from reference_window import elements, per_axis
from tensors import DTYPES, Tensor

# powers: a few units in the last place
ROUNDED["einsum"] = None
ROUNDED["lp_pool"] = {"f32": 16, "f64": 16, "f16": 1, "bf16": 1, "f8": 1}


def in_blocks(w, rows):
    """Scales or offsets, one per element of w [N, K]."""
    return np.repeat(rows, w.shape[1] // max(1, rows.shape[1]), axis=1)


def quantise_rows(x, blocks):
    """Integers (f64, exact), and one factor per block: x [M, K]."""
    v = x.reshape(x.shape[0], blocks, x.shape[1] // max(1, blocks))
    top = np.abs(v).max(axis=2) if v.size else np.zeros(v.shape[:2], x.dtype)
    d = (top / x.dtype.type(127)).astype(x.dtype)
    bad = ~np.isfinite(top)
    safe = np.where((d > 0) & ~bad, d, x.dtype.type(1))[:, :, None]
    ratio = np.where((d > 0)[:, :, None] & ~bad[:, :, None], v, 0).astype(x.dtype) / safe
    whole = np.trunc(ratio)
    q = np.clip(whole + np.copysign(np.abs(ratio - whole) >= 0.5, ratio), -127, 127)
    return q.astype(np.int64), np.where(bad, x.dtype.type(np.nan), d)


def near_bf16(x):
    """The nearest bf16, once from whatever x is."""
    top = np.frexp(x.astype(np.float64))[1] - 8  # of eight bits, the last is worth 2^top
    unit = np.ldexp(1.0, np.maximum(top, -133))
    return np.round(x.astype(np.float64) / unit) * unit


@op("qlinear")
def _(inputs, attrs, out_dtype, out_shape):
    rest, wide = list(inputs[2:]), np.float64 if out_dtype == "f64" else np.float32
    bias = rest.pop().values.astype(wide) if rest and rest[-1].values.ndim == 1 else wide(0)
    w = inputs[1].values.astype(np.int64)
    scale = rest[0].values.astype(wide)
    offset, zero = np.zeros_like(scale), np.zeros(scale.shape, np.int64)
    if len(rest) > 1 and DTYPES[rest[1].dtype].kind == "F":
        offset = rest[1].values.astype(wide)
    elif len(rest) > 1:
        zero = rest[1].values.astype(np.int64)
    x = inputs[0].values.astype(wide).reshape(int(np.prod(out_shape[:-1], dtype=np.int64)), w.shape[1])
    w = w - in_blocks(w, zero) if w.shape[1] else w
    if attrs.get("act") == "q8":
        blocks = scale.shape[1]
        q, d = quantise_rows(x, blocks)
        products = np.einsum("mbg,nbg->mnb", q, w.reshape(w.shape[0], blocks, w.shape[1] // max(1, blocks)))
        terms = d[:, None].astype(np.float64) * (scale[None].astype(np.float64) * products + offset[None].astype(np.float64) * q.sum(axis=2)[:, None])
        y = terms.sum(axis=2)
    else:
        real = (in_blocks(w, scale) * w.astype(wide) + in_blocks(w, offset)).astype(np.float64) if w.shape[1] else w
        if attrs.get("act") == "bf16":
            x, real = near_bf16(x), near_bf16(real)
        if attrs.get("act") == "f16":
            with np.errstate(over="ignore"):
                x, real = (v.astype(np.float16).astype(np.float64) for v in (x, real))
        y = x.astype(np.float64) @ real.T
    return result(out_dtype, (y.astype(wide) + bias).reshape(out_shape))


# -- products


@op("gemm")
def _(inputs, attrs, out_dtype, out_shape):
    a, b = (numbers(t) for t in inputs[:2])
    a, b = a.T if attrs.get("trans_a") else a, b.T if attrs.get("trans_b") else b
    y = np.zeros(out_shape, a.dtype)
    for k in range(a.shape[1]):
        y = y + a[:, k : k + 1] * b[k : k + 1]
    if attrs.get("alpha", 1) != 1:
        y = y * np.asarray(attrs["alpha"]).astype(y.dtype)
    if len(inputs) > 2:
        y = y + numbers(inputs[2]) * np.asarray(attrs.get("beta", 1)).astype(y.dtype)
    return given_out(inputs[0].dtype, y, out_dtype)


@op("einsum")
def _(inputs, attrs, out_dtype, out_shape):
    values = [numbers(t) for t in inputs]
    wide = [v.astype(np.float64) if v.dtype == np.float32 else v for v in values]
    y = np.einsum(attrs["equation"], *wide)
    return given_out(inputs[0].dtype, y.astype(values[0].dtype), out_dtype)


@op("lp_pool")
def _(inputs, attrs, out_dtype, out_shape):
    x, p = numbers(inputs[0]), attrs.get("p", 2)
    total = np.zeros(out_shape, np.float64)
    for _, _, v, inside, _ in elements(x, attrs, per_axis(attrs, "kernel", x.ndim - 2, 1), out_shape[2:]):
        total = np.where(inside, total + np.abs(v.astype(np.float64)) ** p, total)
    y = total ** (1 / p)
    return result(out_dtype, y if out_dtype == "f64" else y.astype(np.float32))


# -- to integers and back


def laid_along(v, x, attrs):
    """A scale or zero point as an array that broadcasts with x."""
    if attrs.get("block_size", 0):
        axis = attrs.get("axis", 1) % x.ndim
        return np.repeat(v, attrs["block_size"], axis=axis).take(np.arange(x.shape[axis]), axis=axis)
    if v.size == 1:
        return v.reshape(())
    if v.ndim == x.ndim:
        return v
    shape = [1] * x.ndim
    shape[attrs.get("axis", 1) % x.ndim] = -1
    return v.reshape(shape)


def saturated(dtype, v):
    d = DTYPES[dtype]
    return Tensor(dtype, np.clip(np.where(np.isnan(v), 0, v), d.lowest, d.highest).astype(d.array))


@op("quantize")
def _(inputs, attrs, out_dtype, out_shape):
    x = numbers(inputs[0])
    y = np.rint(x / laid_along(numbers(inputs[1]), x, attrs))
    if len(inputs) > 2:
        y = y + laid_along(inputs[2].values.astype(np.float32), x, attrs)
    return saturated(out_dtype, y)


@op("dequantize")
def _(inputs, attrs, out_dtype, out_shape):
    q = inputs[0].values.astype(np.int64)
    if len(inputs) > 2:
        q = (q - laid_along(inputs[2].values.astype(np.int64), q, attrs)).astype(np.int32)
    return result(out_dtype, q.astype(np.float32) * laid_along(numbers(inputs[1]), q, attrs))


@op("dynamic_quantize")
def _(inputs, attrs, out_dtype, out_shape):
    x = inputs[0].values.astype(np.float32)
    top, bottom = np.float32(max(0, x.max(initial=0))), np.float32(min(0, x.min(initial=0)))
    scale = np.float32((top - bottom) / np.float32(255))
    zp = np.rint(-bottom / scale) if scale else np.float32(0)
    ratio = np.rint(x / scale) if scale else np.zeros_like(x)
    return [saturated("u8", ratio + zp), Tensor("f32", np.asarray(scale)), saturated("u8", np.asarray(zp))]


@op("fake_quantize")
def _(inputs, attrs, out_dtype, out_shape):
    x = numbers(inputs[0])
    bits, zp, scale = attrs.get("bits", 8), attrs.get("zp", 0), np.asarray(attrs["scale"]).astype(x.dtype)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if attrs.get("signed", True) else (0, 2**bits - 1)
    return result(out_dtype, (np.clip(np.rint(x / scale) + zp, low, high) - x.dtype.type(zp)) * scale)


# -- integer products


def less_zero(t, zp, shape):
    return t.values.astype(np.int64) - (zp.values.astype(np.int64).reshape(shape) if zp is not None else 0)


def at(inputs, i):
    return inputs[i] if len(inputs) > i else None


@op("matmul_integer")
def _(inputs, attrs, out_dtype, out_shape):
    a, b = less_zero(inputs[0], at(inputs, 2), (-1, 1)), less_zero(inputs[1], at(inputs, 3), (-1,))
    return Tensor("i32", np.matmul(a, b).astype(np.int32))


def convolve(x, w, attrs, shape):
    y, group = np.zeros(shape, np.int64), attrs.get("group", 1)
    filters, channels = w.shape[0] // group, w.shape[1]
    for g in range(group):
        for c in range(channels):
            for k, _, v, inside, _ in elements(x[:, g * channels + c][:, None], attrs, w.shape[2:], shape[2:]):
                part = slice(g * filters, (g + 1) * filters)
                y[:, part] += np.where(inside, v * w[(part, c, *k)].reshape(1, filters, *[1] * len(k)), 0)
    return y


@op("conv_integer")
def _(inputs, attrs, out_dtype, out_shape):
    ones = [1] * (inputs[0].values.ndim - 1)
    x, w = less_zero(inputs[0], at(inputs, 2), (1, *ones)), less_zero(inputs[1], at(inputs, 3), (-1, *ones))
    return Tensor("i32", convolve(x, w, attrs, out_shape).astype(np.int32))


def requantised(sums, factor, y_zp, out_dtype):
    return saturated(out_dtype, np.rint(sums.astype(np.int32).astype(np.float32) * factor) + y_zp.values.astype(np.float32))


@op("qmatmul")
def _(inputs, attrs, out_dtype, out_shape):
    a, a_scale, a_zp, b, b_scale, b_zp, y_scale, y_zp = inputs
    sums = np.matmul(less_zero(a, a_zp, (-1, 1)), less_zero(b, b_zp, (-1,)))
    factor = a_scale.values.reshape(-1, 1) * b_scale.values.reshape(1, -1) / y_scale.values
    return requantised(sums, factor, y_zp, out_dtype)


@op("qconv")
def _(inputs, attrs, out_dtype, out_shape):
    x, x_scale, x_zp, w, w_scale, w_zp, y_scale, y_zp = inputs[:8]
    ones = [1] * (x.values.ndim - 1)
    sums = convolve(less_zero(x, x_zp, (1, *ones)), less_zero(w, w_zp, (-1, *ones)), attrs, out_shape)
    if len(inputs) > 8:
        sums = sums + inputs[8].values.reshape(1, -1, *ones[1:])
    factor = x_scale.values.reshape(()) * w_scale.values.reshape(1, -1, *ones[1:]) / y_scale.values.reshape(())
    return requantised(sums, factor, y_zp, out_dtype)
