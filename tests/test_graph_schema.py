"""docs/graph.schema.json describes the graph JSON: every example fits it, and what the reader refuses does not."""

import copy
import json
import pathlib

import pytest

from conftest import REPO

jsonschema = pytest.importorskip("jsonschema", reason="needs the Python package jsonschema")
SCHEMA = json.loads((REPO / "docs/graph.schema.json").read_text())
GRAPHS = sorted([*(REPO / "examples").glob("*.oi"), *(REPO / "examples/tiny").glob("*.oi"), *(REPO / "examples/smollm2").glob("*.oi")])
CHECKER = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.fixture(scope="module")
def written(openinfer):
    """{name: JSON} of all graphs, with every key that can be written."""
    return {path.stem: json.loads(openinfer("graph", path, "--to", "json").stdout) for path in GRAPHS}


def test_examples_fit(written):
    assert len(written) >= 25
    for name, graph in written.items():
        wrong = next(CHECKER.iter_errors(graph), None)
        assert wrong is None, f"{name}: {wrong.message} at {list(wrong.absolute_path)}"


def test_every_kind_of_node_is_tried(written):
    kinds = set()

    def walk(nodes):
        for node in nodes:
            kind = node["kind"] if isinstance(node["kind"], str) else next(iter(node["kind"]))
            kinds.add(kind)
            if kind == "Loop":
                walk(node["kind"]["Loop"]["body"])

    for graph in written.values():
        for block in graph["blocks"].values():
            walk(block["nodes"])
    known = set(SCHEMA["$defs"]["kind"]["anyOf"][1]["properties"])
    assert kinds == known, known ^ kinds


@pytest.mark.parametrize("path,value", [
    (["blocks", "entry", "nodes", 0, "kind"], {"Asign": {}}),
    (["blocks", "entry", "nodes", 0, "index"], -1),
    (["blocks", "entry", "nodes", 1, "kind", "Op", "inputs"], "x"),
    (["blocks", "entry", "name"], 7),
    (["vars", "x", "dtype"], "F31"),
    (["vars", "x", "kind"], "Static"),
])  # fmt: skip
def test_what_the_reader_refuses_does_not_fit(written, openinfer, tmp_path, path, value):
    graph = copy.deepcopy(written["minimal"])
    at = graph
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    assert next(CHECKER.iter_errors(graph), None)
    (tmp_path / "bad.json").write_text(json.dumps(graph))
    refused = openinfer("check", tmp_path / "bad.json", code=1)
    assert refused.returncode == 1 and "error" in refused.stderr


def test_the_file_is_where_the_page_says():
    assert "graph.schema.json" in pathlib.Path(REPO / "docs/serialization.md").read_text()
