"""From a file of another format to a result: oinf convert, then openinfer run and compare."""

import struct
import subprocess
import sys

import numpy as np
import pytest

from conftest import REPO

sys.path[:0] = [str(REPO / "python/src")]
sys.path.append(str(REPO / "python/tests"))  # behind ours, which share names with them

from openinfer.oinf.convert import convert  # noqa: E402
from openinfer.oinf.convert.blocks import FORMATS  # noqa: E402
from openinfer.oinf.convert.gguf import TYPES  # noqa: E402
from openinfer.oinf.convert.plan import Options  # noqa: E402
from weight_files import gguf_bytes, onnx_model, onnx_tensor, pb, safetensors_bytes  # noqa: E402

NUMBER = {name: number for number, (name, _, _) in TYPES.items()}
SCALES_AT = {"Q2_K": (80, 4), "Q3_K": (108, 2), "Q6_K": (208, 2)}


def random_blocks(f, n):
    """Blocks as a quantiser writes them: any integers, small positive scales."""
    rng = np.random.default_rng(f.nbytes)
    blocks = rng.integers(0, 256, (n, f.nbytes), np.uint8)
    at, width = SCALES_AT.get(f.name, (0, 4 if f.offset else 2))
    halves = rng.uniform(1e-3, 2e-3, (n, 2)).astype("<f2").view(np.uint8)
    blocks[:, at : at + width] = halves[:, :width]
    return blocks


@pytest.mark.parametrize("name", list(FORMATS))
def test_blocks_feed_qlinear(name, openinfer, tmp_path):
    """What the file's own dequantiser gives, times x, is what qlinear gives of the converted file."""
    gguf = pytest.importorskip("gguf")
    f = FORMATS[name]
    n, k = 5, 2 * f.elements
    blocks = random_blocks(f, 2 * n)
    real = gguf.dequantize(blocks, gguf.GGMLQuantizationType[name]).reshape(n, k).astype(np.float64)
    x = np.random.default_rng(2).standard_normal((3, k)).astype(np.float32)
    (tmp_path / "w.gguf").write_bytes(gguf_bytes([("blk.0.w", (n, k), NUMBER[name], blocks.tobytes())]))
    options = Options(rename=["blk.{l}.w -> W.{l}"], sizevar=["N=W.0:0", "K=W.0:1", "G=W.0.scale:1"])
    convert([str(tmp_path / "w.gguf")], str(tmp_path / "w.oinf"), options)
    offset = f'  Wo(l): {f.scale_dtype}[N, G] @pattern("W.{{l}}.offset");\n' if f.offset else ""
    (tmp_path / "g.oi").write_text(
        "dynamic { x: f32[3, K]; }\nconstant {\n"
        f'  W(l): {f.q_dtype}[N, K] @pattern("W.{{l}}");\n  Ws(l): {f.scale_dtype}[N, G] @pattern("W.{{l}}.scale");\n{offset}}}\n'
        f"block entry {{\n  assign y: f32[3, N];\n  op qlinear(x, W[0], Ws[0]{', Wo[0]' if f.offset else ''}, group_size={f.group}) >> y;\n"
        "  return y;\n}\n"
    )
    np.savez(tmp_path / "dump.npz", x=x, y=x.astype(np.float64) @ real.T)
    run = ["compare", tmp_path / "g.oi", "--model", tmp_path / "w.oinf", "-r", tmp_path / "dump.npz", "--rtol", "1e-5", "--atol", "2e-5"]
    assert "1 values agree" in openinfer(*run).stdout
    np.savez(tmp_path / "dump.npz", x=x, y=x.astype(np.float64) @ real[::-1].T)  # the comparison can fail
    assert "first departs: 'y'" in openinfer(*run, code=1).stdout


ADD = "dynamic { x: f32[3]; }\nconstant { w: f32[3]; }\nblock entry { assign y: f32[3]; op add(x, w) >> y; return y; }\n"
W = struct.pack("<3f", 1, 2, 3)


@pytest.mark.parametrize("name,data", [
    ("w.safetensors", safetensors_bytes({"model.w": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}}, W)),
    ("w.onnx", onnx_model(onnx_tensor("model.w", (3,), 1, pb(9, W)))),
    ("w.gguf", gguf_bytes([("model.w", (3,), 0, W)])),
])  # fmt: skip
def test_every_format_runs(name, data, openinfer, tmp_path):
    (tmp_path / name).write_bytes(data)
    (tmp_path / "g.oi").write_text(ADD)
    command = [sys.executable, "-m", "openinfer.oinf", "convert", str(tmp_path / name), "-o", str(tmp_path / "w.oinf"), "-q",
               "--rename", "model.{x} -> {x}", "--unmatched", "error"]  # fmt: skip
    subprocess.run(command, check=True, env={"PYTHONPATH": str(REPO / "python/src"), "PATH": ""})
    out = openinfer("run", tmp_path / "g.oi", "--model", tmp_path / "w.oinf", "--set", "x=1").stdout
    assert out == "y: f32[3] = { 2, 3, 4 }\n"
    assert openinfer("inspect", tmp_path / "w.oinf", "--strict").returncode == 0
