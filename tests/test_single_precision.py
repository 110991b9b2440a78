"""f32 needs no f64: neither type nor function of it is in the code of a program whose tensors are f32.

Microcontrollers compute f64 in software, and many GPUs not at all. How exact the functions are is judged by
src/body/math_test.c; conform/ compares each with numpy on every target.
"""

import re
import shutil
import subprocess

import numpy as np
import pytest

from conftest import REPO
from openinfer.oinf import PackageWriter
from shaders import compile_all

UNARY = "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp log erf sigmoid softplus gelu mish sqrt rsqrt".split()
BINARY = "pow atan2 rem mod".split()
LINES = [f"op {name}(x) >> y;" for name in UNARY] + [f"op {name}(x, z) >> y;" for name in BINARY]
LINES += ["op cast(x, to=u8, saturate=false) >> k;", "op cast(x, to=i32) >> n;", "op rope(r, pos) >> s;",
          "op softmax(x) >> y;", "op cast(k, to=f32) >> y;"]  # fmt: skip
GRAPH = """dynamic {{ x: f32[64]; z: f32[64]; r: f32[1, 2, 4, 8]; pos: i32[4]; k: u8[64]; }}
volatile {{ y: f32[64]; s: f32[1, 2, 4, 8]; n: i32[64]; {extra}}}
block entry {{
  {lines}
  return y, s, n;
}}
"""
F64 = re.compile(r"\bdouble\b|_f64\b|\bdvec|[0-9]lf\b")


def write(tmp_path):
    with PackageWriter(tmp_path / "model.oinf"):
        pass
    text = GRAPH.format(extra="", lines="\n  ".join(LINES)).replace(" k: u8[64]; }", " }").replace("n: i32[64]; ", "n: i32[64]; k: u8[64]; ")
    (tmp_path / "single.oi").write_text(text)
    return [tmp_path / "single.oi", "--model", tmp_path / "model.oinf"]


@pytest.mark.parametrize("device", ["vulkan_generic", str(REPO / "devices/ada_mock.json")])
def test_shaders(openinfer, device, tmp_path):
    done = openinfer("synth", *write(tmp_path), "--target", device, "--device-only", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    files = sorted((tmp_path / "out").glob("*.comp"))
    assert files
    for path in files:
        text = path.read_text()
        assert not F64.search(text), path.name
        assert "int64" not in text, path.name
    if shutil.which("glslc"):
        compile_all(files, tmp_path / "spv")


@pytest.mark.parametrize("device", ["cortex_m4", "mcu_generic", "cpu_scalar"])
def test_c(openinfer, device, tmp_path):
    done = openinfer("synth", *write(tmp_path), "--target", device, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out/single.c").read_text()
    assert not F64.search(text)
    assert "oi_sin_f32" in text


AUDIO = """dynamic { x: f32[1, 1024]; }
constant { w: f32[256]; }
volatile { s: f32[1, 7, 129, 2]; y: f32[1, 1024]; p: f32[1, 7, 129]; d: f32[1, 1024, 2]; }
block entry {
  assign c: f32[1, 1024, 1];
  op stft(x, w, frame_step=128) >> s;
  op magnitude(s) >> p;
  op istft(s, w, hop=128) >> y;
  op reshape(y) >> c;
  op dft(c, axis=1) >> d;
  return p, y, d;
}
"""


@pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="arm-none-eabi-gcc is not installed")
def test_audio_front_end(openinfer, tmp_path):
    """Fourier transforms of f32, there and back, on a Cortex-M4: no f64, and the simulator's bits."""
    with PackageWriter(tmp_path / "model.oinf") as model:
        model.add_tensor("w", np.hanning(257)[:256].astype(np.float32))
    (tmp_path / "audio.oi").write_text(AUDIO)
    words = [tmp_path / "audio.oi", "--model", tmp_path / "model.oinf", "--target", "cortex_m4"]
    assert openinfer("synth", *words, "-o", tmp_path / "out").returncode == 0
    text = (tmp_path / "out/audio.c").read_text()
    assert "oi_stft_f32" in text and not F64.search(text)
    if shutil.which("qemu-system-arm"):
        done = openinfer("verify", *words, "--set", "x=random:3:-1:1", "--steps", "2")
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="arm-none-eabi-gcc is not installed")
def test_no_software_f64_is_linked(openinfer, tmp_path):
    """What the compiler calls for f64 on a Cortex-M4 begins with __aeabi_d."""
    done = openinfer("synth", *write(tmp_path), "--target", "cortex_m4", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    flags = ["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", "-O2", "-c"]
    subprocess.run(["arm-none-eabi-gcc", *flags, "single.c", "-o", "single.o"], cwd=tmp_path / "out", check=True)
    symbols = subprocess.run(["arm-none-eabi-nm", "-u", "single.o"], cwd=tmp_path / "out", capture_output=True, text=True).stdout
    assert not re.search(r"__aeabi_(d|f2d|i2d|ui2d|l2d|ul2d)|\b(sin|cos|exp|log|pow)f?\b", symbols), symbols
