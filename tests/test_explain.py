"""`openinfer explain`: a row for every code that is emitted anywhere, and examples that hold."""

import json
import re
import sys

import pytest

from conftest import BIN, REPO

sys.path.insert(0, str(REPO / "python/src"))
from openinfer.oinf import PackageWriter, TensorSpec  # noqa: E402

import subprocess  # noqa: E402

ROWS = json.loads(subprocess.run([BIN, "explain", "--json"], capture_output=True, text=True, check=True).stdout)


def emitted():
    """The codes in the sources of library and command, by file; tests and the table do not count."""
    found = {}
    for path in sorted([*REPO.glob("src/**/*.[ch]"), *REPO.glob("cli/*.[ch]"), *REPO.glob("chat/*.[ch]")]):
        if path.name.endswith(("_test.c", "_testing.h", "_test.h")) or path.name == "codes.c":
            continue
        for code in re.findall(r'"([EW]\d{3})"', path.read_text(encoding="utf-8")):
            found.setdefault(code, path.relative_to(REPO))
    return found


def test_every_code_has_a_row():
    rows = [row["code"] for row in ROWS]
    assert rows == sorted(set(rows))
    codes = emitted()
    assert not {code: str(path) for code, path in codes.items() if code not in rows}
    assert not [code for code in rows if code not in codes], "rows of codes that nothing emits"
    assert all(row["title"] and row["text"] and row["example"] for row in ROWS)


def write_model(path, text):
    with PackageWriter(path) as w:
        for item in filter(None, text.split("; ")):
            size = re.fullmatch(r"size (\w+) = (\d+)", item)
            tensor = re.fullmatch(r"tensor ([\w.]+): (\w+)\[(\d+)\]", item)
            if size:
                w.add_sizevar(size[1], int(size[2]))
            else:
                w.add_tensor(tensor[1], TensorSpec([0.0] * int(tensor[3]), dtype=tensor[2]))


@pytest.mark.parametrize("row", ROWS, ids=[row["code"] for row in ROWS])
def test_the_example_gives_its_code(openinfer, tmp_path, row):
    words = row["command"].split()[1:]
    name = next(w for w in words if w.startswith("FILE."))
    (tmp_path / name).write_text(row["example"] + "\n")
    if row["model"]:
        write_model(tmp_path / "MODEL.oinf", row["model"])
    code = 1 if row["code"][0] == "E" else 0
    said = openinfer(*words, cwd=tmp_path, code=code).stderr
    codes = re.findall(r"(?:error|warning)\[([EW]\d{3})\]", said)
    assert set(c for c in codes if c[0] == row["code"][0]) == {row["code"]}, said


def test_pages(openinfer):
    page = openinfer("explain", "E051").stdout
    assert page.startswith("E051: shapes that do not fit\n\n") and "op add(a, b) >> a;" in page
    assert openinfer("explain", "51").stdout == openinfer("explain", "e051").stdout == page
    assert "with a package that holds: tensor w: f32[2]" in openinfer("explain", "E012").stdout
    assert openinfer("explain", "E051", "W110").stdout.count("example:") == 2
    assert len(openinfer("explain").stdout.splitlines()) == len(ROWS)
    assert "there is no code 'E999'" in openinfer("explain", "E999", code=1).stderr
