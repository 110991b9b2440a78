"""Chains of statements that exporters write for one op become that op: silu, gelu.

A chain is replaced only when nothing else reads what lies within it.
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Set

from .values import Statement, Value


class Finder:
    """Who writes and how many read each value."""

    def __init__(self, statements: List[Statement], outputs: List[Value]):
        self.made: Dict[int, Statement] = {id(v): s for s in statements for v in s.outputs}
        self.reads: Dict[int, int] = {id(v): 1 for v in outputs}
        for s in statements:
            for v in s.inputs:
                self.reads[id(v)] = self.reads.get(id(v), 0) + 1

    def by(self, value: Value, op: str) -> Optional[Statement]:
        """The statement `op` that makes a value which one statement reads."""
        s = self.made.get(id(value))
        return s if s is not None and s.op == op and self.reads.get(id(value)) == 1 else None

    def factors(self, s: Statement, taken: List[Statement]) -> List[Value]:
        """What a tree of products multiplies."""
        found: List[Value] = []
        for v in s.inputs:
            inner = self.by(v, "mul")
            if inner is None or len(taken) > 3:
                found.append(v)
            else:
                taken.append(inner)
                found += self.factors(inner, taken)
        return found


def number(value: Value) -> Any:
    """The one element of a constant, or None."""
    return None if value.data is None or value.data.size != 1 else float(value.data.reshape(-1)[0])


def close(value: Value, wanted: float) -> bool:
    found = number(value)
    return found is not None and math.isclose(found, wanted, rel_tol=1e-3 if value.dtype in ("f16", "bf16") else 1e-5)


def silu(s: Statement, find: Finder) -> Optional[Statement]:
    """x * sigmoid(x)"""
    for x, y in (s.inputs, s.inputs[::-1]):
        gate = find.by(y, "sigmoid")
        if gate is not None and gate.inputs[0] is x:
            return merged(s, "silu", x, [gate])
    return None


def gelu(s: Statement, find: Finder) -> Optional[Statement]:
    """0.5 * x * (1 + erf(x / sqrt(2))), in any order of the factors"""
    taken: List[Statement] = []
    factors = find.factors(s, taken)
    if len(factors) != 3 or not any(close(v, 0.5) for v in factors):
        return None
    rest = [v for v in factors if not close(v, 0.5)]
    if len(rest) != 2:
        return None
    for x, bell in (rest, rest[::-1]):
        plus = find.by(bell, "add")
        one = None if plus is None else next((v for v in plus.inputs if close(v, 1.0)), None)
        if plus is None or one is None:
            continue
        erf = find.by(next(v for v in plus.inputs if v is not one), "erf")
        scaled = erf and find.made.get(id(erf.inputs[0]))
        if erf is None or scaled is None or find.reads[id(erf.inputs[0])] != 1 or scaled.inputs[0] is not x:
            continue
        if (scaled.op == "div" and close(scaled.inputs[1], math.sqrt(2))) or (scaled.op == "mul" and close(scaled.inputs[1], math.sqrt(0.5))):
            return merged(s, "gelu", x, [*taken, plus, erf, scaled])
    return None


def merged(s: Statement, op: str, x: Value, gone: List[Statement]) -> Optional[Statement]:
    if x.shape != s.outputs[0].shape or x.dtype != s.outputs[0].dtype:
        return None
    new = Statement(op, [x], {}, s.outputs, s.origin, s.scope)
    new.origins = [*s.origins, *(o for g in gone for o in (g.origin, *g.origins))]
    new.gone = gone
    return new


def recognise(statements: List[Statement], outputs: List[Value]) -> List[Statement]:
    """The statements with every chain that is known replaced."""
    find = Finder(statements, outputs)
    gone: Set[int] = set()
    result: List[Statement] = []
    for s in statements:
        new = (silu(s, find) or gelu(s, find)) if s.op == "mul" else None
        if new is not None:
            gone.update(id(g) for g in new.gone)
        result.append(new or s)
    return [s for s in result if id(s) not in gone]
