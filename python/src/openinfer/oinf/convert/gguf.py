"""GGUF: a header with typed key-value pairs, tensor infos, then aligned tensor data.

    "GGUF" version:u32 n_tensors:u64 n_pairs:u64
    pair:   key:string type:u32 value
    tensor: name:string n_dims:u32 dims:u64[n_dims] type:u32 offset:u64 (from the start of the data)

Dims are stored with the fastest first; ours are the reverse, so a weight is [N, K]. Everything
is checked against the file's size before it is used: counts, lengths, products, ranges.
"""

from __future__ import annotations

import struct
from typing import Any, Dict, List, Tuple

from ..source import FileSource
from ..types import ArrayValue, OinfError, ScalarValue
from .blocks import FORMATS, block_parts, real_part
from .weights import (
    MAX_ENTRIES, MAX_NAME, Cursor, Part, SourceTensor, StringList, Weights, check_ranges, checked_numel, need_numpy, raw_chunks, shape_text,
    shown,
)  # fmt: skip

MAGIC = b"GGUF"
MAX_DIMS = 4
MIN_PAIR = 8 + 4 + 1  # an empty key and one byte
MIN_TENSOR = 8 + 4 + 4 + 8

# number -> name, struct letter
VALUES = {
    0: ("u8", "B"), 1: ("i8", "b"), 2: ("u16", "H"), 3: ("i16", "h"), 4: ("u32", "I"), 5: ("i32", "i"),
    6: ("f32", "f"), 7: ("bool", "?"), 10: ("u64", "Q"), 11: ("i64", "q"), 12: ("f64", "d"),
}  # fmt: skip
STRING, ARRAY = 8, 9

# number -> name, weights in a block, bytes of a block
TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 40), 10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292), 16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50), 20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136), 24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8),
    28: ("F64", 1, 8), 29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17),
}  # fmt: skip
PLAIN = {"F32": "f32", "F16": "f16", "BF16": "bf16", "F64": "f64", "I8": "i8", "I16": "i16", "I32": "i32", "I64": "i64"}


def open_gguf(path: str) -> Weights:
    source = FileSource(path)
    try:
        return _Reader(source).weights()
    except BaseException:
        source.close()
        raise


class _Reader:
    def __init__(self, source: FileSource):
        self.source = source
        self.path = source.name
        self.cursor = Cursor(source)
        self.length_bytes = 8

    def weights(self) -> Weights:
        n_tensors, n_pairs = self.header()
        metadata = self.pairs(n_pairs)
        infos = self.infos(n_tensors)
        tensors = self.place(infos, self.alignment(metadata))
        return Weights(self.path, "GGUF", self.source.size, tensors, metadata, self.source.close)

    def error(self, reason: str, at: int) -> OinfError:
        return OinfError(reason, self.path, at)

    def header(self) -> Tuple[int, int]:
        c = self.cursor
        if bytes(c.take(4, "magic")) != MAGIC:
            raise self.error("not a GGUF file: it does not begin with 'GGUF'", 0)
        version = c.uint(4, "version")
        if version in (2 << 24, 3 << 24):
            raise self.error("GGUF in big-endian order is not supported", 4)
        if version not in (2, 3):
            raise self.error(f"GGUF version {version} is not supported (2 and 3 are)", 4)
        n_tensors = self.entries(MIN_TENSOR, "tensors")
        return n_tensors, self.entries(MIN_PAIR, "key-value pairs")

    def entries(self, smallest: int, what: str) -> int:
        n = self.count(smallest, what)
        if n > MAX_ENTRIES:
            raise self.error(f"{n} {what}, at most {MAX_ENTRIES} are read", self.cursor.at - 8)
        return n

    def count(self, smallest: int, what: str) -> int:
        at = self.cursor.at
        n = self.cursor.uint(8, f"number of {what}")
        if n > self.cursor.left() // smallest:
            raise self.error(f"{n} {what} do not fit in the {self.cursor.left()} bytes that are left", at)
        return n

    def string(self, what: str) -> bytes:
        at = self.cursor.at
        n = self.cursor.uint(8, f"length of {what}")
        if n > self.cursor.left():
            raise self.error(f"truncated: {what} of {n} bytes, {self.cursor.left()} are left", at)
        return bytes(self.cursor.take(n, what))

    def name(self, what: str) -> str:
        at = self.cursor.at
        raw = self.string(what)
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise self.error(f"{what} is not valid UTF-8", at) from None
        if not text or len(raw) > MAX_NAME:
            raise self.error(f"{what} has {len(raw)} bytes, 1 to {MAX_NAME} are allowed", at)
        return text

    # ---- key-value pairs ----

    def pairs(self, n: int) -> Dict[str, Any]:
        found: Dict[str, Any] = {}
        for i in range(n):
            at = self.cursor.at
            key = self.name(f"key {i}")
            if key in found:
                raise self.error(f"duplicate key {shown(key)!r}", at)
            kind = self.cursor.uint(4, f"type of {shown(key)!r}")
            found[key] = self.value(kind, shown(key))
        return found

    def value(self, kind: int, key: str) -> Any:
        at = self.cursor.at
        if kind == STRING:
            return self.text(self.string(f"value of {key!r}"))
        if kind == ARRAY:
            return self.array(key)
        if kind not in VALUES:
            raise self.error(f"key {key!r} has the unknown type {kind}", at - 4)
        dtype, letter = VALUES[kind]
        raw = self.cursor.take(struct.calcsize("<" + letter), f"value of {key!r}")
        return ScalarValue(struct.unpack("<" + letter, raw)[0], dtype)

    @staticmethod
    def text(raw: bytes) -> Any:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return ArrayValue(raw, "u8")  # not text after all; kept as its bytes

    def array(self, key: str) -> Any:
        at = self.cursor.at
        kind = self.cursor.uint(4, f"element type of {key!r}")
        if kind == STRING:
            strings = StringList()
            for _ in range(self.count(8, f"strings of {key!r}")):
                strings.append(self.string(f"a string of {key!r}"))
            return strings
        if kind not in VALUES:
            what = "arrays" if kind == ARRAY else f"the unknown type {kind}"
            raise self.error(f"key {key!r} is an array of {what}", at)
        dtype, letter = VALUES[kind]
        size = struct.calcsize("<" + letter)
        n = self.count(size, f"values of {key!r}")
        np = need_numpy()
        raw = bytes(self.cursor.take(n * size, f"values of {key!r}"))
        if dtype == "bool":
            return ArrayValue(np.frombuffer(raw, np.uint8) != 0, "bool")
        return ArrayValue(np.frombuffer(raw, "<" + letter), dtype)

    def alignment(self, metadata: Dict[str, Any]) -> int:
        found = metadata.get("general.alignment")
        if found is None:
            return 32
        value = found.value if isinstance(found, ScalarValue) else None
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1 << 20 or value & (value - 1):
            raise self.error("general.alignment is not a power of two from 1 to 2^20", self.cursor.at)
        return value

    # ---- tensors ----

    def infos(self, n: int) -> List[Tuple[str, Tuple[int, ...], int, int, int]]:
        found = []
        seen = set()
        for i in range(n):
            at = self.cursor.at
            name = self.name(f"name of tensor {i}")
            if name in seen:
                raise self.error(f"duplicate tensor {shown(name)!r}", at)
            seen.add(name)
            what = f"tensor {shown(name)!r}"
            n_dims = self.cursor.uint(4, f"{what}: number of dimensions")
            if n_dims > MAX_DIMS:
                raise self.error(f"{what} has {n_dims} dimensions, at most {MAX_DIMS} are allowed", at)
            dims = tuple(self.cursor.uint(8, f"{what}: dimensions") for _ in range(n_dims))[::-1]
            kind = self.cursor.uint(4, f"{what}: type")
            found.append((name, dims, kind, self.cursor.uint(8, f"{what}: offset"), at))
        return found

    def place(self, infos: List[Tuple[str, Tuple[int, ...], int, int, int]], alignment: int) -> List[SourceTensor]:
        start = -(-self.cursor.at // alignment) * alignment
        tensors = []
        for name, dims, kind, offset, at in infos:
            what = f"tensor {shown(name)!r}"
            if kind not in TYPES:
                raise self.error(f"{what} has the unknown type {kind}", at)
            type_name, block, block_bytes = TYPES[kind]
            numel = checked_numel(dims, what, self.path, at)
            if block > 1 and (not dims or dims[-1] % block):
                raise self.error(f"{what}: {type_name} wants rows of a multiple of {block}, found {shape_text(dims)}", at)
            nbytes = numel // block * block_bytes
            if offset % alignment:
                raise self.error(f"{what}: offset {offset} is not a multiple of {alignment}", at)
            if nbytes > self.source.size or start + offset > self.source.size - nbytes:
                raise self.error(
                    f"truncated: {what} wants bytes {start + offset} to {start + offset + nbytes}, "
                    f"the file has {self.source.size}", at,
                )  # fmt: skip
            tensors.append(self.tensor(name, type_name, dims, start + offset, nbytes))
        check_ranges(tensors, self.path)
        return tensors

    def tensor(self, name: str, kind: str, dims: Tuple[int, ...], offset: int, nbytes: int) -> SourceTensor:
        if kind in PLAIN:
            parts = [Part("", PLAIN[kind], dims, raw_chunks(self.source, offset, nbytes))]
            return SourceTensor(name, kind, dims, offset, nbytes, parts)
        f = FORMATS.get(kind)
        if f is None:
            return SourceTensor(name, kind, dims, offset, nbytes, None)
        return SourceTensor(
            name, kind, dims, offset, nbytes, block_parts(f, self.source, offset, dims), f.group,
            real_part(f, self.source, offset, dims),
        )  # fmt: skip
