"""Symbols of shapes stay sizes of the text, and a state that the model hands in and out can stay in the program."""

import json
import os
import pathlib
import subprocess
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

BIN = os.environ.get("OPENINFER_BIN", str(session.BUILD / "bin/openinfer"))


def at_other_sizes(folder, model, given, *others):
    """The text of the model for the sizes `given`; it gives the reference's numbers for other ones, too."""
    imported = import_model(".", Options(sizes=given), model)
    program, reference = imported.program, ReferenceEvaluator(model)
    text = write_text(program, [])
    for sizes in (given, *others):
        program.sizes.update({k: v for k, v in sizes.items() if k in program.sizes})
        rng, values = np.random.default_rng(0), {}
        for info in model.graph.input:
            dims = [d.dim_value or sizes[d.dim_param] for d in info.type.tensor_type.shape.dim]
            values[info.name] = rng.standard_normal(dims).astype(np.float32)
        package = folder / "m.oinf"
        write_package(str(package), program)
        got = session.run(text, package, {v.label: (v.dtype, values[v.name]) for v in program.inputs}, len(program.outputs))
        for w, g in zip(reference.run(None, values), got):
            np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)
    return text, imported.stays


def test_a_product_and_a_sum_of_sizes(tmp_path):
    m = models.Maker()
    x, y = m.input("x", ["N", "T", 8]), m.input("y", ["N", "S", 8])
    both = m.op("Concat", x, y, axis=1)
    rows = m.op("MatMul", m.op("Reshape", both, m.const(np.array([-1, 8]))), m.weight(8, 4))
    n, t, s = (m.op("Gather", m.op("Shape", v), m.const(np.int64(i)), axis=0) for v, i in ((x, 0), (x, 1), (y, 1)))
    one = m.const(np.array([0]))
    to = m.op("Concat", m.op("Unsqueeze", n, one), m.op("Unsqueeze", m.op("Add", t, s), one), m.const(np.array([4])), axis=0)
    model = m.model(m.op("Softmax", m.op("Reshape", rows, to), axis=-1))
    text, stays = at_other_sizes(tmp_path, model, {"N": 1, "T": 3, "S": 2}, {"N": 3, "T": 5, "S": 1}, {"N": 2, "T": 1, "S": 1})
    assert not stays and "x: f32[N, T, 8];" in text and "f32[N*(T+S), 8]" in text and "y0: f32[N, T+S, 4]" in text


def test_lengths_of_windows(tmp_path):
    m = models.Maker()
    x = m.input("x", ["N", 3, "H", "W"])
    x = m.op("Conv", x, m.weight(4, 3, 3, 3), pads=[1, 1, 1, 1], strides=[2, 2])
    x = m.op("Flatten", m.op("Relu", m.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])))
    text, stays = at_other_sizes(tmp_path, m.model(x), {"N": 1, "H": 8, "W": 16}, {"N": 2, "H": 16, "W": 8})
    assert not stays and "y0: f32[N, H*W/4]" in text


def test_a_constant_that_depends_on_a_size_keeps_the_number(tmp_path):
    """Positions are computed at import time; the batch stays a size."""
    m = models.Maker()
    x = m.input("x", ["N", "T", 4])
    t = m.op("Gather", m.op("Shape", x), m.const(np.int64(1)), axis=0)
    at = m.op("Cast", m.op("Range", m.const(np.int64(0)), t, m.const(np.int64(1))), to=1)
    model = m.model(m.op("Add", x, m.op("Unsqueeze", at, m.const(np.array([1])))))
    text, stays = at_other_sizes(tmp_path, model, {"N": 2, "T": 3}, {"N": 5, "T": 3})
    assert "x: f32[N, 3, 4];" in text and list(stays) == ["T"] and "constant" in stays["T"]


def cell(path):
    m = models.Maker()
    x, h = m.input("x", ["N", 3]), m.input("h", ["N", 4])
    new = m.op("Tanh", m.op("Add", m.op("MatMul", x, m.weight(3, 4)), m.op("MatMul", h, m.weight(4, 4, name="u"))))
    model = m.model(m.op("Mul", new, m.number(2)), new)
    onnx.save(model, path)
    return model


def test_a_state_lasts(tmp_path):
    model = cell(tmp_path / "m.onnx")
    assert main([str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out"), "--size", "N=2", "--state", "h=y1", "-q"]) == 0
    text = (tmp_path / "out/m.oi").read_text()
    assert "persistent {\n  h: f32[N, 4];\n}" in text and "return y0;" in text and "cache.write y1 >> h;" in text
    x = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    command = [BIN, "run", str(tmp_path / "out/m.oi"), "--model", str(tmp_path / "out/model.oinf"), "--set", f"x={tmp_path}/x.npy"]
    done = subprocess.run([*command, "--steps", "3", "--out", str(tmp_path / "steps")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    h, reference = np.zeros((2, 4), np.float32), ReferenceEvaluator(model)
    for _ in range(3):
        y, h = reference.run(None, {"x": x, "h": h})
    np.testing.assert_allclose(np.load(tmp_path / "steps/y0.2.npy"), y, rtol=1e-5)
    verify = [BIN, "verify", *command[2:], "--steps", "3", "--no-per-node", "--cflags", "-O0", "--json"]
    done = subprocess.run(verify, capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stdout)


@pytest.mark.parametrize("state, error", [
    ("g=y1", "no input 'g'"), ("h=z", "no output 'z'"), ("x=y1", "f32[2, 3] and f32[2, 4] differ"),
])  # fmt: skip
def test_a_state_that_does_not_fit(tmp_path, capsys, state, error):
    cell(tmp_path / "m.onnx")
    assert main([str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out"), "--size", "N=2", "--state", state]) == 1
    assert error in capsys.readouterr().err
