"""A graph text and its package, run for one step through the shared library."""

import ctypes
import os
import pathlib

import ml_dtypes
import numpy as np

REPO = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("OPENINFER_BUILD") or REPO / "build")
NAMES = "none i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 bool bitset str ndarray bf16 f8 i4 i2 i1 u4 u2 u1 t2 t1".split()
ARRAYS = {"bf16": ml_dtypes.bfloat16, "f8": ml_dtypes.float8_e5m2, "bool": np.bool_, "f16": np.float16, "f32": np.float32, "f64": np.float64}
ARRAYS.update({f"{k}{b}": np.dtype(f"{k}{b // 8}").type for k in "iu" for b in (8, 16, 32, 64)})
PACKED = {"i4": ml_dtypes.int4, "u4": ml_dtypes.uint4, "i2": ml_dtypes.int2, "u2": ml_dtypes.uint2}


class View(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_uint32), ("dims", ctypes.POINTER(ctypes.c_uint64)),
                ("data", ctypes.c_void_p), ("n_elements", ctypes.c_uint64), ("size_bytes", ctypes.c_uint64)]


class Message(ctypes.Structure):
    _fields_ = [("severity", ctypes.c_int), ("code", ctypes.c_char_p), ("file", ctypes.c_char_p),
                ("line", ctypes.c_uint32), ("col", ctypes.c_uint32), ("len", ctypes.c_uint32),
                ("pointer", ctypes.c_char_p), ("text", ctypes.c_char_p), ("source", ctypes.c_char_p),
                ("hint", ctypes.c_char_p), ("is_line", ctypes.c_bool)]


class Failed(Exception):
    """The library's first message."""


P = ctypes.c_void_p
lib = ctypes.CDLL(str(BUILD / "libopeninfer.so"))
lib.oi_diag_new.restype = P
lib.oi_diag_free.argtypes = [P]
lib.oi_diag_at.restype, lib.oi_diag_at.argtypes = Message, [P, ctypes.c_size_t]
lib.oi_diag_count.restype, lib.oi_diag_count.argtypes = ctypes.c_size_t, [P]
lib.oi_model_open.argtypes = [ctypes.c_char_p, P, P]
lib.oi_graph_parse.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, P, P]
lib.oi_sim_new.argtypes = [P, P, P, P, P]
lib.oi_exec_new.argtypes = [P, P, P]
lib.oi_insert.argtypes = [P, ctypes.c_char_p, P, P]
lib.oi_step.argtypes = [P, P]
lib.oi_output.argtypes = [P, ctypes.c_size_t, P, P, P]
for name in ("oi_exec_free", "oi_sim_free", "oi_graph_free", "oi_model_close"):
    getattr(lib, name).argtypes = [P]
    getattr(lib, name).restype = None


def stored(values, dtype):
    if dtype not in PACKED:
        return np.ascontiguousarray(values)
    bits = int(dtype[1:])
    flat = values.reshape(-1).astype(np.int16).astype(np.uint8) & ((1 << bits) - 1)
    per = 8 // bits
    flat = np.concatenate([flat, np.zeros(-len(flat) % per, np.uint8)]).reshape(-1, per)
    return np.bitwise_or.reduce(flat << (np.arange(per, dtype=np.uint8) * bits), axis=1).astype(np.uint8)


def loaded(view):
    dtype, shape = NAMES[view.dtype], tuple(view.dims[i] for i in range(view.rank))
    data = np.frombuffer(ctypes.string_at(view.data, view.size_bytes) if view.size_bytes else b"", np.uint8)
    if dtype not in PACKED:
        return data.view(ARRAYS[dtype]).reshape(shape).copy()
    bits = int(dtype[1:])
    each = (data[:, None] >> (np.arange(8 // bits, dtype=np.uint8) * bits) & ((1 << bits) - 1)).reshape(-1)[: view.n_elements]
    values = each.astype(np.int16)
    if dtype[0] == "i":
        values = np.where(values >> (bits - 1), values - (1 << bits), values)
    return values.astype(PACKED[dtype]).reshape(shape)


def run(text, package, inputs, n_outputs):
    """inputs: name -> (dtype, array). Gives the step's outputs as arrays."""
    diag, freed = lib.oi_diag_new(), []

    def ok(status):
        if status != 0:
            m = lib.oi_diag_at(diag, 0) if lib.oi_diag_count(diag) else None
            raise Failed(f"{m.code.decode()}: {m.text.decode()}" if m else f"status {status}")

    def new(function, free, *args):
        handle = P()
        ok(function(*args, ctypes.byref(handle), diag))
        freed.append((free, handle))
        return handle

    raw = text.encode()
    try:
        model = new(lib.oi_model_open, lib.oi_model_close, os.fspath(package).encode())
        graph = new(lib.oi_graph_parse, lib.oi_graph_free, raw, len(raw), b"model.oi")
        sim = new(lib.oi_sim_new, lib.oi_sim_free, model, graph, None)
        step = new(lib.oi_exec_new, lib.oi_exec_free, sim)
        for name, (dtype, values) in inputs.items():
            data, dims = stored(values, dtype), (ctypes.c_uint64 * max(1, values.ndim))(*values.shape)
            view = View(NAMES.index(dtype), values.ndim, dims, data.ctypes.data if data.size else None, values.size, data.nbytes)
            ok(lib.oi_insert(step, name.encode(), ctypes.byref(view), diag))
        ok(lib.oi_step(step, diag))
        outputs = []
        for i in range(n_outputs):
            view, name = View(), ctypes.c_char_p()
            ok(lib.oi_output(step, i, ctypes.byref(name), ctypes.byref(view), diag))
            outputs.append(loaded(view))
        return outputs
    finally:
        for free, handle in reversed(freed):
            free(handle)
        lib.oi_diag_free(diag)
