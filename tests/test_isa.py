"""Every kind of instructions that recipes are written for: each target's program is made of them, and gives what
the simulator gives where the machine, or qemu, can run it. What cannot be run here is left out by name."""

import dataclasses
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

import pytest

from conftest import REPO

sys.path[:0] = [str(REPO / "examples"), str(REPO / "python/src")]
import run_all  # noqa: E402
from openinfer.oinf import TensorSpec, write_oinf  # noqa: E402

np = pytest.importorskip("numpy", reason="weights are made with numpy")

# one of everything that has a recipe, with rows for tiles of 16 and a rest
GRAPH = """
dynamic { x: f32[48, 96]; one: f32[1, 96]; image: f32[1, 4, 9, 40];
          bytes: i8[1, 20, 9, 20]; row: u8[3, 33]; }
constant {
  u: u4[50, 96]; us: f16[50, 3]; uo: f16[50, 3];
  i: i8[33, 96]; is: f32[33, 3];
  w: f32[96, 40]; g: f32[40, 96]; gb: f32[40];
  k: f32[7, 4, 3, 3]; kb: f32[7];
  k8: i8[40, 20, 3, 3]; k8b: i32[40, 1, 1] @init(300); factor: f32[1] @init(0.001);
  one_scale: f32 @init(0.02); more: f32[40] @init(0.003); out_scale: f32 @init(0.4);
  i_zero: i8 @init(-3); u_zero: u8 @init(120); u_zeros: u8[40] @init(126);
  d8: u8[20, 1, 3, 3]; m8: u8[33, 40];
}
volatile { a: f32[48, 50]; b: f32[48, 33]; c: f32[1, 50]; d: f32[48, 50]; e: f32[48, 40]; f: f32[48, 40];
           h: f32[1, 7, 9, 40]; y: f32[1, 48, 96]; z: f32[1, 33];
           l: i8[1, 40, 9, 20]; m: u8[1, 20, 5, 10]; n: i8[3, 40]; o: i8[1, 40, 9, 20]; p: i32[3, 40]; }
block entry {
  assign q: f32[1, 48, 96];
  assign sums: i32[1, 40, 9, 20];
  assign scaled: f32[1, 40, 9, 20];
  op qlinear(x, u, us, uo, act="q8") >> a;
  op qlinear(x, i, is, act="q8") >> b;
  op qlinear(one, u, us, uo, act="q8") >> c;
  op qlinear(one, i, is, act="q8") >> z;
  op qlinear(x, u, us, uo) >> d;
  op matmul(x, w) >> e;
  op gemm(x, g, gb, trans_b=true) >> f;
  op conv2d(image, k, kb, pads=[1, 1, 1, 1]) >> h;
  op reshape(x, shape=[1, 48, 96]) >> q;
  op sdpa(q, q, q, heads=3, causal=true) >> y;
  op conv(bytes, k8, pads=[1, 1, 1, 1], acc=[i32]) >> sums;
  op add(sums, k8b) >> sums;
  op cast(sums, to=f32) >> scaled;
  op mul(scaled, factor) >> scaled;
  op round(scaled) >> scaled;
  op cast(scaled, to=i8) >> l;
  op qconv(bytes, one_scale, i_zero, d8, one_scale, u_zero, out_scale, u_zero, group=20, strides=[2, 2], pads=[1, 1, 1, 1]) >> m;
  op qmatmul(row, one_scale, u_zero, m8, more, u_zeros, out_scale, i_zero) >> n;
  op qconv(bytes, one_scale, i_zero, k8, more, i_zero, out_scale, i_zero, pads=[1, 1, 1, 1]) >> o;
  op matmul_integer(row, m8, u_zero, u_zeros) >> p;
  return a, b, c, d, e, f, h, y, z, l, m, n, o, p;
}
"""

# what the text of a target's program must and must not be made of
MADE_OF = {
    "cpu_avx2": ("_mm256_maddubs_epi16", "_mm512"),
    "cpu_avx512": ("_mm512_dpbusd_epi32", "_mm512_maddubs_epi16"),
    "cpu_amx": ("_tile_dpbssd", "_mm512_maddubs_epi16"),
    "cpu_amx_bf16": ("_tile_dpbf16ps", "_tile_dpbssd"),
    "cpu_neon": ("vmull_s8", "vdotq_s32"),
    "cpu_neon_dotprod": ("vdotq_s32", "vmull_s8"),
}


@dataclasses.dataclass
class Weights:
    tensors: dict


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    folder = tmp_path_factory.mktemp("isa")
    rng = np.random.default_rng(5)
    (folder / "all.oi").write_text(GRAPH)

    def real(*shape, kind=np.float32):
        return TensorSpec((rng.standard_normal(shape) * 0.2).astype(kind))

    tensors = {
        "u": TensorSpec(rng.integers(0, 16, (50, 96)), dtype="u4"),
        "us": real(50, 3, kind=np.float16), "uo": real(50, 3, kind=np.float16),
        "i": TensorSpec(rng.integers(-128, 128, (33, 96)), dtype="i8"), "is": real(33, 3),
        "w": real(96, 40), "g": real(40, 96), "gb": real(40), "k": real(7, 4, 3, 3), "kb": real(7),
        "k8": TensorSpec(rng.integers(-128, 128, (40, 20, 3, 3)), dtype="i8"),
        "d8": TensorSpec(rng.integers(0, 256, (20, 1, 3, 3)), dtype="u8"),
        "m8": TensorSpec(rng.integers(0, 256, (33, 40)), dtype="u8"),
    }  # fmt: skip
    write_oinf(Weights(tensors), folder / "all.oinf")
    return [str(folder / "all.oi"), "--model", str(folder / "all.oinf")]


def machine(openinfer, target):
    profiles = json.loads(openinfer("targets", "--json").stdout)["profiles"]
    return next(p for p in profiles if p["name"] == target)


@pytest.mark.parametrize("target", MADE_OF)
def test_text(openinfer, words, tmp_path, target):
    openinfer("synth", *words, "--target", target, "-o", str(tmp_path), "--name", "judged")
    text = (tmp_path / "judged.c").read_text()
    has, has_not = MADE_OF[target]
    assert has in text and has_not not in text
    if "neon" in target and not shutil.which("aarch64-linux-gnu-gcc"):
        pytest.skip("aarch64-linux-gnu-gcc is not installed")
    cc = "aarch64-linux-gnu-gcc" if "neon" in target else "cc"
    made = subprocess.run(["make", "-s", "-C", str(tmp_path), f"CC={cc}"], capture_output=True, text=True,
                          env={"CFLAGS": "-O1 -Werror", "PATH": "/usr/bin:/bin"})
    assert made.returncode == 0, made.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="this compiler makes no x86 programs")
def test_examples_compile_for_what_cannot_run_here(openinfer, example_package, tmp_path):
    """Every example's program for AVX-512 and AMX builds without flags and without warnings, on any x86."""
    texts = {}
    for name in run_all.NAMES:
        package = example_package(name)
        for target in ("cpu_avx512", "cpu_amx"):
            out = tmp_path / f"{target}_{name}"
            openinfer("synth", REPO / f"examples/{name}.oi", "--model", package, "--target", target, "-o", out, "--name", name)
            # Their instructions are a subset: a text that both have is judged with fewer allowed.
            text = re.sub(r"/\*.*?\*/", "", (out / f"{name}.c").read_text(), flags=re.S)
            text = re.sub(r"#.*target.*", "", text)
            texts.setdefault(text, out / f"{name}.c")
    for file in texts.values():  # -O0: what must be inlined is, and its instructions must be allowed
        made = subprocess.run(["gcc", "-O0", "-Wall", "-Wextra", "-pedantic", "-Werror", "-c", "-o", "x.o", file], cwd=tmp_path,
                              capture_output=True, text=True)  # fmt: skip
        assert made.returncode == 0, made.stderr[:3000]
    assert len(run_all.NAMES) <= len(texts) < 2 * len(run_all.NAMES)


@pytest.mark.parametrize("more", [[], ["--per-node"]], ids=["steps", "nodes"])
@pytest.mark.parametrize("target", MADE_OF)
def test_results(openinfer, needs_target, words, target, more):
    needs_target(target)
    result = openinfer("verify", *words, "--target", target, "--steps", "2", "--cflags", "-O2", *more)
    assert "they agree" in result.stdout


SIMDE = pathlib.Path("/usr/include/simde/x86/avx512.h")
emulated = [
    pytest.mark.emulated,
    pytest.mark.skipif(platform.machine() != "x86_64" or not SIMDE.exists(), reason="needs an x86 and libsimde-dev"),
]


@pytest.mark.parametrize("target, more", [
    pytest.param(target, more, marks=emulated, id=f"{target}-{name}")
    for target, name, more in (("cpu_avx512", "steps", []), ("cpu_avx512", "nodes", ["--per-node"]), ("cpu_amx", "steps", []),
                               ("cpu_amx", "nodes", ["--per-node"]), ("cpu_amx_bf16", "steps", []))
])  # fmt: skip
def test_results_by_emulation(openinfer, words, target, more):
    """What this processor may lack, tests/emulate does: the same text of the program, compared as any other."""
    if not machine(openinfer, "cpu_avx2")["can_run"]:
        pytest.skip("what is emulated is made of AVX2")
    result = openinfer("verify", *words, "--target", target, "--steps", "2", "--cflags", "-O1 -Werror", *more,
                       "--cc", REPO / "tests/emulate/cc")  # fmt: skip
    assert "they agree" in result.stdout


@pytest.mark.parametrize("target", [pytest.param(t, marks=emulated) for t in ("cpu_avx512", "cpu_amx")])
@pytest.mark.parametrize("name", ["linear", "attn_cache"])
def test_examples_by_emulation(openinfer, example_package, name, target):
    if not machine(openinfer, "cpu_avx2")["can_run"]:
        pytest.skip("what is emulated is made of AVX2")
    result = openinfer("verify", REPO / f"examples/{name}.oi", "--model", example_package(name), "--target", target, "--steps", "4",
                       "--cflags", "-O1 -Werror", "--cc", REPO / "tests/emulate/cc")  # fmt: skip
    assert "they agree" in result.stdout


def test_processor_without_the_instructions(openinfer, words, tmp_path):
    """It is said before the first of them is met, not by a signal."""
    lacking = [t for t in ("cpu_avx512", "cpu_amx") if not machine(openinfer, t)["can_run"]]
    if not lacking or not machine(openinfer, "cpu_avx2")["can_run"]:
        pytest.skip("this machine has all instructions that recipes know, or is no x86")
    openinfer("synth", *words, "--target", lacking[0], "-o", str(tmp_path), "--name", "judged")
    subprocess.run(["make", "-s", "-C", str(tmp_path)], check=True, env={**os.environ, "CFLAGS": "-O1"})
    run = subprocess.run([str(tmp_path / "judged"), str(tmp_path / "weights.bin")], input=b"", capture_output=True)
    assert run.returncode == 5
    assert run.stderr.startswith(b"this processor has no a") and run.stderr.endswith(b", which the program needs\n")
    # of the environment, not of the program: nothing was compared
    for command in (["verify"], ["bench", "--steps", "2"], ["bench", "--kernels"]):
        said = openinfer(*command, *words, "--target", lacking[0], "--cflags", "-O1", code=3).stderr
        assert "this processor has no a" in said
        assert ": error: this machine lacks instructions that the program is made of" in said
