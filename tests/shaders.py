"""What the tests of compute shaders share: printing them, and having glslc and spirv-val judge them."""

import os
import pathlib
import re
import shutil
import subprocess

REPO = pathlib.Path(__file__).resolve().parent.parent
BIN = os.environ.get("OPENINFER_BIN") or str(REPO / "build/bin/openinfer")
DEVICES = ["vulkan_desktop", "vulkan_generic"]
SHIPPED = sorted(path.stem for path in (REPO / "devices").glob("vulkan_*.json"))

# What a device without f64 cannot do, and f64 functions that GLSL lacks: refused, with these words. 64-bit integers
# are two words where a device has none.
REFUSED = re.compile(r"error\[E060\]: \w+ needs f64, and the device's features\.fp64 is false")
NO_F64 = re.compile(r"error\[E060\]: \w+ needs oi_\w+_f64, which GLSL cannot spell exactly enough")


def shaders(words, device, out):
    """Prints the shaders into a folder. Returns what was said when they are refused."""
    done = subprocess.run([BIN, "synth", *map(str, words), "--target", device, "--device-only", "-o", str(out)],
                          capture_output=True, text=True, timeout=300)  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return done.stderr if done.returncode else ""


def new_ones(files, known=set()):
    """Those whose text no earlier test of this process had compiled: devices often get the same shaders."""
    found = []
    for path in files:
        text = path.read_text()
        if text not in known:
            known.add(text)
            found.append(path)
    return found


def compile_all(files, folder):
    """One process for many: a process takes longer than a shader. Sanitizers watch who printed them, not glslc."""
    if os.environ.get("OPENINFER_SANITIZED"):
        return
    if not files:
        return
    folder.mkdir()
    done = subprocess.run(["glslc", "--target-env=vulkan1.2", "-c", *map(str, files)], cwd=folder,
                          capture_output=True, text=True, timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr[:3000]
    made = sorted(folder.glob("*.spv"))
    assert len(made) == len(files)
    if shutil.which("spirv-val"):
        for path in made[:: max(1, len(made) // 12)]:
            judged = subprocess.run(["spirv-val", "--target-env", "vulkan1.2", path], capture_output=True, text=True)
            assert judged.returncode == 0, f"{path.name}: {judged.stdout}{judged.stderr}"
