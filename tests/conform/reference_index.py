"""Ops whose places are turned round, found in data, or counted, in numpy."""

import numpy as np

from reference_ops import number, numbers, op, result
from reference_move import ints, moves
from tensors import DTYPES, Tensor


def zero(dtype, x):
    """0 as the element type has it: t1 knows only -1 and 1."""
    return np.full_like(x, 1) if dtype == "t1" else np.zeros_like(x)


@moves("reverse")
def reverse(v, attrs, out_shape):
    return np.flip(v[0], tuple(set(a % v[0].ndim for a in ints(attrs["axes"]))) if "axes" in attrs else None)


@moves("roll")
def roll(v, attrs, out_shape):
    shifts = ints(attrs["shifts"])
    if "axes" not in attrs:
        return np.roll(v[0], shifts[0] % max(1, v[0].size))
    x = v[0]
    for shift, axis in zip(shifts, ints(attrs["axes"])):
        x = np.roll(x, shift % max(1, x.shape[axis]), axis)
    return x


@moves("depth_to_space")
def depth_to_space(v, attrs, out_shape):
    (n, c, h, w), b = v[0].shape, attrs["block"]
    if attrs.get("mode", "DCR") == "DCR":
        return v[0].reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, c // (b * b), h * b, w * b)
    return v[0].reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // (b * b), h * b, w * b)


@moves("space_to_depth")
def space_to_depth(v, attrs, out_shape):
    (n, c, h, w), b = v[0].shape, attrs["block"]
    x = v[0].reshape(n, c, h // b, b, w // b, b)
    order = (0, 3, 5, 1, 2, 4) if attrs.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return x.transpose(order).reshape(n, c * b * b, h // b, w // b)


@op("trilu")
def trilu(inputs, attrs, out_dtype, out_shape):
    x = inputs[0].values
    rows, cols = np.indices(x.shape[-2:])
    k = max(-(1 << 40), min(1 << 40, attrs.get("k", 0)))
    keep = cols - rows >= k if attrs.get("upper", True) else cols - rows <= k
    return Tensor(out_dtype, np.where(keep, x, zero(out_dtype, x)).astype(x.dtype))


@moves("gather_elements")
def gather_elements(v, attrs, out_shape):
    data, idx, axis = v[0], v[1].astype(np.int64), attrs.get("axis", 0)
    out = np.empty(idx.shape, data.dtype)
    for at in np.ndindex(*idx.shape):
        place = list(at)
        place[axis] = idx[at]
        out[at] = data[tuple(place)]
    return out


@moves("gather_nd")
def gather_nd(v, attrs, out_shape):
    data, idx, batch = v[0], v[1].astype(np.int64), attrs.get("batch_dims", 0)
    out = np.empty(idx.shape[:-1] + data.shape[batch + idx.shape[-1] :], data.dtype)
    for at in np.ndindex(*idx.shape[:-1]):
        out[at] = data[at[:batch] + tuple(idx[at])]
    return out


def combined(dtype, old, new, how):
    """One update, rounded to the element type."""
    if how == "none":
        return new
    a, b = numbers(Tensor(dtype, np.asarray(old))), numbers(Tensor(dtype, np.asarray(new)))
    v = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[how](a, b)
    if how in ("max", "min") and a == 0 and b == 0 and DTYPES[dtype].kind == "F":  # max(-0, 0) = 0
        v = a + b if how == "max" else -((-a) + (-b))
    return result(dtype, v).values


@op("scatter")
def scatter(inputs, attrs, out_dtype, out_shape):
    data, idx, updates = inputs[0].values.copy(), inputs[1].values.astype(np.int64), inputs[2].values
    for at in np.ndindex(*idx.shape):
        place = list(at)
        place[attrs.get("axis", 0)] = idx[at]
        data[tuple(place)] = combined(out_dtype, data[tuple(place)], updates[at], attrs.get("reduction", "none"))
    return Tensor(out_dtype, data)


@op("scatter_nd")
def scatter_nd(inputs, attrs, out_dtype, out_shape):
    data, idx, updates = inputs[0].values.copy(), inputs[1].values.astype(np.int64), inputs[2].values
    for at in np.ndindex(*idx.shape[:-1]):
        for rest in np.ndindex(*data.shape[idx.shape[-1] :]):
            place = tuple(idx[at]) + rest
            data[place] = combined(out_dtype, data[place], updates[at + rest], attrs.get("reduction", "none"))
    return Tensor(out_dtype, data)


@op("one_hot")
def one_hot(inputs, attrs, out_dtype, out_shape):
    idx, depth, axis = inputs[0].values.astype(object), attrs["depth"], attrs.get("axis", -1)
    d = DTYPES[out_dtype]
    on, off = (np.array(attrs.get(k, v)).astype(d.array) for k, v in (("on", 1), ("off", 0)))
    hit = np.empty((depth, *idx.shape), bool)
    for i in range(depth):
        hit[i] = np.vectorize(lambda v: v == i or v + depth == i, otypes=[bool])(idx) if idx.size else False
    return Tensor(out_dtype, np.where(np.moveaxis(hit, 0, axis), on, off).astype(d.array))


def scan(name, combine, start):
    @op(name)
    def _(inputs, attrs, out_dtype, out_shape):
        x = np.moveaxis(numbers(inputs[0]), attrs["axis"], 0)
        x = x[::-1] if attrs.get("reverse") else x
        out, acc = np.empty_like(x), np.full(x.shape[1:], start, x.dtype)
        for i in range(len(x)):
            if attrs.get("exclusive"):
                out[i] = acc
            acc = combine(acc, x[i])
            if not attrs.get("exclusive"):
                out[i] = acc
        out = out[::-1] if attrs.get("reverse") else out
        return result(out_dtype, np.moveaxis(out, 0, attrs["axis"]).copy())


scan("cumsum", np.add, 0)
scan("cumprod", np.multiply, 1)


def count(dtype, n, start, delta):
    start, delta = number(dtype, start), number(dtype, delta)
    return start + np.arange(n).astype(start.dtype) * delta


@op("range")
def _(inputs, attrs, out_dtype, out_shape):
    return result(out_dtype, count(out_dtype, out_shape[0], attrs.get("start", 0), attrs.get("delta", 1)))


@op("iota")
def _(inputs, attrs, out_dtype, out_shape):
    axis = attrs.get("axis", -1) % len(out_shape)
    v = count(out_dtype, out_shape[axis], attrs.get("start", 0), attrs.get("delta", 1))
    return result(out_dtype, np.broadcast_to(v.reshape([-1 if i == axis else 1 for i in range(len(out_shape))]), out_shape).copy())


@op("shape_of")
def _(inputs, attrs, out_dtype, out_shape):
    return Tensor("i64", np.array(inputs[0].values.shape, np.int64))


@op("size_of")
def _(inputs, attrs, out_dtype, out_shape):
    return Tensor("i64", np.array(inputs[0].values.size, np.int64))
