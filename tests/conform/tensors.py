"""Element types and tensors as numpy sees them, written from the package format's text: packed types
least significant bit first, f8 is e5m2."""

import dataclasses
import math

import ml_dtypes
import numpy as np


@dataclasses.dataclass(frozen=True)
class Dtype:
    name: str
    bits: int
    kind: str  # F float, S signed, U unsigned, T ternary, B bool, X bitset
    array: type  # what values are held in

    def n_bytes(self, n):
        return (n * self.bits + 7) // 8

    @property
    def packed(self):
        return self.bits < 8

    @property
    def lowest(self):
        return {"F": float("-inf"), "S": -(1 << (self.bits - 1)), "T": -1}.get(self.kind, 0)

    @property
    def highest(self):
        return {"F": float("inf"), "S": (1 << (self.bits - 1)) - 1, "T": 1, "B": 1}.get(self.kind, (1 << self.bits) - 1)


DTYPES = {d.name: d for d in [
    Dtype("f8", 8, "F", ml_dtypes.float8_e5m2), Dtype("bf16", 16, "F", ml_dtypes.bfloat16),
    Dtype("f16", 16, "F", np.float16), Dtype("f32", 32, "F", np.float32), Dtype("f64", 64, "F", np.float64),
    Dtype("i8", 8, "S", np.int8), Dtype("i16", 16, "S", np.int16), Dtype("i32", 32, "S", np.int32),
    Dtype("i64", 64, "S", np.int64), Dtype("u8", 8, "U", np.uint8), Dtype("u16", 16, "U", np.uint16),
    Dtype("u32", 32, "U", np.uint32), Dtype("u64", 64, "U", np.uint64),
    Dtype("i1", 1, "S", np.int8), Dtype("i2", 2, "S", np.int8), Dtype("i4", 4, "S", np.int8),
    Dtype("u1", 1, "U", np.uint8), Dtype("u2", 2, "U", np.uint8), Dtype("u4", 4, "U", np.uint8),
    Dtype("t1", 1, "T", np.int8), Dtype("t2", 2, "T", np.int8),
    Dtype("bool", 8, "B", np.bool_), Dtype("bitset", 8, "X", np.uint8),
]}


def _pack(d, values):
    flat = values.ravel()
    bits = (flat >= 0).astype(np.uint8) if d.name == "t1" else flat.astype(np.uint8) & np.uint8((1 << d.bits) - 1)
    per = 8 // d.bits
    padded = np.zeros(-(-len(flat) // per) * per, np.uint8)
    padded[: len(flat)] = bits
    packed = padded[::per].copy()
    for i in range(1, per):
        packed |= padded[i::per] << np.uint8(i * d.bits)
    return packed


def _unpack(d, data, n):
    per = 8 // d.bits
    bits = ((data[:, None].astype(np.int64) >> (np.arange(per) * d.bits)) & ((1 << d.bits) - 1)).ravel()[:n]
    if d.name == "t1":
        return np.where(bits, 1, -1).astype(np.int8)
    if d.kind in "ST":
        bits = np.where(bits >> (d.bits - 1), bits - (1 << d.bits), bits)
    return bits.astype(d.array)


class Tensor:
    """Values, and how they lie in memory: `whole` and `index` when they are a slice of a larger one."""

    def __init__(self, dtype, values, whole=None, index=None):
        self.dtype, self.values, self.whole, self.index = dtype, values, whole, index
        self.stored = None  # every kind of instructions asks again

    def __repr__(self):
        return f"{self.dtype}{list(self.values.shape)}{'/' if self.whole is not None else ''}"

    def storage(self):
        """Bytes, a copy for each who asks, strides in elements (None: row-major) and the first element."""
        held = self.values if self.whole is None else self.whole
        if self.stored is None or self.stored[0] is not held:
            self.stored = held, self.lay()
        data, *where = self.stored[1]
        return data.copy(), *where

    def lay(self):
        d = DTYPES[self.dtype]
        held = self.values if self.whole is None else self.whole
        data = _pack(d, held) if d.packed else np.frombuffer(np.ascontiguousarray(held).tobytes(), np.uint8)
        if self.whole is None:
            return data, None, 0
        places = np.arange(held.size, dtype=np.int64).reshape(held.shape)[self.index]
        strides = np.array([s // 8 for s in places.strides], np.int64)
        return data, strides, int(places.flat[0]) if places.size else 0

    @staticmethod
    def from_storage(dtype, shape, data):
        d = DTYPES[dtype]
        n = math.prod(shape)
        values = _unpack(d, data, n) if d.packed else np.frombuffer(data.tobytes(), d.array)
        return Tensor(dtype, values.reshape(shape))
