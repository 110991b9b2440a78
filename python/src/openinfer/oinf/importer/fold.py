"""What depends on constants and static shapes only is computed at import time."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, List

from ..convert.weights import need_numpy
from .infer import infer
from .names import split_scope
from .values import ONNX_DTYPES, Unsupported, Value, need_onnx

if TYPE_CHECKING:
    from .lowering import Node

LARGEST = 1 << 22  # elements of a folded result that is not smaller than what it comes from
NEVER = {
    "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial", "Loop", "Scan", "If",
    "Dropout", "SequenceEmpty", "QuantizeLinear", "DequantizeLinear",
}  # fmt: skip


def numpy_dtype(dtype: str) -> Any:
    return need_onnx().helper.tensor_dtype_to_np_dtype(ONNX_DTYPES[dtype])


def can_fold(n: "Node") -> bool:
    if n.op in NEVER:
        return False
    if n.op == "CastLike":
        return n.x(0).data is not None
    if n.op in ("Shape", "Size", "EyeLike"):
        return n.x(0).is_static
    return all(v is None or v.data is not None for v in n.inputs)


def fold(n: "Node") -> bool:
    """Binds the node's results to constants; False: it has to run."""
    if n.op in ("Shape", "Size"):
        return bind(n, [extent(n)])
    if n.op == "CastLike":
        return bind(n, [n.x(0).data.astype(numpy_dtype(n.x(1).dtype))])
    if n.op == "ConstantOfShape":
        return bind(n, [filled(n)])
    if n.op != "Constant":
        try:
            infer(n)
        except Unsupported:
            if n.op != "Range" or range_length(n) > LARGEST:
                return False
        limit = max([LARGEST] + [v.data.size for v in n.given() if v.data is not None])
        for value in n.types.values():
            if value.is_static and size_of(value) > limit:
                return False
    if n.op == "EyeLike":
        return bind(n, [eye(n)])
    return evaluate(n)


def range_length(n: "Node") -> float:
    start, end, step = (float(n.constant(i).reshape(-1)[0]) for i in range(3))
    return (end - start) / step if step else math.inf


def size_of(value: Value) -> int:
    size = 1
    for d in value.dims():
        size *= d
    return size


def extent(n: "Node") -> Any:
    np = need_numpy()
    dims = n.x(0).dims()
    if n.op == "Size":
        return np.array(size_of(n.x(0)), np.int64)
    return np.array(dims[n.attrs.get("start", 0) : n.attrs.get("end")], np.int64)


def filled(n: "Node") -> Any:
    """One number for every element: a view that takes no memory."""
    np = need_numpy()
    value = n.attrs.get("value")
    number = np.zeros((), np.float32) if value is None else need_onnx().numpy_helper.to_array(value).reshape(-1)[0]
    dims = [int(d) for d in n.constant(0).reshape(-1)]
    if any(d < 0 for d in dims):
        raise Unsupported(f"a negative length in {dims}")
    return np.broadcast_to(number, dims)


def eye(n: "Node") -> Any:
    rows, columns = n.x(0).dims()
    return need_numpy().eye(rows, columns, k=n.attrs.get("k", 0), dtype=numpy_dtype(n.out().dtype))


def evaluate(n: "Node") -> bool:
    onnx = need_onnx()
    from onnx.reference import ReferenceEvaluator

    helper = onnx.helper
    graph = helper.make_graph([n.proto], "one", [
        helper.make_tensor_value_info(name, ONNX_DTYPES[v.dtype], None) for name, v in unique_inputs(n)
    ], [helper.make_tensor_value_info(o, 0, None) for o in n.outputs if o])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", n.opset)])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = ReferenceEvaluator(model).run(None, {name: v.data for name, v in unique_inputs(n)})
    except Exception:  # the evaluator lacks operators and forms of them; then the node runs with the others
        return False
    return bind(n, list(results))


def unique_inputs(n: "Node") -> List[Any]:
    return list({name: v for name, v in zip(n.proto.input, n.inputs) if v is not None}.items())


def bind(n: "Node", results: List[Any]) -> bool:
    np = need_numpy()
    helper = need_onnx().helper
    values = []
    for name, array in zip([o for o in n.outputs if o], results):
        if not isinstance(array, (np.ndarray, np.generic)):
            return False
        array = np.asarray(array)
        try:
            number = helper.np_dtype_to_tensor_dtype(array.dtype)
        except (KeyError, ValueError, TypeError):
            return False
        from .values import dtype_of_onnx

        scope, last = split_scope(name)
        values.append((name, Value(last, dtype_of_onnx(number, f"constant '{name}'"), tuple(array.shape), array, scope=scope)))
    for name, value in values:
        n.lowering.env[name] = value
    return True
