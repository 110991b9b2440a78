"""Everything here beside its peers, in one run: the rows of all producers into build/bench.json.

    python bench/run.py [--cases WORDS] [--rounds 5] [--threads 2] [-o build/bench.json]

bench/rows.py says what a producer and a row are. With --cases, rows of other cases that the file has stay in it, if
they are of this machine. What is absent (a peer, a model) is named at the end and in `left_out`. Exits 1 when a row's bar is not
met; one that was not measured is not met.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import emitted
import page
import rows

HERE = pathlib.Path(__file__).resolve().parent
PRODUCERS = ("llm", "models", "gemm", "conv", "mcu", "kernels")  # bench/NAME.py, in the order of the page


def build(folder):
    """The library's probe, for this very machine."""
    out = folder / "bench_machine"
    rows.program(os.environ.get("CC", "cc"), "-O3", "-march=native", "-std=c17",
                 rows.REPO / "src/verify/probe/probe.c", "-o", out, "-lpthread")  # fmt: skip
    return out


def cpu_name():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def machine(folder, rounds):
    known = ("sse2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "amx_int8",
             "amx_bf16", "asimd", "asimddp")  # fmt: skip
    has = emitted.isas()
    return {"cpu": cpu_name(), "isa": [name for name in known if name in has], "cores": os.cpu_count(),
            "target": emitted.target(), **json.loads(rows.program(build(folder), "-", 5 * rounds))}  # fmt: skip


def better(a, b):
    """Two looks at one machine: of each figure the larger, since others may have been at work."""
    best = dict(a)
    for name, value in a.items():
        if name.endswith("_per_s"):
            best[name] = {n: max(v, b[name][n]) for n, v in value.items()}
    return best


def collect(o, name):
    """The rows of one producer, shown as they come."""
    words = [sys.executable, str(HERE / f"{name}.py") if name.isidentifier() else name, "--json", "--cases", o.cases, "--rounds", str(o.rounds),
             "--threads", str(o.threads), "--models", str(o.models)]  # fmt: skip
    found = []
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            found.append(json.loads(line))
            print(rows.text(found[-1]), file=sys.stderr, flush=True)
    if process.returncode != 0:
        found.append(rows.left_out(name, "its producer", f"failed with {process.returncode}"))
    return found


def merge(old, new, o):
    """What was measured before and is not asked for now stays."""
    taken = {r["case"] for r in new}
    return [r for r in old if r["case"] not in taken and not o.wants(r["case"])] + new


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cases", default="", help="only those with one of these words in their names")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    p.add_argument("--models", type=pathlib.Path, default=rows.REPO / "build/models")
    p.add_argument("-o", dest="out", type=pathlib.Path, default=rows.REPO / "build/bench.json")
    p.add_argument("--producers", nargs="*", help="others than the usual ones: names here, or files")
    p.add_argument("--page", type=pathlib.Path, help="also write the page and its pictures into this folder")
    p.add_argument("--note", default="", help="a sentence for the page, such as what else the machine did")
    return p.parse_args(namespace=rows.Options())


def unmet(found):
    return [r["case"] for r in found if "left_out" not in r and rows.is_met(r) is False]


def is_lost(found):
    return bool(unmet(found) or rows.not_measured(found))


def verdict(found):
    """The last line: whether what must hold does; and rows whose limit cannot be one."""
    said = [f"{what}: {', '.join(cases)}" for what, cases in (
        ("not met", unmet(found)), ("not measured, so not met", rows.not_measured(found))) if cases]  # fmt: skip
    said = said or ["every bar is met"]
    beyond = [r["case"] for r in found if "left_out" not in r and rows.beats_limit(r)]
    return "; ".join(said + ([f"better than their limit, which is wrong: {', '.join(beyond)}"] if beyond else []))


def main():
    o = arguments()
    started = time.monotonic()
    o.out.parent.mkdir(parents=True, exist_ok=True)
    facts = machine(o.out.parent, o.rounds)
    found = [row for name in o.producers or PRODUCERS for row in collect(o, name)]
    facts = {**better(facts, machine(o.out.parent, o.rounds)), "load": os.getloadavg()[1]}
    out_rows = [r for r in found if "left_out" not in r]
    left_out = [r for r in found if "left_out" in r]
    old = json.loads(o.out.read_text()) if o.out.exists() else None
    if o.cases and old and old["machine"]["cpu"] == facts["cpu"]:
        out_rows = merge(old["rows"], out_rows, o)
        facts = better(facts, {**facts, **old["machine"]})
    out_rows = [{**r, "limit": rows.limit(r, facts)} for r in out_rows]
    data = {"machine": facts, "rows": out_rows, "left_out": left_out, "rounds": o.rounds, "threads": o.threads,
            "note": o.note}  # fmt: skip
    o.out.write_text(json.dumps(data, indent=1) + "\n")
    print(f"{facts['cpu']}, {facts['cores']} cores, made for {facts['target']}; medians of {o.rounds}, {o.threads} threads\n")
    print(rows.HEAD)
    for r in out_rows + left_out:
        print(rows.text(r))
    if o.page:
        page.write(data, o.page)
    print(f"\n{o.out}: {len(out_rows)} rows, {time.monotonic() - started:.0f} s; {verdict(out_rows + left_out)}")
    return 1 if is_lost(out_rows + left_out) else 0


if __name__ == "__main__":
    sys.exit(main())
