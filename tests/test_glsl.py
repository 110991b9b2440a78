"""Every kernel prints as a compute shader that glslc takes and spirv-val finds valid.

The nest printer has two languages, C and GLSL, and both print from the same walk: this keeps it so. Shaders
of all examples for every Vulkan device file that comes along and the mock device of the descriptions, and of the tiny and the real
models for a device that has everything and one that has only what Vulkan guarantees; conform/test_glsl_ops.py does the same for every
op. test_vulkan_programs.py runs them.
"""

import json
import shutil
import sys

import pytest

from conftest import REPO

EXAMPLES = REPO / "examples"
sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "tiny"), str(REPO / "python/src")]
import test_synth  # noqa: E402
import tiny_oinf  # noqa: E402
from shaders import DEVICES, REFUSED, SHIPPED, compile_all, new_ones, shaders  # noqa: E402

pytestmark = pytest.mark.skipif(not shutil.which("glslc"), reason="glslc is not installed (Debian package glslc)")

TINY = sorted(path.stem for path in (EXAMPLES / "tiny").glob("*.oi"))
MODELS = {
    "smollm2": ["decode", "prefill"],
    "silero": ["vad"],
    "minilm": ["embed"],
    "ocr": ["direction"],
}
def judge(words, device, tmp_path):
    said = shaders(words, device, tmp_path / "out")
    if device != "vulkan_desktop" and REFUSED.search(said):
        assert not (tmp_path / "out").exists()
        return
    assert "error" not in said, said
    plan = json.loads((tmp_path / "out/plan.json").read_text())
    files = sorted((tmp_path / "out").glob("*.comp"))
    used = {kernel["function"] for kernel in plan["kernels"]}
    # a kernel whose nests share no loop is a shader per nest: NAME_0, NAME_1 ...
    assert used == {path.stem if path.stem in used else path.stem.rsplit("_", 1)[0] for path in files}
    compile_all(new_ones(files), tmp_path / "spv")  # some graphs only move what caches hold: no kernel


@pytest.mark.parametrize("device", [*SHIPPED, str(REPO / "devices/ada_mock.json")])
@pytest.mark.parametrize("name", test_synth.NAMES)
def test_example(example_package, name, device, tmp_path):
    judge([EXAMPLES / f"{name}.oi", "--model", example_package(name)], device, tmp_path)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", TINY)
def test_tiny(name, device, tmp_path):
    tiny_oinf.write(name, str(tmp_path / "model.oinf"))
    judge([EXAMPLES / f"tiny/{name}.oi", "--model", tmp_path / "model.oinf"], device, tmp_path)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MODELS)
def test_model(name, device, tmp_path):
    model = REPO / "build/models" / name
    if not (model / "model.oinf").exists():
        pytest.skip(f"build/models/{name} is not there: make models")
    graphs = [model / f"{graph}.oi" for graph in MODELS[name]]
    judge([*graphs, "--model", model / "model.oinf"], device, tmp_path)
