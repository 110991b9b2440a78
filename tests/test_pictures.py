"""Pictures of graphs in docs/ are what `openinfer graph` draws today; tests/test_bench.py holds the charts."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PICTURES = sorted(p for p in (ROOT / "docs").glob("*.svg") if not p.stem.startswith("performance_"))


def test_a_picture_follows_dark_mode(openinfer):
    """Every colour of a shape has one for dark paper, by its class."""
    drawn = "".join(openinfer("graph", ROOT / "examples" / f"{name}.oi", "--to", "svg").stdout
                    for name in ("overview", "branches", "consumers", "kv_cache_decode"))  # fmt: skip
    dark = re.search(r"@media\(prefers-color-scheme:dark\)\{(.*?\})\}", drawn)[1]
    known = set(re.findall(r"\.(\w+)\{", dark))
    shapes = re.findall(r'<rect [^>]*fill="[^"]*"[^>]*class="([^"]*)"/>', drawn)
    assert shapes and all(known & set(names.split()) for names in shapes)
    assert "text{fill:" in dark and {"flow", "call", "loop", "kind"} <= known
    assert len(shapes) == drawn.count("<rect ")


def test_there_are_pictures():
    assert PICTURES


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: p.stem)
def test_up_to_date(openinfer, picture):
    drawn = openinfer("graph", str(ROOT / "examples" / f"{picture.stem}.oi"), "--to", "svg").stdout
    assert picture.read_text() == drawn, f"redraw with openinfer graph --to svg -o {picture.name}"
