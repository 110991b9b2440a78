"""The simulator beside numpy (OpenBLAS), memcpy and what was promised: its kernels, what a node costs beside its
work, and SmolLM2 in oi-chat.

    python bench/kernels.py [--json] [--threads 2] [--cases sim]

bench_kernels, bench_steps and oi-chat are built by `make bench`.
"""

import json
import os
import re
import subprocess
import sys
import time

import rows

BIN = rows.REPO / "build/bin"
RATIOS = {"matmul f32 512": 0.5, "add f32 64 MB": 0.6, "mul f32 64 MB": 0.6, "relu f32 64 MB": 0.6}  # promised
COSTS = {"node in a loop": 300, "node of a step of 500": 300}  # at most, ns
CHAT = {"said": 20, "read": 40}  # at least, tokens/s


def best(fn, times):
    found = []
    for _ in range(times):
        start = time.perf_counter()
        fn()
        found.append(time.perf_counter() - start)
    return min(found)


def numpy_figures():
    import numpy as np

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
    return [json.loads(line) for line in rows.program(*command).splitlines()]


def kernel_figures(threads):
    """By what was measured: the value of this machine's best kind of kernels, and its unit."""
    found = {}
    for line in lines_of(BIN / "bench_kernels", threads, "best"):
        found[line["what"]] = (line["value"], {"GFLOPS": "GFLOP/s"}.get(line["unit"], line["unit"]))
    return found


def work_of(what, unit):
    """What an item is: a multiply-add of floats, or a byte of memory."""
    if unit == "GFLOP/s":
        return {"macs": 1, "per_item": 2e-9} if "f64" not in what else {}
    return {"bytes": 1, "per_item": 1e-9} if what.startswith(("sum", "row")) else {}


def kernels(o):
    """Of each round the best of a few runs on either side."""
    theirs, ours, units = {}, {}, {}
    for _ in range(min(o.rounds, 3)):
        for what, value in numpy_figures().items():
            theirs.setdefault(what, []).append(value)
        for what, (value, unit) in kernel_figures(o.threads).items():
            ours.setdefault(what, []).append(value)
            units[what] = unit
    copy = ours.pop("memcpy 64 MB")
    for what, values in ours.items():
        peer = (theirs[what], "numpy") if what in theirs else (copy, "memcpy")
        yield rows.row(f"sim {what}", units[what], values, *peer, bar=RATIOS.get(what), threads=o.threads,
                       **work_of(what, units[what]))  # fmt: skip


def steps(o):
    found = {}
    for _ in range(min(o.rounds, 3)):
        for line in lines_of(BIN / "bench_steps"):
            found.setdefault((line["what"], line["unit"]), []).append(line["value"])
    for (what, unit), values in found.items():
        yield rows.row(f"sim {what}", unit, values, bar=COSTS.get(what))


def chat(o):
    words = [BIN / "oi-chat", "--model", o.models / "smollm2", "--engine", "sim", "--greedy", "--ignore-end", "--count", "64",
             "--threads", str(o.threads), "--print-tokens", "--prompt", "Give me three tips for learning a language."]  # fmt: skip
    found = {"read": [], "said": []}
    for _ in range(min(o.rounds, 3)):
        said = subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
        rates = re.findall(r"([0-9.]+) tokens/s", said)
        for what, rate in zip(("read", "said"), rates[-2:]):
            found[what].append(float(rate))
    for what, values in found.items():
        yield rows.row(f"sim smollm2 {what}", "tokens/s", values, bar=CHAT[what])


def measure(o):
    os.environ.update({name: str(o.threads) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")})
    if o.wants("sim kernels"):
        try:
            yield from kernels(o)
        except ImportError:
            yield rows.left_out("sim kernels", "numpy", "not installed")
    if o.wants("sim dispatch"):
        yield from steps(o)
    if o.wants("sim smollm2"):
        if (o.models / "smollm2/model.oinf").exists():
            yield from chat(o)
        else:
            yield rows.left_out("sim smollm2", "the model", f"there is no {o.models / 'smollm2'} (make models)")


if __name__ == "__main__":
    sys.exit(rows.main(measure, __doc__))
