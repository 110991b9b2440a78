"""Names by the modules that torch's exporter notes beside each node.

Its newer exporter names results after functions and counts them up (`linear_7`, `val_61`); the module that a node
comes from is in the node's metadata. Names of the form /layers.0/attn/MatMul, as its older exporter writes them,
say more, and what groups statements and names weights reads them.
"""

from __future__ import annotations

import ast
from typing import Any, Dict, List, Optional, Set

KEY = "pkg.torch.onnx.name_scopes"  # a list as Python writes it: the path of each module around the node, then its function
LONGEST = 4096


def scope_of(node: Any) -> Optional[str]:
    """'layers.0/attn' for ['', 'layers.0', 'layers.0.attn', 'linear_7']; None where the metadata is missing or broken."""
    text = next((p.value for p in getattr(node, "metadata_props", ()) if p.key == KEY), "")
    try:
        paths = ast.literal_eval(text) if isinstance(text, str) and len(text) <= LONGEST else None
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    if not isinstance(paths, list) or not all(isinstance(p, str) and "/" not in p for p in paths):
        return None
    parts: List[str] = []
    before = ""
    for path in paths[:-1]:
        inside = path[len(before) + 1 :] if before and path.startswith(before + ".") else path
        if inside == path or not inside[:1].isdecimal():
            parts += [inside] if inside else []
        else:  # an entry of a list
            parts[-1] += f".{inside}"
        before = path
    return "/".join(parts)


def named_by_scope(model: Any) -> Any:
    """The model with results named after their modules; the model itself where no node has such metadata."""
    scopes = [scope_of(node) for node in model.graph.node]
    if not any(scopes):
        return model
    named = type(model)()
    named.CopyFrom(model)
    graph = named.graph
    fixed = {info.name for info in graph.output} | inner_names(graph.node)
    taken = {name for node in graph.node for name in (*node.input, *node.output)} | fixed
    made: Dict[str, str] = {}  # name -> scope
    rename: Dict[str, str] = {}
    counts: Dict[str, int] = {}
    for node, known in zip(graph.node, scopes):
        # what the exporter's optimiser made has none: it goes with its first operand
        scope = made.get(node.input[0], "") if known is None and node.input else known
        for name in node.output:
            made[name] = scope or ""
            if not scope or not name or name in fixed or name in rename:
                continue
            new = stem = f"/{scope}/{node.op_type}"
            while new in taken:
                counts[stem] = counts.get(stem, 0) + 1
                new = f"{stem}_{counts[stem]}"
            taken.add(new)
            rename[name] = new
    for node in graph.node:
        node.input[:] = [rename.get(name, name) for name in node.input]
        node.output[:] = [rename.get(name, name) for name in node.output]
    return named


def inner_names(nodes: Any) -> Set[str]:
    """Names that the bodies of branches and loops read or give."""
    found: Set[str] = set()
    bodies = [a.g for node in nodes for a in node.attribute if a.HasField("g")]
    while bodies:
        body = bodies.pop()
        found.update(info.name for info in body.output)
        for node in body.node:
            found.update(node.input)
            bodies += [a.g for a in node.attribute if a.HasField("g")]
    return found
