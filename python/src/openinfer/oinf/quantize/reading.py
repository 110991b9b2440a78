"""A float graph over its package as a straight list of statements: loops in turns, each result a value of its own.

The statements are those of the importer, so that what was quantised is written as imported models are: with names of
the graph, and with repeated layers as loops again. What has no place in such a list (branches, tables of the state,
yield and await) is refused, each with its node.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from openinfer.graph import Graph
from openinfer.model import Model

from ..convert.weights import need_numpy
from ..importer.values import Statement, Value
from ..types import OinfError

LONGEST = 100_000  # statements
NATIVE = {"bool": "?", "f16": "f2", "f32": "f4", "f64": "f8", **{f"{k}{8 * n}": f"{k}{n}" for k in "iu" for n in (1, 2, 4, 8)}}


class Left(Exception):
    """A node that does not fit into a list of statements."""


@dataclass
class Straight:
    """The graph's statements, in the order in which they run."""

    statements: List[Statement] = field(default_factory=list)
    inputs: List[Value] = field(default_factory=list)
    outputs: List[Value] = field(default_factory=list)
    output_names: List[str] = field(default_factory=list)
    states: List[Tuple[Value, Value]] = field(default_factory=list)  # read into, written from


def whole_number(text: Any, names: Mapping[str, int]) -> int:
    """The value of an integer expression over sizes and indices of loops."""
    try:
        return number_of(ast.parse(str(text), mode="eval").body, names)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        raise Left(f"'{text}' is known only to the run") from None


def number_of(e: Any, names: Mapping[str, int]) -> int:
    if isinstance(e, ast.Constant) and isinstance(e.value, int):
        return e.value
    if isinstance(e, ast.Name) and e.id in names:
        return names[e.id]
    if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
        return -number_of(e.operand, names)
    if isinstance(e, ast.BinOp):
        a, b = number_of(e.left, names), number_of(e.right, names)
        if isinstance(e.op, ast.Add):
            return a + b
        if isinstance(e.op, ast.Sub):
            return a - b
        if isinstance(e.op, ast.Mult):
            return a * b
        if isinstance(e.op, ast.Div) and a % b == 0:
            return a // b
        if isinstance(e.op, ast.Mod):
            return a % b
    raise ValueError


def attribute(value: Dict[str, Any], names: Mapping[str, int]) -> Any:
    """The number, text or list of an attribute in graph JSON."""
    ((kind, v),) = value.items()
    if kind in ("Var", "Expr"):
        return whole_number(v, names)
    if kind == "VarList":
        return [whole_number(one, names) for one in v]
    if kind == "List":
        return [attribute(one, names) for one in v]
    if kind in ("DType", "DTypeList"):
        return v.lower() if kind == "DType" else [one.lower() for one in v]
    if kind in ("Double", "Float", "FloatList"):
        return [float(one) for one in v] if isinstance(v, list) else float(v)
    return v


class Reader:
    def __init__(self, graph: Graph, model: Model) -> None:
        self.json, self.model = graph.json(), model
        self.sizes = {**model.sizes, **graph.sizes}
        simulator = graph.simulator()
        self.types = {v.name: v for v in simulator.variables}
        self.out = Straight()
        self.env: Dict[str, Value] = {}
        self.before: Dict[str, Value] = {}  # what states are read into
        self.after: Dict[str, Value] = {}  # what they are written from
        self.constants: Dict[str, Value] = {}
        self.tensors = set(model.tensors)

    def read(self) -> Straight:
        for name in self.json.get("var_order") or sorted(self.json["vars"]):
            var = self.json["vars"][name]
            if var["kind"] == "Dynamic":
                value = self.value(name)
                value.is_input = True
                self.env[name] = value
                self.out.inputs.append(value)
        self.nodes(self.json["blocks"]["entry"]["nodes"], dict(self.sizes), "")
        for name, x in self.before.items():
            self.out.states.append((x, self.after.get(name, x)))
        for name in set(self.after) - set(self.before):
            self.out.states.append((self.value(name), self.after[name]))
        return self.out

    def value(self, name: str, scope: str = "") -> Value:
        var = self.types.get(name)
        if var is None or None in var.dims:
            raise Left(f"the shape of {name} is known only to the run" if var else f"no variable {name}")
        return Value(name, var.dtype, tuple(int(d or 0) for d in var.dims), scope=scope)

    # ---- nodes ----

    def nodes(self, nodes: List[Dict[str, Any]], names: Dict[str, int], scope: str) -> None:
        for node in nodes:
            kind = node["kind"]
            tag = kind if isinstance(kind, str) else next(iter(kind))
            try:
                self.node(tag, {} if isinstance(kind, str) else kind[tag] or {}, names, scope)
            except Left as e:
                raise OinfError(f"node {node['index']} ({tag}): {e}; what is quantised is a list of ops") from None

    def node(self, tag: str, n: Dict[str, Any], names: Dict[str, int], scope: str) -> None:
        if tag in ("Assign", "Barrier", "Dep"):
            self.env.pop(n.get("name", ""), None)
        elif tag == "Op":
            self.op(n, names, scope)
        elif tag == "Transfer":
            self.env[n["dst"]] = self.operand(n["src"], names)
        elif tag == "Loop":
            start, end = whole_number(n["start"], names), whole_number(n["end"], names)
            for turn in range(start, end):
                self.nodes(n["body"], {**names, n["index"]: turn}, f"{scope}/{n['name']}.{turn}".strip("/"))
        elif tag == "CacheRead":
            self.env[n["dst"]] = self.state(n["src"])
        elif tag == "CacheWrite":
            self.state(n["dst"])
            self.after[n["dst"]["base"]] = self.operand(n["src"], names)
        elif tag == "Return":
            self.out.output_names = list(n.get("values", []))
            for value in [self.operand(v, names) for v in self.out.output_names]:
                self.out.outputs.append(self.own(value))
        else:
            raise Left("it does not fit into a list of statements")

    def op(self, n: Dict[str, Any], names: Dict[str, int], scope: str) -> None:
        attrs = {a["name"]: attribute(a["value"], names) for a in n["attrs"]["items"]}
        name = "conv" if n["op"] in ("conv1d", "conv2d", "conv3d") else n["op"]
        self.emit(name, [self.operand(i, names) for i in n["inputs"]], attrs, n.get("outputs") or [n["output"]], scope)

    def emit(self, op: str, inputs: List[Value], attrs: Dict[str, Any], outputs: List[str], scope: str) -> None:
        if len(self.out.statements) == LONGEST:
            raise Left(f"more than {LONGEST} statements")
        made = []
        for name in outputs:
            if "[" in name:
                raise Left(f"{name} is an entry of a table")
            self.env[name] = self.value(name, scope)
            made.append(self.env[name])
        self.out.statements.append(Statement(op, inputs, attrs, made, len(self.out.statements), scope))

    def own(self, value: Value) -> Value:
        """A result needs a variable of its own."""
        if value.data is None and not value.is_input and value not in self.out.outputs and value not in self.before.values():
            return value
        copy = Value(value.name, value.dtype, value.shape)
        self.out.statements.append(Statement("identity", [value], {}, [copy], -1))
        return copy

    # ---- what nodes read ----

    def state(self, access: Dict[str, Any]) -> Value:
        """The value of a persistent variable, read or written whole."""
        name = access["base"]
        var = self.json["vars"].get(name, {})
        if access.get("indices") or var.get("table") or var.get("auto_dim") or var.get("init") or (var.get("ref_name") or name) in self.tensors:
            raise Left(f"{name} is a table, or begins with other values than zeros")
        if name not in self.before:
            self.before[name] = self.value(name)
        return self.after.get(name, self.before[name])

    def operand(self, text: str, names: Mapping[str, int]) -> Value:
        if text in self.env:
            return self.env[text]
        name, _, index = text.partition("[")
        indices = [whole_number(i, names) for i in index.rstrip("]").split(",")] if index else []
        var = self.json["vars"].get(name)
        if var is None or var["kind"] not in ("Constant", "Volatile"):
            raise Left(f"{text} is no value here")
        key = var.get("ref_name") or name
        if indices:
            key = var.get("pattern") or "".join([name, *(f".{i}" for i in indices)])
            for label, i in zip(var["table_indices"], indices):
                key = key.replace(f"{{{label}}}", str(i))
        value = self.constants.get(f"{name}:{key}")
        if value is None:
            value = self.constants[f"{name}:{key}"] = self.constant(name, key, var)
        return value

    def constant(self, name: str, key: str, var: Dict[str, Any]) -> Value:
        np = need_numpy()
        value = self.value(name)
        if value.dtype not in NATIVE:
            raise Left(f"{name} is of type {value.dtype}")
        if key in self.tensors:
            data = self.model.tensor(key)
            value.key = key
        else:
            data = np.broadcast_to(np.asarray(initial(var), NATIVE[value.dtype]), value.dims())
        value.data = data.reshape(value.dims())
        return value


def initial(var: Dict[str, Any]) -> Any:
    """The number of @init; 0 without."""
    init: Optional[Dict[str, Any]] = var.get("init")
    if not init:
        return 0
    ((_, number),) = init.items()
    return float(number) if isinstance(number, str) else 0 if isinstance(number, dict) else number
