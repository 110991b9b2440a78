"""Softmax, norms, rotary embedding, spectra."""

import numpy as np

from cases import Case, dtypes_of, rng_for, sliced, tensor
from tensors import DTYPES, Tensor

SHAPES = {"odd": (5, 7), "one": (1,), "rank3": (2, 3, 5), "rank4": (2, 3, 1, 4), "empty": (0, 3), "row of one": (3, 1), "long": (3, 700),
          "sixteens": (2, 5, 48)}


def others(op, rng, dtype, make, attrs={}):
    """Slices, the same memory for the result, and work for several threads."""
    yield Case(op, make(sliced, (5, 6)), attrs, dtype, (5, 6), "sliced")
    yield Case(op, make(tensor, (4, 6)), attrs, dtype, (4, 6), "in place", 0)
    yield Case(op, make(tensor, (70, 300)), attrs, dtype, (70, 300), "large")


def softmax_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for name, shape in SHAPES.items():
            for axis in {None, 0, -1, len(shape) // 2}:
                rng = rng_for(op, dtype, name, axis)
                attrs = {} if axis is None else {"axis": axis}
                if shape[-1 if axis is None else axis] == 0:
                    continue
                x = tensor(rng, dtype, shape, True)
                x.values = (x.values.astype(np.float32) * 5).astype(DTYPES[dtype].array)
                yield Case(op, [x], attrs, dtype, shape, name)
        rng = rng_for(op, dtype, "others")
        yield from others(op, rng, dtype, lambda make, shape: [make(rng, dtype, shape, True)])
        hidden = np.full((3, 4), -np.inf)
        hidden[0, 2] = hidden[1, 0] = 1
        yield Case(op, [Tensor(dtype, hidden.astype(DTYPES[dtype].array))], {}, dtype, (3, 4), "hidden")
        far = np.array([[1000, 999, 0], [-1000, -1000, -1000], [np.nan, 1, 2], [np.inf, 0, 1]])
        yield Case(op, [Tensor(dtype, far.astype(DTYPES[dtype].array))], {}, dtype, (4, 3), "far")


def scaled(rng, dtype, shape, n):
    """Norms' factors: of the size of 1."""
    return [Tensor(dtype, (1 + 0.3 * rng.standard_normal(shape)).astype(DTYPES[dtype].array)) for _ in range(n)]


def last_norm_cases(op, row):
    """Over the last axes: x, scale and, for layernorm, bias."""
    n_others = [1, 2] if op == "layernorm" else [1]
    for dtype in dtypes_of(row["dtypes"]):
        for n in n_others:
            for name, shape in SHAPES.items():
                for axis in {None, 0, len(shape) - 1, -len(shape)}:
                    rng = rng_for(op, dtype, n, name, axis)
                    tail = shape[-1:] if axis is None else shape[axis:]
                    if 0 in tail:
                        continue
                    for eps in (None, 0.1):
                        attrs = {**({} if axis is None else {"axis": axis}), **({} if eps is None else {"eps": eps})}
                        yield Case(op, [tensor(rng, dtype, shape, True), *scaled(rng, dtype, tail, n)], attrs, dtype, shape, name)
            rng = rng_for(op, dtype, n, "others")
            yield from others(op, rng, dtype, lambda make, shape: [make(rng, dtype, shape, True), *scaled(rng, dtype, shape[1:], n)])
        rng = rng_for(op, dtype, "far")
        yield Case(op, [Tensor(dtype, (rng.standard_normal((4, 64)) + 10).astype(DTYPES[dtype].array)), *scaled(rng, dtype, (64,), 1)],
                   {}, dtype, (4, 64), "far from 0")
        yield Case(op, [tensor(rng, dtype, (1, 576), True), *scaled(rng, dtype, (576,), 1)], {"eps": 1e-6}, dtype, (1, 576), "one row")


CHANNELS = {"image": (2, 6, 3, 5), "line": (3, 4, 7), "volume": (1, 4, 2, 3, 2), "one": (1, 2, 1), "no batch": (0, 4, 3)}


def channel_cases(op, row):
    n_vectors = len(row["inputs"]) - 1
    for dtype in dtypes_of(row["dtypes"]):
        shapes = CHANNELS | ({"plain": (5, 4)} if op == "batchnorm" else {})
        for name, shape in shapes.items():
            for groups in ([1, 2, shape[1]] if op == "groupnorm" else [None]):
                for eps in (None, 0.25):
                    rng = rng_for(op, dtype, name, groups, eps)
                    attrs = {**({"groups": groups} if groups else {}), **({"eps": eps} if eps else {})}
                    vectors = scaled(rng, dtype, (shape[1],), n_vectors)
                    if n_vectors == 4:
                        vectors[3].values = np.abs(vectors[3].values.astype(np.float32)).astype(DTYPES[dtype].array)
                    yield Case(op, [tensor(rng, dtype, shape, True), *vectors], attrs, dtype, shape, name)
        rng = rng_for(op, dtype, "others")
        attrs = {"groups": 2} if op == "groupnorm" else {}
        for label, make, shape, inplace in (("sliced", sliced, (2, 4, 6), None), ("in place", tensor, (2, 4, 6), 0),
                                            ("large", tensor, (4, 8, 30, 40), None)):
            vectors = scaled(rng, dtype, (shape[1],), n_vectors)
            yield Case(op, [make(rng, dtype, shape, True), *vectors], attrs, dtype, shape, label, inplace)


def lp_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for name, shape in SHAPES.items():
            for axis in {None, 0}:
                for p in (None, 1, 2):
                    rng = rng_for(op, dtype, name, axis, p)
                    attrs = {**({} if axis is None else {"axis": axis}), **({} if p is None else {"p": p})}
                    x = tensor(rng, dtype, shape, True)
                    if name == "odd":
                        x.values[2] = 0
                    yield Case(op, [x], attrs, dtype, shape, name)
        rng = rng_for(op, dtype, "others")
        yield from others(op, rng, dtype, lambda make, shape: [make(rng, dtype, shape, True)])


def spectrum_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for name, shape in {"odd": (5, 7), "one": (1,), "rank3": (2, 3, 5), "none": (), "empty": (0, 3), "large": (40, 700)}.items():
            rng = rng_for(op, dtype, name)
            yield Case(op, [tensor(rng, dtype, (*shape, 2), True)], {}, dtype, shape, name)
        yield Case(op, [sliced(rng, dtype, (5, 2), True)], {}, dtype, (5,), "sliced")


ROPE = [((2, 3, 5, 8), (5,), {}), ((2, 3, 5, 8), (2, 5), {"theta": 100000}), ((5, 3, 8), (5,), {"interleaved": True}),
        ((2, 4, 24), (4,), {"heads": 3}), ((2, 4, 24), (2, 4), {"heads": 3, "interleaved": True}), ((1, 2, 3, 8), (3,), {"dim": 4}),
        ((4, 2, 10), (4,), {"dim": 6, "interleaved": True}), ((3, 1, 6), (3,), {"scale": 0.25}), ((1, 1, 0, 4), (0,), {}),
        ((2, 2, 4), (2,), {"dim": 0}), ((1, 1, 576), (1,), {"heads": 9, "theta": 100000, "interleaved": True})]


def rope_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for n, (shape, places, attrs) in enumerate(ROPE):
            for own in ("i32", "i64", "u8"):
                for tables in (False, True):
                    rng = rng_for(op, dtype, n, own, tables)
                    p = Tensor(own, rng.integers(0, 60, places).astype(DTYPES[own].array))
                    inputs = [tensor(rng, dtype, shape, True), p]
                    d = attrs.get("dim", shape[-1] // (attrs.get("heads") or 1))
                    if tables:
                        inputs += [tensor(rng, dtype, (60, d // 2), True), tensor(rng, dtype, (60, d // 2), True)]
                    yield Case(op, inputs, attrs, dtype, shape, f"shape {n}")
        rng = rng_for(op, dtype, "others")
        p = Tensor("i32", np.arange(5, dtype=np.int32))
        yield Case(op, [sliced(rng, dtype, (5, 3, 8), True), p], {}, dtype, (5, 3, 8), "sliced")
        yield Case(op, [tensor(rng, dtype, (5, 3, 8), True), p], {}, dtype, (5, 3, 8), "in place", 0)
        p = Tensor("i32", np.arange(100, dtype=np.int32))
        yield Case(op, [tensor(rng, dtype, (2, 4, 100, 64), True), p], {}, dtype, (2, 4, 100, 64), "large")


CASES = {"rope": rope_cases, "softmax": softmax_cases, "log_softmax": softmax_cases, "layernorm": last_norm_cases, "rmsnorm": last_norm_cases,
         "groupnorm": channel_cases, "instancenorm": channel_cases, "batchnorm": channel_cases, "lp_normalize": lp_cases,
         "magnitude": spectrum_cases, "power_spectrum": spectrum_cases}
