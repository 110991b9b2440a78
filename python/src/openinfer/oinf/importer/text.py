"""The graph text: declarations, then statements grouped by the model's scopes.

Also which line each ONNX node became (`--map`), and what the package has to hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from ..convert.weights import need_numpy
from .labels import Names, constants_of, groups, reuse
from .loops import Item, Loop
from .values import FLOATS, Statement, Value

WIDTH = 100
FAR = (1 << 31) - 1  # exporters say "to the end" by this and larger ends


@dataclass
class Program:
    """What is to be written."""

    inputs: List[Value]
    outputs: List[Value]
    items: List[Item]
    sizes: Dict[str, int] = field(default_factory=dict)
    names: Dict[str, str] = field(default_factory=dict)  # package key -> ONNX name, where they differ
    tensors: Dict[str, Value] = field(default_factory=dict)  # what the package holds
    lines: Dict[int, List[int]] = field(default_factory=dict)  # ONNX node -> lines of the text
    output_names: List[str] = field(default_factory=list)
    states: List[Tuple[Value, Value]] = field(default_factory=list)  # read into, written from: what lasts between steps
    state_labels: List[str] = field(default_factory=list)

    def given(self) -> List[Value]:
        """What the program begins with: inputs and states."""
        return [*self.inputs, *(x for x, _ in self.states)]

    def results(self) -> List[Value]:
        return [*self.outputs, *(y for _, y in self.states)]


def uniform(value: Value) -> Optional[str]:
    """The number that every element has, as text; None when they differ."""
    np = need_numpy()
    data = value.data
    if data is None or data.size == 0 or value.dtype in ("f8",):
        return None
    if 0 in data.strides or data.size == 1:
        if data.size > 1 and any(s != 0 for s, d in zip(data.strides, data.shape) if d > 1):
            return None
    elif data.size > 64 or not (data.reshape(-1).view(np.uint8).reshape(data.size, -1) == data.reshape(-1)[:1].view(np.uint8)).all():
        return None
    first = data.reshape(-1)[0] if data.size == 1 else data[(0,) * data.ndim]
    return number_text(first, value.dtype)


def number_text(number: Any, dtype: str) -> str:
    """A constant's number as `openinfer fmt` writes it: the shortest decimal that is the same number of its type."""
    if dtype == "bool":
        return "true" if number else "false"
    if dtype not in FLOATS:
        return str(int(number))
    if dtype == "f32":
        return float_text(float(str(number)), 13, -6)
    exact = float(number)
    kind = type(number)
    for digits in range(9 if dtype != "f64" and math.isfinite(exact) else 0):
        near = float(f"{exact:.{digits}e}")
        if float(kind(near)) == exact:
            return float_text(near)
    return float_text(exact)


def float_text(value: float, most: int = 16, least: int = -5) -> str:
    """The shortest decimal; plain when its point lies within the limits, with an exponent otherwise."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)
    minus = "-" if sign else ""
    if value == 0:
        return minus + "0.0"
    if not least < point <= most:
        return f"{minus}{text[0]}{'.' if len(text) > 1 else ''}{text[1:]}e{point - 1}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    return f"{minus}{text[:point].ljust(point, '0')}.{text[point:] or '0'}"


def value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(value_text(v) for v in value) + "]"
    return str(value)


def attr_text(op: str, name: str, value: Any) -> str:
    if isinstance(value, str) and not (name == "to"):
        return f'{name}="{value}"'
    return f"{name}={value_text(value)}"


def type_text(value: Value) -> str:
    if value.shape is None or not value.shape:
        return value.dtype
    if value.lengths:
        return f"{value.dtype}[{', '.join(value.lengths)}]"
    return f"{value.dtype}[{', '.join('?' if d is None else str(d) for d in value.shape)}]"


def constants(program: Program) -> List[str]:
    lines = []
    for _, v in constants_of(program.items):
        if v.entries:
            index = v.key[v.key.index("{") + 1 : v.key.index("}")]
            lines.append(f'{v.label}({index}): {type_text(v)} @pattern("{v.key}");')
            continue
        fill = uniform(v)
        if fill is not None:
            lines.append(f"{v.label}: {type_text(v)} @init({fill});")
        else:
            ref = "" if v.key == v.label else f' @ref("{v.key}")'
            lines.append(f"{v.label}: {type_text(v)}{ref};")
    return lines


def write_text(program: Program, title: Sequence[str]) -> str:
    """The whole text. Fills program.lines."""
    reuse(program.items, program.results(), program.given())
    Names(program).all()
    w = Writer(program)
    for line in title:
        w.add(f"// {line}")
    if title:
        w.add()
    w.section("dynamic", [f"{v.label}: {type_text(v)};" for v in program.inputs])
    w.section("constant", constants(program))
    w.section("persistent", [f"{label}: {type_text(x)};" for label, (x, _) in zip(program.state_labels, program.states)])
    w.add("block entry {")
    for label, (x, _) in zip(program.state_labels, program.states):
        w.declared.add(id(x))
        w.add(f"  assign {x.label}: {type_text(x)};")
        w.add(f"  cache.read {label} >> {x.label};")
    w.body(program.items, "", 1)
    for label, (_, y) in zip(program.state_labels, program.states):
        w.add(f"  cache.write {y.root().label} >> {label};")
    w.add(f"  return {', '.join(v.label for v in program.outputs)};" if program.outputs else "  return;")
    w.add("}")
    return "\n".join(w.lines) + "\n"


class Writer:
    def __init__(self, program: Program) -> None:
        self.lines: List[str] = []
        self.program = program
        self.declared: Set[int] = {id(v) for v in program.inputs}

    def add(self, line: str = "") -> int:
        self.lines.append(line)
        return len(self.lines)

    def section(self, kind: str, declarations: Sequence[str]) -> None:
        if declarations:
            self.add(f"{kind} {{")
            for d in declarations:
                self.add(f"  {d}")
            self.add("}")
            self.add()

    def body(self, items: Sequence[Item], prefix: str, depth: int) -> None:
        """Statements with a comment above each group; few groups inside loops."""
        flat = [s for s in items if isinstance(s, Statement)]
        titles = dict(zip(map(id, flat), groups(flat, prefix, max(4, len(flat) // 3))))
        for item in items:
            if isinstance(item, Loop):
                self.loop(item, depth)
                continue
            title = titles[id(item)]
            if title:
                if depth == 1 and self.lines[-1] != "block entry {":
                    self.add()
                self.add(f"{'  ' * depth}// {printable(title)}")
            self.statement(item, depth)

    def loop(self, loop: Loop, depth: int) -> None:
        pad = "  " * depth
        if not self.lines[-1].endswith("{"):
            self.add()
        if loop.scope:
            self.add(f"{pad}// {printable(loop.scope)} and {loop.n - 1} more")
        self.add(f"{pad}loop {loop.label} ({loop.index} in {loop.first}..{loop.first + loop.n}) {{")
        self.body([*loop.body, *loop.ends], loop.scope, depth + 1)
        self.add(f"{pad}}}")

    def statement(self, s: Statement, depth: int) -> None:
        pad = "  " * depth
        for v in s.outputs:
            if id(v.root()) not in self.declared:
                self.declared.add(id(v.root()))
                self.add(f"{pad}assign {v.root().label}: {type_text(v)};")
        outs = ", ".join(v.root().label for v in s.outputs)
        args = [operand(v) for v in s.inputs]
        if s.op == "transfer":
            line = self.add(f"{pad}transfer {args[0]} >> {outs};")
        else:
            args += [attr_text(s.op, k, a) for k, a in shown_attrs(s).items()]
            line = self.add(f"{pad}op {s.op}({', '.join(args)}) >> {outs};")
        for origin in {s.origin, *s.origins}:
            self.program.lines.setdefault(origin, []).append(line)


def shown_attrs(s: Statement) -> Dict[str, Any]:
    """The attributes; of a slice forwards to the end of an axis, both ends as numbers of that axis, where its length is one."""
    x = s.inputs[0] if s.inputs else None
    if s.op != "slice" or x is None or not x.is_static or "steps" in s.attrs:
        return s.attrs
    starts, ends = list(s.attrs["starts"]), list(s.attrs["ends"])
    for i, axis in enumerate(s.attrs.get("axes") or range(len(ends))):
        length = x.dims()[axis]
        if ends[i] >= FAR and (not x.lengths or x.lengths[axis].isdecimal()):
            starts[i], ends[i] = starts[i] if starts[i] >= 0 else max(0, starts[i] + length), length
    return {**s.attrs, "starts": starts, "ends": ends}


def operand(v: Value) -> str:
    return f"{v.label}[{v.role}]" if v.entries else v.root().label


def printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:WIDTH]
