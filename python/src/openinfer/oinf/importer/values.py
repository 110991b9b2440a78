"""What the importer knows about a tensor: its element type, its shape and, for a constant, its numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, List, Optional, Tuple

from ..types import OinfError

# TensorProto.DataType -> ours. What is absent has no counterpart (strings, complex numbers, float8 E4M3).
DTYPES: Dict[int, str] = {
    1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 9: "bool", 10: "f16", 11: "f64",
    12: "u32", 13: "u64", 16: "bf16", 19: "f8", 21: "u4", 22: "i4", 25: "u2", 26: "i2",
}  # fmt: skip
ONNX_DTYPES = {ours: theirs for theirs, ours in DTYPES.items()}
FLOATS = ("f8", "bf16", "f16", "f32", "f64")
SIGNED = ("i2", "i4", "i8", "i16", "i32", "i64")
UNSIGNED = ("u2", "u4", "u8", "u16", "u32", "u64")

Shape = Optional[Tuple[Optional[int], ...]]


class Unsupported(Exception):
    """A node that has no counterpart; the importer collects these and reports them together."""


class NeedsConstant(Unsupported):
    """A node whose input must be known at import time; `--bind` can give it when it is an input of the model."""

    def __init__(self, value: "Value"):
        super().__init__(f"input '{value.name}' decides a shape or an attribute, so it must be a constant")
        self.value = value


@dataclass(eq=False)
class Value:
    """One tensor. `data` is set exactly when it is a constant."""

    name: str
    dtype: str
    shape: Shape
    data: Any = None
    scope: str = ""
    is_input: bool = False
    label: str = ""
    key: str = ""
    sources: FrozenSet["Value"] = frozenset()  # the model's inputs that it depends on
    entries: List["Value"] = field(default_factory=list)  # of a table: the constant of each turn of a loop
    role: str = ""  # of a table: the op and the operand it is
    users: List[str] = field(default_factory=list)  # of a table: the scope of the reader in each turn
    home: Optional["Value"] = None  # whose variable it takes over
    lengths: List[str] = field(default_factory=list)  # the shape as expressions over sizes, where it has any

    def root(self) -> "Value":
        return self if self.home is None else self.home.root()

    @property
    def rank(self) -> int:
        if self.shape is None:
            raise Unsupported(f"the rank of '{self.name}' is unknown")
        return len(self.shape)

    def dims(self) -> List[int]:
        """The shape, every length of it known."""
        if self.shape is None or any(d is None for d in self.shape):
            raise Unsupported(f"the shape of '{self.name}' is unknown")
        return [d for d in self.shape if d is not None]

    @property
    def is_static(self) -> bool:
        return self.shape is not None and all(d is not None for d in self.shape)


@dataclass(eq=False)
class Statement:
    """One `op` of the graph text, and the ONNX node it comes from."""

    op: str
    inputs: List[Value]
    attrs: Dict[str, Any]
    outputs: List[Value]
    origin: int
    scope: str = ""
    origins: List[int] = field(default_factory=list)
    gone: List["Statement"] = field(default_factory=list)  # what a recognised pattern replaces


def dtype_of_onnx(number: int, what: str) -> str:
    if number not in DTYPES:
        raise Unsupported(f"{what} has the type {type_name(number)}, which has no counterpart")
    return DTYPES[number]


def type_name(number: int) -> str:
    import onnx

    try:
        return str(onnx.TensorProto.DataType.Name(number))
    except ValueError:
        return f"number {number}"


def need_onnx() -> Any:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
        import onnx.shape_inference
    except ImportError:
        raise OinfError("import needs the Python package onnx: pip install 'openinfer[onnx]'") from None
    return onnx
