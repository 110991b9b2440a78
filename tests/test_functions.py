"""Kernels whose functions would be equal share one; which kernel implements which line stays known."""

import json
import re

import pytest

TWINS = """
dynamic { x: f32[4, 8]; A: f32[8, 8]; B: f32[8, 8]; p: f32[4, 8]; }
volatile { y: f32[4, 8]; z: f32[4, 8]; c: f32[4, 8]; d: f32[4, 8]; }
block entry {
  op matmul(x, A) >> y;
  op matmul(p, B) >> z;
  op clamp(p, min=0.0, max=1.0) >> c;
  op clamp(x, min=0.0, max=2.0) >> d;
  return y, z, c, d;
}
"""
OTHER = """
dynamic { u: f32[4, 8]; V: f32[8, 8]; }
volatile { w: f32[4, 8]; }
block entry { op matmul(u, V) >> w; return w; }
"""
OPEN = """
dynamic { x: f32[2]; }
volatile { y: f32[]; z: f32[]; }
persistent { t: i32 @init(0); K(t): f32[2] @table @cap(t=8); V(t): f32[2] @table @cap(t=8); }
block entry {
  assign k: f32[?, 2];
  assign v: f32[?, 2];
  cache.write x >> K[t];
  cache.write x >> V[t];
  cache.increment t;
  cache.read K[0..t] >> k;
  cache.read V[0..t] >> v;
  op sum_axis(k, axes=[0, 1], keepdims=false) >> y;
  op sum_axis(v, axes=[0, 1], keepdims=false) >> z;
  return y, z;
}
"""
WAYS = {
    "scalar": ["--target", "cpu_scalar"],
    "avx2": ["--target", "cpu_avx2", "--partition-all"],
    "nests": ["--target", "cpu_avx2", "--without", "recipes", "--without", "fuse"],
}


def emit(openinfer, folder, words, texts):
    paths = []
    for name, text in texts.items():
        paths.append(folder / f"{name}.oi")
        paths[-1].write_text(text)
    openinfer("synth", *paths, *words, "--name", "prog", "-o", folder / "out")
    plan = json.loads((folder / "out/plan.json").read_text())
    source = folder / "out/prog.c"
    return plan["kernels"], source.read_text() if source.exists() else ""


def lines(kernel):
    return kernel["lines"]


@pytest.mark.parametrize("way", WAYS)
def test_twins_share_a_function(openinfer, tmp_path, way):
    kernels, code = emit(openinfer, tmp_path, WAYS[way], {"twins": TWINS})
    products = [k for k in kernels if {5, 6} & set(lines(k)) and k["function"].startswith("matmul")]
    assert len(products) == 2 and len({k["name"] for k in products}) == 2
    assert sorted(lines(k)[0] for k in products) == [5, 6]
    (name,) = {k["function"] for k in products}
    assert len(re.findall(rf"^static void kernel_{name}\(", code, re.M)) == 1
    assert len(re.findall(rf"\bkernel_{name}\(", code)) == 3
    above = code[: code.index(f"static void kernel_{name}(")].rstrip().splitlines()[-4:]
    assert any("twins.oi:5:" in line for line in above) and any("twins.oi:6:" in line for line in above)
    report = (tmp_path / "out/report.html").read_text()
    assert all(f"<code>{k['name']}</code>" in report for k in products)


def test_other_numbers_are_another_function(openinfer, tmp_path):
    kernels, code = emit(openinfer, tmp_path, WAYS["nests"], {"twins": TWINS})
    clamps = {tuple(lines(k)): k["function"] for k in kernels if {7, 8} & set(lines(k))}
    assert len(clamps) == 2 and len(set(clamps.values())) == 2
    assert code.count("static void kernel_clamp") == 2


def test_graphs_of_a_program_share(openinfer, tmp_path):
    kernels, code = emit(openinfer, tmp_path, WAYS["scalar"], {"twins": TWINS, "other": OTHER})
    (name,) = {k["function"] for k in kernels if k["graph"] == 1}
    assert [k["graph"] for k in kernels if k["function"] == name] in ([0, 1], [0, 0, 1])
    assert code.count(f"static void kernel_{name}(") == 1


def test_a_shader_each(openinfer, tmp_path):
    words = ["--target", "vulkan_desktop", "--device-only", "--without", "fuse"]
    kernels, _ = emit(openinfer, tmp_path, words, {"twins": TWINS})
    functions = {k["function"] for k in kernels}
    assert len(functions) < len(kernels)
    assert {path.stem for path in (tmp_path / "out").glob("*.comp")} >= functions


@pytest.mark.parametrize("way", WAYS)
def test_they_agree_with_the_simulator(openinfer, tmp_path, way):
    path = tmp_path / "twins.oi"
    path.write_text(TWINS)
    sets = [w for n, name in enumerate("xABp") for w in ("--set", f"{name}=random:{n}:-1:1")]
    said = openinfer("verify", path, *WAYS[way], "--per-node", "--cflags", "-O1", *sets).stdout
    assert "they agree" in said


def test_lengths_of_a_run(openinfer, tmp_path):
    """A length is an argument of the function: both callers hand over their own."""
    kernels, _ = emit(openinfer, tmp_path, WAYS["scalar"], {"open": OPEN})
    sums = [k["function"] for k in kernels if k["function"].startswith("sum_axis")]
    assert len(sums) == 2 and len(set(sums)) == 1
    words = ["--target", "cpu_scalar", "--cflags", "-O1", "--steps", "4", "--set", "x=random:3:-1:1"]
    assert "they agree" in openinfer("verify", tmp_path / "open.oi", *words).stdout
