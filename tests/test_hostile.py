"""Text from outside never becomes code: hostile strings in every text field of every input."""

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree

import pytest
from openinfer.oinf import TensorSpec
from openinfer.oinf.write import PackageWriter

# Each would end a comment, a string, a tag, a line, a recipe or an argument. PWNED must never stand outside of a
# comment or a string of the outputs, and no file of that name may appear.
TEXTS = [
    "*/ PWNED int main[-1]; /*",
    "/*/ PWNED",
    '"; PWNED',
    '\\" PWNED \\',
    "PWNED ??/",
    "$(shell touch PWNED) $(PWNED) ${PWNED} `touch PWNED`",
    "]] ]=] PWNED",
    "</title></code><script>PWNED</script>",
    "\" onload='PWNED' <!-- --> ]]>",
    "%s%n PWNED \u202e\u2066",
]
FIELDS = ["name", "driver"]


def code_of(text):
    """C or a linker script without comments and strings."""
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', " ", text, flags=re.S)


def judge(folder, compilers=("gcc", "clang")):
    assert not list(folder.parent.rglob("PWNED")), "a command ran"
    for path in folder.iterdir():
        text = path.read_bytes().decode("utf-8", "strict") if path.suffix != ".bin" else ""
        if path.suffix in (".c", ".h", ".ld", ".comp"):
            assert not re.search(r"\bPWNED\b", code_of(text)), path
            assert not re.search("[\u202a-\u202e\u2066-\u2069]", text), path
        if path.name == "Makefile" or path.suffix == ".txt":
            logical = re.sub(r"\\\n", " ", text)
            assert not any(re.search(r"\bPWNED\b", line) for line in logical.splitlines() if not line.startswith("#")), path
        if path.suffix == ".json":
            json.loads(text)
        if path.suffix == ".html":
            assert "<script" not in text and "onload='" not in text, path
    for compiler in compilers:
        if not shutil.which(compiler) or not (folder / "Makefile").exists():
            continue
        for path in folder.glob("*.c"):
            run = subprocess.run(
                [compiler, "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", path],
                capture_output=True, text=True)  # fmt: skip
            assert run.returncode == 0, run.stderr


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A graph and a package full of such texts; the graph's own file is called so too."""
    folder = tmp_path_factory.mktemp("hostile")
    package = folder / "model.oinf"
    with PackageWriter(package) as w:
        for i, text in enumerate(TEXTS):
            w.add_tensor(stand_in(i, text), TensorSpec([1.0 + i, 2.0], dtype="f32"))
            w.add_metadata(stand_in(i, text).upper(), i)
    data = package.read_bytes()
    for i, text in enumerate(TEXTS):  # our own writer refuses such names
        for name in (stand_in(i, text), stand_in(i, text).upper()):
            data = data.replace(name.encode(), text.encode())
    package.write_bytes(data)
    lines = ["dynamic { x: f32[2]; }", "volatile { y: f32[2]; }", "constant {"]
    lines += [f"  c{i}: f32[2] @ref({json.dumps(text, ensure_ascii=False)});" for i, text in enumerate(TEXTS)]
    lines += ["}", "block entry {", "  transfer x >> y;"]
    lines += [f"  op add(y, c{i}) >> y; /* /* */ {text.replace('*/', '').replace('/*', '')} */" for i, text in enumerate(TEXTS)]
    lines += ["  return;", "}"]
    graph = folder / "*??PWNED \"$(touch PWNED)\" <b> '#.oi"
    graph.write_text("\n".join(lines) + "\n")
    return graph, "--model", package


def stand_in(i, text):
    return "abcdefghij"[i] * len(text.encode())


def device_file(folder, base, text):
    path = folder / "device.json"
    path.write_text(json.dumps({"extends": base, "device": {field: text for field in FIELDS}}))
    return path


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("base", ["cpu_scalar", "cortex_m4"])
def test_device_texts(openinfer, tmp_path, base, text):
    graph = tmp_path / "g.oi"
    graph.write_text("dynamic { x: f32[4]; } volatile { y: f32[4]; } block entry { op neg(x) >> y; return; }\n")
    out = tmp_path / "out"
    openinfer("synth", graph, "--target", device_file(tmp_path, base, text), "-o", out)
    judge(out, () if base == "cortex_m4" else ("gcc", "clang"))
    assert json.loads((out / "plan.json").read_text())["device"]["name"] == text
    assert json.loads((out / "device.json").read_text())["device"]["name"] == text


def test_device_runs_no_code(openinfer, tmp_path):
    """The way in that was found: verify builds and runs what synth wrote."""
    graph = tmp_path / "g.oi"
    graph.write_text("dynamic { x: f32[4]; } volatile { y: f32[4]; } block entry { op neg(x) >> y; return; }\n")
    text = '*/ #include <stdlib.h>\\n __attribute__((constructor)) static void f(void) { system("touch PWNED"); } /*'
    openinfer("verify", graph, "--target", device_file(tmp_path, "cpu_scalar", text), cwd=tmp_path)
    assert not (tmp_path / "PWNED").exists()


def test_every_text_field_of_a_device_is_known():
    """A new field of free text belongs into the test above."""
    from conftest import REPO

    rows = re.findall(r'TEXT\("([^"]+)", OI_FIELD_(?:TEXT|LOWER),', (REPO / "src/device/fields.c").read_text())
    assert sorted(rows) == ["device.driver", "device.name", "device.vendor", "fpga.family", "fpga.part"]


@pytest.mark.parametrize("section", [".a\"", "a) *(b", "a;", "a b", "*/", "a\\"])
def test_section_names_are_checked(openinfer, tmp_path, section):
    path = tmp_path / "device.json"
    path.write_text(json.dumps({"extends": "cortex_m4", "mcu": {"ram_section": section}}))
    assert "E090" in openinfer("targets", path, code=1).stderr


@pytest.mark.parametrize("target", ["cpu_scalar", "cortex_m4", "vulkan_generic"])
def test_graph_and_package_texts(openinfer, words, tmp_path, target):
    out = tmp_path / "out"
    more = ["--device-only"] if target == "vulkan_generic" else ["--weights", "embed"]
    openinfer("synth", *words, "--target", target, "-o", out, *more)
    judge(out, () if target != "cpu_scalar" else ("gcc", "clang"))


@pytest.mark.parametrize("text", TEXTS)
def test_program_and_graph_names(openinfer, words, tmp_path, text):
    out = tmp_path / "out"
    openinfer("synth", *words, "--name", text, "--target", "cpu_scalar", "-o", out)
    judge(out, ("gcc",))


def test_pictures(openinfer, words, tmp_path):
    for kind in ("svg", "dot", "html"):
        openinfer("graph", words[0], "--to", kind, "-o", tmp_path / f"g.{kind}")
    svg = (tmp_path / "g.svg").read_text()
    root = xml.etree.ElementTree.fromstring(svg)
    assert not [e for e in root.iter() if e.tag.endswith("script") or "onload" in e.attrib]
    page = (tmp_path / "g.html").read_text()
    assert "<script" not in page and "<b>" not in page
    dot = re.sub(r'"(?:\\.|[^"\\])*"', "", (tmp_path / "g.dot").read_text())
    assert "PWNED" not in dot and "touch" not in dot and "<" not in dot


def test_json_outputs(openinfer, words, tmp_path):
    listed = json.loads(openinfer("inspect", words[2], "--json").stdout)
    assert set(TEXTS) <= set(listed["tensors"]) & set(listed["metadata"])
    out = tmp_path / "g.json"
    openinfer("graph", words[0], "--to", "json", "-o", out)
    text = json.dumps(json.loads(out.read_text()), ensure_ascii=False)
    assert all(json.dumps(t, ensure_ascii=False)[1:-1] in text for t in TEXTS)
