"""cpu.libc false: programs for a processor that no C library is linked to, compiled or run."""

import json
import re
import shutil
import struct
import subprocess

import pytest

from conftest import REPO

MATHS = """dynamic { x: f32[6, 40]; d: f64[40]; n: i32[40]; }
constant { third: f32 @init(0.3); three: f64 @init(3.0); seven: i32 @init(7); w: f32[40, 24] @init(0.03); q: i8[24, 40] @init(3); scale: f32[24, 5] @init(0.02); }
persistent { step: i64; K(t): f16[40] @table @fixed(t=8); }
volatile { y: f32[6, 40]; z: f32[6, 24]; e: f64[40]; m: i32[40]; big: f32[40]; s: f32[6]; h: f16[40]; }
block entry {
  assign row: f32[40];
  assign half: f16[40];
  assign keys: f16[8, 40];
  op exp(x) >> y;
  op erf(y) >> y;
  op add(y, x) >> y;
  op sin(y) >> y;
  op gelu(y) >> y;
  op softmax(y) >> y;
  op pow(y, third) >> y;
  op matmul(y, w) >> z;
  op tanh(z) >> z;
  op sqrt(d) >> e;
  op floor(e) >> e;
  op rem(e, three) >> e;
  op div(n, seven) >> m;
  op sum_axis(y, axes=[1]) >> s;
  op qlinear(y, q, scale, act="q8") >> z;
  op slice(y, starts=[2], ends=[3], axes=[0]) >> row;
  op reshape(row, shape=[40]) >> big;
  op cast(big, to=f16) >> half;
  cache.write half >> K[step];
  cache.read K >> keys;
  op max_axis(keys, axes=[0]) >> h;
  cache.increment step;
  return y, z, e, m, s, h;
}
"""


def device(folder, base, **cpu):
    path = folder / f"{base}.json"
    path.write_text(json.dumps({"extends": base, "cpu": {"libc": False, **cpu}}))
    return path


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "maths.oi"
    path.write_text(MATHS.replace("assign row: f32[40];", "assign row: f32[1, 40];"))
    return path


SET = ("--set", "x=random:1:-2:2", "--set", "d=random:2:0:9", "--set", "n=random:3:-99:99")


@pytest.mark.parametrize("base", ["cpu_scalar", "cpu_avx2", "cpu_neon"])
def test_the_program_agrees(openinfer, graph, tmp_path, base):
    """It runs without a C library, by system calls: floats, caches, several steps."""
    run = openinfer("verify", graph, "--target", device(tmp_path, base), "--steps", 6, *SET)
    assert "6 steps compared: they agree" in run.stdout


@pytest.mark.parametrize("name", ["kv_cache_decode", "mlp_regression", "quantised_linear", "streaming_pipeline", "moe_routing"])
def test_examples(openinfer, example_package, tmp_path, name):
    files = (REPO / f"examples/{name}.oi", "--model", example_package(name))
    assert "they agree" in openinfer("verify", *files, "--target", device(tmp_path, "cpu_avx2"), "--steps", 4).stdout


@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_nothing_of_a_library(openinfer, graph, tmp_path, cc):
    """No header of one, no undefined name, nothing linked; and it starts with its own first instruction."""
    if not shutil.which(cc):
        pytest.skip(f"{cc} is not installed")
    openinfer("synth", graph, "--target", device(tmp_path, "cpu_avx2"), "-o", tmp_path / "out")
    included = set()
    for file in (tmp_path / "out").glob("*.[ch]"):
        included |= set(re.findall(r'#include ([<"].*[>"])', file.read_text()))
    assert {i for i in included if i.startswith("<")} <= {"<stddef.h>", "<stdint.h>", "<immintrin.h>"}
    assert not (tmp_path / "out/team.c").exists() and not (tmp_path / "out/hal.c").exists()
    subprocess.run(["make", "-s", "-C", tmp_path / "out", f"CC={cc}", "CFLAGS=-O2 -Werror"], check=True)
    names = subprocess.run(["nm", tmp_path / "out/maths"], capture_output=True, text=True, check=True).stdout
    assert " T _start" in names and " U " not in names and not re.search(r"__libc|malloc|printf|pthread", names)
    ran = subprocess.run([tmp_path / "out/maths", tmp_path / "missing.bin"], capture_output=True, text=True, input="")
    assert ran.returncode == 1 and ran.stderr == "the weights cannot be read\n"
    ran = subprocess.run([tmp_path / "out/maths", tmp_path / "out/weights.bin", "3"], capture_output=True, input=b"\0" + bytes(240 * 4 + 320 + 160))
    assert ran.returncode == 0, ran.stderr
    assert [struct.unpack("<4q", ran.stdout[40 * i :][:32])[0] for i in range(3)] == [ord("t")] * 3
    cut = subprocess.run([tmp_path / "out/maths", tmp_path / "out/weights.bin"], capture_output=True, text=True, input="\0cut")
    assert cut.returncode == 2 and cut.stderr == "the input is cut short\n"


def test_it_is_timed(openinfer, graph, tmp_path):
    assert re.search(r"\d [un]s +\d", openinfer("bench", graph, "--target", device(tmp_path, "cpu_avx2"), "--steps", 3, *SET).stdout)


def test_weights_in_large_pages_and_in_the_program(openinfer, tmp_path):
    (tmp_path / "big.oi").write_text("dynamic { x: f32[1, 512]; }\nconstant { W: f32[512, 1024] @init(0.01); }\n"
                                     "block entry { assign y: f32[1, 1024]; op matmul(x, W) >> y; return y; }")  # fmt: skip
    for preferences in ({"large_pages_bytes": 4096}, {"embed_weights": "always"}):
        path = tmp_path / "device.json"
        path.write_text(json.dumps({"extends": "cpu_avx2", "cpu": {"libc": False}, "preferences": preferences}))
        assert "they agree" in openinfer("verify", tmp_path / "big.oi", "--target", path, "--set", "x=random:1:-1:1").stdout


def test_what_needs_a_library_is_refused(openinfer, tmp_path):
    """exp of f64 is the C library's; of f32 it is our own text."""
    (tmp_path / "wide.oi").write_text("dynamic { x: f64[8]; }\nblock entry { assign y: f64[8]; op exp(x) >> y; return y; }")
    said = openinfer("synth", tmp_path / "wide.oi", "--target", device(tmp_path, "cpu_avx2"), "-o", tmp_path / "out", code=1).stderr
    assert "error[E060]" in said and "needs a C library" in said and not (tmp_path / "out").exists()


def test_what_it_does_without_is_said(openinfer, graph, tmp_path):
    path = tmp_path / "device.json"
    path.write_text(json.dumps({"extends": "cpu_avx2", "cpu": {"libc": False, "threads": 4}, "preferences": {"host_lang": "cpp"}}))
    said = openinfer("synth", graph, "--target", path, "-o", tmp_path / "out").stderr
    assert "/cpu/threads: warning[W191]" in said and "/preferences/host_lang: warning[W191]" in said
    assert (tmp_path / "out/main.c").exists()
