"""Ops on quantised tensors."""

import numpy as np

from cases import Case, dtypes_of, rng_for, sliced, tensor
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


def qlinear_cases(op, row):
    weights = dtypes_of(row["inputs"][1]["dtypes"])
    for dtype in dtypes_of(row["dtypes"]):
        for w in weights if dtype in ("f32", "f16") else ("u4", "i8"):
            for act in ("float", "q8"):
                for name, (lead, n, k, g) in QLINEAR.items():
                    rng = rng_for(op, dtype, w, act, name)
                    narrow = dtype if dtype == "bf16" else "f16"
                    for scales, bias in ((("f32", "f32"), None), ((narrow, narrow), "f32"), (("f32",), dtype if dtype == "f16" else "f16")):
                        attrs = {"act": act} if act != "float" else {}
                        if bias is None:
                            attrs["group_size"] = g
                        inputs = qlinear_inputs(rng, row, dtype, w, lead, n, k, g, scales, bias)
                        summed = ("f32" if dtype == "f64" else dtype, k)
                        yield Case(op, inputs, attrs, dtype, (*lead, n), name, summed=summed)
    for act in ("float", "q8"):
        rng = rng_for(op, act, "others")
        for w in ("u4", "i4", "i8", "u8"):
            inputs = qlinear_inputs(rng, row, "f32", w, (3,), 6, 32, 16, make=sliced)
            yield Case(op, inputs, {"act": act}, "f32", (3, 6), "sliced", summed=("f32", 32))
            inputs = qlinear_inputs(rng, row, "f32", w, (70,), 100, 160, 32, ("f16", "f16"), "f32")
            yield Case(op, inputs, {"act": act}, "f32", (70, 100), "large", summed=("f32", 160))
            inputs = qlinear_inputs(rng, row, "f32", w, (1,), 800, 320, 32, ("f16",))
            yield Case(op, inputs, {"act": act}, "f32", (1, 800), "large", summed=("f32", 320))
            inputs = qlinear_inputs(rng, row, "f32", w, (4,), 96, 96, 32)
            yield Case(op, inputs, {"act": act}, "f32", (4, 96), "in place", 0, summed=("f32", 96))
        for bad in (np.nan, np.inf, -np.inf, 1e-44, 0.0, 3e38):
            inputs = qlinear_inputs(rng, row, "f32", "u4", (2,), 5, 96, 32)
            inputs[0].values[0, 32:64] = 0
            inputs[0].values[0, 40] = bad
            if act == "q8" or np.isfinite(bad) and bad < 1:
                yield Case(op, inputs, {"act": act}, "f32", (2, 5), "awkward", summed=("f32", 96))


CASES = {"qlinear": qlinear_cases}
