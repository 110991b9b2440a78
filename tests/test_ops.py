"""`openinfer ops`, the reference page made from it, and the generator behind the registry."""

import json
import os
import pathlib
import re
import subprocess

import pytest

from conftest import BIN, REPO

REGISTRY = REPO / "ops/ops.json"
OPSGEN = pathlib.Path(os.environ.get("OPENINFER_BUILD") or REPO / "build") / "tools/opsgen"
ROWS = json.loads(REGISTRY.read_text())["ops"]


def page(openinfer, name: str) -> str:
    return openinfer("ops", name).stdout


def test_the_list_shows_every_op_once(openinfer):
    out = openinfer("ops").stdout
    names = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    assert sorted(names) == sorted(row["name"] for row in ROWS)
    assert "map: one scalar expression per element\n  add " in out


def test_a_page_says_everything(openinfer):
    out = page(openinfer, "relu")
    for text in (
        "relu: Leaky, clipped rectifier.",
        "op relu(x) >> out;",
        "negative_slope: number, default 0; also called alpha",
        "clamp_max: number, default inf",
        "F S i4",
        "S = i8 i16 i32 i64",
        "ONNX: Relu-14, LeakyRelu-16",
        "exactly +0",
    ):
        assert text in out, text
    assert "required unless input y is given" in page(openinfer, "shl")
    assert "left out: 1 / sqrt(Dh)" in page(openinfer, "sdpa")
    assert 'One of "propagate", "ignore".' in page(openinfer, "max")
    assert "one of i64 i32, the first unless declared otherwise" in page(openinfer, "argmax_axis")
    assert "what to says" in page(openinfer, "cast")


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_the_example_line_is_language(openinfer, row, tmp_path):
    call = next(x for x in page(openinfer, row["name"]).splitlines() if x.startswith("    op "))
    file = tmp_path / "x.oi"
    file.write_text(f"block entry {{\n  {call.strip()}\n  return;\n}}\n")
    assert call.strip() in openinfer("fmt", file).stdout


def test_unknown_names(openinfer):
    assert "unknown op 'reul': did you mean 'relu'?" in openinfer("ops", "reul", code=1).stderr
    assert "openinfer ops lists them" in openinfer("ops", "zzzzzzzz", code=1).stderr
    assert openinfer("ops", "", code=1).stdout == ""
    assert "--markdown goes neither" in openinfer("ops", "--json", "--markdown", code=2).stderr
    openinfer("ops", "add", "sub", code=2)


def test_json_holds_the_rows(openinfer):
    found = json.loads(openinfer("ops", "--json").stdout)["ops"]
    assert [x["name"] for x in found] == [row["name"] for row in ROWS]
    for got, row in zip(found, ROWS):
        assert got["class"] == row["class"] and got["doc"] == row["doc"]
        assert got["shape"] == row["shape"] and got["onnx"] == row.get("onnx", "")
        assert [a["name"] for a in got["attrs"]] == list(row.get("attrs", {}))
        assert sorted(got["flags"]) == sorted(row["flags"])
        assert len(got["inputs"]) == len(row["inputs"])
        for attr in got["attrs"]:
            assert attr["required"] or "default" in attr or "absent" in attr
    one = json.loads(openinfer("ops", "relu", "--json").stdout)
    assert one == next(x for x in found if x["name"] == "relu")
    assert one["attrs"][0]["alias"] == "alpha" and one["attrs"][0]["default"] == "0"
    assert "i4" in one["dtypes"] and "u8" not in one["dtypes"]


def test_the_reference_page_is_up_to_date(openinfer):
    want = openinfer("ops", "--markdown").stdout
    assert (REPO / "docs/ops.md").read_text() == want, (
        "docs/ops.md is old: openinfer ops --markdown > docs/ops.md"
    )
    assert openinfer("ops", "add", "--markdown").stdout.strip() in want


def test_targets(openinfer, tmp_path):
    listed = openinfer("ops", "--target", "cpu_scalar")
    assert "  div " in listed.stdout and "[F S U i4 u4]" in listed.stdout
    assert listed.stderr == "" and ", not " not in listed.stdout
    whole = openinfer("ops", "--json").stdout
    assert openinfer("ops", "--json", "--target", "cpu_scalar").stdout == whole
    assert openinfer("ops", "add", "--target", "cpu_avx2").stdout == page(openinfer, "add")
    file = tmp_path / "device.json"
    file.write_text('{"device": {"type": "cpu"}}')
    assert openinfer("ops", "--target", file).stdout == listed.stdout
    file.write_text('{"device": {"type": "toaster"}}')
    assert "toaster" in openinfer("ops", "--target", file, code=1).stderr
    assert openinfer("ops", "--target", tmp_path / "none.json", code=None).returncode in (1, 3)
    openinfer("ops", "--markdown", "--target", "cpu_scalar", code=2)


def test_targets_that_take_less(openinfer):
    """conform/test_target_ops.py compares all of it with what synth does."""
    board = openinfer("ops", "--target", "cortex_m4")
    assert re.search(r"^  softmax .*, not f64$", board.stdout, re.M) and board.stderr == ""
    assert not re.search(r"^  add .*, not ", board.stdout, re.M)
    assert re.search(r"^  dft .*, not f64$", board.stdout, re.M)
    shaders = openinfer("ops", "--target", "vulkan_generic")
    assert re.search(r"^  add .*, not f64$", shaders.stdout, re.M)
    assert shaders.stderr == "" and not re.search(r"^  sort ", shaders.stdout, re.M)
    sort = openinfer("ops", "sort", "--target", "vulkan_generic")
    assert sort.stdout == "" and "does not compute this op" in sort.stderr
    programs = openinfer("ops", "--target", "cuda_generic").stdout  # bodies of custom ops are C
    assert re.search(r"^  softmax ", programs, re.M) and not re.search(r"^  sort ", programs, re.M)
    circuits = openinfer("ops", "--target", "fpga_generic").stdout
    assert re.search(r"^  add ", circuits, re.M) and not re.search(r"^  (sort|softmax) ", circuits, re.M)


# -- the generator -----------------------------------------------------------------------------


def generate(tmp_path, text: str):
    file = tmp_path / "ops.json"
    file.write_text(text)
    return subprocess.run([OPSGEN, file, tmp_path], capture_output=True, text=True)


def changed(change) -> str:
    registry = json.loads(REGISTRY.read_text())
    change(registry, {row["name"]: row for row in registry["ops"]})
    return json.dumps(registry)


def test_the_registry_generates(tmp_path):
    result = generate(tmp_path, REGISTRY.read_text())
    assert result.returncode == 0, result.stderr
    banner = "/* generated from ops/ops.json by tools/opsgen.c, do not edit */\n"
    for name in ("ops_gen.h", "ops_gen.c"):
        assert (tmp_path / name).read_text().startswith(banner)


def test_all_that_a_row_may_hold(tmp_path):
    """What no op of today uses: repeated inputs and outputs, lists, several outputs, no input."""

    def change(registry, rows):
        registry["ops"].append(
            {
                "name": "many", "aliases": ["lots"], "class": "custom", "kernel": "many", "inputs": ["xs+"],
                "outputs": ["ys", {"name": "at?", "out": "i64"}], "dtypes": "all", "out": "like:xs",
                "shape": "same", "flags": [], "doc": "A test.",
                "attrs": {
                    "pads": {"kind": "int_list", "min": 0, "default": [1, 2], "doc": "d"},
                    "scales": {"kind": "float_list", "default": [1, 0.5], "doc": "d"},
                    "types": {"kind": "dtype_list", "default": ["f32"], "doc": "d"},
                    "eps": {"kind": "number", "default": 1e-5, "doc": "d"},
                    "to": {"kind": "dtype", "dtypes": "F", "default": "f32", "doc": "d"},
                },
            }
        )
        registry["ops"].append(
            {
                "name": "none", "class": "custom", "kernel": "many", "inputs": [], "outputs": ["ys*"], "dtypes": "F",
                "out": "F i8", "shape": "same", "flags": [], "doc": "A test.",
            }
        )

    result = generate(tmp_path, changed(change))
    assert result.returncode == 0, result.stderr
    source = (tmp_path / "ops_gen.c").read_text()
    assert ".ints = (const int64_t[]){1, 2}" in source
    assert ".floats = (const double[]){1.0, 0.5}" in source
    assert '{"lots", %d}' % len(ROWS) in source
    assert ".max_inputs = 4294967295u" in source
    folder = tmp_path / "base"
    folder.mkdir()
    for name in ("ops_gen.h", "ops_gen.c"):
        (tmp_path / name).rename(folder / name)
    compiled = subprocess.run(
        ["cc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{tmp_path}",
         f"-I{REPO}/include", f"-I{REPO}/src", folder / "ops_gen.c"],
        capture_output=True, text=True,
    )
    assert compiled.returncode == 0, compiled.stderr


def attr(name, **values):
    return lambda reg, rows: rows["relu"]["attrs"].__setitem__(name, {"doc": "d", **values})


MISTAKES = {
    "op 'relu': unknown key 'dtyps'": lambda reg, rows: rows["relu"].update(dtyps="F"),
    "op 'relu': key 'dtypes' is missing": lambda reg, rows: rows["relu"].pop("dtypes"),
    "op 'relu': key 'doc' must be string": lambda reg, rows: rows["relu"].update(doc=3),
    "op 'relu': unknown class 'mop'": lambda reg, rows: rows["relu"].update({"class": "mop"}),
    "op 'relu': \"order\" is for class \"reduce\"": lambda reg, rows: rows["relu"].update(order="serial"),
    "op 'sum_axis': unknown order 'lanes'": lambda reg, rows: rows["sum_axis"].update(order="lanes"),
    "op 'relu': unknown tolerance 'some'": lambda reg, rows: rows["relu"].update(tolerance="some"),
    "tolerances: 'f16' is a number between 0 and 1": lambda reg, rows: reg["tolerances"].update(f16=2),
    "op 'sum_axis': unknown order 'any 4'": lambda reg, rows: rows["sum_axis"].update(order="any 4"),
    "op 'sum_axis': order 'lanes 12': lanes are 2, 4, 8": lambda reg, rows: rows["sum_axis"].update(order="lanes 12"),
    "op 'sort': class \"custom\" wants \"kernel\"": lambda reg, rows: rows["sort"].pop("kernel"),
    "op 'relu': class \"map\" has no \"kernel\"": lambda reg, rows: rows["relu"].update(kernel="relu"),
    "op 'sort': \"kernel\": '9x' is not an identifier": lambda reg, rows: rows["sort"].update(kernel="9x"),
    "op 'relu': unknown shape 'shap'": lambda reg, rows: rows["relu"].update(shape="shap"),
    "op 'relu': unknown flag 'fast'": lambda reg, rows: rows["relu"].update(flags=["fast"]),
    "op 'relu': 'f33' is no element type": lambda reg, rows: rows["relu"].update(dtypes="F f33"),
    "op 'relu': a set of element types is empty": lambda reg, rows: rows["relu"].update(dtypes=""),
    "op 'relu': there is no attribute 'to'": lambda reg, rows: rows["relu"].update(out="attr:to"),
    "op 'relu': attribute 'clamp_max' must be of kind 'dtype'": lambda reg, rows: rows["relu"].update(out="attr:clamp_max"),
    "op 'relu': there is no input 'y'": lambda reg, rows: rows["relu"].update(out="like:y"),
    "op 'relu': flag \"acc\" and out \"acc\" go together": lambda reg, rows: rows["relu"]["flags"].append("acc"),
    "op 'add': shape \"broadcast\" wants the flag": lambda reg, rows: rows["add"]["flags"].remove("broadcast"),
    "op 'add': the name 'add' is already taken": lambda reg, rows: reg["ops"].append(dict(rows["add"])),
    "op 'sub': the name 'add' is already taken": lambda reg, rows: rows["sub"].update(aliases=["add"]),
    "op 'relu': '9x' is not an identifier": lambda reg, rows: rows["relu"].update(aliases=["9x"]),
    "op 'relu': 'a': unknown kind 'nomber'": attr("a", kind="nomber", required=True),
    "op 'relu': 'a': unknown key 'defalt'": attr("a", kind="int", defalt=3, required=True),
    "op 'relu': 'a': wants exactly one of": attr("a", kind="int"),
    "op 'relu': 'b': wants exactly one of": attr("b", kind="int", default=1, required=True),
    "op 'relu': 'a': the default does not suit kind 'int'": attr("a", kind="int", default=1.5),
    "op 'relu': 'a': the default does not suit kind 'bool'": attr("a", kind="bool", default=1),
    "op 'relu': 'a': the default does not suit kind 'number'": attr("a", kind="number", default="big"),
    "op 'relu': 'a': the default does not suit kind 'dtype'": attr("a", kind="dtype", default="f33"),
    "op 'relu': 'a': the default does not suit kind 'axes'": attr("a", kind="axes", default=["x"]),
    "op 'relu': 'a': the default is not among": attr("a", kind="string", default="x", values=["y"]),
    "op 'relu': 'a': the default is below": attr("a", kind="int", default=-1, min=0),
    "op 'relu': 'a': \"min\" is for kinds of integers": attr("a", kind="bool", default=True, min=0),
    "op 'relu': 'a': \"values\" is for kind 'string'": attr("a", kind="int", default=1, values=["y"]),
    "op 'relu': 'a': \"in_range\" is for kind 'number'": attr("a", kind="int", default=1, in_range=True),
    "op 'relu': 'a': \"dtypes\" is for kind 'dtype'": attr("a", kind="int", default=1, dtypes="F"),
    "op 'relu': 'a': key 'doc' is missing": lambda reg, rows: rows["relu"]["attrs"].update(a={"kind": "int", "default": 1}),
    "op 'relu': 'a': there is no input 'z'": attr("a", kind="int", default=1, input="z"),
    "op 'relu': 'a': the alias 'clamp_max' is another attribute": attr("a", kind="int", default=1, alias="clamp_max"),
    "op 'relu': 'a': must be an object or the name of a shared": lambda reg, rows: rows["relu"]["attrs"].update(a="nothing"),
    "op 'add': 'xs': only the last may repeat": lambda reg, rows: rows["add"].update(inputs=["xs*", "y"]),
    "op 'add': 'y': a required one cannot follow an optional one": lambda reg, rows: rows["add"].update(inputs=["x?", "y"]),
    "op 'add': 'x y' is no name": lambda reg, rows: rows["add"].update(inputs=["x y", "y"]),
    "op 'add': \"outputs\" is empty": lambda reg, rows: rows["add"].update(outputs=[]),
    "unknown kind 'colour'": lambda reg, rows: reg["vocabulary"]["kinds"].update(colour="red"),
    "unknown key 'opps'": lambda reg, rows: reg.update(opps=[]),
    "key 'vocabulary' is missing": lambda reg, rows: reg.pop("vocabulary"),
    f"op 'number {len(ROWS)}': a row is an object": lambda reg, rows: reg["ops"].append(3),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_names_its_row_and_writes_nothing(tmp_path, message):
    result = generate(tmp_path, changed(MISTAKES[message]))
    assert result.returncode == 1
    assert f"error: {message}" in result.stderr, result.stderr
    assert [x.name for x in tmp_path.iterdir()] == ["ops.json"]


def test_broken_text(tmp_path):
    twice = REGISTRY.read_text().replace('"name": "relu",', '"name": "relu", "name": "relu",')
    assert "key 'name' is given twice" in generate(tmp_path, twice).stderr
    assert generate(tmp_path, '{"ops": [}').returncode == 1
    assert ":2: error: not a JSON object" in generate(tmp_path, '{\n"ops": }').stderr
    assert generate(tmp_path, "[]").returncode == 1
    assert generate(tmp_path, "").returncode == 1
    assert subprocess.run([OPSGEN], capture_output=True).returncode == 2
    missing = subprocess.run([OPSGEN, tmp_path / "none.json", tmp_path], capture_output=True, text=True)
    assert missing.returncode == 3 and "cannot read" in missing.stderr


# what other libraries call an op -> what it is called here
ELSEWHERE = {
    "ReduceMax": "max_axis", "LayerNormalization": "layernorm", "Clip": "clamp", "MatMul": "matmul",
    "Conv2d": "conv2d", "AvgPool2d": "avg_pool", "LayerNorm": "layernorm", "layer_norm": "layernorm",
    "clip": "clamp", "argmax": "argmax_axis", "permute": "transpose", "cat": "concat", "isnan": "is_nan",
    "scaled_dot_product_attention": "sdpa", "True_Divide": "div", "BatchNormalization": "batchnorm",
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_names_of_other_libraries_lead_to_ours(openinfer, name):
    wanted = f"did you mean '{ELSEWHERE[name]}'?"
    assert wanted in openinfer("ops", name, code=1).stderr
    said = openinfer("check", "-", stdin=f"dynamic {{ x: f32[2]; }} block entry {{ op {name}(x) >> x; return; }}", code=1)
    assert wanted in said.stderr


def test_other_names_are_no_names_of_ours(openinfer):
    """A word that hints at an op is no op itself, and hints at one op only."""
    rows = json.loads((REPO / "ops" / "ops.json").read_text())["ops"]
    ours = {n for row in rows for n in (row["name"], *row.get("aliases", []))}
    others = [w for row in rows for w in row.get("known_as", "").split()]
    assert len(set(others)) == len(others) and not ours & set(others)


def call_error(openinfer, call, code=1):
    text = f"dynamic {{ x: f32[3, 4]; }} volatile {{ g: f32[3] @init(1.0); }}\nblock entry {{ op {call} >> x; return; }}"
    return openinfer("check", "-", stdin=text, code=code).stderr


def test_an_unknown_attribute_lists_the_known_ones(openinfer):
    assert "the attributes of softmax are: axis\n" in call_error(openinfer, "softmax(x, dim=1)")
    said = call_error(openinfer, "layernorm(x, g, epz=1.0)")
    assert "did you mean 'eps'? The attributes of layernorm are: axis, eps\n" in said
    assert "neg has none" in call_error(openinfer, "neg(x, axis=1)")


def test_norms_say_which_shape_fits(openinfer):
    assert "'scale' is [3], 'x' [3, 4]; [4] fits" in call_error(openinfer, "rmsnorm(x, g)")
    assert "'scale' is [3], 'x' [3, 4]; [4] fits" in call_error(openinfer, "batchnorm(x, g, g, g, g)")


def test_text_wants_quotes(openinfer, tmp_path):
    hint = 'text stands in quotes: approximate="tanh"'
    said = call_error(openinfer, "gelu(x, approximate=tanh)", code=0)
    assert "W111" in said and hint in said
    (tmp_path / "g.oi").write_text("dynamic { x: f32[3]; } block entry { op gelu(x, approximate=tanh) >> x; return; }")
    said = openinfer("run", tmp_path / "g.oi", code=1).stderr
    assert "E030" in said and hint in said
    assert "W111" not in call_error(openinfer, "gelu(x, approximate=nothing)", code=0)


def test_a_missing_model_is_said(openinfer, tmp_path):
    for text in (
        "dynamic { x: f32[B]; } block entry { return; }",
        "constant { w: f32[2]; } block entry { return; }",
        "dynamic { x: f32[2]; } block entry { op leaky(x) >> x; return; }".replace("leaky(x)", "relu(x, alpha=slope)"),
        "dynamic { x: f32[2]; } block entry { loop l (i in 0..L) { op neg(x) >> x; } return; }",
    ):
        (tmp_path / "g.oi").write_text(text)
        said = openinfer("run", tmp_path / "g.oi", code=1).stderr
        assert "no model is given: name its package with --model" in said, text


def test_the_example_of_slice_is_not_empty(openinfer):
    assert "op slice(x, starts=[0, 1], ends=[2, 3]) >> out;" in openinfer("ops", "slice").stdout
