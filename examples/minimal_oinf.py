"""Writes the model package that examples/minimal.oi uses: B := 1024 and a: f32[B].

    python examples/minimal_oinf.py [minimal.oinf]
"""

import dataclasses
import math
import sys

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import SizeVar, TensorSpec, write_oinf


@dataclasses.dataclass
class Minimal:
    B: SizeVar
    a: TensorSpec
    mode: str = "demo"


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else "minimal.oinf"
    n = 1024
    wave = [math.sin(2 * math.pi * i / n) for i in range(n)]
    write_oinf(Minimal(B=SizeVar(n), a=TensorSpec(wave, dtype="f32")), path)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
