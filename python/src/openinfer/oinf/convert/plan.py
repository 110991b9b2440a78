"""What a conversion will write, decided before a byte is written.

Names, types, sizes and metadata are settled here, so that a mistake in the command is found at
once and not after minutes of copying.
"""

from __future__ import annotations

import difflib
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Optional, Tuple

from ..dtypes import scalar_dtype
from ..types import OinfError, ScalarValue
from ..values import numel_of, plain
from .cast import cast_part
from .rename import Rule, apply_rules, compile_pattern, load_rules
from .shape import Step, apply_steps
from .side_files import config_metadata, read_text, tokenizer_metadata
from .tokenizer import flat, gguf_key
from .weights import Part, SourceTensor, Weights, legal_name, shape_text, shown


@dataclass
class Options:
    """The command's options, as they are written there."""

    rename: List[str] = field(default_factory=list)
    unmatched: str = "keep"
    dtype: List[str] = field(default_factory=list)
    lossy: bool = False
    dequantize: List[str] = field(default_factory=list)
    sizevar: List[str] = field(default_factory=list)
    meta: List[str] = field(default_factory=list)
    drop_metadata: List[str] = field(default_factory=list)
    metadata: List[str] = field(default_factory=list)
    tokenizer: List[str] = field(default_factory=list)
    graph: List[str] = field(default_factory=list)


@dataclass
class Plan:
    sizevars: Dict[str, int] = field(default_factory=dict)
    metadata: Dict[str, Any] = field(default_factory=dict)
    tensors: Dict[str, Part] = field(default_factory=dict)
    lines: List[Tuple[str, str, str, str]] = field(default_factory=list)  # source, type, shape, stored as
    notes: List[str] = field(default_factory=list)
    kinds: "Counter[str]" = field(default_factory=Counter)

    @property
    def nbytes(self) -> int:
        return sum(scalar_dtype(p.dtype).nbytes(numel_of(p.dims)) for p in self.tensors.values())


def make_plan(inputs: List[Weights], options: Options) -> Plan:
    plan = Plan()
    _tensors(plan, inputs, options)
    _metadata(plan, inputs, options)
    _sizevars(plan, inputs, options)
    return plan


# ---- tensors ----------------------------------------------------------------------------


@dataclass
class _Types:
    """--dtype and --dequantize: the first pattern that matches the new name decides."""

    rows: List[Tuple["re.Pattern[str]", str]]
    every: Optional[str]
    real: List["re.Pattern[str]"]

    @classmethod
    def parse(cls, options: Options) -> "_Types":
        rows, every = [], None
        for item in options.dtype:
            pattern, equals, name = item.rpartition("=")
            found = scalar_dtype(name.strip()).name
            if equals:
                rows.append((compile_pattern(pattern.strip()), found))
            elif every is not None:
                raise OinfError(f"--dtype {item}: there is already one for all tensors, {every}")
            else:
                every = found
        return cls(rows, every, [compile_pattern(p) for p in options.dequantize])

    def apply(self, t: SourceTensor, name: str, lossy: bool) -> List[Part]:
        asked = next((dtype for pattern, dtype in self.rows if pattern.fullmatch(name)), None)
        if t.parts is None:
            raise OinfError(f"its type {t.kind} is not supported; a rule 'NAME -> -' leaves it out")
        if t.group:
            if not any(p.fullmatch(name) for p in self.real):
                if asked is not None:
                    raise OinfError(f"it is stored in blocks ({t.kind}); --dequantize gives --dtype real numbers to convert")
                return t.parts
            assert t.real is not None
            parts = [t.real]
        else:
            parts = t.parts
        if asked is None and self.every is not None and scalar_dtype(parts[0].dtype).is_float:
            asked = self.every
        return [cast_part(p, asked, lossy) for p in parts] if asked else parts


def _tensors(plan: Plan, inputs: List[Weights], options: Options) -> None:
    rules = load_rules(options.rename)
    types = _Types.parse(options)
    unmatched: List[str] = []
    spelled: List[str] = []
    origin: Dict[str, str] = {}
    for weights in inputs:
        for t in weights.tensors:
            name, rule = apply_rules(rules, t.name)
            if rules and not rule:
                unmatched.append(t.name)
                name = t.name if options.unmatched == "keep" else None
            if name is None:
                plan.lines.append((t.name, t.kind, shape_text(t.dims), "-"))
                continue
            if legal_name(name) != name:
                spelled.append(f"{shown(name)} -> {legal_name(name)}")
                name = legal_name(name)
            _add(plan, weights, t, name, rule.steps if rule else [], origin, types, options.lossy)
    if unmatched and options.unmatched == "error":
        raise OinfError(f"no rule matches {_some(unmatched)}")
    _notes(plan, rules, unmatched, spelled, options)


def _add(
    plan: Plan, weights: Weights, t: SourceTensor, name: str, steps: List[Step], origin: Dict[str, str],
    types: _Types, lossy: bool,
) -> None:  # fmt: skip
    try:
        parts = types.apply(t, name, lossy)
        if steps and len(parts) > 1:
            raise OinfError(f"it is stored in blocks ({t.kind}), which keep their shape; --dequantize gives real numbers")
        parts = [apply_steps(part, steps) for part in parts]
    except OinfError as e:
        raise OinfError(f"tensor {shown(t.name)!r}: {e.reason}", weights.path, t.offset) from None
    for part in parts:
        full = name + part.suffix
        if full in origin:
            raise OinfError(f"{shown(origin[full])!r} and {shown(t.name)!r} would both be stored as {full!r}", weights.path)
        origin[full] = t.name
        plan.tensors[full] = part
    stored = " ".join(f"{name}{p.suffix}: {p.dtype}{shape_text(p.dims)}" for p in parts)
    plan.lines.append((t.name, t.kind, shape_text(t.dims), stored))
    plan.kinds[t.kind] += 1


def _some(names: List[str], most: int = 3) -> str:
    text = ", ".join(shown(n) for n in names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most} more"


def _notes(plan: Plan, rules: List[Rule], unmatched: List[str], spelled: List[str], options: Options) -> None:
    if unmatched:
        fate = "kept under their own names" if options.unmatched == "keep" else "left out"
        plan.notes.append(f"no rule matches {_some(unmatched)}: {fate}")
    if spelled:
        plan.notes.append(f"names outside [A-Za-z0-9._-] were changed: {_some(spelled)}")
    idle = [r.text for r in rules if not r.used]
    if idle:
        plan.notes.append(f"no tensor matches the rule {_some(idle)}")


# ---- metadata and sizes -------------------------------------------------------------------


def _metadata(plan: Plan, inputs: List[Weights], options: Options) -> None:
    drop = [compile_pattern(p) for p in options.drop_metadata]
    for weights in inputs:
        found = {gguf_key(k): v for k, v in weights.metadata.items()} if weights.format == "GGUF" else weights.metadata
        for key, value in flat(found).items():
            key = legal_name(key)
            if not any(p.fullmatch(key) for p in drop):
                plan.metadata.setdefault(key, value)  # of split files the first one speaks
    for path in options.metadata:
        found, skipped = config_metadata(path)
        plan.metadata.update({legal_name(k): v for k, v in flat(found).items()})
        if skipped:
            plan.notes.append(f"{path}: no form for {_some(skipped)}")
    plan.metadata.update(flat(tokenizer_metadata(options.tokenizer)))
    for item in options.graph:
        name, equals, path = item.rpartition("=")
        if equals and (path.endswith(".json") or name == "json"):
            raise OinfError(f"--graph {item}: a graph with a name is text, and its name is not json")
        key = f"oi.graph.{name}" if equals else "oi.graph.json" if path.endswith(".json") else "oi.graph"
        plan.metadata[key] = read_text(path)
    for item in options.meta:
        key, equals, text = item.partition("=")
        if not equals:
            raise OinfError(f"--meta wants KEY=VALUE, found {item!r}")
        plan.metadata[key.strip()] = parse_value(text.strip())
    plan.metadata.setdefault("oi.producer", "oinf convert")
    plan.metadata.setdefault("oi.created_from", " ".join(os.path.basename(w.path) for w in inputs))


def parse_value(text: str) -> Any:
    """A number or truth value where the text is one, otherwise the text."""
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"[+-]?[0-9]+", text) and len(text) < 20:
        return int(text)
    if re.fullmatch(r"[+-]?([0-9]+\.[0-9]*|\.?[0-9]+)([eE][+-]?[0-9]+)?", text):
        return float(text)
    return text


def _sizevars(plan: Plan, inputs: List[Weights], options: Options) -> None:
    """NAME=123, NAME=metadata.key or NAME=tensor:axis."""
    dims = {t.name: t.dims for w in inputs for t in w.tensors}
    raw = {k: v for w in inputs for k, v in w.metadata.items()}
    for item in options.sizevar:
        name, equals, text = (s.strip() for s in item.partition("="))
        if not equals or not text:
            raise OinfError(f"--sizevar wants NAME=VALUE, found {item!r}")
        plan.sizevars[name] = _size(text, dims, raw, plan, f"--sizevar {name}")


def _size(text: str, dims: Dict[str, Tuple[int, ...]], raw: Dict[str, Any], plan: Plan, what: str) -> int:
    if re.fullmatch(r"[0-9]{1,19}", text):
        return int(text)
    tensor, colon, axis = text.rpartition(":")
    if colon and re.fullmatch(r"[0-9]{1,2}", axis):
        part = plan.tensors.get(tensor)
        found = part.dims if part else dims.get(tensor)  # a name that is stored means what is stored
        if found is None:
            raise OinfError(f"{what}: no tensor {tensor!r}{_near(tensor, [*dims, *plan.tensors])}")
        if int(axis) >= len(found):
            raise OinfError(f"{what}: {tensor} has shape {shape_text(found)}, there is no axis {axis}")
        return found[int(axis)]
    if text not in plan.metadata and text not in raw:
        raise OinfError(f"{what}: no metadata key {text!r}{_near(text, [*raw, *plan.metadata])}")
    value = raw.get(text, plan.metadata.get(text))
    value = plain(value.value if isinstance(value, ScalarValue) else value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise OinfError(f"{what}: {text} is not a whole number from 0 up")
    return value


def _near(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, sorted(set(names))[:5000], 1)
    return f"; did you mean {close[0]!r}?" if close else ""
