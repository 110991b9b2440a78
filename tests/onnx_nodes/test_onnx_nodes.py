"""Every node test of the onnx package passes, or not_passing.txt says why it does not."""

import pathlib
import sys
import tempfile

import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("ml_dtypes")
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "python/src")]

import as_c  # noqa: E402
import backend  # noqa: E402
import table  # noqa: E402

LEAST = 0.97
EVERY = 120  # of the tests as C: all take half an hour (make onnx-test C=1)


def listed():
    lines = (HERE / "not_passing.txt").read_text(encoding="utf-8").splitlines()
    return lines[0].split()[-1], {line.split(": ", 1)[0]: line.split(": ", 1)[1] for line in lines[1:]}


def test_every_node_test_passes_or_is_listed():
    version, known = listed()
    passed, failed = 0, {}
    with tempfile.TemporaryDirectory() as folder:
        for case in backend.cases():
            try:
                backend.check(case, folder)
                passed += 1
            except backend.Skip:
                pass
            except backend.Fail as e:
                failed[case.name] = str(e)
    assert passed / (passed + len(failed)) >= LEAST
    if onnx.__version__ == version:  # another version has other tests
        assert {k: v for k, v in failed.items() if k not in known} == {}
        assert set(known) - set(failed) == set(), "these pass now: take them out of not_passing.txt"


def test_some_as_c():
    """Of 417 tests, every fourth, all but one agreed: Unique without order sorts what only the run knows."""
    failed, passed = as_c.run(backend.cases()[::EVERY], listed()[1])
    assert failed == {} and passed >= 12


def test_the_page_of_operators():
    """Generated; for another version of the onnx package only the rows of the registry can be compared."""
    page = (HERE.parent.parent / "docs/onnx-ops.md").read_text(encoding="utf-8")
    for name, rows in table.by_onnx().items():
        (line,) = [line for line in page.splitlines() if line.startswith(f"| {name} |")]
        assert all(f"[`{row.name}`](ops.md#{row.name})" in line for row in rows)
    if onnx.__version__ == listed()[0]:
        assert page == table.page(), "docs/onnx-ops.md is old: python tests/onnx_nodes/table.py > docs/onnx-ops.md"
