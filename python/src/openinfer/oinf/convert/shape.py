"""What a rule does to a tensor's shape: steps behind its target, from left to right.

    conv.weight -> Wc | squeeze(2) | transpose(1, 0) | reshape(8, -1)

Elements are stored in row-major order, so reshape and squeeze keep the bytes; transpose reorders them,
with the whole tensor in memory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Iterator, List, Tuple

from ..dtypes import scalar_dtype
from ..types import BytesLike, OinfError
from ..values import numel_of
from .weights import CHUNK, ChunkMaker, Part, need_numpy, shape_text

MAX_DIMS = 8
MAX_REORDERED = 1 << 32  # bytes of a tensor that is transposed
_STEP = re.compile(r"(reshape|transpose|squeeze)\s*(?:\(([-0-9, ]*)\))?")


@dataclass(frozen=True)
class Step:
    name: str
    numbers: Tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.numbers))})"


def parse_steps(text: str, where: str) -> List[Step]:
    """'squeeze(2) | transpose' as steps."""
    steps = []
    for word in text.split("|"):
        found = _STEP.fullmatch(word.strip())
        numbers = [n.strip() for n in (found[2] or "").split(",")] if found else []
        if numbers == [""]:
            numbers = []
        if not found or not all(re.fullmatch(r"-?[0-9]{1,18}", n) for n in numbers) or len(numbers) > MAX_DIMS:
            raise OinfError(f"{where}: a step reads reshape(8, -1), transpose(1, 0) or squeeze(0), found {word.strip()!r}")
        if found[1] == "reshape" and not numbers:
            raise OinfError(f"{where}: reshape wants a shape, as in reshape(8, -1)")
        steps.append(Step(found[1], tuple(map(int, numbers))))
    return steps


def apply_steps(part: Part, steps: List[Step]) -> Part:
    for step in steps:
        if step.name == "transpose":
            part = _transposed(part, step)
        else:
            dims = _reshaped(part.dims, step) if step.name == "reshape" else _squeezed(part.dims, step)
            part = Part(part.suffix, part.dtype, dims, part.chunks)
    return part


def _reshaped(dims: Tuple[int, ...], step: Step) -> Tuple[int, ...]:
    wanted, total = list(step.numbers), numel_of(dims)
    if wanted.count(-1) > 1 or min(wanted) < -1:
        raise OinfError(f"{step}: dims are sizes, and one of them may be -1")
    if -1 in wanted:
        rest = numel_of(tuple(d for d in wanted if d != -1))
        wanted[wanted.index(-1)] = total // rest if rest else 0
    if numel_of(tuple(wanted)) != total:
        raise OinfError(f"{step}: {shape_text(dims)} has {total} elements")
    return tuple(wanted)


def _axes(dims: Tuple[int, ...], step: Step) -> List[int]:
    axes = [a + len(dims) if a < 0 else a for a in step.numbers]
    if len(set(axes)) != len(axes) or not all(0 <= a < len(dims) for a in axes):
        raise OinfError(f"{step}: these are no axes of {shape_text(dims)}")
    return axes


def _squeezed(dims: Tuple[int, ...], step: Step) -> Tuple[int, ...]:
    axes = _axes(dims, step) if step.numbers else [a for a, d in enumerate(dims) if d == 1]
    if any(dims[a] != 1 for a in axes):
        raise OinfError(f"{step}: only an axis of length 1 can go, the shape is {shape_text(dims)}")
    return tuple(d for a, d in enumerate(dims) if a not in axes)


def _transposed(part: Part, step: Step) -> Part:
    dims = part.dims
    axes = _axes(dims, step) if step.numbers else list(range(len(dims)))[::-1]
    if len(axes) != len(dims):
        raise OinfError(f"{step}: every axis of {shape_text(dims)} is wanted once")
    dtype = scalar_dtype(part.dtype)
    if dtype.nbytes(numel_of(dims)) > MAX_REORDERED:
        raise OinfError(f"{step}: {shape_text(dims)} is too large, at most {MAX_REORDERED >> 30} GiB are transposed")
    return Part(part.suffix, part.dtype, tuple(dims[a] for a in axes), _reordered(part, axes, dtype.bits))


def _reordered(part: Part, axes: List[int], bits: int) -> ChunkMaker:
    def make() -> Iterator[BytesLike]:
        np: Any = need_numpy()
        data = np.frombuffer(b"".join(bytes(chunk) for chunk in part.chunks()), np.uint8)
        unit = bits // 8 if bits % 8 == 0 else bits  # bytes of an element, or bits where it is no whole byte
        if bits % 8:
            data = np.unpackbits(data, count=numel_of(part.dims) * bits, bitorder="little")
        turned = data.reshape(*part.dims, unit).transpose(*axes, len(part.dims)).reshape(-1)
        if bits % 8:
            turned = np.packbits(turned, bitorder="little")
        for at in range(0, turned.size, CHUNK):
            yield memoryview(np.ascontiguousarray(turned[at : at + CHUNK]))

    return make
