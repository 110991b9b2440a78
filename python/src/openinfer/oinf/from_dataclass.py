"""Which table a dataclass field goes to (spec section 10).

Checked in this order:
  1. dict attributes `sizevars`, `metadata`, `tensors`       merged into their tables
  2. SizeVar, annotated int or SizeVar, metadata sizevar=True  sizevar
  3. ScalarValue                                             metadata scalar
  4. TensorSpec, UninitializedTensor, StreamTensor, ndarray,
     a list with a dtype override, metadata tensor=True      tensor
  5. bool, str, Bitset, int, float                           metadata scalar
  6. list, tuple, bytes, ArrayValue; arrays with tensor=False  metadata ndarray

A value that names its own place (ScalarValue, TensorSpec, ...) keeps it under any
annotation, and an int with a dtype override is a metadata scalar, not a sizevar.
"""

from __future__ import annotations

import dataclasses
import io
import os
import typing
from typing import Any, Dict, Optional, Union

from .types import (
    ArrayValue, Bitset, OinfError, ScalarValue, SizeVar, StreamTensor, TensorSpec, UninitializedTensor,
)  # fmt: skip
from .values import is_array
from .write import PackageWriter

_TABLES = ("sizevars", "metadata", "tensors")
_TENSORS = (TensorSpec, UninitializedTensor, StreamTensor)
_EXPLICIT = (ScalarValue, ArrayValue, Bitset) + _TENSORS


def dataclass_to_oinf(obj: Any) -> bytes:
    """The package that holds a dataclass instance."""
    out = io.BytesIO()
    w = PackageWriter(out)
    collect(w, obj)
    w.finish()
    return out.getvalue()


def write_oinf(obj: Any, path: Union[str, "os.PathLike[str]"]) -> None:
    """Write a dataclass instance to a file, which appears only when complete."""
    w = PackageWriter(path)
    collect(w, obj)
    w.finish()


def collect(w: PackageWriter, obj: Any) -> None:
    """Put every field of a dataclass instance into the writer's tables."""
    if isinstance(obj, type) or not dataclasses.is_dataclass(obj):
        what = f"class {obj.__name__}" if isinstance(obj, type) else type(obj).__name__
        raise OinfError(f"expected a dataclass instance, found {what}")
    merged = [t for t in _TABLES if isinstance(getattr(obj, t, None), dict)]
    for table in merged:
        for name, value in getattr(obj, table).items():
            _add_to(w, table, name, value)
    hints = _hints(type(obj))
    for field in dataclasses.fields(obj):
        if field.name not in merged:
            _add_field(w, field, getattr(obj, field.name), hints.get(field.name, field.type))


def _add_to(w: PackageWriter, table: str, name: str, value: Any) -> None:
    if table == "sizevars":
        w.add_sizevar(name, value)
    elif table == "metadata":
        if isinstance(value, _TENSORS) or isinstance(value, SizeVar):
            raise OinfError(f"metadata {name}: {type(value).__name__} is not a metadata value")
        w.add_metadata(name, value)
    else:
        w.add_tensor(name, value)


def _hints(cls: type) -> Dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except Exception:  # a name that is not defined here: fall back to the text as written
        return {}


def _options(field: "dataclasses.Field[Any]", hint: Any) -> Dict[str, Any]:
    """dtype, sizevar, tensor and name from Annotated[...] and the field's metadata."""
    options: Dict[str, Any] = {}
    for extra in getattr(hint, "__metadata__", ()):
        if isinstance(extra, dict):
            options.update(extra)
    options.update({k: v for k, v in field.metadata.items() if isinstance(k, str)})
    return options


def _is_size(hint: Any) -> bool:
    base = getattr(hint, "__origin__", hint) if hasattr(hint, "__metadata__") else hint
    return base is int or base is SizeVar or (isinstance(base, str) and base.strip() in ("int", "SizeVar"))


def _add_field(w: PackageWriter, field: "dataclasses.Field[Any]", value: Any, hint: Any) -> None:
    options = _options(field, hint)
    dtype: Optional[str] = options.get("dtype")
    tensor = options.get("tensor")
    name = field.name
    by_hint = _is_size(hint) and dtype is None and not isinstance(value, _EXPLICIT)
    if isinstance(value, SizeVar) or options.get("sizevar") or by_hint:
        w.add_sizevar(name, value)
    elif value is None:
        raise OinfError(f"field {name} is None")
    elif isinstance(value, (ScalarValue, ArrayValue)):
        w.add_metadata(name, value, dtype)
    elif isinstance(value, _TENSORS) or tensor or (tensor is None and _is_tensor(value, dtype)):
        w.add_tensor(options.get("name", name), value, dtype)
    else:
        w.add_metadata(name, value, dtype)


def _is_tensor(value: Any, dtype: Optional[str]) -> bool:
    return is_array(value) or (dtype is not None and isinstance(value, (list, tuple)))
