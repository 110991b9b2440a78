"""Types of a node's results, by ONNX's own inference on one node at a time.

Every input's type is known by then and small constants are handed over as data, so shapes that depend on
other tensors' values are found, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict

from .names import split_scope
from .values import ONNX_DTYPES, Unsupported, Value, dtype_of_onnx, need_onnx

if TYPE_CHECKING:
    from .lowering import Node

SMALL = 4096  # elements of a constant that inference may want to see


def type_proto(value: Value) -> Any:
    onnx = need_onnx()
    dims = None if value.shape is None else [None if d is None else int(d) for d in value.shape]
    return onnx.helper.make_tensor_type_proto(ONNX_DTYPES[value.dtype], dims)


def infer(n: "Node") -> None:
    onnx = need_onnx()
    types: Dict[str, Any] = {}
    data: Dict[str, Any] = {}
    for value, name in zip(n.inputs, n.proto.input):
        if value is None:
            continue
        types[name] = type_proto(value)
        if value.data is not None and value.data.size <= SMALL and value.dtype in ("i64", "i32", "f32", "f64", "bool"):
            data[name] = onnx.numpy_helper.from_array(value.data, name)
    proto = n.proto
    if n.op == "Resize" and n.opset < 13 and len(proto.input) > 1 and not proto.input[1]:
        proto = with_roi(proto)
        types[proto.input[1]] = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [0])
    domain_versions = [onnx.helper.make_opsetid(d, v) for d, v in {**n.lowering.opsets, "": n.opset}.items()]
    try:
        found = onnx.shape_inference.infer_node_outputs(n.schema, proto, types, data, opset_imports=domain_versions)
    except Exception as e:  # inference and validation errors of onnx share no class
        text = " ".join(str(e).split())
        raise Unsupported(f"ONNX finds no type for it: {text[:200]}") from None
    for name in n.outputs:
        if name:
            n.types[name] = value_of(name, found.get(name))


def with_roi(proto: Any) -> Any:
    """A Resize that leaves out its region: exporters do, though only newer opsets allow it."""
    copy = need_onnx().NodeProto()
    copy.CopyFrom(proto)
    copy.input[1] = f"{proto.output[0]}/roi"
    return copy


def value_of(name: str, proto: Any) -> Value:
    if proto is None or not proto.HasField("tensor_type"):
        raise Unsupported(f"result '{name}' is not a tensor, or ONNX finds no type for it")
    scope, last = split_scope(name)
    dtype = dtype_of_onnx(proto.tensor_type.elem_type, f"result '{name}'")
    shape = None
    if proto.tensor_type.HasField("shape"):
        shape = tuple(d.dim_value if d.HasField("dim_value") else None for d in proto.tensor_type.shape.dim)
    return Value(last, dtype, shape, scope=scope)
