"""Writes the model package for prefix_tables.oi: W.0 ... and attn.HEAD.qkv.LAYER."""

import dataclasses

from package import weights, write


@dataclasses.dataclass
class PrefixTables:
    B: int
    D: int
    n_layers: int
    n_heads: int
    tensors: dict


if __name__ == "__main__":
    D, L, H = 8, 3, 2
    tensors = {f"W.{l}": weights(10 + l, [D, D]) for l in range(L)}
    for l in range(L):
        for h in range(H):
            tensors[f"attn.{h}.qkv.{l}"] = weights(100 + 10 * l + h, [D, 3 * D], "f16")
    write(PrefixTables(B=2, D=D, n_layers=L, n_heads=H, tensors=tensors))
