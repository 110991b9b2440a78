"""Every op of the registry against numpy, on every kind of instructions this machine has."""

import dataclasses
import os
import time

import numpy as np
import pytest

pytest.importorskip("ml_dtypes", reason="conformance needs ml_dtypes")
if os.environ.get("OPENINFER_SANITIZED"):
    # src/kernel/kernels_test.c runs every op under sanitizers
    pytest.skip("a sanitized library cannot be loaded into Python", allow_module_level=True)

import library  # noqa: E402
from cases import OPS, REPEATS, cases_for  # noqa: E402
from judge import compare, is_exact  # noqa: E402
from reference_ops import REFERENCE, ROUNDED  # noqa: E402

DEVICES = library.devices()


def run(case, device, threads=1):
    outputs = [(case.out_dtype, case.out_shape), *case.more]
    return library.run(case.op, case.inputs, case.attrs, outputs, device, threads, case.inplace)


def expected(case):
    c = case.base or case
    dtypes, shapes = zip((c.out_dtype, c.out_shape), *c.more)
    want = REFERENCE[c.op](c.inputs, c.attrs, *([list(dtypes), list(shapes)] if c.more else [c.out_dtype, c.out_shape]))
    if case.base:
        want.values = np.tile(want.values, (1,) * (want.values.ndim - 1) + (REPEATS,))
    return want if isinstance(want, list) else [want]


def compare_all(case, got, want, exact):
    """Every output."""
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        wrong = compare(dataclasses.replace(case, out_dtype=a.dtype), a, b, exact)
        if wrong:
            return f"output {i}: {wrong}" if i else wrong
    return None


def bits(tensors):
    return [t.storage()[0].tobytes() for t in tensors]


def check(case):
    """What is wrong with a case, or None."""
    scalar = run(case, "cpu:scalar")
    # sums run in index order on both sides, so only what uses exp has an excuse
    exact = OPS[case.op]["class"] not in ("composite", "custom")
    if case.op in ROUNDED:
        exact = ROUNDED[case.op] and "rounded"
    wrong = compare_all(case, scalar, expected(case), exact)
    if wrong:
        return f"scalar against numpy: {wrong}"
    for device in DEVICES[1:]:
        got = run(case, device)
        wrong = compare_all(case, got, scalar, is_exact(case))
        if wrong:
            return f"{device} against scalar: {wrong}"
    if case.label.startswith("large"):
        for device in (DEVICES[0], DEVICES[-1]):
            alone = run(case, device)
            for threads in (2, 3, 8):
                if bits(run(case, device, threads)) != bits(alone):
                    return f"{device}: {threads} threads give other bits than one"
    return None


@pytest.mark.parametrize("op", OPS)
def test_op(op, record_property):
    assert op in REFERENCE, f"say in reference_ops.py what {op} means"
    start, n, wrong = time.process_time(), 0, []
    for case in cases_for(op):
        n += 1
        try:
            bad = check(case)
        except library.OpError as e:
            bad = f"refused: {e}"
        if bad:
            wrong.append(f"{case}: {bad}")
    for name, value in (("ops", 1), ("cases", n), ("seconds", time.process_time() - start)):
        record_property(name, value)  # conftest.py adds them up
    assert n >= 20, f"{op} has {n} cases"
    assert not wrong, f"{len(wrong)} of {n} cases:\n" + "\n".join(wrong[:8])

