"""`oinf quantize`: an int8 package and graph from a float one, by calibration."""

from .command import main

__all__ = ["main"]
