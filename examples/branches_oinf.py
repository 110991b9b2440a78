"""Writes the model package for branches.oi: one weight matrix and a bias."""

import dataclasses

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import StreamTensor
from package import uniform, weights, write


@dataclasses.dataclass
class Branches:
    B: int
    D: int
    bias: StreamTensor
    tensors: dict


if __name__ == "__main__":
    write(Branches(B=3, D=8, bias=uniform(1, [8]), tensors={"W.0": weights(10, [8, 8])}))
