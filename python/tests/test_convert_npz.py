"""numpy files: all types and orders, compressed or not, and clear about broken files."""

from __future__ import annotations

import io
import struct
import zipfile

import pytest
from weight_files import converted, refused, survive

np = pytest.importorskip("numpy")


def npz(compressed=False, **arrays):
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **arrays)
    return out.getvalue()


def npy(header, data=b"", version=1, magic=b"\x93NUMPY"):
    raw = header.encode("latin-1")
    return magic + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(raw)) + raw + data


def archive(members, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, data in members:
            z.writestr(name, data)
    return out.getvalue()


TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


@pytest.mark.parametrize("compressed", [False, True])
def test_all_types(compressed, tmp_path):
    rng = np.random.default_rng(1)
    arrays = {t: rng.integers(0, 2 if t == "bool" else 99, (4, 3)).astype(t) for t in TYPES}
    arrays["big"] = rng.standard_normal((3, 4)).astype(">f4")
    arrays["columns"] = np.asfortranarray(rng.standard_normal((3, 4, 2)))
    arrays["columns_big"] = np.asfortranarray(rng.integers(0, 99, (3, 4)).astype(">i2"))
    arrays["scalar"] = np.float32(1.5)
    arrays["empty"] = np.zeros((0, 3))
    arrays["long"] = rng.standard_normal(400_000)
    with converted(tmp_path, npz(compressed, **arrays), "x.npz") as p:
        assert sorted(p.tensors) == sorted(arrays)
        for name, a in arrays.items():
            assert p.tensors[name].dims == a.shape and np.array_equal(p.tensors[name].numpy(), a), name


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy(version, tmp_path):
    out = io.BytesIO()
    a = np.arange(6, dtype=np.int16).reshape(2, 3)
    np.lib.format.write_array(out, a, version=version)
    with converted(tmp_path, out.getvalue(), "weights.npy") as p:
        assert list(p.tensors) == ["weights"] and np.array_equal(p.tensors["weights"].numpy(), a)


H = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
def with_method(data: bytes, method: int) -> bytes:
    """The archive with another way of compression in its directory."""
    at = data.index(b"PK\1\2") + 10
    return data[:at] + method.to_bytes(2, "little") + data[at + 2:]


BROKEN = {
    "empty": (b"", "not a ZIP archive"),
    "no archive": (b"PK\3\4" + bytes(50), "not a ZIP archive"),
    "cut": (npz(a=np.zeros(99))[:-30], "not a ZIP archive"),
    "member": (archive([("a.npy", b"hello")]), "truncated: array 'a'"),
    "magic": (archive([("a.npy", npy(H, bytes(8), magic=b"NUMPY!"))]), "not in numpy's format"),
    "version": (archive([("a.npy", npy(H, bytes(8), version=9))]), "not in numpy's format"),
    "header": (archive([("a.npy", npy("__import__('os').getcwd()"))]), "header is not understood"),
    "header length": (archive([("a.npy", npy(" " * 70000, version=2))]), "at most 65536"),
    "shape": (archive([("a.npy", npy(H.replace("2,", "9" * 30)))]), "impossible shape"),
    "negative": (archive([("a.npy", npy(H.replace("2,", "-2,")))]), "header is not understood"),
    "product": (archive([("a.npy", npy(H.replace("2,", f"{2**60}, {2**60}")))]), "too many elements"),
    "short": (archive([("a.npy", npy(H, bytes(7)))]), "truncated: array 'a': f4[2] has 8 bytes, the file has 7"),
    "long": (archive([("a.npy", npy(H, bytes(9)))]), "has 8 bytes, the file has 9"),
    "objects": (archive([("a.npy", npy(H.replace("<f4", "|O"), bytes(8)))]), "its type O is not supported"),
    "texts": (npz(a=np.array(["x"])), "its type U1 is not supported"),
    "records": (npz(a=np.zeros(2, [("x", "f4")])), "is not supported"),
    "columns": (archive([("a.npy", npy(H.replace("False", "True").replace("2,", f"2, {2**30}")))]), "truncated"),
    "twice": (archive([("a.npy", npy(H, bytes(8))), ("a", npy(H, bytes(8)))]), "duplicate member 'a'"),
    "method": (with_method(npz(a=np.zeros(2)), 99), "not supported"),
}


@pytest.mark.parametrize("case", list(BROKEN))
def test_broken_files(case, tmp_path):
    data, reason = BROKEN[case]
    (tmp_path / "x.npz").write_bytes(data)
    if case == "empty":
        from openinfer.oinf.convert.command import main

        assert main([str(tmp_path / "x.npz"), "-o", str(tmp_path / "o"), "--format", "npz"]) == 1
    assert reason in refused(tmp_path, data, "x.npz")


def test_checksum(tmp_path):
    data = npz(a=np.full(64, 0.1))
    at = data.index(struct.pack("<d", 0.1))
    assert "Bad CRC-32" in refused(tmp_path, data[:at] + b"\7" + data[at + 1 :], "x.npz")


@pytest.mark.parametrize("compressed", [False, True])
def test_mutants(compressed, tmp_path):
    data = npz(compressed, a=np.arange(30.0), b=np.arange(12).reshape(3, 4).T, c=np.array(True))
    survive(tmp_path, data, "x.npz", seed=3, count=1500)


def test_npy_mutants(tmp_path):
    survive(tmp_path, npy(H, bytes(8)), "x.npy", seed=4, count=1500)


def test_members_that_share_bytes(tmp_path):
    """The directory of the archive lists one member twice under two names."""
    data = npz(a=np.zeros(500))
    at = data.rindex(b"PK\1\2")
    end = data.rindex(b"PK\5\6")
    entry = data[at:end]
    tail = bytearray(data[end:])
    struct.pack_into("<HHI", tail, 8, 2, 2, 2 * len(entry))
    both = data[:at] + entry + entry.replace(b"a.npy", b"b.npy") + bytes(tail)
    assert "members share bytes" in refused(tmp_path, both, "x.npz")
