"""Circuits: VHDL that a simulator of hardware runs bit for bit as ours does, in as many clocks as the plan says."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import BIN, REPO

sys.path[:0] = [str(REPO / "examples"), str(REPO / "python/src")]
from circuits import EXAMPLES, TINY, package, vectors  # noqa: E402

IS_LONG = bool(os.environ.get("OPENINFER_LONG"))  # make hdl-long

pytestmark = pytest.mark.skipif(not shutil.which("ghdl"), reason="ghdl is not installed (Debian: ghdl)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hdl")


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(openinfer, folder, name):
    """Bit by bit over edges of the range and random values; every second step with stalls on both sides. The bench
    stops if a step takes other clocks than plan.json says."""
    out = folder / name
    steps = 1000 if IS_LONG else 12
    result = openinfer("verify", *vectors(folder, name, steps), "--target", "fpga_generic", "--keep", out, timeout=3600)
    assert f"{steps} steps compared: they agree" in result.stdout
    clocks = json.loads((out / "plan.json").read_text())["graphs"][0]["clocks"]
    assert clocks["latency"] == clocks["latency_most"]
    assert f"assert cycles = {clocks['latency']}" in (out / f"{name}_bench.vhd").read_text()


def test_no_warnings(openinfer, folder):
    """ghdl has nothing to say: neither when it reads the circuit, nor while it runs."""
    out = folder / "quiet"
    openinfer("synth", TINY / "wake_word_i8.oi", "--model", package(folder, "wake_word_i8"), "--target", "fpga_generic", "-o", out)
    built = subprocess.run(["make", "-s"], cwd=out, capture_output=True, text=True)
    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")
    one_step = bytes(1 + 40)
    ran = subprocess.run(["./wake_word_i8"], cwd=out, input=one_step, capture_output=True)
    assert ran.stderr == b"" and ran.returncode == 0
    assert ran.stdout[:1] == b"t" and b"heard" in ran.stdout and b"seen" in ran.stdout


def test_wrong_clocks_are_noticed(openinfer, folder):
    out = folder / "clocks"
    openinfer("synth", TINY / "wake_word_i8.oi", "--model", package(folder, "wake_word_i8"), "--target", "fpga_generic", "-o", out)
    bench = out / "wake_word_i8_bench.vhd"
    text = bench.read_text()
    bench.write_text(re.sub(r"assert cycles = (\d+)", lambda m: f"assert cycles = {int(m[1]) + 1}", text))
    subprocess.run(["make", "-s"], cwd=out, check=True)
    ran = subprocess.run(["./wake_word_i8"], cwd=out, input=bytes(41), capture_output=True)
    assert b"which the plan does not predict" in ran.stderr


def test_random_graphs(folder):
    """Maps, reductions, products and moves of integers with random shapes, loops, branches and state."""
    count = 200
    script = REPO / "tests/synthfuzz/circuits.py"
    words = ["--count", str(count), "--batch", "1", "--seed", "1", "--out", str(folder / "random"), "--bin", BIN]
    ran = subprocess.run([sys.executable, str(script), *words], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert f"{count} random graphs agree" in ran.stdout and ", 0 were not well typed" in ran.stdout


# -- what is refused --

REFUSED = {
    "a float": ("f32", "op neg(x) >> y;", r"x.oi:\d+:\d+: error\[E060\]: kernel 'neg_y' computes with f32"),
    "no loop nest": ("i32", "op sort(x) >> y;", r"x.oi:\d+:\d+: error\[E060\]"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_hardware_form_is_refused(openinfer, tmp_path, what):
    dtype, op, message = REFUSED[what]
    (tmp_path / "x.oi").write_text(
        f"dynamic {{\n  x: {dtype}[4];\n}}\n\nvolatile {{\n  y: {dtype}[4];\n}}\n\nblock entry {{\n  {op}\n  return y;\n}}\n"
    )
    out = tmp_path / "out"
    result = openinfer("synth", tmp_path / "x.oi", "--target", "fpga_generic", "-o", out, code=1)
    assert re.search(message, result.stderr), result.stderr
    assert not out.exists()
