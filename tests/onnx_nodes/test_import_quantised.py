"""Quantised models, between quantize and dequantize or made of onnxruntime's own operators, become ops on integers."""

import pathlib
import re
import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("ml_dtypes")
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "python/src")]

import onnx_graphs as models  # noqa: E402
import session  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from openinfer.oinf.importer.command import write_package  # noqa: E402
from openinfer.oinf.importer.convert import Options, import_model  # noqa: E402
from openinfer.oinf.importer.text import write_text  # noqa: E402


class Simulated:
    def __init__(self, model, folder):
        imported = import_model(".", Options(), model)
        assert not imported.problems, [p.text() for p in imported.problems]
        self.program, self.package = imported.program, folder / "m.oinf"
        self.text = write_text(self.program, [])
        write_package(str(self.package), self.program)
        self.ops = re.findall(r"op (\w+)\(", self.text)

    def __call__(self, **given):
        values = {v.label: (v.dtype, given[v.name]) for v in self.program.inputs}
        return session.run(self.text, self.package, values, len(self.program.outputs))


@pytest.mark.parametrize("residual", [False, True], ids=["chain", "residual"])
@pytest.mark.parametrize("form, activations, per_channel", [
    ("QDQ", "QUInt8", True), ("QDQ", "QInt8", False), ("QOperator", "QUInt8", False), ("QOperator", "QInt8", True),
])  # fmt: skip
def test_as_onnxruntime_bit_by_bit(tmp_path, form, activations, per_channel, residual):
    """What onnxruntime's quantiser makes, in all forms, against onnxruntime itself."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="quantised models: onnxruntime is not installed")
    quantization = pytest.importorskip("onnxruntime.quantization")
    rng = np.random.default_rng(0)

    class Reader(quantization.CalibrationDataReader):
        data = iter([{"x": rng.standard_normal((1, 3, 16, 16)).astype(np.float32)} for _ in range(8)])

        def get_next(self):
            return next(self.data, None)

    onnx.save(models.cnn(residual), tmp_path / "f.onnx")
    types = {"activation_type": getattr(quantization.QuantType, activations), "weight_type": quantization.QuantType.QInt8}
    quantization.quantize_static(tmp_path / "f.onnx", tmp_path / "q.onnx", Reader(), per_channel=per_channel,
                                 quant_format=getattr(quantization.QuantFormat, form), **types)  # fmt: skip
    ours = Simulated(onnx.load(tmp_path / "q.onnx"), tmp_path)
    assert ours.ops.count("qconv") == 3 and ours.ops.count("qmatmul") == 1 and not {"conv", "gemm", "matmul"} & set(ours.ops)
    if not residual:
        assert ours.ops == ["quantize", "qconv", "qconv", "qconv", "max_pool", "reshape", "qmatmul", "dequantize"]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    theirs = onnxruntime.InferenceSession(str(tmp_path / "q.onnx"), options, providers=["CPUExecutionProvider"])
    for _ in range(10):
        x = rng.standard_normal((1, 3, 16, 16)).astype(np.float32)
        np.testing.assert_array_equal(ours(x=x)[0], theirs.run(None, {"x": x})[0])


def small(build):
    m = models.Maker(opset=19)
    q = lambda x, scale, zero: m.op("QuantizeLinear", x, m.number(scale), m.const(np.uint8(zero)))  # noqa: E731
    dq = lambda x, scale, zero: m.op("DequantizeLinear", x, m.number(scale), m.const(zero))  # noqa: E731
    x = dq(q(m.input("x", [2, 4]), 0.02, 128), 0.02, np.uint8(128))
    w = m.const(m.rng.integers(-127, 128, (4, 3)).astype(np.int8))
    return m.model(build(m, q, dq, x, w))


KINDS = {
    "a product whose result stays a float": (lambda m, q, dq, x, w: m.op("MatMul", x, dq(w, 0.01, np.int8(0))), {"matmul_integer"}, {"matmul"}),
    "limits that the type has anyway": (lambda m, q, dq, x, w: q(m.op("Relu", m.op("MatMul", x, dq(w, 0.01, np.int8(0)))), 0.03, 0), {"qmatmul"}, {"relu"}),
    "limits within the type": (lambda m, q, dq, x, w: q(m.op("Relu", m.op("MatMul", x, dq(w, 0.01, np.int8(0)))), 0.03, 100), {"relu", "quantize"}, {"qmatmul"}),
    "a bias of another scale": (lambda m, q, dq, x, w: q(m.op("Gemm", x, dq(w, 0.01, np.int8(0)), dq(m.const(np.array([5, -6, 7], np.int32)), 0.5, np.int32(0))), 0.03, 7), {"gemm"}, {"qmatmul"}),
    "a bias of the products' scale": (lambda m, q, dq, x, w: q(m.op("Gemm", x, dq(w, 0.01, np.int8(0)), dq(m.const(np.array([500, -600, 700], np.int32)), np.float32(0.02) * np.float32(0.01), np.int32(0))), 0.03, 7), {"qmatmul"}, {"gemm"}),
    "moves with one scale": (lambda m, q, dq, x, w: q(m.op("Transpose", x, perm=[1, 0]), 0.02, 128), {"transpose"}, {"dequantize"}),
    "moves with two scales": (lambda m, q, dq, x, w: q(m.op("Transpose", x, perm=[1, 0]), 0.03, 128), {"dequantize", "transpose"}, set()),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_near_patterns(tmp_path, name):
    """Against ONNX's own definition, to a quantum where integers are rounded once and floats are not."""
    build, there, gone = KINDS[name]
    model = small(build)
    if model.graph.node[-1].op_type == "QuantizeLinear":
        model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.UINT8
    ours = Simulated(model, tmp_path)
    assert there <= set(ours.ops) and not gone & set(ours.ops), ours.text
    x = np.random.default_rng(3).standard_normal((2, 4)).astype(np.float32)
    (want,), (found,) = ReferenceEvaluator(model).run(None, {"x": x}), ours(x=x)
    if found.dtype == np.uint8:
        assert want.dtype == np.uint8 and np.abs(found.astype(int) - want).max() <= 1
    else:
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op, inputs, attrs", [
    ("QLinearSigmoid", 1, {}), ("QLinearLeakyRelu", 1, {"alpha": 0.1}), ("QLinearMul", 2, {}), ("QLinearAdd", 2, {}),
    ("QLinearSoftmax", 1, {"axis": -1, "opset": 13}),
])  # fmt: skip
def test_operators_of_onnxruntime(tmp_path, op, inputs, attrs):
    onnxruntime = pytest.importorskip("onnxruntime", reason="quantised models: onnxruntime is not installed")
    m = models.Maker()
    x = m.input("x", [2, 8])
    scale, zero = m.number(0.02), m.const(np.uint8(120))
    q = m.op("QuantizeLinear", x, scale, zero)
    y = m.op(op, *[q, scale, zero] * inputs, m.number(0.01), m.const(np.uint8(3)), domain="com.microsoft", **attrs)
    model = m.model(m.op("DequantizeLinear", y, m.number(0.01), m.const(np.uint8(3))))
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    ours, x = Simulated(model, tmp_path), np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)
    theirs = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert np.abs(ours(x=x)[0] - theirs.run(None, {"x": x})[0]).max() < 0.0101  # one step
