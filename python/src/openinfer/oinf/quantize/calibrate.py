"""What values a graph's variables take over the samples of an .npz file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from openinfer.graph import Graph

from ..convert.weights import need_numpy
from ..importer.values import Statement, Value
from ..types import OinfError

BINS = 4096


@dataclass
class Seen:
    """The range of one value, and how its numbers spread over it."""

    low: float = float("inf")
    high: float = float("-inf")
    counts: Any = None
    line: int = 0  # of the float graph's text


@dataclass
class Samples:
    """One row of each array is the input of one step."""

    arrays: Dict[str, Any] = field(default_factory=dict)
    n: int = 0

    def steps(self) -> Iterator[Dict[str, Any]]:
        for i in range(self.n):
            yield {name: array[i] for name, array in self.arrays.items()}


def samples_of(path: str, inputs: Sequence[Value]) -> Samples:
    """The arrays of an .npz: every input has the shape of the variable with the samples before it, or is one sample."""
    np = need_numpy()
    found = Samples()
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, KeyError, AttributeError, EOFError, OSError) as e:
        raise OinfError(f"no .npz file of arrays: {e}", path) from None
    except Exception as e:  # a broken archive: zipfile and zlib have errors of their own
        raise OinfError(f"no .npz file of arrays: {type(e).__name__}: {e}", path) from None
    for v in inputs:
        if v.name not in arrays:
            raise OinfError(f"no array '{v.name}', an input of the graph; there are {', '.join(sorted(arrays)) or 'none'}", path)
        array, dims = arrays[v.name], tuple(v.dims())
        array = array[None] if array.shape == dims else array
        if array.shape[1:] != dims and array.shape[1:] == dims[1:] and dims[:1] == (1,):
            array = array[:, None]  # rows of a batch of one
        if array.shape[1:] != dims or not len(array):
            raise OinfError(f"array '{v.name}' has the shape {list(array.shape)}; samples of {list(dims)} are wanted, as [samples, {', '.join(map(str, dims))}]", path)
        if found.n and len(array) != found.n:
            raise OinfError(f"array '{v.name}' has {len(array)} samples, another has {found.n}", path)
        found.arrays[v.name], found.n = array.astype(array_type(v.dtype), copy=False), len(array)
    return found


def array_type(dtype: str) -> str:
    from .reading import NATIVE

    if dtype not in NATIVE:
        raise OinfError(f"inputs of type {dtype} have no arrays")
    return NATIVE[dtype]


def values_of(run: Any, statements: Sequence[Statement], inputs: Dict[str, Any]) -> Iterator[Tuple[int, int, List[Any]]]:
    """Runs one step: (place of the statement, its line, its results) one after the other."""
    at = 0
    for event in run.nodes(**inputs):
        if event.kind != "OpExecute":
            continue
        if at >= len(statements) or statements[at].op != event.op and not event.op.startswith("conv"):
            raise OinfError(f"line {event.line}: the run took another way than the list of ops")
        yield at, event.line, [run.fetch(name) for name in event.output]
        at += 1


def ranges_of(graph: Graph, statements: Sequence[Statement], inputs: Sequence[Value], wanted: Sequence[Value], samples: Samples, percentile: float, threads: int) -> Dict[int, Seen]:
    """The range of each wanted value over all samples: the least and the greatest number, or, where a percentile is
    given, without the rarest numbers on both sides."""
    np = need_numpy()
    seen = {id(v): Seen() for v in wanted}

    def every(look: Any) -> None:
        run = graph.executor(threads=threads)
        for x in samples.steps():
            for v in inputs:
                if id(v) in seen:
                    look(seen[id(v)], x[v.name])
            for at, line, results in values_of(run, statements, x):
                for v, array in zip(statements[at].outputs, results):
                    if id(v) in seen:
                        seen[id(v)].line = line
                        look(seen[id(v)], array)
                results.clear()
                array = None

    def extremes(s: Seen, array: Any) -> None:
        low, high = float(array.min()), float(array.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            raise OinfError(f"line {s.line}: a value that is not finite")
        s.low, s.high = min(s.low, low), max(s.high, high)

    def count(s: Seen, array: Any) -> None:
        if s.low < s.high:
            counts = np.histogram(array, BINS, (s.low, s.high))[0]
            s.counts = counts if s.counts is None else s.counts + counts

    every(extremes)
    if percentile < 100:
        every(count)
        for s in seen.values():
            s.low, s.high = inner(s, percentile)
    return seen


def inner(s: Seen, percentile: float) -> Tuple[float, float]:
    """The range that holds `percentile` of a hundred numbers, the rest shared between both ends."""
    np = need_numpy()
    if s.counts is None:
        return s.low, s.high
    below = np.cumsum(s.counts) / s.counts.sum()
    out = (100 - percentile) / 200
    width = (s.high - s.low) / BINS
    first = int(np.searchsorted(below, out, side="right"))
    last = int(np.searchsorted(below, 1 - out, side="left"))
    return s.low + first * width, s.low + (min(last, BINS - 1) + 1) * width
