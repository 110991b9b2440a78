"""oinf convert: rules, types, sizes, the command itself."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys

import pytest
from support import command_env
from weight_files import converted, gguf_bytes, refused

np = pytest.importorskip("numpy")

from openinfer.oinf import OinfError, dtype_of, read_oinf  # noqa: E402
from openinfer.oinf.convert import command, convert  # noqa: E402
from openinfer.oinf.convert.cast import cast_part  # noqa: E402
from openinfer.oinf.convert.plan import Options, parse_value  # noqa: E402
from openinfer.oinf.convert.progress import Progress  # noqa: E402
from openinfer.oinf.convert.rename import apply_rules, load_rules  # noqa: E402
from openinfer.oinf.convert.shape import apply_steps, parse_steps  # noqa: E402
from openinfer.oinf.convert.weights import Part, legal_name  # noqa: E402


def f32(*values):
    return struct.pack(f"<{len(values)}f", *values)


def layers(n=3):
    """Two tensors a layer and one more, as a GGUF file."""
    tensors = [(f"model.layers.{i}.self_attn.q_proj.weight", (2, 32), 8, bytes([i]) * 68) for i in range(n)]
    tensors += [(f"model.layers.{i}.norm.weight", (4,), 0, f32(i, 1, 2, 3)) for i in range(n)]
    return gguf_bytes([*tensors, ("model.rotary.inv_freq", (2,), 0, f32(1, 0.5))])


def test_rules():
    rules = load_rules([
        "model.layers.{l}.self_attn.q_proj.weight -> Wq.{l}", "*.inv_freq -> -", "a.{x}.{y} -> {y}.{x}", "keep.me -> =",
        "enc.{l}.{l} -> same.{l}", "pre.* -> *",
    ])  # fmt: skip
    for name, want in {
        "model.layers.12.self_attn.q_proj.weight": "Wq.12", "x.y.inv_freq": None, "a.1.2": "2.1", "keep.me": "keep.me",
        "enc.3.3": "same.3", "pre.any.thing": "any.thing",
    }.items():  # fmt: skip
        new, rule = apply_rules(rules, name)
        assert new == want and rule in rules
    for name in ("model.layers.1.2.self_attn.q_proj.weight", "model.layers..self_attn.q_proj.weight", "enc.3.4", "keepXme"):
        assert apply_rules(rules, name) == (name, None)
    assert [r.used for r in rules] == [1] * 6


def test_the_first_rule_decides(tmp_path):
    path = tmp_path / "rules"
    path.write_text("# names of one model\na.b -> first  # why\n\n*.b -> second\n")
    rules = load_rules([str(path), "* -> third"])
    assert [apply_rules(rules, n)[0] for n in ("a.b", "c.b", "d")] == ["first", "second", "third"]


@pytest.mark.parametrize("rule", ["a -> ", "-> b", "a -> b -> c", "a.{x} -> {y}", "a -> *", "* * * -> x", "a -> b | turn", "a -> b |", "a -> - | squeeze",
                                  "a -> b | reshape", "a -> b | reshape(x)", "a -> b | transpose(1"])  # fmt: skip
def test_wrong_rules(rule, tmp_path):
    with pytest.raises(OinfError, match="--rename: "):
        load_rules([rule])
    (tmp_path / "rules").write_text(f"ok -> ok\n{rule}\n")
    with pytest.raises(OinfError, match="rules:2: "):
        load_rules([str(tmp_path / "rules")])


def test_wrong_rule_files(tmp_path):
    (tmp_path / "r").write_bytes(b"\xff")
    with pytest.raises(OinfError, match="not valid UTF-8"):
        load_rules([str(tmp_path / "r")])
    (tmp_path / "r").write_text("no arrow")
    with pytest.raises(OinfError, match="PATTERN -> NAME"):
        load_rules([str(tmp_path / "r")])


RENAME = ["model.layers.{l}.self_attn.q_proj.weight -> Wq.{l}", "*.inv_freq -> -"]


def test_renamed_kept_and_dropped(tmp_path):
    with converted(tmp_path, layers(2), "x.gguf", rename=RENAME) as p:
        assert sorted(p.tensors) == [
            "Wq.0", "Wq.0.scale", "Wq.1", "Wq.1.scale", "model.layers.0.norm.weight", "model.layers.1.norm.weight",
        ]  # fmt: skip
        assert p.tensors["Wq.1"].dims == (2, 32) and p.tensors["Wq.1.scale"].dims == (2, 1)
    with converted(tmp_path, layers(1), "x.gguf", rename=RENAME, unmatched="drop") as p:
        assert sorted(p.tensors) == ["Wq.0", "Wq.0.scale"]
    with pytest.raises(OinfError, match="no rule matches model.layers.0.norm.weight and|no rule matches model"):
        converted(tmp_path, layers(1), "x.gguf", rename=RENAME, unmatched="error")


def numbers(package, name):
    return np.array(package.tensors[name].tolist()).reshape(package.tensors[name].dims)


@pytest.mark.parametrize("steps,change", [
    ("reshape(6, 4)", lambda x: x.reshape(6, 4)),
    ("reshape(-1)", lambda x: x.reshape(-1)),
    ("transpose", lambda x: x.transpose()),
    ("transpose(1, 2, 0, -1)", lambda x: x.transpose(1, 2, 0, 3)),
    ("squeeze", lambda x: x.squeeze()),
    ("squeeze(1) | transpose(2, 0, 1)", lambda x: x.squeeze(1).transpose(2, 0, 1)),
    ("reshape(3, 8) | transpose | reshape(4, -1)", lambda x: x.reshape(3, 8).T.reshape(4, -1)),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_another_shape_by_rule(tmp_path, steps, change, dtype):
    x = np.arange(24).reshape(2, 1, 12, 1).astype(dtype) if "12" in steps else np.arange(24).reshape(3, 1, 2, 4).astype(dtype)
    np.savez(tmp_path / "x.npz", w=x, v=x)
    convert([str(tmp_path / "x.npz")], str(tmp_path / "o"), Options(rename=[f"w -> W | {steps}"], sizevar=["N=W:0"]))
    with read_oinf(tmp_path / "o") as p:
        assert numbers(p, "W").shape == change(x).shape and (numbers(p, "W") == change(x)).all()
        assert p.sizevars["N"] == change(x).shape[0] and (numbers(p, "v") == x).all()


@pytest.mark.parametrize("bits,dtype", [(4, "i4"), (2, "u2"), (1, "u1")])
def test_packed_elements_are_transposed(bits, dtype):
    """Elements that are no whole byte, 5 x 3 of them, which end within a byte."""
    values = [(7 * i + 1) % (1 << bits) for i in range(15)]
    packed = sum(v << bits * i for i, v in enumerate(values)).to_bytes(-(-15 * bits // 8), "little")
    turned = apply_steps(Part("", dtype, (5, 3), lambda: iter([packed])), parse_steps("transpose", "x"))
    assert turned.dims == (3, 5)
    word = int.from_bytes(b"".join(map(bytes, turned.chunks())), "little")
    assert [word >> bits * i & (1 << bits) - 1 for i in range(15)] == [values[i % 5 * 3 + i // 5] for i in range(15)]


@pytest.mark.parametrize("steps,reason", [
    ("reshape(5, 5)", "[2, 3] has 6 elements"), ("reshape(-1, -1)", "one of them may be -1"), ("squeeze(0)", "only an axis of length 1"),
    ("transpose(0, 0)", "no axes of [2, 3]"), ("transpose(1)", "every axis of [2, 3] is wanted once"), ("squeeze(2)", "no axes"),
])  # fmt: skip
def test_shapes_that_do_not_fit(tmp_path, steps, reason):
    np.save(tmp_path / "w.npy", np.zeros((2, 3), np.float32))
    with pytest.raises(OinfError) as e:
        convert([str(tmp_path / "w.npy")], str(tmp_path / "o"), Options(rename=[f"w -> W | {steps}"]))
    assert reason in str(e.value) and "tensor 'w'" in str(e.value)
    assert not (tmp_path / "o").exists()


def test_blocks_keep_their_shape(tmp_path):
    rename = ["model.layers.{l}.self_attn.q_proj.weight -> Wq.{l} | transpose", "*.inv_freq -> -"]
    assert "keep their shape" in refused(tmp_path, layers(1), "x.gguf", rename=rename)
    with converted(tmp_path, layers(1), "x.gguf", rename=rename, dequantize=["Wq.*"]) as p:
        assert p.tensors["Wq.0"].dims == (32, 2)


def test_the_list_has_whole_names(tmp_path, capsys):
    name = "model." + "layer." * 30 + "weight"
    np.savez(tmp_path / "x.npz", **{name: np.zeros(2, np.float32)})
    assert command.main([str(tmp_path / "x.npz"), "--list"]) == 0
    assert f"{name} f4[2] -> {name}: f32[2]\n" in capsys.readouterr().out


def test_notes(tmp_path):
    (tmp_path / "x.gguf").write_bytes(gguf_bytes([("a b::c", (1,), 0, f32(1)), ("n", (1,), 0, f32(2))]))
    plan = convert([str(tmp_path / "x.gguf")], str(tmp_path / "o"), Options(rename=["n -> N", "q -> r"]))
    assert plan.notes == [
        "no rule matches a b::c: kept under their own names",
        "names outside [A-Za-z0-9._-] were changed: a b::c -> a_b_c",
        "no tensor matches the rule q -> r",
    ]
    assert sorted(read_oinf(tmp_path / "o").tensors) == ["N", "a_b_c"]


def test_two_tensors_with_one_name(tmp_path):
    text = refused(tmp_path, layers(2), "x.gguf", rename=["model.layers.{l}.norm.weight -> norm"])
    assert "'model.layers.0.norm.weight' and 'model.layers.1.norm.weight' would both be stored as 'norm'" in text
    data = gguf_bytes([("w", (32,), 8, bytes(34)), ("w.scale", (1,), 0, f32(1))])
    assert "'w' and 'w.scale' would both be stored as 'w.scale'" in refused(tmp_path, data, "x.gguf")


def test_several_files(tmp_path):
    for i in range(3):
        (tmp_path / f"{i}.gguf").write_bytes(gguf_bytes([(f"t{i}", (1,), 0, f32(i))], [("k", "u8", i)]))
    paths = [str(tmp_path / f"{i}.gguf") for i in range(3)]
    convert(paths, str(tmp_path / "o"))
    with read_oinf(tmp_path / "o") as p:
        assert [p.tensors[f"t{i}"].tolist() for i in range(3)] == [[0.0], [1.0], [2.0]] and p.meta("k") == 0
    with pytest.raises(OinfError, match="would both be stored"):
        convert(paths[:1] * 2, str(tmp_path / "o2"))


# ---- element types ------------------------------------------------------------------------


def cast(values, source, to, lossy=False):
    from openinfer.oinf.dtypes import decode_numpy, encode_list

    raw = encode_list(values, dtype_of(source))
    cut = max(len(raw) // 3, 1)  # chunks that end inside an element
    part = Part("", source, (len(values),), lambda: iter([raw[:cut], raw[cut:]]))
    out = cast_part(part, to, lossy)
    stored = b"".join(bytes(c) for c in out.chunks())
    return decode_numpy(stored, dtype_of(to), len(values)).tolist()


def test_casts_are_exact():
    inf = float("inf")
    assert cast([1.5, -2.0, inf, 2.0**-24], "f16", "f32") == [1.5, -2.0, inf, 2.0**-24]
    assert cast([1.5, -2.0, 0.0], "f32", "bf16") == [1.5, -2.0, 0.0]
    assert cast([1.5, -2.0, 65504.0], "f32", "f16") == [1.5, -2.0, 65504.0]
    assert np.isnan(cast([float("nan")], "f32", "f16")[0])
    assert cast([-3, 2, 7], "i4", "i8") == [-3, 2, 7]
    assert cast([0, 255], "u8", "f16") == [0, 255] and cast([-5, 100], "i64", "i8") == [-5, 100]
    assert cast([True, False], "bool", "u8") == [1, 0]


def test_casts_that_are_not():
    for values, source, to in [([0.1], "f32", "f16"), ([1.0, 1e-3], "f64", "bf16"), ([4097], "i32", "f16"), ([-9], "i8", "f8")]:
        with pytest.raises(OinfError, match=f"is not exact as {to}; --lossy rounds it"):
            cast(values, source, to)
    assert cast([0.1], "f32", "f16", lossy=True) == [float(np.float16(0.1))]
    with pytest.raises(OinfError, match="element 1 = 100000 is too large for f16"):
        cast([1.0, 1e5], "f32", "f16", lossy=True)
    with pytest.raises(OinfError, match="no conversion from f32 to i8"):
        cast([1.0], "f32", "i8")
    with pytest.raises(OinfError, match="i8: 300 is out of range"):
        cast([300], "i32", "i8")


def test_dtype_option(tmp_path):
    data = gguf_bytes([("a", (2,), 0, f32(1, 2)), ("b", (2,), 0, f32(3, 4)), ("i", (1,), 26, bytes(4)), ("q", (32,), 8, bytes(34))])
    with converted(tmp_path, data, "x.gguf", dtype=["b=bf16", "f16"]) as p:
        assert {k: t.dtype.name for k, t in p.tensors.items()} == {
            "a": "f16", "b": "bf16", "i": "i32", "q": "i8", "q.scale": "f16",
        }  # fmt: skip
        assert p.tensors["b"].tolist() == [3.0, 4.0]
    with converted(tmp_path, data, "x.gguf", dtype=["q=f16"], dequantize=["q"]) as p:
        assert p.tensors["q"].dtype.name == "f16" and "q.scale" not in p.tensors
    assert "stored in blocks (Q8_0)" in refused(tmp_path, data, "x.gguf", dtype=["q=f32"])
    for wrong in (["f99"], ["f16", "f32"], ["str"]):
        with pytest.raises(OinfError, match="dtype"):
            converted(tmp_path, data, "x.gguf", dtype=wrong)
    inexact = gguf_bytes([("a", (2,), 0, f32(1, 0.1))])
    with pytest.raises(OinfError, match="tensor a: element 1 = 0.1"):
        converted(tmp_path, inexact, "x.gguf", dtype=["f16"])
    assert not (tmp_path / "none").exists()


# ---- sizes and metadata ---------------------------------------------------------------------


def test_wrong_sizes(tmp_path):
    data = gguf_bytes([("w", (2, 3), 0, bytes(24))], [("dim", "u32", 5), ("f", "f32", 1.5), ("neg", "i8", -1), ("a", "u8[]", [1])])
    for item, reason in {
        "D": "wants NAME=VALUE", "D=": "wants NAME=VALUE", "D=dimm": "no metadata key 'dimm'; did you mean 'dim'",
        "D=x:0": "no tensor 'x'", "D=w:2": "there is no axis 2", "D=f": "not a whole number", "D=neg": "not a whole number",
        "D=a": "not a whole number", "a b=1": "does not match",
    }.items():  # fmt: skip
        with pytest.raises(OinfError, match=reason):
            converted(tmp_path, data, "x.gguf", sizevar=[item])
    with pytest.raises(OinfError, match="KEY=VALUE"):
        converted(tmp_path, data, "x.gguf", meta=["k"])
    assert not os.path.exists(tmp_path / "out.oinf")


def test_values():
    assert [parse_value(t) for t in ("true", "12", "-3", "1.5", "1e-5", "x", "1.2.3", "")] == [
        True, 12, -3, 1.5, 1e-5, "x", "1.2.3", "",
    ]  # fmt: skip


def test_legal_names():
    assert [legal_name(n) for n in ("a.b-c_1", "/a//b", "onnx::X", "", "\u00fc")] == ["a.b-c_1", "_a_b", "onnx_X", "_", "_"]


# ---- the command ------------------------------------------------------------------------------


def oinf(*args, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "openinfer.oinf", *args], env=command_env(), cwd=cwd, capture_output=True, text=True
    )


def test_command(tmp_path):
    (tmp_path / "x.gguf").write_bytes(layers(2))
    done = oinf("convert", "x.gguf", "-o", "m.oinf", "--rename", RENAME[0], "--rename", "z -> Z", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("m.oinf: 7 tensors from 5 (3 F32, 2 Q8_0), 0 sizes, 2 metadata; ")
    assert "oinf: no rule matches" in done.stderr and "oinf: no tensor matches the rule z -> Z" in done.stderr
    assert "[#" not in done.stderr  # no bar: stderr is not a terminal
    quiet = oinf("convert", "-q", "x.gguf", "-o", "m.oinf", "--rename", RENAME[0], cwd=tmp_path)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    listed = oinf("convert", "x.gguf", "--list", "--rename", RENAME[1], "--sizevar", "N=2", cwd=tmp_path)
    assert "model.rotary.inv_freq F32[2] -> -\n" in listed.stdout and "N := 2\n" in listed.stdout
    assert sorted(os.listdir(tmp_path)) == ["m.oinf", "x.gguf"]


def test_command_errors(tmp_path):
    (tmp_path / "x.gguf").write_bytes(layers(1))
    (tmp_path / "y.txt").write_text("hello")
    for args, code, text in [
        (["x.gguf"], 2, "--output or --list"), (["none.gguf", "-o", "m"], 1, "oinf: none.gguf: No such file or directory"),
        ([".", "-o", "m"], 1, "oinf: .: Is a directory"), (["y.txt", "-o", "m"], 1, "oinf: y.txt: not a format"),
        (["x.gguf", "-o", "no/m"], 1, "No such file or directory"), (["x.gguf", "-o", "x.gguf"], 1, "output is one of the inputs"),
        (["x.gguf", "-o", "m", "--rename", "none"], 1, "oinf: none: No such file"),
    ]:  # fmt: skip
        done = oinf("convert", *args, cwd=tmp_path)
        assert done.returncode == code and text in done.stderr, done.stderr
        assert code == 2 or done.stderr.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == ["x.gguf", "y.txt"]


def test_without_numpy(pure, tmp_path, capsys):
    (tmp_path / "x.gguf").write_bytes(layers(1))
    assert command.main([str(tmp_path / "x.gguf"), "-o", str(tmp_path / "m")]) == 1
    assert capsys.readouterr().err == "oinf: convert needs numpy, which is not installed\n"


def test_a_file_that_shrinks(tmp_path):
    """The temporary file goes, and the old package stays."""
    (tmp_path / "m").write_text("old")
    source = tmp_path / "x.gguf"
    source.write_bytes(layers(1))
    opened = command.open_all([str(source)])
    plan = command.make_plan(opened, Options())
    os.truncate(source, 64)
    with pytest.raises(OinfError, match="file became shorter while open"):
        command._write(plan, str(tmp_path / "m"), False)
    command.close_all(opened)
    assert sorted(os.listdir(tmp_path)) == ["m", "x.gguf"] and (tmp_path / "m").read_text() == "old"


def test_progress(capsys):
    ticks = iter([0.0, 0.05, 0.2, 0.4])
    bar = Progress(4000, True, lambda: next(ticks))
    chunks = bar.watch("w", lambda: iter([bytes(1000)] * 3))
    assert b"".join(chunks()) == bytes(3000)
    bar.close()
    err = capsys.readouterr().err
    assert err.count("\r[") == 2 and " 50% " in err and " 75% " in err and err.endswith("\r")
    quiet = Progress(4000, None)
    quiet.add("w", 10)
    quiet.close()
    assert capsys.readouterr().err == ""


def test_resident_memory(tmp_path):
    """The whole process, numpy included, stays far below a file of 256 MB."""
    n = 256 << 20
    header = json.dumps({"w": {"dtype": "F32", "shape": [n // 4096, 1024], "data_offsets": [0, n]}}).encode()
    with open(tmp_path / "x.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header)
        f.truncate(8 + len(header) + n)  # a hole: nothing of it is on the disk
    script = "import resource, sys; from openinfer.oinf.convert import main; main(sys.argv[1:]); " \
             "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"  # fmt: skip
    args = [str(tmp_path / "x.safetensors"), "-q", "-o", str(tmp_path / "o"), "--dtype", "f16"]
    done = subprocess.run([sys.executable, "-c", script, *args], env=command_env(), capture_output=True, text=True)
    assert (tmp_path / "o").stat().st_size > n // 2
    assert int(done.stdout) < 96 << 10, done.stdout  # kilobytes
