"""Writes the model package for gated_mlp.oi: two layers, an output layer in f16."""

import dataclasses

import checkout  # noqa: F401  finds what follows in a checkout
from openinfer.oinf import StreamTensor
from package import uniform, weights, write


@dataclasses.dataclass
class GatedMlp:
    B: int
    D: int
    n_layers: int
    head: StreamTensor
    tensors: dict


if __name__ == "__main__":
    D, H, L = 12, 20, 2
    tensors = {"norm.out": uniform(1, [D], 0.5, 1.5)}
    for l in range(L):
        tensors[f"norm.{l}"] = uniform(10 + l, [D], 0.5, 1.5)
        tensors[f"up.{l}"] = weights(20 + l, [D, 2 * H])
        tensors[f"down.{l}"] = weights(30 + l, [H, D])
    write(GatedMlp(B=3, D=D, n_layers=L, head=uniform(2, [16, D], -0.5, 0.5, "f16"), tensors=tensors))
