"""The Python binding: `openinfer` over the shared library, from a checkout and from a wheel in a new environment."""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from conftest import BIN, REPO

pytestmark = pytest.mark.skipif(bool(os.environ.get("OPENINFER_SANITIZED")), reason="Python cannot load a sanitized library")
np = pytest.importorskip("numpy", reason="arrays need numpy")
sys.path[:0] = [str(REPO / "examples"), str(REPO / "python/src")]
os.environ.setdefault("OPENINFER_BUILD", str(pathlib.Path(BIN).parent.parent))
import openinfer  # noqa: E402
from openinfer import _library  # noqa: E402
from openinfer.oinf import PackageWriter, TensorSpec  # noqa: E402

GRAPH = """dynamic { x: f32[B]; k: i32; h: bf16[2]; n: i4[3]; }
volatile { w: f32[B]; small: bf16[2]; }
persistent { total: f32[B]; }
block entry {
  assign y: f32[B];
  op mul(x, w) >> y;
  assign t: f32[B];
  cache.read total >> t;
  op add(t, y) >> t;
  cache.write t >> total;
  return y, t, h, n;
}
"""
GIVEN = {"k": 3, "h": np.array([1.5, -2], np.float32), "n": [-8, 0, 7]}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    path = tmp_path_factory.mktemp("python") / "model.oinf"
    with PackageWriter(path) as p:
        p.add_sizevar("B", 4)
        p.add_tensor("w", TensorSpec(np.arange(4, dtype=np.float32)))
        p.add_tensor("small", TensorSpec([1.0, 0.5], dtype="bf16"))
    return path


@pytest.fixture
def graph(package):
    return openinfer.parse(GRAPH, package)


def test_structures_are_those_of_the_header(tmp_path):
    lines = []
    for name, structure in _library.STRUCTURES.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{f[0]} %zu %zu\\n", offsetof({name}, {f[0]}), sizeof((({name} *)0)->{f[0]}));' for f in structure._fields_]
    (tmp_path / "layout.c").write_text('#include <openinfer.h>\nint main(void) {\n' + "\n".join(lines) + "\n}\n")
    subprocess.run([os.environ.get("CC", "cc"), "-I", REPO / "include", tmp_path / "layout.c", "-o", tmp_path / "layout"], check=True)
    want = subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True).stdout.splitlines()
    found = []
    for name, structure in _library.STRUCTURES.items():
        found.append(f"{name} {ctypes.sizeof(structure)}")
        for field in structure._fields_:
            place = getattr(structure, field[0])
            found.append(f"{name}.{field[0]} {place.offset} {place.size}")
    assert found == want, "python/src/openinfer/_library.py differs from include/openinfer.h"


def test_steps(graph):
    run = graph.executor()
    x = np.ones(4, np.float32)
    first, second = run.step(x=x, **GIVEN), run.step(x=x, **GIVEN)
    assert list(first) == ["y", "t", "h", "n"] and run.steps_done == 2
    np.testing.assert_array_equal(first["y"], [0, 1, 2, 3])
    np.testing.assert_array_equal(second["t"], [0, 2, 4, 6])
    np.testing.assert_array_equal(first["h"], [1.5, -2])
    np.testing.assert_array_equal(first["n"], [-8, 0, 7])
    assert first["h"].dtype == np.float32 and first["n"].dtype == np.int8
    second["t"][:] = 0  # it is ours
    np.testing.assert_array_equal(run.fetch("total"), [0, 2, 4, 6])


def test_lent_arrays(graph):
    run = graph.executor()
    run.step(x=np.ones(4, np.float32), **GIVEN)
    y, again = run.fetch("y"), run.fetch("y")
    assert not y.flags.owndata and not y.flags.writeable and y.ctypes.data == again.ctypes.data
    part = y[1:]
    del y, again
    with pytest.raises(BufferError, match="still in use"):
        run.step()
    np.testing.assert_array_equal(part, [1, 2, 3])
    del part
    mine = run.fetch("y", copy=True)
    run.step(x=np.zeros(4, np.float32), **GIVEN)
    np.testing.assert_array_equal(mine, [0, 1, 2, 3])
    kept = run.fetch("y")
    del run  # what is lent keeps its executor
    np.testing.assert_array_equal(kept, np.zeros(4))


@pytest.mark.parametrize("inputs,said", [
    ({"x": np.ones(4)}, "an array of float64 was given, f32 is wanted"),
    ({"n": [8, 0, 0]}, "does not fit i4"), ({"k": 1.5}, "does not fit i32"), ({"k": 2**40}, ""),
])  # fmt: skip
def test_wrong_values(graph, inputs, said):
    with pytest.raises((TypeError, OverflowError), match=said):
        graph.step(**inputs)


def test_errors_have_places(graph, package, tmp_path):
    with pytest.raises(openinfer.InputError) as e:
        openinfer.parse("block entry {\n  op ad(x) >> y;\n  return;\n}\n", name="typo.oi").check()
    assert (e.value.code, e.value.file, e.value.line, e.value.col) == ("E057", "typo.oi", 2, 6)
    assert e.value.messages[0].hint == "did you mean 'add'?" and "^~" in str(e.value)
    with pytest.raises(openinfer.MissingError, match="no 'z'"):
        graph.step(z=1)
    with pytest.raises(openinfer.InputError, match="unknown variable 'z'"):
        graph.executor().fetch("z")
    with pytest.raises(openinfer.Error, match=r"'x' is \[4\]"):
        graph.step(x=np.ones(5, np.float32), **GIVEN)
    with pytest.raises(openinfer.UnavailableError, match="No such file"):
        openinfer.open(tmp_path / "none.oi")
    with pytest.raises(openinfer.Error, match="none"):
        graph.synthesize("none", tmp_path / "out")
    (tmp_path / "broken.oinf").write_bytes(package.read_bytes()[:50])
    with pytest.raises(openinfer.InputError, match="broken.oinf"):
        openinfer.Model(tmp_path / "broken.oinf")


def test_model(package):
    model = openinfer.Model(package)
    assert model.sizes == {"B": 4} and model.tensors == ["small", "w"]
    w = model.tensor("w")
    del model  # the array keeps the mapping
    np.testing.assert_array_equal(w, np.arange(4))
    assert not w.flags.writeable
    np.testing.assert_array_equal(openinfer.Model(package).tensor("small"), [1, 0.5])
    with pytest.raises(openinfer.MissingError):
        openinfer.Model(package).tensor("v")


def test_graph_as_data(graph, package):
    assert graph.counts["blocks"] == 1 and graph.check() == []
    assert graph.json()["blocks"] and "op mul" in graph.text() and "digraph" in graph.dot()
    assert graph._repr_svg_().startswith("<svg") and "<svg" in graph.html()
    assert openinfer.parse(graph.text(), package).text() == graph.text()
    named = {v.name: v for v in graph.simulator().variables}
    assert named["total"].kind == "persistent" and named["x"].dims == (4,) and named["n"].dtype == "i4"
    smaller = openinfer.parse("dynamic { x: f32[B]; } block entry { return x; }", package, B=2)
    assert smaller.simulator().variables[0].dims == (2,)


def test_node_by_node_and_trace(graph):
    run = graph.executor(trace=True)
    x = np.ones(4, np.float32)
    seen = []
    for event in run.nodes(x=x, **GIVEN):
        seen.append(event.op)
        if event.op == "mul":
            np.testing.assert_array_equal(run.fetch("y", copy=True), [0, 1, 2, 3])
            assert (event.line, event.params, event.output) == (6, ("x", "w"), ("y",))
    assert "mul" in seen and "add" in seen and run.steps_done == 1
    for event in run.nodes(x=x, **GIVEN):
        break  # takes the step back
    np.testing.assert_array_equal(run.fetch("total"), [0, 1, 2, 3])
    events = run.trace(ext=True)
    assert len(events if isinstance(events, list) else events["events"]) >= len(seen)
    assert run.trace("chrome")["traceEvents"]


def test_synthesize_and_verify(graph, tmp_path):
    plan = graph.synthesize("cpu_scalar", tmp_path / "out", name="layer")
    assert (tmp_path / "out/layer.c").exists() and plan.name == "layer" and plan.kernels and plan.cost.bytes
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/Makefile").write_text("mine")
    with pytest.raises(openinfer.Error, match="Makefile"):
        graph.synthesize("cpu_scalar", tmp_path / "mine")
    device = openinfer.Device("cpu_scalar")
    assert device.json()["device"] and "cpu_scalar" in openinfer.profiles()
    if not (device.can_build and device.can_run):
        pytest.skip("no compiler for cpu_scalar here")
    asked = []

    def fill(variable, step):
        asked.append((variable.name, step))
        return np.full(4, step, np.float32) if variable.name == "x" else None if variable.name == "k" else GIVEN[variable.name]

    report = graph.verify(device, steps=3, inputs=fill)
    assert report.agrees and report.steps == 3 and ("x", 2) in asked and {r.name for r in report.rows} >= {"y", "t", "total"}
    with pytest.raises(ValueError, match="5 elements were given"):
        graph.verify(device, inputs={"x": np.ones(5, np.float32)})
    times = graph.bench(device, steps=3, inputs=GIVEN)
    assert len(times) == 3 and min(times) > 0 and min(graph.bench(steps=2)) > 0


def test_the_notebook_draws(tmp_path):
    done = subprocess.run([sys.executable, REPO / "examples/notebook.py", tmp_path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "sum doubles: True" in done.stdout and "they agree" in done.stdout
    assert (tmp_path / "layer.svg").read_text().startswith("<svg")


def test_a_library_that_is_not_there(tmp_path):
    script = "import openinfer\ntry: openinfer.profiles()\nexcept openinfer.UnavailableError as e: print(e)"
    env = {**os.environ, "OPENINFER_BUILD": str(tmp_path), "PYTHONPATH": str(REPO / "python/src")}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert "`make` builds it" in done.stdout, done.stderr


@pytest.fixture(scope="module")
def from_wheel(tmp_path_factory):
    """The Python of a new environment in which our wheel lies and numpy, and nothing else."""
    pytest.importorskip("setuptools", reason="wheels are built with setuptools")
    pytest.importorskip("wheel", reason="wheels are built with wheel")
    root = tmp_path_factory.mktemp("wheel")
    shutil.copytree(REPO / "python", root / "python", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    quiet = ["-q", "--no-index", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *quiet, "--no-build-isolation", "-w", root, root / "python"], check=True,
                   env={**os.environ, "OPENINFER_BUILD": str(pathlib.Path(BIN).parent.parent)})  # fmt: skip
    (wheel,) = root.glob("openinfer-*.whl")
    assert "-py3-none-" in wheel.name and not wheel.name.endswith("any.whl")
    subprocess.run([sys.executable, "-m", "venv", root / "venv"], check=True)
    python = root / "venv/bin/python"
    bare = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}  # a checkout on the path counts as installed
    subprocess.run([python, "-m", "pip", "install", *quiet, wheel], check=True, env=bare)
    site = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True)
    for found in pathlib.Path(np.__file__).parent.parent.glob("numpy*"):
        if found.name in ("numpy", "numpy.libs"):
            os.symlink(found, pathlib.Path(site.stdout.strip()) / found.name)
    return python


def test_the_lines_of_the_readme_run_from_a_wheel(from_wheel, tmp_path):
    """In an environment that knows nothing of this checkout."""
    extra = re.search(r"`pip install '\./python\[(\w+)\]'`", (REPO / "README.md").read_text(encoding="utf-8"))[1]
    metadata = subprocess.run([from_wheel, "-c", "import importlib.metadata as m; print(*m.requires('openinfer'), sep='\\n')"],
                              capture_output=True, text=True, check=True).stdout  # fmt: skip
    assert re.search(rf"^numpy ?; extra == .{extra}.$", metadata, re.M), metadata
    blocks = re.findall(r"^```python\n(.*?)^```$", (REPO / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    assert blocks and "import openinfer" in blocks[0]
    (tmp_path / "examples").mkdir()
    shutil.copy(REPO / "examples/minimal.oi", tmp_path / "examples")
    shutil.copytree(REPO / "examples", tmp_path / "scripts")
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "OPENINFER_BUILD")}
    subprocess.run([from_wheel, "scripts/minimal_oinf.py", "model.oinf"], cwd=tmp_path, env=env, check=True)
    for block in blocks:
        (tmp_path / "readme.py").write_text(block)
        done = subprocess.run([from_wheel, "-I", "readme.py"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        shown = [line.split("  # ")[1] for line in block.splitlines() if line.startswith("print(")]
        assert done.stdout.splitlines() == shown
    where = subprocess.run([from_wheel, "-I", "-c", "import openinfer; openinfer.version(); print(open('/proc/self/maps').read())"],
                           env=env, capture_output=True, text=True, check=True).stdout  # fmt: skip
    lib = {line.split()[-1] for line in where.splitlines() if "libopeninfer" in line}
    assert lib == {str(pathlib.Path(from_wheel).parent.parent.resolve() / "lib" / f"python3.{sys.version_info[1]}" / "site-packages/openinfer/libopeninfer.so")}
    for command in ("oinf", "verify_oinf", "dataclass_to_oinf"):
        subprocess.run([from_wheel.parent / command, "--help"], env=env, check=True, capture_output=True)


def test_types():
    """mypy, strictly."""
    mypy = shutil.which("mypy")
    if mypy is None:
        pytest.skip("types: mypy is not installed")
    done = subprocess.run([mypy, "--cache-dir", os.devnull, "--python-executable", sys.executable], cwd=REPO / "python", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
