"""preferences.default_precision of a device file: simulator, synthesizer and verify see one program, and say so."""

import json
import re

import numpy as np
import pytest

GRAPH = """
dynamic {{ x: f32[1, 17, 96]; }}
persistent {{ pos: i32 @init(0); Kc(b, t): f16[32] @table @fixed(b=1, t=80); }}
volatile {{ a: f32[1, 17, 96]; y: f32[1, 17, 64]; z: f32[1, 17, 64]; best: i64[1, 17]; }}
constant {{ w: u4[64, 96] @init(9); scale: f16[64, 3] @init(0.01); offset: f16[64, 3] @init(-0.07); }}
block entry {{
  assign k: f32[1, 17, 32];
  assign k16: f16[1, 17, 32];
  assign ks: f16[1, 80, 32];
  assign r: f32[1, 17, 64];
  op slice(x, starts=[0], ends=[32], axes=[2]) >> k;
  op cast(k, to=f16) >> k16;
  cache.write k16 >> Kc[0..1, pos..pos+17];
  cache.read Kc >> ks;
  op sdpa(x, ks, ks, heads=6, kv_heads=2, causal=true, kv_len=pos+17{sdpa}) >> a;
  op qlinear(a, w, scale, offset, act="{first}") >> y;
  op silu(y) >> r;
  op qlinear(a, w, scale, offset{second}) >> z;
  op add(r, z) >> z;
  op argmax_axis(z, axis=2) >> best;
  cache.increment 17 pos;
  return a, y, z, best;
}}
"""
WRITTEN = GRAPH.format(sdpa="", first="q8", second="")
BY_HAND = {act: GRAPH.format(sdpa=f', act="{act}"', first=act, second=f', act="{act}"') for act in ("bf16", "f16")}
PREFERENCES = [("bf16", "bf16"), ("fp16", "f16")]  # default_precision, act
SET = ("--set", "x=random:7:-3:3")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "mm.oi").write_text(WRITTEN)
    for act, text in BY_HAND.items():
        (tmp_path / act).mkdir()
        (tmp_path / act / "mm.oi").write_text(text)
    return tmp_path


def device(folder, base, **preferences):
    path = folder / f"{base}_{'_'.join(preferences.values())}.json"
    feature = "fp16" if preferences.get("default_precision") == "fp16" else "bf16"
    path.write_text(json.dumps({"extends": base, "features": {feature: True}, "preferences": preferences}))
    return path


def arrays(openinfer, folder, graph, *words):
    out = folder / "out"
    run = openinfer("run", graph, *SET, "--device", "cpu:scalar", "--out", out, *words)
    return {n: np.load(out / f"{n}.npy") for n in ("a", "y", "z", "best")}, run.stderr


@pytest.mark.parametrize("preference, act", PREFERENCES)
def test_the_simulator(openinfer, files, preference, act):
    """The same bits as the graph with that `act` written by hand, and not those of the graph as it is."""
    lowered, said = arrays(openinfer, files, files / "mm.oi", "--target", device(files, "cpu_scalar", default_precision=preference))
    assert f"3 ops are computed in {act}: preferences.default_precision of" in said
    by_hand, said = arrays(openinfer, files, files / act / "mm.oi")
    assert act not in said
    written, _ = arrays(openinfer, files, files / "mm.oi")
    for name, value in lowered.items():
        assert value.dtype == written[name].dtype and value.shape == written[name].shape
        assert value.tobytes() == by_hand[name].tobytes()
    for name in "ayz":
        assert 0 < np.abs(lowered[name] - written[name]).max() < 0.02 * np.abs(written[name]).max()


def test_the_factors_are_rounded_so(openinfer, files):
    """qlinear in f16 is numpy's product of numbers of f16; one beyond 65504 is infinite."""
    given = np.random.default_rng(9).standard_normal((1, 17, 96)).astype(np.float32) * 3
    given[0, 0, 0] = 70000
    np.save(files / "x.npy", given)
    text = WRITTEN.replace('op qlinear(a, w, scale, offset, act="q8") >> y;', "").replace("qlinear(a,", "qlinear(x,").replace("op add(r, z) >> z;", "")
    (files / "mm.oi").write_text(text.replace("op silu(y) >> r;", ""))
    target = device(files, "cpu_avx2", default_precision="fp16")
    openinfer("run", files / "mm.oi", "--set", f"x={files}/x.npy", "--target", target, "--out", files / "out")
    z = np.load(files / "out/z.npy")
    real = np.float32(9) * np.float32(np.float16(0.01)) + np.float32(np.float16(-0.07))
    with np.errstate(over="ignore"):
        x = given.astype(np.float16).astype(np.float64)
    assert np.isinf(z[0, 0]).all()
    np.testing.assert_allclose(z[0, 1:, 0], x[0, 1:].sum(axis=1) * np.float64(np.float16(real)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("base", ["cpu_scalar", "cpu_avx2"])
@pytest.mark.parametrize("preference, act", PREFERENCES)
def test_the_program(openinfer, files, base, preference, act):
    """What the simulator gives under the same device, with outputs and state of the declared types: bit by bit where
    the order of sums is part of the definition."""
    target = device(files, base, default_precision=preference)
    run = openinfer("verify", files / "mm.oi", "--target", target, "--steps", 4, *SET, "--keep", files / "kept")
    rows = [line.split() for line in run.stdout.splitlines() if line.startswith(("output", "state"))]
    assert {r[1]: r[2] for r in rows} == {"a": "f32", "y": "f32", "z": "f32", "best": "i64", "pos": "i32", "Kc": "f16"}
    assert act == "f16" or {r[4] for r in rows} == {"0"}
    line = run.stdout.splitlines()[-1]
    assert line.startswith(f"precision: {act} in 3 ops by preferences.default_precision; against the graph as written: at most ")
    share = float(line.split("at most ")[1].split()[0])
    assert 1e-5 < share < 0.02 and "other outputs differ" in line
    by_hand = openinfer("verify", files / act / "mm.oi", "--target", base, "--steps", 4, *SET)
    assert [line.split() for line in by_hand.stdout.splitlines() if line.startswith(("output", "state"))] == rows
    assert "precision:" not in by_hand.stdout


def emit(openinfer, folder, graph, target):
    said = openinfer("synth", graph, "--target", target, "-o", folder).stderr
    return said, {f.name: f.read_bytes() for f in folder.iterdir()}


def test_it_is_reported(openinfer, files):
    said, out = emit(openinfer, files / "out", files / "mm.oi", device(files, "cpu_scalar", default_precision="bf16"))
    assert "3 ops are computed in bf16: preferences.default_precision of" in said
    sentence = b"3 ops are computed with act=%sbf16%s, not as the graph says: the device's preferences.default_precision."
    for name in ("mm.c", "mm.h"):
        assert sentence % (b'"', b'"') in out[name][:500]
    assert b"<b>Precision:</b> " + (sentence % (b"&quot;", b"&quot;")).replace(b"'", b"&#39;") in out["report.html"]
    precision = json.loads(out["plan.json"])["precision"]
    assert precision["act"] == "bf16"
    lines = WRITTEN.splitlines()
    assert [(o["op"], lines[o["line"] - 1].split("(")[0].strip()) for o in precision["ops"]] == [
        ("sdpa", "op sdpa"), ("qlinear", "op qlinear"), ("qlinear", "op qlinear")]  # fmt: skip
    assert json.loads(out["device.json"])["preferences"]["default_precision"] == "bf16"


def test_the_code_is_that_of_the_graph_by_hand(openinfer, files):
    """But for what is said about it."""
    _, lowered = emit(openinfer, files / "a", files / "mm.oi", device(files, "cpu_avx2", default_precision="bf16"))
    _, by_hand = emit(openinfer, files / "b", files / "bf16/mm.oi", "cpu_avx2")

    def code(text):
        said = ("/*", " *", "#define OI_STATE_HASH ")  # the hash is of the graph as written
        return [line for line in text.decode().splitlines() if not line.startswith(said)]

    assert code(lowered["mm.c"]) == code(by_hand["mm.c"])


@pytest.mark.parametrize("preference", ["fp32", "int8", "fp64"])
def test_nothing_else_follows(openinfer, files, preference):
    """Without it, or with another value, the same bytes; a value without effect is said to have none."""
    plain_said, plain = emit(openinfer, files / "a", files / "mm.oi", "cpu_avx2")
    said, out = emit(openinfer, files / "b", files / "mm.oi", device(files, "cpu_avx2", default_precision=preference))
    assert {n: t for n, t in out.items() if n != "device.json"} == {n: t for n, t in plain.items() if n != "device.json"}
    assert "precision" not in plain_said and b"default_precision" not in plain["mm.c"]
    assert ("warning[W191]: nothing follows from" in said) == (preference != "fp32")


def test_few_rows(openinfer, files):
    """Less than a tile has: as written, and nothing is said."""
    (files / "few.oi").write_text(WRITTEN.replace("17", "15"))
    _, out = emit(openinfer, files / "a", files / "few.oi", "cpu_avx2")
    said, few = emit(openinfer, files / "b", files / "few.oi", device(files, "cpu_avx2", default_precision="bf16"))
    assert few["few.c"] == out["few.c"] and "bf16" not in said


def test_two_graphs(openinfer, files):
    """As written they share one state, too."""
    (files / "n.oi").write_text(WRITTEN)
    run = openinfer("verify", files / "mm.oi", files / "n.oi", "--target", device(files, "cpu_scalar", default_precision="bf16"),
                    "--steps", 2, "--in-turn", *SET)  # fmt: skip
    assert "4 steps compared: they agree" in run.stdout and "precision: bf16 in 6 ops" in run.stdout


def test_the_profile(openinfer):
    text = json.loads(openinfer("targets", "cpu_amx_bf16").stdout)
    assert text["preferences"]["default_precision"] == "bf16" and "amx_bf16" in text["cpu"]["isa"]


def test_the_devices_of_the_description(openinfer, files):
    """ada_mock.json asks for fp16 and has the arithmetic: nothing is warned about, and shaders round as the simulator does."""
    target = files / "ada.json"
    target.write_text(json.dumps({"extends": "vulkan_generic", "features": {"fp16": True}, "preferences": {"default_precision": "fp16"}}))
    said = openinfer("synth", files / "mm.oi", "--target", target, "--device-only", "-o", files / "shaders")
    assert "W191" not in said.stderr and "3 ops are computed in f16" in said.stderr
    by_hand = openinfer("synth", files / "f16/mm.oi", "--target", "vulkan_generic", "--device-only", "-o", files / "by_hand")
    code = [{f.name: re.sub(r"//.*|/\*.*?\*/", "", f.read_text(), flags=re.S) for f in (files / d).glob("*.comp")} for d in ("shaders", "by_hand")]
    assert code[0] and code[0] == code[1], by_hand.stderr
