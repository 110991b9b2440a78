"""The runtime of Vulkan programs (src/emit/vulkan/host), on any device, under the validation layers."""

import os
import re
import shutil
import subprocess

import pytest

from conftest import REPO
from vulkan_here import LAYER, validation

HOST = REPO / "src/emit/vulkan/host"

pytestmark = pytest.mark.skipif(not shutil.which("glslc"), reason="glslc is not installed (Debian package glslc)")


@pytest.fixture(scope="module")
def device_test(tmp_path_factory):
    path = tmp_path_factory.mktemp("device") / "device_test"
    built = subprocess.run(["cc", "-std=c17", "-g", "-Wall", "-Wextra", "-Werror", f"-I{HOST}", str(REPO / "tests/vulkan/device_test.c"),
                            *map(str, HOST.glob("*.c")), "-ldl", "-o", str(path)], capture_output=True, text=True)  # fmt: skip
    if "vulkan_core.h" in built.stderr:
        pytest.skip("no Vulkan headers (Debian package libvulkan-dev)")
    assert built.returncode == 0, built.stderr
    found = subprocess.run([path, "list"], capture_output=True, text=True)
    if found.returncode == 3:
        pytest.skip(f"{found.stdout.strip()}")
    return path


def test_buffers_pipelines_lists(device_test, tmp_path):
    """Copies through staging, a list submitted again, timestamps; the layers see no misuse and no object left."""
    if not LAYER.exists():
        pytest.skip("no validation layers (Debian package vulkan-validationlayers)")
    subprocess.run(["glslc", "-o", tmp_path / "add.spv", REPO / "tests/vulkan/add.comp"], check=True)
    done = subprocess.run([device_test, tmp_path / "add.spv"], env=validation(), capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "args, env, wanted",
    [
        ([], {"VK_DRIVER_FILES": "/dev/null", "VK_ICD_FILENAMES": "/dev/null"}, r"no Vulkan driver: install .*\(Debian package mesa-vulkan-drivers\)"),
        (["no such"], {}, r"no Vulkan device is 'no such': there .* '.*'"),
        (["99"], {}, r"no Vulkan device is '99': .*"),
        ([], {"OPENINFER_VULKAN_DEVICE": "neither"}, r"no Vulkan device is 'neither': .*"),
    ],
)  # fmt: skip
def test_what_is_missing_is_one_line(device_test, args, env, wanted):
    done = subprocess.run([device_test, "open", *args], env=os.environ | env, capture_output=True, text=True)
    assert done.returncode == 3
    assert re.fullmatch(wanted + "\n", done.stdout), done.stdout


def test_a_missing_feature_is_named(device_test):
    listed = subprocess.run([device_test, "list"], capture_output=True, text=True).stdout
    if int(listed.splitlines()[0].split()[-1], 16) & 1 << 12:
        pytest.skip("the device has all features")
    done = subprocess.run([device_test, "open", "", hex(1 << 12)], capture_output=True, text=True)
    assert done.returncode == 3 and "lacks cooperative_matrix" in done.stdout
