"""Protocol buffers' wire format, read in place: a message is a range of the file.

A field is a key (number << 3 | wire type) and a value: 0 varint, 1 eight bytes, 2 a length and as
many bytes, 5 four bytes. Only what is asked for is read; lengths are checked against the message
that holds them, so nothing can reach outside its parent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterator, List, Tuple

from ..source import FileSource
from ..types import BytesLike, OinfError
from .weights import CHUNK, Cursor, need_numpy

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
FIXED_BYTES = {FIXED64: 8, FIXED32: 4}


@dataclass(frozen=True)
class Span:
    """Bytes start .. end of the file."""

    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Field:
    number: int
    wire: int
    at: int
    value: int  # of a varint
    span: Span  # of everything else


class Wire:
    """Fields of messages in one file."""

    def __init__(self, source: FileSource):
        self.source = source
        self.cursor = Cursor(source)

    def error(self, reason: str, at: int) -> OinfError:
        return OinfError(reason, self.source.name, at)

    def varint(self, end: int, what: str) -> int:
        at, value = self.cursor.at, 0
        for shift in range(0, 70, 7):
            if self.cursor.at >= end:
                raise self.error(f"truncated: {what}", at)
            byte = self.cursor.take(1, what)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return value & (1 << 64) - 1
        raise self.error(f"{what} is longer than ten bytes", at)

    def fields(self, span: Span, what: str) -> Iterator[Field]:
        """The fields of the message in order. Other reads between two of them are fine."""
        at = span.start
        while at < span.end:
            self.cursor.at = at
            key = self.varint(span.end, f"a field of {what}")
            number, wire = key >> 3, key & 7
            if not 0 < number < 1 << 29:
                raise self.error(f"{what} has a field with the number {number}", at)
            value = 0
            start = self.cursor.at
            if wire == VARINT:
                value = self.varint(span.end, f"field {number} of {what}")
            elif wire == BYTES:
                size = self.varint(span.end, f"length of field {number} of {what}")
                start = self.cursor.at
                self.cursor.at = start + size
            elif wire in FIXED_BYTES:
                self.cursor.at = start + FIXED_BYTES[wire]
            else:
                raise self.error(f"field {number} of {what} has the unknown wire type {wire}", at)
            end = self.cursor.at
            if end > span.end:
                raise self.error(f"truncated: field {number} of {what} wants {end - start} bytes, {span.end - start} are left", at)
            yield Field(number, wire, at, value, Span(start, end))
            at = end

    def expect(self, field: Field, wire: int, what: str) -> None:
        if field.wire != wire:
            raise self.error(f"{what} has wire type {field.wire}, expected {wire}", field.at)

    def bytes_of(self, field: Field, what: str, most: int) -> bytes:
        self.expect(field, BYTES, what)
        if field.span.size > most:
            raise self.error(f"{what} has {field.span.size} bytes, at most {most} are read", field.at)
        return bytes(self.source.read(field.span.start, field.span.size))

    def text(self, field: Field, what: str, most: int) -> str:
        try:
            return self.bytes_of(field, what, most).decode("utf-8")
        except UnicodeDecodeError:
            raise self.error(f"{what} is not valid UTF-8", field.at) from None

    def signed(self, field: Field, what: str) -> List[int]:
        """One number, or the packed list of them: int32 and int64 fields. At most 64 are wanted."""
        if field.wire == VARINT:
            values = [field.value]
        else:
            self.expect(field, BYTES, what)
            values = []
            self.cursor.at = field.span.start
            while self.cursor.at < field.span.end:
                if len(values) > 64:
                    raise self.error(f"{what}: more than 64 numbers", field.at)
                values.append(self.varint(field.span.end, what))
        return [v - (1 << 64) if v >> 63 else v for v in values]


def unpack_varints(source: FileSource, spans: List[Span], what: str) -> Iterator[Any]:
    """Arrays of u64: the varints of packed fields, some at a time."""
    np = need_numpy()
    for span in spans:
        at = span.start
        while at < span.end:
            raw = np.frombuffer(source.read(at, min(CHUNK, span.end - at)), np.uint8)
            last = np.flatnonzero(raw < 128)
            if not last.size:
                raise OinfError(f"{what}: a number is longer than ten bytes or truncated", source.name, at)
            first = np.concatenate([[0], last[:-1] + 1])
            length = last - first + 1
            if int(length.max()) > 10:
                raise OinfError(f"{what}: a number is longer than ten bytes", source.name, at)
            values = np.zeros(last.size, np.uint64)
            for k in range(int(length.max())):
                some = length > k
                values[some] |= (raw[first[some] + k] & 127).astype(np.uint64) << np.uint64(7 * k)
            yield values
            at += int(last[-1]) + 1


def read_spans(source: FileSource, spans: List[Span]) -> Iterator[BytesLike]:
    for span in spans:
        for at in range(span.start, span.end, CHUNK):
            yield source.read(at, min(CHUNK, span.end - at))


def count_varints(source: FileSource, spans: List[Span]) -> int:
    np = need_numpy()
    return sum(int(np.count_nonzero(np.frombuffer(raw, np.uint8) < 128)) for raw in read_spans(source, spans))


