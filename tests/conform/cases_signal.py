"""Ops that sort, on images and on signals."""

import numpy as np

from cases import Case, dtypes_of, rng_for, sliced, tensor
from tensors import DTYPES, Tensor

LINES = [("last", (3, 7), -1), ("first", (7, 3), 0), ("middle", (2, 9, 3), 1), ("vector", (11,), 0), ("one", (1,), 0), ("empty", (0, 3), 1), ("nothing", (3, 0), 1), ("long", (2, 600), 1), ("large", (40, 3001), 1)]


def sort_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        out = dtype if op == "sort" else "i64"
        for label, shape, axis in LINES:
            if label == "large" and dtype not in ("f32", "i16", "u1"):
                continue
            for attrs in ({}, {"descending": True}):
                for make in (tensor, sliced) if label in ("last", "first") else (tensor,):
                    rng = rng_for(op, dtype, label, str(attrs), make.__name__)
                    yield Case(op, [make(rng, dtype, shape)], {"axis": axis, **attrs}, out, shape, label)
        if op == "sort":
            yield Case(op, [tensor(rng_for(op, dtype, "in place"), dtype, (5, 6))], {}, dtype, (5, 6), "in place", 0)


def topk_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for label, shape, axis in LINES:
            if label == "large" and dtype not in ("f32", "i16"):
                continue
            n = shape[axis]
            for k in sorted({0, min(1, n), n // 2, n}) if label != "large" else (5, 40):
                for attrs in ({}, {"largest": False}, {"sorted": False}):
                    if attrs and k != n // 2:
                        continue
                    rng = rng_for(op, dtype, label, k, str(attrs))
                    out = tuple(k if i == axis % len(shape) else m for i, m in enumerate(shape))
                    make = sliced if label == "middle" else tensor
                    yield Case(op, [make(rng, dtype, shape)], {"k": k, **({"axis": axis} if axis != -1 else {}), **attrs}, dtype, out, label, None, None, (("i64", out),))


FOUND = [("plain", (4, 5)), ("vector", (9,)), ("scalar", ()), ("empty", (0, 3)), ("rank 3", (2, 3, 4)), ("long", (700,))]


def nonzero_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for label, shape in FOUND:
            for make in (tensor, sliced) if all(shape) and shape else (tensor,):
                x = make(rng_for(op, dtype, label, make.__name__), dtype, shape)
                n = np.count_nonzero(x.values)
                yield Case(op, [x], {}, "i64", (len(shape), n), label)


def unique_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for label, shape in FOUND:
            for make in (tensor, sliced) if all(shape) and shape else (tensor,):
                for outputs in (1, 2, 4):
                    x = make(rng_for(op, dtype, label, make.__name__), dtype, shape)
                    v = x.values.astype(np.float64) if DTYPES[dtype].kind == "F" else x.values
                    n = len(np.unique(v))
                    more = [("i64", (n,)), ("i64", (v.size,)), ("i64", (n,))][: outputs - 1]
                    yield Case(op, [x], {}, dtype, (n,), label, None, None, tuple(more))


def resize_cases(op, row):
    modes = [{"mode": m} for m in ("linear", "cubic")]
    nearest = [{"nearest": n} for n in ("round_prefer_floor", "floor", "ceil", "round_prefer_ceil")]
    shapes = [("up", (1, 2, 4, 3), (1, 2, 8, 7)), ("down", (1, 1, 9, 7), (1, 1, 4, 3)), ("to one", (2, 5), (1, 1)), ("from one", (1, 1), (3, 4)), ("vector", (6,), (9,)), ("same", (3, 4), (3, 4)), ("empty", (0, 3), (0, 5))]
    scaled = [((1, 1, 4, 5), [1.0, 1.0, 2.0, 0.6]), ((5, 3), [1.5, 2.5]), ((7,), [0.4]), ((3, 4), [2, 1])]
    for dtype in dtypes_of(row["dtypes"]):
        float_ = DTYPES[dtype].kind == "F"
        for mode in (nearest if dtype in ("f32", "u8", "i4") else nearest[:1]) + (modes if float_ else []):
            for coord in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
                if coord != "half_pixel" and dtype not in ("f32", "f64", "u8"):
                    continue
                for label, shape, sizes in shapes:
                    rng = rng_for(op, dtype, str(mode), coord, label)
                    yield Case(op, [tensor(rng, dtype, shape, True)], {"sizes": list(sizes), "coord": coord, **mode}, dtype, sizes, label)
                for n, (shape, scales) in enumerate(scaled):
                    rng = rng_for(op, dtype, str(mode), coord, n)
                    out = tuple(int(np.floor(a * b)) for a, b in zip(shape, scales))
                    yield Case(op, [tensor(rng, dtype, shape, True)], {"scales": scales, "coord": coord, **mode}, dtype, out, f"scales {n}")
        rng = rng_for(op, dtype, "sliced")
        yield Case(op, [sliced(rng, dtype, (4, 6), True)], {"sizes": [7, 3], **(modes[0] if float_ else {})}, dtype, (7, 3), "sliced")


def grid_cases(op, row):
    shapes = [((1, 2, 4, 5), (3, 2)), ((2, 1, 3, 3), (4, 4)), ((1, 1, 1, 1), (2, 3)), ((1, 2, 6), (5,)), ((1, 1, 3, 4, 2), (2, 2, 3)), ((0, 2, 3, 3), (2, 2))]
    for dtype in dtypes_of(row["dtypes"]):
        for mode in ("linear", "nearest", "cubic"):
            for padding in ("zeros", "border", "reflection"):
                for corners in (False, True):
                    for n, (shape, places) in enumerate(shapes):
                        if n > 1 and dtype not in ("f32", "f64"):
                            continue
                        rng = rng_for(op, dtype, mode, padding, corners, n)
                        grid = "f64" if dtype == "f64" else "f32"
                        g = (rng.random((shape[0], *places, len(places))) * 3.4 - 1.7).astype(DTYPES[grid].array)
                        attrs = {"mode": mode, "padding_mode": padding, "align_corners": corners}
                        yield Case(op, [tensor(rng, dtype, shape, True), Tensor(grid, g)], attrs, dtype, (*shape[:2], *places), f"{mode} {n}")


DFT = [((1, 8, 1), -2), ((2, 12, 2), 1), ((3, 7, 2), -2), ((5, 1, 2), 0), ((2, 15, 3, 1), 1), ((1, 1, 1), -2), ((1, 67, 2), 1), ((1, 100, 1), 1), ((2, 134, 1), 1), ((1, 251, 2), 1), ((0, 8, 1), 1), ((2, 1024, 1), 1)]


def dft_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for n, (shape, axis) in enumerate(DFT):
            if n > 6 and dtype not in ("f32", "f64"):
                continue
            length = shape[axis]
            ways = [{}, {"length": length + 3}, {"length": max(1, length - 2)}]
            if op == "dft":
                ways += [{"inverse": True}, {"onesided": True}, {"inverse": True, "onesided": True}, {"inverse": True, "onesided": True, "length": 9}]
            for attrs in ways:
                inverse = attrs.get("inverse", op == "ifft")
                onesided = attrs.get("onesided", op == "rfft")
                if onesided and shape[-1] != (2 if inverse else 1):
                    continue
                m = attrs.get("length", 2 * (length - 1) if inverse and onesided else length)
                out = list(shape)
                out[axis] = m if inverse or not onesided else m // 2 + 1
                out[-1] = 1 if inverse and onesided else 2
                rng = rng_for(op, dtype, n, str(attrs))
                yield Case(op, [tensor(rng, dtype, shape, True)], {**({"axis": axis} if axis != -2 else {}), **attrs}, dtype, tuple(out), f"shape {n}")
        rng = rng_for(op, dtype, "sliced")
        yield Case(op, [sliced(rng, dtype, (3, 6, 1), True)], {}, dtype, (3, 4 if op == "rfft" else 6, 2), "sliced")
        yield Case(op, [tensor(rng, dtype, (40, 300, 1), True)], {}, dtype, (40, 151 if op == "rfft" else 300, 2), "large")


def stft_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for label, shape, window, step, onesided in (("plain", (2, 40), 16, 8, True), ("odd", (1, 33), 7, 3, True), ("two sides", (2, 20), 8, 5, False), ("complex", (1, 20, 2), 8, 4, False),
                                                     ("real axis", (1, 20, 1), 8, 4, True), ("too short", (2, 5), 8, 2, True), ("no window", (2, 30), None, 10, True), ("prime", (1, 200), 71, 40, True)):
            rng = rng_for(op, dtype, label)
            n = window or 12
            frames = 0 if shape[1] < n else 1 + (shape[1] - n) // step
            inputs = [tensor(rng, dtype, shape, True)] + ([tensor(rng, "f32", (window,), True)] if window else [])
            attrs = {"frame_step": step, **({} if onesided else {"onesided": False}), **({} if window else {"frame_length": n})}
            yield Case(op, inputs, attrs, dtype, (shape[0], frames, n // 2 + 1 if onesided else n, 2), label)


def istft_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for label, b, frames, n, hop, bins, length in (("plain", 2, 5, 16, 8, 9, None), ("odd", 1, 4, 7, 3, 4, None), ("two sides", 2, 3, 8, 4, 8, None), ("cut", 1, 3, 8, 4, 5, 10), ("longer", 1, 2, 8, 4, 5, 20),
                                                       ("gaps", 1, 3, 4, 6, 3, None), ("one frame", 3, 1, 8, 4, 5, None)):
            rng = rng_for(op, dtype, label)
            window = Tensor("f64", 0.5 + rng.random(n))
            out = length if length is not None else n + hop * (frames - 1)
            yield Case(op, [tensor(rng, dtype, (b, frames, bins, 2), True), window], {"hop": hop, **({"length": length} if length is not None else {})}, dtype, (b, out), label)


def mel_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for n, attrs in enumerate(({"num_mels": 8, "n_fft": 64, "sample_rate": 16000}, {"num_mels": 20, "n_fft": 400, "sample_rate": 16000, "fmin": 20, "fmax": 7600.0}, {"num_mels": 1, "n_fft": 16, "sample_rate": 8000},
                                   {"num_mels": 40, "n_fft": 128, "sample_rate": 16000}, {"num_mels": 80, "n_fft": 512, "sample_rate": 22050, "fmin": 0.5, "fmax": 8000})):
            yield Case(op, [], attrs, dtype, (attrs["n_fft"] // 2 + 1, attrs["num_mels"]), f"filter {n}")


def window_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for size in (0, 1, 2, 3, 8, 9, 25, 400, 70001):
            for attrs in ({}, {"periodic": False}):
                if size < 70001 or dtype == "f32":
                    yield Case(op, [], {"size": size, **attrs}, dtype, (size,), "large" if size == 70001 else "window")


def bitcast_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        alike = [d for d in dtypes_of(row["attrs"]["to"]["dtypes"]) if DTYPES[d].bits == DTYPES[dtype].bits]
        for to in alike:
            for label, shape in FOUND[:5]:
                for make in (tensor, sliced) if all(shape) and shape else (tensor,):
                    x = make(rng_for(op, dtype, to, label, make.__name__), dtype, shape)
                    yield Case(op, [x], {"to": to}, to, shape, label)


CASES = {"bitcast": bitcast_cases, "nonzero": nonzero_cases, "unique": unique_cases} | {f"{w}_window": window_cases for w in ("hann", "hamming", "blackman")} | {"sort": sort_cases, "argsort": sort_cases, "topk": topk_cases, "resize": resize_cases, "grid_sample": grid_cases, "dft": dft_cases, "rfft": dft_cases, "ifft": dft_cases,
         "stft": stft_cases, "istft": istft_cases, "mel_filter": mel_cases}
