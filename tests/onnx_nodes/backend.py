"""Imports ONNX's node tests, runs them in the simulator and compares: `python backend.py [WORD...]`."""

import collections
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import onnx

import session
from openinfer.oinf.importer.command import write_package
from openinfer.oinf.importer.convert import Options, import_model
from openinfer.oinf.importer.text import write_text
from openinfer.oinf.importer.values import DTYPES
from openinfer.oinf.types import OinfError

ROUNDS = 8  # of finding inputs that have to be constants


class Skip(Exception):
    """A test of types that the language does not have."""


class Fail(Exception):
    """A test that should pass."""


def cases(words=()):
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load_model_tests(kind="node")
    return [c for c in found if not words or any(w in c.name for w in words)]


def array(value):
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def check_types(case):
    """Strings, sequences, maps, optional values, training and types that we lack are outside."""
    for node in case.model.graph.node:
        if "training" in node.domain:
            raise Skip("training")
    for info in [*case.model.graph.input, *case.model.graph.output]:
        kind = info.type.WhichOneof("value")
        if kind != "tensor_type":
            raise Skip(f"type: {kind}")
        if info.type.tensor_type.elem_type not in DTYPES:
            raise Skip(f"type: {onnx.TensorProto.DataType.Name(info.type.tensor_type.elem_type)}")


def imported(case, given, plain=False):
    """The program, binding the inputs that decide shapes; `given` is name -> array."""
    options = Options(plain=plain)
    for info in case.model.graph.input:  # a symbol's size is that of the test's data
        for axis, d in enumerate(info.type.tensor_type.shape.dim):
            if not d.HasField("dim_value") and info.name in given:
                options.sizes[d.dim_param or f"{info.name}.{axis}"] = given[info.name].shape[axis]
    for _ in range(ROUNDS):
        result = import_model(".", options, case.model)
        wanted = {name for p in result.problems for name in p.needs} & set(given) - set(options.bound)
        if not wanted:
            break
        options.bound.update({name: given[name] for name in wanted})
    if result.problems:
        raise Fail("; ".join(dict.fromkeys(f"{p.op}: {p.reason}" for p in result.problems)))
    return result.program


def compare(want, got, case):
    want = array(want)
    if want.shape != got.shape:
        raise Fail(f"the shape is {list(got.shape)}, not {list(want.shape)}")
    if want.dtype != got.dtype:
        raise Fail(f"the type is {got.dtype}, not {want.dtype}")
    if want.dtype.kind not in "biuf":
        want, got = want.astype(np.float32), got.astype(np.float32)
    try:
        np.testing.assert_allclose(got, want, rtol=case.rtol, atol=case.atol)
    except AssertionError as e:
        raise Fail("numbers differ: " + " ".join(str(e).split())[:160]) from None


def check(case, folder):
    check_types(case)
    names = [i.name for i in case.model.graph.input]
    for inputs, outputs in case.data_sets:
        given = {k: array(v) for k, v in zip(names, inputs) if v is not None}
        try:
            program = imported(case, given)
            text = write_text(program, [])
            package = pathlib.Path(folder) / "model.oinf"
            write_package(str(package), program)
        except OinfError as e:
            raise Fail(str(e)) from None
        values = {v.label: (v.dtype, given[v.name]) for v in program.inputs}
        try:
            results = session.run(text, package, values, len(program.outputs))
        except session.Failed as e:
            raise Fail(str(e)) from None
        for want, got in zip(outputs, results):
            compare(want, got, case)


def main(words):
    passed, skipped, failed = 0, collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(words):
            try:
                check(case, folder)
                passed += 1
            except Skip as e:
                skipped[str(e)] += 1
            except Fail as e:
                failed.append((case.name, str(e)))
            except Exception as e:  # a defect of the importer: listed with the rest
                failed.append((case.name, f"DEFECT {type(e).__name__}: {' '.join(str(e).split())[:200]}"))
    for name, reason in failed:
        print(f"{name}: {reason}")
    for reason, n in skipped.most_common():
        print(f"outside: {n} tests, {reason}")
    total = passed + len(failed)
    print(f"{passed} of {total} tests pass ({100 * passed / max(1, total):.1f} %), {sum(skipped.values())} are outside")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
