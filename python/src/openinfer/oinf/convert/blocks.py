"""Block formats: how blocks of weights become integers, scales and offsets, exactly.

    real = scale * q + offset        one scale (and offset) per group of weights along K

The integers of the file are kept; 4-bit ones stay packed, 5- and 6-bit ones become bytes. Where
the format stores scales as f16 those bits are kept; K-quants store products of small numbers, so
their scales are those products in f32, computed as every dequantiser does.

    format  block  bytes of a block                                 q    group  scale  offset
    Q4_0    32     d:f16 q:16                                        i4   32     f16    -
    Q4_1    32     d:f16 m:f16 q:16                                  u4   32     f16    f16
    Q5_0    32     d:f16 high:4 q:16                                 i8   32     f16    -
    Q5_1    32     d:f16 m:f16 high:4 q:16                           u8   32     f16    f16
    Q8_0    32     d:f16 q:32                                        i8   32     f16    -
    Q2_K    256    scales:16 q:64 d:f16 dmin:f16                     u2   16     f32    f32
    Q3_K    256    high:32 q:64 scales:12 d:f16                      i8   16     f32    -
    Q4_K    256    d:f16 dmin:f16 scales:12 q:128                    u4   32     f32    f32
    Q5_K    256    d:f16 dmin:f16 scales:12 high:32 q:128            u8   32     f32    f32
    Q6_K    256    q:128 high:64 scales:16 d:f16                     i8   16     f32    -

Functions take blocks as a u8 array [n, bytes of a block] and give [n, values of a block].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ..source import FileSource
from ..types import BytesLike
from .weights import CHUNK, ChunkMaker, Part, need_numpy

Unpack = Callable[[Any], Any]


@dataclass(frozen=True)
class BlockFormat:
    """One row: sizes, the type of the integers, and how the three kinds of value are found."""

    name: str
    elements: int
    nbytes: int
    group: int
    q_dtype: str
    codes: Unpack  # integers 0.. as u8, one per weight
    bias: int  # q = code - bias
    scale: Unpack  # as f2 or f4, one per group
    offset: Optional[Unpack] = None

    @property
    def scale_dtype(self) -> str:
        return "f32" if self.elements == 256 else "f16"


# ---- pieces of blocks -----------------------------------------------------------------


def _nibbles(q: Any, run: int) -> Any:
    """Runs of `run` bytes hold the low nibbles of `run` weights, then the high ones."""
    np = need_numpy()
    q = q.reshape(len(q), -1, 1, run)
    return np.concatenate([q & 15, q >> 4], axis=2).reshape(len(q), -1)


def _crumbs(q: Any, run: int) -> Any:
    """The same with four values of two bits in a byte."""
    np = need_numpy()
    shift = np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)
    return (q.reshape(len(q), -1, 1, run) >> shift & 3).reshape(len(q), -1)


def _planes(high: Any) -> Any:
    """Bit i of byte j belongs to weight 32*i + j."""
    np = need_numpy()
    shift = np.arange(8, dtype=np.uint8).reshape(1, 8, 1)
    return (high.reshape(len(high), 1, 32) >> shift & 1).reshape(len(high), 256)


def _half(at: int) -> Unpack:
    return lambda blocks: need_numpy().ascontiguousarray(blocks[:, at : at + 2]).view("<f2")


def _bits32(high: Any) -> Any:
    """Bit i of four bytes belongs to weight i."""
    return need_numpy().unpackbits(need_numpy().ascontiguousarray(high), axis=1, bitorder="little")


def _q5(blocks: Any, at: int) -> Any:
    return _nibbles(blocks[:, at + 4 : at + 20], 16) | _bits32(blocks[:, at : at + 4]) << 4


def _scale_min(s: Any) -> Tuple[Any, Any]:
    """Twelve bytes hold eight 6-bit scales and eight 6-bit minima:

    byte 0-3   scales 0-3, top bits: upper bits of scales 4-7
    byte 4-7   minima 0-3, top bits: upper bits of minima 4-7
    byte 8-11  low nibble: rest of scales 4-7, high nibble: rest of minima 4-7
    """
    np = need_numpy()
    a, b, c = s[:, 0:4], s[:, 4:8], s[:, 8:12]
    scale = np.concatenate([a & 63, c & 15 | a >> 6 << 4], axis=1)
    minimum = np.concatenate([b & 63, c >> 4 | b >> 6 << 4], axis=1)
    return scale, minimum


def _signed_scales(s: Any) -> Any:
    """Twelve bytes hold sixteen 6-bit scales, 32 too large: low halves first, then four upper pairs."""
    np = need_numpy()
    low = np.concatenate([s[:, 0:8] & 15, s[:, 0:8] >> 4], axis=1)
    high = np.concatenate([s[:, 8:12] >> shift & 3 for shift in (0, 2, 4, 6)], axis=1)
    return (low | high << 4).astype(np.int8) - np.int8(32)


def _times(factor: Any, values: Any) -> Any:
    return factor.astype("<f4") * values.astype("<f4")


def _scale_k(blocks: Any) -> Any:
    return _times(_half(0)(blocks), _scale_min(blocks[:, 4:16])[0])


def _offset_k(blocks: Any) -> Any:
    return -_times(_half(2)(blocks), _scale_min(blocks[:, 4:16])[1])


FORMATS: Dict[str, BlockFormat] = {
    f.name: f
    for f in (
        BlockFormat("Q4_0", 32, 18, 32, "i4", lambda b: _nibbles(b[:, 2:], 16), 8, _half(0)),
        BlockFormat("Q4_1", 32, 20, 32, "u4", lambda b: _nibbles(b[:, 4:], 16), 0, _half(0), _half(2)),
        BlockFormat("Q5_0", 32, 22, 32, "i8", lambda b: _q5(b, 2), 16, _half(0)),
        BlockFormat("Q5_1", 32, 24, 32, "u8", lambda b: _q5(b, 4), 0, _half(0), _half(2)),
        BlockFormat("Q8_0", 32, 34, 32, "i8", lambda b: b[:, 2:], 0, _half(0)),
        BlockFormat(
            "Q2_K", 256, 84, 16, "u2", lambda b: _crumbs(b[:, 16:80], 32), 0,
            lambda b: _times(_half(80)(b), b[:, :16] & 15), lambda b: -_times(_half(82)(b), b[:, :16] >> 4),
        ),
        BlockFormat(
            "Q3_K", 256, 110, 16, "i8", lambda b: _crumbs(b[:, 32:96], 32) | _planes(b[:, :32]) << 2, 4,
            lambda b: _times(_half(108)(b), _signed_scales(b[:, 96:108])),
        ),
        BlockFormat("Q4_K", 256, 144, 32, "u4", lambda b: _nibbles(b[:, 16:], 32), 0, _scale_k, _offset_k),
        BlockFormat(
            "Q5_K", 256, 176, 32, "u8", lambda b: _nibbles(b[:, 48:], 32) | _planes(b[:, 16:48]) << 4, 0,
            _scale_k, _offset_k,
        ),
        BlockFormat(
            "Q6_K", 256, 210, 16, "i8", lambda b: _nibbles(b[:, :128], 64) | _crumbs(b[:, 128:192], 32) << 4, 32,
            lambda b: _times(_half(208)(b), b[:, 192:208].view("i1")),
        ),
    )
}  # fmt: skip


# ---- blocks to stored bytes -------------------------------------------------------------


def _integers(f: BlockFormat, blocks: Any) -> Any:
    """One i8 or u8 per weight."""
    codes = f.codes(blocks)
    if f.q_dtype[0] == "u":
        return codes
    np = need_numpy()
    return np.ascontiguousarray(codes).view(np.int8) - np.int8(f.bias)


def _packed(f: BlockFormat, blocks: Any) -> Any:
    """The integers as OINF stores them: sub-byte types from the lowest bits up."""
    np = need_numpy()
    q = np.ascontiguousarray(_integers(f, blocks)).view(np.uint8)
    if f.q_dtype in ("i4", "u4"):
        q = q & 15
        return q[:, 0::2] | q[:, 1::2] << 4
    if f.q_dtype == "u2":
        return q[:, 0::4] | q[:, 1::4] << 2 | q[:, 2::4] << 4 | q[:, 3::4] << 6
    return q


def real_values(f: BlockFormat, blocks: Any) -> Any:
    """scale * q + offset in f32, one row per block."""
    np = need_numpy()
    q = _integers(f, blocks).astype(np.float32).reshape(len(blocks), -1, f.group)
    with np.errstate(invalid="ignore", over="ignore"):
        out = f.scale(blocks).astype(np.float32)[:, :, None] * q
        if f.offset is not None:
            out += f.offset(blocks).astype(np.float32)[:, :, None]
    return out.reshape(len(blocks), f.elements)


def block_parts(f: BlockFormat, source: FileSource, offset: int, dims: Tuple[int, ...]) -> List[Part]:
    """The tensors a block tensor is stored as; dims end in K, a multiple of the block."""
    groups = (*dims[:-1], dims[-1] // f.group)

    def chunks(unpack: Unpack) -> ChunkMaker:
        return _block_chunks(f, source, offset, dims, unpack)

    width = "<f4" if f.scale_dtype == "f32" else "<f2"
    parts = [
        Part("", f.q_dtype, dims, chunks(lambda b: _packed(f, b))),
        Part(".scale", f.scale_dtype, groups, chunks(lambda b: f.scale(b).astype(width, copy=False))),
    ]
    if f.offset is not None:
        find = f.offset
        parts.append(Part(".offset", f.scale_dtype, groups, chunks(lambda b: find(b).astype(width, copy=False))))
    return parts


def real_part(f: BlockFormat, source: FileSource, offset: int, dims: Tuple[int, ...]) -> Part:
    return Part("", "f32", dims, _block_chunks(f, source, offset, dims, lambda b: real_values(f, b).astype("<f4", copy=False)))


def _block_chunks(
    f: BlockFormat, source: FileSource, offset: int, dims: Tuple[int, ...], unpack: Unpack
) -> ChunkMaker:
    def make() -> Iterator[BytesLike]:
        np = need_numpy()
        numel = 1
        for d in dims:
            numel *= d
        left = numel // f.elements
        at = offset
        step = CHUNK // f.nbytes
        while left:
            n = min(step, left)
            raw = source.read(at, n * f.nbytes)
            with np.errstate(invalid="ignore", over="ignore"):
                found = unpack(np.frombuffer(raw, np.uint8).reshape(n, f.nbytes))
            yield memoryview(np.ascontiguousarray(found).reshape(-1).view(np.uint8))
            at += n * f.nbytes
            left -= n

    return make
