"""`openinfer check` as people see it: what it prints, where, and how it ends. What it finds is in
tests/lang."""

import json
import sys

import pytest

from conftest import REPO

sys.path.insert(0, str(REPO / "python/src"))
from openinfer.oinf import PackageWriter, TensorSpec  # noqa: E402

GOOD = "volatile { x: f32[B]; }\nblock entry {\n  op neg(x) >> x;\n  return;\n}\n"
BAD = "volatile { bias: f32[4]; h: f32[3]; }\nblock entry {\n  op add(h, bias) >> h;\n  op ad(h, h) >> h;\n  return;\n}\n"


@pytest.fixture
def graph(tmp_path):
    def write(text, name="graph.oi"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_good(openinfer, graph):
    path = graph(GOOD)
    result = openinfer("check", path)
    assert result.stdout == f"{path}: ok (1 variable, 1 block, 2 nodes)\n"
    assert result.stderr == ""


def test_bad(openinfer, graph):
    """The line, a caret under the first token, a note at the declaration, a hint."""
    path = graph(BAD)
    result = openinfer("check", path, code=1)
    assert result.stdout == ""
    assert result.stderr == (
        f"{path}:3:13: error[E051]: add: cannot broadcast [3] with [4]\n"
        "    3 |   op add(h, bias) >> h;\n"
        "      |             ^~~~\n"
        f"{path}:1:12: note: 'bias' is declared here\n"
        "    1 | volatile { bias: f32[4]; h: f32[3]; }\n"
        "      |            ^~~~\n"
        f"{path}:1:26: note: 'h' is declared here\n"
        "    1 | volatile { bias: f32[4]; h: f32[3]; }\n"
        "      |                          ^\n"
        f"{path}:4:6: error[E057]: unknown op 'ad'\n"
        "    4 |   op ad(h, h) >> h;\n"
        "      |      ^~\n"
        "      = hint: did you mean 'add'?\n"
    )


def test_json(openinfer, graph):
    result = openinfer("check", graph(BAD), "--json", code=1)
    value = json.loads(result.stdout)
    assert (value["errors"], value["warnings"], result.stderr) == (2, 0, "")
    assert [(m["code"], m["line"], m["col"]) for m in value["messages"] if m["severity"] == "error"] == [
        ("E051", 3, 13),
        ("E057", 4, 6),
    ]
    assert json.loads(openinfer("check", graph(GOOD), "--json").stdout)["messages"] == []


def test_missing_files_are_the_environment(openinfer, graph, tmp_path):
    assert "no-such.oi" in openinfer("check", tmp_path / "no-such.oi", code=3).stderr
    assert "no-such.oinf" in openinfer("check", graph(GOOD), "--model", tmp_path / "no-such.oinf", code=3).stderr


def test_graph_json(openinfer, graph, tmp_path):
    path = tmp_path / "graph.json"
    openinfer("graph", graph(BAD), "--to", "json", "-o", path)
    error = openinfer("check", path, code=1).stderr
    assert f"{path}:/blocks/entry/nodes/1/kind/Op: error[E057]: unknown op 'ad'" in error


def test_a_package_checks_its_own_graph(openinfer, graph, tmp_path):
    path = tmp_path / "model.oinf"
    with PackageWriter(path) as w:
        w.add_sizevar("B", 3)
        w.add_tensor("x", TensorSpec([1.0, 2.0], dtype="f32"))
        w.add_metadata("oi.graph", GOOD)
        w.add_metadata("oi.graph.other", GOOD.replace("f32[B]", "f32[B - 1]"))
    assert "error[E013]" in openinfer("check", path, code=1).stderr
    assert openinfer("check", f"{path}#other").stdout.startswith(f"{path}#other: ok")
    assert "E013" in openinfer("check", graph(GOOD), "--model", path, code=1).stderr
    assert openinfer("check", graph(GOOD)).stderr == ""
