"""What torch's exporters write, in both of their forms: names by modules, lists, group norms, recurrent layers."""

import pathlib
import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("ml_dtypes")
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "python/src")]

import onnx_graphs as models  # noqa: E402
from openinfer.oinf.importer.command import main  # noqa: E402
from openinfer.oinf.importer.scopes import KEY  # noqa: E402
from test_import_models import compared, ops, simulated  # noqa: E402
from test_import_sizes import at_other_sizes  # noqa: E402


def module_paths(scope, last):
    """['', 'h.0', 'h.0.attn', 'linear'] for 'h.0/attn'."""
    parts = [p for p in scope.split("/") if p]
    return ["", *(".".join(parts[: i + 1]) for i in range(len(parts))), last]


def newer_form(model):
    """The model as torch's newer exporter names it: results after functions, counted up; modules in the metadata."""
    new = onnx.ModelProto()
    new.CopyFrom(model)
    ends, rename = {o.name for o in new.graph.output}, {}
    for node in new.graph.node:
        scope = node.output[0].rpartition("/")[0].strip("/")
        for name in node.output:
            if name not in ends:
                rename[name] = f"val_{len(rename)}" if scope else name
        if node.name and "/" in node.name.strip("/"):
            scope = node.name.rpartition("/")[0].strip("/")
        node.metadata_props.add(key=KEY, value=str(module_paths(scope, node.op_type.lower())))
    for node in new.graph.node:
        node.input[:] = [rename.get(n, n) for n in node.input]
        node.output[:] = [rename.get(n, n) for n in node.output]
    return new


@pytest.mark.parametrize("name", ["gpt", "bert", "llama", "vit"])
def test_both_forms_of_names_give_one_text(tmp_path, name):
    model = getattr(models, name)()
    texts = []
    for form in (model, newer_form(model)):
        onnx.save(form, tmp_path / "m.onnx")
        assert main([str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out"), "-q"]) == 0
        texts.append((tmp_path / "out/m.oi").read_text())
    assert texts[0] == texts[1] and "val_" not in texts[1]


@pytest.mark.parametrize("value", ["", "[", "['a/b', 'c']", "[1, 2]", "{}", "['']", "(" * 2000, "['" + "a." * 3000 + "']", "[['a'], 'b']"])
def test_broken_metadata_is_ignored(tmp_path, value):
    m = models.Maker()
    model = m.model(m.op("Relu", m.op("Sin", m.input("x", [2]))))
    for node in model.graph.node:
        node.metadata_props.add(key=KEY, value=value)
    assert ops(compared(model, tmp_path)) == ["sin", "relu"]


def test_names_that_a_body_reads_stay(tmp_path):
    """Only the results of the model's own nodes are named after modules."""
    h, T = onnx.helper, onnx.TensorProto
    body = h.make_graph([h.make_node("Add", ["i", "a"], ["n"]), h.make_node("Identity", ["go"], ["on"])], "body",
                        [h.make_tensor_value_info(n, k, []) for n, k in (("k", T.INT64), ("go", T.BOOL), ("i", T.FLOAT))],
                        [h.make_tensor_value_info("on", T.BOOL, []), h.make_tensor_value_info("n", T.FLOAT, [2])])  # fmt: skip
    m = models.Maker()
    x = m.input("x", [2])
    m.nodes += [h.make_node("Sin", [x], ["a"]), h.make_node("Loop", [m.const(np.int64(3)), "", "a"], ["b"], body=body)]
    model = m.model(m.op("Cos", "b"))
    for node in model.graph.node:
        node.metadata_props.add(key=KEY, value="['', 'net', 'f']")
    _, given, (got,) = simulated(model, tmp_path, False)
    np.testing.assert_allclose(got, np.cos(4 * np.sin(given["x"])), rtol=1e-5)


def test_entries_of_lists(tmp_path):
    """nn.Sequential: its scope says the list's name twice, the weight's key is that of torch's state_dict."""
    m = models.Maker()
    x = m.input("x", [4, 8])
    with m.scope("mlp"):
        for i in (0, 2):
            with m.scope(f"mlp.{i}"):
                x = m.op("Relu", m.op("MatMul", x, m.const(m.rng.standard_normal((8, 8)).astype("f"), f"onnx::MatMul_{i}")))
    text = compared(m.model(m.op("Neg", x)), tmp_path)
    assert '@ref("mlp.0.weight")' in text and '@ref("mlp.2.weight")' in text and "// mlp.2\n" in text


def groupnorm(m, x, n, c, groups, side, scale=(1.0, 0.0), affine=True):
    rows = m.shape(x, n, groups, -1)
    y = m.op("InstanceNormalization", rows, m.const(np.full(groups, scale[0], "f")), m.const(np.full(groups, scale[1], "f")), epsilon=1e-4)
    y = m.shape(y, n, c, side, side)
    return m.op("Add", m.op("Mul", y, m.weight(c, 1, 1)), m.weight(c, 1, 1, name="bias")) if affine else y


@pytest.mark.parametrize("change, found", [({}, True), ({"affine": False}, True), ({"scale": (2.0, 0.0)}, False), ({"scale": (1.0, 0.5)}, False)])
def test_group_norms(tmp_path, change, found):
    m = models.Maker()
    text = compared(m.model(m.op("Relu", groupnorm(m, m.input("x", [2, 6, 4, 4]), 2, 6, 3, 4, **change))), tmp_path)
    assert (ops(text) == ["groupnorm", "relu"]) == found and ("instancenorm" in text) != found
    assert not found or "groups=3, eps=0.0001" in text


def test_a_resize_to_another_ones_size(tmp_path):
    """By whole factors, so that height and width stay sizes."""
    m = models.Maker(opset=18)
    x = m.input("x", ["N", 3, "H", "W"])
    small = m.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    rest = m.op("Slice", m.op("Shape", x), m.const(np.array([2])), m.const(np.array([4])), m.const(np.array([0])))
    to = m.op("Concat", m.op("Slice", m.op("Shape", small), m.const(np.array([0])), m.const(np.array([2])), m.const(np.array([0]))), rest, axis=0)
    y = m.op("Resize", small, "", "", to, mode="linear", coordinate_transformation_mode="half_pixel")
    text, stays = at_other_sizes(tmp_path, m.model(m.op("Add", x, y)), {"N": 1, "H": 8, "W": 16}, {"N": 2, "H": 16, "W": 4})
    assert not stays and "scales=[1.0, 1.0, 2.0, 2.0]" in text and "sizes=" not in text


def test_states_of_zeros_are_left_out(tmp_path):
    m = models.Maker()
    x, zeros = m.input("x", [5, 1, 3]), m.const(np.zeros((2, 1, 4), "f"), "onnx::LSTM_9")
    with m.scope("lstm"):
        weights = [m.const(m.rng.standard_normal(s).astype("f"), f"onnx::LSTM_{i}") for i, s in enumerate([(2, 16, 3), (2, 16, 4), (2, 32)])]
        y = m.op("LSTM", x, *weights, "", zeros, zeros, hidden_size=4, direction="bidirectional")
        gate = m.op("LSTM", x, *weights, "", zeros, m.const(np.ones((2, 1, 4), "f")), hidden_size=4, direction="bidirectional")
    text = compared(m.model(m.op("Add", y, gate)), tmp_path)
    assert 'lstm_weight, lstm_recurrent, lstm_bias, direction="bidirectional") >> lstm, h_last, c_last;' in text
    assert "lstm_bias, zeros, " in text  # where the second state is given


def test_two_weights_of_one_module(tmp_path):
    """In a loop their keys are counted: a table's key has no words of ours."""
    m = models.Maker()
    x = m.input("x", [4, 8])
    for layer in range(4):
        with m.scope(f"layers.{layer}"), m.scope("attn"):
            for i in range(2):
                w = m.const(m.rng.standard_normal((8, 8)).astype("f") / 3, f"onnx::MatMul_{layer}{i}")
                x = m.op("Tanh", m.op("MatMul", x, w))
    text = compared(m.model(x), tmp_path)
    assert '@pattern("layers.{l}.attn.weight")' in text and '@pattern("layers.{l}.attn.weight_2")' in text


def test_a_list_without_a_name(tmp_path):
    """nn.Sequential itself: its entries are modules called 0, 1, 2."""
    m = models.Maker()
    x = m.input("x", [4, 8])
    for layer in range(8):
        with m.scope(f"{layer}"):
            x = m.op("Tanh", m.op("Add", m.op("MatMul", x, m.weight(8, 8)), m.weight(8, name="bias")))
    text = compared(m.model(x), tmp_path)
    assert "loop layers (l in 0..8) {" in text and '@pattern("{l}.weight")' in text


def test_all_sizes_are_asked_for_at_once(tmp_path, capsys):
    m = models.Maker()
    onnx.save(m.model(m.op("Relu", m.input("x", ["N", 3, "H", "W"]))), tmp_path / "m.onnx")
    assert main([str(tmp_path / "m.onnx"), "--check"]) == 1
    assert "as in --size N=1 --size H=1 --size W=1" in capsys.readouterr().err
