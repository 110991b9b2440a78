"""What exporters write twice or around corners: equal statements, chains of moves, operands in odd order."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .patterns import COMMUTATIVE, Finder, Match, Rule, new, number
from .values import FLOATS, Statement, Value
from .views import MOVES, Views, normal, row_major

SMALL = 4096  # bytes of a constant without a name that is compared with others


def ordered_operands(statements: List[Statement]) -> List[Statement]:
    """Constants come second where the order has no effect."""
    for s in statements:
        if s.op in COMMUTATIVE and len(s.inputs) == 2 and s.inputs[0].data is not None and s.inputs[1].data is None:
            s.inputs.reverse()
    return statements


def frozen(value: Any) -> Any:
    return tuple(frozen(v) for v in value) if isinstance(value, (list, tuple)) else (type(value).__name__, value)


def attributes_of(s: Statement) -> Tuple[Any, ...]:
    return tuple(sorted((k, frozen(v)) for k, v in s.attrs.items()))


class Constants:
    """One value for all constants that no name tells apart and that have the same numbers."""

    def __init__(self) -> None:
        self.known: Dict[Any, Value] = {}
        self.same: Dict[int, Value] = {}
        self.kept: List[Value] = []  # ids stay theirs while the values live

    def __call__(self, value: Value) -> Value:
        data = value.data
        if data is None or (value.key and data.size != 1) or data.size * data.dtype.itemsize > SMALL:
            return value
        if id(value) not in self.same:
            key = (value.dtype, value.shape, data.tobytes())
            self.same[id(value)] = self.known.setdefault(key, value)
            self.kept.append(value)
        return self.same[id(value)]


def once(statements: List[Statement], outputs: Sequence[Value]) -> List[Statement]:
    """Equal statements of equal operands become the first of them."""
    one, results = Constants(), {id(v) for v in outputs}
    first: Dict[Any, Statement] = {}
    instead: Dict[int, Value] = {}
    kept: List[Statement] = []
    for s in statements:
        s.inputs = [one(instead.get(id(v), v)) for v in s.inputs]
        types = tuple((v.dtype, v.shape) for v in s.outputs)
        key = (s.op, tuple(id(v) for v in s.inputs), attributes_of(s), types)
        earlier = first.setdefault(key, s)
        if earlier is s or any(id(v) in results for v in s.outputs):
            kept.append(s)
            continue
        earlier.origins += [s.origin, *s.origins]
        instead.update((id(a), b) for a, b in zip(s.outputs, earlier.outputs))
    return kept


def moves(statements: List[Statement], outputs: Sequence[Value]) -> List[Statement]:
    """Chains of reshape and transpose become one statement, or none where they lead back."""
    find = Finder(statements, outputs)
    views, results = Views(find), {id(v) for v in outputs}
    instead: Dict[int, Value] = {}
    kept: List[Statement] = []
    for s in statements:
        s.inputs = [instead.get(id(v), v) for v in s.inputs]
        if s.op not in MOVES or not (s.outputs[0].is_static and s.inputs[0].is_static):
            kept.append(s)
            continue
        out = s.outputs[0]
        source, axes = views.of(out)
        if source is out or source.dtype != out.dtype:
            kept.append(s)
        elif normal(axes) == normal(row_major(source.dims())):
            source = instead.get(id(source), source)
            if source.shape == out.shape and id(out) not in results:
                instead[id(out)] = source
                continue
            kept.append(moved(s, "reshape", source, {}, find))
        elif permutation(axes, source.dims()) is not None and s.op != "transpose":
            kept.append(moved(s, "transpose", instead.get(id(source), source), {"perm": permutation(axes, source.dims())}, find))
        else:
            kept.append(s)
    return kept


def moved(s: Statement, op: str, source: Value, attrs: Dict[str, Any], find: Finder) -> Statement:
    """`op` of the chain's first tensor; the nodes in between are told by it, too."""
    result = Statement(op, [source], attrs, s.outputs, s.origin, s.scope, list(s.origins))
    at = find.of(s.inputs[0], *MOVES)
    while at is not None and s.inputs[0] is not source:
        result.origins += [at.origin, *at.origins]
        at = find.of(at.inputs[0], *MOVES) if at.inputs[0] is not source else None
    return result


def permutation(axes: Any, dims: List[int]) -> Any:
    """The perm that shows a tensor of these dims with these axes, or None."""
    own = row_major(dims)
    if len(axes) != len(own) or len(set(own)) != len(own):
        return None
    where = {a: i for i, a in enumerate(own)}
    return [where[a] for a in axes] if all(a in where for a in axes) and len(set(axes)) == len(axes) else None


# ---- statements that do nothing, or more than is asked for ----


def whole(s: Statement, find: Finder) -> Optional[Match]:
    """A part that is all of x, and what has one element to look at, are reshapes; those go away with the other moves."""
    x, out = s.inputs[0], s.outputs[0]
    if not (x.is_static and out.is_static) or x.dtype != out.dtype:
        return None
    if s.op == "slice":
        nothing = x.shape == out.shape and all(n == 1 for n in s.attrs.get("steps", ()))
    else:
        axes = s.attrs.get("axes")
        nothing = bool(axes) and all(x.dims()[a] == 1 for a in axes or ())
    return Match(s, [new("reshape", [x], {}, out, s)]) if nothing else None


def unit(s: Statement, find: Finder) -> Optional[Match]:
    """x * 1 and x / 1"""
    x, c = s.inputs
    if is_one(c) and x.is_static and (x.shape, x.dtype) == (s.outputs[0].shape, s.outputs[0].dtype):
        return Match(s, [new("reshape", [x], {}, s.outputs[0], s)])
    return None


def turned(s: Statement, find: Finder) -> Optional[Match]:
    """A transpose of the last two axes, for which those before them were taken together."""
    turn = find.by(s.inputs[0], "transpose")
    flat = find.by(turn.inputs[0], "reshape") if turn else None
    x = flat.inputs[0] if flat else None
    if not turn or not flat or x is None or x.rank < 4 or not (x.is_static and s.outputs[0].is_static):
        return None
    *lead, rows, columns = x.dims()
    together = flat.outputs[0].dims() == [math.prod(lead), rows, columns] and list(turn.attrs.get("perm") or []) == [0, 2, 1]
    if not together or s.outputs[0].dims() != [*lead, columns, rows]:
        return None
    perm = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    return Match(s, [new("transpose", [x], {"perm": perm}, s.outputs[0], s, [turn, flat])], [turn, flat])


def is_one(c: Value) -> bool:
    return c.data is not None and c.data.size > 0 and c.dtype in FLOATS and bool((c.data == 1).all())


def power(s: Statement, find: Finder) -> Optional[Match]:
    """x ** 2 is a product, which takes no time beside pow."""
    x, c = s.inputs
    if x.dtype not in FLOATS or number(c) != 2.0 or x.shape != s.outputs[0].shape:
        return None
    return Match(s, [new("square", [x], {}, s.outputs[0], s)])


# ---- operands that a reshape or a gather takes apart ----


def linear(s: Statement, find: Finder) -> Optional[Match]:
    """reshape(gemm(reshape(x), w, b)) is matmul(x, w) + b, which keeps the axes of x."""
    product = find.by(s.inputs[0], "gemm")
    if product is None or any(k not in ("trans_b",) for k in product.attrs) or not s.outputs[0].is_static:
        return None
    views, out = Views(find), s.outputs[0]
    source, axes = views.of(product.inputs[0])
    flat = normal(axes) == normal(row_major(source.dims()))
    if not flat or source is product.inputs[0] or out.dims()[:-1] != source.dims()[:-1] or out.dims()[-1] != product.outputs[0].dims()[-1]:
        return None
    if source.dims()[-1] != product.inputs[0].dims()[-1] or any(b.rank > 1 for b in product.inputs[2:]):
        return None
    attrs = {"transpose_b": True} if product.attrs.get("trans_b") else {}
    bias = product.inputs[2:]
    y = Value(product.outputs[0].name, out.dtype, out.shape, scope=product.scope) if bias else out
    made = [new("matmul", [source, product.inputs[1]], attrs, y, product, [s])]
    made += [new("add", [y, bias[0]], {}, out, product, [s])] if bias else []
    return Match(s, made, [product])


def pick(s: Statement, find: Finder) -> Optional[Match]:
    """gather(x, i) of one constant i, through reshapes and transposes, is a slice of what they begin with."""
    from .attention import as_shape

    data, at = s.inputs
    if at.data is None or at.rank != 0 or not data.is_static:
        return None
    axis = s.attrs.get("axis", 0) % data.rank
    source, axes = Views(find).of(data)
    if source is data:
        return None
    n, stride = axes[axis]
    rest = normal(axes[:axis] + axes[axis + 1 :])
    for j, (size, step) in enumerate(row_major(source.dims())):
        width = size // n if size % n == 0 else 0
        if not width or stride != step * width or n == 1:
            continue
        dims = source.dims()
        kept = [(d if i != j else width, st) for i, (d, st) in enumerate(row_major(dims))]
        if normal(kept) != rest:
            return None
        start = int(at.data) % n * width
        part = Value(s.outputs[0].name, data.dtype, tuple(d for d, _ in kept), scope=s.outputs[0].scope)
        made = [new("slice", [source], {"starts": [start], "ends": [start + width], "axes": [j]}, part, s)]
        made.append(new("reshape", [part], {}, s.outputs[0], s))
        return Match(s, made)
    return None


FIRST: Dict[str, List[Rule]] = {
    "slice": [whole], "mean_axis": [whole], "sum_axis": [whole], "max_axis": [whole], "mul": [unit], "div": [unit], "pow": [power],
    "reshape": [turned],
}  # fmt: skip
RULES: List[Dict[str, List[Rule]]] = [{"gather": [pick], "reshape": [linear]}]
