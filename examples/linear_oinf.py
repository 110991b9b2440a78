"""Writes the model package for linear.oi: one weight matrix and one bias."""

import dataclasses

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import StreamTensor
from package import uniform, weights, write


@dataclasses.dataclass
class Linear:
    B: int
    D: int
    O: int
    W: StreamTensor
    bias: StreamTensor


if __name__ == "__main__":
    write(Linear(B=4, D=16, O=8, W=weights(1, [16, 8]), bias=uniform(2, [8])))
