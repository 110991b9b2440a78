"""ONNX operator -> the function that writes our statements.

An operator that a registry row names, and whose attributes ATTRS explains, needs nothing else. Every other
operator has a function in one of the `rules_*.py` files, marked with @rule("Name").
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from .lowering import WITHOUT_EFFECT, Node, Rule
from .registry import ROWS, Row, by_onnx
from .values import Unsupported

# ONNX attribute -> ours, where name or meaning of the value differ only in type
ATTRS = {
    "axis": "axis", "alpha": "alpha", "beta": "beta", "gamma": "gamma", "epsilon": "eps", "kernel_shape": "kernel",
    "strides": "strides", "pads": "pads", "dilations": "dilations", "group": "group", "auto_pad": "auto_pad",
    "ceil_mode": "ceil_mode", "count_include_pad": "count_include_pad", "p": "p", "approximate": "approximate",
    "transA": "trans_a", "transB": "trans_b", "blocksize": "block", "equation": "equation", "num_groups": "groups",
    "batch_dims": "batch_dims", "reduction": "reduction", "perm": "perm", "mode": "mode", "block_size": "block_size",
    "to": "to", "interleaved": "interleaved", "num_heads": "heads", "rotary_embedding_dim": "dim",
}  # fmt: skip
RULES: Dict[str, Rule] = {}


def rule(*operators: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for operator in operators:
            RULES[operator] = function
        return function

    return register


def attributes(n: Node, row: Row, leave: frozenset[str] = frozenset()) -> Dict[str, Any]:
    """The node's attributes under our names; what equals our default is left out."""
    attrs: Dict[str, Any] = {}
    for name, value in n.attrs.items():
        if name in leave or name in WITHOUT_EFFECT.get(n.op, ()):
            continue
        ours = ATTRS.get(name)
        if ours is not None and ours not in row.attrs:
            ours = next((k for k, a in row.attrs.items() if a.get("alias") == ours), None)
        if ours is None:
            raise Unsupported(f"its attribute '{name}' has no counterpart in {row.name}")
        converted = convert(value, row.attrs[ours])
        if converted != row.attrs[ours].get("default"):
            attrs[ours] = converted
    return attrs


def convert(value: Any, attr: Any) -> Any:
    kind = attr["kind"]
    if kind == "bool":
        return bool(value)
    if kind == "number" and isinstance(value, float):
        return short(value)
    return list(value) if isinstance(value, (list, tuple)) else value


def short(value: float) -> float:
    """The shortest decimal number that is the same f32: attributes of ONNX are f32."""
    from ..convert.weights import need_numpy

    np = need_numpy()
    return float(str(np.float32(value)))


def plain(row: Row) -> Rule:
    """The rule of an operator that is one op of ours, input by input."""

    def apply(n: Node) -> None:
        if len([o for o in n.outputs if o]) != 1:
            raise Unsupported(f"{row.name} gives one result")
        if None in n.inputs[: len(n.given())]:
            raise Unsupported("an optional input in the middle is left out")
        if len(n.given()) > len(row.inputs) and not any(i.endswith("+") for i in row.inputs):
            raise Unsupported(f"{row.name} takes {len(row.inputs)} inputs")
        n.emit(row.name, n.given(), attributes(n, row))

    return apply


def all_rules() -> Dict[str, Rule]:
    """The table: operators that the registry explains, then those with a function of their own."""
    from . import rules_math, rules_nn, rules_other, rules_quant, rules_resample, rules_shape  # noqa: F401  their @rule marks fill RULES

    table: Dict[str, Rule] = {}
    for operator, rows in by_onnx().items():
        if len(rows) == 1:
            table[operator] = plain(rows[0])
    table.update(RULES)
    return table


def row_of(name: str) -> Row:
    return ROWS[name]


def optional(value: Any, name: str, default: Any) -> Dict[str, Any]:
    """{name: value} unless it is the default."""
    return {} if value is None or value == default else {name: value}


def same_dtype(n: Node, i: int) -> Optional[str]:
    return n.x(i).dtype if n.has(i) else None
