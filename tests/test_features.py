"""docs/features.md: every row has a command, which runs, or a test, which exists."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import BIN, REPO

PAGE = (REPO / "docs/features.md").read_text(encoding="utf-8")
PREPARE = re.search(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)[1]


def rows():
    """[(promise, state, what shows it)] of all tables."""
    found = []
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("| ") else []
        if cells and cells[0].strip("| ") != "promise":
            assert len(cells) == 3, line
            found.append(tuple(cell.strip("| ") for cell in cells))
    return found


ROWS = rows()


def shows(cell):
    return re.findall(r"`([^`]+)`", cell)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the page's commands find: packages of examples."""
    where = tmp_path_factory.mktemp("features")
    for name in ("examples", "devices", "python/src"):
        shutil.copytree(REPO / name, where / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPO / "LICENSE", where)
    assert run(PREPARE, where).returncode == 0
    return where


def run(command, where):
    path = f"{pathlib.Path(BIN).parent}:{REPO / 'build/venv/bin'}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(where / "python/src")}
    return subprocess.run(["bash", "-c", f"set -eu -o pipefail\n{command}"], cwd=where, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)  # fmt: skip


def test_there_are_rows():
    assert len(ROWS) > 70 and PREPARE


@pytest.mark.parametrize("promise,state,cell", ROWS, ids=[row[0][:50] for row in ROWS])
def test_row(folder, promise, state, cell):
    assert state, f"{promise}: no state"
    found = shows(cell)
    assert found, f"{promise}: no command and no test"
    for one in found:
        if one.startswith("tests/"):
            file, _, name = one.partition("::")
            assert (REPO / file).exists(), f"{promise}: no {file}"
            assert not name or f"def {name}(" in (REPO / file).read_text(), f"{promise}: no {name} in {file}"
        else:
            done = run(one, folder)
            assert done.returncode == 0, f"{promise}: {one}\n{done.stdout}"


@pytest.mark.parametrize("promise,state,cell", [row for row in ROWS if "not yet" in row[1]], ids=lambda v: "")
def test_what_is_not_there_names_its_issue(promise, state, cell):
    assert re.search(r"issue \d+", state), f"{promise}: which issue?"
