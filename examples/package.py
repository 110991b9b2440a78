"""What the package writers of this folder share: reproducible weights, and writing the file."""

import math
import sys

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import StreamTensor, write_oinf
from openinfer.oinf.random import random_bytes


def uniform(seed, shape, lo=-1.0, hi=1.0, dtype="f32"):
    """A tensor of values between lo and hi, the same ones for the same seed everywhere."""
    return StreamTensor(dtype, shape, random_bytes(dtype, seed, lo, hi, math.prod(shape)))


def weights(seed, shape, dtype="f32"):
    """A matrix [..., inputs, outputs] scaled so that activations keep their size through layers."""
    limit = math.sqrt(3.0 / shape[-2])
    return uniform(seed, shape, -limit, limit, dtype)


def write(model):
    """Writes a dataclass instance to the path on the command line, or to NAME.oinf."""
    name = sys.argv[0].rsplit("/", 1)[-1].removesuffix("_oinf.py")
    path = sys.argv[1] if len(sys.argv) > 1 else f"{name}.oinf"
    write_oinf(model, path)
    print(f"wrote {path}")
