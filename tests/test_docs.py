"""Every shell command in the documentation is run.

The ```sh blocks of a page run in order, in one temporary folder that holds copies of examples/,
devices/ and python/src, with what README.md puts on PATH and nothing else. In a block with "$ " lines
those are the commands and the other lines what they print. Every command exits with 0; one that is meant
to fail says so at its end: "# exits 1". A line "..." stands for one or more lines at that place, of which
none is a diagnostic unless the command is meant to fail; it cannot be all that a command prints. An
exception is written above its block, for the reader to see too: <!-- not run: reason -->. A block that needs a
large module of Python names what it makes: <!-- without MODULE: FILES -->; where the module is not installed, those
files of the repository are copied instead.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

import pytest

from conftest import BIN, REPO

PAGES = [p for p in [REPO / "README.md", REPO / "CONTRIBUTING.md"] if p.exists()]
PAGES += sorted((REPO / "docs").glob("*.md"))
FENCE = re.compile(
    r"(?:<!-- (?:not run: (?P<why>[^\n]*?)|without (?P<module>\w+): (?P<files>[^\n]*?)) -->\n+)?^```sh\n(?P<body>.*?)^```$",
    re.M | re.S,
)


class Block(NamedTuple):
    line: int
    body: str
    why: str | None  # it is not run
    module: str  # it needs
    files: list[str]  # that it makes


def blocks(page: pathlib.Path):
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("body"))
        yield Block(line, match["body"], match["why"], match["module"] or "", (match["files"] or "").split())


RUN = [(p, [b for b in blocks(p) if not b.why]) for p in PAGES]
RUN = [(p, b) for p, b in RUN if b]
NOT_RUN = [(p, b.line, b.why) for p in PAGES for b in blocks(p) if b.why]
WITHOUT = [(p, b) for p, run in RUN for b in run if b.module]


def sessions(body: str):
    """(command, expected lines or None, exit code) for each command of a block."""
    if "$ " not in {line[:2] for line in body.splitlines()}:
        return [(body, None, 0)]
    found = []
    for line in body.splitlines():
        if line.startswith("$ "):
            ends = re.search(r" # exits (\d+)$", line)
            found.append((line[2:], [], int(ends[1]) if ends else 0))
        elif found:
            found[-1][1].append(line)
    return found


DIAGNOSTIC = re.compile(r"^Traceback |\b(?:error|warning)(?:\[\w+\])?: ", re.M)


def problem(expected, wanted_code, code, output):
    """What is wrong with the output and exit code of a command, or None."""
    if code != wanted_code:
        return f"exit {code}, wanted {wanted_code}"
    if not expected:  # nothing is shown: anything may be printed
        return None
    if set(expected) == {"..."}:
        return "the page shows nothing of what is printed"
    pattern = "".join("((?:.*\n)+?)" if x == "..." else re.escape(x.rstrip()) + " *\n" for x in expected)
    match = re.fullmatch(pattern, output)
    if not match:
        return "what is printed is not what the page shows"
    if wanted_code == 0 and any(DIAGNOSTIC.search(part) for part in match.groups()):
        return "'...' hides a diagnostic"
    return None


@pytest.mark.parametrize("expected,code,output,wrong", [
    (["a", "...", "z"], 0, "a\nb\nc\nz\n", None),
    (["..."], 0, "a\n", "shows nothing"),
    (["a", "..."], 0, "a\n", "not what the page shows"),
    (["...", "z"], 0, "a\n", "not what the page shows"),
    (["a", "..."], 0, "b\na\nc\n", "not what the page shows"),
    (["a", "..."], 0, "a\nx: error: no such file\n", "hides a diagnostic"),
    (["a", "..."], 0, "a\nx.oi:1:2: error[E051]: no\n", "hides a diagnostic"),
    (["a"], 2, "a\n", "exit 2, wanted 0"),
    ([], 1, "", "exit 1, wanted 0"),
    (None, 3, "", "exit 3, wanted 0"),
])  # fmt: skip
def test_what_counts_as_right(expected, code, output, wrong):
    found = problem(expected, 0, code, output)
    assert found is None if wrong is None else wrong in found


@pytest.fixture(scope="module")
def environment():
    """As README.md has its reader set it: nothing else says where the Python package is."""
    path = [str(pathlib.Path(BIN).parent), str(REPO / "build/venv/bin"), os.environ["PATH"]]
    rest = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**rest, "PATH": ":".join(path)}


def has(module, environment):
    """Whether the Python of a page's reader has a module."""
    find = f"import importlib.util as u, sys; sys.exit(u.find_spec('{module}') is None)"
    return subprocess.run(["python3", "-c", find], env=environment).returncode == 0


def run_page(page, folder, environment):
    """Runs every command of a page and judges each."""
    for name in ("examples", "devices", "python/src"):
        if (REPO / name).is_dir():
            shutil.copytree(REPO / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for block in (block for block in blocks(page) if not block.why):
        if block.module and not has(block.module, environment):
            for file in block.files:
                shutil.copy(REPO / file, folder)
            continue
        for command, expected, code in sessions(block.body):
            result = subprocess.run(
                ["bash", "-c", f"set -eu -o pipefail\n{command}"],
                cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, timeout=300,
            )
            wrong = problem(expected, code, result.returncode, result.stdout)
            assert not wrong, f"{page.name}:{block.line}: {command}\n{wrong}\n{result.stdout}"


@pytest.mark.parametrize("page", [p for p, _ in RUN], ids=[p.name for p, _ in RUN])
def test_commands(page, tmp_path, environment):
    run_page(page, tmp_path, environment)


def test_readme_with_a_bare_python(tmp_path, environment):
    """As after `make` alone on a fresh Debian: python3 has neither numpy nor our package."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    (tools / "python3").chmod(0o755)
    bare = {**environment, "PATH": f"{tools}:{environment['PATH']}"}
    for module in ("numpy", "openinfer"):
        assert subprocess.run([tools / "python3", "-c", f"import {module}"], env=bare, capture_output=True).returncode
    (tmp_path / "page").mkdir()
    run_page(REPO / "README.md", tmp_path / "page", bare)


def test_a_page_with_commands_exists():
    assert RUN, "no ```sh block was found: the pattern or the pages are broken"


@pytest.mark.parametrize("page,line,why", NOT_RUN, ids=[f"{p.name}:{n}" for p, n, _ in NOT_RUN])
def test_exceptions_are_named(page, line, why):
    """Shows up in the summary, so that nobody believes these were run."""
    pytest.skip(f"{page.name}:{line} is not run: {why}")


@pytest.mark.parametrize("page,block", WITHOUT, ids=[f"{p.name}:{b.line}" for p, b in WITHOUT])
def test_blocks_without_their_module_are_named(page, block, environment):
    """So that the summary says what was copied instead; the files are there either way."""
    assert all((REPO / file).exists() for file in block.files)
    if not has(block.module, environment):
        pytest.skip(f"{page.name}:{block.line} was not run: no {block.module} here; {' '.join(block.files)} were taken instead")


@pytest.mark.parametrize("page", PAGES, ids=[p.name for p in PAGES])
def test_links(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: no {target}"


def test_the_program_shown_is_the_one_made(tmp_path, environment):
    """README.md shows a kernel of examples/linear.oi; it is what the synthesizer writes."""
    shown = re.findall(r"^```c\n(.*?)^```$", (REPO / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    script = (f"python3 {REPO}/examples/linear_oinf.py linear.oinf && "
              f"openinfer synth {REPO}/examples/linear.oi --model linear.oinf --target cpu_scalar -o out")
    subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, check=True)
    assert len(shown) == 1 and shown[0] in (tmp_path / "out/linear.c").read_text(encoding="utf-8")


def test_synthesis_names_every_pass(openinfer):
    """Those that the command knows, in the table and in no other order."""
    said = openinfer("synth", "x.oi", "-o", "x", "--without", "?", code=2).stderr
    passes = re.search(r"they are (.*)\)", said)[1].split(", ")
    table = re.findall(r"^\| (`.*?`) \|", (REPO / "docs/synthesis.md").read_text(), re.M)
    named = [name for cell in table for name in re.findall(r"`(\w+)`", cell) if name in passes]
    assert named == passes
