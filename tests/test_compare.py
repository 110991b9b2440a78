"""openinfer compare: the first node that departs from a dump, and dumps that are broken."""

import dataclasses
import json
import random
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from conftest import BIN, REPO

sys.path[:0] = [str(REPO / "python/src")]

from openinfer.oinf import SizeVar, TensorSpec, write_oinf  # noqa: E402

LAYERS = """\
dynamic { x: f32[N]; }
volatile { h: f32[N]; W(l): f32[N] @pattern("W.{l}"); }
persistent { sum: f32[N] @init(0); }
block entry {
  assign t: f32[N];
  op add(x, x) >> h;
  loop layers (l in 0..3) {
    op mul(h, W[l]) >> t;
    op add(h, t) >> h;
  }
  assign old: f32[N];
  assign new: f32[N];
  cache.read sum >> old;
  op add(old, h) >> new;
  cache.write new >> sum;
  return h;
}
"""


@dataclasses.dataclass
class Model:
    N: SizeVar
    tensors: dict


@pytest.fixture(scope="module")
def layers(tmp_path_factory):
    """A graph with a loop, its model, and every value it writes, computed with numpy."""
    folder = tmp_path_factory.mktemp("compare")
    (folder / "g.oi").write_text(LAYERS)
    rng = np.random.default_rng(1)
    w = rng.standard_normal((3, 4)).astype(np.float32)
    write_oinf(Model(SizeVar(4), {f"W.{i}": TensorSpec(w[i]) for i in range(3)}), str(folder / "m.oinf"))
    x = rng.standard_normal(4).astype(np.float32)
    h = x + x
    values = {"x": x, "h#0": h}
    for i in range(3):
        values[f"t#{i}"] = h * w[i]
        h = h + values[f"t#{i}"]
        values[f"h#{i + 1}"] = h
    values |= {"h": h, "t": values["t#2"], "sum": h}
    return folder, values


@pytest.fixture
def compare(layers, openinfer, tmp_path):
    """compare(values, *options) runs the command on such a dump."""

    def run(values, *options, code=0):
        np.savez(tmp_path / "dump.npz", **values)
        folder, _ = layers
        return openinfer("compare", folder / "g.oi", "--model", folder / "m.oinf", "-r", tmp_path / "dump.npz", *options, code=code)

    return run


def test_everything_agrees(compare, layers):
    result = compare(layers[1])
    assert result.stderr == ""  # every key is used, and x is taken from the dump
    lines = result.stdout.splitlines()
    assert [line.split()[1] for line in lines[1:-2]] == ["h#0", "t#0", "h#1", "t#1", "h#2", "t", "t#2", "h", "h#3", "sum"]
    assert all(line.startswith("ok ") for line in lines[1:-2])
    assert lines[-1] == "10 values agree within 1e-05 + 0.0001 * |reference|"


def test_the_first_that_departs(compare, layers):
    """t is wrong in the second layer, so is everything behind it."""
    wrong = dict(layers[1])
    for key in ("t#1", "h#2", "t#2", "h#3", "h", "t", "sum"):
        wrong[key] = wrong[key].copy()
        wrong[key][2] += 0.25
    out = compare(wrong, code=1).stdout
    rows = out.splitlines()
    assert rows[4].split()[:2] == ["DIFF", "t#1"] and float(rows[4].split()[2]) == pytest.approx(0.25, rel=1e-3)
    assert len([r for r in rows if r.startswith("DIFF")]) == 1
    assert re.search(r"first departs: 't#1' in step 0, node \d+ of entry, line 8: OpExecute", out)
    assert "line 8: OpExecute mul(h, W[l]) >> t\n" in out
    assert "  1 of 4 elements differ by more than 1e-05 + 0.0001 * |reference|\n  worst at [2]: " in out
    all_rows = compare(wrong, "--all", code=1).stdout.splitlines()
    assert len([r for r in all_rows if r.startswith("DIFF")]) == 7


def test_tolerances(compare, layers):
    near = {**layers[1], "h": layers[1]["h"] * 1.01}
    compare(near, code=1)
    compare(near, "--rtol", "0.011")
    compare(near, "--atol", "1", "--rtol", "0")
    compare(layers[1], "--atol", "1e-6", "--rtol", "1e-6")


def test_map(compare, layers):
    v = layers[1]
    dump = {"in": v["x"], **{f"blk.{i}.out": v[f"h#{i}"] for i in range(4)}, "final/out": v["h"]}
    maps = ["--map", "x=in", "--map", "h=blk.{n}.out", "--map", "h=final/out"]
    out = compare(dump, *maps).stdout
    assert [line.split()[1] for line in out.splitlines()[1:-2]] == ["blk.0.out", "blk.1.out", "blk.2.out", "blk.3.out", "final/out"]
    dump["blk.2.out"] = dump["blk.2.out"] + 1
    assert "first departs: 'blk.2.out'" in compare(dump, *maps, code=1).stdout


def test_steps(compare, layers):
    v = layers[1]
    dump = {"0:x": v["x"], "1:x": 2 * v["x"], "sum": v["h"], "1:sum": 3 * v["h"], "1:h#0": 4 * v["x"]}
    assert "3 values agree" in compare(dump, "--steps", "2").stdout
    assert "'1:h#0' in step 1" in compare({**dump, "1:h#0": v["x"]}, "--steps", "2", code=1).stdout


def test_set_wins_over_the_dump(compare, layers):
    v = layers[1]
    compare({"x": v["x"], "h#0": v["h#0"]}, "--set", "x=1", code=1)
    compare({"h#0": np.full(4, 2, np.float32)}, "--set", "x=1")


def test_json(compare, layers):
    wrong = {**layers[1], "h": layers[1]["h"] + np.array([0, np.nan, 0, 0], np.float32)}
    rows = json.loads(compare(wrong, "--json", "--all", code=1).stdout)
    assert len(rows) == 10
    bad = [r for r in rows if r["departs"]]
    assert [r["key"] for r in bad] == ["h"]
    assert bad[0] | {"here": 0} == {
        "key": "h", "variable": "h", "step": 0, "block": bad[0]["block"], "node_index": bad[0]["node_index"], "op": "add", "line": 9,
        "dtype": "f32", "elements": 4, "same_shape": True, "wrong": 1, "max_abs": "inf", "max_rel": bad[0]["max_rel"], "at": [1],
        "here": 0, "there": "nan", "departs": True,
    }  # fmt: skip


def test_special_values(openinfer, tmp_path):
    (tmp_path / "g.oi").write_text("dynamic { x: f32[4]; }\nblock entry { assign y: f32[4]; op relu(x, negative_slope=1.0) >> y; return y; }\n")
    x = np.array([np.nan, np.inf, -np.inf, 1], np.float32)
    for y, code in [(x, 0), ([np.nan, np.inf, np.inf, 1], 1), ([0, np.inf, -np.inf, 1], 1), ([np.nan, 3e38, -np.inf, 1], 1)]:
        np.savez(tmp_path / "d.npz", x=x, y=np.array(y, np.float32))
        openinfer("compare", tmp_path / "g.oi", "-r", tmp_path / "d.npz", code=code)


def test_other_types_and_orders(openinfer, tmp_path):
    """Dumps keep ids as i64 and floats as f64; numpy keeps a transposed array by columns."""
    (tmp_path / "g.oi").write_text(
        "dynamic { x: i32[2,3]; f: f16[1,3]; }\n"
        "block entry { assign y: i32[2,3]; assign g: f16[1,3]; op add(x, x) >> y; op add(f, f) >> g; return y; }\n"
    )
    x = np.arange(6).reshape(3, 2).T
    np.savez(tmp_path / "d.npz", x=x, y=2 * x, f=np.array([1, 2, 3.0]), g=np.array([2, 4, 6.0]))
    out = openinfer("compare", tmp_path / "g.oi", "-r", tmp_path / "d.npz").stdout
    assert "2 values agree" in out and "i32[2, 3]" in out
    np.savez(tmp_path / "d.npz", x=x, y=2 * x.reshape(6))
    result = openinfer("compare", tmp_path / "g.oi", "-r", tmp_path / "d.npz", code=1)
    assert "the shapes differ" in result.stdout and "6 elements there in another shape" in result.stderr
    np.savez(tmp_path / "d.npz", x=x * 10**12, y=x)
    assert "is no value of i32" in openinfer("compare", tmp_path / "g.oi", "-r", tmp_path / "d.npz", code=1).stderr
    np.savez(tmp_path / "d.npz", x=x, y=2 * x + np.eye(2, 3, dtype=int))
    out = openinfer("compare", tmp_path / "g.oi", "-r", tmp_path / "d.npz", "--atol", "0.5", code=1).stdout
    assert "2 of 6 elements differ" in out and "worst at [0, 0]: 0 here, 1 in the reference" in out


def test_npy_files(layers, openinfer, tmp_path):
    folder, v = layers
    for key in ("x", "h#0", "sum"):
        np.save(tmp_path / f"{key}.npy", v[key])
    files = [f for key in ("x", "h#0", "sum") for f in ("-r", tmp_path / f"{key}.npy")]
    assert "2 values agree" in openinfer("compare", folder / "g.oi", "--model", folder / "m.oinf", *files).stdout


def test_what_is_not_there(compare, layers):
    result = compare({"x": layers[1]["x"], "h": layers[1]["h"], "hh": np.zeros(4), "zzz": np.zeros(1)})
    assert "nothing here is called 'hh': did you mean 'h'?" in result.stderr and "'zzz'" in result.stderr
    assert "holds nothing that this graph writes" in compare({"zzz": np.zeros(1)}, "--set", "x=1", code=1).stderr


@pytest.mark.parametrize("options,words", [
    (["--atol", "x"], "--atol: 'x' is not a number"), (["--rtol", "-1"], "not a number from 0 up"), (["--atol", "inf"], "from 0 up"),
    (["--map", "h"], "write NAME=KEY"), (["--map", "q=h"], "no variable 'q'"),
])  # fmt: skip
def test_bad_options(compare, layers, options, words):
    assert words in compare(layers[1], *options, code=2).stderr


def test_bad_dumps(layers, openinfer, tmp_path):
    folder, v = layers
    path = tmp_path / "d.npz"

    def refuse(words, code=1, *options):
        result = openinfer("compare", folder / "g.oi", "--model", folder / "m.oinf", *(options or ("-r", path)), code=code)
        assert words in result.stderr

    refuse("--reference FILE is wanted", 2, "--strict")
    refuse("cannot open", 3)
    path.write_bytes(b"")
    refuse("not a .npz file")
    path.write_bytes(b"hello" * 100)
    refuse("not a .npz file")
    np.savez_compressed(path, **v)
    refuse("compressed or encrypted; write it with numpy.savez")
    np.savez(path, x=v["x"], h=np.array(["text"]))
    refuse("h: element type <U4 is not supported")
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("h.npy", b"no array")
    refuse("h: not a .npy file")
    np.savez(path, x=v["x"], h=v["h"])
    refuse("'x' is there twice", 1, "-r", path, "-r", path)
    np.save(tmp_path / "x.npy", v["x"])
    np.savez(path, x=v["x"])
    refuse("there twice", 1, "-r", path, "-r", tmp_path / "x.npy")


def test_large_archives(layers, openinfer, tmp_path):
    """Sizes above 32 bits sit in extra fields and a second end record; small files may have them too."""
    folder, v = layers
    path = tmp_path / "d.npz"
    np.savez(path, x=v["x"], h=v["h"])
    data = bytearray(path.read_bytes())
    end = data.rindex(b"PK\5\6")
    n, size, offset = int.from_bytes(data[end + 10 : end + 12], "little"), data[end + 12 : end + 16], data[end + 16 : end + 20]
    record = b"PK\6\6" + (44).to_bytes(8, "little") + bytes(12) + n.to_bytes(8, "little") * 2 + size + bytes(4) + offset + bytes(4)
    locator = b"PK\6\7" + bytes(4) + end.to_bytes(8, "little") + (1).to_bytes(4, "little")
    tail = data[end:]
    tail[8:12], tail[12:20] = b"\xff" * 4, b"\xff" * 8
    path.write_bytes(bytes(data[:end]) + record + locator + bytes(tail))
    assert "1 values agree" in openinfer("compare", folder / "g.oi", "--model", folder / "m.oinf", "-r", path).stdout


def test_mutants(layers, tmp_path):
    """Whatever the dump holds: an answer or an error, never a crash."""
    folder, v = layers
    np.savez(tmp_path / "good.npz", x=v["x"], h=v["h"])
    good = (tmp_path / "good.npz").read_bytes()
    rng = random.Random(1)
    path = tmp_path / "d.npz"
    codes = set()
    directory = good.index(b"PK\1\2")
    for _ in range(300):
        data = bytearray(good)
        for _ in range(rng.choice([1, 2, 4])):
            at = rng.choice([rng.randrange(len(data)), rng.randrange(directory, len(data)), rng.randrange(80)])
            width = rng.choice([1, 2, 4, 8])
            value = rng.choice([0, 1, 255, 2**15, 2**31 - 1, 2**32 - 1, 2**63, 2**64 - 1, rng.randrange(2**32)])
            data[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "little")
        path.write_bytes(data[: rng.choice([len(data)] * 5 + [rng.randrange(len(data))])])
        command = [BIN, "compare", folder / "g.oi", "--model", folder / "m.oinf", "-r", path, "--set", "x=1"]
        result = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace", timeout=60)
        codes.add(result.returncode)
        assert result.returncode in (0, 1, 3), result.stderr
        assert not re.search("Sanitizer|runtime error", result.stderr), result.stderr
    assert {1} <= codes
