"""Every op of the registry on a Vulkan device: the cases of this folder, each a node of a graph, simulated there and
on the processor, under the validation layers. Every op comes at least once with every element type; OPENINFER_LONG
(make conform-vulkan) takes all cases."""

import dataclasses
import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("ml_dtypes", reason="conformance needs ml_dtypes")
if os.environ.get("OPENINFER_SANITIZED"):
    pytest.skip("a sanitized library cannot be loaded into Python", allow_module_level=True)

import test_synth_ops as ops  # noqa: E402
from cases import OPS  # noqa: E402
from judge import compare  # noqa: E402
from library import REPO  # noqa: E402
from tensors import Tensor  # noqa: E402

sys.path.append(str(REPO / "tests"))
from openinfer.oinf import PackageWriter  # noqa: E402
from vulkan_here import LAYER, no_device, validation  # noqa: E402

LONG = os.environ.get("OPENINFER_LONG")
GROUP = 12
CUSTOM = {name for name, row in OPS.items() if row["class"] == "custom"}
# Steps of C text, or tables made beforehand: the host does these, and some of their cases.
MIXED = {"resize", "hann_window", "hamming_window", "blackman_window", "mel_filter"}
# f64 functions that GLSL cannot spell exactly enough, packed types with places that cannot be split ...
SOME_ON_HOST = {"split", "topk"}

pytestmark = pytest.mark.skipif(bool(no_device()), reason=no_device() or "")


def dtypes_of(case):
    return tuple(t.dtype for t in case.inputs) + (case.out_dtype,)


def chosen(op):
    """One case of every combination of first input and result, those with more elements first."""
    cases = ops.chosen(op) if LONG else sorted(ops.chosen(op), key=lambda c: -sum(t.values.size for t in c.inputs))
    if LONG:
        return cases
    first = {}
    for case in cases:
        key = (case.inputs[0].dtype if case.inputs else None, None if case.inputs else case.out_dtype)
        first.setdefault(key, case)
    return list(first.values())


def outputs(op, cases):
    return [(f"{op}_{i}_out{k}", case, dtype, tuple(shape))
            for i, case in enumerate(cases) for k, (dtype, shape) in enumerate([(case.out_dtype, case.out_shape), *case.more])]  # fmt: skip


def simulate(graph, folder, device, names, env):
    """What it wrote by name, and its trace."""
    out, trace = folder / device.replace(":", "_"), folder / "trace.json"
    done = subprocess.run([ops.BIN, "run", graph, "--model", folder / "model.oinf", "--device", device, "--fetch", ",".join(names),
                           "--out", out, "--trace", trace], env=env, capture_output=True, text=True, timeout=600)  # fmt: skip
    assert done.returncode == 0 and "Validation" not in done.stdout + done.stderr, (done.stdout[-300:], done.stderr[:3000])
    read = {name: np.frombuffer(np.load(out / f"{name}.npy").tobytes(), np.uint8) for name in names}
    return read, [e for e in json.loads(trace.read_text()) if e["kind"] == "OpExecute"]


def check(op, folder, env):
    cases = chosen(op)
    with PackageWriter(folder / "model.oinf") as model:
        graph = ops.write(op, cases, folder, model)
    wanted = outputs(op, cases)
    names = [name for name, *_ in wanted]
    want, _ = simulate(graph, folder, "cpu:scalar", names, env)
    got, events = simulate(graph, folder, "vulkan", names, env)
    wrong = []
    for name, case, dtype, shape in wanted:
        a, b = (Tensor.from_storage(dtype, shape, x[name]) for x in (got, want))
        bad = compare(dataclasses.replace(case, out_dtype=dtype), a, b, False)
        if bad:
            wrong.append(f"{case}: {bad}")
    on_host = [e["params"] for e in events if e["device"] != "vulkan"]
    return wrong, on_host, len(events)


# Ops that a device does not run, or not in all types: see the text of each.
NOT_HERE = {
    "f64": "functions of f64 that GLSL cannot spell exactly enough",
    "text": "an op made of C text",
}
