"""Kernels beside numpy's (OpenBLAS) and memcpy, on the same cores in the same run.

    python bench/kernels.py [THREADS]

OpenInfer and numpy take turns, several times; the best of each counts, so that another process that comes
and goes does not decide. Exits 1 when a promise of the simulator is not met: f32 matmul of 512 at half of
OpenBLAS, add, mul and relu on 64 MB at 60 % of memcpy (bytes read and written), 300 ns for a node beside its work."""

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
ROUNDS, MAX_ROUNDS = 3, 8
PROMISES = {"matmul f32 512": 0.5, "add f32 64 MB": 0.6, "mul f32 64 MB": 0.6, "relu f32 64 MB": 0.6}
AT_MOST = {"node in a loop": 300, "node of a step of 500": 300}  # ns


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
    row, w, out = x[:4096].reshape(1, -1), x.reshape(4096, 4096), np.empty((1, 4096), np.float32)
    figures["row times matrix"] = w.nbytes / best(lambda: np.matmul(row, w, out=out), 5) / 1e9
    figures["row times matrix^T"] = w.nbytes / best(lambda: np.matmul(row, w.T, out=out), 5) / 1e9
    return figures


def lines_of(*command):
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def step_figures():
    """The best of a few: a node's cost beside its work, and steps that read caches."""
    best_of = {}
    for _ in range(ROUNDS):
        for row in lines_of(REPO / "build/bin/bench_steps"):
            what = row["what"]
            best_of[what] = (min(row["value"], best_of.get(what, (1e9,))[0]), row["unit"])
    return best_of


def broken_promises(ours, theirs, kind):
    copy = ours["memcpy 64 MB", "memcpy"]
    ratios = {what: ours[what, kind] / theirs.get(what, copy) for what in PROMISES}
    return [f"{what}: {ratio:.2f}, wanted {PROMISES[what]}" for what, ratio in ratios.items() if ratio < PROMISES[what]]


def measure():
    """The best of each after ROUNDS, or more on a machine so busy that a promise seems broken."""
    theirs, ours, units = {}, {}, {}
    for i in range(MAX_ROUNDS):
        for what, value in numpy_figures().items():
            theirs[what] = max(value, theirs.get(what, 0))
        for row in lines_of(REPO / "build/bin/bench_kernels", THREADS):
            key = (row["what"], row["kernel"].rsplit(".", 1)[-1])
            ours[key] = max(row["value"], ours.get(key, 0))
            units[row["what"]] = row["unit"]
        if i + 1 >= ROUNDS and not broken_promises(ours, theirs, key[1]):
            break
    return ours, theirs, units


def main():
    ours, theirs, units = measure()
    kinds = [kind for kind in dict.fromkeys(isa for _, isa in ours) if kind != "memcpy"]
    broken = broken_promises(ours, theirs, kinds[-1])
    copy = ours.pop(("memcpy 64 MB", "memcpy"))
    print(f"threads: {THREADS}; memcpy {copy:.1f} GB/s; ratio: {kinds[-1]} to numpy for matmul and sum, to memcpy for the rest\n")
    print(f"{'what':20} {'unit':7} {'numpy':>8} " + " ".join(f"{k:>8}" for k in kinds) + f" {'ratio':>7}")
    for what in dict.fromkeys(w for w, _ in ours):
        against = theirs.get(what, copy)
        ratio = ours[what, kinds[-1]] / against
        numpy = f"{theirs[what]:8.1f}" if what in theirs else " " * 8
        row = " ".join(f"{ours[what, k]:8.1f}" if (what, k) in ours else " " * 8 for k in kinds)
        print(f"{what:20} {units[what]:7} {numpy} {row} {ratio:7.2f}")
    print()
    for what, (value, unit) in step_figures().items():
        print(f"{what:40} {value:8.2f} {unit}")
        if value > AT_MOST.get(what, value):
            broken.append(f"{what}: {value:.0f} {unit}, at most {AT_MOST[what]}")
    print("\n" + ("not met: " + "; ".join(broken) if broken else "all promises are met"))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
