"""Ops whose places are turned round, found in data, or counted."""

import math

import numpy as np

import reference_index as ref
from cases import Case, dtypes_of, rng_for, sliced, tensor
from cases_move import WIDTHS
from tensors import DTYPES, Tensor

TURNED = {
    "reverse": [
        ("all", (3, 4), {}), ("first", (5, 3), {"axes": 0}), ("last", (5, 3), {"axes": [-1]}), ("twice", (3, 4, 2), {"axes": [1, -2]}), ("vector", (9,), {}),
        ("none", (3, 2), {"axes": []}), ("scalar", (), {}), ("empty", (0, 3), {}), ("large", (301, 400), {}), ("large, first", (301, 400), {"axes": [0]})],
    "roll": [
        ("one", (5, 3), {"shifts": 2, "axes": 0}), ("both", (5, 3), {"shifts": [1, -1], "axes": [0, 1]}), ("flat", (3, 4), {"shifts": 5}), ("far", (4, 3), {"shifts": [103], "axes": [-1]}),
        ("added", (7,), {"shifts": [2, 3], "axes": [0, 0]}), ("back", (7, 2), {"shifts": [-9], "axes": [0]}), ("limits", (5,), {"shifts": [-(1 << 63)], "axes": [0]}), ("nothing", (5, 2), {"shifts": [5], "axes": [0]}),
        ("empty", (0, 2), {"shifts": [1], "axes": [0]}), ("scalar", (), {"shifts": 3}), ("large", (301, 400), {"shifts": [7, 9], "axes": [0, 1]}), ("large, flat", (301, 400), {"shifts": [-12345]})],
    "depth_to_space": [(f"{mode} {label}", shape, {"block": b, "mode": mode}) for mode in ("DCR", "CRD") for label, shape, b in (
        ("plain", (2, 8, 3, 5), 2), ("one", (1, 4, 1, 1), 2), ("threes", (1, 18, 2, 3), 3), ("by one", (2, 3, 4, 5), 1), ("empty", (0, 4, 2, 2), 2), ("large", (2, 64, 30, 31), 4))],
    "space_to_depth": [(f"{mode} {label}", shape, {"block": b, "mode": mode}) for mode in ("DCR", "CRD") for label, shape, b in (
        ("plain", (2, 3, 4, 6), 2), ("one", (1, 1, 2, 2), 2), ("threes", (1, 2, 6, 9), 3), ("by one", (2, 3, 4, 5), 1), ("empty", (0, 4, 2, 2), 2), ("large", (2, 4, 120, 124), 4))],
    "trilu": [
        ("upper", (4, 5), {}), ("lower", (5, 4), {"upper": False}), ("above", (4, 5), {"k": 2}), ("below", (4, 5), {"k": -2, "upper": False}), ("beyond", (3, 4), {"k": 100}),
        ("far below", (3, 4), {"k": -(1 << 62)}), ("stacked", (2, 3, 4), {"k": 1}), ("one", (1, 1), {}), ("empty", (0, 3), {}), ("large", (301, 400), {"k": -7})],
}


def turned_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for i, (label, shape, attrs) in enumerate(TURNED[op]):
            if i > 3 and dtype not in WIDTHS:
                continue
            for make in (tensor, sliced) if all(shape) and shape and "large" not in label else (tensor,):
                rng = rng_for(op, dtype, label, make.__name__)
                x = make(rng, dtype, shape)
                want = getattr(ref, op)([x.values], attrs, ()) if op != "trilu" else x.values
                yield Case(op, [x], attrs, dtype, want.shape, label if make is tensor else f"{label}, sliced")
                if make is tensor and want.shape == shape and want.size:
                    yield Case(op, [tensor(rng, dtype, shape)], attrs, dtype, shape, f"{label}, in place", 0)


# -- indices


def indices(rng, dtype, n, shape):
    low = -n if DTYPES[dtype].kind == "S" else 0
    return Tensor(dtype, rng.integers(low, max(n, low + 1), shape).astype(DTYPES[dtype].array))


ELEMENTS = [("rows", (5, 4), (3, 4), 0), ("columns", (3, 7), (3, 9), 1), ("fewer", (5, 6), (2, 3), -1), ("vector", (9,), (4,), 0), ("rank 3", (3, 4, 5), (3, 2, 5), 1),
            ("empty", (4, 3), (0, 3), 0), ("large", (400, 300), (400, 310), 1)]
TUPLES = [("points", (4, 5), (3, 2), 0), ("rows", (4, 5), (6, 1), 0), ("shaped", (3, 4, 5), (2, 3, 2), 0), ("batch", (2, 4, 3), (2, 5, 1), 1), ("batch points", (2, 3, 4, 5), (2, 6, 2), 1),
          ("two batches", (2, 3, 4), (2, 3, 1), 2), ("one tuple", (4, 5), (2,), 0), ("no coordinates", (2, 3), (4, 0), 0), ("empty", (4, 3), (0, 2), 0), ("large", (400, 300), (410, 1), 0)]
INDEX_DTYPES = ["i64", "i32", "u8", "u16", "u32", "u64"]


def gather_cases(op, row):
    nd = op == "gather_nd"
    for k, dtype in enumerate(dtypes_of(row["dtypes"])):
        for i, (label, data, shape, extra) in enumerate(TUPLES if nd else ELEMENTS):
            if label == "large" and dtype not in ("f32", "i4"):
                continue
            for own in INDEX_DTYPES if dtype == "f32" and label != "large" else [INDEX_DTYPES[(i + k) % 3]]:
                for make in (tensor, sliced) if dtype in WIDTHS and label != "large" else (tensor,):
                    rng = rng_for(op, dtype, label, own, make.__name__)
                    x = make(rng, dtype, data)
                    n = min(data[extra : extra + shape[-1]], default=1) if nd else data[extra]
                    idx = indices(rng, own, min(n, 127), shape)
                    out = shape if not nd else shape[:-1] + data[extra + shape[-1] :]
                    attrs = {} if extra == 0 else {"batch_dims" if nd else "axis": extra}
                    yield Case(op, [x, idx], attrs, dtype, out, label if make is tensor else f"{label}, sliced")


def scatter_cases(op, row):
    nd = op == "scatter_nd"
    for k, dtype in enumerate(dtypes_of(row["dtypes"])):
        arithmetic = DTYPES[dtype].kind in "FSU" and dtype != "bitset"
        for i, (label, data, shape, extra) in enumerate(TUPLES if nd else ELEMENTS):
            if label == "large" or (nd and extra):
                continue
            for how in ("none", "add", "mul", "max", "min") if arithmetic else ("none",):
                own = INDEX_DTYPES[(i + k) % 6]
                rng = rng_for(op, dtype, label, own, how)
                n = min(data[: shape[-1]], default=1) if nd else data[extra]
                idx = indices(rng, own, n, shape)
                plain = how in ("add", "mul")
                updates = tensor(rng, dtype, shape if not nd else shape[:-1] + data[shape[-1] :], plain)
                attrs = ({"axis": extra} if extra else {}) | ({"reduction": how} if how != "none" else {})
                yield Case(op, [tensor(rng, dtype, data, plain), idx, updates], attrs, dtype, data, f"{label} {how}")
                if i < 2:
                    yield Case(op, [tensor(rng, dtype, data, plain), idx, updates], attrs, dtype, data, f"{label} {how}, in place", 0)
                    yield Case(op, [sliced(rng, dtype, data, plain), idx, updates], attrs, dtype, data, f"{label} {how}, sliced")


def one_hot_cases(op, row):
    for own in dtypes_of(row["dtypes"]):
        d = DTYPES[own]
        for out in dtypes_of("F S U bool") if own in ("i64", "u8") else ("f32", "i64"):
            for label, shape, depth, axis in (("last", (3, 4), 5, -1), ("first", (6,), 3, 0), ("middle", (2, 3), 4, 1), ("scalar", (), 4, -1), ("empty", (0, 2), 3, -1), ("no depth", (3,), 0, -1)):
                for attrs in ({}, {"on": 3, "off": 1}) if out != "bool" else ({}, {"on": False, "off": True}):
                    rng = rng_for(op, own, out, label, str(attrs))
                    v = rng.integers(max(d.lowest, -depth - 2), depth + 2, shape)
                    if v.size > 1:
                        v.flat[0] = min(d.highest, 2**62)
                    shape_out = list(shape)
                    shape_out.insert(axis if axis >= 0 else len(shape) + 1 + axis, depth)
                    yield Case(op, [Tensor(own, np.asarray(v).astype(d.array))], {"depth": depth, **({"axis": axis} if axis != -1 else {}), **attrs}, out, tuple(shape_out), label)


def scan_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for label, shape, axis in (("last", (5, 7), -1), ("first", (5, 7), 0), ("middle", (3, 4, 5), 1), ("vector", (9,), 0), ("one", (1,), 0), ("empty", (0, 3), 0), ("no rows", (3, 0), 0),
                                   ("wide", (3, 1100), 0), ("large", (40, 2000), 1)):
            for attrs in ({}, {"exclusive": True}, {"reverse": True}, {"exclusive": True, "reverse": True}) if label != "large" else ({},):
                rng = rng_for(op, dtype, label, str(attrs))
                x = tensor(rng, dtype, shape, op == "cumsum" or label in ("wide", "large"))
                if op == "cumprod" and label in ("wide", "large") and DTYPES[dtype].kind == "F":
                    x.values = np.sign(x.values.astype(np.float32)).astype(DTYPES[dtype].array)
                yield Case(op, [x], {"axis": axis, **attrs}, dtype, shape, label)
        rng = rng_for(op, dtype, "others")
        yield Case(op, [sliced(rng, dtype, (4, 5), True)], {"axis": 1}, dtype, (4, 5), "sliced")
        yield Case(op, [tensor(rng, dtype, (4, 5), True)], {"axis": 0}, dtype, (4, 5), "in place", 0)


def range_cases(op, row):
    for dtype in dtypes_of(row["out"]):
        d = DTYPES[dtype]
        ways = [{"limit": 1}, {"start": 1, "limit": 1}, {"start": 0, "limit": 0, "delta": 1}, {"limit": 7} if d.highest >= 7 else {"limit": 1}]
        if d.highest >= 7:
            ways += [{"start": 2, "limit": 7, "delta": 2}, {"start": 1, "limit": 700}]
        if d.lowest < -4:
            ways += [{"start": 5, "limit": -4, "delta": -2}, {"start": -3, "limit": 6, "delta": 3}]
        if d.kind == "F":
            ways += [{"start": 0.5, "limit": 3.0, "delta": 0.25}, {"start": 1.0, "limit": -1.0, "delta": -0.3}, {"limit": 120000}]
        if dtype == "i64":
            ways += [{"start": 2**62, "limit": 2**62 + 3}, {"start": -(2**63), "limit": 2**63 - 1, "delta": 2**62}, {"limit": 120000, "label": "large"}]
        for n, attrs in enumerate(ways):
            label = attrs.pop("label", "plain")
            start, limit, delta = attrs.get("start", 0), attrs["limit"], attrs.get("delta", 1)
            length = max(0, -((start - limit) // delta) if isinstance(start, int) and isinstance(limit, int) else math.ceil((limit - start) / delta))
            yield Case(op, [], attrs, dtype, (length,), f"{label} {n}")


def iota_cases(op, row):
    for dtype in dtypes_of(row["out"]):
        signed = DTYPES[dtype].lowest < 0
        for n, (shape, attrs) in enumerate((((5,), {}), ((3, 4), {}), ((3, 4), {"axis": 0}), ((2, 3, 4), {"axis": 1}), ((0, 3), {}), ((1, 1), {"start": 1}), ((6, 3), {"start": 1, "delta": -1, "axis": -2}),
                                            ((300, 400), {}), ((300, 400), {"axis": 0}))):
            if "delta" in attrs and not signed:
                continue
            rng = rng_for(op, dtype, n)
            yield Case(op, [tensor(rng, ("f32", "i4", "bool", "t2")[n % 4], shape)], attrs, dtype, shape, "large" if shape[0] == 300 else f"shape {n}")


def shape_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for shape in ((2, 3), (), (0, 5), (7,), (1, 2, 3, 4)):
            yield Case(op, [tensor(rng_for(op, dtype, shape), dtype, shape)], {}, "i64", (len(shape),) if op == "shape_of" else (), "shape")


CASES = {op: turned_cases for op in TURNED} | {
    "gather_elements": gather_cases, "gather_nd": gather_cases, "scatter": scatter_cases, "scatter_nd": scatter_cases, "one_hot": one_hot_cases,
    "cumsum": scan_cases, "cumprod": scan_cases, "range": range_cases, "iota": iota_cases, "shape_of": shape_cases, "size_of": shape_cases}
