"""Every shell command in the documentation is run.

The ```sh blocks of a page run in order, in one temporary folder that holds copies of examples/ and
devices/, with the built command on PATH. In a block with "$ " lines those are the commands and the
other lines what they print ("..." stands for any lines). An exception is written above its block,
for the reader to see too: <!-- not run: reason -->.
"""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import BIN, REPO

PAGES = [p for p in [REPO / "README.md", REPO / "CONTRIBUTING.md"] if p.exists()]
PAGES += sorted((REPO / "docs").glob("*.md"))
FENCE = re.compile(
    r"(?:<!-- not run: (?P<why>[^\n]*?) -->\n+)?^```sh\n(?P<body>.*?)^```$", re.M | re.S
)


def blocks(page: pathlib.Path):
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("body"))
        yield line, match["body"], match["why"]


RUN = [(p, [b for b in blocks(p) if not b[2]]) for p in PAGES]
RUN = [(p, b) for p, b in RUN if b]
NOT_RUN = [(p, line, why) for p in PAGES for line, _, why in blocks(p) if why]


def sessions(body: str):
    """(command, expected lines or None) for one block."""
    if "$ " not in {line[:2] for line in body.splitlines()}:
        return [(body, None)]
    found = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return found


def as_pattern(lines: list[str]) -> str:
    return "".join("(?:.*\n)*?" if x == "..." else re.escape(x.rstrip()) + " *\n" for x in lines)


@pytest.fixture(scope="module")
def environment():
    path = [str(pathlib.Path(BIN).parent), str(REPO / "build/venv/bin"), os.environ["PATH"]]
    return {**os.environ, "PATH": ":".join(path), "PYTHONPATH": str(REPO / "python/src")}


@pytest.mark.parametrize("page,page_blocks", RUN, ids=[p.name for p, _ in RUN])
def test_commands(page, page_blocks, tmp_path, environment):
    for folder in ("examples", "devices"):
        if (REPO / folder).is_dir():
            shutil.copytree(REPO / folder, tmp_path / folder)
    for line, body, _ in page_blocks:
        for command, expected in sessions(body):
            result = subprocess.run(
                ["bash", "-c", f"set -eu -o pipefail\n{command}"],
                cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, timeout=300,
            )
            where = f"{page.name}:{line}: {command}\n{result.stdout}"
            if expected:  # what is shown is what is printed, errors included
                assert re.fullmatch(as_pattern(expected), result.stdout), where
            else:
                assert result.returncode == 0, where


def test_a_page_with_commands_exists():
    assert RUN, "no ```sh block was found: the pattern or the pages are broken"


@pytest.mark.parametrize("page,line,why", NOT_RUN, ids=[f"{p.name}:{n}" for p, n, _ in NOT_RUN])
def test_exceptions_are_named(page, line, why):
    """Shows up in the summary, so that nobody believes these were run."""
    pytest.skip(f"{page.name}:{line} is not run: {why}")


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
