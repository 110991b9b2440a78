"""Rules of operators that move data."""

from __future__ import annotations

from typing import Any, Dict, List

from ..convert.weights import need_numpy
from .lowering import Node
from .rules import attributes, optional, row_of, rule, short
from .rules_other import unique_along, unsorted_unique
from .rules_resample import resize_by_weights
from .values import FLOATS, NeedsConstant, Unsupported


@rule("Reshape", "Flatten")
def reshape(n: Node) -> None:
    axis = n.attrs.get("axis", 1)
    if n.out().is_static and n.out().shape == n.x(0).shape:
        n.alias(n.x(0))
    elif n.out().is_static:
        n.emit("reshape", [n.x(0)])
    elif n.op == "Flatten":
        n.emit("flatten", [n.x(0)], optional(axis, "axis", 1))
    else:
        n.emit("reshape", [n.x(0)], {"shape": n.ints(1, "shape")})


@rule("Squeeze", "Unsqueeze")
def squeeze(n: Node) -> None:
    axes = n.ints(1, "axes")
    n.emit(n.op.lower(), [n.x(0)], {} if axes is None else {"axes": axes})


@rule("Transpose")
def transpose(n: Node) -> None:
    perm = n.attrs.get("perm")
    n.emit("transpose", [n.x(0)], {} if perm is None else {"perm": list(perm)})


@rule("Expand")
def expand(n: Node) -> None:
    n.constant(1)
    n.emit("expand", [n.x(0)])


@rule("Tile")
def tile(n: Node) -> None:
    n.emit("tile", [n.x(0)], {"repeats": n.ints(1, "repeats")})


@rule("Concat")
def concat(n: Node) -> None:
    if len(n.given()) == 1:
        n.alias(n.x(0))
    else:
        n.emit("concat", n.given(), {"axis": n.attrs["axis"]})


@rule("Split")
def split(n: Node) -> None:
    outs = [n.out(i) for i in range(len(n.outputs))]
    axis = n.attrs.get("axis", 0)
    sizes = n.ints(1, "split")
    if sizes is None:
        sizes = [o.dims()[axis] for o in outs]
    n.emit_many("split", [n.x(0)], {"axis": axis, "sizes": sizes}, outs)


@rule("Slice")
def slices(n: Node) -> None:
    starts, ends = n.ints(1, "starts"), n.ints(2, "ends")
    attrs: Dict[str, Any] = {"starts": starts, "ends": ends}
    for i, name in ((3, "axes"), (4, "steps")):
        values = n.ints(i, name)
        if values is not None and not (name == "steps" and set(values) == {1}):
            attrs[name] = values
    n.emit("slice", [n.x(0)], attrs)


@rule("Pad")
def pad(n: Node) -> None:
    x = n.x(0)
    pads = n.ints(1, "pads")
    if pads is None:
        pads = list(n.attrs["paddings"])
    axes = n.ints(3, "axes")
    if axes is not None:
        whole = [0] * (2 * x.rank)
        for i, a in enumerate(axes):
            whole[a % x.rank], whole[x.rank + a % x.rank] = pads[i], pads[len(axes) + i]
        pads = whole
    attrs: Dict[str, Any] = {"pads": pads, **optional(n.attrs.get("mode"), "mode", "constant")}
    value = n.number(2, "value", 0)
    if value and attrs.get("mode") is None:
        attrs["value"] = short(value) if isinstance(value, float) else value
    n.emit("pad", [x], attrs)


@rule("Gather")
def gather(n: Node) -> None:
    n.emit("gather", [n.x(0), n.x(1)], optional(n.attrs.get("axis"), "axis", 0))


@rule("GatherElements", "GatherND", "Scatter", "ScatterElements", "ScatterND")
def indexed(n: Node) -> None:
    op = {"GatherElements": "gather_elements", "GatherND": "gather_nd", "ScatterND": "scatter_nd"}.get(n.op, "scatter")
    n.emit(op, n.given(), attributes(n, row_of(op)))


@rule("OneHot")
def one_hot(n: Node) -> None:
    off, on = n.constant(2).reshape(-1).tolist()
    idx = n.x(0)
    if idx.dtype in FLOATS:
        idx = n.emit("cast", [idx], {"to": "i64"}, n.temp(idx, dtype="i64"))
    n.emit("one_hot", [idx], {
        "depth": int(n.constant(1).reshape(-1)[0]), **optional(n.attrs.get("axis"), "axis", -1),
        **optional(on, "on", 1), **optional(off, "off", 0),
    })  # fmt: skip


@rule("Trilu")
def trilu(n: Node) -> None:
    k = int(n.constant(1).reshape(-1)[0]) if n.has(1) else 0
    n.emit("trilu", [n.x(0)], {**optional(bool(n.attrs.get("upper", 1)), "upper", True), **optional(k, "k", 0)})


@rule("TopK")
def top_k(n: Node) -> None:
    ks = n.ints(1, "k") or [0]
    attrs: Dict[str, Any] = {"k": ks[0], **optional(n.attrs.get("axis"), "axis", -1)}
    for name in ("largest", "sorted"):
        attrs.update(optional(bool(n.attrs.get(name, 1)), name, True))
    shape = list(n.x(0).dims())
    shape[n.attrs.get("axis", -1)] = ks[0]
    outs = [n.out(i) if n.wants(i) else n.temp(n.x(0), tuple(shape), d) for i, d in enumerate((n.x(0).dtype, "i64"))]
    n.emit_many("topk", [n.x(0)], attrs, outs)


@rule("Unique")
def unique(n: Node) -> None:
    if "axis" in n.attrs:
        unique_along(n)
        return
    if not n.attrs.get("sorted", 1):
        unsorted_unique(n)
        return
    outs = [n.out(i) if n.wants(i) else n.temp(n.x(0), (None,), "i64" if i else "") for i in range(len(n.outputs))]
    if len(outs) > 2 and outs[2].shape == (None,) and n.x(0).is_static:
        outs[2].shape = (int(need_numpy().prod(n.x(0).dims())),)
    n.emit_many("unique", [n.x(0)], {}, outs)


@rule("NonZero")
def nonzero(n: Node) -> None:
    n.emit("nonzero", [n.x(0)])


@rule("Compress")
def compress(n: Node) -> None:
    np = need_numpy()
    keep = np.flatnonzero(n.constant(1).reshape(-1))
    x, axis = n.x(0), n.attrs.get("axis")
    if axis is None:
        x = n.emit("reshape", [x], {}, n.temp(x, (int(np.prod(x.dims())),)))
    out = n.out()
    dims = list(x.dims())
    dims[axis or 0] = len(keep)
    out.shape = tuple(dims)
    n.emit("gather", [x, n.const(keep.astype(np.int64), "i64", "kept")], optional(axis, "axis", 0))


@rule("DepthToSpace", "SpaceToDepth")
def depth(n: Node) -> None:
    op = "depth_to_space" if n.op == "DepthToSpace" else "space_to_depth"
    n.emit(op, [n.x(0)], {"block": n.attrs["blocksize"], **optional(n.attrs.get("mode"), "mode", "DCR")})


@rule("ReverseSequence")
def reverse_sequence(n: Node) -> None:
    """A gather along the time axis, with an index for every element of the batch."""
    np = need_numpy()
    x, lengths = n.x(0), n.constant(1).reshape(-1)
    time, batch = n.attrs.get("time_axis", 0), n.attrs.get("batch_axis", 1)
    dims = x.dims()
    shape = [1] * x.rank
    shape[time], shape[batch] = dims[time], dims[batch]
    idx = np.zeros((dims[time], dims[batch]), np.int64)
    for b, length in enumerate(lengths):
        idx[:, b] = np.arange(dims[time])
        idx[:length, b] = np.arange(length)[::-1]
    idx = (idx if time < batch else idx.T).reshape(shape)
    n.emit("gather_elements", [x, n.const(np.broadcast_to(idx, dims).copy(), "i64", "order")], optional(time, "axis", 0))


@rule("Resize", "Upsample")
def resize(n: Node) -> None:
    old = n.op == "Upsample" or n.opset < 11
    mode = n.attrs.get("mode", "nearest")
    coord = "asymmetric" if old else n.attrs.get("coordinate_transformation_mode", "half_pixel")
    if not old and not plain_resize(n, mode, coord):
        resize_by_weights(n, mode, coord)
        return
    x, out = n.x(0), n.out()
    at = 1 if old else 2
    for i in (at, at + 1):
        if n.has(i):
            n.constant(i)
    scales = n.attrs.get("scales")
    if n.has(at) and n.constant(at).size:
        scales = [short(s) for s in n.constant(at).reshape(-1).tolist()]
    attrs: Dict[str, Any] = {}
    if scales:
        attrs["scales"] = per_axis(n, [short(s) for s in scales], 1.0)
    else:
        n.attrs.get("axes")
        attrs.update(whole_scales(x.dims(), out.dims()) or {"sizes": out.dims()})
    attrs.update(optional({"linear": "linear", "bilinear": "linear", "cubic": "cubic"}.get(mode, "nearest"), "mode", "nearest"))
    attrs.update(optional(coord, "coord", "half_pixel"))
    if attrs.get("mode") is None:
        attrs.update(optional("floor" if old else n.attrs.get("nearest_mode"), "nearest", "round_prefer_floor"))
    n.emit("resize", [x], attrs)


def whole_scales(dims: List[int], lengths: List[int]) -> Dict[str, Any]:
    """Factors instead of lengths where all are whole numbers: they say more, and hold for other sizes of the input."""
    if any(d == 0 or m == 0 or m % d for d, m in zip(dims, lengths)):
        return {}
    return {"scales": [float(m // d) for d, m in zip(dims, lengths)]}


def per_axis(n: Node, values: List[float], rest: float) -> List[float]:
    axes = n.attrs.get("axes")
    if axes is None:
        return values
    whole = [rest] * n.x(0).rank
    for a, v in zip(axes, values):
        whole[a] = v
    return whole


def plain_resize(n: Node, mode: str, coord: str) -> bool:
    """The op says it: its coordinates, its cubic, and lengths that are what the scales make."""
    if coord not in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
        return False
    if n.attrs.get("antialias") or n.attrs.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return False
    if mode == "cubic" and (n.attrs.get("exclude_outside") or abs(n.attrs.get("cubic_coeff_a", -0.75) + 0.75) > 1e-6):
        return False
    for of_other_modes in ("extrapolation_value", "cubic_coeff_a", "exclude_outside", "nearest_mode"):
        n.attrs.get(of_other_modes)
    if coord != "align_corners" or mode == "nearest" or not n.has(2) or not n.constant(2).size:
        return True
    dims, axes = n.x(0).dims(), n.attrs.get("axes") or list(range(n.x(0).rank))
    return all(float(dims[a] * s).is_integer() for a, s in zip(axes, n.constant(2).reshape(-1).tolist()))


@rule("GridSample")
def grid_sample(n: Node) -> None:
    mode = {"bilinear": "linear", "linear": "linear", "nearest": "nearest"}.get(n.attrs.get("mode", "linear"))
    if mode is None:
        mode = {"cubic": "cubic", "bicubic": "cubic"}.get(n.attrs["mode"])
    n.emit("grid_sample", [n.x(0), n.x(1)], {
        **optional(mode, "mode", "linear"), **optional(n.attrs.get("padding_mode"), "padding_mode", "zeros"),
        **optional(bool(n.attrs.get("align_corners", 0)), "align_corners", False),
    })  # fmt: skip


@rule("Col2Im")
def col2im(n: Node) -> None:
    attrs = attributes(n, row_of("col2im"))
    n.emit("col2im", [n.x(0)], {"shape": n.ints(1, "image_shape"), "kernel": n.ints(2, "block_shape"), **attrs})


@rule("CenterCropPad", "AffineGrid")
def by_function(n: Node) -> None:
    raise Unsupported("it is made of other operators")


@rule("ConstantOfShape", "Range", "EyeLike")
def shapes_from_data(n: Node) -> None:
    for value in n.given():
        if value.data is None and (value.is_input or n.op != "EyeLike"):
            raise NeedsConstant(value)
    raise Unsupported("its shape is not known at import time")


@rule("Shape", "Size")
def extents(n: Node) -> None:
    if n.attrs.get("start") or n.attrs.get("end") is not None:
        raise Unsupported("a part of a shape that is not known at import time")
    n.emit("shape_of" if n.op == "Shape" else "size_of", [n.x(0)])


@rule("GlobalLpPool")
def global_lp_pool(n: Node) -> None:
    x = n.x(0)
    n.emit("lp_pool", [x], {"kernel": x.dims()[2:], **optional(n.attrs.get("p"), "p", 2)})
