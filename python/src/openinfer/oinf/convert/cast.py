"""Changing the element type of a tensor, chunk by chunk; a value that would change is an error."""

from __future__ import annotations

from typing import Any, Iterator

from ..dtypes import DType, decode_numpy, encode_numpy, scalar_dtype
from ..types import BytesLike, OinfError
from ..values import numel_of
from .weights import Part, need_numpy

# Every integer up to this is stored exactly.
_EXACT_INTS = {"f8": 1 << 3, "bf16": 1 << 8, "f16": 1 << 11, "f32": 1 << 24, "f64": 1 << 53}


def cast_part(part: Part, to: str, lossy: bool) -> Part:
    """The part as another type. Lossless per value, unless `lossy` allows rounding."""
    source, target = scalar_dtype(part.dtype), scalar_dtype(to)
    if source is target:
        return part
    if source.is_float and not target.is_float:
        raise OinfError(f"no conversion from {source.name} to {target.name}")

    numel = numel_of(part.dims)

    def make() -> Iterator[BytesLike]:
        at = 0
        for chunk in _whole(part.chunks(), source):
            n = min(memoryview(chunk).nbytes * 8 // source.bits, numel - at)
            values = decode_numpy(chunk, source, n)
            if target.kind == "bool" or source.kind == "bool":
                values = values.astype(need_numpy().uint8)
            stored = encode_numpy(values, target)
            _check(values, stored, target, at, lossy)
            yield stored
            at += n

    return Part(part.suffix, target.name, part.dims, make)


def _whole(chunks: Iterator[BytesLike], d: DType) -> Iterator[BytesLike]:
    """The same bytes in chunks that hold whole elements."""
    size = max(d.bits // 8, 1)
    rest = b""
    for chunk in chunks:
        if rest or memoryview(chunk).nbytes % size:
            joined = rest + bytes(chunk)
            cut = len(joined) // size * size
            chunk, rest = joined[:cut], joined[cut:]
        if memoryview(chunk).nbytes:
            yield chunk


def _check(values: Any, stored: BytesLike, target: DType, at: int, lossy: bool) -> None:
    np = need_numpy()
    if not target.is_float:
        return  # integers out of range have been refused
    if values.dtype.kind == "f":
        back = decode_numpy(stored, target, values.size)
        same = (back == values) | (np.isnan(back) & np.isnan(values))
        if lossy:
            same = np.isfinite(back) | ~np.isfinite(values)
    elif lossy:
        return
    else:
        limit = _EXACT_INTS[target.name]
        same = values <= limit
        if values.dtype.kind == "i":
            same &= values >= -limit
    if not same.all():
        i = int(np.argmin(same))
        wrong = "is too large for" if lossy else "is not exact as"
        raise OinfError(f"element {at + i} = {values[i]:.9g} {wrong} {target.name}{'' if lossy else '; --lossy rounds it'}")
