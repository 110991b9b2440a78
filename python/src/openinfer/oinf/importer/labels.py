"""Names of variables and of package entries, from the model's names and scopes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Set, Tuple

from .loops import Item, Loop, statements_of
from .names import Unique, identifier, key_of
from .registry import ROWS
from .values import Statement, Value

if TYPE_CHECKING:
    from .text import Program

# ops whose result may take the variable of their first operand, when nothing reads that later
IN_PLACE = {
    "add", "sub", "mul", "div", "relu", "gelu", "silu", "sigmoid", "tanh", "hard_swish", "hard_sigmoid", "clamp", "neg", "exp",
    "sqrt", "where", "square", "rope",
}  # fmt: skip
OPERATORS = re.compile(r"[A-Z][A-Za-z0-9]*(_\d+)?(_output_\d+)?")  # a last part that only says which operator it was
NAMELESS = re.compile(r"(onnx::.*|_?v?\d+|val_\d+|.*[:#@].*)?")  # names that an exporter counted up


def reuse(items: Sequence[Item], outputs: Sequence[Value], inputs: Sequence[Value]) -> None:
    """Element-wise results take the variable of an operand of the same scope that nothing reads afterwards."""
    makers: Dict[int, int] = {}
    for s in statements_of(items):
        for v in s.outputs:
            makers[id(v)] = makers.get(id(v), 0) + 1
    fixed = {id(v) for v in (*outputs, *inputs)} | {k for k, n in makers.items() if n > 1}
    lists = [[i for i in items]] + [[*i.body, *i.ends] for i in items if isinstance(i, Loop)]
    for here in lists:
        reuse_in(here, fixed, all_reads(items, here))


def all_reads(items: Sequence[Item], here: Sequence[Item]) -> Dict[int, int]:
    """The last place of `here` that reads each value; what is read elsewhere has none."""
    last: Dict[int, int] = {}
    for i, item in enumerate(here):
        for s in [item] if isinstance(item, Statement) else [*item.body, *item.ends]:
            last.update((id(v), i) for v in s.inputs)
    own = {id(s) for s in statements_of(here)}
    for s in statements_of(items):
        if id(s) not in own:
            last.update((id(v), len(here)) for v in s.inputs)
    return last


def reuse_in(here: Sequence[Item], fixed: Set[int], last: Dict[int, int]) -> None:
    made: Set[int] = set()
    for place, s in enumerate(here):
        if not isinstance(s, Statement):
            continue
        out = s.outputs[0]
        if s.op in IN_PLACE and len(s.outputs) == 1 and id(out) not in fixed:
            for v in s.inputs:
                if id(v) not in made or id(v) in fixed or last[id(v)] != place or (v.dtype, v.shape) != (out.dtype, out.shape):
                    continue
                inside = v.scope == out.scope or v.scope.startswith(out.scope + "/")
                if inside and (v.scope or OPERATORS.fullmatch(v.name)) and OPERATORS.fullmatch(out.name):
                    out.home = v
                    break
        made.update(id(v) for v in s.outputs)


def words(value: Value) -> str:
    """What a value is called: its own name, or that of its scope when its own only says the operator."""
    scopes = [p for p in value.scope.split("/") if p]
    if scopes and OPERATORS.fullmatch(value.name):
        return re.sub(r"[._]\d+$", "", scopes[-1]) or value.name
    return value.name


class Names:
    """Labels of the text and keys of the package."""

    def __init__(self, program: "Program"):
        self.program = program
        self.unique, self.keys = Unique(), Unique()

    def all(self) -> None:
        """Inputs and outputs keep their names; everything else takes what is free."""
        program = self.program
        for name in program.sizes:
            self.unique(name)
        for v in program.inputs:
            v.label = self.unique(identifier(v.name, "x"))
        for v, name in zip(program.outputs, program.output_names):
            v.label = self.unique(identifier(name, "y"))
        for x, _ in program.states:
            program.state_labels.append(self.unique(identifier(x.name, "state")))
            x.label = self.unique(identifier(x.name, "x"))
        constants = [(s, v) for s, v in constants_of(program.items) if not v.entries]
        for s, v in constants:
            self.uniform(s, v)
        # a variable without data of its own would be linked to an entry of its name
        self.keys.taken.update(self.unique.taken)
        for item in program.items:
            if isinstance(item, Loop):
                item.index = self.unique("l" if not item.index else item.index)
                self.loop(item)
        for s, v in constants:
            self.constant(s, v)
        for s in statements_of(program.items):
            for v in s.outputs:
                if v.home is None and not v.label:
                    v.label = self.unique(identifier(words(v), "v"))

    def uniform(self, s: Statement, v: Value) -> None:
        """A constant of one number, which the text holds."""
        from .text import uniform

        if uniform(v) is not None:
            v.label = self.unique(identifier(short_number(v) or name_of(s, v), "c"))

    def constant(self, s: Statement, v: Value) -> None:
        if v.label:
            return
        name = name_of(s, v)
        v.label = self.unique(identifier(name, "w"))
        self.store(self.keys(key_of(name if name != v.name or not v.scope else f"{v.scope}/{v.name}")), v)

    def store(self, key: str, v: Value) -> None:
        self.program.tensors[key] = v
        if v.key and key != v.key:
            self.program.names[key] = v.key
        v.key = key

    def loop(self, loop: Loop) -> None:
        """Tables of a loop: `enc.{l}.w` where the entries' names count up, otherwise a name of its own."""
        found = [(t, counted([key_of(e.key or "") for e in t.entries])) for t in loop.tables]
        starts = [c[1] for _, c in found if c is not None]
        loop.first = max(set(starts), key=starts.count) if starts else 0
        for table, count in found:
            pattern, start = count or (self.own_pattern(table), loop.first)
            free, n = pattern, 1
            taken = [pattern.replace("{}", str(start + t)) in self.keys.taken for t in range(loop.n)]
            while any(taken):
                n, pattern = n + 1, f"{free}_{n + 1}"
                taken = [pattern.replace("{}", str(start + t)) in self.keys.taken for t in range(loop.n)]
            for t, entry in enumerate(table.entries):
                key = self.keys(pattern.replace("{}", str(start + t)))
                self.store(key, entry if entry.key == key or not stored_before(entry) else copy_of(entry))
            table.key = pattern.replace("{}", f"{{{loop.index}}}")
            shift = start - loop.first
            table.role = loop.index if not shift else f"{loop.index} {'+' if shift > 0 else '-'} {abs(shift)}"
            table.label = self.unique(identifier(pattern.rpartition("{}")[2].strip(".") or pattern.replace("{}", ""), "W"))
        name = re.sub(r"[._]\d+$", "", loop.scope.split("/")[-1]) if loop.scope else ""
        loop.label = self.unique(identifier("layers" if name.isdecimal() else name, "layers"))

    def own_pattern(self, table: Value) -> str:
        """A pattern for constants whose names say nothing: where they are used and as what."""
        found = counted([key_of(u) for u in table.users])
        scope = found[0] if found else key_of(table.scope or "layer").replace("{}", "") + ".{}"
        return f"{scope}.{role_of(table.role)}"


def stored_before(value: Value) -> bool:
    return bool(value.label)


def copy_of(value: Value) -> Value:
    return Value(value.name, value.dtype, value.shape, value.data, scope=value.scope, key=value.key)


def role_of(role: str) -> str:
    """What an operand is called by those who train models: "qconv.3" is a weight."""
    op, _, i = role.partition(".")
    names = ROWS[op].inputs if op in ROWS else ()
    name = names[int(i)].rstrip("?+") if i and int(i) < len(names) else ""
    if op == "matmul" or name in ("w", "W") or (name == "b" and op in ("gemm", "qmatmul", "matmul_integer")):
        return "weight"
    if op == "add" or name == "b" or (name == "c" and op == "gemm"):
        return "bias"
    if name == "scale" and op.endswith("norm"):
        return "weight"
    if name == "R":
        return "recurrent"
    if len(name) > 1:
        return name
    return op if i in ("", "1") else f"{op}{i}"


def name_of(s: Statement, v: Value) -> str:
    name = v.key or v.name
    counted_up = NAMELESS.fullmatch(name) or (not v.key and OPERATORS.fullmatch(name))  # the latter were computed
    return role_name(s, v) if counted_up else name


def role_name(s: Statement, v: Value) -> str:
    role = role_of(f"{s.op}.{next(i for i, x in enumerate(s.inputs) if x is v)}")
    if s.scope:
        return f"{s.scope}/{role}"
    made = words(s.outputs[0])
    return role if NAMELESS.fullmatch(made) or OPERATORS.fullmatch(made) else f"{made}.{role}"


def short_number(v: Value) -> str:
    """A name for a number that has none of its own."""
    if v.key and not NAMELESS.fullmatch(v.key):
        return ""
    return "c" if OPERATORS.fullmatch(v.name) or NAMELESS.fullmatch(v.name) else ""


def counted(keys: List[str]) -> Optional[Tuple[str, int]]:
    """('enc.{}.w', 3) for enc.3.w, enc.4.w, ...; None when the names do not count up in one place."""
    if any(NAMELESS.fullmatch(k) or k.startswith("onnx_") for k in keys):
        return None
    parts = [re.split(r"(\d+)", k) for k in keys]
    if len({len(p) for p in parts}) != 1:
        return None
    text, start, found = [], 0, 0
    for column in zip(*parts):
        if len(set(column)) == 1:
            text.append(column[0])
            continue
        if found or not all(c.isdecimal() for c in column) or [int(c) for c in column] != list(range(int(column[0]), int(column[0]) + len(keys))):
            return None
        if any(str(int(c)) != c for c in column):
            return None
        text.append("{}")
        start, found = int(column[0]), 1
    return ("".join(text), start) if found else None


def constants_of(items: Sequence[Item]) -> List[Tuple[Statement, Value]]:
    """Each constant or table that statements read, with its first reader."""
    found: Dict[int, Tuple[Statement, Value]] = {}
    for s in statements_of(items):
        for v in s.inputs:
            if v.data is not None or v.entries:
                found.setdefault(id(v), (s, v))
    return list(found.values())


def steps(scope: str) -> List[str]:
    """'layers.0/attn' -> ['layers', '.0', '/attn']: a group may be a list or one of its entries."""
    return re.findall(r"(?:^|/|\.(?=\d))[^/]+?(?=/|\.\d|$)", scope)


def groups(statements: Sequence[Statement], prefix: str, most: int) -> List[Any]:
    """A title for each statement, or None where the group before goes on: scopes, as deep as few groups allow."""
    paths = [steps(s.scope) for s in statements]
    skip = len(steps(prefix))
    paths = [p[skip:] for p in paths]
    for depth in range(max((len(p) for p in paths), default=0), 0, -1):
        titles = titles_at([p[:depth] for p in paths])
        if prefix:
            titles = without_single(titles)
        if sum(t is not None for t in titles) <= most:
            return titles
    return [None] * len(statements)


def titles_at(paths: Sequence[List[str]]) -> List[Optional[str]]:
    current: List[str] = []
    titles: List[Optional[str]] = []
    for path in paths:
        if path == current or path == current[: len(path)]:  # a statement of an enclosing scope goes with its group
            titles.append(None)
        else:
            titles.append("".join(path).strip("/"))
            current = path
    return titles


def without_single(titles: Sequence[Optional[str]]) -> List[Optional[str]]:
    """No title for one statement alone: its variable says as much."""
    ends = [*titles[1:], ""]
    return [t if end is None else None for t, end in zip(titles, ends)]
