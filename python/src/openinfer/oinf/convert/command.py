"""The command line of `oinf convert`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any, Callable, Dict, List, Optional

from ..source import open_regular
from ..types import OinfError, StreamTensor
from ..write import PackageWriter
from .gguf import open_gguf
from .npz import open_npy, open_npz
from .onnx import open_onnx
from .plan import Options, Plan, make_plan
from .progress import Progress
from .safetensors import open_safetensors
from .side_files import shards
from .weights import Weights, need_numpy, shown

READERS: Dict[str, Callable[[str], Weights]] = {
    "gguf": open_gguf, "safetensors": open_safetensors, "onnx": open_onnx, "npz": open_npz, "npy": open_npy,
}  # fmt: skip

EPILOG = """\
rename rules: 'PATTERN -> NAME', or a file with one rule a line ('#' begins a comment). {x} stands
for one or more characters other than '.', * for any. The first rule that matches a whole name decides.
  model.layers.{l}.self_attn.q_proj.weight -> Wq.{l}
  *.inv_freq -> -          leave it out
  model.norm.weight -> =   keep the name
Behind the name, steps may give another shape, from left to right:
  conv.weight -> Wc | squeeze(2) | transpose(1, 0) | reshape(8, -1)
Weights stored in blocks (GGUF's Q4_0 and relatives) become NAME (integers), NAME.scale and, where the
format has them, NAME.offset: real = scale * q + offset, the inputs of qlinear, bit for bit.
"""


def kind_of(path: str) -> str:
    """Which reader a file wants: its first bytes decide, then its name."""
    with open_regular(path) as f:
        head = f.read(9)
    for magic, kind in ((b"GGUF", "gguf"), (b"PK\3\4", "npz"), (b"\x93NUMPY", "npy")):
        if head.startswith(magic):
            return kind
    if head[8:9] == b"{":
        return "safetensors"
    end = os.path.splitext(path)[1].lower().lstrip(".")
    if end in READERS:
        return end
    raise OinfError(f"not a format convert reads ({', '.join(READERS)})", path, 0)


def open_all(paths: List[str], kind: Optional[str] = None) -> List[Weights]:
    opened: List[Weights] = []
    try:
        for path in expand(paths):
            opened.append(READERS[kind or kind_of(path)](path))
    except BaseException:
        close_all(opened)
        raise
    return opened


def expand(paths: List[str]) -> List[str]:
    """The files to read: an index stands for those it names."""
    return [p for path in paths for p in (shards(path) if path.endswith(".index.json") else [path])]


def close_all(opened: List[Weights]) -> None:
    for weights in opened:
        weights.close()


def convert(
    paths: List[str], output: str, options: Optional[Options] = None, kind: Optional[str] = None,
    progress: Optional[bool] = False,
) -> Plan:  # fmt: skip
    """Write the files' weights as one package; returns what was written."""
    need_numpy()
    opened = open_all(paths, kind)
    try:
        if any(os.path.exists(output) and os.path.samefile(p, output) for p in paths):
            raise OinfError("the output is one of the inputs", output)
        plan = make_plan(opened, options or Options())
        _write(plan, output, progress)
        return plan
    finally:
        close_all(opened)


def _write(plan: Plan, output: str, progress: Optional[bool]) -> None:
    bar = Progress(plan.nbytes, progress)
    try:
        with PackageWriter(output) as w:
            for name, size in plan.sizevars.items():
                w.add_sizevar(name, size)
            for key, value in plan.metadata.items():
                w.add_metadata(key, value)
            for name, part in plan.tensors.items():
                w.add_tensor(name, StreamTensor(part.dtype, part.dims, bar.watch(name, part.chunks)))
    finally:
        bar.close()


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="oinf convert", description="Write the weights of other formats as one OINF package.", epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add: Any = p.add_argument
    add("inputs", nargs="+", metavar="FILE", help="GGUF, safetensors (or its index.json), ONNX, .npz or .npy file; several are joined")
    add("-o", "--output", metavar="PATH", help="package to write")
    add("--list", action="store_true", help="print what would be written, write nothing")
    add("--rename", action="append", default=[], metavar="RULE|FILE", help="select, rename, drop or reshape tensors (repeatable)")
    add("--unmatched", choices=["keep", "drop", "error"], default="keep", help="names that no rule matches (keep)")
    add("--dtype", action="append", default=[], metavar="[PATTERN=]TYPE",
        help="element type of all float tensors, or of those with such a new name; exact, or an error")  # fmt: skip
    add("--lossy", action="store_true", help="let --dtype round to nearest")
    add("--dequantize", action="append", default=[], metavar="PATTERN", help="store these block tensors as real numbers, f32")
    add("--sizevar", action="append", default=[], metavar="NAME=VALUE",
        help="a size: a number, a metadata key, or TENSOR:AXIS (repeatable)")  # fmt: skip
    add("--metadata", action="append", default=[], metavar="FILE.json", help="metadata from a config.json (repeatable)")
    add("--tokenizer", action="append", default=[], metavar="FILE",
        help="tokenizer.json, tokenizer_config.json or vocab.txt (repeatable)")  # fmt: skip
    add("--meta", action="append", default=[], metavar="KEY=VALUE", help="more metadata (repeatable)")
    add("--graph", action="append", default=[], metavar="[NAME=]FILE", help="put a graph into the package (repeatable)")
    add("--drop-metadata", action="append", default=[], metavar="PATTERN", help="metadata keys to leave out (repeatable)")
    add("--format", choices=sorted(READERS), help="instead of looking at the file")
    add("-q", "--quiet", action="store_true", help="no summary, no progress bar")
    return p


def main(argv: Optional[List[str]] = None) -> int:
    parser = _parser()
    args = parser.parse_args(argv)
    if not args.output and not args.list:
        parser.error("--output or --list is wanted")
    options = Options(
        args.rename, args.unmatched, args.dtype, args.lossy, args.dequantize, args.sizevar, args.meta,
        args.drop_metadata, args.metadata, args.tokenizer, args.graph,
    )  # fmt: skip
    try:
        return _run(args, options)
    except OinfError as e:
        return _fail(str(e))
    except OSError as e:
        name = e.filename if isinstance(e.filename, str) else " ".join(args.inputs)
        return _fail(f"oinf: {name}: {e.strerror or e}")
    except MemoryError:
        return _fail(f"oinf: {' '.join(args.inputs)}: out of memory")
    except KeyboardInterrupt:
        return _fail("oinf: interrupted")


def _fail(text: str) -> int:
    print(" ".join(text.split()), file=sys.stderr)
    return 1


def _run(args: argparse.Namespace, options: Options) -> int:
    start = time.monotonic()
    if args.list:
        need_numpy()
        opened = open_all(args.inputs, args.format)
        try:
            plan = make_plan(opened, options)
        finally:
            close_all(opened)
        _print_list(plan)
    else:
        plan = convert(args.inputs, args.output, options, args.format, False if args.quiet else None)
    if not args.quiet:
        for note in plan.notes:
            print(f"oinf: {note}", file=sys.stderr)
    if not args.quiet and not args.list:
        read = sum(os.path.getsize(p) for p in expand(args.inputs))
        written = os.path.getsize(args.output)
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(plan.kinds.items()))
        print(f"{args.output}: {len(plan.tensors)} tensors from {sum(plan.kinds.values())} ({kinds}), "
              f"{len(plan.sizevars)} sizes, {len(plan.metadata)} metadata; "
              f"{read / 1e6:.1f} MB -> {written / 1e6:.1f} MB in {time.monotonic() - start:.1f} s")  # fmt: skip
    return 0


def _print_list(plan: Plan) -> None:
    for name, kind, dims, stored in plan.lines:
        print(f"{shown(name, whole=True)} {kind}{dims} -> {stored}")
    for name, size in sorted(plan.sizevars.items()):
        print(f"{name} := {size}")
    for key in sorted(plan.metadata):
        print(f"metadata {key}")
