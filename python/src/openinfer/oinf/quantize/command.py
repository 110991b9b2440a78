"""The command line of `oinf quantize`."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, Dict, List, Optional

from ..convert.weights import need_numpy
from ..types import OinfError

EPILOG = """\
CALIBRATION.npz has an array for each input of the graph, with the samples first: [samples, ...]. A graph with
a state takes them as steps that follow each other. DIR gets model.oinf, NAME.oi and quantize.txt, the table of
what rounding costs.
  oinf quantize net.oi --model model.oinf --data samples.npz -o out
  oinf quantize net.oi --model model.oinf --data samples.npz -o out --percentile 99.9 --keep 'head*'
"""


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="oinf quantize", description="Turn a float graph and its package into one with products of 8-bit integers.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add: Any = p.add_argument
    add("graph", metavar="GRAPH.oi", help="the float graph")
    add("-m", "--model", metavar="MODEL.oinf", help="its package")
    add("-d", "--data", metavar="CALIBRATION.npz", required=True, help="inputs to calibrate with")
    add("-o", "--output", metavar="DIR", required=True, help="folder to write, made when it is not there")
    add("--name", help="name of the new graph text (the graph's, with _i8)")
    add("--percentile", type=float, default=100.0, metavar="P",
        help="ranges hold P of a hundred numbers of each activation (100: all of them, min to max)")  # fmt: skip
    add("--integer-only", action="store_true",
        help="zero points are 0, and sums come back to 8 bits by whole numbers: for microcontrollers")  # fmt: skip
    add("--keep", action="append", default=[], metavar="PATTERN", help="leave ops in floats: their op, result or loop (repeatable)")
    add("--size", action="append", default=[], metavar="NAME=N", help="another number for a size (repeatable)")
    add("--threads", type=int, default=1, metavar="N", help="of the simulator")
    add("-q", "--quiet", action="store_true", help="do not print the table")
    return p


def main(argv: Optional[List[str]] = None) -> int:
    parser = _parser()
    args = parser.parse_args(argv)
    if not 50 < args.percentile <= 100:
        parser.error("--percentile lies above 50 and is at most 100")
    try:
        return _run(args)
    except OinfError as e:
        return _fail(str(e))
    except OSError as e:
        return _fail(f"oinf: {e.filename or args.graph}: {e.strerror or e}")
    except MemoryError:
        return _fail("oinf: out of memory")
    except KeyboardInterrupt:
        return _fail("oinf: interrupted")


def _fail(text: str) -> int:
    print(text.rstrip(), file=sys.stderr)
    return 1


def _run(args: argparse.Namespace) -> int:
    need_numpy()
    import openinfer

    from ..importer.command import pairs, write_all
    from ..importer.names import identifier
    from ..importer.text import write_text
    from .quantise import quantise

    sizes: Dict[str, int] = {k: int(v) for k, v in pairs(args.size, "--size", str.isdecimal)}
    try:
        graph = openinfer.open(args.graph, args.model, **sizes)
        graph.check()
        done = quantise(graph, args.data, args.percentile, args.keep, args.threads, args.integer_only)
    except openinfer.Error as e:
        return _fail(str(e))
    name = identifier(args.name or os.path.splitext(os.path.basename(args.graph))[0] + "_i8", "model")
    text = write_text(done.program, [f"from {os.path.basename(args.graph)} by oinf quantize"])
    lines = done.table(name)
    write_all(args.output, name, text, done.program, lines, "quantize.txt")
    if not args.quiet:
        print("\n".join(lines))
    return 0


