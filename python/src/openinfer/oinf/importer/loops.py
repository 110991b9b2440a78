"""Layers of one structure become a loop over prefix tables.

Statements that repeat after `period` places are the turns of a loop when every operand of a turn is one of: a value
of the same turn, one of the turn before (carried), one from before the loop, or a constant of its own for each turn
(a table). Only the last turn's results may be read after the loop.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from ..convert.weights import need_numpy
from .tidy import attributes_of
from .values import Statement, Value

LEAST_TURNS = 3
LEAST_PERIOD = 3
LEAST_SAVED = 8  # statements
MOST_LOOPS = 32
MOST_RUNS = 40  # stretches that are looked at, the longest first
MOST_WORK = 200_000  # statements that are looked at in one of them
LAST = 1 << 60  # the place of a program's outputs among the readers


@dataclass(eq=False)
class Loop:
    """The turns of a loop. `body` is the first of them, with carried values and tables in place of its operands."""

    n: int
    body: List[Statement]
    scope: str = ""
    label: str = ""
    index: str = ""
    first: int = 0  # of the index
    tables: List[Value] = field(default_factory=list)
    ends: List[Statement] = field(default_factory=list)  # transfers at the end of a turn

    def inputs(self) -> List[Value]:
        made = {id(v) for s in self.body for v in s.outputs}
        return [v for s in self.body for v in s.inputs if id(v) not in made]


Item = Union[Statement, Loop]


def statements_of(items: Sequence[Item]) -> List[Statement]:
    return [s for item in items for s in ([item] if isinstance(item, Statement) else [*item.body, *item.ends])]


class Places:
    """Where values are made and read, by the place of the item."""

    def __init__(self, items: Sequence[Item], outputs: Sequence[Value]):
        self.made: Dict[int, Tuple[int, int]] = {}
        self.read: Dict[int, List[int]] = {id(v): [LAST] for v in outputs}
        for place, item in enumerate(items):
            for s in [item] if isinstance(item, Statement) else [*item.body, *item.ends]:
                for i, v in enumerate(s.outputs):
                    self.made.setdefault(id(v), (place, i if isinstance(item, Statement) else -1))
                for v in s.inputs:
                    self.read.setdefault(id(v), []).append(place)


def signature(s: Statement) -> Any:
    types = tuple((v.data is not None, v.dtype, v.shape) for v in s.inputs)
    return s.op, attributes_of(s), types, tuple((v.dtype, v.shape) for v in s.outputs)


@dataclass
class Turns:
    start: int
    period: int
    n: int
    carried: Dict[Tuple[int, int], Tuple[Value, Tuple[int, int]]]  # operand -> its first value, and what makes the next

    def score(self) -> Tuple[int, int]:
        return (self.n - 1) * self.period - 3 * len({made for _, made in self.carried.values()}), -self.start


class Search:
    """Repeated turns in a list of items."""

    def __init__(self, items: Sequence[Item], outputs: Sequence[Value], kinds: Dict[int, int]):
        np = need_numpy()
        self.items, self.places = items, Places(items, outputs)
        self.kinds = np.array([kinds.get(id(item), -1 - i) for i, item in enumerate(items)], np.int64)

    def at(self, i: int) -> Statement:
        item = self.items[i]
        assert isinstance(item, Statement)
        return item

    def best(self) -> Optional[Turns]:
        found: Optional[Turns] = None
        for saved, period, first, last in self.runs()[:MOST_RUNS]:
            if found is not None and saved <= found.score()[0]:
                break
            for turns in self.phases(period, first, last):
                if found is None or turns.score() > found.score():
                    found = turns
        return found

    def runs(self) -> List[Tuple[int, int, int, int]]:
        """(statements saved at most, period, first, last) of stretches that repeat, the best first."""
        np = need_numpy()
        runs = []
        n = len(self.kinds)
        for period in range(LEAST_PERIOD, n // LEAST_TURNS + 1):
            equal = np.concatenate([[False], self.kinds[:-period] == self.kinds[period:], [False]])
            edges = np.flatnonzero(equal[1:] != equal[:-1]).reshape(-1, 2)
            for a, b in edges[(edges[:, 1] - edges[:, 0]) >= period * (LEAST_TURNS - 1)].tolist():
                runs.append((b - a, period, a, b + period))
        return sorted(runs, key=lambda r: (-r[0], r[1]))

    def phases(self, period: int, first: int, last: int) -> List[Turns]:
        """The loops of a stretch, by where their turns begin."""
        found: List[Turns] = []
        lasting = [0] * (last - period - first + 1)  # how many statements from here on follow
        for i in range(last - period - 1, first - 1, -1):
            lasting[i - first] = lasting[i - first + 1] + 1 if self.follows(i, i + period) else 0
        work = MOST_WORK
        for start in range(first, min(first + 2 * period, last - period * LEAST_TURNS + 1)):
            n = 2 + lasting[start + period - first] // period
            if n < LEAST_TURNS or work < 0:
                continue
            work -= n * period
            turns = self.checked(start, period, n)
            if turns is not None:
                found.append(turns)
        return found

    def follows(self, i: int, j: int) -> bool:
        """Statement j reads what statement i reads, one turn later."""
        for a, b in zip(self.at(i).inputs, self.at(j).inputs):
            made_a, made_b = self.places.made.get(id(a)), self.places.made.get(id(b))
            later = made_a is not None and made_b is not None and made_b == (made_a[0] + j - i, made_a[1]) and made_a[1] >= 0
            if a is not b and not (a.data is not None and b.data is not None) and not later:
                return False
        return True

    def checked(self, start: int, period: int, n: int) -> Optional[Turns]:
        """The loop, if its first turn fits to the others and only the last turn's results are read after it."""
        end = start + n * period
        carried: Dict[Tuple[int, int], Tuple[Value, Tuple[int, int]]] = {}
        values: Dict[Tuple[int, int], Value] = {}
        for k in range(period):
            first, second = self.at(start + k), self.at(start + period + k)
            for i, (a, b) in enumerate(zip(first.inputs, second.inputs)):
                kind = self.operand(a, b, start, period)
                if kind is None:
                    return None
                if kind[0] < 0:
                    continue
                if values.setdefault(kind, a) is not a:
                    return None
                carried[(k, i)] = (a, kind)
        for place in range(start, end):
            turn_end = start + ((place - start) // period + 2) * period
            limit = LAST + 1 if place >= end - period else min(turn_end, end)
            for v in self.at(place).outputs:
                if any(not place < r < limit for r in self.places.read.get(id(v), ())):
                    return None
        return Turns(start, period, n, carried)

    def operand(self, a: Value, b: Value, start: int, period: int) -> Optional[Tuple[int, int]]:
        """What makes a carried operand, as (offset in the turn, result); (-1, 0): no carried one; None: no loop."""
        made_a, made_b = self.places.made.get(id(a)), self.places.made.get(id(b))
        place_a, place_b = made_a[0] if made_a else -1, made_b[0] if made_b else -1
        if a is b:
            return (-1, 0) if place_a < start else None
        if a.data is not None and b.data is not None:
            return (-1, 0)
        if made_a is None and made_b is None:
            return None
        if place_a >= start and made_b == (place_a + period, made_a[1] if made_a else 0):
            return (-1, 0)
        if made_b is not None and start <= place_b < start + period and place_a < start:
            return place_b - start, made_b[1]
        return None


class Builder:
    """The loop of some turns, and what becomes of the values around it."""

    def __init__(self, search: Search, turns: Turns, outputs: List[Value], inputs: Sequence[Value]):
        self.search, self.turns, self.outputs = search, turns, outputs
        self.fixed = {id(v) for v in (*outputs, *inputs)}
        self.body = [search.at(turns.start + k) for k in range(turns.period)]
        self.before: List[Statement] = []
        self.carrier: Dict[Tuple[int, int], Value] = {}
        self.loop_scope = common_scope([s.scope for s in self.body])

    def turn(self, t: int, k: int) -> Statement:
        return self.search.at(self.turns.start + t * self.turns.period + k)

    def build(self) -> Tuple[List[Item], Dict[int, Value]]:
        """The items in place of the turns, and what later items read instead of the last turn's results."""
        turns = self.turns
        for value, made in turns.carried.values():
            if made not in self.carrier:
                self.carrier[made] = self.start(value, made)
        tables: Dict[Tuple[int, ...], Value] = {}
        operands = [[self.operand(k, i, tables) for i in range(len(s.inputs))] for k, s in enumerate(self.body)]
        ends, instead = self.results(operands)
        body = []
        for k, s in enumerate(self.body):
            origins = [o for t in range(turns.n) for g in (self.turn(t, k),) for o in (g.origin, *g.origins)]
            inputs = [instead.get(id(v), v) for v in operands[k]]
            outs = [instead.get(id(v), v) for v in s.outputs]
            body.append(Statement(s.op, inputs, s.attrs, outs, s.origin, s.scope, list(dict.fromkeys(origins))))
        last = {}
        for k, s in enumerate(self.body):
            for i, v in enumerate(self.turn(turns.n - 1, k).outputs):
                last[id(v)] = self.carrier.get((k, i)) or s.outputs[i]
        loop = Loop(turns.n, body, self.loop_scope, tables=list(tables.values()), ends=ends)
        return [*self.before, loop], last

    def start(self, value: Value, made: Tuple[int, int]) -> Value:
        """The variable of a carried value: that of its first value, unless something else reads that."""
        uses = sum(1 for v, _ in self.turns.carried.values() if v is value)
        others = any(v is value and m != made for v, m in self.turns.carried.values())
        alone = len(self.search.places.read.get(id(value), ())) == uses and not others
        place = self.search.places.made.get(id(value), (-1, -1))
        if value.data is None and id(value) not in self.fixed and alone and place[1] >= 0:
            return value
        k, i = made
        name = self.body[k].outputs[i]
        out = Value(name.name, value.dtype, value.shape, scope=name.scope)
        self.before.append(Statement("transfer", [value], {}, [out], -1))
        return out

    def operand(self, k: int, i: int, tables: Dict[Tuple[int, ...], Value]) -> Value:
        if (k, i) in self.turns.carried:
            return self.carrier[self.turns.carried[(k, i)][1]]
        entries = [self.turn(t, k).inputs[i] for t in range(self.turns.n)]
        value = entries[0]
        if value.data is None or all(v is value for v in entries):
            return value
        key = tuple(id(v) for v in entries)
        if key not in tables:
            table = Value(value.name, value.dtype, value.shape, scope=self.body[k].scope, entries=entries)
            table.role, table.users = f"{self.body[k].op}.{i}", [self.turn(t, k).scope for t in range(self.turns.n)]
            tables[key] = table
        return tables[key]

    def results(self, operands: List[List[Value]]) -> Tuple[List[Statement], Dict[int, Value]]:
        """Carried results go straight to their variable, unless its old value is read later in the turn."""
        ends: List[Statement] = []
        instead: Dict[int, Value] = {}
        for (k, i), variable in self.carrier.items():
            made = self.body[k].outputs[i]
            if id(made) in instead or any(v is variable for later in operands[k + 1 :] for v in later):
                ends.append(Statement("transfer", [made], {}, [variable], -1, self.loop_scope))
            else:
                instead[id(made)] = variable
        for e in ends:
            e.inputs = [instead.get(id(v), v) for v in e.inputs]
        return ends, instead


def common_scope(scopes: Sequence[str]) -> str:
    parts = [s.split("/") for s in scopes if s]
    if not parts:
        return ""
    shared = []
    for column in zip(*parts):
        if len(set(column)) > 1:
            break
        shared.append(column[0])
    return "/".join(shared)


def regular(statements: List[Statement], outputs: Sequence[Value]) -> List[Statement]:
    """The same statements in an order that is alike for equal layers: each as late as its first reader needs it.

    What several equal statements read comes first, so that what all layers share stays out of the first of them.
    """
    made = {id(v): i for i, s in enumerate(statements) for v in s.outputs}
    alike: Dict[Any, int] = {}
    for s in statements:
        for i, v in enumerate(s.inputs):
            if id(v) in made:
                key = (id(v), i, signature(s))
                alike[key] = alike.get(key, 0) + 1
    roots = sorted({made[key[0]] for key, n in alike.items() if n >= LEAST_TURNS})
    roots += [made[id(v)] for v in outputs if id(v) in made]
    order: List[int] = []
    done = set()
    for root in roots:
        stack = [(root, 0)]
        while stack:
            i, k = stack.pop()
            if i in done:
                continue
            inputs = [made[id(v)] for v in statements[i].inputs if id(v) in made]
            while k < len(inputs) and inputs[k] in done:
                k += 1
            if k < len(inputs):
                stack += [(i, k + 1), (inputs[k], 0)]
                continue
            done.add(i)
            order.append(i)
    return [statements[i] for i in order]


def roll(statements: List[Statement], outputs: List[Value], inputs: Sequence[Value]) -> Tuple[List[Item], List[Value]]:
    """The items of a program, repeated layers as loops, and its outputs."""
    best: Tuple[List[Item], List[Value]] = ([*statements], outputs)
    for order in (statements, regular(statements, outputs)):
        found = rolled([replace(s, inputs=list(s.inputs)) for s in order], outputs, inputs)
        if len(statements_of(found[0])) < len(statements_of(best[0])):
            best = found
    return best


def rolled(items: List[Item], outputs: List[Value], inputs: Sequence[Value]) -> Tuple[List[Item], List[Value]]:
    known: Dict[Any, int] = {}
    kinds = {
        id(s): known.setdefault(signature(s), len(known))
        for s in items if isinstance(s, Statement) and all(v.is_static for v in s.outputs)
    }  # fmt: skip
    for _ in range(MOST_LOOPS):
        search = Search(items, outputs, kinds)
        turns = search.best()
        if turns is None or turns.score()[0] < LEAST_SAVED:
            break
        made, instead = Builder(search, turns, outputs, inputs).build()
        rest = items[turns.start + turns.period * turns.n :]
        for s in statements_of(rest):
            s.inputs = [instead.get(id(v), v) for v in s.inputs]
        outputs = [instead.get(id(v), v) for v in outputs]
        items = [*items[: turns.start], *made, *rest]
    return items, outputs
