"""What `oinf import` recognises means the same as the nodes it replaces, and is what a person would write."""

import pathlib
import re
import sys
import subprocess
import os

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


def inputs_for(program, seed=1):
    rng, given = np.random.default_rng(seed), {}
    for v in program.inputs:
        if v.name == "mask":
            given[v.name] = (np.arange(v.dims()[1])[None] < v.dims()[1] - 2).astype(np.int64)
        elif v.dtype == "i64":
            given[v.name] = rng.integers(0, 40, v.dims())
        else:
            given[v.name] = rng.standard_normal(v.dims()).astype(np.float32)
    return given


def simulated(model, folder, plain):
    program = import_model(".", Options(plain=plain), model).program
    text, package = write_text(program, []), folder / f"{plain}.oinf"
    write_package(str(package), program)
    given = inputs_for(program)
    values = {v.label: (v.dtype, given[v.name]) for v in program.inputs}
    return text, given, session.run(text, package, values, len(program.outputs))


def compared(model, folder, tolerance=2e-6):
    """The text with patterns; its results are those of the reference and of the text without."""
    _, _, plain = simulated(model, folder, True)
    text, given, got = simulated(model, folder, False)
    want = ReferenceEvaluator(model).run(None, given)
    for w, p, g in zip(want, plain, got):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=tolerance * np.abs(w).max())
        np.testing.assert_allclose(g, p, rtol=1e-4, atol=tolerance * np.abs(w).max())
    return text


def ops(text):
    return re.findall(r"op (\w+)\(", text)


def test_a_gpt_of_twelve_layers(tmp_path):
    text = compared(models.gpt(), tmp_path)
    assert text.count("\n") < 80
    assert "loop h (l in 0..12) {" in text and '@pattern("h.{l}.attn.c_attn.bias")' in text
    assert "sdpa" in text and "causal=true" in text and 'gelu(c_fc, approximate="tanh")' in text
    assert not {"softmax", "tanh", "pow", "transpose", "where"} & set(ops(text))


def test_a_bert_of_twelve_layers(tmp_path):
    text = compared(models.bert(), tmp_path)
    assert text.count("\n") < 95
    assert re.search(r"op sdpa\(query, key, value, \w+, heads=2\)", text)
    assert set(ops(text)) == {"gather", "layernorm", "reshape", "cast", "sub", "mul", "matmul", "add", "sdpa", "gelu"}


def test_a_llama(tmp_path):
    text = compared(models.llama(), tmp_path)
    assert "loop layers (l in 0..4) {" in text
    assert "heads=4, kv_heads=2, causal=true" in text and ops(text).count("rope") == 2 and ops(text).count("rmsnorm") == 3
    assert not {"concat", "neg", "slice", "expand", "softmax", "sigmoid"} & set(ops(text))


def test_a_vision_transformer(tmp_path):
    text = compared(models.vit(), tmp_path)
    assert "loop blocks (l in 0..4) {" in text and not {"gather", "gemm", "transpose"} & set(ops(text))


def test_convolutions_take_in_what_follows(tmp_path):
    text = compared(models.convs(), tmp_path)
    assert ops(text) == ["conv", "hard_swish", "conv", "hard_swish", "conv_transpose", "hard_swish", "softmax"]


def small(build, *shapes):
    m = models.Maker()
    return m.model(build(m, *(m.input(f"x{i}", list(s)) for i, s in enumerate(shapes))))


def masked(m, q, k, v, **change):
    scores = m.op("MatMul", q, m.op("Transpose", k, perm=[0, 1, 3, 2]))
    return m.op("MatMul", m.op("Softmax", change["mask"](scores), axis=change.get("axis", -1)), v)


HEADS = ((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8))
# what looks like a pattern but is none, or is another one
CASES = {
    "scaled after its mask": (lambda m, q, k, v: masked(m, q, k, v, mask=lambda s: m.op("Mul", m.op("Add", s, m.weight(4, 4)), m.number(0.3))), HEADS, {"softmax", "matmul"}),
    "softmax of another axis": (lambda m, q, k, v: masked(m, q, k, v, mask=lambda s: s, axis=-2), HEADS, {"softmax"}),
    "hidden by a small number": (lambda m, q, k, v: masked(m, q, k, v, mask=lambda s: m.op("Where", m.op("Greater", s, m.number(0)), s, m.number(-50))), HEADS, {"softmax"}),
    "any mask": (lambda m, q, k, v: masked(m, q, k, v, mask=lambda s: m.op("Add", s, m.weight(2, 4, 4))), HEADS, {"sdpa"}),
    "no scale": (lambda m, q, k, v: masked(m, q, k, v, mask=lambda s: s), HEADS, {"sdpa"}),
    "a window": (lambda m, q, k, v: masked(m, q, k, v, mask=lambda s: m.op("Where", m.const(np.tri(4, k=1, dtype=bool)), s, m.number(-np.inf))), HEADS, {"sdpa"}),
    "norm of another axis": (lambda m, x: m.op("Div", x, m.op("Sqrt", m.op("Add", m.op("ReduceMean", m.op("Mul", x, x), axes=[1], keepdims=1), m.number(1)))), ((2, 3, 4),), {"sqrt", "div"}),
    "norm without a scale": (lambda m, x: m.op("Div", x, m.op("Sqrt", m.op("Add", m.op("ReduceMean", m.op("Mul", x, x), axes=[2], keepdims=1), m.number(1)))), ((2, 3, 4),), {"rmsnorm"}),
    "norm of another mean": (lambda m, x, y: m.op("Div", m.op("Sub", x, y), m.op("Sqrt", m.op("Add", m.op("ReduceMean", m.op("Mul", x, x), axes=[2], keepdims=1), m.number(1)))), ((2, 3, 4), (2, 3, 4)), {"sqrt"}),
    "gelu of another root": (lambda m, x: m.op("Mul", m.op("Mul", x, m.op("Add", m.op("Erf", m.op("Div", x, m.number(1.4))), m.number(1))), m.number(0.5)), ((5,),), {"erf"}),
    "gelu of another cube": (lambda m, x: m.op("Mul", m.op("Mul", x, m.number(0.5)), m.op("Add", m.op("Tanh", m.op("Mul", m.op("Add", x, m.op("Mul", m.op("Pow", x, m.number(2)), m.number(0.044715))), m.number(math_c))), m.number(1))), ((5,),), {"tanh"}),
    "gelu by x (1 + c x x)": (lambda m, x: m.op("Mul", m.op("Mul", x, m.number(0.5)), m.op("Add", m.op("Tanh", m.op("Mul", m.op("Mul", x, m.number(math_c)), m.op("Add", m.op("Mul", m.op("Mul", x, x), m.number(0.044715)), m.number(1)))), m.number(1))), ((5,),), {"gelu"}),
    "gather of one index": (lambda m, x: m.op("Gather", m.op("Transpose", m.shape(x, 2, 3, 4), perm=[1, 0, 2]), m.const(np.int64(-1)), axis=0), ((2, 12),), {"slice"}),
    "a square": (lambda m, x: m.op("Pow", x, m.number(2)), ((5,),), {"square"}),
    "a cube": (lambda m, x: m.op("Pow", x, m.number(3)), ((5,),), {"pow"}),
    "a square of another shape": (lambda m, x: m.op("Pow", x, m.const(np.full((2, 1), 2, "f"))), ((5,),), {"pow"}),
    "all of it": (lambda m, x: m.op("Relu", m.op("Slice", x, m.const(np.array([0])), m.const(np.array([2**63 - 1])), m.const(np.array([1])))), ((2, 3),), {"relu"}),
    "all of it backwards": (lambda m, x: m.op("Relu", m.op("Slice", x, *(m.const(np.array([v])) for v in (-1, -(2**62), 1, -1)))), ((2, 3),), {"slice"}),
    "a transpose of pairs": (lambda m, x: m.op("Relu", m.shape(m.op("Transpose", m.shape(x, 6, 4, 5), perm=[0, 2, 1]), 2, 3, 5, 4)), ((2, 3, 4, 5),), {"transpose", "relu"}),
    "a transpose of other pairs": (lambda m, x: m.op("Relu", m.shape(m.op("Transpose", m.shape(x, 6, 4, 5), perm=[0, 2, 1]), 2, 3, 4, 5)), ((2, 3, 4, 5),), {"transpose", "reshape"}),
    "the mean of one": (lambda m, x: m.op("Relu", m.op("ReduceMean", x, axes=[1], keepdims=0)), ((2, 1, 3),), {"reshape"}),
    "times one": (lambda m, x: m.op("Relu", m.op("Div", m.op("Mul", m.number(1), x), m.const(np.ones(3, "f")))), ((2, 3),), {"relu"}),
    "times ones that make it larger": (lambda m, x: m.op("Mul", x, m.const(np.ones((2, 3), "f"))), ((3,),), {"mul"}),
    "a chain that leads back": (lambda m, x: m.op("Relu", m.op("Transpose", m.shape(m.op("Transpose", x, perm=[1, 0]), 3, 2), perm=[1, 0])), ((2, 3),), {"relu"}),
    "a chain of two turns": (lambda m, x: m.op("Transpose", m.shape(m.op("Transpose", x, perm=[1, 0]), 2, 3), perm=[1, 0]), ((2, 3),), {"transpose"}),
}
math_c = float(np.sqrt(2 / np.pi))


@pytest.mark.parametrize("name", CASES)
def test_near_patterns(tmp_path, name):
    build, shapes, wanted = CASES[name]
    found = set(ops(compared(small(build, *shapes), tmp_path)))
    assert wanted <= found and not ("relu" in wanted and found - wanted)


def test_the_end_of_a_slice_is_a_number(tmp_path):
    m = models.Maker()
    x = m.op("Slice", m.input("x", [3, 8]), m.const(np.array([1, -2])), m.const(np.array([2**63 - 1, 2**31 - 1])))
    assert "op slice(x, starts=[1, 6], ends=[3, 8])" in compared(m.model(x), tmp_path)


def test_what_is_carried_between_turns(tmp_path):
    """Two values carried crosswise, one that stays, and a last layer that differs."""
    m = models.Maker()
    a, b, c = (m.input(n, [4]) for n in "abc")
    for layer in range(5):
        with m.scope(f"step.{layer}"):
            a, b = m.op("Tanh", m.op("Add", b, m.weight(4))), m.op("Mul", m.op("Sub", a, m.weight(4, name="k")), c)
    text = compared(m.model(m.op("Sin", a), m.op("Cos", m.op("Add", b, c))), tmp_path)
    assert "loop step (l in 0..5) {" in text and "transfer" in text


def test_layers_whose_results_are_all_read_stay(tmp_path):
    m = models.Maker()
    x, kept = m.input("x", [4]), []
    for layer in range(6):
        with m.scope(f"step.{layer}"):
            x = m.op("Tanh", m.op("Add", m.op("Mul", x, m.weight(4)), m.weight(4, name="k")))
            kept.append(x)
    assert "loop" not in compared(m.model(*kept), tmp_path)


@pytest.mark.parametrize("name", ["gpt", "bert", "llama", "vit", "convs"])
def test_the_text_is_laid_out_and_no_node_is_lost(tmp_path, capsys, name):
    model = getattr(models, name)()
    onnx.save(model, tmp_path / "m.onnx")
    assert main([str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out"), "--map", "-q"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert len(told) == len(model.graph.node) and "no output" not in "".join(told)
    assert all(re.search(r"-> (m\.oi:\d+|folded|another name of its input)", line) for line in told)
    text = str(tmp_path / "out/m.oi")
    assert subprocess.run([BIN, "fmt", "--check", text]).returncode == 0
    assert subprocess.run([BIN, "check", text, "--model", str(tmp_path / "out/model.oinf")], capture_output=True).returncode == 0
