"""From a float graph and samples to a program with integers, and to the table of what that costs."""

from __future__ import annotations

import math
import os
import tempfile
from dataclasses import dataclass, field
from typing import Any, Dict, List, Sequence, Tuple

import openinfer
from openinfer.graph import Graph

from ..convert.weights import need_numpy
from ..importer.loops import roll
from ..importer.patterns import needed
from ..importer.text import Program, write_text
from ..importer.tidy import once
from ..importer.values import Statement, Value
from ..types import OinfError
from .calibrate import Samples, Seen, ranges_of, samples_of, values_of
from .integers import Integers, Point, Product, products_of
from .reading import Reader, Straight


@dataclass
class Loss:
    """The squares of a value over all samples, and of what rounding changes in it."""

    total: float = 0.0
    own: float = 0.0
    through: float = 0.0
    worst: float = 0.0

    def add(self, exact: Any, rounded: Any, found: Any) -> None:
        np = need_numpy()
        x = exact.astype(np.float64)
        self.total += float((x * x).sum())
        self.own += float(((rounded - x) ** 2).sum())
        self.through += float(((found - x) ** 2).sum())
        self.worst = max(self.worst, float(np.abs(found - x).max(initial=0)))

    def share(self, part: float) -> str:
        return f"{100 * math.sqrt(part / self.total):.2f} %" if self.total else "-"


@dataclass
class Row:
    line: int
    node: str
    name: str
    seen: Seen
    loss: Loss = field(default_factory=Loss)


@dataclass
class Quantised:
    program: Program
    rows: List[Row]
    results: List[Row]
    n_samples: int
    n_products: int
    n_floats: int
    bytes_before: int = 0
    bytes_after: int = 0

    def table(self, name: str) -> List[str]:
        """As text: each rounded value, then each result."""
        cells = [("line", "node", "value", "from", "to", "own loss", "loss")]
        for r in self.rows:
            cells.append((str(r.line or "-"), r.node, r.name, f"{r.seen.low:.4g}", f"{r.seen.high:.4g}", r.loss.share(r.loss.own), r.loss.share(r.loss.through)))
        widths = [max(len(row[i]) for row in cells) for i in range(7)]
        left = (1, 2)
        lines = ["  ".join(c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))) for row in cells]
        for r in self.results:
            span = r.seen.high - r.seen.low
            worst = f", at most {100 * r.loss.worst / span:.2f} % of its range" if span > 0 else ""
            lines.append(f"result {r.name}: loss {r.loss.share(r.loss.through)}{worst}")
        lines.append(f"{name}.oi: {self.n_products} products on integers, {self.n_floats} in floats; weights of {self.bytes_before} bytes became {self.bytes_after}; {self.n_samples} samples")
        return lines


def quantise(graph: Graph, data: str, percentile: float = 100.0, keep: Sequence[str] = (), threads: int = 1, integer_only: bool = False) -> Quantised:
    if graph.model is None:
        raise OinfError("a graph without a model has no weights to quantise: --model names it")
    straight = Reader(graph, graph.model).read()
    samples = samples_of(data, straight.inputs)
    results = [*straight.outputs, *(y for _, y in straight.states)]
    products = products_of(straight.statements, results, keep)
    if not products:
        raise OinfError("no matmul, gemm or conv of an f32 activation and a constant f32 weight: nothing to quantise")
    ranges = calibrated(graph, straight, products, samples, percentile, threads)
    plain = converted(straight, products, ranges, integer_only)
    first = plain.program(straight, False)
    rows, lost = compared(graph, straight, plain, first, samples, ranges, threads)
    program = converted(straight, products, ranges, integer_only).program(straight, True)
    kinds = [s.inputs[0].dtype for s in first.items if isinstance(s, Statement) and s.op in ("qconv", "qmatmul", "conv", "matmul", "gemm")]
    done = Quantised(program, rows, lost, samples.n, kinds.count("i8"), len(kinds) - kinds.count("i8"))
    done.bytes_before = sum(v.data.nbytes for v in constants_of(straight.statements))
    done.bytes_after = sum(v.data.nbytes for v in constants_of(plain.integers.statements))
    return done


def constants_of(statements: Sequence[Statement]) -> List[Value]:
    return list({id(v.data): v for s in statements for v in s.inputs if v.data is not None and v.data.size > 1 and 0 not in v.data.strides}.values())


def calibrated(graph: Graph, straight: Straight, products: Sequence[Product], samples: Samples, percentile: float, threads: int) -> Dict[int, Seen]:
    """The range of every value that is to be rounded. A state has the range of what is written to it, and of its zeros."""
    written = {id(x): y for x, y in straight.states}
    wanted = [v for p in products for v in (written.get(id(p.x), p.x), p.result)]
    ranges = ranges_of(graph, straight.statements, straight.inputs, wanted, samples, percentile, threads)
    for x, y in straight.states:
        if id(y) in ranges:
            ranges[id(x)] = ranges[id(y)]
    return ranges


@dataclass
class Converted:
    integers: Integers
    outputs: List[Value]
    states: List[Tuple[Value, Value]]

    def program(self, straight: Straight, loops: bool) -> Program:
        results = [*self.outputs, *(y for _, y in self.states)]
        given = [*straight.inputs, *(x for x, _ in self.states)]
        statements = needed(once(self.integers.statements, results), results)
        program = Program(straight.inputs, results, [*statements])
        if loops:
            program.items, results = roll(statements, results, given)
        n = len(self.outputs)
        program.outputs, program.output_names = results[:n], list(straight.output_names)
        program.states = [(x, y) for (x, _), y in zip(self.states, results[n:])]
        return program


def converted(straight: Straight, products: Sequence[Product], ranges: Dict[int, Seen], integer_only: bool) -> Converted:
    """A program of its own: nothing is left of the names that an earlier one gave."""
    for v in (*straight.inputs, *(x for s in straight.statements for x in s.inputs if x.data is not None)):
        v.label, v.home = "", None
    made = Integers(ranges, integer_only)
    made.convert(straight.statements, products)
    return Converted(made, [made.real(v) for v in straight.outputs], [(x, made.real(y)) for x, y in straight.states])


def compared(graph: Graph, straight: Straight, plain: Converted, program: Program, samples: Samples, ranges: Dict[int, Seen], threads: int) -> Tuple[List[Row], List[Row]]:
    """Both graphs over all samples, side by side."""
    from ..importer.command import write_package

    np = need_numpy()
    statements = [s for s in program.items if isinstance(s, Statement)]
    with tempfile.TemporaryDirectory() as folder:
        text = write_text(program, [])
        path = os.path.join(folder, "model.oinf")
        write_package(path, program)
        other = openinfer.parse(text, path, name="quantised.oi").executor(threads=threads)
        run = graph.executor(threads=threads)
        by_q = {id(p.q): p for p in plain.integers.points}
        points_of: Dict[int, List[Point]] = {}
        for p in by_q.values():
            points_of.setdefault(id(p.value), []).append(p)
        rows = {id(p): Row(0, p.node, f"{p.value.scope}/{p.value.name}".strip("/"), ranges[id(p.value)]) for p in by_q.values()}
        results = {name: Row(0, "", name, Seen()) for name in straight.output_names}
        for x in samples.steps():
            exact: Dict[int, Any] = {id(v): x[v.name] for v in straight.inputs}
            for at, line, found in values_of(run, straight.statements, x):
                for v, array in zip(straight.statements[at].outputs, found):
                    for p in points_of.get(id(v), ()):
                        exact[id(v)] = array.copy()
                        rows[id(p)].line = line
                found.clear()
                array = None
            for at, _, found in values_of(other, statements, x):
                for v, array in zip(statements[at].outputs, found):
                    point = by_q.get(id(v))
                    if point is not None and id(point.value) in exact:
                        there = exact[id(point.value)]
                        q = np.clip(np.rint(there / np.float32(point.scale)) + point.zero, -128, 127)
                        rows[id(point)].loss.add(there, (q - point.zero) * point.scale, (array.astype(np.float64) - point.zero) * point.scale)
                found.clear()
                array = None
            for (name, a), b in zip(run.outputs().items(), other.outputs().values()):
                row = results[name]
                row.loss.add(a, a, b.astype(np.float64))
                row.seen.low, row.seen.high = min(row.seen.low, float(a.min())), max(row.seen.high, float(a.max()))
    return list(rows.values()), list(results.values())
