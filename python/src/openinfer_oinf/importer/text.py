"""The graph text: declarations, then statements grouped by the model's scopes.

Also which line each ONNX node became (`--map`), and what the package has to hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Set

from ..convert.weights import need_numpy
from .names import Unique, identifier, key_of
from .values import FLOATS, Statement, Value

WIDTH = 100


@dataclass
class Program:
    """What is to be written."""

    inputs: List[Value]
    outputs: List[Value]
    statements: List[Statement]
    sizes: Dict[str, int] = field(default_factory=dict)
    names: Dict[str, str] = field(default_factory=dict)  # package key -> ONNX name, where they differ
    tensors: Dict[str, Value] = field(default_factory=dict)  # what the package holds
    lines: Dict[int, List[int]] = field(default_factory=dict)  # ONNX node -> lines of the text
    output_names: List[str] = field(default_factory=list)


def used_constants(program: Program) -> List[Value]:
    found: Dict[int, Value] = {}
    for s in program.statements:
        for v in s.inputs:
            if v.data is not None:
                found.setdefault(id(v), v)
    return list(found.values())


def name_all(program: Program) -> None:
    """Inputs and outputs keep their names; everything else takes what is free."""
    unique = Unique()
    for name in program.sizes:
        unique(name)
    for v in program.inputs:
        v.label = unique(identifier(v.name, "x"))
    for v, name in zip(program.outputs, program.output_names):
        v.label = unique(identifier(name, "y"))
    keys = Unique()
    for v in used_constants(program):
        v.label = unique(identifier(v.name if not v.key else v.key, "w"))
        if uniform(v) is None:
            key = keys(key_of(v.key or (f"{v.scope}/{v.name}" if v.scope else v.name)))
            program.tensors[key] = v
            if v.key and key != v.key:
                program.names[key] = v.key
            v.key = key
    for s in program.statements:
        for v in s.outputs:
            if not v.label:
                v.label = unique(identifier(v.name, "v"))


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
    if dtype == "bool":
        return "true" if number else "false"
    if dtype not in FLOATS:
        return str(int(number))
    return float_text(float(str(number)) if dtype == "f32" else float(number))


def float_text(value: float) -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)


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
    return f"{value.dtype}[{', '.join('?' if d is None else str(d) for d in value.shape)}]"


class Writer:
    def __init__(self) -> None:
        self.lines: List[str] = []

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


def constants(program: Program) -> List[str]:
    lines = []
    for v in used_constants(program):
        fill = uniform(v)
        if fill is not None:
            lines.append(f"{v.label}: {type_text(v)} @init({fill});")
        else:
            ref = "" if v.key == v.label else f' @ref("{v.key}")'
            lines.append(f"{v.label}: {type_text(v)}{ref};")
    return lines


def write_text(program: Program, title: Sequence[str]) -> str:
    """The whole text. Fills program.lines."""
    name_all(program)
    w = Writer()
    for line in title:
        w.add(f"// {line}")
    if title:
        w.add()
    w.section("dynamic", [f"{v.label}: {type_text(v)};" for v in program.inputs])
    w.section("constant", constants(program))
    w.add("block entry {")
    body(program, w)
    w.add(f"  return {', '.join(v.label for v in program.outputs)};")
    w.add("}")
    return "\n".join(w.lines) + "\n"


def body(program: Program, w: Writer) -> None:
    declared: Set[int] = {id(v) for v in program.inputs}
    scope = ""
    for s in program.statements:
        if s.scope != scope:
            if s.scope:
                if w.lines[-1] != "block entry {":
                    w.add()
                w.add(f"  // {printable(s.scope)}")
            scope = s.scope
        for v in s.outputs:
            if id(v) not in declared:
                declared.add(id(v))
                w.add(f"  assign {v.label}: {type_text(v)};")
        args = [v.label for v in s.inputs] + [attr_text(s.op, k, a) for k, a in s.attrs.items()]
        line = w.add(f"  op {s.op}({', '.join(args)}) >> {', '.join(v.label for v in s.outputs)};")
        for origin in {s.origin, *s.origins}:
            program.lines.setdefault(origin, []).append(line)


def printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:WIDTH]
