"""Writes the model package for ordering.oi: two weight matrices."""

import dataclasses

from package import weights, write


@dataclasses.dataclass
class Ordering:
    B: int
    D: int
    tensors: dict


if __name__ == "__main__":
    write(Ordering(B=2, D=8, tensors={f"W.{l}": weights(10 + l, [8, 8]) for l in range(2)}))
