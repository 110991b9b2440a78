"""What commands read: packages with a graph inside, several files, standard input, and --size."""

import json
import sys

import pytest

from conftest import REPO

sys.path.insert(0, str(REPO / "python/src"))
from openinfer.oinf import PackageWriter, TensorSpec  # noqa: E402

GRAPH = "dynamic { x: f32[B]; } volatile { w: f32[D]; y: f32[B]; }\nblock entry {\n  op add(x, x) >> y;\n  return y;\n}\n"
HALF = GRAPH.replace("add(x, x)", "mul(x, x)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """mm.oinf embeds GRAPH and, as #half, HALF; plain.oinf holds the same without graphs."""
    path = tmp_path_factory.mktemp("sources")
    for name, graphs in ("mm", {"oi.graph": GRAPH, "oi.graph.half": HALF}), ("plain", {}):
        with PackageWriter(path / f"{name}.oinf") as w:
            w.add_sizevar("B", 2)
            w.add_sizevar("D", 3)
            w.add_tensor("w", TensorSpec([1.0, 2.0, 3.0], dtype="f32"))
            for key, text in graphs.items():
                w.add_metadata(key, text)
    (path / "g.oi").write_text(GRAPH)
    (path / "half.oi").write_text(HALF)
    (path / "bad.oi").write_text(GRAPH.replace("op add", "op ad"))
    return path


WAYS = {
    "check": [],
    "graph": [],
    "run": ["--set", "x=1"],
    "synth": ["-o", "OUT", "--json"],
    "verify": ["--set", "x=1"],
    "bench": ["--set", "x=1", "--steps", "10"],
}


@pytest.mark.parametrize("command", WAYS)
def test_a_package_with_a_graph_is_its_own_model(openinfer, folder, tmp_path, command):
    words = [str(tmp_path / "out") if w == "OUT" else w for w in WAYS[command]]
    openinfer(command, folder / "mm.oinf", *words)
    openinfer(command, f"{folder}/mm.oinf#half", *words)
    missing = openinfer(command, f"{folder}/mm.oinf#no", *words, code=1).stderr
    assert "no graph 'no' in this package" in missing


@pytest.mark.parametrize("command", WAYS)
def test_sizes(openinfer, folder, tmp_path, command):
    words = [str(tmp_path / "out") if w == "OUT" else w for w in WAYS[command]]
    openinfer(command, folder / "mm.oinf", *words, "--size", "B=5")
    said = openinfer(command, folder / "mm.oinf", *words, "--size", "Bb=5", code=1).stderr
    assert "E011" in said and "the size 'Bb'" in said
    # a tensor of the model has its own shape
    said = openinfer(command, folder / "mm.oinf", *words, "--size", "D=5", code=1).stderr
    assert "E013" in said and "(D = 5)" in said
    assert "not a whole number" in openinfer(command, folder / "mm.oinf", *words, "--size", "B=-1", code=2).stderr
    assert "write NAME=N" in openinfer(command, folder / "mm.oinf", *words, "--size", "B", code=2).stderr


def test_sizes_are_used(openinfer, folder, tmp_path):
    run = openinfer("run", folder / "mm.oinf", "--set", "x=1", "--size", "B=5").stdout
    assert run == "y: f32[5] = { 2, 2, 2, 2, 2 }\n"
    openinfer("synth", folder / "mm.oinf", "-o", tmp_path / "out", "--size", "B=5")
    assert "float y[5]" in (tmp_path / "out" / "mm.h").read_text() + (tmp_path / "out" / "mm.c").read_text()
    # no model: a size that the graph names is known, others are not
    (tmp_path / "g.oi").write_text(GRAPH)
    openinfer("run", tmp_path / "g.oi", "--set", "x=1", "--size", "B=5", "--size", "D=1")
    said = openinfer("check", tmp_path / "g.oi", "--size", "BB=5", code=1).stderr
    assert "the size 'BB'" in said


def test_a_hint_names_the_size_that_was_meant(openinfer, folder):
    (folder / "long.oi").write_text(GRAPH.replace("[B]", "[batch]"))
    said = openinfer("check", folder / "long.oi", "--size", "bacth=5", code=1).stderr
    assert "did you mean 'batch'?" in said


def test_graphs_from_several_packages_need_a_model(openinfer, folder, tmp_path):
    words = folder / "mm.oinf", folder / "plain.oinf#x", "-o", tmp_path / "out"
    assert "--model" in openinfer("synth", *words, code=2).stderr


def test_run_json(openinfer, folder):
    out = openinfer("run", folder / "mm.oinf", "--set", "x=0.1,inf", "--steps", "2", "--fetch", "y,w", "--json").stdout
    value = json.loads(out)
    assert [s["step"] for s in value["steps"]] == [0, 1]
    assert value["steps"][1]["values"] == [
        {"dims": [2], "dtype": "f32", "name": "y", "values": [pytest.approx(0.2), "inf"]},
        {"dims": [3], "dtype": "f32", "name": "w", "values": [1, 2, 3]},
    ]
    # a run that fails still prints JSON
    failed = openinfer("run", folder / "mm.oinf", "--set", "x=1", "--fetch", "nothing", "--json", code=1)
    assert json.loads(failed.stdout)["steps"][0]["values"] == []


def test_synth_and_verify_json(openinfer, folder, tmp_path):
    made = json.loads(openinfer("synth", folder / "mm.oinf", folder / "half.oi", "-o", tmp_path / "o", "--json").stdout)
    assert (made["name"], made["target"], [g["name"] for g in made["graphs"]]) == ("mm", "cpu_scalar", ["mm", "half"])
    assert all(k["name"] and k["bytes"] > 0 for k in made["kernels"])
    value = json.loads(openinfer("verify", folder / "mm.oinf", "--set", "x=1", "--json").stdout)
    assert (value["agrees"], value["steps"], value["difference"]) == (True, 8, "")
    assert [(r["what"], r["name"], r["agrees"]) for r in value["rows"]] == [("output", "y", True)]


def test_bench_threads(openinfer, folder, tmp_path):
    words = folder / "mm.oinf", "--set", "x=1", "--steps", "10"
    value = json.loads(openinfer("bench", *words, "--threads", "2", "--against", "sim", "--json").stdout)
    assert [r["name"] for r in value["rows"]] == ["cpu_scalar", "sim"]
    assert "1 to 65536" in openinfer("bench", *words, "--threads", "0", code=2).stderr
    said = openinfer("bench", *words, "--threads", "2", "--target", "cortex_m4", code=1).stderr
    assert "have no threads" in said


# -- several files, and standard input --


def test_check_several(openinfer, folder):
    files = folder / "g.oi", folder / "bad.oi", folder / "no.oi", folder / "half.oi"
    result = openinfer("check", *files, "--model", folder / "plain.oinf", code=3)
    assert [line.split(": ")[1] for line in result.stdout.splitlines()] == ["ok (3 variables, 1 block, 2 nodes)"] * 2
    assert "unknown op 'ad'" in result.stderr and "no.oi" in result.stderr
    one = openinfer("check", folder / "g.oi", folder / "bad.oi", "--json", code=1)
    value = json.loads(one.stdout)
    assert [(m["file"], m["code"]) for m in value["messages"]] == [(str(folder / "bad.oi"), "E057")]


def test_check_reads_standard_input(openinfer, folder):
    assert openinfer("check", "-", stdin=GRAPH).stdout == "<stdin>: ok (3 variables, 1 block, 2 nodes)\n"
    bad = openinfer("check", "-", stdin=GRAPH.replace("op add", "op ad"), code=1)
    assert bad.stderr.startswith("<stdin>:3:6: error[E057]")
    as_json = openinfer("graph", folder / "g.oi", "--to", "json").stdout
    openinfer("check", "-", stdin=as_json)
    package = openinfer("check", "-", stdin=(folder / "mm.oinf").read_bytes(), text=False, code=1)
    assert b"name its file" in package.stderr


def test_fmt_several_and_standard_input(openinfer, folder, tmp_path):
    neat = openinfer("fmt", "-", stdin=GRAPH).stdout
    assert openinfer("fmt", folder / "g.oi").stdout == neat
    assert openinfer("fmt", folder / "g.oi", folder / "half.oi").stdout == neat + neat.replace("add", "mul")
    files = [tmp_path / "a.oi", tmp_path / "b.oi"]
    for f in files:
        f.write_text(GRAPH)
    said = openinfer("fmt", "--check", *files, code=1).stderr
    assert all(f"{f} is not in canonical layout" in said for f in files)
    openinfer("fmt", "-i", *files)
    assert [f.read_text() for f in files] == [neat, neat]
    openinfer("fmt", "--check", "-", stdin=neat)
    assert "<stdin> is not in canonical layout" in openinfer("fmt", "--check", "-", stdin=GRAPH, code=1).stderr
    assert "-i needs a file" in openinfer("fmt", "-i", "-", stdin=GRAPH, code=2).stderr


def test_inspect_several_and_standard_input(openinfer, folder):
    one = openinfer("inspect", folder / "plain.oinf").stdout
    data = (folder / "plain.oinf").read_bytes()
    assert openinfer("inspect", "-", stdin=data, text=False).stdout.decode() == one
    both = openinfer("inspect", folder / "plain.oinf", "-", stdin=data, text=False).stdout.decode()
    assert both == f"== {folder / 'plain.oinf'}\n\n{one}\n== <stdin>\n\n{one}"
    objects = openinfer("inspect", "--json", folder / "plain.oinf", folder / "mm.oinf").stdout
    first, end = json.JSONDecoder().raw_decode(objects)
    assert first["sizevars"] == {"B": 2, "D": 3} and "oi.graph.half" in json.loads(objects[end:])["metadata"]
    assert "no.oinf" in openinfer("inspect", folder / "no.oinf", folder / "plain.oinf", code=3).stderr


# -- tensors that no graph uses, weights that no package has --


def test_tensors_that_no_graph_uses(openinfer, tmp_path):
    with PackageWriter(tmp_path / "mm.oinf") as w:
        w.add_sizevar("L", 2)
        for name in ("a", "b", *(f"W.{i}" for i in range(4)), *(f"V.{i}" for i in range(3))):
            w.add_tensor(name, TensorSpec([1.0], dtype="f32"))
    one = (
        'dynamic { x: f32[1]; n: i64; } volatile { q: f32[1] @ref("a"); }\n'
        'constant { W(l): f32[1] @pattern("W.{l}"); V(l): f32[1] @pattern("V.{l}"); }\n'
        "block entry {\n  op add(x, q) >> x;\n"
        "  loop k (l in 0..L) { op add(x, W[l]) >> x; }\n  return x;\n}\n"
    )
    (tmp_path / "one.oi").write_text(one)
    (tmp_path / "two.oi").write_text(one.replace("W[l]", "V[n]").replace("q: f32", "b: f32").replace("@ref", "").replace('("a")', "").replace("q)", "b)"))
    out = openinfer("check", "one.oi", "--model", "mm.oinf", cwd=tmp_path).stdout.splitlines()
    assert out[1] == "mm.oinf: 6 of 9 tensors are not used: V.0, V.1, V.2, W.2, W.3, b"
    # an entry that only the run knows may be any; several graphs use what each of them uses
    out = openinfer("check", "one.oi", "two.oi", "--model", "mm.oinf", cwd=tmp_path).stdout.splitlines()
    assert out[2] == "mm.oinf: 2 of 9 tensors are not used: W.2, W.3"
    value = json.loads(openinfer("check", "one.oi", "two.oi", "--model", "mm.oinf", "--json", cwd=tmp_path).stdout)
    assert value["unused"] == ["W.2", "W.3"]
    assert "unused" not in json.loads(openinfer("check", "one.oi", "--json", cwd=tmp_path).stdout)
    with PackageWriter(tmp_path / "many.oinf") as w:
        w.add_sizevar("L", 0)
        for i in range(25):
            w.add_tensor(f"t{i:02}", TensorSpec([1.0], dtype="f32"))
    (tmp_path / "none.oi").write_text("block entry { return; }")
    assert "and 5 more (--json lists them)" in openinfer("check", "none.oi", "--model", "many.oinf", cwd=tmp_path).stdout


@pytest.mark.parametrize("command", [c for c in WAYS if c not in ("graph", "check")])
def test_a_misspelt_weight_is_said(openinfer, folder, tmp_path, command):
    """It computes with zeros; every command that runs the graph says so, once."""
    words = [str(tmp_path / "out") if w == "OUT" else w for w in WAYS[command]]
    (tmp_path / "g.oi").write_text(GRAPH.replace("w: f32", "ww: f32").replace("block entry {", "block entry {\n  op neg(ww) >> ww;"))
    said = openinfer(command, tmp_path / "g.oi", "--model", folder / "plain.oinf", *words).stderr
    assert said.count("W110") == 1 and "'ww' is read before anything writes it" in said
    said = openinfer(command, tmp_path / "g.oi", "--size", "B=2", "--size", "D=3", *words).stderr
    assert said.count("W110") == 1 and "name its package with --model" in said
    if command == "run":
        words += ["--model", folder / "plain.oinf", "--strict"]
        assert "E023" in openinfer("run", tmp_path / "g.oi", *words, code=1).stderr
