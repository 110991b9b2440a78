"""coverage.py SUMMARY.json: gcovr's per-file figures added up per folder; exit 1 below the bar."""

import collections
import json
import sys

BARS = {"src/oinf": (95, 85), "src/dsl": (95, 85), "src/graph": (95, 85)}
COUNTS = ("line_covered", "line_total", "branch_covered", "branch_total")


def percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 100.0


def main() -> int:
    folders: dict[str, list[int]] = collections.defaultdict(lambda: [0] * len(COUNTS))
    with open(sys.argv[1], encoding="utf-8") as file:
        for row in json.load(file)["files"]:
            folder = row["filename"].rsplit("/", 1)[0]
            for i, key in enumerate(COUNTS):
                folders[folder][i] += row[key]
    below = []
    print(f"{'folder':<14}{'lines':>8}{'covered':>9}{'branches':>10}{'covered':>9}")
    for folder, (lines, n_lines, branches, n_branches) in sorted(folders.items()):
        line, branch = percent(lines, n_lines), percent(branches, n_branches)
        bar = BARS.get(folder)
        ok = not bar or (line >= bar[0] and branch >= bar[1])
        mark = "" if ok else f"  below {bar[0]} % / {bar[1]} %"
        print(f"{folder:<14}{n_lines:>8}{line:>8.1f}%{n_branches:>10}{branch:>8.1f}%{mark}")
        if not ok:
            below.append(folder)
    for folder in BARS:
        if folder not in folders:
            print(f"{folder:<14} no code measured")
            below.append(folder)
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
