"""Writes the model package for overview.oi: three weight matrices and two settings."""

import dataclasses

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import ScalarValue
from package import weights, write


@dataclasses.dataclass
class Overview:
    B: int
    D: int
    alpha: ScalarValue
    num_layers: ScalarValue
    tensors: dict


if __name__ == "__main__":
    write(Overview(
        B=2, D=8,
        alpha=ScalarValue(0.1, "f32"),
        num_layers=ScalarValue(3, "u32"),
        tensors={f"W.{l}": weights(10 + l, [8, 8]) for l in range(3)},
    ))  # fmt: skip
