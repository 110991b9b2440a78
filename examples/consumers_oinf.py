"""Writes the model package for consumers.oi: one weight matrix and a factor."""

import dataclasses

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import ScalarValue
from package import weights, write


@dataclasses.dataclass
class Consumers:
    B: int
    D: int
    scale: ScalarValue
    tensors: dict


if __name__ == "__main__":
    write(Consumers(B=4, D=8, scale=ScalarValue(0.5, "f32"), tensors={"W.0": weights(10, [8, 8])}))
