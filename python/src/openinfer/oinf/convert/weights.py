"""What every reader gives: tensors that are read chunk by chunk, and metadata.

A `SourceTensor` becomes one stored tensor, or, for a block format, an integer tensor with its
companions NAME.scale and NAME.offset. Nothing is read before the writer asks for a chunk, so a
conversion holds one chunk whatever the size of the file.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from .. import _np
from ..dtypes import count_elements
from ..source import FileSource
from ..types import BytesLike, OinfError

CHUNK = 1 << 20  # bytes read at a time
MAX_ENTRIES = 1 << 18  # tensors or metadata of one file: what a package can hold, three parts each
MAX_NAME = 4096  # bytes; far beyond any real name, and keeps matching rules quick
ChunkMaker = Callable[[], Iterator[BytesLike]]


@dataclass
class Part:
    """One tensor to store: what is put behind the name, and where its bytes come from."""

    suffix: str
    dtype: str
    dims: Tuple[int, ...]
    chunks: ChunkMaker


@dataclass
class SourceTensor:
    """A tensor of the file. `parts` and `real` are None when OINF has no form for its type."""

    name: str
    kind: str  # what its own format calls the type: F32, Q4_1, BF16
    dims: Tuple[int, ...]
    offset: int
    nbytes: int
    parts: Optional[List[Part]]
    group: int = 0  # weights that share a scale; 0: not a block format
    real: Optional[Part] = None  # a block format as f32


@dataclass
class StringList:
    """A list of byte strings, kept as their concatenation and n+1 offsets."""

    data: bytearray = field(default_factory=bytearray)
    offsets: "array[int]" = field(default_factory=lambda: array("Q", [0]))

    def append(self, text: BytesLike) -> None:
        self.data += text
        self.offsets.append(len(self.data))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> bytes:
        return bytes(self.data[self.offsets[i] : self.offsets[i + 1]])


@dataclass
class Weights:
    """One open file: metadata values are what `PackageWriter.add_metadata` takes, or StringList."""

    path: str
    format: str
    size: int
    tensors: List[SourceTensor]
    metadata: Dict[str, Any]
    close: Callable[[], None]


def need_numpy() -> Any:
    np = _np.available()
    if np is None:
        raise OinfError("convert needs numpy, which is not installed")
    return np


def checked_numel(dims: Tuple[int, ...], what: str, path: str, offset: Optional[int] = None) -> int:
    numel = count_elements(dims)
    if numel is None:
        raise OinfError(f"{what}: shape {shape_text(dims)} has too many elements", path, offset)
    return numel


def shape_text(dims: Tuple[int, ...]) -> str:
    return "[" + ", ".join(str(d) for d in dims) + "]"


def shown(name: str, whole: bool = False) -> str:
    """A name from a file, safe to print on one line; not too long, unless all of it is wanted."""
    text = ascii(name)[1:-1] if not name.isprintable() else name
    return text if whole or len(text) <= 80 else text[:77] + "..."


def legal_name(name: str) -> str:
    """The name within OINF's alphabet: every run of other characters becomes one '_'."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name) or "_"


def raw_chunks(source: FileSource, offset: int, nbytes: int) -> ChunkMaker:
    """The bytes as they are."""

    def make() -> Iterator[BytesLike]:
        for at in range(offset, offset + nbytes, CHUNK):
            yield source.read(at, min(CHUNK, offset + nbytes - at))

    return make


def truth_chunks(chunks: ChunkMaker) -> ChunkMaker:
    """Bytes that are 0 or 1, whatever the file calls true."""

    def make() -> Iterator[BytesLike]:
        np = need_numpy()
        for chunk in chunks():
            yield memoryview((np.frombuffer(chunk, np.uint8) != 0).view(np.uint8))

    return make


def e4m3_chunks(chunks: ChunkMaker) -> ChunkMaker:
    """float8 E4M3 (bias 7, no infinities, 0x7f and 0xff NaN) as f16, which holds every value of it."""
    table = []
    for code in range(256):
        exponent, mantissa = code >> 3 & 15, code & 7
        value = (mantissa / 8 + (exponent > 0)) * 2.0 ** (max(exponent, 1) - 7)
        table.append(float("nan") if code & 127 == 127 else -value if code & 128 else value)

    def make() -> Iterator[BytesLike]:
        np = need_numpy()
        halves = np.array(table, "<f2")
        for chunk in chunks():
            yield memoryview(halves[np.frombuffer(chunk, np.uint8)].view(np.uint8))

    return make


def plain_part(dtype: str, dims: Tuple[int, ...], chunks: ChunkMaker) -> Part:
    """A tensor stored as it is; `dtype` is ours, or e4m3."""
    if dtype == "e4m3":
        return Part("", "f16", dims, e4m3_chunks(chunks))
    return Part("", dtype, dims, truth_chunks(chunks) if dtype == "bool" else chunks)


def check_ranges(tensors: List[SourceTensor], path: str) -> None:
    """No two tensors may share bytes: a file whose sizes lie shows here."""
    ranges = sorted(((t.offset, t.offset + t.nbytes, t.name) for t in tensors if t.nbytes))
    for (_, end, first), (start, _, second) in zip(ranges, ranges[1:]):
        if start < end:
            raise OinfError(f"tensors {shown(first)!r} and {shown(second)!r} overlap", path, start)


class Cursor:
    """Reads a header in order, through a small window; every length is checked first."""

    WINDOW = 1 << 16

    def __init__(self, source: FileSource, at: int = 0):
        self.source = source
        self.at = at
        self._start = 0
        self._window: BytesLike = b""

    def left(self) -> int:
        return self.source.size - self.at

    def take(self, nbytes: int, what: str) -> BytesLike:
        if nbytes > self.left():
            raise OinfError(f"truncated: {what} wants {nbytes} bytes, {self.left()} are left", self.source.name, self.at)
        begin = self.at - self._start
        if not 0 <= begin <= begin + nbytes <= len(self._window):
            self._start = self.at
            self._window = self.source.read(self.at, min(max(nbytes, self.WINDOW), self.left()))
            begin = 0
        self.at += nbytes
        return self._window[begin : begin + nbytes]

    def uint(self, nbytes: int, what: str) -> int:
        return int.from_bytes(self.take(nbytes, what), "little")
