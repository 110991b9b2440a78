"""Broken, hostile and large models: one clear error each, and time and memory that follow the size."""

import os
import pathlib
import random
import subprocess
import sys
import warnings

import pytest

onnx = pytest.importorskip("onnx")
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "python/src")]

import onnx_graphs as models  # noqa: E402
import mutate  # noqa: E402
from test_import_torch import newer_form  # noqa: E402
from openinfer.oinf.importer import main  # noqa: E402

NODE_TESTS = {
    "test_loop11", "test_scan9_sum", "test_if", "test_lstm_defaults", "test_attention_4d", "test_nonzero_example", "test_constant",
    "test_resize_upsample_scales_linear", "test_split_variable_parts_2d_opset18", "test_range_float_type_positive_delta_expanded",
    "test_einsum_batch_matmul", "test_qlinearconv", "test_unique_sorted_without_axis", "test_stft", "test_maxpool_2d_dilations",
}  # fmt: skip


def originals():
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [c.model for c in load_model_tests(kind="node") if c.name in NODE_TESTS]
    assert len(found) == len(NODE_TESTS)
    return [models.gpt(layers=3, t=4, d=8), newer_form(models.gpt(layers=3, t=4, d=8)), models.convs(), models.vit(layers=3, t=4, d=8), *found]


@pytest.mark.parametrize("kind", ["bytes", "parts"])
def test_five_hundred_broken_models(tmp_path, capsys, kind):
    rng, path, sources, accepted = random.Random(kind), tmp_path / "m.onnx", originals(), 0
    for _ in range(500):
        model = onnx.ModelProto()
        model.CopyFrom(rng.choice(sources))
        if kind == "parts":
            mutate.mutated(model, rng)
        data = model.SerializeToString()
        path.write_bytes(mutate.damaged_bytes(data, rng) if kind == "bytes" else data)
        code = main([str(path), "-o", str(tmp_path / "out"), "-q"])
        error = capsys.readouterr().err
        assert code in (0, 1) and (code == 0) == (error == "") and "Traceback" not in error
        accepted += code == 0
    assert 10 < accepted < 250


MEASURE = r"""
import re, sys, time
from openinfer.oinf.importer import main
start = time.process_time()
code = main([sys.argv[1], "-o", sys.argv[2], "-q"])
peak = re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())  # of this process only, unlike ru_maxrss
print(code, time.process_time() - start, int(peak[1]) * 1024)
"""


def measured(model, folder):
    onnx.save(model, folder / "m.onnx")
    command = [sys.executable, "-c", MEASURE, str(folder / "m.onnx"), str(folder / "out")]
    source = str(HERE.parent.parent / "python/src")
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": source}, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    code, seconds, memory = done.stdout.split()
    assert code == "0", done.stderr
    return float(seconds), float(memory), (folder / "m.onnx").stat().st_size


def test_five_thousand_nodes(tmp_path):
    m = models.Maker()
    x = m.input("x", [1, 8, 4, 4])
    for i in range(1250):  # no two neighbours alike, so that no loop makes it short
        with m.scope(f"b{i}"):
            y = m.op("Relu", m.op("Conv", x, m.weight(8, 8, 1 + 2 * m.rng.integers(2), 1), auto_pad="SAME_UPPER"))
            x = m.op("Add", x, m.op("Mul", y, m.number(m.rng.random())))
    model = m.model(x)
    assert len(model.graph.node) == 5000
    seconds, _, _ = measured(model, tmp_path)
    assert seconds < 20


def test_memory_follows_the_size(tmp_path):
    m = models.Maker()
    x = m.input("x", [1, 256, 2, 2])
    ones = m.const(m.rng.random(256).astype("f"), "c")
    values = m.rng.standard_normal((256, 256, 3, 3)).astype("f") / 48
    for i in range(90):  # every weight changes: batch normalisation is folded into it
        x = m.op("BatchNormalization", m.op("Conv", x, m.const(values, f"w{i}"), pads=[1, 1, 1, 1]), ones, ones, ones, ones)
    _, memory, size = measured(m.model(x), tmp_path)
    assert size > 200 << 20 and memory < 1.5 * size


def test_a_failing_node_hides_no_other(tmp_path, capsys):
    """What reads a result that could not be imported is looked at, too."""
    m = models.Maker()
    x = m.input("x", [2, 2])
    onnx.save(m.model(m.op("Multinomial", m.op("Relu", m.op("RandomNormalLike", x)))), tmp_path / "m.onnx")
    assert main([str(tmp_path / "m.onnx"), "--check"]) == 1
    error = capsys.readouterr().err
    assert "RandomNormalLike" in error and "Multinomial" in error and "2 of 3 nodes" in error


def test_a_branch_for_other_shapes_names_the_choice(tmp_path, capsys):
    """Both branches of a condition that only the run knows are imported; one that does not fit says how to leave it out."""
    h, T = onnx.helper, onnx.TensorProto
    info = lambda name, kind, shape: h.make_tensor_value_info(name, kind, shape)  # noqa: E731
    body = lambda name, op, *more: h.make_graph([h.make_node(op, ["x", *more], [name])], name, [], [info(name, T.FLOAT, None)])  # noqa: E731
    nodes = [h.make_node("GreaterOrEqual", ["rate", "limit"], ["fast"]),
             h.make_node("If", ["fast"], ["y"], then_branch=body("a", "Relu"), else_branch=body("b", "MatMul", "w"))]  # fmt: skip
    weights = [onnx.numpy_helper.from_array(models.np.ones((5, 4), "f"), "w"), onnx.numpy_helper.from_array(models.np.float32(8), "limit")]
    graph = h.make_graph(nodes, "g", [info("x", T.FLOAT, [2, 4]), info("rate", T.FLOAT, [])], [info("y", T.FLOAT, [2, 4])], weights)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    assert main([str(tmp_path / "m.onnx"), "--check"]) == 1
    assert "--bind rate=VALUE takes one of them" in capsys.readouterr().err
    assert main([str(tmp_path / "m.onnx"), "--check", "--bind", "rate=16"]) == 0
