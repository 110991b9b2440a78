"""openinfer inspect, and that C and Python agree about packages: the same text and JSON, the same
bytes written, the same packages refused."""

import json
import os
import pathlib
import random
import struct
import subprocess
import sys

import pytest

from conftest import BIN, REPO

sys.path[:0] = [str(REPO / "python/src"), str(REPO / "python/tests")]
from openinfer.oinf import ArrayValue, OinfError, PackageWriter, QuantParams, QuantScale, TensorSpec  # noqa: E402
from openinfer.oinf import UninitializedTensor  # noqa: E402
from openinfer.oinf import read_oinf  # noqa: E402
from openinfer.oinf.dtypes import TABLE, encode_list  # noqa: E402
from openinfer.oinf.inspect_text import inspect_json, inspect_text  # noqa: E402
from openinfer.oinf.types import StreamTensor  # noqa: E402
from openinfer.oinf.write import write_package  # noqa: E402
from support import random_tables  # noqa: E402

COPY = pathlib.Path(BIN).parent / "oinf_copy"
CORPUS = sorted((REPO / "tests/fuzz/corpus/oinf").glob("*"))


def fixtures(shared) -> list[pathlib.Path]:
    files = sorted((shared / "fixtures/oinf").glob("*.oinf"))
    assert len(files) == 5
    return files


def by_python(path, strict=False) -> "tuple[str, str] | None":
    """Text and JSON, or None when it is refused."""
    try:
        with read_oinf(path, strict=strict) as package:
            return inspect_text(package), inspect_json(package)
    except OinfError as e:
        assert str(e).startswith(f"oinf: {path}: ")
        return None


def same_as_python(openinfer, path, strict=False) -> bool:
    """Whether both accept it; what they print must be the same bytes."""
    wanted = by_python(path, strict)
    args = ["inspect", path] + ["--strict"] * strict
    text = openinfer(*args, code=0 if wanted else 1, text=False)
    if wanted is None:
        lines = text.stderr.decode().splitlines()
        errors = [x for x in lines if " warning: " not in x]
        assert len(errors) == 1 and errors[0].startswith(f"oinf: {path}: "), lines
        assert text.stdout == b""
        return False
    assert text.stdout == wanted[0].encode()
    assert openinfer(*args, "--json", text=False).stdout == wanted[1].encode()
    return True


def copy(path, out) -> bytes:
    result = subprocess.run([COPY, path, out], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return out.read_bytes()


# ---- the same as Python --------------------------------------------------------------


def test_fixtures_print_the_same(openinfer, shared):
    for path in fixtures(shared):
        assert same_as_python(openinfer, path)
        assert same_as_python(openinfer, path, strict=True)


def test_fixtures_are_written_back_as_they_were(shared, tmp_path):
    for path in fixtures(shared):
        assert copy(path, tmp_path / "copy.oinf") == path.read_bytes()
        with read_oinf(path) as package:
            assert package.to_bytes() == path.read_bytes()


@pytest.mark.parametrize("seed", range(120))
def test_random_packages(openinfer, tmp_path, seed):
    path = tmp_path / "random.oinf"
    path.write_bytes(write_package(*random_tables(seed)))
    assert same_as_python(openinfer, path, strict=bool(seed % 2))
    assert copy(path, tmp_path / "copy.oinf") == path.read_bytes()


def spread(rng: random.Random, d, n: int) -> list:
    """Values that make statistics hard: cancelling sums, many sizes, few or many distinct ones."""
    if d.is_float:
        kind = rng.randrange(5)
        if kind == 0:
            return [rng.gauss(0, 1) for _ in range(n)]
        if kind == 1:
            return [rng.choice([-1, 1]) * 10 ** rng.uniform(-4, 4) for _ in range(n)]
        if kind == 2:
            half = [rng.uniform(-1e4, 1e4) for _ in range(n // 2)]
            return half + [-x for x in half] + [1e-4] * (n % 2)
        if kind == 3:
            return [rng.choice([1.5, -0.0, 0.0, float("nan"), float("inf"), -float("inf")]) for _ in range(n)]
        return [0.1] * n
    if d.kind == "bool":
        share = rng.random()
        return [rng.random() < share for _ in range(n)]
    if d.name == "t1":
        return [rng.choice([-1, 1]) for _ in range(n)]
    lo, hi = (d.lo, d.hi) if rng.random() < 0.5 else (max(d.lo, -9), min(d.hi, 9))
    return [rng.randint(lo, hi) for _ in range(n)]


@pytest.mark.parametrize("d", [d for d in TABLE if d.is_scalar], ids=lambda d: d.name)
def test_statistics(openinfer, tmp_path, d):
    rng = random.Random(d.tag)
    sizes = [1, 2, 9, 11, 1000, 16384, 40001]
    tensors = {f"t{n}.{i}": StreamTensor(d.name, [n], encode_list(spread(rng, d, n), d)) for n in sizes for i in range(4)}
    path = tmp_path / "stats.oinf"
    path.write_bytes(write_package({}, {}, tensors))
    assert same_as_python(openinfer, path)


def test_double_range(openinfer, tmp_path):
    rng = random.Random(1)
    rows = {
        "bits": [struct.unpack("<d", rng.randbytes(8))[0] for _ in range(500)],
        "wide": [10.0 ** k for k in range(-300, 300)],
        "tiny": [5e-324 * k for k in range(50)],
        "edge": [1.7e308, -1.7e308, 1e-308, 0.0],
    }
    path = tmp_path / "f64.oinf"
    path.write_bytes(write_package({}, {}, {k: TensorSpec(v, "f64") for k, v in rows.items()}))
    assert same_as_python(openinfer, path)


def test_the_fuzzing_corpus_has_the_same_fate(openinfer, sanitized):
    """Packages that an enemy wrote: accepted and refused by both, and printed alike."""
    assert len(CORPUS) >= 12
    accepted = refused = 0
    for path in CORPUS[:: 4 if sanitized else 1]:  # replay_oinf reads all of them under sanitizers
        for strict in (False, True):
            if same_as_python(openinfer, path, strict):
                accepted += 1
            else:
                refused += 1
    assert accepted >= (5 if sanitized else 20)


@pytest.mark.parametrize("seed", range(150))
def test_damaged_packages_have_the_same_fate(openinfer, tmp_path, seed):
    rng = random.Random(seed)
    data = bytearray(write_package(*random_tables(seed)))
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(data)) if rng.random() < 0.5 else rng.randrange(min(len(data), 72))
        width = rng.choice([1, 4, 8])
        value = rng.choice([0, 1, 2, 8, 13, 64, 255, 2**31, 2**32 - 1, 2**63, len(data), rng.randrange(2**16)])
        data[at : at + width] = value.to_bytes(8, "little")[:width]
    path = tmp_path / "damaged.oinf"
    path.write_bytes(data)
    same_as_python(openinfer, path, strict=bool(seed % 2))


def test_table_order_in_the_file_does_not_matter(openinfer, tmp_path):
    """A foreign writer may not sort; the listing does."""
    data = write_package({"A": 1, "B": 2}, {}, {})
    swapped = data.replace(b"A", b"?").replace(b"B", b"A").replace(b"?", b"B")
    path = tmp_path / "swapped.oinf"
    path.write_bytes(swapped)
    assert openinfer("inspect", path).stdout == "A := 2\nB := 1\n"
    assert same_as_python(openinfer, path)


# ---- the command -----------------------------------------------------------------------


@pytest.fixture
def package(tmp_path):
    path = tmp_path / "p.oinf"
    quant = QuantParams("symmetric", QuantScale.per_channel(0, [k / 4 for k in range(1, 13)]))
    tensors = {"w": TensorSpec([[1.0, 2.0], [3.0, -4.0]], "f32"), "q": UninitializedTensor("i4", [12], quant=quant)}
    path.write_bytes(write_package({"B": 4}, {"mode": "clamp_up"}, tensors))
    return path


def test_text(openinfer, package):
    assert openinfer("inspect", package).stdout == (
        "B := 4\n\n"
        'mode: str = "clamp_up"\n\n'
        "q: i4[12] -- uninitialized\n"
        "- quant: scheme=symmetric, scale=per_channel(axis=0, "
        "{ 0.25, 0.5, 0.75, 1, 1.25, ..., 2, 2.25, 2.5, 2.75, 3 }), zero_point=none\n\n"
        "w: f32[2, 2] = { \n{ 1, 2 } ,\n{ 3, -4 } ,\n}\n"
        "- [nbytes: 16, min: -4, max: 3, mean: 0.5, median: 1.5, std: 2.69258]\n"
        "- hist: {([-4, -3.3], 1), ([0.9, 1.6], 1), ([1.6, 2.3], 1), ([2.3, 3], 1)}\n"
    )


def test_one_tensor(openinfer, package):
    whole = openinfer("inspect", package).stdout
    assert whole.endswith(openinfer("inspect", "--tensor", "w", package).stdout)
    bars = openinfer("inspect", "--tensor", "w", "--hist", package).stdout.splitlines()
    assert bars[-4:] == [f"    {label:<10} |{'#' * 40} 1" for label in ("[-4, -3.3]", "[0.9, 1.6]", "[1.6, 2.3]", "[2.3, 3]")]
    tree = json.loads(openinfer("inspect", "--tensor", "w", "--json", package).stdout)
    assert list(tree["tensors"]) == ["w"] and tree["sizevars"] == {} and tree["metadata"] == {}
    error = openinfer("inspect", "--tensor", "v", package, code=1)
    assert error.stdout == "" and error.stderr == f"oinf: {package}: no tensor named 'v'\n"


def test_errors_are_one_line(openinfer, package, tmp_path):
    bad = tmp_path / "bad.oinf"
    data = bytearray(package.read_bytes())
    data[5] = 1
    bad.write_bytes(data)
    error = openinfer("inspect", bad, code=1).stderr
    assert error == f"oinf: {bad}: version 1 packages are not supported, write it again as version 2 (offset 5)\n"
    bad.write_bytes(package.read_bytes()[:-1])
    error = openinfer("inspect", bad, code=1).stderr
    size = package.stat().st_size
    assert error == f"oinf: {bad}: truncated: the header says {size} bytes, the file has {size - 1} (offset {size - 1})\n"
    missing = openinfer("inspect", tmp_path / "none.oinf", code=3)
    assert missing.stderr == f"oinf: {tmp_path / 'none.oinf'}: cannot open: No such file or directory\n"
    assert openinfer("inspect", tmp_path, code=3).stderr == f"oinf: {tmp_path}: cannot open: not a regular file\n"


def test_warnings(openinfer, package, tmp_path):
    odd = tmp_path / "odd.oinf"
    data = bytearray(package.read_bytes())
    data[9] = 4
    odd.write_bytes(data)
    result = openinfer("inspect", odd)
    assert result.stderr == f"oinf: {odd}: warning: header: flags is 0x4, wanted 0 (offset 9)\n"
    assert result.stdout == openinfer("inspect", package).stdout
    openinfer("inspect", "--strict", odd, code=1)


def test_allow_shared(openinfer, tmp_path):
    data = bytearray(write_package({}, {}, {"a": TensorSpec([1, 2], "i64"), "b": TensorSpec([1, 2], "i64")}))
    first, second = (data.index(struct.pack("<I", 1) + name) + 8 + 12 + 8 + 8 for name in (b"a", b"b"))
    data[second : second + 8] = data[first : first + 8]
    path = tmp_path / "shared.oinf"
    path.write_bytes(data)
    assert "overlaps" in openinfer("inspect", path, code=1).stderr
    assert openinfer("inspect", "--allow-shared", path).stdout.count("{ 1, 2 }") == 2


def test_a_sparse_file_is_printed_in_bounded_memory(openinfer, tmp_path, sanitized):
    """More data than memory for it: what inspect needs does not grow with the tensor."""
    import resource

    size = (1 << 22) if sanitized else (1 << 26)
    data = bytearray(write_package({}, {}, {"big": TensorSpec([0], "u8")}))
    entry = data.index(struct.pack("<I", 3) + b"big") + 8
    at = struct.unpack_from("<Q", data, entry + 28)[0]
    struct.pack_into("<QQ", data, entry + 12, size, size)
    struct.pack_into("<Q", data, 61, at + size)
    path = tmp_path / "sparse.oinf"
    path.write_bytes(data)
    os.truncate(path, at + size)

    def limit():
        if not sanitized:  # sanitizers reserve terabytes of addresses
            resource.setrlimit(resource.RLIMIT_DATA, (32 << 20, 32 << 20))

    result = subprocess.run([BIN, "inspect", path], capture_output=True, text=True, preexec_fn=limit)
    assert result.returncode == 0, result.stderr
    assert f"- hist: {{([0, 0], {size})}}" in result.stdout


def test_shapes_and_text(openinfer, tmp_path):
    """[1] is a tensor of one element, not a scalar; text is text wherever it is stored."""
    path = tmp_path / "m.oinf"
    long = "é" * 100  # 200 bytes: cut at 160, which is no half character
    with PackageWriter(path) as w:
        w.add_tensor("one", TensorSpec([5], dtype="i32"))
        w.add_tensor("scalar", TensorSpec(5, dtype="i32"))
        w.add_metadata("graph", "block entry {\n\treturn;\n}\n")
        w.add_metadata("long", long)
        w.add_metadata("odd", "x" + long)
        w.add_metadata("numbers", ArrayValue([32, 7], "u8"))
        w.add_metadata("letters", ArrayValue([65, 66], "u8"))
        w.add_metadata("bytes", ArrayValue([32, 255], "u8"))
    out = openinfer("inspect", path).stdout
    assert "one: i32[1] = { 5 }\n" in out and "scalar: i32 = 5\n" in out
    assert 'graph: text[25] = "block entry {\\n\\treturn;\\n}\\n"\n' in out
    assert f'long: text[200] = "{long[:80]}" ...\n' in out
    assert f'odd: text[201] = "x{long[:79]}" ...\n' in out
    assert "numbers: u8[2] = { 32, 7 }" in out and "letters: u8[2] = { 65, 66 }" in out and "bytes: u8[2] = { 32, 255 }" in out
    assert same_as_python(openinfer, path)
