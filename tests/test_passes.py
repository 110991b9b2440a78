"""The synthesizer's passes: any one may be left out, and the program still agrees with the simulator."""
import pytest

PASSES = ["fold", "dead", "rename", "fuse", "rows", "schedule", "memory"]

GRAPHS = {
    # maps into products and readers, values written in place, a variable that lives across the loop
    "chain": """
dynamic { x: f32[3, 40]; }
constant { w: f32[40, 40] @init(0.03); b: f32[40] @init(0.25); two: f32 @init(2.0); }
volatile { y: f32[3, 40]; z: f16[40, 3]; unused: f32[3, 40]; }
block entry {
  assign h: f32[3, 40];
  assign t: f32[3, 40];
  assign c: f32[40];
  op mul(b, two) >> c;
  op add(x, c) >> h;
  op relu(h) >> h;
  op exp(x) >> unused;
  loop layers (l in 0..3) {
    op matmul(h, w) >> t;
    op add(t, b) >> t;
    op relu(t, negative_slope=0.1) >> t;
    op add(h, t) >> h;
  }
  op softmax(h) >> y;
  op cast(y, to=f16) >> t16;
  op transpose(t16) >> z;
  return y, z;
}
""".replace("volatile {", "volatile { t16: f16[3, 40];"),
    # windows with padding, reductions over rows, moves, a state that a branch changes
    "window": """
dynamic { x: f32[1, 3, 9, 11]; }
constant { w: f32[4, 3, 3, 3] @init(0.125); b: f32[4] @init(0.25); g: f32[6] @init(1.5); }
volatile { y: f32[1, 4, 5, 6]; p: f32[1, 4, 2, 3]; n: f32[1, 4, 5, 6]; big: bool; }
persistent { count: i32 @init(0); kept(t): f32[6] @table @fixed(t=3); }
block entry {
  assign row: f32[6];
  assign peak: f32;
  op conv2d(x, w, b, strides=[2, 2], pads=[1, 1, 1, 1]) >> y;
  op max_pool(y, kernel=[2, 2], strides=[2, 2]) >> p;
  op layernorm(y, g) >> n;
  op max_axis(n, axes=[0, 1, 2]) >> row;
  op max_axis(p, axes=[0, 1, 2, 3]) >> peak;
  op gt(peak, zero) >> big;
  branch big keep drop;
  return p, n, big;
}
block keep {
  cache.write row >> kept[count % 3];
  cache.increment count;
  return;
}
block drop {
  cache.reset kept;
  return;
}
""".replace("constant {", "constant { zero: f32 @init(0.4);"),
    # what a kernel reads by name changes before its result is read; a constant comes into a variable that
    # was read before, straight on, in a loop and in a block that is called
    "order": """
dynamic { x: f32[8]; }
constant { half: f32 @init(0.5); c: f32[8] @init(3.0); }
volatile {
  limit: f32 @init(1.0); y: f32[8]; z: f32[8]; u: f32[8]; v: f32[8];
  first: f32[8] @init(1.0); second: f32[8] @init(1.0); third: f32[8] @init(1.0);
}
block entry {
  assign t: f32[8];
  op relu(x, clamp_max=limit) >> t;
  op mul(limit, half) >> limit;
  op neg(t) >> y;
  op add(x, first) >> z;
  op add(c, c) >> first;
  loop rounds (i in 0..2) {
    op add(x, second) >> u;
    op add(c, c) >> second;
  }
  branch called;
  op add(c, c) >> third;
  return y, z, u, v;
}
block called {
  op add(x, third) >> v;
  return;
}
""",
}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("left_out", ["nothing", *PASSES])
def test_a_pass_may_be_left_out(openinfer, tmp_path, graph, left_out):
    path = tmp_path / f"{graph}.oi"
    path.write_text(GRAPHS[graph])
    without = [] if left_out == "nothing" else ["--without", left_out]
    run = openinfer("verify", path, "--target", "cpu_scalar", "--steps", 4, "--cflags", "-O1", *without)
    assert "they agree" in run.stdout


def test_dumps_show_what_fusion_did(openinfer, tmp_path):
    path = tmp_path / "chain.oi"
    path.write_text(GRAPHS["chain"])
    run = openinfer("synth", path, "-o", tmp_path / "out", "--dump-after", "fuse")
    assert "// matmul add relu: contract[3, 40, +40]" in run.stdout
    assert "exp" not in run.stdout  # nobody reads it
    assert "overwrites what the first reads" in run.stdout  # why h = h + t stays apart


def test_unknown_passes_are_named(openinfer, tmp_path):
    run = openinfer("synth", "x.oi", "-o", tmp_path / "out", "--without", "fues", code=2)
    assert "there is no pass 'fues'" in run.stderr


# A consumer's write that others must not see yet goes to a tensor of its own; where that cannot be spelled, the
# graph is refused: a program that differs from the simulator never comes out.
HIDDEN = """
dynamic {{ z: f32[4]; }}
volatile {{ x: f32[4]; y: f32[4]; w: f32[4]; limit: f32 @init(5.0); one: f32 @init(1.0); }}
block entry {{
  op add(z, z) >> x;
  yield x;
  op relu(z, clamp_max=limit) >> w;
  await x;
  return w, y, limit;
}}
block other {{
  await x;
  {body}
  yield x;
}}
block called {{
  transfer one >> limit;
  return;
}}
"""


@pytest.mark.parametrize(
    "body, words",
    [
        ("transfer one >> limit; op add(x, limit) >> y;", None),
        ("transfer one >> limit; op relu(x, clamp_max=limit) >> y;", "reads it as a number"),
        ("branch called; op add(x, x) >> y;", "a block that it calls uses it"),
    ],
)
def test_what_a_consumer_hides(openinfer, tmp_path, body, words):
    path = tmp_path / "hidden.oi"
    path.write_text(HIDDEN.format(body=body))
    run = openinfer("verify", path, "--target", "cpu_scalar", "--steps", 3, "--cflags", "-O1", code=1 if words else 0)
    assert "they agree" in run.stdout if words is None else words in run.stderr
