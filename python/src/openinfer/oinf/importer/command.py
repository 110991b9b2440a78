"""The command line of `oinf import`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, Dict, List, Optional

from ..convert.weights import need_numpy
from ..types import OinfError, StreamTensor, TensorSpec
from ..write import PackageWriter
from .convert import Imported, Options, import_model
from .loops import statements_of
from .names import identifier
from .stripped import STEP, forget
from .text import Program, write_text
from .values import Value

PACKED = ("i2", "u2", "i4", "u4")

EPILOG = """\
DIR gets model.oinf (the weights), NAME.oi (the graph) and summary.txt.
  oinf import model.onnx --check               what has no counterpart, and nothing is written
  oinf import model.onnx -o out --size N=1     the symbol N of its shapes is 1
  oinf import model.onnx -o out --bind axes=0  an input becomes a constant
"""


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="oinf import", description="Turn an ONNX model into a package and a graph text.", epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add: Any = p.add_argument
    add("model", metavar="MODEL.onnx", help="the model; data in other files lies in its folder")
    add("-o", "--output", metavar="DIR", help="folder to write, made when it is not there")
    add("--name", help="name of the graph text (the model's)")
    add("--size", action="append", default=[], metavar="SYMBOL=N", help="the number a symbol of the shapes stands for (repeatable)")
    add("--bind", action="append", default=[], metavar="INPUT=VALUE",
        help="make an input a constant: numbers with commas between, or FILE.npy (repeatable)")  # fmt: skip
    add("--state", action="append", default=[], metavar="INPUT=OUTPUT",
        help="keep a state in the program: the output of a step is the input of the next one (repeatable)")  # fmt: skip
    add("--plain", action="store_true", help="every node as it is: no patterns become ops, no layers a loop")
    add("--check", action="store_true", help="only report what has no counterpart")
    add("--map", action="store_true", help="print which lines of the text each ONNX node became")
    add("-q", "--quiet", action="store_true", help="print no summary")
    return p


def main(argv: Optional[List[str]] = None) -> int:
    parser = _parser()
    args = parser.parse_args(argv)
    if not args.output and not args.check:
        parser.error("--output or --check is wanted")
    try:
        return _run(args)
    except OinfError as e:
        return _fail(str(e))
    except OSError as e:
        name = e.filename if isinstance(e.filename, str) else args.model
        return _fail(f"oinf: {name}: {e.strerror or e}")
    except (MemoryError, RecursionError):
        return _fail(f"oinf: {args.model}: the model is too large or too deep")
    except KeyboardInterrupt:
        return _fail("oinf: interrupted")


def _fail(text: str) -> int:
    print(" ".join(text.split()), file=sys.stderr)
    return 1


def _run(args: argparse.Namespace) -> int:
    need_numpy()
    options = Options({k: int(v) for k, v in pairs(args.size, "--size", str.isdecimal)}, bindings(args.bind), args.plain, dict(pairs(args.state, "--state", bool)))
    imported = import_model(args.model, options)
    if imported.problems:
        for p in imported.problems:
            print(p.text(), file=sys.stderr)
        n = len(imported.problems)
        return _fail(f"oinf: {args.model}: {n} of {imported.lowering.n_nodes} nodes {'has' if n == 1 else 'have'} no counterpart")
    if args.check:
        print(f"{args.model}: every one of its {imported.lowering.n_nodes} nodes has a counterpart")
        return 0
    name = identifier(args.name or os.path.splitext(os.path.basename(args.model))[0], "model")
    title = [f"from {os.path.basename(args.model)} by oinf import"]
    text = write_text(imported.program, title)
    lines = summary(imported, name, text)
    write_all(args.output, name, text, imported.program, lines)
    if args.map:
        print_map(imported, name)
    if not args.quiet:
        print("\n".join(lines))
    return 0


def pairs(texts: List[str], option: str, good: Any) -> List[Any]:
    found = []
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not (name and equals and good(value)):
            raise OinfError(f"{option} {text}: NAME=VALUE is wanted")
        found.append((name, value))
    return found


def bindings(texts: List[str]) -> Dict[str, Any]:
    np = need_numpy()
    bound: Dict[str, Any] = {}
    for name, value in pairs(texts, "--bind", bool):
        try:
            if value.endswith(".npy"):
                bound[name] = np.load(value, allow_pickle=False)
            else:
                numbers = [json.loads(part) for part in value.split(",")]
                bound[name] = np.asarray(numbers if len(numbers) > 1 else numbers[0])
        except (ValueError, TypeError):
            raise OinfError(f"--bind {name}={value}: numbers with commas between, or a .npy file are wanted") from None
    return bound


def summary(imported: Imported, name: str, text: str) -> List[str]:
    low, program = imported.lowering, imported.program
    return [
        f"{name}.oi: {low.n_nodes} ONNX nodes became {len(statements_of(program.items))} statements on {text.count(chr(10))} lines",
        f"folded into constants: {low.n_folded}; replaced by their function's nodes: {low.n_inlined}",
        f"model.oinf: {len(program.tensors)} tensors; other constants are numbers in the text",
        *([f"sizes: {', '.join(f'{k} = {v}' for k, v in program.sizes.items())}"] if program.sizes else []),
        *(f"{symbol} stays a number: {why}" for symbol, why in imported.stays.items()),
        *([f"states: {', '.join(program.state_labels)}"] if program.states else []),
        "inputs: " + ", ".join(v.label for v in program.inputs),
        "outputs: " + ", ".join(v.label for v in program.outputs),
    ]


def write_all(folder: str, name: str, text: str, program: Program, lines: List[str], report: str = "summary.txt") -> None:
    os.makedirs(folder, exist_ok=True)
    write_package(os.path.join(folder, "model.oinf"), program)
    for file, content in ((f"{name}.oi", text), (report, "\n".join(lines) + "\n")):
        with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
            f.write(content)


def write_package(path: str, program: Program) -> None:
    with PackageWriter(path) as w:
        for size, number in program.sizes.items():
            w.add_sizevar(size, number)
        if program.names:
            w.add_metadata("import.names", json.dumps(program.names, sort_keys=True))
        for key, value in program.tensors.items():
            w.add_tensor(key, stored(value))


def stored(value: Value) -> Any:
    np = need_numpy()
    if value.dtype in PACKED:
        return TensorSpec(value.data.astype(np.int64).reshape(-1).tolist() if value.data.ndim == 1 else value.data.astype(np.int64).tolist(), value.dtype)

    def chunks() -> Any:
        data = value.data if value.data.flags.c_contiguous else np.ascontiguousarray(value.data)
        flat = data.reshape(-1).view(np.uint8)
        for at in range(0, flat.size, STEP):
            yield memoryview(flat[at : at + STEP])
            forget(value.data)

    return StreamTensor(value.dtype, [int(d) for d in value.data.shape], chunks)


def print_map(imported: Imported, name: str) -> None:
    for origin, (node, op) in enumerate(imported.lowering.nodes):
        lines = imported.program.lines.get(origin)
        fate = imported.lowering.fates.get(origin, "no output depends on it")
        where = ", ".join(f"{name}.oi:{line}" for line in lines) if lines else fate
        print(f"{node} ({op}) -> {where}")
