"""Everything in examples/ works: packages are written, graphs are laid out, hold against their package,
go to JSON and back, are drawn, and run as their references say."""

import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest

from conftest import BIN, REPO

EXAMPLES = REPO / "examples"
sys.path[:0] = [str(EXAMPLES), str(REPO / "python/src")]
import run_all  # noqa: E402
from openinfer.oinf import read_oinf  # noqa: E402

NAMES = run_all.NAMES
DEVICES = ["cpu:scalar", "cpu:avx", "cpu:avx2", "cpu:avx512", "cpu"]
if os.environ.get("OPENINFER_SANITIZED"):  # the others are not watched there
    DEVICES = ["cpu:scalar", "cpu:avx2"]


def test_every_example_is_complete():
    """A graph, the writer of its package and its reference, all under one name."""
    assert len(NAMES) >= 20
    for suffix in ("_oinf.py", "_ref.py"):
        assert sorted(p.name.removesuffix(suffix) for p in EXAMPLES.glob(f"*{suffix}")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_package(openinfer, example_package, tmp_path, name):
    path = example_package(name)
    assert openinfer("inspect", "--strict", path).stdout
    assert path.stat().st_size < 100_000
    again = run_all.write_package(name, tmp_path)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_package_needs_no_numpy(example_package, tmp_path, name):
    """The writers use only the standard library and our own package."""
    (tmp_path / "numpy.py").write_text("raise ImportError('numpy is hidden by this test')\n")
    path = os.pathsep.join([str(tmp_path), str(REPO / "python/src")])
    env = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    out = tmp_path / "model.oinf"
    subprocess.run([sys.executable, EXAMPLES / f"{name}_oinf.py", out], check=True, env=env)
    assert out.read_bytes() == example_package(name).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_graph(openinfer, example_package, name):
    graph = EXAMPLES / f"{name}.oi"
    openinfer("fmt", "--check", graph)
    for model in ([], ["--model", example_package(name)]):
        assert openinfer("check", "--strict", graph, *model).stderr == ""
    assert graph.read_text().startswith("//"), "an example says first what it shows"


@pytest.mark.parametrize("name", NAMES)
def test_forms(openinfer, example_package, tmp_path, name):
    """Text to JSON to text to JSON changes nothing, and JSON holds against the package too."""
    graph, first, text, second = EXAMPLES / f"{name}.oi", *(tmp_path / f for f in ("1.json", "2.oi", "2.json"))
    for source, form, target in ((graph, "json", first), (first, "text", text), (text, "json", second)):
        openinfer("graph", source, "--to", form, "--deterministic", "-o", target)
    assert first.read_bytes() == second.read_bytes()
    assert openinfer("check", "--strict", first, "--model", example_package(name)).stderr == ""
    openinfer("fmt", "--check", text)


@pytest.mark.parametrize("name", NAMES)
def test_drawing(openinfer, tmp_path, name):
    graph = EXAMPLES / f"{name}.oi"
    for form in ("svg", "html", "dot"):
        openinfer("graph", graph, "--to", form, "-o", tmp_path / f"drawing.{form}")
    drawing = xml.etree.ElementTree.parse(tmp_path / "drawing.svg")
    text = " ".join(drawing.getroot().itertext())
    assert "entry" in text and "return" in text
    assert "digraph" in (tmp_path / "drawing.dot").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_reference(openinfer, example_reference, name):
    """A reference gives all inputs and judges everything returned and everything that persists."""
    _, about = example_reference(name)
    assert 3 <= about["steps"] <= 8
    graph = json.loads(openinfer("graph", EXAMPLES / f"{name}.oi", "--to", "json").stdout)
    of_kind = {kind: {n for n, v in graph["vars"].items() if v["kind"] == kind} for kind in ("Dynamic", "Persistent")}
    assert set(about["inputs"]) == of_kind["Dynamic"]
    last = graph["blocks"]["entry"]["nodes"][-1]["kind"]
    returned = last["Return"]["values"] if isinstance(last, dict) else []
    assert set(returned) | of_kind["Persistent"] <= set(about["outputs"])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_run(example_reference, example_package, tmp_path, name, device):
    if device not in run_all.devices(BIN):
        pytest.skip(f"this machine cannot run {device}")
    where, about = example_reference(name)
    result = run_all.run(BIN, name, example_package(name), where, about, device, tmp_path)
    assert result.returncode == 0, result.stderr
    rows = list(run_all.compare(where, about, tmp_path))
    assert len(rows) >= about["steps"]
    wrong = [row for row in rows if not row[2] <= 1]
    assert not wrong, f"variable, step, error as a multiple of what is allowed: {wrong[:10]}"


@pytest.mark.parametrize("name", NAMES)
def test_same_bits(example_reference, example_package, tmp_path, name):
    """Neither threads nor as little memory as it takes change a bit."""
    where, about = example_reference(name)

    def run(way, *options):
        return run_all.run(BIN, name, example_package(name), where, about, "cpu", tmp_path / way, *options)

    refused = run("refused", "--memory-limit", "1")
    assert refused.returncode == 1 and "E065" in refused.stderr
    free = run("plain", "--memory-limit", "1T")
    state = int(re.search(r"persistent: at most (\d+) bytes", free.stderr)[1])  # it grows as only the run knows
    limit = int(re.search(r"least that would do is (\d+)", refused.stderr)[1]) + state
    for way, options in {"threads": ["--threads", "4"], "limited": ["--memory-limit", str(limit)]}.items():
        result = run(way, *options)
        assert result.returncode == 0, result.stderr
    wanted = {p.name: p.read_bytes() for p in (tmp_path / "plain").iterdir()}
    assert len(wanted) >= about["steps"]
    for way in ("threads", "limited"):
        assert {p.name: p.read_bytes() for p in (tmp_path / way).iterdir()} == wanted, way


def c_example(name, *args):
    program = pathlib.Path(BIN).parent / f"example_{name}"
    assert program.exists(), f"examples/c/{name}.c was not built"
    return subprocess.run([program, *args], capture_output=True, text=True, timeout=120)


def test_c_graphs_travel_as_json(tmp_path, openinfer):
    """serialise.c writes what `openinfer graph` writes; deserialise.c gives the same graph back."""
    graph = REPO / "examples/overview.oi"
    assert c_example("serialise", graph, tmp_path / "graph.json").returncode == 0
    text = (tmp_path / "graph.json").read_text()
    assert json.loads(text)["blocks"].keys() >= {"entry"}
    back = c_example("deserialise", tmp_path / "graph.json")
    assert back.returncode == 0 and back.stderr == ""
    (tmp_path / "back.oi").write_text(back.stdout)
    again = c_example("serialise", tmp_path / "back.oi")
    plain = re.compile(r'"(uuid|source)": "[^"]*"')
    assert plain.sub("", again.stdout) == plain.sub("", text)
    (tmp_path / "graph.json").write_text(text.replace('"CacheRead"', '"CacheRaed"'))
    wrong = c_example("deserialise", tmp_path / "graph.json")
    assert wrong.returncode == 1 and "/blocks/entry/nodes/" in wrong.stderr


def test_runner(tmp_path):
    """run_all.py, each target on one example."""
    done = subprocess.run([sys.executable, EXAMPLES / "run_all.py", "--target", "all", "--device", "cpu:scalar", "--only", "linear",
                           "--bin", BIN, "--out", tmp_path], capture_output=True, text=True, timeout=100)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split()[:2] for line in done.stdout.splitlines()[1:-1]]
    assert rows == [["linear", "cpu:scalar"], ["linear", "c"], ["linear", "vulkan"], ["linear", "cuda"]]


def test_c_synthesizes(tmp_path, example_package):
    package = example_package("minimal")
    made = c_example("synthesize", REPO / "examples/minimal.oi", package, "cpu_scalar", tmp_path / "c")
    assert made.returncode == 0 and re.fullmatch(r"example: \d+ multiply-accumulates and \d+ bytes a step\n", made.stdout)
    subprocess.run(["make", "-s", "-C", tmp_path / "c"], check=True)
    mock = c_example("synthesize", REPO / "examples/minimal.oi", package, REPO / "devices/ada_mock.json", tmp_path / "glsl")
    assert mock.returncode == 0 and list((tmp_path / "glsl").glob("*.comp"))


def test_c_minimal(example_reference, example_package):
    import numpy as np

    where, about = example_reference("minimal")
    result = c_example("minimal", example_package("minimal"))
    assert result.returncode == 0 and result.stderr == ""
    lines = result.stdout.splitlines()
    for step in range(about["steps"]):  # the program draws the same inputs as the reference
        found = [float(v) for v in lines[step].split("=")[1].split()]
        np.testing.assert_allclose(found, np.load(where / "out" / f"y.{step}.npy")[:4], rtol=1e-5)
    kinds = [line.split(":")[0] for line in lines[about["steps"] :]]
    assert kinds == ["[entry] Assign ", "[entry] OpExecute add", "[entry] OpExecute mul", "[entry] Return "]


def test_c_kv_cache_decode(example_reference, example_package):
    """Eight tokens, each fed back; then the cache is full, which is reported and harms nothing."""
    example_reference("kv_cache_decode")
    import kv_cache_decode_ref as ref
    import numpy as np
    from reference import Run

    path = example_package("kv_cache_decode")
    with read_oinf(path) as model:
        run = Run(model)
        K, V = ref.empty_caches(run)
        tok, wanted = np.arange(4, 4 + run.size("B")), []
        for step in range(run.size("ctx_len")):
            tok = run.clear_choice(ref.decode(run, K, V, step, tok, np.ones(K.shape[2:0:-1])))
            wanted.append(" ".join(map(str, tok)))
    result = c_example("kv_cache_decode", EXAMPLES / "kv_cache_decode.oi", path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == wanted
    assert "error[E047]" in result.stderr and "kv_cache_decode.oi:" in result.stderr
