"""Rules that select, rename and drop tensors by name.

    model.layers.{l}.self_attn.q_proj.weight -> Wq.{l}
    *.rotary_emb.inv_freq -> -            drop
    model.norm.weight -> =                keep the name
    conv.weight -> Wc | squeeze(2)        and another shape: shape.py

`{x}` stands for one or more characters other than '.', `*` for any, '.' included. The first rule
that matches a whole name decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Optional, Tuple

from ..types import OinfError
from .shape import Step, parse_steps

DROP, KEEP = "-", "="
_MARK = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}|(\*)")


def compile_pattern(pattern: str) -> "re.Pattern[str]":
    """A whole-name expression for a pattern; a mark that occurs twice must stand for the same."""
    out, at, seen = "", 0, set()
    for m in _MARK.finditer(pattern):
        out += re.escape(pattern[at : m.start()])
        name = m[1] or "any_"
        if m[2] and name in seen:
            out += ".*"
        elif name in seen:
            out += f"(?P={name})"
        else:
            out += f"(?P<{name}>{'.*' if m[2] else '[^.]+'})"
        seen.add(name)
        at = m.end()
    return re.compile(out + re.escape(pattern[at:]), re.S)


@dataclass
class Rule:
    text: str
    pattern: "re.Pattern[str]"
    target: str
    steps: List[Step] = field(default_factory=list)
    used: int = 0


def parse_rule(text: str, where: str) -> Rule:
    pattern, arrow, target = (s.strip() for s in text.partition("->"))
    target, bar, more = (s.strip() for s in target.partition("|"))
    if not arrow or not pattern or not target or "->" in target:
        raise OinfError(f"{where}: a rule reads 'PATTERN -> NAME', found {text.strip()!r}")
    if len(pattern) > 1000 or pattern.count("*") > 2:
        raise OinfError(f"{where}: the pattern is too long or has more than two '*'")
    compiled = compile_pattern(pattern)
    for m in _MARK.finditer(target):
        if (m[1] or "any_") not in compiled.groupindex:
            raise OinfError(f"{where}: {m[0]} is not in the pattern of {text.strip()!r}")
    if bar and target == DROP:
        raise OinfError(f"{where}: {text.strip()!r} leaves the tensor out, and gives it a shape")
    return Rule(text.strip(), compiled, target, parse_steps(more, where) if bar else [])


def load_rules(given: Iterable[str]) -> List[Rule]:
    """Each item is a rule, or the name of a file with one rule a line ('#' begins a comment)."""
    rules: List[Rule] = []
    for item in given:
        if "->" in item:
            rules.append(parse_rule(item, "--rename"))
            continue
        try:
            with open(item, encoding="utf-8") as f:
                lines = f.read().splitlines()
        except UnicodeDecodeError:
            raise OinfError("the rules are not valid UTF-8", item) from None
        for number, line in enumerate(lines, 1):
            line = re.sub(r"(^|\s)#.*", "", line).strip()
            if line:
                rules.append(parse_rule(line, f"{item}:{number}"))
    return rules


def apply_rules(rules: List[Rule], name: str) -> Tuple[Optional[str], Optional[Rule]]:
    """(new name or None when dropped, the rule that matched)."""
    for rule in rules:
        m = rule.pattern.fullmatch(name)
        if m is None:
            continue
        rule.used += 1
        if rule.target == DROP:
            return None, rule
        if rule.target == KEEP:
            return name, rule
        marks: Dict[str, str] = m.groupdict()
        return _MARK.sub(lambda k: marks[k[1] or "any_"], rule.target), rule
    return name, None
