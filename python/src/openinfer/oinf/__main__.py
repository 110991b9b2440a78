"""The command `oinf` (also `python -m openinfer.oinf`): one program, subcommands.

A new subcommand is one row in COMMANDS: its name, the module with `main(argv)`, a line of help.
"""

from __future__ import annotations

import importlib
import sys
from typing import List, Optional

COMMANDS = {
    "verify": ("verify_oinf", "validate a package and print what it holds"),
    "convert": ("convert", "write the weights of other formats as one package"),
    "import": ("importer", "turn an ONNX model into a package and a graph text"),
    "quantize": ("quantize", "make an int8 package and graph from a float one, by calibration"),
    "from-dataclass": ("dataclass_to_oinf", "write a dataclass instance as a package"),
}
ALIASES = {module: name for name, (module, _) in COMMANDS.items()}


def usage() -> str:
    lines = ["usage: oinf COMMAND ...", ""]
    lines += [f"  {name:16} {text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(lines)


def main(argv: Optional[List[str]] = None) -> int:
    args = sys.argv[1:] if argv is None else argv
    if args and args[0] in ("-h", "--help"):
        print(usage())
        return 0
    name = ALIASES.get(args[0], args[0]) if args else ""
    if name not in COMMANDS:
        print(usage(), file=sys.stderr)
        return 2
    module = importlib.import_module(f"{__package__}.{COMMANDS[name][0]}")
    return int(module.main(args[1:]))


if __name__ == "__main__":
    sys.exit(main())
