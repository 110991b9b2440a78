"""bench/sweep.py: draws the same shapes for a seed, compares results with the peer's, and names what it leaves out."""

import json
import os
import subprocess
import sys

import pytest
from conftest import BIN, REPO

sys.path.insert(0, str(REPO / "bench"))


def sweep(*words):
    done = subprocess.run([sys.executable, REPO / "bench/sweep.py", *words], capture_output=True, text=True,
                          env={**os.environ, "OPENINFER_BIN": BIN})  # fmt: skip
    return done, [json.loads(text) for text in done.stdout.splitlines() if text.startswith("{")]


@pytest.mark.skipif(sys.platform != "linux", reason="programs run in this process")
def test_shapes_and_records():
    pytest.importorskip("onnx", reason="shapes are ONNX models")
    pytest.importorskip("onnxruntime", reason="the peer")
    done, records = sweep("smoke", "2", "1", "cpu_avx2", "--family", "map,softmax", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [r["family"] for r in records] == ["map", "softmax"]
    assert all(r["ours_ns"] > 0 and r["peer_ns"] > 0 and r["ratio"] == r["peer_ns"] / r["ours_ns"] for r in records)
    assert "2 shapes, geometric mean" in done.stderr and "the ten worst:" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="programs run in this process")
@pytest.mark.parametrize(("queries", "keys"), [(5, 40), (40, 5)])
def test_causal_attention_of_other_numbers(monkeypatch, queries, keys):
    """ONNX aligns the first query with the first key: one call of sdpa, with fewer keys or with a mask, and the peer's
    results."""
    pytest.importorskip("onnx", reason="shapes are ONNX models")
    pytest.importorskip("onnxruntime", reason="the peer")
    monkeypatch.setenv("OPENINFER_BIN", str(BIN))
    import emitted
    import sweep as bench

    monkeypatch.setattr(emitted, "OPENINFER", BIN)
    sizes = {"heads": 4, "kv": 2, "queries": queries, "keys": keys, "depth": 16, "mask": "causal"}
    (record,) = bench.measure("attention", sizes, 3, [1], "cpu_avx2", 90)  # raises where results differ
    assert record["how"].startswith("sdpa") or queries < keys and "sdpa" in record["how"]


def test_a_slow_shape_is_named():
    pytest.importorskip("onnx", reason="shapes are ONNX models")
    pytest.importorskip("onnxruntime", reason="the peer")
    done, records = sweep("smoke", "1", "1", "no_such_target", "--family", "map", "--json")
    assert done.returncode == 1
    assert "no_such_target" in records[0]["left_out"]


def test_draws_are_reproducible():
    pytest.importorskip("onnx", reason="shapes are ONNX models")
    import shapes

    for family in shapes.FAMILIES:
        assert shapes.draw(family, 3, 1) == shapes.draw(family, 3, 1)
        assert any(shapes.draw(family, 3, n) != shapes.draw(family, 4, n) for n in range(3))
        onnx_model, given = shapes.model(family, shapes.draw(family, 3, 1), 1)
        assert len(onnx_model.graph.input) == len(given)
