"""Writes the model package for tables.oi: two sizes."""

import dataclasses

from package import write


@dataclasses.dataclass
class Tables:
    D: int = 3
    H: int = 2


if __name__ == "__main__":
    write(Tables())
