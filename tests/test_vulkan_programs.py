"""Whole programs for Vulkan: built, run on the device at hand, and compared with the simulator, under the validation
layers with synchronisation validation. Debian's lavapipe is such a device without a GPU.

A sample of the examples runs always; all of them, free-running and node by node, with OPENINFER_LONG
(make conform-vulkan).
"""

import json
import os
import re
import shutil
import subprocess

import pytest

import vulkan_here
from conftest import BIN, REPO

EXAMPLES = REPO / "examples"
HOST = REPO / "src/emit/vulkan/host"
LONG = bool(os.environ.get("OPENINFER_LONG"))
STRICT = "-O1 -Wall -Wextra -Werror"
pytestmark = [
    pytest.mark.skipif(bool(vulkan_here.no_device()), reason=vulkan_here.no_device() or ""),
    pytest.mark.skipif(bool(os.environ.get("OPENINFER_SANITIZED")), reason="what is emitted is judged without sanitizers, too"),
]

# Persistent state, values that the host waits for, consumers, errors.
SAMPLE = [("kv_cache_decode", "vulkan_lavapipe", False), ("moe_routing", "vulkan_generic", False), ("branches", "vulkan_generic", True),
          ("cache_ops", "vulkan_desktop", False), ("consumers", "vulkan_lavapipe", False), ("tables", "vulkan_generic", False)]  # fmt: skip
ALL = [(path.stem, target, nodes) for path in sorted(EXAMPLES.glob("*.oi"))
       for target in ("vulkan_generic", "vulkan_desktop", "vulkan_lavapipe") for nodes in (False, True)]  # fmt: skip
NO_F64 = "needs f64, and the device's features.fp64 is false"


class Layers:
    """Validation layers that write what is wrong into a file: programs speak on stdout."""

    def __init__(self, folder):
        if not vulkan_here.LAYER.exists():
            pytest.skip("no validation layers (Debian package vulkan-validationlayers)")
        self.log = folder / "validation.log"
        (folder / "vk_layer_settings.txt").write_text(
            "khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\n"
            "khronos_validation.report_flags = error,warn,perf\n"
            f"khronos_validation.log_filename = {self.log}\n"
            "khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT\n"
        )
        self.env = os.environ | {"VK_INSTANCE_LAYERS": "VK_LAYER_KHRONOS_validation", "VK_LAYER_SETTINGS_PATH": str(folder)}

    def said(self):
        assert self.log.exists(), "the layers were not loaded"
        return self.log.read_text()


@pytest.fixture
def layers(tmp_path):
    return Layers(tmp_path)


def verify(words, env):
    return subprocess.run([BIN, "verify", *map(str, words), "--steps", "8"], env=env, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("name, target, nodes", ALL if LONG else SAMPLE)
def test_example(example_package, layers, name, target, nodes):
    words = [EXAMPLES / f"{name}.oi", "--model", example_package(name), "--target", target]
    done = verify([*words, *(["--per-node"] if nodes else [])], layers.env)
    if target == "vulkan_generic" and NO_F64 in done.stderr and done.returncode == 1:
        return
    assert done.returncode == 0, done.stdout + done.stderr
    assert "they agree" in done.stdout and layers.said() == ""


# -- programs by themselves --

GRAPH = """
dynamic { x: f32[4]; at: i32[1]; }
constant { w: f32[6, 4] @init(2.0); }
volatile { y: f32[4]; z: f32[1, 4]; }
persistent {
  step: i32 @init(0);
  K(t): f32[4] @table @cap(t=5);
  sum: f32[4] @init(0.0);
}
block entry {
  assign s: f32[4]; assign rows: f32[6, 4]; assign total: f32[4];
  op mul(x, x) >> s;
  cache.write s >> K[step];
  cache.increment step;
  cache.read sum >> total;
  op add(total, s) >> total;
  cache.write total >> sum;
  op add(w, s) >> rows;
  op gather(rows, at) >> z;
  op add(s, total) >> y;
  return y, z;
}
"""


def build(folder, flags=STRICT, program="p"):
    done = subprocess.run(["make", "-s", "-C", folder, f"CFLAGS={flags}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / program


def write(openinfer, folder, text=GRAPH, *more):
    path = folder / "p.oi"
    path.write_text(text)
    openinfer("synth", path, "--target", "vulkan_lavapipe", "--name", "p", "-o", folder / "out", *more)
    return folder / "out"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("program")
    path = folder / "p.oi"
    path.write_text(GRAPH)
    done = subprocess.run([BIN, "synth", path, "--target", "vulkan_lavapipe", "--name", "p", "-o", folder / "out"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    build(folder / "out")
    return folder / "out"


def test_api(program, layers):
    """tests/vulkan/program_test.c: states, failed steps, what a step records, an application's own device, a device that
    fails or is lost; nothing is left when all is freed."""
    made = program / "program_test"
    sources = [REPO / "tests/vulkan/program_test.c", program / "p.o", *(program / f"vulkan_{n}.o" for n in ("step", "work", "open"))]
    built = subprocess.run(["cc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-I", program, *map(str, sources), "-o", made,
                            "-ldl", "-lm", "-lvulkan"], capture_output=True, text=True)  # fmt: skip
    assert built.returncode == 0, built.stderr
    done = subprocess.run([made, program / "weights.bin"], env=layers.env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert layers.said() == ""


def test_the_layers_see_a_barrier_that_is_missing(program, layers, tmp_path):
    """So their silence means something."""
    folder = tmp_path / "out"
    shutil.copytree(program, folder)
    source = folder / "vulkan_step.c"
    text = source.read_text()
    assert text.count("oi_vk_list_barrier(x->list);") == 1
    source.write_text(text.replace("oi_vk_list_barrier(x->list);", ""))
    build(folder)
    given = bytes([0]) + bytes(16) + bytes(4)
    done = subprocess.run([folder / "p", "weights.bin"], cwd=folder, env=layers.env, input=given, capture_output=True)
    assert done.returncode == 0 and "SYNC-HAZARD" in layers.said()


def run(folder, env, given=b""):
    return subprocess.run([folder / "p", "weights.bin"], cwd=folder, env=os.environ | env, input=given, capture_output=True)


@pytest.mark.parametrize(
    "env, wanted",
    [
        ({"VK_DRIVER_FILES": "/dev/null", "VK_ICD_FILENAMES": "/dev/null"}, r"no Vulkan driver: install .*\(Debian package mesa-vulkan-drivers\)"),
        ({"OPENINFER_VULKAN_DEVICE": "neither"}, r"no Vulkan device is 'neither': .*"),
    ],
)
def test_no_device_is_one_line(program, env, wanted):
    done = run(program, env)
    assert done.returncode == 3 and done.stdout == b""
    assert re.fullmatch(wanted + "\n", done.stderr.decode())


CHANGED = {
    "vulkan_open.c": ("\"libvulkan", "\"libnovulkan", r"no Vulkan loader \(libnovulkan.so.1\): install it \(Debian package libvulkan1\)"),
    "p.c": ("    .features = ", "    .features = OI_VK_COOPERATIVE | ", r"the Vulkan device '.*' lacks cooperative_matrix"),
}


@pytest.mark.parametrize("file", CHANGED)
def test_what_the_machine_lacks_is_one_line(program, tmp_path, file):
    was, becomes, wanted = CHANGED[file]
    folder = tmp_path / "out"
    shutil.copytree(program, folder)
    text = (folder / file).read_text()
    assert was in text
    (folder / file).write_text(text.replace(was, becomes))
    build(folder)
    done = run(folder, {})
    assert (done.returncode, done.stdout) == (3, b"") and re.fullmatch(wanted + "\n", done.stderr.decode()), done.stderr


def test_verify_says_what_is_missing(example_package):
    done = subprocess.run([BIN, "verify", EXAMPLES / "linear.oi", "--model", example_package("linear"), "--target", "vulkan_desktop"],
                          env=os.environ | {"VK_DRIVER_FILES": "/dev/null", "VK_ICD_FILENAMES": "/dev/null"},
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 3 and "no Vulkan device: install" in done.stderr
    done = subprocess.run([BIN, "verify", EXAMPLES / "linear.oi", "--model", example_package("linear"), "--target", "vulkan_desktop",
                           "--set", "x=0"], env=os.environ | {"OPENINFER_VULKAN_DEVICE": "neither"}, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 3 and "no Vulkan device is 'neither'" in done.stderr and "cannot go on" in done.stderr


def test_glslangvalidator_builds_it_too(program, tmp_path):
    """Both compilers write SPIR-V as words; which one is there decides the Makefile."""
    if not shutil.which("glslangValidator"):
        pytest.skip("no glslangValidator (Debian package glslang-tools)")
    folder = tmp_path / "out"
    shutil.copytree(program, folder)
    subprocess.run(["make", "-s", "-C", folder, "clean"], check=True)
    done = subprocess.run(["make", "-s", "-C", folder, "GLSLC=glslangValidator"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert run(folder, {}).returncode == 0


def test_cmake_and_cpp(openinfer, tmp_path):
    folder = write(openinfer, tmp_path, GRAPH, "--host-lang", "cpp")
    assert (folder / "main.cpp").exists()
    for words in (["cmake", "-S", folder, "-B", tmp_path / "build"], ["cmake", "--build", tmp_path / "build"]):
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    shutil.copy(tmp_path / "build/p", folder / "p")
    assert run(folder, {}).returncode == 0


def test_numbers_that_the_host_sets_go_along(openinfer, example_package, tmp_path):
    """A loop index as a value: no dispatch writes it into the device's memory."""
    words = [EXAMPLES / "moe_routing.oi", "--model", example_package("moe_routing"), "--target", "vulkan_lavapipe"]
    fills = []
    for more in [], ["--without", "values"]:
        openinfer("synth", *words, *more, "-o", tmp_path / "out", "--force")
        fills.append((tmp_path / "out/moe_routing.c").read_text().count("oi_vk_run_fill"))
    assert fills[0] + 1 == fills[1]
    done = verify([*words, "--without", "values"], os.environ)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_device_describes_itself(openinfer, example_package, tmp_path):
    """targets --probe: a device file that programs run with, which --strict takes and normalising leaves as it is."""
    mine = tmp_path / "mine.json"
    mine.write_text(openinfer("targets", "--probe", "vulkan").stdout)
    assert openinfer("targets", "--strict", mine).stdout == mine.read_text()
    data = json.loads(mine.read_text())
    assert data["device"]["api"] == "vulkan" and data["limits"]["max_workgroup_invocations"] >= 128
    number = openinfer("targets", "--probe", "vulkan:0").stdout
    assert json.loads(number)["device"]["api"] == "vulkan"
    done = verify([EXAMPLES / "linear.oi", "--model", example_package("linear"), "--target", mine], os.environ)
    assert done.returncode == 0, done.stderr
    lavapipe = json.loads(openinfer("targets", "vulkan_lavapipe").stdout)
    if "llvmpipe" in data["device"]["name"]:  # the file that comes along asks no more than the driver has
        for key, value in lavapipe["limits"].items():
            assert max(value) <= max(data["limits"][key]) if isinstance(value, list) else key == "storage_buffer_alignment" or value <= data["limits"][key], key
        assert all(data["features"][key] for key, value in lavapipe["features"].items() if value)
    assert "no Vulkan device is 'neither'" in openinfer("targets", "--probe", "vulkan:neither", code=3).stderr
    assert "try vulkan" in openinfer("targets", "--probe", "cuda", code=2).stderr


def test_bench(example_package):
    words = [EXAMPLES / "linear.oi", "--model", example_package("linear"), "--target", "vulkan_desktop", "--steps", "5"]
    done = subprocess.run([BIN, "bench", *map(str, words), "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
