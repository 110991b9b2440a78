"""run --memory-limit: tensors that do not fit are streamed with the same bits, the process stays small, and a limit that cannot
be kept is refused before anything runs."""

import re
import struct
import subprocess
import sys

import numpy as np
import pytest

from conftest import BIN, REPO

sys.path.insert(0, str(REPO / "python/src"))
from openinfer.oinf import PackageWriter, TensorSpec  # noqa: E402

rng = np.random.default_rng(7)


def f32(*shape):
    return rng.standard_normal(shape, np.float32)


def i8(*shape):
    return rng.integers(-128, 128, shape, np.int8)


def spec(w):
    return w if isinstance(w, TensorSpec) else TensorSpec(w, dtype={"float32": "f32", "int8": "i8", "int32": "i32", "int64": "i64"}[w.dtype.name])


@pytest.fixture
def package(tmp_path):
    def write(**tensors):
        path = tmp_path / "m.oinf"
        with PackageWriter(path) as w:
            for name, data in tensors.items():
                w.add_tensor(name, spec(data))
        return path

    return write


def least(openinfer, *args):
    """What the refusal of a limit of one byte names."""
    said = openinfer("run", *args, "--memory-limit", "1", code=1).stderr
    found = re.search(r"error\[E065\]: a memory limit of 1 bytes cannot be kept: the least that would do is (\d+)", said)
    assert found, said
    return int(found[1])



CASES = {
    # name: (tensors, graph, the most that is needed, in bytes)
    "columns": (lambda: {"W": f32(300, 1000)}, "x: f32[3, 300]; y: f32[3, 1000]; W: f32[300, 1000]; op matmul(x, W) >> y", 64 << 10),
    "one row": (lambda: {"W": f32(300, 1000)}, "x: f32[300]; y: f32[1000]; W: f32[300, 1000]; op matmul(x, W) >> y", 64 << 10),
    "transposed": (lambda: {"W": f32(1000, 300)},
                   "x: f32[2, 300]; y: f32[2, 1000]; W: f32[1000, 300]; op matmul(x, W, transpose_b=true) >> y", 64 << 10),
    "left": (lambda: {"W": f32(1000, 300)}, "x: f32[300, 2]; y: f32[1000, 2]; W: f32[1000, 300]; op matmul(W, x) >> y", 64 << 10),
    "stack": (lambda: {"W": f32(4, 200, 300)},
              "x: f32[4, 5, 200]; y: f32[4, 5, 300]; W: f32[4, 200, 300]; op matmul(x, W) >> y", 640 << 10),
    "in place": (lambda: {"W": f32(500, 500)}, "x: f32[3, 500]; y: f32[3, 500]; W: f32[500, 500]; "
                 "op add(x, x) >> y; op matmul(y, W) >> y; op matmul(y, W) >> y", 64 << 10),
    "conv": (lambda: {"W": f32(256, 64, 3, 3), "b": f32(256)},
             "x: f32[1, 64, 6, 5]; y: f32[1, 256, 6, 5]; W: f32[256, 64, 3, 3]; b: f32[256]; op conv(x, W, b, pads=[1, 1, 1, 1]) >> y", 192 << 10),
    "batch": (lambda: {"W": f32(128, 32, 3)},
              "x: f32[2, 32, 9]; y: f32[2, 128, 4]; W: f32[128, 32, 3]; op conv(x, W, strides=[2]) >> y", 48 << 10),
    "transposed conv": (lambda: {"W": f32(64, 100, 3)},
                        "x: f32[1, 64, 7]; y: f32[1, 100, 15]; W: f32[64, 100, 3]; op conv_transpose(x, W, strides=[2]) >> y", 48 << 10),
    "rows": (lambda: {"W": f32(2000, 33)}, "i: i64[5] @init(3); y: f32[5, 33]; W: f32[2000, 33]; op gather(W, i, axis=0) >> y", 8 << 10),
    "rows of nibbles": (lambda: {"W": TensorSpec([[(r * 7 + c) % 16 - 8 for c in range(33)] for r in range(401)], dtype="i4")},
                        "i: i64[5] @init(-2); y: i4[5, 33]; W: i4[401, 33]; op gather(W, i, axis=0) >> y", 6 << 10),
    "picked columns": (lambda: {"W": f32(200, 333)},
                       "i: i32[2, 2] @init(7); y: f32[200, 2, 2]; W: f32[200, 333]; op gather(W, i, axis=1) >> y", 24 << 10),
    "einsum": (lambda: {"W": f32(40, 50, 60)},
               'x: f32[3, 50]; y: f32[60, 3, 40]; W: f32[40, 50, 60]; op einsum(x, W, equation="nb,abc->cna") >> y', 64 << 10),
    "sum": (lambda: {"W": f32(300, 400)}, "y: f32[300]; W: f32[300, 400]; op sum_axis(W, axes=[1], keepdims=false) >> y", 16 << 10),
    "gemm": (lambda: {"W": f32(600, 200), "b": f32(600)}, "x: f32[2, 200]; y: f32[2, 600]; W: f32[600, 200]; b: f32[600]; "
             "op gemm(x, W, b, trans_b=true, alpha=0.5) >> y", 48 << 10),
    "bytes": (lambda: {"W": i8(700, 512), "s": f32(700, 16), "b": f32(700)}, "x: f32[2, 512]; y: f32[2, 700]; W: i8[700, 512]; "
              "s: f32[700, 16]; b: f32[700]; op qlinear(x, W, s, b) >> y", 160 << 10),
    "nibbles": (lambda: {"W": TensorSpec([[(r * 7 + c) % 16 - 8 for c in range(96)] for r in range(501)], dtype="i4"), "s": f32(501, 3)},
                "x: f32[2, 96]; y: f32[2, 501]; W: i4[501, 96]; s: f32[501, 3]; op qlinear(x, W, s) >> y", 40 << 10),
    "q8": (lambda: {"W": i8(400, 256), "s": f32(400, 8)}, "x: f32[20, 256]; y: f32[20, 400]; W: i8[400, 256]; s: f32[400, 8]; "
           'op qlinear(x, W, s, act="q8") >> y', 160 << 10),
    "integers": (lambda: {"W": i8(256, 999)}, "x: u8[3, 256] @init(5); y: i32[3, 999]; W: i8[256, 999]; op matmul_integer(x, W) >> y", 64 << 10),
    "shared": (lambda: {"W": f32(300, 500)}, "x: f32[2, 300]; z: f32[2, 500]; W: f32[300, 500]; "
               "op matmul(x, W) >> z; op matmul(z, W, transpose_b=true) >> x; op matmul(x, W) >> z", 64 << 10),
}  # fmt: skip


def case_graph(tmp_path, tensors, text):
    """`name: type;` declares: a tensor of the model is constant, x and i are inputs, the rest is volatile."""
    sections = {"dynamic": [], "constant": [], "volatile": []}
    nodes, outputs = [], []
    for part in filter(None, map(str.strip, text.split(";"))):
        if part.startswith("op "):
            nodes.append(f"  {part};")
            continue
        name = part.split(":")[0]
        kind = "constant" if name in tensors else "dynamic" if name in "xi" else "volatile"
        sections[kind].append(f"  {part};")
        outputs += [] if name in tensors else [name]
    body = "".join(f"{kind} {{\n" + "\n".join(rows) + "\n}\n" for kind, rows in sections.items() if rows)
    path = tmp_path / "g.oi"
    path.write_text(body + "block entry {\n" + "\n".join(nodes) + f"\n  return {', '.join(outputs)};\n}}\n")
    return path


@pytest.mark.parametrize("device", ["cpu", "cpu:scalar"])
@pytest.mark.parametrize("name", CASES)
def test_streamed_with_the_same_bits(openinfer, package, tmp_path, name, device):
    make, text, most = CASES[name]
    tensors = make()
    args = (case_graph(tmp_path, tensors, text), "--model", package(**tensors), "--device", device)
    outs = {}
    need = least(openinfer, *args)
    for limit in (None, need, need + 20000, 4 * need):
        out = tmp_path / f"out{limit}"
        result = openinfer("run", *args, "--out", out, *(["--memory-limit", limit] if limit else []))
        outs[limit] = {p.name: p.read_bytes() for p in out.iterdir()}
        if limit:
            held = int(re.search(r"memory: at most (\d+) bytes", result.stderr)[1])
            assert held <= limit
    assert outs[None] and all(o == outs[None] for o in outs.values())
    if device == "cpu":
        assert need <= most, "it is streamed"
    openinfer("run", *args, "--memory-limit", need - 1, code=1)


def peak_of(command):
    """Runs it; its greatest resident size in bytes. A small process stands between: what pytest was when it forked is not counted."""
    watch = ("import resource, subprocess, sys; p = subprocess.run(sys.argv[1:], capture_output=True, text=True);"
             "sys.stderr.write(p.stderr); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(p.returncode)")  # fmt: skip
    p = subprocess.run([sys.executable, "-c", watch, *map(str, command)], capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    return int(p.stdout) * 1024


def test_a_matrix_of_64_megabytes_in_8(openinfer, package, tmp_path, sanitized):
    """The result is that of an unlimited run and, for whole numbers whose sums are exact, numpy's."""
    n, limit, more = (4096, 8 << 20, 32 << 20) if not sanitized else (1024, 2 << 20, 1 << 40)
    w = rng.integers(-8, 9, (n, n)).astype(np.float32)
    x = rng.integers(-8, 9, (2, n)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    model = package(W=w)
    graph = case_graph(tmp_path, {"W": w}, f"x: f32[2, {n}]; y: f32[2, {n}]; W: f32[{n}, {n}]; op matmul(x, W) >> y")
    command = [BIN, "run", graph, "--model", model, "--set", f"x={tmp_path}/x.npy", "--fetch", "y"]
    openinfer(*command[1:], "--out", tmp_path / "free")
    peak = peak_of([*command, "--out", tmp_path / "tight", "--memory-limit", limit])
    assert peak < limit + more, f"{peak} bytes"
    y = np.load(tmp_path / "tight/y.npy")
    assert np.array_equal(y, x @ w)
    assert (tmp_path / "free/y.npy").read_bytes() == (tmp_path / "tight/y.npy").read_bytes()


def sparse(path, tensors):
    """A package of f32 tensors, mostly holes; a few elements of each are set: {name: (dims, {place: value})}."""

    def text(x):
        raw = struct.pack("<I", len(x)) + x.encode()
        return raw + bytes(-len(raw) % 8)

    names = sorted(tensors)
    table = sum(len(text(n)) + 12 + 8 * len(tensors[n][0]) + 32 for n in names)
    at = data = 72 + table + -(72 + table) % 8
    entries, places = b"", {}
    for n in names:
        dims, _ = tensors[n]
        size = 4 * int(np.prod(dims))
        entries += text(n) + struct.pack("<III", 10, len(dims), 1) + struct.pack(f"<{len(dims)}Q", *dims) + struct.pack("<QQQQ", size, at, 0, 0)
        places[n] = at
        at += size
    with open(path, "wb") as f:
        f.write((b"OINF\0" + struct.pack("<IIIIIIQQQQQ", 2, 0, 0, 0, len(names), 0, 72, 72, 72, data, at)).ljust(72, b"\0") + entries)
        f.truncate(at)
        for n in names:
            for place, value in tensors[n][1].items():
                f.seek(places[n] + 4 * place)
                f.write(struct.pack("<f", value))


def test_two_gigabytes_in_128_megabytes(tmp_path, sanitized):
    """An embedding of 1.7 GB, of which a few rows are read, and a product with 320 MB."""
    scale = 1 if not sanitized else 64
    rows, wide, tall = 217600 // scale, 2048, 40960 // scale
    sparse(tmp_path / "big.oinf", {
        "E": ((rows, wide), {5 * wide + 3: 2.0, (rows - 1) * wide + 7: 3.0}),
        "W": ((tall, wide), {3: 10.0, (tall - 1) * wide + 7: 100.0}),
    })  # fmt: skip
    (tmp_path / "g.oi").write_text(
        f"dynamic {{ i: i64[2]; }}\nconstant {{ E: f32[{rows}, {wide}]; W: f32[{tall}, {wide}]; }}\n"
        f"volatile {{ h: f32[2, {wide}]; y: f32[2, {tall}]; }}\n"
        "block entry { op gather(E, i, axis=0) >> h; op matmul(h, W, transpose_b=true) >> y; return y; }\n")  # fmt: skip
    limit = 128 << 20
    peak = peak_of([BIN, "run", tmp_path / "g.oi", "--model", tmp_path / "big.oinf", "--set", "i=5,-1", "--memory-limit", limit,
                    "--out", tmp_path])  # fmt: skip
    y = np.load(tmp_path / "y.npy")
    assert y[0, 0] == 20 and y[1, tall - 1] == 300 and np.count_nonzero(y) == 2
    assert peak < limit + (32 << 20) or sanitized, f"{peak} bytes"


def test_a_bad_row_is_named(openinfer, package, tmp_path):
    w = f32(2000, 33)
    args = (case_graph(tmp_path, {"W": w}, "i: i64[3]; y: f32[3, 33]; W: f32[2000, 33]; op gather(W, i, axis=0) >> y"),
            "--model", package(W=w), "--set", "i=0,2000,1")  # fmt: skip
    free = openinfer("run", *args, code=1).stderr
    tight = openinfer("run", *args, "--memory-limit", "32K", code=1).stderr
    assert "E047" in free and "element 1 of 'i' is 2000" in free
    assert [line for line in tight.splitlines() if "E047" in line] == [line for line in free.splitlines() if "E047" in line]


def test_what_cannot_be_cut_counts_whole(openinfer, package, tmp_path):
    """A sort needs all of its input; the refusal names the node."""
    w = f32(1, 50000)
    args = (case_graph(tmp_path, {"W": w}, "y: f32[1, 50000]; W: f32[1, 50000]; op sort(W) >> y"), "--model", package(W=w))
    assert least(openinfer, *args) >= 400000
    said = openinfer("run", *args, "--memory-limit", "300K", code=1).stderr
    assert "E065" in said and "g.oi:8:3: note: this node takes" in said


def test_state_that_grows_past_the_limit(openinfer, tmp_path):
    """How far a table grows only the run knows: the step fails and is taken back."""
    path = tmp_path / "g.oi"
    path.write_text("dynamic { x: f32[1024]; }\npersistent { K(t): f32[1024] @table; n: i64; }\n"
                    "block entry { cache.write x >> K[n]; cache.increment n; return; }\n")  # fmt: skip
    result = openinfer("run", path, "--memory-limit", "100K", "--steps", 40, code=1)
    assert "error[E065]: the memory limit of 102400 bytes is reached" in result.stderr
    assert "step 3" in result.stdout and "step 30" not in result.stdout


def test_consumers_under_a_limit(openinfer, package, tmp_path):
    path = tmp_path / "g.oi"
    path.write_text(
        "constant { W: f32[200, 300]; }\nvolatile { a: f32[2, 200] @init(1); b: f32[2, 300]; c: f32[2, 300]; }\n"
        "block entry { yield a; op matmul(a, W) >> c; await a; return b, c; }\n"
        "block side { await a; op add(a, 1.0) >> a; op matmul(a, W) >> b; yield a; }\n".replace("op add(a, 1.0) >> a; ", "op neg(a) >> a; ")
        .replace("op matmul(a, W) >> c;", "op fill(c, value=2) >> c;"))  # fmt: skip
    args = (path, "--model", package(W=f32(200, 300)))
    need = least(openinfer, *args)
    free = openinfer("run", *args, "--threads", 4).stdout
    assert openinfer("run", *args, "--threads", 4, "--memory-limit", need).stdout == free
