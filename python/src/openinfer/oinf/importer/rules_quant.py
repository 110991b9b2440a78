"""Rules of quantised operators."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from .lowering import Node
from .rules import optional, rule
from .rules_nn import window
from .rules_other import quantize_f8
from .values import Unsupported, Value


@rule("QuantizeLinear", "DequantizeLinear")
def linear(n: Node) -> None:
    q = n.op == "QuantizeLinear"
    x, out = n.x(0), n.out()
    if "f8" in (x.dtype, out.dtype):
        quantize_f8(n)
        return
    attrs: Dict[str, Any] = {}
    if q:
        attrs.update(optional(out.dtype, "to", "u8"))
    else:
        attrs.update(optional(out.dtype, "to", "f32"))
    axis = n.attrs.get("axis", 1)
    if n.x(1).rank and (n.x(1).rank > 1 or n.x(1).dims() != [1]):
        attrs.update(optional(axis, "axis", 1))
    attrs.update(optional(n.attrs.get("block_size", 0), "block_size", 0))
    rest = n.given()[1:]
    if len(rest) == 2 and rest[0].shape != rest[1].shape:
        rest[1] = shaped(n, rest[1], rest[0].shape or ())
    n.emit("quantize" if q else "dequantize", [x, *rest], attrs)


def shaped(n: Node, zero: Value, shape: Tuple[Optional[int], ...]) -> Value:
    """A zero point in the shape of its scale."""
    if zero.data is None:
        return n.emit("reshape", [zero], {}, n.temp(zero, shape))
    return Value(zero.name, zero.dtype, shape, zero.data.reshape(shape), scope=zero.scope, key=zero.key)


@rule("QLinearConv")
def qconv(n: Node) -> None:
    n.emit("qconv", n.given(), window(n, "qconv", frozenset({"kernel_shape"})))


@rule("QLinearMatMul")
def qmatmul(n: Node) -> None:
    scales = (1, 4, 6)
    given = [n.emit("cast", [v], {"to": "f32"}, n.temp(v, dtype="f32")) if i in scales and v.dtype != "f32" else v for i, v in enumerate(n.given())]
    n.emit("qmatmul", given)


@rule("MatMulInteger")
def matmul_integer(n: Node) -> None:
    given: List[Value] = n.given()
    if len(given) != len([v for v in n.inputs if v is not None]) or (len(n.inputs) > 3 and not n.has(2)):
        raise Unsupported("a zero point of the second operand only")
    n.emit("matmul_integer", given)


@rule("DynamicQuantizeLinear")
def dynamic(n: Node) -> None:
    if not all(n.wants(i) for i in range(3)):
        raise Unsupported("dynamic quantisation without its scale or zero point")
    n.emit_many("dynamic_quantize", [n.x(0)], {}, [n.out(i) for i in range(3)])
