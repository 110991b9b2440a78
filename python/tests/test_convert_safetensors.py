"""safetensors: the same values as the safetensors package reads, and clear about broken files."""

from __future__ import annotations

import json
import struct

import pytest
from weight_files import converted, model_file, refused, safetensors_bytes, survive

np = pytest.importorskip("numpy")

from openinfer.oinf import read_oinf  # noqa: E402
from openinfer.oinf.convert import convert  # noqa: E402
from openinfer.oinf.convert.plan import Options  # noqa: E402


def entry(kind, shape, begin, end):
    return {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}


def test_files_of_the_safetensors_package(tmp_path):
    save = pytest.importorskip("safetensors.numpy").save
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(1)
    arrays = {
        f"a.{t}": rng.integers(0, 100, (3, 5)).astype(t)
        for t in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
    }
    arrays["b"] = rng.integers(0, 2, 7).astype(bool)
    arrays["bf16"] = rng.standard_normal((2, 2)).astype(ml_dtypes.bfloat16)
    arrays["scalar"] = np.array(2.5, np.float32)
    arrays["empty"] = np.zeros((0, 4), np.float32)
    with converted(tmp_path, save(arrays, {"format": "pt", "note": "a b"}), "x.safetensors") as p:
        assert sorted(p.tensors) == sorted(arrays)
        for name, a in arrays.items():
            assert p.tensors[name].dims == a.shape
            assert np.array_equal(p.tensors[name].numpy(), a.astype(np.float32) if name == "bf16" else a)
        assert p.meta_text("format") == "pt" and p.meta_text("note") == "a b"


def test_f8(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    codes = np.arange(256, dtype=np.uint8)
    header = {"e": entry("F8_E4M3", [256], 0, 256), "f": entry("F8_E5M2", [256], 256, 512)}
    with converted(tmp_path, safetensors_bytes(header, codes.tobytes() * 2), "x.safetensors") as p:
        for name, dtype, kind in (("e", "f16", ml_dtypes.float8_e4m3fn), ("f", "f8", ml_dtypes.float8_e5m2)):
            assert p.tensors[name].dtype.name == dtype
            want = codes.view(kind).astype(np.float32)
            assert np.array_equal(p.tensors[name].numpy().astype(np.float32), want, equal_nan=True)


def test_truth_values(tmp_path):
    with converted(tmp_path, safetensors_bytes({"b": entry("BOOL", [3], 0, 3)}, b"\0\1\7"), "x.safetensors") as p:
        assert bytes(p.tensors["b"].raw()) == b"\0\1\1"


@pytest.mark.parametrize("pattern", ["model.safetensors", "silero*.safetensors"])
def test_real_files(pattern, tmp_path):
    load = pytest.importorskip("safetensors.numpy").load_file
    source = model_file(pattern)
    convert([str(source)], str(tmp_path / "o"), Options(rename=["encoder.layer.{l}.attention.self.query.weight -> Wq.{l}"]))
    with read_oinf(tmp_path / "o", strict=True) as p:
        arrays = load(source)
        assert len(arrays) == len(p.tensors)
        for name, a in arrays.items():
            new = f"Wq.{name.split('.')[2]}" if name.endswith("self.query.weight") else name
            assert np.array_equal(p.tensors[new].numpy(), a), name


GOOD = {"__metadata__": {"k": "v"}, "a": entry("F32", [2], 0, 8), "b": entry("U8", [3], 8, 11)}
W = entry("F32", [2], 0, 8)
BROKEN = {
    "empty": (b"", "truncated"),
    "short": (b"\0\0\0", "truncated"),
    "length": (struct.pack("<Q", 2**63) + b"{}", "header of 9223372036854775808 bytes, at most"),
    "length past the end": (struct.pack("<Q", 100) + b"{}", "truncated: header of 100 bytes, 2 are left"),
    "no object": (safetensors_bytes(b"[1]"), "does not begin with '{'"),
    "no JSON": (safetensors_bytes(b'{"a": '), "not JSON"),
    "no UTF-8": (safetensors_bytes(b'{"\xff": 1}'), "not valid UTF-8"),
    "surrogate": (safetensors_bytes(b'{"\\ud800": 1}'), "not valid Unicode"),
    "surrogate in metadata": (safetensors_bytes(b'{"__metadata__": {"a": "\\ud800"}}'), "not valid Unicode"),
    "NaN": (safetensors_bytes(b'{"a": NaN}'), "NaN is not JSON"),
    "deep": (safetensors_bytes(b'{"a":' + b"[" * 100000), "not JSON"),
    "huge number": (safetensors_bytes(b'{"a":' + b"9" * 10000 + b"}"), "not JSON"),
    "duplicate": (safetensors_bytes(b'{"a": 1, "a": 2}'), "duplicate name 'a'"),
    "metadata": (safetensors_bytes({"__metadata__": {"k": 1}}), "__metadata__"),
    "metadata list": (safetensors_bytes({"__metadata__": []}), "__metadata__"),
    "entry": (safetensors_bytes({"a": 5}), "tensor 'a' wants dtype, shape and data_offsets"),
    "missing": (safetensors_bytes({"a": {"dtype": "F32"}}), "wants dtype"),
    "type": (safetensors_bytes({"a": entry("F31", [2], 0, 8)}, bytes(8)), "unknown type 'F31'"),
    "type list": (safetensors_bytes({"a": entry([], [2], 0, 8)}, bytes(8)), "unknown type"),
    "shape": (safetensors_bytes({"a": entry("F32", [-2], 0, 8)}, bytes(8)), "whole numbers"),
    "shape float": (safetensors_bytes({"a": entry("F32", [2.0], 0, 8)}, bytes(8)), "whole numbers"),
    "shape bool": (safetensors_bytes({"a": entry("F32", [True], 0, 4)}, bytes(4)), "whole numbers"),
    "shape rank": (safetensors_bytes({"a": entry("F32", [1] * 65, 0, 4)}, bytes(4)), "at most 64"),
    "product": (safetensors_bytes({"a": entry("F32", [2**40, 2**40], 0, 8)}, bytes(8)), "too many elements"),
    "offsets": (safetensors_bytes({"a": entry("F32", [2], 8, 0)}, bytes(8)), "truncated"),
    "offsets three": (safetensors_bytes({"a": {**W, "data_offsets": [0, 4, 8]}}, bytes(8)), "pair of whole numbers"),
    "past the end": (safetensors_bytes({"a": W}, bytes(7)), "truncated: tensor 'a' wants bytes 0 to 8 of 7"),
    "size": (safetensors_bytes({"a": entry("F32", [3], 0, 8)}, bytes(8)), "has 12 bytes, its offsets span 8"),
    "overlap": (safetensors_bytes({"a": W, "b": entry("F32", [2], 4, 12)}, bytes(12)), "tensors 'a' and 'b' overlap"),
    "hole": (safetensors_bytes({"a": W, "b": entry("U8", [1], 9, 10)}, bytes(10)), "1 bytes before tensor 'b'"),
    "rest": (safetensors_bytes({"a": W}, bytes(9)), "the last 1 bytes belong to no tensor"),
    "no name": (safetensors_bytes({"": W}, bytes(8)), "name is empty"),
    "not supported": (safetensors_bytes({"a": entry("C64", [1], 0, 8)}, bytes(8)), "its type C64 is not supported"),
}


@pytest.mark.parametrize("case", list(BROKEN))
def test_broken_files(case, tmp_path):
    data, reason = BROKEN[case]
    assert reason in refused(tmp_path, data, "x.safetensors")


def test_every_cut_is_an_error(tmp_path):
    data = safetensors_bytes(GOOD, bytes(11))
    for n in range(len(data)):
        refused(tmp_path, data[:n], "x.safetensors")


def test_mutants(tmp_path):
    data = safetensors_bytes(json.dumps(GOOD).encode() + b"  ", bytes(11))
    survive(tmp_path, data, "x.safetensors", seed=2, count=2500)
