"""An ONNX file becomes values and nodes. Files are not trusted: data in other files stays in the model's folder."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from ..convert.onnx import open_inside
from ..convert.protobuf import Span
from ..convert.weights import need_numpy, shown
from ..source import FileSource, open_regular
from ..types import OinfError
from .names import split_scope
from .stripped import without_weights
from .values import Shape, Unsupported, Value, dtype_of_onnx, need_onnx

MAX_RANK = 64


def read_model(path: str) -> Tuple[Any, Dict[int, Span]]:
    """The model, and where in the file the bytes of its large initialisers are, by number: those are not read."""
    onnx = need_onnx()
    source = FileSource(path)
    try:
        data, spans = without_weights(source)
    except OinfError as e:
        raise OinfError(f"not an ONNX model: {e.reason}", path) from None
    finally:
        source.close()
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as e:  # protobuf's DecodeError, which is no subclass of ValueError everywhere
        raise OinfError(f"not an ONNX model: {' '.join(str(e).split())}", path) from None
    if not model.HasField("graph") or not model.opset_import:
        raise OinfError("not an ONNX model: it has no graph or no opset", path)
    check_names(model.graph, path, 0)
    return model, spans


def check_names(graph: Any, path: str, depth: int) -> None:
    """protobuf hands out bytes for a name that is not UTF-8."""
    names = [x.name for x in (*graph.input, *graph.output, *graph.initializer)]
    for node in graph.node:
        names += [node.name, node.op_type, node.domain, *node.input, *node.output, *(a.name for a in node.attribute)]
        for a in node.attribute:
            if a.HasField("g") and depth < MAX_RANK:
                check_names(a.g, path, depth + 1)
    for name in names:
        if not isinstance(name, str):
            raise OinfError(f"not an ONNX model: the name {name[:40]!r} is not UTF-8", path)


def opsets_of(model: Any) -> Dict[str, int]:
    return {("" if o.domain == "ai.onnx" else o.domain): o.version for o in model.opset_import}


def functions_of(model: Any) -> Dict[Tuple[str, str], Any]:
    return {(f.domain, f.name): f for f in model.functions}


def constant_of(tensor: Any, path: str, span: Optional[Span] = None) -> Value:
    """A tensor's numbers; `span` is where the model's file has them when they were not read with it."""
    onnx = need_onnx()
    what = f"tensor {shown(tensor.name)!r}"
    dtype = dtype_of_onnx(tensor.data_type, what)
    dims = tuple(int(d) for d in tensor.dims)
    if len(dims) > MAX_RANK or any(d < 0 for d in dims):
        raise OinfError(f"{what} has the dims {list(dims)[:MAX_RANK]}", path)
    try:
        if span is not None:
            array = in_place(tensor, dtype, dims, path, span, what)
        elif tensor.data_location == onnx.TensorProto.EXTERNAL:
            array = external(tensor, dtype, dims, path, what)
        else:
            array = inline(tensor, dtype, dims, what, path)
    except OinfError:
        raise
    except Exception as e:  # whatever onnx raises for data of the wrong size or kind
        raise OinfError(f"{what}: {' '.join(str(e).split())[:200]}", path) from None
    scope, last = split_scope(tensor.name)
    return Value(last, dtype, dims, array, scope=scope, key=tensor.name)


def inline(tensor: Any, dtype: str, dims: Tuple[int, ...], what: str, path: str) -> Any:
    np = need_numpy()
    kind = need_onnx().helper.tensor_dtype_to_np_dtype(tensor.data_type)
    if tensor.HasField("raw_data") and dtype not in ("i2", "u2", "i4", "u4"):
        count = 1
        for d in dims:
            count *= d
        if len(tensor.raw_data) != count * kind.itemsize:
            raise OinfError(f"{what}: {count * kind.itemsize} bytes are wanted, raw_data has {len(tensor.raw_data)}", path)
        return np.frombuffer(tensor.raw_data, kind).reshape(dims)
    return need_onnx().numpy_helper.to_array(tensor)


def in_place(tensor: Any, dtype: str, dims: Tuple[int, ...], path: str, span: Span, what: str) -> Any:
    """Numbers inside the model's file, mapped."""
    np = need_numpy()
    with open_regular(path) as file:
        if dtype in ("i2", "u2", "i4", "u4"):
            file.seek(span.start)
            tensor.raw_data = file.read(span.size)
            return inline(tensor, dtype, dims, what, path)
        kind = need_onnx().helper.tensor_dtype_to_np_dtype(tensor.data_type)
        wanted = kind.itemsize
        for d in dims:
            wanted *= d
        if span.size != wanted:
            raise OinfError(f"{what}: {wanted} bytes are wanted, raw_data has {span.size}", path)
        return np.memmap(file, kind, "r", span.start, dims)


def external(tensor: Any, dtype: str, dims: Tuple[int, ...], path: str, what: str) -> Any:
    """Numbers in another file are mapped, not read: they may be larger than memory."""
    np = need_numpy()
    entries = {e.key: e.value for e in tensor.external_data}
    source = open_inside(path, entries.get("location", ""), lambda reason: OinfError(f"{what}: {reason}", path))
    kind = need_onnx().helper.tensor_dtype_to_np_dtype(tensor.data_type)
    count = 1
    for d in dims:
        count *= d
    if dtype in ("i2", "u2", "i4", "u4"):
        raise OinfError(f"{what}: packed integers in another file are not supported", path)
    offset = entries.get("offset", "0")
    if not (offset.isascii() and offset.isdecimal() and len(offset) < 20):
        raise OinfError(f"{what}: external_data has the offset {shown(offset)!r}", path)
    try:
        if int(offset) + count * kind.itemsize > source.size:
            raise OinfError(f"{what} wants {count * kind.itemsize} bytes from {offset} on, its file has {source.size}", path)
        if count == 0:
            return np.zeros(dims, kind)
        return np.memmap(source.file, kind, "r", int(offset), dims)
    finally:
        source.close()


def inputs_of(graph: Any, sizes: Dict[str, int], bound: Dict[str, Any], path: str) -> Tuple[List[Value], List[str]]:
    """The values that a step inserts, and the symbols that have no size yet."""
    own = {t.name for t in graph.initializer}
    values: List[Value] = []
    unknown: List[str] = []
    for info in graph.input:
        if info.name in own:
            continue
        values.append(input_of(info, sizes, bound, unknown, path))
    return values, unknown


def input_of(info: Any, sizes: Dict[str, int], bound: Dict[str, Any], unknown: List[str], path: str) -> Value:
    if not info.type.HasField("tensor_type"):
        raise OinfError(f"input {shown(info.name)!r} is not a tensor", path)
    kind = info.type.tensor_type
    try:
        dtype = dtype_of_onnx(kind.elem_type, f"input {shown(info.name)!r}")
    except Unsupported as e:
        raise OinfError(str(e), path) from None
    shape: Shape = None
    if kind.HasField("shape"):
        shape = tuple(length(d, i, info.name, sizes, unknown) for i, d in enumerate(kind.shape.dim))
    given = bound.get(info.name)
    if given is not None:
        array = typed(given, kind.elem_type, shape)
        return Value(info.name, dtype, tuple(array.shape), array, is_input=False)
    if shape is None:
        raise OinfError(f"input {shown(info.name)!r} has no shape", path)
    return Value(info.name, dtype, shape, is_input=True)


def length(dim: Any, axis: int, name: str, sizes: Dict[str, int], unknown: List[str]) -> Optional[int]:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    symbol = symbol_of(dim, axis, name)
    if symbol not in sizes:
        unknown.append(symbol)
    return sizes.get(symbol)


def symbol_of(dim: Any, axis: int, name: str) -> str:
    known = dim.HasField("dim_param") and dim.dim_param.strip("? ")  # "?" is no name: two of them may differ
    return str(dim.dim_param) if known else f"{name}.{axis}"


def symbols_of(graph: Any, bound: Dict[str, Any]) -> List[str]:
    """The symbols in the shapes of the model's inputs."""
    return [
        symbol_of(d, axis, info.name)
        for info in graph.input if info.name not in bound
        for axis, d in enumerate(info.type.tensor_type.shape.dim) if not (d.HasField("dim_value") and d.dim_value >= 0)
    ]  # fmt: skip


def typed(given: Any, kind: int, shape: Shape) -> Any:
    np = need_numpy()
    array = np.asarray(given).astype(need_onnx().helper.tensor_dtype_to_np_dtype(kind))
    if shape == ():
        return array.reshape(())
    if shape is not None and len(shape) == 1 and array.ndim == 0:
        return array.reshape(1)
    return array
