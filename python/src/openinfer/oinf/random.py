"""The random generator of the command line: SplitMix64, one draw per element, row-major.

Floats: LO + (HI - LO) * (u >> 11) * 2^-53 in f64, then rounded to the type.
Integers and bool: LO + u mod (HI - LO + 1). t1 has no zero, so a draw of 0 counts as 1.
"""

from __future__ import annotations

from typing import Any, List, Union

from . import _np
from .dtypes import DType, decode_list, encode_list, encode_numpy, scalar_dtype
from .types import BytesLike, OinfError

_MASK = 2**64 - 1
_GAMMA = 0x9E3779B97F4A7C15
_MIX1 = 0xBF58476D1CE4E5B9
_MIX2 = 0x94D049BB133111EB


class SplitMix64:
    """The bare generator."""

    def __init__(self, seed: int):
        self.state = seed & _MASK

    def next(self) -> int:
        self.state = (self.state + _GAMMA) & _MASK
        z = self.state
        z = ((z ^ (z >> 30)) * _MIX1) & _MASK
        z = ((z ^ (z >> 27)) * _MIX2) & _MASK
        return z ^ (z >> 31)


def random_values(dtype: Union[str, DType], seed: int, lo: float, hi: float, n: int) -> List[Any]:
    """n values as the type stores them."""
    d = scalar_dtype(dtype)
    return decode_list(random_bytes(d, seed, lo, hi, n), d, n)


def random_bytes(dtype: Union[str, DType], seed: int, lo: float, hi: float, n: int) -> BytesLike:
    """Stored bytes of n values."""
    d = scalar_dtype(dtype)
    if d.is_float:
        return _floats(d, seed, float(lo), float(hi), n)
    if lo != int(lo) or hi != int(hi) or hi < lo:
        raise OinfError(f"{d.name}: random range {lo} to {hi} is not an integer range")
    g, first, span = SplitMix64(seed), int(lo), int(hi) - int(lo) + 1
    ints = [first + g.next() % span for _ in range(n)]
    if d.name == "t1":
        ints = [i or 1 for i in ints]
    return encode_list(ints, d)


def _floats(d: DType, seed: int, lo: float, hi: float, n: int) -> BytesLike:
    np = _np.available()
    if np is None or n < 1024:
        g = SplitMix64(seed)
        return encode_list([lo + (hi - lo) * (g.next() >> 11) * 2.0**-53 for _ in range(n)], d)
    with np.errstate(over="ignore"):
        z = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(_GAMMA) + np.uint64(seed & _MASK)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(_MIX1)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(_MIX2)
        z = z ^ (z >> np.uint64(31))
    return encode_numpy(lo + (hi - lo) * (z >> np.uint64(11)).astype(np.float64) * 2.0**-53, d)
