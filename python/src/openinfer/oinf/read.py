"""The package reader: checks every rule of spec section 7, then lends views.

Opening reads the header, the tables and the quant payloads and checks the frame of every
metadata payload. Tensor bytes are only touched when asked for. Counts and sizes from the
file are compared with what the file can hold before anything is built from them.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import quant as q
from .dtypes import BY_TAG, DType, I64_MAX, U64_MAX, count_elements, decode_list, decode_numpy
from .source import FileSource, MappedSource, MemorySource, Source
from .types import Bitset, BytesLike, OinfError, StreamTensor, UninitializedTensor
from .write import HAS_DATA, HAS_QUANT, HEADER, MAGIC, NAME, PackageWriter, align8, encode_text, fill, write_package

_KNOWN_OI_KEYS = ("oi.graph", "oi.graph.json", "oi.producer", "oi.created_from", "oi.format_minor")
_KNOWN_OI_PREFIXES = ("oi.graph.", "oi.state.")
_WINDOW = 1 << 16


@dataclass(frozen=True)
class Limits:
    """Bounds for untrusted input."""

    max_count: int = 1 << 20  # entries in one table
    max_ndim: int = 64
    max_metadata_bytes: int = 1 << 30  # one metadata payload


# ---- what a package lends -----------------------------------------------------------


def _nest(flat: List[Any], dims: Sequence[int]) -> Any:
    """Flat row-major values as nested lists; rank 0 gives the value itself."""
    if not dims:
        return flat[0]
    for d in reversed(dims[1:]):
        rows = len(flat) // d if d else 0
        flat = [flat[i * d : (i + 1) * d] for i in range(rows)]
    return flat


def _empty_nest(dims: Sequence[int], path: str) -> Any:
    """Nested lists for a shape with a zero in it, such as [3, 0] -> [[], [], []]."""
    outer = dims[: list(dims).index(0)]
    numel = count_elements(outer)
    if numel is None or numel > 1 << 20:
        raise OinfError(f"shape {list(dims)} is empty but too large to list", path)
    value: List[Any] = [[] for _ in range(numel)]
    return _nest(value, outer)


class _Array:
    """Typed, shaped bytes in a package: shared by tensors and metadata values."""

    name: str
    dtype: DType
    dims: Tuple[int, ...]
    _source: Source
    _strict: bool
    _data_offset: int

    @property
    def numel(self) -> int:
        numel = count_elements(self.dims)
        assert numel is not None  # checked at open
        return numel

    @property
    def nbytes(self) -> int:
        """Bytes of element data."""
        return self.dtype.nbytes(self.numel)

    def raw(self) -> BytesLike:
        """The stored bytes, row-major, packed."""
        return self._source.read(self._data_offset, self.nbytes)

    def values(self, start: int = 0, count: Optional[int] = None) -> List[Any]:
        """Elements start .. start+count-1 (all by default), flat, as Python numbers."""
        start = min(max(start, 0), self.numel)
        n = self.numel - start if count is None else max(0, min(count, self.numel - start))
        # Read whole bytes around the wanted elements only.
        skip = start * self.dtype.bits // 8
        first = skip * 8 // self.dtype.bits
        end = self.dtype.nbytes(start + n)
        try:
            raw = self._source.read(self._data_offset + skip, end - skip)
            return decode_list(raw, self.dtype, n, start - first, self._strict)
        except OinfError as e:
            raise self._placed(e) from None

    def tolist(self) -> Any:
        """Nested lists; a rank 0 value is a plain number."""
        if 0 in self.dims:
            return _empty_nest(self.dims, self._source.name)
        return _nest(self.values(), self.dims)

    def numpy(self) -> Any:
        """A numpy array: a view of the file where numpy has the type (see decode_numpy)."""
        try:
            return decode_numpy(self.raw(), self.dtype, self.numel, self._strict).reshape(self.dims)
        except OinfError as e:
            raise self._placed(e) from None
        except ValueError as e:  # numpy allows fewer dimensions than we do
            raise OinfError(f"{self.name}: {e}", self._source.name) from None

    def _placed(self, e: OinfError) -> OinfError:
        if e.path is not None:
            return e
        return OinfError(f"{self.name}: {e.reason}", self._source.name, self._data_offset)


class MetaValue(_Array):
    """One metadata entry. `kind` is scalar, str, bitset or ndarray."""

    def __init__(self, source: Source, strict: bool, name: str, tag: int, offset: int, nbytes: int):
        self._source = source
        self._strict = strict
        self.name = name
        self.tag = tag
        self.offset = offset
        self.payload_nbytes = nbytes
        self.dtype = BY_TAG[tag]
        self.kind = self.dtype.name if self.dtype.name in ("str", "bitset", "ndarray") else "scalar"
        self.dims = ()
        self._data_offset = offset
        self._length = 0  # bytes of text, or bits of a bitset

    @property
    def value(self) -> Any:
        """int, float, bool, str, Bitset or nested lists."""
        if self.kind == "str":
            raw = self._source.read(self._data_offset, self._length)
            return bytes(raw).decode("utf-8")
        if self.kind == "bitset":
            raw = self._source.read(self._data_offset, (self._length + 7) // 8)
            return Bitset.from_bytes(raw, self._length)
        return self.tolist()

    def text(self) -> str:
        """The text of a `str` or of a one-dimensional u8 ndarray."""
        if self.kind == "str":
            return str(self.value)
        if self.kind != "ndarray" or self.dtype.name != "u8" or len(self.dims) != 1:
            raise OinfError(f"metadata {self.name} is not text", self._source.name, self.offset)
        try:
            return bytes(self.raw()).decode("utf-8")
        except UnicodeDecodeError:
            raise OinfError(f"metadata {self.name} is not UTF-8", self._source.name, self.offset) from None

    def _encode_meta(self) -> Tuple[int, bytes]:
        """For the writer: the payload again, with clean padding."""
        if self.kind == "str":
            return encode_text(self.value)
        raw = bytes(self._source.read(self.offset, self.payload_nbytes))
        if self.kind == "scalar":
            return self.tag, raw
        used = self._data_offset - self.offset
        used += (self._length + 7) // 8 if self.kind == "bitset" else self.nbytes
        return self.tag, raw[:used] + bytes(len(raw) - used)

    def __repr__(self) -> str:
        return f"MetaValue({self.name!r}, {self.kind}, {self.dtype.name}, dims={list(self.dims)})"


class Tensor(_Array):
    """One tensor. Data is read when asked for."""

    def __init__(
        self, source: Source, strict: bool, name: str, dtype: DType, dims: Tuple[int, ...], flags: int,
        data_nbytes: int, data_offset: int, quant_nbytes: int, quant_offset: int,
    ):  # fmt: skip
        self._source = source
        self._strict = strict
        self.name = name
        self.dtype = dtype
        self.dims = dims
        self.flags = flags
        self.data_nbytes = data_nbytes
        self.data_offset = data_offset
        self.quant_nbytes = quant_nbytes
        self.quant_offset = quant_offset
        self.quant: Optional[q.QuantParams] = None
        self._data_offset = data_offset

    @property
    def has_data(self) -> bool:
        return bool(self.flags & HAS_DATA)

    @property
    def shape(self) -> Tuple[int, ...]:
        return self.dims

    def raw(self) -> BytesLike:
        self._need_data()
        return super().raw()

    def values(self, start: int = 0, count: Optional[int] = None) -> List[Any]:
        self._need_data()
        return super().values(start, count)

    def tolist(self) -> Any:
        self._need_data()
        return super().tolist()

    def _need_data(self) -> None:
        if not self.has_data:
            raise OinfError(f"tensor {self.name} is uninitialized", self._source.name)

    def _chunks(self) -> Any:
        for at in range(0, self.data_nbytes, 1 << 22):
            yield self._source.read(self.data_offset + at, min(1 << 22, self.data_nbytes - at))

    def _as_stream(self) -> Union[StreamTensor, UninitializedTensor]:
        """For the writer."""
        if not self.has_data:
            return UninitializedTensor(self.dtype.name, self.dims, quant=self.quant)
        return StreamTensor(self.dtype.name, self.dims, self._chunks, quant=self.quant)

    def __repr__(self) -> str:
        return f"Tensor({self.name!r}, {self.dtype.name}, dims={list(self.dims)})"


class Package:
    """An open package; close it, or use it as a context manager."""

    def __init__(self, source: Source):
        self._source = source
        self.path = source.name
        self.file_size = source.size
        self.sizevars: Dict[str, int] = {}
        self.metadata: Dict[str, MetaValue] = {}
        self.tensors: Dict[str, Tensor] = {}
        self.warnings: List[str] = []

    def meta(self, key: str) -> Any:
        """A metadata value as a Python object."""
        if key not in self.metadata:
            raise OinfError(f"no metadata named {key!r}", self.path)
        return self.metadata[key].value

    def meta_text(self, key: str) -> str:
        """Metadata text, stored as `str` or as u8 [len]."""
        if key not in self.metadata:
            raise OinfError(f"no metadata named {key!r}", self.path)
        return self.metadata[key].text()

    def to_bytes(self) -> bytes:
        """The package written again by our writer."""
        return write_package(self.sizevars, self.metadata, self.tensors)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        with PackageWriter(path) as w:
            fill(w, self.sizevars, self.metadata, self.tensors)

    def close(self) -> None:
        self._source.close()

    def __enter__(self) -> "Package":
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self.close()


def read_oinf(
    source: Union[str, "os.PathLike[str]", BytesLike],
    strict: bool = False,
    allow_shared: bool = False,
    limits: Limits = Limits(),
    use_mmap: bool = True,
) -> Package:
    """Open and validate a package. Raises OinfError when any rule is broken.

    strict        also reject what is otherwise a warning or ignored
    allow_shared  accept two tensors with the same data range (weight sharing)
    use_mmap      map the file; False reads on demand and survives a file that shrinks
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        opened: Source = MemorySource(source)
    else:
        opened = MappedSource(source) if use_mmap else FileSource(source)
    try:
        return _Loader(opened, strict, allow_shared, limits).load()
    except BaseException:
        opened.close()
        raise


# ---- checking -----------------------------------------------------------------------


@dataclass
class _Header:
    n_sizevars: int
    n_metadata: int
    n_tensors: int
    off_sizevars: int
    off_metadata: int
    off_tensors: int
    off_data: int


@dataclass
class _Blob:
    """A byte range some entry owns; `kind` is metadata, data or quant."""

    offset: int
    nbytes: int
    kind: str
    owner: str

    @property
    def end(self) -> int:
        return self.offset + self.nbytes


class _Cursor:
    """Walks one table, reading through a window so that a vast section costs nothing."""

    def __init__(self, loader: "_Loader", start: int, end: int, what: str):
        self.loader = loader
        self.at = start
        self.end = end
        self.what = what
        self._window: BytesLike = b""
        self._base = start

    def take(self, n: int) -> bytes:
        if n > self.end - self.at:
            raise self.loader.error(f"{self.what} entry passes the end of its section", self.at)
        skip = self.at - self._base
        if skip + n > len(self._window):
            size = min(max(n, _WINDOW), self.end - self.at)
            self._window, self._base, skip = self.loader.source.read(self.at, size), self.at, 0
        self.at += n
        return bytes(self._window[skip : skip + n])

    def unpack(self, fmt: str) -> Tuple[int, ...]:
        return struct.unpack(fmt, self.take(struct.calcsize(fmt)))

    def string(self) -> str:
        start = self.at
        if self.end - start < 4:
            raise self.loader.error(f"{self.what} name passes the end of its section", start)
        (length,) = self.unpack("<I")
        if length == 0:
            raise self.loader.error(f"empty {self.what} name", start)
        if length > 65535:
            raise self.loader.error(f"{self.what} name of {length} bytes is longer than 65535", start)
        pad = align8(4 + length) - 4 - length
        if length + pad > self.end - self.at:
            raise self.loader.error(f"{self.what} name passes the end of its section", start)
        raw = self.take(length)
        self.loader.check_zero(self.take(pad), start + 4 + length, f"{self.what} name padding")
        return self.loader.name(raw, start + 4, self.what)


class _Loader:
    def __init__(self, source: Source, strict: bool, allow_shared: bool, limits: Limits):
        self.source = source
        self.strict = strict
        self.allow_shared = allow_shared
        self.limits = limits
        self.package = Package(source)
        self.blobs: List[_Blob] = []
        self.off_data = 0

    def error(self, reason: str, offset: int) -> OinfError:
        return OinfError(reason, self.source.name, offset)

    def strict_error(self, reason: str, offset: int) -> None:
        """An error in strict mode, otherwise a warning."""
        if self.strict:
            raise self.error(reason, offset)
        self.package.warnings.append(f"{reason} (offset {offset})")

    def load(self) -> Package:
        h = self.header()
        self.off_data = h.off_data
        self.sizevars(h)
        self.metadata(h)
        self.tensors(h)
        self.same_names()
        self.overlaps()
        return self.package

    # rows 1 to 4
    def header(self) -> _Header:
        if self.source.size < HEADER.size:
            raise self.error(f"{self.source.size} bytes is too short for a header", 0)
        raw = bytes(self.source.read(0, HEADER.size))
        magic, version, flags, n_sizevars, n_metadata, n_tensors, reserved, *offsets = HEADER.unpack(raw)
        if magic != MAGIC:
            raise self.error("not an OINF file (wrong magic)", 0)
        if version != 2:
            known = " (v1 files are not supported)" if version == 1 else ""
            raise self.error(f"unsupported version {version}{known}", 5)
        if flags:
            self.strict_error(f"header flags are 0x{flags:x}, expected 0", 9)
        if reserved:
            self.strict_error(f"reserved header field is {reserved}, expected 0", 25)
        file_size = offsets[4]
        if file_size != self.source.size:
            what = "truncated" if self.source.size < file_size else "trailing data"
            raise self.error(f"{what}: header says {file_size} bytes, file has {self.source.size}", 61)
        self.section_offsets(offsets)
        h = _Header(n_sizevars, n_metadata, n_tensors, *offsets[:4])
        self.counts(h)
        self.zero_range(HEADER.size, h.off_sizevars, "padding after the header")
        return h

    def section_offsets(self, offsets: Sequence[int]) -> None:
        names = ("sizevar", "metadata", "tensor", "data")
        for i, name in enumerate(names):
            at = 29 + 8 * i
            if offsets[i] % 8:
                raise self.error(f"{name} section offset {offsets[i]} is not a multiple of 8", at)
            if offsets[i] < 72:
                raise self.error(f"{name} section offset {offsets[i]} is inside the header", at)
            if offsets[i] > self.source.size:
                raise self.error(f"{name} section offset {offsets[i]} is past the end of the file", at)
            if i and offsets[i] < offsets[i - 1]:
                raise self.error(f"{name} section starts before the {names[i - 1]} section", at)

    def counts(self, h: _Header) -> None:
        rows = (
            ("sizevar", h.n_sizevars, 16, h.off_metadata - h.off_sizevars, 13),
            ("metadata", h.n_metadata, 32, h.off_tensors - h.off_metadata, 17),
            ("tensor", h.n_tensors, 52, h.off_data - h.off_tensors, 21),
        )
        for what, n, least, room, at in rows:
            if n * least > room:
                raise self.error(f"{n} {what} entries do not fit in {room} bytes", at)
            if n > self.limits.max_count:
                raise self.error(f"{n} {what} entries are over the limit of {self.limits.max_count}", at)

    # row 5
    def name(self, raw: bytes, offset: int, what: str) -> str:
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise self.error(f"{what} name is not UTF-8", offset) from None
        if NAME.fullmatch(text):
            return text
        if self.strict or any(ord(c) < 0x20 or 0x7F <= ord(c) <= 0x9F for c in text):
            raise self.error(f"{what} name has a character outside [A-Za-z0-9._-]", offset)
        return text

    # row 14
    def check_zero(self, raw: BytesLike, offset: int, what: str) -> None:
        if self.strict and bytes(raw) != bytes(len(raw)):
            at = next(i for i, b in enumerate(raw) if b)
            raise self.error(f"{what} is not zero", offset + at)

    def zero_range(self, start: int, end: int, what: str) -> None:
        if self.strict:
            for at in range(start, end, _WINDOW):
                self.check_zero(self.source.read(at, min(_WINDOW, end - at)), at, what)

    def sizevars(self, h: _Header) -> None:
        c = _Cursor(self, h.off_sizevars, h.off_metadata, "sizevar")
        for _ in range(h.n_sizevars):
            start = c.at
            name = c.string()
            (value,) = c.unpack("<Q")
            if name in self.package.sizevars:
                raise self.error(f"duplicate sizevar {name!r}", start)
            if value > I64_MAX:
                self.strict_error(f"sizevar {name} is {value}, over 2^63-1", c.at - 8)
            self.package.sizevars[name] = value
        self.zero_range(c.at, c.end, "padding after the sizevar table")

    # rows 8 and 9
    def metadata(self, h: _Header) -> None:
        c = _Cursor(self, h.off_metadata, h.off_tensors, "metadata")
        for _ in range(h.n_metadata):
            start = c.at
            key = c.string()
            at = c.at
            tag, flags, nbytes, offset = c.unpack("<IIQQ")
            if key in self.package.metadata:
                raise self.error(f"duplicate metadata key {key!r}", start)
            if tag not in BY_TAG:
                raise self.error(f"metadata {key}: unknown type tag {tag}", at)
            if flags:
                raise self.error(f"metadata {key}: flags are 0x{flags:x}, expected 0", at + 4)
            self.blob("metadata", f"metadata {key}", offset, nbytes, at + 8, at + 16)
            if nbytes > self.limits.max_metadata_bytes:
                most = self.limits.max_metadata_bytes
                raise self.error(f"metadata {key}: {nbytes} bytes are over the limit of {most}", at + 8)
            value = MetaValue(self.source, self.strict, key, tag, offset, nbytes)
            self.meta_frame(value, at + 8)
            self.package.metadata[key] = value
            if self.strict and key.startswith("oi.") and key not in _KNOWN_OI_KEYS:
                if not key.startswith(_KNOWN_OI_PREFIXES):
                    self.package.warnings.append(f"unknown reserved metadata key {key} (offset {start})")
        self.zero_range(c.at, c.end, "padding after the metadata table")

    def blob(self, kind: str, owner: str, offset: int, nbytes: int, nbytes_at: int, offset_at: int) -> None:
        """Check a byte range and remember it."""
        if offset % 8:
            raise self.error(f"{owner}: offset {offset} is not a multiple of 8", offset_at)
        if offset < self.off_data:
            raise self.error(f"{owner}: offset {offset} is before the data section", offset_at)
        if offset + nbytes > U64_MAX:
            raise self.error(f"{owner}: offset {offset} + {nbytes} bytes overflows", nbytes_at)
        if offset + nbytes > self.source.size:
            raise self.error(f"{owner}: {nbytes} bytes at {offset} pass the end of the file", nbytes_at)
        self.blobs.append(_Blob(offset, nbytes, kind, owner))

    def meta_frame(self, v: MetaValue, at: int) -> None:
        """Check that nbytes is what the type implies, and find where the content is."""
        if v.kind == "scalar":
            self.expect(v.name, v.payload_nbytes, v.dtype.nbytes(1), at)
            return
        if v.payload_nbytes < 8:
            raise self.error(f"metadata {v.name}: {v.payload_nbytes} bytes is too short for {v.kind}", at)
        first, second = struct.unpack("<II", self.source.read(v.offset, 8))
        if v.kind == "str":
            self.str_frame(v, first, at)
        elif v.kind == "bitset":
            if second != (first + 7) // 8:
                raise self.error(f"metadata {v.name}: {first} bits do not fill {second} bytes", v.offset)
            self.expect(v.name, v.payload_nbytes, align8(8 + second), at)
            v._data_offset, v._length = v.offset + 8, first
            self.payload_padding(v, v._data_offset + second)
        else:
            self.ndarray_frame(v, first, second, at)

    def expect(self, key: str, found: int, wanted: int, at: int) -> None:
        if found != wanted:
            raise self.error(f"metadata {key}: {found} bytes, its type implies {wanted}", at)

    def payload_padding(self, v: MetaValue, start: int) -> None:
        self.zero_range(start, v.offset + v.payload_nbytes, f"metadata {v.name}: padding")

    def str_frame(self, v: MetaValue, length: int, at: int) -> None:
        self.expect(v.name, v.payload_nbytes, align8(4 + length), at)
        v._data_offset, v._length = v.offset + 4, length
        raw = bytes(self.source.read(v._data_offset, length))
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError:
            raise self.error(f"metadata {v.name}: text is not UTF-8", v._data_offset) from None
        if b"\0" in raw:
            raise self.error(f"metadata {v.name}: text contains NUL", v._data_offset)
        self.payload_padding(v, v._data_offset + length)

    def ndarray_frame(self, v: MetaValue, tag: int, ndim: int, at: int) -> None:
        if tag not in BY_TAG or not BY_TAG[tag].is_scalar:
            raise self.error(f"metadata {v.name}: invalid element tag {tag}", v.offset)
        if ndim > min(64, self.limits.max_ndim):
            raise self.error(f"metadata {v.name}: {ndim} dimensions are too many", v.offset + 4)
        if v.payload_nbytes < 8 + 8 * ndim:
            raise self.error(f"metadata {v.name}: {v.payload_nbytes} bytes do not hold {ndim} dims", at)
        dims = struct.unpack(f"<{ndim}Q", self.source.read(v.offset + 8, 8 * ndim))
        nbytes = self.implied(f"metadata {v.name}", BY_TAG[tag], dims, v.offset + 8)
        self.expect(v.name, v.payload_nbytes, align8(8 + 8 * ndim + nbytes), at)
        v.dtype, v.dims, v._data_offset = BY_TAG[tag], dims, v.offset + 8 + 8 * ndim
        self.payload_padding(v, v._data_offset + nbytes)

    def implied(self, owner: str, dtype: DType, dims: Sequence[int], at: int) -> int:
        """Bytes of data that dims imply, or the overflow error."""
        numel = count_elements(dims)
        if numel is None or dtype.nbytes(numel) > U64_MAX - 1024:
            raise self.error(f"{owner}: the product of its dims overflows", at)
        return dtype.nbytes(numel)

    # rows 10 and 11
    def tensors(self, h: _Header) -> None:
        c = _Cursor(self, h.off_tensors, h.off_data, "tensor")
        for _ in range(h.n_tensors):
            start = c.at
            name = c.string()
            at = c.at
            tag, ndim, flags = c.unpack("<III")
            owner = f"tensor {name}"
            if name in self.package.tensors:
                raise self.error(f"duplicate tensor {name!r}", start)
            if tag not in BY_TAG or not BY_TAG[tag].is_tensor:
                raise self.error(f"{owner}: type tag {tag} is not allowed", at)
            if ndim > min(64, self.limits.max_ndim):
                raise self.error(f"{owner}: {ndim} dimensions are too many", at + 4)
            if flags & ~3:
                raise self.error(f"{owner}: unknown flags 0x{flags:x}", at + 8)
            dims = c.unpack(f"<{ndim}Q")
            self.tensor(owner, name, BY_TAG[tag], dims, flags, c.unpack("<QQQQ"), at)
        self.zero_range(c.at, c.end, "padding after the tensor table")

    def tensor(
        self, owner: str, name: str, dtype: DType, dims: Tuple[int, ...], flags: int,
        places: Tuple[int, ...], at: int,
    ) -> None:  # fmt: skip
        data_nbytes, data_offset, quant_nbytes, quant_offset = places
        tail = at + 12 + 8 * len(dims)
        nbytes = self.implied(owner, dtype, dims, at + 12)
        if flags & HAS_DATA:
            if data_nbytes != nbytes:
                raise self.error(f"{owner}: {data_nbytes} bytes of data, its dims imply {nbytes}", tail)
            self.blob("data", owner, data_offset, data_nbytes, tail, tail + 8)
        elif data_nbytes or data_offset:
            raise self.error(f"{owner}: data offset or size set without HAS_DATA", tail)
        t = Tensor(self.source, self.strict, name, dtype, dims, flags, *places)
        if flags & HAS_QUANT:
            self.blob("quant", f"{owner}: quant", quant_offset, quant_nbytes, tail + 16, tail + 24)
            t.quant = self.quant(owner, dims, quant_offset, quant_nbytes)
        elif quant_nbytes or quant_offset:
            raise self.error(f"{owner}: quant offset or size set without HAS_QUANT", tail + 16)
        self.package.tensors[name] = t

    # row 12
    def quant(self, owner: str, dims: Tuple[int, ...], offset: int, nbytes: int) -> q.QuantParams:
        if nbytes < q.HEAD.size:
            raise self.error(f"{owner}: quant payload of {nbytes} bytes is too short", offset)
        head = q.HEAD.unpack(self.source.read(offset, q.HEAD.size))
        reason = q.check_head(head, dims)
        if reason:
            raise self.error(f"{owner}: quant: {reason}", offset)
        used = q.HEAD.size + 4 * head[5] + 4 * head[7]
        if nbytes != align8(used):
            raise self.error(f"{owner}: quant: {nbytes} bytes, its counts imply {align8(used)}", offset)
        params = q.decode_body(head, bytes(self.source.read(offset + q.HEAD.size, used - q.HEAD.size)))
        reason = q.check_scales(params.scale.values)
        if reason:
            raise self.error(f"{owner}: quant: {reason}", offset + q.HEAD.size)
        self.zero_range(offset + used, offset + nbytes, f"{owner}: quant padding")
        return params

    # row 7, across tables
    def same_names(self) -> None:
        p = self.package
        tensors, metadata, sizevars = set(p.tensors), set(p.metadata), set(p.sizevars)
        for both, first, second in (
            (tensors & metadata, "tensor", "metadata"),
            (tensors & sizevars, "tensor", "sizevar"),
            (metadata & sizevars, "metadata", "sizevar"),
        ):
            for name in sorted(both):
                p.warnings.append(f"{name!r} is both a {first} and a {second} name")

    # row 13
    def overlaps(self) -> None:
        blobs = sorted((b for b in self.blobs if b.nbytes), key=lambda b: (b.offset, b.end))
        end, last = self.off_data, None
        for b in blobs:
            if last is not None and b.offset < end and not self.shared(last, b):
                raise self.error(f"{b.owner} overlaps {last.owner}", b.offset)
            self.zero_range(end, b.offset, "padding between blobs")
            if b.end > end:
                end, last = b.end, b
        self.zero_range(end, self.source.size, "padding after the last blob")

    def shared(self, a: _Blob, b: _Blob) -> bool:
        same = a.offset == b.offset and a.nbytes == b.nbytes and a.kind == b.kind
        return self.allow_shared and same and a.kind != "metadata"
