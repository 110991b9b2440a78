"""The synthesizer's passes: any one may be left out, and the program still agrees with the simulator."""
import collections
import json
import pathlib
import platform
import random
import re
import shutil
import struct
import subprocess
import sys

import numpy
import pytest

from conftest import BIN, REPO

sys.path.insert(0, str(REPO / "python/src"))
from openinfer.oinf import PackageWriter, StreamTensor  # noqa: E402


def passes():
    """All there are, as the command names them."""
    said = subprocess.run([BIN, "synth", "x.oi", "-o", "x", "--without", "?"], capture_output=True, text=True).stderr
    return re.search(r"they are (.*)\)", said)[1].split(", ")


PASSES = passes()

GRAPHS = {
    # maps into products and readers, values written in place, a variable that lives across the loop
    "chain": """
dynamic { x: f32[3, 40]; }
constant { w: f32[40, 40] @init(0.03); b: f32[40] @init(0.25); two: f32 @init(2.0); }
volatile { y: f32[3, 40]; z: f16[40, 3]; unused: f32[3, 40]; }
block entry {
  assign h: f32[3, 40];
  assign t: f32[3, 40];
  assign c: f32[40];
  op mul(b, two) >> c;
  op add(x, c) >> h;
  op relu(h) >> h;
  op exp(x) >> unused;
  loop layers (l in 0..3) {
    op matmul(h, w) >> t;
    op add(t, b) >> t;
    op relu(t, negative_slope=0.1) >> t;
    op add(h, t) >> h;
  }
  op softmax(h) >> y;
  op cast(y, to=f16) >> t16;
  op transpose(t16) >> z;
  return y, z;
}
""".replace("volatile {", "volatile { t16: f16[3, 40];"),
    # integers: variables that loops share, values that go from one tensor to a second and back, casts of what fits
    # 32 bits and of what does not
    "rounds": """
dynamic { x: i8[3, 16]; }
constant { big: i64 @init(1099511627776); half: i64 @init(128); w: i8[16, 16] @init(3); k: i32[3, 16] @init(-7); }
volatile { y: i8[3, 16]; z: i16[3, 16]; }
block entry {
  assign a: i8[3, 16];
  assign b: i8[3, 16];
  assign s: i32[3, 16];
  assign p: i64[3, 16];
  op relu(x) >> a;
  loop rounds (l in 0..3) {
    op matmul(a, w, acc=[i32]) >> s;
    op cast(s, to=i64) >> p;
    op add(p, half) >> p;
    op shr(p, bits=4) >> p;
    op cast(p, to=i8) >> b;
    op cast(b, to=i64) >> p;
    op mul(p, big) >> p;
    op shr(p, bits=38) >> p;
    op cast(p, to=i8) >> a;
  }
  op cast(a, to=i32) >> s;
  op mul(s, k) >> s;
  op cast(s, to=i64) >> p;
  op mul(p, big) >> p;
  op cast(p, to=i16) >> z;
  op add(a, x) >> y;
  return y, z;
}
""",
    # moves into the loads behind them: cut axes, borders, data as places, several readers
    "moves": """
dynamic { x: f32[4, 24]; at: i32[3]; }
constant { w: f16[6, 5] @init(0.5); k: f32[2, 4, 3, 3] @init(0.125); q: i8[12, 24] @init(3); s: f32[12, 2] @init(0.25); }
volatile { a: f32[6, 4, 4]; c: f32[1, 2, 6, 4]; g: f32[3, 6]; p: f32[4, 30]; r: f32[24]; y: f32[4, 12]; z: f32[4, 24];
           t: f16[24, 4]; n: i64[1]; m: f32[4, 24]; }
persistent { kept: f32[4, 24] @init(0.5); }
block entry {
  assign x3: f32[4, 6, 4];
  assign xt: f32[6, 4, 4];
  assign x4: f32[1, 4, 6, 4];
  assign wt: f16[5, 6];
  assign wf: f32[5, 6];
  assign e: f32[4, 24];
  assign f: f32[24, 4];
  assign u: f32[4, 24];
  assign h: f16[4, 24];
  assign d: f32[4, 12];
  assign old: f32[4, 24];
  assign all: f32[96];
  op reshape(x, shape=[4, 6, 4]) >> x3;
  op transpose(x3, perm=[1, 0, 2]) >> xt;
  op relu(xt) >> a;
  op reshape(x, shape=[1, 4, 6, 4]) >> x4;
  op conv2d(x4, k, pads=[1, 1, 1, 1]) >> c;
  op transpose(w) >> wt;
  op cast(wt, to=f32) >> wf;
  op gather(wf, at) >> g;
  op add(x, x) >> e;
  op pad(e, pads=[0, 3, 0, 3], mode="reflect") >> p;
  op transpose(e) >> f;
  op max_axis(f, axes=[1]) >> r;
  op cast(e, to=f16) >> h;
  op transpose(h) >> t;
  op qlinear(x, q, s, act="q8") >> d;
  op reverse(d, axes=[1]) >> y;
  op slice(x, starts=[0], ends=[12], axes=[1]) >> left;
  op slice(x, starts=[12], ends=[24], axes=[1]) >> right;
  op concat(right, left, axis=1) >> u;
  op mul(u, x) >> z;
  op reshape(u, shape=[96]) >> all;
  op argmax_axis(all, axis=0, keepdims=true) >> n;
  cache.read kept >> old;
  op transpose(old) >> f;
  cache.write z >> kept;
  barrier;
  op transpose(f) >> m;
  return a, c, g, p, r, y, z, t, n, m;
}
""".replace("assign x3", "assign left: f32[4, 12];\n  assign right: f32[4, 12];\n  assign x3"),
    # persistent memory read where it lies, or copied because it changes or lies in pieces
    "lent": """
dynamic { x: f32[4]; }
volatile { y: f32[4]; z: f32[3, 4]; w: f32[2, 4]; }
persistent { at: i32 @init(0); rows(l, t): f32[4] @table @fixed(l=2, t=5); last: f32[4] @init(0.5); }
block entry {
  assign all: f32[5, 4];
  assign some: f32[3, 4];
  assign two: f32[2, 4];
  assign old: f32[4];
  cache.write x >> rows[1, at % 5];
  cache.read rows[1] >> all;
  op sum_axis(all, axes=[0]) >> y;
  cache.read rows[1, at % 3 .. at % 3 + 3] >> some;
  op abs(some) >> z;
  cache.read rows[0..2, at % 5] >> two;
  op add(two, x) >> w;
  cache.read last >> old;
  cache.write x >> last;
  op add(y, old) >> y;
  cache.increment at;
  return y, z, w;
}
""",
    # windows with padding, reductions over rows, moves, a state that a branch changes
    "window": """
dynamic { x: f32[1, 3, 9, 11]; }
constant { w: f32[4, 3, 3, 3] @init(0.125); b: f32[4] @init(0.25); g: f32[6] @init(1.5); }
volatile { y: f32[1, 4, 5, 6]; p: f32[1, 4, 2, 3]; n: f32[1, 4, 5, 6]; big: bool; }
persistent { count: i32 @init(0); kept(t): f32[6] @table @fixed(t=3); }
block entry {
  assign row: f32[6];
  assign peak: f32;
  op conv2d(x, w, b, strides=[2, 2], pads=[1, 1, 1, 1]) >> y;
  op max_pool(y, kernel=[2, 2], strides=[2, 2]) >> p;
  op layernorm(y, g) >> n;
  op max_axis(n, axes=[0, 1, 2]) >> row;
  op max_axis(p, axes=[0, 1, 2, 3]) >> peak;
  op gt(peak, zero) >> big;
  branch big keep drop;
  return p, n, big;
}
block keep {
  cache.write row >> kept[count % 3];
  cache.increment count;
  return;
}
block drop {
  cache.reset kept;
  return;
}
""".replace("constant {", "constant { zero: f32 @init(0.4);"),
    # what a kernel reads by name changes before its result is read; a constant comes into a variable that
    # was read before, straight on, in a loop and in a block that is called; that block writes what is read behind it;
    # a number negated twice; a kernel that reads what it wrote itself
    "order": """
dynamic { x: f32[8]; }
constant { half: f32 @init(0.5); c: f32[8] @init(3.0); places: i64[8] @init(3); }
volatile {
  limit: f32 @init(1.0); y: f32[8]; z: f32[8]; u: f32[8]; v: f32[8];
  first: f32[8] @init(1.0); second: f32[8] @init(1.0); third: f32[8] @init(1.0); fourth: f32[8]; n: f32[8]; w: f32[8];
}
block entry {
  assign t: f32[8];
  assign peak: f32[1];
  op relu(x, clamp_max=limit) >> t;
  op mul(limit, half) >> limit;
  op neg(t) >> y;
  op add(x, first) >> z;
  op add(c, c) >> first;
  loop rounds (i in 0..2) {
    op add(x, second) >> u;
    op add(c, c) >> second;
  }
  op exp(x) >> fourth;
  branch called;
  op add(c, c) >> third;
  op add(fourth, c) >> fourth;
  op max_axis(x, axes=[0], keepdims=true) >> peak;
  op neg(peak) >> peak;
  op neg(peak) >> peak;
  op mul(fourth, peak) >> n;
  op scatter(c, places, x, reduction="mul") >> w;
  op abs(w) >> w;
  return y, z, u, v, n, w;
}
block called {
  op add(x, third) >> v;
  op add(x, x) >> fourth;
  return;
}
""",
}

GRAPHS["angles"] = """
dynamic { x: f32[4, 12]; edge: f32[12]; }
constant { rate: f32[12] @init(0.3); half: f32 @init(0.5); }
volatile { y: f32[4, 12]; z: f32[12]; }
persistent { total: f32[12] @init(0.5); }
block entry {
  assign angle: f32[12];
  assign wave: f32[12];
  assign own: f32[12];
  assign old: f32[12];
  assign small: f32[12];
  assign grown: f32[4, 12];
  assign h: f32[4, 12];
  assign last: f32[12];
  op mul(x, half) >> h;
  op mul(edge, half) >> z;
  loop outer (i in 0..2) {
    loop inner (l in 0..3) {
      op sum_axis(x, axes=[0], keepdims=false) >> angle;
      op mul(angle, rate) >> angle;
      op cos(angle) >> wave;
      op add(rate, edge) >> small;
      cache.read total >> old;
      op exp(old) >> own;
      op mul(h, wave) >> grown;
      op mul(grown, small) >> h;
      op add(h, own) >> h;
    }
    op sin(z) >> last;
    op add(z, last) >> z;
    cache.write last >> total;
  }
  op add(h, z) >> y;
  return y, z;
}
"""

SETS = {"moves": ["--set", "at=4,0,-1"]}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("left_out", ["nothing", *PASSES])
def test_a_pass_may_be_left_out(openinfer, tmp_path, graph, left_out):
    path = tmp_path / f"{graph}.oi"
    path.write_text(GRAPHS[graph])
    without = [] if left_out == "nothing" else ["--without", left_out]
    target = "cpu_avx2" if left_out in ("recipes", "partition") else "cpu_scalar"
    run = openinfer("verify", path, "--target", target, "--steps", 4, "--cflags", "-O1", *SETS.get(graph, []), *without)
    assert "they agree" in run.stdout


def test_dumps_show_what_fusion_did(openinfer, tmp_path):
    path = tmp_path / "chain.oi"
    path.write_text(GRAPHS["chain"])
    run = openinfer("synth", path, "-o", tmp_path / "out", "--dump-after", "fuse")
    assert "// matmul add relu: contract[3, 40, +40]" in run.stdout
    assert "exp" not in run.stdout  # nobody reads it
    assert "overwrites what the first reads" in run.stdout  # why h = h + t stays apart


def test_what_no_iteration_changes_is_computed_before_the_loop(openinfer, tmp_path):
    path = tmp_path / "angles.oi"
    path.write_text(GRAPHS["angles"])
    run = openinfer("synth", path, "-o", tmp_path / "out", "--dump-after", "hoist")
    before, loop = run.stdout.split("loop outer")
    outer, inner = loop.split("loop inner")
    inner, behind = inner.split("}", 1)
    assert "// sum_axis" in before and "// cos" in before  # out of both loops, with what it is made of
    assert "// exp" in outer  # the outer loop writes the variable
    assert "// add" in inner and "// add" not in outer  # an addition is not worth a place in memory
    assert "// sin" in behind  # what it reads changes


def test_a_result_made_apart_is_folded_as_itself(openinfer, tmp_path):
    """reverse reads all of what it overwrites, so its result is made apart: fold must not take one for the other."""
    path = tmp_path / "apart.oi"
    path.write_text("constant { w: f32[2, 4, 24] @init(0.5); }\n"
                    "block entry { assign t: f32[2, 4, 24]; op neg(w) >> t; op reverse(t, axes=[1, -1]) >> t; return t; }\n")
    assert "they agree" in openinfer("verify", path, "--target", "cpu_scalar").stdout


def test_a_variable_written_twice_is_folded(openinfer, tmp_path):
    """Every value of the chain depends on the model alone; only what meets the input is computed in a step."""
    path = tmp_path / "twice.oi"
    path.write_text("""dynamic { x: f32[4]; }
constant { a: f32[4] @init(2.0); b: f32[4] @init(3.0); }
volatile { y: f32[4]; z: f32[4]; }
block entry {
  assign t: f32[4];
  op mul(a, b) >> t;
  op add(t, a) >> t;
  op add(x, t) >> z;
  op exp(t) >> t;
  op sub(t, b) >> t;
  op add(x, t) >> y;
  return y, z;
}
""")
    run = openinfer("synth", path, "-o", tmp_path / "out", "--target", "cpu_scalar", "--dump-after", "fold")
    assert re.findall(r"^ *k\d+_(\w+)\(", run.stdout, re.M) == ["add", "add"]
    openinfer("verify", path, "--target", "cpu_scalar", "--set", "x=random:1:-1:1")


@pytest.mark.parametrize("op", ["cumprod(t, axis=1)", "cumsum(t, axis=1, reverse=true)", "reverse(t, axes=[1])"])
def test_an_op_over_its_own_operand_is_folded(openinfer, tmp_path, op):
    """Its result is made in a tensor apart and copied: that tensor is what folding computes."""
    path = tmp_path / "over.oi"
    path.write_text(f"""constant {{ w: u64[2, 3, 7] @init(2); }}
block entry {{
  assign t: u64[1, 3, 1];
  op mean_axis(w, axes=[0, -1], keepdims=true) >> t;
  op {op} >> t;
  return t;
}}
""")
    run = openinfer("synth", path, "-o", tmp_path / "out", "--target", "cpu_scalar", "--dump-after", "fold")
    assert len(re.findall(r"^ *k\d+_\w+\(", run.stdout, re.M)) == 1, "the copy to what is returned"
    openinfer("verify", path, "--target", "cpu_scalar", "--cflags", "-O0")


def test_reads_that_lend(openinfer, tmp_path):
    path = tmp_path / "lent.oi"
    path.write_text(GRAPHS["lent"])
    run = openinfer("synth", path, "-o", tmp_path / "out", "--dump-after", "memory")
    for copy in "all", "some", "two":  # nests read where it lies, contiguous or not
        assert f"// nowhere  {copy}:" in run.stdout
    alone = [x for name in ("copy_prop", "inline", "fuse", "rows") for x in ("--without", name)]
    run = openinfer("synth", path, "-o", tmp_path / "out", "--dump-after", "view", *alone)
    assert "// view     all: f32[5, 4]" in run.stdout
    assert "// view     some: f32[3, 4]" in run.stdout
    assert "// view: two is copied: it is not contiguous" in run.stdout
    assert "// view: old is copied: the variable changes before its last reader" in run.stdout


def test_unknown_passes_are_named(openinfer, tmp_path):
    run = openinfer("synth", "x.oi", "-o", tmp_path / "out", "--without", "fues", code=2)
    assert "there is no pass 'fues'" in run.stderr
    assert {"recipes", "fuse", "inplace", "partition"} <= set(PASSES)


def test_what_a_program_gives(openinfer, tmp_path):
    """A constant that is returned has a place of its own; a number of any type can be a limit."""
    path = tmp_path / "given.oi"
    path.write_text("""
dynamic { q: f32[1, 3, 4]; k: f32[1, 5, 4]; v: f32[1, 5, 4]; n: u32; }
constant { w: f32[4] @init(3.0); }
volatile { y: f32[1, 3, 4]; z: f32[4]; }
block entry {
  op sdpa(q, k, v, heads=1, kv_heads=1, kv_len=n) >> y;
  op add(w, w) >> z;
  return y, w, z;
}
""")
    for n, words in (3, "they agree"), (6, "ended with the same error"):
        run = openinfer("verify", path, "--steps", 2, "--set", f"n={n}", "--cflags", "-O1 -Wall -Wextra -Werror")
        assert words in run.stdout


def test_graphs_that_each_have_consumers(openinfer, tmp_path):
    """One program, two steps: what waits for what is kept apart."""
    paths = []
    for name, op in ("first", "add"), ("second", "mul"):
        paths.append(tmp_path / f"{name}.oi")
        paths[-1].write_text(f"""
dynamic {{ z: f32[4]; }}
volatile {{ x: f32[4]; y: f32[4]; }}
block entry {{ op {op}(z, z) >> x; yield x; await x; return x, y; }}
block other {{ await x; op add(x, x) >> y; yield x; }}
""")
    run = openinfer("verify", *paths, "--in-turn", "--steps", 2, "--cflags", "-O1 -Wall -Wextra -Werror")
    assert "they agree" in run.stdout


def test_reset_gives_back_what_the_model_has(openinfer, tmp_path):
    """Also where several elements share a byte."""
    with PackageWriter(tmp_path / "m.oinf") as package:
        package.add_tensor("k", StreamTensor("i4", (6,), bytes([0x21, 0x43, 0x65])))
        package.add_tensor("f", StreamTensor("i16", (3,), bytes([1, 0, 2, 0, 3, 0])))
    path = tmp_path / "reset.oi"
    path.write_text("""
dynamic { a: i4[6]; b: i16[3]; }
persistent { K: i4[6] @ref("k"); F: i16[3] @ref("f"); }
volatile { y: i4[6]; z: i16[3]; part: i4[6]; }
block entry {
  cache.write a >> K;
  cache.write b >> F;
  cache.reset K[1..4];
  cache.read K >> part;
  cache.reset K;
  cache.reset F;
  cache.read K >> y;
  cache.read F >> z;
  return part, y, z;
}
""")
    run = openinfer("verify", path, "--model", tmp_path / "m.oinf", "--steps", 2, "--set", "a=7,6,5,4,3,2", "--set", "b=9,8,7",
                    "--cflags", "-O1 -Wall -Wextra -Werror")  # fmt: skip
    assert "they agree" in run.stdout


@pytest.mark.parametrize("n", [0, 2, 1 << 62, (1 << 63) - 1])
@pytest.mark.parametrize("use", [
    "cache.write x >> K[7 / n];", "cache.read K[9 % n] >> y;", "cache.read K[n * 0 + 4 / n] >> y;",
    "cache.read K[n * 4 - n * 4] >> y;", "loop l (i in n * 2..n * 2 + 2) { op add(x, y) >> y; } cache.write x >> K[1 / n];",
])  # fmt: skip
def test_indices_that_cannot_be_computed(openinfer, tmp_path, use, n):
    """Division by zero and what 64 bits do not hold end the step as in the simulator, and nothing undefined happens."""
    path = tmp_path / "index.oi"
    path.write_text(f"""
dynamic {{ n: i64; x: f32; }}
persistent {{ K(t): f32 @table @fixed(t=5); }}
volatile {{ y: f32; }}
block entry {{ {use} return y; }}
""")
    run = openinfer("verify", path, "--steps", 1, "--set", f"n={n}", "--cflags",
                    "-O1 -Wall -Wextra -Werror -fsanitize=undefined -fno-sanitize-recover=all")  # fmt: skip
    assert "they agree" in run.stdout


def test_calls_of_calls(openinfer, tmp_path):
    """Sixty blocks that call the next one twice: a step would never end, but planning it does."""
    path = tmp_path / "calls.oi"
    blocks = "".join(f"block b{i} {{ branch b{i + 1}; branch b{i + 1}; return; }}\n" for i in range(60))
    path.write_text("dynamic { x: f32[4]; }\nvolatile { y: f32[4]; }\nblock entry { branch b0; return y; }\n" + blocks
                    + "block b60 { op add(x, y) >> y; return; }\n")
    openinfer("synth", path, "-o", tmp_path / "out", timeout=20)


def test_too_large_for_any_machine(openinfer, tmp_path):
    path = tmp_path / "huge.oi"
    path.write_text("""
dynamic { q: f32[1, 8589934592, 1]; }
volatile { y: f32[1, 8589934592, 1]; }
block entry { op sdpa(q, q, q, heads=1, kv_heads=1) >> y; return y; }
""")
    run = openinfer("synth", path, "-o", tmp_path / "out", code=1)
    assert "more memory than any machine has" in run.stderr


# A consumer's write that others must not see yet goes to a tensor of its own, also where it is read by name and in
# blocks that the consumer calls.
HIDDEN = """
dynamic {{ z: f32[4]; }}
volatile {{ x: f32[4]; y: f32[4]; w: f32[4]; limit: f32 @init(5.0); one: f32 @init(1.0); }}
block entry {{
  op add(z, z) >> x;
  yield x;
  op relu(z, clamp_max=limit) >> w;
  await x;
  return w, y, limit;
}}
block other {{
  await x;
  {body}
  yield x;
}}
block called {{
  transfer one >> limit;
  return;
}}
"""


@pytest.mark.parametrize("body", [
    "transfer one >> limit; op add(x, limit) >> y;",
    "transfer one >> limit; op relu(x, clamp_max=limit) >> y;",
    "branch called; op add(x, x) >> y;",
    "branch called; op relu(x, clamp_max=limit) >> y;",
])  # fmt: skip
def test_what_a_consumer_hides(openinfer, tmp_path, body):
    path = tmp_path / "hidden.oi"
    path.write_text(HIDDEN.format(body=body))
    run = openinfer("verify", path, "--target", "cpu_scalar", "--steps", 3, "--cflags", "-O1")
    assert "they agree" in run.stdout


@pytest.mark.parametrize("rows, greatest", [(1, False), (5, False), (1, True)])
@pytest.mark.parametrize("target, strips, parts", [("cpu_avx2", {32: 5}, {32: 2}), ("cpu_avx512", {32: 3, 64: 2}, {32: 1, 64: 1})])
def test_rows_of_weights_side_by_side(openinfer, needs_target, tmp_path, rows, greatest, target, strips, parts):
    """Products without a recipe read as many rows of their weights at once as a register has bytes, if they come out
    even, and the weights file has them in that order; sums that begin in 16 bits hold the greatest that there can be."""
    needs_target(target)
    rng = numpy.random.default_rng(7)
    with PackageWriter(tmp_path / "m.oinf") as package:
        for layer in range(2):
            package.add_tensor(f"q{layer}", StreamTensor("u4", (64, 96), b"\xff" * 3072 if greatest else rng.bytes(3072)))
            for name in "so":
                part = rng.standard_normal((64, 3)).astype(numpy.float16)
                package.add_tensor(f"{name}{layer}", StreamTensor("f16", (64, 3), part.tobytes()))
        package.add_tensor("b", StreamTensor("i8", (96, 64), rng.bytes(96 * 64)))
        package.add_tensor("t", StreamTensor("f32", (96, 2), rng.standard_normal((96, 2)).astype(numpy.float32).tobytes()))
        package.add_tensor("w", StreamTensor("f32", (160, 96), rng.standard_normal((160, 96)).astype(numpy.float32).tobytes()))
    path = tmp_path / "rows.oi"
    path.write_text(f"""
dynamic {{ x: f32[{rows}, 96]; }}
constant {{
  q(l): u4[64, 96] @pattern("q{{l}}"); s(l): f16[64, 3] @pattern("s{{l}}"); o(l): f16[64, 3] @pattern("o{{l}}");
  b: i8[96, 64]; t: f32[96, 2]; w: f32[160, 96];
}}
volatile {{ y: f32[{rows}, 160]; }}
block entry {{
  assign h: f32[{rows}, 96];
  assign g: f32[{rows}, 64];
  op relu(x) >> h;
  loop layers (l in 0..2) {{
    op qlinear(h, q[l], s[l], o[l], act="q8") >> g;
    op qlinear(g, b, t, act="q8") >> h;
    op add(h, x) >> h;
  }}
  op matmul(h, w, transpose_b=true) >> y;
  return y;
}}
""")
    common = [path, "--model", tmp_path / "m.oinf", "--target", target, "--without", "recipes"]
    for without in [], ["--without", "layout"], ["--without", "rows"], ["--without", "narrow16"]:
        words = ["--steps", 3, "--cflags", "-O1 -Wall -Wextra -Werror", "--set", "x=1" if greatest else "x=random:3:-1:1"]
        run = openinfer("verify", *common, *without, *words)
        assert "they agree" in run.stdout
        if not {"layout", "rows"} & set(without):  # no bit differs: sums keep their order
            assert re.search(r"output +y +f32 +3 +0\s", run.stdout)
    for name, without, wanted in ("side_by_side", [], (strips, parts)), ("apart", ["--without", "layout"], ({}, {})):
        openinfer("synth", *common, *without, "-o", tmp_path / name)
        code = (tmp_path / name / "rows.c").read_text()
        found = (re.findall(rf" {what}\[(32|64)\];", code) for what in ("acc", "int16_t partial"))
        assert tuple(collections.Counter(map(int, f)) for f in found) == wanted


WHOLE = """
dynamic { ta: i32[6]; tb: i32[6]; tc: i32[6]; te: i32[6]; f: f32[6]; }
constant { half: f32 @init(0.5); third: f32 @init(0.3); quarter: f32 @init(0.25); four: f32 @init(4); }
volatile { a: i8[6]; b: u8[6]; c: i8[6]; d: i8[6]; e: i16[6]; }
block entry {
  assign r: f32[6];
  op cast(ta, to=f32) >> r;
  op mul(r, quarter) >> r;
  op round(r) >> r;
  op clamp(r, min=-3, max=100) >> r;
  op cast(r, to=i8) >> a;
  op cast(tb, to=f32) >> r;
  op mul(r, third) >> r;
  op cast(r, to=u8) >> b;
  op cast(tc, to=f32) >> r;
  op mul(r, four) >> r;
  op round(r) >> r;
  op clamp(r, min=-3, max=100) >> r;
  op cast(r, to=i8) >> c;
  op round(f) >> r;
  op clamp(r, min=-3, max=100) >> r;
  op cast(r, to=i8) >> d;
  op cast(te, to=f32) >> r;
  op mul(r, half) >> r;
  op clamp(r, min=-2.5, max=100000) >> r;
  op cast(r, to=i16) >> e;
  return a, b, c, d, e;
}
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="for x86")
def test_floats_are_cut_to_32_bits_where_they_fit(openinfer, tmp_path):
    """A quarter of an i32 does, four times one only within limits, a float that nobody knows never; what is none is 0."""
    path = tmp_path / "g.oi"
    path.write_text(WHOLE)
    numpy.save(tmp_path / "t.npy", numpy.array([-(2**31), 2**31 - 1, -9, 10, 1021, 0], numpy.int32))
    numpy.save(tmp_path / "f.npy", numpy.array([numpy.nan, numpy.inf, -numpy.inf, 0.5, -1.5, 99.5], numpy.float32))
    openinfer("synth", path, "--target", "cpu_avx2", "-o", tmp_path / "out")
    code = (tmp_path / "out/g.c").read_text()
    assert len(re.findall(r"= \(int32_t\)v\d;", code)) == 4  # not what nobody knows
    assert len(re.findall(r"oi_max_i32\(\w+, -3\)", code)) == 1 and len(re.findall(r"oi_max_f32\(\w+, -3.0f\)", code)) == 2
    for without in [], ["--without", "int_clamp"]:
        words = [w for name in "abce" for w in ("--set", f"t{name}={tmp_path / 't.npy'}")] + ["--set", f"f={tmp_path / 'f.npy'}", "--steps", 1]
        run = openinfer("verify", path, "--target", "cpu_avx2", *without, *words, "--cflags", "-O3 -Wall -Wextra -Werror")
        assert "they agree" in run.stdout


TIED = """
dynamic {{ tokens: i32[3]; }}
constant {{
  embed: {dtype}[100, 64]; scale: f16[100, 2]; offset: f16[100, 2];
  w: f32[64, 64] @init(0.1);
}}
volatile {{ rows: {dtype}[3, 64]; d: f16[3, 2]; more: f16[3, 2]; y: f32[3, 100]; }}
block entry {{
  assign e: {dtype}[3, 64];
  assign x: f32[3, 64];
  op gather(embed, tokens) >> rows;
  op gather(scale, tokens) >> d;
  op gather(offset, tokens) >> more;
  op cast(rows, to=f32) >> x;
  op matmul(x, w) >> x;
  op qlinear(x, embed, scale, offset, act="q8") >> y;
  return rows, d, more, y;
}}
"""


@pytest.mark.parametrize("dtype, shared", [("i8", {"embed", "scale", "offset"}), ("u8", {"scale", "offset"})])
@pytest.mark.parametrize("target", ["cpu_avx2", "cpu_neon", "cpu_scalar"])
def test_rows_of_weights_that_are_packed(openinfer, tmp_path, dtype, shared, target):
    """An embedding that is the output layer, too, is stored once, where its elements lie one by one."""
    if target == "cpu_neon" and not (shutil.which("qemu-aarch64") and shutil.which("aarch64-linux-gnu-gcc")):
        pytest.skip("gcc-aarch64-linux-gnu or qemu-user is not installed")
    path, model = tmp_path / "tied.oi", tmp_path / "tied.oinf"
    path.write_text(TIED.format(dtype=dtype))
    rng = random.Random(5)
    with PackageWriter(str(model)) as out:
        out.add_tensor("embed", StreamTensor(dtype, (100, 64), rng.randbytes(6400)))
        for name in ("scale", "offset"):
            numbers = struct.pack("<200e", *(rng.uniform(0.01, 0.1) for _ in range(200)))
            out.add_tensor(name, StreamTensor("f16", (100, 2), numbers))
    run = openinfer("verify", path, "--model", model, "--target", target, "--steps", 3, "--set", "tokens=random:4:-100:99",
                    "--keep", tmp_path / "kept")  # fmt: skip
    assert "they agree" in run.stdout
    tensors = {t["name"]: t for t in json.loads((tmp_path / "kept/plan.json").read_text())["buffers"]}
    views = {name for name, t in tensors.items() if t.get("view")}
    assert views == (shared if target != "cpu_scalar" else set())
    for name in views:
        assert tensors[name]["offset"] == tensors["embed_packed"]["offset"]
    run = openinfer("run", path, "--model", model, "--set", "tokens=0,5,100", code=None)
    assert "E047" in run.stderr  # the same failure as the program's


ROPE = """
dynamic { x: f32[1, 20, 64]; p: i32[20]; }
volatile { y: f32[1, 20, 64]; z: f32[1, 20, 64]; }
block entry {
  assign q: f32[1, 20, 64];
  op relu(x) >> q;
  op rope(q, p, heads=4, theta=100, interleaved=true) >> q;
  op rope(q, p, heads=4, theta=100) >> y;
  op relu(q) >> z;
  return y, z;
}
"""


@pytest.mark.parametrize("target", ["cpu_scalar", "cpu_avx2"])
def test_both_halves_in_one_loop(openinfer, tmp_path, target):
    """Maps that loop alike over the same input are one: rope reads pairs once."""
    (tmp_path / "rope.oi").write_text(ROPE)

    def maps(after):
        dump = openinfer("synth", tmp_path / "rope.oi", "--target", target, "-o", tmp_path / "out", "--dump-after", after).stdout
        return sum(line.count("map[20, 4, 8]") for line in dump.splitlines())

    assert (maps("recipes"), maps("schedule")) == (4, 2)
    run = openinfer("verify", tmp_path / "rope.oi", "--target", target, "--steps", 3, "--set", "x=random:3:-1:1", "--set", "p=random:4:0:99")
    assert "they agree" in run.stdout


ROUNDED = """
dynamic { x: f32[32, 64]; }
constant { w: i8[48, 64] @init(3); s: f32[48, 2] @init(0.01); }
volatile { y: f32[32, 48]; z: f32[32, 48]; }
block entry {
  assign h: f32[32, 64];
  op silu(x) >> h;
  op qlinear(h, w, s, act="bf16") >> y;
  op qlinear(x, w, s, act="bf16") >> z;
  return y, z;
}
"""


def test_a_map_rounds_what_products_want(openinfer, tmp_path):
    """silu's result goes to memory as bf16; an input, which no map makes, is rounded by a kernel of its own."""
    (tmp_path / "rounded.oi").write_text(ROUNDED)
    openinfer("synth", tmp_path / "rounded.oi", "--target", "cpu_amx", "-o", tmp_path / "out")
    text = (tmp_path / "out/rounded.c").read_text()
    assert set(re.findall(r"\bkernel_((?:round|silu)_\w+)(?=\()", text)) == {"round_x", "silu_qlinear_y"}
    if platform.machine() != "x86_64" or not pathlib.Path("/usr/include/simde/x86/avx512.h").exists():
        pytest.skip("results need an x86 and libsimde-dev")
    run = openinfer("verify", tmp_path / "rounded.oi", "--target", "cpu_amx", "--steps", 2, "--set", "x=random:3:-2:2",
                    "--cflags", "-O1", "--cc", REPO / "tests/emulate/cc")  # fmt: skip
    assert re.search(r"output +y +f32 +2 +0\s", run.stdout) and re.search(r"output +z +f32 +2 +0\s", run.stdout), run.stdout


RESHAPED = """
dynamic {{ x: f32[64, 96]; }}
constant {{ w: f32[96, 256] @init(0.5); i: i8[256, 96] @init(3); s: f32[256, 3] @init(0.5); }}
volatile {{ y: f32[32, 512]; z: f32[32, 512]; }}
block entry {{
  assign a: f32[64, 256];
  assign b: f32[32, 512];
  op {product} >> a;
  op reshape(a, shape=[32, 512]) >> b;
  op exp(b) >> y;
  op softmax(b) >> z;
  return y, z;
}}
"""


@pytest.mark.parametrize("product", ["matmul(x, w)", 'qlinear(x, i, s, act="q8")'])
def test_a_partition_is_no_dim_of_a_reshaped_result(openinfer, tmp_path, product):
    """Threads share the columns of the product, which lie along no dim of the tensor that it is stored in: readers wait."""
    path = tmp_path / "reshaped.oi"
    path.write_text(RESHAPED.format(product=product))
    openinfer("synth", path, "--target", "cpu_avx2", "--partition-all", "-o", tmp_path / "out")
    text = (tmp_path / "out/reshaped.c").read_text()
    calls = re.findall(r"^ +(?:failed = )?(kernel_[a-z]+|oi_barrier)\w*\(", text, re.M)
    product_at = len(calls) - 1 - calls[::-1].index(f"kernel_{product.split('(')[0]}")
    assert "oi_barrier" in calls[product_at:calls.index("kernel_exp")]
