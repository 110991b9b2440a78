"""tools/coverage.py: counts over objects that were made of one text in several ways."""

import shutil
import subprocess
import sys

import pytest

from conftest import REPO

sys.path.insert(0, str(REPO / "tools"))
import coverage  # noqa: E402

HEADER = """#if WIDE
static int twice(int x)
{
    return x << 1;
}
#else
static int twice(int x)
{
    if (x > 100)
        return 0;
    return x + x;
}
#endif
"""
BODY = """#include "twice.h"
int NAME(int x);
int NAME(int x)
{
    return twice(x);
}
"""


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """One header in two objects, where a function stands on two lines; and a file that never runs."""
    if not shutil.which("gcc") or not shutil.which("gcov"):
        pytest.skip("no gcc or gcov here")
    root = tmp_path_factory.mktemp("coverage")
    for folder in ("src/oinf", "build"):
        (root / folder).mkdir(parents=True)
    (root / "src/oinf/twice.h").write_text(HEADER)
    (root / "src/oinf/body.c").write_text(BODY)
    (root / "src/oinf/idle.c").write_text("int idle(int x);\nint idle(int x)\n{\n    return x ? 1 : 2;\n}\n")
    (root / "src/oinf/x_test.c").write_text("int wide(int), plain(int);\nint main(void)\n{\n    return wide(1) + plain(1) != 4;\n}\n")
    for name, source, flags in (("wide", "body", ["-DWIDE=1", "-DNAME=wide"]), ("plain", "body", ["-DWIDE=0", "-DNAME=plain"]),
                                ("idle", "idle", []), ("x_test", "x_test", [])):  # fmt: skip
        subprocess.run(["gcc", "--coverage", "-O0", *flags, "-c", f"src/oinf/{source}.c", "-o", f"build/{name}.o"], cwd=root, check=True)
    subprocess.run(["gcc", "--coverage", *(f"build/{n}.o" for n in ("wide", "plain", "idle", "x_test")), "-o", "run"], cwd=root, check=True)
    subprocess.run([root / "run"], check=True)
    return coverage.measure(root / "build", root)


def test_one_function_on_two_lines(counted):
    assert set(counted) == {"src/oinf/twice.h", "src/oinf/body.c", "src/oinf/idle.c"}
    lines = counted["src/oinf/twice.h"].lines
    assert [bool(lines[n]) for n in (2, 4, 7, 9, 10, 11)] == [True, True, True, True, False, True]
    assert counted["src/oinf/twice.h"].counts()[2:] == [1, 2]


def test_what_never_ran_counts(counted, capsys, tmp_path):
    assert counted["src/oinf/idle.c"].counts() == [0, 2, 0, 2]
    assert coverage.judge(counted) == ["src/oinf", "src/dsl", "src/graph"]
    said = capsys.readouterr().out
    assert "below 95 % / 85 %" in said and said.count("no code measured") == 2
    coverage.report(counted, tmp_path / "all.txt")
    assert "src/oinf/twice.h: 5 of 6 lines, 1 of 2 branches; never run: 10" in (tmp_path / "all.txt").read_text()


def test_the_gate_is_run():
    """make coverage says that it fails below the bars; the long test run does it."""
    script = (REPO / "tools/test.sh").read_text()
    assert 'stages+=" coverage"' in script and "tools/coverage.sh" in script
