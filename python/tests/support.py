"""Shared helpers: where the fixtures are, random packages, raw package surgery."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import openinfer.oinf
from openinfer.oinf import Bitset, QuantParams, QuantScale, QuantZeroPoint, ScalarValue, StreamTensor, UninitializedTensor
from openinfer.oinf.dtypes import TABLE, encode_list

HERE = Path(__file__).resolve().parent
SCALARS = [d for d in TABLE if d.is_scalar]


def shared_folder() -> Optional[Path]:
    """$OPENINFER_SHARED, or the first `shared` beside or above the tests."""
    given = os.environ.get("OPENINFER_SHARED")
    if given:
        return Path(given) if Path(given).is_dir() else None
    for folder in HERE.parents:
        for candidate in (folder / "shared", folder.parent / "shared"):
            if (candidate / "fixtures" / "oinf").is_dir():
                return candidate
    return None


def command_env() -> Dict[str, str]:
    """Environment in which `python -m openinfer.oinf...` finds the package under test."""
    return dict(os.environ, PYTHONPATH=str(Path(openinfer.oinf.__file__).parent.parent))


def random_element(rng: random.Random, d: Any) -> Any:
    if d.is_float:
        return rng.choice([0.0, -0.0, 1.5, float("inf"), rng.uniform(-100, 100), rng.uniform(-1, 1) * 1e-6])
    if d.kind == "bool":
        return rng.random() < 0.5
    if d.name == "t1":
        return rng.choice([-1, 1])
    return rng.randint(d.lo, d.hi)


def random_dims(rng: random.Random, most: int = 4) -> List[int]:
    return [rng.choice([0, 1, 1, 2, 3, 5]) if rng.random() < 0.3 else rng.randint(1, 4) for _ in range(rng.randint(0, most))]


def product(dims: Any) -> int:
    n = 1
    for d in dims:
        n *= d
    return n


def random_name(rng: random.Random) -> str:
    alphabet = "ABCxyz019._-"
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 20)))


def random_quant(rng: random.Random, dims: List[int]) -> Optional[QuantParams]:
    if rng.random() < 0.5:
        return None
    scheme = rng.choice(["symmetric", "asymmetric"])
    if dims and rng.random() < 0.5:
        axis = rng.randrange(len(dims))
        scale = QuantScale.per_channel(axis, [rng.uniform(0.01, 2) for _ in range(dims[axis])])
        zp = QuantZeroPoint.per_channel(axis, [rng.randint(-128, 127) for _ in range(dims[axis])])
    else:
        scale = QuantScale.per_tensor(rng.uniform(0.01, 2))
        zp = QuantZeroPoint.per_tensor(rng.randint(-128, 127))
    return QuantParams(scheme, scale, zp if scheme == "asymmetric" and rng.random() < 0.8 else None)


def random_meta(rng: random.Random) -> Any:
    d = rng.choice(SCALARS)
    pick = rng.randrange(6)
    if pick == 0:
        return ScalarValue(random_element(rng, d), d.name)
    if pick == 1:
        return Bitset([rng.randint(0, 1) for _ in range(rng.randint(0, 40))])
    if pick == 2:
        return random_name(rng)
    if pick == 3:
        return rng.choice(["", "two words", "Gr\u00fc\u00dfe/\u4e16\u754c", 'quo"te\n'])
    if pick == 4:
        return rng.choice([True, False, rng.randint(-(2**63), 2**64 - 1), rng.random()])
    return [rng.randint(-5, 300) for _ in range(rng.randint(0, 12))]


def random_tables(seed: int) -> Tuple[Dict[str, int], Dict[str, Any], Dict[str, Any]]:
    rng = random.Random(seed)
    sizevars = {random_name(rng): rng.randint(0, 2**63 - 1) for _ in range(rng.randint(0, 4))}
    metadata = {random_name(rng): random_meta(rng) for _ in range(rng.randint(0, 6))}
    tensors: Dict[str, Any] = {}
    for _ in range(rng.randint(0, 6)):
        d, dims = rng.choice(SCALARS), random_dims(rng)
        quant = random_quant(rng, dims)
        if rng.random() < 0.2:
            tensors[random_name(rng)] = UninitializedTensor(d.name, dims, quant=quant)
        else:
            raw = encode_list([random_element(rng, d) for _ in range(product(dims))], d)
            tensors[random_name(rng)] = StreamTensor(d.name, dims, raw, quant=quant)
    return sizevars, metadata, tensors


def patch(data: bytes, offset: int, fmt: str, *values: Any) -> bytes:
    out = bytearray(data)
    struct.pack_into(fmt, out, offset, *values)
    return bytes(out)
