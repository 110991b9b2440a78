"""Writes the model package for streaming_pipeline.oi: the weights of two stages."""

import dataclasses

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import StreamTensor
from package import uniform, weights, write


@dataclasses.dataclass
class StreamingPipeline:
    B: int
    D: int
    O: int
    w: StreamTensor
    bias: StreamTensor
    head: StreamTensor


if __name__ == "__main__":
    write(StreamingPipeline(
        B=4, D=16, O=3,
        w=weights(1, [16, 16]), bias=uniform(2, [16], -0.1, 0.1), head=weights(3, [16, 3]),
    ))  # fmt: skip
