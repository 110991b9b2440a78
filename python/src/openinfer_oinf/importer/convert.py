"""From a file to a program: reading, lowering, what is left of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from ..convert.protobuf import Span
from ..types import OinfError
from .lowering import Lowering, Problem
from .loops import roll
from .patterns import needed, recognise
from .reading import constant_of, functions_of, inputs_of, opsets_of, read_model
from .rules import all_rules
from .text import Program
from .values import Statement, Unsupported, Value


@dataclass
class Options:
    sizes: Dict[str, int] = field(default_factory=dict)
    bound: Dict[str, Any] = field(default_factory=dict)
    plain: bool = False  # no patterns and no loops


@dataclass
class Imported:
    program: Program
    lowering: Lowering
    problems: List[Problem]


def import_model(path: str, options: Optional[Options] = None, model: Any = None) -> Imported:
    """The program of an ONNX file, or of a model that is loaded already (`path` is then where its data lies)."""
    options = options or Options()
    spans: Dict[int, Span] = {}
    if model is None:
        model, spans = read_model(path)
    opsets = opsets_of(model)
    check_opset(opsets, path)
    lowering = Lowering(opsets, functions_of(model), all_rules(), path)
    inputs, unknown = inputs_of(model.graph, options.sizes, options.bound, path)
    if unknown:
        names = list(dict.fromkeys(unknown))
        raise OinfError(f"the sizes {', '.join(names)} are symbols: give them numbers, as in --size {names[0]}=1", path)
    for value in inputs:
        lowering.env[value.name] = value
    try:
        for i, tensor in enumerate(model.graph.initializer):
            lowering.env[tensor.name] = constant_of(tensor, path, spans.get(i))
        lowering.graph(model.graph)
    except Unsupported as e:
        raise OinfError(str(e), path) from None
    return finish(model, lowering, [v for v in inputs if v.data is None], path, options.plain)


def check_opset(opsets: Dict[str, int], path: str) -> None:
    from .values import need_onnx

    newest = need_onnx().defs.onnx_opset_version()
    opset = opsets.get("", newest)
    if opset > newest:
        raise OinfError(f"opset {opset} is newer than the onnx package knows ({newest}): update it", path)


def finish(model: Any, lowering: Lowering, inputs: List[Value], path: str, plain: bool) -> Imported:
    outputs: List[Value] = []
    program = Program(inputs, outputs, [])
    if not lowering.problems:
        for info in model.graph.output:
            if info.name not in lowering.env:
                raise OinfError(f"output '{info.name}' comes from no node", path)
            outputs.append(output_of(info.name, lowering, inputs, outputs))
            program.output_names.append(info.name)
        statements = needed(lowering.statements, outputs)
        program.items = [*statements]
        if not plain:
            program.items, program.outputs = roll(recognise(statements, outputs), outputs, inputs)
    return Imported(program, lowering, lowering.problems)


def output_of(name: str, lowering: Lowering, inputs: List[Value], outputs: List[Value]) -> Value:
    """A result needs a variable of its own: inputs, constants and results named twice are copied."""
    value = lowering.env[name]
    if value.data is None and value not in inputs and value not in outputs:
        return value
    copy = Value(name, value.dtype, value.shape)
    lowering.statements.append(Statement("identity", [value], {}, [copy], -1))
    return copy

