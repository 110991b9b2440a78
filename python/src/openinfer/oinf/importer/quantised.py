"""Floats between `dequantize` and `quantize` are integers: products of quantised operands become the ops on integers.

What a pattern computes is what onnxruntime computes for it: sums exact in 32 bits, then one multiplication and one
rounding. Where a scale or zero point is no constant, the nodes stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..convert.weights import need_numpy
from .patterns import Finder, Match, new, same_type
from .values import Statement, Value

BYTES = ("i8", "u8")
MOVES = ("reshape", "transpose", "slice", "squeeze", "unsqueeze", "max_pool", "concat", "gather")


@dataclass
class Quantised:
    """Integers with what they stand for: (q - zero) * scale."""

    q: Value
    scale: Value
    zero: Value
    made: Statement

    def inputs(self) -> List[Value]:
        return [self.q, self.scale, self.zero]


def constant(data: Any, dtype: str, like: Value, name: str = "c") -> Value:
    return Value(name, dtype, tuple(data.shape), data, scope=like.scope)


def parameters(s: Statement, dtype: str, axis: Optional[int]) -> Optional[Tuple[Value, Value]]:
    """Scale and zero point of a quantize or dequantize: one number, or one for each place of `axis`."""
    from .fold import numpy_dtype

    np = need_numpy()
    if len(s.inputs) < 2 or s.attrs.get("block_size") or s.inputs[1].dtype != "f32" or any(v.data is None for v in s.inputs[1:]):
        return None
    scale = s.inputs[1]
    if scale.data.size != 1 and (scale.rank != 1 or axis is None or s.attrs.get("axis", 1) % s.outputs[0].rank != axis % s.outputs[0].rank):
        return None
    if len(s.inputs) > 2:
        return scale, s.inputs[2]
    return scale, constant(np.zeros(scale.data.shape, numpy_dtype(dtype)), dtype, scale, "zero")


def dequantised(v: Value, find: Finder, axis: Optional[int] = None, dtypes: Sequence[str] = BYTES) -> Optional[Quantised]:
    s = find.of(v, "dequantize")
    if s is None or s.inputs[0].dtype not in dtypes or s.outputs[0].dtype != "f32":
        return None
    found = parameters(s, s.inputs[0].dtype, axis)
    return found and Quantised(s.inputs[0], *found, s)


def equal(a: Value, b: Value) -> bool:
    return a.dtype == b.dtype and bool((a.data.reshape(-1) == b.data.reshape(-1)).all()) if a.data.size == b.data.size else False


def limits(scale: Value, zero: Value) -> Tuple[float, float]:
    """The least and the greatest number of a quantised type."""
    info = need_numpy().iinfo(zero.data.dtype)
    at, step = int(zero.data.reshape(-1)[0]), float(scale.data.reshape(-1)[0])
    return (info.min - at) * step, (info.max - at) * step


def through_limits(v: Value, low: float, high: float, find: Finder, absorbed: List[Statement]) -> Value:
    """What is limited to a range that the quantised type does not leave anyway."""
    while True:
        s = find.by(v, "relu", "clamp")
        if s is None or s.attrs.get("negative_slope"):
            return v
        least, most = (0.0, float("inf")) if s.op == "relu" else (s.attrs.get("min", float("-inf")), s.attrs.get("max", float("inf")))
        if least > low + 1e-6 * abs(low) or most < high - 1e-6 * abs(high):
            return v
        absorbed.append(s)
        v = s.inputs[0]


def product(s: Statement, find: Finder) -> Optional[Match]:
    """quantize(conv(dequantize(x), dequantize(w), dequantize(b))), or of matmul or gemm"""
    found = parameters(s, s.outputs[0].dtype, None) if s.outputs[0].dtype in BYTES else None
    if found is None:
        return None
    absorbed: List[Statement] = []
    v = through_limits(s.inputs[0], *limits(*found), find, absorbed)
    core = find.by(v, "conv", "matmul", "gemm")
    operands = core and {"conv": of_conv, "matmul": of_matmul, "gemm": of_gemm}[core.op](core, find)
    if not core or not operands:
        return None
    x, w, bias = operands
    inputs = [*x.inputs(), *w.inputs(), *found, *([] if bias is None else [bias])]
    op, attrs = ("qconv", core.attrs) if core.op == "conv" else ("qmatmul", {})
    return Match(s, [new(op, inputs, attrs, s.outputs[0], s, [core, *absorbed])], [core, *absorbed])


Operands = Optional[Tuple[Quantised, Quantised, Optional[Value]]]


def of_conv(core: Statement, find: Finder) -> Operands:
    x, w = dequantised(core.inputs[0], find), dequantised(core.inputs[1], find, 0)
    if x is None or w is None or set(core.attrs) - {"strides", "pads", "dilations", "group", "auto_pad"}:
        return None
    return with_bias(x, w, core.inputs[2:], find)


def of_matmul(core: Statement, find: Finder) -> Operands:
    a, b = dequantised(core.inputs[0], find), dequantised(core.inputs[1], find, -1)
    if core.attrs or a is None or b is None or a.q.rank < 2 or b.q.rank < 2 or (b.scale.data.size > 1 and b.q.rank != 2):
        return None
    return a, b, None


def of_gemm(core: Statement, find: Finder) -> Operands:
    turned = bool(core.attrs.get("trans_b"))
    a, b = dequantised(core.inputs[0], find), dequantised(core.inputs[1], find, 0 if turned else 1)
    if a is None or b is None or core.attrs.get("trans_a") or core.attrs.get("alpha", 1.0) != 1.0 or core.attrs.get("beta", 1.0) != 1.0:
        return None
    if turned:
        if b.q.data is None:
            return None
        data = need_numpy().ascontiguousarray(b.q.data.T)
        b = Quantised(Value(b.q.name, b.q.dtype, tuple(data.shape), data, scope=b.q.scope, key=b.q.key), b.scale, b.zero, b.made)
    return with_bias(a, b, core.inputs[2:], find)


def with_bias(x: Quantised, w: Quantised, rest: Sequence[Value], find: Finder) -> Operands:
    """A bias of 32 bits stands for its numbers times the scales of both operands."""
    np = need_numpy()
    if not rest:
        return x, w, None
    b = dequantised(rest[0], find, 0, ("i32",))
    if b is None or b.q.rank != 1 or b.zero.data.any():
        return None
    both = x.scale.data.reshape(-1) * w.scale.data.reshape(-1)
    return (x, w, b.q) if np.allclose(b.scale.data.reshape(-1), both, rtol=1e-5, atol=0) else None


def move(s: Statement, find: Finder) -> Optional[Match]:
    """quantize(op(dequantize(x))) with one scale and zero point all along, where op only moves elements or picks some"""
    found = parameters(s, s.outputs[0].dtype, None) if s.outputs[0].dtype in BYTES else None
    if found is None:
        return None
    absorbed: List[Statement] = []
    v = through_limits(s.inputs[0], *limits(*found), find, absorbed)
    core = find.by(v, *MOVES) if v is s.inputs[0] else None
    if core is None:
        x = dequantised(v, find)
        if x is None or not absorbed or not equal(x.scale, found[0]) or not equal(x.zero, found[1]) or not same_type(v, s.inputs[0]):
            return None
        return Match(s, [new("identity", [x.q], {}, s.outputs[0], s, absorbed)], absorbed)
    inputs: List[Value] = []
    for i, operand in enumerate(core.inputs):
        if i and core.op != "concat":
            inputs.append(operand)
            continue
        x = dequantised(operand, find)
        if x is None or not equal(x.scale, found[0]) or not equal(x.zero, found[1]):
            return None
        inputs.append(x.q)
    return Match(s, [new(core.op, inputs, core.attrs, s.outputs[0], s, [core])], [core])


def float_product(s: Statement, find: Finder) -> Optional[Match]:
    """matmul(dequantize(a), dequantize(b)) whose result stays a float: the sums of integers, times both scales"""
    np = need_numpy()
    operands = of_matmul(s, find)
    if operands is None or s.outputs[0].dtype != "f32" or not s.outputs[0].is_static:
        return None
    a, b, _ = operands
    if a.zero.data.size != 1 or (b.q.data is None and b.scale.data.size > 1):
        return None
    out = s.outputs[0]
    sums = Value(f"{out.name}_sums", "i32", out.shape, scope=out.scope)
    floats = Value(f"{out.name}_t", "f32", out.shape, scope=out.scope)
    scale = constant(np.asarray(a.scale.data.reshape(()) * b.scale.data.reshape(-1 if b.scale.data.size > 1 else ()), np.float32), "f32", out, "scale")
    zeros = [a.zero, b.zero]
    made = [new("matmul_integer", [a.q, b.q, *zeros], {}, sums, s), new("cast", [sums], {"to": "f32"}, floats, s), new("mul", [floats, scale], {}, out, s)]
    return Match(s, made)


RULES: List[Dict[str, Any]] = [{"quantize": [product, move]}, {"quantize": [move]}, {"matmul": [float_product]}]
