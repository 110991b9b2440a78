"""Writes the model package for residual_mlp.oi: three layers under numbered names."""

import dataclasses

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import StreamTensor
from package import uniform, weights, write


@dataclasses.dataclass
class ResidualMlp:
    B: int
    D: int
    num_layers: int
    bias0: StreamTensor
    tensors: dict  # names with dots cannot be field names; every entry becomes a tensor


if __name__ == "__main__":
    D, L = 32, 3
    layers = {f"res.mlp.w.{l}": weights(10 + l, [D, D]) for l in range(L)}
    layers |= {f"res.mlp.b.{l}": uniform(20 + l, [D], -0.1, 0.1) for l in range(L)}
    write(ResidualMlp(B=4, D=D, num_layers=L, bias0=uniform(1, [D], -0.1, 0.1), tensors=layers))
