"""Rules of operators that are made of several ops."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Tuple

from ..convert.weights import need_numpy
from .lowering import Node
from .rules import RULES, rule
from .rules_resample import binary
from .values import Unsupported, Value

MOST_PAIRS = 1 << 24  # numbers that are compared for `Unique` along an axis


@rule("OptionalGetElement")
def optional_element(n: Node) -> None:
    n.alias(n.x(0))


@rule("BitCast")
def bitcast(n: Node) -> None:
    if n.out().dtype == n.x(0).dtype:
        n.alias(n.x(0))
    else:
        n.emit("bitcast", [n.x(0)], {"to": n.out().dtype})


@rule("Det")
def determinant(n: Node) -> None:
    """Of small matrices, by the first row."""
    x = n.x(0)
    *lead, rows, columns = x.dims()
    if rows != columns or rows > 4:
        raise Unsupported("the determinant of a matrix of more than 4 rows")
    flat = n.emit("reshape", [x], {}, n.temp(x, (math.prod(lead), rows * rows)))

    def at(i: int, j: int) -> Value:
        k = i * rows + j
        return n.emit("slice", [flat], {"starts": [k], "ends": [k + 1], "axes": [1]}, n.temp(x, (math.prod(lead), 1)))

    def minor(i: int, columns: List[int]) -> Value:
        if i == rows - 1:
            return at(i, columns[0])
        total: Optional[Value] = None
        for k, j in enumerate(columns):
            part = binary(n, "mul", at(i, j), minor(i + 1, columns[:k] + columns[k + 1 :]))
            total = part if total is None else binary(n, "sub" if k % 2 else "add", total, part)
        assert total is not None
        return total

    n.out().shape = tuple(lead)
    n.emit("reshape", [minor(0, list(range(rows)))])


@rule("TensorScatter")
def tensor_scatter(n: Node) -> None:
    """Rows of the update go to the places from write_indices on, for each element of the batch."""
    np = need_numpy()
    past, update = n.x(0), n.x(1)
    axis = n.attrs.get("axis", -2) % past.rank
    length = update.dims()[axis]
    shape = [1] * past.rank
    shape[axis] = length
    at = n.const(np.arange(length, dtype=np.int64).reshape(shape), "i64", "rows")
    if n.has(2):
        first = n.emit("reshape", [n.x(2)], {}, n.temp(n.x(2), (n.x(2).dims()[0], *[1] * (past.rank - 1))))
        at = binary(n, "add", first, at)
        if n.attrs.get("mode", "linear") == "circular":
            at = binary(n, "mod", at, n.const(np.int64(past.dims()[axis]), "i64", "length"))
    else:
        n.attrs.get("mode")
    places = n.emit("expand", [at], {}, n.temp(update, dtype="i64"))
    n.emit("scatter", [past, places, update], {"axis": axis})


@rule("MaxUnpool")
def max_unpool(n: Node) -> None:
    """Values go to the places that pooling took them from; places are counted in the result of the pooling's size."""
    np = need_numpy()
    x, idx = n.x(0), n.x(1)
    kernel = n.attrs["kernel_shape"]
    stride, pads = n.attrs.get("strides") or [1] * len(kernel), n.attrs.get("pads") or [0] * (2 * len(kernel))
    inner = [
        (d - 1) * s + k - pads[i] - pads[i + len(kernel)] for i, (d, s, k) in enumerate(zip(x.dims()[2:], stride, kernel))
    ]
    dims = [*x.dims()[:2], *inner]
    out = n.out()
    out.shape = tuple(int(v) for v in n.constant(2).reshape(-1)) if n.has(2) else tuple(dims)
    flat = [n.emit("reshape", [v], {}, n.temp(v, (math.prod(v.dims()),))) for v in (x, idx)]
    zeros = n.const(np.broadcast_to(n.scalar(0, x).data, (math.prod(dims),)), x.dtype, "zeros")
    spread = n.emit("scatter", [zeros, flat[1], flat[0]], {}, n.temp(x, (math.prod(dims),)))
    if list(out.dims()) == dims:
        n.emit("reshape", [spread])
        return
    image = n.emit("reshape", [spread], {}, n.temp(x, tuple(dims)))
    n.emit("pad", [image], {"pads": [0] * len(dims) + [b - a for a, b in zip(dims, out.dims())]})


@rule("TfIdfVectorizer")
def tf_idf(n: Node) -> None:
    """How often each n-gram of a list stands in a row, with up to max_skip_count elements left out between two."""
    np = need_numpy()
    x, counts, pool = n.x(0), list(n.attrs["ngram_counts"]), n.attrs.get("pool_int64s")
    if pool is None:
        raise Unsupported("n-grams of strings")
    least, most, skips = n.attrs["min_gram_length"], n.attrs["max_gram_length"], n.attrs["max_skip_count"]
    columns, mode = list(n.attrs["ngram_indexes"]), n.attrs["mode"]
    weights = n.attrs.get("weights")
    batched, length = x.rank == 2, x.dims()[-1]
    rows = x.dims()[0] if batched else 1
    flat = n.emit("reshape", [x], {}, n.temp(x, (rows, 1, length)))
    total = n.const(np.zeros((rows, len(columns)), np.float32), "f32", "none")
    counted = 0
    for size in range(1, most + 1):
        begin, end = counts[size - 1], counts[size] if size < len(counts) else len(pool)
        grams = np.asarray(pool[begin:end]).reshape(-1, size)
        for step in range(1, skips + 2 if size > 1 else 2):
            span = length - (size - 1) * step
            if size < least or not len(grams) or span <= 0:
                continue
            found: Optional[Value] = None
            for k in range(size):
                part = n.emit("slice", [flat], {"starts": [k * step], "ends": [k * step + span], "axes": [2]}, n.temp(x, (rows, 1, span)))
                wanted = grams[:, k].reshape(1, -1, 1).astype(np.int64 if x.dtype == "i64" else np.int32)
                same = binary(n, "eq", part, n.const(wanted, x.dtype, "grams"), n.temp(x, (rows, len(grams), span), "bool"))
                found = same if found is None else binary(n, "and", found, same)
            assert found is not None
            ones = n.emit("cast", [found], {"to": "f32"}, n.temp(found, dtype="f32"))
            sums = n.emit("sum_axis", [ones], {"axes": [2]}, n.temp(ones, (rows, len(grams))))
            place = np.zeros((len(grams), len(columns)), np.float32)
            place[np.arange(len(grams)), [columns[counted + i] for i in range(len(grams))]] = 1
            total = binary(n, "add", total, n.emit("matmul", [sums, n.const(place, "f32", "places")], {}, n.temp(ones, (rows, len(columns)))))
        counted += len(grams)
    if mode != "TF":
        present = binary(n, "gt", total, n.const(np.float32(0), "f32"), n.temp(total, dtype="bool"))
        factor = n.emit("cast", [present], {"to": "f32"}, n.temp(total))
        total = factor if mode == "IDF" else total
    if weights is not None and mode in ("IDF", "TFIDF"):
        ordered = np.zeros(len(columns), np.float32)
        ordered[columns] = weights
        total = binary(n, "mul", total, n.const(ordered, "f32", "weights"))
    n.out().shape = (rows, len(columns)) if batched else (len(columns),)
    n.emit("reshape", [total])


def ml_array_feature_extractor(n: Node) -> None:
    x, idx = n.x(0), n.x(1)
    flat = n.emit("reshape", [idx], {}, n.temp(idx, (math.prod(idx.dims()),)))
    n.out().shape = (*x.dims()[:-1], flat.dims()[0]) if x.rank > 1 else (1, flat.dims()[0])
    n.emit("gather", [x, flat], {"axis": x.rank - 1})


def ml_binarizer(n: Node) -> None:
    x = n.x(0)
    n.out().shape = x.shape
    above = binary(n, "gt", x, n.scalar(n.attrs.get("threshold", 0.0), x), n.temp(x, dtype="bool"))
    n.emit("cast", [above], {"to": x.dtype})


RULES["ai.onnx.ml.ArrayFeatureExtractor"] = ml_array_feature_extractor
RULES["ai.onnx.ml.Binarizer"] = ml_binarizer


def batchnorm_of_training(n: Node) -> None:
    """Mean and variance of the batch, and both blended into the running ones."""
    x, scale, bias = n.x(0), n.x(1), n.x(2)
    if any(v.dtype != x.dtype for v in n.given()[1:]):
        raise Unsupported("batch normalisation with several element types")
    channels, rank = x.dims()[1], x.rank
    axes = [a for a in range(rank) if a != 1]
    wide = (1, channels, *[1] * (rank - 2))
    mean = n.emit("mean_axis", [x], {"axes": axes, "keepdims": True}, n.temp(x, wide))
    less = binary(n, "sub", x, mean)
    square = n.emit("square", [less], {}, n.temp(x))
    var = n.emit("mean_axis", [square], {"axes": axes, "keepdims": True}, n.temp(x, wide))
    flat = [n.emit("reshape", [v], {}, n.temp(x, (channels,))) for v in (mean, var)]
    n.emit("batchnorm", [x, scale, bias, *flat], {"eps": float(n.attrs.get("epsilon", 1e-5))})
    momentum = float(n.attrs.get("momentum", 0.9))
    for i, (old, now) in enumerate(zip((n.x(3), n.x(4)), flat), 1):
        if n.wants(i):
            kept = binary(n, "mul", old, n.scalar(momentum, old))
            n.emit("add", [kept, binary(n, "mul", now, n.scalar(1 - momentum, now))], {}, n.out(i))


def column_major(n: Node, idx: Value, dims: List[int], out: Value) -> None:
    """Places counted with the first of the inner axes fastest, from places counted with the last one fastest."""
    np = need_numpy()
    inner = dims[2:]

    def c(v: int) -> Value:
        return n.const(np.int64(v), "i64")

    plane = math.prod(inner)
    result = binary(n, "mul", binary(n, "floor_div", idx, c(plane)), c(plane))
    rest, step = binary(n, "mod", idx, c(plane)), 1
    places: Dict[int, Any] = {}
    for axis in range(len(inner) - 1, -1, -1):
        places[axis] = binary(n, "mod", rest, c(inner[axis]))
        rest = binary(n, "floor_div", rest, c(inner[axis]))
    for axis in range(len(inner)):
        last = axis == len(inner) - 1
        result = binary(n, "add", result, binary(n, "mul", places[axis], c(step)), out if last else None)
        step *= inner[axis]


def quantize_f8(n: Node) -> None:
    """To and from float8 E5M2: the quotient is rounded to it, there is no zero point."""
    q = n.op == "QuantizeLinear"
    x, scale = n.x(0), n.x(1)
    if math.prod(scale.dims()) != 1 or n.attrs.get("block_size"):
        raise Unsupported("float8 with several scales")
    if n.has(2) and n.constant(2).astype("float32").any():
        raise Unsupported("float8 with a zero point")
    n.attrs.get("axis")
    one = n.emit("reshape", [scale], {}, n.temp(scale, ()))
    if not q:
        wide = n.emit("cast", [x], {"to": one.dtype}, n.temp(x, dtype=one.dtype))
        n.emit("mul", [wide, one])
        return
    ratio = binary(n, "div", x, one)
    if n.attrs.get("saturate", 1):
        ratio = n.emit("clamp", [ratio], {"min": -57344.0, "max": 57344.0}, n.temp(ratio))
    n.emit("cast", [ratio], {"to": "f8"})


def unsorted_unique(n: Node) -> None:
    """The sorted form, and its values in the order in which they appear."""
    x, wanted = n.x(0), max(i for i in range(len(n.outputs)) if n.wants(i))
    size = math.prod(x.dims())
    made = [n.temp(x, (size if i == 2 else None,), "i64" if i else "") for i in range(4)]
    n.emit_many("unique", [x], {}, made)
    order = n.emit("argsort", [made[1]], {"axis": 0}, n.temp(x, (None,), "i64"))
    for i in range(wanted + 1):
        if not n.wants(i):
            continue
        if i == 2:
            rank = n.emit("argsort", [order], {"axis": 0}, n.temp(x, (None,), "i64"))
            n.out(2).shape = (size,)
            n.emit("gather", [rank, made[2]], {}, n.out(2))
        else:
            n.emit("gather", [made[i], order], {}, n.out(i))



def unique_along(n: Node) -> None:
    """Different slices along an axis, in order or as they appear: every pair of slices is compared."""
    np = need_numpy()
    x, axis = n.x(0), n.attrs["axis"] % n.x(0).rank
    dims = x.dims()
    count = dims[axis]
    width = math.prod(dims) // count if count else 0
    if not width or count * count * width > MOST_PAIRS:
        raise Unsupported("unique along an axis of so many elements")
    front = [axis, *(a for a in range(x.rank) if a != axis)]
    turned = n.emit("transpose", [x], {"perm": front}, n.temp(x, tuple(dims[a] for a in front)))
    left = n.emit("reshape", [turned], {}, n.temp(x, (count, 1, width)))
    right = n.emit("reshape", [turned], {}, n.temp(x, (1, count, width)))
    same = binary(n, "eq", left, right, n.temp(x, (count, count, width), "bool"))
    less = binary(n, "lt", right, left, n.temp(x, (count, count, width), "bool"))  # slice j before slice i

    def numbers(v: Value) -> Value:
        return n.emit("cast", [v], {"to": "i64"}, n.temp(v, dtype="i64"))

    def total(v: Value, over: int) -> Value:
        shape = tuple(d for a, d in enumerate(v.dims()) if a != over)
        return n.emit("sum_axis", [v], {"axes": [over]}, n.temp(v, shape))

    def equal(v: Value, number: int) -> Value:
        return binary(n, "eq", v, n.const(np.int64(number), "i64"), n.temp(v, dtype="bool"))

    agreed = n.emit("cumprod", [numbers(same)], {"axis": 2, "exclusive": True}, n.temp(same, dtype="i64"))
    before = total(binary(n, "mul", agreed, numbers(less)), 2)
    alike = numbers(equal(total(numbers(same), 2), width))
    earlier = n.const(np.tril(np.ones((count, count), np.int64), -1), "i64", "earlier")
    first = equal(total(binary(n, "mul", alike, earlier), 1), 0)
    if n.attrs.get("sorted", 1):
        order = before
    else:
        order = n.emit("expand", [n.const(np.arange(count, dtype=np.int64).reshape(1, -1), "i64", "places")], {}, n.temp(before))
        firsts = n.emit("argmax_axis", [alike], {"axis": 1}, n.temp(alike, (count,)))  # of each slice: where its like stands first
        place = n.emit("reshape", [firsts], {}, n.temp(alike, (count, 1)))
        order = numbers(binary(n, "lt", order, place, n.temp(order, dtype="bool")))
    chosen = n.emit("reshape", [numbers(first)], {}, n.temp(before, (1, count)))
    inverse = total(binary(n, "mul", order, chosen), 1)
    late = n.emit("where", [first, inverse, n.const(np.int64(count), "i64")], {}, n.temp(inverse))
    sorted_first = n.emit("argsort", [late], {"axis": 0}, n.temp(inverse))
    flags = n.emit("gather", [first, sorted_first], {}, n.temp(first))
    found = n.emit("nonzero", [flags], {}, n.temp(x, (1, None), "i64"))
    at = n.emit("gather", [sorted_first, n.emit("squeeze", [found], {"axes": [0]}, n.temp(x, (None,), "i64"))], {}, n.temp(x, (None,), "i64"))
    results: List[Tuple[str, List[Value], Dict[str, Any]]] = [("gather", [x, at], {"axis": axis}), ("identity", [at], {}), ("identity", [inverse], {}), ("gather", [total(alike, 1), at], {})]
    for i, (op, inputs, attrs) in enumerate(results):
        if n.wants(i):
            out = n.out(i)
            out.shape = (count,) if i == 2 else (None,) if i else tuple(None if a == axis else d for a, d in enumerate(dims))
            n.emit(op, inputs, attrs, out)
