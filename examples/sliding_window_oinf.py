"""Writes the model package for sliding_window.oi: only two sizes, no weights."""

import dataclasses

from package import write


@dataclasses.dataclass
class SlidingWindow:
    D: int = 4
    N: int = 5


if __name__ == "__main__":
    write(SlidingWindow())
