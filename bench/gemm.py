"""Products of two f32 matrices as emitted C beside OpenBLAS (numpy's own), on one thread and on two.

    python bench/gemm.py [--cases WORDS] [--rounds 5]

Both multiply the same two run-time matrices: nothing is packed before the clock starts. In the cases named
"weights" the second matrix is part of our program, which packed it when it was made; OpenBLAS has no such way. Runs
take turns; a run is the best of some products, since on a shared machine the others are somebody else's time.
"""

import ctypes
import dataclasses
import glob
import os
import pathlib
import sys
import tempfile
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")  # before numpy: at most so many; set_threads() takes fewer

import emitted  # noqa: E402
import rows  # noqa: E402

sys.path.insert(0, str(rows.REPO / "python/src"))
from openinfer.oinf import TensorSpec, write_oinf  # noqa: E402

SHAPES = [(256,) * 3, (300, 500, 700), (512,) * 3, (777,) * 3, (1023,) * 3, (1024,) * 3, (2048,) * 3]
WEIGHTS = [(512,) * 3, (1024,) * 3, (2048,) * 3]
GRAPH = """dynamic {{ a: f32[{m}, {k}]; }}
{kind} {{ b: f32[{k}, {n}]; }}
volatile {{ y: f32[{m}, {n}]; }}
block entry {{ op matmul(a, b) >> y; return; }}
"""


@dataclasses.dataclass
class Model:
    tensors: dict


def blas(numpy):
    """numpy's OpenBLAS: what it is called, and the function that sets its threads; None, None without."""
    folder = pathlib.Path(numpy.__file__).parent.parent / "numpy.libs"
    for path in glob.glob(str(folder / "*openblas*")):
        library = ctypes.CDLL(path)
        for name in ("scipy_openblas", "openblas"):  # as wheels of numpy call it, from 1.26 on and before
            config = getattr(library, f"{name}_get_config64_", None)
            if config:
                config.restype = ctypes.c_char_p
                return " ".join(config().decode().split()[:2]), getattr(library, f"{name}_set_num_threads64_")
    return None, None


def repeat(m, n, k):
    """Products in a run: some tenths of a second, so that one of them is alone on the machine."""
    return max(5, int(15e9 / (m * n * k)))


def measure_shape(o, numpy, peer, set_threads, folder, shape, is_weight):
    m, n, k = shape
    name = f"gemm f32 {'weights ' if is_weight else ''}" + (f"{m}" if m == n == k else f"{m}x{n}x{k}")
    threads = [t for t in (1, 2) if o.wants(f"{name}, {t} threads") and t <= o.threads]
    if not threads:
        return
    rng = numpy.random.default_rng(1)
    a, b = (rng.random(s, dtype=numpy.float32) for s in ((m, k), (k, n)))
    graph = folder / f"{name.replace(' ', '_')}.oi"
    graph.write_text(GRAPH.format(m=m, n=n, k=k, kind="constant" if is_weight else "dynamic"))
    if is_weight:
        write_oinf(Model({"b": TensorSpec(b)}), folder / "b.oinf")
    program = emitted.Program(folder / graph.stem, "gemm", [graph], folder / "b.oinf" if is_weight else None)
    inputs = a.tobytes() + (b"" if is_weight else b.tobytes())
    y = numpy.empty((m, n), numpy.float32)
    work, times = m * n * k, repeat(m, n, k)

    def theirs(t):
        set_threads(t)
        found = []
        for _ in range(times):
            start = time.perf_counter()
            numpy.matmul(a, b, out=y)
            found.append(time.perf_counter() - start)
        return work / min(found) / 1e9

    def ours(t):
        return work / min(program.times(inputs, times, threads=t)) / 1e9

    for t in threads:
        mine, other = rows.alternate(o.rounds, lambda: ours(t), lambda: theirs(t))
        yield rows.row(f"{name}, {t} threads", "GMAC/s", mine, other, peer, bar=0.9, macs=work,
                       touches=4 * (m * k + k * n + m * n), per_item=work / 1e9, threads=t)  # fmt: skip


def measure(o):
    try:
        import numpy
    except ImportError:
        yield rows.left_out("gemm f32", "OpenBLAS", "numpy is not installed")
        return
    peer, set_threads = blas(numpy)
    if not peer:
        yield rows.left_out("gemm f32", "OpenBLAS", "this numpy was built with another library; tools/setup.sh bench installs one with OpenBLAS")
        return
    with tempfile.TemporaryDirectory() as folder:
        for shapes, is_weight in ((SHAPES, False), (WEIGHTS, True)):
            for shape in shapes:
                yield from measure_shape(o, numpy, peer, set_threads, pathlib.Path(folder), shape, is_weight)


if __name__ == "__main__":
    sys.exit(rows.main(measure, __doc__))
