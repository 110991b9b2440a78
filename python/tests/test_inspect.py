"""The listing, to the byte; with numpy and without."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import tempfile

import pytest
from openinfer.oinf import (
    ArrayValue, Bitset, QuantParams, QuantScale, QuantZeroPoint, StreamTensor, TensorSpec, UninitializedTensor, read_oinf,
    write_package,
)
from openinfer.oinf import stats
from openinfer.oinf.dtypes import BY_NAME, decode_list, encode_list
from openinfer.oinf.inspect_text import inspect_json, inspect_text
from openinfer.oinf.stats import stats_of_raw, stats_of_values
from openinfer.oinf.verify_oinf import main
from support import SCALARS, command_env, patch, random_element, shared_folder


def listing(sizevars=None, metadata=None, tensors=None, **options):
    return inspect_text(read_oinf(write_package(sizevars or {}, metadata or {}, tensors or {}), **options))


def test_spec_example(both):
    quant = QuantParams("asymmetric", QuantScale.per_tensor(0.125), QuantZeroPoint.per_tensor(128))
    assert listing(
        {"B": 1024},
        {"mode": "clamp_up", "k": 3, "mask": Bitset([1, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0]), "table": ArrayValue([1, 2, 3], "i8")},
        {"w": TensorSpec([[1, 2, 3], [4, 5, 60]], "u8", quant=quant), "y": UninitializedTensor("f32", [4, 4])},
    ) == (
        "B := 1024\n"
        "\n"
        "k: u8 = 3\n"
        "mask: bitset[12] = 0d 02\n"
        'mode: str = "clamp_up"\n'
        "table: i8[3] = { 1, 2, 3 }\n"
        "\n"
        "w: u8[2, 3] = { \n"
        "{ 1, 2, 3 } ,\n"
        "{ 4, 5, 60 } ,\n"
        "}\n"
        "- [nbytes: 6, min: 1, max: 60, mean: 12.5, median: 3.5, std: 21.2818]\n"
        "- hist: {([1, 6.9], 5), ([54.1, 60], 1)}\n"
        "- quant: scheme=asymmetric, scale=per_tensor(0.125), zero_point=per_tensor(128)\n"
        "\n"
        "y: f32[4, 4] -- uninitialized\n"
    )


def test_shipped_example(both):
    shared = shared_folder()
    if shared is None:
        pytest.skip("no shared folder: set OPENINFER_SHARED")
    text = inspect_text(read_oinf(shared / "fixtures" / "oinf" / "accumulation_demo.oinf"))
    assert "w: f32[8, 6] = { \n{ -0.102449, -0.162755, 0.123196, 0.225794, -0.0227895, -0.168031 } ,\n" in text
    assert "- [nbytes: 192, min: -0.336574, max: 0.298988, mean: -0.000758176, median: 0.0259112, std: 0.144824]\n" in text
    assert "- hist: {([-0.336574, -0.273018], 2), " in text


def test_lengths_and_rows(both):
    assert "a: u8[10] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }\n" in listing(tensors={"a": TensorSpec(list(range(10)))})
    assert "a: u8[11] = { 0, 1, 2, 3, 4, ..., 6, 7, 8, 9, 10 }\n" in listing(tensors={"a": TensorSpec(list(range(11)))})
    rows = [[r * 12 + c for c in range(12)] for r in range(6)]
    text = listing(tensors={"a": TensorSpec(rows)})
    assert text.split("\n")[1] == "{ 0, 1, 2, 3, 4, ..., 7, 8, 9, 10, 11 } ,"
    assert text.split("\n")[5:8] == ["{ 48, 49, 50, 51, 52, ..., 55, 56, 57, 58, 59 } ,", "...", "}"]
    assert "...\n}" not in listing(tensors={"a": TensorSpec(rows[:5])})
    cube = TensorSpec([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    assert "a: u8[2, 2, 2] = { \n{ 1, 2, 3, 4 } ,\n{ 5, 6, 7, 8 } ,\n}\n" in listing(tensors={"a": cube})


def test_small_and_odd_tensors(both):
    assert listing(tensors={"a": TensorSpec([[2.5]])}) == (
        "a: f32[1, 1] = { \n{ 2.5 } ,\n}\n- [nbytes: 4, min: 2.5, max: 2.5, mean: 2.5, median: 2.5, std: 0]\n- hist: {([2.5, 2.5], 1)}\n"
    )
    assert listing(tensors={"a": StreamTensor("f32", [0, 4], b"")}) == "a: f32[0, 4] = { }\n- [nbytes: 0]\n"
    assert listing(tensors={"a": UninitializedTensor("f32", [])}) == "a: f32 -- uninitialized\n"
    assert listing(tensors={"a": UninitializedTensor("f32", [1])}) == "a: f32[1] -- uninitialized\n"
    assert listing(tensors={"a": TensorSpec([True, True])}) == (
        "a: bool[2] = { true, true }\n- [nbytes: 2, min: 1, max: 1, mean: 1, median: 1, std: 0]\n- hist: {([0, 0], 0), ([1, 1], 2)}\n"
    )
    assert listing(tensors={"a": TensorSpec([-8, 7, 7], "i4")}) == (
        "a: i4[3] = { -8, 7, 7 }\n- [nbytes: 2, min: -8, max: 7, mean: 2, median: 7, std: 7.07107]\n- hist: {([-8, -8], 1), ([7, 7], 2)}\n"
    )
    data = write_package({}, {}, {"a": TensorSpec([3, 255], "u8")})
    assert inspect_text(read_oinf(patch(data, 80, "<I", 13))).startswith("a: bitset[2] = { 3, 255 }\n- [nbytes: 2, min: 3, max: 255,")


def test_not_finite(both):
    nan, inf = math.nan, math.inf
    assert listing(tensors={"a": TensorSpec([nan, 1.0, -inf, inf, 2.0, -nan])}) == (
        "a: f32[6] = { nan, 1, -inf, inf, 2, nan }\n"
        "- [nbytes: 24, min: 1, max: 2, mean: 1.5, median: 1.5, std: 0.5, inf: 2, nan: 2]\n"
        "- hist: {([1, 1.1], 1), ([1.9, 2], 1)}\n"
    )
    assert listing(tensors={"a": TensorSpec([nan, nan])}) == "a: f32[2] = { nan, nan }\n- [nbytes: 8, nan: 2]\n- hist: {}\n"
    assert listing(tensors={"a": TensorSpec([0.0, -0.0])}) == (
        "a: f32[2] = { 0, -0 }\n- [nbytes: 8, min: 0, max: 0, mean: 0, median: 0, std: 0]\n- hist: {([0, 0], 2)}\n"
    )


def test_metadata_lines(both):
    text = listing(metadata={
        "a": ArrayValue([[1, 2], [3, 4]], "i8"), "b": ArrayValue(7, "i8"), "c": "two words", "d": Bitset([]), "e": Bitset([1] * 40),
        "f": 0.1, "g": True, "h": "", "i": ArrayValue([0.5], "bf16"),
    })  # fmt: skip
    assert text == (
        "a: i8[2, 2] = { \n{ 1, 2 } ,\n{ 3, 4 } ,\n}\n"
        "b: i8 = 7\n"
        'c: text[9] = "two words"\n'
        "d: bitset[0] = { }\n"
        "e: bitset[40] = ff ff ff ff\n"
        "f: f32 = 0.1\n"
        "g: bool = true\n"
        "h: u8[0] = { }\n"
        "i: bf16[1] = { 0.5 }\n"
    )


def test_strings_are_escaped():
    data = write_package({}, {"k": "abcdefgh"}, {})
    odd = data.replace(b"abcdefgh", 'a"\\\n\t\x01\u00e9'.encode())
    assert inspect_text(read_oinf(odd)) == 'k: str = "a\\"\\\\\\n\\t\\u0001\u00e9"\n'
    assert json.loads(inspect_json(read_oinf(odd)))["metadata"]["k"]["value"] == 'a"\\\n\t\x01\u00e9'


def test_per_channel_quant():
    quant = QuantParams("symmetric", QuantScale.per_channel(0, [0.5] * 12))
    line = "- quant: scheme=symmetric, scale=per_channel(axis=0, { 0.5, 0.5, 0.5, 0.5, 0.5, ..., 0.5, 0.5, 0.5, 0.5, 0.5 }), zero_point=none"
    assert listing(tensors={"a": UninitializedTensor("i8", [12], quant=quant)}).split("\n")[1] == line


@pytest.mark.parametrize("d", SCALARS, ids=lambda d: d.name)
def test_figures_do_not_depend_on_numpy(d):
    pytest.importorskip("numpy")
    rng = random.Random(d.tag)
    for n in (1, 2, 7, 1000):
        values = [random_element(rng, d) for _ in range(n)]
        if d.is_float and n > 2:
            values[1] = math.nan
        raw = encode_list(values, d)
        assert stats_of_raw(raw, d, n) == stats_of_values(decode_list(raw, d, n), d)
    if not d.is_float:
        for values in ([d.lo, d.hi], [d.lo] * 3):
            raw = encode_list(values, d)
            assert stats_of_raw(raw, d, len(values)) == stats_of_values([bool(v) for v in values] if d.kind == "bool" else values, d)


def test_extreme_floats(both):
    top = 1.7e308
    for values in ([top, top, -top], [top, top], [-top, top], [5e-324, 0.0], [5e-324, 1.5e-323, 0.0], [top, 0.0, -1.0]):
        text = listing(tensors={"a": TensorSpec(values, "f64")})
        counts = [int(part.split(")")[0]) for part in text.split("], ")[1:]]
        assert sum(counts) == len(values)


def test_integer_histogram_limit(both):
    assert "hist: {([0, 0], 1), ([20, 20], 1)}" in listing(tensors={"a": TensorSpec([0, 20], "u8")})
    assert "hist: {([0, 2.1], 1), ([18.9, 21], 1)}" in listing(tensors={"a": TensorSpec([0, 21], "u8")})


def test_json(both):
    quant = QuantParams("asymmetric", QuantScale.per_tensor(0.1), QuantZeroPoint.per_tensor(3))
    data = write_package({"B": 2}, {"f": 0.1, "a": ArrayValue([[1.0], [math.inf]], "f64"), "m": Bitset([1, 0]), "s": "x", "t": True},
                         {"w": TensorSpec([1], "i8", quant=quant), "v": UninitializedTensor("f16", [2, 2])})  # fmt: skip
    text = inspect_json(read_oinf(data))
    tree = json.loads(text)
    assert tree["metadata"] == {
        "f": {"dtype": "f32", "value": 0.100000001}, "a": {"dtype": "f64", "dims": [2, 1], "value": [1, "inf"]},
        "m": {"dtype": "bitset", "value": [1, 0]}, "s": {"dtype": "str", "value": "x"}, "t": {"dtype": "bool", "value": True},
    }  # fmt: skip
    w = tree["tensors"]["w"]
    assert w["quant"] == {"scheme": "asymmetric", "scale": {"mode": "per_tensor", "axis": 0, "values": [0.100000001]},
                          "zero_point": {"mode": "per_tensor", "axis": 0, "values": [3]}}  # fmt: skip
    assert (w["flags"], w["data_nbytes"], w["quant_nbytes"], w["quant_offset"] - w["data_offset"]) == (3, 1, 56, 8)
    assert tree["tensors"]["v"] == {"dtype": "f16", "dims": [2, 2], "flags": 0, "data_offset": 0, "data_nbytes": 0, "quant": None}
    assert json.dumps(tree, indent=2, sort_keys=True) + "\n" == text
    assert inspect_json(read_oinf(write_package({}, {}, {}))) == '{\n  "metadata": {},\n  "sizevars": {},\n  "tensors": {}\n}\n'


def test_command(tmp_path, capfdbinary):
    path = tmp_path / "x.oinf"
    path.write_bytes(write_package({"x": 1}, {"x": 2}, {"t": TensorSpec([1, 2]), "u": TensorSpec([3])}))
    assert main([str(path)]) == 0
    out, err = capfdbinary.readouterr()
    assert out.decode() == inspect_text(read_oinf(path)) and err.decode().startswith(f"oinf: {path}: warning: 'x' is both")
    assert main([str(path), "--tensor", "u", "--hist", "--strict"]) == 0
    assert capfdbinary.readouterr()[0].startswith(b"u: u8[1] = { 3 }\n- [")
    assert main([str(path), "--json", "--tensor", "u"]) == 0
    assert list(json.loads(capfdbinary.readouterr()[0])["tensors"]) == ["u"]
    assert main([str(path), "--tensor", "nope"]) == 1
    assert capfdbinary.readouterr() == (b"", f"oinf: {path}: no tensor named 'nope'\n".encode())
    assert main([str(tmp_path / "none")]) == 1
    assert capfdbinary.readouterr() == (b"", f"oinf: {tmp_path / 'none'}: No such file or directory\n".encode())
    path.write_bytes(b"OINF")
    assert main([str(path)]) == 1
    assert capfdbinary.readouterr() == (b"", f"oinf: {path}: 4 bytes is too short for a header (offset 0)\n".encode())


@pytest.mark.parametrize("name", ["f32", "i16", "u1"])
def test_figures_over_many_chunks(name, monkeypatch):
    pytest.importorskip("numpy")
    monkeypatch.setattr(stats, "_CHUNK", 16)
    d, rng = BY_NAME[name], random.Random(3)
    raw = encode_list([random_element(rng, d) for _ in range(1001)], d)
    assert stats_of_raw(raw, d, 1001) == stats_of_values(decode_list(raw, d, 1001), d)


def test_a_closed_pipe_is_not_an_error():
    with tempfile.NamedTemporaryFile(suffix=".oinf") as f:
        f.write(write_package({f"n{i}": i for i in range(20000)}, {}, {}))
        f.flush()
        done = subprocess.run(
            f"'{sys.executable}' -m openinfer.oinf.verify_oinf {f.name} | head -1", shell=True, capture_output=True, text=True, env=command_env()
        )
    assert (done.stdout, done.stderr) == ("n0 := 0\n", "")
