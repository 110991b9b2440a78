"""Writes the model package for kv_cache_decode.oi: three layers, a vocabulary of 32, weights in f16."""

import dataclasses

import checkout  # noqa: F401  finds what follows in a checkout
from openinfer.oinf import StreamTensor
from package import uniform, weights, write


@dataclasses.dataclass
class KvCacheDecode:
    B: int
    n_layers: int
    ctx_len: int
    tok_embeddings: StreamTensor
    lm_head: StreamTensor
    tensors: dict


if __name__ == "__main__":
    D, V, L = 16, 32, 3
    tensors = {}
    for n, name in enumerate(("Wq", "Wk", "Wv", "Wo")):
        tensors |= {f"{name}.{l}": weights(100 * n + l + 10, [D, D], "f16") for l in range(L)}
    write(KvCacheDecode(
        B=2, n_layers=L, ctx_len=8,
        tok_embeddings=uniform(1, [V, D]), lm_head=weights(2, [D, V], "f16"), tensors=tensors,
    ))  # fmt: skip
