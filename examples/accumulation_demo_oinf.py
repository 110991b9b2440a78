"""Writes the model package for accumulation_demo.oi: the same layer in f32 and in i8."""

import dataclasses

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import StreamTensor
from package import uniform, weights, write


@dataclasses.dataclass
class AccumulationDemo:
    B: int
    D: int
    H: int
    w: StreamTensor
    wq: StreamTensor


if __name__ == "__main__":
    write(AccumulationDemo(
        B=4, D=8, H=6,
        w=weights(1, [8, 6]),
        wq=uniform(2, [8, 6], -128, 127, "i8"),
    ))  # fmt: skip
