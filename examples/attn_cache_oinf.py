"""Writes the model package for attn_cache.oi: per layer one query matrix, per head a key and a value one."""

import dataclasses

from package import weights, write


@dataclasses.dataclass
class AttnCache:
    B: int
    D: int
    H: int
    Dh: int
    num_layers: int
    tensors: dict


if __name__ == "__main__":
    D, H, Dh, L = 8, 2, 4, 2
    tensors = {f"W.{l}": weights(10 + l, [D, D]) for l in range(L)}
    for l in range(L):
        for n in range(H):
            tensors[f"Wk.{l}.{n}"] = weights(100 + 10 * l + n, [D, Dh])
            tensors[f"Wv.{l}.{n}"] = weights(200 + 10 * l + n, [D, Dh])
    write(AttnCache(B=2, D=D, H=H, Dh=Dh, num_layers=L, tensors=tensors))
