"""Tensors of the library as numpy arrays, and back."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

from . import _library as c

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

# oi_dtype of openinfer.h: what numpy has ...
NATIVE: Dict[int, str] = {1: "i1", 2: "<i2", 3: "<i4", 4: "<i8", 5: "u1", 6: "<u2", 7: "<u4", 8: "<u8", 9: "<f2", 10: "<f4", 11: "<f8", 12: "?"}
# ... and what is widened: bf16, f8, i4 i2 i1, u4 u2 u1, t2 t1, to the type beside it
WIDENED: Dict[int, int] = {16: 10, 17: 10, 18: 1, 19: 1, 20: 1, 21: 5, 22: 5, 23: 5, 24: 1, 25: 1}
BITSET = 13


def dtype_name(tag: int) -> str:
    return str(c.library().oi_dtype_name(tag).decode())


class Lender:
    """Memory of somebody who must outlive the arrays made of it."""

    def __init__(self, owner: Any, view: c.View, shape: Tuple[int, ...]) -> None:
        self.owner = owner
        self.__array_interface__ = {"shape": shape, "typestr": NATIVE[view.dtype], "data": (view.data or 0, True), "version": 3}


def shape_of(view: c.View) -> Tuple[int, ...]:
    return tuple(view.dims[i] for i in range(view.rank))


def lend(owner: Any, view: c.View) -> Tuple[Any, Optional[Lender]]:
    """A read-only array over the library's own memory, and what keeps that alive; of a type that numpy lacks a copy
    with every element widened, and None."""
    import numpy as np

    shape = shape_of(view)
    if view.dtype in NATIVE and view.n_elements:
        lender = Lender(owner, view, shape)
        return np.asarray(lender), lender
    if view.dtype == BITSET:
        bits = np.frombuffer(ctypes.string_at(view.data, view.size_bytes), np.uint8)
        return np.unpackbits(bits, bitorder="little")[: view.n_elements].astype(bool).reshape(shape), None
    tag = WIDENED.get(view.dtype, view.dtype)
    out = np.zeros(shape, NATIVE[tag])
    if view.n_elements:
        c.library().oi_convert(tag, out.ctypes.data, view.dtype, view.data, view.n_elements)
    return out, None


def prepared(name: str, value: Any, tag: int) -> Tuple[c.View, Any]:
    """A value as the library takes it for a variable of this type, and what must live during the call. Numbers and
    lists become that type; an array must have it, or the type it is widened to."""
    import numpy as np

    loose = not isinstance(value, (np.ndarray, np.generic)) and not hasattr(value, "__array_interface__")
    if loose and hasattr(value, "__array__"):
        value, loose = np.asarray(value), False
    wide = WIDENED.get(tag, tag)
    if loose:
        array: Any = np.asarray(value, dtype=NATIVE.get(wide), order="C")
        if array.dtype.kind in "iu" and not np.array_equal(array, np.asarray(value)):
            raise TypeError(f"{name}: {value!r} does not fit {dtype_name(tag)}")
    else:
        array = np.asarray(value, order="C")
    if wide not in NATIVE:
        raise TypeError(f"{name}: values of {dtype_name(tag)} cannot be given from Python")
    if array.dtype != np.dtype(NATIVE[wide]):
        raise TypeError(f"{name}: an array of {array.dtype} was given, {dtype_name(tag)} is wanted"
                        + (f" (as {np.dtype(NATIVE[wide])})" if wide != tag else ""))  # fmt: skip
    data: Any = array
    if wide != tag:
        n_bytes = ctypes.c_uint64()
        c.library().oi_dtype_bytes(tag, array.size, ctypes.byref(n_bytes))
        data = np.zeros(n_bytes.value, np.uint8)
        if c.library().oi_convert(tag, data.ctypes.data, wide, array.ctypes.data, array.size) != array.size:
            raise TypeError(f"{name}: a value does not fit {dtype_name(tag)}")
    dims = (ctypes.c_uint64 * max(1, array.ndim))(*array.shape)
    view = c.View(tag, array.ndim, dims, data.ctypes.data, array.size, data.nbytes)
    return view, (data, dims)
