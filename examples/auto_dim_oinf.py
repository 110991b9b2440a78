"""Writes the model package for auto_dim.oi: the sizes the matrices start with."""

import dataclasses

from package import write


@dataclasses.dataclass
class AutoDim:
    D: int = 2
    H: int = 3


if __name__ == "__main__":
    write(AutoDim())
