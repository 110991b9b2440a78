"""From what a caller holds (numbers, nested lists, buffers, numpy arrays) to stored bytes.

Inference, when no dtype is given:
  lists                 all bools -> bool, any float -> f32, ints -> smallest type that fits
  arrays and buffers    their own type as tensors; the list rule as metadata
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, List, Optional, Sequence, Tuple

from . import _np
from .dtypes import (
    BOOL, BY_NAME, F32, DType, count_elements, decode_list, encode_list, encode_numpy, numpy_dtype, scalar_dtype, smallest_int,
)  # fmt: skip
from .types import BytesLike, Chunks, OinfError, check_shape

# memoryview format letter -> type; 'l' and 'L' depend on the platform, so go by size.
_BUFFER_KINDS = {"b": "i", "h": "i", "i": "i", "l": "i", "q": "i", "n": "i",
                 "B": "u", "H": "u", "I": "u", "L": "u", "Q": "u", "N": "u",
                 "e": "f", "f": "f", "d": "f"}  # fmt: skip


@dataclass
class Encoded:
    """Typed, shaped, stored bytes; `data` may be produced on demand."""

    dtype: DType
    dims: Tuple[int, ...]
    data: Chunks

    @property
    def nbytes(self) -> int:
        return self.dtype.nbytes(numel_of(self.dims))


def numel_of(dims: Sequence[int]) -> int:
    numel = count_elements(dims)
    if numel is None:
        raise OinfError(f"shape {list(dims)} has too many elements")
    return numel


def is_numpy(value: Any) -> bool:
    """A numpy array (not a numpy scalar)."""
    np = _np.loaded()
    return np is not None and isinstance(value, np.ndarray)


def is_array(value: Any) -> bool:
    """An array with a type of its own: numpy, array.array, memoryview, a ctypes array."""
    if isinstance(value, (list, tuple, str, bytes, bytearray)):
        return False
    if is_numpy(value):
        return True
    np = _np.loaded()
    if np is not None and isinstance(value, np.generic):
        return False
    return _buffer(value) is not None


def plain(value: Any) -> Any:
    """A numpy scalar as the Python number it stands for; anything else unchanged."""
    np = _np.loaded()
    if np is not None and isinstance(value, np.generic):
        return value.item()
    return value


def encode_array(data: Any, dtype: Optional[str] = None, as_metadata: bool = False) -> Encoded:
    """Encode anything array-like. Conversions of numpy arrays wait until written."""
    want = None if dtype is None else scalar_dtype(dtype)
    data = plain(data)
    np = _np.loaded()
    if is_numpy(data):
        return _from_numpy(data, want, as_metadata)
    if not isinstance(data, (list, tuple, str)):
        view = _buffer(data)
        if view is not None:
            return _from_buffer(view, want, as_metadata)
        if np is not None and hasattr(data, "__array__"):
            return _from_numpy(np.asarray(data), want, as_metadata)
    dims, flat = flatten(data)
    d = want or infer(flat)
    return Encoded(d, dims, encode_list(flat, d))


def _from_numpy(arr: Any, want: Optional[DType], as_metadata: bool) -> Encoded:
    source = numpy_dtype(arr)
    dims = check_shape(arr.shape, "array")
    d = want or (_metadata_dtype(source, arr) if as_metadata else source)
    if as_metadata or d is source:
        return Encoded(d, dims, encode_numpy(arr, d))
    return Encoded(d, dims, lambda: encode_numpy(arr, d))


def _metadata_dtype(source: DType, arr: Any) -> DType:
    if source.is_float:
        return F32
    if source.kind == "bool":
        return source
    return smallest_int(int(arr.min()), int(arr.max())) if arr.size else BY_NAME["u8"]


def _buffer(data: Any) -> Optional[memoryview]:
    try:
        return memoryview(data)
    except TypeError:
        return None


def _from_buffer(view: memoryview, want: Optional[DType], as_metadata: bool) -> Encoded:
    fmt = view.format
    order = fmt[0] if fmt[:1] in ("<", ">", "=", "@", "!") else "@"
    letter = fmt[1:] if order != "@" or fmt[:1] == "@" else fmt
    if letter == "?":
        source = BOOL
    elif letter in _BUFFER_KINDS:
        source = BY_NAME[f"{_BUFFER_KINDS[letter]}{view.itemsize * 8}"]
    else:
        raise OinfError(f"no OINF type stores a buffer of format {fmt!r}")
    big = order in (">", "!") or (order in ("@", "=") and sys.byteorder == "big")
    dims = check_shape(view.shape or (), "buffer")
    if not big and (want is source or (want is None and not as_metadata)):
        return Encoded(source, dims, _bytes_of(view))
    np = _np.available()
    if np is not None:
        return _from_numpy(np.asarray(view), want, as_metadata)
    raw = _swapped(view.tobytes(), view.itemsize) if big else view.tobytes()
    flat = decode_list(raw, source, numel_of(dims))
    d = want or (infer(flat) if as_metadata else source)
    return Encoded(d, dims, encode_list(flat, d))


def _bytes_of(view: memoryview) -> BytesLike:
    if view.nbytes == 0:
        return b""
    if view.c_contiguous and view.format in ("B", "b", "c"):
        return view.cast("B")
    return view.tobytes()


def _swapped(raw: bytes, size: int) -> bytes:
    out = bytearray(len(raw))
    for i in range(size):
        out[i::size] = raw[size - 1 - i :: size]
    return bytes(out)


def flatten(data: Any) -> Tuple[Tuple[int, ...], List[Any]]:
    """Shape and row-major elements of nested lists; ragged ones are an error."""
    dims: List[int] = []
    level = [data]
    while level and isinstance(level[0], (list, tuple, range)):
        length = len(level[0])
        below: List[Any] = []
        for row in level:
            if not isinstance(row, (list, tuple, range)) or len(row) != length:
                raise OinfError(f"ragged list at depth {len(dims)}")
            below.extend(row)
        dims.append(length)
        if len(dims) > 64:
            raise OinfError("more than 64 nested lists")
        level = below
    for v in level:
        if isinstance(v, (list, tuple, range)):
            raise OinfError(f"ragged list at depth {len(dims)}")
    return tuple(dims), [plain(v) for v in level]


def infer(flat: Sequence[Any]) -> DType:
    """Element type of plain numbers."""
    if not flat:
        return F32
    for v in flat:
        if not isinstance(v, (bool, int, float)):
            raise OinfError(f"no OINF type stores {type(v).__name__} {v!r}")
    if all(isinstance(v, bool) for v in flat):
        return BOOL
    if any(isinstance(v, float) for v in flat):
        return F32
    return smallest_int(min(flat), max(flat))
