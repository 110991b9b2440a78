"""The shared library through ctypes: its structures, its functions, and messages as exceptions.

The structures are those of include/openinfer.h, field by field; tests/test_python.py compares their layout with
what a C compiler says. Nothing is loaded before the first call.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import pathlib
import threading
import warnings
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type

OK, INPUT, USAGE, ENVIRONMENT, NOT_FOUND = range(5)


class View(ctypes.Structure):
    _fields_ = [("dtype", c_int), ("rank", c_uint32), ("dims", POINTER(c_uint64)), ("data", c_void_p),
                ("n_elements", c_uint64), ("size_bytes", c_uint64)]  # fmt: skip


class Size(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_uint64)]


class RawMessage(ctypes.Structure):
    _fields_ = [("severity", c_int), ("code", c_char_p), ("file", c_char_p), ("line", c_uint32), ("col", c_uint32),
                ("len", c_uint32), ("pointer", c_char_p), ("text", c_char_p), ("source", c_char_p),
                ("hint", c_char_p), ("is_line", c_bool)]  # fmt: skip


class GraphOptions(ctypes.Structure):
    _fields_ = [("model", c_void_p), ("sizes", POINTER(Size)), ("n_sizes", c_size_t), ("first_line", c_uint32)]


class CheckOptions(ctypes.Structure):
    _fields_ = [("strict", c_bool), ("model", c_void_p), ("sizes", POINTER(Size)), ("n_sizes", c_size_t),
                ("is_complete", c_bool), ("on_tensor", c_void_p), ("ctx", c_void_p)]  # fmt: skip


class GraphCounts(ctypes.Structure):
    _fields_ = [("variables", c_size_t), ("blocks", c_size_t), ("nodes", c_size_t)]


class Quant(ctypes.Structure):
    _fields_ = [("scheme", c_int), ("scale_mode", c_int), ("zero_point_mode", c_int), ("scale_axis", c_uint64),
                ("zero_point_axis", c_uint64), ("n_scales", c_uint64), ("n_zero_points", c_uint64),
                ("scales", POINTER(ctypes.c_float)), ("zero_points", POINTER(ctypes.c_int32))]  # fmt: skip


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("dtype", c_int), ("rank", c_uint32), ("dims", POINTER(c_uint64)),
                ("n_elements", c_uint64), ("has_data", c_bool), ("data_offset", c_uint64), ("data_nbytes", c_uint64),
                ("quant_offset", c_uint64), ("quant_nbytes", c_uint64), ("quant", POINTER(Quant))]  # fmt: skip


class SimOptions(ctypes.Structure):
    _fields_ = [("device", c_int), ("strict", c_bool), ("trace", c_bool), ("trace_values", c_bool), ("timer", c_bool),
                ("threads", c_uint32), ("parallel_consumers", c_bool), ("memory_limit", c_uint64),
                ("sizes", POINTER(Size)), ("n_sizes", c_size_t), ("precision", c_int), ("max_nodes", c_uint64),
                ("device_name", c_char_p)]  # fmt: skip


class SimStats(ctypes.Structure):
    _fields_ = [(name, c_uint64) for name in ("weights_peak", "weights_resident", "chunks_peak", "values_peak",
                                              "scratch_peak", "state_peak", "total_peak")]  # fmt: skip


class VarInfo(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("kind", c_int), ("is_assigned", c_bool), ("is_prefix", c_bool),
                ("has_init", c_bool), ("dtype", c_int), ("rank", c_uint32), ("dims", POINTER(c_uint64))]  # fmt: skip


class RawEvent(ctypes.Structure):
    _fields_ = [("status", c_int), ("block_name", c_char_p), ("node_index", c_uint64), ("node_uuid", c_char_p),
                ("kind", c_char_p), ("op", c_char_p), ("params", POINTER(c_char_p)), ("output", POINTER(c_char_p)),
                ("n_params", c_size_t), ("n_output", c_size_t), ("micros", c_uint64 * 3), ("step", c_uint64),
                ("line", c_uint32), ("col", c_uint32), ("device", c_char_p)]  # fmt: skip


class TraceOptions(ctypes.Structure):
    _fields_ = [("format", c_int), ("ext", c_bool), ("deterministic", c_bool)]


class SynthGraph(ctypes.Structure):
    _fields_ = [("graph", c_void_p), ("name", c_char_p)]


class SynthOptions(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("sizes", POINTER(Size)), ("n_sizes", c_size_t), ("per_node", c_bool),
                ("partition_all", c_bool), ("timed", c_bool), ("weights", c_int), ("skip", POINTER(c_char_p)),
                ("dump_after", c_char_p), ("overwrite", c_bool), ("max_output", c_uint64),
                ("progress", c_void_p), ("progress_ctx", c_void_p)]  # fmt: skip


class StepCost(ctypes.Structure):
    _fields_ = [("macs", c_uint64), ("bytes", c_uint64), ("is_open", c_bool), ("ns", c_double), ("is_most", c_bool)]


class PlanKernel(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("recipe", c_char_p), ("line", c_uint32), ("cost", StepCost)]


FILL = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(VarInfo), c_uint64, c_void_p, c_uint64, c_void_p)


class VerifyOptions(ctypes.Structure):
    _fields_ = [("synth", SynthOptions), ("node_seconds", c_double), ("steps", c_uint64), ("in_turn", c_bool),
                ("fill", FILL), ("fill_ctx", c_void_p), ("keep", c_char_p), ("cc", c_char_p), ("flags", c_char_p),
                ("sim_threads", c_uint32)]  # fmt: skip


class VerifyRow(ctypes.Structure):
    _fields_ = [("graph", c_char_p), ("what", c_char_p), ("name", c_char_p), ("dtype", c_int), ("worst", c_double),
                ("relative", c_double), ("allowed", c_double), ("atol", c_double), ("rtol", c_double),
                ("wanted", c_double), ("found", c_double), ("step", c_uint64), ("element", c_uint64),
                ("n_compared", c_uint64), ("agrees", c_bool)]  # fmt: skip


STRUCTURES: Dict[str, Type[ctypes.Structure]] = {
    "oi_view": View, "oi_size": Size, "oi_message": RawMessage, "oi_graph_options": GraphOptions,
    "oi_check_options": CheckOptions, "oi_graph_counts": GraphCounts, "oi_quant": Quant, "oi_tensor_info": TensorInfo,
    "oi_sim_options": SimOptions, "oi_sim_stats": SimStats, "oi_var_info": VarInfo, "oi_event": RawEvent,
    "oi_trace_options": TraceOptions, "oi_synth_graph": SynthGraph, "oi_synth_options": SynthOptions,
    "oi_step_cost": StepCost, "oi_plan_kernel": PlanKernel, "oi_verify_options": VerifyOptions,
    "oi_verify_row": VerifyRow,
}  # fmt: skip

_P, _S, _N, _V = c_void_p, c_char_p, c_size_t, POINTER(View)
_OUT, _TEXT = POINTER(c_void_p), POINTER(c_void_p)
_FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {  # name: (result, arguments)
    "oi_version": (_S, []), "oi_free": (None, [_P]),
    "oi_diag_new": (_P, []), "oi_diag_free": (None, [_P]), "oi_diag_count": (_N, [_P]),
    "oi_diag_at": (RawMessage, [_P, _N]), "oi_diag_clear": (None, [_P]),
    "oi_dtype_name": (_S, [c_int]), "oi_dtype_find": (c_int, [_S]),
    "oi_dtype_bytes": (c_bool, [c_int, c_uint64, POINTER(c_uint64)]),
    "oi_convert": (c_uint64, [c_int, _P, c_int, _P, c_uint64]),
    "oi_model_open": (c_int, [_S, _OUT, _P]), "oi_model_close": (None, [_P]), "oi_model_n_sizevars": (_N, [_P]),
    "oi_model_n_tensors": (_N, [_P]), "oi_model_sizevar_name": (_S, [_P, _N]),
    "oi_model_tensor_name": (_S, [_P, _N]), "oi_model_size_of": (c_int, [_P, _S, POINTER(c_uint64)]),
    "oi_model_tensor": (c_int, [_P, _S, _V, _P]), "oi_model_tensor_info": (c_int, [_P, _S, POINTER(TensorInfo)]),
    "oi_graph_load_with": (c_int, [_S, POINTER(GraphOptions), _OUT, _P]),
    "oi_graph_parse_with": (c_int, [_S, _N, _S, POINTER(GraphOptions), _OUT, _P]), "oi_graph_free": (None, [_P]),
    "oi_graph_check": (c_int, [_P, POINTER(CheckOptions), _P]), "oi_graph_count": (GraphCounts, [_P]),
    "oi_graph_to_json": (c_int, [_P, _P, _TEXT, _P]), "oi_graph_to_text": (c_int, [_P, _TEXT, _P]),
    "oi_graph_to_dot": (c_int, [_P, _TEXT, _P]), "oi_graph_to_svg": (c_int, [_P, _TEXT, _P]),
    "oi_graph_to_html": (c_int, [_P, _TEXT, _P]),
    "oi_run_on_find": (c_bool, [_S, POINTER(c_int)]),
    "oi_run_on_device": (c_char_p, [_S]),
    "oi_sim_new": (c_int, [_P, _P, POINTER(SimOptions), _OUT, _P]), "oi_sim_free": (None, [_P]),
    "oi_sim_get_stats": (None, [_P, POINTER(SimStats)]), "oi_sim_n_lowered": (c_uint64, [_P]),
    "oi_sim_n_vars": (_N, [_P]), "oi_sim_var": (c_bool, [_P, _N, POINTER(VarInfo)]),
    "oi_exec_new": (c_int, [_P, _OUT, _P]), "oi_exec_new_shared": (c_int, [_P, _P, _OUT, _P]),
    "oi_exec_free": (None, [_P]), "oi_insert": (c_int, [_P, _S, _V, _P]), "oi_fetch": (c_int, [_P, _S, _V, _P]),
    "oi_output": (c_int, [_P, _N, POINTER(_S), _V, _P]), "oi_step": (c_int, [_P, _P]),
    "oi_steps_done": (c_uint64, [_P]), "oi_next": (c_bool, [_P, POINTER(RawEvent), _P]), "oi_abandon": (None, [_P]),
    "oi_trace_json": (c_int, [_P, POINTER(TraceOptions), _TEXT, _P]), "oi_trace_clear": (None, [_P]),
    "oi_device_load": (c_int, [_S, c_bool, _OUT, _P]), "oi_device_free": (None, [_P]),
    "oi_device_with_threads": (c_int, [_P, c_uint64, _OUT, _P]), "oi_device_to_json": (c_int, [_P, _TEXT, _P]),
    "oi_device_profile_count": (_N, []), "oi_device_profile_name": (_S, [_N]),
    "oi_machine_builds": (c_bool, [_P]), "oi_machine_runs": (c_bool, [_P]),
    "oi_synthesize": (c_int, [_P, _P, POINTER(SynthGraph), _N, POINTER(SynthOptions), _OUT, _P]),
    "oi_plan_free": (None, [_P]), "oi_plan_name": (_S, [_P]), "oi_plan_emit": (c_int, [_P, _S, _P]),
    "oi_plan_emit_device": (c_int, [_P, _S, _P]), "oi_plan_cost": (c_bool, [_P, _N, POINTER(StepCost)]),
    "oi_plan_kernel_at": (c_bool, [_P, _N, POINTER(PlanKernel)]),
    "oi_verify": (c_int, [_P, _P, POINTER(SynthGraph), _N, POINTER(VerifyOptions), _OUT, _P]),
    "oi_verify_row_at": (c_bool, [_P, _N, POINTER(VerifyRow)]),
    "oi_verify_steps": (c_uint64, [_P, POINTER(c_uint64)]), "oi_verify_failure": (_S, [_P]),
    "oi_verify_report_free": (None, [_P]),
    "oi_bench": (c_int, [_P, _P, _P, POINTER(VerifyOptions), POINTER(c_double), POINTER(StepCost), _P]),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Message:
    """One diagnostic. line and col count from 1 and are 0 where there is no text; len is what a caret underlines."""

    severity: str  # "note", "warning", "error"
    code: str
    file: str
    line: int
    col: int
    len: int
    pointer: str  # into JSON, where the input was that
    text: str
    source: str  # the line of the input
    hint: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.col}: " if self.line else f"{self.file}: " if self.file else ""
        said = f"{place}{self.severity}{f'[{self.code}]' if self.code else ''}: {self.text}"
        if self.source:
            said += f"\n    {self.source}\n    {' ' * (self.col - 1)}{'^' + '~' * (self.len - 1)}"
        return said + (f"\n  hint: {self.hint}" if self.hint else "")


class Error(Exception):
    """What the library refused: `messages` has every diagnostic with its place; the first error's fields are also
    file, line, col and code."""

    def __init__(self, messages: Sequence[Message], otherwise: str = "") -> None:
        errors = [m for m in messages if m.severity == "error"]
        super().__init__("\n".join(str(m) for m in messages) or otherwise)
        self.messages = list(messages)
        first = errors[0] if errors else None
        self.code = first.code if first else ""
        self.file = first.file if first else ""
        self.line = first.line if first else 0
        self.col = first.col if first else 0


class InputError(Error):
    """The graph, model or value is wrong."""


class UsageError(Error):
    """The call is wrong."""


class UnavailableError(Error):
    """A file, compiler or device is not there, or there is no memory."""


class MissingError(Error):
    """The model or graph has nothing of that name."""


class Warning(UserWarning):  # noqa: A001  openinfer.Warning, as Error is openinfer.Error
    """A diagnostic that refuses nothing."""


_ERRORS: Dict[int, Type[Error]] = {INPUT: InputError, USAGE: UsageError, ENVIRONMENT: UnavailableError, NOT_FOUND: MissingError}
_SEVERITIES = ("note", "warning", "error")


def candidates() -> List[str]:
    """Where the library may be, best first: $OPENINFER_BUILD, the package itself, a checkout's build, the system."""
    here = pathlib.Path(__file__).resolve().parent
    given = os.environ.get("OPENINFER_BUILD")
    folders = [pathlib.Path(given)] if given else [here, *(p / "build" for p in here.parents[2:3])]
    return [str(p / "libopeninfer.so") for p in folders if (p / "libopeninfer.so").exists()] + ([] if given else ["libopeninfer.so.0"])


def load(path: Optional[str] = None) -> Any:
    tried = []
    for name in [path] if path else candidates():
        try:
            for needed in sorted(pathlib.Path(name).parent.glob("libjson-c.so*")) if "/" in name else []:
                ctypes.CDLL(str(needed))  # a wheel brings it along; a library loaded by its name is not looked for again
            lib = ctypes.CDLL(name)
            break
        except OSError as e:
            tried.append(str(e))
    else:
        raise UnavailableError([], "libopeninfer.so is not there: `make` builds it, OPENINFER_BUILD names its folder"
                                     + "".join(f"\n  {t}" for t in tried))  # fmt: skip
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


_lib: Optional[Any] = None
_loading = threading.Lock()


def library() -> Any:
    global _lib
    with _loading:
        if _lib is None:
            _lib = load()
    return _lib


def _text(raw: Optional[bytes]) -> str:
    return (raw or b"").decode("utf-8", "replace")


def messages_of(diag: Any) -> List[Message]:
    lib, found = library(), []
    for i in range(lib.oi_diag_count(diag)):
        m = lib.oi_diag_at(diag, i)
        found.append(Message(_SEVERITIES[m.severity], _text(m.code), _text(m.file), m.line, m.col, m.len,
                             _text(m.pointer), _text(m.text), _text(m.source), _text(m.hint)))  # fmt: skip
    return found


def call(name: str, *args: Any, warn: bool = True) -> List[Message]:
    """A function that takes an oi_diag last and gives an oi_status: its messages, or an Error with them. Warnings
    become Python's unless the caller wants the messages."""
    lib = library()
    diag = lib.oi_diag_new()
    try:
        status = getattr(lib, name)(*args, diag)
        found = messages_of(diag)
    finally:
        lib.oi_diag_free(diag)
    if status != OK:
        raise _ERRORS.get(status, Error)(found, f"{name} failed: {status}")
    for m in found if warn else []:
        if m.severity == "warning":
            warnings.warn(str(m), Warning, stacklevel=3)
    return found


def text_of(name: str, *args: Any) -> str:
    """The same for a function whose last result is a text that we free."""
    out = c_void_p()
    call(name, *args, ctypes.byref(out))
    try:
        return _text(ctypes.string_at(out.value or 0))
    finally:
        library().oi_free(out)


def sizes_array(sizes: Dict[str, int]) -> Any:
    return (Size * max(1, len(sizes)))(*[Size(k.encode(), v) for k, v in sizes.items()])
