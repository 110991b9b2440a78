"""Model packages for the cases of this folder: `model=NAME` calls the function of that name."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python/src"))

from openinfer.oinf import ArrayValue, PackageWriter, ScalarValue, TensorSpec, UninitializedTensor  # noqa: E402


def small(w: PackageWriter) -> None:
    """Sizes B=2, D=3, L=2; tensors, metadata of every sort, W.0 and W.1, state specs."""
    for name, value in {"B": 2, "D": 3, "L": 2, "huge": 2**62}.items():
        w.add_sizevar(name, value)
    w.add_tensor("a", TensorSpec([[0.5] * 3] * 2, dtype="f32"))
    w.add_tensor("bias", TensorSpec([0.5] * 3, dtype="f32"))
    w.add_tensor("empty", UninitializedTensor("f32", [3]))
    for i in range(2):
        w.add_tensor(f"W.{i}", TensorSpec([[0.0] * 3] * 3, dtype="f32"))
    w.add_tensor("odd.0", TensorSpec([[0.0] * 3] * 3, dtype="f32"))
    w.add_tensor("odd.1", TensorSpec([[0.0] * 2] * 3, dtype="f32"))
    w.add_tensor("half.0", TensorSpec([[0.0] * 3] * 3, dtype="f16"))
    w.add_metadata("n_layers", ScalarValue(2, "u8"))
    w.add_metadata("slope", ScalarValue(0.5, "f32"))
    w.add_metadata("third", ScalarValue(1 / 3, "f64"))
    w.add_metadata("many", ScalarValue(300, "u16"))
    w.add_metadata("flag", True)
    w.add_metadata("not_a_number", ScalarValue(float("nan"), "f32"))
    w.add_metadata("wide", ScalarValue(2**40, "u64"))
    w.add_metadata("widest", ScalarValue(2**64 - 1, "u64"))
    w.add_tensor("scalar", TensorSpec(3, dtype="i32"))
    w.add_tensor("void.0", UninitializedTensor("f32", [3]))
    w.add_tensor("x.1.2", TensorSpec([0.5] * 3, dtype="f32"))
    w.add_metadata("mode", "floor")
    w.add_metadata("list", ArrayValue([1, 2, 3], "i32"))
    w.add_metadata("perm", ArrayValue([1, 0], "i32"))
    w.add_metadata("one", ArrayValue([7], "i32"))
    spec = {"kind": "table", "dtype": "f16", "dims": ["D", 4], "indices": ["t"], "fixed": {"t": "B*2"}, "init": 0}
    for name in ("K", "wrong_dtype", "wrong_dims", "fine"):
        w.add_metadata(f"oi.state.{name}", json.dumps(spec))


def vast(w: PackageWriter) -> None:
    """A size that is none, for which opening warns."""
    small(w)
    w.add_sizevar("vast", 2**63)


def broken_specs(w: PackageWriter) -> None:
    """State specs that are none."""
    for name, text in {
        "a": "[1]",
        "b": '{"dtype": "f33"}',
        "c": '{"dims": 3}',
        "d": '{"dims": [true]}',
        "e": '{"dims": ["2*"]}',
        "f": '{"fixed": [1]}',
        "g": "{",
    }.items():
        w.add_metadata(f"oi.state.{name}", text)
