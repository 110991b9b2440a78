"""`oinf import`: an ONNX model becomes a package and a graph text. `command.py` is where reading starts."""

from .command import main

__all__ = ["main"]
