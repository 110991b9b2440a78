"""A model package, opened."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any, Dict, List, Union

from . import _arrays
from . import _library as c

if TYPE_CHECKING:
    from ._arrays import Array

Path = Union[str, "os.PathLike[str]"]


class Model:
    """`Model("model.oinf")`: sizes and tensors by name. Nothing is read before it is asked for."""

    def __init__(self, path: Path) -> None:
        self._handle = ctypes.c_void_p()
        c.call("oi_model_open", os.fsencode(path), ctypes.byref(self._handle))
        self.path = os.fspath(path)

    @property
    def sizes(self) -> Dict[str, int]:
        lib, found, value = c.library(), {}, ctypes.c_uint64()
        for i in range(lib.oi_model_n_sizevars(self._handle)):
            name = lib.oi_model_sizevar_name(self._handle, i)
            lib.oi_model_size_of(self._handle, name, ctypes.byref(value))
            found[name.decode()] = int(value.value)
        return found

    @property
    def tensors(self) -> List[str]:
        lib = c.library()
        return [lib.oi_model_tensor_name(self._handle, i).decode() for i in range(lib.oi_model_n_tensors(self._handle))]

    def tensor(self, name: str) -> Array:
        """A read-only array over the mapped file; of bf16, f8 and packed types a copy, widened."""
        view = c.View()
        c.call("oi_model_tensor", self._handle, name.encode(), ctypes.byref(view))
        if not view.data and view.n_elements:
            raise c.MissingError([], f"tensor {name!r} has no data")
        found: Any = _arrays.lend(self, view)[0]
        return found  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<openinfer.Model {self.path!r}: {len(self.tensors)} tensors>"

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            c.library().oi_model_close(self._handle)
