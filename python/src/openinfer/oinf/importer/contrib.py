"""Operators that onnxruntime's tools write into models, as ONNX functions of standard operators.

Each is what its documentation says it computes; where that is a quantised product, `quantised.py` finds it again.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List

from .values import need_onnx

OPSET = 21
UNARY = {"QLinearSigmoid": "Sigmoid", "QLinearLeakyRelu": "LeakyRelu", "QLinearSoftmax": "Softmax",
         "QLinearAveragePool": "AveragePool", "QLinearGlobalAveragePool": "GlobalAveragePool", "QLinearReduceMean": "ReduceMean"}  # fmt: skip
BINARY = {"QLinearAdd": "Add", "QLinearMul": "Mul"}
KEPT = {"LeakyRelu": ["alpha"], "Softmax": ["axis"], "AveragePool": ["kernel_shape", "strides", "pads", "auto_pad", "ceil_mode", "count_include_pad"]}


def attributes(node: Any) -> Dict[str, Any]:
    return {a.name: need_onnx().helper.get_attribute_value(a) for a in node.attribute}


def shown(value: Any) -> str:
    if isinstance(value, bytes):
        return '"' + value.decode("utf-8", "replace") + '"'
    return "[" + ", ".join(map(shown, value)) + "]" if isinstance(value, (list, tuple)) else repr(value)


def options(given: Dict[str, Any], names: List[str]) -> str:
    found = [f"{name} = {shown(given[name])}" for name in names if name in given]
    return f"<{', '.join(found)}>" if found else ""


def unary(node: Any) -> str:
    op, given = UNARY[node.op_type], attributes(node)
    if given.get("channels_last"):
        return ""
    if op == "ReduceMean":
        axes = f"axes = Constant<value_ints = {shown(given.get('axes', []))}>()" if given.get("axes") else "axes = Constant<value_ints = [-1]>()"
        core = f"{axes}\n f = ReduceMean<keepdims = {given.get('keepdims', 1)}>(fx, axes)"
    else:
        core = f"f = {op}{options(given, KEPT.get(op, []))}(fx)"
    return f"(x, xs, xz, ys, yz) => (y) {{ fx = DequantizeLinear(x, xs, xz)\n {core}\n y = QuantizeLinear(f, ys, yz) }}"


def binary(node: Any) -> str:
    return f"""(a, as, az, b, bs, bz, ys, yz) => (y) {{ fa = DequantizeLinear(a, as, az)
        fb = DequantizeLinear(b, bs, bz)
        f = {BINARY[node.op_type]}(fa, fb)
        y = QuantizeLinear(f, ys, yz) }}"""


def concat(node: Any) -> str:
    n = (len(node.input) - 2) // 3
    inputs = "".join(f", x{i}, s{i}, z{i}" for i in range(n))
    floats = "\n".join(f"f{i} = DequantizeLinear(x{i}, s{i}, z{i})" for i in range(n))
    return f"""(ys, yz{inputs}) => (y) {{ {floats}
        f = Concat<axis = {attributes(node).get("axis", 0)}>({", ".join(f"f{i}" for i in range(n))})
        y = QuantizeLinear(f, ys, yz) }}"""


def gemm(node: Any) -> str:
    given = attributes(node)
    turned = bool(given.get("transB", 0))
    has_c, has_y = len(node.input) > 6 and node.input[6], len(node.input) > 7 and node.input[7]
    bias = "cs = Mul(as, bs)\n fc = DequantizeLinear<axis = 0>(c, cs)\n" if has_c else ""
    out = "f" if has_y else "y"
    names = ", ".join(["a", "as", "az", "b", "bs", "bz", "c", "ys", "yz"][: len(node.input)])
    return f"""({names}) => (y) {{ fa = DequantizeLinear(a, as, az)
        fb = DequantizeLinear<axis = {0 if turned else 1}>(b, bs, bz)
        {bias} {out} = Gemm{options(given, ["alpha", "transA", "transB"])}(fa, fb{", fc" if has_c else ""})
        {"y = QuantizeLinear(f, ys, yz)" if has_y else ""} }}"""


def dynamic_matmul(node: Any) -> str:
    names = ["a", "b", "bs", "bz", "bias"][: len(node.input)]
    has_bias, zero = len(node.input) > 4 and node.input[4], ", bz" if len(node.input) > 3 and node.input[3] else ""
    return f"""({", ".join(names)}) => (y) {{ q, s, z = DynamicQuantizeLinear(a)
        i = MatMulInteger(q, b, z{zero})
        f = Cast<to = 1>(i)
        both = Mul(s, bs)
        {"p" if has_bias else "y"} = Mul(f, both)
        {"y = Add(p, bias)" if has_bias else ""} }}"""


def float_matmul(node: Any) -> str:
    names = ["a", "b", "as", "bs", "az", "bz", "bias"][: len(node.input)]
    has_bias = len(node.input) > 6 and node.input[6]
    fa = "fa = DequantizeLinear(a, as, az)" if len(node.input) > 4 else "fa = DequantizeLinear(a, as)"
    fb = "fb = DequantizeLinear<axis = 1>(b, bs, bz)" if len(node.input) > 5 else "fb = DequantizeLinear<axis = 1>(b, bs)"
    return f"""({", ".join(names)}) => (y) {{ {fa}
        {fb}
        {"p" if has_bias else "y"} = MatMul(fa, fb)
        {"y = Add(p, bias)" if has_bias else ""} }}"""


def gelu(node: Any) -> str:
    if node.op_type == "Gelu":
        return "(x) => (y) { y = Gelu(x) }"
    tanh = '<approximate = "tanh">' if node.op_type == "FastGelu" else ""
    if len(node.input) > 1:
        return f"(x, b) => (y) {{ s = Add(x, b)\n y = Gelu{tanh}(s) }}"
    return f"(x) => (y) {{ y = Gelu{tanh}(x) }}"


BODIES: Dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(UNARY, unary), **dict.fromkeys(BINARY, binary), "QLinearConcat": concat, "QGemm": gemm,
    "DynamicQuantizeMatMul": dynamic_matmul, "MatMulIntegerToFloat": float_matmul,
    "Gelu": gelu, "FastGelu": gelu, "BiasGelu": gelu,
}  # fmt: skip


def contrib_function(node: Any) -> Any:
    """The function of an operator of onnxruntime's own domain; None: there is none."""
    body = BODIES.get(node.op_type) if node.domain == "com.microsoft" else None
    text = body(node) if body else ""
    if not text:
        return None
    from onnx import parser

    return parser.parse_function(f'<opset_import: ["" : {OPSET}], domain: "com.microsoft">\n{node.op_type} {text}')
