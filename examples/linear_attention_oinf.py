"""Writes the model package for linear_attention.oi: three projections and the decay."""

import dataclasses

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import ScalarValue, StreamTensor
from package import weights, write


@dataclasses.dataclass
class LinearAttention:
    D: int
    K: int
    Wq: StreamTensor
    Wk: StreamTensor
    Wv: StreamTensor
    decay: ScalarValue


if __name__ == "__main__":
    write(LinearAttention(
        D=16, K=8,
        Wq=weights(1, [16, 8]), Wk=weights(2, [16, 8]), Wv=weights(3, [16, 16]),
        decay=ScalarValue(0.9, "f32"),
    ))  # fmt: skip
