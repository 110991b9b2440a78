"""Graphs made for one thing that the synthesizer must get right, each compared with the simulator."""

import shutil

import pytest

STRICT = "-O1 -Wall -Wextra -Werror -pedantic"


def verify(openinfer, path, *more, code=0):
    return openinfer("verify", path, "--cflags", STRICT, *more, code=code)


# -- consumers ----------------------------------------------------------------------------------------------

PRIVATE_INDEX = """
dynamic { x: f32[4]; }
constant { one: i32 @init(1); }
volatile {
  n: i32 @init(1);
  seen: i32;
  v: f32[4];
  r: f32[4];
  w: f32[4];
}
persistent { K(i): f32[4] @table @fixed(i=8); }

block entry {
  transfer x >> v;
  loop rows (i in 0..8) {
    op add(v, x) >> v;
    cache.write v >> K[i];
  }
  yield v;
  op add(n, one) >> seen;  // the consumer's n is not seen here
  await v;
  cache.read K[n] >> w;
  return v, seen, w, n;
}

block helper {  // in the consumer's name
  op add(n, one) >> n;
  cache.read K[n + 1] >> r;
  op add(v, r) >> v;
  return;
}

block work {
  await v;
  op add(n, one) >> n;
  cache.read K[n] >> r;
  op sub(v, r) >> v;
  branch helper;
  loop again (i in 0..n) {
    op add(v, r) >> v;
  }
  yield v;
}
"""


@pytest.mark.parametrize("more", [[], ["--per-node"]], ids=["whole", "nodes"])
def test_consumer_reads_its_own_index(openinfer, tmp_path, more):
    path = tmp_path / "private.oi"
    path.write_text(PRIVATE_INDEX)
    result = verify(openinfer, path, "--target", "cpu_scalar", *more)
    assert "8 steps compared: they agree" in result.stdout


@pytest.mark.parametrize("more", [[], ["--per-node"]], ids=["whole", "nodes"])
def test_block_of_two_owners(openinfer, tmp_path, more):
    """The entry and a consumer call the same block: each on its own variables, and so does what it calls."""
    path = tmp_path / "owners.oi"
    text = PRIVATE_INDEX.replace("  yield v;\n  op add(n", "  branch helper;\n  yield v;\n  op add(n")
    text = text.replace("  op add(v, r) >> v;\n  return;\n}", "  loop twice (j in 0..2) {\n    branch deeper;\n  }\n  return;\n}\n\nblock deeper {\n  op add(v, r) >> v;\n  return;\n}", 1)
    assert text.count("branch helper") == 2 and text.count("deeper") == 2
    path.write_text(text)
    verify(openinfer, path, *more)


# -- lengths that only the run knows ------------------------------------------------------------------------

GROWING = """
dynamic { x: f32[3]; n: i32; }
volatile { all: f32[?, 3]; some: f32[?, 3]; sum: f32[?, 3]; }
persistent { step: i32; K(t): f32[3] @table @cap(t=6); }

block entry {
  cache.write x >> K[step];
  cache.read K[] >> all;
  cache.read K[0..n] >> some;
  op add(all, some) >> sum;
  cache.increment step;
  return sum;
}
"""


@pytest.mark.parametrize("n, failed", [(1, 2), (2, 6), (0, 7), (7, 8)], ids=["broadcast", "two", "none", "past the bound"])
def test_shapes_that_do_not_fit_fail_alike(openinfer, tmp_path, n, failed):
    """Rows 1 ... 6, then the table is full (E047); n rows beside them stretch, fit or not (E051)."""
    path = tmp_path / "growing.oi"
    path.write_text(GROWING)
    for more in ([], ["--per-node"]):
        result = verify(openinfer, path, "--target", "cpu_scalar", "--set", f"n={n}", *more)
        assert f"8 steps compared, {failed} of them ended with the same error: they agree" in result.stdout


CUT = """
dynamic { x: f32; }
volatile { all: f32[?]; last: f32[?]; but: f32[?]; back: f32[?]; far: f32[?]; padded: f32[?]; both: f32[?]; }
persistent { step: i32; K(t): f32 @table @cap(t=8); }

block entry {
  cache.read K[] >> all;
  op slice(all, starts=[-2], ends=[100], axes=[0]) >> last;
  op slice(all, starts=[2], ends=[-1], axes=[0]) >> but;
  op slice(all, starts=[-1], ends=[-100], axes=[0], steps=[-1]) >> back;
  op slice(all, starts=[-4], ends=[100], axes=[0], steps=[3]) >> far;
  op pad(last, pads=[2, 1], value=9) >> padded;
  op concat(last, back, axis=0) >> both;
  cache.write x >> K[step];
  cache.increment step;
  return last, but, back, far, padded, both;
}
"""


def test_cuts_of_lengths_from_none_on(openinfer, tmp_path):
    """The last two of none, one, two ...: where a cut begins has a limit that the shortest lengths alone show."""
    path = tmp_path / "cut.oi"
    path.write_text(CUT)
    for more in ([], ["--per-node"]):
        result = verify(openinfer, path, "--target", "cpu_scalar", "--set", "x=random:3:-1:1", *more)
        assert "8 steps compared: they agree" in result.stdout


CHAIN = """
dynamic { x: f32[3, 4]; n: i32; }
constant { w: f32[3, 4] @init(0.5); }
volatile {
  sums: f32[3]; low: f32[3, ?]; both: f32[?, 3, 4]; out: f32[3, 4]; spread: f32[?, 3, 4]; turned: f32[3, 4, ?];
}
persistent { step: i32; K(l, t): f16[3, 4] @table @cap(l=2, t=9); }

block entry {
  assign row: f16[3, 4];
  assign all: f16[?, 3, 4];
  assign wide: f32[?, 3, 4];
  assign scaled: f32[?, 3, 4];
  assign some: f16[?, 3, 4];
  assign wider: f32[?, 3, 4];
  assign dots: f32[3, ?];
  assign least: f32[3, 1];
  assign twice: f32[?, 3, 4];
  assign cut: f32[?, 3, 4];
  assign back: f32[3, 4];
  op cast(x, to=f16) >> row;
  op fill(out, value=0.0) >> out;
  loop layers (l in 0..2) {
    cache.write row >> K[l, step];
    cache.read K[l, 0..step+1] >> all;
    cache.read K[l, 0..n] >> some;
    op cast(all, to=f32) >> wide;
    op cast(some, to=f32) >> wider;
    op add(wide, wider) >> spread;
    op mul(wide, w) >> scaled;
    op transpose(scaled, perm=[1, 2, 0]) >> turned;
    op sum_axis(turned, axes=[1], keepdims=false) >> dots;
    op min_axis(dots, axes=[1], keepdims=true) >> least;
    op sub(dots, least) >> low;
    op sum_axis(low, axes=[1], keepdims=false) >> sums;
    op add(wide, scaled) >> twice;
    op slice(twice, starts=[-2], ends=[100], axes=[0]) >> cut;
    op concat(cut, wide, axis=0) >> both;
    op sum_axis(both, axes=[0], keepdims=false) >> back;
    op add(out, back) >> out;
  }
  cache.increment step;
  return out, sums, low, both, spread, turned;
}
"""


@pytest.mark.parametrize("n, result", [(1, "8 steps compared: they agree"), (3, "8 steps compared, 7 of them ended with the same error: they agree")])
@pytest.mark.parametrize("more", [[], ["--per-node"], ["--without", "inline"], ["--without", "view"], ["--without", "schedule"]], ids=" ".join)
def test_chains_over_lengths_of_the_run(openinfer, tmp_path, n, result, more):
    """Casts, turns and cuts go into those who read them, with what the lengths have to do with it; one row stretches."""
    path = tmp_path / "chain.oi"
    path.write_text(CHAIN)
    for target in ("cpu_scalar", "cpu_avx2"):
        assert result in verify(openinfer, path, "--target", target, "--set", f"n={n}", *more).stdout


def test_what_is_read_up_to_now_is_read_where_it_lies(openinfer, tmp_path):
    """No copy of the cache, none of what was made of it: casts and turns are in the loops, only lengths are left."""
    path = tmp_path / "chain.oi"
    path.write_text(CHAIN)
    openinfer("synth", path, "--target", "cpu_avx2", "-o", tmp_path / "out")
    text = (tmp_path / "out/chain.c").read_text()
    assert "(s->oi_state_data.K + l * 108, wide," in text and "(s->oi_state_data.K + l * 108, wider," in text
    assert "s->oi_dims_scaled[0] = s->oi_dims_wide[0];" in text and "float *const scaled" not in text and "memcpy(to, s->oi_state_data.K" not in text


UP_TO_NOW = """
dynamic {{ x: f32[{q}]; key: f16[{row}]; }}
volatile {{ y: f32[{q}]; z: f32[{q}]; }}
persistent {{ step: i32 @init(0); K(t): f16[{row}] @table @cap(t=7); V(t): f16[{row}] @table @cap(t=9); }}

block entry {{
  assign k: f16[{keys}];
  assign v: f16[{keys}];
  cache.read K[0..step] >> k;
  cache.read V[0..step] >> v;
{more}  op sdpa(x, {given}, heads=4, kv_heads=2{attrs}) >> y;
  op add(x, y) >> z;
  cache.write key >> K[step];
  cache.write key >> V[step];
  cache.increment step;
  return y, z;
}}
"""
PACKED = """  assign k3: f16[1, ?, 64];
  assign v3: f16[1, ?, 64];
  op unsqueeze(k, axes=[0]) >> k3;
  op unsqueeze(v, axes=[0]) >> v3;
"""


@pytest.mark.parametrize("graph", [
    {"q": "1, 128", "row": "1, 64", "keys": "?, 1, 64", "more": "", "given": "k, v", "attrs": ""},
    {"q": "1, 3, 128", "row": "64", "keys": "?, 64", "more": PACKED, "given": "k3, v3", "attrs": ""},
    {"q": "1, 3, 128", "row": "64", "keys": "?, 64", "more": PACKED, "given": "k3, v3", "attrs": ", causal=true"},
], ids=["one query", "three", "three, one after the other"])  # fmt: skip
def test_attention_over_keys_up_to_now(openinfer, tmp_path, graph):
    """None, one, two ... of them: the tuned body counts as many as there are. Eight do not fit (E047)."""
    path = tmp_path / "keys.oi"
    path.write_text(UP_TO_NOW.format(**graph))
    for more in (["--target", "cpu_scalar"], ["--target", "cpu_avx2"], ["--target", "cpu_avx2", "--per-node"],
                 ["--target", "cpu_avx2", "--without", "recipes"]):
        result = verify(openinfer, path, *more, "--steps", "9")
        assert "9 steps compared, 2 of them ended with the same error: they agree" in result.stdout
    openinfer("synth", path, "--target", "cpu_avx2", "-o", tmp_path / "out")
    assert "oi_sdpa(" in (tmp_path / "out/keys.c").read_text()


@pytest.mark.parametrize("graph, words", [
    ("volatile { y: f32[?]; } persistent { K(t): f32 @table; } block entry { cache.read K[] >> y; return y; }",
     ["E062", "'K'", "'t'", "@fixed", "@cap"]),
    ("volatile { y: f32[?, 2]; z: f32[?, 2]; } persistent { K(t): f32[2] @table @cap(t=4); }\n"
     "block entry { cache.read K[] >> y;\n loop again (i in 0..3) { op concat(y, y, axis=0) >> z;\n transfer z >> y; }\n"
     " return y; }", ["E062", "@fixed", "@cap", "concat"]),
    ("volatile { y: f32[?]; z: f32[?]; } persistent { K(t): f32 @table @cap(t=4); }\n"
     "block entry { cache.read K[] >> y; op roll(y, shifts=3, axes=0) >> z; return z; }", ["E062", "'roll'", ":2:"]),
], ids=["table", "loop", "op"])  # fmt: skip
def test_unbounded_is_refused_before_writing(openinfer, tmp_path, graph, words):
    path = tmp_path / "open.oi"
    path.write_text(graph)
    result = openinfer("synth", path, "--target", "cpu_scalar", "-o", tmp_path / "out", code=1)
    for word in words:
        assert word in result.stderr, result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["open.oi"]


BODIES = """
dynamic { x: f32[3, 8]; q: i8[3, 8]; }
volatile { v: f32[3, 2]; at: i64[3, 2]; s: i8[3, 8]; f: i64[2, ?]; u: i8[?]; c: i64[?]; sum: f32[3, 8]; }
persistent { step: i32; K(t): f32[3, 8] @table @cap(t=4); }
block entry {
  assign all: f32[?, 3, 8];
  op topk(x, k=2) >> v, at;
  op sort(q, axis=0, descending=true) >> s;
  op nonzero(q) >> f;
  op unique(q) >> u, c;
  cache.write x >> K[step];
  cache.read K[] >> all;
  op sum_axis(all, axes=[0]) >> sum;
  cache.increment step;
  return v, at, s, f, u, c, sum;
}
"""


@pytest.mark.parametrize("target, tools", [
    ("cpu_scalar", ["cc"]), ("cortex_m4", ["arm-none-eabi-gcc", "qemu-system-arm"]),
    ("rv32imac", ["riscv64-unknown-elf-gcc", "qemu-system-riscv32"]),
], ids=["host", "arm", "riscv"])  # fmt: skip
def test_bodies_and_open_lengths_without_a_library(openinfer, tmp_path, target, tools):
    missing = [t for t in tools if not shutil.which(t)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    path = tmp_path / "bodies.oi"
    path.write_text(BODIES)
    result = openinfer("verify", path, "--target", target, "--steps", "6", "--set", "q=random:5:-2:2")
    assert "6 steps compared, 2 of them ended with the same error: they agree" in result.stdout


def test_lengths_are_shown_to_the_host(openinfer, tmp_path):
    path = tmp_path / "growing.oi"
    path.write_text(GROWING)
    openinfer("synth", path, "--target", "cpu_scalar", "-o", tmp_path / "out")
    header = (tmp_path / "out/growing.h").read_text()
    assert "int64_t oi_dims_sum[2];" in header and "float sum[18]; /* f32[<= 6, 3] */" in header


# -- names --------------------------------------------------------------------------------------------------

NAMES = """
dynamic { double: f32[4, 70]; lane: f32[70]; width: f32[4, 70]; s: f32[4]; v0: f32[4]; }
volatile { register: f32[4]; count: f32[4, 70]; i: f32[4, 70]; l: f32[4, 70]; acc: f32[4]; first: f32[4]; }
block entry {
  op matmul(double, lane) >> register;
  op add(register, s) >> register;
  op mul(width, double) >> count;
  op transpose(count) >> t;
  op matmul(count, t) >> square;
  op add(count, width) >> i;
  op softmax(i) >> l;
  op sum_axis(l, axes=[1]) >> acc;
  op mul(acc, v0) >> first;
  return register, count, i, l, acc, first, square;
}
""".replace("volatile {", "volatile { t: f32[70, 4]; square: f32[4, 4];")


@pytest.mark.parametrize("target", ["cpu_scalar", "cpu_avx2"])
def test_variables_called_as_words_of_c(openinfer, tmp_path, target):
    path = tmp_path / "int.oi"
    path.write_text(NAMES)
    verify(openinfer, path, "--target", target, "--steps", "2")


NAMES_THAT_MEET = """
dynamic { x: f32[4]; K_size: f32[4]; lent_x: f32[4]; ran_c: f32[4]; o_dims: f32[4]; waits: f32[4]; }
volatile { y: f32[4]; z: f32[4]; }
persistent { K(t): f32[4] @table @cap(t=9); K_written: f32[4]; pos: i64; }
block entry {
  assign rows: f32[?, 4];
  assign o: f32[?];
  assign h: f32[4];
  cache.write x >> K[pos];
  cache.increment pos;
  op add(x, K_size) >> y;
  cache.write y >> K_written;
  cache.read K[0..pos] >> rows;
  op sum_axis(rows, axes=[1]) >> o;
  yield x;
  op add(o_dims, lent_x) >> h;
  op add(h, ran_c) >> h;
  op add(h, waits) >> h;
  await x;
  return y, z, o, h;
}
block c { await x; op neg(x) >> z; yield x; }
"""


def test_names_of_what_goes_with_a_variable(openinfer, tmp_path):
    """Flags, lengths and sizes that the program adds have names that no variable has."""
    path = tmp_path / "meet.oi"
    path.write_text(NAMES_THAT_MEET)
    result = openinfer("verify", path, "--steps", 5, "--cflags", STRICT)
    assert "5 steps compared: they agree" in result.stdout


def test_the_least_integer_is_an_index(openinfer, tmp_path):
    """C has no literal for it."""
    path = tmp_path / "least.oi"
    path.write_text("""
dynamic { x: f32[4]; }
volatile { y: f32[4]; }
persistent { K(t): f32[4] @table @cap(t=9); pos: i64; }
block entry { cache.write x >> K[pos]; cache.read K[pos - -9223372036854775808] >> y; return y; }
""")
    result = openinfer("verify", path, "--steps", 2, "--cflags", STRICT)
    assert "2 steps compared, 2 of them ended with the same error: they agree" in result.stdout


def test_a_range_of_floats_has_an_open_length(openinfer, tmp_path):
    """The declared type says what the numbers are, not only where the length is declared too."""
    path = tmp_path / "range.oi"
    path.write_text("volatile { o: f32[?]; }\nblock entry { op range(start=0.5, limit=4.0, delta=0.5) >> o; return o; }\n")
    assert "o: f32[7] = { 0.5, 1, 1.5, 2, 2.5, 3, 3.5 }" in openinfer("run", path).stdout
    verify(openinfer, path, "--steps", "2")


# -- sums that nobody looks at --------------------------------------------------------------------------------

HIDDEN = """
dynamic { x: f32[5, 24]; w: f32[24, 7]; a: f32[5, 7]; b: f32[7]; c: f32[5]; }
constant { none: f32 @init(0.0); half: f32 @init(0.5); low: f32 @init(-1.0); two: f32 @init(2.0); }
volatile { y: f32[5, 7]; z: f32[5]; }

block entry {
  assign s: f32[5, 7];
  assign t: f32[5, 7];
  assign shown: bool[5, 7];
  assign past: bool[7];
  assign sum: f32[5];
  assign some: bool[5];
  op gt(a, none) >> shown;
  op lt(b, half) >> past;
  op matmul(x, w) >> s;
  op mul(s, half) >> s;
  op where(shown, s, low) >> t;
  op where(past, t, two) >> y;
  op sum_axis(x, axes=[1], keepdims=false) >> sum;
  op gt(c, none) >> some;
  op where(some, two, sum) >> z;
  return y, z;
}
"""


def test_what_a_mask_hides_is_not_computed(openinfer, tmp_path):
    """where(past, where(shown, sum, -1), 2): both are asked before the sum is made; where(some, 2, sum) is as it was."""
    path = tmp_path / "hidden.oi"
    path.write_text(HIDDEN)
    for more in (["cpu_scalar"], ["cpu_avx2", "--without", "recipes"], ["cpu_avx2", "--without", "recipes", "--without", "schedule"]):
        result = verify(openinfer, path, "--target", *more)
        assert "8 steps compared: they agree" in result.stdout
    openinfer("synth", path, "--target", "cpu_scalar", "-o", tmp_path / "out")
    text = (tmp_path / "out/hidden.c").read_text()
    assert text.count("if (v0 && v2) {") == 1 and text.count("float acc = 0.0f;") == 2


# -- bounds behind a tuned body ------------------------------------------------------------------------------

BOUNDS = """
dynamic {{ x: f32[1, {c}, 9, {w}]; }}
constant {{ k: f32[{m}, {each}, {n}, {n}] @init(0.25); b: f32[{m}] @init(-0.5); }}
volatile {{ y: f32[1, {m}, 9, {w}]; z: f32[1, {m}, 9, {w}]; }}
block entry {{
  assign s: f32[1, {m}, 9, {w}];
  assign t: f32[1, {m}, 9, {w}];
  op conv(x, k, b, pads=[{p}, {p}, {p}, {p}], group={group}) >> s;
  op relu(s, clamp_max=4) >> t;
  op clamp(t, min=0.5, max=6) >> y;
  op conv(x, k, b, pads=[{p}, {p}, {p}, {p}], group={group}) >> z;
  return y, z;
}}
"""


@pytest.mark.parametrize("c, m, w, n, group", [(3, 13, 21, 3, 1), (5, 14, 20, 1, 1), (4, 4, 40, 3, 4), (6, 9, 5, 3, 1)])
def test_bounds_of_a_tuned_body(openinfer, tmp_path, c, m, w, n, group):
    """relu and clamp become the body's own; what is no number passes, infinities do not."""
    import numpy as np

    path, given = tmp_path / "bounds.oi", tmp_path / "x.npy"
    path.write_text(BOUNDS.format(c=c, m=m, w=w, n=n, group=group, each=c // group, p=n // 2))
    x = np.random.default_rng(1).normal(0, 8, (1, c, 9, w)).astype(np.float32)
    x[0, 0, 4, 3], x[0, 0, 0, 0], x[0, 1, 8, 1] = np.nan, np.inf, -np.inf
    np.save(given, x)
    verify(openinfer, path, "--target", "cpu_avx2", "--set", f"x={given}", "--keep", tmp_path / "kept")
    text = (tmp_path / "kept" / "bounds.c").read_text()
    assert "conv_clamp_y(" in text and "/* least */ 0.5f, /* most */ 4.0f" in " ".join(text.split())
