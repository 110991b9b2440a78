"""docs/performance.md and its pictures (and .json, from which it can be made again), from what `make bench` measured and the text in bench/performance.md.

    python bench/page.py [build/bench.json] [-o docs]

Lines of the text that start with @ are replaced: @machine, @table WORDS (rows whose case starts with one of them),
@section WORDS (what follows, up to the next heading's end, only where there are such rows), @left_out, @others (what
other machines measured, of rows that have a bar). Figures stay in FOLDER/performance.json; those of a machine that
programs are made for in another way go to FOLDER/performance_TARGET.json before they are replaced.
"""

import argparse
import json
import pathlib
import sys

import charts
import rows

HERE = pathlib.Path(__file__).resolve().parent


def of(data, words):
    return [r for r in data["rows"] if r["case"].startswith(tuple(words))]


def table(selected):
    if not selected:
        return "Not measured in this run."
    lines = ["| case | unit | ours | spread | peer | | ratio | of the best runs | wanted | limit |", "|---|---|---|---|---|---|---|---|---|---|"]
    for r in selected:
        n = rows.number
        ratio = f"{r['ratio']:.2f} | {rows.best_ratio(r):.2f}" if r["ratio"] else " | "
        state = {None: " (not measured)", False: " (not met)", True: ""}
        wanted = f"{r['bar']:g}" + state[rows.is_met(r)] if r.get("bar") is not None else ""
        low, high = r["spread"]["ours"]
        lines.append(f"| {r['case']} | {r['unit']} | {n(r['ours'])} | {n(low)} to {n(high)} | {n(r['peer'])} | "
                     f"{r['peer_name'] or ''} | {ratio} | {wanted} | {n(r['limit'])} |")  # fmt: skip
    return "\n".join(lines)


def machine(data):
    m = data["machine"]
    rates = {name: " and ".join(f"{v:.0f}" for v in m[name].values()) for name in m if name.endswith("_per_s")}
    int8 = f", {rates['int8_gmac_per_s']} GMAC/s in 8-bit integers" if "int8_gmac_per_s" in rates else ""
    return (f"The machine: {m['cpu']}, {m['cores']} cores ({', '.join(m['isa'])}), programs made for {m['target']}. One and two threads\n"
            f"read {rates['read_gb_per_s']} GB/s and multiply {rates['f32_gmac_per_s']} GMAC/s in f32{int8}."
            + f"\nOn average {m['load']:.1f} threads wanted to run there while we measured." + (f" {data['note']}" if data.get("note") else ""))  # fmt: skip


def left_out(data):
    return "\n".join(f"Left out: {r['case']}: {r['left_out']}: {r['why']}." for r in data["left_out"])


def other(data):
    return machine(data).replace("The machine", "Another machine", 1) + "\n\n" + table([r for r in data["rows"] if r.get("bar") is not None])


def others(folder):
    return [json.loads(path.read_text()) for path in sorted(folder.glob("performance_*.json"))]


def page(data, text, more=()):
    out, skips = [], False
    for line in text.splitlines():
        word, *rest = line.split() or [""]
        if line.startswith("## "):
            skips = skips is None
        if word == "@section":
            skips = None if not of(data, rest) else False  # the heading that follows decides
            continue
        if skips:
            continue
        if word == "@table":
            line = table(of(data, rest))
        elif word == "@machine":
            line = machine(data)
        elif word == "@left_out":
            line = left_out(data)
        elif word == "@others":
            line = "\n\n".join(map(other, more))
        out.append(line.replace("@rounds", str(data["rounds"])))
    return "\n".join(out).rstrip() + "\n"


def keep(data, folder):
    """data becomes performance.json; figures for another target that are there are kept beside it."""
    newest = folder / "performance.json"
    if newest.exists():
        target = json.loads(newest.read_text())["machine"]["target"]
        newest.rename(folder / f"performance_{target}.json")
    newest.write_text(json.dumps(data, indent=1) + "\n")
    (folder / f"performance_{data['machine']['target']}.json").unlink(missing_ok=True)


def write(data, folder):
    keep(data, folder)
    (folder / "performance.md").write_text(page(data, (HERE / "performance.md").read_text(), others(folder)))
    (folder / "performance_ratios.svg").write_text(charts.ratios(data["rows"]))
    (folder / "performance_roofline.svg").write_text(charts.roofline(data["rows"], data["machine"], data["threads"]))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("measured", nargs="?", type=pathlib.Path, default=rows.REPO / "build/bench.json")
    p.add_argument("-o", dest="folder", type=pathlib.Path, default=rows.REPO / "docs")
    a = p.parse_args()
    write(json.loads(a.measured.read_text()), a.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
