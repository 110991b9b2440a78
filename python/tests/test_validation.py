"""Spec section 7: for every row, files that are refused and close relatives that open.

Files are made by mutating one package whose layout the test looks up through the reader.
"""

from __future__ import annotations

import os
import struct

import pytest
from openinfer.oinf import (
    ArrayValue, Bitset, Limits, OinfError, QuantParams, QuantScale, QuantZeroPoint, ScalarValue, StreamTensor, TensorSpec,
    UninitializedTensor, read_oinf, write_package,
)
from support import patch

QUANT = QuantParams("asymmetric", QuantScale.per_channel(0, [0.5, 1, 2]), QuantZeroPoint.per_channel(0, [1, 2, 3]))
BASE = write_package(
    {"B": 4, "C": 5},
    {"arr": ArrayValue([[1, 2], [3, 4]], "i16"), "bits": Bitset([1] * 9), "name": "abc", "pi": 3.5, "tern": ScalarValue(1, "t2")},
    {"aa": TensorSpec([1.0, 2.0, 3.0], quant=QUANT), "bb": TensorSpec([1, 2], "u8"), "cc": UninitializedTensor("f16", [2, 2])},
)
P = read_oinf(BASE, strict=True)
OFF_SIZEVARS, OFF_METADATA, OFF_TENSORS, OFF_DATA, SIZE = struct.unpack_from("<5Q", BASE, 29)


def string(name):
    raw = struct.pack("<I", len(name)) + name.encode()
    return raw + bytes(-len(raw) % 8)


def meta_at(key):
    """Offset of the type field of a metadata entry: +4 flags, +8 nbytes, +16 offset."""
    return BASE.index(string(key), OFF_METADATA) + len(string(key))


def tensor_at(name):
    """Offset of the dtype field: +4 ndim, +8 flags, +12 dims, then nbytes, offset, quant nbytes, offset."""
    return BASE.index(string(name), OFF_TENSORS) + len(string(name))


def refused(data, reason, offset=None, **options):
    with pytest.raises(OinfError) as e:
        read_oinf(data, **options)
    assert reason in str(e.value), str(e.value)
    assert str(e.value) == f"oinf: <memory>: {e.value.reason} (offset {e.value.offset})"
    if offset is not None:
        assert e.value.offset == offset, str(e.value)


def opens(data, warnings=0, **options):
    p = read_oinf(data, **options)
    assert len(p.warnings) == warnings, p.warnings
    return p


def resized(data):
    return patch(data, 61, "<Q", len(data))


# ---- row 1: header


def test_row1_length_magic_version():
    for n in (0, 1, 68):
        refused(BASE[:n], "too short", 0)
    refused(b"OINF\1" + BASE[5:], "wrong magic", 0)
    refused(patch(BASE, 5, "<I", 1), "unsupported version 1 (v1 files are not supported)", 5)
    refused(patch(BASE, 5, "<I", 3), "unsupported version 3", 5)
    opens(BASE, strict=True)


@pytest.mark.parametrize("at,reason", [(9, "header flags"), (25, "reserved header field")])
def test_row1_flags_and_reserved(at, reason):
    opens(patch(BASE, at, "<I", 1), warnings=1)
    refused(patch(BASE, at, "<I", 1), reason, at, strict=True)


# ---- row 2: file size


def test_row2_file_size():
    refused(BASE[:-8], "truncated", 61)
    refused(BASE + b"\0", "trailing data", 61)
    refused(patch(BASE, 61, "<Q", 2**64 - 1), "truncated", 61)
    opens(resized(BASE + bytes(8)), strict=True)


# ---- row 3: section offsets


@pytest.mark.parametrize("i,name", list(enumerate(["sizevar", "metadata", "tensor", "data"])))
def test_row3_section_offsets(i, name):
    at = 29 + 8 * i
    refused(patch(BASE, at, "<Q", 100), f"{name} section offset 100 is not a multiple of 8", at)
    refused(patch(BASE, at, "<Q", 64), f"{name} section offset 64 is inside the header", at)
    refused(patch(BASE, at, "<Q", SIZE + 8), f"{name} section offset {SIZE + 8} is past the end", at)
    refused(patch(BASE, at, "<Q", 2**64 - 8), "past the end", at)


def test_row3_order():
    refused(patch(BASE, 37, "<Q", OFF_TENSORS + 8), "tensor section starts before the metadata section", 45)
    refused(patch(BASE, 53, "<Q", OFF_TENSORS - 8), "data section starts before the tensor section", 53)
    shifted = BASE[:72] + bytes(16) + BASE[72:]  # tables may start later than 72
    for i in range(5):
        (value,) = struct.unpack_from("<Q", BASE, 29 + 8 * i)
        shifted = patch(shifted, 29 + 8 * i, "<Q", value + 16)
    refused(shifted, "before the data section")  # blobs moved, table not updated
    empty = write_package({}, {}, {})
    empty = empty + bytes(8)
    for at in (29, 37, 45, 53, 61):
        empty = patch(empty, at, "<Q", 80)
    opens(empty, strict=True)


# ---- row 4: counts


@pytest.mark.parametrize("at,what", [(13, "sizevar"), (17, "metadata"), (21, "tensor")])
def test_row4_counts(at, what):
    for n in (2**32 - 1, 100):
        refused(patch(BASE, at, "<I", n), f"{n} {what} entries do not fit", at)
    opens(BASE, strict=True)


def test_row4_limit():
    refused(BASE, "2 sizevar entries are over the limit of 1", 13, limits=Limits(max_count=1))
    refused(BASE, "5 metadata entries are over the limit of 4", 17, limits=Limits(max_count=4))
    opens(BASE, limits=Limits(max_count=5))


# ---- row 5: names


def test_row5_string_length():
    at = OFF_SIZEVARS
    refused(patch(BASE, at, "<I", 0), "empty sizevar name", at)
    refused(patch(BASE, at, "<I", 65536), "longer than 65535", at)
    refused(patch(BASE, at, "<I", 2**32 - 1), "longer than 65535", at)
    refused(patch(BASE, at, "<I", 40), "passes the end", at)
    refused(patch(BASE, OFF_METADATA, "<I", 60000), "metadata name passes the end", OFF_METADATA)
    long = "n" * 65535
    assert list(opens(write_package({long: 1}, {}, {}), strict=True).sizevars) == [long]


def test_row5_padding_passes_the_end():
    # 5 bytes of name fit in the 8 that are left, 4 + 5 padded to 16 do not.
    data = write_package({"abcd": 1}, {}, {})
    data = patch(data, 37, "<QQQ", 88, 88, 88)
    refused(patch(data, 72, "<I", 13), "passes the end", 72)


def test_row5_alphabet():
    at = OFF_SIZEVARS + 4
    refused(patch(BASE, at, "B", 0xFF), "not UTF-8", at)
    for bad in (0, 9, 0x1F, 0x7F):
        refused(patch(BASE, at, "B", bad), "outside [A-Za-z0-9._-]", at)
    for odd in b"/ :":
        assert chr(odd) in opens(patch(BASE, at, "B", odd)).sizevars
        refused(patch(BASE, at, "B", odd), "outside [A-Za-z0-9._-]", at, strict=True)
    two = write_package({"ab": 1}, {}, {})
    assert opens(two.replace(b"ab", "\u00e9".encode())).sizevars == {"\u00e9": 1}
    refused(two.replace(b"ab", b"\xc2\x85"), "outside")  # a C1 control character


# ---- row 6: entries stay in their section


def test_row6_entry_passes_its_section():
    # Move the last entry's end beyond off_data by raising its rank.
    at = tensor_at("cc")
    refused(patch(BASE, at + 4, "<I", 9), "tensor entry passes the end of its section", at + 12)
    # A sizevar section of 24 bytes: a name of 12 takes 16 and leaves 8, one of 20 leaves none.
    data = patch(write_package({"nnnnnnnnnnnn": 1}, {}, {}), 13, "<I", 1)
    assert (len(data), list(opens(data, strict=True).sizevars)) == (96, ["nnnnnnnnnnnn"])
    data = data[:88] + b"n" * 8
    refused(patch(data, 72, "<I", 20), "sizevar entry passes the end of its section", 96)


# ---- row 7: duplicates


def test_row7_duplicates():
    refused(BASE.replace(string("C") + struct.pack("<Q", 5), string("B") + struct.pack("<Q", 5)), "duplicate sizevar 'B'")
    refused(BASE.replace(b"bits", b"name", 1), "duplicate metadata key 'name'")
    refused(BASE.replace(string("bb"), string("aa")), "duplicate tensor 'aa'")


def test_row7_same_name_in_two_tables_warns():
    data = write_package({"x": 1}, {"x": 2}, {"x": TensorSpec([1])})
    p = opens(data, warnings=3, strict=True)
    assert p.sizevars["x"] == 1 and p.meta("x") == 2


# ---- row 8: metadata entries


def test_row8_metadata_entry():
    at = meta_at("pi")
    offset = P.metadata["pi"].offset
    for tag in (0, 26, 2**32 - 1):
        refused(patch(BASE, at, "<I", tag), f"metadata pi: unknown type tag {tag}", at)
    refused(patch(BASE, at + 4, "<I", 1), "metadata pi: flags", at + 4)
    refused(patch(BASE, at + 16, "<Q", offset + 4), "not a multiple of 8", at + 16)
    refused(patch(BASE, at + 16, "<Q", OFF_DATA - 8), "before the data section", at + 16)
    refused(patch(BASE, at + 16, "<Q", SIZE), "pass the end of the file", at + 8)
    refused(patch(BASE, at + 8, "<Q", 2**64 - 1), "overflows", at + 8)
    refused(patch(BASE, at + 16, "<Q", 2**64 - 8), "pass the end of the file", at + 8)
    refused(patch(BASE, at + 8, "<Q", 8), "metadata pi: 8 bytes, its type implies 4", at + 8)
    refused(patch(BASE, at, "<I", 11), "metadata pi: 4 bytes, its type implies 8", at + 8)
    assert opens(patch(BASE, at, "<I", 3)).meta("pi") == 0x40600000
    refused(BASE, "over the limit of 24", limits=Limits(max_metadata_bytes=24))


def test_row8_str():
    at, offset = meta_at("name"), P.metadata["name"].offset
    refused(patch(BASE, offset, "<I", 12), "metadata name: 8 bytes, its type implies 16", at + 8)
    refused(patch(BASE, offset, "<I", 2**32 - 1), "its type implies", at + 8)
    refused(patch(BASE, offset + 4, "B", 0xFF), "text is not UTF-8", offset + 4)
    refused(patch(BASE, offset + 4, "B", 0), "text contains NUL", offset + 4)
    assert opens(patch(BASE, offset, "<I", 0), strict=False).meta("name") == ""
    assert opens(patch(BASE, offset + 4, "B", 0x20), strict=True).meta("name") == " bc"
    refused(patch(BASE, at + 8, "<Q", 4), "too short for str", at + 8)


# ---- row 9: ndarray and bitset payloads


def test_row9_ndarray():
    offset = P.metadata["arr"].offset
    for tag in (0, 13, 14, 15, 26):
        refused(patch(BASE, offset, "<I", tag), f"metadata arr: invalid element tag {tag}", offset)
    refused(patch(BASE, offset + 4, "<I", 65), "65 dimensions are too many", offset + 4)
    refused(patch(BASE, offset + 4, "<I", 64), "do not hold 64 dims")
    refused(BASE, "2 dimensions are too many", limits=Limits(max_ndim=1))
    refused(patch(BASE, offset + 8, "<QQ", 2**32, 2**32), "product of its dims overflows", offset + 8)
    refused(patch(BASE, offset + 8, "<QQ", 2**63, 0), "product of its dims overflows", offset + 8)
    refused(patch(BASE, offset + 8, "<QQ", 2, 3), "its type implies 40")
    assert opens(patch(BASE, offset + 8, "<QQ", 4, 1), strict=True).meta("arr") == [[1], [2], [3], [4]]


def test_row9_bitset():
    offset = P.metadata["bits"].offset
    for bits, nbytes in ((9, 1), (9, 3), (17, 2), (2**32 - 1, 2)):
        refused(patch(BASE, offset, "<II", bits, nbytes), f"{bits} bits do not fill {nbytes} bytes", offset)
    refused(patch(BASE, offset, "<II", 80, 10), "its type implies 24")
    assert len(opens(patch(BASE, offset, "<II", 16, 2), strict=True).meta("bits")) == 16


# ---- row 10: tensor entries


def test_row10_tensor_entry():
    at = tensor_at("bb")
    for tag in (0, 14, 15, 26):
        refused(patch(BASE, at, "<I", tag), f"tensor bb: type tag {tag} is not allowed", at)
    refused(patch(BASE, at + 4, "<I", 65), "65 dimensions are too many", at + 4)
    refused(patch(BASE, at + 8, "<I", 5), "unknown flags 0x5", at + 8)
    refused(patch(BASE, at + 8, "<I", 0), "without HAS_DATA", at + 20)
    refused(patch(BASE, tensor_at("aa") + 8, "<I", 1), "without HAS_QUANT", tensor_at("aa") + 36)
    assert opens(patch(BASE, at, "<I", 1), strict=True).tensors["bb"].tolist() == [1, 2]


def test_row10_bitset_tensors_are_read_but_not_written():
    p = opens(patch(BASE, tensor_at("bb"), "<I", 13), strict=True)
    assert p.tensors["bb"].tolist() == [1, 2]
    with pytest.raises(OinfError, match="bitset"):
        p.to_bytes()


# ---- row 11: tensor sizes and places


def test_row11_dims():
    at = tensor_at("bb")
    refused(patch(BASE, at + 12, "<Q", 3), "2 bytes of data, its dims imply 3", at + 20)
    refused(patch(BASE, at + 12, "<Q", 2**63), "product of its dims overflows", at + 12)
    at = tensor_at("cc")
    refused(patch(BASE, at + 12, "<QQ", 2**32, 2**32), "product of its dims overflows", at + 12)
    refused(patch(BASE, at + 12, "<QQ", 0, 2**63), "product of its dims overflows", at + 12)
    refused(patch(BASE, at + 12, "<QQ", 1, 2**63), "product of its dims overflows", at + 12)
    opens(patch(BASE, at + 12, "<QQ", 0, 7), strict=True)


@pytest.mark.parametrize("what,shift", [("data", 20), ("quant", 36)])
def test_row11_places(what, shift):
    at = tensor_at("aa") + shift
    (offset,) = struct.unpack_from("<Q", BASE, at + 8)
    refused(patch(BASE, at + 8, "<Q", offset + 4), "not a multiple of 8", at + 8)
    refused(patch(BASE, at + 8, "<Q", OFF_DATA - 8), "before the data section", at + 8)
    refused(patch(BASE, at + 8, "<Q", 0), "before the data section", at + 8)
    refused(patch(BASE, at + 8, "<Q", SIZE), "pass the end of the file", at)
    refused(patch(BASE, at + 8, "<Q", 2**64 - 8), "overflows", at)


def test_row11_zero_dims_keep_has_data():
    p = opens(write_package({}, {}, {"z": StreamTensor("f32", [3, 0], b"")}), strict=True)
    assert p.tensors["z"].has_data and p.tensors["z"].tolist() == [[], [], []]


# ---- row 12: quant payloads

CHANNEL = (2, 2, 2, 0, 0, 3, 0, 3)


@pytest.mark.parametrize(
    "head,reason",
    [
        ((0, 2, 2, 0, 0, 3, 0, 3), "unknown scheme 0"), ((3, 2, 2, 0, 0, 3, 0, 3), "unknown scheme 3"),
        ((2, 0, 0, 0, 0, 3, 0, 0), "unknown scale mode 0"), ((2, 2, 3, 0, 0, 3, 0, 3), "unknown zero point mode 3"),
        ((2, 2, 2, 1, 0, 3, 0, 3), "reserved"), ((2, 2, 2, 0, 1, 3, 1, 3), "scale axis 1 is not below the rank 1"),
        ((2, 2, 2, 0, 0, 2, 0, 2), "2 scale values for a dimension of 3"), ((2, 1, 1, 0, 0, 3, 0, 3), "needs axis 0 and count 1"),
        ((2, 1, 0, 0, 1, 1, 0, 0), "needs axis 0 and count 1"), ((2, 2, 0, 0, 0, 3, 0, 3), "without a zero point"),
        ((2, 2, 0, 0, 0, 3, 1, 0), "without a zero point"), ((2, 2, 1, 0, 0, 3, 0, 1), "zero point is per_tensor but scale is per_channel"),
        ((2, 1, 2, 0, 0, 1, 0, 3), "zero point is per_channel but scale is per_tensor"), ((2, 2, 2, 0, 0, 3, 0, 2), "differ from the scale"),
        ((1, 2, 2, 0, 0, 3, 0, 3), "symmetric scheme forbids"), ((2, 2, 0, 0, 0, 3, 0, 0), "72 bytes, its counts imply 64"),
        ((2, 2, 2, 0, 0, 2**64 - 1, 0, 3), "scale values for a dimension"),
    ],
)  # fmt: skip
def test_row12_rules(head, reason):
    offset = P.tensors["aa"].quant_offset
    refused(patch(BASE, offset, "<4I4Q", *head), "tensor aa: quant: ", offset)
    refused(patch(BASE, offset, "<4I4Q", *head), reason, offset)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan")])
def test_row12_scales(scale):
    offset = P.tensors["aa"].quant_offset
    refused(patch(BASE, offset + 52, "<f", scale), "not finite and positive", offset + 48)


def test_row12_accepts():
    offset = P.tensors["aa"].quant_offset
    assert struct.unpack_from("<4I4Q", BASE, offset) == CHANNEL
    assert opens(patch(BASE, offset + 48, "<3f3i", 9, 8, 7, -1, -2, -3), strict=True).tensors["aa"].quant.zero_point.values == (-1, -2, -3)
    at = tensor_at("aa") + 36
    refused(patch(BASE, at, "<Q", 40), "quant payload of 40 bytes is too short", offset)


# ---- row 13: overlaps


def test_row13_overlap():
    bb = tensor_at("bb")
    a = P.tensors["aa"]
    inside = patch(BASE, bb + 28, "<Q", a.data_offset + 8)
    refused(inside, "tensor bb overlaps tensor aa", a.data_offset + 8)
    refused(inside, "overlaps", allow_shared=True)
    refused(patch(BASE, bb + 28, "<Q", a.quant_offset), "overlaps", a.quant_offset)
    refused(patch(BASE, bb + 28, "<Q", P.metadata["pi"].offset), "overlaps", P.metadata["pi"].offset)
    refused(patch(BASE, meta_at("pi") + 16, "<Q", P.metadata["name"].offset), "overlaps", allow_shared=True)


def test_row13_sharing():
    data = write_package({}, {}, {"a": TensorSpec([1, 2], "u8"), "b": TensorSpec([1, 2], "u8"), "c": TensorSpec([1, 2], "u8")})
    p = read_oinf(data)
    shared = data
    for name in "bc":
        at = data.index(string(name), 72) + 8
        shared = patch(shared, at + 28, "<Q", p.tensors["a"].data_offset)
    refused(shared, "overlaps")
    assert opens(shared, allow_shared=True).tensors["c"].tolist() == [1, 2]


def test_row13_empty_blobs_may_coincide():
    opens(write_package({}, {}, {"a": StreamTensor("u8", [0], b""), "b": StreamTensor("u8", [0], b""), "c": TensorSpec([1])}), strict=True)


# ---- row 14: padding


def test_row14_padding():
    places = {
        "header": 69,
        "sizevar name": OFF_SIZEVARS + 5,
        "metadata name": OFF_METADATA + 7,
        "tensor name": OFF_TENSORS + 6,
        "after the tensor table": OFF_DATA - 1,
        "metadata name: padding": P.metadata["name"].offset + 7,
        "metadata bits: padding": P.metadata["bits"].offset + 10,
        "between blobs": P.metadata["pi"].offset + 4,
        "after the last blob": SIZE - 1,
    }
    for what, at in places.items():
        assert BASE[at] == 0, what
        opens(patch(BASE, at, "B", 1))
        refused(patch(BASE, at, "B", 1), what, at, strict=True)
    quant = QuantParams("symmetric", QuantScale.per_tensor(1))
    data = write_package({}, {}, {"q": TensorSpec([1], "i8", quant=quant)})
    opens(patch(data, len(data) - 1, "B", 1))
    refused(patch(data, len(data) - 1, "B", 1), "quant padding", len(data) - 1, strict=True)


# ---- row 15: sizevars


def test_row15_sizevar():
    at = OFF_SIZEVARS + 8
    assert opens(patch(BASE, at, "<Q", 2**63 - 1), strict=True).sizevars["B"] == 2**63 - 1
    assert opens(patch(BASE, at, "<Q", 2**63), warnings=1).sizevars["B"] == 2**63
    refused(patch(BASE, at, "<Q", 2**63), "over 2^63-1", at, strict=True)


# ---- what is only checked when loaded


def test_strict_values_when_loaded():
    offset = P.metadata["tern"].offset
    data = patch(BASE, offset, "B", 2)
    assert opens(data).meta("tern") == -1
    p = opens(data, strict=True)
    with pytest.raises(OinfError, match=r"oinf: <memory>: tern: t2 element 0 .* \(offset \d+\)"):
        p.meta("tern")


def test_reserved_keys_warn_in_strict():
    data = write_package({}, {"oi.graph": "x", "oi.graph.decode": "x", "oi.state.h": "x", "oi.mystery": "x"}, {})
    opens(data)
    assert "oi.mystery" in opens(data, warnings=1, strict=True).warnings[0]


def test_path_in_message(tmp_path):
    path = tmp_path / "bad.oinf"
    path.write_bytes(b"hello")
    with pytest.raises(OinfError) as e:
        read_oinf(path)
    assert str(e.value) == f"oinf: {path}: 5 bytes is too short for a header (offset 0)"
    path.write_bytes(b"")
    with pytest.raises(OinfError):
        read_oinf(path)
    with pytest.raises(FileNotFoundError):
        read_oinf(tmp_path / "none.oinf")


def test_a_pipe_is_refused(tmp_path):
    """Nothing waits for somebody to write into it."""
    from openinfer.oinf.convert.command import kind_of

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for read in (lambda: read_oinf(pipe), lambda: read_oinf(pipe, use_mmap=False), lambda: kind_of(str(pipe))):
        with pytest.raises(OinfError, match="not a regular file"):
            read()
