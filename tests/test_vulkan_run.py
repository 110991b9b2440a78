"""Compute shaders, run: every kernel of a graph as one dispatch, against the simulator.

A small program (vulkan/vulkan_run.c) dispatches them as plan.json says: a workgroup per unit of the axes with a worker
level. Any Vulkan device will do; Debian's lavapipe is one without a GPU.
"""

import json
import math
import os
import re
import shutil
import subprocess

import numpy
import pytest

from conftest import REPO
from shaders import compile_all

DTYPES = {"f32": numpy.float32, "f64": numpy.float64, "i32": numpy.int32, "i64": numpy.int64, "u8": numpy.uint8,
          "i8": numpy.int8, "f16": numpy.float16, "u32": numpy.uint32}  # fmt: skip

pytestmark = pytest.mark.skipif(not shutil.which("glslc"), reason="glslc is not installed (Debian package glslc)")


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    if os.environ.get("OPENINFER_SANITIZED"):
        pytest.skip("sanitizers watch who printed the shaders, not who runs them")
    path = tmp_path_factory.mktemp("runner") / "vulkan_run"
    built = subprocess.run(["cc", "-std=c17", "-O1", str(REPO / "tests/vulkan/vulkan_run.c"), "-o", str(path), "-lvulkan"],
                           capture_output=True, text=True)  # fmt: skip
    if built.returncode:
        pytest.skip("no Vulkan loader to link with (Debian package libvulkan-dev)")
    if subprocess.run([path], input="", text=True, capture_output=True).returncode == 3:
        pytest.skip("no Vulkan device (Debian package mesa-vulkan-drivers has one without a GPU)")
    return path


def groups(axes):
    """Workgroups of a nest: units of the positions that its worker axes count through."""
    count, unit = 1, 1
    for axis in axes:
        for level in axis["levels"]:
            if level["level"] == "worker":
                count, unit = count * axis["extent"], level["factor"]
    return -(-count // unit)


def dispatches(plan, folder):
    """(shader, workgroups, tensors by binding), in the order of the step."""
    kernels = {k["name"]: k for k in plan["kernels"]}
    spaces = {t["name"]: t["space"] for t in plan["buffers"]}
    (block,) = plan["schedule"]
    for statement in block["body"]:
        assert statement["kind"] in ("kernel", "return"), statement
        if statement["kind"] == "return":
            continue
        kernel = kernels[statement["kernel"]]
        name, nests = kernel["function"], kernel["nests"]
        ports = ["-" if spaces.get(p["buffer"]) == "local" else p["buffer"] for p in kernel["ports"]]
        if (folder / f"{name}.comp").exists():  # one for all nests
            yield name, groups(nests[0]["axes"]), ports
            continue
        for i, nest in enumerate(nests):
            yield f"{name}_{i}", groups(nest["axes"]), ports


def run_shaders(openinfer, runner, tmp_path, text, inputs, target="vulkan_desktop"):
    """What the shaders compute and what the simulator does: by output; and the text of all shaders."""
    out = tmp_path / "out"
    graph = tmp_path / "graph.oi"
    graph.write_text(text)
    openinfer("synth", graph, "--target", target, "--device-only", "-o", out)
    plan = json.loads((out / "plan.json").read_text())
    compile_all(sorted(out.glob("*.comp")), tmp_path / "spv")
    tensors = [t for t in plan["buffers"] if t["space"] in ("input", "output", "arena", "state")]
    number = {t["name"]: str(i) for i, t in enumerate(tensors)}
    job, sets = [], []
    for t in tensors:
        given = inputs.get(t.get("variable")) if t["space"] == "input" else None
        if given is not None:
            given.tofile(tmp_path / t["name"])
            numpy.save(tmp_path / f"{t['name']}.npy", given)
            sets += ["--set", f"{t['variable']}=@{tmp_path}/{t['name']}.npy"]
        job.append(f"buffer {t['bytes']} {tmp_path / t['name'] if given is not None else ''}")
    for shader, count, ports in dispatches(plan, out):
        job.append(" ".join(["run", f"{tmp_path}/spv/{shader}.comp.spv", str(count), *(number.get(p, "-") for p in ports)]))
    outputs = [t for t in tensors if t["space"] == "output"]
    job += [f"write {number[t['name']]} {tmp_path}/{t['name']}.out" for t in outputs]
    done = subprocess.run([runner], input="\n".join(job) + "\n", text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    names = [t["variable"] for t in outputs]
    openinfer("run", graph, *sets, "--fetch", ",".join(names), "--out", tmp_path / "sim")
    shaders = "".join(p.read_text() for p in sorted(out.glob("*.comp")))
    results = {}
    for t in outputs:
        made = numpy.fromfile(tmp_path / f"{t['name']}.out", DTYPES[t["dtype"]]).reshape(t["dims"])
        results[t["variable"]] = made, numpy.load(next((tmp_path / "sim").glob(f"{t['variable']}*.npy")))
    return results, shaders, plan


def random(shape, dtype=numpy.float32, seed=1):
    return numpy.random.default_rng([seed, math.prod(shape)]).standard_normal(shape).astype(dtype)


def graph(inputs, outputs, *statements):
    declared = "; ".join(f"{n}: {t}" for n, t in inputs.items())
    results = "; ".join(f"{n}: {t}" for n, t in outputs.items())
    return f"dynamic {{ {declared}; }}\nvolatile {{ {results}; }}\nblock entry {{\n  {' '.join(statements)}\n  return;\n}}\n"


SUMS = {"one": "[1, 700]", "few": "[5, 700]", "many": "[300, 65]", "short": "[40, 12]"}


@pytest.mark.parametrize("target", ["vulkan_desktop", "vulkan_generic"])
@pytest.mark.parametrize("shape", SUMS.values(), ids=SUMS)
def test_declared_sums_have_the_simulators_bits(openinfer, runner, tmp_path, shape, target):
    """By lanes of a subgroup or through shared memory: the order of the partial sums is the one the op declares."""
    rows, n = json.loads(shape)
    text = graph({"x": f"f32{shape}"}, {"s": f"f32[{rows}]", "m": f"f32[{rows}]", "t": f"f32[{rows}]"},
                 "op sum_axis(x, axes=[1], keepdims=false) >> s; op mean_axis(x, axes=[1], keepdims=false) >> m;"
                 "op max_axis(x, axes=[1], keepdims=false) >> t;")  # fmt: skip
    results, shaders, plan = run_shaders(openinfer, runner, tmp_path, text, {"x": random((rows, n))}, target)
    for made, wanted in results.values():
        assert made.tobytes() == wanted.tobytes()
    has_lanes = any(v["level"] == "lane" for k in plan["kernels"] for nest in k["nests"] for a in nest["axes"]
                    for v in a["levels"])  # fmt: skip
    assert has_lanes == (n > 12) == ("barrier();" in shaders)
    if target == "vulkan_generic":
        assert "subgroup" not in shaders


@pytest.mark.parametrize("target", ["vulkan_desktop", "vulkan_generic"])
@pytest.mark.parametrize("rows", [1, 6])
def test_rows_in_shared_memory(openinfer, runner, tmp_path, rows, target):
    """Softmax and norms: a workgroup per row, whose lanes share it."""
    text = graph({"x": f"f32[{rows}, 300]", "g": "f32[300]"}, {n: f"f32[{rows}, 300]" for n in "yzw"},
                 "op softmax(x) >> y; op rmsnorm(x, g) >> z; op layernorm(x, g, g) >> w;")  # fmt: skip
    given = {"x": random((rows, 300)), "g": random((300,), seed=2)}
    results, shaders, _ = run_shaders(openinfer, runner, tmp_path, text, given, target)
    assert "shared float" in shaders and "barrier();" in shaders
    for made, wanted in results.values():
        numpy.testing.assert_allclose(made, wanted, rtol=2e-6, atol=1e-6)


def test_names_that_shaders_use_themselves(openinfer, runner, tmp_path):
    """A tensor may be called as a variable of main: the index of an invocation, its lane, a partial sum."""
    names = ["at", "id", "inside", "lane", "other", "span", "sums_float"]
    text = graph({n: "f32[5, 64]" for n in names}, {f"y_{n}": "f32[5]" for n in names} | {f"z_{n}": "f32[5, 64]" for n in names},
                 *(f"op sum_axis({n}, axes=[1], keepdims=false) >> y_{n}; op neg({n}) >> z_{n};" for n in names))  # fmt: skip
    given = {n: random((5, 64), seed=i) for i, n in enumerate(names)}
    results, _, _ = run_shaders(openinfer, runner, tmp_path, text, given)
    for made, wanted in results.values():
        assert made.tobytes() == wanted.tobytes()


PRODUCTS = {"long": (3, 5, 1000), "square": (40, 48, 96), "one": (1, 1, 4096), "row": (1, 203, 512), "short": (17, 9, 12)}


@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("shape", PRODUCTS.values(), ids=PRODUCTS)
def test_products(openinfer, runner, tmp_path, shape, transposed):
    m, n, k = shape
    text = graph({"a": f"f32[{m}, {k}]", "b": f"f32[{n}, {k}]" if transposed else f"f32[{k}, {n}]"},
                 {"y": f"f32[{m}, {n}]"}, f"op matmul(a, b, transpose_b={str(transposed).lower()}) >> y;")  # fmt: skip
    given = {"a": random((m, k)), "b": random((n, k) if transposed else (k, n), seed=2)}
    results, shaders, _ = run_shaders(openinfer, runner, tmp_path, text, given)
    numpy.testing.assert_allclose(*results["y"], rtol=1e-5, atol=1e-4)
    # lanes read neighbouring elements of a row; of columns, invocations of one result are apart
    assert ("barrier();" in shaders) == (k > 12 and (transposed or n == 1 or n >= 8))


@pytest.mark.parametrize("target", ["vulkan_desktop", "vulkan_generic"])
@pytest.mark.parametrize("dtype", ["f16", "i32", "i64", "u8", "u32"])
def test_sums_of_every_width(openinfer, runner, tmp_path, dtype, target):
    """Elements that share words, 64 bits in two words, halves that are widened: with lanes and without."""
    kinds = ["sum_axis", "max_axis", "min_axis"]
    text = graph({"x": f"{dtype}[9, 200]"}, {f"{k}{way}": f"{dtype}[9]" if way == "1" else f"{dtype}[200]" for k in kinds for way in "01"},
                 *(f"op {k}(x, axes=[{way}], keepdims=false) >> {k}{way};" for k in kinds for way in "01"))  # fmt: skip
    given = random((9, 200)) if dtype == "f16" else None
    if given is None:
        bounds = numpy.iinfo(DTYPES[dtype])
        given = numpy.random.default_rng(5).integers(bounds.min, bounds.max, (9, 200), DTYPES[dtype], endpoint=True)
    results, _, _ = run_shaders(openinfer, runner, tmp_path, text, {"x": given.astype(DTYPES[dtype])}, target)
    for made, wanted in results.values():
        assert made.tobytes() == wanted.tobytes()


def weights_as_inputs(text):
    """The graph with what its model holds as inputs, and those: random, small enough for sums of products."""
    (block,) = re.findall(r"constant \{(.*?)\}", text, re.S)
    found = re.findall(r"^ +(\w+): (\w+)\[([\d, ]+)\];.*\n", block, re.M)
    rest = re.sub(r"^ +\w+: \w+\[[\d, ]+\];.*\n", "", block, flags=re.M)
    moved = "".join(f"  {name}: {dtype}[{dims}];\n" for name, dtype, dims in found)
    text = text.replace(block, rest).replace("dynamic {\n", "dynamic {\n" + moved, 1)
    (block,) = re.findall(r"dynamic \{(.*?)\}", text, re.S)
    given = {}
    for name, dtype, dims in re.findall(r"^ +(\w+): (\w+)\[([\d, ]+)\];", block, re.M):
        values = random([int(d) for d in dims.split(",")], seed=len(given))
        given[name] = (values * (0.1 if dtype == "f32" else 40)).astype(DTYPES[dtype])
    return text if rest.strip() else re.sub(r"constant \{\s*\}\n", "", text), given


@pytest.mark.parametrize("name", ["jet_mlp", "jet_mlp_i8", "resnet8", "resnet8_i8"])
def test_tiny_models(openinfer, runner, tmp_path, name):
    text, given = weights_as_inputs((REPO / f"examples/tiny/{name}.oi").read_text())
    results, _, _ = run_shaders(openinfer, runner, tmp_path, text, given)
    for made, wanted in results.values():
        numpy.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-5 if made.dtype == numpy.float32 else 0)


def test_integers_and_maps(openinfer, runner, tmp_path):
    text = graph({"x": "i32[7, 130]", "a": "f32[7, 130]"}, {"p": "f32[7, 130]", "s": "i32[7]", "q": "f32[130, 7]"},
                 "op sum_axis(x, axes=[1], keepdims=false) >> s; op gelu(a) >> p; op transpose(p, perm=[1, 0]) >> q;")  # fmt: skip
    ints = numpy.random.default_rng(3).integers(-(2**31), 2**31, (7, 130), numpy.int32)
    results, _, _ = run_shaders(openinfer, runner, tmp_path, text, {"x": ints, "a": random((7, 130))})
    assert results["s"][0].tobytes() == results["s"][1].tobytes()
    for name in "pq":
        numpy.testing.assert_allclose(*results[name], rtol=1e-6, atol=1e-7)
