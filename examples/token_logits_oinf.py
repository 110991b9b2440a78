"""Writes the model package for token_logits.oi: an embedding table in f32, an output layer in f16."""

import dataclasses

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import StreamTensor
from package import uniform, weights, write


@dataclasses.dataclass
class TokenLogits:
    B: int
    D: int
    V: int
    tok_embeddings: StreamTensor
    lm_head: StreamTensor


if __name__ == "__main__":
    write(TokenLogits(
        B=2, D=32, V=64,
        tok_embeddings=uniform(1, [64, 32]),
        lm_head=weights(2, [32, 64], "f16"),
    ))  # fmt: skip
