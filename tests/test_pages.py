"""Weights and memory in large pages: read and advised before the first step, the same results."""

import json

import pytest

from conftest import REPO

GRAPH = """
dynamic { x: f32[1, 512]; }
volatile { y: f32[1, 512]; }
persistent { sum: f32[1, 1048576] @init(0); }
constant { w: f32[512, 512] @init(0.01); one: f32 @init(1); }
block entry {
  op matmul(x, w) >> y;
  assign old: f32[1, 1048576];
  assign new: f32[1, 1048576];
  cache.read sum >> old;
  op add(old, one) >> new;
  cache.write new >> sum;
  return y;
}
"""


@pytest.mark.parametrize("least, reads", [(0, False), (1 << 40, False), (1, True), (1 << 20, True)])
def test_large_pages_are_the_devices_wish(openinfer, tmp_path, least, reads):
    device = {"extends": "cpu_scalar", "preferences": {"large_pages_bytes": least}}
    (tmp_path / "device.json").write_text(json.dumps(device))
    (tmp_path / "pages.oi").write_text(GRAPH)
    openinfer("verify", tmp_path / "pages.oi", "--target", tmp_path / "device.json", "--steps", 2, "--set",
              "x=random:7:-3:3", "--keep", tmp_path / "kept", "--cc", REPO / "tests/noalloc/cc")  # fmt: skip
    text = (tmp_path / "kept" / "main.c").read_text()
    assert ("hal_load(" in text) == reads == ("hal_enlarge(&program, sizeof program)" in text)
    assert ("hal_map(" in text) != reads
