"""The page docs/onnx-ops.md, ONNX operator by operator: `python table.py > docs/onnx-ops.md`.

What an operator becomes is not written down anywhere but found out: the node tests of the onnx package are imported as
they are, and the ops of the statements that each node became are noted. Rows of the registry that name an operator come
first; they are links.
"""

import pathlib
import sys

import onnx

import backend
from openinfer.oinf.importer.convert import Options, import_model
from openinfer.oinf.importer.registry import by_onnx
from openinfer.oinf.importer.rules import all_rules

WORDS = {
    "If": "the branch that is taken; otherwise both and `where`", "Loop": "its turns", "Scan": "its turns",
    "Constant": "a constant", "ConstantOfShape": "a constant", "Shape": "a constant", "Size": "a constant", "EyeLike": "a constant",
}  # fmt: skip
HEAD = """\
<!-- generated from ops/ops.json and the node tests of onnx {version} by tests/onnx_nodes/table.py, do not edit -->

# ONNX operators

What `oinf import` makes of each operator of ONNX. A link means that the op's row in the registry names the operator.
For others the ops are those that ONNX's node tests became. "its function" stands for the nodes by which ONNX itself
defines an operator, "–" for no counterpart: the import fails and says so. An operator whose operands are constants is
computed at import time, whichever it is. Patterns of several nodes that become one op, and the operators of
onnxruntime's quantiser, are in [import.md](import.md).

| ONNX | since opset | here |
|---|---|---|
"""


def operators():
    """name -> newest schema, of the standard domain."""
    newest = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version >= newest.get(schema.name, schema).since_version:
            newest[schema.name] = schema
    return dict(sorted(newest.items()))


def program_of(case):
    """The program of a node test as it is, or None where there is none."""
    try:
        backend.check_types(case)
        given = {i.name: backend.array(v) for i, v in zip(case.model.graph.input, case.data_sets[0][0]) if v is not None}
        return backend.imported(case, given, plain=True)
    except (backend.Skip, backend.Fail, backend.OinfError):
        return None


def seen():
    """Operator -> the ops that tests of it became, most frequent first."""
    found = {}
    for case in backend.cases():
        kinds = {node.op_type for node in case.model.graph.node if node.domain == ""}
        program = program_of(case) if len(kinds) == 1 else None
        for item in program.items if program else ():
            counts = found.setdefault(*kinds, {})
            counts[item.op] = counts.get(item.op, 0) + 1
    return {k: sorted(v, key=lambda op: (-v[op], op)) for k, v in found.items()}


def here(schema, ops, rules, rows):
    name = schema.name
    links = [f"[`{row.name}`](ops.md#{row.name})" for row in rows.get(name, ())]
    if name in WORDS:
        return " or ".join([WORDS[name], *links])
    known = {row.name for row in rows.get(name, ())}
    others = [f"`{op}`" for op in ops if op not in known and not links]
    if name in rules:
        return ", ".join([*links, *others]) or "some ops; no node test shows them"
    return f"its function: {', '.join(others)}" if others else "–"


def page():
    rules, rows, ops = all_rules(), by_onnx(), seen()
    lines = [f"| {name} | {s.since_version} | {here(s, ops.get(name, ()), rules, rows)} |" for name, s in operators().items()]
    return HEAD.format(version=onnx.__version__) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
