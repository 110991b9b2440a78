"""The null target: every example synthesizes for it, and its listing shows the whole plan."""

import json
import sys

import pytest

from conftest import REPO

sys.path[:0] = [str(REPO / "examples"), str(REPO / "python/src")]
import run_all  # noqa: E402


@pytest.mark.parametrize("name", run_all.NAMES)
def test_lists_every_example(openinfer, example_package, tmp_path, name):
    graph = REPO / "examples" / f"{name}.oi"
    openinfer("synth", str(graph), "--model", str(example_package(name)), "--target", "null", "-o", str(tmp_path))
    text = (tmp_path / f"{name}.txt").read_text()
    plan = json.loads((tmp_path / "plan.json").read_text())
    for kernel in plan["kernels"]:
        assert f"kernel {kernel['name']}(" in text
    for tensor in plan["tensors"]:
        if tensor["space"] not in ("local", "view"):
            assert f" {tensor['name']}: {tensor['dtype']}[" in text
    assert not (tmp_path / "weights.bin").exists()


def levels(plan, kernel=None):
    """Every level of the axes of a plan: (is reduced, level, factor)."""
    kernels = [k for k in plan["kernels"] if kernel is None or k["name"] == kernel]
    return [(axis["is_reduced"], level["level"], level["factor"]) for k in kernels for nest in k["nests"]
            for axis in nest["axes"] for level in axis["levels"]]  # fmt: skip


def plan_of(openinfer, folder, text, *words):
    path = folder / "levels.oi"
    path.write_text(text)
    openinfer("synth", path, *words, "-o", folder / "out")
    return json.loads((folder / "out/plan.json").read_text())


PRODUCT = """
dynamic {{ a: f32[24, 128]; b: f32[{0}]; }}
volatile {{ y: f32[24, 40]; }}
block entry {{ op matmul(a, b, transpose_b={1}) >> y; return y; }}
"""
GELU = "dynamic { x: f32[16, 64]; } volatile { y: f32[16, 64]; } block entry { op gelu(x) >> y; return y; }"


def test_levels_of_axes(openinfer, tmp_path):
    """Register tiles and partial sums are vector levels, unroll-and-jam is an unrolled one."""
    across, along = PRODUCT.format("128, 40", "false"), PRODUCT.format("40, 128", "true")
    plain = ["--target", "cpu_avx2", "--without", "recipes"]
    assert (False, "vector", 40) in levels(plan_of(openinfer, tmp_path, across, *plain))
    assert (True, "vector", 16) in levels(plan_of(openinfer, tmp_path, along, *plain))
    assert (False, "unrolled", 8) in levels(plan_of(openinfer, tmp_path, GELU, *plain))


def test_the_listing_names_levels(openinfer, tmp_path):
    plan_of(openinfer, tmp_path, PRODUCT.format("128, 40", "false"), "--target", "null")
    assert "/* j: vector 40 */" in (tmp_path / "out/levels.txt").read_text()


def test_nothing_is_built_from_a_listing(openinfer, example_package):
    result = openinfer(
        "verify", str(REPO / "examples/linear.oi"), "--model", str(example_package("linear")), "--target", "null", code=3
    )
    assert "cannot be run here" in result.stderr
