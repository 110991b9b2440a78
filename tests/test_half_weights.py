"""Weights of 16 bits in emitted programs: streamed as halves, whether the graph multiplies halves or converts
the weight first."""

import dataclasses
import shutil
import sys

import numpy as np
import pytest

from conftest import REPO

sys.path[:0] = [str(REPO / "python/src")]

GRAPH = """
dynamic { x: f32[1, 96]; z: f32[40, 96]; h: f16[3, 75]; }
constant { W: f16[96, 200]; V: bf16[200, 75]; U: f16[64, 75]; }
volatile { y: f32[1, 75]; y2: f32[40, 75]; y3: f16[3, 64]; y4: f32[3, 64]; y5: f32[40, 200]; }
block entry {
  assign w: f32[96, 200];
  assign v: f32[200, 75];
  assign t: f32[1, 200];
  assign t2: f32[40, 200];
  op cast(W, to=f32) >> w;
  op cast(V, to=f32) >> v;
  op matmul(x, w) >> t;
  op matmul(t, v) >> y;
  op matmul(z, w) >> t2;
  op matmul(t2, v) >> y2;
  op matmul(h, U, transpose_b=true) >> y3;
  op matmul(h, U, transpose_b=true, acc=f32) >> y4;
  op square(w) >> w;  // what follows is no conversion any more
  op matmul(z, w) >> y5;
  return;
}
"""
INPUTS = ["--set", "x=random:1:-1:1", "--set", "z=random:2:-1:1", "--set", "h=random:3:-1:1"]


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    from openinfer.oinf import TensorSpec, write_oinf

    @dataclasses.dataclass
    class Model:
        W: TensorSpec
        V: TensorSpec
        U: TensorSpec

    folder = tmp_path_factory.mktemp("halves")
    rng = np.random.default_rng(0)
    shapes = {"W": ((96, 200), "f16"), "V": ((200, 75), "bf16"), "U": ((64, 75), "f16")}
    model = Model(**{n: TensorSpec(rng.uniform(-1, 1, s).astype(np.float32), dtype=t) for n, (s, t) in shapes.items()})
    write_oinf(model, str(folder / "m.oinf"))
    (folder / "g.oi").write_text(GRAPH)
    return [str(folder / "g.oi"), "--model", str(folder / "m.oinf")]


@pytest.mark.parametrize("more", [[], ["--per-node"]])
@pytest.mark.parametrize("target", ["cpu_avx2", "cpu_neon"])
def test_agrees(openinfer, halves, target, more):
    if target == "cpu_neon" and not (shutil.which("qemu-aarch64") and shutil.which("aarch64-linux-gnu-gcc")):
        pytest.skip("qemu-user or the compiler for aarch64 is not installed")
    result = openinfer("verify", *halves, "--target", target, "--steps", "2", *INPUTS, *more)
    assert result.returncode == 0, result.stdout + result.stderr


def test_stay_halves(openinfer, halves, tmp_path):
    """No product but the last reads a weight as floats, and none is made."""
    result = openinfer("synth", *halves, "--target", "cpu_avx2", "-o", str(tmp_path), "--name", "p")
    assert result.returncode == 0, result.stdout + result.stderr
    text = (tmp_path / "p.c").read_text()
    assert text.count(" oi_half_gemm(") == 1 + 6  # itself and six calls
    assert (tmp_path / "weights.bin").stat().st_size < 2.5 * (96 * 208 + 200 * 80 + 64 * 75) + 2 * 96 * 200
