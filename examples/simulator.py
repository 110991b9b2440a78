"""The simulator through ctypes: graphs and models of this project from Python, with numpy arrays.

    sim = Simulator("decode.oi", "model.oinf", threads=2)
    run = sim.executor()
    out = run.step(tokens=np.array([[1]], np.int32))["logits"]

OPENINFER_BUILD names the build folder (default: build/), where libopeninfer.so lies.
"""

import ctypes
import os
import pathlib

import numpy as np

BUILD = pathlib.Path(os.environ.get("OPENINFER_BUILD") or pathlib.Path(__file__).resolve().parent.parent / "build")
# oi_dtype of include/openinfer.h
TYPES = {1: np.int8, 2: np.int16, 3: np.int32, 4: np.int64, 5: np.uint8, 6: np.uint16, 7: np.uint32, 8: np.uint64,
         9: np.float16, 10: np.float32, 11: np.float64, 12: np.bool_}
TAGS = {np.dtype(t): tag for tag, t in TYPES.items()}


class Error(Exception):
    pass


class _View(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_uint32), ("dims", ctypes.POINTER(ctypes.c_uint64)),
                ("data", ctypes.c_void_p), ("n_elements", ctypes.c_uint64), ("size_bytes", ctypes.c_uint64)]

    def array(self):
        """A copy: the executor keeps what it lends only until it is used again."""
        shape = tuple(self.dims[i] for i in range(self.rank))
        raw = ctypes.string_at(self.data, self.size_bytes) if self.size_bytes else b""
        return np.frombuffer(raw, TYPES[self.dtype]).reshape(shape).copy()


class _Size(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_uint64)]


class _Options(ctypes.Structure):
    _fields_ = [("device", ctypes.c_int), ("strict", ctypes.c_bool), ("trace", ctypes.c_bool),
                ("trace_values", ctypes.c_bool), ("timer", ctypes.c_bool), ("threads", ctypes.c_uint32),
                ("parallel_consumers", ctypes.c_bool), ("memory_limit", ctypes.c_uint64),
                ("sizes", ctypes.POINTER(_Size)), ("n_sizes", ctypes.c_size_t), ("precision", ctypes.c_int),
                ("max_nodes", ctypes.c_uint64)]


class _Stats(ctypes.Structure):
    _fields_ = [("weights_peak", ctypes.c_uint64), ("weights_resident", ctypes.c_uint64)]


class _Message(ctypes.Structure):
    _fields_ = [("severity", ctypes.c_int), ("code", ctypes.c_char_p), ("file", ctypes.c_char_p),
                ("line", ctypes.c_uint32), ("col", ctypes.c_uint32), ("len", ctypes.c_uint32),
                ("pointer", ctypes.c_char_p), ("text", ctypes.c_char_p), ("source", ctypes.c_char_p),
                ("hint", ctypes.c_char_p), ("is_line", ctypes.c_bool)]


_P, _S = ctypes.c_void_p, ctypes.c_char_p
_OUT = ctypes.POINTER(ctypes.c_void_p)
_FUNCTIONS = {  # name: (result, arguments)
    "oi_diag_new": (_P, []), "oi_diag_free": (None, [_P]), "oi_diag_count": (ctypes.c_size_t, [_P]),
    "oi_diag_at": (_Message, [_P, ctypes.c_size_t]),
    "oi_model_open": (ctypes.c_int, [_S, _OUT, _P]), "oi_model_close": (None, [_P]),
    "oi_graph_parse": (ctypes.c_int, [_S, ctypes.c_size_t, _S, _OUT, _P]), "oi_graph_free": (None, [_P]),
    "oi_sim_new": (ctypes.c_int, [_P, _P, ctypes.POINTER(_Options), _OUT, _P]), "oi_sim_free": (None, [_P]),
    "oi_sim_get_stats": (None, [_P, ctypes.POINTER(_Stats)]),
    "oi_exec_new": (ctypes.c_int, [_P, _OUT, _P]), "oi_exec_new_shared": (ctypes.c_int, [_P, _P, _OUT, _P]),
    "oi_exec_free": (None, [_P]), "oi_insert": (ctypes.c_int, [_P, _S, ctypes.POINTER(_View), _P]),
    "oi_step": (ctypes.c_int, [_P, _P]), "oi_fetch": (ctypes.c_int, [_P, _S, ctypes.POINTER(_View), _P]),
    "oi_output": (ctypes.c_int, [_P, ctypes.c_size_t, ctypes.POINTER(_S), ctypes.POINTER(_View), _P]),
    "oi_sim_n_lowered": (ctypes.c_uint64, [_P]), "oi_dtype_find": (ctypes.c_int, [_S]),
    "oi_run_on_find": (ctypes.c_bool, [_S, ctypes.POINTER(ctypes.c_int)]),
}


def _library():
    path = BUILD / "libopeninfer.so"
    if not path.exists():
        raise SystemExit(f"{path} is not there; `make` builds it")
    lib = ctypes.CDLL(str(path))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


_lib = _library()
_OK, _ERROR = 0, 2


def _call(name, *args):
    """A function that takes an oi_diag last and says OI_OK, or an Error with its messages."""
    diag = _lib.oi_diag_new()
    try:
        status = getattr(_lib, name)(*args, diag)
        if status != _OK:
            found = [_lib.oi_diag_at(diag, i) for i in range(_lib.oi_diag_count(diag))]
            raise Error("\n".join(f"{m.file.decode()}:{m.line}: {m.code.decode()}: {m.text.decode()}"
                                  for m in found if m.severity == _ERROR) or f"{name} failed: {status}")
    finally:
        _lib.oi_diag_free(diag)


class Simulator:
    """A graph (a path, or its text) bound to a model; one serves any number of executors. precision: "bf16" as
    preferences.default_precision of a device file says it."""

    def __init__(self, graph, model=None, device="cpu", threads=1, memory_limit=0, precision=None, **sizes):
        path = None if "\n" in str(graph) else pathlib.Path(graph)
        text = (path.read_text(encoding="utf-8") if path else str(graph)).encode()
        self._model, self._graph, self._sim = (ctypes.c_void_p() for _ in range(3))
        kind = ctypes.c_int()
        if not _lib.oi_run_on_find(device.encode(), ctypes.byref(kind)):
            raise Error(f"there is no device {device!r}")
        given = (_Size * max(1, len(sizes)))(*[_Size(k.encode(), v) for k, v in sizes.items()])
        options = _Options(device=kind.value, threads=threads, memory_limit=memory_limit, sizes=given,
                           n_sizes=len(sizes), precision=_lib.oi_dtype_find((precision or "").encode()))
        if model is not None:
            _call("oi_model_open", str(model).encode(), ctypes.byref(self._model))
        _call("oi_graph_parse", text, len(text), str(path or "graph").encode(), ctypes.byref(self._graph))
        _call("oi_sim_new", self._model, self._graph, ctypes.byref(options), ctypes.byref(self._sim))

    def executor(self, beside=None):
        """beside: an executor of another simulator whose persistent memory is shared."""
        return Executor(self, beside)

    def n_lowered(self):
        """Ops that precision has changed."""
        return _lib.oi_sim_n_lowered(self._sim)

    def weights_peak(self):
        stats = _Stats()
        _lib.oi_sim_get_stats(self._sim, ctypes.byref(stats))
        return stats.weights_peak

    def __del__(self):
        if "_sim" in self.__dict__:
            _lib.oi_sim_free(self._sim)
            _lib.oi_graph_free(self._graph)
            _lib.oi_model_close(self._model)


class Executor:
    def __init__(self, simulator, beside=None):
        self._simulator, self._beside, self._exec = simulator, beside, ctypes.c_void_p()
        if beside is None:
            _call("oi_exec_new", simulator._sim, ctypes.byref(self._exec))
        else:
            _call("oi_exec_new_shared", simulator._sim, beside._exec, ctypes.byref(self._exec))

    def step(self, **inputs):
        """Inserts, runs one step, returns {name: array} of what entry returned."""
        for name, value in inputs.items():
            value = np.ascontiguousarray(value)
            dims = (ctypes.c_uint64 * max(1, value.ndim))(*value.shape)
            view = _View(TAGS[value.dtype], value.ndim, dims, value.ctypes.data, value.size, value.nbytes)
            _call("oi_insert", self._exec, name.encode(), ctypes.byref(view))
        _call("oi_step", self._exec)
        found, name, view = {}, ctypes.c_char_p(), _View()
        while _lib.oi_output(self._exec, len(found), ctypes.byref(name), ctypes.byref(view), None) == _OK:
            found[name.value.decode()] = view.array()
        return found

    def fetch(self, name):
        view = _View()
        _call("oi_fetch", self._exec, name.encode(), ctypes.byref(view))
        return view.array()

    def __del__(self):
        if "_exec" in self.__dict__:
            _lib.oi_exec_free(self._exec)
