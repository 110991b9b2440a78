"""A progress bar on stderr, drawn only for a person: when stderr is a terminal."""

from __future__ import annotations

import sys
import time
from typing import Callable, Iterator, Optional

from ..types import BytesLike
from .weights import ChunkMaker


class Progress:
    """Counts bytes as they are written; draws at most ten times a second."""

    def __init__(self, total: int, shown: Optional[bool] = None, clock: Callable[[], float] = time.monotonic):
        self.total = max(total, 1)
        self.done = 0
        self.shown = sys.stderr.isatty() if shown is None else shown
        self.clock = clock
        self.start = clock()
        self.drawn = self.start

    def watch(self, name: str, chunks: ChunkMaker) -> ChunkMaker:
        def make() -> Iterator[BytesLike]:
            for chunk in chunks():
                yield chunk
                self.add(name, memoryview(chunk).nbytes)

        return make

    def add(self, name: str, nbytes: int) -> None:
        self.done += nbytes
        now = self.clock()
        if self.shown and now - self.drawn >= 0.1:
            self.drawn = now
            self.draw(name, now)

    def draw(self, name: str, now: float) -> None:
        part = min(self.done / self.total, 1.0)
        rate = self.done / 1e6 / max(now - self.start, 1e-9)
        left = (self.total - self.done) / 1e6 / max(rate, 1e-9)
        bar = ("#" * int(part * 30)).ljust(30, ".")
        name = name if len(name) <= 24 else name[:21] + "..."
        sys.stderr.write(f"\r[{bar}] {part:4.0%} {rate:6.0f} MB/s {left:4.0f} s left  {name:24}")
        sys.stderr.flush()

    def close(self) -> None:
        """Take the bar away again."""
        if self.shown and self.drawn != self.start:
            sys.stderr.write("\r" + " " * 79 + "\r")
            sys.stderr.flush()
