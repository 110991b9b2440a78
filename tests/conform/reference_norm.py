"""Softmax, norms and rotary embedding, in f64 by their formulas; ONNX's own evaluator judges the cases of
tests/conform/test_onnx.py."""

import numpy as np

from reference_ops import REFERENCE, result
from reference_math import register, wide


@register("softmax")
def _(inputs, attrs, out_dtype, out_shape):
    x, axis = wide(inputs[0]), attrs.get("axis", -1)
    e = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return result(out_dtype, e / np.sum(e, axis=axis, keepdims=True))


@register("log_softmax")
def _(inputs, attrs, out_dtype, out_shape):
    x, axis = wide(inputs[0]), attrs.get("axis", -1)
    d = x - np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return result(out_dtype, d - np.log(np.sum(np.exp(d), axis=axis, keepdims=True)))


def last_axes(x, attrs):
    return tuple(range(attrs.get("axis", -1) % x.ndim, x.ndim))


@register("layernorm")
def _(inputs, attrs, out_dtype, out_shape):
    x, *rest = [wide(t) for t in inputs]
    axes = last_axes(x, attrs)
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + attrs.get("eps", 1e-5))
    y = y * rest[0]
    return result(out_dtype, y + rest[1] if len(rest) > 1 else y)


@register("rmsnorm")
def _(inputs, attrs, out_dtype, out_shape):
    x, scale = [wide(t) for t in inputs]
    ms = (x * x).mean(last_axes(x, attrs), keepdims=True)
    return result(out_dtype, x / np.sqrt(ms + attrs.get("eps", 1e-5)) * scale)


def per_channel(v, x):
    return v.reshape((-1,) + (1,) * (x.ndim - 2))


def normalised(x, axes, eps):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


@register("groupnorm")
def _(inputs, attrs, out_dtype, out_shape):
    x, scale, bias = [wide(t) for t in inputs]
    g = attrs["groups"]
    y = x.reshape((x.shape[0], g, x.shape[1] // g) + x.shape[2:])
    y = normalised(y, tuple(range(2, y.ndim)), attrs.get("eps", 1e-5)).reshape(x.shape)
    return result(out_dtype, y * per_channel(scale, x) + per_channel(bias, x))


@register("instancenorm")
def _(inputs, attrs, out_dtype, out_shape):
    x, scale, bias = [wide(t) for t in inputs]
    y = normalised(x, tuple(range(2, x.ndim)), attrs.get("eps", 1e-5))
    return result(out_dtype, y * per_channel(scale, x) + per_channel(bias, x))


@register("batchnorm")
def _(inputs, attrs, out_dtype, out_shape):
    x, scale, bias, mean, var = [wide(t) for t in inputs]
    y = (x - per_channel(mean, x)) / np.sqrt(per_channel(var, x) + attrs.get("eps", 1e-5))
    return result(out_dtype, y * per_channel(scale, x) + per_channel(bias, x))


@register("lp_normalize")
def _(inputs, attrs, out_dtype, out_shape):
    x, p = wide(inputs[0]), attrs.get("p", 2)
    norm = (np.abs(x) ** p).sum(attrs.get("axis", -1), keepdims=True) ** (1 / p)
    return result(out_dtype, np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm)))


for same, fn in (("magnitude", np.sqrt), ("power_spectrum", lambda v: v)):
    def run(inputs, attrs, out_dtype, out_shape, fn=fn):
        x = wide(inputs[0])
        return result(out_dtype, fn(x[..., 0] ** 2 + x[..., 1] ** 2))
    REFERENCE[same] = run


@register("rope")
def _(inputs, attrs, out_dtype, out_shape):
    """One feature pair after the other, in f32 where the op says so: angles are rounded to it."""
    x, p = wide(inputs[0]), inputs[1].values.astype(np.int64)
    f = np.float64 if inputs[0].dtype == "f64" else np.float32
    heads = attrs.get("heads", 0)
    shape = x.shape
    if x.ndim == 3 and heads:
        x = x.reshape(*shape[:2], heads, shape[2] // heads)
    dim = attrs.get("dim", x.shape[-1])
    half = dim // 2
    if len(inputs) > 2:
        c, s = [wide(t)[p] for t in inputs[2:]]
    else:
        exponent = np.arange(half).astype(f) * f(-2.0 / max(dim, 1))
        rate = np.power(np.float64(f(attrs.get("theta", 10000))), exponent.astype(np.float64)).astype(f)  # in f32 numpy errs by processor
        angle = (p.astype(f) * f(attrs.get("scale", 1)))[..., None] * rate
        c, s = np.cos(angle.astype(np.float64)), np.sin(angle.astype(np.float64))
    if len(shape) == 4 and p.ndim == 2:
        c, s = c[:, None], s[:, None]
    elif len(shape) == 3:
        c, s = c[..., None, :], s[..., None, :]
    y = x.copy()
    one, two = (slice(0, dim, 2), slice(1, dim, 2)) if attrs.get("interleaved") else (slice(0, half), slice(half, dim))
    y[..., one] = x[..., one] * c - x[..., two] * s
    y[..., two] = x[..., two] * c + x[..., one] * s
    return result(out_dtype, y.reshape(shape))
