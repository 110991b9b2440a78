"""The command `verify_oinf`: validate a package and print what it holds.

    python -m openinfer.oinf.verify_oinf PATH [--json] [--strict] [--tensor NAME]

Exit 0, or 1 with one line on stderr. Warnings go to stderr too, one line each.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import List, Optional

from .inspect_text import inspect_json, inspect_text
from .read import read_oinf
from .types import OinfError


def main(argv: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="verify_oinf", description="Validate an OINF package and print what it holds."
    )
    parser.add_argument("path", metavar="PATH")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("--strict", action="store_true", help="reject what is otherwise only a warning")
    parser.add_argument("--tensor", metavar="NAME", help="only this tensor")
    parser.add_argument("--hist", action="store_true", help="histograms (always printed; for compatibility)")
    parser.add_argument("--allow-shared", action="store_true", help="accept tensors that share their data")
    args = parser.parse_args(argv)
    try:
        with read_oinf(args.path, args.strict, args.allow_shared) as package:
            show = inspect_json if args.json else inspect_text
            text = show(package, args.tensor)
            notes = [f"oinf: {args.path}: warning: {w}" for w in package.warnings]
    except OinfError as e:
        print(e, file=sys.stderr)
        return 1
    except OSError as e:
        print(f"oinf: {args.path}: {e.strerror or e}", file=sys.stderr)
        return 1
    for note in notes:
        print(note, file=sys.stderr)
    return _put(text)


def _put(text: str) -> int:
    """UTF-8 and bare newlines whatever the locale and platform."""
    try:
        buffer = getattr(sys.stdout, "buffer", None)
        if buffer is None:
            sys.stdout.write(text)
        else:
            buffer.write(text.encode("utf-8"))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads us has seen enough; keep the flush at exit from failing again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
