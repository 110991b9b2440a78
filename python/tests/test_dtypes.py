"""Packing, rounding and decoding, with numpy and ml_dtypes as judges when present."""

from __future__ import annotations

import array
import ctypes
import math
import random
import struct

import pytest
from openinfer.oinf import OinfError, dtypes
from openinfer.oinf.dtypes import (
    BY_NAME, TABLE, decode_list, decode_numpy, dtype_of, encode_list, encode_numpy, float_from_bits, float_to_bits,
    smallest_int,
)
from openinfer.oinf.values import encode_array, flatten
from support import SCALARS, random_element

CANONICAL = {"f16": 0x7E00, "bf16": 0x7FC0, "f8": 0x7D}


def test_table_is_the_spec():
    names = "i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 bool bitset str ndarray bf16 f8 i4 i2 i1 u4 u2 u1 t2 t1"
    assert [d.name for d in TABLE] == names.split()
    assert [d.tag for d in TABLE] == list(range(1, 26))
    assert dtype_of("f8e5m2") is dtype_of("float8e5m2") is BY_NAME["f8"]
    with pytest.raises(OinfError, match="unknown dtype 'float'"):
        dtype_of("float")


@pytest.mark.parametrize(
    "dtype,values,hexed",
    [
        ("i4", [-2, -1, 0, 1], "fe10"),
        ("i2", [-2, -1, 0, 1], "4e"),
        ("u1", [0, 1, 1, 0], "06"),
        ("i1", [0, -1, -1, 0], "06"),
        ("t1", [-1, 1, 1, -1], "06"),
        ("t2", [-1, 0, 1, -1, 1], "d301"),
        ("u4", [1, 2, 15], "210f"),
        ("u2", [0, 1, 2, 3, 1], "e401"),
        ("bool", [True, False], "0100"),
        ("i16", [-2], "feff"),
        ("f16", [1.0, -2.0], "003c00c0"),
        ("bf16", [1.0], "803f"),
        ("f8", [1.0, 1.9], "3c40"),
    ],
)
def test_packing_examples(dtype, values, hexed):
    raw = encode_list(values, dtype)
    assert raw.hex() == hexed
    if dtype != "f8":
        assert decode_list(raw, dtype, len(values)) == values


@pytest.mark.parametrize("d", SCALARS, ids=lambda d: d.name)
def test_round_trip_and_ranges_of_elements(d):
    rng = random.Random(d.tag)
    values = [random_element(rng, d) for _ in range(37)]
    raw = encode_list(values, d)
    assert len(raw) == d.nbytes(37)
    back = decode_list(raw, d, 37)
    assert encode_list(back, d) == raw
    if not d.is_float:
        assert back == values
    for start in range(0, 37, 5):
        assert decode_list(raw, d, min(6, 37 - start), start) == back[start : start + 6]
    assert encode_list([], d) == b"" and decode_list(b"", d, 0) == []


@pytest.mark.parametrize(
    "dtype,bad",
    [("i4", -9), ("i4", 8), ("t1", 0), ("t1", 2), ("t2", -2), ("t2", 2), ("u8", 256), ("u8", -1), ("i1", 1), ("u1", 2),
     ("bool", 2), ("i64", 2**63), ("u64", 2**64), ("i8", 1.0), ("i8", "1"), ("f32", "1"), ("f32", None), ("f64", 10**400)],
)  # fmt: skip
def test_out_of_range(dtype, bad):
    with pytest.raises(OinfError):
        encode_list([bad], dtype)


@pytest.mark.parametrize("dtype,bad", [("i4", 8), ("t1", 0), ("t2", 2), ("u8", -1), ("bool", 2), ("i8", 1.5)])
def test_out_of_range_numpy(dtype, bad):
    np = pytest.importorskip("numpy")
    with pytest.raises(OinfError):
        encode_numpy(np.array([bad]), dtype)


@pytest.mark.parametrize("name,bits", [("f16", 16), ("bf16", 16), ("f8", 8)])
def test_every_pattern_survives(name, bits):
    """Decode then encode is the identity, except that NaN becomes the canonical one."""
    raw = struct.pack(f"<{1 << bits}{'H' if bits == 16 else 'B'}", *range(1 << bits))
    for code, value in enumerate(decode_list(raw, name, 1 << bits)):
        assert float_to_bits(value, name) == (CANONICAL[name] if value != value else code)


def test_decode_f8_by_formula():
    for code in range(256):
        sign, e, m = -1.0 if code >> 7 else 1.0, code >> 2 & 31, code & 3
        got = float_from_bits(code, "f8")
        if e == 31:
            assert math.isnan(got) if m else got == sign * math.inf
        else:
            assert got == sign * (m * 2.0**-16 if e == 0 else (4 + m) * 2.0 ** (e - 17))


@pytest.mark.parametrize("name,top", [("f16", 65504.0), ("bf16", 3.3895313892515355e38), ("f8", 57344.0)])
def test_rounding_rules(name, top):
    half_ulp = (top - float_from_bits(float_to_bits(top, name) - 1, name)) / 2
    inf = float_to_bits(math.inf, name)
    assert float_to_bits(top + half_ulp, name) == inf  # a tie goes to the even side: infinity
    assert float_to_bits(math.nextafter(top + half_ulp, 0) if hasattr(math, "nextafter") else top, name) == inf - 1
    assert float_to_bits(1e300, name) == inf
    assert float_to_bits(-1e300, name) == inf | 1 << (7 if name == "f8" else 15)
    tiny = float_from_bits(1, name)
    assert float_to_bits(tiny / 2, name) == 0 and float_to_bits(tiny * 0.75, name) == 1
    assert float_to_bits(tiny * 1.5, name) == 2
    assert float_to_bits(-0.0, name) == 1 << (7 if name == "f8" else 15)
    assert float_to_bits(math.nan, name) == CANONICAL[name]


def test_rounds_once():
    # Through f32 this becomes a tie and rounds down to 1.0; once, it is above the tie.
    for name, m_bits in (("f16", 10), ("bf16", 7), ("f8", 2)):
        x = 1.0 + 2.0 ** -(m_bits + 1) + 2.0**-40
        assert float_from_bits(float_to_bits(x, name), name) == 1.0 + 2.0**-m_bits
    assert encode_list([1e39, -1e39, 1.0], "f32") == struct.pack("<3f", math.inf, -math.inf, 1.0)


def interesting_floats(count=20000):
    rng = random.Random(5)
    out = [0.0, -0.0, math.inf, -math.inf, math.nan, -math.nan, 5e-324, 1e-45, 65519.99, 65520.0, 3.4e38, 1e308]
    for _ in range(count):
        out.append(struct.unpack("<d", struct.pack("<Q", rng.getrandbits(64)))[0])
        out.append(rng.choice([-1, 1]) * math.ldexp(1 + rng.getrandbits(12) / 4096 + rng.choice([0, 2.0**-40]), rng.randint(-140, 130)))
    return out


@pytest.mark.parametrize("name", ["f16", "bf16", "f8", "f32"])
@pytest.mark.parametrize("source", ["float64", "float32", "float16"])
def test_numpy_rounds_like_lists(name, source):
    np = pytest.importorskip("numpy")
    with np.errstate(all="ignore"):
        a = np.array(interesting_floats(), np.float64).astype(source)
    if name == source.replace("float", "f"):
        assert bytes(encode_numpy(a, name)) == a.tobytes()
        return
    mine, theirs = encode_list(a.tolist(), name), bytes(encode_numpy(a, name))
    if name == "f32":  # NaN sign and payload are the hardware's affair
        mine, theirs = (np.where(np.isnan(v), np.float32(0), v).tobytes() for v in (np.frombuffer(mine, "<f4"), np.frombuffer(theirs, "<f4")))
    assert mine == theirs


@pytest.mark.parametrize("name,theirs", [("f16", "float16"), ("bf16", "bfloat16"), ("f8", "float8_e5m2")])
def test_against_ml_dtypes(name, theirs):
    np = pytest.importorskip("numpy")
    ml = pytest.importorskip("ml_dtypes")
    kind = getattr(ml, theirs, None) or np.float16
    width = np.uint8 if name == "f8" else np.uint16
    every = np.arange(1 << (8 if name == "f8" else 16), dtype=width)
    got = np.array(decode_list(every.tobytes(), name, every.size))
    with np.errstate(all="ignore"):
        want = every.view(kind).astype(np.float64)
        np.testing.assert_array_equal(want, got)
        np.testing.assert_array_equal(want, decode_numpy(every.tobytes(), name, every.size).astype(np.float64))
        # Values exact in f32: others may be rounded twice by the judge.
        a = np.array(interesting_floats(), np.float64).astype(np.float32)
        a = a[~np.isnan(a)]
        assert bytes(encode_numpy(a, name)) == a.astype(kind).tobytes()


@pytest.mark.parametrize("d", [d for d in SCALARS], ids=lambda d: d.name)
def test_numpy_decodes_and_packs_like_lists(d):
    np = pytest.importorskip("numpy")
    rng = random.Random(d.tag)
    values = [random_element(rng, d) for _ in range(1003)]
    raw = encode_list(values, d)
    assert decode_numpy(raw, d, 1003).tolist() == decode_list(raw, d, 1003)
    if not d.is_float:
        a = np.array(values, np.uint64 if d.name == "u64" else None)
        assert bytes(encode_numpy(a, d)) == raw
        assert bytes(encode_numpy(a[::-1], d)) == encode_list(values[::-1], d)
    junk = bytes(rng.getrandbits(8) for _ in range(d.nbytes(1003)))
    assert decode_numpy(junk, d, 1003).tolist() == pytest.approx(decode_list(junk, d, 1003), nan_ok=True, rel=0, abs=0)


def test_ml_dtypes_arrays_are_stored_as_they_are():
    np = pytest.importorskip("numpy")
    ml = pytest.importorskip("ml_dtypes")
    for theirs, name in (("bfloat16", "bf16"), ("float8_e5m2", "f8"), ("int4", "i4"), ("uint4", "u4")):
        a = np.array([0, 1, 2, 3, 5], getattr(ml, theirs))
        e = encode_array(a)
        assert (e.dtype.name, e.dims) == (name, (5,))
        data = e.data() if callable(e.data) else e.data
        assert bytes(data) == encode_list([float(v) for v in a] if e.dtype.is_float else [int(v) for v in a], name)


def test_big_endian_and_strided_numpy():
    np = pytest.importorskip("numpy")
    a = np.arange(6, dtype=">f4").reshape(2, 3).T
    assert bytes(encode_numpy(a)) == struct.pack("<6f", 0, 3, 1, 4, 2, 5)
    assert bytes(encode_numpy(np.arange(3, dtype=">i4"), "i16")) == struct.pack("<3h", 0, 1, 2)
    assert encode_numpy(np.zeros((0, 3), np.float32)) == b""
    with pytest.raises(OinfError):
        encode_numpy(np.array([1j]))


def data_of(e):
    return bytes(e.data() if callable(e.data) else e.data)


def test_buffers(both):
    e = encode_array(array.array("f", [1, 2]))
    assert (e.dtype.name, e.dims, data_of(e)) == ("f32", (2,), struct.pack("<2f", 1, 2))
    e = encode_array(array.array("d", [1, 2]), "bf16")
    assert (e.dtype.name, data_of(e).hex()) == ("bf16", "803f0040")
    e = encode_array(memoryview(b"\1\2\3\4").cast("B", (2, 2)))
    assert (e.dtype.name, e.dims, data_of(e)) == ("u8", (2, 2), b"\1\2\3\4")
    e = encode_array((ctypes.c_int16 * 2)(-1, 5))
    assert (e.dtype.name, e.dims, data_of(e)) == ("i16", (2,), struct.pack("<2h", -1, 5))
    e = encode_array(array.array("q", [1, 300]), as_metadata=True)
    assert (e.dtype.name, data_of(e)) == ("u16", struct.pack("<2H", 1, 300))
    e = encode_array((ctypes.c_float.__ctype_be__ * 2)(1, 2))
    assert (e.dtype.name, data_of(e)) == ("f32", struct.pack("<2f", 1, 2))


def test_flatten_and_inference(both):
    assert flatten([[1, 2], [3, 4], [5, 6]]) == ((3, 2), [1, 2, 3, 4, 5, 6])
    assert flatten(7) == ((), [7])
    assert flatten([[], []]) == ((2, 0), [])
    for ragged in ([[1, 2], [3]], [[1], 2], [1, [2]], [[[1]], [2]]):
        with pytest.raises(OinfError, match="ragged"):
            flatten(ragged)
    for values, name in (([1, 255], "u8"), ([1, 256], "u16"), ([-1, 127], "i8"), ([-1, 128], "i16"), ([2**63], "u64"),
                         ([-(2**31)], "i32"), ([1, 2.5], "f32"), ([True, False], "bool"), ([], "f32")):  # fmt: skip
        assert encode_array(values).dtype.name == name
    for bad in (["a"], [None], [1j], "text", [-1, 2**63], {"a": 1}):
        with pytest.raises(OinfError):
            encode_array(bad)
    with pytest.raises(OinfError):
        smallest_int(0, 2**64)


def test_strict_elements(both):
    assert decode_list(b"\x02", "bool", 1) == [True]
    assert decode_list(b"\x02", "t2", 4) == [-1, 0, 0, 0]
    for raw, name in ((b"\x00\x02", "bool"), (b"\x08", "t2")):
        with pytest.raises(OinfError, match="element 1"):
            decode_list(raw, name, 2, strict=True)
        if both == "numpy":
            with pytest.raises(OinfError, match="element 1"):
                decode_numpy(raw, name, 2, strict=True)


@pytest.mark.parametrize("d", SCALARS, ids=lambda d: d.name)
def test_numpy_chunks_join(d, monkeypatch):
    """Arrays longer than one chunk, ending inside one."""
    np = pytest.importorskip("numpy")
    monkeypatch.setattr(dtypes, "_CHUNK", 64)
    rng = random.Random(d.tag)
    values = [random_element(rng, d) for _ in range(64 * 3 + 5)]
    a = np.array(values, np.uint64 if d.name == "u64" else None)
    if d.name != "f64":  # stored as it is
        assert bytes(encode_numpy(a, d)) == encode_list(values, d)
    assert bytes(encode_numpy(a.reshape(-1, 1), d)) == encode_list(values, d)
