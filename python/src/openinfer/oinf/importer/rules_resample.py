"""Rules of resampling: forms of Resize beyond the op's own, and regions of interest."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Tuple

from ..convert.weights import need_numpy
from .lowering import Node
from .rules import rule
from .values import FLOATS, Unsupported, Value

MOST = 1 << 24  # elements of a matrix of weights


class Axis:
    """One axis of a Resize: for each place of the result, where it lies in the input."""

    def __init__(self, n_in: int, n_out: int, scale: float, coord: str, roi: Tuple[float, float]):
        np = need_numpy()
        self.n_in, self.n_out, self.scale = n_in, n_out, scale
        x = np.arange(n_out, dtype=np.float64)
        length = scale * n_in  # as a fraction: what the scale makes, before it is rounded down
        if coord == "align_corners":
            at = x * 0 if length == 1 else x * (n_in - 1) / (length - 1)
        elif coord == "asymmetric":
            at = x / scale
        elif coord == "tf_crop_and_resize":
            span = (roi[1] - roi[0]) * (n_in - 1)
            at = roi[0] * (n_in - 1) + (x * 0 + span / 2 if length == 1 else x * span / (length - 1))
        elif coord == "pytorch_half_pixel" and length == 1:
            at = x * 0 - 0.5
        else:
            at = (x + 0.5) / scale - 0.5
            if coord == "half_pixel_symmetric":
                at = at + n_in / 2 * (1 - n_out / length)
        self.at = at
        self.outside = (at < 0) | (at > n_in - 1) if coord == "tf_crop_and_resize" else np.zeros(n_out, bool)

    def nearest(self, mode: str) -> Any:
        np = need_numpy()
        low = np.floor(self.at)
        half = self.at - low
        up = {"round_prefer_floor": half > 0.5, "round_prefer_ceil": half >= 0.5, "floor": half < 0, "ceil": half > 0}[mode]
        return np.clip(low + up, 0, self.n_in - 1).astype(np.int64)

    def weights(self, mode: str, a: float, antialias: bool, exclude: bool) -> Any:
        """[n_out, n_in]: how much of each element is in each place."""
        np = need_numpy()
        if self.n_in * self.n_out > MOST:
            raise Unsupported("resize of an axis that is too long for a matrix of weights")
        scale = min(self.scale, 1.0) if antialias else 1.0
        reach = 1 if mode == "linear" else 2
        first = np.floor(self.at).astype(np.int64)
        exact = first == self.at
        first = np.where(exact, first - 1, first)  # the neighbours are first and first + 1, and others around them
        m = np.zeros((self.n_out, self.n_in))
        start = int(math.floor(-reach / scale)) + 1
        for i in range(start, 2 - start):
            distance = np.abs((i - (self.at - first)) * scale)
            w = np.clip(1 - distance, 0, 1) if mode == "linear" else cubic(distance, a)
            place = first + i
            if exclude:
                w = np.where((place < 0) | (place >= self.n_in), 0.0, w)
            np.add.at(m, (np.arange(self.n_out), np.clip(place, 0, self.n_in - 1)), w)
        if antialias or exclude:
            m /= m.sum(1, keepdims=True)
        m[self.outside] = 0.0
        return m


def cubic(x: Any, a: float) -> Any:
    np = need_numpy()
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def axes_of_resize(n: Node, coord: str) -> List[Axis]:
    """The axes of the input, from scales or sizes, which may name some of them only."""
    x = n.x(0)
    dims, rank = x.dims(), x.rank
    named = [a % rank for a in n.attrs.get("axes") or range(rank)]
    roi = n.constant(1).reshape(-1).tolist() if n.has(1) else []
    scales: List[float] = [1.0] * rank
    lengths = list(dims)
    rois: Dict[int, Tuple[float, float]] = {}
    if n.has(2) and n.constant(2).size:
        for a, s in zip(named, n.constant(2).reshape(-1).tolist()):
            scales[a], lengths[a] = s, int(math.floor(dims[a] * s))
    else:
        wanted = [int(v) for v in n.constant(3).reshape(-1)]
        ratios = [v / dims[a] for a, v in zip(named, wanted)]
        policy = n.attrs.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            ratios = [min(ratios) if policy == "not_larger" else max(ratios)] * len(named)
            wanted = [int(math.floor(dims[a] * r + 0.5)) for a, r in zip(named, ratios)]
        for a, s, v in zip(named, ratios, wanted):
            scales[a], lengths[a] = s, v
    for k, a in enumerate(named):
        rois[a] = (roi[k], roi[k + len(named)]) if len(roi) == 2 * len(named) else (0.0, 1.0)
    return [Axis(d, m, s, coord, rois.get(a, (0.0, 1.0))) for a, (d, m, s) in enumerate(zip(dims, lengths, scales))]


def resize_by_weights(n: Node, mode: str, coord: str) -> None:
    """Each axis by a gather or by a product with constant weights."""
    np = need_numpy()
    x, out = n.x(0), n.out()
    axes = axes_of_resize(n, coord)
    dims = x.dims()
    out.shape = tuple(a.n_out for a in axes)
    if mode != "nearest" and x.dtype not in ("f16", "bf16", "f32", "f64"):
        raise Unsupported(f"{mode} resize of {x.dtype}")
    changed = [i for i, a in enumerate(axes) if a.n_in != a.n_out or not np.array_equal(a.at, np.arange(a.n_out))]
    outside = any(a.outside.any() for a in axes)
    y = x
    for i in changed:
        dims[i] = axes[i].n_out
        into = out if i == changed[-1] and not outside else n.temp(x, tuple(dims))
        if mode == "nearest":
            at = axes[i].nearest(n.attrs.get("nearest_mode", "round_prefer_floor"))
            y = n.emit("gather", [y, n.const(at, "i64", "places")], {"axis": i}, into)
        else:
            a = float(n.attrs.get("cubic_coeff_a", -0.75))
            m = axes[i].weights(mode, a, bool(n.attrs.get("antialias")), bool(n.attrs.get("exclude_outside")))
            y = weighted(n, y, m, i, into)
    if outside:
        shown: Any = np.True_
        for i, axis in enumerate(axes):
            shown = shown & ~axis.outside.reshape([-1 if k == i else 1 for k in range(len(axes))])
        mask = np.broadcast_to(shown, tuple(dims)).copy()
        n.emit("where", [n.const(mask, "bool", "inside"), y, n.scalar(n.attrs.get("extrapolation_value", 0.0), x)])
    elif not changed:
        n.alias(x)


def weighted(n: Node, y: Value, m: Any, axis: int, into: Value) -> Value:
    """y times [n_out, n_in] along an axis."""
    from .fold import numpy_dtype

    dims = y.dims()
    m = m.astype(numpy_dtype(y.dtype))
    if axis == len(dims) - 1:
        return n.emit("matmul", [y, n.const(m, y.dtype, "weights")], {"transpose_b": True}, into)
    flat = n.emit("reshape", [y], {}, n.temp(y, (math.prod(dims[:axis]), dims[axis], math.prod(dims[axis + 1 :]))))
    product = n.emit("matmul", [n.const(m, y.dtype, "weights"), flat], {}, n.temp(y, (flat.dims()[0], m.shape[0], flat.dims()[2])))
    return n.emit("reshape", [product], {}, into)


# ---- places that are data: both are samples of a grid ----


def binary(n: Node, op: str, a: Value, b: Value, out: Optional[Value] = None) -> Value:
    np = need_numpy()
    shape = tuple(int(d) for d in np.broadcast_shapes(tuple(a.dims()), tuple(b.dims())))
    return n.emit(op, [a, b], {}, out or n.temp(a, shape))


def grid_of(n: Node, ys: Value, xs: Value, h: int, w: int) -> Value:
    """Places in elements, [N, P], as grid_sample wants them: [N, 1, P, 2] from -1 to 1 between the outer edges."""
    rows, points = ys.dims()
    parts = []
    for v, size in ((xs, w), (ys, h)):
        scaled = binary(n, "mul", v, n.scalar(2 / size, v))
        edge = binary(n, "add", scaled, n.scalar(1 / size - 1, v))
        parts.append(n.emit("reshape", [edge], {}, n.temp(v, (rows, 1, points, 1))))
    return n.emit("concat", parts, {"axis": 3}, n.temp(ys, (rows, 1, points, 2)))


@rule("RoiAlign")
def roi_align(n: Node) -> None:
    np = need_numpy()
    x, rois, batch = n.x(0), n.x(1), n.x(2)
    if n.attrs.get("mode", "avg") != "avg":
        raise Unsupported("regions of interest by their maximum")
    samples = n.attrs.get("sampling_ratio", 0)
    if samples <= 0:
        raise Unsupported("a number of samples that follows from the regions")
    half = n.attrs.get("coordinate_transformation_mode", "half_pixel" if n.opset >= 16 else "output_half_pixel") == "half_pixel"
    (_, c, h, w), r = x.dims(), rois.dims()[0]
    oh, ow, scale = n.attrs.get("output_height", 1), n.attrs.get("output_width", 1), n.attrs.get("spatial_scale", 1.0)
    placed = binary(n, "sub", binary(n, "mul", rois, n.scalar(scale, rois)), n.scalar(0.5 if half else 0.0, rois))
    places = []
    for lowest, highest, bins, other, size in ((1, 3, oh, ow, h), (0, 2, ow, oh, w)):
        a, b = (n.emit("slice", [placed], {"starts": [i], "ends": [i + 1], "axes": [1]}, n.temp(rois, (r, 1))) for i in (lowest, highest))
        length = binary(n, "sub", b, a)
        if not half:
            length = binary(n, "max", length, n.scalar(1.0, length))
        steps = (np.arange(bins * samples) + 0.5) / (bins * samples)
        grid = np.repeat(steps, other * samples) if lowest == 1 else np.tile(steps, other * samples)
        step = n.const(grid.reshape(1, -1).astype(np.float32), "f32", "steps")
        at = binary(n, "add", a, binary(n, "mul", length, step))
        places.append((at, size))
    (ys, _), (xs, _) = places
    chosen = n.emit("gather", [x, batch], {}, n.temp(x, (r, c, h, w)))
    sampled = n.emit("grid_sample", [chosen, grid_of(n, ys, xs, h, w)], {"padding_mode": "border"}, n.temp(x, (r, c, 1, ys.dims()[1])))
    for at, size in places:  # beyond one element outside there is nothing
        inside = [binary(n, op, at, n.scalar(v, at), n.temp(at, dtype="bool")) for op, v in (("ge", -1.0), ("le", float(size)))]
        shown = n.emit("reshape", [binary(n, "and", *inside)], {}, n.temp(at, (r, 1, 1, at.dims()[1]), "bool"))
        sampled = n.emit("where", [shown, sampled, n.scalar(0.0, x)], {}, n.temp(sampled))
    bins = n.emit("reshape", [sampled], {}, n.temp(x, (r, c, oh, samples, ow, samples)))
    n.emit("mean_axis", [bins], {"axes": [3, 5]})


@rule("DeformConv")
def deform_conv(n: Node) -> None:
    """Samples of x at shifted places, for each element of the kernel; then a product with the weights."""
    np = need_numpy()
    x, w, offset = n.x(0), n.x(1), n.x(2)
    if x.rank != 4 or x.dtype not in FLOATS:
        raise Unsupported("deformable convolution of other than two axes")
    (b, c, h, wd), (m, per, kh, kw) = x.dims(), w.dims()
    group, shared = n.attrs.get("group", 1), n.attrs.get("offset_group", 1)
    stride, dilation = n.attrs.get("strides") or [1, 1], n.attrs.get("dilations") or [1, 1]
    pads = n.attrs.get("pads") or [0, 0, 0, 0]
    n.attrs.get("kernel_shape")
    _, _, oh, ow = offset.dims()
    n.out().shape = (b, m, oh, ow)
    k, points = kh * kw, kh * kw * oh * ow
    apart = n.emit("reshape", [offset], {}, n.temp(offset, (b * shared, k, 2, oh * ow)))
    places = []
    for i, (size, count) in enumerate(((kh, oh), (kw, ow))):
        moved = n.emit("slice", [apart], {"starts": [i], "ends": [i + 1], "axes": [2]}, n.temp(offset, (b * shared, k, 1, oh * ow)))
        taps = np.arange(size) * dilation[i]
        starts = np.arange(count) * stride[i] - pads[i]
        taps = np.repeat(taps, kw) if i == 0 else np.tile(taps, kh)
        starts = np.repeat(starts, ow) if i == 0 else np.tile(starts, oh)
        base = (taps[:, None] + starts[None, :]).reshape(1, k, 1, oh * ow).astype(np.float32)
        at = binary(n, "add", moved, n.const(base.astype(np.float32), "f32", "taps"))
        places.append(n.emit("reshape", [at], {}, n.temp(offset, (b * shared, points))))
    images = n.emit("reshape", [x], {}, n.temp(x, (b * shared, c // shared, h, wd)))
    grid = grid_of(n, places[0], places[1], h, wd)
    sampled = n.emit("grid_sample", [images, grid], {}, n.temp(x, (b * shared, c // shared, 1, points)))
    if n.has(4):
        mask = n.emit("reshape", [n.x(4)], {}, n.temp(x, (b * shared, 1, 1, points)))
        sampled = binary(n, "mul", sampled, mask)
    columns = n.emit("reshape", [sampled], {}, n.temp(x, (b, group, per * k, oh * ow)))
    weights = n.emit("reshape", [w], {}, n.temp(w, (1, group, m // group, per * k)))
    product = n.emit("matmul", [weights, columns], {}, n.temp(x, (b, group, m // group, oh * ow)))
    if not n.has(3):
        n.emit("reshape", [product])
        return
    image = n.emit("reshape", [product], {}, n.temp(x, (b, m, oh, ow)))
    n.emit("add", [image, n.emit("reshape", [n.x(3)], {}, n.temp(x, (1, m, 1, 1)))])
