"""Convolution and pooling against onnxruntime, which knows nothing of our own reference."""

import os

import numpy as np
import pytest

pytest.importorskip("ml_dtypes", reason="conformance needs ml_dtypes")
ort = pytest.importorskip("onnxruntime", reason="the comparison is with onnxruntime")
if os.environ.get("OPENINFER_SANITIZED"):
    pytest.skip("a sanitized library cannot be loaded into Python", allow_module_level=True)

from onnx import TensorProto, helper  # noqa: E402

import library  # noqa: E402
from tensors import Tensor  # noqa: E402

OPS = {"conv": "Conv", "conv_transpose": "ConvTranspose", "max_pool": "MaxPool", "avg_pool": "AveragePool",
       "global_avg_pool": "GlobalAveragePool", "global_max_pool": "GlobalMaxPool"}


def run_onnx(op, inputs, attrs, n_outputs):
    names = [f"i{k}" for k in range(len(inputs))]
    outs = [f"o{k}" for k in range(n_outputs)]
    attrs = {("kernel_shape" if k == "kernel" else k): int(v) if isinstance(v, bool) else v for k, v in attrs.items()}
    node = helper.make_node(OPS[op], names, outs, **attrs)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in zip(names, inputs)],
                              [helper.make_tensor_value_info(o, TensorProto.INT64 if k else TensorProto.FLOAT, None) for k, o in enumerate(outs)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, inputs)))


def draw(rng, op):
    """A call that onnxruntime takes, or None."""
    n = int(rng.integers(1, 4))
    ints = lambda lo, hi, k=n: [int(v) for v in rng.integers(lo, hi, k)]  # noqa: E731
    spatial, kernel, attrs = ints(3, 9), ints(1, 4), {}
    if rng.random() < 0.6:
        attrs["strides"] = ints(1, 4)
    if rng.random() < 0.6 and op != "avg_pool":
        attrs["dilations"] = ints(1, 3)
    if rng.random() < 0.25 and "dilations" not in attrs:
        attrs["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    elif rng.random() < 0.7:
        attrs["pads"] = [int(rng.integers(0, k)) for k in kernel + kernel]
    x = rng.standard_normal((int(rng.integers(1, 3)), 4, *spatial)).astype(np.float32)
    if op.startswith("global"):
        return [x], {}
    if op.endswith("pool"):
        attrs["kernel"] = kernel
        if rng.random() < 0.4 and "auto_pad" not in attrs:
            attrs["ceil_mode"] = True
        if op == "avg_pool" and rng.random() < 0.5:
            attrs["count_include_pad"] = True
        return [x], attrs
    attrs["group"] = int(rng.choice([1, 2, 4]))
    m = attrs["group"] * int(rng.integers(1, 3))
    w = (m, 4 // attrs["group"], *kernel) if op == "conv" else (4, m // attrs["group"], *kernel)
    inputs = [x, rng.standard_normal(w).astype(np.float32)]
    if rng.random() < 0.5:
        inputs.append(rng.standard_normal(m).astype(np.float32))
    if op == "conv_transpose" and rng.random() < 0.4 and "auto_pad" not in attrs:
        attrs["output_padding"] = [int(rng.integers(0, s)) for s in attrs.get("strides", [1] * n)]
    return inputs, attrs


@pytest.mark.parametrize("op", OPS)
def test_as_onnxruntime(op):
    rng, agreed = np.random.default_rng(7), 0
    for _ in range(60):
        inputs, attrs = draw(rng, op)
        n_outputs = 2 if op == "max_pool" else 1
        try:
            want = run_onnx(op, inputs, attrs, n_outputs)
        except Exception:  # noqa: BLE001  windows that fit nowhere, and what its kernels do not support
            continue
        outputs = [("i64" if k else "f32", v.shape) for k, v in enumerate(want)]
        try:
            got = library.run(op, [Tensor("f32", v) for v in inputs], attrs, outputs)
        except library.OpError as e:  # onnxruntime divides towards 0 where a window fits nowhere
            assert "does not fit" in e.text
            continue
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a.values, b, rtol=1e-4, atol=1e-5, err_msg=f"{op} {[v.shape for v in inputs]} {attrs}")
        agreed += 1
    assert agreed >= 25
