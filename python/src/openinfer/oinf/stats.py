"""Summary figures of a tensor, in float64, the same with and without numpy.

mean = fsum(x)/n and std = sqrt(fsum((x-mean)^2)/n) with exactly rounded sums, so that six
digits do not depend on the order of additions; median is the mean of the two middle
values when n is even. Everything is over finite values; NaN and infinities are counted.
A zero has no sign here, since which of -0 and 0 is the smallest depends on the order.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Callable, Iterable, Iterator, List, Sequence, Tuple, Union

from . import _np
from .dtypes import DType, decode_numpy
from .types import BytesLike

Number = Union[int, float]
Bin = Tuple[Number, Number, int]

INT_SPAN = 20  # integers spanning at most this list each value
BINS = 10
_CHUNK = 1 << 16


@dataclass
class Stats:
    n: int = 0  # finite values
    n_inf: int = 0
    n_nan: int = 0
    min: Number = 0
    max: Number = 0
    mean: float = 0.0
    median: float = 0.0
    std: float = 0.0
    hist: List[Bin] = field(default_factory=list)


def stats_of_values(values: Sequence[Any], dtype: DType) -> Stats:
    """Over a list of Python numbers."""
    s = Stats()
    finite = list(values)
    if dtype.is_float:
        s.n_nan = sum(1 for v in finite if v != v)
        finite = [v for v in finite if math.isfinite(v)]
        s.n_inf = len(values) - len(finite) - s.n_nan
    elif dtype.kind == "bool":
        finite = [int(v) for v in finite]
    s.n = len(finite)
    if not finite:
        return s
    finite.sort()
    s.min, s.max = finite[0] + 0, finite[-1] + 0
    floats = finite if dtype.is_float else [float(v) for v in finite]
    s.mean = _sum(lambda: floats, s.n) / s.n
    s.median = _middle(finite[(s.n - 1) // 2], finite[s.n // 2])
    s.std = math.sqrt(_sum(lambda: ((v - s.mean) * (v - s.mean) for v in floats), s.n) / s.n)
    if _lists_values(s, dtype):
        s.hist = _value_bins(Counter(finite), dtype)
    else:
        width = _width(s)
        s.hist = _equal_bins(s, width, Counter(_bin(v, float(s.min), width) for v in floats))
    return s


def stats_of_raw(raw: BytesLike, dtype: DType, count: int, strict: bool = False) -> Stats:
    """Over stored bytes, with numpy."""
    np: Any = _np.available()
    a = decode_numpy(raw, dtype, count, strict)
    s = Stats()
    if dtype.is_float:
        s.n_nan = int(np.isnan(a).sum())
        s.n_inf = int(np.isinf(a).sum())
        if s.n_nan or s.n_inf:
            a = a[np.isfinite(a)]
    elif dtype.kind == "bool":
        a = a.view(np.uint8)
    s.n = int(a.size)
    if not s.n:
        return s
    to_python = float if dtype.is_float else int
    s.min, s.max = to_python(a.min()) + 0, to_python(a.max()) + 0

    def floats() -> Iterator[Any]:
        return (a[i : i + _CHUNK].astype(np.float64) for i in range(0, s.n, _CHUNK))

    def squares() -> Iterator[float]:
        return chain.from_iterable(((c - s.mean) * (c - s.mean)).tolist() for c in floats())

    s.mean = _sum(lambda: chain.from_iterable(c.tolist() for c in floats()), s.n) / s.n
    low, high = (s.n - 1) // 2, s.n // 2
    middle = np.partition(a, (low, high))
    s.median = _middle(to_python(middle[low]), to_python(middle[high]))
    with np.errstate(all="ignore"):
        s.std = math.sqrt(_sum(squares, s.n) / s.n)
        if _lists_values(s, dtype):
            values, counts = np.unique(a, return_counts=True)
            s.hist = _value_bins(Counter(dict(zip(values.tolist(), counts.tolist()))), dtype)
        else:
            width = _width(s)
            totals: "Counter[int]" = Counter()
            for c in floats():
                totals.update(dict(enumerate(_bins_numpy(np, c, float(s.min), width).tolist())))
            s.hist = _equal_bins(s, width, totals)
    return s


def _sum(values: Callable[[], Iterable[float]], n: int) -> float:
    """Exactly rounded sum; infinite when it passes the largest float."""
    try:
        return math.fsum(values())
    except OverflowError:
        return math.copysign(math.inf, math.fsum(v / n for v in values()))


def _middle(a: Number, b: Number) -> float:
    mean = (float(a) + float(b)) / 2 + 0.0
    return mean if math.isfinite(mean) else float(a) / 2 + float(b) / 2


def _lists_values(s: Stats, dtype: DType) -> bool:
    return not dtype.is_float and s.max - s.min <= INT_SPAN


def _value_bins(counts: "Counter[int]", dtype: DType) -> List[Bin]:
    values = [0, 1] if dtype.kind == "bool" else sorted(counts)
    return [(v, v, counts[v]) for v in values]


def _width(s: Stats) -> float:
    lo, hi = float(s.min), float(s.max)
    width = (hi - lo) / BINS
    return width if math.isfinite(width) else hi / BINS - lo / BINS


def _bin(v: float, lo: float, width: float) -> int:
    if v == lo:
        return 0
    place = (v - lo) / width if width else math.inf
    return int(place) if place < BINS - 1 else BINS - 1


def _bins_numpy(np: Any, c: Any, lo: float, width: float) -> Any:
    place = (c - lo) / width if width else np.full(c.shape, np.inf)
    place = np.where(c == lo, 0.0, np.where(place < BINS - 1, place, BINS - 1.0))
    return np.bincount(place.astype(np.int64), minlength=BINS)


def _equal_bins(s: Stats, width: float, counts: "Counter[int]") -> List[Bin]:
    if s.min == s.max:
        return [(s.min, s.max, s.n)]
    lo = float(s.min)
    return [(lo + i * width, lo + (i + 1) * width, counts[i]) for i in range(BINS) if counts[i]]
