"""What is tried: for each op of the registry, element types x shapes x attributes.

A case is (inputs, attrs, out_dtype, out_shape, label). Values mix random ones with the awkward: NaN,
infinities, -0, limits, ties, zero divisors. The random numbers are seeded by op and case, so that a case
is the same in every run and on every machine."""

import dataclasses
import importlib
import json
import pathlib
import zlib

import ml_dtypes
import numpy as np

from library import REPO
from tensors import DTYPES, Tensor

REGISTRY = json.loads((REPO / "ops/ops.json").read_text())
OPS = {row["name"]: row for row in REGISTRY["ops"]}
CLASSES = REGISTRY["vocabulary"]["dtypes"]


def dtypes_of(text):
    out = []
    for word in text.split():
        out += dtypes_of(CLASSES[word]) if word in CLASSES else [word]
    return list(dict.fromkeys(out))


@dataclasses.dataclass
class Case:
    op: str
    inputs: list
    attrs: dict
    out_dtype: str
    out_shape: tuple
    label: str
    inplace: int = None  # the input whose memory the output takes
    base: "Case" = None  # elementwise and large: this one, repeated along the last axis
    more: tuple = ()  # further outputs: (dtype, shape)
    summed: tuple = None  # (element type, number of terms) that the tolerance goes by, when the row does not tell

    def __str__(self):
        return f"{self.op}({', '.join(map(str, self.inputs))}; {self.attrs}) >> {self.out_dtype}{list(self.out_shape)} [{self.label}]"


# -- values


FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, np.nan, np.inf, -np.inf, 3.0, -7.0, 1e-8, 65504.0, -3e38, 1e-45, 100.7]


def awkward(dtype):
    d = DTYPES[dtype]
    if d.kind == "F":
        return np.array(FLOATS).astype(d.array)
    if d.kind == "B":
        return np.array([False, True])
    if d.kind == "T":
        return np.array([-1, 1] if dtype == "t1" else [-1, 0, 1], np.int8)
    low, high = d.lowest, d.highest
    return np.array([v for v in (low, low + 1, -1, 0, 1, 2, high - 1, high) if low <= v <= high], d.array)


def values(rng, dtype, shape, plain=False):
    """`plain`: no NaN or infinities, and small enough that sums stay finite."""
    d = DTYPES[dtype]
    n = int(np.prod(shape, dtype=np.int64))
    if d.kind == "F":
        v = (rng.standard_normal(n) * (1 if plain else 4)).astype(d.array)
    elif d.kind == "B":
        v = rng.random(n) < 0.5
    elif d.kind == "T":
        v = rng.choice(awkward(dtype), n)
    else:
        v = rng.integers(d.lowest, d.highest, n, d.array, endpoint=True)
    if n and not plain:
        pool = awkward(dtype)
        some = rng.random(n) < 0.4
        v = np.where(some, rng.choice(pool, n), v) if d.array is not ml_dtypes.float8_e5m2 and d.array is not ml_dtypes.bfloat16 \
            else np.where(some, rng.choice(pool.astype(np.float32), n), v.astype(np.float32)).astype(d.array)
    return v.astype(d.array).reshape(shape)


def tensor(rng, dtype, shape, plain=False):
    return Tensor(dtype, values(rng, dtype, shape, plain))


def sliced(rng, dtype, shape, plain=False):
    """The same shape, as every second or third element of something larger, not from its start."""
    big = tuple(n * 2 + 1 if i % 2 == 0 else n + 3 for i, n in enumerate(shape))
    whole = values(rng, dtype, big, plain)
    index = tuple(slice(1, 1 + 2 * n, 2) if i % 2 == 0 else slice(2, 2 + n) for i, n in enumerate(shape))
    return Tensor(dtype, whole[index], whole, index)


# -- shapes

ONE = {"empty": (0, 3), "scalar": (), "one": (1,), "odd": (5, 7), "rank4": (2, 3, 1, 5), "long": (540,)}
TWO = {
    "empty": [(0, 3), (1, 3)], "scalar": [(), ()], "one": [(1,), (1,)], "odd": [(5, 7), (5, 7)],
    "row": [(4, 9), (9,)], "column": [(4, 9), (4, 1)], "left": [(7,), (3, 7)], "both": [(4, 1, 5), (3, 1)],
    "scalar right": [(6, 5), ()], "scalar left": [(), (13,)], "long": [(540,), (540,)],
}
LARGE, REPEATS = (3, 400), 100  # 120,000 elements: several blocks of work


def enlarge(case):
    """The case repeated, so that it is split among threads and the reference stays cheap."""
    def repeat(t):
        return Tensor(t.dtype, np.tile(t.values, (1,) * (t.values.ndim - 1) + (REPEATS,)))
    shape = (*case.out_shape[:-1], case.out_shape[-1] * REPEATS)
    return dataclasses.replace(case, inputs=[repeat(t) for t in case.inputs], out_shape=shape, base=case)


def shapes_for(n_in):
    if n_in == 1:
        return {k: [v] for k, v in ONE.items()}
    if n_in == 2:
        return TWO
    return {k: v + [v[0]] * (n_in - 2) for k, v in TWO.items()} | {"third": [(1, 5), (5,), (4, 1)]}


# -- attributes

ATTRIBUTES = {}  # of maps, from the files of families; the same for every element type


def attribute_sets(op, dtype):
    """Ways to call an op, for one element type. The first is the plainest."""
    d = DTYPES[dtype]
    is_float, signed = d.kind == "F", d.lowest < 0
    if op in ("div", "floor_div"):
        masks = [{}, {"div_by_zero_mask": 3}, {"div_by_zero_mask": 0}]
        return masks + ([{"div_by_zero_mask": -0.5}, {"div_by_zero_mask": float("inf")}] if is_float else
                        [{"div_by_zero_mask": d.highest}, {"div_by_zero_mask": d.lowest}])
    if op == "recip":
        return [{}, {"div_by_zero_mask": 7.25}, {"div_by_zero_mask": float("nan")}]
    if op in ("min", "max"):
        return [{}, {"nan": "ignore"}, {"nan": "propagate"}]
    if op == "clamp":
        sets = [{}, {"min": 0}, {"max": 1}, {"min": -1, "max": 1}, {"min": 1, "max": 0}, {"min": 0, "max": 1, "nan": "ignore"}]
        return sets + ([{"min": -0.1, "max": 0.1}, {"min": float("-inf"), "max": float("inf")}, {"max": 1e300}] if is_float
                       else [{"min": -1000000, "max": 1 << 40}, {"min": d.lowest, "max": d.highest}])
    if op == "relu":
        sets = [{}, {"alpha": 1}, {"clamp_max": 1}, {"clamp_min": -1, "clamp_max": 2}, {"clamp_min": 0}]
        return sets + ([{"negative_slope": 0.01}, {"alpha": -0.5, "clamp_min": -1.5}, {"negative_slope": float("inf")}]
                       if is_float else [{"alpha": 3}, {"negative_slope": -2, "clamp_max": 5}])
    if op == "round":
        return [{}, {"mode": "half_even"}, {"mode": "half_away"}]
    if op == "fill":
        sets = [{}, {"value": min(1, d.highest)}]
        if is_float:
            return sets + [{"value": 0.1}, {"value": float("inf")}, {"value": float("nan")}, {"value": -3}]
        return sets + ([{"value": True}] if d.kind == "B" else [{"value": d.highest}, {"value": d.lowest}])
    if op == "fill_nan_like":
        return [{}, {"value": -1.5}, {"value": float("inf")}]
    if op in ATTRIBUTES:
        return ATTRIBUTES[op]
    if op in ("shl", "shr"):
        return [{"bits": n} for n in (0, 1, d.bits - 1, d.bits, d.bits + 3, 70, 1 << 40)]
    return [{}]


def accumulators(op, dtype):
    """The acc attributes the catalog allows for this input type, with their output types."""
    d = DTYPES[dtype]
    wider = {"f8": ["f16", "bf16", "f32", "f64"], "bf16": ["f32", "f64"], "f16": ["f32", "f64"], "f32": ["f64"], "f64": []}
    if d.kind == "F":
        inner = [dtype] + wider[dtype]
    elif d.kind in "SU" and dtype != "bitset":
        letter = "i" if d.kind == "S" else "u"
        inner = [dtype] + [f"{letter}{w}" for w in (8, 16, 32, 64) if w > d.bits] + ["f32", "f64"]
    else:
        return []
    ways = []
    for i, a in enumerate(inner):
        ways.append((a, a) if i % 2 else ([a], a))
        outs = ["f16", "f32", "f64", "bf16", "f8"] if DTYPES[a].kind == "F" else ["i8", "u16", "i4", "f32", "i64", "u1", "f16"]
        first = zlib.crc32(f"{op} {dtype} {a}".encode())
        ways += [([a, o], o) for o in dict.fromkeys((outs[first % len(outs)], outs[(first + 2) % len(outs)]))]
    return ways


# -- by kind of op


def rng_for(*key):
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def out_dtypes(row, dtype):
    rule = row["out"]
    if rule in ("same", "acc") or rule.startswith("like:"):
        return [dtype]
    return list(dict.fromkeys(dtype if w == "same" else w for w in rule.split()))


def out_shape_of(shapes):
    return tuple(np.broadcast_shapes(*shapes))


def map_inputs(row, rng, dtype, shapes, make=tensor):
    inputs = []
    for port, shape in zip(row["inputs"], shapes):
        own = dtype
        if isinstance(port, dict):
            allowed = dtypes_of(port["dtypes"].replace("same", "")) + [dtype] * ("same" in port["dtypes"])
            own = allowed[int(rng.integers(len(allowed)))]
        inputs.append(make(rng, own, shape))
    return inputs


def map_cases(op, row):
    required = [p for p in row["inputs"] if not (isinstance(p, str) and p.endswith("?"))]
    for dtype in dtypes_of(row["dtypes"]):
        for out in out_dtypes(row, dtype):
            for name, shapes in shapes_for(len(required)).items():
                for n, attrs in enumerate(attribute_sets(op, dtype)):
                    rng = rng_for(op, dtype, out, name, n)
                    inputs = map_inputs(row, rng, dtype, shapes)
                    shape = out_shape_of(shapes)
                    yield Case(op, inputs, attrs, out, shape, name)
                    if n == 0 and out == inputs[0].dtype and inputs[0].values.shape == shape:
                        yield Case(op, map_inputs(row, rng, dtype, shapes), attrs, out, shape, f"{name}, in place", 0)
            attrs = attribute_sets(op, dtype)[0]
            for name in ("odd", "row", "both", "rank4"):
                shapes = shapes_for(len(required)).get(name)
                if shapes:
                    rng = rng_for(op, dtype, out, name, "sliced")
                    yield Case(op, map_inputs(row, rng, dtype, shapes, sliced), attrs, out, out_shape_of(shapes), f"{name}, sliced")
            rng = rng_for(op, dtype, out, "large")
            yield enlarge(Case(op, map_inputs(row, rng, dtype, [LARGE] * len(required)), attrs, out, LARGE, "large"))
            if len(required) == 2:
                yield enlarge(Case(op, map_inputs(row, rng, dtype, [LARGE, LARGE[1:]]), attrs, out, LARGE, "large, row"))
        if "acc" in row.get("flags", []):
            yield from map_acc_cases(op, row, dtype)
        if row["shape"] == "scalar_or_same":
            for name, shape in ONE.items():
                rng = rng_for(op, dtype, name, "all")
                yield Case(op, [tensor(rng, dtype, shape)], {}, "bool", (), f"{name}, over all")
                yield Case(op, [tensor(rng, dtype, shape, True)], {}, "bool", (), f"{name}, over all, plain")
        if op in ("shl", "shr"):
            for name, shapes in TWO.items():
                rng = rng_for(op, dtype, name, "by tensor")
                yield Case(op, [tensor(rng, dtype, s) for s in shapes], {}, dtype, out_shape_of(shapes), f"{name}, by tensor")


def map_acc_cases(op, row, dtype):
    for acc, out in accumulators(op, dtype):
        for name, shapes in (("odd", [(5, 7), (7,)]), ("long", [(540,), (540,)]), ("sliced", [(3, 5), (3, 5)])):
            rng = rng_for(op, dtype, str(acc), out, name)
            shapes = shapes[: len(row["inputs"])]
            make = sliced if name == "sliced" else tensor
            yield Case(op, [make(rng, dtype, s) for s in shapes], {"acc": acc}, out, out_shape_of(shapes), f"acc, {name}")


def cast_cases(op, row):
    modes = row["attrs"]["rounding_mode"]["values"]
    for dtype in dtypes_of(row["dtypes"]):
        for to in dtypes_of(row["attrs"]["to"]["dtypes"]):
            float_to_int = DTYPES[dtype].kind == "F" and DTYPES[to].kind in "SUT"
            ways = [{}, {"saturate": False}] + ([{"rounding_mode": m, "saturate": s} for m in modes for s in (True, False)]
                                                if float_to_int else [])
            for n, way in enumerate(ways):
                for name in ("odd", "long") if n < 2 else ("long",):
                    rng = rng_for(op, dtype, to, name, n)
                    v = tensor(rng, dtype, ONE[name])
                    if DTYPES[dtype].kind == "F" and name == "long":  # many ties
                        half = np.arange(200, dtype=np.float32).reshape(-1)[: v.values.size] / 2 - 50
                        v.values.ravel()[:200] = half.astype(DTYPES[dtype].array)
                    yield Case(op, [v], {"to": to, **way}, to, ONE[name], name)
            rng = rng_for(op, dtype, to, "others")
            for name in ("empty", "scalar", "one"):
                yield Case(op, [tensor(rng, dtype, ONE[name])], {"to": to}, to, ONE[name], name)
            yield Case(op, [sliced(rng, dtype, (5, 6))], {"to": to}, to, (5, 6), "sliced")
            if dtype == to:
                yield Case(op, [tensor(rng, dtype, (5, 7))], {"to": to}, to, (5, 7), "in place", 0)


REDUCE = {
    "last": ((5, 7), -1), "first": ((5, 7), 0), "all": ((3, 4, 5), [0, 1, 2]), "outer and inner": ((3, 4, 5), [0, 2]),
    "middle": ((3, 4, 5), [1]), "none": ((3, 4), []), "twice": ((3, 4), [1, -1]), "one": ((1,), [0]),
    "empty": ((3, 0), [1]), "empty kept": ((0, 3), [1]), "empty all": ((0, 0, 2), [0, 1, 2]), "long": ((3, 2051), [1]),
    "tall": ((1031, 3), [0]), "wide": ((4, 1500), [0]),
}


def reduced_shape(shape, axes, keep):
    gone = {a % len(shape) for a in ([axes] if isinstance(axes, int) else axes)}
    return tuple(1 if a in gone else n for a, n in enumerate(shape) if keep or a not in gone)


def reduce_cases(op, row):
    nans = [{}, {"nan": "ignore"}] if "nan" in row["attrs"] else [{}]
    for dtype in dtypes_of(row["dtypes"]):
        for name, (shape, axes) in REDUCE.items():
            for keep in (False, True):
                for extra in nans:
                    for plain in (True, False):
                        if not plain and name in ("long", "tall") and "nan" not in row["attrs"]:
                            continue  # regrouped, infinities may meet that otherwise would not
                        rng = rng_for(op, dtype, name, keep, str(extra), plain)
                        attrs = {"axes": axes, **extra, **({"keepdims": True} if keep else {})}
                        x = tensor(rng, dtype, shape, plain)
                        yield Case(op, [x], attrs, dtype, reduced_shape(shape, axes, keep), name)
        if "order" in row["attrs"]:
            for shape, axes, order in (((3, 2051), [1], "serial"), ((4, 5, 35), [0, 2], "lanes"), ((4, 5, 31), [2], "lanes"), ((2, 32), [-1], "lanes")):
                x = tensor(rng_for(op, dtype, "order", str(shape), order), dtype, shape, True)
                yield Case(op, [x], {"axes": axes, "order": order}, dtype, reduced_shape(shape, axes, False), f"order {order}")
        for name, shape, axes in (("sliced", (5, 6), [1]), ("sliced", (5, 6), [0]), ("sliced", (3, 4, 5), [0, 2])):
            rng = rng_for(op, dtype, name, shape, str(axes))
            yield Case(op, [sliced(rng, dtype, shape, True)], {"axes": axes}, dtype, reduced_shape(shape, axes, False), name)
        rng = rng_for(op, dtype, "large")
        for shape, axes in (((40, 3001), [1]), ((300, 700), [0]), ((150011,), [0])):
            yield Case(op, [tensor(rng, dtype, shape, True)], {"axes": axes}, dtype, reduced_shape(shape, axes, False), "large")
        yield Case(op, [tensor(rng, dtype, (4, 1), True)], {"axes": [1], "keepdims": True}, dtype, (4, 1), "in place", 0)
        if "acc" in row.get("flags", []):
            for acc, out in accumulators(op, dtype):
                # a long product of integers leaves the range of floats here or there, as it is grouped
                for name in ("last", "first", "outer and inner", *(["long"] if op != "prod_axis" else [])):
                    shape, axes = REDUCE[name]
                    rng = rng_for(op, dtype, str(acc), out, name)
                    yield Case(op, [tensor(rng, dtype, shape, True)], {"axes": axes, "acc": acc}, out,
                               reduced_shape(shape, axes, False), f"acc, {name}")


def position_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for out in ("i64", "i32"):
            for name, shape, axis in (("last", (5, 7), -1), ("first", (5, 7), 0), ("middle", (3, 4, 5), 1), ("one", (1,), 0),
                                      ("long", (3, 2051), 1), ("wide", (5, 1500), 0), ("empty kept", (0, 3), 1), ("large", (40, 3001), 1)):
                for attrs in ({}, {"select_first": False}, {"keepdims": True}):
                    for plain in (True, False):
                        rng = rng_for(op, dtype, out, name, str(attrs), plain)
                        x = tensor(rng, dtype, shape, plain)
                        yield Case(op, [x], {"axis": axis, **attrs}, out, reduced_shape(shape, axis, "keepdims" in attrs), name)
            for attrs in ({}, {"select_first": False}):
                rng = rng_for(op, dtype, out, "large", str(attrs))
                yield Case(op, [tensor(rng, dtype, (150011,), True)], {"axis": 0, **attrs}, out, (), "large")
            rng = rng_for(op, dtype, out, "sliced")
            yield Case(op, [sliced(rng, dtype, (5, 6))], {"axis": 1}, out, (5,), "sliced")
            yield Case(op, [sliced(rng, dtype, (5, 6))], {"axis": 0}, out, (6,), "sliced")


MATMUL = {
    "odd": ((5, 7), (7, 3)), "one": ((1, 1), (1, 1)), "vectors": ((9,), (9,)), "vector left": ((7,), (7, 5)),
    "vector right": ((5, 7), (7,)), "no rows": ((0, 3), (3, 4)), "no columns": ((2, 3), (3, 0)), "nothing summed": ((2, 0), (0, 3)),
    "stacked": ((3, 4, 5), (3, 5, 2)), "broadcast": ((2, 1, 3, 4), (5, 4, 3)), "broadcast right": ((4, 3, 5), (5, 6)),
    "broadcast left": ((3, 5), (4, 5, 6)), "stacked vector": ((3, 4, 5), (5,)), "tiles": ((29, 33), (33, 67)),
    "long k": ((3, 531), (531, 18)), "wide": ((3, 5), (5, 531)), "row": ((1, 301), (301, 201)), "row and column": ((1, 67), (67, 1)),
    "stacked rows": ((3, 1, 41), (41, 70)), "rows, stacked": ((3, 2, 41), (3, 41, 70)), "stacked as one": ((5, 3, 4), (4, 9)),
}


def matmul_shape(a, b):
    return np.matmul(np.zeros(a, np.int8), np.zeros(b, np.int8)).shape


def swapped(shape):
    return shape if len(shape) < 2 else (*shape[:-2], shape[-1], shape[-2])


def matmul_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for name, (a, b) in MATMUL.items():
            for ta in (False, True):
                for tb in (False, True):
                    rng = rng_for(op, dtype, name, ta, tb)
                    attrs = {**({"transpose_a": True} if ta else {}), **({"transpose_b": True} if tb else {})}
                    inputs = [tensor(rng, dtype, swapped(a) if ta else a, True), tensor(rng, dtype, swapped(b) if tb else b, True)]
                    yield Case(op, inputs, attrs, dtype, matmul_shape(a, b), name)
        rng = rng_for(op, dtype, "others")
        yield Case(op, [tensor(rng, dtype, (3, 5)), tensor(rng, dtype, (5, 4))], {}, dtype, (3, 4), "awkward values")
        yield Case(op, [sliced(rng, dtype, (5, 6), True), sliced(rng, dtype, (6, 4), True)], {}, dtype, (5, 4), "sliced")
        yield Case(op, [tensor(rng, dtype, (4, 4), True), tensor(rng, dtype, (4, 4), True)], {}, dtype, (4, 4), "in place", 0)
        yield Case(op, [tensor(rng, dtype, (150, 200), True), tensor(rng, dtype, (200, 600), True)], {}, dtype, (150, 600), "large")
        yield Case(op, [tensor(rng, dtype, (3, 130), True), tensor(rng, dtype, (130, 2101), True)], {}, dtype, (3, 2101), "large, few rows")
        yield Case(op, [tensor(rng, dtype, (2, 130), True), tensor(rng, dtype, (1101, 130), True)], {"transpose_b": True}, dtype, (2, 1101),
                   "large, few rows")
        for acc, out in accumulators(op, dtype):
            for name in ("odd", "vector right", "stacked", "long k"):
                a, b = MATMUL[name]
                rng = rng_for(op, dtype, str(acc), out, name)
                yield Case(op, [tensor(rng, dtype, a, True), tensor(rng, dtype, b, True)], {"acc": acc}, out, matmul_shape(a, b),
                           f"acc, {name}")


def gather_cases(op, row):
    shapes = {"rows": ((9, 5), (4,), 0), "columns": ((4, 9), (3,), 1), "middle": ((3, 5, 4), (2, 3), 1), "scalar": ((7, 3), (), 0),
              "negative axis": ((3, 4, 5), (6,), -1), "empty": ((4, 3), (0,), 0), "long": ((6, 700), (11,), 0), "vector": ((8,), (5,), 0)}
    for dtype in dtypes_of(row["dtypes"]):
        for own in dtypes_of(row["inputs"][1]["dtypes"]):
            for name, (data, idx, axis) in shapes.items():
                rng = rng_for(op, dtype, own, name)
                n = data[axis]
                i = rng.integers(-n if DTYPES[own].kind == "S" else 0, n, idx)
                out = (*data[: axis % len(data)], *idx, *data[axis % len(data) + 1 :])
                attrs = {} if axis == 0 else {"axis": axis}
                yield Case(op, [tensor(rng, dtype, data), Tensor(own, i.astype(DTYPES[own].array))], attrs, dtype, out, name)
            rng = rng_for(op, dtype, own, "sliced")
            i = rng.integers(0, 5, (2, 4)).astype(DTYPES[own].array)
            yield Case(op, [sliced(rng, dtype, (5, 6)), Tensor(own, i[:, ::2], i, (slice(None), slice(None, None, 2)))], {}, dtype,
                       (2, 2, 6), "sliced")
        rng = rng_for(op, dtype, "large")
        i = rng.integers(0, 40, 300)
        yield Case(op, [tensor(rng, dtype, (40, 600)), Tensor("i64", i)], {}, dtype, (300, 600), "large")
        rng = rng_for(op, dtype, "in place")
        i = Tensor("i64", np.array([2, 0, 1]))
        yield Case(op, [tensor(rng, dtype, (3, 5)), i], {}, dtype, (3, 5), "in place", 0)


ALL_FLOATS = dtypes_of("F")


def sdpa_cases(op, row):
    split = [((2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 6)), ((1, 1, 1, 4), (1, 1, 1, 4), (1, 1, 1, 4)), ((2, 2, 3, 5), (2, 2, 3, 5), (2, 2, 3, 5)),
             ((1, 2, 4, 3), (1, 1, 0, 3), (1, 1, 0, 3)), ((0, 2, 4, 3), (0, 1, 3, 3), (0, 1, 3, 3)), ((1, 2, 3, 520), (1, 2, 40, 520), (1, 2, 40, 530))]
    others = [{}, {"scale": 0.5}, {"causal": True}, {"kv_len": 0}]
    for dtype in ALL_FLOATS:
        for kv in ALL_FLOATS:
            for n, (q, k, v) in enumerate(split):
                for m, attrs in enumerate(others + [{"kv_len": max(0, k[2] - 2), "causal": True}]):
                    rng = rng_for(op, dtype, kv, n, m)
                    inputs = [tensor(rng, dtype, q, True), tensor(rng, kv, k, True), tensor(rng, kv, v, True)]
                    yield Case(op, inputs, attrs, dtype, (*q[:3], v[3]), f"split {n}")
            for n, (attrs, q, k, v) in enumerate([
                ({"heads": 4, "kv_heads": 2}, (2, 3, 24), (2, 5, 12), (2, 5, 8)), ({}, (2, 3, 6), (2, 4, 6), (2, 4, 6)),
                ({"heads": 2, "causal": True}, (1, 5, 8), (1, 5, 8), (1, 5, 8)), ({"heads": 4, "kv_heads": 2}, (3, 24), (7, 3, 12), (7, 3, 10)),
                ({"heads": 3, "kv_len": 4}, (2, 9), (6, 2, 9), (6, 2, 9)), ({}, (2, 5), (3, 2, 5), (3, 2, 5))]):
                rng = rng_for(op, dtype, kv, n, "packed")
                inputs = [tensor(rng, dtype, q, True), tensor(rng, kv, k, True), tensor(rng, kv, v, True)]
                heads, kv_heads = attrs.get("heads", 1), attrs.get("kv_heads", attrs.get("heads", 1))
                yield Case(op, inputs, attrs, dtype, (*q[:-1], heads * v[-1] // kv_heads), f"packed {n}")
        for mask in ["bool", "u8"] + ALL_FLOATS:
            for n, shape in enumerate([(2, 4, 3, 5), (3, 5), (2, 1, 1, 5), (1, 4, 3, 1), (), (5,)]):
                rng = rng_for(op, dtype, mask, n, "mask")
                inputs = [tensor(rng, dtype, (2, 4, 3, 8), True), tensor(rng, dtype, (2, 2, 5, 8), True), tensor(rng, dtype, (2, 2, 5, 6), True)]
                m = tensor(rng, mask, shape, True)
                if DTYPES[mask].kind == "F" and m.values.size:
                    m.values.ravel()[0] = -np.inf
                yield Case(op, inputs + [m], {"causal": True} if n % 2 else {}, dtype, (2, 4, 3, 6), f"mask {n}")
        rng = rng_for(op, dtype, "others")
        for lens in ([5, 3], [0, 1]):
            inputs = [tensor(rng, dtype, (2, 4, 3, 8), True), tensor(rng, "f32", (2, 2, 5, 8), True), tensor(rng, "f16", (2, 2, 5, 6), True)]
            yield Case(op, inputs, {"kv_len": lens, "causal": True}, dtype, (2, 4, 3, 6), "lengths")
        inputs = [sliced(rng, dtype, (2, 4, 3, 8), True), sliced(rng, dtype, (2, 2, 5, 8), True), sliced(rng, dtype, (2, 2, 5, 6), True)]
        yield Case(op, inputs, {}, dtype, (2, 4, 3, 6), "sliced")
        yield Case(op, [tensor(rng, dtype, (2, 4, 30, 32), True), tensor(rng, dtype, (2, 2, 70, 32), True),
                        tensor(rng, dtype, (2, 2, 70, 32), True)], {"causal": True}, dtype, (2, 4, 30, 32), "large")
        yield Case(op, [tensor(rng, dtype, (1, 2, 3, 4), True) for _ in range(3)], {}, dtype, (1, 2, 3, 4), "in place", 0)
    yield from sdpa_bf16_cases(op, ALL_FLOATS)


def sdpa_bf16_cases(op, dtypes):
    """act="bf16": heads of keys, features and keys that fill no step of 32, or several; rows that see nothing."""
    shapes = {"one": (1, 1, 1, 1, 1, 1, 1), "odd": (2, 4, 2, 3, 33, 5, 7), "head": (1, 2, 1, 2, 40, 33, 3), "steps": (1, 6, 2, 5, 70, 80, 48),
              "decode": (1, 9, 3, 1, 75, 64, 64), "many": (2, 4, 1, 20, 97, 32, 64), "no keys": (1, 2, 1, 3, 0, 4, 4), "no features": (1, 2, 2, 2, 3, 0, 4)}
    for dtype in dtypes:
        for n, (name, (b, h, hk, tq, tk, dh, dv)) in enumerate(shapes.items()):
            for m, attrs in enumerate([{}, {"causal": True}, {"kv_len": tk * 2 // 3}, {"kv_len": min(2, tk), "causal": True, "scale": 0.3}]):
                for kv in (dtype,) if dtype in ("f8", "f64") else (dtype, "f16"):
                    rng = rng_for(op, dtype, kv, name, m, "bf16")
                    attrs = {**attrs, "act": "bf16"}
                    inputs = [tensor(rng, dtype, (b, h, tq, dh), True), tensor(rng, kv, (b, hk, tk, dh), True),
                              tensor(rng, kv, (b, hk, tk, dv), True)]
                    yield Case(op, inputs, attrs, dtype, (b, h, tq, dv), f"bf16, {name}")
                    own = {**attrs, "heads": h, "kv_heads": hk}
                    if dh:
                        inputs = [tensor(rng, dtype, (b, tq, h * dh), True), tensor(rng, kv, (b, tk, hk * dh), True),
                                  tensor(rng, kv, (b, tk, hk * dv), True)]
                        yield Case(op, inputs, own, dtype, (b, tq, h * dv), f"bf16, {name}, packed")
            for mask in ("bool", "u8", "f32"):
                rng = rng_for(op, dtype, mask, name, "bf16 mask")
                inputs = [tensor(rng, dtype, (b, h, tq, dh), True), tensor(rng, dtype, (b, hk, tk, dh), True), tensor(rng, dtype, (b, hk, tk, dv), True),
                          tensor(rng, mask, ((b, h, tq, tk), (1, 1, tq, tk), (tk,))[n % 3], True)]
                if mask == "f32" and tk:
                    inputs[3].values[..., 0] = -np.inf
                yield Case(op, inputs, {"act": "bf16", "causal": n % 2 == 0}, dtype, (b, h, tq, dv), f"bf16, {name}, mask")
        rng = rng_for(op, dtype, "bf16, decode")
        inputs = [tensor(rng, dtype, (3, 24), True), tensor(rng, dtype, (37, 3, 12), True), tensor(rng, dtype, (37, 3, 10), True)]
        yield Case(op, inputs, {"act": "bf16", "heads": 4, "kv_heads": 2, "kv_len": [35, 0, 37]}, dtype, (3, 20), "bf16, lengths")


def attn_cases(op, row):
    for dtype in ALL_FLOATS:
        for kv in ALL_FLOATS:
            for n, (b, h, dh, t) in enumerate([(2, 2, 4, 5), (1, 1, 1, 1), (3, 4, 8, 9), (2, 2, 3, None), (0, 2, 2, 3), (2, 2, 2, 0)]):
                for attrs in ({}, {"scale": 0.25}):
                    rng = rng_for(op, dtype, kv, n, str(attrs))
                    cache = (t, h, dh) if t is not None else (h, dh)
                    inputs = [tensor(rng, dtype, (b, h * dh), True), tensor(rng, kv, cache, True), tensor(rng, kv, cache, True),
                              tensor(rng, dtype, (h * dh, h * dh), True)]
                    inputs[3].values = (inputs[3].values.astype(np.float32) / 2).astype(DTYPES[dtype].array)
                    yield Case(op, inputs, attrs, dtype, (b, h * dh), f"shape {n}")
        rng = rng_for(op, dtype, "others")
        yield Case(op, [sliced(rng, dtype, (2, 6), True), sliced(rng, dtype, (4, 2, 3), True), sliced(rng, dtype, (4, 2, 3), True),
                        sliced(rng, dtype, (6, 6), True)], {}, dtype, (2, 6), "sliced")
        yield Case(op, [tensor(rng, dtype, (3, 6), True), tensor(rng, dtype, (4, 2, 3), True), tensor(rng, dtype, (4, 2, 3), True),
                        tensor(rng, dtype, (6, 6), True)], {}, dtype, (3, 6), "in place", 0)
        yield Case(op, [tensor(rng, dtype, (70, 64), True), tensor(rng, dtype, (50, 4, 16), True), tensor(rng, dtype, (50, 4, 16), True),
                        tensor(rng, dtype, (64, 64), True)], {}, dtype, (70, 64), "large")


# cases_FAMILY.py: CASES, from op to its function
SPECIAL = {}
for path in sorted(pathlib.Path(__file__).parent.glob("cases_*.py")):
    SPECIAL.update(importlib.import_module(path.stem).CASES)
SPECIAL |= {"sdpa": sdpa_cases, "attn": attn_cases, "cast": cast_cases, "matmul": matmul_cases, "gather": gather_cases}


def cases_for(op):
    row = OPS[op]
    if op in SPECIAL:
        return SPECIAL[op](op, row)
    if row["class"] == "map":
        return map_cases(op, row)
    if row["shape"] == "argreduce":
        return position_cases(op, row)
    if row["class"] == "reduce":
        return reduce_cases(op, row)
    return iter(())
