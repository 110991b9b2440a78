"""coverage.py FOLDER [REPORT]: what the objects built in FOLDER have run of src/ and cli/, added up per folder; exit 1
below the bar. REPORT gets each file's figures and the lines that never ran.

A file may be compiled several times, for several instruction sets, and one function may then stand on several lines
or have other branches: a line counts as run, and a branch as taken, when any of them did.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys

BARS = {"src/oinf": (95, 85), "src/dsl": (95, 85), "src/graph": (95, 85)}
ROOT = pathlib.Path(__file__).resolve().parent.parent
AT_ONCE = 32  # objects a call of gcov


class File:
    def __init__(self):
        self.lines = {}  # number: times it ran
        self.branches = {}  # (line, function, place): times it was taken

    def add(self, line):
        number = line["line_number"]
        self.lines[number] = max(self.lines.get(number, 0), line["count"])
        for i, branch in enumerate(line["branches"]):
            key = (number, line.get("function_name"), i)
            self.branches[key] = max(self.branches.get(key, 0), branch["count"])

    def counts(self):
        return [sum(map(bool, self.lines.values())), len(self.lines), sum(map(bool, self.branches.values())), len(self.branches)]


def is_ours(name):
    return name.startswith(("src/", "cli/")) and not name.endswith("_test.c")


def gcov(notes):
    """What gcov says of some objects: one JSON object a line. An object that never ran has notes and no data."""
    words = [os.environ.get("GCOV", "gcov"), "--branch-probabilities", "--json-format", "--stdout", *map(str, notes)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def measure(folder, root=ROOT):
    """By file, relative to root."""
    notes, files = sorted(pathlib.Path(folder).rglob("*.gcno")), collections.defaultdict(File)
    for at in range(0, len(notes), AT_ONCE):
        for unit in gcov(notes[at : at + AT_ONCE]):
            for source in unit["files"]:
                path = os.path.normpath(os.path.join(unit["current_working_directory"], source["file"]))
                name = os.path.relpath(path, root)
                if is_ours(name):
                    for line in source["lines"]:
                        files[name].add(line)
    return dict(files)


def percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 100.0


def ranges(numbers):
    """3-5 9"""
    runs = []
    for n in sorted(numbers):
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return " ".join(f"{a}-{b}" if a != b else f"{a}" for a, b in runs)


def report(files, path):
    with open(path, "w", encoding="utf-8") as out:
        for name, file in sorted(files.items()):
            ran, lines, taken, branches = file.counts()
            missed = ranges(n for n, count in file.lines.items() if not count)
            out.write(f"{name}: {ran} of {lines} lines, {taken} of {branches} branches{'; never run: ' + missed if missed else ''}\n")


def judge(files):
    """Prints the figures of every folder; the folders below their bar."""
    folders = collections.defaultdict(lambda: [0] * 4)
    for name, file in files.items():
        folder = folders[name.rsplit("/", 1)[0]]
        folder[:] = map(sum, zip(folder, file.counts()))
    below = []
    print(f"{'folder':<18}{'lines':>8}{'covered':>9}{'branches':>10}{'covered':>9}")
    for folder, (lines, n_lines, branches, n_branches) in sorted(folders.items()):
        line, branch = percent(lines, n_lines), percent(branches, n_branches)
        bar = BARS.get(folder)
        ok = not bar or (line >= bar[0] and branch >= bar[1])
        mark = "" if ok else f"  below {bar[0]} % / {bar[1]} %"
        print(f"{folder:<18}{n_lines:>8}{line:>8.1f}%{n_branches:>10}{branch:>8.1f}%{mark}")
        if not ok:
            below.append(folder)
    for folder in BARS:
        if folder not in folders:
            print(f"{folder:<18} no code measured")
            below.append(folder)
    return below


def main() -> int:
    files = measure(sys.argv[1])
    if len(sys.argv) > 2:
        report(files, sys.argv[2])
    return 1 if judge(files) else 0


if __name__ == "__main__":
    sys.exit(main())
