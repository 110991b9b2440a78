"""safetensors: the length of a JSON header, the header, then the tensors' bytes.

    u64 n | {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...} padded to n | data

Offsets count from the end of the header. As the format asks, the tensors cover the data exactly,
without holes and without sharing bytes.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple

from ..source import FileSource
from ..types import OinfError
from .weights import (
    MAX_ENTRIES, MAX_NAME, SourceTensor, Weights, check_ranges, checked_numel, plain_part, raw_chunks, shape_text,
    shown,
)  # fmt: skip

MAX_HEADER = 100_000_000  # the format's own limit

# name -> our type, bits; no type of ours: None
TYPES = {
    "F64": ("f64", 64), "F32": ("f32", 32), "F16": ("f16", 16), "BF16": ("bf16", 16), "F8_E5M2": ("f8", 8),
    "F8_E4M3": ("e4m3", 8), "I64": ("i64", 64), "I32": ("i32", 32), "I16": ("i16", 16), "I8": ("i8", 8),
    "U64": ("u64", 64), "U32": ("u32", 32), "U16": ("u16", 16), "U8": ("u8", 8), "BOOL": ("bool", 8),
    "F8_E8M0": (None, 8), "F4": (None, 4), "F6_E2M3": (None, 6), "F6_E3M2": (None, 6), "C64": (None, 64),
}  # fmt: skip


def open_safetensors(path: str) -> Weights:
    source = FileSource(path)
    try:
        header, start = _header(source)
        metadata = _metadata(header.pop("__metadata__", {}), path)
        tensors = [_tensor(source, name, entry, start) for name, entry in header.items()]
        _check_cover(tensors, start, source)
        return Weights(path, "safetensors", source.size, tensors, metadata, source.close)
    except BaseException:
        source.close()
        raise


def _header(source: FileSource) -> Tuple[Dict[str, Any], int]:
    if source.size < 8:
        raise OinfError(f"truncated: a safetensors file has at least 8 bytes, this one {source.size}", source.name, 0)
    n = int.from_bytes(source.read(0, 8), "little")
    if n > MAX_HEADER:
        raise OinfError(f"header of {n} bytes, at most {MAX_HEADER} are allowed", source.name, 0)
    if n > source.size - 8:
        raise OinfError(f"truncated: header of {n} bytes, {source.size - 8} are left", source.name, 0)
    raw = bytes(source.read(8, n))
    if raw[:1] != b"{":
        raise OinfError("the header does not begin with '{'", source.name, 8)
    try:
        header = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError as e:
        raise OinfError("the header is not valid UTF-8", source.name, 8 + e.start) from None
    except json.JSONDecodeError as e:
        raise OinfError(f"the header is not JSON: {e.msg}", source.name, 8 + e.pos) from None
    except (ValueError, RecursionError) as e:
        raise OinfError(f"the header is not JSON: {shown(str(e))}", source.name, 8) from None
    if len(header) > MAX_ENTRIES:
        raise OinfError(f"{len(header)} tensors, at most {MAX_ENTRIES} are read", source.name, 8)
    return header, 8 + n


def _unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"duplicate name {shown(key)!r}")
            seen.add(key)
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _metadata(entry: Any, path: str) -> Dict[str, Any]:
    if not isinstance(entry, dict) or not all(isinstance(v, str) for v in entry.values()):
        raise OinfError("__metadata__ does not map texts to texts", path, 8)
    for text in (*entry, *entry.values()):
        _check_text(text, "__metadata__", path)
    return {k: v for k, v in entry.items() if k}


def _check_text(text: str, what: str, path: str) -> None:
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise OinfError(f"{what}: {shown(text)!r} is not valid Unicode", path, 8)


def _tensor(source: FileSource, name: str, entry: Any, start: int) -> SourceTensor:
    what = f"tensor {shown(name)!r}"
    _check_text(name, "a tensor's name", source.name)
    if not name or len(name.encode("utf-8")) > MAX_NAME:
        raise OinfError(f"{what}: its name is empty or longer than {MAX_NAME} bytes", source.name, 8)
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= set(entry):
        raise OinfError(f"{what} wants dtype, shape and data_offsets", source.name, 8)
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in TYPES:
        raise OinfError(f"{what} has the unknown type {shown(str(kind))!r}", source.name, 8)
    if not _naturals(shape) or len(shape) > 64:
        raise OinfError(f"{what}: its shape is not a list of at most 64 whole numbers", source.name, 8)
    if not _naturals(offsets) or len(offsets) != 2:
        raise OinfError(f"{what}: data_offsets is not a pair of whole numbers", source.name, 8)
    dims = tuple(shape)
    dtype, bits = TYPES[kind]
    nbytes = (checked_numel(dims, what, source.name, 8) * bits + 7) // 8
    begin, end = offsets
    if not begin <= end <= source.size - start:
        raise OinfError(f"truncated: {what} wants bytes {begin} to {end} of {source.size - start}", source.name, 8)
    if end - begin != nbytes:
        raise OinfError(f"{what}: {kind}{shape_text(dims)} has {nbytes} bytes, its offsets span {end - begin}", source.name, 8)
    parts = None if dtype is None else [plain_part(dtype, dims, raw_chunks(source, start + begin, nbytes))]
    return SourceTensor(name, kind, dims, start + begin, nbytes, parts)


def _naturals(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 1 << 63 for v in values)


def _check_cover(tensors: List[SourceTensor], start: int, source: FileSource) -> None:
    check_ranges(tensors, source.name)
    at = start
    for t in sorted(tensors, key=lambda t: (t.offset, t.nbytes)):
        if t.offset > at:
            raise OinfError(f"{t.offset - at} bytes before tensor {shown(t.name)!r} belong to no tensor", source.name, at)
        at = max(at, t.offset + t.nbytes)
    if at != source.size:
        raise OinfError(f"the last {source.size - at} bytes belong to no tensor", source.name, at)
