"""The package writer: three tables and a row of blobs, always the same bytes.

    header(69) pad to 72 | sizevars | metadata | tensors | metadata blobs | data0 quant0 data1 ...

Tables are sorted by name, each is padded to 8, each blob starts at a multiple of 8.
`PackageWriter` streams: only table entries, metadata and quant blobs are held in memory;
tensor bytes are asked for when their turn comes and counted as they go by.
"""

from __future__ import annotations

import io
import os
import re
import struct
import uuid
from dataclasses import dataclass
from typing import Any, BinaryIO, Dict, Iterator, List, Mapping, Optional, Tuple, Union

from .dtypes import BOOL, DType, F32, U64_MAX, dtype_of, encode_list, scalar_dtype, smallest_int
from .quant import QuantParams
from .types import (
    ArrayValue, Bitset, BytesLike, Chunks, OinfError, ScalarValue, SizeVar, StreamTensor, TensorSpec,
    UninitializedTensor, check_shape,
)  # fmt: skip
from .values import Encoded, encode_array, is_array, numel_of, plain

MAGIC = b"OINF\0"
VERSION = 2
HEADER = struct.Struct("<5s6I5Q")  # 69 bytes: no padding after the magic
FIRST_SECTION = 72
HAS_DATA = 1
HAS_QUANT = 2
NAME = re.compile(r"[A-Za-z0-9._-]+")


def align8(n: int) -> int:
    return (n + 7) & ~7


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def encode_string(text: str) -> bytes:
    raw = text.encode("utf-8")
    return padded(struct.pack("<I", len(raw)) + raw)


def check_name(name: Any) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise OinfError(f"name {name!r} does not match [A-Za-z0-9._-]+")
    if len(name) > 65535:
        raise OinfError(f"name of {len(name)} bytes is too long (at most 65535)")
    return name


# ---- metadata values ----------------------------------------------------------------


def encode_meta(value: Any, dtype: Optional[str] = None) -> Tuple[int, bytes]:
    """Tag and payload of one metadata value; `dtype` overrides what would be inferred."""
    encoded = getattr(value, "_encode_meta", None)  # a value of a package that was read
    if encoded is not None:
        tag, blob = encoded()
        return int(tag), bytes(blob)
    if isinstance(value, ScalarValue):
        return _encode_scalar(plain(value.value), value.dtype or dtype)
    if isinstance(value, ArrayValue):
        return _encode_ndarray(encode_array(value.data, value.dtype or dtype, as_metadata=True))
    if isinstance(value, Bitset):
        head = struct.pack("<II", value.bit_count, len(value.data))
        return dtype_of("bitset").tag, padded(head + value.data)
    if isinstance(value, str):
        return encode_text(value)
    value = plain(value)
    if isinstance(value, (bool, int, float)):
        return _encode_scalar(value, dtype)
    if isinstance(value, (list, tuple, range, bytes, bytearray)) or is_array(value):
        return _encode_ndarray(encode_array(value, dtype, as_metadata=True))
    raise OinfError(f"no metadata type stores {type(value).__name__} {value!r}")


def encode_text(text: str) -> Tuple[int, bytes]:
    """A `str` within the name alphabet, otherwise the UTF-8 bytes as u8 [len]."""
    if NAME.fullmatch(text):
        return dtype_of("str").tag, encode_string(text)
    try:
        raw = text.encode("utf-8")
    except UnicodeEncodeError as e:
        raise OinfError(f"text is not valid Unicode: {e}") from None
    return _encode_ndarray(Encoded(dtype_of("u8"), (len(raw),), raw))


def _encode_scalar(value: Any, dtype: Optional[str]) -> Tuple[int, bytes]:
    if isinstance(value, str) and dtype in (None, "str"):
        return encode_text(value)
    if dtype is not None:
        d = scalar_dtype(dtype)
    elif isinstance(value, bool):
        d = BOOL
    elif isinstance(value, float):
        d = F32
    elif isinstance(value, int):
        d = smallest_int(value, value)
    else:
        raise OinfError(f"no scalar type stores {type(value).__name__} {value!r}")
    return d.tag, encode_list([value], d)


def _encode_ndarray(array: Encoded) -> Tuple[int, bytes]:
    head = struct.pack(f"<II{len(array.dims)}Q", array.dtype.tag, len(array.dims), *array.dims)
    return dtype_of("ndarray").tag, padded(head + b"".join(_chunks(array.data)))


# ---- tensors ------------------------------------------------------------------------


@dataclass
class _Tensor:
    """One tensor, checked and ready to be placed."""

    dtype: DType
    dims: Tuple[int, ...]
    data: Optional[Chunks]
    nbytes: int
    quant: bytes


def _quant_blob(quant: Optional[QuantParams], dims: Tuple[int, ...]) -> bytes:
    if quant is None:
        return b""
    if not isinstance(quant, QuantParams):
        raise OinfError(f"quant must be QuantParams, found {type(quant).__name__}")
    return quant.encode(dims)


def prepare_tensor(value: Any, dtype: Optional[str] = None) -> _Tensor:
    stream = getattr(value, "_as_stream", None)  # a tensor of a package that was read
    if stream is not None:
        value = stream()
    if isinstance(value, UninitializedTensor):
        d = scalar_dtype(value.dtype)
        dims = check_shape(value.shape, "shape")
        d.nbytes(numel_of(dims))
        return _Tensor(d, dims, None, 0, _quant_blob(value.quant, dims))
    if isinstance(value, StreamTensor):
        d = scalar_dtype(value.dtype)
        dims = check_shape(value.shape, "shape")
        return _Tensor(d, dims, value.chunks, d.nbytes(numel_of(dims)), _quant_blob(value.quant, dims))
    quant = None
    if isinstance(value, TensorSpec):
        dtype = value.dtype or dtype
        value, quant = value.data, value.quant
    if value is None:
        raise OinfError("a tensor without data; use UninitializedTensor")
    array = encode_array(value, dtype)
    return _Tensor(array.dtype, array.dims, array.data, array.nbytes, _quant_blob(quant, array.dims))


def _chunks(data: Chunks) -> Iterator[BytesLike]:
    if callable(data):
        data = data()
    if isinstance(data, (bytes, bytearray, memoryview)):
        yield data
    else:
        yield from data


# ---- the writer ---------------------------------------------------------------------


class PackageWriter:
    """Collects tables, then writes the package in one pass.

        with PackageWriter("model.oinf") as w:
            w.add_sizevar("B", 4)
            w.add_tensor("w", StreamTensor("f32", [1024, 1024], read_chunks))

    The file appears under its name only when complete; an error leaves nothing behind.
    The target may also be an open binary file, which is written from where it stands.
    """

    def __init__(self, target: Union[str, "os.PathLike[str]", BinaryIO]):
        self._target = target
        self._sizevars: Dict[str, int] = {}
        self._metadata: Dict[str, Tuple[int, bytes]] = {}
        self._tensors: Dict[str, _Tensor] = {}

    def add_sizevar(self, name: str, value: Union[int, SizeVar]) -> None:
        n = plain(value.value if isinstance(value, SizeVar) else value)
        if isinstance(n, bool) or not isinstance(n, int):
            raise OinfError(f"sizevar {name}: expected an integer, found {n!r}")
        if not 0 <= n <= U64_MAX:
            raise OinfError(f"sizevar {name}: {n} is out of range (0 to 2^64-1)")
        self._new(self._sizevars, "sizevar", name)
        self._sizevars[name] = n

    def add_metadata(self, name: str, value: Any, dtype: Optional[str] = None) -> None:
        self._new(self._metadata, "metadata key", name)
        with _named(f"metadata {name}"):
            self._metadata[name] = encode_meta(value, dtype)

    def add_tensor(self, name: str, value: Any, dtype: Optional[str] = None) -> None:
        """Add a tensor; a `name` inside the value overrides the one given here."""
        own = getattr(value, "name", None)
        if isinstance(value, (TensorSpec, UninitializedTensor, StreamTensor)) and own is not None:
            name = own
        self._new(self._tensors, "tensor", name)
        with _named(f"tensor {name}"):
            self._tensors[name] = prepare_tensor(value, dtype)

    @staticmethod
    def _new(table: Mapping[str, Any], what: str, name: str) -> None:
        if check_name(name) in table:
            raise OinfError(f"duplicate {what} {name!r}")

    def finish(self) -> None:
        """Write the package."""
        if isinstance(self._target, (str, os.PathLike)):
            self._write_path(os.fspath(self._target))
        else:
            self._write_stream(self._target)

    def __enter__(self) -> "PackageWriter":
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self.finish()

    def _write_path(self, path: str) -> None:
        folder, base = os.path.split(path)
        temp = os.path.join(folder, f".{base[:100]}.{uuid.uuid4().hex}.tmp")
        try:
            with open(temp, "xb") as out:
                self._write_stream(out)
            os.replace(temp, path)
        except BaseException:
            try:
                os.unlink(temp)
            except OSError:
                pass
            raise

    def _write_stream(self, out: BinaryIO) -> None:
        head, blobs = self._layout()
        out.write(head)
        for what, data, nbytes in blobs:
            with _named(what):
                _write_blob(out, data, nbytes)

    def _layout(self) -> Tuple[bytes, List[Tuple[str, Chunks, int]]]:
        """Header and tables, and the blobs that follow in order."""
        sizevars = padded(
            b"".join(encode_string(k) + struct.pack("<Q", v) for k, v in sorted(self._sizevars.items()))
        )
        metadata = sorted(self._metadata.items())
        tensors = sorted(self._tensors.items(), key=lambda kv: kv[0])
        metadata_size = sum(len(encode_string(k)) + 24 for k, _ in metadata)
        tensors_size = sum(len(encode_string(k)) + 44 + 8 * len(t.dims) for k, t in tensors)
        off_metadata = FIRST_SECTION + len(sizevars)
        off_tensors = align8(off_metadata + metadata_size)
        off_data = align8(off_tensors + tensors_size)

        blobs: List[Tuple[str, Chunks, int]] = []
        at = off_data

        def place(what: str, data: Chunks, nbytes: int) -> int:
            nonlocal at
            start, at = at, at + align8(nbytes)
            blobs.append((what, data, nbytes))
            return start

        table = bytearray(sizevars)
        for key, (tag, blob) in metadata:
            table += encode_string(key)
            table += struct.pack("<IIQQ", tag, 0, len(blob), place(f"metadata {key}", blob, len(blob)))
        table += bytes(off_tensors - FIRST_SECTION - len(table))
        for name, t in tensors:
            flags = data_offset = quant_offset = 0
            if t.data is not None:
                flags |= HAS_DATA
                data_offset = place(f"tensor {name}", t.data, t.nbytes)
            if t.quant:
                flags |= HAS_QUANT
                quant_offset = place(f"tensor {name} quant", t.quant, len(t.quant))
            table += encode_string(name)
            table += struct.pack(f"<III{len(t.dims)}Q", t.dtype.tag, len(t.dims), flags, *t.dims)
            table += struct.pack("<QQQQ", t.nbytes, data_offset, len(t.quant), quant_offset)
        table += bytes(off_data - FIRST_SECTION - len(table))
        header = HEADER.pack(
            MAGIC, VERSION, 0, len(self._sizevars), len(metadata), len(tensors), 0,
            FIRST_SECTION, off_metadata, off_tensors, off_data, at,
        )  # fmt: skip
        return padded(header) + bytes(table), blobs


def _write_blob(out: BinaryIO, data: Chunks, nbytes: int) -> None:
    written = 0
    for chunk in _chunks(data):
        view = memoryview(chunk)
        written += view.nbytes
        if written > nbytes:
            raise OinfError(f"expected {nbytes} bytes of data, found more")
        out.write(view)
    if written != nbytes:
        raise OinfError(f"expected {nbytes} bytes of data, found {written}")
    out.write(bytes(-nbytes % 8))


class _named:
    """Puts the entry's name in front of an error about its value."""

    def __init__(self, what: str):
        self.prefix = f"{what}: "

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if isinstance(value, OinfError) and value.path is None:
            raise OinfError(self.prefix + value.reason) from None


def write_package(
    sizevars: Mapping[str, Any], metadata: Mapping[str, Any], tensors: Mapping[str, Any]
) -> bytes:
    """A whole package as bytes. Values are what `PackageWriter.add_*` accept, including
    the entries of a package that was read."""
    out = io.BytesIO()
    with PackageWriter(out) as w:
        fill(w, sizevars, metadata, tensors)
    return out.getvalue()


def fill(
    w: PackageWriter, sizevars: Mapping[str, Any], metadata: Mapping[str, Any], tensors: Mapping[str, Any]
) -> None:
    """Add whole tables."""
    for name, size in sizevars.items():
        w.add_sizevar(name, size)
    for name, value in metadata.items():
        w.add_metadata(name, value)
    for name, tensor in tensors.items():
        w.add_tensor(name, tensor)
