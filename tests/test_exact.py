"""Programs whose recipes compute what the definition does, bit by bit: 8-bit activations forgive no other rounding."""

import pathlib
import platform

import pytest

from conftest import REPO

ATTENTION = """
dynamic {{ x: f32[1, {t}, 192]; m: {mask}[1, 1, {t}, 40]; }}
persistent {{ pos: i32 @init(0); Kc(b, t): f16[64] @table @fixed(b=1, t=40); Vc(b, t): f16[64] @table @fixed(b=1, t=40); }}
volatile {{ a: f32[1, {t}, 192]; y: f32[1, {t}, 64]; }}
constant {{ w: u4[64, 192] @init(9); scale: f16[64, 6] @init(0.01); offset: f16[64, 6] @init(-0.07); }}
block entry {{
  assign k: f32[1, {t}, 64];
  assign v: f32[1, {t}, 64];
  assign k16: f16[1, {t}, 64];
  assign v16: f16[1, {t}, 64];
  assign ks: f16[1, 40, 64];
  assign vs: f16[1, 40, 64];
  op slice(x, starts=[0], ends=[64], axes=[2]) >> k;
  op slice(x, starts=[128], ends=[192], axes=[2]) >> v;
  op cast(k, to=f16) >> k16;
  op cast(v, to=f16) >> v16;
  cache.write k16 >> Kc[0..1, pos..pos+{t}];
  cache.write v16 >> Vc[0..1, pos..pos+{t}];
  cache.read Kc >> ks;
  cache.read Vc >> vs;
  op sdpa(x, ks, vs{given}, heads=6, kv_heads=2, causal=true, kv_len=pos+{t}) >> a;
  op qlinear(a, w, scale, offset, act="q8") >> y;
  cache.increment {t} pos;
  return a, y;
}}
"""


@pytest.mark.parametrize("target", ["cpu_avx2", "cpu_avx512", "cpu_neon"])
@pytest.mark.parametrize("t, mask, given", [(1, "f32", ""), (9, "bool", ""), (1, "f32", ", m"), (9, "bool", ", m")])
def test_attention_is_the_simulators(openinfer, needs_target, tmp_path, target, t, mask, given):
    needs_target(target)
    path = tmp_path / "attention.oi"
    path.write_text(ATTENTION.format(t=t, mask=mask, given=given))
    run = openinfer("verify", path, "--target", target, "--steps", 4, "--set", "x=random:7:-3:3", "--set",
                    "m=random:8:0:1", "--keep", tmp_path / "kept")  # fmt: skip
    worst = [line.split()[4] for line in run.stdout.splitlines() if line.startswith(("output", "state"))]
    assert len(worst) == 5 and set(worst) == {"0"}, run.stdout
    assert "oi_sdpa_some" in (tmp_path / "kept" / "attention.c").read_text()


ROUNDED = """
dynamic {{ x: f32[1, {t}, 192]; m: u8[{t}, 70]; }}
persistent {{ pos: i32 @init(0); Kc(b, t): f16[64] @table @fixed(b=1, t=70); }}
volatile {{ a: f32[1, {t}, 192]; }}
block entry {{
  assign k: f32[1, {t}, 64];
  assign k16: f16[1, {t}, 64];
  assign ks: f16[1, 70, 64];
  op slice(x, starts=[64], ends=[128], axes=[2]) >> k;
  op cast(k, to=f16) >> k16;
  cache.write k16 >> Kc[0..1, pos..pos+{t}];
  cache.read Kc >> ks;
  op sdpa(x, ks, ks{given}, heads=6, kv_heads=2, causal=true, kv_len=pos+{t}, act="bf16") >> a;
  cache.increment {t} pos;
  return a;
}}
"""
MADE_OF = {"cpu_scalar": None, "cpu_avx2": "oi_sdpa_step_sums", "cpu_avx512": "oi_sdpa_step_sums", "cpu_neon": "oi_sdpa_step_sums", "cpu_amx": "_tile_dpbf16ps"}


@pytest.mark.parametrize("target, emulated", [
    *[(target, False) for target in MADE_OF], pytest.param("cpu_amx", True, marks=pytest.mark.emulated),
])  # fmt: skip
@pytest.mark.parametrize("t, given", [(1, ""), (17, ""), (17, ", m")])
def test_attention_with_rounded_factors_is_the_simulators(openinfer, needs_target, tmp_path, target, emulated, t, given):
    """act="bf16": tiles sum as the definition does; a single query is no work for them."""
    if not emulated:
        needs_target(target)
    elif not (platform.machine() == "x86_64" and pathlib.Path("/usr/include/simde").exists()):
        pytest.skip("tiles are emulated on an x86 with libsimde-dev")
    path = tmp_path / "attention.oi"
    path.write_text(ROUNDED.format(t=t, given=given))
    cc = ["--cc", REPO / "tests/emulate/cc", "--cflags", "-O1 -Werror"] if emulated else []
    run = openinfer("verify", path, "--target", target, "--steps", 4, "--set", "x=random:7:-3:3", "--set",
                    "m=random:8:0:2", "--keep", tmp_path / "kept", *cc)  # fmt: skip
    worst = [line.split()[4] for line in run.stdout.splitlines() if line.startswith(("output", "state"))]
    assert len(worst) == 3 and set(worst) == {"0"}, run.stdout
    made_of = "oi_sdpa_step_sums" if target == "cpu_amx" and t == 1 else MADE_OF[target]
    assert made_of is None or made_of in (tmp_path / "kept" / "attention.c").read_text()


@pytest.mark.parametrize("target", ["cpu_avx2", "cpu_avx512", "cpu_amx"])
def test_a_language_model_is_the_simulators(openinfer, needs_target, target):
    """A chunk of a prompt, then tokens, each on what the program itself computed before."""
    needs_target(target)
    model = REPO / "build/models/smollm2"
    if not (model / "decode.oi").exists():
        pytest.skip(f"{model} is not there: make models")
    run = openinfer("verify", model / "prefill.oi", model / "decode.oi", "--model", model / "model.oinf", "--target",
                    target, "--steps", 3, "--set", "tokens=random:7:1:40000", "--set", "n=32", "--set", "more=0", timeout=600)  # fmt: skip
    worst = [line.split()[4] for line in run.stdout.splitlines() if line.startswith(("output", "state"))]
    assert len(worst) == 5 and set(worst) == {"0"}, run.stdout
