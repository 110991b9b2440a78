"""Pictures of graphs in docs/ are what `openinfer graph` draws today; tests/test_bench.py holds the charts."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PICTURES = sorted(p for p in (ROOT / "docs").glob("*.svg") if not p.stem.startswith("performance_"))


def test_there_are_pictures():
    assert PICTURES


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: p.stem)
def test_up_to_date(openinfer, picture):
    drawn = openinfer("graph", str(ROOT / "examples" / f"{picture.stem}.oi"), "--to", "svg").stdout
    assert picture.read_text() == drawn, f"redraw with openinfer graph --to svg -o {picture.name}"
