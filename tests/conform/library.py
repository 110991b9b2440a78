"""The library through ctypes: one op on numpy arrays, in this process."""

import ctypes
import json
import math
import os
import pathlib

import numpy as np

from tensors import DTYPES, Tensor

REPO = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("OPENINFER_BUILD") or REPO / "build")

# oi_dtype and oi_op_value_tag of include/openinfer.h
TAGS = {name: i for i, name in enumerate(
    "none i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 bool bitset str ndarray bf16 f8 i4 i2 i1 u4 u2 u1 t2 t1".split())}
NONE, INT, UINT, FLOAT, BOOL, STRING, DTYPE, INTS, FLOATS, STRINGS, DTYPE_LIST = range(11)

# attributes of words, some of which are the names of element types, too
WORDS = {(row["name"], name) for row in json.loads((REPO / "ops/ops.json").read_text())["ops"]
         for name, a in row.get("attrs", {}).items() if isinstance(a, dict) and a["kind"] == "string"}


class View(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_uint32), ("dims", ctypes.c_void_p),
                ("data", ctypes.c_void_p), ("n_elements", ctypes.c_uint64), ("size_bytes", ctypes.c_uint64)]


class Out(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_uint32), ("dims", ctypes.c_void_p),
                ("data", ctypes.c_void_p)]


class Payload(ctypes.Union):
    _fields_ = [("i", ctypes.c_int64), ("u", ctypes.c_uint64), ("f", ctypes.c_double), ("b", ctypes.c_bool),
                ("s", ctypes.c_char_p), ("dtype", ctypes.c_int), ("list", ctypes.c_void_p)]


class Arg(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("tag", ctypes.c_int), ("n", ctypes.c_uint32), ("value", Payload)]


class Options(ctypes.Structure):
    _fields_ = [("device", ctypes.c_char_p), ("threads", ctypes.c_uint), ("team", ctypes.c_void_p),
                ("input_strides", ctypes.c_void_p), ("output_strides", ctypes.c_void_p),
                ("input_offsets", ctypes.c_void_p), ("output_offsets", ctypes.c_void_p)]


class Message(ctypes.Structure):
    _fields_ = [("severity", ctypes.c_int), ("code", ctypes.c_char_p), ("file", ctypes.c_char_p),
                ("line", ctypes.c_uint32), ("col", ctypes.c_uint32), ("len", ctypes.c_uint32),
                ("pointer", ctypes.c_char_p), ("text", ctypes.c_char_p), ("source", ctypes.c_char_p),
                ("hint", ctypes.c_char_p), ("is_line", ctypes.c_bool)]


lib = ctypes.CDLL(str(BUILD / "libopeninfer.so"))
lib.oi_diag_new.restype = ctypes.c_void_p
lib.oi_diag_at.restype = Message
lib.oi_diag_at.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
lib.oi_diag_count.argtypes = [ctypes.c_void_p]
lib.oi_diag_count.restype = ctypes.c_size_t
lib.oi_diag_clear.argtypes = [ctypes.c_void_p]
lib.oi_threads_new.restype = ctypes.c_void_p
lib.oi_cpu_at.restype = ctypes.c_char_p
lib.oi_cpu_at.argtypes = [ctypes.c_size_t]
lib.oi_op_run.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t,
                          ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
diag = lib.oi_diag_new()


class OpError(Exception):
    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text


def devices():
    """"cpu:scalar" first, then every other kind of instructions this machine has."""
    names, i = [], 0
    while lib.oi_cpu_at(i):
        names.append("cpu:" + lib.oi_cpu_at(i).decode())
        i += 1
    return names


def _argument(op, name, value, keep):
    a = Arg(name=name.encode())
    if isinstance(value, (bool, np.bool_)):
        a.tag, a.value.b = BOOL, bool(value)
    elif isinstance(value, int):
        if value > 2**63 - 1:
            a.tag, a.value.u = UINT, value
        else:
            a.tag, a.value.i = INT, value
    elif isinstance(value, float):
        a.tag, a.value.f = FLOAT, value
    elif isinstance(value, str) and value in DTYPES and (op, name) not in WORDS:
        a.tag, a.value.dtype = DTYPE, TAGS[value]
    elif isinstance(value, str):
        a.tag, a.value.s = STRING, value.encode()
    else:
        dtypes = bool(value) and isinstance(value[0], str)
        floats = any(isinstance(v, float) for v in value)
        array = np.array([TAGS[v] for v in value], np.int32) if dtypes else np.array(value, np.float64 if floats else np.int64)
        keep.append(array)
        a.tag, a.n = DTYPE_LIST if dtypes else FLOATS if floats else INTS, len(value)
        a.value.list = array.ctypes.data
    return a


TEAMS = {}  # by number of threads: one for all calls


def _team(threads):
    if threads > 1 and threads not in TEAMS:
        TEAMS[threads] = lib.oi_threads_new(threads)
    return TEAMS.get(threads)


def _dims(shape, keep):
    dims = np.array(shape, np.uint64)
    keep.append(dims)
    return dims.ctypes.data


def run(op, inputs, attrs, outputs, device="cpu", threads=1, inplace=None):
    """Inputs are Tensors, outputs (dtype, shape); the answer is a list of Tensors. A tensor's `slice` makes
    it a view into a larger one. inplace: the number of the input whose memory the first output takes."""
    keep = []
    views = (View * max(1, len(inputs)))()
    strides, offsets, sliced = [], [], False
    for v, t in zip(views, inputs):
        data, step, at = t.storage()
        keep += [data, step]
        v.dtype, v.rank, v.dims = TAGS[t.dtype], t.values.ndim, _dims(t.values.shape, keep)
        v.data = data.ctypes.data if data.size else None
        strides.append(step.ctypes.data if step is not None else None)
        offsets.append(at)
        sliced |= step is not None or at != 0
        keep.append(data)
        if inplace is not None and len(strides) - 1 == inplace:
            own = data
    results = [own if inplace is not None and i == 0 else np.full(DTYPES[t].n_bytes(math.prod(s)), 0xA5, np.uint8)
               for i, (t, s) in enumerate(outputs)]
    out = (Out * len(outputs))(*[
        Out(dtype=TAGS[t], rank=len(s), dims=_dims(s, keep), data=r.ctypes.data if r.size else None)
        for (t, s), r in zip(outputs, results)])
    args = (Arg * max(1, len(attrs)))(*[_argument(op, k, v, keep) for k, v in attrs.items()])
    options = Options(device=device.encode(), threads=threads, team=_team(threads))
    if sliced:
        table = (ctypes.c_void_p * len(strides))(*strides)
        at = (ctypes.c_int64 * len(offsets))(*offsets)
        options.input_strides = ctypes.cast(table, ctypes.c_void_p)
        options.input_offsets = ctypes.cast(at, ctypes.c_void_p)
    lib.oi_diag_clear(diag)
    status = lib.oi_op_run(op.encode(), views, len(inputs), args, len(attrs), out, len(outputs),
                           ctypes.byref(options), diag)
    if status != 0:
        message = lib.oi_diag_at(diag, 0) if lib.oi_diag_count(diag) else None
        raise OpError(message.code.decode() if message else f"status {status}",
                      message.text.decode() if message else "")
    return [Tensor.from_storage(t, tuple(s), r) for (t, s), r in zip(outputs, results)]
