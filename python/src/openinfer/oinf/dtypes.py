"""Value types: one table of all tags, and how values become bytes and back.

Every conversion exists twice: over Python lists (always there, the definition) and over
numpy arrays (used when numpy is present; tests hold the two to the same bytes).

f16, bf16 and f8 (E5M2) are rounded once, from f64, to nearest even; overflow gives an
infinity, NaN becomes the canonical NaN, subnormals are kept. bf16 is the top half of f32
and f8 the top byte of f16, which is how both are decoded.

Sub-byte values: element e of width w sits at bits e*w .. e*w+w-1, least significant bit
first, over the whole tensor:

    i4 [-2, -1, 0, 1] -> FE 10        i2 [-2, -1, 0, 1] -> 4E        u1 [0, 1, 1, 0] -> 06
"""

from __future__ import annotations

import math
import operator
import struct
import sys
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _np
from .types import BytesLike, OinfError

U64_MAX = 2**64 - 1
I64_MAX = 2**63 - 1


@dataclass(frozen=True)
class DType:
    """One row of the value table. `kind`: int, float, bool, ternary, or a container."""

    tag: int
    name: str
    bits: int
    kind: str
    lo: int = 0
    hi: int = 0
    fmt: str = ""  # struct letter, for types that struct can store
    np_name: str = ""  # numpy (or ml_dtypes) spelling

    @property
    def is_scalar(self) -> bool:
        """May be a tensor or ndarray element, or a metadata scalar."""
        return self.kind in ("int", "float", "bool", "ternary")

    @property
    def is_tensor(self) -> bool:
        return self.is_scalar or self.name == "bitset"

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def packed(self) -> bool:
        return self.bits < 8

    def nbytes(self, numel: int) -> int:
        """Stored bytes of numel elements."""
        return (numel * self.bits + 7) // 8


def _int(tag: int, name: str, bits: int, fmt: str = "", np_name: str = "") -> DType:
    if name[0] == "u":
        return DType(tag, name, bits, "int", 0, 2**bits - 1, fmt, np_name)
    return DType(tag, name, bits, "int", -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, fmt, np_name)


TABLE: Tuple[DType, ...] = (
    _int(1, "i8", 8, "b", "int8"),
    _int(2, "i16", 16, "h", "int16"),
    _int(3, "i32", 32, "i", "int32"),
    _int(4, "i64", 64, "q", "int64"),
    _int(5, "u8", 8, "B", "uint8"),
    _int(6, "u16", 16, "H", "uint16"),
    _int(7, "u32", 32, "I", "uint32"),
    _int(8, "u64", 64, "Q", "uint64"),
    DType(9, "f16", 16, "float", fmt="e", np_name="float16"),
    DType(10, "f32", 32, "float", fmt="f", np_name="float32"),
    DType(11, "f64", 64, "float", fmt="d", np_name="float64"),
    DType(12, "bool", 8, "bool", 0, 1, "?", "bool"),
    DType(13, "bitset", 8, "bitset", 0, 255),  # a tensor of it has one byte per element
    DType(14, "str", 8, "str"),
    DType(15, "ndarray", 8, "ndarray"),
    DType(16, "bf16", 16, "float", np_name="bfloat16"),
    DType(17, "f8", 8, "float", np_name="float8_e5m2"),
    _int(18, "i4", 4, np_name="int4"),
    _int(19, "i2", 2, np_name="int2"),
    _int(20, "i1", 1),
    _int(21, "u4", 4, np_name="uint4"),
    _int(22, "u2", 2, np_name="uint2"),
    _int(23, "u1", 1),
    DType(24, "t2", 2, "ternary", -1, 1),
    DType(25, "t1", 1, "ternary", -1, 1),
)

BY_TAG: Dict[int, DType] = {d.tag: d for d in TABLE}
BY_NAME: Dict[str, DType] = {d.name: d for d in TABLE}
BY_NUMPY_NAME: Dict[str, DType] = {d.np_name: d for d in TABLE if d.np_name}
ALIASES: Dict[str, str] = {"f8e5m2": "f8", "float8e5m2": "f8"}

F32 = BY_NAME["f32"]
BOOL = BY_NAME["bool"]
U8 = BY_NAME["u8"]

# Smallest first, as inference picks the first that fits.
_UNSIGNED = tuple(BY_NAME[n] for n in ("u8", "u16", "u32", "u64"))
_SIGNED = tuple(BY_NAME[n] for n in ("i8", "i16", "i32", "i64"))


def dtype_of(name: Union[str, DType]) -> DType:
    """The row for a type name or alias."""
    if isinstance(name, DType):
        return name
    found = BY_NAME.get(ALIASES.get(name, name)) if isinstance(name, str) else None
    if found is None:
        raise OinfError(f"unknown dtype {name!r}")
    return found


def scalar_dtype(name: Union[str, DType]) -> DType:
    """The row for an element type: not bitset, str or ndarray."""
    found = dtype_of(name)
    if not found.is_scalar:
        raise OinfError(f"dtype {found.name} is not an element type")
    return found


def smallest_int(lo: int, hi: int) -> DType:
    """The smallest integer type holding lo..hi: unsigned unless something is negative."""
    for d in _UNSIGNED if lo >= 0 else _SIGNED:
        if d.lo <= lo and hi <= d.hi:
            return d
    raise OinfError(f"integer out of range: no type holds {lo} to {hi}")


def count_elements(dims: Sequence[int]) -> Optional[int]:
    """Product of dims, or None when it passes 2^63-1.

    Zero dims count as one in the check, so the answer does not depend on their order.
    """
    bound, numel = 1, 1
    for d in dims:
        bound *= max(d, 1)
        numel *= d
        if bound > I64_MAX:
            return None
    return numel


# ---- one float ----------------------------------------------------------------------

# exponent bits, mantissa bits, canonical NaN
_SMALL_FLOATS: Dict[str, Tuple[int, int, int]] = {
    "f16": (5, 10, 0x7E00),
    "bf16": (8, 7, 0x7FC0),
    "f8": (5, 2, 0x7D),
}


def float_to_bits(x: float, name: str) -> int:
    """Bit pattern of x in f16, bf16 or f8; one rounding, to nearest even."""
    e_bits, m_bits, nan = _SMALL_FLOATS[name]
    if x != x:
        return nan
    sign = (1 if math.copysign(1.0, x) < 0 else 0) << (e_bits + m_bits)
    x = abs(x)
    infinity = ((1 << e_bits) - 1) << m_bits
    if math.isinf(x):
        return sign | infinity
    if x == 0.0:
        return sign
    e_min = 2 - (1 << (e_bits - 1))  # exponent of the smallest normal
    e = max(math.frexp(x)[1] - 1, e_min)
    # Scaling by a power of two is exact unless it underflows, far below half an ulp here;
    # round() on a float is to nearest even.
    units = round(math.ldexp(x, m_bits - e))
    # units includes the hidden bit for normals, so adding carries into the exponent.
    bits = ((e - e_min) << m_bits) + units
    return sign | min(bits, infinity)


def float_from_bits(bits: int, name: str) -> float:
    """Exact value of a bit pattern in f16, bf16 or f8."""
    if name == "bf16":
        return float(struct.unpack("<f", struct.pack("<I", bits << 16))[0])
    return float(struct.unpack("<e", struct.pack("<H", bits << 8 if name == "f8" else bits))[0])


def _f32_bytes(x: float) -> bytes:
    try:
        return struct.pack("<f", x)
    except OverflowError:
        return struct.pack("<f", math.copysign(math.inf, x))


# ---- lists --------------------------------------------------------------------------


def _as_float(v: Any, d: DType) -> float:
    if isinstance(v, (str, bytes)) or not (hasattr(v, "__float__") or hasattr(v, "__index__")):
        raise OinfError(f"{d.name}: expected a number, found {v!r}")
    try:
        return float(v)
    except (OverflowError, TypeError, ValueError) as e:
        raise OinfError(f"{d.name}: cannot store {v!r}: {e}") from None


def _as_int(v: Any, d: DType) -> int:
    try:
        i = operator.index(v)
    except TypeError:
        # numpy.bool_ has no __index__
        if type(v).__name__ not in ("bool_", "bool"):
            raise OinfError(f"{d.name}: expected an integer, found {v!r}") from None
        i = int(v)
    if not d.lo <= i <= d.hi or (d.name == "t1" and i == 0):
        legal = "-1 or 1" if d.name == "t1" else f"{d.lo} to {d.hi}"
        raise OinfError(f"{d.name}: {i} is out of range ({legal})")
    return i


def _to_code(i: int, d: DType) -> int:
    """The low bits that store integer i (t1: -1 -> 0, 1 -> 1; others two's complement)."""
    if d.name == "t1":
        return (i + 1) >> 1
    return i & ((1 << d.bits) - 1)


def encode_list(values: Sequence[Any], dtype: Union[str, DType]) -> bytes:
    """Stored bytes of a flat sequence of Python numbers."""
    d = scalar_dtype(dtype)
    n = len(values)
    if d.is_float:
        floats = [_as_float(v, d) for v in values]
        if d.name == "f64":
            return struct.pack(f"<{n}d", *floats)
        if d.name == "f32":
            try:
                return struct.pack(f"<{n}f", *floats)
            except OverflowError:
                return b"".join(map(_f32_bytes, floats))
        codes = [float_to_bits(x, d.name) for x in floats]
        return struct.pack(f"<{n}{'B' if d.bits == 8 else 'H'}", *codes)
    ints = [_as_int(v, d) for v in values]
    if not d.packed:
        return struct.pack(f"<{n}{'B' if d.kind == 'bool' else d.fmt}", *ints)
    out = bytearray(d.nbytes(n))
    per = 8 // d.bits
    for e, i in enumerate(ints):
        out[e // per] |= _to_code(i, d) << (e % per * d.bits)
    return bytes(out)


def _from_code(code: int, d: DType) -> int:
    if d.name == "t1":
        return 1 if code else -1
    if d.name == "t2" and code == 2:
        return -1  # invalid data, read as -1
    if d.lo < 0 and code >> (d.bits - 1):
        return code - (1 << d.bits)
    return code


_unpack_cache: Dict[str, List[Tuple[int, ...]]] = {}


def _unpack_table(d: DType) -> List[Tuple[int, ...]]:
    """For each byte, the elements it holds."""
    if d.name not in _unpack_cache:
        mask = (1 << d.bits) - 1
        _unpack_cache[d.name] = [
            tuple(_from_code(byte >> s & mask, d) for s in range(0, 8, d.bits)) for byte in range(256)
        ]
    return _unpack_cache[d.name]


def _strict_error(d: DType, element: int) -> OinfError:
    if d.kind == "bool":
        return OinfError(f"bool element {element} is neither 0 nor 1")
    return OinfError(f"t2 element {element} has the invalid pattern 10")


def _check_strict(raw: BytesLike, d: DType, start: int, count: int) -> None:
    if d.kind == "bool":
        for i in range(start, start + count):
            if raw[i] > 1:
                raise _strict_error(d, i)
    elif d.name == "t2":
        for i in range(start, start + count):
            if raw[i // 4] >> (i % 4 * 2) & 3 == 2:
                raise _strict_error(d, i)


def decode_list(
    raw: BytesLike, dtype: Union[str, DType], count: int, start: int = 0, strict: bool = False
) -> List[Any]:
    """Elements start .. start+count-1 of stored bytes, as Python numbers."""
    d = dtype_of(dtype)
    if strict:
        _check_strict(raw, d, start, count)
    if d.packed:
        per = 8 // d.bits
        first = start // per
        last = (start + count + per - 1) // per
        table = _unpack_table(d)
        flat = [v for byte in bytes(raw[first:last]) for v in table[byte]]
        return flat[start - first * per : start - first * per + count]
    size = d.bits // 8
    part = bytes(raw[start * size : (start + count) * size])
    if d.name == "bf16":
        wide = bytearray(4 * count)
        wide[2::4] = part[0::2]
        wide[3::4] = part[1::2]
        return list(struct.unpack(f"<{count}f", wide))
    if d.name == "f8":
        wide = bytearray(2 * count)
        wide[1::2] = part
        return list(struct.unpack(f"<{count}e", wide))
    if d.kind == "bool":
        return [b != 0 for b in part]
    return list(struct.unpack(f"<{count}{d.fmt or 'B'}", part))


# ---- numpy --------------------------------------------------------------------------

_CHUNK = 1 << 20  # elements converted at a time: bounds the temporaries, multiple of 8


def numpy_dtype(arr: Any) -> DType:
    """The row that stores a numpy array as it is."""
    found = BY_NUMPY_NAME.get(arr.dtype.name)
    if found is None:
        raise OinfError(f"no OINF type stores numpy arrays of {arr.dtype.name}")
    return found


def encode_numpy(arr: Any, dtype: Union[str, DType, None] = None) -> BytesLike:
    """Stored bytes of a numpy array, row-major; a view of the array where it can be."""
    np = _np.loaded()
    assert np is not None
    source = numpy_dtype(arr)
    d = source if dtype is None else scalar_dtype(dtype)
    if arr.size == 0:
        return b""
    flat = np.ascontiguousarray(arr).reshape(-1)
    if d is source and not d.packed:
        if flat.dtype.byteorder == ">" or (flat.dtype.byteorder == "=" and sys.byteorder == "big"):
            flat = flat.astype(flat.dtype.newbyteorder("<"))
        return memoryview(flat.view(np.uint8)).cast("B")
    out = bytearray(d.nbytes(flat.size))
    for start in range(0, flat.size, _CHUNK):
        part = _encode_numpy_chunk(np, flat[start : start + _CHUNK], source, d)
        at = start * d.bits // 8
        out[at : at + len(part)] = part
    return bytes(out)


def _encode_numpy_chunk(np: Any, a: Any, source: DType, d: DType) -> bytes:
    if d.is_float:
        return _numpy_floats(np, a, source, d)
    if source.is_float:
        raise OinfError(f"{d.name}: expected integers, found an array of {source.name}")
    if source.packed:  # ml_dtypes int4 and friends, one byte each
        a = a.astype(np.int8)
    lo, hi = int(a.min()), int(a.max())
    if lo < d.lo or hi > d.hi or (d.name == "t1" and bool((a == 0).any())):
        bad = lo if lo < d.lo else hi if hi > d.hi else 0
        legal = "-1 or 1" if d.name == "t1" else f"{d.lo} to {d.hi}"
        raise OinfError(f"{d.name}: {bad} is out of range ({legal})")
    if not d.packed:
        width = "u1" if d.kind == "bool" else f"<{'u' if d.lo == 0 else 'i'}{d.bits // 8}"
        return bytes(a.astype(width).tobytes())
    codes = a.astype(np.int16)
    codes = ((codes + 1) >> 1 if d.name == "t1" else codes & ((1 << d.bits) - 1)).astype(np.uint8)
    per = 8 // d.bits
    if codes.size % per:
        codes = np.concatenate([codes, np.zeros(per - codes.size % per, np.uint8)])
    codes = codes.reshape(-1, per)
    packed = np.zeros(codes.shape[0], np.uint8)
    for i in range(per):
        packed |= codes[:, i] << np.uint8(i * d.bits)
    return bytes(packed.tobytes())


def _numpy_floats(np: Any, a: Any, source: DType, d: DType) -> bytes:
    # Anything that is not already an f32-exact float goes through f64, as lists do.
    exact32 = source.is_float and source.bits <= 32
    wide = a.astype(np.float32 if exact32 else np.float64)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if d.name in ("f32", "f64"):
            return bytes(wide.astype("<f4" if d.name == "f32" else "<f8").tobytes())
        if d.name == "f16":
            bits = wide.astype(np.float16).view(np.uint16)
        elif d.name == "bf16":
            bits = _round_half(np, _to_odd(np, wide, np.float32, np.uint32), 16).astype(np.uint16)
        else:
            bits = _round_half(np, _to_odd(np, wide, np.float16, np.uint16), 8).astype(np.uint8)
    bits = np.where(np.isnan(wide), bits.dtype.type(_SMALL_FLOATS[d.name][2]), bits)
    return bytes(bits.astype(bits.dtype.newbyteorder("<")).tobytes())


def _to_odd(np: Any, wide: Any, ftype: Any, utype: Any) -> Any:
    """Bits of `wide` in ftype, rounded to odd: truncated, last bit set when inexact.

    Rounding the result to nearest again is then the same as rounding once.
    """
    narrow = wide.astype(ftype)
    back = narrow.astype(wide.dtype)
    bits = narrow.view(utype).copy()
    bits[np.abs(back) > np.abs(wide)] -= utype(1)
    bits[back != wide] |= utype(1)
    return bits


def _round_half(np: Any, bits: Any, drop: int) -> Any:
    """The upper part of bit patterns, rounded to nearest even; NaN is patched later."""
    wide = bits.astype(np.uint64)
    one, shift = np.uint64(1), np.uint64(drop)
    return (wide + np.uint64((1 << (drop - 1)) - 1) + ((wide >> shift) & one)) >> shift


def decode_numpy(raw: BytesLike, dtype: Union[str, DType], count: int, strict: bool = False) -> Any:
    """All elements as a flat numpy array.

    Types numpy has are views of the stored bytes; bf16 and f8 come as float32, sub-byte
    types as int8 or uint8.
    """
    np = _np.available()
    if np is None:
        raise OinfError("numpy is not installed")
    d = dtype_of(dtype)
    if d.packed:
        return _unpack_numpy(np, raw, d, count, strict)
    if d.name == "bf16":
        a = np.frombuffer(raw, "<u2", count)
        return (a.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if d.name == "f8":
        a = np.frombuffer(raw, np.uint8, count)
        return (a.astype(np.uint16) << np.uint16(8)).view(np.float16).astype(np.float32)
    if d.kind == "bool":
        a = np.frombuffer(raw, np.uint8, count)
        if strict and count and int(a.max()) > 1:
            raise _strict_error(d, int(np.argmax(a > 1)))
        return a != 0
    if d.name == "bitset":
        return np.frombuffer(raw, np.uint8, count)
    kind = "f" if d.is_float else "i" if d.lo < 0 else "u"
    return np.frombuffer(raw, f"<{kind}{d.bits // 8}", count)


def _unpack_numpy(np: Any, raw: BytesLike, d: DType, count: int, strict: bool) -> Any:
    table = np.array(_unpack_table(d), np.int8 if d.lo < 0 else np.uint8)
    flat = table[np.frombuffer(raw, np.uint8, d.nbytes(count))].reshape(-1)[:count]
    if strict and d.name == "t2" and count:
        codes = np.array([[b >> s & 3 for s in (0, 2, 4, 6)] for b in range(256)], np.uint8)
        bad = codes[np.frombuffer(raw, np.uint8, d.nbytes(count))].reshape(-1)[:count] == 2
        if bad.any():
            raise _strict_error(d, int(np.argmax(bad)))
    return flat
