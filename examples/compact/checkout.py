"""For scripts that run from a checkout: finds what examples/ shares, and openinfer.oinf."""

import pathlib
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(EXAMPLES), str(EXAMPLES.parent / "python/src")]
