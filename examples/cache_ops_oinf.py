"""Writes the model package for cache_ops.oi: one size."""

import dataclasses

from package import write


@dataclasses.dataclass
class CacheOps:
    D: int = 3


if __name__ == "__main__":
    write(CacheOps())
