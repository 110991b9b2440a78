"""run --fetch: nodes that neither the fetched values nor persistent memory depend on are skipped; a trace marks them."""

import itertools
import json
import random
import re
import sys

import pytest

from conftest import REPO

sys.path.insert(0, str(REPO / "python/src"))
from openinfer_oinf import PackageWriter, TensorSpec  # noqa: E402


@pytest.fixture
def ran(openinfer, tmp_path):
    """ran(graph, "a", ...) is what ran, and what was skipped, as texts of nodes; with the printed value, which an unabridged run
    must give too."""

    def run(text, fetch, *args, steps=1):
        path = tmp_path / "g.oi"
        path.write_text(text)
        common = ("run", path, "--fetch", fetch, "--steps", steps, "--deterministic", *args)
        some = openinfer(*common, "--nodes", "needed", "--trace", tmp_path / "t.json", "--trace-ext")
        everything = openinfer(*common, "--nodes", "all")
        assert some.stdout == everything.stdout == openinfer(*common).stdout
        rows = json.loads((tmp_path / "t.json").read_text())
        named = [(r.get("op") or r["kind"], r.get("skipped", False)) for r in rows]
        return [n for n, s in named if not s], [n for n, s in named if s]

    return run


HEAD = "dynamic { x: f32[2] @init(1); }\nvolatile { a: f32[2]; b: f32[2]; t: f32[2]; c: bool @init(true); }\n"


def test_a_chain_and_what_is_beside_it(ran):
    some, skipped = ran(HEAD + "block entry { op neg(x) >> t; op exp(t) >> a; op abs(x) >> t; op sqrt(t) >> b; return a, b; }", "a")
    assert some == ["neg", "exp", "Return"] and skipped == ["abs", "sqrt"]


def test_the_last_write_counts(ran):
    some, skipped = ran(HEAD + "block entry { op neg(x) >> a; op exp(a) >> b; op abs(x) >> a; return a; }", "a")
    assert some == ["abs", "Return"] and skipped == ["neg", "exp"]
    some, _ = ran(HEAD + "block entry { op neg(x) >> a; op exp(a) >> a; return a; }", "a")
    assert some == ["neg", "exp", "Return"]


def test_nothing_is_needed_of_inputs_and_constants(ran):
    some, skipped = ran(HEAD + "block entry { op neg(x) >> a; return a; }", "x")
    assert some == ["Return"] and skipped == ["neg"]


def test_state_is_kept_whatever_is_asked(ran):
    text = (HEAD + "persistent { n: i64; K(i): f32[2] @table; }\n"
            "block entry { op neg(x) >> t; cache.write t >> K[n]; op abs(x) >> a; op exp(x) >> b; cache.increment n; return a, b; }")  # fmt: skip
    some, skipped = ran(text, "a,K,n", steps=3)
    assert some == ["neg", "CacheWrite", "abs", "CacheIncrement", "Return"] * 3 and skipped == ["exp"] * 3
    some, skipped = ran(text, "x", steps=2)
    assert "neg" in some and skipped == ["abs", "exp"] * 2


def test_a_read_that_grows_is_kept(ran):
    text = (HEAD + "persistent { A(i): f32[1] @auto_dim(i); }\nvolatile { g: f32[?]; }\n"
            "block entry { cache.read A[2] >> g; op neg(x) >> a; return a; }")  # fmt: skip
    some, skipped = ran(text, "a,A", steps=2)
    assert some == ["CacheRead", "neg", "Return"] * 2 and skipped == []


def test_branches(ran):
    text = (HEAD + "block entry { op neg(x) >> t; branch c yes no; branch beside; return a, b; }\n"
            "block yes { op exp(t) >> a; op abs(t) >> b; return; }\nblock no { op sqrt(t) >> a; return; }\n"
            "block beside { op abs(x) >> b; return; }\n")  # fmt: skip
    some, skipped = ran(text, "a")
    assert some == ["neg", "Branch", "exp", "Return", "Return"] and skipped == ["abs", "Branch"]
    some, skipped = ran(text, "b")
    assert some == ["Branch", "abs", "Return", "Return"] and skipped == ["neg", "Branch"]


def test_a_block_that_two_branches_call(ran):
    """What either call needs of it runs in both; a call of which nothing is needed does not happen."""
    text = (HEAD + "block entry { branch both; op neg(a) >> t; branch both; op add(t, b) >> t; branch both; return t; }\n"
            "block both { op exp(x) >> a; op sqrt(x) >> b; return; }\n")  # fmt: skip
    some, skipped = ran(text, "t")
    assert some == ["Branch", "exp", "sqrt", "Return", "neg", "Branch", "exp", "sqrt", "Return", "add", "Return"]
    assert skipped == ["Branch"]


def test_loops(ran):
    text = (HEAD + "block entry {\n  loop l (i in 0..3) { op add(a, t) >> b; op add(a, x) >> t; op neg(t) >> a; op exp(b) >> b; }\n"
            "  loop m (j in 0..2) { op abs(b) >> b; }\n  return a, b;\n}\n")  # fmt: skip
    some, skipped = ran(text, "a")
    assert some == ["Loop"] + ["add", "neg"] * 3 + ["Return"]
    assert skipped == ["add", "exp"] * 3 + ["Loop"]
    some, skipped = ran(text, "b")
    assert skipped == []


def test_a_value_that_goes_round(ran):
    """b of one round comes from t of the round before."""
    text = HEAD + "block entry { loop l (i in 0..3) { op add(b, t) >> b; op neg(x) >> t; op exp(x) >> a; } return a, b; }"
    some, skipped = ran(text, "b")
    assert some == ["Loop"] + ["add", "neg"] * 3 + ["Return"] and skipped == ["exp"] * 3


def test_indices_bounds_and_attributes(ran):
    text = (HEAD + "volatile { n: i64 @init(2); m: i64; one: i64 @init(1); lo: f32; }\n"
            "block entry { op add(n, one) >> m; op add(n, n) >> n; op neg(one) >> one; op clamp(x, min=lo) >> a;\n"
            "  loop l (i in 0..m) { op add(b, x) >> b; } return a, b; }")  # fmt: skip
    some, skipped = ran(text, "b")
    assert some == ["add", "Loop", "add", "add", "add", "Return"] and skipped == ["add", "neg", "clamp"]


def test_yields(ran):
    text = (HEAD + "volatile { p: f32[2]; q: f32[2]; r: f32[2]; }\n"
            "block entry { op neg(x) >> p; op exp(x) >> r; yield p; op abs(x) >> b; await p; op add(p, q) >> a; return a, b, r; }\n"
            "block side { await p; op sqrt(r) >> q; op floor(r) >> t; op neg(p) >> p; yield p; }\n")  # fmt: skip
    some, skipped = ran(text, "a")
    assert set(skipped) == {"abs", "floor"} and {"neg", "exp", "sqrt", "add", "Yield", "Await"} <= set(some)
    some, skipped = ran(text, "b")
    assert set(skipped) == {"neg", "exp", "sqrt", "floor", "add"} and {"abs", "Yield", "Await"} <= set(some)


def test_errors_of_skipped_nodes_do_not_occur(openinfer, tmp_path):
    path = tmp_path / "g.oi"
    path.write_text("dynamic { i: i64[1] @init(9); x: f32[3]; }\nvolatile { a: f32[1]; b: f32[3]; }\n"
                    "block entry { op gather(x, i, axis=0) >> a; op neg(x) >> b; return a, b; }")  # fmt: skip
    assert "E047" in openinfer("run", path, code=1).stderr
    assert "b: f32[3]" in openinfer("run", path, "--fetch", "b").stdout
    assert "E047" in openinfer("run", path, "--fetch", "b", "--nodes", "all", code=1).stderr
    assert "E047" in openinfer("run", path, "--fetch", "b", "--trace", tmp_path / "t.json", code=1).stderr


def test_traces_run_everything_unless_told(openinfer, tmp_path):
    path = tmp_path / "g.oi"
    path.write_text(HEAD + "block entry { op neg(x) >> a; op exp(x) >> b; return a, b; }")
    openinfer("run", path, "--fetch", "a", "--trace", tmp_path / "t.json")
    assert "skipped" not in (tmp_path / "t.json").read_text()
    openinfer("run", path, "--fetch", "a", "--trace", tmp_path / "t.json", "--trace-format", "chrome", "--nodes", "needed")
    events = [e for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if e["ph"] == "X"]
    assert [e["name"] for e in events if e["args"].get("skipped")] == ["exp"]
    assert openinfer("run", path, "--nodes", "needed", code=2).stderr.count("--fetch") == 1
    assert "OpExecute exp" in openinfer("run", path, "--fetch", "a", "--timer").stderr


def test_prefix_tables(openinfer, tmp_path):
    path = tmp_path / "g.oi"
    path.write_text(HEAD + 'volatile { W(l): f32[2] @pattern("W.{l}"); }\n'
                    "block entry { op neg(x) >> W[0]; op exp(x) >> W[1]; op add(W[0], W[1]) >> a; op abs(x) >> b; return a; }")  # fmt: skip
    with PackageWriter(tmp_path / "m.oinf") as w:
        for i in range(2):
            w.add_tensor(f"W.{i}", TensorSpec([1.0, 2.0], dtype="f32"))
    openinfer("run", path, "--model", tmp_path / "m.oinf", "--fetch", "W[1]", "--nodes", "needed", "--trace", tmp_path / "t.json",
              "--trace-ext")  # fmt: skip
    rows = json.loads((tmp_path / "t.json").read_text())
    assert [r["op"] for r in rows if r.get("skipped")] == ["add", "abs"]


def random_graph(rng, n_vars):
    """Ops on a few variables in loops and branches, with state: values depend on the order of everything."""
    names = [f"v{i}" for i in range(n_vars)]
    blocks, counter = [], itertools.count()

    def node(depth, indent):
        kind = rng.random()
        a, b, c = (rng.choice(names) for _ in range(3))
        if kind < 0.6 or depth > 2:
            return f"{indent}op {rng.choice(['add', 'sub', 'max'])}({a}, {b}) >> {c};\n"
        if kind < 0.7:
            return f"{indent}transfer {a} >> {b};\n" if a != b else ""
        if kind < 0.75:
            return f"{indent}cache.write {a} >> S;\n"
        if kind < 0.8:
            return f"{indent}cache.read S >> {a};\n"
        if kind < 0.92:
            i = next(counter)
            inside = "".join(node(depth + 1, indent + "  ") for _ in range(rng.randint(1, 4)))
            return f"{indent}loop l{i} (i{i} in 0..{rng.randint(0, 3)}) {{\n{inside}{indent}}}\n"
        if blocks and rng.random() < 0.6:
            return f"{indent}branch {rng.choice(blocks)};\n"
        return f"{indent}branch c{rng.randint(0, 1)} {rng.choice(blocks)} {rng.choice(blocks)};\n" if blocks else ""

    text = ""
    for k in range(3):
        body = "".join(node(0, "  ") for _ in range(rng.randint(1, 5)))
        text += f"block b{k} {{\n{body}  return;\n}}\n"
        blocks.append(f"b{k}")
    body = "".join(node(0, "  ") for _ in range(12))
    inputs = " ".join(f"{v}: i64[2] @init({i * 3 + 1});" for i, v in enumerate(names))
    return (f"volatile {{ {inputs} c0: bool @init(false); c1: bool @init(true); }}\npersistent {{ S: i64[2]; }}\n{text}"
            f"block entry {{\n{body}  return;\n}}\n"), names  # fmt: skip


@pytest.mark.parametrize("seed", range(25))
def test_any_graph_gives_the_same(openinfer, tmp_path, seed):
    text, names = random_graph(random.Random(seed), 5)
    path = tmp_path / "g.oi"
    path.write_text(text)
    whole = openinfer("run", path, "--fetch", ",".join([*names, "S"]), "--nodes", "all", "--steps", 2).stdout
    for name in names:
        some = openinfer("run", path, "--fetch", f"{name},S", "--steps", 2).stdout
        for line in some.splitlines():
            assert re.fullmatch(r"step \d|", line) or line in whole.splitlines()
