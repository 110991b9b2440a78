"""The example circuits and the inputs with which they are proved: edges of the range, then values drawn at random."""

import subprocess
import sys

import numpy as np

from conftest import REPO

TINY = REPO / "examples/tiny"
# graph: shape of x, its least and greatest element
EXAMPLES = {
    "jet_mlp_i8": ((1, 16), -128, 127),
    "jet_mlp_i6": ((1, 16), -128, 127),
    "digits_t2": ((1, 64), 0, 15),
    "digits_t1": ((1, 64), 0, 15),
    "digits_conv_i8": ((1, 1, 8, 8), -128, 127),
    "fir_word_i8": ((16,), -128, 127),
    "lstm_cell_i8": ((1, 8), -128, 127),
    "wake_word_i8": ((1, 40, 1), -128, 127),
}


def package(folder, name):
    path = folder / f"{name}.oinf"
    if not path.exists():
        subprocess.run([sys.executable, str(TINY / "tiny_oinf.py"), name, str(path)], check=True, capture_output=True)
    return path


def edges(shape, least, most):
    """All least, all most, in turn, and one element alone."""
    n = int(np.prod(shape))
    rows = [np.full(n, least), np.full(n, most), np.zeros(n), np.resize([least, most], n), np.resize([most, least], n)]
    for i in (0, n // 2, n - 1):
        rows += [np.where(np.arange(n) == i, v, 0) for v in (least, most)]
    return [r.reshape(shape) for r in rows]


def vectors(folder, name, steps):
    """Writes an input per step; returns the words that pass them on."""
    shape, least, most = EXAMPLES[name]
    rng = np.random.default_rng(len(name))
    into = folder / f"{name}_in"
    into.mkdir(exist_ok=True)
    rows = edges(shape, least, most)
    rows = (rows + [rng.integers(least, most + 1, shape) for _ in range(max(0, steps - len(rows)))])[:steps]
    for step, row in enumerate(rows):
        np.save(into / f"{step}.npy", row.astype(np.int8))
    return [TINY / f"{name}.oi", "--model", package(folder, name), "--steps", len(rows), "--set", f"x=@{into}/{{step}}.npy"]
