"""Writes the model package for minimal.oi: an embedding table in f32, an output layer in f16."""

import dataclasses

import checkout  # noqa: F401  finds what follows in a checkout
from openinfer.oinf import StreamTensor
from package import uniform, weights, write


@dataclasses.dataclass
class Minimal:
    B: int
    tok_embeddings: StreamTensor
    lm_head: StreamTensor


if __name__ == "__main__":
    write(Minimal(B=1, tok_embeddings=uniform(1, [64, 32]), lm_head=weights(2, [32, 64], "f16")))
