"""Writes the model package for moe_routing.oi: a router and four experts."""

import dataclasses

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import StreamTensor
from package import uniform, weights, write


@dataclasses.dataclass
class MoeRouting:
    T: int
    D: int
    H: int
    E: int
    router: StreamTensor
    bias: StreamTensor
    tensors: dict


if __name__ == "__main__":
    T, D, H, E = 6, 8, 16, 4
    experts = {f"experts.{e}.up": weights(10 + e, [D, H]) for e in range(E)}
    experts |= {f"experts.{e}.down": weights(20 + e, [H, D]) for e in range(E)}
    write(MoeRouting(
        T=T, D=D, H=H, E=E,
        router=weights(1, [D, E]), bias=uniform(2, [E, D], -0.1, 0.1), tensors=experts,
    ))  # fmt: skip
