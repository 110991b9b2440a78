"""What the synthesizer makes of nests without a recipe: rows that stay in cache, vectors of partial results, tiles of
transposed moves; and what it says about kernels that it can do nothing for."""

import json
import re

import numpy as np
import pytest

TARGETS = ["cpu_scalar", "cpu_avx2", "cpu_avx512"]


def verify(openinfer, tmp_path, text, target, *sets):
    (tmp_path / "m.oi").write_text(text)
    return openinfer("verify", tmp_path / "m.oi", "--target", target, "--steps", "1", "--cflags", "-O2", *sets).stdout


def errors(said):
    return re.findall(r"^output +\w+ +\w+ +1 +(\S+)", said, re.M)


def synth(openinfer, tmp_path, text, target="cpu_avx2"):
    (tmp_path / "m.oi").write_text(text)
    done = openinfer("synth", tmp_path / "m.oi", "--target", target, "-o", tmp_path / "out", "--name", "shape")
    return done, json.loads((tmp_path / "out/plan.json").read_text()), (tmp_path / "out/shape.c").read_text()


# -- partial results --

LARGEST = """
dynamic { x: f32[9, 5, 67]; }
volatile { a: f32[9, 5]; b: f32[9, 5]; c: i64[9, 5]; d: i64[9, 5]; e: i64[5, 67]; f: i64[9, 67]; g: i32[9, 5]; h: f32[5, 67]; }
block entry {
  op max_axis(x, axes=[2]) >> a;
  op min_axis(x, axes=[2]) >> b;
  op argmax_axis(x, axis=2) >> c;
  op argmin_axis(x, axis=2) >> d;
  op argmax_axis(x, axis=0) >> e;
  op argmin_axis(x, axis=1) >> f;
  op argmax_axis(x, axis=2, select_first=false) >> g;
  op max_axis(x, axes=[0]) >> h;
  return a, b, c, d, e, f, g, h;
}
"""


def special(shape):
    """Ties, zeros of both signs, infinities and NaNs of both signs, and rows of one value."""
    x = np.random.default_rng(3).integers(-3, 4, shape).astype(np.float32)
    flat = x.reshape(-1, shape[-1])
    flat[flat == 0] = -0.0
    flat[1, ::3] = 0.0
    flat[2] = -0.0
    flat[3, 40] = np.nan
    flat[4, [7, 50]] = -np.float32(np.nan)
    flat[5] = -np.inf
    flat[6, [2, 66]] = np.inf
    flat[7] = np.nan
    flat[8] = np.minimum(flat[8], 0)
    flat[9] = -0.0
    flat[9, 60] = 0.0
    return x


@pytest.mark.parametrize("target", TARGETS)
def test_largest_of_special_values(openinfer, needs_target, tmp_path, target):
    """The bits of the definition: a NaN wins, +0 is above -0 for values and equal for positions, the first position counts."""
    needs_target(target)
    np.save(tmp_path / "x.npy", special((9, 5, 67)))
    said = verify(openinfer, tmp_path, LARGEST, target, "--set", f"x=@{tmp_path}/x.npy")
    assert "they agree" in said and set(errors(said)) == {"0"}, said


# -- rows --

ROWS = """
dynamic { x: f32[3, 33, 7, 96]; y: f32[2, 40, 200]; }
volatile { a: f32[3, 33, 7, 96]; b: f32[3, 33, 7, 96]; c: f32[2, 40, 200]; d: f32[3, 33, 7, 96]; }
block entry {
  op softmax(x) >> a;
  op log_softmax(x, axis=1) >> b;
  op softmax(y, axis=1) >> c;
  op softmax(x, axis=2) >> d;
  return a, b, c, d;
}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_rows_that_stay_in_cache(openinfer, needs_target, tmp_path, target):
    needs_target(target)
    said = verify(openinfer, tmp_path, ROWS, target, "--set", "x=random:3:-4:4", "--set", "y=random:4:-4:4")
    assert "they agree" in said, said


def test_long_rows_need_no_memory(openinfer, tmp_path):
    """All axes around a row of a softmax are one loop, so that what is between its steps is a row on the stack."""
    text = """
dynamic { x: f32[5, 132, 12, 192]; }
volatile { y: f32[5, 132, 12, 192]; }
block entry { op softmax(x) >> y; return y; }
"""
    _, plan, code = synth(openinfer, tmp_path, text)
    assert plan["totals"]["arena_bytes"] == 0
    assert "[192];" in code and "[2304];" not in code


# -- moves --

MOVES = """
dynamic { x: f32[33, 70]; y: f32[3, 17, 5, 40]; z: f32[2, 3, 4, 20, 18]; s: f32[7, 9]; }
volatile { a: f32[70, 33]; b: f32[40, 3, 17, 5]; c: f32[2, 18, 4, 20, 3]; d: f32[9, 7]; e: f32[3, 40, 5, 17]; }
block entry {
  op transpose(x) >> a;
  op transpose(y, perm=[3, 0, 1, 2]) >> b;
  op transpose(z, perm=[0, 4, 2, 3, 1]) >> c;
  op transpose(s) >> d;
  op transpose(y, perm=[0, 3, 2, 1]) >> e;
  return a, b, c, d, e;
}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_transposed_moves(openinfer, needs_target, tmp_path, target):
    needs_target(target)
    sets = [w for name in "xyzs" for w in ("--set", f"{name}=random:{ord(name)}:-1:1")]
    said = verify(openinfer, tmp_path, MOVES, target, *sets)
    assert "they agree" in said and set(errors(said)) == {"0"}, said
    if target != "cpu_scalar":
        _, plan, _ = synth(openinfer, tmp_path, MOVES, target)
        tiled = [k for k in plan["kernels"] if k.get("recipe") == "transpose in tiles"]
        assert len(tiled) >= 2, [k.get("recipe") for k in plan["kernels"]]


# -- what is said --

SLOW = """
dynamic { x: f32[600, 700]; }
volatile { y: f32[600, 700]; }
block entry { op cumsum(x, axis=1) >> y; return y; }
"""


def test_a_slow_kernel_is_said(openinfer, tmp_path):
    """A kernel of a twentieth of a step that is a plain loop: a note, a line of the report and of plan.json."""
    done, plan, _ = synth(openinfer, tmp_path, SLOW)
    assert "is a plain loop: every element waits for the one before it. What would help: a shorter axis." in done.stderr
    assert "(line 4), about 100 % of a step" in done.stderr
    notes = [n for n in plan["notes"] if n["pass"] == "slow"]
    assert len(notes) == 1 and "every element waits" in notes[0]["text"]
    assert "every element waits for the one before it" in (tmp_path / "out/report.html").read_text()


def test_good_loops_are_not_said(openinfer, tmp_path):
    text = SLOW.replace("cumsum(x, axis=1)", "softmax(x)")
    done, plan, _ = synth(openinfer, tmp_path, text)
    assert "plain loop" not in done.stderr and not [n for n in plan["notes"] if n["pass"] == "slow"]
