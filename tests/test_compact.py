"""The compact form: its examples run as numpy says, on the simulator and as programs; what it lowers to is
an ordinary graph whose places point into the compact text."""

import json
import os
import re
import subprocess
import sys

import pytest

from conftest import BIN, REPO

EXAMPLES = REPO / "examples"
sys.path[:0] = [str(EXAMPLES), str(REPO / "python/src")]
import run_all  # noqa: E402
import test_seeds  # noqa: E402

NAMES = run_all.COMPACT
each = pytest.mark.parametrize("name", NAMES)


def explicit(openinfer, name, package, to):
    """The lowered graph of an example as explicit text."""
    openinfer("graph", EXAMPLES / f"{name}.oi", "--model", package, "--to", "text", "-o", to)
    return to


def test_every_example_is_complete():
    assert len(NAMES) >= 3
    for suffix in ("_oinf.py", "_ref.py"):
        found = sorted(p.name.removesuffix(suffix) for p in (EXAMPLES / "compact").glob(f"*{suffix}"))
        assert found == [n.removeprefix("compact/") for n in NAMES]


def test_the_descriptions_examples_are_these(openinfer, shared, tmp_path):
    """Two of the examples are those of the descriptions, laid out."""
    seeds = [text for _, kind, text in test_seeds.EXAMPLES if kind == "compact"]
    assert len(seeds) == 2
    for name, text in zip(("compact/minimal", "compact/kv_cache_decode"), seeds):
        (tmp_path / "seed.oi").write_text(text)
        laid_out = openinfer("fmt", tmp_path / "seed.oi").stdout
        ours = re.sub(r"^//.*\n\n?", "", (EXAMPLES / f"{name}.oi").read_text())
        assert laid_out == ours


@each
def test_graph(openinfer, example_package, name):
    graph, package = EXAMPLES / f"{name}.oi", example_package(name)
    openinfer("fmt", "--check", graph)
    assert openinfer("check", "--strict", graph, "--model", package).stderr == ""
    assert graph.read_text().startswith("//"), "an example says first what it shows"
    assert "E080" in openinfer("check", graph, code=1).stderr


@each
def test_forms(openinfer, example_package, tmp_path, name):
    """Its JSON is that of the explicit text it lowers to, which stands by itself."""
    package = example_package(name)
    text = explicit(openinfer, name, package, tmp_path / "explicit.oi")
    forms = [json.loads(openinfer("graph", g, "--model", package, "--to", "json", "--deterministic").stdout)
             for g in (EXAMPLES / f"{name}.oi", text)]  # fmt: skip
    assert forms[0] == forms[1]
    assert openinfer("check", "--strict", text, "--model", package).stderr == ""
    openinfer("fmt", "--check", text)
    for form in ("svg", "html", "dot"):
        openinfer("graph", EXAMPLES / f"{name}.oi", "--model", package, "--to", form, "-o", tmp_path / "drawing")


@pytest.mark.parametrize("device", ["cpu:scalar", "cpu"])
@each
def test_run(openinfer, example_reference, example_package, tmp_path, name, device):
    where, about = example_reference(name)
    package = example_package(name)
    graph = json.loads(openinfer("graph", EXAMPLES / f"{name}.oi", "--model", package, "--to", "json").stdout)
    returned = graph["blocks"]["entry"]["nodes"][-1]["kind"]["Return"]["values"]
    lasting = {n for n, v in graph["vars"].items() if v["kind"] == "Persistent"}
    assert set(returned) | lasting <= set(about["outputs"])
    result = run_all.run(BIN, name, package, where, about, device, tmp_path)
    assert result.returncode == 0, result.stderr
    rows = list(run_all.compare(where, about, tmp_path))
    assert len(rows) >= about["steps"]
    wrong = [row for row in rows if not row[2] <= 1]
    assert not wrong, f"variable, step, error as a multiple of what is allowed: {wrong[:10]}"


@pytest.mark.parametrize("target", ["cpu_scalar", "cpu_avx2"])
@each
def test_verify(openinfer, example_reference, example_package, name, target):
    where, about = example_reference(name)
    sets = [w for x in about["inputs"] for w in ("--set", f"{x}=@{where}/in/{x}/{{step}}.npy")]
    out = openinfer("verify", EXAMPLES / f"{name}.oi", "--model", example_package(name), "--target", target,
                    "--steps", about["steps"], *sets).stdout  # fmt: skip
    assert f"{about['steps']} steps compared: they agree" in out


@each
def test_the_program_quotes_the_compact_text(openinfer, example_package, tmp_path, name):
    openinfer("synth", EXAMPLES / f"{name}.oi", "--model", example_package(name), "--target", "cpu_scalar", "-o", tmp_path)
    stem = name.removeprefix("compact/")
    lines = (EXAMPLES / f"{name}.oi").read_text().splitlines()
    quoted = re.findall(rf"/\* {stem}\.oi:(\d+): (.*?) \*/", (tmp_path / f"{stem}.c").read_text())
    assert quoted
    for line, text in quoted:
        assert lines[int(line) - 1].strip() == text


HEAD = "model: model,\ninputs: { tok: i32[B], step: i32[], x: f16[B, 16], },\n"
CACHE = HEAD + "state: { kv: kv_cache(f16, layers=n_layers, cap=ctx_len) },\n"


@pytest.mark.parametrize(
    "text, found",
    [
        (HEAD + 'let y = model["Wx.0"];\noutput y;', "3:15 E080 the model has no 'Wx.0'"),
        (HEAD + 'let y = other["Wq.0"];\noutput y;', "3:9 E030 'other' is not the model"),
        (HEAD + 'for l in 0..4 { let w = model[format!("Wq.{l}")]; }\noutput x;', "3:39 E081 the model has no tensor 'Wq.3' for l = 3"),
        (HEAD + 'for l in 0..2 { let w = model[format!("Wq.{}", l - 1)]; }\noutput x;', "3:39 E081 an index has no valid value for l = 0"),
        (HEAD + 'for l in 0..step { let w = model[format!("Wx.{l}")]; }\noutput x;', "3:42 E081 no tensor like 'Wx.{l}'"),
        (HEAD + 'let w = model[format!("Wq.{}")];\noutput w;', "3:23 E043 more '{}' than arguments"),
        (HEAD + 'let w = model[format!("Wq.0", 1)];\noutput w;', "3:23 E043 more arguments than"),
        (HEAD + 'let w = model[format!("Wq.{0")];\noutput w;', "3:23 E043 a brace without its partner"),
        (HEAD + "for l in 0..2 { x = cast(x, f32); }\noutput x;", "3:17 E082 'x' is f16[B, 16] (B = 2) and cannot become f32"),
        (HEAD + "let y = for l in 0..2 { let z = x; };\noutput x;", "3:5 E083 'y' has no value before the loop"),
        (HEAD + "let x = for l in 0..2 { let z = x; };\noutput x;", "3:5 E083 its body does not assign it"),
        (HEAD + "output x;\nlet y = x;", "3:1 E084 output is the last statement"),
        (HEAD + "for l in 0..2 { output x; }\noutput x;", "3:17 E084 stands in no loop"),
        (HEAD + "let y = x + x;", "3:1 E084 the last statement is no output"),
        (HEAD, "3:1 E084 the last statement is no output"),
        (HEAD + "let y = reluu(x);\noutput y;", "3:9 E057 unknown op 'reluu'"),
        (HEAD + "let y = relu(x, slope=1);\noutput y;", "3:17 E052 relu has no attribute 'slope'"),
        (HEAD + "let y = relu(z);\noutput y;", "3:14 E030 unknown variable 'z'"),
        (HEAD + "for l in 0..2 { let y = x; }\noutput y;", "4:8 E030 unknown variable 'y'"),
        (HEAD + "for l in 0..2 { let n = step; }\nfor l in 0..n { let m = l; }\noutput x;", "4:13 E030 unknown variable 'n'"),
        (HEAD + "let y = 1.5;\noutput y;", "3:9 E050 a literal by itself has no element type"),
        (HEAD + "let y = 1.5 + 2;\noutput y;", "3:9 E050 a literal takes the element type of another operand"),
        (HEAD + "let y = tok * 1.5;\noutput y;", "3:15 E015 1.5 is no value of i32"),
        (HEAD + "let y = x * 70000.0;\noutput y;", "3:13 E016 70000.0 is out of range for f16"),
        (HEAD + 'let y = matmul(x, model["lm_head"], x);\noutput y;', "3:9 E056 matmul: takes 2 inputs, found 3"),
        (HEAD + "let (y, z) = relu(x);\noutput y;", "3:14 E056 relu: gives 1 output, found 2"),
        (HEAD + "let (y, y) = split(x, axis=1);\noutput y;", "3:9 E010 'y' is bound twice"),
        (HEAD + "let y = sdpa(x, mask=x);\noutput y;", "3:9 E056 sdpa: operand 'k' is missing"),
        (HEAD + "let y = x @ { fuse: true };\noutput y;", "3:15 E052 hints are for ops"),
        (HEAD.replace("step", "tok") + "output x;", "2:24 E010 two inputs are called 'tok'"),
        (HEAD + "kv_write(kv, layer=0, step=0, k=x, v=x);\noutput x;", "3:10 E030 kv_write works on a key-value cache"),
        (CACHE + "kv_write(kv, layer=0, step=0, k=x);\noutput x;", "4:1 E056 an argument is missing"),
        (CACHE + "kv_write(kv, 0, step=0, k=x, v=x);\noutput x;", "4:14 E056 its arguments have names"),
        (CACHE + "kv_write(kv, layer=0, step=x, k=x, v=x);\noutput x;", "4:28 E051 an index is one integer; this is f16[B, 16]"),
        (CACHE + "let (k, v) = kv_read(kv, layer=0, step=step);\noutput k;", "4:14 E051 the shape of 'kv' is not known here"),
        (CACHE + "let k = kv_read(kv, layer=0, step=step);\noutput k;", "4:9 E056 kv_read gives two values"),
        (CACHE + "let k = kv + x;\noutput k;", "4:9 E051 'kv' is a key-value cache"),
        (CACHE + "kv_write(kv, layer=0, step=9, k=x, v=x);\noutput x;", "4:28 E047 9 is outside of the cache, which has 8"),
    ],
)  # fmt: skip
def test_errors(openinfer, example_package, tmp_path, text, found):
    """Each says where in the compact text, what was found, and shows the line."""
    (tmp_path / "wrong.oi").write_text(text)
    said = openinfer("check", "wrong.oi", "--model", example_package("compact/kv_cache_decode"), code=1, cwd=tmp_path).stderr
    place, code, words = found.split(" ", 2) if found.count(" ") > 1 else (*found.split(" "), "")
    first = said.splitlines()[0]
    assert first.startswith(f"wrong.oi:{place}: error[{code}]: ") and words in first, said
    line = int(place.split(":")[0])
    if line <= len(text.splitlines()):
        assert f"| {text.splitlines()[line - 1]}"[:60] in said and "^" in said


def test_shape_errors_show_what_was_inferred(openinfer, example_package, tmp_path):
    (tmp_path / "wrong.oi").write_text(HEAD + 'let y = relu(x) |> matmul(concat(x, x, axis=-1));\noutput y;\n')
    said = openinfer("check", "wrong.oi", "--model", example_package("compact/kv_cache_decode"), code=1, cwd=tmp_path).stderr
    assert said == """wrong.oi:3:27: error[E051]: matmul: inner dimensions differ: [B, 16] x [B, 32] (B = 2)
    3 | let y = relu(x) |> matmul(concat(x, x, axis=-1));
      |                           ^~~~~~~~~~~~~~~~~~~~~
wrong.oi:3:9: note: this is f16[B, 16] (B = 2)
    3 | let y = relu(x) |> matmul(concat(x, x, axis=-1));
      |         ^~~~~~~
wrong.oi:3:27: note: this is f16[B, 32] (B = 2)
    3 | let y = relu(x) |> matmul(concat(x, x, axis=-1));
      |                           ^~~~~~~~~~~~~~~~~~~~~
"""


def test_sizes_given(openinfer, tmp_path, example_package):
    """--size reaches the lowering: shapes that depend on it follow."""
    graph = EXAMPLES / "compact/minimal.oi"
    out = openinfer("run", graph, "--model", example_package("compact/minimal"), "--size", "B=3", "--set", "tok=1,2,3").stdout
    assert out.startswith("logits: f16[3, 64]")


def test_a_package_that_embeds_compact_text(openinfer, tmp_path, example_package):
    """The package is its graph's model."""
    from openinfer.oinf import PackageWriter, read_oinf

    with read_oinf(example_package("compact/minimal")) as model, PackageWriter(tmp_path / "m.oinf") as package:
        package.add_sizevar("B", 1)
        for name, tensor in model.tensors.items():
            package.add_tensor(name, tensor)
        package.add_metadata("oi.graph", (EXAMPLES / "compact/minimal.oi").read_text())
    out = openinfer("run", tmp_path / "m.oinf", "--set", "tok=42").stdout
    assert out.startswith("logits: f16[1, 64]")


def test_random_graphs(tmp_path, sanitized):
    """A sample; `tests/synthfuzz/compact.py --count 1000` does the rest. See there what is compared."""
    count = 1000 if os.environ.get("OPENINFER_LONG") else 10 if sanitized else 50
    script = REPO / "tests/synthfuzz/compact.py"
    words = [sys.executable, script, "--bin", BIN, "--count", str(count), "--out", tmp_path]
    result = subprocess.run(words, capture_output=True, text=True, timeout=1800)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{count} random compact graphs agree" in result.stdout


@each
def test_there_and_back(openinfer, example_package, tmp_path, name):
    """Explicit text from compact text, compact text from that: what the second lowers to is the first again."""
    package = example_package(name)
    first = openinfer("fmt", "--to", "explicit", "--model", package, EXAMPLES / f"{name}.oi").stdout
    assert first == explicit(openinfer, name, package, tmp_path / "graph.oi").read_text()
    (tmp_path / "first.oi").write_text(first)
    (tmp_path / "back.oi").write_text(openinfer("fmt", "--to", "compact", "--model", package, tmp_path / "first.oi").stdout)
    openinfer("fmt", "--check", tmp_path / "back.oi")
    assert openinfer("fmt", "--to", "explicit", "--model", package, tmp_path / "back.oi").stdout == first
    same = openinfer("fmt", "--to", "compact", EXAMPLES / f"{name}.oi").stdout  # as it is: no model needed
    assert same == (EXAMPLES / f"{name}.oi").read_text()


@pytest.mark.parametrize("name", ["token_logits", "linear", "residual_mlp", "mlp_regression"])
def test_explicit_examples_become_compact(openinfer, example_package, example_reference, tmp_path, name):
    """Graphs that were written by hand: the compact text gives the same values."""
    package, (where, about) = example_package(name), example_reference(name)
    text = openinfer("fmt", "--to", "compact", "--model", package, EXAMPLES / f"{name}.oi").stdout
    (tmp_path / "compact.oi").write_text(text)
    sets = [w for x in about["inputs"] for w in ("--set", f"{x}=@{where}/in/{x}/{{step}}.npy")]
    wanted, found = (openinfer("run", g, "--model", package, "--steps", about["steps"], *sets).stdout
                     for g in (EXAMPLES / f"{name}.oi", tmp_path / "compact.oi"))  # fmt: skip
    assert wanted == found


def test_what_the_compact_form_cannot_say(openinfer, tmp_path):
    (tmp_path / "explicit.oi").write_text("""dynamic { x: f32[2]; }
volatile { y: f32[2] @init(5.0); big: f32[2]; }
persistent { n: i32; K(t): f32[2] @table @cap(t=4); }
block entry {
  op mul(y, x) >> y;
  barrier;
  cache.write x >> K[0];
  loop l (i in 0..2) { op add(x, x) >> big; }
  op argmax_axis(big, axis=0) >> n2;
  cache.increment n;
  branch other;
  return;
}
block other { return; }
volatile { n2: i32; }
""")
    said = openinfer("fmt", "--to", "compact", "explicit.oi", "--model", "m.oinf", code=3, cwd=tmp_path)
    assert "m.oinf" in said.stderr
    said = openinfer("fmt", "--to", "compact", "explicit.oi", code=1, cwd=tmp_path).stderr
    lines = re.findall(r"explicit\.oi:(\d+):\d+: error\[E085\]: no compact form: (.*)", said)
    assert [(int(a), b.split()[0].strip("'")) for a, b in lines] == [
        (5, "y"), (6, "barrier"), (7, "cache.write"), (9, "big"), (10, "cache.increment"), (11, "branch"),
        (12, "a"), (14, "block"),
    ], said  # fmt: skip


@pytest.mark.parametrize("options", [[], ["--partition-all"]], ids=["one", "threads"])
def test_host_in_cpp(openinfer, example_package, example_reference, tmp_path, options):
    """main.cpp instead of main.c, as the device prefers or the command says; the program agrees all the same."""
    import shutil

    if not shutil.which("c++"):
        pytest.skip("no c++ here")
    (tmp_path / "cpp.json").write_text(json.dumps({"extends": "cpu_avx2", "device": {"type": "cpu"}, "preferences": {"host_lang": "cpp"}}))
    name = "compact/kv_cache_decode"
    package, (where, about) = example_package(name), example_reference(name)
    graph = [EXAMPLES / f"{name}.oi", "--model", package]
    for words in (["--target", tmp_path / "cpp.json"], ["--target", "cpu_avx2", "--host-lang", "cpp"]):
        out = tmp_path / f"out{len(words)}"
        openinfer("synth", *graph, *words, *options, "-o", out)
        assert (out / "main.cpp").exists() and not (out / "main.c").exists()
        subprocess.run(["make", "-s", "-C", out], check=True)
    sets = [w for x in about["inputs"] for w in ("--set", f"{x}=@{where}/in/{x}/{{step}}.npy")]
    said = openinfer("verify", *graph, "--target", tmp_path / "cpp.json", "--steps", 4, *options, *sets).stdout
    assert "4 steps compared: they agree" in said
    assert "--host-lang" in openinfer("synth", *graph, "--device-only", "--host-lang", "c", "-o", tmp_path / "x", code=2).stderr


def test_hints(openinfer, tmp_path):
    """Both forms keep them; one that nothing acts on is E019."""
    (tmp_path / "wrong.oi").write_text("inputs: { x: f32[2] },\nlet y = relu(x) @ { fuse: true, speed: 3 };\noutput y;\n")
    said = openinfer("check", "wrong.oi", cwd=tmp_path, code=1).stderr
    assert "wrong.oi:2:33: error[E019]: unknown hint 'speed'" in said
    (tmp_path / "wrong.oi").write_text("inputs: { x: f32[2] },\nlet y = relu(x) @ { fuse: 3 };\noutput y;\n")
    assert "error[E053]: hint 'fuse' is true or false" in openinfer("check", "wrong.oi", cwd=tmp_path, code=1).stderr
    (tmp_path / "hints.oi").write_text("inputs: { x: f32[2] },\nlet y = relu(x) @ { fuse: false };\noutput y;\n")
    text = openinfer("graph", "hints.oi", cwd=tmp_path).stdout
    assert "op relu(x) >> y @ { fuse: false };" in text
    (tmp_path / "explicit.oi").write_text(text)
    forms = [openinfer("graph", g, "--to", "json", "--deterministic", cwd=tmp_path).stdout for g in ("hints.oi", "explicit.oi")]
    assert forms[0] == forms[1] and '"fuse"' in forms[0]


def test_a_graph_without_a_return_has_no_compact_form(openinfer, tmp_path):
    """`output` is the last statement, and it names a value."""
    for text in "", "block entry { }":
        (tmp_path / "g.oi").write_text(text)
        said = openinfer("fmt", "--to", "compact", "g.oi", code=1, cwd=tmp_path).stderr
        assert "error[E085]: no compact form: a graph without a return" in said
