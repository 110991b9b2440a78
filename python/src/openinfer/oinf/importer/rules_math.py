"""Rules of element-wise operators and reductions."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional

from ..convert.weights import need_numpy
from .lowering import Node
from .rules import RULES, attributes, optional, row_of, rule, short
from .values import FLOATS, UNSIGNED, Unsupported, Value


@rule("Add", "Sub", "Mul", "Div", "Pow", "PRelu", "And", "Or", "Xor", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")
def binary(n: Node) -> None:
    ops = {"Equal": "eq", "Less": "lt", "LessOrEqual": "le", "Greater": "gt", "GreaterOrEqual": "ge"}
    if n.attrs.get("broadcast") or n.attrs.get("axis") is not None:
        raise Unsupported("the broadcasting of opsets before 7 is not supported")
    x, y = n.x(0), n.x(1)
    if n.op == "Pow" and y.dtype != x.dtype:
        if y.dtype in FLOATS and x.dtype not in FLOATS:
            power = n.emit("pow", [n.emit("cast", [x], {"to": y.dtype}, n.temp(x, dtype=y.dtype)), y], {}, n.temp(n.out(), dtype=y.dtype))
            n.emit("cast", [power], {"to": x.dtype})
            return
        y = n.emit("cast", [y], {"to": x.dtype}, n.temp(y, dtype=x.dtype))
    if n.out().shape is None and x.is_static and y.is_static:  # inference leaves it to a function that we do not need
        n.out().shape = tuple(int(d) for d in need_numpy().broadcast_shapes(tuple(x.dims()), tuple(y.dims())))
    n.emit(ops.get(n.op, n.op.lower()), [x, y])


RULES["BitwiseAnd"] = lambda n: void(n.emit("and", [n.x(0), n.x(1)]))
RULES["BitwiseOr"] = lambda n: void(n.emit("or", [n.x(0), n.x(1)]))
RULES["BitwiseXor"] = lambda n: void(n.emit("xor", [n.x(0), n.x(1)]))
RULES["BitwiseNot"] = RULES["Not"] = lambda n: void(n.emit("not", [n.x(0)]))
RULES["Relu"] = lambda n: void(n.emit("relu", [n.x(0)]))
RULES["Round"] = lambda n: void(n.emit("round", [n.x(0)], {"mode": "half_even"}))
RULES["Where"] = lambda n: void(n.emit("where", [n.x(0), n.x(1), n.x(2)]))


def void(value: Value) -> None:
    """A rule gives nothing back."""


@rule("LeakyRelu")
def leaky_relu(n: Node) -> None:
    n.emit("relu", [n.x(0)], {"negative_slope": short(n.attrs["alpha"])})


@rule("ThresholdedRelu")
def thresholded(n: Node) -> None:
    zero = n.scalar(0, n.x(0))
    above = n.emit("gt", [n.x(0), n.scalar(n.attrs["alpha"], n.x(0))], {}, n.temp(n.x(0), dtype="bool"))
    n.emit("where", [above, n.x(0), zero])


@rule("Identity")
def identity(n: Node) -> None:
    n.alias(n.x(0))


@rule("Dropout")
def dropout(n: Node) -> None:
    if n.has(2) and bool(n.constant(2).reshape(-1)[0]) and n.number(1, "ratio", 0.5) != 0:
        raise Unsupported("dropout of training is random")
    if n.wants(1):
        np = need_numpy()  # nothing is dropped: a mask of true
        n.lowering.bind(n.outputs[1], n.const(np.broadcast_to(np.bool_(True), n.x(0).dims()), "bool", "mask"))
    n.alias(n.x(0))


@rule("Sum", "Mean", "Min", "Max")
def of_several(n: Node) -> None:
    op = {"Sum": "add", "Mean": "add", "Min": "min", "Max": "max"}[n.op]
    values = n.given()
    result = values[0]
    last = n.op != "Mean"
    for i, value in enumerate(values[1:], 2):
        shape = broadcast(result, value)
        result = n.emit(op, [result, value], {}, n.out() if last and i == len(values) else n.temp(result, shape))
    if n.op == "Mean":
        n.emit("div", [result, n.scalar(len(values), result)])
    elif len(values) == 1:
        n.alias(result)


def broadcast(a: Value, b: Value) -> Any:
    np = need_numpy()
    return tuple(int(d) for d in np.broadcast_shapes(tuple(a.dims()), tuple(b.dims())))


@rule("Shrink")
def shrink(n: Node) -> None:
    x, bias, lambd = n.x(0), n.scalar(n.attrs["bias"], n.x(0)), n.attrs["lambd"]
    low = n.emit("lt", [x, n.scalar(-lambd, x)], {}, n.temp(x, dtype="bool"))
    high = n.emit("gt", [x, n.scalar(lambd, x)], {}, n.temp(x, dtype="bool"))
    above = n.emit("where", [high, n.emit("sub", [x, bias], {}, n.temp(x)), n.scalar(0, x)], {}, n.temp(x))
    n.emit("where", [low, n.emit("add", [x, bias], {}, n.temp(x)), above])


@rule("Clip")
def clip(n: Node) -> None:
    x = n.x(0)
    limits: Dict[str, Any] = {}
    moving: List[Any] = []
    for i, name, op in ((1, "min", "max"), (2, "max", "min")):
        if n.has(i) and n.x(i).data is None:
            moving.append((op, n.x(i)))
            continue
        value = n.number(i, name)
        if value is not None:
            limits[name] = short(value) if isinstance(value, float) and x.dtype == "f32" else value
    if not moving:
        n.emit("clamp", [x], {k: v for k, v in limits.items() if not (isinstance(v, float) and math.isinf(v))})
        return
    if limits:
        x = n.emit("clamp", [x], limits, n.temp(x))
    for i, (op, limit) in enumerate(moving):
        x = n.emit(op, [x, limit], {}, n.out() if i + 1 == len(moving) else n.temp(x))


@rule("Sign")
def sign(n: Node) -> None:
    x = n.x(0)
    if x.dtype in UNSIGNED:
        n.emit("min", [x, n.scalar(1, x)])
    else:
        n.emit("sign", [x])


@rule("Abs")
def absolute(n: Node) -> None:
    if n.x(0).dtype in UNSIGNED:
        n.alias(n.x(0))
    else:
        n.emit("abs", [n.x(0)])


@rule("IsInf")
def is_inf(n: Node) -> None:
    x, plus, minus = n.x(0), n.attrs.get("detect_positive", 1), n.attrs.get("detect_negative", 1)
    if plus and minus:
        n.emit("is_inf", [x])
    elif plus or minus:
        n.emit("eq", [x, n.scalar(math.inf if plus else -math.inf, x)])
    else:
        n.emit("ne", [n.scalar(0, x), n.emit("fill", [x], {}, n.temp(x))])


@rule("Mod")
def modulo(n: Node) -> None:
    n.emit("rem" if n.attrs.get("fmod") else "mod", [n.x(0), n.x(1)])


@rule("BitShift")
def shift(n: Node) -> None:
    n.emit("shl" if n.attrs["direction"] == "LEFT" else "shr", [n.x(0), n.x(1)])


@rule("Cast", "CastLike")
def cast(n: Node) -> None:
    x, out = n.x(0), n.out()
    if out.dtype == x.dtype:
        n.alias(x)
        return
    wraps = out.dtype not in FLOATS and (x.dtype not in FLOATS or out.dtype in ("i2", "u2", "i4", "u4"))
    if out.dtype == "f8" and x.dtype in FLOATS and n.attrs.get("saturate", 1):
        x = n.emit("clamp", [x], {"min": -57344.0, "max": 57344.0}, n.temp(x))
    n.emit("cast", [x], {"to": out.dtype, **({"saturate": False} if wraps and "bool" not in (x.dtype, out.dtype) else {})})


@rule("Gelu", "Swish", "Elu", "Celu", "Selu", "HardSigmoid")
def activation(n: Node) -> None:
    if n.op == "Swish":
        n.emit("silu", [n.x(0)], optional(short(n.attrs.get("alpha", 1.0)), "beta", 1.0))
        return
    row = row_of({"HardSigmoid": "hard_sigmoid"}.get(n.op, n.op.lower()))
    n.emit(row.name, [n.x(0)], attributes(n, row))


# ---- reductions ----

REDUCTIONS = {
    "ReduceSum": "sum_axis", "ReduceProd": "prod_axis", "ReduceMean": "mean_axis", "ReduceMax": "max_axis",
    "ReduceMin": "min_axis", "ReduceL1": "sum_axis", "ReduceL2": "sum_axis", "ReduceSumSquare": "sum_axis",
    "ReduceLogSum": "sum_axis", "ReduceLogSumExp": "sum_axis",
}  # fmt: skip


def axes_of(n: Node, x: Value) -> Optional[List[int]]:
    """The axes to reduce, or None: none at all."""
    axes, none = n.ints(1, "axes"), n.attrs.get("noop_with_empty_axes")
    if axes:
        return axes
    return None if none else list(range(x.rank))


def keepdims(n: Node) -> Dict[str, Any]:
    return optional(bool(n.attrs.get("keepdims", 1)), "keepdims", False)


@rule(*REDUCTIONS)
def reduce(n: Node) -> None:
    x, op = n.x(0), REDUCTIONS[n.op]
    first = {"ReduceL1": "abs", "ReduceL2": "square", "ReduceSumSquare": "square"}.get(n.op)
    last = {"ReduceL2": "sqrt", "ReduceLogSum": "log"}.get(n.op)
    axes, keep = axes_of(n, x), keepdims(n)
    if n.op == "ReduceLogSumExp":
        log_sum_exp(n, x, axes, keep)
        return
    if first and not (first == "abs" and x.dtype in UNSIGNED):
        x = n.emit(first, [x], {}, n.temp(x) if axes is not None or last else None)
    if axes is not None:
        x = total(n, op, x, {"axes": axes, **keep}, n.temp(n.out()) if last else n.out())
    if last:
        x = root(n, last, x)
    if x is not n.out():
        n.alias(x)


def total(n: Node, op: str, x: Value, attrs: Dict[str, Any], out: Value) -> Value:
    if x.dtype != "bool":
        return n.emit(op, [x], attrs, out)
    wide = n.emit("cast", [x], {"to": "u8"}, n.temp(x, dtype="u8"))
    return n.emit("cast", [n.emit(op, [wide], attrs, n.temp(out, dtype="u8"))], {"to": "bool"}, out)


def root(n: Node, op: str, x: Value) -> Value:
    """sqrt or log, of integers by way of f64."""
    if x.dtype in FLOATS:
        return n.emit(op, [x])
    wide = n.emit("cast", [x], {"to": "f64"}, n.temp(x, dtype="f64"))
    return n.emit("cast", [n.emit(op, [wide], {}, n.temp(wide))], {"to": x.dtype})


def log_sum_exp(n: Node, x: Value, axes: Optional[List[int]], keep: Dict[str, Any]) -> None:
    """log(sum(exp(x))) with the maximum taken out first, so that nothing overflows."""
    if axes is None:
        n.alias(x)
        return
    if x.dtype not in FLOATS:
        raise Unsupported(f"log-sum-exp of {x.dtype}")
    kept = tuple(1 if i in {a % x.rank for a in axes} else d for i, d in enumerate(x.dims()))
    if 0 in x.dims():
        powers = n.emit("exp", [x], {}, n.temp(x))
        n.emit("log", [n.emit("sum_axis", [powers], {"axes": axes, **keep}, n.temp(n.out()))])
        return
    top = n.emit("max_axis", [x], {"axes": axes, "keepdims": True}, n.temp(x, kept))
    powers = n.emit("exp", [n.emit("sub", [x, top], {}, n.temp(x))], {}, n.temp(x))
    logs = n.emit("log", [n.emit("sum_axis", [powers], {"axes": axes, "keepdims": True}, n.temp(top))], {}, n.temp(top))
    if n.out().shape == kept:
        n.emit("add", [logs, top])
    else:
        n.emit("reshape", [n.emit("add", [logs, top], {}, n.temp(top))])


@rule("ArgMax", "ArgMin")
def arg(n: Node) -> None:
    n.emit("argmax_axis" if n.op == "ArgMax" else "argmin_axis", [n.x(0)], {
        "axis": n.attrs.get("axis", 0), **keepdims(n),
        **optional(not n.attrs.get("select_last_index", 0), "select_first", True),
    })  # fmt: skip


@rule("CumSum", "CumProd")
def running(n: Node) -> None:
    axis = int(n.constant(1).reshape(-1)[0])
    n.emit(n.op.lower(), [n.x(0)], {
        "axis": axis, **{k: True for k in ("exclusive", "reverse") if n.attrs.get(k)}
    })  # fmt: skip


@rule("Einsum")
def einsum(n: Node) -> None:
    n.emit("einsum", n.given(), {"equation": n.attrs["equation"].replace(" ", "")})


@rule("Softmax", "LogSoftmax", "Hardmax")
def softmax(n: Node) -> None:
    x, out = n.x(0), n.out()
    axis = n.attrs.get("axis", -1 if n.opset >= 13 else 1)
    if n.opset < 13 and x.rank and axis % x.rank != x.rank - 1:  # all axes from `axis` on are one
        dims = x.dims()
        flat = (math.prod(dims[: axis % x.rank]), math.prod(dims[axis % x.rank :]))
        rows = n.emit("reshape", [x], {}, n.temp(x, flat))
        n.emit("reshape", [of_rows(n, rows, -1, n.temp(rows))], {}, out)
        return
    of_rows(n, x, axis, out)


def of_rows(n: Node, x: Value, axis: int, out: Value) -> Value:
    if n.op != "Hardmax":
        return n.emit("softmax" if n.op == "Softmax" else "log_softmax", [x], optional(axis, "axis", -1), out)
    dims = x.dims()
    kept = tuple(d for i, d in enumerate(dims) if i != axis % len(dims))
    best = n.emit("argmax_axis", [x], {"axis": axis}, n.temp(x, kept, "i64"))
    return n.emit("one_hot", [best], {"depth": dims[axis], "axis": axis}, out)

