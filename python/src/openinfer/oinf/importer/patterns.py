"""Chains of statements that exporters write for one op become that op.

A rule looks at one statement, the core of its pattern, and at what lies around it. What it finds is a `Match`:
new statements in the place of the last one that was found. Statements whose results are no longer read are removed
afterwards, so a value inside a pattern that something else reads keeps its statements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from .stripped import forget
from .values import FLOATS, Statement, Value

COMMUTATIVE = ("add", "mul", "min", "max", "and", "or", "xor")


@dataclass
class Match:
    at: Statement  # the last statement of what was found: the new ones take its place
    new: List[Statement]
    absorbed: List[Statement] = field(default_factory=list)  # what the new ones stand for


class Finder:
    """Who writes and who reads each value."""

    def __init__(self, statements: Sequence[Statement], outputs: Sequence[Value]):
        self.made: Dict[int, Statement] = {id(v): s for s in statements for v in s.outputs}
        self.users: Dict[int, List[Statement]] = {}
        self.results = {id(v) for v in outputs}
        for s in statements:
            for v in s.inputs:
                self.users.setdefault(id(v), []).append(s)

    def reads(self, value: Value) -> int:
        return len(self.users.get(id(value), ())) + (id(value) in self.results)

    def of(self, value: Value, *ops: str) -> Optional[Statement]:
        """The statement that makes a value, if it is one of `ops`."""
        s = self.made.get(id(value))
        return s if s is not None and s.op in ops else None

    def by(self, value: Value, *ops: str) -> Optional[Statement]:
        """The same for a value that is read once."""
        return self.of(value, *ops) if self.reads(value) == 1 else None

    def next(self, value: Value, *ops: str) -> Optional[Statement]:
        """The one statement that reads a value, if it is one of `ops`."""
        users = self.users.get(id(value), [])
        return users[0] if len(users) == 1 and id(value) not in self.results and users[0].op in ops else None

    def factors(self, s: Statement, taken: List[Statement], depth: int = 3) -> List[Value]:
        """What a tree of products multiplies."""
        found: List[Value] = []
        for v in s.inputs:
            inner = self.by(v, "mul") if depth else None
            if inner is None:
                found.append(v)
            else:
                taken.append(inner)
                found += self.factors(inner, taken, depth - 1)
        return found


Rule = Callable[[Statement, Finder], Optional[Match]]


def number(value: Value) -> Any:
    """The one element of a constant, or None."""
    if value.data is None or value.data.size != 1 or value.dtype not in FLOATS:
        return None
    return float(value.data.reshape(-1)[0])


def close(value: Value, wanted: float) -> bool:
    found = number(value)
    return found is not None and math.isclose(found, wanted, rel_tol=1e-3 if value.dtype in ("f16", "bf16") else 1e-5)


def exact(value: float) -> float:
    """An attribute's number, as short as an f32 can be told by."""
    from .rules import short

    return short(value)


def same_type(x: Value, y: Value) -> bool:
    return x.is_static and x.shape == y.shape and x.dtype == y.dtype


def new(op: str, inputs: Sequence[Value], attrs: Dict[str, Any], out: Value, s: Statement, absorbed: Sequence[Statement] = ()) -> Statement:
    """A statement that stands for `s` and for what it absorbs."""
    made = Statement(op, list(inputs), attrs, [out], s.origin, s.scope)
    made.origins = list(dict.fromkeys(o for g in (s, *absorbed) for o in (g.origin, *g.origins)))
    return made


def one(s: Statement, op: str, inputs: Sequence[Value], attrs: Dict[str, Any], absorbed: Sequence[Statement]) -> Match:
    return Match(s, [new(op, inputs, attrs, s.outputs[0], s, absorbed)], list(absorbed))


def sides(s: Statement) -> List[Tuple[Value, Value]]:
    """Both orders of the operands of a commutative op."""
    x, y = s.inputs
    return [(x, y), (y, x)]


# ---- activations ----


def silu(s: Statement, find: Finder) -> Optional[Match]:
    """x * sigmoid(x)"""
    for x, y in sides(s):
        gate = find.by(y, "sigmoid")
        if gate is not None and gate.inputs[0] is x and same_type(x, s.outputs[0]):
            return one(s, "silu", [x], {}, [gate])
    return None


def gelu(s: Statement, find: Finder) -> Optional[Match]:
    """0.5 * x * (1 + erf(x / sqrt(2))), or with tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)), in any order"""
    taken: List[Statement] = []
    factors = find.factors(s, taken)
    rest = [v for v in factors if not close(v, 0.5)]
    if len(factors) != 3 or len(rest) != 2:
        return None
    for x, bell in (rest, rest[::-1]):
        plus = find.by(bell, "add")
        if plus is None or not same_type(x, s.outputs[0]):
            continue
        for y, unit in sides(plus):
            if not close(unit, 1.0):
                continue
            absorbed = of_erf(y, x, find)
            if absorbed is not None:
                return one(s, "gelu", [x], {}, [*taken, plus, *absorbed])
            absorbed = of_tanh(y, x, find)
            if absorbed is not None:
                return one(s, "gelu", [x], {"approximate": "tanh"}, [*taken, plus, *absorbed])
    return None


def of_erf(y: Value, x: Value, find: Finder) -> Optional[List[Statement]]:
    erf = find.by(y, "erf")
    scaled = erf and find.by(erf.inputs[0], "div", "mul")
    if not erf or not scaled:
        return None
    for a, b in sides(scaled)[: 1 if scaled.op == "div" else 2]:
        if a is x and close(b, math.sqrt(2) if scaled.op == "div" else math.sqrt(0.5)):
            return [erf, scaled]
    return None


def of_tanh(y: Value, x: Value, find: Finder) -> Optional[List[Statement]]:
    tanh = find.by(y, "tanh")
    outer = tanh and find.by(tanh.inputs[0], "mul")
    if not tanh or not outer:
        return None
    taken = [tanh, outer]
    factors = [v for v in find.factors(outer, taken) if not close(v, math.sqrt(2 / math.pi))]
    inside = [v for v in factors if v is not x]
    plus = find.by(inside[0], "add") if len(inside) == 1 else None
    if plus is None or len(factors) > 2:
        return None
    taken.append(plus)
    for a, b in sides(plus):  # x + c x^3, or x (1 + c x^2)
        started = a is x if len(factors) == 1 else close(a, 1.0)
        if started and is_cube(b, x, 2 if len(factors) == 2 else 3, find, taken):
            return taken
    return None


def is_cube(v: Value, x: Value, power: int, find: Finder, taken: List[Statement]) -> bool:
    """v = 0.044715 * x ** power"""
    product = find.by(v, "mul")
    if product is None:
        return False
    taken.append(product)
    factors = find.factors(product, taken)
    rest = [f for f in factors if not close(f, 0.044715)]
    if len(rest) != len(factors) - 1:
        return False
    found = 0
    for f in rest:
        raised = find.by(f, "pow", "square")
        if f is x:
            found += 1
        elif raised is not None and raised.inputs[0] is x:
            taken.append(raised)
            exponent = 2 if raised.op == "square" else number(raised.inputs[1])
            found += int(exponent) if exponent in (2, 3) else 9
        else:
            return False
    return found == power


def relu6_of_plus3(v: Value, find: Finder) -> Optional[Tuple[Value, List[Statement]]]:
    """x where v = clamp(x + 3, 0, 6)"""
    limit = find.by(v, "clamp")
    plus = limit and find.by(limit.inputs[0], "add")
    if not limit or not plus or limit.attrs.get("min") != 0 or limit.attrs.get("max") != 6:
        return None
    for x, three in sides(plus):
        if close(three, 3.0):
            return x, [limit, plus]
    return None


def sixth(s: Statement) -> Optional[Value]:
    """x where s is x / 6"""
    if s.op == "div":
        return s.inputs[0] if close(s.inputs[1], 6.0) else None
    return next((x for x, c in sides(s) if close(c, 1 / 6)), None)


def hard(s: Statement, find: Finder) -> Optional[Match]:
    """hard_swish and hard_sigmoid, by what exporters write for them"""
    inner = sixth(s)
    if inner is not None:
        product = find.by(inner, "mul")
        for x, y in sides(product) if product else []:
            limited = relu6_of_plus3(y, find)
            if product and limited and limited[0] is x and same_type(x, s.outputs[0]):
                return one(s, "hard_swish", [x], {}, [product, *limited[1]])
        limited = relu6_of_plus3(inner, find)
        if limited and same_type(limited[0], s.outputs[0]):
            return one(s, "hard_sigmoid", [limited[0]], {"alpha": exact(1 / 6)}, limited[1])
    for x, y in sides(s) if s.op == "mul" else []:
        gate = find.by(y, "hard_sigmoid")
        if gate and gate.inputs[0] is x and same_type(x, s.outputs[0]):
            alpha, beta = gate.attrs.get("alpha", 0.2), gate.attrs.get("beta", 0.5)
            if math.isclose(alpha, 1 / 6, rel_tol=1e-5) and beta == 0.5:
                return one(s, "hard_swish", [x], {}, [gate])
    return None


def softmax(s: Statement, find: Finder) -> Optional[Match]:
    """exp(x - max(x)) / sum(exp(x - max(x)))"""
    e = find.of(s.inputs[0], "exp")
    total = find.by(s.inputs[1], "sum_axis")
    if e is None or total is None or total.inputs[0] is not e.outputs[0] or find.reads(e.outputs[0]) != 2:
        return None
    axes = total.attrs.get("axes", [])
    below = find.by(e.inputs[0], "sub")
    top = below and find.by(below.inputs[1], "max_axis")
    if not below or not top or top.inputs[0] is not below.inputs[0] or len(axes) != 1 or not same_type(below.inputs[0], s.outputs[0]):
        return None
    rank = below.inputs[0].rank
    if not (top.attrs.get("keepdims") and total.attrs.get("keepdims")) or [a % rank for a in top.attrs["axes"]] != [axes[0] % rank]:
        return None
    return one(s, "softmax", [below.inputs[0]], {} if axes[0] % rank == rank - 1 else {"axis": axes[0]}, [e, total, below, top])


# ---- norms ----


def norm(s: Statement, find: Finder) -> Optional[Match]:
    """layernorm and rmsnorm: x or x - mean, divided by a root of a mean of squares, then scale and bias."""
    for v, root, absorbed in roots(s, find):
        spread = mean_square(root, find, absorbed)
        if spread is None or spread[0] is not v or not same_type(v, s.outputs[0]):
            continue
        _, axes, eps = spread
        rank = v.rank
        first = rank - len(axes)
        if sorted(a % rank for a in axes) != list(range(first, rank)):
            continue
        x, op = v, "rmsnorm"
        less = find.of(v, "sub")
        if less is not None and all(u in (s, *absorbed) for u in find.users[id(v)]) and id(v) not in find.results:
            mean = find.by(less.inputs[1], "mean_axis")
            if mean and mean.inputs[0] is less.inputs[0] and mean.attrs.get("keepdims") and same_axes(mean, axes, rank):
                x, op = less.inputs[0], "layernorm"
                absorbed += [less, mean]
        if not same_type(x, s.outputs[0]):
            continue
        attrs: Dict[str, Any] = {} if first == rank - 1 else {"axis": first}
        attrs.update({} if exact(eps) == 1e-5 else {"eps": exact(eps)})
        return scaled(s, op, x, x.dims()[first:], attrs, absorbed, find)
    return None


def same_axes(s: Statement, axes: Sequence[int], rank: int) -> bool:
    return sorted(a % rank for a in s.attrs.get("axes", [])) == sorted(a % rank for a in axes)


def roots(s: Statement, find: Finder) -> List[Tuple[Value, Value, List[Statement]]]:
    """(v, r, statements) where s is v / sqrt(r)"""
    if s.op == "div":
        root = find.by(s.inputs[1], "sqrt")
        return [(s.inputs[0], root.inputs[0], [root])] if root else []
    found = []
    for v, y in sides(s):
        inverse = find.by(y, "rsqrt", "recip", "div")
        if inverse is None:
            continue
        if inverse.op == "rsqrt":
            found.append((v, inverse.inputs[0], [inverse]))
            continue
        if inverse.op == "div" and not close(inverse.inputs[0], 1.0):
            continue
        root = find.by(inverse.inputs[-1], "sqrt")
        if root:
            found.append((v, root.inputs[0], [inverse, root]))
    return found


def mean_square(v: Value, find: Finder, absorbed: List[Statement]) -> Optional[Tuple[Value, List[int], float]]:
    """x, the axes and eps where v = mean(x * x) + eps"""
    plus = find.by(v, "add")
    for m, c in sides(plus) if plus else []:
        eps, mean = number(c), find.by(m, "mean_axis")
        if plus is None or eps is None or mean is None or not mean.attrs.get("keepdims"):
            continue
        square = find.by(mean.inputs[0], "square", "pow", "mul")
        if square is None or (square.op == "pow" and not close(square.inputs[1], 2.0)):
            continue
        if square.op == "mul" and square.inputs[0] is not square.inputs[1]:
            continue
        absorbed += [plus, mean, square]
        return square.inputs[0], list(mean.attrs["axes"]), eps
    return None


def scaled(s: Statement, op: str, x: Value, dims: List[int], attrs: Dict[str, Any], absorbed: List[Statement], find: Finder) -> Match:
    """The norm whose core is s, with the scale and the bias that follow."""
    last, scale, bias = s, None, None
    product = find.next(s.outputs[0], "mul")
    if product is not None and same_type(product.outputs[0], s.outputs[0]):
        scale = next((fit(c, dims) for v, c in sides(product) if v is s.outputs[0]), None)
    if product is not None and scale is not None:
        absorbed, last = [*absorbed, s], product
        plus = find.next(product.outputs[0], "add") if op == "layernorm" else None
        if plus is not None and same_type(plus.outputs[0], s.outputs[0]):
            bias = next((fit(c, dims) for v, c in sides(plus) if v is product.outputs[0]), None)
        if plus is not None and bias is not None:
            absorbed, last = [*absorbed, product], plus
    if scale is None:
        scale = filled(1, dims, x.dtype)
    return one(last, op, [x, scale, *([] if bias is None else [bias])], attrs, absorbed)


def groupnorm(s: Statement, find: Finder) -> Optional[Match]:
    """Each group of channels as one channel of an instance norm without scale and bias, then those of each channel."""
    before = find.by(s.inputs[0], "reshape")
    after = find.next(s.outputs[0], "reshape")
    x = before.inputs[0] if before else None
    if not before or not after or x is None or not same_type(x, after.outputs[0]) or x.rank < 3 or s.outputs[0].rank < 3:
        return None
    (n, channels), (rows, groups) = x.dims()[:2], s.outputs[0].dims()[:2]
    plain = all(v.data is not None and bool((v.data == wanted).all()) for v, wanted in zip(s.inputs[1:], (1, 0)))
    if n != rows or channels % groups or not plain:
        return None
    absorbed, last, operands = [before, s], after, []
    for op in ("mul", "add"):
        follows = find.next(last.outputs[0], op)
        if follows is None or not same_type(x, follows.outputs[0]):
            break
        c = next((c for v, c in sides(follows) if v is last.outputs[0]), None)
        if c is None or c.data is None or c.data.size != channels or c.dims()[-x.rank + 1 :] != [channels, *[1] * (x.rank - 2)]:
            break
        operands.append(Value(c.name, c.dtype, (channels,), c.data.reshape(channels), scope=c.scope, key=c.key))
        absorbed, last = [*absorbed, last], follows
    for value in (1, 0)[len(operands) :]:
        operands.append(filled(value, [channels], x.dtype))
    return one(last, "groupnorm", [x, *operands], {"groups": groups, **s.attrs}, absorbed)


def fit(value: Value, dims: List[int]) -> Optional[Value]:
    """A scale or bias in the shape of what is normalised; None: it has another."""
    if value.is_static and value.dims() == dims:
        return value
    if value.data is None or value.dims()[-len(dims) :] != dims or value.data.size != math.prod(dims):
        return None
    return Value(value.name, value.dtype, tuple(dims), value.data.reshape(dims), scope=value.scope, key=value.key)


def filled(number: float, dims: Sequence[int], dtype: str) -> Value:
    from ..convert.weights import need_numpy
    from .fold import numpy_dtype

    np = need_numpy()
    return Value("ones" if number else "zeros", dtype, tuple(dims), np.broadcast_to(np.full((), number, numpy_dtype(dtype)), dims))


# ---- convolutions ----


def per_channel(c: Value, like: Value) -> Any:
    """A constant with one number for each channel, or one for all, as f64 of [channels]; None: it is neither."""
    from ..convert.weights import need_numpy

    np = need_numpy()
    channels = like.dims()[1]
    if c.data is None or c.dtype not in ("f32", "f64"):
        return None
    if c.data.size == 1:
        return np.full(channels, c.data.reshape(-1)[0], np.float64)
    if c.data.size != channels or c.dims()[-like.rank + 1 :] != [channels, *[1] * (like.rank - 2)]:
        return None
    return c.data.reshape(channels).astype(np.float64)


def refolded(s: Statement, conv: Statement, factor: Any, offset: Any, name: Value) -> Optional[Match]:
    """The convolution whose result is conv(x) * factor + offset, computed in f64."""
    from ..convert.weights import need_numpy

    np = need_numpy()
    w, bias = conv.inputs[1], conv.inputs[2] if len(conv.inputs) > 2 else None
    if w.data is None or (bias is not None and bias.data is None) or w.dtype not in ("f32", "f64") or not same_type(conv.outputs[0], s.outputs[0]):
        return None
    if conv.op == "conv_transpose":  # [C, M / group, ...]
        if conv.attrs.get("group", 1) != 1:
            return None
        along = factor.reshape(1, -1, *[1] * (w.rank - 2))
    else:
        along = factor.reshape(-1, *[1] * (w.rank - 1))
    changed = bool((factor != 1.0).any())
    weights = (w.data.astype(np.float64) * along).astype(w.data.dtype) if changed else w.data
    forget(w.data)
    start = 0.0 if bias is None else bias.data.astype(np.float64)
    offsets = (start * factor + offset).astype(w.data.dtype)
    if not (np.isfinite(weights).all() and np.isfinite(offsets).all()):
        return None
    inputs = [conv.inputs[0], Value(w.name, w.dtype, w.shape, weights, scope=w.scope, key=w.key) if changed else w]
    if bias is not None or offsets.any():
        b = name if bias is None else bias
        inputs.append(Value(b.name, w.dtype, tuple(offsets.shape), offsets, scope=b.scope, key=b.key))
    return Match(s, [new(conv.op, inputs, conv.attrs, s.outputs[0], s, [conv])], [conv])


def batchnorm(s: Statement, find: Finder) -> Optional[Match]:
    """conv(x, w, b) then batchnorm is a conv with other weights: w * s and (b - mean) * s + bias."""
    from ..convert.weights import need_numpy

    np = need_numpy()
    conv = find.by(s.inputs[0], "conv", "conv_transpose")
    if conv is None or any(v.data is None or v.dtype not in ("f32", "f64") for v in s.inputs[1:]):
        return None
    scale, bias, mean, var = (v.data.astype(np.float64) for v in s.inputs[1:])
    factor = scale / np.sqrt(var + s.attrs.get("eps", 1e-5))
    return refolded(s, conv, factor, bias - mean * factor, s.inputs[2])


def conv_affine(s: Statement, find: Finder) -> Optional[Match]:
    """Constants for each channel that a convolution's result is multiplied by, or that are added to it."""
    from ..convert.weights import need_numpy

    np = need_numpy()
    for y, c in sides(s):
        conv = find.by(y, "conv", "conv_transpose")
        numbers = per_channel(c, y) if conv is not None and y.is_static else None
        if conv is None or numbers is None:
            continue
        factor, offset = (numbers, 0.0) if s.op == "mul" else (np.ones(len(numbers)), numbers)
        return refolded(s, conv, factor, offset, c)
    return None


# ---- the passes ----

RULES: List[Dict[str, List[Rule]]] = [
    {"mul": [silu, gelu, hard, norm], "div": [softmax, hard, norm], "batchnorm": [batchnorm], "add": [conv_affine], "instancenorm": [groupnorm]},
    {"mul": [silu, gelu, hard, norm, conv_affine], "div": [hard, norm], "batchnorm": [batchnorm], "add": [conv_affine]},
    {"mul": [conv_affine], "batchnorm": [batchnorm], "add": [conv_affine]},
    {"mul": [conv_affine], "add": [conv_affine]},
]


def rewrite(statements: List[Statement], outputs: List[Value], rules: Dict[str, List[Rule]]) -> List[Statement]:
    """One pass: every match that shares no statement with an earlier one."""
    find = Finder(statements, outputs)
    touched: Dict[int, Statement] = {}
    places: Dict[int, List[Statement]] = {}
    for s in statements:
        for rule in rules.get(s.op, ()):
            match = rule(s, find)
            if match is None or any(id(g) in touched for g in (match.at, *match.absorbed)):
                continue
            touched.update((id(g), g) for g in (match.at, *match.absorbed))
            places[id(match.at)] = match.new
            break
    return [n for s in statements for n in places.get(id(s), [s])]


def needed(statements: List[Statement], outputs: Sequence[Value]) -> List[Statement]:
    """Without what no output depends on."""
    wanted = {id(v) for v in outputs}
    kept = []
    for s in reversed(statements):
        if any(id(v) in wanted for v in s.outputs):
            kept.append(s)
            wanted.update(id(v) for v in s.inputs)
    return kept[::-1]


def recognise(statements: List[Statement], outputs: List[Value]) -> List[Statement]:
    """The statements with every pattern that is known replaced."""
    from . import attention, quantised, tidy

    before = list(statements)
    statements = tidy.once(tidy.ordered_operands(statements), outputs)
    for rules in [*quantised.RULES, tidy.FIRST, *RULES]:
        statements = needed(rewrite(statements, outputs, rules), outputs)
    for rules in [*tidy.RULES, *attention.RULES]:
        statements = needed(tidy.once(rewrite(statements, outputs, rules), outputs), outputs)
    statements = needed(tidy.moves(statements, outputs), outputs)
    statements = needed(rewrite(statements, outputs, {"reshape": [tidy.linear]}), outputs)
    keep_origins(before, statements)
    return statements


def keep_origins(before: Sequence[Statement], after: Sequence[Statement]) -> None:
    """A node without a statement of its own is part of the nearest statement that its result flows into."""
    told: Dict[int, List[Statement]] = {}
    for s in after:
        for o in (s.origin, *s.origins):
            told.setdefault(o, []).append(s)
    users: Dict[int, List[Statement]] = {}
    for s in before:
        for v in s.inputs:
            users.setdefault(id(v), []).append(s)
    for s in reversed(before):
        if s.origin in told:
            continue
        for user in (u for v in s.outputs for u in users.get(id(v), ())):
            for heir in told.get(user.origin, ()):
                if s.origin not in heir.origins:
                    heir.origins.append(s.origin)
                    told.setdefault(s.origin, []).append(heir)
            if s.origin in told:
                break
