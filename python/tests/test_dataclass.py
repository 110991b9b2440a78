"""Spec section 10: where each field goes, in the order of its table."""

from __future__ import annotations

import array
import dataclasses
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Annotated, Any, Optional

import openinfer.oinf
import pytest
from openinfer.oinf import (
    ArrayValue, Bitset, OinfError, QuantParams, QuantScale, ScalarValue, SizeVar, TensorSpec, UninitializedTensor,
    dataclass_to_oinf, read_oinf, write_oinf,
)
from support import command_env


def make(**fields):
    """An instance of a dataclass with the given (annotation, value[, metadata]) fields."""
    cls = dataclasses.make_dataclass("Model", [(k, f[0], field(metadata=f[2] if len(f) > 2 else {})) for k, f in fields.items()])
    return cls(**{k: f[1] for k, f in fields.items()})


def where(**fields):
    """For each name: ('sizevar', value), ('meta', kind, dtype) or ('tensor', dtype, dims)."""
    p = read_oinf(dataclass_to_oinf(make(**fields)))
    out = {k: ("sizevar", v) for k, v in p.sizevars.items()}
    out.update({k: ("meta", v.kind, v.dtype.name) for k, v in p.metadata.items()})
    out.update({k: ("tensor", t.dtype.name, t.dims) for k, t in p.tensors.items()})
    return out


def test_sizevars():
    got = where(a=(Any, SizeVar(3)), b=(int, 4), c=(SizeVar, 5), d=(Any, 6, {"sizevar": True}), e=(Annotated[int, "x"], 7),
                f=("int", 8), g=("SizeVar", SizeVar(9)), h=(int, 2**64 - 1))  # fmt: skip
    assert got == {k: ("sizevar", v) for k, v in zip("abcdefgh", (3, 4, 5, 6, 7, 8, 9, 2**64 - 1))}


@pytest.mark.parametrize("bad", [None, True, -1, 2**64, 1.0, "1"])
def test_bad_sizevars(bad):
    for f in ((int, bad), (Any, SizeVar(bad)), (Any, bad, {"sizevar": True})):
        with pytest.raises(OinfError):
            where(n=f)


def test_metadata_scalars(both):
    got = where(a=(Any, ScalarValue(1.5, "f16")), b=(Any, ScalarValue(3)), c=(bool, True), d=(str, "x"), e=(Any, Bitset([1])),
                f=(Any, 300), g=(Any, -300), h=(float, 1.0), i=(str, "two words"), j=(int, ScalarValue(1, "t1")),
                k=(float, 1.0, {"dtype": "bf16"}), l=(Annotated[float, {"dtype": "f64"}], 1.0), m=(Annotated[int, {"dtype": "i4"}], -8),
                n=(Any, ScalarValue("s")))  # fmt: skip
    assert got == {
        "a": ("meta", "scalar", "f16"), "b": ("meta", "scalar", "u8"), "c": ("meta", "scalar", "bool"), "d": ("meta", "str", "str"),
        "e": ("meta", "bitset", "bitset"), "f": ("meta", "scalar", "u16"), "g": ("meta", "scalar", "i16"), "h": ("meta", "scalar", "f32"),
        "i": ("meta", "ndarray", "u8"), "j": ("meta", "scalar", "t1"), "k": ("meta", "scalar", "bf16"), "l": ("meta", "scalar", "f64"),
        "m": ("meta", "scalar", "i4"), "n": ("meta", "str", "str"),
    }  # fmt: skip


def test_tensors(both):
    got = where(a=(Any, TensorSpec([[1.0, 2.0]])), b=(Any, TensorSpec([1, 2], "i4", name="renamed")), c=(Any, UninitializedTensor("f16", [2, 3])),
                d=(list, [1, 2], {"dtype": "u4"}), e=(Annotated[list, {"dtype": "f8e5m2"}], [1.0]), f=(list, [1, 2], {"tensor": True}),
                g=(float, 1.0, {"tensor": True}), h=(Any, array.array("h", [1])), i=(Any, TensorSpec([1.0]), {"dtype": "bf16"}))  # fmt: skip
    assert got == {
        "a": ("tensor", "f32", (1, 2)), "renamed": ("tensor", "i4", (2,)), "c": ("tensor", "f16", (2, 3)), "d": ("tensor", "u4", (2,)),
        "e": ("tensor", "f8", (1,)), "f": ("tensor", "u8", (2,)), "g": ("tensor", "f32", ()), "h": ("tensor", "i16", (1,)),
        "i": ("tensor", "bf16", (1,)),
    }  # fmt: skip


def test_lists_otherwise(both):
    got = where(a=(list, [1.0]), b=(tuple, (1, 2)), c=(list, [-1, 200]), d=(Any, ArrayValue([1], "i2")), e=(list, [1], {"dtype": "i8", "tensor": False}),
                f=(bytes, b"ab"), g=(list, [[True], [False]]))  # fmt: skip
    assert got == {k: ("meta", "ndarray", d) for k, d in zip("abcdefg", ("f32", "u8", "i16", "i2", "i8", "u8", "bool"))}


def test_numpy_fields():
    np = pytest.importorskip("numpy")
    got = where(a=(Any, np.zeros((2, 2))), b=(Any, np.zeros(2), {"dtype": "f16"}), c=(Any, np.arange(3), {"tensor": False}),
                d=(Any, np.float64(1)), e=(Any, np.int64(3)), f=(int, np.int64(3)), g=(Any, np.bool_(True)),
                h=(Any, np.zeros(2), {"tensor": False}), i=(Any, [np.float32(1), np.float32(2)]))  # fmt: skip
    assert got == {
        "a": ("tensor", "f64", (2, 2)), "b": ("tensor", "f16", (2,)), "c": ("meta", "ndarray", "u8"), "d": ("meta", "scalar", "f32"),
        "e": ("meta", "scalar", "u8"), "f": ("sizevar", 3), "g": ("meta", "scalar", "bool"), "h": ("meta", "ndarray", "f32"),
        "i": ("meta", "ndarray", "f32"),
    }  # fmt: skip


def test_dicts_are_merged_first():
    p = read_oinf(dataclass_to_oinf(make(
        sizevars=(dict, {"B": 4, "C": SizeVar(5)}), metadata=(dict, {"a": 1, "s": "x"}), tensors=(dict, {"w.0": TensorSpec([1.0]), "w.1": [2, 3]}), D=(int, 6),
    )))  # fmt: skip
    assert p.sizevars == {"B": 4, "C": 5, "D": 6}
    assert list(p.metadata) == ["a", "s"] and list(p.tensors) == ["w.0", "w.1"]

    @dataclass
    class Plain:
        D: int = 1

    obj = Plain()
    obj.tensors = {"t": TensorSpec([1])}  # an attribute, not a field
    assert list(read_oinf(dataclass_to_oinf(obj)).tensors) == ["t"]
    assert where(metadata=(float, 1.0)) == {"metadata": ("meta", "scalar", "f32")}


@pytest.mark.parametrize(
    "fields",
    [
        {"D": (int, 1), "sizevars": (dict, {"D": 2})},
        {"t": (Any, TensorSpec([1])), "u": (Any, TensorSpec([1], name="t"))},
        {"m": (Any, 1.0), "metadata": (dict, {"m": 1})},
        {"x": (Optional[float], None)},
        {"x": (Any, object())},
        {"x": (Any, [[1], [1, 2]])},
        {"x": (Any, [1], {"dtype": "f33"})},
        {"x": (Any, [9], {"dtype": "i4"})},
        {"x": (Any, [0], {"dtype": "t1"})},
        {"x": (Any, [2], {"dtype": "t2"})},
        {"x": (Any, {"a": 1})},
        {"metadata": (dict, {"t": TensorSpec([1])})},
        {"metadata": (dict, {"t": SizeVar(1)})},
        {"x": (Any, TensorSpec([1], quant=QuantParams("symmetric", QuantScale.per_tensor(-1))))},
    ],
)
def test_errors(fields):
    with pytest.raises(OinfError):
        where(**fields)


def test_only_instances(tmp_path):
    @dataclass
    class Model:
        D: int = 1

    for bad in (Model, {"D": 1}, 3, None):
        with pytest.raises(OinfError, match="expected a dataclass instance"):
            write_oinf(bad, tmp_path / "x.oinf")
    assert os.listdir(tmp_path) == []
    write_oinf(Model(), tmp_path / "x.oinf")
    assert (tmp_path / "x.oinf").read_bytes() == dataclass_to_oinf(Model())


def test_function_survives_import_of_the_command_module():
    import openinfer.oinf.dataclass_to_oinf as module

    assert module.main and read_oinf(openinfer.oinf.dataclass_to_oinf(make(D=(int, 3)))).sizevars == {"D": 3}


MODEL = '''
from dataclasses import dataclass, field
from openinfer.oinf import SizeVar, TensorSpec

@dataclass
class Model:
    D: int = 4
    w: list = field(default_factory=lambda: [1.0, 2.0], metadata={"dtype": "f16"})

instance = Model(D=9)
not_one = 3
'''


def command(*args, cwd):
    return subprocess.run([sys.executable, "-m", *args], cwd=cwd, env=command_env(), capture_output=True, text=True)


def test_commands(tmp_path):
    (tmp_path / "mymodel.py").write_text(MODEL)
    (tmp_path / "f.json").write_text(json.dumps({"D": 5, "w": [3, 4, 5]}))
    run = "openinfer.oinf.dataclass_to_oinf"
    for source, extra, size in (("mymodel:Model", (), 4), ("mymodel:instance", (), 9), ("mymodel.py:Model", ("--json", "f.json"), 5)):
        done = command(run, "--input", source, "--output", "m.oinf", *extra, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert read_oinf((tmp_path / "m.oinf").read_bytes()).sizevars == {"D": size}
    done = command("openinfer.oinf", "verify", "m.oinf", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("D := 5\n\nw: f16[3] = { 3, 4, 5 }\n")
    assert command("openinfer.oinf.verify_oinf", "m.oinf", cwd=tmp_path).stdout == done.stdout
    (tmp_path / "bad.json").write_text('{"nope": 1}')
    for args in (("mymodel:not_one",), ("mymodel:gone",), ("nomodule:X",), ("mymodel",), ("mymodel:Model", "--json", "bad.json"),
                 ("mymodel:Model", "--json", "none.json"), ("mymodel:instance", "--json", "f.json")):  # fmt: skip
        done = command(run, "--input", args[0], "--output", "n.oinf", *args[1:], cwd=tmp_path)
        assert done.returncode == 1 and done.stderr.startswith("oinf: ") and done.stderr.count("\n") == 1, done
        assert not (tmp_path / "n.oinf").exists()
    assert command("openinfer.oinf", "nope", cwd=tmp_path).returncode == 2
    assert command("openinfer.oinf", "--help", cwd=tmp_path).returncode == 0
