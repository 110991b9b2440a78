"""Sums in steps of 32 (act="bf16"): their order is part of the definition, so every bit is judged. With act="f16" the
definition sums in order; vectors may regroup that, and a last bit of a sum may become one of f16."""

import math
import os

import numpy as np
import pytest

ml_dtypes = pytest.importorskip("ml_dtypes", reason="conformance needs ml_dtypes")
if os.environ.get("OPENINFER_SANITIZED"):
    pytest.skip("a sanitized library cannot be loaded into Python", allow_module_level=True)

import library  # noqa: E402
from cases import sdpa_bf16_cases  # noqa: E402
from reference_ops import REFERENCE, exp_f32, to_bf16  # noqa: E402


@pytest.mark.parametrize("act", ["bf16", "f16"])
@pytest.mark.parametrize("device", library.devices())
def test_sdpa(device, act):
    for case in sdpa_bf16_cases("sdpa", ["f32"]):
        attrs = {**case.attrs, "act": act}
        want = REFERENCE["sdpa"](case.inputs, attrs, case.out_dtype, case.out_shape)
        got = library.run(case.op, case.inputs, attrs, [(case.out_dtype, case.out_shape)], device)[0]
        if act == "f16" and device != "cpu:scalar":
            np.testing.assert_allclose(got.values, want.values, rtol=2**-10, atol=2**-10 * np.abs(want.values).max(initial=0), err_msg=str(case))
            continue
        a, b = (np.where(np.isnan(t.values), np.float32(np.nan), t.values).view(np.uint32) for t in (got, want))
        assert np.array_equal(a, b), f"{case}: {np.sum(a != b)} of {a.size} differ"


def test_reference():
    """What the reference adds to numpy: its powers are within 2 ulp, its rounding is that of bf16."""
    x = np.linspace(-87, 10, 10001, dtype=np.float32)
    want = np.array([math.exp(v) for v in x])
    assert np.all(np.abs(exp_f32(x) - want) <= 2 * np.spacing(want.astype(np.float32)))
    assert exp_f32(np.float32([-np.inf, 0])).tolist() == [0, 1] and np.isnan(exp_f32(np.float32([np.nan])))
    bits = np.random.default_rng(5).integers(0x01000000, 0x7f000000, 5000, dtype=np.uint32)
    bits[::7] = bits[::7] & 0xffff0000 | 0x8000  # ties
    y = bits.view(np.float32)
    assert np.array_equal(to_bf16(y), y.astype(ml_dtypes.bfloat16).astype(np.float32))
