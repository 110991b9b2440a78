"""Ops that sort, on images and on signals, in numpy and f64."""

import itertools
import math

import numpy as np

from reference_ops import ROUNDED, op
from tensors import DTYPES, Tensor


def wide(t):
    return t.values.astype(np.float64)


def given(dtype, v):
    return Tensor(dtype, np.asarray(v).astype(DTYPES[dtype].array))


# -- order


def order(t, axis, descending):
    """Positions in order: NaN is the largest, equals keep theirs."""
    v = t.values
    if DTYPES[t.dtype].kind == "F":
        v = v.astype(np.float64) + 0.0
        rank = np.where(np.isnan(v), np.inf, v)
        nan = np.isnan(v).astype(int)
        keys = (-rank, -nan) if descending else (rank, nan)
        return np.lexsort(keys, axis=axis) if v.size else np.zeros(v.shape, np.int64)
    v = v.astype(object) if DTYPES[t.dtype].bits == 64 else v.astype(np.int64)
    if v.dtype == object:  # exact beyond 2^53
        flat = np.unique(v.ravel(), return_inverse=True)[1].reshape(v.shape)
        v = flat
    return np.argsort(-v if descending else v, axis=axis, kind="stable")


@op("sort")
def _(inputs, attrs, out_dtype, out_shape):
    axis = attrs.get("axis", -1)
    return Tensor(out_dtype, np.take_along_axis(inputs[0].values, order(inputs[0], axis, attrs.get("descending", False)), axis))


@op("argsort")
def _(inputs, attrs, out_dtype, out_shape):
    return Tensor("i64", order(inputs[0], attrs.get("axis", -1), attrs.get("descending", False)).astype(np.int64))


@op("topk")
def _(inputs, attrs, out_dtype, out_shape):
    axis = attrs.get("axis", -1)
    at = np.take(order(inputs[0], axis, attrs.get("largest", True)), np.arange(attrs["k"]), axis).astype(np.int64)
    return [Tensor(inputs[0].dtype, np.take_along_axis(inputs[0].values, at, axis)), Tensor("i64", at)]


@op("bitcast")
def _(inputs, attrs, out_dtype, out_shape):
    dense = Tensor(inputs[0].dtype, inputs[0].values)
    return Tensor.from_storage(attrs["to"], inputs[0].values.shape, dense.storage()[0])


@op("nonzero")
def _(inputs, attrs, out_dtype, out_shape):
    x = inputs[0].values
    return Tensor("i64", np.array(np.nonzero(x), np.int64).reshape(out_shape) if x.ndim else np.zeros(out_shape, np.int64))


@op("unique")
def _(inputs, attrs, out_dtype, out_shape):
    flat = inputs[0].values.ravel()
    at = order(Tensor(inputs[0].dtype, flat), 0, False)
    groups = []
    for i in at:
        a, b = (flat[groups[-1][0]], flat[i]) if groups else (0, 0)
        if groups and (a == b or (a != a and b != b)):
            groups[-1].append(i)
        else:
            groups.append([i])
    inverse = np.zeros(len(flat), np.int64)
    for k, g in enumerate(groups):
        inverse[g] = k
    firsts = np.array([g[0] for g in groups], np.int64)
    results = [Tensor(inputs[0].dtype, flat[firsts]), Tensor("i64", firsts), Tensor("i64", inverse), Tensor("i64", np.array([len(g) for g in groups], np.int64))]
    return results[: len(out_shape)] if isinstance(out_shape, list) else results[0]


# -- images


def cubic(t, a=-0.75):
    def weight(x):
        x = abs(x)
        if x <= 1:
            return (a + 2) * x**3 - (a + 3) * x**2 + 1
        return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0
    return [weight(t - k) for k in (-1, 0, 1, 2)]


def taps(place, mode):
    low = math.floor(place)
    if mode == "nearest":
        return [(int(place), 1.0)]
    if mode == "linear":
        return [(low, 1 - (place - low)), (low + 1, place - low)]
    return list(zip(range(low - 1, low + 3), cubic(place - low)))


def resize_matrix(n, m, scale, mode, coord, nearest):
    """(m, n): what every place of the result takes from the input."""
    out = np.zeros((m, n))
    for o in range(m):
        place = {"asymmetric": o / scale, "align_corners": o * (n - 1) / (m - 1) if m > 1 else 0.0,
                 "half_pixel": (o + 0.5) / scale - 0.5, "pytorch_half_pixel": (o + 0.5) / scale - 0.5 if m > 1 else 0.0}[coord]
        if mode == "nearest":
            place = {"floor": math.floor(place), "ceil": math.ceil(place), "round_prefer_floor": math.ceil(place - 0.5),
                     "round_prefer_ceil": math.floor(place + 0.5)}[nearest]
        for at, w in taps(place, mode):
            out[o, min(max(at, 0), n - 1)] += w
    return out


@op("resize")
def _(inputs, attrs, out_dtype, out_shape):
    x, mode = inputs[0].values, attrs.get("mode", "nearest")
    scales = attrs.get("scales")
    scales = [scales] if isinstance(scales, (int, float)) else scales
    v = x if mode == "nearest" else x.astype(np.float64)
    for d, m in enumerate(out_shape):
        if not v.size or not m:
            return Tensor(out_dtype, np.zeros(out_shape, x.dtype))
        scale = scales[d] if scales else m / x.shape[d]
        w = resize_matrix(x.shape[d], m, scale, mode, attrs.get("coord", "half_pixel"), attrs.get("nearest", "round_prefer_floor"))
        if mode == "nearest":
            v = np.take(v, w.argmax(axis=1), d)
        else:
            v = np.moveaxis(np.tensordot(w, v, (1, d)), 0, d)
    return Tensor(out_dtype, v.astype(x.dtype))


def reflect(v, low, high):
    if high <= low:
        return low
    while v < low or v > high:
        v = 2 * low - v if v < low else 2 * high - v
    return v


@op("grid_sample")
def _(inputs, attrs, out_dtype, out_shape):
    x, grid = wide(inputs[0]), wide(inputs[1])
    mode, padding, corners = attrs.get("mode", "linear"), attrs.get("padding_mode", "zeros"), attrs.get("align_corners", False)
    dims, out = x.shape[2:], np.zeros(out_shape)
    borders = [(0, n - 1) if corners else (-0.5, n - 0.5) for n in dims]
    for at in np.ndindex(out_shape[0], *out_shape[2:]):
        axes = []
        for v, n, (low, high) in zip(grid[at][::-1], dims, borders):
            place = (v + 1) / 2 * (n - 1) if corners else ((v + 1) * n - 1) / 2
            place = np.rint(place) if mode == "nearest" else place
            if place < low or place > high:
                place = min(max(place, 0), n - 1) if padding == "border" else reflect(place, low, high) if padding == "reflection" else place
            near = []
            for i, w in taps(place, mode):
                if padding == "border":
                    i = min(max(i, 0), n - 1)
                elif padding == "reflection":
                    i = int(reflect(i, low, high))
                near.append((i, w if 0 <= i < n else 0.0))
            axes.append(near)
        for combo in itertools.product(*axes):
            w = math.prod(c[1] for c in combo)
            if w:
                out[(at[0], slice(None), *at[1:])] += w * x[(at[0], slice(None), *(c[0] for c in combo))]
    return given(out_dtype, out)


# -- signals


def transform(inputs, attrs, out_dtype, inverse, onesided):
    x, axis = wide(inputs[0]), attrs.get("axis", -2)
    axis += inputs[0].values.ndim if axis < 0 else 0
    z = x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    n = attrs.get("length", (2 * (z.shape[axis] - 1) if inverse and onesided else z.shape[axis]))
    if n == 0:
        return np.zeros(z.shape[:axis] + (0,) + z.shape[axis + 1 :] + (1 if inverse and onesided else 2,))
    if inverse and onesided:
        return np.fft.irfft(z, n, axis)[..., None]
    y = np.fft.ifft(z, n, axis) if inverse else np.fft.fft(z, n, axis)
    if onesided:
        y = np.take(y, np.arange(n // 2 + 1), axis)
    return np.stack([y.real, y.imag], -1)


for name, inverse, onesided in (("dft", False, False), ("rfft", False, True), ("ifft", True, False)):
    def register(name=name, inverse=inverse, onesided=onesided):
        @op(name)
        def _(inputs, attrs, out_dtype, out_shape):
            return given(out_dtype, transform(inputs, attrs, out_dtype, attrs.get("inverse", inverse), attrs.get("onesided", onesided)))
    register()


@op("stft")
def _(inputs, attrs, out_dtype, out_shape):
    x = wide(inputs[0])
    z = x if x.ndim == 2 else x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    window = wide(inputs[1]) if len(inputs) > 1 else np.ones(attrs.get("frame_length", z.shape[1]))
    n, out = len(window), np.zeros(out_shape)
    for f in range(out_shape[1]):
        y = np.fft.fft(z[:, f * attrs["frame_step"] : f * attrs["frame_step"] + n] * window, axis=1)[:, : out_shape[2]]
        out[:, f, :, 0], out[:, f, :, 1] = y.real, y.imag
    return given(out_dtype, out)


@op("istft")
def _(inputs, attrs, out_dtype, out_shape):
    x, window = wide(inputs[0]), wide(inputs[1])
    z, n, hop = x[..., 0] + 1j * x[..., 1], len(window), attrs["hop"]
    reach = n + hop * max(0, z.shape[1] - 1)
    total, weight = np.zeros((out_shape[0], max(reach, out_shape[1]))), np.zeros(max(reach, out_shape[1]))
    for f in range(z.shape[1]):
        y = np.fft.irfft(z[:, f], n, 1) if z.shape[2] != n else np.fft.ifft(z[:, f], n, 1).real
        total[:, f * hop : f * hop + n] += y * window
        weight[f * hop : f * hop + n] += window**2
    safe = np.where(weight == 0, 1, weight)
    return given(out_dtype, np.where(weight == 0, 0, total / safe)[:, : out_shape[1]])


def window(name, *factors):
    """Factors of cos(0), cos(2 pi i / n), cos(4 pi i / n), of alternating sign."""
    ROUNDED[name] = {"f32": 8, "f64": 4000}  # here terms cancel where the window is near 0

    @op(name)
    def _(inputs, attrs, out_dtype, out_shape):
        n = out_shape[0] if attrs.get("periodic", True) else out_shape[0] - 1
        angle = 2 * np.pi * np.arange(out_shape[0], dtype=np.longdouble) / max(n, 1)
        v = sum((-1) ** k * np.longdouble(f) * np.cos(k * angle) for k, f in enumerate(factors))
        v = np.where(np.abs(v) < 1e-15, 0, v)
        return given(out_dtype, np.ones(1) if n == 0 and out_shape[0] else v)


window("hann_window", 0.5, 0.5)
window("hamming_window", np.longdouble(25) / 46, np.longdouble(21) / 46)
window("blackman_window", np.longdouble(42) / 100, 0.5, np.longdouble(8) / 100)


@op("mel_filter")
def _(inputs, attrs, out_dtype, out_shape):
    n_fft, rate, n = attrs["n_fft"], attrs["sample_rate"], attrs["num_mels"]
    mel = lambda hertz: 2595 * np.log10(1 + hertz / 700)  # noqa: E731
    low, high = mel(attrs.get("fmin", 0)), mel(attrs.get("fmax", rate / 2))
    points = 700 * (10 ** ((np.arange(n + 2) * (high - low) / (n + 2) + low) / 2595) - 1)
    bins = ((n_fft + 1) * points // rate).astype(int)
    out = np.zeros(out_shape)
    for i in range(n):
        left, centre, right = bins[i : i + 3]
        if left == centre:
            out[centre, i] = 1
        for k in range(left, centre + 1):
            out[k, i] = (k - left) / (centre - left) if centre > left else 1
        for k in range(centre, right):
            out[k, i] = (right - k) / (right - centre)
    return given(out_dtype, out)
