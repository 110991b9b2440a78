"""Bounds for graphs from someone else: nodes that run, bytes that are written, depth of calls."""

import os
import resource
import subprocess

import pytest

from conftest import BIN

ENDLESS = """
dynamic { x: f32[2]; }
persistent { n: i32; }
block entry {
  cache.increment n;
  loop l (i in 0..4611686018427387904) { op add(x, x) >> x; }
  return x;
}
"""

# One step runs 14 nodes: five of entry, and three rounds of branch, add and return.
SHORT = """
dynamic { x: f32[2]; }
persistent { n: i32; }
block entry {
  assign m: i32;
  cache.increment n;
  loop l (i in 0..3) { branch more; }
  cache.read n >> m;
  return m;
}
block more { op add(x, x) >> x; return; }
"""

VAST = """
constant { w: f32[250000000000] @init(1.5); }
dynamic { i: i64[1]; }
block entry { assign y: f32[1]; op gather(w, i, axis=0) >> y; return y; }
"""


def save(tmp_path, text):
    (tmp_path / "g.oi").write_text(text)
    return tmp_path / "g.oi"


def test_an_endless_loop_ends(openinfer, tmp_path):
    g = save(tmp_path, ENDLESS)
    said = openinfer("run", g, "--set", "x=1", "--max-nodes", 5000, code=1).stderr
    assert "error[E063]: the run would execute more than 5000 nodes" in said


@pytest.mark.parametrize("steps", [1, 3])
def test_nodes_are_counted_over_all_steps(openinfer, tmp_path, steps):
    g = save(tmp_path, SHORT)
    words = ("run", g, "--set", "x=1", "--steps", steps, "--max-nodes")
    assert f"m: i32 = {steps}" in openinfer(*words, 14 * steps).stdout
    result = openinfer(*words, 14 * steps - 1, code=1)
    assert "E063" in result.stderr and f"m: i32 = {steps}" not in result.stdout


def test_consumers_on_threads_share_the_budget(openinfer, tmp_path):
    g = save(tmp_path, "dynamic { x: f32[2]; }\nblock entry { yield x; await x; return x; }\n"
                       "block c { await x; loop l (i in 0..1000000000000) { op add(x, x) >> x; } yield x; }\n")
    for threads in (1, 3):
        said = openinfer("run", g, "--set", "x=1", "--threads", threads, "--max-nodes", 3000, code=1).stderr
        assert "E063" in said


@pytest.mark.parametrize("words", [("synth", "-o", "out"), ("verify", "--keep", "out"), ("bench",),
                                   ("synth", "-o", "deep/out", "--weights", "embed")], ids=" ".join)
def test_vast_programs_are_refused(openinfer, tmp_path, words):
    g = save(tmp_path, VAST)
    (tmp_path / "tmp").mkdir()
    env = {"TMPDIR": str(tmp_path / "tmp")}
    said = openinfer(words[0], g, *words[1:], code=1, cwd=tmp_path, env=env, timeout=20).stderr
    assert "error[E064]: the program takes " in said
    # more than any disk of ours has: the second bound
    said = openinfer(words[0], g, *words[1:], "--max-output", "9999T", code=3, cwd=tmp_path, env=env, timeout=20).stderr
    assert "the file system has" in said
    left = {p.name for p in tmp_path.rglob("*")}
    assert left == {"g.oi", "tmp"}


def test_max_output(openinfer, tmp_path):
    g, out = save(tmp_path, VAST.replace("250000000000", "2500")), tmp_path / "out"
    assert "E064" in openinfer("synth", g, "-o", out, "--max-output", "12K", code=1).stderr
    assert not out.exists()
    openinfer("synth", g, "-o", out)
    size = sum(p.stat().st_size for p in out.iterdir() if p.name != ".openinfer")
    openinfer("synth", g, "-o", out, "--max-output", size)
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    assert f"takes {size} bytes" in openinfer("synth", g, "-o", out, "--max-output", size - 1, code=1).stderr
    assert before == {p.name: p.read_bytes() for p in out.iterdir()}


def chain(n, loops):
    """Calls n levels deep, `loops` of them loops around the last branch."""
    n -= loops
    blocks = "".join(f"block b{i} {{ op exp(x) >> x; branch b{i + 1}; return; }}\n" for i in range(1, n - 1))
    begin = "".join(f"loop l{i} (i{i} in 0..1) {{ " for i in range(loops))
    return ("dynamic { x: f32[4]; }\nblock entry { branch b1; return x; }\n" + blocks
            + f"block b{n - 1} {{ {begin} branch b{n}; {'} ' * loops} return; }}\n"
            + f"block b{n} {{ op neg(x) >> x; return; }}\n")


def small_stack():
    resource.setrlimit(resource.RLIMIT_STACK, (2 << 20, 2 << 20))


@pytest.mark.parametrize("loops", [0, 48])
def test_the_deepest_calls(tmp_path, sanitized, loops):
    """What may be nested fits a quarter of the usual stack: that of ours and that of the program."""
    g = save(tmp_path, chain(1000, loops))
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    for words in (["check"], ["run", "--set", "x=1"], ["verify", "--steps", "1", "--cflags", "-O0"]):
        result = subprocess.run([BIN, words[0], g, *words[1:]], capture_output=True, text=True, env=env,
                                preexec_fn=None if sanitized else small_stack)
        assert result.returncode == 0, result.stderr[-2000:]


@pytest.mark.parametrize("levels,loops", [(1001, 0), (1001, 48), (50_000, 0)])
@pytest.mark.parametrize("words", [("check",), ("run",), ("synth", "-o", "out"), ("verify",)], ids=lambda w: w[0])
def test_deeper_calls_are_refused(openinfer, tmp_path, levels, loops, words):
    g = save(tmp_path, chain(levels, loops))
    said = openinfer(words[0], g, *words[1:], code=1, cwd=tmp_path).stderr
    assert said.count("error[") == 1
    assert "error[E037]: block " in said and " is called 1001 levels deep, at most 1000 are allowed" in said


def test_more_consumers_than_a_program_may_have(openinfer, tmp_path):
    """A program asks at each yield which consumers are ready: code and time grow with the square of their number."""
    def save_with(n):
        names = [f"v{i}" for i in range(n)]
        blocks = "".join(f"block c{i} {{ await v{i}; op exp(v{i}) >> v{i}; yield v{i}; }}\n" for i in range(n))
        sections = "volatile {" + "".join(f" {v}: f32[8];" for v in names) + "}\n"
        return save(tmp_path, f"{sections}block entry {{ yield {', '.join(names)}; await {', '.join(names)}; return; }}\n{blocks}")

    said = openinfer("synth", save_with(1001), "-o", "out", code=1, cwd=tmp_path).stderr
    assert said.count("error[") == 1
    assert "error[E060]: the graph has 1001 consumers, a program at most 1000" in said and "block c1000 {" in said
    openinfer("run", tmp_path / "g.oi")  # the simulator has no such limit
    openinfer("synth", save_with(1000), "-o", "out", cwd=tmp_path)
