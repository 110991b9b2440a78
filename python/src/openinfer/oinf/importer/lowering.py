"""One forward pass over an ONNX graph: nodes become statements of ours.

Nodes come in topological order, so every input's type is known when a node is met. What depends on constants
only is computed here (`fold.py`), which removes the arithmetic on shapes. A node without a rule of its own is
replaced by its function body when the ONNX schema has one. What remains is collected as problems.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Sequence, Set, Tuple

from ..convert.weights import need_numpy
from .contrib import contrib_function
from .control import CONTROL, Bodies, Lost
from .fold import can_fold, fold
from .infer import infer
from .names import split_scope
from .registry import nearest
from .values import FLOATS, NeedsConstant, Shape, Statement, Unsupported, Value, need_onnx

Rule = Callable[["Node"], None]
# attributes that say how to compute, never what, and those that the result's type or a weight's shape shows
WITHOUT_EFFECT: Dict[str, Set[str]] = {
    "BatchNormalization": {"momentum"}, "BitCast": {"to"}, "Cast": {"to", "saturate"}, "CastLike": {"saturate"},
    "Conv": {"kernel_shape"}, "ConvInteger": {"kernel_shape"}, "ConvTranspose": {"kernel_shape"},
    "DequantizeLinear": {"output_dtype"}, "Dropout": {"ratio", "seed"}, "GRU": {"hidden_size"},
    "GroupNormalization": {"stash_type"}, "LSTM": {"hidden_size"}, "LayerNormalization": {"stash_type"},
    "QLinearConv": {"kernel_shape"}, "QuantizeLinear": {"output_dtype", "precision", "saturate"},
    "RMSNormalization": {"stash_type"}, "RNN": {"hidden_size"}, "Reshape": {"allowzero"}, "Split": {"num_outputs"},
}  # fmt: skip
OLDEST = 7  # the first opset with today's broadcasting
MAX_DEPTH = 16  # functions inside functions and branches inside branches


@dataclass
class Problem:
    node: str
    op: str
    opset: int
    reason: str
    nearest: str
    needs: Tuple[str, ...] = ()  # the model's inputs that --bind could give

    def text(self) -> str:
        near = f"; the nearest op is {self.nearest}" if self.nearest else ""
        return f"node {self.node}: {self.op} (opset {self.opset}): {self.reason}{near}"


class Attributes(Dict[str, Any]):
    """A node's attributes, which knows what a rule has looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.seen.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.seen.add(str(name))
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.seen.add(name)
        return super().get(name, default)

    def items(self) -> Any:
        self.seen.update(self)
        return super().items()


class Node:
    """One ONNX node as a rule sees it: its inputs, its attributes, and ways to write statements."""

    def __init__(self, lowering: "Lowering", proto: Any, opset: int, origin: int, env: Dict[str, Value]):
        self.lowering, self.proto, self.opset, self.origin = lowering, proto, opset, origin
        self.op: str = proto.op_type
        self.inputs: List[Optional[Value]] = [env[name] if name else None for name in proto.input]
        self.outputs: List[str] = list(proto.output)
        self.attrs = Attributes()
        self.schema = lowering.schema(proto, opset)
        self.types: Dict[str, Value] = {}
        helper = need_onnx().helper
        if self.schema is not None:
            for name, a in self.schema.attributes.items():
                if a.default_value.type:
                    self.attrs[name] = helper.get_attribute_value(a.default_value)
        for a in proto.attribute:
            self.attrs[a.name] = helper.get_attribute_value(a)
        for k, v in dict.items(self.attrs):
            if isinstance(v, bytes):
                self.attrs[k] = v.decode("utf-8", "replace")

    # ---- what comes in ----

    def has(self, i: int) -> bool:
        return i < len(self.inputs) and self.inputs[i] is not None

    def x(self, i: int = 0) -> Value:
        value = self.inputs[i] if i < len(self.inputs) else None
        if value is None:
            raise Unsupported(f"input {i} is missing")
        return value

    def given(self) -> List[Value]:
        return [v for v in self.inputs if v is not None]

    def constant(self, i: int) -> Any:
        value = self.x(i)
        if value.data is None:
            raise NeedsConstant(value)
        return value.data

    def ints(self, i: int, attr: str) -> Optional[List[int]]:
        """Integers that newer opsets take as input i and older ones as an attribute."""
        if self.has(i):
            return [int(v) for v in self.constant(i).reshape(-1)]
        if attr in self.attrs:
            value = self.attrs[attr]
            return [int(v) for v in value] if isinstance(value, (list, tuple)) else [int(value)]
        return None

    def number(self, i: int, attr: str, default: Any = None) -> Any:
        if self.has(i):
            return self.constant(i).reshape(-1)[0].item()
        return self.attrs.get(attr, default)

    # ---- what goes out ----

    def out(self, i: int = 0) -> Value:
        """The node's i-th result, with the type that ONNX infers."""
        if not self.wants(i):
            raise Unsupported(f"output {i} is missing")
        return self.types[self.outputs[i]]

    def wants(self, i: int) -> bool:
        return i < len(self.outputs) and bool(self.outputs[i])

    def emit(self, op: str, inputs: Sequence[Value], attrs: Optional[Dict[str, Any]] = None, out: Optional[Value] = None) -> Value:
        result = self.out() if out is None else out
        self.lowering.add(Statement(op, list(inputs), dict(attrs or {}), [result], self.origin, result.scope))
        return result

    def emit_many(self, op: str, inputs: Sequence[Value], attrs: Dict[str, Any], outs: Sequence[Value]) -> None:
        self.lowering.add(Statement(op, list(inputs), attrs, list(outs), self.origin, outs[0].scope))

    def temp(self, like: Value, shape: Shape = None, dtype: str = "", name: str = "") -> Value:
        """A value between two statements of one node, of the type of `like` unless given."""
        scope, last = split_scope(self.outputs[0] or self.op)
        return Value(name or f"{last}_t", dtype or like.dtype, like.shape if shape is None else shape, scope=scope)

    def const(self, array: Any, dtype: str, name: str = "c") -> Value:
        np = need_numpy()
        data = np.asarray(array)
        return Value(name, dtype, tuple(data.shape), data)

    def scalar(self, number: Any, like: Value) -> Value:
        """A rank-0 constant of another value's type."""
        from .fold import numpy_dtype

        return self.const(need_numpy().asarray(number).astype(numpy_dtype(like.dtype)), like.dtype, "c")

    def alias(self, value: Value, i: int = 0) -> None:
        """The i-th result is another value: no statement is wanted."""
        self.lowering.bind(self.outputs[i], value)
        self.lowering.fates.setdefault(self.origin, "another name of its input")


class Lowering:
    def __init__(self, opsets: Dict[str, int], functions: Dict[Tuple[str, str], Any], rules: Dict[str, Rule], path: str):
        self.path = path
        self.opsets, self.functions, self.rules = opsets, functions, rules
        self.statements: List[Statement] = []
        self.problems: List[Problem] = []
        self.env: Dict[str, Value] = {}
        self.n_nodes = self.n_folded = self.n_inlined = 0
        self.nodes: List[Tuple[str, str]] = []  # name and op of each node of the model, by number
        self.fates: Dict[int, str] = {}

    def add(self, statement: Statement) -> None:
        self.statements.append(statement)

    def bind(self, name: str, value: Value) -> None:
        self.env[name] = value

    def schema(self, proto: Any, opset: int) -> Any:
        onnx = need_onnx()
        try:
            return onnx.defs.get_schema(proto.op_type, opset, proto.domain)
        except onnx.defs.SchemaError:
            return None

    # ---- graphs ----

    def graph(self, graph: Any) -> None:
        """The nodes of the model itself."""
        self.n_nodes = len(graph.node)
        for origin, proto in enumerate(ordered(graph.node, self.env)):
            self.nodes.append((proto.name or (proto.output[0] if proto.output else "?"), proto.op_type))
            self.node(proto, self.opsets, origin, 0)

    def node(self, proto: Any, opsets: Dict[str, int], origin: int, depth: int) -> None:
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        opset = opsets.get(domain, 1)
        missing = [name for name in proto.input if name and name not in self.env]
        if missing:  # an earlier problem: its results have no type
            self.unknown(proto, domain, opset, origin)
            self.lost(proto)
            return
        try:
            self.lower(proto, domain, opset, opsets, origin, depth)
            self.trace(proto)
        except Lost:
            self.lost(proto)
        except Unsupported as e:
            self.problem(proto, opset, origin, e)
            self.lost(proto)
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as e:
            # attributes and constants of a broken file have any kind and value
            text = " ".join(f"{type(e).__name__} {e}".split())[:200]
            self.problem(proto, opset, origin, Unsupported(f"it is not a valid node: {text}"))
            self.lost(proto)

    def unknown(self, proto: Any, domain: str, opset: int, origin: int) -> None:
        """Reports an operator that no types could help, so that one import names all of them."""
        schema = self.schema(proto, opset)
        name = f"{domain}.{proto.op_type}" if domain else proto.op_type
        known = schema is not None and (name in self.rules or name in CONTROL)
        if known or (domain, proto.op_type) in self.functions:
            return
        if schema is None or not (schema.has_function or schema.has_context_dependent_function):
            self.problem(proto, opset, origin, Unsupported("this operator has no counterpart"))

    def trace(self, proto: Any) -> None:
        """Notes which of the model's inputs each result depends on."""
        sources: FrozenSet[Value] = frozenset()
        for name in proto.input:
            value = self.env.get(name)
            if value is not None and value.data is None:
                sources |= {value} if value.is_input else value.sources
        for name in proto.output:
            value = self.env.get(name)
            if value is not None and value.data is None and not value.is_input and not value.sources:
                value.sources = sources

    def lost(self, proto: Any) -> None:
        for name in proto.output:
            self.env.pop(name, None)

    def problem(self, proto: Any, opset: int, origin: int, e: Unsupported) -> None:
        top, _ = self.nodes[origin]
        op = f"{proto.domain}.{proto.op_type}" if proto.domain else proto.op_type
        needs: Tuple[str, ...] = ()
        if isinstance(e, NeedsConstant):
            needs = bindable(e.value)
            if needs:
                e = Unsupported(f"{e} ({options_of(needs)} gives it)")
        near = "" if needs else nearest(proto.op_type)
        self.problems.append(Problem(top, op, opset, str(e), near, needs))

    def lower(self, proto: Any, domain: str, opset: int, opsets: Dict[str, int], origin: int, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise Unsupported("functions or branches are nested too deeply")
        local = self.functions.get((domain, proto.op_type)) or contrib_function(proto)
        if local is not None:
            self.inline(local, proto, origin, depth)
            return
        n = Node(self, proto, opset, origin, self.env)
        named = [o for o in n.outputs if o]
        if len(set(named)) != len(named) or (depth == 0 and any(o in self.env for o in named)):
            raise Unsupported("a result has the name of another")
        if n.schema is None:
            raise Unsupported(f"operators of the domain '{domain}' are unknown" if domain else "this operator is unknown")
        if not domain and opset < OLDEST and changed_since(n):
            raise Unsupported(f"its meaning changed before opset {OLDEST}: onnx.version_converter makes the model newer")
        if proto.op_type in CONTROL and not domain:
            CONTROL[proto.op_type](Bodies(self, n, opsets, depth))
            return
        if can_fold(n) and fold(n):
            self.n_folded += 1
            self.fates.setdefault(origin, "folded")
            return
        rule = self.rules.get(f"{domain}.{proto.op_type}" if domain else proto.op_type)
        body = None
        if rule is None:
            body = schema_function(n)
            if body is None:
                raise Unsupported("this operator has no counterpart")
        infer(n)
        if rule is not None and self.attempt(rule, n):
            return
        body = body or schema_function(n)
        if body is None:
            raise Unsupported("this form of the operator has no counterpart")
        self.inline(body, proto, origin, depth)
        self.n_inlined += 1

    def attempt(self, rule: Rule, n: Node) -> bool:
        """Applies a rule. One that gives up leaves nothing behind; False: the function body is worth a try."""
        before = len(self.statements)
        for name, value in n.types.items():
            self.env[name] = value
        try:
            n.attrs.seen.clear()
            rule(n)
            unread = [a.name for a in n.proto.attribute if a.name not in n.attrs.seen | WITHOUT_EFFECT.get(n.op, set())]
            if unread:
                raise Unsupported(f"its attribute '{unread[0]}' has no counterpart")
            return True
        except Unsupported:
            del self.statements[before:]
            if schema_function(n) is None:
                raise
            return False

    # ---- nodes made of nodes ----

    def inline(self, function: Any, proto: Any, origin: int, depth: int) -> None:
        """A function's nodes in place of a call: its own names become names of this graph."""
        prefix = f"{proto.output[0] if proto.output else proto.op_type}/"
        rename: Dict[str, str] = dict(zip(function.input, proto.input))
        rename.update({name: "" for name in function.input[len(proto.input):]})
        rename.update({theirs: ours for theirs, ours in zip(function.output, proto.output) if ours})
        given = {a.name: a for a in proto.attribute}
        schema = self.schema(proto, self.opsets.get(proto.domain, 1))
        defaults = {} if schema is None else {k: a.default_value for k, a in schema.attributes.items() if a.default_value.type}
        defaults.update({a.name: a for a in function.attribute_proto})
        opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in function.opset_import}
        for inner in function.node:
            self.node(renamed(inner, rename, prefix, {**defaults, **given}), {**self.opsets, **opsets}, origin, depth + 1)
        for theirs, ours in zip(function.output, proto.output):
            if ours and theirs in function.input and rename.get(theirs) in self.env:
                self.env[ours] = self.env[rename[theirs]]


def changed_since(n: Node) -> bool:
    newer = n.lowering.schema(n.proto, OLDEST)
    return newer is None or newer.since_version != n.schema.since_version


def may_bind(value: Value) -> bool:
    """Shapes, axes and choices may become constants; data may not."""
    few = value.is_static and sum(value.dims()) <= 16
    return value.dtype not in FLOATS or few


def bindable(value: Value) -> Tuple[str, ...]:
    """The model's inputs that decide a value, if --bind may make all of them constants."""
    found = {value} if value.is_input else value.sources
    return tuple(sorted(v.name for v in found)) if all(may_bind(v) for v in found) else ()


def options_of(names: Sequence[str]) -> str:
    return " ".join(f"--bind {name}=VALUE" for name in names)


def ordered(nodes: Sequence[Any], known: Dict[str, Value]) -> List[Any]:
    """Nodes so that each comes after what it needs; most models are in that order already."""
    done, left, result = set(known), list(nodes), []
    produced = {name for node in nodes for name in node.output if name}
    while left:
        waiting = []
        for node in left:
            if all(name in done or name not in produced for name in node.input if name):
                result.append(node)
                done.update(node.output)
            else:
                waiting.append(node)
        if len(waiting) == len(left):
            raise Unsupported(f"the nodes form a cycle at '{left[0].name or left[0].op_type}'")
        left = waiting
    return result


def schema_function(n: Node) -> Any:
    """The function body that the operator's schema gives for these types, or None."""
    onnx = need_onnx()
    schema = n.schema
    function = onnx.FunctionProto()
    try:
        if schema.has_function:
            version = max((v for v in schema.function_opset_versions if v <= n.opset), default=None)
            if version is None:
                return None
            function.ParseFromString(schema.get_function_with_opset_version(version))
            return function
        if schema.has_context_dependent_function:
            version = max((v for v in schema.context_dependent_function_opset_versions if v <= n.opset), default=None)
            if version is None:
                return None
            from .infer import type_proto

            types = [type_proto(v).SerializeToString() if v is not None else b"" for v in n.inputs]
            text = schema.get_context_dependent_function_with_opset_version(version, n.proto.SerializeToString(), types)
            function.ParseFromString(text)
            return function if function.node else None
    except (RuntimeError, ValueError, TypeError):
        return None
    return None


def renamed(node: Any, rename: Dict[str, str], prefix: str, attrs: Dict[str, Any]) -> Any:
    """A copy of a function's node with the caller's names and attributes, subgraphs included."""
    copy = need_onnx().NodeProto()
    copy.CopyFrom(node)
    del copy.input[:], copy.output[:]
    copy.input.extend(rename.get(name, prefix + name) if name else "" for name in node.input)
    for name in node.output:
        if name and name not in rename:
            rename[name] = prefix + name
        copy.output.append(rename[name] if name else "")
    del copy.attribute[:]
    for a in node.attribute:
        if a.ref_attr_name:
            if a.ref_attr_name in attrs:
                copy.attribute.add().CopyFrom(attrs[a.ref_attr_name])
                copy.attribute[-1].name = a.name
            continue
        copy.attribute.add().CopyFrom(a)
        if a.HasField("g"):
            inner = copy.attribute[-1].g
            own = dict(rename)
            for formal in [*inner.input, *inner.initializer]:
                own[formal.name] = formal.name = prefix + formal.name
            nodes = [renamed(x, own, prefix, attrs) for x in a.g.node]
            del inner.node[:]
            inner.node.extend(nodes)
            for o in inner.output:
                o.name = own.get(o.name, prefix + o.name)
    return copy
