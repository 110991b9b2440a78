"""Where a package's bytes come from: memory, a mapping, or positioned reads.

A mapping is fast and shares pages, but a file that shrinks under it can kill the process
the moment a lost page is touched. Each access therefore asks for the file's size first,
which turns the common case into an error; a file cut between the check and the touch, or
while a numpy view is in use, is beyond what can be caught. `FileSource` reads instead of
mapping and always gives an error.
"""

from __future__ import annotations

import io
import mmap
import os
import stat
from typing import BinaryIO, Union

from .types import BytesLike, OinfError


class Source:
    """`size` bytes; `read` lends a view or returns a copy of some of them."""

    size: int
    name: str

    def read(self, offset: int, nbytes: int) -> BytesLike:
        raise NotImplementedError

    def close(self) -> None:
        pass


class MemorySource(Source):
    def __init__(self, data: BytesLike):
        self._view = memoryview(data).cast("B").toreadonly()
        self.size = len(self._view)
        self.name = "<memory>"

    def read(self, offset: int, nbytes: int) -> BytesLike:
        return self._view[offset : offset + nbytes]


def open_regular(path: Union[str, "os.PathLike[str]"]) -> io.FileIO:
    """The file, unbuffered. A named pipe is refused instead of waited for."""
    file = io.FileIO(os.fspath(path), opener=lambda p, flags: os.open(p, flags | getattr(os, "O_NONBLOCK", 0)))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OinfError("not a regular file", os.fspath(path), 0)
    return file


class FileSource(Source):
    def __init__(self, path: Union[str, "os.PathLike[str]"]):
        self.name = os.fspath(path)
        self._file = open_regular(path)
        self.size = os.fstat(self._file.fileno()).st_size

    @property
    def file(self) -> BinaryIO:
        return self._file

    def read(self, offset: int, nbytes: int) -> BytesLike:
        parts = []
        at = offset
        while at < offset + nbytes:
            self._file.seek(at)
            part = self._file.read(offset + nbytes - at)
            if not part:
                raise OinfError("file became shorter while open", self.name, at)
            parts.append(part)
            at += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        self._file.close()


class MappedSource(FileSource):
    def __init__(self, path: Union[str, "os.PathLike[str]"]):
        super().__init__(path)
        self._map = None
        if self.size:
            self._map = mmap.mmap(self._file.fileno(), self.size, access=mmap.ACCESS_READ)
            self._view = memoryview(self._map)

    def read(self, offset: int, nbytes: int) -> BytesLike:
        now = os.fstat(self._file.fileno()).st_size
        if now < offset + nbytes:
            raise OinfError("file became shorter while open", self.name, now)
        return self._view[offset : offset + nbytes] if self._map is not None else b""

    def close(self) -> None:
        super().close()
        if self._map is not None:
            try:
                self._view.release()
                self._map.close()
            except BufferError:
                pass  # views are still lent out; the mapping ends with the last of them
            self._map = None
