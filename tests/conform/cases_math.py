"""Elementwise mathematics: the general cases of maps, with these attributes, and arguments near and far."""

import numpy as np

import cases
from cases import Case, dtypes_of, map_cases, rng_for
from tensors import DTYPES, Tensor

ATTRIBUTES = {
    "silu": [{}, {"beta": 0.5}, {"alpha": -2}, {"beta": 1.702}],
    "gelu": [{}, {"approximate": "tanh"}, {"approximate": "none"}],
    "elu": [{}, {"alpha": 0.5}, {"alpha": -3}],
    "celu": [{}, {"alpha": 0.5}, {"alpha": 2.5}],
    "selu": [{}, {"alpha": 2, "gamma": 0.5}],
    "hard_sigmoid": [{}, {"alpha": 0.5, "beta": 0.25}, {"alpha": -1}],
}
cases.ATTRIBUTES.update(ATTRIBUTES)

UNARY = ["sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh",
         "acosh", "atanh", "erf", "softplus"]


def unary_cases(op, row):
    """Also every magnitude there is, and the numbers around 1 where several are steep."""
    yield from map_cases(op, row)
    for dtype in dtypes_of(row["dtypes"]):
        rng = rng_for(op, dtype, "magnitudes")
        v = np.exp(rng.uniform(-104, 89, 4000)) * np.where(rng.random(4000) < 0.5, -1, 1)
        near = 1 + rng.standard_normal(1000) * np.exp(rng.uniform(-18, 0, 1000))
        line = rng.uniform(-20, 20, 3000)
        x = np.concatenate([v, near, -near, line]).astype(DTYPES[dtype].array)
        yield Case(op, [Tensor(dtype, x)], {}, dtype, x.shape, "magnitudes")


def pow_cases(op, row):
    yield from map_cases(op, row)
    for dtype in dtypes_of(row["dtypes"]):
        rng = rng_for(op, dtype, "small")
        low = -9 if DTYPES[dtype].lowest < 0 else 0
        x, y = rng.integers(low, 10, (2, 900))
        yield Case(op, [Tensor(dtype, v.astype(DTYPES[dtype].array)) for v in (x, y)], {}, dtype, x.shape, "small whole numbers")
        if DTYPES[dtype].kind == "F":
            x, y = np.exp(rng.standard_normal(900) * 3), rng.standard_normal(900) * 5
            yield Case(op, [Tensor(dtype, v.astype(DTYPES[dtype].array)) for v in (x, y)], {}, dtype, x.shape, "positive")


CASES = {**{op: unary_cases for op in UNARY}, "pow": pow_cases}
