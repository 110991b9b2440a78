"""When two results agree: the catalog's tolerances."""

import math

import ml_dtypes
import numpy as np

from cases import OPS
from reference_ops import ROUNDED
from tensors import DTYPES

TOLERANCE = {"f32": 1e-5, "f64": 1e-12, "f16": 1e-3, "bf16": 8e-3, "f8": 0.26}


def reduced_length(case):
    """How many terms make up one element."""
    row = OPS[case.op]
    if case.summed:
        return max(1, case.summed[1])
    if not case.inputs or not case.inputs[0].values.ndim:
        return 1
    if row["class"] == "reduce":
        return max(1, case.inputs[0].values.size // max(1, int(np.prod(case.out_shape, dtype=np.int64))))
    if case.op == "matmul":
        return max(1, case.inputs[0].values.shape[-2 if case.attrs.get("transpose_a") and case.inputs[0].values.ndim > 1 else -1])
    return max(1, case.inputs[0].values.shape[-1]) if row["class"] in ("composite", "custom") else 1


def summed_in(case):
    """The coarser of the output and the accumulator."""
    acc = case.summed[0] if case.summed else case.attrs.get("acc", case.out_dtype)
    a = acc if isinstance(acc, str) else acc[0]
    return max((t for t in (a, case.out_dtype) if t in TOLERANCE), key=TOLERANCE.get)


def is_exact(case):
    """Elementwise and moving ops leave nothing to regroup."""
    return OPS[case.op]["class"] in ("map", "move") or case.op in ("max_axis", "min_axis")


def close(dtype, a, b, ulps):
    """Within so many units in the last place of b, which is as good as exact."""
    info = ml_dtypes.finfo(DTYPES[dtype].array)
    with np.errstate(all="ignore"):
        exponent = np.frexp(np.where(np.isfinite(b), b, 1))[1] - 1
    ulp = np.ldexp(1.0, np.maximum(exponent, info.minexp) - info.nmant)
    top = np.isinf(b) & (np.abs(a) >= float(info.max)) & (np.sign(a) == np.sign(b))  # it rounded down
    return (np.abs(a - b) <= ulps * ulp) | (np.isinf(a) & np.isfinite(b) & (np.abs(b) >= float(info.max) * 0.99)) | top


def compare(case, got, want, exact):
    """None, or what differs."""
    a, b = got.values, want.values
    if got.dtype != want.dtype or a.shape != b.shape:
        return f"{got} instead of {want}"
    if DTYPES[got.dtype].kind != "F":
        return None if np.array_equal(a, b) else first(a, b, a != b)
    a, b = a.astype(np.float64), b.astype(np.float64)
    if exact:
        bad = ~((a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b)))
        if exact == "rounded":
            bad &= ~((a != 0) & (b != 0) & close(got.dtype, a, b, ROUNDED[case.op].get(got.dtype, 1)))
    else:
        dtype = summed_in(case)
        tolerance = TOLERANCE[dtype]
        k = math.sqrt(reduced_length(case)) if dtype in ("f32", "f64") else 1
        absolute = tolerance * k if dtype == "f64" else tolerance
        near = np.abs(a - b) <= absolute + tolerance * k * np.abs(np.where(np.isfinite(b), b, 0))
        bad = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))
    return first(a, b, bad) if bad.any() else None


def first(a, b, bad):
    at = tuple(int(i) for i in np.argwhere(bad)[0]) if np.ndim(bad) else ()
    return f"{int(np.sum(bad))} differ, first at {at}: {a[at]!r} instead of {b[at]!r}"
