"""OpenInfer from Python: open a graph over a model, simulate it, turn it into a program, prove that they agree.

    graph = openinfer.open("minimal.oi", "model.oinf")
    run = graph.executor()
    run.step(x=0.5 * numpy.ones(1024, numpy.float32))
    print(run.fetch("y"))

Arrays need numpy. openinfer.oinf reads and writes model packages and needs nothing.
"""

from ._library import Error, InputError, Message, MissingError, UnavailableError, UsageError, Warning
from .executor import Event, Executor, Simulator, Variable
from .graph import Cost, Device, Graph, Kernel, Plan, Report, Row, open, parse, profiles, version
from .model import Model

__version__ = "0.1.0"

__all__ = [
    "Cost", "Device", "Error", "Event", "Executor", "Graph", "InputError", "Kernel", "Message",
    "MissingError", "Model", "Plan", "Report", "Row", "Simulator", "UnavailableError", "UsageError", "Variable", "Warning", "open", "parse",
    "profiles", "version",
]  # fmt: skip
