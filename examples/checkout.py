"""Importing this makes `import openinfer.oinf` work from a checkout, where nothing is installed.

An installed package comes first: the folder of the checkout goes to the end of the path.
"""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "python/src"))
