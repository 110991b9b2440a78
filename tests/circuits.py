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


SMALL = """
dynamic {
  x: i8[1, 3];
}

constant {
  w: i8[3, 2];
}

persistent {
  kept: i16[1, 2] @init(3);
}

volatile {
  y: i16[1, 2];
}

block entry {
  assign was: i16[1, 2];
  cache.read kept >> was;
  op matmul(x, w, acc=[i16]) >> y;
  op shr(was, bits=1) >> was;
  op add(y, was) >> y;
  op relu(y) >> y;
  cache.write y >> kept;
  return y;
}
"""


def small(folder, steps):
    """A graph that every tool takes in a moment, and its inputs."""
    from openinfer.oinf import PackageWriter, StreamTensor

    rng = np.random.default_rng(3)
    (folder / "dense.oi").write_text(SMALL)
    with PackageWriter(folder / "dense.oinf") as made:
        made.add_tensor("w", StreamTensor("i8", (3, 2), bytes([3, 251, 37, 128, 0, 90])))
    (folder / "dense_in").mkdir(exist_ok=True)
    for step in range(steps):
        np.save(folder / f"dense_in/{step}.npy", rng.integers(-128, 128, (1, 3)).astype(np.int8))
    words = [folder / "dense.oi", "--model", folder / "dense.oinf", "--steps", steps, "--set", f"x=@{folder}/dense_in/{{step}}.npy"]
    return words
