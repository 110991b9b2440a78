"""`oinf quantize`: float graphs become graphs with products of 8-bit integers, and the table says what that costs."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import REPO

np = pytest.importorskip("numpy", reason="arrays need numpy")
pytestmark = pytest.mark.skipif(bool(os.environ.get("OPENINFER_SANITIZED")), reason="Python cannot load a sanitized library")
sys.path[:0] = [str(REPO / "python/src"), str(REPO / "examples/tiny")]

import tiny_oinf  # noqa: E402
from openinfer.oinf import PackageWriter, read_oinf  # noqa: E402
from openinfer.oinf.__main__ import main  # noqa: E402

NET = """
dynamic { x: f32[1, 2, 8, 8]; }
constant {
  w: f32[4, 2, 3, 3]; b: f32[4]; v: f32[4, 4, 1, 1]; head: f32[64, 3]; head_b: f32[3]; zeros: f32[4] @init(0.0);
}
block entry {
  assign h: f32[1, 4, 8, 8];
  assign r: f32[1, 4, 8, 8];
  assign p: f32[1, 4, 4, 4];
  assign flat: f32[1, 64];
  assign y: f32[1, 3];
  op conv2d(x, w, b, pads=[1, 1, 1, 1]) >> h;
  op relu(h) >> h;
  op conv2d(h, v, zeros) >> r;
  op clamp(r, min=-0.5, max=6.0) >> r;
  op add(r, h) >> r;
  op max_pool(r, kernel=[2, 2], strides=[2, 2]) >> p;
  op reshape(p, shape=[1, 64]) >> flat;
  op matmul(flat, head) >> y;
  op add(y, head_b) >> y;
  return y;
}
"""
SHAPES = {"w": (4, 2, 3, 3), "b": (4,), "v": (4, 4, 1, 1), "head": (64, 3), "head_b": (3,)}


def files(folder, text=NET, shapes=SHAPES, samples=8, x=(1, 2, 8, 8), scale=1.0):
    rng = np.random.default_rng(3)
    with PackageWriter(folder / "model.oinf") as out:
        for name, shape in shapes.items():
            out.add_tensor(name, (scale * rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) or 1)).astype(np.float32))
    (folder / "net.oi").write_text(text)
    np.savez(folder / "data.npz", x=rng.standard_normal((samples, *x)).astype(np.float32))
    return folder


def quantised(folder, *words, graph=None, model=None, data="data.npz", out="out"):
    graph = graph or folder / "net.oi"
    argv = ["quantize", graph, "--model", model or folder / "model.oinf", "--data", folder / data, "-o", folder / out, *words]
    return main([str(a) for a in argv])


def agrees(openinfer, folder, name="net_i8", target="cpu_avx2", steps=2):
    run = openinfer("verify", folder / "out" / f"{name}.oi", "--model", folder / "out/model.oinf", "--target", target, "--steps", steps,
                    "--set", "x=random:1:-1:1")  # fmt: skip
    assert "they agree" in run.stdout


def loss_of(text):
    return float(re.search(r"result y: loss ([\d.]+) %", text)[1])


@pytest.mark.parametrize("words", [(), ("--integer-only",), ("--percentile", "99.5")], ids=["plain", "integers", "percentile"])
def test_a_net(openinfer, tmp_path, capsys, words):
    """Convolutions, a residual, pooling on the way, a matrix: few percent, and the program is the graph's."""
    assert quantised(files(tmp_path), *words) == 0
    said = capsys.readouterr().out
    assert loss_of(said) < (6 if words else 3) and "3 products on integers, 0 in floats" in said
    text = (tmp_path / "out/net_i8.oi").read_text()
    ops = re.findall(r"op (\w+)\(", text)
    if "--integer-only" in words:
        assert "qconv" not in ops and text.count("acc=[i32]") == 3 and "min=-" in text
    else:
        assert ops.count("qconv") == 2 and ops.count("qmatmul") == 1 and "relu" not in ops and "clamp" not in ops
    assert (tmp_path / "out/quantize.txt").read_text() == said
    openinfer("check", "--strict", tmp_path / "out/net_i8.oi", "--model", tmp_path / "out/model.oinf")
    openinfer("fmt", "--check", tmp_path / "out/net_i8.oi")
    agrees(openinfer, tmp_path)


def test_weights_are_rounded_for_each_output(tmp_path):
    """To the nearest of 255 numbers of the output's own scale; the bias has both scales."""
    assert quantised(files(tmp_path), "-q") == 0
    with read_oinf(tmp_path / "model.oinf") as before, read_oinf(tmp_path / "out/model.oinf") as after:
        w, q, scale = before.tensors["w"].numpy(), after.tensors["w"].numpy(), after.tensors["w.scale"].numpy()
        assert q.dtype == np.int8 and scale.shape == (4,)
        np.testing.assert_allclose(scale, np.abs(w).max(axis=(1, 2, 3)) / 127, rtol=1e-6)
        assert np.abs(w - q * scale[:, None, None, None]).max() <= scale.max() * 0.5001
        x_scale = float(re.search(r"x_scale: f32 @init\(([\d.e-]+)\)", (tmp_path / "out/net_i8.oi").read_text())[1])
        b = after.tensors["b"].numpy()
        assert b.dtype == np.int32 and np.abs(b * (x_scale * scale.astype(np.float64)) - before.tensors["b"].numpy()).max() <= x_scale * scale.max()


def test_ranges_hold_what_was_seen(tmp_path, capsys):
    """min to max; with a percentile, one number far out does not decide."""
    folder = files(tmp_path, samples=20)
    x = dict(np.load(folder / "data.npz"))["x"]
    x[3, 0, 0, 0, 0] = 400.0
    np.savez(folder / "data.npz", x=x)
    assert quantised(folder) == 0
    wide = capsys.readouterr().out
    assert re.search(r"quantize +x +-\d\.\d+ +400 ", wide)
    assert quantised(folder, "--percentile", "99.9") == 0
    narrow = capsys.readouterr().out
    low, high = map(float, re.search(r"quantize +x +(\S+) +(\S+)", narrow).groups())
    assert -5 < low < -2 and 2 < high < 5


def test_a_node_stays_a_float(tmp_path, capsys):
    assert quantised(files(tmp_path), "--keep", "y", "--keep", "r") == 0
    assert "1 products on integers, 2 in floats" in capsys.readouterr().out
    ops = re.findall(r"op (\w+)\(", (tmp_path / "out/net_i8.oi").read_text())
    assert ops.count("qconv") == 1 and "qmatmul" not in ops and "matmul" in ops


TURNED = """
dynamic { x: f32[2, 8]; }
constant { w: f32[8, 8]; v: f32[8, 8]; b: f32[8]; u: f32[3, 8]; c: f32[3]; }
block entry {
  assign h: f32[2, 8];
  assign g: f32[2, 8];
  assign y: f32[2, 3];
  op matmul(x, w, transpose_b=true) >> h;
  op gemm(h, v, b, trans_b=true) >> g;
  op gemm(g, u, c, trans_b=true) >> y;
  return y;
}
"""


@pytest.mark.parametrize("words, n_floats", [((), 0), (("--keep", "gemm"), 2)], ids=["integers", "kept"])
def test_transposed_weights(openinfer, tmp_path, capsys, words, n_floats):
    """Square ones, too; those that stay floats are in the package."""
    shapes = {"w": (8, 8), "v": (8, 8), "b": (8,), "u": (3, 8), "c": (3,)}
    folder = files(tmp_path, TURNED, shapes, x=(2, 8))
    assert quantised(folder, *words) == 0
    said = capsys.readouterr().out
    assert f"{3 - n_floats} products on integers, {n_floats} in floats" in said and loss_of(said) < 3
    agrees(openinfer, folder)


LOOP = """
dynamic { x: f32[2, 16]; }
constant { W(l): f32[16, 16] @pattern("layer.{l}.w"); b(l): f32[16] @pattern("layer.{l}.b"); }
volatile { h: f32[2, 16]; }
block entry {
  transfer x >> h;
  loop layers (l in 0..5) {
    op matmul(h, W[l]) >> h;
    op add(h, b[l]) >> h;
    op tanh(h) >> h;
  }
  return h;
}
"""


@pytest.mark.parametrize("words", [(), ("--integer-only",)], ids=["plain", "integers"])
def test_layers_stay_a_loop(openinfer, tmp_path, capsys, words):
    shapes = {f"layer.{l}.{n}": s for l in range(5) for n, s in (("w", (16, 16)), ("b", (16,)))}
    folder = files(tmp_path, LOOP, shapes, x=(2, 16))
    assert quantised(folder, *words) == 0
    said = capsys.readouterr().out
    assert "layers.4/h" in said and float(re.search(r"result h: loss ([\d.]+)", said)[1]) < 5
    text = (folder / "out/net_i8.oi").read_text()
    assert text.count("loop ") == 1 and text.count("tanh") == 1 and '@pattern("layer.{l}.w")' in text
    agrees(openinfer, folder)


STATE = """
dynamic { x: f32[1, 8]; }
constant { w: f32[8, 8]; u: f32[8, 8]; }
persistent { s: f32[1, 8]; }
block entry {
  assign h: f32[1, 8];
  assign a: f32[1, 8];
  assign y: f32[1, 8];
  cache.read s >> h;
  op matmul(x, w) >> a;
  op matmul(h, u) >> y;
  op add(a, y) >> y;
  op tanh(y) >> y;
  cache.write y >> s;
  return y;
}
"""


def test_a_state_lasts(openinfer, tmp_path, capsys):
    """Samples are steps that follow each other; the state stays a float."""
    folder = files(tmp_path, STATE, {"w": (8, 8), "u": (8, 8)}, x=(1, 8), samples=30, scale=0.7)
    assert quantised(folder) == 0
    assert loss_of(capsys.readouterr().out) < 5
    text = (folder / "out/net_i8.oi").read_text()
    assert "persistent {\n  s: f32[1, 8];" in text and text.count("op qmatmul") == 2
    agrees(openinfer, folder, steps=4)


def test_a_board(openinfer, tmp_path, capsys):
    """A float model reaches a Cortex-M4, by its products of bytes."""
    if not shutil.which("qemu-system-arm") or not shutil.which("arm-none-eabi-gcc"):
        pytest.skip("no qemu-system-arm or no compiler for it here")
    tiny_oinf.write("ds_cnn", str(tmp_path / "model.oinf"))
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(0).uniform(-1, 1, (4, 1, 1, 49, 10)).astype(np.float32))
    assert quantised(tmp_path, "--integer-only", graph=REPO / "examples/tiny/ds_cnn.oi") == 0
    assert loss_of(capsys.readouterr().out) < 3
    agrees(openinfer, tmp_path, "ds_cnn_i8", "cortex_m4", 1)
    ran = openinfer("bench", tmp_path / "out/ds_cnn_i8.oi", "--model", tmp_path / "out/model.oinf", "--target", "cortex_m4", "--steps", 2)
    assert float(re.search(r"([\d.]+) MACs/instr", ran.stdout)[1]) > 0.4  # 0.54; plain loops take 0.1


@pytest.mark.parametrize("change, error", [
    (lambda f: np.savez(f / "data.npz", z=np.zeros(3)), "no array 'x', an input of the graph; there are z"),
    (lambda f: np.savez(f / "data.npz", x=np.zeros((4, 2, 8, 9), np.float32)), "samples of [1, 2, 8, 8] are wanted"),
    (lambda f: np.savez(f / "data.npz", x=np.full((1, 1, 2, 8, 8), np.nan, np.float32)), "a value that is not finite"),
    (lambda f: (f / "data.npz").write_bytes(b"PK\x03\x04 broken"), "no .npz file of arrays"),
    (lambda f: (f / "data.npz").unlink(), "data.npz"),
    (lambda f: (f / "net.oi").write_text("block entry {\n  op ad(x) >> y;\n  return;\n}"), "unknown op 'ad'"),
    (lambda f: (f / "net.oi").write_text("dynamic { x: f32[1, 2, 8, 8]; }\nblock entry { assign y: f32[1, 2, 8, 8]; op relu(x) >> y; return y; }"),
     "nothing to quantise"),
    (lambda f: (f / "net.oi").write_text(NET.replace("block entry {", "persistent { n: i64; }\nblock entry {\n  cache.increment n;")),
     "node 0 (CacheIncrement): it does not fit into a list of statements; what is quantised is a list of ops"),
])  # fmt: skip
def test_what_does_not_fit_is_said(tmp_path, capsys, change, error):
    folder = files(tmp_path)
    change(folder)
    assert quantised(folder) == 1
    said = capsys.readouterr().err
    assert error in said and "Traceback" not in said and not (folder / "out").exists()


def test_the_command_helps():
    run = subprocess.run([sys.executable, "-m", "openinfer.oinf", "quantize", "--help"], capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": str(REPO / "python/src")}, check=True)  # fmt: skip
    assert "--percentile" in run.stdout and "CALIBRATION.npz" in run.stdout
