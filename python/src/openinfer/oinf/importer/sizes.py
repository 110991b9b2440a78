"""Symbols of the model's shapes stay sizes of the text.

The model is imported for several numbers of each symbol. Where the programs are the same but for lengths, and every
length follows from the symbols by one line, a product or a sum, the text says so. Otherwise the symbol stays a number.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..convert.weights import need_numpy
from .loops import Loop, statements_of
from .names import Unique, identifier
from .tidy import attributes_of
from .values import Value

Make = Callable[[Dict[str, int]], Optional[Any]]  # the program for these sizes, or None where there is none


class Differs(Exception):
    """Two programs are not the same but for lengths."""


@dataclass
class Sizes:
    program: Any
    numbers: Dict[str, int] = field(default_factory=dict)  # name in the text -> number
    stays: Dict[str, str] = field(default_factory=dict)  # symbol -> why it stays a number


def pairs(a: Any, b: Any) -> List[Tuple[Value, Value]]:
    """The values of two programs, side by side."""
    seen: Dict[int, Value] = {}
    found: List[Tuple[Value, Value]] = []

    def value(x: Value, y: Value) -> None:
        if id(x) in seen:
            if seen[id(x)] is not y:
                raise Differs("the nodes depend on it")
            return
        seen[id(x)] = y
        if (x.dtype, len(x.entries), x.data is None) != (y.dtype, len(y.entries), y.data is None) or not alike(x, y):
            raise Differs(f"the constant '{x.name}' depends on it" if x.data is not None else "the nodes depend on it")
        for e, f in zip(x.entries, y.entries):
            value(e, f)
        found.append((x, y))

    if len(a.items) != len(b.items) or len(a.given()) != len(b.given()) or len(a.results()) != len(b.results()):
        raise Differs("the nodes depend on it")
    for i, j in zip(a.items, b.items):
        if type(i) is not type(j) or (isinstance(i, Loop) and isinstance(j, Loop) and (i.n, len(i.body)) != (j.n, len(j.body))):
            raise Differs("the layers depend on it")
    for x, y in zip([*a.given(), *a.results()], [*b.given(), *b.results()]):
        value(x, y)
    for s, t in zip(statements_of(a.items), statements_of(b.items)):
        if s.op != t.op or len(s.inputs) != len(t.inputs):
            raise Differs("the nodes depend on it")
        if attributes_of(s) != attributes_of(t):
            raise Differs(f"an attribute of {s.op} depends on it")
        for x, y in zip([*s.inputs, *s.outputs], [*t.inputs, *t.outputs]):
            value(x, y)
    return found


def alike(x: Value, y: Value) -> bool:
    """The same rank, and for constants the same numbers: those of one number may have other lengths."""
    from .text import uniform

    if (x.shape is None) != (y.shape is None) or (x.shape is not None and y.shape is not None and len(x.shape) != len(y.shape)):
        return False
    if x.data is None or x.data is y.data:
        return True
    number = uniform(x)
    if number is not None or x.shape != y.shape:
        return number is not None and number == uniform(y)
    return bool(need_numpy().array_equal(x.data.reshape(-1).view("u1"), y.data.reshape(-1).view("u1")))


def expression(lengths: Sequence[int], points: Sequence[Dict[str, int]], names: Dict[str, str]) -> Optional[str]:
    """How a length follows from the symbols: points[0] is where all are as given, points[-1] where all are changed."""
    return ruled([Fraction(n) for n in lengths], points, list(names), names)


def ruled(values: Sequence[Fraction], points: Sequence[Dict[str, int]], left: List[str], names: Dict[str, str]) -> Optional[str]:
    """A sum over the symbols that are left, or one of them times what follows from the others."""
    base = points[0]
    at = {s: i for i, s in enumerate(names, 1)}
    slopes = {s: (values[at[s]] - values[0]) / (points[at[s]][s] - base[s]) for s in left}
    moved = [s for s in left if slopes[s]]
    rest = values[0] - sum((slopes[s] * base[s] for s in moved), Fraction(0))
    if all(rest + sum((slopes[s] * p[s] for s in moved), Fraction(0)) == v for p, v in zip(points, values)):
        return line([(names[s], slopes[s]) for s in moved], rest)
    for s in moved:
        if slopes[s] * base[s] == values[0]:
            inner = ruled([v / p[s] for p, v in zip(points, values)], points, [o for o in left if o != s], names)
            if inner is not None:
                return f"{names[s]}*({inner})" if re.search(r".[+-]", inner) else f"{names[s]}*{inner}"
    return None


def line(terms: Sequence[Tuple[str, Fraction]], rest: Fraction) -> str:
    """a*s + b*t + c as `fmt` writes it, over the common denominator."""
    whole = math.lcm(rest.denominator, *(f.denominator for _, f in terms))
    text = ""
    for name, number in [*((n, int(f * whole)) for n, f in terms), ("", int(rest * whole))]:
        if not number:
            continue
        size = abs(number)
        part = str(size) if not name else name if size == 1 else f"{size}*{name}"
        if not text:
            text = f"-{part}" if number < 0 else part
        else:
            text += f"-{part}" if number < 0 else f"+{part}"
    if whole == 1:
        return text or "0"
    return f"({text})/{whole}" if re.search(r".[+-]", text) else f"{text}/{whole}"


def symbolic(program: Any, given: Dict[str, int], make: Make) -> Sizes:
    """The program with as many of the symbols as possible in place of their numbers."""
    base = {s: max(v, 2) for s, v in given.items()}
    start = program if base == given else make(base)
    if start is None:
        return Sizes(program, stays={s: "it has another program for 1" for s in given})
    stays: Dict[str, str] = {}
    steps: Dict[str, int] = {}
    probes: Dict[str, Any] = {}
    for s in given:
        why = "the nodes depend on it"
        for step in dict.fromkeys((1, base[s])):
            other = make({**base, s: base[s] + step})
            try:
                if other is None:
                    raise Differs("the model takes no other number")
                pairs(start, other)
                last = make({**base, s: base[s] + 2 * step})
                if last is None or not follows([start, other, last], s, [base[s] + k * step for k in range(3)]):
                    raise Differs("a length follows from it by no line")
            except Differs as e:
                why = str(e)
                continue
            steps[s], probes[s] = step, other
            break
        else:
            stays[s] = why
    if not steps or any(base[s] != given[s] for s in stays):
        return Sizes(program, stays={**stays, **{s: "another symbol stays" for s in steps}})
    joint = {**base, **{s: base[s] + 2 * step for s, step in steps.items()}}
    points = [base, *({**base, s: base[s] + steps[s]} for s in steps), joint]
    last = make(joint)
    unique = Unique()
    names = {s: unique(identifier(s, "n")) for s in steps}
    if last is None or not put(start, [start, *probes.values(), last], points, names):
        return Sizes(program, stays={**stays, **{s: "its lengths follow no simple rule" for s in steps}})
    return Sizes(start, {names[s]: given[s] for s in steps}, stays)


def follows(programs: List[Any], s: str, numbers: List[int]) -> bool:
    """Every length lies on a line through three numbers of one symbol."""
    points = [{s: n} for n in numbers]
    rows = [pairs(programs[0], p) for p in programs[1:]]
    for (x, y), (_, z) in zip(*rows):
        for lengths in zip(x.shape or (), y.shape or (), z.shape or ()):
            if None in lengths and len(set(lengths)) > 1:
                return False
            if None not in lengths and expression([int(n) for n in lengths if n is not None], points, {s: s}) is None:
                return False
    return True


def put(start: Any, programs: List[Any], points: List[Dict[str, int]], names: Dict[str, str]) -> bool:
    """Writes the lengths of all values as expressions; False, and nothing is written, where one has none."""
    try:
        rows = [pairs(start, p) for p in programs[1:]]
    except Differs:
        return False
    found: List[Tuple[Value, List[str]]] = []
    for column in zip(*rows):
        x = column[0][0]
        texts = []
        for axis, own in enumerate(x.shape or ()):
            lengths = [own, *(y.shape[axis] for _, y in column if y.shape is not None)]
            text = "?" if own is None else expression([int(n) for n in lengths if n is not None], points, names)
            if text is None:
                return False
            texts.append(text)
        found.append((x, texts))
    for x, texts in found:
        x.lengths = texts
    return True
