"""What `openinfer ops --target` says of an op and an element type is what `openinfer synth` does with it."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("ml_dtypes", reason="conformance needs ml_dtypes")
if os.environ.get("OPENINFER_SANITIZED"):
    pytest.skip("a sanitized library cannot be loaded into Python", allow_module_level=True)

import test_synth_ops as ops  # noqa: E402

from library import REPO  # noqa: E402

sys.path.append(str(REPO / "tests"))
from openinfer.oinf import PackageWriter  # noqa: E402
from shaders import REFUSED  # noqa: E402  numbers of 64 bits within an op: they depend on its attributes

ALL = os.environ.get("OPENINFER_LONG")  # every element type of every op; else one of each, in turn
DEVICES = {"cortex_m4": [], "vulkan_desktop": ["--device-only"], "vulkan_generic": ["--device-only"]}


def promised(device):
    text = subprocess.run([ops.BIN, "ops", "--json", "--target", device], capture_output=True, text=True, check=True).stdout
    return {op["name"]: op["dtypes"] for op in json.loads(text)["ops"]}


def shared_dtype(case):
    return case.inputs[0].dtype if case.inputs else case.out_dtype


def refusal(op, case, device, words, folder):
    """What synth says when it refuses the case alone."""
    folder.mkdir()
    with PackageWriter(folder / "model.oinf") as model:
        graph = ops.write(op, [case], folder, model)
    done = subprocess.run([ops.BIN, "synth", graph, "--model", folder / "model.oinf", "--per-node", "--target", device, *words,
                           "-o", folder / "out"], capture_output=True, text=True, timeout=300)  # fmt: skip
    return done.stderr if done.returncode else ""


def elements(case):
    return sum(x.values.size for x in case.inputs)


# An attribute decides whether a function of f64 or a body of C text is needed at all; u64 is never negative.
DEPENDS = {"lp_pool", "lp_normalize", "resize", "is_neg"}


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_promised_is_written(device, tmp_path):
    promises, wrong = promised(device), []
    for number, op in enumerate(ops.KNOWN):
        cases = {}
        for case in sorted(ops.chosen(op), key=elements):
            cases[shared_dtype(case)] = case  # the largest
        chosen = sorted(cases) if ALL else {sorted(cases)[number % len(cases)], *({"f64"} & set(cases))}
        for t in chosen:
            said = refusal(op, cases[t], device, DEVICES[device], tmp_path / f"{op}_{t}")
            is_promised = t in promises.get(op, [])
            if is_promised and said and not (device == "vulkan_generic" and REFUSED.search(said)):
                wrong.append(f"{op} of {t} is promised: {said}")
            elif not is_promised and not said and op not in DEPENDS:
                wrong.append(f"{op} of {t} is written, and not promised")
    assert not wrong, "\n".join(wrong)
