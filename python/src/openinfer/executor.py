"""The simulator: what a graph computes, step by step or node by node."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import weakref
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

from . import _arrays
from . import _library as c

if TYPE_CHECKING:
    from ._arrays import Array
    from .graph import Graph

KINDS = ("dynamic", "volatile", "constant", "persistent")


@dataclasses.dataclass(frozen=True)
class Variable:
    """What a graph declares. None among the dims is a length that only the run knows."""

    name: str
    kind: str
    dtype: str
    dims: Tuple[Optional[int], ...]
    is_assigned: bool


def variable_of(raw: c.VarInfo) -> Variable:
    dims = tuple(None if raw.dims[i] == 2**64 - 1 else int(raw.dims[i]) for i in range(raw.rank))
    return Variable(raw.name.decode(), KINDS[raw.kind], _arrays.dtype_name(raw.dtype), dims, raw.is_assigned)


@dataclasses.dataclass(frozen=True)
class Event:
    """A node that ran; line and col are its place in the text; device is where it ran if that is not only the host."""

    block: str
    kind: str
    op: str
    params: Tuple[str, ...]
    output: Tuple[str, ...]
    step: int
    line: int
    col: int
    device: str = ""


class Simulator:
    """A graph that is bound to its model and checked; it serves any number of executors."""

    def __init__(self, graph: Graph, device: str = "cpu", threads: int = 1, memory_limit: int = 0, precision: str = "",
                 strict: bool = False, trace: bool = False, trace_values: bool = False, timer: bool = False) -> None:  # fmt: skip
        lib, kind = c.library(), ctypes.c_int()
        if not lib.oi_run_on_find(device.encode(), ctypes.byref(kind)):
            raise c.UsageError([], f"there is no device {device!r} to simulate on")
        self.graph = graph
        self._handle = ctypes.c_void_p()
        self._sizes = c.sizes_array(graph.sizes)
        options = c.SimOptions(device=kind.value, threads=threads, memory_limit=memory_limit, strict=strict, trace=trace or trace_values,
                               trace_values=trace_values, timer=timer, sizes=self._sizes, n_sizes=len(graph.sizes),
                               precision=lib.oi_dtype_find(precision.encode()), device_name=lib.oi_run_on_device(device.encode()))  # fmt: skip
        c.call("oi_sim_new", graph.model_handle, graph.handle, ctypes.byref(options), ctypes.byref(self._handle))
        self._tags: Dict[str, int] = {}
        for raw in self._variables():
            self._tags[raw.name.decode()] = raw.dtype

    def _variables(self) -> Iterator[c.VarInfo]:
        for i in range(c.library().oi_sim_n_vars(self._handle)):
            raw = c.VarInfo()
            c.library().oi_sim_var(self._handle, i, ctypes.byref(raw))
            yield raw

    @property
    def variables(self) -> List[Variable]:
        return [variable_of(raw) for raw in self._variables()]

    @property
    def n_lowered(self) -> int:
        """How many ops `precision` has changed."""
        return int(c.library().oi_sim_n_lowered(self._handle))

    @property
    def stats(self) -> Dict[str, int]:
        """Bytes of weights, values and state, now and at most."""
        raw = c.SimStats()
        c.library().oi_sim_get_stats(self._handle, ctypes.byref(raw))
        return {name: int(getattr(raw, name)) for name, *_ in raw._fields_}

    def executor(self, beside: Optional[Executor] = None) -> Executor:
        """beside: an executor, maybe of another graph over the same model, whose persistent memory it shares."""
        return Executor(self, beside)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            c.library().oi_sim_free(self._handle)


class Executor:
    """The values of a graph's variables. For one thread at a time."""

    def __init__(self, simulator: Simulator, beside: Optional[Executor] = None) -> None:
        self.simulator, self._beside, self._handle = simulator, beside, ctypes.c_void_p()
        self._lent: weakref.WeakSet[_arrays.Lender] = weakref.WeakSet()
        if beside is None:
            c.call("oi_exec_new", simulator._handle, ctypes.byref(self._handle))
        else:
            c.call("oi_exec_new_shared", simulator._handle, beside._handle, ctypes.byref(self._handle))

    def _begin(self) -> None:
        """What was lent changes or goes when the executor is used: nobody may hold it."""
        if len(self._lent):
            raise BufferError("an array of fetch() is still in use: copy it, or delete it, before the executor goes on")

    def insert(self, **inputs: Any) -> None:
        """Values for the next step, copied."""
        self._begin()
        for name, value in inputs.items():
            if name not in self.simulator._tags:
                raise c.MissingError([], f"the graph declares no {name!r}")
            view, keep = _arrays.prepared(name, value, self.simulator._tags[name])
            c.call("oi_insert", self._handle, name.encode(), ctypes.byref(view))
            del keep

    def step(self, **inputs: Any) -> Dict[str, Array]:
        """Inserts, runs one step, and gives what entry returned, as arrays of the caller's own."""
        self.insert(**inputs)
        c.call("oi_step", self._handle)
        return self.outputs()

    def outputs(self) -> Dict[str, Array]:
        """What entry returned in the last step, copied."""
        lib, name, view = c.library(), ctypes.c_char_p(), c.View()
        found: Dict[str, Array] = {}
        while lib.oi_output(self._handle, len(found), ctypes.byref(name), ctypes.byref(view), None) == c.OK:
            found[(name.value or b"").decode()] = _arrays.lend(self, view)[0].copy()
        return found

    def fetch(self, name: str, copy: bool = False) -> Array:
        """The value of a variable as it is now: a read-only array over the executor's own memory. While it lives, the
        executor refuses to go on (BufferError); copy=True gives an array of the caller's own. Types that numpy lacks
        are widened, which copies."""
        view = c.View()
        c.call("oi_fetch", self._handle, name.encode(), ctypes.byref(view))
        array, lender = _arrays.lend(self, view)
        if copy:
            return array.copy()  # type: ignore[no-any-return]
        if lender is not None:
            self._lent.add(lender)
        return array  # type: ignore[no-any-return]

    def nodes(self, **inputs: Any) -> Iterator[Event]:
        """Runs one step node by node: every node that ran, in turn. Leaving the loop early takes the step back."""
        self.insert(**inputs)
        lib, raw, ended = c.library(), c.RawEvent(), False
        try:
            while True:
                self._begin()
                diag = lib.oi_diag_new()
                try:
                    ended = not lib.oi_next(self._handle, ctypes.byref(raw), diag)
                    messages = c.messages_of(diag)
                finally:
                    lib.oi_diag_free(diag)
                if ended:
                    if raw.status != c.OK:
                        raise c.InputError(messages, f"the step failed: {raw.status}")
                    return
                yield Event(raw.block_name.decode(), raw.kind.decode(), raw.op.decode(),
                            tuple(raw.params[i].decode() for i in range(raw.n_params)),
                            tuple(raw.output[i].decode() for i in range(raw.n_output)), int(raw.step), raw.line, raw.col, raw.device.decode())  # fmt: skip
        finally:
            if not ended:
                lib.oi_abandon(self._handle)

    @property
    def steps_done(self) -> int:
        return int(c.library().oi_steps_done(self._handle))

    def trace(self, format: str = "json", ext: bool = False, deterministic: bool = False) -> Any:  # noqa: A002
        """All events since the beginning; the simulator was made with trace=True. format: "json", or "chrome" for
        a profiler's viewer."""
        options = c.TraceOptions(("json", "chrome").index(format), ext, deterministic)
        return json.loads(c.text_of("oi_trace_json", self._handle, ctypes.byref(options)))

    def clear_trace(self) -> None:
        c.library().oi_trace_clear(self._handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            c.library().oi_exec_free(self._handle)
