"""A graph over a model: checked, drawn, simulated, turned into a program and proved."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from . import _arrays
from . import _library as c
from .executor import Executor, Simulator, Variable, variable_of
from .model import Model, Path

Fill = Callable[[Variable, int], Any]


class Graph:
    """`openinfer.open` and `openinfer.parse` make one."""

    def __init__(self, handle: ctypes.c_void_p, name: str, model: Optional[Model], sizes: Dict[str, int]) -> None:
        self.handle, self.name, self.model, self.sizes = handle, name, model, sizes

    @property
    def model_handle(self) -> Optional[ctypes.c_void_p]:
        return self.model._handle if self.model else None

    def check(self, strict: bool = False) -> List[c.Message]:
        """Every rule that can be decided before a run. Raises InputError with all violations; gives the warnings."""
        sizes = c.sizes_array(self.sizes)
        options = c.CheckOptions(strict=strict, model=self.model_handle, sizes=sizes, n_sizes=len(self.sizes))
        return c.call("oi_graph_check", self.handle, ctypes.byref(options), warn=False)

    @property
    def counts(self) -> Dict[str, int]:
        raw = c.library().oi_graph_count(self.handle)
        return {"variables": raw.variables, "blocks": raw.blocks, "nodes": raw.nodes}

    def text(self) -> str:
        """In the explicit form."""
        return c.text_of("oi_graph_to_text", self.handle)

    def json(self) -> Any:
        return json.loads(c.text_of("oi_graph_to_json", self.handle, None))

    def svg(self) -> str:
        return c.text_of("oi_graph_to_svg", self.handle)

    def dot(self) -> str:
        return c.text_of("oi_graph_to_dot", self.handle)

    def html(self) -> str:
        """A page of its own, with the drawing and the text."""
        return c.text_of("oi_graph_to_html", self.handle)

    def _repr_svg_(self) -> str:
        """Notebooks show a graph as its drawing."""
        return self.svg()

    def simulator(self, **options: Any) -> Simulator:
        """Options: device ("cpu", "cpu:avx2", "vulkan" ...), threads, memory_limit, precision, strict, trace,
        trace_values, timer."""
        return Simulator(self, **options)

    def executor(self, **options: Any) -> Executor:
        """Of a simulator of its own, with the same options."""
        return Simulator(self, **options).executor()

    def step(self, **inputs: Any) -> Dict[str, Any]:
        """One step of a new executor."""
        return self.executor().step(**inputs)

    def plan(self, target: Target, name: Optional[str] = None, threads: Optional[int] = None, **options: Any) -> Plan:
        return Plan(self, device_of(target, threads), name, options)

    def synthesize(self, target: Target, folder: Path, name: Optional[str] = None, threads: Optional[int] = None, overwrite: bool = False) -> Plan:
        """Writes the program for a device (a profile, or a device file) into a folder: all or nothing."""
        plan = self.plan(target, name, threads, overwrite=overwrite)
        plan.emit(folder)
        return plan

    def verify(self, target: Target, steps: int = 8, inputs: Union[None, Fill, Mapping[str, Any]] = None, threads: Optional[int] = None,
               per_node: bool = False, node_seconds: float = 0.0, keep: Optional[Path] = None, cc: Optional[str] = None) -> Report:  # fmt: skip
        """Builds and runs the program for the device and compares it with the simulator, step by step. inputs: the
        values of every step by name, or a function of (variable, step); None leaves one to its @init, and without
        inputs all floats are random. Raises InputError where the two differ, UnavailableError where the program
        cannot be built or run here."""
        device, sizes, fill = device_of(target, threads), c.sizes_array(self.sizes), _Fill(inputs)
        options = c.VerifyOptions(steps=steps, node_seconds=node_seconds, fill=fill.function, keep=_path(keep), cc=_path(cc), sim_threads=1)
        options.synth = c.SynthOptions(sizes=sizes, n_sizes=len(self.sizes), per_node=per_node)
        out, one = ctypes.c_void_p(), c.SynthGraph(self.handle, None)
        try:
            c.call("oi_verify", device.handle, self.model_handle, ctypes.byref(one), 1, ctypes.byref(options), ctypes.byref(out))
            fill.reraise()
            return Report(out)
        except c.Error:
            fill.reraise()
            raise
        finally:
            c.library().oi_verify_report_free(out)

    def bench(self, target: Optional[Target] = None, steps: int = 10, inputs: Union[None, Fill, Mapping[str, Any]] = None, threads: Optional[int] = None) -> List[float]:
        """Nanoseconds of each step of the program for the device, or of the simulator (target None)."""
        device, sizes, fill = device_of(target, threads) if target else None, c.sizes_array(self.sizes), _Fill(inputs)
        options = c.VerifyOptions(steps=steps, fill=fill.function, sim_threads=threads or 1)
        options.synth = c.SynthOptions(sizes=sizes, n_sizes=len(self.sizes))
        out = (ctypes.c_double * steps)()
        try:
            c.call("oi_bench", device.handle if device else None, self.model_handle, self.handle, ctypes.byref(options), out, None)
        finally:
            fill.reraise()
        return list(out)

    def __repr__(self) -> str:
        return f"<openinfer.Graph {self.name!r}: {self.counts['nodes']} nodes>"

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            c.library().oi_graph_free(self.handle)


class Device:
    """A profile (`openinfer.profiles()`) or a device file."""

    def __init__(self, name: Path, threads: Optional[int] = None, strict: bool = False) -> None:
        self.handle = ctypes.c_void_p()
        c.call("oi_device_load", os.fsencode(name), strict, ctypes.byref(self.handle))
        if threads is not None:
            plain, self.handle = self.handle, ctypes.c_void_p()
            try:
                c.call("oi_device_with_threads", plain, threads, ctypes.byref(self.handle))
            finally:
                c.library().oi_device_free(plain)

    def json(self) -> Any:
        """Everything about it, defaults filled in."""
        return json.loads(c.text_of("oi_device_to_json", self.handle))

    @property
    def can_build(self) -> bool:
        """Whether its compiler is here."""
        return bool(c.library().oi_machine_builds(self.handle))

    @property
    def can_run(self) -> bool:
        """Whether this machine runs its programs, itself or by an emulator."""
        return bool(c.library().oi_machine_runs(self.handle))

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            c.library().oi_device_free(self.handle)


Target = Union[Path, Device]


def device_of(target: Target, threads: Optional[int] = None) -> Device:
    return target if isinstance(target, Device) else Device(target, threads)


@dataclasses.dataclass(frozen=True)
class Cost:
    """What a step does on paper: multiply-accumulates, bytes read and written, and the prediction for the device."""

    macs: int
    bytes: int
    ns: float


@dataclasses.dataclass(frozen=True)
class Kernel:
    name: str
    recipe: str  # "": plain loops
    line: int
    cost: Cost


def _cost(raw: c.StepCost) -> Cost:
    return Cost(int(raw.macs), int(raw.bytes), float(raw.ns))


class Plan:
    """A program, planned; `emit` writes it."""

    def __init__(self, graph: Graph, device: Device, name: Optional[str], options: Dict[str, Any]) -> None:
        self.handle, self._graph, self._device = ctypes.c_void_p(), graph, device
        sizes = c.sizes_array(graph.sizes)
        given = c.SynthOptions(name=name.encode() if name else None, sizes=sizes, n_sizes=len(graph.sizes), **options)
        one = c.SynthGraph(graph.handle, None)
        c.call("oi_synthesize", device.handle, graph.model_handle, ctypes.byref(one), 1, ctypes.byref(given), ctypes.byref(self.handle))

    @property
    def name(self) -> str:
        return str(c.library().oi_plan_name(self.handle).decode())

    @property
    def cost(self) -> Cost:
        raw = c.StepCost()
        c.library().oi_plan_cost(self.handle, 0, ctypes.byref(raw))
        return _cost(raw)

    @property
    def kernels(self) -> List[Kernel]:
        found: List[Kernel] = []
        raw = c.PlanKernel()
        while c.library().oi_plan_kernel_at(self.handle, len(found), ctypes.byref(raw)):
            found.append(Kernel(raw.name.decode(), raw.recipe.decode(), raw.line, _cost(raw.cost)))
        return found

    def emit(self, folder: Path) -> None:
        c.call("oi_plan_emit", self.handle, os.fsencode(folder))

    def emit_device(self, folder: Path) -> None:
        """Only what runs on the device itself: for Vulkan a compute shader per kernel."""
        c.call("oi_plan_emit_device", self.handle, os.fsencode(folder))

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            c.library().oi_plan_free(self.handle)


@dataclasses.dataclass(frozen=True)
class Row:
    """The greatest difference of one output, state or node, as a share of what is allowed there."""

    what: str
    name: str
    dtype: str
    worst: float
    allowed: float
    n_compared: int
    agrees: bool


class Report:
    """What verify compared."""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        lib, raw = c.library(), c.VerifyRow()
        failed = ctypes.c_uint64()
        self.steps = int(lib.oi_verify_steps(handle, ctypes.byref(failed)))
        self.failed_alike = int(failed.value)
        self.rows: List[Row] = []
        while lib.oi_verify_row_at(handle, len(self.rows), ctypes.byref(raw)):
            self.rows.append(Row(raw.what.decode(), raw.name.decode(), _arrays.dtype_name(raw.dtype), raw.worst, raw.allowed,
                                 int(raw.n_compared), raw.agrees))  # fmt: skip

    @property
    def agrees(self) -> bool:
        return all(row.agrees for row in self.rows)

    def __repr__(self) -> str:
        return f"<openinfer.Report: {self.steps} steps compared: they {'agree' if self.agrees else 'differ'}>"


def _path(value: Optional[Path]) -> Optional[bytes]:
    return None if value is None else os.fsencode(value)


class _Fill:
    """Inputs of verify as the function that the library calls; what it raises is raised again afterwards."""

    def __init__(self, inputs: Union[None, Fill, Mapping[str, Any]]) -> None:
        self.inputs, self.error = inputs, None  # type: Tuple[Any, Optional[BaseException]]
        make: Any = c.FILL
        self.function = make(self._fill) if inputs is not None else make()

    def _fill(self, _ctx: Any, raw: Any, step: int, data: int, size: int, _diag: Any) -> int:
        try:
            info = raw.contents
            variable = variable_of(info)
            value = self.inputs(variable, step) if callable(self.inputs) else self.inputs.get(variable.name)
            if value is None:
                return c.NOT_FOUND
            view, keep = _arrays.prepared(variable.name, value, info.dtype)
            if view.size_bytes != size:
                raise ValueError(f"{variable.name}: {view.n_elements} elements were given, its dims are {variable.dims}")
            ctypes.memmove(data, view.data, size)
            del keep
            return c.OK
        except BaseException as e:  # noqa: B036  nothing may pass through C
            self.error = e
            return c.USAGE

    def reraise(self) -> None:
        if self.error is not None:
            raise self.error


def open(path: Path, model: Union[None, Path, Model] = None, **sizes: int) -> Graph:  # noqa: A001
    """A graph from FILE.oi, FILE.json or MODEL.oinf#NAME, over a model package; sizes override those of the model."""
    return _made("oi_graph_load_with", os.fspath(path), [os.fsencode(path)], model, sizes)


def parse(text: str, model: Union[None, Path, Model] = None, name: str = "graph", **sizes: int) -> Graph:
    """The same from a text."""
    raw = text.encode()
    return _made("oi_graph_parse_with", name, [raw, len(raw), name.encode()], model, sizes)


def _made(function: str, name: str, args: List[Any], model: Union[None, Path, Model], sizes: Dict[str, int]) -> Graph:
    if model is None and ".oinf" in name:
        model = name.split("#")[0]
    opened = model if isinstance(model, Model) or model is None else Model(model)
    given, handle = c.sizes_array(sizes), ctypes.c_void_p()
    options = c.GraphOptions(model=opened._handle if opened else None, sizes=given, n_sizes=len(sizes))
    c.call(function, *args, ctypes.byref(options), ctypes.byref(handle))
    return Graph(handle, name, opened, sizes)


def profiles() -> List[str]:
    """The built-in devices."""
    lib = c.library()
    return [lib.oi_device_profile_name(i).decode() for i in range(lib.oi_device_profile_count())]


def version() -> str:
    """Of the library."""
    return str(c.library().oi_version().decode())
