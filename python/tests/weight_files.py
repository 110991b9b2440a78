"""Small files of other formats, written byte by byte so that tests can also write wrong ones."""

from __future__ import annotations

import json
import os
import random
import struct
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

import pytest
from openinfer.oinf import OinfError, read_oinf
from openinfer.oinf.convert import convert
from openinfer.oinf.convert.plan import Options

GGUF_VALUES = {"u8": (0, "B"), "i8": (1, "b"), "u16": (2, "H"), "i16": (3, "h"), "u32": (4, "I"), "i32": (5, "i"),
               "f32": (6, "f"), "bool": (7, "?"), "u64": (10, "Q"), "i64": (11, "q"), "f64": (12, "d")}  # fmt: skip


def gguf_string(text: Any) -> bytes:
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw


def gguf_value(kind: str, value: Any) -> bytes:
    """kind: a scalar type, str, or one of these with [] behind it."""
    if kind == "str":
        return struct.pack("<I", 8) + gguf_string(value)
    if kind == "str[]":
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(gguf_string(v) for v in value)
    if kind.endswith("[]"):
        number, letter = GGUF_VALUES[kind[:-2]]
        return struct.pack(f"<IIQ{len(value)}{letter}", 9, number, len(value), *value)
    number, letter = GGUF_VALUES[kind]
    return struct.pack("<I" + letter, number, value)


def gguf_bytes(
    tensors: Sequence[Tuple[str, Sequence[int], int, bytes]], pairs: Sequence[Tuple[str, str, Any]] = (),
    version: int = 3, align: int = 32,
) -> bytes:
    """tensors: name, dims (ours: slowest first), type number, data."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs))
    for key, kind, value in pairs:
        head += gguf_string(key) + gguf_value(kind, value)
    data = b""
    for name, dims, number, raw in tensors:
        head += gguf_string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *reversed(dims), number, len(data))
        data += raw + bytes(-len(raw) % align)
    return head + bytes(-len(head) % align) + data


def converted(tmp_path: Path, data: bytes, name: str, **options: Any) -> Any:
    """The package a file becomes, opened strictly."""
    source = tmp_path / name
    source.write_bytes(data)
    output = tmp_path / "out.oinf"
    convert([str(source)], str(output), Options(**options))
    package = read_oinf(output, strict=True)
    assert not [w for w in package.warnings if "oi." not in w], package.warnings
    return package


def refused(tmp_path: Path, data: bytes, name: str, **options: Any) -> str:
    """The error a file gives: one line that names the file, and nothing left behind."""
    source = tmp_path / name
    source.write_bytes(data)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(OinfError) as e:
        convert([str(source)], str(tmp_path / "out.oinf"), Options(**options))
    assert sorted(os.listdir(tmp_path)) == before
    text = str(e.value)
    assert "\n" not in text and str(source) in text, text
    return text


def mutants(data: bytes, seed: int, count: int) -> Iterable[bytes]:
    """Cut, flipped, overwritten with extremes, spliced: the same ones every time."""
    rng = random.Random(seed)
    extremes = [0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1]
    for _ in range(count):
        out = bytearray(data)
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            at = rng.randrange(len(out)) if out else 0
            pick = rng.randrange(6)
            if pick == 0:
                del out[at:]
            elif pick == 1 and out:
                out[at] ^= 1 << rng.randrange(8)
            elif pick == 2 and out:
                out[at] = rng.randrange(256)
            elif pick == 3:
                value = rng.choice(extremes)
                width = rng.choice([1, 2, 4, 8])
                out[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "little")
            elif pick == 4:
                del out[at : at + rng.randrange(1, 16)]
            else:
                start = rng.randrange(len(out)) if out else 0
                out[at:at] = out[start : start + rng.randrange(1, 24)]
        yield bytes(out)


def survive(tmp_path: Path, data: bytes, name: str, seed: int, count: int) -> None:
    """Every mutant converts to a valid package or gives our one-line error; nothing else."""
    source, output = tmp_path / name, tmp_path / "out.oinf"
    refusals = 0
    for i, mutant in enumerate(mutants(data, seed, count)):
        source.write_bytes(mutant)
        try:
            convert([str(source)], str(output), kind=name.rpartition(".")[2])
        except OinfError as e:
            refusals += 1
            assert "\n" not in str(e), f"mutant {i}"
            assert os.listdir(tmp_path) == [name] if not output.exists() else True
        except Exception as e:
            raise AssertionError(f"mutant {i} of seed {seed}") from e
        else:
            with read_oinf(output) as package:
                for tensor in package.tensors.values():
                    tensor.raw()
            output.unlink()
    assert count // 4 < refusals < count  # else the mutations miss the format, or it cannot be read at all
    assert os.listdir(tmp_path) == [name]


def model_file(pattern: str) -> Path:
    """A real model: below $OPENINFER_MODELS, or where `make models` puts them."""
    root = Path(os.environ.get("OPENINFER_MODELS") or Path(__file__).resolve().parents[2] / "build" / "models")
    found = sorted(root.rglob(pattern)) if root.is_dir() else []
    if not found:
        pytest.skip(f"no {pattern} below {root}: set OPENINFER_MODELS")
    return found[0]


# ---- safetensors ------------------------------------------------------------------------------


def safetensors_bytes(header: Any, data: bytes = b"") -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


# ---- ONNX -----------------------------------------------------------------------------------


def varint(n: int) -> bytes:
    n %= 1 << 64
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def pb(number: int, value: Any) -> bytes:
    """One field: an int as varint, bytes and texts with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def onnx_tensor(name: str, dims: Sequence[int], kind: int, *fields: bytes) -> bytes:
    return b"".join(pb(1, d) for d in dims) + pb(2, kind) + b"".join(fields) + pb(8, name)


def onnx_model(*tensors: bytes, nodes: Sequence[bytes] = ()) -> bytes:
    graph = b"".join(pb(1, n) for n in nodes) + pb(2, "g") + b"".join(pb(5, t) for t in tensors)
    return pb(1, 8) + pb(2, "test") + pb(7, graph) + pb(8, pb(1, "") + pb(2, 21))


def onnx_external(name: str, dims: Sequence[int], kind: int, **entries: Any) -> bytes:
    pairs = [pb(13, pb(1, k) + pb(2, str(v))) for k, v in entries.items()]
    return onnx_tensor(name, dims, kind, *pairs, pb(14, 1))
