"""Attributes and hints for the synthesizer act, or are refused (E019, E024, E025)."""

import json
import re
import sys

import numpy as np
import pytest

from conftest import REPO

sys.path.insert(0, str(REPO / "python/src"))
from openinfer.oinf import PackageWriter, TensorSpec  # noqa: E402

DENSE = "op matmul(x, W, transpose_b=true) >> y;", "x: f32[8, 128]", "W: f32[64, 128]", "y: f32[8, 64]"
CONV = "op conv(x, W) >> y;", "x: f32[1, 32, 9, 9]", "W: f32[64, 32, 3, 3]", "y: f32[1, 64, 7, 7]"


def plan(openinfer, folder, *args):
    openinfer("synth", *args, "-o", folder, "--name", "p")
    return json.loads((folder / "plan.json").read_text())


@pytest.mark.parametrize("node, x, w, y", [DENSE, CONV], ids=["dense", "conv"])
def test_row_major_weights_are_not_packed(openinfer, tmp_path, node, x, w, y):
    """The program reads the tensor as the package holds it; results stay within what verify allows."""
    dims = [int(n) for n in re.findall(r"\d+", w.split("[")[1])]
    with PackageWriter(tmp_path / "m.oinf") as p:
        p.add_tensor("W", TensorSpec(np.random.default_rng(1).standard_normal(dims).astype(np.float32), dtype="f32"))
    stored = {}
    for layout in "", '@layout("row_major")':
        g = tmp_path / f"g{len(layout)}.oi"
        g.write_text(f"dynamic {{ {x}; }}\nconstant {{ {w} {layout}; }}\nvolatile {{ {y}; }}\nblock entry {{ {node} return y; }}\n")
        args = (g, "--model", tmp_path / "m.oinf", "--target", "cpu_avx2")
        buffers = plan(openinfer, tmp_path / f"out{len(layout)}", *args)["buffers"]
        stored[layout] = [b["name"] for b in buffers if "packed" in b["name"]]
        if layout:
            openinfer("verify", *args, "--steps", 2)
    assert stored[""] and not stored['@layout("row_major")']
    bare, kept = (tmp_path / f"out{n}/p.c" for n in (0, len('@layout("row_major")')))
    assert bare.read_text() != kept.read_text()


def test_a_prefix_table_keeps_its_order_too(openinfer, tmp_path):
    with PackageWriter(tmp_path / "m.oinf") as p:
        for i in range(2):
            p.add_tensor(f"W.{i}", TensorSpec(np.random.default_rng(i).standard_normal((64, 64)).astype(np.float32), dtype="f32"))
    g = tmp_path / "g.oi"
    g.write_text('dynamic { x: f32[8, 64]; }\nconstant { W(l): f32[64, 64] @pattern("W.{l}") @layout("row_major"); }\n'
                 "block entry { loop k (l in 0..2) { op matmul(x, W[l], transpose_b=true) >> x; } return x; }\n")  # fmt: skip
    args = (g, "--model", tmp_path / "m.oinf", "--target", "cpu_avx2")
    assert not [b["name"] for b in plan(openinfer, tmp_path / "out", *args)["buffers"] if "packed" in b["name"]]
    openinfer("verify", *args, "--steps", 1)


def test_a_node_that_is_not_fused(openinfer, tmp_path):
    kernels = {}
    for hint in "", "@ { fuse: true }", "@ { fuse: false }":
        g = tmp_path / "g.oi"
        g.write_text("dynamic { x: f32[64]; }\nvolatile { y: f32[64]; z: f32[64]; }\n"
                     f"block entry {{ op exp(x) >> y; op neg(y) >> z {hint}; op sqrt(z) >> y; return y; }}\n")  # fmt: skip
        out = tmp_path / f"out{len(hint)}"
        kernels[hint] = [sorted(k["nodes"]) for k in plan(openinfer, out, g, "--target", "cpu_avx2")["kernels"]]
        openinfer("verify", g, "--target", "cpu_avx2", "--steps", 1)
    assert kernels[""] == kernels["@ { fuse: true }"] == [[0, 1, 2]]
    assert kernels["@ { fuse: false }"] == [[0], [1], [2]]


def test_unknown_keys_of_json(openinfer, tmp_path):
    """They are ignored with a warning; strict, an error at the same place."""
    g = tmp_path / "g.oi"
    g.write_text("block entry { return; }\n")
    text = openinfer("graph", g, "--to", "json", "--deterministic").stdout
    (tmp_path / "k.json").write_text(text.replace("{", '{"speed": 3,', 1))
    assert "k.json:/speed: warning[W112]: unknown key 'speed' is ignored" in openinfer("check", tmp_path / "k.json").stderr
    assert "k.json:/speed: error[E019]" in openinfer("check", "--strict", tmp_path / "k.json", code=1).stderr
