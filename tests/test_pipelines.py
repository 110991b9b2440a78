"""Kernels that take turns, a few rows each: the same bits in less memory."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import REPO

FUZZ = REPO / "tests/synthfuzz"
sys.path[:0] = [str(FUZZ), str(REPO / "python/src")]
import chains  # noqa: E402
import test_threads  # noqa: E402
from fuzz import write_model  # noqa: E402

NO_CACHE = FUZZ / "no_cache.json"

# Two blocks of a mobile net, and what a ResNet has: a sum with what came before.
MOBILE = """
dynamic { x: i8[1, 4, 48, 48]; }
constant {
  d0: i8[4, 1, 3, 3]; p0: i8[16, 4, 1, 1]; d1: i8[16, 1, 3, 3]; p1: i8[16, 16, 1, 1];
}
volatile { y: i8[1, 16, 24, 24]; }
block entry {
  assign a0: i32[1, 4, 48, 48]; assign a1: i32[1, 4, 48, 48]; assign a: i8[1, 4, 48, 48];
  assign b0: i32[1, 16, 48, 48]; assign b1: i32[1, 16, 48, 48]; assign b: i8[1, 16, 48, 48];
  assign c0: i32[1, 16, 24, 24]; assign c1: i32[1, 16, 24, 24]; assign c: i8[1, 16, 24, 24];
  assign e0: i32[1, 16, 24, 24]; assign e1: i32[1, 16, 24, 24];
  op conv(x, d0, pads=[1, 1, 1, 1], group=4, acc=[i32]) >> a0; op shr(a0, bits=7) >> a1; op cast(a1, to=i8) >> a;
  op conv(a, p0, acc=[i32]) >> b0; op shr(b0, bits=7) >> b1; op cast(b1, to=i8) >> b;
  op conv(b, d1, pads=[1, 1, 1, 1], strides=[2, 2], group=16, acc=[i32]) >> c0; op shr(c0, bits=7) >> c1;
  op cast(c1, to=i8) >> c;
  op conv(c, p1, acc=[i32]) >> e0; op shr(e0, bits=7) >> e1; op cast(e1, to=i8) >> y;
  return y;
}
"""
MOBILE_TENSORS = {"d0": (4, 1, 3, 3), "p0": (16, 4, 1, 1), "d1": (16, 1, 3, 3), "p1": (16, 16, 1, 1)}


def write(folder, graph, name="g"):
    (folder / f"{name}.oi").write_text(graph.text)
    write_model(folder / f"{name}.oinf", [graph])
    return [folder / f"{name}.oi", "--model", folder / f"{name}.oinf"]


def sets(graph):
    return [w for name, value in graph.inputs.items() for w in ("--set", f"{name}={value}")]


def statements(plan):
    """Of all blocks, those inside others too."""
    waiting = [s for block in plan["schedule"] for s in block["body"]]
    while waiting:
        s = waiting.pop()
        yield s
        waiting += s.get("body", [])


def turns(plan):
    return [s for s in statements(plan) if s["kind"] == "pipeline"]


def need_board():
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")


@pytest.fixture(scope="module")
def mobile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mobile")
    tensors = {n: ("i8", s, i, -100, 100) for i, (n, s) in enumerate(MOBILE_TENSORS.items())}
    return write(folder, chains.Graph(MOBILE, tensors, {}), "mobile")


@pytest.mark.parametrize("device", ["cortex_m4", NO_CACHE])
def test_less_memory(openinfer, tmp_path, mobile, device):
    """Of a chain of windows only the rows are kept that somebody still looks at."""
    plans = {}
    for name, more in (("whole", ["--without", "pipeline"]), ("rows", [])):
        openinfer("synth", *mobile, "--target", device, "-o", tmp_path / name, *more)
        plans[name] = json.loads((tmp_path / name / "plan.json").read_text())
    whole, rows = (plans[n]["certificate"] for n in ("whole", "rows"))
    assert not turns(plans["whole"]) and len(turns(plans["rows"])) >= 1
    # b alone is 36,864 bytes; three rows of it and what surrounds them are less than a fifth
    assert whole["arena_bytes"] >= 36864 and rows["arena_bytes"] <= 7500, rows["arena_bytes"]
    assert rows["arena_bytes"] <= 1.05 * rows["arena_bound_bytes"]
    assert plans["whole"]["graphs"][0]["cost"]["macs"] == plans["rows"]["graphs"][0]["cost"]["macs"]
    rings = [t for t in plans["rows"]["buffers"] if "ring" in t]
    assert rings and all(t["dims"][t["ring"][0]] < t["ring"][1] for t in rings)
    text = (tmp_path / "rows/mobile.c").read_text()
    assert re.search(r"for \(int\d\d_t turn = 0, made\[\d\] = \{0\}; turn < \d+; turn\+\+\)", text)
    assert "are kept" in text


def test_a_board_agrees(openinfer, mobile):
    need_board()
    run = openinfer("verify", *mobile, "--target", "cortex_m4", "--set", "x=random:7:-128:127", "--steps", 2)
    assert "they agree" in run.stdout


def test_every_node_by_itself(openinfer, tmp_path, mobile):
    """Who looks at every value finds them whole."""
    run = openinfer("verify", *mobile, "--target", NO_CACHE, "--set", "x=random:7:-128:127", "--per-node")
    assert "they agree" in run.stdout
    openinfer("synth", *mobile, "--target", NO_CACHE, "--per-node", "-o", tmp_path / "out")
    assert not turns(json.loads((tmp_path / "out/plan.json").read_text()))


def test_dumps_say_what_and_why_not(openinfer, tmp_path, mobile):
    words = ["synth", *mobile, "-o", tmp_path / "out", "--dump-after", "pipeline"]
    run = openinfer(*words, "--target", NO_CACHE)
    assert re.search(r"pipeline \d+ \{", run.stdout) and "a ring of" in run.stdout
    for target, why in (("cpu_avx2", "take less time"), ("cpu_scalar", "not worth it")):
        assert why in openinfer(*words, "--target", target).stdout


def same_bytes(openinfer, tmp_path, graphs, target, flags):
    """Programs with and without the pass say the same, and what the simulator says."""
    paths = []
    for i, graph in enumerate(graphs):
        (tmp_path / f"g{i}.oi").write_text(graph.text)
        paths.append(tmp_path / f"g{i}.oi")
    write_model(tmp_path / "g.oinf", graphs)
    words = ["verify", *paths, "--model", tmp_path / "g.oinf", "--target", target, "--steps", 2 * len(graphs),
             *(["--in-turn"] if len(graphs) > 1 else []), *flags, *(w for g in graphs for w in sets(g))]  # fmt: skip
    said = [openinfer(*words, *more, "--keep", tmp_path / keep).stdout for keep, more in (("rows", []), ("whole", ["--without", "pipeline"]))]
    assert all("they agree" in s for s in said)
    # every value within its tolerance, and the worst difference from the simulator the same to the last digit
    assert said[0] == said[1]
    return json.loads((tmp_path / "rows/plan.json").read_text())


# where who emits is watched, what is emitted was judged already
CHAINS = [("-O0", 10)] if os.environ.get("OPENINFER_SANITIZED") else [
    ("-O1", 40), ("-O0 -g -fsanitize=address,undefined -fno-sanitize-recover=all", 40)]  # fmt: skip


@pytest.mark.parametrize("flags, n", CHAINS)
def test_random_chains(openinfer, tmp_path, flags, n):
    taken = 0
    for first in range(0, n, 10):
        graphs = [chains.make(s, f"c{s}_") for s in range(first, first + 10)]
        plan = same_bytes(openinfer, tmp_path, graphs, NO_CACHE, ["--cflags", flags])
        taken += len(turns(plan))
        shutil.rmtree(tmp_path / "rows")
        shutil.rmtree(tmp_path / "whole")
    assert taken >= n * 3 // 8, "hardly any chain was done in turns"


@pytest.mark.parametrize("seed", range(5))
def test_random_chains_on_a_board(openinfer, tmp_path, seed):
    need_board()
    graph = chains.make(f"board {seed}", dtype="f32" if seed == 4 else "i8", most=3000)
    same_bytes(openinfer, tmp_path, [graph], "cortex_m4", [])


def test_vectors_in_turns(openinfer, tmp_path):
    """What no tuned body takes is done in turns beside those that one takes."""
    device = tmp_path / "device.json"
    device.write_text('{"extends": "cpu_avx2", "cpu": {"threads": 1, "cache_l2_bytes": 512, "cache_l3_bytes": 512}}')
    graphs = [chains.make(f"avx2 {s}", f"c{s}_") for s in range(10)]
    plan = same_bytes(openinfer, tmp_path, graphs, device, ["--cflags", "-O2"])
    assert turns(plan)


# A processor that keeps little but what was just touched: whatever chain there is pays.
NEAR = '{"extends": "cpu_avx2", "cpu": {"cache_l2_bytes": 262144, "cache_l3_bytes": 512}}'


def wide_chain(seed, prefix="c_"):
    """Rows that tuned bodies of floats take, too."""
    return chains.make(f"wide {seed}", prefix, "f32" if seed % 3 else None, 60000, (16, 70))


def test_parts_of_chains(openinfer, tmp_path):
    """Each thread takes turns for its own rows: the same as whole tensors give, whatever the chain."""
    device = tmp_path / "device.json"
    device.write_text(NEAR)
    taken = 0
    for first in range(0, 30, 10):
        graphs = [wide_chain(s, f"c{s}_") for s in range(first, first + 10)]
        plan = same_bytes(openinfer, tmp_path, graphs, device, ["--cflags", "-O1" if first else "-O2"])
        taken += len(turns(plan))
        source = next((tmp_path / "rows").glob("g*.c")).read_text()
        assert "oi_later(made[0]" in source and "/* private to each thread */" in source
        shutil.rmtree(tmp_path / "rows")
        shutil.rmtree(tmp_path / "whole")
    assert taken >= 20, "hardly any chain was done in turns"


@pytest.mark.parametrize("seed", range(6))
def test_parts_give_the_same_bits(openinfer, tmp_path, seed):
    """For any number of threads, and they never race."""
    device, out = tmp_path / "device.json", tmp_path / "out"
    device.write_text(NEAR)
    graph = wide_chain(100 + seed)
    openinfer("synth", *write(tmp_path, graph), "--target", device, "--name", "judged", "-o", out)
    assert turns(json.loads((out / "plan.json").read_text()))
    flags = test_threads.RACES if seed < 3 else "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
    made = subprocess.run(["make", "-s", "-C", str(out), "CC=gcc"], capture_output=True, text=True, env={**os.environ, "CFLAGS": flags})
    assert made.returncode == 0, made.stderr
    text = test_threads.inputs(out, 2)
    first = test_threads.results(out, text, 1)
    assert first
    for threads in (2, 3, 8):
        assert test_threads.results(out, text, threads) == first, f"{threads} threads"


def test_large_images_in_turns(openinfer, tmp_path):
    """What no cache holds is never whole: 64 MB of working memory become rows on the threads' stacks; what fits stays
    as it is."""
    text = """
dynamic {{ x: f32[1, 16, {n}, {n}]; }}
constant {{ d: f32[16, 1, 3, 3] @init(0.1); p: f32[32, 16, 1, 1] @init(0.2); }}
volatile {{ y: f32[1, 32, {n}, {n}]; }}
block entry {{
  assign a: f32[1, 16, {n}, {n}]; assign b: f32[1, 16, {n}, {n}]; assign c: f32[1, 32, {n}, {n}];
  op conv(x, d, pads=[1, 1, 1, 1], group=16) >> a; op relu(a) >> b; op conv(b, p) >> c; op relu(c) >> y;
  return y;
}}
"""
    plans = {}
    for n in (56, 512):
        words = write(tmp_path, chains.Graph(text.format(n=n), {}, {}), f"image{n}")
        openinfer("synth", *words, "--target", "cpu_avx2", "-o", tmp_path / str(n))
        plans[n] = json.loads((tmp_path / str(n) / "plan.json").read_text())
    assert not turns(plans[56])
    (chain,) = turns(plans[512])
    assert len(chain["body"]) == 2 and plans[512]["certificate"]["arena_bytes"] == 0
    rings = sum(t["bytes"] for t in plans[512]["buffers"] if "ring" in t)
    assert rings <= 1 << 20


@pytest.mark.parametrize("shared", [False, True])
def test_all_turns_are_one_run(openinfer, tmp_path, mobile, shared):
    """What bench measures of a kernel in turns stands beside what the plan predicts for all of its rows."""
    near = tmp_path / "near.json"
    near.write_text(NEAR)
    words = [*write(tmp_path, wide_chain(100)), "--target", near] if shared else [*mobile, "--target", NO_CACHE]
    openinfer("synth", *words, "-o", tmp_path / "out")
    assert turns(json.loads((tmp_path / "out/plan.json").read_text()))
    found = json.loads(openinfer("bench", *words, "--kernels", "--json", "--steps", 3, "--cflags", "-O1").stdout)
    assert found["kernels"] and all(k["runs"] == 1 and k["measured_ns"] > 0 for k in found["kernels"])
    assert sum(k["measured_ns"] for k in found["kernels"]) <= 1.01 * found["step_ns"] + 1000
