"""Every op of the registry as compute shaders: the cases of this folder, each a node of a graph, for glslc."""

import json
import os
import re
import shutil
import sys

import pytest

pytest.importorskip("ml_dtypes", reason="conformance needs ml_dtypes")
if os.environ.get("OPENINFER_SANITIZED"):
    pytest.skip("a sanitized library cannot be loaded into Python", allow_module_level=True)
if not shutil.which("glslc"):
    pytest.skip("glslc is not installed (Debian package glslc)", allow_module_level=True)

import test_synth_ops as ops  # noqa: E402
from library import REPO  # noqa: E402

sys.path.append(str(REPO / "tests"))
from openinfer.oinf import PackageWriter  # noqa: E402
from shaders import DEVICES, NO_F64, REFUSED, compile_all, shaders  # noqa: E402

PER_OP = 4  # shaders that are compiled; all are printed
WIDE = {"f64"}  # what only the first device has
CUSTOM = {op["name"] for op in json.loads((REPO / "ops/ops.json").read_text())["ops"] if op["class"] == "custom"}


@pytest.mark.parametrize("group", ops.GROUPS, ids=lambda g: f"{g[0]}...{g[-1]}")
def test_ops(group, tmp_path):
    files = []
    for number, op in enumerate(op for op in group if op not in CUSTOM):
        device = DEVICES[number % 2]
        cases = ops.chosen(op)
        if number % 2:
            cases = [c for c in cases if WIDE.isdisjoint({t.dtype for t in c.inputs} | {c.out_dtype})]
        cases = cases[:: max(1, len(cases) // 5)]
        said = "?"
        while said and cases:
            folder = tmp_path / op
            folder.mkdir(exist_ok=True)
            with PackageWriter(folder / "model.oinf") as model:
                graph = ops.write(op, cases, folder, model)
            said = shaders([graph, "--model", folder / "model.oinf", "--per-node"], device, folder / "out")
            if said:
                assert NO_F64.search(said) or (device == "vulkan_generic" and REFUSED.search(said)), said
                wrong = re.search(rf"\b{op}_(\d+)_out0", said)
                assert wrong, said
                del cases[int(wrong[1])]
        made = sorted((tmp_path / op / "out").glob("*.comp"))
        for path in made[:: max(1, len(made) // PER_OP)]:
            files.append(path.rename(tmp_path / f"{op}-{path.name}"))
    if files:
        compile_all(files, tmp_path / "spv")


@pytest.mark.parametrize("op", sorted(CUSTOM & {op for group in ops.GROUPS for op in group}))
def test_custom_ops(op, tmp_path):
    """C code is no loop nest and is refused; some of these are tables and nests after all, and compile."""
    with PackageWriter(tmp_path / "model.oinf") as model:
        graph = ops.write(op, ops.chosen(op)[:1], tmp_path, model)
    said = shaders([graph, "--model", tmp_path / "model.oinf", "--per-node"], DEVICES[0], tmp_path / "out")
    if said:
        assert re.search(r"error\[E060\]: .* is no loop nest", said) and not (tmp_path / "out").exists(), said
        return
    files = sorted((tmp_path / "out").glob("*.comp"))
    if files:  # else a table that was made with the program
        compile_all(files, tmp_path / "spv")
