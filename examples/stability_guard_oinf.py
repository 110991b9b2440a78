"""Writes the model package for stability_guard.oi: one layer and a gain."""

import dataclasses

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import ScalarValue, StreamTensor
from package import weights, write


@dataclasses.dataclass
class StabilityGuard:
    B: int
    D: int
    W: StreamTensor
    gain: ScalarValue


if __name__ == "__main__":
    write(StabilityGuard(B=2, D=8, W=weights(1, [8, 8]), gain=ScalarValue(2.0, "f32")))
