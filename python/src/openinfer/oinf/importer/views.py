"""Chains of reshape and transpose as views: which element of the first tensor each place shows."""

from __future__ import annotations

import math
from typing import Dict, List, Optional, Sequence, Tuple

from .patterns import Finder
from .values import Value

MOVES = ("reshape", "transpose", "unsqueeze", "squeeze", "flatten")
Axes = List[Tuple[int, int]]  # length and stride of each axis


def row_major(dims: Sequence[int]) -> Axes:
    axes: Axes = []
    stride = 1
    for d in reversed(dims):
        axes.append((d, stride))
        stride *= d
    return axes[::-1]


def normal(axes: Axes) -> Axes:
    """Without axes of length 1, neighbours that follow each other in memory joined."""
    joined: Axes = []
    for size, stride in axes:
        if size == 1:
            continue
        if joined and joined[-1][1] == size * stride:
            joined[-1] = (joined[-1][0] * size, stride)
        else:
            joined.append((size, stride))
    return joined


def reshaped(axes: Axes, dims: Sequence[int]) -> Optional[Axes]:
    """The axes after a reshape, or None where no strides can say it."""
    parts, result = normal(axes), []
    for d in reversed(dims):
        if d == 1:
            result.append((1, 1))
            continue
        if not parts or parts[-1][0] % d:
            return None
        size, stride = parts.pop()
        result.append((d, stride))
        if size != d:
            parts.append((size // d, stride * d))
    return None if parts else result[::-1]


class Views:
    """The view of each value, found once."""

    def __init__(self, find: Finder):
        self.find = find
        self.known: Dict[int, Tuple[Value, Axes]] = {}

    def of(self, value: Value) -> Tuple[Value, Axes]:
        """The tensor that a chain of moves begins with, and how `value` shows it."""
        chain = [value]
        while id(chain[-1]) not in self.known:
            s = self.find.of(chain[-1], *MOVES)
            if s is None or not (s.inputs[0].is_static and chain[-1].is_static) or 0 in chain[-1].dims():
                self.known[id(chain[-1])] = (chain[-1], row_major(chain[-1].dims()))
                break
            chain.append(s.inputs[0])
        for v in reversed(chain):
            if id(v) not in self.known:
                self.known[id(v)] = self.moved(v)
        return self.known[id(value)]

    def moved(self, value: Value) -> Tuple[Value, Axes]:
        s = self.find.made[id(value)]
        source, axes = self.known[id(s.inputs[0])]
        if s.op == "transpose":
            perm = s.attrs.get("perm") or list(range(value.rank))[::-1]
            return source, [axes[p] for p in perm]
        found = reshaped(axes, value.dims())
        return (source, found) if found is not None else (value, row_major(value.dims()))


def heads_of(axes: Axes, source: Value, t: int, d: int, lead: Sequence[int]) -> Optional[Tuple[int, int]]:
    """(B, H) where `axes` shows a tensor of B, T, H * D numbers as [B, H, T, D]; `lead` is B, H or their product."""
    size = math.prod(source.dims())
    if len(lead) == 2:
        tried = [(lead[0], lead[1])]
    else:
        row = source.dims()[-1] if source.dims() else 1
        widths = dict.fromkeys((row, size // t if t and size % t == 0 else 0))
        tried = [(size // (t * w), w // d) for w in widths if w and w % d == 0 and size % (t * w) == 0]
    for b, h in tried:
        if size == b * h * t * d and normal(axes) == normal([(b, h * t * d), (h, d), (t, h * d), (d, 1)]):
            return b, h
    return None
