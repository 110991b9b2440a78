"""openinfer run and openinfer step: values in and out, traces, errors, the prompt."""

import dataclasses
import json
import re
import struct
import subprocess
import sys

import numpy as np
import pytest

from conftest import BIN, REPO

sys.path[:0] = [str(REPO / "python/src")]

from openinfer.oinf import PackageWriter, SizeVar, TensorSpec, write_oinf  # noqa: E402
from openinfer.oinf.random import random_bytes, random_values  # noqa: E402


@dataclasses.dataclass
class Model:
    B: SizeVar
    a: TensorSpec


@pytest.fixture(scope="module")
def minimal(tmp_path_factory, repo):
    """The minimal example with four elements."""
    path = tmp_path_factory.mktemp("run") / "minimal.oinf"
    write_oinf(Model(SizeVar(4), TensorSpec([1.0, 2.0, 3.0, 4.0], dtype="f32")), str(path))
    return repo / "examples/minimal.oi", "--model", path


@pytest.fixture
def graph(tmp_path):
    """graph(text) is the path of a file that holds it."""

    def write(text, name="g.oi"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def values(text, name):
    """The numbers printed for a variable."""
    found = re.search(rf"^{name}: \w+(?:\[[^]]*\])? = \{{? ?(.*?) ?\}}?$", text, re.M)
    return [float(x) for x in found[1].split(", ")]


# ---- values in --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value, wanted",
    [("1,2,3,4", [10, 20, 30, 40]), ("0.5", [7.5, 12.5, 17.5, 22.5]), ("zeros", [5, 10, 15, 20]),
     ("-1, -2, -3, -4", [0, 0, 0, 0]), ("inf", [np.inf] * 4)],
)  # fmt: skip
def test_set(openinfer, minimal, value, wanted):
    result = openinfer("run", *minimal, "--set", f"x={value}", "--fetch", "y")
    assert values(result.stdout, "y") == wanted
    assert result.stderr == ""


def test_random_is_the_shared_generator(openinfer, minimal):
    result = openinfer("run", *minimal, "--set", "x=random:7:-2:3", "--fetch", "x")
    wanted = random_values("f32", 7, -2, 3, 4)
    assert np.allclose(values(result.stdout, "x"), wanted, rtol=1e-5)


def test_unset_inputs_are_said(openinfer, minimal, graph):
    result = openinfer("run", *minimal, "--fetch", "x")
    assert "x is not set: it gets random:1:-1:1" in result.stderr
    assert np.allclose(values(result.stdout, "x"), random_values("f32", 1, -1, 1, 4), rtol=1e-5)
    g = graph("dynamic { n: i32; k: i8 @init(3); }\nblock entry { return n, k; }\n")
    result = openinfer("run", g)
    assert "n is not set: it gets zeros" in result.stderr and "k is not set" not in result.stderr
    assert values(result.stdout, "n") == [0] and values(result.stdout, "k") == [3]


def test_strict_wants_inputs(openinfer, minimal):
    result = openinfer("run", *minimal, "--strict", code=1)
    assert "error[E020]" in result.stderr and "minimal.oi:3" in result.stderr


def test_npy(openinfer, minimal, tmp_path):
    np.save(tmp_path / "x.npy", np.array([4, 3, 2, 1], np.float32))
    result = openinfer(
        "run", *minimal, "--set", f"x={tmp_path / 'x.npy'}", "--fetch", "y,t0", "--out", tmp_path / "o"
    )
    y = np.load(tmp_path / "o/y.npy")
    assert y.dtype == np.float32 and y.tolist() == [25, 25, 25, 25]
    assert np.load(tmp_path / "o/t0.npy").tolist() == [5, 5, 5, 5]
    assert values(result.stdout, "y") == [25] * 4


def test_a_file_per_step(openinfer, minimal, tmp_path):
    for step in range(3):
        np.save(tmp_path / f"{step}.npy", np.full(4, step, np.float32))
    openinfer("run", *minimal, "--steps", "3", "--set", f"x=@{tmp_path}/{{step}}.npy", "--fetch", "x",
              "--out", tmp_path / "o")  # fmt: skip
    for step in range(3):
        assert np.load(tmp_path / f"o/x.{step}.npy").tolist() == [step] * 4


NUMPY = {"f16": "f2", "f32": "f4", "f64": "f8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
         "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "bool": "?"}  # fmt: skip


@pytest.mark.parametrize("dtype", NUMPY)
def test_every_numpy_type_goes_in_and_out(openinfer, graph, tmp_path, dtype):
    g = graph(f"dynamic {{ x: {dtype}[2, 3]; }}\nblock entry {{ return x; }}\n")
    x = np.array([[0, 1, 0], [1, 1, 0]], NUMPY[dtype])
    np.save(tmp_path / "x.npy", x)
    openinfer("run", g, "--set", f"x={tmp_path / 'x.npy'}", "--out", tmp_path / "o")
    y = np.load(tmp_path / "o/x.npy")
    assert y.dtype == x.dtype and np.array_equal(x, y)


@pytest.mark.parametrize("dtype, n_bytes", [("bf16", 10), ("f8", 5), ("i4", 3), ("u2", 2), ("t1", 1)])
def test_other_types_travel_as_bytes(openinfer, graph, tmp_path, dtype, n_bytes):
    g = graph(f"dynamic {{ x: {dtype}[5]; }}\nblock entry {{ return x; }}\n")
    openinfer("run", g, "--set", "x=1", "--out", tmp_path)
    stored = np.load(tmp_path / "x.npy")
    assert stored.dtype == np.uint8 and stored.shape == (n_bytes,)
    assert json.loads((tmp_path / "x.json").read_text()) == {"dims": [5], "dtype": dtype}
    again = openinfer("run", g, "--set", f"x={tmp_path / 'x.npy'}")
    assert values(again.stdout, "x") == [1] * 5
    (tmp_path / "x.json").write_text('{"dims": [5], "dtype": "other"}')
    openinfer("run", g, "--set", f"x={tmp_path / 'x.npy'}", code=1)


@pytest.mark.parametrize(
    "value, code, words",
    [("1,2,3", 2, "3 numbers for 4 elements"), ("abc", 2, "'abc' is no value of f32"), ("1;2", 2, "is no value of f32"),
     ("random:1", 2, "random:SEED:LO:HI"), ("gone.npy", 3, "cannot open gone.npy")],
)  # fmt: skip
def test_bad_values(openinfer, minimal, value, code, words):
    assert words in openinfer("run", *minimal, "--set", f"x={value}", code=code).stderr


def test_a_file_by_columns(openinfer, graph, tmp_path):
    g = graph("dynamic { x: i16[2,3,4]; }\nblock entry { return x; }\n")
    x = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    np.save(tmp_path / "x.npy", np.asfortranarray(x))
    assert b"'fortran_order': True" in (tmp_path / "x.npy").read_bytes()
    openinfer("run", g, "--set", f"x={tmp_path / 'x.npy'}", "--out", tmp_path / "out")
    assert np.array_equal(np.load(tmp_path / "out/x.npy"), x)


def test_bad_files(openinfer, minimal, tmp_path):
    def refuse(words, code=1):
        assert words in openinfer("run", *minimal, "--set", f"x={tmp_path / 'x.npy'}", code=code).stderr

    np.save(tmp_path / "x.npy", np.zeros(4))
    refuse("error[E050]")
    np.save(tmp_path / "x.npy", np.zeros(5, np.float32))
    refuse("error[E051]")
    np.save(tmp_path / "x.npy", np.zeros(4, ">f4"))
    refuse("not supported")
    np.save(tmp_path / "x.npy", np.zeros(4, np.float32))
    good = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(good[:-3])
    refuse("shorter")
    (tmp_path / "x.npy").write_bytes(b"nothing of the kind")
    refuse("not a .npy file")
    (tmp_path / "x.npy").write_bytes(good.replace(b"(4,)", b"(99999999999999999999,)"))
    refuse("cannot be read")


def test_bad_names(openinfer, minimal):
    assert "error[E030]" in openinfer("run", *minimal, "--set", "xx=1", code=1).stderr
    assert "error[E021]" in openinfer("run", *minimal, "--set", "y=1", code=1).stderr
    assert "error[E030]" in openinfer("run", *minimal, "--set", "x=1", "--fetch", "z", code=1).stderr
    openinfer("run", *minimal, "--set", "x", code=2)
    openinfer("run", *minimal, "--device", "tpu", code=2)
    assert "E013" in openinfer("run", *minimal, "--size", "B=5", code=1).stderr


# ---- steps and state --------------------------------------------------------------------------

COUNTER = """persistent { n: i32; log(i): i32 @table @fixed(i=3); }
block entry {
  assign t: i32;
  cache.read n >> t;
  cache.write t >> log[n];
  cache.increment n;
  return t;
}
"""


def test_steps_keep_state(openinfer, graph):
    result = openinfer("run", graph(COUNTER), "--steps", "3", "--fetch", "n,log")
    assert result.stdout == (
        "step 0\nn: i32 = 1\nlog: i32[3] = { 0, 0, 0 }\n"
        "\nstep 1\nn: i32 = 2\nlog: i32[3] = { 0, 1, 0 }\n"
        "\nstep 2\nn: i32 = 3\nlog: i32[3] = { 0, 1, 2 }\n"
    )


def test_a_failing_step_says_where(openinfer, graph):
    result = openinfer("run", graph(COUNTER), "--steps", "4", code=1)
    assert re.search(r"g\.oi:5:\d+: error\[E047\]: .*'log'", result.stderr)
    assert "node 2 of block 'entry', step 3" in result.stderr
    assert result.stdout.count("step ") == 3


def test_graph_inside_a_package(openinfer, tmp_path):
    @dataclasses.dataclass
    class Embedded:
        B: SizeVar
        metadata: dict

    text = "dynamic { x: f32[B]; }\nblock entry { return x; }\n"
    write_oinf(Embedded(SizeVar(2), {"oi.graph": text}), str(tmp_path / "m.oinf"))
    result = openinfer("run", tmp_path / "m.oinf", "--set", "x=3")
    assert values(result.stdout, "x") == [3, 3]


# ---- traces -----------------------------------------------------------------------------------

# the trace of the project's description, uuids and times left out
MINIMAL_TRACE = [
    {"block_name": "entry", "node_index": 0, "kind": "Assign", "params": [], "output": ["t0"]},
    {"block_name": "entry", "node_index": 1, "kind": "OpExecute", "params": ["x", "a"], "output": ["t0"]},
    {"block_name": "entry", "node_index": 2, "kind": "OpExecute", "params": ["y", "t0"], "output": ["y"]},
    {"block_name": "entry", "node_index": 3, "kind": "Return", "params": [], "output": []},
]
KEYS = ["block_name", "node_index", "node_uuid", "kind", "params", "output", "micros"]


def traced(openinfer, tmp_path, *args, **kwargs):
    result = openinfer("run", *args, "--trace", tmp_path / "t.json", **kwargs)
    return json.loads((tmp_path / "t.json").read_text()), result


def test_trace_of_the_minimal_example(openinfer, minimal, tmp_path):
    events, _ = traced(openinfer, tmp_path, *minimal, "--set", "x=1")
    assert [list(e) for e in events] == [KEYS] * 4
    for e in events:
        assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", e.pop("node_uuid"))
        micros = e.pop("micros")
        assert len(micros) == 3 and micros[1] < 1000 and micros[2] < 1000
    assert events == MINIMAL_TRACE


def test_trace_layout_is_that_of_the_description(openinfer, minimal, tmp_path):
    traced(openinfer, tmp_path, *minimal, "--set", "x=1", "--deterministic")
    lines = (tmp_path / "t.json").read_text().splitlines()
    assert lines[:4] == ["[", "  {", '    "block_name": "entry",', '    "node_index": 0,']
    assert lines[5:10] == ['    "kind": "Assign",', '    "params": [],', '    "output": ["t0"],',
                           '    "micros": [0, 0, 0]', "  },"]  # fmt: skip


def test_deterministic_traces_repeat(openinfer, minimal, tmp_path):
    def text():
        traced(openinfer, tmp_path, *minimal, "--set", "x=1", "--deterministic", "--trace-ext")
        return (tmp_path / "t.json").read_bytes()

    assert text() == text()


def test_trace_ext_and_values(openinfer, graph, tmp_path):
    g = graph(
        "dynamic { x: f32[2]; }\npersistent { K(i): f32[2] @table; }\nblock entry {\n"
        "  assign t: f32[2];\n  loop a (i in 0..2) { transfer x >> t; cache.write t >> K[i + 1]; }\n"
        "  return t;\n}\n"
    )
    events, _ = traced(openinfer, tmp_path, g, "--set", "x=1,3", "--trace-ext", "--trace-values", "--steps", "2")
    kinds = ["Assign", "Loop", "Transfer", "CacheWrite", "Transfer", "CacheWrite", "Return"]
    assert [e["kind"] for e in events] == kinds * 2
    assert [e["step"] for e in events] == [0] * 7 + [1] * 7
    assert events[3]["iter"] == [["i", 0]] and events[5]["iter"] == [["i", 1]]
    assert events[3]["output"] == ["K[i+1]"] and events[3]["params"] == ["t"]
    stats = events[2]["stats"]["t"]
    assert (stats["min"], stats["max"], stats["mean"], stats["nan"]) == (1, 3, 2, 0)
    assert events[2]["thread"] == 0 and events[2]["start_ns"] > 0
    assert (events[2]["shape"], events[2]["dtype"]) == ([2], "f32")
    assert "shape" not in events[3] and list(events[2])[-4:] == ["start_ns", "shape", "dtype", "stats"]


def test_trace_ext_of_lengths_that_the_run_decides(openinfer, graph, tmp_path):
    g = graph(
        "persistent { K(i): f16[3] @table; n: i32; }\nblock entry {\n  assign row: f16[3]; assign all: f16[?, 3];\n"
        "  assign y: f16[3, ?];\n  cache.write row >> K[n]; cache.increment n;\n"
        "  cache.read K >> all; op transpose(all, perm=[1, 0]) >> y;\n  return;\n}\n"
    )
    events, _ = traced(openinfer, tmp_path, g, "--trace-ext", "--steps", "2")
    shapes = [(e["kind"], e["shape"], e["dtype"]) for e in events if "shape" in e]
    assert shapes == [("CacheRead", [1, 3], "f16"), ("OpExecute", [3, 1], "f16"), ("CacheRead", [2, 3], "f16"), ("OpExecute", [3, 2], "f16")]


def test_fetch_of_table_entries(openinfer, tmp_path):
    with PackageWriter(tmp_path / "m.oinf") as w:
        for i in range(2):
            for k in range(2):
                w.add_tensor(f"q.{k}.{i}", TensorSpec([10.0 * i + k], dtype="f32"))
    (tmp_path / "g.oi").write_text(
        'volatile { q(l, h): f32[1] @pattern("q.{h}.{l}"); s: f32[1]; }\n'
        "block entry { op add(q[1, 0], q[0, 1]) >> s; transfer s >> q[1, 1]; return s; }\n"
    )
    args = ("run", tmp_path / "g.oi", "--model", tmp_path / "m.oinf")
    result = openinfer(*args, "--fetch", "q[1,0],s,q[1, 1],q[0,0]", "--out", tmp_path / "o")
    assert [float(x) for x in re.findall(r"= \{?\s*([-\d.]+)", result.stdout)] == [10, 11, 11, 0]
    assert np.load(tmp_path / "o/q[1,0].npy").tolist() == [10]
    for wrong, code in (("q", "E041"), ("q[1]", "E041"), ("q[1,5]", "E044"), ("q[0", "E041"), ("z[0]", "E030")):
        assert f"error[{code}]" in openinfer(*args, "--fetch", wrong, code=1).stderr


def test_trace_of_a_failed_run(openinfer, graph, tmp_path):
    events, _ = traced(openinfer, tmp_path, graph(COUNTER), "--steps", "4", code=1)
    assert [e["kind"] for e in events[-3:]] == ["Return", "Assign", "CacheRead"]


def test_chrome_trace(openinfer, minimal, tmp_path):
    trace, _ = traced(openinfer, tmp_path, *minimal, "--set", "x=1", "--trace-format", "chrome")
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert [e["name"] for e in events] == ["assign", "add", "mul", "return"]
    assert all(e["dur"] >= 0 and e["ts"] > 0 for e in events)


def test_trace_by_environment(openinfer, minimal, tmp_path):
    events, _ = traced(openinfer, tmp_path, *minimal, "--set", "x=1", env={"OPENINFER_TRACE": "full"})
    assert "y" in events[2]["stats"]
    events, _ = traced(openinfer, tmp_path, *minimal, "--set", "x=1", env={"OPENINFER_TRACE": "off"})
    assert events == []


def test_events_by_environment(openinfer, minimal):
    """OPENINFER_TRACE alone prints them; --trace FILE takes them instead."""
    lines = openinfer("run", *minimal, "--set", "x=1", env={"OPENINFER_TRACE": "full"}).stderr.splitlines()
    assert [line.split(" -- ")[1].split("(")[0] for line in lines] == ["Assign >> t0", "OpExecute add", "OpExecute mul", "Return"]
    assert openinfer("run", *minimal, "--set", "x=1", env={"OPENINFER_TRACE": "off"}).stderr == ""


def test_timer_logs(openinfer, minimal):
    result = openinfer("run", *minimal, "--set", "x=1", "--timer", "--deterministic")
    lines = result.stderr.splitlines()
    assert re.fullmatch(
        r"1 [0-9a-f-]{36} \[entry\] -- OpExecute add\(x, a\) >> t0 -- \(\d+ms \d+us \d+ns\)", lines[1]
    )


# ---- memory limit -----------------------------------------------------------------------------


def test_weights_ten_times_the_limit(openinfer, graph, tmp_path):
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((20, 16384), np.float32)

    @dataclasses.dataclass
    class Many:
        D: SizeVar
        tensors: dict

    tensors = {f"W.{i}": TensorSpec(weights[i], dtype="f32") for i in range(20)}
    write_oinf(Many(SizeVar(16384), tensors), str(tmp_path / "m.oinf"))
    g = graph(
        'volatile { W(l): f32[D] @pattern("W.{l}"); }\nblock entry {\n  assign t: f32[D];\n'
        "  loop a (l in 0..20) { op add(t, W[l]) >> t; }\n  return t;\n}\n"
    )

    def run(*more):
        result = openinfer("run", g, "--model", tmp_path / "m.oinf", "--steps", "2", "--out", tmp_path, *more)
        return np.load(tmp_path / "t.1.npy"), result.stderr

    free, _ = run()
    tight, said = run("--memory-limit", "128K")
    assert np.array_equal(free, tight)
    peak = int(re.search(r"at most (\d+) bytes resident", said)[1])
    assert 0 < peak <= 131072


def sparse_package(path, n_tensors, n_elements):
    """A package of f32 tensors W.0 …, all zero but for one element each, that takes no disk space."""

    def text(x):
        raw = struct.pack("<I", len(x)) + x.encode()
        return raw + bytes(-len(raw) % 8)

    n_bytes = 4 * n_elements
    names = sorted(f"W.{i}" for i in range(n_tensors))
    sizes = text("D") + struct.pack("<Q", n_elements)
    start = 72 + len(sizes)
    table = sum(len(text(n)) + 12 + 8 + 32 for n in names)
    data = start + table + -(start + table) % 8
    entries = b"".join(
        text(n) + struct.pack("<IIIQQQQQ", 10, 1, 1, n_elements, n_bytes, data + i * n_bytes, 0, 0)
        for i, n in enumerate(names)
    )
    size = data + n_tensors * n_bytes
    head = b"OINF\0" + struct.pack("<IIIIIIQQQQQ", 2, 0, 1, 0, n_tensors, 0, 72, start, start, data, size)
    with open(path, "wb") as f:
        f.write(head.ljust(72, b"\0") + sizes + entries)
        f.truncate(size)
        for i, n in enumerate(names):
            f.seek(data + i * n_bytes + 4 * i)
            f.write(struct.pack("<f", float(n[2:]) + 1))
    return names


def test_four_gigabytes_in_little_memory(graph, tmp_path, sanitized):
    """Weights far beyond the limit run, in memory that stays near it."""
    n, each = (64, 1 << 24) if not sanitized else (16, 1 << 20)
    limit, most = (256, 400) if not sanitized else (8, 4096)
    names = sparse_package(tmp_path / "big.oinf", n, each)
    g = graph(
        'constant { W(l): f32[D] @pattern("W.{l}"); }\nvolatile { t: f32[D]; }\n'
        f"block entry {{ loop a (l in 0..{n}) {{ op add(t, W[l]) >> t; }} return; }}\n"
    )
    command = [BIN, "run", g, "--model", tmp_path / "big.oinf", "--memory-limit", f"{limit}M", "--fetch", "t"]
    # a small process in between: what it measures is this child alone, not what pytest was when it forked
    watch = ("import resource, subprocess, sys; p = subprocess.run(sys.argv[2:]);"
             "open(sys.argv[1], 'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)); sys.exit(p.returncode)")
    p = subprocess.run([sys.executable, "-c", watch, tmp_path / "peak", *command], capture_output=True, text=True)
    out, said, peak = p.stdout, p.stderr, int((tmp_path / "peak").read_text())
    assert p.returncode == 0, said
    assert int(re.search(r"at most (\d+) bytes resident", said)[1]) <= limit << 20
    assert values(out.replace("..., ", ""), "t")[:5] == [float(x[2:]) + 1 for x in names[:5]]
    assert peak < most * 1024, f"{peak} KiB"


# ---- step -------------------------------------------------------------------------------------


def at_prompt(openinfer, *args, say, code=0):
    return openinfer("step", *args, stdin="\n".join(say) + "\n", code=code).stdout


def test_step_by_step(openinfer, minimal):
    text = at_prompt(openinfer, *minimal, "--set", "x=1",
                     say=["next 2", "print t0", "print y", "run", "print y", "where", "quit"])  # fmt: skip
    assert "-> 0 [entry] 12:3 Assign >> t0" in text
    assert "   1 [entry] 13:3 OpExecute add(x, a) >> t0" in text
    assert "t0: f32[4] = { 2, 3, 4, 5 }" in text
    assert "y: f32[4] = { 5, 5, 5, 5 }" in text
    assert "step 0 is done" in text
    assert "y: f32[4] = { 10, 15, 20, 25 }" in text
    assert text.rstrip().endswith("-> 0 [entry] 12:3 Assign >> t0")


@pytest.mark.parametrize("where", ["mul", "14", "OpExecute"])
def test_breakpoints(openinfer, minimal, where):
    say = [f"break {where}", "run", "print t0", "break", "quit"]
    text = at_prompt(openinfer, *minimal, "--set", "x=1", say=say)
    stop = 1 if where == "OpExecute" else 2
    assert f"stopped\n-> {stop} [entry]" in text
    assert f"break {where}" in text


def test_watch_state_and_failure(openinfer, graph):
    say = ["watch n", "run", "run", "run", "run", "print n", "trace", "nonsense", "nex", "help", "quit"]
    text = at_prompt(openinfer, graph(COUNTER), say=say)
    assert [int(x) for x in re.findall(r"^n: i32 = (\d)$", text, re.M)] == [1, 2, 3, 3]
    assert "step 3 failed; persistent memory is as it was before" in text
    assert '"kind": "CacheIncrement"' in text
    assert "unknown command 'nonsense'" in text


def test_step_prints_loop_indices(openinfer, graph):
    g = graph("persistent { n: i32; }\nblock entry { loop a (i in 3..5) { cache.increment n; } return; }\n")
    text = at_prompt(openinfer, g, say=["next 2", "print i", "print j", "next", "print i", "quit"])
    assert re.findall(r"i: i64 = (\d)", text) == ["3", "4"]


def test_random_bytes_of_every_type_match(openinfer, graph, tmp_path):
    """The command and the Python tool draw the same values."""
    for dtype, lo, hi in [("f16", -1, 1), ("bf16", -3, 3), ("f64", 0, 1), ("i8", -128, 127), ("u4", 0, 15),
                          ("i64", -(2**60), 2**60), ("bool", 0, 1), ("t1", -1, 1)]:  # fmt: skip
        g = graph(f"dynamic {{ x: {dtype}[33]; }}\nblock entry {{ return x; }}\n")
        openinfer("run", g, "--set", f"x=random:9:{lo}:{hi}", "--out", tmp_path)
        assert np.load(tmp_path / "x.npy").tobytes() == bytes(random_bytes(dtype, 9, lo, hi, 33)), dtype


def test_header_is_numpy_version_1(openinfer, minimal, tmp_path):
    openinfer("run", *minimal, "--set", "x=1", "--fetch", "y", "--out", tmp_path)
    raw = (tmp_path / "y.npy").read_bytes()
    length = struct.unpack("<H", raw[8:10])[0]
    assert raw[:8] == b"\x93NUMPY\x01\x00" and (10 + length) % 64 == 0
