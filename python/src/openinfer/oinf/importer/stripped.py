"""An ONNX file without its large weights: those stay where they are and are mapped when they are wanted."""

from __future__ import annotations

import mmap
from typing import Any, Dict, List, Tuple

from ..convert.onnx import GRAPH, MODEL, TENSOR
from ..convert.protobuf import BYTES, Field, Span, Wire
from ..source import FileSource

LARGE = 1 << 12  # bytes of an initialiser that is not read with the rest
STEP = 1 << 24  # bytes of a mapped array that are resident at a time while it is copied


class Copy:
    """Parts of a file, neighbours joined, and bytes between them."""

    def __init__(self, source: FileSource):
        self.source = source
        self.parts: List[bytes] = []
        self.start = self.end = 0

    def field(self, f: Field) -> None:
        if f.at != self.end:
            self.flush()
            self.start = f.at
        self.end = f.span.end

    def flush(self) -> None:
        if self.end > self.start:
            self.parts.append(bytes(self.source.read(self.start, self.end - self.start)))
        self.start = self.end = 0

    def message(self, number: int, data: bytes) -> None:
        self.flush()
        self.parts += [varint(number << 3 | BYTES), varint(len(data)), data]

    def bytes(self) -> bytes:
        self.flush()
        return b"".join(self.parts)


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def without_weights(source: FileSource) -> Tuple[bytes, Dict[int, Span]]:
    """The file's bytes without the raw_data of large initialisers, and where those are, by the initialiser's number."""
    wire = Wire(source)
    model, n = Copy(source), 0
    spans: Dict[int, Span] = {}
    for f in wire.fields(Span(0, source.size), "the model"):
        if f.number != MODEL["graph"] or f.wire != BYTES:
            model.field(f)
            continue
        graph = Copy(source)
        for g in wire.fields(f.span, "the graph"):
            if g.number != GRAPH["initializer"] or g.wire != BYTES:
                graph.field(g)
                continue
            if g.span.size < LARGE:
                graph.field(g)
            else:
                graph.message(GRAPH["initializer"], tensor_without(wire, g, n, spans))
            n += 1
        model.message(MODEL["graph"], graph.bytes())
    return model.bytes(), spans


def tensor_without(wire: Wire, g: Field, n: int, spans: Dict[int, Span]) -> bytes:
    tensor = Copy(wire.source)
    for f in wire.fields(g.span, "an initialiser"):
        if f.number == TENSOR["raw"] and f.wire == BYTES and f.span.size >= LARGE:
            spans[n] = f.span
        else:
            tensor.field(f)
    return tensor.bytes()


def forget(array: Any) -> None:
    """Gives back the memory of a mapped array's pages; they are read again when they are wanted."""
    base = array
    while base is not None and not isinstance(base, mmap.mmap):
        base = getattr(base, "base", None)
    if base is not None and hasattr(base, "madvise"):
        base.madvise(mmap.MADV_DONTNEED)
