"""What tests on a Vulkan device share."""

import functools
import os
import pathlib
import shutil
import subprocess

REPO = pathlib.Path(__file__).resolve().parent.parent
BIN = os.environ.get("OPENINFER_BIN") or str(REPO / "build/bin/openinfer")
LAYER = pathlib.Path("/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json")
GRAPH = "dynamic { x: f32[1]; }\nvolatile { y: f32[1]; }\nblock entry { op neg(x) >> y; return y; }\n"


@functools.lru_cache(None)
def no_device():
    """Why nothing can run on Vulkan here; None: it can."""
    if not shutil.which("glslc") and not shutil.which("glslangValidator"):
        return "no compiler of shaders (Debian package glslc)"
    done = subprocess.run([BIN, "run", "-", "--device", "vulkan"], input=GRAPH, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode == 3 else None


def validation():
    """The environment in which the validation layers print what is wrong, races on buffers included."""
    return os.environ | {"VK_INSTANCE_LAYERS": "VK_LAYER_KHRONOS_validation",
                         "VK_LAYER_ENABLES": "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT"}  # fmt: skip
