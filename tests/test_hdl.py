"""Circuits: VHDL that a simulator of hardware runs bit for bit as ours does, in as many clocks as the plan says."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys

import numpy as np
import pytest

from conftest import BIN, REPO

sys.path[:0] = [str(REPO / "examples"), str(REPO / "python/src")]
from circuits import EXAMPLES, TINY, package, small, vectors  # noqa: E402

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


# device, graph: the interval, the most clocks from input to output, the most multipliers
PIPELINES = {
    ("fpga_pipelined", "jet_mlp_i8"): (1, 20, 128),
    ("fpga_pipelined", "jet_mlp_i6"): (1, 20, 128),
    ("fpga_pipelined", "digits_t2"): (1, 8, 0),
    ("fpga_pipelined", "digits_t1"): (1, 8, 0),
    ("fpga_pipelined", "digits_conv_i8"): (1, 12, 100),
    ("fpga_pipelined", "fir_word_i8"): (2, 8, 16),
    ("fpga_pipelined", "lstm_cell_i8"): (10, 10, 64),
    ("every_4", "jet_mlp_i8"): (4, 40, 1200),
    ("few_multipliers", "digits_conv_i8"): (8, 60, 400),
    ("without_multipliers", "jet_mlp_i6"): (1, 20, 0),
}


@pytest.fixture(scope="module")
def devices(folder):
    """Device files that fold a pipeline, or take its multipliers away."""
    own = {"every_4": {"ii_target": 4}, "few_multipliers": {"ii_target": 8, "parallelism": 400}, "without_multipliers": {"dsps": 1}}
    for name, fpga in own.items():
        text = {"extends": "fpga_pipelined", "device": {"type": "fpga", "api": "vhdl"}, "fpga": fpga}
        (folder / f"{name}.json").write_text(json.dumps(text))
    return {name: str(folder / f"{name}.json") for name in own} | {"fpga_pipelined": "fpga_pipelined"}


@pytest.mark.parametrize("device, name", PIPELINES)
def test_pipelines(openinfer, folder, devices, device, name):
    """All kernels at once: beats that follow each other differ and come back right, in exactly as many clocks as
    plan.json says, one every interval; every second step with stalls on both sides."""
    interval, latency, multipliers = PIPELINES[device, name]
    out = folder / f"{name}_{device}"
    steps = 1000 if IS_LONG else 6
    result = openinfer("verify", *vectors(folder, name, steps), "--target", devices[device], "--keep", out, timeout=3600)
    assert f"{steps} steps compared: they agree" in result.stdout
    plan = json.loads((out / "plan.json").read_text())
    clocks = plan["graphs"][0]["clocks"]
    assert plan["circuit"]["pipelined"] and clocks["interval"] == interval
    assert clocks["latency"] == clocks["latency_most"] <= latency
    assert sum(part["multipliers"] for part in plan["circuit"]["parts"]) <= multipliers
    of_stream = r"\d+" if "persistent" in (TINY / f"{name}.oi").read_text() else interval  # a step waits for the state
    assert re.search(rf", {clocks['latency']}, {of_stream}, {interval}, random, clk", (out / f"{name}_bench.vhd").read_text())


@pytest.mark.parametrize("number", [2, 3])
def test_wrong_clocks_of_a_pipeline_are_noticed(openinfer, folder, number):
    """The bench is told another latency, then another interval."""
    out = folder / f"pipeline_clocks_{number}"
    openinfer("synth", TINY / "digits_t1.oi", "--model", package(folder, "digits_t1"), "--target", "fpga_pipelined", "-o", out)
    bench = out / "digits_t1_bench.vhd"
    text, n = re.subn(r"(oi_receive_beats)\((\d+), (\d+), (\d+), \d+,",
                      lambda m: f"{m[1]}({m[2]}, {int(m[3]) + (number == 2)}, {int(m[4]) + (number == 3)}, 2,", bench.read_text())  # fmt: skip
    assert n == 1
    bench.write_text(text)
    subprocess.run(["make", "-s"], cwd=out, check=True)
    ran = subprocess.run(["./digits_t1"], cwd=out, input=bytes(65), capture_output=True)
    assert b"which the plan does not predict" in ran.stderr


def test_why_a_graph_is_no_pipeline(openinfer, folder):
    out = folder / "serial"
    openinfer("synth", TINY / "wake_word_i8.oi", "--model", package(folder, "wake_word_i8"), "--target", "fpga_pipelined", "-o", out)
    circuit = json.loads((out / "plan.json").read_text())["circuit"]
    assert not circuit["pipelined"] and circuit["serial_why"] == "persistent memory grows, or has entries"
    assert circuit["serial_why"] in (out / "report.html").read_text()


@pytest.mark.parametrize("name, target", [(n, t) for n in EXAMPLES for t in ("fpga_generic", "fpga_pipelined")])
def test_it_is_written_in_a_moment(openinfer, folder, name, target):
    model = package(folder, name)
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    openinfer("synth", TINY / f"{name}.oi", "--model", model, "--target", target, "-o", folder / f"moment_{name}_{target}")
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime < 2


@pytest.mark.parametrize("name", ["fir_word_i8", "lstm_cell_i8"])
def test_no_warnings_of_a_pipeline(openinfer, folder, name):
    out = folder / f"quiet_{name}"
    openinfer("synth", TINY / f"{name}.oi", "--model", package(folder, name), "--target", "fpga_pipelined", "-o", out)
    built = subprocess.run(["make", "-s"], cwd=out, capture_output=True, text=True)
    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")
    ran = subprocess.run([f"./{name}"], cwd=out, input=bytes(1 + int(np.prod(EXAMPLES[name][0]))), capture_output=True)
    assert ran.stderr == b"" and ran.returncode == 0 and ran.stdout[:1] == b"t"


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


def test_words_of_both_languages_are_no_names(openinfer, tmp_path):
    for name in ("entity", "small"):
        (tmp_path / f"{name}.oi").write_text("dynamic {\n  x: i8[4];\n}\n\nblock entry {\n  op add(x, x) >> x;\n  return x;\n}\n")
        openinfer("synth", tmp_path / f"{name}.oi", "--target", "fpga_generic", "-o", tmp_path / name)
        assert (tmp_path / name / f"{name}_2.vhd").exists()


def test_wrong_clocks_are_noticed(openinfer, folder):
    out = folder / "clocks"
    openinfer("synth", TINY / "wake_word_i8.oi", "--model", package(folder, "wake_word_i8"), "--target", "fpga_generic", "-o", out)
    bench = out / "wake_word_i8_bench.vhd"
    text = bench.read_text()
    bench.write_text(re.sub(r"assert cycles = (\d+)", lambda m: f"assert cycles = {int(m[1]) + 1}", text))
    subprocess.run(["make", "-s"], cwd=out, check=True)
    ran = subprocess.run(["./wake_word_i8"], cwd=out, input=bytes(41), capture_output=True)
    assert b"which the plan does not predict" in ran.stderr


VERILOG = [("dense", target) for target in ("fpga_generic", "fpga_pipelined")]
if IS_LONG:
    VERILOG += [(name, "fpga_generic") for name in EXAMPLES] + [(name, "fpga_pipelined") for _, name in PIPELINES if _ == "fpga_pipelined"]


@pytest.mark.skipif(not shutil.which("verilator"), reason="verilator is not installed (Debian: verilator)")
@pytest.mark.parametrize("name, target", VERILOG)
def test_verilog(openinfer, folder, name, target):
    """What ghdl makes Verilog of, in another simulator: the same bits as ours gives, with stalls on both sides; without
    any, steps of a pipeline follow each other as plan.json says."""
    out, steps = folder / f"verilog_{name}_{target}", 100 if IS_LONG else 20
    words = small(folder, steps) if name == "dense" else vectors(folder, name, steps)
    openinfer("synth", *words[:3], "--target", target, "-o", out)
    made = subprocess.run(["make", "-s", f"{name}.v"], cwd=out, capture_output=True, text=True)
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr
    openinfer("run", *words, "--out", out / "wanted")
    given = [np.load(folder / f"{name}_in/{step}.npy") for step in range(steps)]
    wanted = [np.load(out / f"wanted/y.{step}.npy") for step in range(steps)]
    tensors = [given[0].nbytes, wanted[0].nbytes]
    beats = [1, 1] if target == "fpga_pipelined" else [given[0].size, wanted[0].size]
    sizes = dict(zip(("X_BYTES", "Y_BYTES", "X_BEATS", "Y_BEATS"), [*(t // b for t, b in zip(tensors, beats)), *beats]))
    states = re.findall(r"m_axis_(\w+)_tready : in", (out / f"{name}.vhd").read_text())
    takes = " ".join(f"top.m_axis_{s}_tready = 1;" for s in states if s != "y")
    (out / "states.h").write_text(f"static void take_states(CIRCUIT &top) {{ (void)top; {takes} }}\n")
    flags = [f"-I{out}"] + [f"-D{k}={v}" for k, v in sizes.items()] + [f"-DCIRCUIT=V{name}"] + ["-DPIPELINE"] * (target == "fpga_pipelined")
    subprocess.run(
        ["verilator", "--cc", "--exe", "--build", "-Wno-lint", "-Wno-fatal", "--top-module", name, "-CFLAGS", " ".join(["-O0", *flags]),
         f"{name}.v", str(REPO / "tests/hdl/harness.cpp")], cwd=out, check=True, capture_output=True)  # fmt: skip
    took = []
    for n, words in (steps, []), (steps, ["quick"]), (steps // 2, ["quick"]):
        ran = subprocess.run([out / f"obj_dir/V{name}", *words], input=b"".join(x.tobytes() for x in given[:n]), capture_output=True, check=True)
        assert ran.stdout == b"".join(y.tobytes() for y in wanted[:n])
        took += [int(ran.stderr)] if words else []
    plan = json.loads((out / "plan.json").read_text())
    clocks = plan["graphs"][0]["clocks"]
    if plan["circuit"]["pipelined"]:
        assert took[0] - took[1] == (steps - steps // 2) * clocks["interval"]


@pytest.mark.skipif(not shutil.which("nextpnr-ice40"), reason="nextpnr-ice40 is not installed (Debian: nextpnr-ice40)")
@pytest.mark.parametrize("name", ["dense", "fir_word_i8"] if IS_LONG else ["dense"])
def test_synthesis_for_a_part(openinfer, folder, name):
    """yosys counts it, nextpnr places it on an iCE40, and it meets the clock of the device file."""
    out = folder / f"placed_{name}"
    words = small(folder, 1) if name == "dense" else vectors(folder, name, 1)
    openinfer("synth", *words[:3], "--target", "ice40_hx8k", "--certify", "-o", out, timeout=3600)
    measured = json.loads((out / "plan.json").read_text())["certificate"]["measured"]
    assert measured["clock_hz"] >= 24e6 and 0 < measured["luts"] < 7680 and measured["ffs"] and measured["gates"]
    assert f"at {measured['clock_hz'] / 1e6:.1f} MHz" in (out / "report.html").read_text()


@pytest.mark.skipif(not shutil.which("nextpnr-ice40"), reason="nextpnr-ice40 is not installed (Debian: nextpnr-ice40)")
def test_a_circuit_that_is_too_slow_is_refused(openinfer, folder):
    device = folder / "fast.json"
    device.write_text(json.dumps({"extends": "ice40_hx8k", "device": {"type": "fpga", "api": "vhdl"}, "fpga": {"clock_hz": 900000000}}))
    result = openinfer("synth", *small(folder, 1)[:3], "--target", device, "--certify", "-o", folder / "fast", code=1)
    assert re.search(r"error\[E062\]: the circuit runs at [\d.]+ MHz, and fpga.clock_hz of .* is 900.0 MHz", result.stderr)
    assert not (folder / "fast").exists()


@pytest.mark.skipif(not IS_LONG, reason="minutes each: make hdl-long")
@pytest.mark.parametrize("name, target", VERILOG)
def test_yosys_takes_every_circuit(openinfer, folder, name, target):
    out = folder / f"yosys_{name}_{target}"
    words = small(folder, 1) if name == "dense" else vectors(folder, name, 1)
    openinfer("synth", *words[:3], "--target", target, "--certify", "-o", out, timeout=3600)
    assert json.loads((out / "plan.json").read_text())["certificate"]["measured"]["luts"]


def test_random_graphs(folder, sanitized):
    """Maps, reductions, products and moves of integers with random shapes, loops, branches and state."""
    count = 20 if sanitized else 200
    # the generator asks the library which calls there are: the plain one, Python cannot load a sanitized one
    env = {**os.environ, "OPENINFER_BUILD": str(REPO / "build")} if sanitized else None
    script = REPO / "tests/synthfuzz/circuits.py"
    words = ["--count", str(count), "--batch", "1", "--seed", "1", "--out", str(folder / "random"), "--bin", BIN]
    ran = subprocess.run([sys.executable, str(script), *words], capture_output=True, text=True, env=env)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    assert int(re.search(r"^(\d+) pipelined$", ran.stdout, re.M)[1]) > count / (10 if sanitized else 4)
    assert f"{count} random graphs agree" in ran.stdout and ", 0 were not well typed" in ran.stdout


# -- what is refused --

REFUSED = {
    "a float": ("f32", "op neg(x) >> y;", r"x.oi:\d+:\d+: error\[E060\]: kernel 'neg_y' computes with f32"),
    "no loop nest": ("i32", "op sort(x) >> y;", r"x.oi:\d+:\d+: error\[E060\]"),
}


BUDGETS = {"fpga_generic": ["parallelism", "dsps", "bram_bits"], "fpga_pipelined": ["parallelism", "luts", "ffs"]}


@pytest.mark.parametrize("target, what", [(target, what) for target in BUDGETS for what in BUDGETS[target]])
def test_what_exceeds_the_budget_is_refused(openinfer, folder, tmp_path, target, what):
    """With the node that takes most, and the share of every kernel."""
    device = tmp_path / "small.json"
    device.write_text(json.dumps({"extends": target, "device": {"type": "fpga", "api": "vhdl"}, "fpga": {what: 1}}))
    out = tmp_path / "out"
    words = [TINY / "digits_conv_i8.oi", "--model", package(folder, "digits_conv_i8"), "--target", device, "-o", out]
    result = openinfer("synth", *words, code=1)
    wanted = rf"digits_conv_i8.oi:\d+:\d+: error\[E062\]: the circuit takes \d+ .*fpga.{what}.*the device has 1: \w+ \d+, \w+ \d+"
    assert re.search(wanted, result.stderr) and not out.exists()


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


def test_memory_without_a_bound_is_refused(openinfer, tmp_path):
    (tmp_path / "x.oi").write_text(
        "dynamic {\n  x: i32[4];\n}\n\npersistent {\n  n: i32;\n  K(t): i32[4] @table;\n}\n\n"
        "block entry {\n  cache.write x >> K[n];\n  return x;\n}\n"
    )
    for target in ("fpga_generic", "fpga_pipelined"):
        result = openinfer("synth", tmp_path / "x.oi", "--target", target, "-o", tmp_path / "out", code=1)
        assert re.search(r"x.oi:\d+:\d+: error\[E062\]: .*'?K'?", result.stderr), result.stderr
        assert not (tmp_path / "out").exists()
