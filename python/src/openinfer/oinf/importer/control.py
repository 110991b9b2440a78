"""If, Loop and Scan: a branch whose condition is known is taken, loops whose number of turns is known are unrolled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional

from ..convert.weights import need_numpy
from .names import split_scope
from .values import NeedsConstant, Statement, Unsupported, Value

if TYPE_CHECKING:
    from .lowering import Lowering, Node

MOST = 1024  # iterations that are unrolled


class Bodies:
    """What a control operator does with the graphs in its attributes."""

    def __init__(self, low: "Lowering", n: "Node", opsets: Dict[str, int], depth: int):
        self.low, self.n, self.opsets, self.depth = low, n, opsets, depth

    def emit(self, op: str, inputs: List[Value], attrs: Dict[str, Any], like: Value, shape: Any, dtype: str = "") -> Value:
        scope, last = split_scope(self.n.outputs[0] or self.n.op)
        sources = frozenset().union(*(v.sources for v in inputs))
        out = Value(last, dtype or like.dtype, tuple(shape), scope=scope, sources=sources)
        self.low.add(Statement(op, inputs, attrs, [out], self.n.origin, scope))
        return out

    def call(self, graph: Any, args: List[Value]) -> List[Value]:
        """The body's nodes with its inputs bound to `args`."""
        from .lowering import ordered
        from .reading import constant_of

        low, outer, before = self.low, dict(self.low.env), len(self.low.problems)
        for info, value in zip(graph.input, args):
            low.env[info.name] = value
        for tensor in graph.initializer:
            low.env[tensor.name] = constant_of(tensor, low.path)
        for inner in ordered(graph.node, low.env):
            low.node(inner, self.opsets, self.n.origin, self.depth + 1)
            if len(low.problems) > before:
                raise Lost
        if any(o.name not in low.env for o in graph.output):
            raise Unsupported("its body gives a result that comes from no node")
        results = [low.env[o.name] for o in graph.output]
        low.env = outer
        return results

    def bind(self, values: List[Value]) -> None:
        for name, value in zip(self.n.outputs, values):
            if name:
                self.low.env[name] = value

    def stack(self, values: List[Value], shape: Any, axis: int = 0, dtype: str = "f32") -> Value:
        """The results of all iterations along a new axis."""
        from .fold import numpy_dtype

        np = need_numpy()
        if not values:
            empty = np.zeros((0, *shape), numpy_dtype(dtype))
            return Value(self.n.outputs[-1], dtype, empty.shape, empty)
        dims = values[0].dims()
        at = axis % (len(dims) + 1)
        if all(v.data is not None for v in values):
            data = np.stack([v.data for v in values], at)
            return Value(self.n.outputs[-1], values[0].dtype, data.shape, data)
        one = [*dims[:at], 1, *dims[at:]]
        rows = [self.emit("reshape", [v], {}, v, one) for v in values]
        return rows[0] if len(rows) == 1 else self.emit("concat", rows, {"axis": at}, rows[0], [*dims[:at], len(rows), *dims[at:]])


class Lost(Unsupported):
    """A node of a body has a problem, which is reported already."""

    def __init__(self) -> None:
        super().__init__("")


def branch(b: Bodies) -> None:
    """If: a constant condition takes one body; otherwise both are computed and one is chosen."""
    n, condition = b.n, b.n.x(0)
    if condition.data is not None:
        b.bind(b.call(n.attrs["then_branch" if bool(condition.data.reshape(-1)[0]) else "else_branch"], []))
        return
    try:
        both = [b.call(n.attrs[k], []) for k in ("then_branch", "else_branch")]
    except Lost:  # a branch may be meant for inputs of other shapes
        from .lowering import bindable, options_of

        needs = bindable(condition)
        if needs:
            b.low.problems[-1].reason += f" (in a branch; {options_of(needs)} takes one of them)"
        raise
    if condition.rank:
        condition = b.emit("reshape", [condition], {}, condition, ())
    results = []
    for x, y in zip(*both):
        if x.dtype != y.dtype or x.shape != y.shape or not x.is_static:
            raise NeedsConstant(n.x(0))
        results.append(b.emit("where", [condition, x, y], {}, x, x.dims()))
    b.bind(results)


def loop(b: Bodies) -> None:
    np = need_numpy()
    n, graph = b.n, b.n.attrs["body"]
    trips = int(n.constant(0).reshape(-1)[0]) if n.has(0) else MOST + 1
    condition: Optional[Value] = n.x(1) if n.has(1) else None
    states = [n.x(i) for i in range(2, len(n.inputs))]
    rows: List[List[Value]] = [[] for _ in graph.output[1 + len(states) :]]
    done = 0
    while done < trips:
        if condition is not None and condition.data is None:
            raise NeedsConstant(condition)
        if condition is not None and not bool(condition.data.reshape(-1)[0]):
            break
        if done == MOST:
            raise Unsupported(f"it takes more than {MOST} turns")
        go = condition if condition is not None else n.const(np.array(True), "bool")
        results = b.call(graph, [n.const(np.array(done, np.int64), "i64", "i"), go, *states])
        condition, states = results[0], results[1 : 1 + len(states)]
        for kept, value in zip(rows, results[1 + len(states) :]):
            kept.append(value)
        done += 1
    b.bind(states + [b.stack(kept, ()) for kept in rows])


def scan(b: Bodies) -> None:
    n, graph = b.n, b.n.attrs["body"]
    m = n.attrs["num_scan_inputs"]
    if n.opset < 9:
        batched_scan(b, m)
        return
    states, sequences = [n.x(i) for i in range(len(n.inputs) - m)], [n.x(i) for i in range(len(n.inputs) - m, len(n.inputs))]
    k = len(graph.output) - len(states)
    axes = [a % v.rank for a, v in zip(n.attrs.get("scan_input_axes") or [0] * m, sequences)]
    back = n.attrs.get("scan_input_directions") or [0] * m
    length = sequences[0].dims()[axes[0]]
    if length > MOST:
        raise Unsupported(f"it takes more than {MOST} turns")
    rows: List[List[Value]] = [[] for _ in range(k)]
    for t in range(length):
        parts = [part(b, v, a, length - 1 - t if r else t) for v, a, r in zip(sequences, axes, back)]
        results = b.call(graph, [*states, *parts])
        states = results[: len(states)]
        for kept, value in zip(rows, results[len(states) :]):
            kept.append(value)
    out_axes = n.attrs.get("scan_output_axes") or [0] * k
    reverse = n.attrs.get("scan_output_directions") or [0] * k
    b.bind(states + [b.stack(kept[::-1] if r else kept, (), a) for kept, a, r in zip(rows, out_axes, reverse)])


def batched_scan(b: Bodies, m: int) -> None:
    """The form of opset 8: a first input of lengths, and a batch axis in front of everything."""
    n, graph = b.n, b.n.attrs["body"]
    if n.has(0) or any(n.attrs.get("directions") or []):
        raise Unsupported("sequences of different lengths, or from their end")
    first = [n.x(i) for i in range(1, len(n.inputs) - m)]
    sequences = [n.x(i) for i in range(len(n.inputs) - m, len(n.inputs))]
    batch, length = sequences[0].dims()[:2]
    if batch * length > MOST:
        raise Unsupported(f"it takes more than {MOST} turns")
    results: List[List[Value]] = [[] for _ in graph.output]
    for i in range(batch):
        states = [part(b, v, 0, i) for v in first]
        rows: List[List[Value]] = [[] for _ in graph.output[len(states) :]]
        for t in range(length):
            made = b.call(graph, [*states, *(part(b, part(b, v, 0, i), 0, t) for v in sequences)])
            states = made[: len(states)]
            for kept, value in zip(rows, made[len(states) :]):
                kept.append(value)
        for kept, value in zip(results, states + [b.stack(kept, ()) for kept in rows]):
            kept.append(value)
    b.bind([b.stack(kept, ()) for kept in results])


def part(b: Bodies, value: Value, axis: int, t: int) -> Value:
    """value[..., t, ...] along an axis, the axis dropped."""
    if value.data is not None:
        data = value.data.take(t, axis)
        return Value(value.name, value.dtype, data.shape, data)
    dims = value.dims()
    one = [*dims[:axis], 1, *dims[axis + 1 :]]
    row = b.emit("slice", [value], {"starts": [t], "ends": [t + 1], "axes": [axis]}, value, one)
    return b.emit("reshape", [row], {}, value, [*dims[:axis], *dims[axis + 1 :]])


CONTROL = {"If": branch, "Loop": loop, "Scan": scan}
