"""Programs of single ops beside onnxruntime, for shapes drawn at random: shapes that were not tuned for.

    python bench/sweep.py SEED COUNT [THREADS] [TARGET] [--family conv1d,pool] [--near] [--json]

Shape by shape, COUNT of them taken from the families of bench/shapes.py in turn: an ONNX model, `oinf import`,
`openinfer synth`, the C compiler, and then the program and onnxruntime run in this process in turn, with THREADS threads
each (several: "1,2"). The figure of each is its best run; a shape's ratio is theirs by ours. The same SEED draws the
same shapes. --near also measures sizes that differ by one or a twentieth, and says how much a multiply-add's time
differs ("cliff"). A shape that takes longer than --limit seconds is left out, and named.
"""

import argparse
import contextlib
import ctypes
import json
import math
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import emitted
import rows
import shapes

sys.path.insert(0, str(rows.REPO / "python/src"))

# Runs of a step in this process: inputs by number, the best time of some runs.
HARNESS = """
#include "shape.h"
#include "hal.h"
static shape program;
#ifndef ALONE
#include "team.h"
static team threads;
#endif
int open_program(const char *weights, int n)
{
    size_t size;
    const void *w = hal_map(weights, &size);
    if (!w || shape_init(&program, w, size) != 0)
        return -1;
#ifndef ALONE
    if (n > 1 && team_start(&threads, -n) > 1)
        program.oi_team = &threads;
#endif
    return 0;
}
void close_program(void)
{
#ifndef ALONE
    if (program.oi_team)
        team_stop(program.oi_team);
#endif
}
void *find(int which)
{
    switch (which) {
CASES
    }
    return 0;
}
unsigned long long best(int n)
{
    unsigned long long least = ~0ull;
    for (int i = 0; i < n; i++) {
        const unsigned long long from = hal_clock();
        if (shape_step(&program) != 0)
            return ~0ull;
        const unsigned long long took = hal_clock() - from;
        least = took < least ? took : least;
    }
    return least;
}
"""
BURST = 0.004  # seconds of one side before the other takes its turn
TURNS, PATIENCE = 24, 6  # turns at most; turns without a better time that end it
CLIFF = 1.6


def imported(model, folder):
    """The package and the text of an ONNX model; the labels of what goes in and out."""
    import onnx
    from openinfer.oinf.importer import command
    from openinfer.oinf.importer.convert import Options, import_model
    from openinfer.oinf.importer.text import write_text

    onnx.save(model, str(folder / "shape.onnx"))
    found = import_model(str(folder / "shape.onnx"), Options({}, {}, False, {}))
    if found.problems:
        raise RuntimeError("import: " + found.problems[0].text())
    text = write_text(found.program, ["a shape of bench/sweep.py"])
    command.write_all(str(folder), "shape", text, found.program, [])
    return [v.label for v in found.program.inputs], [v.label for v in found.program.outputs]


def checked(*words, limit):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=limit)
    if done.returncode:
        raise RuntimeError(" ".join((done.stderr or done.stdout).split())[:300])


class Ours:
    """The emitted program as a library of this process."""

    def __init__(self, folder, model, target, limit):
        self.folder = folder
        self.inputs, self.outputs = imported(model, folder)
        out = folder / target
        checked(emitted.OPENINFER, "synth", folder / "shape.oi", "--model", folder / "model.oinf", "--target", target, "-o", out,
                "--name", "shape", "--weights", "file", limit=limit)  # fmt: skip
        cases = "".join(f"    case {i}: return program.{name};\n" for i, name in enumerate(self.inputs + self.outputs))
        (out / "harness.c").write_text(HARNESS.replace("CASES", cases))
        alone = not (out / "team.c").exists()  # no kernel is worth a second thread
        parts = [out / n for n in ("harness.c", "hal.c", "shape.c", "team.c", "needs.c") if (out / n).exists()]
        checked(os.environ.get("CC", "cc"), "-O3", *(["-DALONE"] if alone else []), "-std=gnu11", "-w", "-fno-math-errno",
                "-fno-trapping-math", "-shared", "-fPIC", *parts, "-o", out / "shape.so", "-pthread", "-lm",
                limit=limit)  # fmt: skip
        self.plan = json.loads((out / "plan.json").read_text())
        self.out = out

    def open(self, threads, given):
        copy = self.out / f"shape{threads}.so"  # a copy: each has its own memory
        copy.write_bytes((self.out / "shape.so").read_bytes())
        lib = ctypes.CDLL(str(copy))
        lib.find.restype, lib.best.restype = ctypes.c_void_p, ctypes.c_ulonglong
        if lib.open_program(str(self.out / "weights.bin").encode(), threads):
            raise RuntimeError("the program does not start")
        for i, value in enumerate(given.values()):
            data = value.tobytes()
            ctypes.memmove(lib.find(i), data, len(data))
        return lib

    def result(self, lib, i, like):
        import numpy as np

        out = np.empty_like(like)
        ctypes.memmove(out.ctypes.data, lib.find(len(self.inputs) + i), out.nbytes)
        return out

    def how(self):
        """The bodies of the kernels that take most of the time."""
        kernels = sorted(self.plan["kernels"], key=lambda k: -k["cost"]["predicted_ns"])
        return ", ".join(k.get("recipe", {}).get("function", "nest") if isinstance(k.get("recipe"), dict) else k.get("recipe") or "nest"
                         for k in kernels[:2])  # fmt: skip

    def predicted(self, threads):
        """The plan is for two threads where the run decides how many there are."""
        return self.plan["graphs"][0]["cost"]["predicted_ns" if threads > 1 else "predicted_alone_ns"]


class Peer:
    def __init__(self, model, threads, given):
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 4
        self.session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        self.given = given
        self.binding = self.session.io_binding()
        for name, value in given.items():
            self.binding.bind_cpu_input(name, value)
        for out in self.session.get_outputs():
            self.binding.bind_output(out.name)

    def results(self):
        return self.session.run(None, self.given)

    def best(self, n):
        run, clock, least = self.session.run_with_iobinding, time.perf_counter_ns, math.inf
        for _ in range(n):
            start = clock()
            run(self.binding)
            least = min(least, clock() - start)
        return least


def in_turn(ours, peer):
    """The best time of each side in ns: bursts in turn until neither gets better."""
    sides, least, counts, stale = (ours, peer), [math.inf, math.inf], [2, 2], 0
    for turn in range(TURNS):
        better = False
        for i, side in enumerate(sides):
            rows.settle(0.05)
            took = side(counts[i])
            better |= took < 0.98 * least[i]
            least[i] = min(least[i], took)
            counts[i] = max(2, min(2000, int(BURST * 1e9 / least[i])))
        stale = 0 if better else stale + 1
        if stale == PATIENCE:
            break
    return least


def agree(ours, lib, want):
    """Where the two results differ by more than rounding."""
    import numpy as np

    for i, w in enumerate(want):
        got = ours.result(lib, i, w)
        if w.dtype.kind == "f":
            size = float(np.abs(w).max()) or 1.0
            if not np.allclose(got, w, rtol=2e-3, atol=2e-3 * size):
                return False
        elif np.abs(got.astype(np.int64) - w.astype(np.int64)).max() > 1:  # ties of a quantised value
            return False
    return True


def measure(family, sizes, seed, threads, target, limit):
    """A record for each number of threads."""
    model, given = shapes.model(family, sizes, seed)
    with tempfile.TemporaryDirectory() as temp:
        ours = Ours(pathlib.Path(temp), model, target, limit)
        for n in threads:
            peer, lib = Peer(model, n, given), ours.open(n, given)
            lib.best(1)
            if family not in ("transpose", "move") and not agree(ours, lib, peer.results()):
                raise RuntimeError("the results differ")
            mine, theirs = in_turn(lib.best, peer.best)
            lib.close_program()
            yield {"family": family, "sizes": sizes, "threads": n, "target": target, "ours_ns": mine, "peer_ns": theirs,
                   "ratio": theirs / mine, "predicted_ns": ours.predicted(n), "how": ours.how(),
                   "macs": ours.plan["graphs"][0]["cost"]["macs"]}  # fmt: skip


def in_child(limit, function, *words):
    """Records of a function, run in a child of its own: what it crashes or hangs takes only itself along."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(limit)
        with os.fdopen(write, "w") as out:
            try:
                for record in function(*words):
                    print(json.dumps(record), file=out, flush=True)
            except Exception as e:  # noqa: BLE001: reported as what it is
                print(json.dumps({"left_out": f"{type(e).__name__}: {e}"[:300]}), file=out, flush=True)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as lines:
        records = [json.loads(line) for line in lines]
    status = os.waitpid(child, 0)[1]
    if status:
        why = "took too long" if os.WTERMSIG(status) == signal.SIGALRM else f"ended by signal {os.WTERMSIG(status)}"
        records.append({"left_out": why})
    return records


def near(o, family, sizes, seed, records):
    """Adds to each record by how much the time of its multiply-adds differs from its neighbours'."""
    rng = random.Random(f"{o.seed} near {seed}")
    for other in shapes.neighbours(family, sizes, rng):
        for r in in_child(o.limit, measure, family, other, seed, o.threads, o.target, o.limit):
            for own in records:
                if "left_out" in r or "left_out" in own or r["threads"] != own["threads"] or not (r["macs"] and own["macs"]):
                    continue
                a, b = r["ours_ns"] / r["macs"], own["ours_ns"] / own["macs"]
                if max(a / b, b / a) > own.get("cliff", 1):
                    own.update(cliff=max(a / b, b / a), cliff_at=shapes.words(other))


def line(r):
    if "left_out" in r:
        return f"{r['family']:<10} {shapes.words(r['sizes'])}: left out: {r['left_out']}"
    guess = r["predicted_ns"] / r["ours_ns"]
    cliff = f" cliff {r['cliff']:.2f} at {r['cliff_at']}" if r.get("cliff", 0) > CLIFF else ""
    return (f"{r['family']:<10} {r['threads']} {r['ours_ns'] / 1e3:9.1f} {r['peer_ns'] / 1e3:9.1f} {r['ratio']:6.2f} {guess:6.2f}  "
            f"{shapes.words(r['sizes'])} [{r['how']}]{cliff}")  # fmt: skip


HEAD = f"{'family':<10} t {'ours us':>9} {'peer us':>9} {'ratio':>6} {'pred':>6}  shape [body]"


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def summary(records):
    """Lines: quantiles for each number of threads, families, the ten worst."""
    for threads in sorted({r["threads"] for r in records}):
        own = [r for r in records if r["threads"] == threads]
        ratios = [r["ratio"] for r in own]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        yield (f"{own[0]['target']}, {threads} thread{'s' if threads > 1 else ''}: {len(own)} shapes, geometric mean {mean:.2f}, worst {min(ratios):.2f}, "
               + ", ".join(f"{int(100 * q)} % {quantile(ratios, q):.2f}" for q in (0.05, 0.1, 0.25, 0.5, 0.75))
               + f", below 0.8: {sum(r < 0.8 for r in ratios)}")  # fmt: skip
        close = sum(1 / 1.5 <= r["predicted_ns"] / r["ours_ns"] <= 1.5 for r in own)
        yield f"  predicted within 1.5: {close} of {len(own)}"
        if any("cliff" in r for r in own):
            steep = [r["cliff"] for r in own if "cliff" in r]
            yield f"  cliffs above {CLIFF}: {sum(c > CLIFF for c in steep)} of {len(steep)}, the steepest {max(steep):.2f}"
        for family in sorted({r["family"] for r in own}):
            f = [r["ratio"] for r in own if r["family"] == family]
            yield f"  {family:<10} {len(f):3} shapes, mean {math.exp(sum(map(math.log, f)) / len(f)):.2f}, worst {min(f):.2f}"
        yield "the ten worst:"
        yield from ("  " + line(r) for r in sorted(own, key=lambda r: r["ratio"])[:10])


def options(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("seed")
    p.add_argument("count", type=int)
    p.add_argument("threads", nargs="?", default="1", help="one number or several: 1,2")
    p.add_argument("target", nargs="?", default=None)
    p.add_argument("--family", default=",".join(shapes.FAMILIES), help="only these")
    p.add_argument("--only", type=int, help="only the shape of this number in each family")
    p.add_argument("--near", action="store_true", help="neighbouring sizes, too")
    p.add_argument("--limit", type=int, default=90, help="seconds for a shape")
    p.add_argument("--json", action="store_true", help="one JSON object for each shape")
    o = p.parse_args(argv)
    o.threads = [int(n) for n in o.threads.split(",")]
    o.target = o.target or emitted.target()
    o.families = o.family.split(",")
    return o


def plan(o):
    """Family and number of each shape: the families in turn."""
    if o.only is not None:
        return [(f, o.only) for f in o.families]
    return [(o.families[i % len(o.families)], i // len(o.families)) for i in range(o.count)]


def main(argv=None):
    o = options(argv)
    with contextlib.suppress(ImportError):
        import onnxruntime  # noqa: F401: once, before children are made
    records = []
    if not o.json:
        print(HEAD, flush=True)
    for family, n in plan(o):
        sizes = shapes.draw(family, o.seed, n)
        found = in_child(o.limit, measure, family, sizes, n, o.threads, o.target, o.limit)
        if o.near:
            near(o, family, sizes, n, found)
        for r in found:
            r.update(family=family, sizes=sizes, n=n)
            print(json.dumps(r) if o.json else line(r), flush=True)
            records += [r] if "ratio" in r else []
    if not records:
        return 1
    print("\n".join(summary(records)), file=sys.stderr if o.json else sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
