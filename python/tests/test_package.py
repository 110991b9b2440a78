"""Whole packages: the worked example, shipped files, round trips, streaming, fuzzing."""

from __future__ import annotations

import os
import random
import struct

import pytest
from openinfer.oinf import (
    ArrayValue, Bitset, OinfError, PackageWriter, QuantParams, QuantScale, QuantZeroPoint, ScalarValue, SizeVar,
    StreamTensor, TensorSpec, UninitializedTensor, read_oinf, write_package,
)
from openinfer.oinf.inspect_text import inspect_json, inspect_text
from support import SCALARS, random_element, random_tables, shared_folder

# Spec section 8, byte for byte.
WORKED = bytes.fromhex(
    "4F494E4600" "02000000" "00000000" "01000000" "00000000" "01000000" "00000000"
    "4800000000000000" "5800000000000000" "5800000000000000" "9800000000000000" "D800000000000000" "000000"
    "01000000" "44" "000000" "1000000000000000"
    "04000000" "7A65726F" "0A000000" "01000000" "01000000" "1000000000000000"
    "4000000000000000" "9800000000000000" "0000000000000000" "0000000000000000" "00000000"
) + bytes(64)  # fmt: skip


def test_worked_example(both):
    assert len(WORKED) == 216
    assert write_package({"D": 16}, {}, {"zero": TensorSpec([0.0] * 16)}) == WORKED
    p = read_oinf(WORKED, strict=True)
    assert p.sizevars == {"D": 16} and p.tensors["zero"].tolist() == [0.0] * 16
    assert p.tensors["zero"].data_offset == 152 and not p.warnings


def test_worked_example_is_the_shipped_file():
    shared = shared_folder()
    if shared is None:
        pytest.skip("no shared folder: set OPENINFER_SHARED")
    assert (shared / "fixtures" / "oinf" / "kv_cache_decode.oinf").read_bytes() == WORKED


@pytest.mark.parametrize("use_mmap", [True, False])
def test_shipped_files_open_and_rewrite(fixture_path, use_mmap, tmp_path):
    original = fixture_path.read_bytes()
    with read_oinf(fixture_path, strict=True, use_mmap=use_mmap) as p:
        assert not p.warnings
        assert p.to_bytes() == original
        p.save(tmp_path / "copy.oinf")
        assert (tmp_path / "copy.oinf").read_bytes() == original
        # and from decoded values, not only from stored bytes
        tensors = {k: TensorSpec(t.tolist(), t.dtype.name) for k, t in p.tensors.items()}
        assert write_package(p.sizevars, p.metadata, tensors) == original
        assert inspect_text(p).endswith("}\n")


@pytest.mark.parametrize("d", SCALARS, ids=lambda d: d.name)
def test_every_tag_round_trips(d, both):
    rng = random.Random(d.tag)
    values = [random_element(rng, d) for _ in range(15)]
    rows = [values[i * 5 : i * 5 + 5] for i in range(3)]
    data = write_package({}, {"s": ScalarValue(values[0], d.name), "a": ArrayValue(rows, d.name)},
                         {"t": TensorSpec(rows, d.name), "z": TensorSpec([], d.name), "r0": TensorSpec(values[0], d.name)})  # fmt: skip
    p = read_oinf(data, strict=True)
    assert p.tensors["t"].tolist() == p.meta("a")
    assert p.tensors["t"].dims == (3, 5) and p.tensors["t"].dtype is d
    assert p.tensors["z"].tolist() == [] and p.tensors["r0"].tolist() == p.meta("s")
    if not d.is_float:
        assert p.tensors["t"].tolist() == rows and p.meta("s") == values[0]
    if both == "numpy":
        assert p.tensors["t"].numpy().tolist() == p.tensors["t"].tolist()
        assert p.metadata["a"].numpy().shape == (3, 5)
    assert p.to_bytes() == data


def test_metadata_values_and_text():
    values = {
        "b": True, "i": 3, "neg": -1, "big": 2**40, "f": 0.5, "name": "clamp_up", "text": "two words", "empty": "",
        "bits": Bitset([1, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0]), "list": [1, 2, 3], "raw": b"\1\2", "r0": ArrayValue(7, "i8"),
    }  # fmt: skip
    data = write_package({}, values, {})
    p = read_oinf(data, strict=True)
    assert {k: (v.kind, v.dtype.name) for k, v in p.metadata.items()} == {
        "b": ("scalar", "bool"), "i": ("scalar", "u8"), "neg": ("scalar", "i8"), "big": ("scalar", "u64"),
        "f": ("scalar", "f32"), "name": ("str", "str"), "text": ("ndarray", "u8"), "empty": ("ndarray", "u8"),
        "bits": ("bitset", "bitset"), "list": ("ndarray", "u8"), "raw": ("ndarray", "u8"), "r0": ("ndarray", "i8"),
    }  # fmt: skip
    assert p.meta("bits") == values["bits"] and p.meta("r0") == 7
    assert [p.meta_text(k) for k in ("name", "text", "empty")] == ["clamp_up", "two words", ""]
    assert p.metadata["bits"].payload_nbytes == 16
    for key in ("i", "missing", "r0"):
        with pytest.raises(OinfError):
            p.meta_text(key)
    assert p.to_bytes() == data
    bad_utf8 = read_oinf(write_package({}, {"t": b"\xff"}, {}))
    with pytest.raises(OinfError, match="not UTF-8"):
        bad_utf8.meta_text("t")


def test_any_utf8_str_is_read_and_normalised_on_writing():
    data = write_package({}, {"k": "abcd.efg"}, {})
    at = data.index(b"abcd.efg")
    foreign = data[:at] + "a b/\u00e9xy".encode() + data[at + 8 :]
    p = read_oinf(foreign, strict=True)
    assert p.meta("k") == p.meta_text("k") == "a b/\u00e9xy"
    assert read_oinf(p.to_bytes()).metadata["k"].kind == "ndarray"


def test_quant_is_written_after_its_tensor_and_read_back():
    per_tensor = QuantParams("asymmetric", QuantScale.per_tensor(0.125), QuantZeroPoint.per_tensor(128))
    per_channel = QuantParams("symmetric", QuantScale.per_channel(1, [0.1, 0.2, 0.3]))
    data = write_package({}, {}, {
        "a": TensorSpec([[1, 2, 3], [4, 5, 6]], "u8", quant=per_tensor),
        "b": TensorSpec([[1, 2, 3], [4, 5, 6]], "i4", quant=per_channel),
        "c": UninitializedTensor("i8", [4], quant=per_tensor),
    })  # fmt: skip
    p = read_oinf(data, strict=True)
    assert p.tensors["a"].quant == per_tensor and p.tensors["b"].quant == per_channel
    a, b, c = (p.tensors[k] for k in "abc")
    assert (a.data_offset, a.quant_offset) == (b.data_offset - 64, a.data_offset + 8)
    assert (a.quant_nbytes, b.quant_nbytes) == (56, 64)
    assert (c.flags, c.quant_offset, c.quant) == (2, b.quant_offset + 64, per_tensor)
    assert p.to_bytes() == data
    assert data[a.quant_offset :][:56] == struct.pack("<4I4Qfi", 2, 1, 1, 0, 0, 1, 0, 1, 0.125, 128)


@pytest.mark.parametrize(
    "quant",
    [
        QuantParams("odd", QuantScale.per_tensor(1)),
        QuantParams("symmetric", QuantScale.per_tensor(0)),
        QuantParams("symmetric", QuantScale.per_tensor(1e-60)),
        QuantParams("symmetric", QuantScale.per_tensor(float("inf"))),
        QuantParams("symmetric", QuantScale.per_tensor(1), QuantZeroPoint.per_tensor(0)),
        QuantParams("asymmetric", QuantScale.per_channel(0, [1, 1]), QuantZeroPoint.per_tensor(0)),
        QuantParams("asymmetric", QuantScale.per_tensor(1), QuantZeroPoint.per_channel(0, [1, 1])),
        QuantParams("asymmetric", QuantScale.per_channel(0, [1, 1]), QuantZeroPoint.per_channel(1, [1, 1, 1])),
        QuantParams("symmetric", QuantScale.per_channel(2, [1, 1])),
        QuantParams("symmetric", QuantScale.per_channel(-1, [1, 1])),
        QuantParams("symmetric", QuantScale.per_channel(0, [1])),
        QuantParams("asymmetric", QuantScale.per_tensor(1), QuantZeroPoint.per_tensor(2**31)),
        "symmetric",
    ],
)
def test_bad_quant_is_not_written(quant):
    with pytest.raises(OinfError, match="tensor t: .*"):
        write_package({}, {}, {"t": TensorSpec([[1, 2, 3], [4, 5, 6]], "i8", quant=quant)})


def test_tables_are_sorted_and_insertion_order_is_irrelevant():
    a = write_package({"b": 1, "B": 2, "a.": 3}, {"y": 1, "x": 2}, {"t2": TensorSpec([1]), "t10": TensorSpec([2])})
    b = write_package({"a.": 3, "b": 1, "B": 2}, {"x": 2, "y": 1}, {"t10": TensorSpec([2]), "t2": TensorSpec([1])})
    assert a == b
    p = read_oinf(a)
    assert list(p.sizevars) == ["B", "a.", "b"] and list(p.tensors) == ["t10", "t2"]


def test_streaming_writer_holds_one_chunk(tmp_path):
    alive = []

    def chunks():
        for i in range(64):
            alive.append(i)
            yield bytes([i]) * 1024

    path = tmp_path / "big.oinf"
    with PackageWriter(path) as w:
        w.add_sizevar("N", SizeVar(64))
        w.add_tensor("w", StreamTensor("u8", [64, 1024], chunks))
        w.add_tensor("v", StreamTensor("u8", [3], [b"a", b"bc"]))
        assert not alive and not path.exists()
    assert len(alive) == 64 and os.listdir(tmp_path) == ["big.oinf"]
    with read_oinf(path, strict=True) as p:
        assert bytes(p.tensors["w"].raw()[1024:1025]) == b"\1" and bytes(p.tensors["v"].raw()) == b"abc"
        assert path.read_bytes() == p.to_bytes()


@pytest.mark.parametrize("chunks", [[b"ab"], [b"abc", b"d"], b"", lambda: [b"abcdef"]])
def test_wrong_amount_of_data_leaves_no_file(chunks, tmp_path):
    with pytest.raises(OinfError, match="tensor v: expected 3 bytes of data"):
        with PackageWriter(tmp_path / "x.oinf") as w:
            w.add_tensor("v", StreamTensor("u8", [3], chunks))
    assert os.listdir(tmp_path) == []


def test_existing_file_survives_a_failed_write(tmp_path):
    path = tmp_path / "x.oinf"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError):
        with PackageWriter(path) as w:
            w.add_tensor("v", StreamTensor("u8", [3], boom))
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["x.oinf"]


def boom():
    yield b"a"
    raise RuntimeError("disk on fire")


@pytest.mark.parametrize(
    "tables",
    [
        ({"": 1}, {}, {}), ({"a b": 1}, {}, {}), ({"a/b": 1}, {}, {}), ({"\u00e9": 1}, {}, {}), ({"a\n": 1}, {}, {}), ({1: 1}, {}, {}),
        ({"a": -1}, {}, {}), ({"a": True}, {}, {}), ({"a": None}, {}, {}), ({"a": 2**64}, {}, {}), ({"a": 1.0}, {}, {}),
        ({}, {"a": None}, {}), ({}, {"a": object()}, {}), ({}, {"a": 2**64}, {}), ({}, {"a": ["x"]}, {}), ({}, {"a": "\ud800"}, {}),
        ({}, {"a": ScalarValue(9, "i4")}, {}), ({}, {"a": ScalarValue(9, "bitset")}, {}), ({}, {"a": ScalarValue("x", "u8")}, {}),
        ({}, {}, {"a": TensorSpec(None)}), ({}, {}, {"a": TensorSpec([[1], [1, 2]])}), ({}, {}, {"a": UninitializedTensor("bitset", [1])}),
        ({}, {}, {"a": UninitializedTensor("f32", [-1])}), ({}, {}, {"a": UninitializedTensor("f32", [2**40, 2**40])}),
        ({}, {}, {"a": UninitializedTensor("f32", [1] * 65)}), ({}, {}, {"a": UninitializedTensor("f32", [1.5])}),
        ({}, {}, {"a": TensorSpec([1], name="t"), "t": TensorSpec([1])}),
    ],
)  # fmt: skip
def test_what_cannot_be_written(tables):
    with pytest.raises(OinfError):
        write_package(*tables)


def test_empty_package():
    data = write_package({}, {}, {})
    assert len(data) == 72
    p = read_oinf(data, strict=True)
    assert (inspect_text(p), p.to_bytes()) == ("", data)


@pytest.mark.parametrize("seed", range(150))
def test_random_packages(seed, both):
    tables = random_tables(seed)
    data = write_package(*tables)
    assert len(data) % 8 == 0
    p = read_oinf(data, strict=True)
    assert p.to_bytes() == data
    decoded = {k: TensorSpec(t.tolist(), t.dtype.name, quant=t.quant) if t.has_data and 0 not in t.dims else t for k, t in p.tensors.items()}
    assert write_package(p.sizevars, p.metadata, decoded) == data
    inspect_text(p)
    inspect_json(p)


def exercise(p):
    """Everything a reader can ask of a package."""
    inspect_text(p)
    inspect_json(p)
    for k, v in p.metadata.items():
        try:
            p.meta_text(k)
        except OinfError:
            pass
    for t in p.tensors.values():
        if t.has_data:
            t.tolist()


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("strict", [False, True])
def test_flipped_bytes_only_raise_oinf_error(seed, strict):
    rng = random.Random(seed)
    data = write_package(*random_tables(seed))
    for _ in range(60):
        broken = bytearray(data)
        for _ in range(rng.choice([1, 1, 1, 2, 8])):
            at = rng.randrange(len(broken))
            broken[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, broken[at] ^ (1 << rng.randrange(8))])
        if rng.random() < 0.1:
            del broken[rng.randrange(len(broken)) :]
        try:
            exercise(read_oinf(bytes(broken), strict=strict, allow_shared=rng.random() < 0.5))
        except OinfError:
            pass


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes_only_raise_oinf_error(seed):
    rng = random.Random(seed)
    for _ in range(50):
        head = WORKED[: rng.choice([0, 5, 13, 29, 69])]
        with pytest.raises(OinfError):
            exercise(read_oinf(head + bytes(rng.getrandbits(8) for _ in range(rng.randrange(300)))))


@pytest.mark.parametrize("use_mmap", [True, False])
def test_file_that_shrinks_after_open(tmp_path, use_mmap):
    path = tmp_path / "x.oinf"
    path.write_bytes(WORKED)
    with read_oinf(path, use_mmap=use_mmap) as p:
        os.truncate(path, 160)
        with pytest.raises(OinfError, match="became shorter"):
            p.tensors["zero"].tolist()


def test_numpy_view_outlives_close(tmp_path):
    np = pytest.importorskip("numpy")
    path = tmp_path / "x.oinf"
    path.write_bytes(write_package({}, {}, {"w": np.arange(6, dtype=np.float32).reshape(2, 3)}))
    with read_oinf(path) as p:
        a = p.tensors["w"].numpy()
    assert a.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_values_of_uninitialized_tensors_raise():
    p = read_oinf(write_package({}, {}, {"y": UninitializedTensor("f32", [0, 4])}))
    for ask in (p.tensors["y"].tolist, p.tensors["y"].raw, p.tensors["y"].values, p.tensors["y"].numpy):
        with pytest.raises(OinfError, match="uninitialized"):
            ask()


def test_empty_shapes_nest():
    p = read_oinf(write_package({}, {}, {"a": StreamTensor("f32", [2, 0, 3], b""), "b": StreamTensor("f32", [0], b"")}))
    assert p.tensors["a"].tolist() == [[], []] and p.tensors["b"].tolist() == []
