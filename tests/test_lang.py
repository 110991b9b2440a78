"""tests/lang/*.oi carry their answers: what `openinfer check` must say of each line, and no more.

    op add(a, b) >> y;  // expect error: E051 cannot broadcast
    x: f32[2];          // expect note: declared here

An answer is a code, "at COLUMN" if the column matters, and a part of the text or of the hint. A file
holds one case, or several that start with "// case: NAME", each a graph of its own; behind the name
may stand "strict", "model=NAME" (a package that lang/lang_packages.py builds) and "json", which also sends the
graph through Graph JSON; there only codes count. A case without answers must be clean. Errors and
warnings are compared both ways, notes must only be there.
"""

import json
import pathlib
import re
import sys

import pytest

from conftest import REPO

FOLDER = REPO / "tests" / "lang"
sys.path.insert(0, str(FOLDER))
import lang_packages  # noqa: E402

EXPECT = re.compile(r"expect (error|warning|note):\s*([EW]\d{3})?\s*(?:at (\d+)\s*)?((?:(?!// expect).)*)")

# Every code of the specification. Those that need an executor, a target or the compact form follow
# with these.
CODES = """E001 E002 E003 E004 E005 E006 E007 E010 E011 E012 E013 E014 E015 E016 E017 E018 E019 E020
E021 E022 E023 E024 E025 E030 E031 E032 E033 E034 E035 E036 E037 E038 E039 E041 E042 E043 E044 E045 E046 E047 E048
E050 E051 E052 E053 E054 E055 E056 E057 E060 E062 E070 E071 E072 E073 E074 E075 E076 E077 E080 E081
E082 E083 E084 E085 W101 W102 W103 W104 W106 W107 W108 W109 W110""".split()
EXECUTOR = {  # these need one: src/sim/*_test.c tries them
    "E020": "missing input",
    "E021": "illegal insert",
}
LATER = {
    **EXECUTOR,
    "E062": "unbounded dim: needs a static target",
    **{f"E08{i}": "compact form" for i in range(6)},
}


class Case:
    def __init__(self, path: pathlib.Path, name: str, words: list[str], first: int, lines: list[str]):
        self.path, self.name, self.words = path, name, words
        # lines before the case stay as empty ones, so that positions are those of the file
        self.text = "\n" * (first - 1) + "\n".join(lines) + "\n"
        self.expected = []
        for n, line in enumerate(lines, first):
            for m in EXPECT.finditer(line):
                col = int(m[3]) if m[3] else None
                self.expected.append((m[1], n, m[2] or "", col, m[4].strip()))

    def __str__(self):
        return f"{self.path.stem}:{self.name}"


def cases():
    for path in sorted(FOLDER.glob("*.oi")):
        lines = path.read_text(encoding="utf-8").splitlines()
        starts = [i for i, line in enumerate(lines) if line.startswith("// case:")]
        if not starts:
            yield Case(path, "all", [], 1, lines)
        for a, b in zip(starts, [*starts[1:], len(lines)]):
            name, *words = lines[a].removeprefix("// case:").split()
            yield Case(path, name, words, a + 1, lines[a:b])


CASES = list(cases())


def matches(message, expected) -> bool:
    severity, line, code, col, text = expected
    return (
        message["severity"] == severity
        and message["line"] == line
        and (not code or message["code"] == code)
        and (col is None or message["col"] == col)
        and (text in message["text"] or text in message["hint"])
    )


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """name -> the package that lang_packages.py writes under that name, made when first asked for."""
    folder = tmp_path_factory.mktemp("models")

    def package(name):
        path = folder / f"{name}.oinf"
        if not path.exists():
            with lang_packages.PackageWriter(path) as w:
                getattr(lang_packages, name)(w)
        return path

    return package


def messages_of(openinfer, packages, graph, case, expected_code):
    args = ["check", graph, "--json"]
    for word in case.words:
        if word == "strict":
            args.append("--strict")
        elif word.startswith("model="):
            args += ["--model", packages(word.removeprefix("model="))]
        else:
            assert word == "json", f"{case}: unknown word '{word}'"
    result = openinfer(*args, code=expected_code)
    found = json.loads(result.stdout)["messages"]
    return [m for m in found if not m["file"].endswith(".oinf")]  # what opening a package says


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(openinfer, packages, tmp_path, case):
    graph = tmp_path / f"{case.name}.oi"
    graph.write_text(case.text, encoding="utf-8")
    found = messages_of(openinfer, packages, graph, case, int(any(e[0] == "error" for e in case.expected)))
    wanted = [e for e in case.expected if e[0] != "note"]
    got = [m for m in found if m["severity"] != "note"]
    shown = "\n".join(f"{m['line']}:{m['col']}: {m['severity']} {m['code']} {m['text']} ({m['hint']})" for m in found)
    for e in case.expected:
        pool = got if e[0] != "note" else found
        hit = next((m for m in pool if matches(m, e)), None)
        assert hit, f"{case}: line {e[1]}: expected {e[0]} {e[2]} {e[4]}\nfound:\n{shown}"
        if e[0] != "note":
            got.remove(hit)
    assert not got, f"{case}: not expected:\n{shown}"
    lines = [m["line"] for m in found if m["severity"] != "note"]
    assert lines == sorted(lines), "messages stand in the order of the text"
    assert len(wanted) == len(lines)


@pytest.mark.parametrize("case", [c for c in CASES if "json" in c.words], ids=str)
def test_case_as_json(openinfer, packages, tmp_path, case):
    """The same graph without source text: the same codes, at JSON pointers. Loading stops at errors
    before anybody asks for warnings."""
    graph = tmp_path / "case.oi"
    graph.write_text(case.text, encoding="utf-8")
    as_json = tmp_path / "case.json"
    openinfer("graph", graph, "--to", "json", "-o", as_json)
    found = messages_of(openinfer, packages, as_json, case, int(any(e[0] == "error" for e in case.expected)))
    severity = "error" if any(e[0] == "error" for e in case.expected) else "warning"
    got = sorted(m["code"] for m in found if m["severity"] == severity)
    assert got == sorted(e[2] for e in case.expected if e[0] == severity), found
    for m in found:
        assert m["line"] == 0 and m["pointer"].startswith(("/blocks", "/vars")), m


def test_every_code_has_a_case():
    seen = {e[2] for c in CASES for e in c.expected if e[0] != "note"}
    assert seen <= set(CODES), f"not in the specification: {seen - set(CODES)}"
    assert not seen & set(LATER)
    missing = set(CODES) - set(LATER) - seen
    assert not missing, f"no case for {sorted(missing)}"


def test_every_code_of_a_run_is_tried():
    """What the executor and the kernels raise has a test that makes a run raise it; what `check` always finds
    before (E048, a dtype that differs) cannot be reached by a graph."""
    raised = set()
    for path in [*(REPO / "src/sim").glob("*.c"), *(REPO / "src/kernel").glob("*.c")]:
        if not path.name.endswith("_test.c"):
            raised |= set(re.findall(r'"(E0\d\d)"', path.read_text(encoding="utf-8")))
    tried = "".join(path.read_text(encoding="utf-8") for path in (REPO / "src").glob("*/*_test.c"))
    missing = {code for code in raised | set(EXECUTOR) if f'"{code}"' not in tried} - {"E048"}
    assert not missing, f"no unit test makes a run say {sorted(missing)}"


def test_every_family_has_accepting_cases():
    for path in {c.path for c in CASES}:
        clean = [c for c in CASES if c.path == path and not any(e[0] == "error" for e in c.expected)]
        assert clean, f"{path.name} has only rejecting cases"


def test_broken_state_specs(openinfer, packages, tmp_path):
    """Mistakes of the model are said of the model."""
    graph = tmp_path / "graph.oi"
    names = "abcdefg"
    graph.write_text("persistent { " + "".join(f"{n}: f32[1]; " for n in names) + "}\nblock entry { return; }\n")
    model = packages("broken_specs")
    error = openinfer("check", graph, "--model", model, code=1).stderr
    for n, wanted in {
        "a/": "wants an object",
        "b/dtype": "wants an element type",
        "c/dims": "wants a list of size expressions",
        "d/dims": "wants a size expression",
        "e/dims": "found the end of the text",
        "f/fixed": "wants an object of size expressions",
    }.items():
        assert f"{model}:/oi.state.{n}: error" in error and wanted in error, error
    assert error.count("error") == len(names)
