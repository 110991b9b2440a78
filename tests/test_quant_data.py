"""Quantisation data of the model's tensors in the place of scale operands: on every kind of instructions, and as
emitted C. What it means is said here in numpy."""

import os
import subprocess
import sys

import numpy as np
import pytest

from conftest import BIN, REPO

sys.path[:0] = [str(REPO / "examples"), str(REPO / "python/src")]
from openinfer.oinf import QuantParams, QuantScale, QuantZeroPoint, TensorSpec, UninitializedTensor  # noqa: E402
from openinfer.oinf.write import PackageWriter  # noqa: E402

GRAPH = """dynamic { x: f32[B, K]; }
constant {
  each: i8[N, K]; rows: u8[N, K]; columns: i8[N, K]; tensor: i4[N, K]; b: f32[N];
  layer(l): u8[N, K] @pattern("layer.{l}");
}
volatile { y0: f32[B, N]; y1: f32[B, N]; y2: f32[B, N]; y3: f32[B, N]; y4: f32[B, N]; y5: f32[B, N];
  real: f32[N, K]; small: u8[B, K]; back: f32[B, K]; }
block entry {
  op qlinear(x, rows) >> y0;
  op qlinear(x, rows, b, act="q8") >> y1;
  op qlinear(x, columns) >> y2;
  op qlinear(x, tensor, b, group_size=G, act="q8") >> y3;
  op dequantize(rows) >> real;
  op quantize(x) >> small;
  op dequantize(small) >> back;
  op qlinear(x, each, act="q8") >> y5;
  op identity(x) >> y4;
  loop layers (l in 0..L) { op qlinear(y4, layer[l]) >> y4; }
  return y0, y1, y2, y3, y4, y5, real, small, back;
}
"""
B, N, K, L = 3, 16, 16, 2  # square: layers follow each other


def symmetric(scale):
    return QuantParams("symmetric", scale)


def tensors(rng):
    """name: values, dtype, scale, zero point, each of the tensor's rank."""
    per_row, per_column = rng.uniform(0.01, 0.1, (N, 1)), rng.uniform(0.01, 0.1, (1, K))
    zero = rng.integers(100, 140, (N, 1))
    out = {
        "each": (rng.integers(-100, 100, (N, K)), "i8", per_row, None),
        "rows": (rng.integers(0, 256, (N, K)), "u8", per_row, zero),
        "columns": (rng.integers(-128, 128, (N, K)), "i8", per_column, None),
        "tensor": (rng.integers(-8, 8, (N, K)), "i4", np.full((1, 1), 0.05), None),
    }
    for l in range(L):
        out[f"layer.{l}"] = (rng.integers(0, 256, (N, K)), "u8", rng.uniform(0.01, 0.1, (N, 1)), rng.integers(100, 140, (N, 1)))
    return {k: (v, t, s.astype(np.float32), z) for k, (v, t, s, z) in out.items()}


def params(scale, zero):
    axis = int(np.argmax(scale.shape))
    if scale.size == 1:
        made, kind = QuantScale.per_tensor(float(scale.item())), QuantZeroPoint.per_tensor
        args = () if zero is None else (int(zero.item()),)
    else:
        made, kind = QuantScale.per_channel(axis, scale.ravel()), QuantZeroPoint.per_channel
        args = () if zero is None else (axis, [int(z) for z in zero.ravel()])
    return symmetric(made) if zero is None else QuantParams("asymmetric", made, kind(*args))


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("quant"), np.random.default_rng(3)
    given = tensors(rng)
    small = (np.full((1, 1), 0.03, np.float32), np.full((1, 1), 100))
    bias = rng.standard_normal(N).astype(np.float32)
    with PackageWriter(folder / "model.oinf") as p:
        for name, value in dict(B=B, N=N, K=K, L=L, G=K).items():
            p.add_sizevar(name, value)
        for name, (values, dtype, scale, zero) in given.items():
            p.add_tensor(name, TensorSpec(values.tolist(), dtype, quant=params(scale, zero)))
        p.add_tensor("b", bias)
        p.add_tensor("small", UninitializedTensor("u8", (B, K), quant=params(*small)))
    (folder / "graph.oi").write_text(GRAPH)
    return folder, given, small, bias


def expected(x, given, small, bias):
    def real(name):
        values, _, scale, zero = given[name]
        return ((values - (0 if zero is None else zero)) * scale.astype(np.float64)).astype(np.float64)

    def q8(x, name):
        values, _, scale, zero = given[name]
        d = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
        ratio = x / d
        q = np.trunc(ratio + np.copysign(0.5, ratio))
        return (q @ (values - (0 if zero is None else zero)).T) * d * scale.reshape(1, -1)

    y4 = x.astype(np.float64)
    for l in range(L):
        y4 = y4 @ real(f"layer.{l}").T
    s, z = (v.item() for v in small)
    packed = np.clip(np.rint(x / np.float32(s)) + z, 0, 255)
    return {
        "y0": x @ real("rows").T, "y1": q8(x, "rows") + bias, "y2": x @ real("columns").T, "y3": q8(x, "tensor") + bias,
        "y4": y4, "y5": q8(x, "each"), "real": real("rows"), "small": packed, "back": (packed - z) * s,
    }  # fmt: skip


@pytest.mark.skipif(bool(os.environ.get("OPENINFER_SANITIZED")), reason="Python cannot load a sanitized library")
@pytest.mark.parametrize("device", ["cpu:scalar", "cpu"])
def test_as_numpy(package, device):
    import openinfer

    folder, given, small, bias = package
    x = np.random.default_rng(4).standard_normal((B, K)).astype(np.float32)
    found = openinfer.parse(GRAPH, folder / "model.oinf").executor(device=device).step(x=x)
    for name, want in expected(x, given, small, bias).items():
        np.testing.assert_allclose(found[name].astype(np.float64), want, rtol=2e-5, atol=2e-5 * np.abs(want).max(), err_msg=name)


def test_emitted_c_agrees(package):
    folder = package[0]
    shown = subprocess.run([BIN, "verify", folder / "graph.oi", "--model", folder / "model.oinf", "--steps", "2", "--target", "cpu_scalar", "--cflags", "-O1", "--no-per-node"],
                           capture_output=True, text=True, timeout=300)  # fmt: skip
    assert shown.returncode == 0 and "they agree" in shown.stdout, shown.stdout + shown.stderr


def check(folder, text, *args):
    (folder / "bad.oi").write_text(text)
    return subprocess.run([BIN, "check", folder / "bad.oi", *args], capture_output=True, text=True)


def test_says_when_there_is_none(package):
    folder = package[0]
    text = "dynamic { q: u8[4]; x: f32[4, 16]; } constant { b: f32[N]; w: i8[N, K] @init(1); } volatile { y: f32[4]; z: f32[4, N]; } block entry { %s return; }"
    shown = check(folder, text % "op dequantize(q) >> y;", "--model", folder / "model.oinf")
    assert "E056" in shown.stderr and "no scale is given, and 'q' has no quantisation data in the model" in shown.stderr
    shown = check(folder, text % "op qlinear(x, w, b) >> z;", "--model", folder / "model.oinf")
    assert "E056" in shown.stderr
    # without a model nobody knows
    shown = check(folder, text.replace("K", "16") % "op dequantize(q) >> y; op qlinear(x, w, b) >> z;")
    assert shown.returncode == 0, shown.stderr
    shown = check(folder, text % "op dequantize(q) >> z;")
    assert "E051" in shown.stderr


def test_no_op_forgets_a_zero_point(package):
    folder = package[0]
    text = "dynamic { small: u8[1, 1, 4]; } constant { w: u8[1, 1, 2] @init(1); } volatile { y: i32[1, 1, 3]; } block entry { op conv(small, w, acc=i32) >> y; return; }"
    shown = check(folder, text, "--model", folder / "model.oinf")
    assert "E060" in shown.stderr and "'small' has a zero point in the model" in shown.stderr, shown.stderr


def test_data_can_be_named(package):
    """The data are tensors that a graph may refer to, and that listings leave out."""
    folder = package[0]
    text = 'dynamic { x: f32; } constant { s: f32[N, 1] @ref("rows#scale"); z: i32[N, 1] @ref("rows#zp"); } volatile { y: f32[N, 1]; } block entry { op mul(s, x) >> y; return y; }'
    assert check(folder, text, "--model", folder / "model.oinf").returncode == 0
    assert "#scale" not in subprocess.run([BIN, "inspect", folder / "model.oinf"], capture_output=True, text=True).stdout
