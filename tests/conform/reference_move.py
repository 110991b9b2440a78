"""Ops that move elements: numpy on the values, whatever they are."""

import math

import numpy as np

from reference_ops import op
from tensors import DTYPES, Tensor


def moves(name):
    """fn(arrays, attrs, out_shape) gives an array of the inputs' own element type, or a list of them."""
    def register(fn):
        @op(name)
        def _(inputs, attrs, out_dtype, out_shape):
            got = fn([t.values for t in inputs], attrs, out_shape)
            dtypes = out_dtype if isinstance(out_dtype, list) else [out_dtype]
            tensors = [Tensor(dtypes[0], np.ascontiguousarray(v).reshape(v.shape)) for v in (got if isinstance(got, list) else [got])]
            return tensors if isinstance(got, list) else tensors[0]
        return fn
    return register


def ints(value):
    return [value] if isinstance(value, int) else list(value)


@moves("reshape")
def reshape(v, attrs, out_shape):
    if "shape" not in attrs:
        return v[0].reshape(out_shape)
    return v[0].reshape([v[0].shape[i] if n == 0 else n for i, n in enumerate(ints(attrs["shape"]))])


@moves("flatten")
def flatten(v, attrs, out_shape):
    x, axis = v[0], attrs.get("axis", 1)
    axis += x.ndim if axis < 0 else 0
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@moves("squeeze")
def squeeze(v, attrs, out_shape):
    axes = tuple(set(a % v[0].ndim for a in ints(attrs["axes"]))) if "axes" in attrs else None
    return np.squeeze(v[0], axes)


@moves("unsqueeze")
def unsqueeze(v, attrs, out_shape):
    return np.expand_dims(v[0], tuple(ints(attrs["axes"])))


@moves("transpose")
def transpose(v, attrs, out_shape):
    return np.transpose(v[0], ints(attrs["perm"]) if "perm" in attrs else None)


@moves("expand")
def expand(v, attrs, out_shape):
    return np.broadcast_to(v[0], np.broadcast_shapes(v[0].shape, tuple(ints(attrs.get("shape", out_shape)))))


@moves("tile")
def tile(v, attrs, out_shape):
    return np.tile(v[0], ints(attrs["repeats"]))


@moves("concat")
def concat(v, attrs, out_shape):
    return np.concatenate(v, attrs["axis"])


@moves("split")
def split(v, attrs, out_shape, n=None):
    n = n or (len(out_shape) if isinstance(out_shape, list) else 1)
    axis = attrs.get("axis", 0)
    length = v[0].shape[axis]
    if "sizes" in attrs:
        cuts = np.cumsum(ints(attrs["sizes"]))[:-1]
    else:
        cuts = [min(length, -(-length // n) * i) for i in range(1, n)]
    return np.split(v[0], cuts, axis)


@moves("slice")
def slice_(v, attrs, out_shape):
    starts, ends = ints(attrs["starts"]), ints(attrs["ends"])
    steps = ints(attrs.get("steps", [1] * len(starts)))
    x = v[0]
    for start, end, step, axis in zip(starts, ends, steps, ints(attrs.get("axes", list(range(len(starts)))))):
        n = x.shape[axis]
        start += n if start < 0 else 0  # spelled out as ONNX does: clamped, then walked
        end += n if end < 0 else 0
        start = min(max(start, 0), n if step > 0 else n - 1)
        end = min(max(end, 0 if step > 0 else -1), n if step > 0 else n - 1)
        x = np.take(x, np.arange(start, end, step), axis)
    return x


@moves("pad")
def pad(v, attrs, out_shape):
    x, pads, mode = v[0], ints(attrs["pads"]), attrs.get("mode", "constant")
    begins, ends = pads[: x.ndim], pads[x.ndim :]
    for axis, (b, e) in enumerate(zip(begins, ends)):
        x = np.take(x, np.arange(max(0, -b), x.shape[axis] - max(0, -e)), axis)
    widths = [(max(0, b), max(0, e)) for b, e in zip(begins, ends)]
    # which element, then that element: works for every element type
    more = {"constant_values": -1} if mode == "constant" else {}
    places = np.zeros((), np.int64) if not widths else np.pad(np.arange(x.size).reshape(x.shape), widths, mode, **more)
    value = np.array(attrs.get("value", 0)).astype(x.dtype)
    return np.where(places < 0, value, x.ravel()[places] if x.size else value) if places.size else np.empty(places.shape, x.dtype)
