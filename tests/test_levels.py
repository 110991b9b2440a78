"""Levels of axes: what runs the places of each axis of a kernel, as plan.json and the listing show it."""

import json
import re

import pytest

PRODUCT = """
dynamic {{ a: f32[{2}, 128]; b: f32[{0}]; }}
volatile {{ y: f32[{2}, 40]; }}
block entry {{ op matmul(a, b, transpose_b={1}) >> y; return y; }}
"""
ACROSS = PRODUCT.format("128, 40", "false", 24)
ALONG = PRODUCT.format("40, 128", "true", 24)
GELU = "dynamic { x: f32[16, 64]; } volatile { y: f32[16, 64]; } block entry { op gelu(x) >> y; return y; }"
POOLS = """
dynamic { x: f32[1, 8, 64, 64]; }
volatile { y: f32[1, 8, 16, 16]; }
block entry {
  assign a: f32[1, 8, 64, 64]; assign b: f32[1, 8, 32, 32];
  op relu(x) >> a;
  op max_pool(a, kernel=[2, 2], strides=[2, 2]) >> b;
  op max_pool(b, kernel=[2, 2], strides=[2, 2]) >> y;
  return y;
}
"""


def plan_of(openinfer, folder, text, *words):
    path = folder / "levels.oi"
    path.write_text(text)
    openinfer("synth", path, *words, "-o", folder / "out")
    return json.loads((folder / "out/plan.json").read_text())


def levels(plan):
    """Those of all axes: (is reduced, level, factor)."""
    axes = [a for k in plan["kernels"] for nest in k["nests"] for a in nest["axes"]]
    axes += [{"is_reduced": False, **k["body"]} for k in plan["kernels"] if "body" in k]
    return [(axis["is_reduced"], level["level"], level["factor"]) for axis in axes for level in axis["levels"]]


def test_vectors_and_unrolled_loops(openinfer, tmp_path):
    """Register tiles and partial sums are vector levels, unroll-and-jam is an unrolled one."""
    plain = ["--target", "cpu_avx2", "--without", "recipes"]
    assert (False, "vector", 40) in levels(plan_of(openinfer, tmp_path, ACROSS, *plain))
    assert (True, "vector", 16) in levels(plan_of(openinfer, tmp_path, ALONG, *plain))
    assert (False, "unrolled", 8) in levels(plan_of(openinfer, tmp_path, GELU, *plain))


def test_workers(openinfer, tmp_path):
    """A partition is a worker level: of a nest's axis, and of the axis that a tuned body defines."""
    shared = ["--target", "cpu_avx2", "--partition-all"]
    nest = plan_of(openinfer, tmp_path, ALONG, *shared, "--without", "recipes")
    assert [x[:2] for x in levels(nest) if x[1] != "vector"] == [(False, "worker")]
    wide = plan_of(openinfer, tmp_path, PRODUCT.format("40, 128", "true", 512), *shared)
    assert any("body" in k and k["body"]["levels"][0]["level"] == "worker" for k in wide["kernels"])


def test_rows_of_a_pipeline_are_a_stream(openinfer, tmp_path):
    plan = plan_of(openinfer, tmp_path, POOLS, "--target", "cortex_m4", "--without", "fuse", "--without", "inline")
    steps = [s["rows"][1] for block in plan["schedule"] for p in block["body"] if p["kind"] == "pipeline"
             for s in p["body"]]  # fmt: skip
    assert len(steps) > 1
    assert sorted(factor for _, level, factor in levels(plan) if level == "stream") == sorted(steps)


def test_workgroups(openinfer, tmp_path):
    """A GPU's groups take tiles of results; a long sum has lanes, next to each other or a row of results apart."""
    gpu = ["--target", "vulkan_desktop", "--device-only"]
    assert levels(plan_of(openinfer, tmp_path, GELU, *gpu)) == [
        (False, "worker", 1), (False, "worker", 64), (False, "group", 64)]  # fmt: skip
    along = levels(plan_of(openinfer, tmp_path, ALONG, *gpu))
    assert along == [(False, "worker", 1), (False, "worker", 2), (False, "group", 2), (True, "lane", 32)]
    across = levels(plan_of(openinfer, tmp_path, ACROSS, *gpu))
    assert across == [(False, "worker", 1), (False, "worker", 16), (False, "group", 16), (True, "group", 16)]


@pytest.mark.parametrize("most, subgroup, shared", [(1, 8, 16384), (100, 32, 16384), (16, 128, 16384), (1024, 64, 512), (256, 8, 1)])
def test_workgroups_stay_within_limits(openinfer, tmp_path, most, subgroup, shared):
    limits = {"max_workgroup_size": [1024, 1, 1], "max_workgroup_invocations": most, "subgroup_size": subgroup, "max_shared_memory_bytes": shared}
    device = tmp_path / "gpu.json"
    device.write_text(json.dumps({"extends": "vulkan_generic", "limits": limits, "features": {"subgroup_ops": True}}))
    norm = "dynamic { x: f32[3, 300]; } volatile { y: f32[3, 300]; } block entry { op softmax(x) >> y; return y; }"
    for number, text in enumerate((ALONG, ACROSS, norm)):
        folder = tmp_path / str(number)
        folder.mkdir()
        plan_of(openinfer, folder, text, "--target", device, "--device-only")
        for path in (folder / "out").glob("*.comp"):
            shader = path.read_text()
            assert int(re.search(r"local_size_x = (\d+)", shader)[1]) <= most
            assert sum(4 * int(n) for n in re.findall(r"^shared float \w+\[(\d+)\]", shader, re.M)) <= shared


def test_the_listing_names_levels(openinfer, tmp_path):
    plan_of(openinfer, tmp_path, ACROSS, "--target", "null")
    assert "/* j: vector 40 */" in (tmp_path / "out/levels.txt").read_text()
