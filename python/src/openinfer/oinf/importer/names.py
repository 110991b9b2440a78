"""Names of ONNX become identifiers of the graph text and keys of the package."""

from __future__ import annotations

import re
from typing import Dict, List, Set, Tuple

# words that begin a statement or mean something as an argument
RESERVED = set(
    "block op assign loop branch return yield await transfer barrier dep cache true false inf nan entry graph model "
    "inputs state let output dynamic volatile constant constants persistent f8 bf16 f16 f32 f64 i1 i2 i4 i8 i16 i32 "
    "i64 u1 u2 u4 u8 u16 u32 u64 t1 t2 bool bitset none f8e5m2 float8e5m2".split()
)
LONGEST = 60


def split_scope(name: str) -> Tuple[str, str]:
    """A tensor's scope and its last part: '/enc/layer.0/MatMul_output_0' -> ('enc/layer.0', 'MatMul')."""
    text = re.sub(r"_output_0$|:0$", "", name.strip("/"))
    scope, _, last = text.rpartition("/")
    return joined(scope), last


def joined(scope: str) -> str:
    """torch says the name of a list again before each of its entries: 'mlp/mlp.0' -> 'mlp.0'."""
    parts: List[str] = []
    for part in scope.split("/"):
        if parts and part.startswith(parts[-1] + "."):
            parts.pop()
        parts.append(part)
    return "/".join(parts)


def identifier(text: str, fallback: str = "v") -> str:
    word = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_")[:LONGEST].rstrip("_")
    if not word:
        word = fallback
    if word[0].isdigit():
        word = f"{fallback}{word}"
    return word + "_" if word in RESERVED else word


def key_of(text: str) -> str:
    """A package key keeps dots; everything that the format does not take becomes '_'."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text.strip("/").replace("/", "."))[:65535].strip("_") or "tensor"


class Unique:
    """Gives every text a name of its own: name, name_2, name_3 ..."""

    def __init__(self) -> None:
        self.taken: Set[str] = set()
        self.next: Dict[str, int] = {}

    def __call__(self, name: str) -> str:
        n = self.next.get(name, 1)
        stem = name.rstrip("_") or name
        candidate = name if n == 1 else f"{stem}_{n}"
        while candidate in self.taken:
            n += 1
            candidate = f"{stem}_{n}"
        self.next[name] = n + 1
        self.taken.add(candidate)
        return candidate
