"""The order of a reduction is declared in its row (ops/ops.json): every target follows it, and norms are accurate."""

import json
import re

import numpy as np
import pytest

from conftest import REPO

NORMS = """
dynamic { x: f32[2, 4, 577]; }
volatile { a: f32[2, 4, 577]; b: f32[2, 4, 577]; c: f32[2, 4, 577]; d: f32[2, 4, 577]; }
constant { scale: f32[577] @init(1.0); bias: f32[577] @init(0.0); s4: f32[4] @init(1.0); b4: f32[4] @init(0.0); }
block entry {
  op layernorm(x, scale, bias) >> a;
  op layernorm(x, scale) >> b;
  op groupnorm(x, s4, b4, groups=2) >> c;
  op instancenorm(x, s4, b4) >> d;
  return a, b, c, d;
}
"""
SUMS = """
dynamic { x: f32[3, 5, 579]; z: f64[7, 64]; }
volatile { a: f32[3, 5]; b: f32[3, 5, 1]; c: f32[5]; d: f32[3, 579]; e: f32[3, 5]; f: f64[7]; g: f32[3, 5, 579]; h: f32[3, 5]; }
constant { scale: f32[579] @init(1.0); }
block entry {
  op sum_axis(x, axes=[2]) >> a;
  op mean_axis(x, axes=[-1], keepdims=true) >> b;
  op sum_axis(x, axes=[0, 2]) >> c;
  op mean_axis(x, axes=[1]) >> d;
  op sum_axis(x, axes=[2], order="serial") >> e;
  op sum_axis(z, axes=[1]) >> f;
  op rmsnorm(x, scale) >> g;
  op prod_axis(x, axes=[2]) >> h;
  return a, b, c, d, e, f, g, h;
}
"""
TARGETS = ["cpu_scalar", "cpu_avx2"]


def verify(openinfer, tmp_path, text, target, *sets):
    (tmp_path / "m.oi").write_text(text)
    return openinfer("verify", tmp_path / "m.oi", "--target", target, "--steps", "1", "--cflags", "-O1", *sets).stdout


def test_constant_rows_become_nothing(openinfer, tmp_path):
    """Their mean is taken twice: what the first one leaves is taken off, too."""
    (tmp_path / "m.oi").write_text(NORMS)
    for device in ("cpu:scalar", "cpu"):
        openinfer("run", tmp_path / "m.oi", "--set", "x=0.7", "--device", device, "--out", tmp_path / "out")
        for name in "abcd":
            assert np.abs(np.load(tmp_path / f"out/{name}.npy")).max() < 1e-6, (device, name)


@pytest.mark.parametrize("target", TARGETS)
def test_programs_agree_on_constant_rows(openinfer, needs_target, tmp_path, target):
    needs_target(target)
    assert "they agree" in verify(openinfer, tmp_path, NORMS, target, "--set", "x=0.7")


@pytest.mark.parametrize("target", TARGETS)
def test_sums_have_the_simulators_bits(openinfer, needs_target, tmp_path, target):
    needs_target(target)
    said = verify(openinfer, tmp_path, SUMS, target, "--set", "x=random:3:-1:1", "--set", "z=random:4:-1:1")
    errors = dict(re.findall(r"^output +(\w+) +f\d+ +1 +(\S+)", said, re.M))
    assert errors == dict.fromkeys("abcdefgh", "0"), said


def test_no_row_asks_for_a_layout():
    """A body may ask which inputs there are and of what rank, not how a length divides."""
    for row in json.loads((REPO / "ops/ops.json").read_text())["ops"]:
        for body in row.get("body", []):
            assert isinstance(body, str) or "%" not in body["when"], f"{row['name']}: {body['when']}"
