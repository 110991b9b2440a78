"""`openinfer run --device vulkan`: ops on a Vulkan device, with the processor's results."""

import json
import os
import re
import shutil
import subprocess

import pytest

import vulkan_here
from conftest import BIN, REPO

EXAMPLES = REPO / "examples"
pytestmark = pytest.mark.skipif(bool(vulkan_here.no_device()), reason=vulkan_here.no_device() or "")


def run(*words, env=None, **options):
    return subprocess.run([BIN, "run", *map(str, words)], env=os.environ | (env or {}), capture_output=True, text=True, timeout=300, **options)


@pytest.mark.parametrize("name", ["minimal", "linear"])
def test_same_values_as_the_processor(example_package, name, tmp_path):
    words = [EXAMPLES / f"{name}.oi", "--model", example_package(name), "--set", "x=random:1:-1:1", "--steps", "2",
             "--fetch", "y", "--json"]  # fmt: skip
    trace = tmp_path / "trace.json"
    there, here = run(*words, "--device", "vulkan", "--trace", trace), run(*words, "--device", "cpu:scalar")
    assert (there.returncode, there.stderr) == (0, "")
    a, b = (json.loads(r.stdout)["steps"] for r in (there, here))
    for step, wanted in zip(a, b, strict=True):
        assert step["values"][0]["values"] == pytest.approx(wanted["values"][0]["values"], rel=1e-5, abs=1e-6)
    events = json.loads(trace.read_text())
    assert {e["device"] for e in events if e["kind"] == "OpExecute"} == {"vulkan"}
    assert {e["device"] for e in events if e["kind"] == "Return"} == {"host"}
    assert all(sum(e["micros"]) > 0 for e in events if e["device"] == "vulkan")
