"""Writes the model package for memory_kinds.oi: a tensor and three numbers as metadata."""

import dataclasses

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import ScalarValue, StreamTensor
from package import uniform, write


@dataclasses.dataclass
class MemoryKinds:
    B: int
    a: StreamTensor
    alpha: ScalarValue
    beta: ScalarValue
    gamma: ScalarValue


if __name__ == "__main__":
    write(MemoryKinds(
        B=16, a=uniform(1, [16]),
        alpha=ScalarValue(2.0, "f32"), beta=ScalarValue(0.5, "f32"), gamma=ScalarValue(-0.25, "f32"),
    ))  # fmt: skip
