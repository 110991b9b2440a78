"""From a file to a program: reading, lowering, what is left of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Optional, Tuple

from ..convert.protobuf import Span
from ..types import OinfError
from .lowering import Lowering, Problem
from .loops import roll
from .patterns import needed, recognise
from .reading import constant_of, functions_of, inputs_of, opsets_of, read_model, symbols_of
from .rules import all_rules
from .scopes import named_by_scope
from .sizes import symbolic
from .text import Program
from .values import Statement, Unsupported, Value


@dataclass
class Options:
    sizes: Dict[str, int] = field(default_factory=dict)
    bound: Dict[str, Any] = field(default_factory=dict)
    plain: bool = False  # no patterns and no loops
    states: Dict[str, str] = field(default_factory=dict)  # input -> output: a state that lasts between steps


@dataclass
class Imported:
    program: Program
    lowering: Lowering
    problems: List[Problem]
    stays: Dict[str, str] = field(default_factory=dict)  # symbols that are numbers in the text, and why


def import_model(path: str, options: Optional[Options] = None, model: Any = None) -> Imported:
    """The program of an ONNX file, or of a model that is loaded already (`path` is then where its data lies)."""
    chosen = options or Options()
    spans: Dict[int, Span] = {}
    if model is None:
        model, spans = read_model(path)
    model = named_by_scope(model)
    imported = import_once(path, chosen, model, spans)
    given = {k: v for k, v in chosen.sizes.items() if k in symbols_of(model.graph, chosen.bound)}
    if imported.problems or not given or 0 in given.values():
        return imported

    def make(sizes: Dict[str, int]) -> Optional[Program]:
        try:
            other = import_once(path, replace(chosen, sizes={**chosen.sizes, **sizes}), model, spans)
        except OinfError:
            return None
        return None if other.problems else other.program

    found = symbolic(imported.program, given, make)
    found.program.sizes = found.numbers
    for own, known in zip(found.program.given(), imported.program.given()):
        own.shape = known.shape
    return Imported(found.program, imported.lowering, [], found.stays)


def import_once(path: str, options: Options, model: Any, spans: Dict[int, Span]) -> Imported:
    opsets = opsets_of(model)
    check_opset(opsets, path)
    lowering = Lowering(opsets, functions_of(model), all_rules(), path)
    inputs, unknown = inputs_of(model.graph, options.sizes, options.bound, path)
    if unknown:
        names = list(dict.fromkeys(unknown))
        raise OinfError(f"the sizes {', '.join(names)} are symbols: give them numbers, as in {' '.join(f'--size {name}=1' for name in names)}", path)
    for value in inputs:
        lowering.env[value.name] = value
    try:
        for i, tensor in enumerate(model.graph.initializer):
            lowering.env[tensor.name] = constant_of(tensor, path, spans.get(i))
        lowering.graph(model.graph)
    except Unsupported as e:
        raise OinfError(str(e), path) from None
    return finish(model, lowering, [v for v in inputs if v.data is None], path, options)


def check_opset(opsets: Dict[str, int], path: str) -> None:
    from .values import need_onnx

    newest = need_onnx().defs.onnx_opset_version()
    opset = opsets.get("", newest)
    if opset > newest:
        raise OinfError(f"opset {opset} is newer than the onnx package knows ({newest}): update it", path)


def finish(model: Any, lowering: Lowering, inputs: List[Value], path: str, options: Options) -> Imported:
    outputs: List[Value] = []
    program = Program(inputs, outputs, [])
    if lowering.problems:
        return Imported(program, lowering, lowering.problems)
    for info in model.graph.output:
        if info.name not in lowering.env:
            raise OinfError(f"output '{info.name}' comes from no node", path)
        outputs.append(output_of(info.name, lowering, inputs, outputs))
    names = [info.name for info in model.graph.output]
    statements = needed(lowering.statements, outputs)
    program.items = [*statements]
    if not options.plain:
        program.items, outputs = roll(recognise(statements, outputs), outputs, inputs)
    kept = states_of(options.states, inputs, dict(zip(names, outputs)), path)
    program.states = kept
    program.inputs = [v for v in inputs if v.name not in options.states]
    ends = set(options.states.values())
    program.outputs = [v for v, name in zip(outputs, names) if name not in ends]
    program.output_names = [name for name in names if name not in ends]
    return Imported(program, lowering, lowering.problems)


def states_of(wanted: Dict[str, str], inputs: List[Value], outputs: Dict[str, Value], path: str) -> List[Tuple[Value, Value]]:
    """What each state is read into and written from."""
    by_name = {v.name: v for v in inputs}
    found = []
    for before, after in wanted.items():
        if before not in by_name or after not in outputs:
            what, name = ("input", before) if before not in by_name else ("output", after)
            raise OinfError(f"--state {before}={after}: the model has no {what} '{name}'", path)
        x, y = by_name[before], outputs[after]
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            raise OinfError(f"--state {before}={after}: {x.dtype}{list(x.shape or ())} and {y.dtype}{list(y.shape or ())} differ; a state keeps its type and shape", path)
        found.append((x, y))
    return found


def output_of(name: str, lowering: Lowering, inputs: List[Value], outputs: List[Value]) -> Value:
    """A result needs a variable of its own: inputs, constants and results named twice are copied."""
    value = lowering.env[name]
    if value.data is None and value not in inputs and value not in outputs:
        return value
    copy = Value(name, value.dtype, value.shape)
    lowering.statements.append(Statement("identity", [value], {}, [copy], -1))
    return copy

