"""Writes the model package for quantised_linear.oi.

The weights start as real numbers and are quantised here, one scale per output column.
"""

import dataclasses

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import ScalarValue, StreamTensor, TensorSpec
from openinfer.oinf.random import random_values
from package import uniform, write


@dataclasses.dataclass
class QuantisedLinear:
    B: int
    D: int
    H: int
    O: int
    w8: TensorSpec
    w8_scale: TensorSpec
    b8: StreamTensor
    w4: TensorSpec
    w4_scale: TensorSpec
    x_scale: ScalarValue
    h_scale: ScalarValue


def quantise(seed, rows, columns, largest, dtype):
    """Integers in -largest...largest and the scale that turns each column back."""
    flat = random_values("f32", seed, -0.5, 0.5, rows * columns)
    real = [flat[r * columns : (r + 1) * columns] for r in range(rows)]
    scale = [max(abs(row[c]) for row in real) / largest for c in range(columns)]
    q = [[round(row[c] / scale[c]) for c in range(columns)] for row in real]
    return TensorSpec(q, dtype), TensorSpec(scale, "f32")


if __name__ == "__main__":
    w8, w8_scale = quantise(1, 16, 33, 127, "i8")
    w4, w4_scale = quantise(2, 33, 5, 7, "i4")  # odd sizes: the last byte is half empty
    write(QuantisedLinear(
        B=3, D=16, H=33, O=5,
        w8=w8, w8_scale=w8_scale, b8=uniform(3, [33], -0.1, 0.1), w4=w4, w4_scale=w4_scale,
        x_scale=ScalarValue(1 / 64, "f32"), h_scale=ScalarValue(0.25, "f32"),
    ))  # fmt: skip
