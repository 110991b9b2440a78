"""Small graphs for which the emitted C once computed something else than the simulator."""

import itertools
import json

import pytest

STRICT = "-O1 -Wall -Wextra -Werror -pedantic"
PACKED = {"i1": (-1, 0), "i2": (-2, 1), "i4": (-8, 7), "u1": (0, 1), "u2": (0, 3), "u4": (0, 15), "t1": (-1, 1), "t2": (-1, 1)}


def agree(openinfer, folder, text, *more):
    path = folder / "small.oi"
    path.write_text(text)
    result = openinfer("verify", path, "--target", "cpu_scalar", "--cflags", STRICT, *more)
    assert "they agree" in result.stdout
    return result


def graph(inputs, lines, outputs):
    """Inputs and outputs as name: type; the rest are lines of the entry block."""
    declared = " ".join(f"{name}: {kind};" for name, kind in inputs.items())
    results = " ".join(f"{name}: {kind};" for name, kind in outputs.items())
    body = "\n  ".join(lines)
    return f"dynamic {{ {declared} }}\nvolatile {{ {results} }}\nblock entry {{\n  {body}\n  return {', '.join(outputs)};\n}}\n"


# -- selections without elements -----------------------------------------------------------------------------

EMPTY_WRITES = """
dynamic {{ none: f32[0, 2]; some: f32[3, 0]; k: i32; x: f32[2]; }}
volatile {{ all: f32[?, 2]; hollow: f32[?, 0]; grid: f32[?, ?, 2]; first: f32[?]; }}
persistent {{
  T(i): f32[2] @table @cap(i=8);
  H(i): f32[0] @table @cap(i=8);
  G(i, j): f32[2] @table @cap(i=8, j=8);
  A(i): f32[2] @auto_dim(i) @fixed(i=8);
}}
block entry {{
  assign plane: f32[3, 0, 2];
  assign tail: f32[0];
  cache.write none >> T[k..k];
  cache.write some >> H[k..k + 3];
  cache.write plane >> G[1..4, k..k];
  cache.write tail >> A[k..k];
  {more}
  cache.read T >> all;
  cache.read H >> hollow;
  cache.read G >> grid;
  cache.read A >> first;
  return all, hollow, grid, first;
}}
"""


@pytest.mark.parametrize("more", ["", "cache.write x >> T[2];\n  cache.write x >> G[0, 5];"], ids=["alone", "beside others"])
@pytest.mark.parametrize("k", [0, 3, 6])
def test_a_write_without_elements_grows_nothing(openinfer, tmp_path, k, more):
    agree(openinfer, tmp_path, EMPTY_WRITES.format(more=more), "--set", f"k={k}", "--steps", 2)


def test_a_write_of_nothing_past_the_bound_fails_alike(openinfer, tmp_path):
    result = agree(openinfer, tmp_path, EMPTY_WRITES.format(more=""), "--set", "k=9", "--steps", 1)
    assert "1 of them ended with the same error" in result.stdout


# -- packed types --------------------------------------------------------------------------------------------


def all_calls(rows, of_class, dtypes):
    """Every row of the class that may take each element type, and how many inputs it needs."""
    for row in rows:
        n = len([i for i in row["inputs"] if not i["optional"]])
        for dtype in dtypes:
            if row["class"] == of_class and dtype in row["dtypes"] and n:
                yield row["name"], dtype, n


def takes(openinfer, folder, text):
    path = folder / "try.oi"
    path.write_text(text)
    return openinfer("check", path, code=None).returncode == 0


def test_reductions_of_packed_values_meet_a_fused_reader(openinfer, tmp_path):
    """Over nothing and over something; the cast reads the sum where it is, not from memory."""
    rows = json.loads(openinfer("ops", "--json").stdout)["ops"]
    inputs, lines, outputs = {}, [], {}
    for n, (name, dtype, _) in enumerate(c for c in all_calls(rows, "reduce", PACKED) if c[2] == 1):
        for length in (0, 3):
            x, t, y = f"x{n}_{length}", f"t{n}_{length}", f"y{n}_{length}"
            for attrs, shape in (("axes=[1]", "[5]"), ("axis=1, exclusive=true", f"[5, {length}]")):
                call = f"op {name}({x}, {attrs}) >> {t};"
                one = {x: f"{dtype}[5, {length}]"}, [f"assign {t}: {dtype}{shape};", call, f"op cast({t}, to=i8) >> {y};"], {y: f"i8{shape}"}
                if takes(openinfer, tmp_path, graph(*one)):
                    inputs |= one[0]
                    lines += one[1]
                    outputs |= one[2]
    assert len(outputs) > 60  # sum, prod, mean, max, min, cumsum, cumprod of six types each
    sets = [f"--set={x}=random:{i}:{lo}:{hi}" for i, x in enumerate(inputs) for lo, hi in [PACKED[inputs[x].split("[")[0]]]]
    agree(openinfer, tmp_path, graph(inputs, lines, outputs), *sets, "--steps", 3)


def test_packed_values_meet_a_fused_reader(openinfer, tmp_path):
    """Maps of every pair of values: each result is read by a cast before it was stored."""
    rows = json.loads(openinfer("ops", "--json").stdout)["ops"]
    inputs, lines, outputs, sets = {}, [], {}, []
    for dtype, (lo, hi) in PACKED.items():
        values = [v for v in range(lo, hi + 1) if v or dtype != "t1"]
        pairs = list(itertools.product(values, values))
        for side in (0, 1):
            inputs[f"{dtype}_{side}"] = f"{dtype}[{len(pairs)}]"
            sets.append(f"--set={dtype}_{side}=" + ",".join(str(pair[side]) for pair in pairs))
        for name, _, n in all_calls(rows, "map", [dtype]):
            t, y = f"t_{name}_{dtype}", f"y_{name}_{dtype}"
            attrs = {"shl": ", bits=1", "shr": ", bits=1"}.get(name, "")
            call = f"op {name}({', '.join(f'{dtype}_{s}' for s in range(n))}{attrs}) >> {t};"
            one = [f"assign {t}: {dtype}[{len(pairs)}];", call, f"op cast({t}, to=i8) >> {y};"]
            if n <= 2 and takes(openinfer, tmp_path, graph(inputs, one, {y: f"i8[{len(pairs)}]"})):
                lines += one
                outputs[y] = f"i8[{len(pairs)}]"
    assert len(outputs) > 60
    agree(openinfer, tmp_path, graph(inputs, lines, outputs), *sets, "--steps", 1)


# -- comments in a node's line -------------------------------------------------------------------------------

COMMENTS = """
dynamic { x: f32[4]; }
volatile { y: f32[4]; }
block entry {
  op add(x, x) /* inner /* deep */ */ >> y; // one
  op mul(x, /* a */ y) >> y; /* tail
  and */ op einsum(x, y, equation="i,i->i") >> y; /* b
  op relu(x) >> y; */
  op tanh(y) >> y; /* c */ op sub(y, x) >> y;
  return y;
}
"""


def test_comments_of_the_graph_stay_out_of_those_of_the_program(openinfer, tmp_path):
    """-Wcomment is an error here; what is quoted is the line without its comments."""
    agree(openinfer, tmp_path, COMMENTS, "--steps", 1, "--keep", tmp_path / "kept")
    text = (tmp_path / "kept/small.c").read_text()
    quoted = [line[len("/* small.oi:") : -len(" */")] for line in text.splitlines() if line.startswith("/* small.oi:")]
    assert sorted(set(quoted)) == [
        "5: op add(x, x) >> y;",
        "6: op mul(x, y) >> y;",
        '7: op einsum(x, y, equation="i,i->i") >> y;',
        "9: op tanh(y) >> y; op sub(y, x) >> y;",
    ]
