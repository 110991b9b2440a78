"""The command `oinf convert`: weights of other formats as one package."""

from .command import convert, main

__all__ = ["convert", "main"]
