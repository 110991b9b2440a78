"""Ops on quantised tensors."""

import numpy as np

from cases import Case, dtypes_of, rng_for, sliced, tensor
from cases_window import CONV, POOL, conv_out, pool_shape
from tensors import DTYPES, Tensor

# x's leading axes, N, K, block
QLINEAR = {
    "one": ((1,), 1, 1, 1), "vector": ((), 5, 32, 32), "decode": ((1,), 19, 96, 32), "few": ((3,), 33, 64, 32), "many": ((67,), 18, 64, 16),
    "stacked": ((2, 3), 7, 48, 16), "odd": ((2,), 9, 35, 7), "no rows": ((0,), 4, 32, 32), "no weights": ((2,), 0, 32, 32),
    "nothing summed": ((2,), 3, 0, 32), "one block": ((2,), 5, 40, 40), "wide blocks": ((5,), 6, 256, 128), "odd row": ((2,), 6, 33, 33),
}


def blocks(rng, dtype, shape, spread):
    return Tensor(dtype, (rng.standard_normal(shape) * spread).astype(DTYPES[dtype].array))


def qlinear_inputs(rng, row, dtype, w, lead, n, k, g, scales=("f32", "f32"), bias=None, make=tensor):
    inputs = [make(rng, dtype, (*lead, k), True), make(rng, w, (n, k))]
    spread = [0.5 / 2 ** DTYPES[w].bits, 0.1]  # weights below 1
    inputs += [blocks(rng, t, (n, -(-k // g)), s) for t, s in zip(scales, spread)]
    return inputs + ([blocks(rng, bias, (n,), 1.0)] if bias else [])


def qlinear_zero_points(op, rng, row, dtype, w, act, sizes, name):
    """Zero points instead of offsets, per block and row or shared by all rows; scales shared by all rows."""
    lead, n, k, g = sizes
    blocks_of = (n, -(-k // g))
    for zp, rows in (("i32", n), ("i8", n), ("i32", 1), (None, 1)) if w in ("i8", "u8", "u4", "t2") else ():
        x, weights, scale, *bias = qlinear_inputs(rng, row, dtype, w, lead, n, k, g, ("f32",), "f32" if rows == 1 else None)
        scale.values = np.abs(scale.values[:rows])
        if scale.values.shape[0] != rows:
            continue  # no weights: no row to share
        zero = [Tensor(zp, rng.integers(-3, 9, (rows, blocks_of[1])).astype(DTYPES[zp].array))] if zp else []
        yield Case(op, [x, weights, scale, *zero, *bias], {"act": act}, dtype, (*lead, n), name, summed=(dtype, k))


def qlinear_cases(op, row):
    weights = dtypes_of(row["inputs"][1]["dtypes"])
    for dtype in dtypes_of(row["dtypes"]):
        for w in weights if dtype in ("f32", "f16") else ("u4", "i8"):
            for act in ("float", "q8", "bf16", *(["f16"] if w in ("u4", "i8", "t2") else [])):
                for name, (lead, n, k, g) in QLINEAR.items():
                    rng = rng_for(op, dtype, w, act, name)
                    narrow = dtype if dtype == "bf16" else "f16"
                    for scales, bias in ((("f32", "f32"), None), ((narrow, narrow), "f32"), (("f32",), dtype if dtype == "f16" else "f16")):
                        attrs = {"act": act} if act != "float" else {}
                        if bias is None:
                            attrs["group_size"] = g
                        inputs = qlinear_inputs(rng, row, dtype, w, lead, n, k, g, scales, bias)
                        yield Case(op, inputs, attrs, dtype, (*lead, n), name, summed=(dtype, k))
                    yield from qlinear_zero_points(op, rng, row, dtype, w, act, QLINEAR[name], name)
    for act in ("float", "q8", "bf16", "f16"):
        rng = rng_for(op, act, "others")
        for w in ("u4", "i4", "i8", "u8"):
            inputs = qlinear_inputs(rng, row, "f32", w, (3,), 6, 32, 16, make=sliced)
            yield Case(op, inputs, {"act": act}, "f32", (3, 6), "sliced", summed=("f32", 32))
            inputs = qlinear_inputs(rng, row, "f32", w, (70,), 100, 160, 32, ("f16", "f16"), "f32")
            yield Case(op, inputs, {"act": act}, "f32", (70, 100), "large", summed=("f32", 160))
            inputs = qlinear_inputs(rng, row, "f32", w, (1,), 800, 320, 32, ("f16",))
            yield Case(op, inputs, {"act": act}, "f32", (1, 800), "large", summed=("f32", 320))
            for rows, k in ((1, 64), (3, 96), (2, 384), (1, 576), (3, 448)):  # few rows of x, blocks in eights and others
                inputs = qlinear_inputs(rng, row, "f32", w, (rows,), 21, k, 32, ("f16", "f16"))
                yield Case(op, inputs, {"act": act}, "f32", (rows, 21), "odd", summed=("f32", k))
            inputs = qlinear_inputs(rng, row, "f32", w, (4,), 96, 96, 32)
            yield Case(op, inputs, {"act": act}, "f32", (4, 96), "in place", 0, summed=("f32", 96))
        for bad in (np.nan, np.inf, -np.inf, 1e-44, 0.0, 3e38):
            inputs = qlinear_inputs(rng, row, "f32", "u4", (2,), 5, 96, 32)
            inputs[0].values[0, 32:64] = 0
            inputs[0].values[0, 40] = bad
            if act == "q8" or np.isfinite(bad) and bad < 1:
                yield Case(op, inputs, {"act": act}, "f32", (2, 5), "awkward", summed=("f32", 96))


# -- products


def gemm_cases(op, row):
    shapes = {"odd": (5, 7, 3), "one": (1, 1, 1), "nothing summed": (2, 0, 3), "no rows": (0, 4, 2), "tiles": (29, 33, 67)}
    for dtype in dtypes_of(row["dtypes"]):
        for name, (m, k, n) in shapes.items():
            for c in (None, (m, n), (n,), (m, 1), ()):
                for ta, tb in ((False, False), (True, False), (False, True), (True, True)):
                    rng = rng_for(op, dtype, name, str(c), ta, tb)
                    inputs = [tensor(rng, dtype, (k, m) if ta else (m, k), True), tensor(rng, dtype, (n, k) if tb else (k, n), True)]
                    attrs = {**({"trans_a": True} if ta else {}), **({"trans_b": True} if tb else {})}
                    if c is not None:
                        inputs.append(tensor(rng, dtype, c, True))
                    if ta != tb:
                        attrs |= {"alpha": 3, "beta": 2} if DTYPES[dtype].kind != "F" else {"alpha": 0.5, "beta": 2.0}
                    yield Case(op, inputs, attrs, dtype, (m, n), name, summed=("f32" if DTYPES[dtype].kind != "F" else dtype, max(1, k)))
        rng = rng_for(op, dtype, "others")
        yield Case(op, [sliced(rng, dtype, (5, 6), True), sliced(rng, dtype, (6, 4), True)], {}, dtype, (5, 4), "sliced",
                   summed=("f32" if DTYPES[dtype].kind != "F" else dtype, 6))


EINSUM = {
    "product": ("ij,jk->ik", [(3, 4), (4, 5)]), "implicit": ("ij,jk", [(3, 4), (4, 5)]), "sum": ("ij->", [(3, 4)]), "transpose": ("ij->ji", [(3, 4)]),
    "diagonal": ("ii->i", [(4, 4)]), "trace": ("ii", [(4, 4)]), "outer": ("i,j->ij", [(3,), (4,)]), "dot": ("i,i", [(7,), (7,)]),
    "batch": ("bij, bjk -> bik", [(2, 3, 4), (2, 4, 5)]), "dots": ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]), "dots broadcast": ("...i,...i->...", [(2, 1, 4), (3, 4)]),
    "dots only": ("...->...", [(2, 3)]), "dots last": ("i...->...i", [(2, 3, 4)]), "scalar": (",ij->ij", [(), (2, 3)]), "empty": ("ij,jk->ik", [(3, 0), (0, 5)]),
    "heads": ("bqhd,bkhd->bhqk", [(2, 3, 4, 5), (2, 6, 4, 5)]), "both summed": ("ij,ij->", [(3, 4), (3, 4)]), "upper": ("Ab,bC->AC", [(2, 3), (3, 4)]), "long": ("ij,jk->ik", [(4, 600), (600, 5)]),
    "large": ("ij,jk->ki", [(70, 90), (90, 80)]), "implicit dots": ("...a,...a", [(3, 2, 5), (2, 5)]), "repeated": ("iij,jk->ik", [(3, 3, 4), (4, 5)]),
    "three": ("ab,bc,cd->ad", [(3, 4), (4, 5), (5, 2)]), "three alike": ("i,i,i->", [(9,), (9,), (9,)]), "three outer": ("i,j,k->kij", [(2,), (3,), (4,)]),
    "three implicit": ("bi,ij,bj", [(2, 3), (3, 4), (2, 4)]), "three dots": ("...i,...i,i->...", [(2, 3, 4), (3, 4), (4,)]), "three broadcast": ("...i,...i,...i->...i", [(2, 1, 4), (3, 1), (4,)]),
    "three empty": ("ij,jk,kl->il", [(3, 4), (4, 0), (0, 2)]), "four": ("ab,b,bc,a->c", [(3, 4), (4,), (4, 5), (3,)]), "six": ("a,b,c,d,e,f->fb", [(2,), (3,), (2,), (2,), (3,), (2,)]),
    "three large": ("i,ij,j->i", [(700,), (700, 60), (60,)]),
}


def einsum_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for name, (equation, shapes) in EINSUM.items():
            rng = rng_for(op, dtype, name)
            out = np.einsum(equation, *[np.zeros(s, np.int8) for s in shapes]).shape
            summed = ("f32" if DTYPES[dtype].kind != "F" else dtype, 600 if name == "long" else 90)
            yield Case(op, [tensor(rng, dtype, s, True) for s in shapes], {"equation": equation}, dtype, out, name, summed=summed)
        rng = rng_for(op, dtype, "sliced")
        yield Case(op, [sliced(rng, dtype, (3, 4), True), sliced(rng, dtype, (4, 5), True)], {"equation": "ij,jk->ki"}, dtype, (5, 3), "sliced",
                   summed=("f32" if DTYPES[dtype].kind != "F" else dtype, 4))


def lp_pool_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for name, (x, attrs) in POOL.items():
            for p in (1, 2, 3) if name in ("square", "ceil") else (2,):
                rng = rng_for(op, dtype, name, p)
                yield Case(op, [tensor(rng, dtype, x, True)], {**attrs, "p": p}, dtype, pool_shape(x, attrs), name)


# -- to integers and back

AXES = {"tensor": ((3, 4, 5), (), {}), "one": ((1,), (1,), {"axis": 0}), "axis": ((3, 4, 5), (4,), {}), "first": ((3, 4), (3,), {"axis": 0}), "last": ((3, 4, 5), (5,), {"axis": -1}),
        "blocks": ((3, 8), (3, 2), {"block_size": 4}), "short block": ((3, 7), (3, 3), {"axis": -1, "block_size": 3}), "empty": ((0, 3), (), {}), "vector": ((5,), (), {"axis": 0}),
        "middle blocks": ((2, 6, 3), (2, 3, 3), {"block_size": 2}), "broadcast": ((3, 4, 5), (1, 4, 1), {}), "broadcast two": ((3, 4, 5), (3, 1, 5), {}), "broadcast one": ((3, 4), (1, 1), {}), "large": ((50, 1300), (50,), {"axis": 0})}


def scale_of(rng, dtype, shape):
    return Tensor(dtype, (rng.random(shape) * 0.1 + 0.02).astype(DTYPES[dtype].array))


def quantize_cases(op, row):
    targets = dtypes_of(row["attrs"]["to"]["dtypes"])
    for dtype in dtypes_of(row["dtypes"]) if op == "quantize" else dtypes_of("i8 u8 i16 u16 i4 u4 i2 u2"):
        for to in targets:
            for name, (x, s, attrs) in AXES.items():
                for has_zp in (False, True):
                    rng = rng_for(op, dtype, to, name, has_zp)
                    kind = dtype if op == "quantize" and name == "axis" else "f32"
                    inputs = [tensor(rng, dtype, x, True), scale_of(rng, kind, s)]
                    if has_zp:
                        inputs.append(tensor(rng, to if op == "quantize" else dtype, s, True))
                    yield Case(op, inputs, {**attrs, "to": to}, to, x, name)
    for name, (x, s, attrs) in AXES.items() if op == "dequantize" else ():
        rng = rng_for(op, "i32", name)
        yield Case(op, [tensor(rng, "i32", x, True), scale_of(rng, "f16", s)], attrs, "f32", x, name)


def dynamic_cases(op, row):
    for n, shape in enumerate([(3, 4), (1,), (), (5, 7, 3), (40, 40), (0, 3), (2, 3), (2, 2)] * 7):
        rng = rng_for(op, shape, n)
        x = tensor(rng, "f32" if n < 24 else dtypes_of(row["dtypes"])[n // 8 % 5], shape, True)
        if n % 8 == 6:
            x.values = np.abs(x.values)
        if n % 8 == 7:
            x.values = np.zeros_like(x.values)
        yield Case(op, [x], {}, "u8", shape, f"shape {n}", more=(("f32", ()), ("u8", ())), summed=("f32", 1))


def fake_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for n, attrs in enumerate([{"scale": 0.05}, {"scale": 0.1, "bits": 4}, {"scale": 0.1, "bits": 4, "signed": False, "zp": 7}, {"scale": 0.25, "bits": 16}, {"scale": 0.5, "bits": 1},
                                   {"scale": 0.02, "bits": 8, "zp": 3}]):
            rng = rng_for(op, dtype, n)
            yield Case(op, [tensor(rng, dtype, (5, 7), True)], attrs, dtype, (5, 7), "odd")


# -- integer products


def matmul_integer_cases(op, row):
    for a in ("i8", "u8"):
        for b in ("i8", "u8"):
            for n, (x, y, out) in enumerate([((5, 7), (7, 3), (5, 3)), ((1, 1), (1, 1), (1, 1)), ((2, 5, 7), (7, 3), (2, 5, 3)), ((0, 3), (3, 2), (0, 2)), ((4, 300), (300, 5), (4, 5))]):
                for zps in (0, 1, 2, 3):
                    rng = rng_for(op, a, b, n, zps)
                    inputs = [tensor(rng, a, x), tensor(rng, b, y)]
                    inputs += [tensor(rng, a, (x[-2],) if zps == 3 else ())] if zps else []
                    inputs += [tensor(rng, b, (y[-1],) if zps == 3 else ())] if zps > 1 else []
                    yield Case(op, inputs, {}, "i32", out, f"shape {n}, {zps} zero points")


def conv_integer_cases(op, row):
    for a in ("i8", "u8"):
        for b in ("i8", "u8"):
            for name in ("plain", "padded", "uneven", "groups", "depthwise", "upper", "3d"):
                x, w, attrs = CONV[name]
                for zps in (0, 1, 2, 3):
                    rng = rng_for(op, a, b, name, zps)
                    inputs = [tensor(rng, a, x), tensor(rng, b, w)]
                    inputs += [tensor(rng, a, ())] if zps else []
                    inputs += [tensor(rng, b, (w[0],) if zps == 3 else ())] if zps > 1 else []
                    yield Case(op, inputs, attrs, "i32", conv_out(x, w, attrs), f"{name}, {zps} zero points")


def quantised(rng, dtype, x, n):
    return [tensor(rng, dtype, x), scale_of(rng, "f32", n), tensor(rng, dtype, n)]


def qmatmul_cases(op, row):
    for a in ("i8", "u8"):
        for y in ("i8", "u8"):
            for n, (x, w, out) in enumerate([((5, 7), (7, 3), (5, 3)), ((2, 5, 7), (7, 3), (2, 5, 3)), ((1, 1), (1, 1), (1, 1)), ((0, 3), (3, 2), (0, 2))]):
                for rows in (False, True):
                    rng = rng_for(op, a, y, n, rows)
                    inputs = quantised(rng, a, x, (x[-2],) if rows else ()) + quantised(rng, "i8", w, (w[-1],) if rows else ())
                    yield Case(op, inputs + [Tensor("f32", np.float32(0.7 + 3 * rng.random(()))), tensor(rng, y, ())], {}, y, out, f"shape {n}")


def qconv_cases(op, row):
    for a in ("i8", "u8"):
        for y in ("i8", "u8"):
            for name in ("plain", "padded", "groups", "depthwise", "upper"):
                for several in (False, True):
                    x, w, attrs = CONV[name]
                    rng = rng_for(op, a, y, name, several)
                    inputs = quantised(rng, a, x, ()) + quantised(rng, "i8", w, (w[0],) if several else ())
                    inputs += [Tensor("f32", np.float32(0.7 + 3 * rng.random(()))), tensor(rng, y, ())]
                    inputs += [Tensor("i32", rng.integers(-5000, 5000, (w[0],)).astype(np.int32))] if several else []
                    yield Case(op, inputs, attrs, y, conv_out(x, w, attrs), name)


CASES = {"qlinear": qlinear_cases, "gemm": gemm_cases, "einsum": einsum_cases, "lp_pool": lp_pool_cases, "quantize": quantize_cases, "dequantize": quantize_cases,
         "dynamic_quantize": dynamic_cases, "fake_quantize": fake_cases, "matmul_integer": matmul_integer_cases, "conv_integer": conv_integer_cases,
         "qmatmul": qmatmul_cases, "qconv": qconv_cases}
