"""The two examples that spec/dsl.md section 10 calls parse-only: with the missing declarations supplied they
print back and fail with the codes it states; their corrected forms run and give what numpy gives."""

import re
import sys

import numpy as np
import pytest

from conftest import REPO

sys.path[:0] = [str(REPO / "python/src")]

from openinfer.oinf import PackageWriter, ScalarValue, TensorSpec  # noqa: E402

B, D, LAYERS = 2, 3, 2
W = np.random.default_rng(5).normal(size=(LAYERS, D, D)).astype(np.float32)
X = np.random.default_rng(6).normal(size=(B, D)).astype(np.float32)

OVERVIEW = """
dynamic { x: f32[B]; }
volatile { W(l): f32[D, D] @pattern("W.{l}"); }
constant { alpha: f32 @ref("alpha"); num_layers: u32; }
persistent {
  step: i32 @init(0);
  K(l, t): f16[H, Dh] @table;
}
block entry {
  assign h: f32[B, D];
  assign cond: bool[];
  op matmul(x, W[0]) >> h;
  op relu(h, negative_slope=0.01, clamp_max=6.0) >> h;
  barrier;
  loop layers (l in 0..num_layers) {
    cache.read K[l, step] >> h;
    op matmul(h, W[l]) >> h;
    cache.write h >> K[l, step];
  }
  op is_finite(h) >> cond;
  branch cond ok bad;
  cache.increment step;
  return;
}
block ok {
  op add(h, alpha) >> h;
  yield h;
}
block bad {
  op fill(h, value=0.0) >> h;
  return;
}
"""
OVERVIEW_FIXED = (
    OVERVIEW.replace("x: f32[B];", "x: f32[B, D];")
    .replace("K(l, t): f16[H, Dh]", "K(l, t): f32[B, D]")
    .replace("assign cond", "assign past: f32[B, D];\n  assign cond")
    .replace("cache.read K[l, step] >> h;", "cache.read K[l, step] >> past;\n    op add(h, past) >> h;")
    .replace("K[l, step];\n  }", "K[l, step+1];\n  }")
)

YIELD = """
volatile { W(l): f32[D, D] @pattern("W.{l}"); }
block entry {
  assign h: f32[B, D];
  assign x: i32[D];
  op matmul(x, W[0]) >> h;
  yield x;
  op relu(h, negative_slope=0.0, clamp_max=6.0) >> h;
  await x;
  return h;
}
block consumer_1 { await x; yield x; }
block consumer_2 { await x; yield x; }
block consumer_3 { await x; yield x; }
"""
YIELD_FIXED = (
    YIELD.replace("volatile {", "dynamic { given: f32[B, D]; }\nvolatile { seen: f32[B, D];")
    .replace("x: i32[D];", "x: f32[B, D];\n  transfer given >> x;")
    .replace("return h;", "op add(h, x) >> h;\n  return h, seen;")
    .replace("consumer_1 { await x;", "consumer_1 { await x; op add(x, x) >> x;")
    .replace("consumer_2 { await x;", "consumer_2 { await x; op relu(x) >> seen;")
)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    path = tmp_path_factory.mktemp("parse_only") / "m.oinf"
    with PackageWriter(path) as w:
        for name, value in {"B": B, "D": D, "H": 2, "Dh": 2}.items():
            w.add_sizevar(name, value)
        w.add_metadata("alpha", ScalarValue(0.5, "f32"))
        w.add_metadata("num_layers", ScalarValue(LAYERS, "u32"))
        for i, layer in enumerate(W):
            w.add_tensor(f"W.{i}", TensorSpec(layer.tolist(), dtype="f32"))
    return path


@pytest.mark.parametrize("text, wanted", [(OVERVIEW, {"E050", "E051"}), (YIELD, {"E050"})], ids=["overview", "yield"])
def test_they_print_back_and_fail(openinfer, package, tmp_path, text, wanted):
    source, printed = tmp_path / "g.oi", tmp_path / "again.oi"
    source.write_text(text)
    openinfer("graph", source, "--to", "text", "-o", printed)
    as_json = [openinfer("graph", p, "--to", "json", "--deterministic").stdout for p in (source, printed)]
    assert as_json[0] == as_json[1]
    for command in (("check", source), ("check", source, "--model", package), ("run", source, "--model", package)):
        stderr = openinfer(*command, code=1).stderr
        assert set(re.findall(r"error\[(E\d+)\]", stderr)) == wanted, stderr
        assert re.search(r"g\.oi:\d+:\d+: error", stderr)


def test_a_vector_where_rows_are_wanted(openinfer, package, tmp_path):
    """With equal dtypes the yield sample still lacks an axis."""
    source = tmp_path / "g.oi"
    source.write_text(YIELD.replace("i32[D]", "f32[D]"))
    assert set(re.findall(r"error\[(E\d+)\]", openinfer("check", source, "--model", package, code=1).stderr)) == {"E051"}


def run(openinfer, package, tmp_path, text, name, *more):
    source = tmp_path / "g.oi"
    source.write_text(text)
    np.save(tmp_path / "x.npy", X)
    openinfer("check", source, "--model", package, "--strict")
    openinfer("run", source, "--model", package, "--set", f"{name}={tmp_path / 'x.npy'}", "--out", tmp_path / "o", *more)
    return lambda var: np.load(tmp_path / f"o/{var}.npy")


def test_the_overview_corrected(openinfer, package, tmp_path):
    fetched = run(openinfer, package, tmp_path, OVERVIEW_FIXED, "x", "--steps", "3", "--fetch", "h,step")
    past = np.zeros((LAYERS, B, D), np.float32)
    for _ in range(3):
        h = X @ W[0]
        h = np.minimum(np.where(h >= 0, h, np.float32(0.01) * h), np.float32(6))
        for i in range(LAYERS):
            h = past[i] = (h + past[i]) @ W[i]
        h = h + np.float32(0.5)
    np.testing.assert_allclose(fetched("h.2"), h, rtol=1e-4, atol=1e-5)
    assert fetched("step.2") == 3


@pytest.mark.parametrize("more", [(), ("--threads", "4")], ids=["in order", "threads"])
def test_the_yield_sample_corrected(openinfer, package, tmp_path, more):
    fetched = run(openinfer, package, tmp_path, YIELD_FIXED, "given", "--fetch", "h,seen", *more)
    h = np.clip(X @ W[0], 0, 6)
    np.testing.assert_allclose(fetched("h"), h + 2 * X, rtol=1e-4, atol=1e-5)
    assert np.array_equal(fetched("seen"), np.maximum(X, 0))
