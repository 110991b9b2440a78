"""Writes the model package for cache_step.oi: ten weight matrices, D = H * Dh."""

import dataclasses

from package import weights, write


@dataclasses.dataclass
class CacheStep:
    B: int
    D: int
    H: int
    Dh: int
    tensors: dict


if __name__ == "__main__":
    layers = {f"W.{l}": weights(10 + l, [8, 8]) for l in range(10)}
    write(CacheStep(B=2, D=8, H=2, Dh=4, tensors=layers))
