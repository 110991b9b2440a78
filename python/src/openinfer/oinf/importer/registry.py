"""The rows of the operator registry as the importer needs them.

`registry.json` is printed from ops/ops.json by `python -m openinfer.oinf.importer.registry OPS.json`; a test
compares the two. So the package imports models on a machine that has no `openinfer` command.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Dict, List, Mapping, Tuple

FILE = Path(__file__).with_name("registry.json")


@dataclass(frozen=True)
class Row:
    name: str
    known_as: str
    onnx: Tuple[str, ...]
    inputs: Tuple[str, ...]
    attrs: Mapping[str, Mapping[str, Any]]
    dtypes: str


def load() -> Dict[str, Row]:
    rows = json.loads(FILE.read_text(encoding="utf-8"))["ops"]
    return {
        r["name"]: Row(r["name"], r["known_as"], tuple(r["onnx"]), tuple(r["inputs"]), r["attrs"], r["dtypes"]) for r in rows
    }


ROWS = load() if FILE.exists() else {}


def by_onnx() -> Dict[str, List[Row]]:
    """ONNX operator -> the rows that name it."""
    found: Dict[str, List[Row]] = {}
    for row in ROWS.values():
        for entry in row.onnx:
            found.setdefault(entry.rpartition("-")[0], []).append(row)
    return found


def nearest(operator: str) -> str:
    """The op of ours whose names come closest to an ONNX operator's."""
    words: Dict[str, str] = {}
    for row in ROWS.values():
        for name in [row.name, *row.known_as.split(), *(e.rpartition("-")[0] for e in row.onnx)]:
            words.setdefault(name.lower().replace("_", ""), row.name)
    match = get_close_matches(operator.lower().replace("_", ""), list(words), n=1, cutoff=0.7)
    return words[match[0]] if match else ""


def condensed(path: str) -> str:
    """The text of registry.json."""
    table = json.loads(Path(path).read_text(encoding="utf-8"))
    rows = []
    for r in table["ops"]:
        attrs = {k: table["attrs"][a] if isinstance(a, str) else a for k, a in r.get("attrs", {}).items()}
        rows.append({
            "name": r["name"], "known_as": r.get("known_as", ""), "onnx": r.get("onnx", "").split(), "dtypes": r["dtypes"],
            "inputs": [i if isinstance(i, str) else i["name"] for i in r.get("inputs", [])],
            "attrs": {k: {f: a[f] for f in ("kind", "default", "values", "alias") if f in a} for k, a in attrs.items()},
        })  # fmt: skip
    head = "generated from ops/ops.json by python -m openinfer.oinf.importer.registry, do not edit"
    lines = ",\n".join(json.dumps(r) for r in rows)
    return f'{{"$doc": "{head}",\n "ops": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    sys.stdout.write(condensed(sys.argv[1]))
