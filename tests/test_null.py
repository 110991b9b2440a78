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
        assert f"kernel {kernel['function']}(" in text
    for tensor in plan["buffers"]:
        if tensor["space"] not in ("local", "view"):
            assert f" {tensor['name']}: {tensor['dtype']}[" in text
    assert not (tmp_path / "weights.bin").exists()


def test_nothing_is_built_from_a_listing(openinfer, example_package):
    result = openinfer(
        "verify", str(REPO / "examples/linear.oi"), "--model", str(example_package("linear")), "--target", "null", code=3
    )
    assert "cannot be built and run here" in result.stderr
