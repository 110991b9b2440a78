"""The command `dataclass_to_oinf`: write the dataclass named on the command line.

    python -m openinfer.oinf.dataclass_to_oinf --input module:Class --output P [--json F]

A class is instantiated, from the keys of the JSON object when one is given; an instance
is written as it is. `module` may also be the path of a .py file.

The package also exports a *function* of this name; this module is callable as that
function, so that `openinfer.oinf.dataclass_to_oinf(obj)` works whichever of the two the
name refers to after this module has been imported.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import importlib.util
import json
import os
import sys
import types
from typing import Any, List, Optional

from .from_dataclass import dataclass_to_oinf, write_oinf
from .types import OinfError

__all__ = ["dataclass_to_oinf", "write_oinf", "main"]


def main(argv: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="dataclass_to_oinf", description="Write a dataclass instance as an OINF package."
    )
    parser.add_argument("--input", required=True, metavar="MODULE:NAME", help="dataclass, or an instance of one")
    parser.add_argument("--output", required=True, metavar="PATH", help="package to write")
    parser.add_argument("--json", metavar="FILE", help="JSON object with the class's fields")
    args = parser.parse_args(argv)
    try:
        write_oinf(_instance(args.input, args.json), args.output)
    except (OinfError, OSError) as e:
        text = " ".join(str(e).split())
        print(text if text.startswith("oinf: ") else f"oinf: {text}", file=sys.stderr)
        return 1
    return 0


def _instance(spec: str, json_path: Optional[str]) -> Any:
    target = _resolve(spec)
    if not isinstance(target, type):
        if json_path is not None:
            raise OinfError(f"--json fills in a class, but {spec} is an instance")
        return target
    if not dataclasses.is_dataclass(target):
        raise OinfError(f"{spec} is not a dataclass")
    values = {} if json_path is None else _load_json(json_path)
    try:
        return target(**values)
    except (TypeError, ValueError) as e:
        raise OinfError(f"cannot make {spec}: {e}") from None


def _load_json(path: str) -> Any:
    with open(path, encoding="utf-8") as f:
        try:
            values = json.load(f)
        except (ValueError, RecursionError) as e:
            raise OinfError(f"{path}: {e}") from None
    if not isinstance(values, dict):
        raise OinfError(f"{path}: expected a JSON object")
    return values


def _resolve(spec: str) -> Any:
    module_name, colon, attribute = spec.rpartition(":")
    if not colon or not module_name or not attribute:
        raise OinfError(f"--input wants MODULE:NAME, found {spec!r}")
    try:
        found: Any = _import(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise OinfError(f"{module_name} has no {attribute!r}") from None
    return found


def _import(name: str) -> types.ModuleType:
    if os.getcwd() not in sys.path:  # console scripts do not look there
        sys.path.insert(0, os.getcwd())
    try:
        if not name.endswith(".py"):
            return importlib.import_module(name)
        stem = os.path.splitext(os.path.basename(name))[0]
        spec = importlib.util.spec_from_file_location(stem, name)
        if spec is None or spec.loader is None:
            raise OinfError(f"cannot import {name}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[stem] = module  # dataclasses look their module up by name
        spec.loader.exec_module(module)
        return module
    except ImportError as e:
        raise OinfError(f"cannot import {name}: {e}") from None


class _CallableModule(types.ModuleType):
    def __call__(self, obj: Any) -> bytes:
        return dataclass_to_oinf(obj)


if __name__ == "__main__":
    sys.exit(main())
else:
    sys.modules[__name__].__class__ = _CallableModule
