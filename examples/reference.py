"""What the references of this folder share.

NAME_ref.py computes with numpy, independently of our C code, what examples/NAME.oi must give:

    python examples/NAME_ref.py NAME.oinf FOLDER

writes FOLDER/run.json (steps, names, tolerances), FOLDER/in/VARIABLE/STEP.npy (what goes in, from the
contract's random generator) and FOLDER/out/VARIABLE.STEP.npy (what must come out, state included).
"""

import json
import math
import pathlib
import sys

import numpy as np

import checkout  # noqa: F401  finds openinfer.oinf in a checkout
from openinfer.oinf import dtype_of, read_oinf
from openinfer.oinf.dtypes import decode_list
from openinfer.oinf.random import random_values

# The catalog's tolerance per element type, atol and rtol; integers and bool are exact.
TOLERANCE = {"f64": 1e-12, "f32": 1e-5, "f16": 1e-3, "bf16": 8e-3, "f8": 0.26}
DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bool": np.bool_}
for _bits in (8, 16, 32, 64):
    DTYPES |= {f"i{_bits}": getattr(np, f"int{_bits}"), f"u{_bits}": getattr(np, f"uint{_bits}")}
NAMES = {np.dtype(v): k for k, v in DTYPES.items()}


class Run:
    """Collects what goes in and what must come out, step by step."""

    def __init__(self, model):
        self.model = model
        self.seed = 0  # a reference changes it where two values come too close to choose between
        self.inputs = []  # one {name: array} per step
        self.outputs = []
        self.tolerances = {}

    def size(self, *names):
        """One size of the model, or several as a list."""
        found = [self.model.sizevars[n] for n in names]
        return found if len(found) > 1 else found[0]

    def tensor(self, name):
        t = self.model.tensors[name]
        return np.array(t.tolist(), DTYPES.get(t.dtype.name, np.int8)).reshape(t.dims)

    def number(self, name):
        """A metadata scalar, in its own type."""
        m = self.model.metadata[name]
        return DTYPES[m.dtype.name](self.model.meta(name))

    def steps(self, n):
        for step in range(n):
            self.inputs.append({})
            self.outputs.append({})
            yield step

    def insert(self, name, value, dtype="f32"):
        self.inputs[-1][name] = np.array(value, DTYPES[dtype])
        return self.inputs[-1][name].copy()

    def random(self, name, shape, lo=-1.0, hi=1.0, dtype="f32"):
        """Inserts values that are different in every step and for every variable."""
        seed = self.seed + 1000 * len(self.inputs) + len(self.inputs[-1])
        values = random_values(dtype, seed, lo, hi, math.prod(shape))
        return self.insert(name, np.reshape(values, shape), dtype)

    def expect(self, name, value, k=1, via=None):
        """What `name` holds after this step. k: the longest sum it went through; via: the coarsest
        element type it went through, when that is not its own."""
        self.outputs[-1][name] = np.array(value)
        self.tolerances[name] = {"k": k, "via": via}

    def clear_choice(self, scores):
        """The position of the largest score per row, which no rounding may change."""
        top = np.sort(scores, axis=-1)
        assert (top[..., -1] - top[..., -2] > 0.01).all(), "too close to call: choose another run.seed"
        return np.argmax(scores, axis=-1)

    def write(self, folder):
        folder = pathlib.Path(folder)
        for step, (given, wanted) in enumerate(zip(self.inputs, self.outputs)):
            for name, value in given.items():
                save(folder / "in" / name / f"{step}.npy", value)
            for name, value in wanted.items():
                save(folder / "out" / f"{name}.{step}.npy", value)
        about = {"steps": len(self.inputs), "inputs": list(self.inputs[0]), "outputs": self.tolerances}
        (folder / "run.json").write_text(json.dumps(about, indent=1) + "\n")


def save(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)


def load(path):
    """What the command wrote: types that numpy lacks are bytes, and a .json beside them says what."""
    array, about = np.load(path), path.with_suffix(".json")
    if about.exists():
        what = json.loads(about.read_text())
        dtype = dtype_of(what["dtype"])
        values = decode_list(array.tobytes(), dtype, math.prod(what["dims"]))
        array = np.array(values, np.float32 if dtype.is_float else np.int8).reshape(what["dims"])
    return array


def main(reference):
    """The command line of a NAME_ref.py."""
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} MODEL.oinf FOLDER")
    with read_oinf(sys.argv[1]) as model:
        run = Run(model)
        with np.errstate(all="ignore"):  # infinities and NaN are part of some examples
            reference(run)
        run.write(sys.argv[2])
    names = " ".join(run.tolerances)
    print(f"wrote {sys.argv[2]}: {len(run.inputs)} steps of {names}")


def error(found, wanted, k=1, via=None):
    """How far `found` is from `wanted`, as a multiple of what is allowed: 1 or less is right."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return math.inf
    if wanted.dtype.kind != "f":
        return 0.0 if np.array_equal(found, wanted) else math.inf
    sound = np.isfinite(wanted)
    special = np.array_equal(found[~sound], wanted[~sound], equal_nan=True)
    if not special or not np.isfinite(found[sound]).all():
        return math.inf
    a, b = found[sound].astype(np.float64), wanted[sound].astype(np.float64)
    own = TOLERANCE[NAMES[wanted.dtype]]
    tolerance = max(own, TOLERANCE[via]) if via else own
    allowed = tolerance + tolerance * math.sqrt(k) * np.abs(b)
    return float(np.max(np.abs(a - b) / allowed, initial=0.0))


# ---- ops that several references use; each sums in f64 and rounds once ----------------------


def matmul(a, b, dtype=None):
    wide = np.matmul(a.astype(np.float64), b.astype(np.float64))
    return wide.astype(dtype or a.dtype)


def relu(x, slope=0.0, top=np.inf):
    below = x * x.dtype.type(slope) if slope else np.zeros_like(x)
    return np.minimum(np.where(x < 0, below, x), x.dtype.type(top))  # NaN stays NaN


def softmax(x):
    """Over the last axis; a row of only -inf gives 0, as attention wants it."""
    top = np.max(x, axis=-1, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis=-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)
