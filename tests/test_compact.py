"""The compact form: its examples run as numpy says, on the simulator and as programs; what it lowers to is
an ordinary graph whose places point into the compact text."""

import json
import re
import sys

import pytest

from conftest import BIN, REPO

EXAMPLES = REPO / "examples"
sys.path[:0] = [str(EXAMPLES), str(REPO / "python/src")]
import run_all  # noqa: E402
import test_seeds  # noqa: E402

NAMES = run_all.COMPACT
each = pytest.mark.parametrize("name", NAMES)


def explicit(openinfer, name, package, to):
    """The lowered graph of an example as explicit text."""
    openinfer("graph", EXAMPLES / f"{name}.oi", "--model", package, "--to", "text", "-o", to)
    return to


def test_every_example_is_complete():
    assert len(NAMES) >= 3
    for suffix in ("_oinf.py", "_ref.py"):
        found = sorted(p.name.removesuffix(suffix) for p in (EXAMPLES / "compact").glob(f"*{suffix}"))
        assert found == [n.removeprefix("compact/") for n in NAMES]


def test_the_descriptions_examples_are_these(openinfer, shared, tmp_path):
    """Two of the examples are those of the descriptions, laid out."""
    seeds = [text for _, kind, text in test_seeds.EXAMPLES if kind == "compact"]
    assert len(seeds) == 2
    for name, text in zip(("compact/minimal", "compact/kv_cache_decode"), seeds):
        (tmp_path / "seed.oi").write_text(text)
        laid_out = openinfer("fmt", tmp_path / "seed.oi").stdout
        ours = re.sub(r"^//.*\n\n?", "", (EXAMPLES / f"{name}.oi").read_text())
        assert laid_out == ours


@each
def test_graph(openinfer, example_package, name):
    graph, package = EXAMPLES / f"{name}.oi", example_package(name)
    openinfer("fmt", "--check", graph)
    assert openinfer("check", "--strict", graph, "--model", package).stderr == ""
    assert graph.read_text().startswith("//"), "an example says first what it shows"
    assert "E080" in openinfer("check", graph, code=1).stderr


@each
def test_forms(openinfer, example_package, tmp_path, name):
    """Its JSON is that of the explicit text it lowers to, which stands by itself."""
    package = example_package(name)
    text = explicit(openinfer, name, package, tmp_path / "explicit.oi")
    forms = [json.loads(openinfer("graph", g, "--model", package, "--to", "json", "--deterministic").stdout)
             for g in (EXAMPLES / f"{name}.oi", text)]  # fmt: skip
    assert forms[0] == forms[1]
    assert openinfer("check", "--strict", text, "--model", package).stderr == ""
    openinfer("fmt", "--check", text)
    for form in ("svg", "html", "dot"):
        openinfer("graph", EXAMPLES / f"{name}.oi", "--model", package, "--to", form, "-o", tmp_path / "drawing")


@pytest.mark.parametrize("device", ["cpu:scalar", "cpu"])
@each
def test_run(openinfer, example_reference, example_package, tmp_path, name, device):
    where, about = example_reference(name)
    package = example_package(name)
    graph = json.loads(openinfer("graph", EXAMPLES / f"{name}.oi", "--model", package, "--to", "json").stdout)
    returned = graph["blocks"]["entry"]["nodes"][-1]["kind"]["Return"]["values"]
    lasting = {n for n, v in graph["vars"].items() if v["kind"] == "Persistent"}
    assert set(returned) | lasting <= set(about["outputs"])
    result = run_all.run(BIN, name, package, where, about, device, tmp_path)
    assert result.returncode == 0, result.stderr
    rows = list(run_all.compare(where, about, tmp_path))
    assert len(rows) >= about["steps"]
    wrong = [row for row in rows if not row[2] <= 1]
    assert not wrong, f"variable, step, error as a multiple of what is allowed: {wrong[:10]}"


@pytest.mark.parametrize("target", ["cpu_scalar", "cpu_avx2"])
@each
def test_verify(openinfer, example_reference, example_package, name, target):
    where, about = example_reference(name)
    sets = [w for x in about["inputs"] for w in ("--set", f"{x}=@{where}/in/{x}/{{step}}.npy")]
    out = openinfer("verify", EXAMPLES / f"{name}.oi", "--model", example_package(name), "--target", target,
                    "--steps", about["steps"], *sets).stdout  # fmt: skip
    assert f"{about['steps']} steps compared: they agree" in out


@each
def test_the_program_quotes_the_compact_text(openinfer, example_package, tmp_path, name):
    openinfer("synth", EXAMPLES / f"{name}.oi", "--model", example_package(name), "--target", "cpu_scalar", "-o", tmp_path)
    stem = name.removeprefix("compact/")
    lines = (EXAMPLES / f"{name}.oi").read_text().splitlines()
    quoted = re.findall(rf"/\* {stem}\.oi:(\d+): (.*?) \*/", (tmp_path / f"{stem}.c").read_text())
    assert quoted
    for line, text in quoted:
        assert lines[int(line) - 1].strip() == text
