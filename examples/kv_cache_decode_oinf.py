"""Writes the model package for kv_cache_decode.oi: two layers, two heads, a vocabulary of 32."""

import dataclasses

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import StreamTensor
from package import uniform, weights, write


@dataclasses.dataclass
class KvCacheDecode:
    B: int
    D: int
    V: int
    n_layers: int
    n_heads: int
    ctx_len: int
    tok_embeddings: StreamTensor
    lm_head: StreamTensor
    tensors: dict


if __name__ == "__main__":
    D, V, L = 16, 32, 2
    tensors = {}
    for n, name in enumerate(("Wq", "Wk", "Wv", "Wo")):
        tensors |= {f"{name}.{l}": weights(100 * n + l + 10, [D, D]) for l in range(L)}
    write(KvCacheDecode(
        B=2, D=D, V=V, n_layers=L, n_heads=2, ctx_len=8,
        tok_embeddings=uniform(1, [V, D]), lm_head=weights(2, [D, V]), tensors=tensors,
    ))  # fmt: skip
