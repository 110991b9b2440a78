"""plan.json is the plan: what docs/plan.schema.json describes, with names that lead somewhere and totals that add up."""

import json
import re

import pytest

import test_synth
from conftest import REPO

EXAMPLES = REPO / "examples"
SCHEMA = json.loads((REPO / "docs/plan.schema.json").read_text(encoding="utf-8"))
WAYS = {
    "scalar": ["--target", "cpu_scalar"],
    "workers": ["--target", "cpu_avx2", "--partition-all"],
    "small": ["--target", "cortex_m4"],
    "shaders": ["--target", "vulkan_desktop", "--device-only"],
}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "null": type(None)}
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "additionalProperties", "required", "properties", "items", "enum", "pattern"}


def is_type(value, name):
    return isinstance(value, TYPES[name]) and not (name == "integer" and isinstance(value, bool))


def validate(value, schema, where="plan"):
    """The part of JSON Schema that ours uses."""
    assert set(schema) <= KNOWN, f"{where}: this test does not know {set(schema) - KNOWN}"
    if "$ref" in schema:
        validate(value, SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]], where)
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        assert any(is_type(value, n) for n in names), f"{where}: {value!r} is no {names}"
    if "enum" in schema:
        assert value in schema["enum"], f"{where}: {value!r}"
    if "pattern" in schema:
        assert re.search(schema["pattern"], value), f"{where}: {value!r}"
    if isinstance(value, list):
        for i, item in enumerate(value):
            validate(item, schema.get("items", {}), f"{where}[{i}]")
    if isinstance(value, dict):
        assert set(schema.get("required", ())) <= set(value), f"{where} lacks {set(schema['required']) - set(value)}"
        known = schema.get("properties", {})
        assert schema.get("additionalProperties", True) or set(value) <= set(known), f"{where}: {set(value) - set(known)}"
        for key, item in value.items():
            validate(item, known.get(key, {}), f"{where}.{key}")


def steps(body):
    for step in body:
        yield step
        yield from steps(step.get("body", []))


def plan_of(openinfer, out, *words):
    openinfer("synth", *words, "-o", out, "--force")
    return json.loads((out / "plan.json").read_text())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", test_synth.NAMES)
def test_the_schema_describes_it(openinfer, example_package, tmp_path, name, way):
    words = [EXAMPLES / f"{name}.oi", "--model", example_package(name), *WAYS[way]]
    result = openinfer("synth", *words, "-o", tmp_path / "out", code=None)
    if result.returncode:
        assert way in ("small", "shaders") and "E06" in result.stderr  # the device cannot run it
        return
    plan = json.loads((tmp_path / "out/plan.json").read_text())
    validate(plan, SCHEMA)
    kernels, buffers = {k["name"] for k in plan["kernels"]}, {b["name"] for b in plan["buffers"]}
    blocks = {b["block"] for b in plan["schedule"]}
    called = set()
    for step in (s for b in plan["schedule"] for s in steps(b["body"])):
        assert {step.get("then"), step.get("else")} - {None} <= blocks
        assert step.get("orders") in buffers | {None}
        if step["kind"] == "kernel":
            called.add(step["kernel"])
    assert called == kernels
    for kernel in plan["kernels"]:
        assert {p["buffer"] for p in kernel["ports"]} <= buffers and len(kernel["fused"]) == len(kernel["nodes"])
    for b in plan["buffers"]:
        if "offset" in b and "view" not in b:
            assert b["offset"] + b["bytes"] <= plan["totals"][f"{b['space']}_bytes"]
    assert any("undo" in s for b in plan["schedule"] for s in steps(b["body"])) == (plan["undo"]["kind"] != "none")


def test_barriers_name_what_they_order(openinfer, tmp_path):
    text = ("dynamic { x: f32[64, 64]; }\nvolatile { y: f32[64, 64]; }\nblock entry {\n  assign h: f32[64, 64];\n"
            "  op softmax(x, axis=1) >> h;\n  op softmax(h, axis=0) >> y;\n  return y;\n}\n")  # fmt: skip
    (tmp_path / "g.oi").write_text(text)
    plan = plan_of(openinfer, tmp_path / "out", tmp_path / "g.oi", *WAYS["workers"])
    assert [s["orders"] for s in plan["schedule"][0]["body"] if s["kind"] == "barrier"][:1] == ["h"]


def test_hashes_and_bytes_repeat(openinfer, example_package, tmp_path):
    """The same graph, model and device give the same bytes; another graph or model gives another hash."""
    words = ["--model", example_package("linear"), "--target", "cpu_scalar"]
    a = plan_of(openinfer, tmp_path / "a", EXAMPLES / "linear.oi", *words)
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved/linear.oi").write_text((EXAMPLES / "linear.oi").read_text())
    plan_of(openinfer, tmp_path / "b", tmp_path / "moved/linear.oi", *words)
    assert (tmp_path / "a/plan.json").read_bytes() == (tmp_path / "b/plan.json").read_bytes()
    other = (EXAMPLES / "linear.oi").read_text().replace("op add(a, bias)", "op sub(a, bias)")
    (tmp_path / "linear.oi").write_text(other)
    c = plan_of(openinfer, tmp_path / "c", tmp_path / "linear.oi", *words)
    assert c["graph_hash"] != a["graph_hash"] and c["model_hash"] == a["model_hash"]
