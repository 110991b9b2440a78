"""The values a caller hands to the writer, and the one exception of the package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Optional, Sequence, Tuple, Union

if TYPE_CHECKING:
    from .quant import QuantParams

BytesLike = Union[bytes, bytearray, memoryview]
Chunks = Union[BytesLike, Iterable[BytesLike], Callable[[], Union[BytesLike, Iterable[BytesLike]]]]


class OinfError(ValueError):
    """A package that cannot be read, or content that cannot be written.

    Reading errors print as `oinf: <path>: <reason> (offset N)`.
    """

    def __init__(self, reason: str, path: Optional[str] = None, offset: Optional[int] = None):
        self.reason = reason
        self.path = path
        self.offset = offset
        text = "oinf: " if path is None else f"oinf: {path}: "
        text += reason
        if offset is not None:
            text += f" (offset {offset})"
        super().__init__(text)


@dataclass(frozen=True)
class SizeVar:
    """A named size, stored as u64."""

    value: int


@dataclass(frozen=True)
class ScalarValue:
    """A metadata scalar with an explicit type; without one, as for plain values."""

    value: Any
    dtype: Optional[str] = None


@dataclass(frozen=True)
class ArrayValue:
    """A metadata ndarray with an explicit type (a plain list infers its own)."""

    data: Any
    dtype: Optional[str] = None


@dataclass
class TensorSpec:
    """A tensor with data. `name` overrides the field or key it is stored under."""

    data: Any
    dtype: Optional[str] = None
    name: Optional[str] = None
    quant: Optional["QuantParams"] = None


@dataclass
class UninitializedTensor:
    """A tensor that only declares its type and shape (no HAS_DATA)."""

    dtype: str
    shape: Sequence[int]
    name: Optional[str] = None
    quant: Optional["QuantParams"] = None


@dataclass
class StreamTensor:
    """A tensor given as its stored bytes, possibly chunk by chunk.

    `chunks` is one bytes-like object, an iterable of them, or a callable that returns
    either; a callable is run only when the tensor's turn to be written comes, so a
    converter never holds more than one chunk. The total must be what dtype and shape imply.
    """

    dtype: str
    shape: Sequence[int]
    chunks: Chunks
    name: Optional[str] = None
    quant: Optional["QuantParams"] = None


class Bitset:
    """A sequence of bits; bit i is stored in byte i/8 at bit i%8."""

    __slots__ = ("bit_count", "data")

    def __init__(self, bits: Iterable[Any]):
        out = bytearray()
        count = 0
        for bit in bits:
            if isinstance(bit, str) or bit not in (0, 1):
                raise OinfError(f"bitset: a bit is 0 or 1, found {bit!r}")
            if count % 8 == 0:
                out.append(0)
            if bit:
                out[-1] |= 1 << (count % 8)
            count += 1
        self.bit_count = count
        self.data = bytes(out)

    @classmethod
    def from_bytes(cls, data: BytesLike, bit_count: int) -> "Bitset":
        if len(data) != (bit_count + 7) // 8:
            raise OinfError(f"bitset: {bit_count} bits do not fill {len(data)} bytes")
        self = cls(())
        self.bit_count = bit_count
        self.data = bytes(data)
        return self

    def __len__(self) -> int:
        return self.bit_count

    def __getitem__(self, i: int) -> bool:
        if not 0 <= i < self.bit_count:
            raise IndexError(i)
        return bool(self.data[i // 8] >> (i % 8) & 1)

    def __iter__(self) -> Iterator[bool]:
        return (self[i] for i in range(self.bit_count))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bitset) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Bitset({[int(b) for b in self]})"


def check_shape(shape: Sequence[int], what: str) -> Tuple[int, ...]:
    """The shape as a tuple of non-negative ints, at most 64 of them."""
    dims = []
    for d in shape:
        if isinstance(d, bool) or not hasattr(d, "__index__"):
            raise OinfError(f"{what}: a dimension is an integer, found {d!r}")
        if d.__index__() < 0:
            raise OinfError(f"{what}: negative dimension {d!r}")
        dims.append(d.__index__())
    if len(dims) > 64:
        raise OinfError(f"{what}: {len(dims)} dimensions, at most 64 are allowed")
    return tuple(dims)
