"""Everything in examples/ works: packages are written, graphs are laid out and hold against them."""

import os
import subprocess
import sys

import pytest

from conftest import REPO

EXAMPLES = REPO / "examples"
GRAPHS = sorted(EXAMPLES.glob("*.oi"))
WRITERS = sorted(EXAMPLES.glob("*_oinf.py"))


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """NAME -> the package that examples/NAME_oinf.py writes."""
    folder = tmp_path_factory.mktemp("packages")
    found = {}
    for script in WRITERS:
        name = script.name.removesuffix("_oinf.py")
        path = folder / f"{name}.oinf"
        env = {**os.environ, "PYTHONPATH": str(REPO / "python/src")}
        subprocess.run([sys.executable, script, path], check=True, env=env, stdout=subprocess.DEVNULL)
        found[name] = path
    return found


def test_there_are_examples():
    assert GRAPHS and WRITERS


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda p: p.name)
def test_graph(openinfer, packages, graph):
    openinfer("fmt", "--check", graph)
    model = packages.get(graph.stem)
    result = openinfer("check", graph, *(["--model", model] if model else []))
    assert result.stderr == ""


@pytest.mark.parametrize("writer", WRITERS, ids=lambda p: p.name)
def test_package(openinfer, packages, writer):
    name = writer.name.removesuffix("_oinf.py")
    assert openinfer("inspect", "--strict", packages[name]).stdout
    assert (EXAMPLES / f"{name}.oi").exists(), f"no graph uses the package of {writer.name}"
