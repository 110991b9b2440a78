"""`oinf import`: texts a person can read, constants folded, all problems at once, and no harm from broken files."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")

from onnx import TensorProto as T  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

from openinfer.oinf import read_oinf  # noqa: E402
from openinfer.oinf.importer import main, registry  # noqa: E402

REPO = Path(__file__).resolve().parent.parent.parent


def info(name, shape, kind=T.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def save(path, nodes, inputs, outputs, weights=(), opset=17, **kind):
    tensors = [numpy_helper.from_array(v, k) for k, v in dict(weights).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **kind)
    onnx.save(model, path)
    return str(path)


def small(path):
    w = np.arange(128, dtype=np.float32).reshape(8, 16)
    return save(path, [
        helper.make_node("MatMul", ["x", "/enc/fc/weight"], ["/enc/fc/MatMul_output_0"], name="/enc/fc/MatMul"),
        helper.make_node("Add", ["/enc/fc/MatMul_output_0", "half"], ["/enc/fc/Add_output_0"], name="/enc/fc/Add"),
        helper.make_node("Shape", ["/enc/fc/Add_output_0"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["to"], axis=0),
        helper.make_node("Reshape", ["/enc/fc/Add_output_0", "to"], ["y"]),
    ], [info("x", ["N", 8])], [info("y", None)], {
        "/enc/fc/weight": w, "half": np.full(16, 0.5, np.float32), "zero": np.array([0]), "rest": np.array([4, 4]),
    })  # fmt: skip


TEXT = """\
// from m.onnx by oinf import

dynamic {
  x: f32[N, 8];
}

constant {
  enc_fc_weight: f32[8, 16] @ref("enc.fc.weight");
  half: f32[16] @init(0.5);
}

block entry {
  // enc/fc
  assign fc: f32[N, 16];
  op matmul(x, enc_fc_weight) >> fc;
  op add(fc, half) >> fc;
  assign y: f32[N, 4, 4];
  op reshape(fc) >> y;
  return y;
}
"""


def test_a_small_model(tmp_path, capsys):
    path = small(tmp_path / "m.onnx")
    assert main([path, "-o", str(tmp_path / "out"), "--size", "N=2", "--map"]) == 0
    assert (tmp_path / "out/m.oi").read_text() == TEXT
    printed = capsys.readouterr().out
    assert "/enc/fc/MatMul (MatMul) -> m.oi:15" in printed and "s (Shape) -> folded" in printed
    assert "6 ONNX nodes became 3 statements" in (tmp_path / "out/summary.txt").read_text()
    with read_oinf(str(tmp_path / "out/model.oinf"), strict=True) as p:
        assert list(p.tensors) == ["enc.fc.weight"]
        assert json.loads(p.meta_text("import.names")) == {"enc.fc.weight": "/enc/fc/weight"}


def test_a_symbol_without_a_size_is_named(tmp_path, capsys):
    assert main([small(tmp_path / "m.onnx"), "--check"]) == 1
    assert "the sizes N are symbols" in capsys.readouterr().err


def test_sizes_without_names_are_apart(tmp_path, capsys):
    """Some exporters call every open size "?": each is a size of its own."""
    node = helper.make_node("BatchNormalization", ["x", "s", "s", "s", "s"], ["y"], momentum=0.5)
    weights = {"s": np.ones(3, np.float32)}
    path = save(tmp_path / "m.onnx", [node], [info("x", ["?", 3, "?"])], [info("y", None)], weights)
    assert main([path, "--check"]) == 1
    assert "the sizes x.0, x.2 are symbols" in capsys.readouterr().err
    assert main([path, "-o", str(tmp_path / "out"), "--size", "x.0=1", "--size", "x.2=5"]) == 0
    assert "x: f32[x_0, 3, x_2]" in (tmp_path / "out/m.oi").read_text()


def test_everything_missing_is_listed_at_once(tmp_path, capsys):
    path = save(tmp_path / "m.onnx", [
        helper.make_node("RandomNormalLike", ["x"], ["a"], name="first"),
        helper.make_node("Multinomial", ["x"], ["b"], name="second"),
        helper.make_node("Reshape", ["x", "to"], ["y"], name="third"),
    ], [info("x", [2, 2]), info("to", [1], T.INT64)], [info("y", None)])  # fmt: skip
    assert main([path, "--check"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == ["node first", "node second", "node third"]
    assert "RandomNormalLike (opset 17)" in lines[0] and "--bind to=VALUE" in lines[2] and "3 of 3 nodes" in lines[-1]
    assert not (tmp_path / "out").exists()


def test_a_bound_input_is_a_constant(tmp_path):
    path = save(tmp_path / "m.onnx", [helper.make_node("Reshape", ["x", "to"], ["y"])],
                [info("x", [2, 2]), info("to", [1], T.INT64)], [info("y", None)])  # fmt: skip
    assert main([path, "-o", str(tmp_path / "out"), "--bind", "to=4", "-q"]) == 0
    assert "y: f32[4]" in (tmp_path / "out/m.oi").read_text()


def test_an_attribute_that_no_rule_reads_is_an_error(tmp_path, capsys):
    path = save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"], strange=3)], [info("x", [2])], [info("y", [2])])
    assert main([path, "--check"]) == 1
    assert "strange" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["../weights.bin", "/etc/passwd", "sub/../../weights.bin"])
def test_external_data_stays_in_the_folder(tmp_path, capsys, place):
    (tmp_path / "weights.bin").write_bytes(bytes(64))
    (tmp_path / "model").mkdir()
    path = small(tmp_path / "model/m.onnx")
    model = onnx.load(path)
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = T.EXTERNAL
    tensor.external_data.add(key="location", value=place)
    (tmp_path / "model/m.onnx").write_bytes(model.SerializeToString())
    assert main([path, "--check", "--size", "N=1"]) == 1
    error = capsys.readouterr().err
    assert "relative" in error or "out of the model's folder" in error


def test_external_data_is_read(tmp_path):
    path = small(tmp_path / "m.onnx")
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    assert main([path, "-o", str(tmp_path / "out"), "--size", "N=2", "-q"]) == 0
    with read_oinf(str(tmp_path / "out/model.oinf")) as p:
        assert p.tensors["enc.fc.weight"].tolist()[1][0] == 16.0


def test_gelu_and_silu_are_recognised(tmp_path):
    c = {"r": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)}
    path = save(tmp_path / "m.onnx", [
        helper.make_node("Div", ["x", "r"], ["a"]), helper.make_node("Erf", ["a"], ["b"]),
        helper.make_node("Add", ["b", "one"], ["c"]), helper.make_node("Mul", ["x", "c"], ["d"]),
        helper.make_node("Mul", ["d", "half"], ["e"]), helper.make_node("Sigmoid", ["e"], ["f"]),
        helper.make_node("Mul", ["e", "f"], ["y"]),
        helper.make_node("Sigmoid", ["y"], ["s"]), helper.make_node("Mul", ["y", "s"], ["z"]),
    ], [info("x", [4])], [info("y", [4]), info("s", [4]), info("z", [4])], {k: np.asarray(v) for k, v in c.items()})  # fmt: skip
    assert main([path, "-o", str(tmp_path / "out"), "-q"]) == 0
    ops = [line.split("(")[0].split()[1] for line in (tmp_path / "out/m.oi").read_text().splitlines() if line.startswith("  op ")]
    assert ops == ["gelu", "silu", "sigmoid", "mul"]  # the second sigmoid is an output, so it stays


def test_a_name_that_is_no_text_is_refused(tmp_path, capsys):
    data = Path(small(tmp_path / "m.onnx")).read_bytes()
    (tmp_path / "m.onnx").write_bytes(data.replace(b"/enc/fc/MatMul_output_0", b"/enc/fc/MatMul_output_\xff"))
    assert main([str(tmp_path / "m.onnx"), "--check"]) == 1
    assert "not UTF-8" in capsys.readouterr().err


def test_broken_files_give_one_error(tmp_path, capsys):
    """Bytes changed, cut and doubled: exit 0 or 1 with one message, never an exception."""
    data = Path(small(tmp_path / "m.onnx")).read_bytes()
    rng, path, refused = random.Random(1), tmp_path / "broken.onnx", 0
    for _ in range(300):
        broken = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(broken))
            broken[at : at + rng.randint(0, 3)] = rng.randbytes(rng.randint(0, 3))
        path.write_bytes(broken)
        code = main([str(path), "--check", "--size", "N=2"])
        error = capsys.readouterr().err
        assert code in (0, 1) and (code == 0) == (error == "")
        refused += code
    assert refused > 100


def test_the_registry_is_that_of_the_repository():
    table = REPO / "ops/ops.json"
    if not table.exists():
        pytest.skip("the package is tested outside its repository")
    want = registry.condensed(str(table))
    assert registry.FILE.read_text(encoding="utf-8") == want, "run python -m openinfer.oinf.importer.registry ops/ops.json"
