"""One model in the forms of every opset from 7 on: attributes that became inputs, operators that got other names."""

import pathlib
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
from openinfer.oinf.importer.command import main, write_package  # noqa: E402
from openinfer.oinf.importer.convert import Options, import_model  # noqa: E402
from openinfer.oinf.importer.text import write_text  # noqa: E402

NEWEST = onnx.defs.onnx_opset_version()
OLDEST = 7


class Forms(models.Maker):
    """Operators as the opset writes them."""

    def ints(self, *values):
        return self.const(np.array(values, np.int64))

    def with_axes(self, kind, x, axes, since, **attrs):
        return self.op(kind, x, self.ints(*axes), **attrs) if self.opset >= since else self.op(kind, x, axes=axes, **attrs)

    def split(self, x, sizes):
        return self.op("Split", x, self.ints(*sizes), n=2, axis=1) if self.opset >= 13 else self.op("Split", x, n=2, axis=1, split=sizes)

    def first(self, x, n):
        if self.opset < 10:
            return self.op("Slice", x, axes=[1], starts=[0], ends=[n])
        return self.op("Slice", x, self.ints(0), self.ints(n), self.ints(1))

    def pad(self, x):
        pads = [0, 0, 1, 1, 0, 0, 1, 1]
        return self.op("Pad", x, self.ints(*pads), self.number(0.5)) if self.opset >= 11 else self.op("Pad", x, pads=pads, value=0.5)

    def clip(self, x):
        return self.op("Clip", x, self.number(-1), self.number(2)) if self.opset >= 11 else self.op("Clip", x, min=-1.0, max=2.0)

    def twice(self, x):
        if self.opset < 9:
            return self.op("Upsample", x, mode="nearest", scales=[1.0, 1.0, 2.0, 2.0])
        scales = self.const(np.array([1, 1, 2, 2], np.float32))
        if self.opset < 11:
            return self.op("Upsample" if self.opset == 9 else "Resize", x, scales, mode="nearest")
        return self.op("Resize", x, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")


def model_of(opset):
    m = Forms(opset)
    x = m.op("Conv", m.input("x", [2, 3, 8, 8]), m.weight(8, 3, 3, 3), m.weight(8, name="bias"), pads=[1, 1, 1, 1])
    x = m.op("MaxPool", m.op("Relu", x), kernel_shape=[2, 2], strides=[2, 2])
    x = m.with_axes("ReduceMean", m.clip(m.twice(m.pad(x))), [2, 3], 18, keepdims=0)
    x = m.with_axes("Squeeze", m.with_axes("Unsqueeze", x, [1], 13), [1], 13)
    left, right = m.split(m.op("Gemm", x, m.weight(8, 6, name="matrix"), m.weight(6, name="offset")), [3, 3])
    y = m.op("Add", m.first(left, 3), m.with_axes("ReduceSum", right, [1], 13, keepdims=1))
    return m.model(m.op("Softmax", m.op("Dropout", y), axis=1))


@pytest.mark.parametrize("opset", range(OLDEST, NEWEST + 1))
def test_every_opset(tmp_path, opset):
    """The numbers of the newest form, by ONNX's own definition."""
    imported = import_model(".", Options(), model_of(opset))
    assert not imported.problems, [p.text() for p in imported.problems]
    x = np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype(np.float32)
    text = write_text(imported.program, [])
    write_package(str(tmp_path / "m.oinf"), imported.program)
    (found,) = session.run(text, tmp_path / "m.oinf", {"x": ("f32", x)}, 1)
    np.testing.assert_allclose(found, ReferenceEvaluator(model_of(NEWEST)).run(None, {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_an_opset_of_the_future(tmp_path, capsys):
    model = model_of(NEWEST)
    model.opset_import[0].version = NEWEST + 1
    onnx.save(model, tmp_path / "m.onnx")
    assert main([str(tmp_path / "m.onnx"), "--check"]) == 1
    assert f"opset {NEWEST + 1} is newer than the onnx package knows" in capsys.readouterr().err
