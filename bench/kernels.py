"""Kernels beside numpy's (OpenBLAS) and memcpy, on the same cores in the same run.

    python bench/kernels.py [THREADS]

OpenInfer and numpy take turns, several times; the best of each counts, so that another process that comes
and goes does not decide. Exits 1 when a promise of the simulator is not met: f32 matmul of 512 at half of
OpenBLAS, add, mul and relu on 64 MB at 60 % of memcpy (bytes read and written)."""

import json
import os
import pathlib
import subprocess
import sys
import time

THREADS = sys.argv[1] if len(sys.argv) > 1 else str(os.cpu_count())
os.environ.update({name: THREADS for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")})
import numpy as np  # noqa: E402

REPO = pathlib.Path(__file__).resolve().parent.parent
ROUNDS = 3
PROMISES = {"matmul f32 512": 0.5, "add f32 64 MB": 0.6, "mul f32 64 MB": 0.6, "relu f32 64 MB": 0.6}


def best(fn, times):
    times = [timed(fn) for _ in range(times)]
    return min(times)


def timed(fn):
    start = time.perf_counter()
    fn()
    return time.perf_counter() - start


def numpy_figures():
    figures = {}
    rng = np.random.default_rng(1)
    for what, dtype, n in (("matmul f32 128", np.float32, 128), ("matmul f32 512", np.float32, 512), ("matmul f64 512", np.float64, 512),
                           ("matmul f32 1024", np.float32, 1024)):
        a, b = (rng.random((n, n)).astype(dtype) for _ in range(2))
        out = np.empty((n, n), dtype)
        figures[what] = 2 * n**3 / best(lambda: np.matmul(a, b, out=out), 20) / 1e9
    x = rng.random(16 << 20).astype(np.float32)
    figures["sum_axis f32 64 MB"] = x.nbytes / best(lambda: x.sum(), 5) / 1e9
    return figures


def our_figures():
    out = subprocess.run([REPO / "build/bin/bench_kernels", THREADS], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def main():
    theirs, ours, units = {}, {}, {}
    for _ in range(ROUNDS):
        for what, value in numpy_figures().items():
            theirs[what] = max(value, theirs.get(what, 0))
        for row in our_figures():
            key = (row["what"], row["kernel"].rsplit(".", 1)[-1])
            ours[key] = max(row["value"], ours.get(key, 0))
            units[row["what"]] = row["unit"]
    copy = ours.pop(("memcpy 64 MB", "memcpy"))
    kinds = list(dict.fromkeys(isa for _, isa in ours))
    print(f"threads: {THREADS}; memcpy {copy:.1f} GB/s; ratio: {kinds[-1]} to numpy for matmul and sum, to memcpy for the rest\n")
    print(f"{'what':20} {'unit':7} {'numpy':>8} " + " ".join(f"{k:>8}" for k in kinds) + f" {'ratio':>7}")
    broken = []
    for what in dict.fromkeys(w for w, _ in ours):
        against = theirs.get(what, copy)
        ratio = ours[what, kinds[-1]] / against
        numpy = f"{theirs[what]:8.1f}" if what in theirs else " " * 8
        row = " ".join(f"{ours[what, k]:8.1f}" if (what, k) in ours else " " * 8 for k in kinds)
        print(f"{what:20} {units[what]:7} {numpy} {row} {ratio:7.2f}")
        if ratio < PROMISES.get(what, 0):
            broken.append(f"{what}: {ratio:.2f}, wanted {PROMISES[what]}")
    print("\n" + ("not met: " + "; ".join(broken) if broken else "all promises are met"))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
