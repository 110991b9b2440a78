"""Emitted programs give the same bits for any number of threads, and threads never race.

Every example is synthesized so that threads share even its smallest kernels (--partition-all), and so is a graph
whose loops, branches and failing cache accesses stand between shared work. The judge is the program itself
with one thread; that this is right, tests/test_synth.py judges.
"""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import BIN, REPO

EXAMPLES = REPO / "examples"
sys.path[:0] = [str(EXAMPLES), str(REPO / "python/src")]
from openinfer.oinf import TensorSpec, write_oinf  # noqa: E402
from test_synth import NAMES  # noqa: E402

np = pytest.importorskip("numpy", reason="inputs are made with numpy")
COUNTS = (1, 2, 3, 8)
RACES = "-O1 -g -fsanitize=thread -Wall -Wextra -Werror -pedantic"

MIXED = """
dynamic {
  x: f32[4, 96];
  deep: i64;
}
constant {
  W(l): f32[96, 96] @pattern("W.{l}");
}
volatile {
  y: f32[4, 96];
}
persistent {
  seen(t): f32[4, 96] @table @fixed(t=10);
  pos: i32 @init(0);
}
block entry {
  assign h: f32[4, 96];
  assign g: f32[4, 96];
  assign n: f32[4];
  assign big: bool;
  op relu(x) >> h;
  loop layers (l in 0..3) {
    op matmul(h, W[l]) >> g;
    op tanh(g) >> g;
    op add(h, g) >> h;
    op sum_axis(h, axes=[1], keepdims=false) >> n;
    op gt(deep, l) >> big;
    branch big more less;
    cache.write h >> seen[pos];
    cache.increment pos;
  }
  op softmax(h) >> y;
  return y;
}
block more {
  op mul(h, g) >> h;
  op softmax(h) >> h;
  return;
}
block less {
  op abs(h) >> g;
  op sub(h, g) >> h;
  return;
}
"""

LAYERS = """
dynamic { start: f32[1, 384]; }
constant { W(l): f32[384, 384] @pattern("W.{l}"); g: f32[384] @init(0.5); }
volatile { y: f32[1, 384]; }
block entry {
  assign x: f32[1, 384];
  assign h: f32[1, 384];
  assign m: f32[1, 384];
  op abs(start) >> x;
  loop layers (l in 0..3) {
    op rmsnorm(x, g) >> h;
    op matmul(h, W[l]) >> m;
    op add(x, m) >> x;
  }
  op neg(x) >> y;
  return y;
}
"""
# a norm, then two products of the same rows in 8 bits, then one of what they made
ROUNDED = """
dynamic {{ start: f32[1, {rows}, 384]; }}
constant {{
  wide: u4[1024, 384] @init(9); wide_scale: f16[1024, 12] @init(0.01); wide_offset: f16[1024, 12] @init(-0.07);
  back: i8[384, 1024] @init(-5); back_scale: f16[384, 32] @init(0.002); g: f32[384] @init(0.5);
}}
volatile {{ y: f32[1, {rows}, 384]; }}
block entry {{
  assign x: f32[1, {rows}, 384];
  assign h: f32[1, {rows}, 384];
  assign a: f32[1, {rows}, 1024];
  assign b: f32[1, {rows}, 1024];
  op abs(start) >> x;
  loop layers (l in 0..3) {{
    op rmsnorm(x, g) >> h;
    op qlinear(h, wide, wide_scale, wide_offset, act="q8") >> a;
    op qlinear(h, wide, wide_scale, wide_offset, act="q8") >> b;
    op qlinear(h, wide, wide_scale, act="q8") >> b;
    op mul(a, b) >> a;
    op qlinear(a, back, back_scale, act="q8") >> h;
    op add(x, h) >> x;
  }}
  op neg(x) >> y;
  return y;
}}
"""
# Keys up to now: how many, the first thread writes down for all.
GROWN = """
dynamic { x: f32[1, 576]; kn: f16[1, 192]; }
volatile { y: f32[1, 576]; z: f32[1, 576]; }
persistent {
  step: i32;
  K(l, t): f16[1, 192] @table @cap(l=2, t=1024);
  V(l, t): f16[1, 192] @table @cap(l=2, t=1024);
}
block entry {
  assign k: f16[?, 1, 192];
  assign v: f16[?, 1, 192];
  op relu(x) >> z;
  loop layers (l in 0..2) {
    cache.write kn >> K[l, step];
    cache.write kn >> V[l, step];
    cache.read K[l, 0..step+1] >> k;
    cache.read V[l, 0..step+1] >> v;
    op sdpa(z, k, v, heads=9, kv_heads=3) >> y;
    op add(z, y) >> z;
  }
  cache.increment step;
  return y, z;
}
"""

# products of bytes: all channels, one each, and zero points; rows, filters and columns are shared out
BYTES = """
dynamic { x: i8[1, 20, 13, 20]; }
constant { w: i8[40, 20, 3, 3] @init(3); d: i8[40, 1, 3, 3] @init(-5); m: i8[40, 70] @init(7);
           scale: f32 @init(0.05); out_scale: f32 @init(3); zero: i8 @init(2); factor: f32[1] @init(0.01); }
volatile { y: i8[1, 40, 13, 20]; z: i8[20, 70]; }
block entry {
  assign s: i32[1, 40, 13, 20];
  assign a: i8[1, 40, 13, 20];
  assign f: f32[1, 40, 13, 20];
  assign t: i8[1, 20, 13, 40];
  assign r0: i8[1, 20, 1, 40];
  assign r: i8[20, 40];
  op conv(x, w, pads=[1, 1, 1, 1], acc=[i32]) >> s;
  op cast(s, to=f32) >> f;
  op mul(f, factor) >> f;
  op round(f) >> f;
  op cast(f, to=i8) >> a;
  op qconv(a, scale, zero, d, scale, zero, out_scale, zero, group=40, pads=[1, 1, 1, 1]) >> y;
  op transpose(y, perm=[0, 3, 2, 1]) >> t;
  op slice(t, starts=[0], ends=[1], axes=[2]) >> r0;
  op reshape(r0, shape=[20, 40]) >> r;
  op qmatmul(r, scale, zero, m, scale, zero, out_scale, zero) >> z;
  return y, z;
}
"""
PRODUCT = """
dynamic { a_parts: f32[131, 300]; b: f32[300, 333]; }
volatile { y: f32[131, 333]; }
block entry { op matmul(a_parts, b) >> y; return y; }
"""
ROPED = """
dynamic { start: f32[1, 1, 384]; at: i32[1]; }
constant { W: u4[384, 384] @init(9); W_scale: f16[384, 12] @init(0.01); W_offset: f16[384, 12] @init(-0.07); }
volatile { y: f32[1, 1, 384]; }
block entry {
  assign x: f32[1, 1, 384];
  assign q: f32[1, 1, 384];
  op abs(start) >> x;
  loop layers (l in 0..3) {
    op qlinear(x, W, W_scale, W_offset, act="q8") >> q;
    op rope(q, at, heads=6, interleaved=true) >> q;
    op add(x, q) >> x;
  }
  op neg(x) >> y;
  return y;
}
"""
GRAPHS = {"product": (PRODUCT, 1), "bytes": (BYTES, 1), "grown": (GROWN, 4), "mixed": (MIXED, 96), "layers": (LAYERS, 384), "row": (ROUNDED.format(rows=1), 1),
          "rows": (ROUNDED.format(rows=24), 1), "roped": (ROPED, 1)}  # fmt: skip


@dataclasses.dataclass
class Weights:
    tensors: dict


def build(words, out, flags, *more, target="cpu_avx2"):
    run = subprocess.run([str(BIN), "synth", *words, "--target", target, "-o", str(out), "--name", "judged", *more],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    made = subprocess.run(["make", "-s", "-C", str(out), "CC=gcc"], capture_output=True, text=True,
                          env={**os.environ, "CFLAGS": flags})
    assert made.returncode == 0, made.stderr


def inputs(out, steps):
    """The bytes that main.c reads: floats as they come, integers small, so that some steps fail and some do not."""
    plan = json.loads((out / "plan.json").read_text())
    rng = np.random.default_rng(7)
    text = b""
    for _ in range(steps):
        text += b"\0"
        for t in plan["buffers"]:
            if t["space"] != "input":
                continue
            n = t["bytes"]
            kind = t["dtype"]
            if kind in ("f32", "f64"):
                text += rng.standard_normal(n // (4 if kind == "f32" else 8)).astype(np.float32 if kind == "f32" else np.float64).tobytes()
            else:
                size = {"i32": 4, "i64": 8}.get(kind, 1)
                text += b"".join(int(rng.integers(0, 3)).to_bytes(size, "little") for _ in range(n // size))
    return text


def results(out, text, threads):
    run = subprocess.run([str(out / "judged"), str(out / "weights.bin")], input=text, capture_output=True,
                         env={**os.environ, "THREADS": str(-threads), "TSAN_OPTIONS": "exitcode=66"})
    assert run.returncode == 0, run.stderr.decode()[:3000]
    return run.stdout


@pytest.fixture(scope="module")
def words(tmp_path_factory, example_package):
    folder = tmp_path_factory.mktemp("threads")

    def of(name):
        if name not in GRAPHS:
            return [str(EXAMPLES / f"{name}.oi"), "--model", str(example_package(name))]
        text, n = GRAPHS[name]
        path, model = folder / f"{name}.oi", folder / f"{name}.oinf"
        path.write_text(text)
        rng = np.random.default_rng(3)
        tensors = {f"W.{i}": TensorSpec((rng.standard_normal((n, n)) / 10).astype(np.float32)) for i in range(3)}
        write_oinf(Weights(tensors), str(model))
        return [str(path), "--model", str(model)]

    return of


@pytest.mark.parametrize("name", [*NAMES, "mixed", "grown", "bytes"])
def test_same_bits(words, tmp_path, name):
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed")
    flags = RACES if name in ("mixed", "grown", "bytes", "attn_cache", "kv_cache_decode", "branches", "moe_routing", "linear_attention") else "-O1"
    build(words(name), tmp_path / "out", flags, "--partition-all")
    text = inputs(tmp_path / "out", 4)
    first = results(tmp_path / "out", text, 1)
    assert first
    for threads in COUNTS[1:]:
        assert results(tmp_path / "out", text, threads) == first, f"{threads} threads"


@pytest.mark.parametrize("target", ["cpu_avx512", "cpu_amx", "cpu_amx_bf16"])
@pytest.mark.parametrize("name", ["bytes", "mixed", "product", "rows"])
def test_same_bits_of_wide_bodies(words, needs_target, tmp_path, name, target):
    needs_target(target)
    build(words(name), tmp_path / "out", RACES, "--partition-all", target=target)
    text = inputs(tmp_path / "out", 3)
    first = results(tmp_path / "out", text, 1)
    assert first
    for threads in COUNTS[1:]:
        assert results(tmp_path / "out", text, threads) == first, f"{threads} threads"


@pytest.mark.parametrize("name", ["silero", "ocr"])
def test_same_bits_of_models(tmp_path, name):
    folder = REPO / "build/models" / name
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there: make models")
    graph = next(folder.glob("*.oi"))
    build([str(graph), "--model", str(folder / "model.oinf")], tmp_path / "out", "-O2")
    assert "team_run" in (tmp_path / "out/judged.c").read_text()
    text = inputs(tmp_path / "out", 8)
    first = results(tmp_path / "out", text, 1)
    assert first
    for threads in COUNTS[1:]:
        assert results(tmp_path / "out", text, threads) == first, f"{threads} threads"


def test_what_each_thread_does_for_itself(words, tmp_path):
    """A norm before a product: nobody waits in between; only before x is read by all, and before it is written."""
    build(words("layers"), tmp_path / "out", RACES)
    source = (tmp_path / "out/judged.c").read_text()
    assert "float h[384]; /* private to each thread */" in source
    layer = source[source.index("/* loop layers */") :]
    assert layer[: layer.index("\n    }\n")].count("barrier(s, worker") == 2
    text = inputs(tmp_path / "out", 3)
    first = results(tmp_path / "out", text, 1)
    assert first
    for threads in COUNTS[1:]:
        assert results(tmp_path / "out", text, threads) == first, f"{threads} threads"


@pytest.mark.parametrize("name, barriers", [("row", 2), ("rows", 4)])
def test_rows_are_rounded_once(words, openinfer, tmp_path, name, barriers):
    """One row every thread rounds for itself, or the blocks that it made itself; many are shared out as the norm before
    them is, and their products, which take long, are taken in pieces."""
    build(words(name), tmp_path / "out", RACES)
    source = (tmp_path / "out/judged.c").read_text()
    layer = source[source.index("/* loop layers */") :]
    layer = layer[: layer.index("\n    }\n")]
    assert layer.count("    kernel_round_") == 2 and layer.count("    kernel_qlinear_") == 3
    assert layer.count("barrier(s, worker") == barriers
    assert layer.count("next_chunk(s, worker") == (2 if name == "rows" else 0)
    assert layer.index("rmsnorm_h(") < layer.index("round_h(") < layer.index("qlinear_a(")
    assert "barrier(" not in layer[layer.index("rmsnorm_h(") : layer.index("round_h(")]
    if name == "row":
        assert "barrier(" not in layer[layer.index("qlinear_a(") : layer.index("round_b(")]
        assert re.search(r"round_b\([^;]*, worker, workers\);", layer), layer
        first, after = re.findall(r"qlinear_\w+\([^;]*, worker, workers,\s+(\w+) \+ oi_partition_begin", layer)[:2]
        assert (first, after) == ("wide_packed_2", "back_packed"), layer
    text = inputs(tmp_path / "out", 3)
    first = results(tmp_path / "out", text, 1)
    assert first
    for threads in COUNTS[1:]:
        assert results(tmp_path / "out", text, threads) == first, f"{threads} threads"
    run = openinfer("verify", *words(name), "--target", "cpu_avx2", "--steps", 2)
    worst = [line.split()[4] for line in run.stdout.splitlines() if line.startswith("output")]
    assert worst == ["0"], run.stdout


def test_heads_are_shared_as_the_product_before_them(words, openinfer, tmp_path):
    """Rotating pairs in place: each thread does it for what it has just made, wherever a head begins."""
    build(words("roped"), tmp_path / "out", RACES)
    source = (tmp_path / "out/judged.c").read_text()
    assert "for (int64_t i = first / 32; i * 32 < last; i++) {" in source
    layer = source[source.index("/* loop layers */") :]
    layer = layer[: layer.index("\n    }\n")]
    assert "barrier(" not in layer[layer.index("qlinear_q(") : layer.index("rope_q")]
    text = inputs(tmp_path / "out", 3)
    first = results(tmp_path / "out", text, 1)
    assert first
    for threads in COUNTS[1:]:
        assert results(tmp_path / "out", text, threads) == first, f"{threads} threads"
    openinfer("verify", *words("roped"), "--target", "cpu_avx2", "--steps", 2)


def test_a_step_may_begin_with_pieces(words, tmp_path):
    """All have met when it begins: what takes long there is taken in pieces, too."""
    build(words("product"), tmp_path / "out", RACES)
    source = (tmp_path / "out/judged.c").read_text()
    assert source.count("next_chunk(s, worker") == 1 and "matmul_y(s->a_parts, s->b, s->y, chunk.n, chunk.of)" in source
    text = inputs(tmp_path / "out", 3)
    first = results(tmp_path / "out", text, 1)
    assert first
    for threads in COUNTS[1:]:
        assert results(tmp_path / "out", text, threads) == first, f"{threads} threads"


def test_weights_are_read_together(words, tmp_path):
    """Where the device asks for it; not where weights stay in the second caches."""
    device = {"extends": "cpu_avx2", "cpu": {"cache_l2_bytes": 1024}, "tuning": {"warm_up_slices": 3}}
    (tmp_path / "device.json").write_text(json.dumps(device))
    build(words("layers"), tmp_path / "out", RACES, target=str(tmp_path / "device.json"))
    source = (tmp_path / "out/judged.c").read_text()
    size = (tmp_path / "out/weights.bin").stat().st_size
    assert f"team_warm_up(s->oi_team, worker, s->oi_weights, {size}, 3);" in source
    text = inputs(tmp_path / "out", 5)
    first = results(tmp_path / "out", text, 1)
    assert first
    for threads in COUNTS[1:]:
        assert results(tmp_path / "out", text, threads) == first, f"{threads} threads"
    device["cpu"]["cache_l2_bytes"] = size
    (tmp_path / "device.json").write_text(json.dumps(device))
    build(words("layers"), tmp_path / "few", "-O1", target=str(tmp_path / "device.json"))
    assert "team_warm_up" not in (tmp_path / "few/judged.c").read_text()


def test_threads_are_used(words, tmp_path):
    """Else the test above would compare one thread with itself."""
    build(words("mixed"), tmp_path / "out", "-O1", "--partition-all")
    source = (tmp_path / "out/judged.c").read_text()
    assert "team_run" in source and "barrier(s, worker" in source and "next_chunk(s, worker" in source
