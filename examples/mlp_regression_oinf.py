"""Writes the model package for mlp_regression.oi: two layers, 16 -> 32 -> 8."""

import dataclasses

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import StreamTensor
from package import uniform, weights, write


@dataclasses.dataclass
class MlpRegression:
    B: int
    D: int
    H: int
    O: int
    w1: StreamTensor
    b1: StreamTensor
    w2: StreamTensor
    b2: StreamTensor


if __name__ == "__main__":
    write(MlpRegression(
        B=4, D=16, H=32, O=8,
        w1=weights(1, [16, 32]), b1=uniform(2, [32], -0.1, 0.1),
        w2=weights(3, [32, 8]), b2=uniform(4, [8], -0.1, 0.1),
    ))  # fmt: skip
