"""What the demos of the models share: a mistake is told in one line, and what is missing with the way to get it."""

import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import checkout  # noqa: E402, F401  finds openinfer in a checkout

try:
    import numpy as np
except ImportError:
    sys.exit("numpy is not installed for this Python; after `make models`, build/venv/bin/python has it")
import openinfer  # noqa: E402


def model_folder(text):
    """An argument of argparse: a folder that `make models` has filled."""
    folder = pathlib.Path(text)
    if not (folder / "model.oinf").exists():
        sys.exit(f"{folder}: there is no model; `make models` fetches and converts it")
    return folder


def run(main):
    name = pathlib.Path(sys.argv[0]).name
    try:
        main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print()
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody reads on: what is left is not said
        sys.exit(0)
    except FileNotFoundError as e:
        sys.exit(f"{name}: {e.filename}: no such file")
    except (OSError, ValueError, openinfer.Error) as e:
        sys.exit(f"{name}: {e}")


def whole(condition, path, what):
    """An input file that is not what it should be."""
    if not condition:
        raise ValueError(f"{path}: {what}")


__all__ = ["model_folder", "np", "openinfer", "run", "whole"]
