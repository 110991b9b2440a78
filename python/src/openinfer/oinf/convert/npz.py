"""numpy files: .npy is one array, .npz a ZIP of them.

    "\\x93NUMPY" major:u8 minor:u8 length:u16 (u32 from version 2) "{'descr': '<f4', 'fortran_order': False, ...}" data

The header is matched as text, never evaluated, and arrays of objects (pickles) are never read.
Arrays in column order are turned in memory, one at a time; everything else is streamed.
"""

from __future__ import annotations

import os
import re
import zipfile
from dataclasses import dataclass
from typing import Any, Callable, Iterator, List, Tuple

from ..types import BytesLike, OinfError
from .weights import (
    CHUNK, MAX_ENTRIES, MAX_NAME, ChunkMaker, SourceTensor, Weights, checked_numel, need_numpy, plain_part, shape_text,
    shown,
)  # fmt: skip

MAGIC = b"\x93NUMPY"
MAX_HEADER = 1 << 16
HEADER = re.compile(
    r"\s*\{\s*'descr':\s*(?P<descr>'[^'\\]{1,40}'|\[.*\])\s*,\s*'fortran_order':\s*(?P<fortran>True|False)\s*,"
    r"\s*'shape':\s*\((?P<shape>[0-9, ]*)\)\s*,?\s*\}\s*",
    re.S,
)
TYPES = {
    "b1": "bool", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u1": "u8", "u2": "u16", "u4": "u32", "u8": "u64",
    "f2": "f16", "f4": "f32", "f8": "f64",
}  # fmt: skip
MAX_TURNED = 1 << 31  # bytes of an array in column order


@dataclass
class _Header:
    kind: str
    dtype: str  # "" when there is none of ours
    swap: bool
    fortran: bool
    dims: Tuple[int, ...]
    length: int  # bytes before the data


def open_npy(path: str) -> Weights:
    name = os.path.splitext(os.path.basename(path))[0]
    size = os.path.getsize(path)
    tensor = _tensor(path, name or "array", size, lambda: open(path, "rb"))
    return Weights(path, "npy", size, [tensor], {}, lambda: None)


def open_npz(path: str) -> Weights:
    size = os.path.getsize(path)
    try:
        archive = zipfile.ZipFile(path)
    except OSError as e:
        if e.filename is not None:
            raise
        raise OinfError(f"not a ZIP archive: {shown(str(e))}", path, 0) from None
    except Exception as e:  # the module has no closed list of what a broken directory raises
        raise OinfError(f"not a ZIP archive: {shown(str(e)) or type(e).__name__}", path, 0) from None
    try:
        tensors = _members(archive, path, size)
    except BaseException:
        archive.close()
        raise
    return Weights(path, "npz", size, tensors, {}, archive.close)


def _members(archive: zipfile.ZipFile, path: str, size: int) -> List[SourceTensor]:
    infos = archive.infolist()
    if len(infos) > MAX_ENTRIES:
        raise OinfError(f"{len(infos)} members, at most {MAX_ENTRIES} are read", path)
    if sum(info.compress_size for info in infos) > size:
        raise OinfError("members share bytes: together they are larger than the file", path)
    tensors, seen = [], set()
    for info in infos:
        name = info.filename[:-4] if info.filename.endswith(".npy") else info.filename
        if name in seen:
            raise OinfError(f"duplicate member {shown(name)!r}", path, info.header_offset)
        seen.add(name)
        if not name or len(name) > MAX_NAME:
            raise OinfError(f"member {shown(name)!r}: its name is empty or too long", path, info.header_offset)
        tensors.append(_tensor(path, name, info.file_size, _opener(archive, info, path)))
    return tensors


def _opener(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str) -> Callable[[], Any]:
    def start() -> Any:
        try:
            return archive.open(info)
        except Exception as e:
            raise OinfError(f"member {shown(info.filename)!r}: {shown(str(e))}", path, info.header_offset) from None

    return start


def _read(stream: Any, n: int, what: str, path: str) -> bytearray:
    """Exactly n bytes; a member may end early or not be what its checksum says."""
    out = bytearray()
    try:
        while len(out) < n:
            part = stream.read(min(n - len(out), CHUNK))
            if not part:
                break
            out += part
    except Exception as e:
        raise OinfError(f"{what}: {shown(str(e)) or type(e).__name__}", path) from None
    if len(out) != n:
        raise OinfError(f"truncated: {what} wants {n} more bytes, {len(out)} are left", path)
    return out


def _tensor(path: str, name: str, size: int, start: Callable[[], Any]) -> SourceTensor:
    what = f"array {shown(name)!r}"
    with start() as stream:
        h = _header(stream, what, path)
    numel = checked_numel(h.dims, what, path)
    width = int(re.sub(r"\D", "", h.kind) or 0) if h.dtype else 0
    nbytes = numel * width
    if h.dtype and nbytes != size - h.length:
        state = "truncated: " if nbytes > size - h.length else ""
        raise OinfError(
            f"{state}{what}: {h.kind}{shape_text(h.dims)} has {nbytes} bytes, the file has {size - h.length}", path
        )
    if h.fortran and nbytes > MAX_TURNED:
        raise OinfError(f"{what} is in column order and has more than {MAX_TURNED} bytes", path)
    if not h.dtype:
        return SourceTensor(name, h.kind, h.dims, 0, 0, None)
    chunks = _chunks(start, h, nbytes, width, what, path)
    return SourceTensor(name, h.kind, h.dims, 0, nbytes, [plain_part(h.dtype, h.dims, chunks)])


def _header(stream: Any, what: str, path: str) -> _Header:
    head = _read(stream, 10, what, path)
    if head[:6] != MAGIC or head[6] not in (1, 2, 3):
        raise OinfError(f"{what} is not in numpy's format", path)
    if head[6] == 1:
        length, before = int.from_bytes(head[8:10], "little"), 10
    else:
        head += _read(stream, 2, what, path)
        length, before = int.from_bytes(head[8:12], "little"), 12
    if length > MAX_HEADER:
        raise OinfError(f"{what}: header of {length} bytes, at most {MAX_HEADER} are read", path)
    text = _read(stream, length, what, path).decode("latin-1")
    m = HEADER.fullmatch(text)
    if m is None:
        raise OinfError(f"{what}: its header is not understood: {shown(text.strip())}", path)
    numbers = [s.strip() for s in m["shape"].split(",") if s.strip()]
    if len(numbers) > 64 or not all(s.isdecimal() and len(s) < 20 for s in numbers):
        raise OinfError(f"{what}: impossible shape ({shown(m['shape'])})", path)
    descr = m["descr"].strip("'")
    order, kind = (descr[0], descr[1:]) if descr[0] in "<>|=" else ("=", descr)
    dims = tuple(int(s) for s in numbers)
    return _Header(kind, TYPES.get(kind, ""), order == ">", m["fortran"] == "True" and len(dims) > 1, dims, before + length)


def _chunks(start: Callable[[], Any], h: _Header, nbytes: int, width: int, what: str, path: str) -> ChunkMaker:
    step = nbytes if h.fortran else CHUNK  # a multiple of every width

    def make() -> Iterator[BytesLike]:
        np = need_numpy()
        with start() as stream:
            _read(stream, h.length, what, path)
            for at in range(0, nbytes, step or 1):
                raw: BytesLike = _read(stream, min(step, nbytes - at), what, path)
                if h.swap or h.fortran:
                    a = np.frombuffer(raw, f"{'>' if h.swap else '<'}{h.kind.replace('b1', 'u1')}")
                    a = a.reshape(h.dims, order="F") if h.fortran else a
                    raw = a.astype(a.dtype.newbyteorder("<"), order="C").tobytes()
                yield raw
            _finish(stream, what, path)

    return make


def _finish(stream: Any, what: str, path: str) -> None:
    """Read to the end, where the archive's checksum is compared."""
    try:
        more = stream.read(1)
    except Exception as e:
        raise OinfError(f"{what}: {shown(str(e)) or type(e).__name__}", path) from None
    if more:
        raise OinfError(f"{what}: more bytes than its shape asks for", path)
