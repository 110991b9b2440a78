"""ONNX: the initialisers and constants of a model's graph and of the graphs inside its nodes.

Tensors keep their names; a constant has the name of the output it feeds. The numbers stay in the
file until they are written. Data in other files is read only from the model's own folder: no
absolute path, no "..", no link that leads out of it.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ..dtypes import dtype_of
from ..source import FileSource
from ..types import BytesLike, OinfError, ScalarValue
from .protobuf import (
    BYTES, FIXED32, FIXED64, VARINT, Field, Span, Wire, count_varints, read_spans, unpack_varints,
)  # fmt: skip
from .weights import (
    MAX_ENTRIES, MAX_NAME, ChunkMaker, SourceTensor, Weights, check_ranges, checked_numel, need_numpy, plain_part,
    raw_chunks, shape_text, shown,
)  # fmt: skip

MAX_DEPTH = 16  # graphs inside graphs
MAX_TEXT = 1 << 20

# Field numbers of onnx.proto.
MODEL = {"ir_version": 1, "producer_name": 2, "producer_version": 3, "domain": 4, "graph": 7, "opset": 8, "property": 14}
GRAPH = {"node": 1, "name": 2, "initializer": 5, "sparse": 15}
NODE = {"output": 2, "op_type": 4, "attribute": 5}
ATTRIBUTE = {"name": 1, "tensor": 5, "graph": 6, "graphs": 11, "sparse": 22}
TENSOR = {"dims": 1, "type": 2, "segment": 3, "name": 8, "raw": 9, "external": 13, "location": 14}

# Lists of numbers: field -> name, wire type of one that is not packed, the types that use it.
LISTS = {
    4: ("float_data", FIXED32, ("FLOAT",)),
    5: ("int32_data", VARINT, ("INT32", "INT16", "INT8", "INT4", "INT2", "UINT16", "UINT8", "UINT4", "UINT2", "BOOL", "FLOAT16",
                               "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E5M2")),
    7: ("int64_data", VARINT, ("INT64",)),
    10: ("double_data", FIXED64, ("DOUBLE",)),
    11: ("uint64_data", VARINT, ("UINT64", "UINT32")),
}  # fmt: skip
# number -> name, our type
TYPES = {
    1: ("FLOAT", "f32"), 2: ("UINT8", "u8"), 3: ("INT8", "i8"), 4: ("UINT16", "u16"), 5: ("INT16", "i16"), 6: ("INT32", "i32"),
    7: ("INT64", "i64"), 8: ("STRING", None), 9: ("BOOL", "bool"), 10: ("FLOAT16", "f16"), 11: ("DOUBLE", "f64"),
    12: ("UINT32", "u32"), 13: ("UINT64", "u64"), 14: ("COMPLEX64", None), 15: ("COMPLEX128", None), 16: ("BFLOAT16", "bf16"),
    17: ("FLOAT8E4M3FN", "e4m3"), 18: ("FLOAT8E4M3FNUZ", None), 19: ("FLOAT8E5M2", "f8"), 20: ("FLOAT8E5M2FNUZ", None),
    21: ("UINT4", "u4"), 22: ("INT4", "i4"), 23: ("FLOAT4E2M1", None), 24: ("FLOAT8E8M0", None), 25: ("UINT2", "u2"),
    26: ("INT2", "i2"),
}  # fmt: skip


def open_onnx(path: str) -> Weights:
    source = FileSource(path)
    reader = _Reader(source)
    try:
        reader.model()
        reader.check_outside()
        return Weights(path, "ONNX", source.size, reader.tensors, reader.metadata, reader.close)
    except BaseException:
        reader.close()
        raise


@dataclass
class _Tensor:
    """A TensorProto as found: where its parts are."""

    name: str = ""
    dims: List[int] = field(default_factory=list)
    type: int = 0
    raw: Optional[Span] = None
    lists: Dict[int, List[Span]] = field(default_factory=dict)
    external: Dict[str, str] = field(default_factory=dict)
    is_external: bool = False
    segmented: bool = False


class _Reader:
    def __init__(self, source: FileSource):
        self.source = source
        self.wire = Wire(source)
        self.tensors: List[SourceTensor] = []
        self.metadata: Dict[str, Any] = {}
        self.names: Dict[str, None] = {}
        self.folders: Dict[str, FileSource] = {}  # other files with data, by the name the model uses
        self.outside: Dict[str, str] = {}  # tensor -> such a file

    def close(self) -> None:
        self.source.close()
        for other in self.folders.values():
            other.close()

    def error(self, reason: str, at: int) -> OinfError:
        return self.wire.error(reason, at)

    # ---- walking down ----

    def model(self) -> None:
        graphs = 0
        for f in self.wire.fields(Span(0, self.source.size), "the model"):
            if f.number == MODEL["graph"]:
                self.wire.expect(f, BYTES, "the graph")
                self.graph(f.span, "", 0)
                graphs += 1
            elif f.number == MODEL["ir_version"] and f.wire == VARINT:
                self.metadata["onnx.ir_version"] = ScalarValue(f.value, "u64")
            elif f.number in (MODEL["producer_name"], MODEL["producer_version"], MODEL["domain"]):
                key = {v: k for k, v in MODEL.items()}[f.number]
                self.note(f"onnx.{key}", self.wire.text(f, f"the model's {key}", MAX_TEXT))
            elif f.number == MODEL["opset"]:
                self.opset(f)
            elif f.number == MODEL["property"]:
                key, value = self.pair(f, "a property of the model")
                self.note(key, value)
        if not graphs:
            raise self.error("no graph: not an ONNX model", 0)

    def note(self, key: str, value: Any) -> None:
        if key and value != "" and len(self.metadata) < MAX_ENTRIES:
            self.metadata.setdefault(key, value)

    def opset(self, f: Field) -> None:
        self.wire.expect(f, BYTES, "an opset")
        domain, version = "", 0
        for g in self.wire.fields(f.span, "an opset"):
            if g.number == 1:
                domain = self.wire.text(g, "an opset's domain", MAX_NAME)
            elif g.number == 2 and g.wire == VARINT:
                version = g.value
        self.note("onnx.opset" + (f".{domain}" if domain else ""), ScalarValue(version, "u64"))

    def pair(self, f: Field, what: str) -> Tuple[str, str]:
        self.wire.expect(f, BYTES, what)
        key = value = ""
        for g in self.wire.fields(f.span, what):
            if g.number == 1:
                key = self.wire.text(g, f"key of {what}", MAX_NAME)
            elif g.number == 2:
                value = self.wire.text(g, f"value of {what}", MAX_TEXT)
        return key, value

    def graph(self, span: Span, scope: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise self.error(f"graphs are nested more than {MAX_DEPTH} deep", span.start)
        for f in self.wire.fields(span, "a graph"):
            if f.number == GRAPH["name"] and depth == 0:
                self.note("onnx.graph", self.wire.text(f, "the graph's name", MAX_TEXT))
            elif f.number == GRAPH["initializer"]:
                self.wire.expect(f, BYTES, "an initializer")
                self.add(f.span, None, scope)
            elif f.number == GRAPH["sparse"]:
                self.unsupported(f.at, "SPARSE", scope)
            elif f.number == GRAPH["node"]:
                self.wire.expect(f, BYTES, "a node")
                self.node(f.span, scope, depth)

    def node(self, span: Span, scope: str, depth: int) -> None:
        op = output = ""
        attributes = []
        for f in self.wire.fields(span, "a node"):
            if f.number == NODE["op_type"]:
                op = self.wire.text(f, "a node's op_type", MAX_NAME)
            elif f.number == NODE["output"] and not output:
                output = self.wire.text(f, "a node's output", MAX_NAME)
            elif f.number == NODE["attribute"]:
                self.wire.expect(f, BYTES, "an attribute")
                attributes.append(f.span)
        for attribute in attributes:
            self.attribute(attribute, op, output, scope, depth)

    def attribute(self, span: Span, op: str, output: str, scope: str, depth: int) -> None:
        name = ""
        for f in self.wire.fields(span, "an attribute"):
            if f.number == ATTRIBUTE["name"]:
                name = self.wire.text(f, "an attribute's name", MAX_NAME)
            elif f.number in (ATTRIBUTE["graph"], ATTRIBUTE["graphs"]):
                self.wire.expect(f, BYTES, "a graph")
                self.graph(f.span, f"{scope}{output}.{name}."[-MAX_NAME // 2 :], depth + 1)
            elif f.number == ATTRIBUTE["tensor"] and op == "Constant":
                self.wire.expect(f, BYTES, "a constant")
                self.add(f.span, output, scope)
            elif f.number == ATTRIBUTE["sparse"] and op == "Constant":
                self.unsupported(f.at, "SPARSE", scope, output)

    # ---- tensors ----

    def unique(self, name: str, scope: str, at: int) -> str:
        """Branches of a node may use a name twice; the second one gets its path in front."""
        if len(self.names) >= MAX_ENTRIES:
            raise self.error(f"more than {MAX_ENTRIES} tensors", at)
        for candidate in (name, scope + name):
            if candidate and candidate not in self.names:
                self.names[candidate] = None
                return candidate
        raise self.error(f"tensor {shown(name)!r} has no name or the name of another", at)

    def unsupported(self, at: int, kind: str, scope: str, name: str = "sparse") -> None:
        self.tensors.append(SourceTensor(self.unique(name, scope, at), kind, (), at, 0, None))

    def add(self, span: Span, name: Optional[str], scope: str) -> None:
        t = self.tensor(span)
        label = self.unique(t.name if name is None else name, scope, span.start)
        what = f"tensor {shown(label)!r}"
        if t.type not in TYPES:
            raise self.error(f"{what} has the unknown type {t.type}", span.start)
        if any(d < 0 for d in t.dims):
            raise self.error(f"{what} has a negative dimension: {shape_text(tuple(t.dims))}", span.start)
        kind, dtype = TYPES[t.type]
        dims = tuple(t.dims)
        numel = checked_numel(dims, what, self.source.name, span.start)
        if dtype is None:
            self.tensors.append(SourceTensor(label, kind, dims, span.start, 0, None))
            return
        nbytes = dtype_of("u8" if dtype == "e4m3" else dtype).nbytes(numel)
        if t.segmented:
            raise self.error(f"{what} is stored in segments, which is not supported", span.start)
        offset, chunks = self.data(t, kind, numel, nbytes, what, label, span.start)
        self.tensors.append(SourceTensor(label, kind, dims, offset, nbytes, [plain_part(dtype, dims, chunks)]))

    def tensor(self, span: Span) -> _Tensor:
        t = _Tensor()
        for f in self.wire.fields(span, "a tensor"):
            if f.number == TENSOR["dims"]:
                t.dims += self.wire.signed(f, "a tensor's dims")
                if len(t.dims) > 64:
                    raise self.error("a tensor has more than 64 dimensions", f.at)
            elif f.number in (TENSOR["type"], TENSOR["location"]):
                self.wire.expect(f, VARINT, "a tensor's type or location")
                if f.number == TENSOR["type"]:
                    t.type = f.value
                elif f.value > 1:
                    raise self.error(f"a tensor has the unknown data location {f.value}", f.at)
                else:
                    t.is_external = f.value == 1
            elif f.number == TENSOR["name"]:
                t.name = self.wire.text(f, "a tensor's name", MAX_NAME)
            elif f.number == TENSOR["raw"]:
                self.wire.expect(f, BYTES, "raw_data")
                t.raw = f.span
            elif f.number == TENSOR["segment"]:
                t.segmented = True
            elif f.number == TENSOR["external"]:
                key, value = self.pair(f, "external_data")
                t.external[key] = value
            elif f.number in LISTS:
                self.list_span(t, f)
        return t

    def list_span(self, t: _Tensor, f: Field) -> None:
        name, single, _ = LISTS[f.number]
        if f.wire != BYTES:
            self.wire.expect(f, single, name)
        spans = t.lists.setdefault(f.number, [])
        if len(spans) >= 4096:
            raise self.error(f"{name} is not packed and has more than 4096 numbers", f.at)
        spans.append(f.span)

    def data(
        self, t: _Tensor, kind: str, numel: int, nbytes: int, what: str, label: str, at: int
    ) -> Tuple[int, ChunkMaker]:
        """Where the numbers are: another file, raw bytes, or a list of numbers. Sizes must agree."""
        if t.is_external:
            self.outside[label] = t.external.get("location", "")
            return self.external(t, nbytes, what, at)
        if t.raw is not None:
            if t.raw.size != nbytes:
                raise self.error(f"{what}: {kind}{shape_text(tuple(t.dims))} has {nbytes} bytes, raw_data {t.raw.size}", at)
            return t.raw.start, raw_chunks(self.source, t.raw.start, nbytes)
        number = next(n for n, (_, _, kinds) in LISTS.items() if kind in kinds)
        spans = t.lists.get(number, [])
        count = numel if kind not in ("INT4", "UINT4", "INT2", "UINT2") else nbytes
        return self.listed(number, spans, kind, count, what, at)

    def listed(self, number: int, spans: List[Span], kind: str, count: int, what: str, at: int) -> Tuple[int, ChunkMaker]:
        name, wire, _ = LISTS[number]
        size = {FIXED32: 4, FIXED64: 8}.get(wire, 0)
        found = sum(s.size for s in spans) / size if size else count_varints(self.source, spans)
        if found != count:
            raise self.error(f"{what}: {count} values are wanted, {name} has {found:g}", at)
        start = spans[0].start if spans else at
        if size:
            return start, lambda: read_spans(self.source, spans)
        dtype = {"bool": "u8", "f16": "u16", "bf16": "u16", "e4m3": "u8", "f8": "u8"}
        ours = next(d for k, d in TYPES.values() if k == kind)
        assert ours is not None
        store = dtype.get(ours, ours)
        width = "<u1" if store in ("i4", "u4", "i2", "u2") else f"<{store[0]}{int(store[1:]) // 8}"
        return start, _numbers(self.source, spans, width, what)

    # ---- data in other files ----

    def external(self, t: _Tensor, nbytes: int, what: str, at: int) -> Tuple[int, ChunkMaker]:
        numbers = {}
        for key in ("offset", "length"):
            text = t.external.get(key, "0" if key == "offset" else str(nbytes))
            if not (text.isascii() and text.isdecimal() and len(text) < 20):
                raise self.error(f"{what}: external_data has the {key} {shown(text)!r}", at)
            numbers[key] = int(text)
        if numbers["length"] != nbytes:
            raise self.error(f"{what}: {nbytes} bytes are wanted, external_data has {numbers['length']}", at)
        other = self.other_file(t.external.get("location", ""), what, at)
        if numbers["offset"] + nbytes > other.size:
            raise self.error(
                f"truncated: {what} wants bytes {numbers['offset']} to {numbers['offset'] + nbytes} of "
                f"{shown(t.external['location'])}, which has {other.size}", at,
            )  # fmt: skip
        return numbers["offset"], raw_chunks(other, numbers["offset"], nbytes)

    def other_file(self, location: str, what: str, at: int) -> FileSource:
        if location not in self.folders:
            if len(self.folders) >= 64:
                raise self.error("data in more than 64 other files", at)
            self.folders[location] = open_inside(self.source.name, location, lambda reason: self.error(f"{what}: {reason}", at))
        return self.folders[location]

    def check_outside(self) -> None:
        for location in self.folders:
            check_ranges([t for t in self.tensors if self.outside.get(t.name) == location], self.source.name)


def open_inside(model: str, location: str, error: Callable[[str], OinfError]) -> FileSource:
    """A plain file below the model's folder, whatever links say."""
    named = f"external data {shown(location)!r}"
    parts = location.split("/")
    if not location or "\\" in location or "\0" in location or ":" in parts[0] or os.path.isabs(location):
        raise error(f"{named} is not a relative path")
    if ".." in parts:
        raise error(f"{named} leads out of the model's folder")
    root = os.path.realpath(os.path.dirname(model) or ".")
    path = os.path.realpath(os.path.join(root, location))
    if os.path.commonpath([root, path]) != root:
        raise error(f"{named} is a link out of the model's folder")
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):  # the name is resolved: a link here has just been made
            raise error(f"{named} is not a file")
        return FileSource(path)
    except OSError as e:
        raise error(f"{named}: {e.strerror or e}") from None


def _numbers(source: FileSource, spans: List[Span], width: str, what: str) -> ChunkMaker:
    """Varints as little-endian numbers; one that does not fit its type is an error."""

    def make() -> Iterator[BytesLike]:
        np = need_numpy()
        for values in unpack_varints(source, spans, what):
            signed = values.view(np.int64)
            stored = (values if width == "<u8" else signed).astype(width)
            back = stored.astype(values.dtype if width == "<u8" else np.int64)
            if not (back == (values if width == "<u8" else signed)).all():
                i = int(np.argmin(back == signed))
                raise OinfError(f"{what}: the number {int(signed[i])} does not fit its type", source.name)
            yield memoryview(stored.view(np.uint8))

    return make
