"""The C programs of docs/simulator.md compile as they stand and print what the page says."""

import os
import pathlib
import re
import subprocess

import pytest

from conftest import BIN, REPO

PAGE = REPO / "docs/simulator.md"
LIBRARY = pathlib.Path(os.environ.get("OPENINFER_BUILD") or pathlib.Path(BIN).parent.parent) / "libopeninfer.a"
PROGRAMS = re.findall(r"^```c\n(.*?)^```.*?^```text\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)


def test_the_page_has_programs():
    assert len(PROGRAMS) == 2


@pytest.mark.parametrize("program, prints", PROGRAMS, ids=["steps", "nodes"])
def test_program(tmp_path, program, prints, sanitized):
    if sanitized:
        pytest.skip("a sanitized library wants the flags it was built with")
    (tmp_path / "p.c").write_text(program)
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
    json_c = subprocess.run(["pkg-config", "--libs", "json-c"], check=True, capture_output=True, text=True).stdout.split()
    subprocess.run(["cc", "-std=c17", *warnings, f"-I{REPO / 'include'}", "p.c", LIBRARY, *json_c, "-lm", "-lpthread", "-o", "p"],
                   cwd=tmp_path, check=True)  # fmt: skip
    result = subprocess.run(["./p"], cwd=tmp_path, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == prints
