"""Products and convolutions of floats become those of 8-bit integers, and what only moves numbers moves integers.

An activation has one scale and one zero point, a weight a scale for each of its outputs and no zero point; a bias is an
i32 of both scales. A rectifier or limit after a product is the range of its result. Everything else stays in floats, between
`dequantize` and `quantize`.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..convert.weights import need_numpy
from ..importer.patterns import Finder
from ..importer.values import Statement, Value
from .calibrate import Seen

WINDOW = {"strides", "pads", "dilations", "group", "auto_pad"}
MOVES = {"reshape", "flatten", "transpose", "squeeze", "unsqueeze", "slice", "max_pool", "global_max_pool", "expand", "tile"}
SHIFT = 24
WIDEST = 32768  # factors of a sum: 32768 * 255 * 127 < 2^31


@dataclass
class Product:
    """What becomes one op on integers."""

    core: Statement
    x: Value
    w: Any  # [outputs, ...] for convolutions, [inputs, outputs] for matrices
    weight: Value
    bias: Optional[Value]
    absorbed: List[Statement]
    result: Value
    axis: int  # of w, where the outputs lie


@dataclass
class Form:
    """A value of the float graph in the new one: as a float, as integers, or both."""

    real: Optional[Value] = None
    q: Optional[Value] = None
    scale: Optional[Value] = None
    zero: Optional[Value] = None


@dataclass
class Point:
    """A value that is rounded to 8 bits: of the float graph, and its integers."""

    value: Value
    q: Value
    scale: float
    zero: int
    node: str


def product_of(s: Statement, find: Finder, keep: Sequence[str]) -> Optional[Product]:
    np = need_numpy()
    if s.op not in ("conv", "matmul", "gemm") or any(fnmatch.fnmatch(n, k) for k in keep for n in (s.op, s.outputs[0].name, s.scope)):
        return None
    x, weight = s.inputs[:2]
    if weight.data is None or x.data is not None or x.dtype != "f32" or weight.dtype != "f32":
        return None
    bias = s.inputs[2] if len(s.inputs) > 2 else None
    attrs = {k: v for k, v in s.attrs.items() if v is True or v not in (False, 1, 1.0) or k in WINDOW}
    w, axis = weight.data, 0
    if s.op == "conv":
        if set(attrs) - WINDOW:
            return None
    else:
        if set(attrs) - {"trans_b", "transpose_b"} or x.rank < 2 or weight.rank != 2:
            return None
        w, axis = np.ascontiguousarray(w.T) if attrs else w, 1
    if bias is not None and (bias.data is None or bias.rank != 1 or bias.data.shape[0] != w.shape[axis]):
        return None
    p = Product(s, x, w, weight, bias, [], s.outputs[0], axis)
    after(p, find)
    return p if w.size // max(w.shape[axis], 1) <= WIDEST and np.isfinite(w).all() else None


def after(p: Product, find: Finder) -> None:
    """The bias and the limits that follow a product."""
    plus = find.next(p.result, "add") if p.bias is None and p.core.op == "matmul" else None
    if plus is not None:
        other = plus.inputs[1] if plus.inputs[0] is p.result else plus.inputs[0]
        if other.data is not None and other.dtype == "f32" and other.data.size == p.w.shape[1] and list(other.dims())[-1:] == [p.w.shape[1]] and plus.outputs[0].shape == p.result.shape:
            p.bias, p.result = Value(other.name, "f32", (other.data.size,), other.data.reshape(-1), key=other.key), plus.outputs[0]
            p.absorbed.append(plus)
    limit = find.next(p.result, "relu", "clamp")
    if limit is not None and not limit.attrs.get("negative_slope") and not limit.attrs.get("alpha") and limit.outputs[0].dtype == "f32":
        p.result = limit.outputs[0]
        p.absorbed.append(limit)


def products_of(statements: Sequence[Statement], results: Sequence[Value], keep: Sequence[str]) -> List[Product]:
    find = Finder(statements, results)
    return [p for p in (product_of(s, find, keep) for s in statements) if p is not None]


@dataclass
class Integers:
    """The new statements, and which of their values are rounded."""

    ranges: Dict[int, Seen]
    integer_only: bool = False  # no zero points, and no float within a product
    statements: List[Statement] = field(default_factory=list)
    points: List[Point] = field(default_factory=list)
    forms: Dict[int, Form] = field(default_factory=dict)
    weights: Dict[Tuple[int, int], Tuple[Value, Value, Any]] = field(default_factory=dict)

    def convert(self, statements: Sequence[Statement], products: Sequence[Product]) -> None:
        by_core = {id(p.core): p for p in products}
        gone = {id(s) for p in products for s in p.absorbed}
        for s in statements:
            if id(s) in by_core and self.product(by_core[id(s)]):
                continue
            if id(s) in by_core:
                gone -= {id(a) for a in by_core[id(s)].absorbed}
            if id(s) in gone or self.move(s):
                continue
            made = [Value(v.name, v.dtype, v.shape, scope=v.scope) for v in s.outputs]
            self.statements.append(Statement(s.op, [self.real(v) for v in s.inputs], s.attrs, made, s.origin, s.scope))
            for v, m in zip(s.outputs, made):
                self.forms[id(v)] = Form(real=m)

    # ---- a value in one form or the other ----

    def form(self, v: Value) -> Form:
        return self.forms.setdefault(id(v), Form(real=v))

    def real(self, v: Value) -> Value:
        f = self.form(v)
        if f.real is None:
            assert f.q and f.scale and f.zero
            f.real = Value(v.name, "f32", v.shape, scope=v.scope)
            self.statements.append(Statement("dequantize", [f.q, f.scale, f.zero], {}, [f.real], -1, v.scope))
        return f.real

    def quantised(self, v: Value) -> Form:
        f = self.form(v)
        if f.q is None:
            assert f.real
            scale, zero = self.parameters(v)
            f.q = Value(f"{v.name}_q", "i8", v.shape, scope=v.scope)
            f.scale, f.zero = scale, zero
            self.statements.append(Statement("quantize", [f.real, scale, zero], {"to": "i8"}, [f.q], -1, v.scope))
            self.point(v, f, "quantize")
        return f

    def point(self, v: Value, f: Form, node: str) -> None:
        assert f.q and f.scale and f.zero
        self.points.append(Point(v, f.q, float(f.scale.data.reshape(-1)[0]), int(f.zero.data.reshape(-1)[0]), node))

    def parameters(self, v: Value) -> Tuple[Value, Value]:
        """The scale and the zero point that hold a value's range and the number 0."""
        np = need_numpy()
        seen = self.ranges[id(v)]
        low, high = min(seen.low, 0.0), max(seen.high, 0.0)
        if self.integer_only:
            high = max(-low, high)
            low = -high
            low -= (high - low) / 254  # the type has a number more on this side
        scale = np.float32(max((high - low) / 255, 1e-12))
        zero = 0 if self.integer_only else int(np.clip(round(-128 - low / float(scale)), -128, 127))
        key = f"{v.scope.replace('/', '.')}.{v.name}".strip(".")
        return (Value(f"{v.name}_scale", "f32", (), np.asarray(scale), key=f"{key}.scale"),
                Value(f"{v.name}_zero", "i8", (), np.asarray(zero, np.int8), key=f"{key}.zero"))  # fmt: skip

    # ---- statements ----

    def product(self, p: Product) -> bool:
        np = need_numpy()
        w, w_scale, numbers = self.weight(p)
        x_scale = float(self.parameters(p.x)[0].data) if self.form(p.x).scale is None else float(self.form(p.x).scale.data)  # type: ignore[union-attr]
        bias: List[Value] = []
        if p.bias is not None:
            exact = np.rint(p.bias.data.astype(np.float64) / (np.float64(x_scale) * numbers))
            if not np.isfinite(exact).all() or np.abs(exact).max(initial=0) >= 2**30:
                return False
            bias = [Value(p.bias.name, "i32", (len(exact),), exact.astype(np.int32), key=p.bias.key)]
        x = self.quantised(p.x)
        y_scale, y_zero = self.parameters(p.result)
        out = Value(p.result.name, "i8", p.result.shape, scope=p.result.scope)
        none = Value("no_zero", "i8", (), np.asarray(0, np.int8))
        assert x.q and x.scale and x.zero
        self.forms[id(p.result)] = Form(q=out, scale=y_scale, zero=y_zero)
        self.point(p.result, self.forms[id(p.result)], "+".join([p.core.op, *(s.op for s in p.absorbed)]))
        if self.integer_only:
            self.in_integers(p, [x.q, w, *bias], out, np.float64(x_scale) * numbers / np.float64(y_scale.data))
            return True
        op, attrs = ("qconv", p.core.attrs) if p.core.op == "conv" else ("qmatmul", {})
        inputs = [x.q, x.scale, x.zero, w, w_scale, none, y_scale, y_zero, *bias]
        self.statements.append(Statement(op, inputs, attrs, [out], p.core.origin, p.core.scope, [s.origin for s in p.absorbed]))
        return True

    def in_integers(self, p: Product, operands: List[Value], out: Value, factors: Any) -> None:
        """A sum of 32 bits comes back to 8 by a whole number over 2^24 for each output, rounded half up."""
        np = need_numpy()
        scope, origin, shape = p.core.scope, p.core.origin, p.result.shape

        def add(op: str, inputs: List[Value], attrs: Dict[str, Any], name: str, dtype: str, home: Optional[Value] = None) -> Value:
            made = Value(name, dtype, shape, scope=scope, home=home)
            self.statements.append(Statement(op, inputs, attrs, [made], origin, scope))
            return made

        x, w, *bias = operands
        whole = np.rint(factors * 2**SHIFT).astype(np.int64)
        if p.core.op == "conv":
            whole = whole.reshape(-1, *[1] * (x.rank - 2))
            total = add("conv", operands, {**p.core.attrs, "acc": ["i32"]}, f"{out.name}_sum", "i32")
        else:
            total = add("matmul", [x, w], {"acc": ["i32"]}, f"{out.name}_sum", "i32")
            total = add("add", [total, bias[0]], {}, total.name, "i32", total) if bias else total
        key = f"{p.weight.key or p.weight.name}.factor"
        factor = Value(f"{p.weight.name}_factor", "i64", tuple(whole.shape), whole, key=key)
        half = Value("half", "i64", (), np.asarray(2 ** (SHIFT - 1), np.int64))
        wide = add("cast", [total], {"to": "i64"}, f"{out.name}_wide", "i64")
        last = add("mul", [wide, factor], {}, wide.name, "i64", wide)
        last = add("add", [last, half], {}, wide.name, "i64", wide)
        last = add("shr", [last], {"bits": SHIFT}, wide.name, "i64", wide)
        limits = limits_of(p.absorbed, float(self.forms[id(p.result)].scale.data))  # type: ignore[union-attr]
        if limits is None:
            self.statements.append(Statement("cast", [last], {"to": "i8"}, [out], origin, scope))
            return
        last = add("cast", [last], {"to": "i8"}, out.name, "i8")
        out.home = last
        self.statements.append(Statement(limits[0], [last], limits[1], [out], origin, scope))

    def weight(self, p: Product) -> Tuple[Value, Value, Any]:
        """Its integers, their scales, and the scales as f64: one for each output."""
        np = need_numpy()
        key = (id(p.weight.data), p.axis)
        if key not in self.weights:
            apart = tuple(i for i in range(p.w.ndim) if i != p.axis)
            most = np.abs(p.w.astype(np.float64)).max(axis=apart, initial=0)
            scales = np.where(most > 0, most / 127, 1.0).astype(np.float32)
            shape = [-1 if i == p.axis else 1 for i in range(p.w.ndim)]
            numbers = np.clip(np.rint(p.w / scales.reshape(shape)), -127, 127).astype(np.int8)
            name = p.weight.key or p.weight.name
            self.weights[key] = (Value(p.weight.name, "i8", tuple(p.w.shape), numbers, key=name),
                                 Value(f"{p.weight.name}_scale", "f32", (len(scales),), scales, key=f"{name}.scale"),
                                 scales.astype(np.float64))  # fmt: skip
        return self.weights[key]

    def move(self, s: Statement) -> bool:
        """The same on integers, where a value has them and only moves."""
        f = self.forms.get(id(s.inputs[0])) if s.inputs else None
        if f is None or f.q is None or s.outputs[0].dtype != "f32" or len(s.outputs) > 1:
            return False
        operands = [f.q]
        if s.op == "concat":
            forms = [self.forms.get(id(v)) for v in s.inputs]
            if any(o is None or o.q is None or not same(o, f) for o in forms):
                return False
            operands = [o.q for o in forms if o and o.q]
        elif s.op not in MOVES or any(v.data is None for v in s.inputs[1:]):
            return False
        else:
            operands += s.inputs[1:]
        out = Value(s.outputs[0].name, "i8", s.outputs[0].shape, scope=s.outputs[0].scope)
        self.statements.append(Statement(s.op, operands, s.attrs, [out], s.origin, s.scope))
        self.forms[id(s.outputs[0])] = Form(q=out, scale=f.scale, zero=f.zero)
        return True


def limits_of(absorbed: Sequence[Statement], scale: float) -> Optional[Tuple[str, Dict[str, Any]]]:
    """The rectifier or limit of a product, on integers without a zero point."""
    s = absorbed[-1] if absorbed and absorbed[-1].op != "add" else None
    if s is None:
        return None
    low = 0.0 if s.op == "relu" else float(s.attrs.get("min", "-inf"))
    high = float(s.attrs.get("clamp_max" if s.op == "relu" else "max", "inf"))
    low = max(low, float(s.attrs.get("clamp_min", "-inf")))
    least, most = max(-128, round(max(low, -1e9) / scale)), min(127, round(min(high, 1e9) / scale))
    if (least, most) == (0, 127):
        return "relu", {}
    return "clamp", {"min": least, "max": most}


def same(a: Form, b: Form) -> bool:
    return bool(a.scale and b.scale and a.zero and b.zero and a.scale.data == b.scale.data and a.zero.data == b.zero.data)


