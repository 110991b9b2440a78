"""report.html: well formed, complete, and a page of its own."""

import html
import html.parser
import json
import re
import sys

import pytest

from conftest import REPO

EXAMPLES = REPO / "examples"
sys.path[:0] = [str(EXAMPLES), str(REPO / "python/src")]

pytest.importorskip("numpy", reason="packages are made with numpy")


class Page(html.parser.HTMLParser):
    """Every element is closed in its order; texts are kept."""

    EMPTY = {"meta", "line", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.blocks = [], [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        assert tag != "script" and not {"src", "href"} & dict(attrs).keys()
        if tag == "rect":
            self.blocks.append({k: float(v) for k, v in attrs if k != "class"})
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def overlap(a, b):
    return (a["x"] + 0.02 < b["x"] + b["width"] and b["x"] + 0.02 < a["x"] + a["width"]
            and a["y"] + 0.02 < b["y"] + b["height"] and b["y"] + 0.02 < a["y"] + a["height"])  # fmt: skip


@pytest.mark.parametrize("name", ["kv_cache_decode", "moe_routing", "streaming_pipeline", "minimal"])
def test_report(openinfer, example_package, tmp_path, name):
    package = example_package(name)
    openinfer("synth", EXAMPLES / f"{name}.oi", "--model", package, "--target", "cpu_scalar", "-o", tmp_path / "out")
    text = (tmp_path / "out/report.html").read_text()
    plan = json.loads((tmp_path / "out/plan.json").read_text())
    page = Page(text)
    said = "".join(page.texts)
    for kernel in plan["kernels"]:
        assert kernel["name"] in page.texts
        for number in kernel["lines"]:
            line = (EXAMPLES / f"{name}.oi").read_text().splitlines()[number - 1].split("//")[0].strip()
            assert line in said
    assert str(plan["certificate"]["ram_bytes"]) in page.texts
    assert len(re.findall("<td>" + "|<td>".join({n["pass"] for n in plan["notes"]} or {"^"}), text)) >= len(plan["notes"])
    # no two tensors are at one place at one time: the picture proves the layout
    arena = [t for t in plan["buffers"] if t["space"] == "arena"]
    assert len(page.blocks) == len(arena)
    assert not any(overlap(a, b) for i, a in enumerate(page.blocks) for b in page.blocks[:i])


def alive_at_one_time(blocks):
    """Most bytes of blocks (bytes, first, last) that share a statement."""
    times = {first for _, first, _ in blocks}
    return max((sum(n for n, first, last in blocks if first <= at <= last) for at in times), default=0)


@pytest.mark.parametrize("name", ["moe_routing", "streaming_pipeline", "residual_mlp", "stability_guard"])
def test_the_lower_bound_is_what_is_alive(openinfer, example_package, tmp_path, name):
    """Counted from the blocks of the picture, without what rounding to whole cache lines adds."""
    openinfer("synth", EXAMPLES / f"{name}.oi", "--model", example_package(name), "--target", "cpu_scalar", "-o", tmp_path / "out")
    text = (tmp_path / "out/report.html").read_text()
    plan = json.loads((tmp_path / "out/plan.json").read_text())
    spans = {html.unescape(n): (int(a), int(b))
             for n, a, b in re.findall(r"<title>([^<:]*): [^<]* at \d+, statements (\d+) to (\d+)</title>", text)}
    arena = [t for t in plan["buffers"] if t["space"] == "arena"]
    wanted = alive_at_one_time([(t["bytes"], *spans[t["name"]]) for t in arena])
    said = re.search(r"<td>most of it that is alive at one time</td><td class=\"n\">(\d+)</td>", text)[1]
    assert wanted == int(said) <= plan["certificate"]["arena_bytes"]


def test_names_are_escaped(openinfer, tmp_path):
    graph = tmp_path / "g.oi"
    graph.write_text('volatile { y: f32[4]; }\ndynamic { x: f32[4]; }\n'
                     'block entry { op neg(x) >> y; /* <b> & "c" */ return; }\n')  # fmt: skip
    openinfer("synth", graph, "--target", "cpu_scalar", "-o", tmp_path / "out")
    text = (tmp_path / "out/report.html").read_text()
    assert "<b> &" not in text and "&gt;&gt; y" in text
    Page(text)
