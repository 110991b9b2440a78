"""What everything here that measures shares: rows, how they are taken, how they are printed.

A producer is a file bench/NAME.py whose measure(o) yields rows; bench/run.py lists and collects them.

    import rows

    def measure(o):                                # o: rounds, threads, wants(case), models
        if o.wants("gemm 512"):
            ours, peer = rows.alternate(o.rounds, our_gflops, numpy_gflops)
            yield rows.row("gemm 512", "GFLOP/s", ours, peer, "OpenBLAS", macs=512**3, per_item=2 * 512**3 / 1e9)
        if o.wants("gemm 7"):
            yield rows.left_out("gemm 7", "OpenBLAS", "numpy is not installed")

    if __name__ == "__main__":
        sys.exit(rows.main(measure, __doc__))

`python bench/NAME.py` prints a table, with `--json` one JSON object for each row; `--cases a,b` takes the cases
whose names contain one of the words. A unit is a rate when it has "/" in it (tokens/s, GFLOP/s, MAC/instruction):
more is better; else it is a time (ms, us, ns): less is better. `ratio` is > 1 where we are faster.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

REPO = pathlib.Path(__file__).resolve().parent.parent
SECONDS = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def is_rate(unit):
    return "/" in unit


def enough(seconds, budget=0.4, most=400):
    """How many runs of so many seconds fill the budget."""
    return max(3, min(most, int(budget / max(seconds, 1e-9))))


def settle(most=0.5):
    """Waits until threads of this process are at rest: those of a peer that is called here go on looking for work when
    theirs is done (OpenBLAS's for a tenth of a second), on a processor that the next one needs."""
    spent, end = time.process_time(), time.monotonic() + most
    while time.monotonic() < end:
        time.sleep(0.005)
        now = time.process_time()
        if now - spent < 0.001:
            return
        spent = now


def alternate(rounds, *functions):
    """Each function's results, taken in turn, so that what else the machine does meets them alike."""
    results = [[] for _ in functions]
    for _ in range(rounds):
        for result, function in zip(results, functions):
            settle()
            result.append(function())
    return results


def row(case, unit, ours, peer=None, peer_name=None, bar=None, **work):
    """One case: what we and the peer measured, a list each (or one number). `bar` is what must hold: the least ratio,
    or without a peer the least rate or the longest time.

    work, all of it optional: `bytes` that an item (a token, a step, a product) has to read from memory and `macs`
    it has to multiply; `per_item`, how much of the unit one item is (1; 2 * n**3 / 1e9 for GFLOP/s); `arithmetic`,
    "f32", "int8" or "tile"; `threads`; `touches`, bytes that may stay in caches and so do not limit. From it comes the row's `limit`: what this machine could do at most. `limit` itself
    may be given where the machine is another. `note` is kept."""
    ours, peer = (v if isinstance(v, list) or v is None else [v] for v in (ours, peer))
    mine, theirs = (statistics.median(v) if v else None for v in (ours, peer))
    ratio = None
    if mine and theirs:
        ratio = mine / theirs if is_rate(unit) else theirs / mine
    spread = {"ours": [min(ours), max(ours)], "peer": [min(peer), max(peer)] if peer else None}
    return {"case": case, "unit": unit, "ours": mine, "peer": theirs, "peer_name": peer_name, "ratio": ratio,
            "spread": spread, "limit": work.pop("limit", None), "bar": bar, "work": work}  # fmt: skip


def best_ratio(row):
    """The ratio of the best runs: what others did on the machine meanwhile counts less."""
    if not row["ratio"]:
        return None
    ours, peer = best(row, "ours"), best(row, "peer")
    return ours / peer if is_rate(row["unit"]) else peer / ours


def is_met(row):
    """Whether the row's bar holds; None: it has none, or nothing to hold against."""
    if row.get("bar") is None or (row["peer_name"] and not row["ratio"]):
        return None
    if row["peer_name"]:
        return row["ratio"] >= row["bar"]
    return row["ours"] >= row["bar"] if is_rate(row["unit"]) else row["ours"] <= row["bar"]


def left_out(case, what, why):
    """A case, or its peer, that could not be measured: named, never silent, and what should hold of it does not."""
    return {"case": case, "left_out": what, "why": why}


def not_measured(found):
    """Of rows: what was left out, and bars that nothing was held against."""
    return [r["case"] for r in found if "left_out" in r or (r.get("bar") is not None and is_met(r) is None)]


def beats_limit(row):
    """Whether the row is better than the limit by more than measuring errs: then the limit is wrong."""
    if not row.get("limit"):
        return False
    ours = best(row, "ours")
    return ours > 1.05 * row["limit"] if is_rate(row["unit"]) else ours < row["limit"] / 1.05


def best(row, side):
    return (max if is_rate(row["unit"]) else min)(row["spread"][side])


# The ways in which programs multiply: bytes in vectors, or in tiles where the machine has them.
WAYS = {"int8": ("int8", "int8_tile")}


def limit(row, machine):
    """What the machine's reading and multiplying allow at most, in the row's unit; None: unknown."""
    work = row.get("work", {})
    threads = str(work.get("threads", 2))
    seconds = 0.0
    if work.get("bytes"):
        seconds = work["bytes"] / (machine["read_gb_per_s"][threads] * 1e9)
    if work.get("macs"):
        kind = work.get("arithmetic", "f32")
        peak = max(machine[f"{way}_gmac_per_s"][threads] for way in WAYS.get(kind, (kind,)) if f"{way}_gmac_per_s" in machine)
        seconds = max(seconds, work["macs"] / (peak * 1e9))
    if not seconds:
        return row.get("limit")
    return work.get("per_item", 1) / seconds if is_rate(row["unit"]) else seconds / SECONDS[row["unit"]]


def program(*words, **more):
    """What a program prints, as text; fails when it does."""
    return subprocess.run([str(w) for w in words], check=True, stdout=subprocess.PIPE, text=True, **more).stdout


class Options(argparse.Namespace):
    def wants(self, case):
        return not self.cases or any(word in case for word in self.cases.replace(",", " ").split())


def options(doc, argv=None):
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--json", action="store_true", help="one JSON object for each row")
    p.add_argument("--cases", default="", help="only those with one of these words in their names")
    p.add_argument("--rounds", type=int, default=5, help="runs of each, in turn")
    p.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    p.add_argument("--models", type=pathlib.Path, default=REPO / "build/models")
    return p.parse_args(argv, Options())


def number(value):
    return "-" if value is None else f"{value:.4g}" if value < 1000 else f"{value:.0f}"


HEAD = f"{'case':<40} {'unit':<15} {'ours':>8} {'from':>8} {'to':>8} {'peer':>8} {'limit':>8}  ratio (of the best)"


def text(r):
    if "left_out" in r:
        return f"{r['case']:<40} left out: {r['left_out']}: {r['why']}"
    beside = f"{r['ratio']:.2f} ({best_ratio(r):.2f}) times {r['peer_name']}" if r["ratio"] else ""
    if is_met(r) is False:
        beside += f"  NOT MET: wanted {number(r['bar'])}"
    figures = (r["ours"], *r["spread"]["ours"], r["peer"], r["limit"])
    return f"{r['case']:<40} {r['unit']:<15} " + " ".join(f"{number(f):>8}" for f in figures) + "  " + beside


def main(measure, doc, argv=None):
    o = options(doc, argv)
    for r in measure(o):
        print(json.dumps(r) if o.json else text(r), flush=True)
    return 0
