"""Every explicit-form DSL example in the project's descriptions parses, prints, and reads back as the
same graph. Fragments of statements are wrapped in `block entry { … return; }`."""

import re

import pytest

from conftest import REPO

SEEDS = REPO.parent / "shared" / "seeds"
SECTIONS = ("dynamic", "volatile", "constant", "constants", "persistent", "block")
STATEMENTS = ("op", "assign", "loop", "cache", "branch", "transfer", "yield", "await", "dep", "barrier")
COMPACT = ("model", "inputs", "state", "let", "output")


def rust_blocks(text: str):
    """Code marked as Rust: ```rust … ``` and the indented body of `.. code-block:: rust`."""
    yield from re.findall(r"^```rust\n(.*?)^```", text, re.M | re.S)
    for m in re.finditer(r"^\.\. code-block:: rust\n\n((?:(?: +.*)?\n)+)", text, re.M):
        yield m[1]


def first_word(text: str) -> str:
    text = re.sub(r"//.*|/\*.*?\*/", "", text, flags=re.S if "/*" in text else 0)
    return (re.findall(r"[A-Za-z_]\w*", text) or [""])[0]


def braces(text: str, start: int) -> str:
    """What stands between the brace at `start` and its partner."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[start + 1 : i]
    raise AssertionError("unbalanced braces")


def examples():
    """(name, kind, text): kind is graph, compact, declarations, statements or rust."""
    for path in sorted(SEEDS.glob("*.txt")):
        for n, block in enumerate(rust_blocks(path.read_text(encoding="utf-8"))):
            name = f"{path.name[:3]}-{n}"
            macro = re.search(r"graph! *\{", block)
            if macro:
                body = braces(block, macro.end() - 1)
                yield name, "compact" if first_word(body) in COMPACT else "graph", body
            elif first_word(block) in SECTIONS:
                yield name, "declarations", block
            elif first_word(block) in STATEMENTS:
                yield name, "statements", f"block entry {{\n{block}\nreturn;\n}}\n"
            else:
                yield name, "rust", block


EXAMPLES = list(examples()) if SEEDS.is_dir() else []
EXPLICIT = [e for e in EXAMPLES if e[1] not in ("compact", "rust")]


def test_all_examples_are_found(shared):
    """A change in the descriptions or in how they are read must be seen, not skipped."""
    kinds = [kind for _, kind, _ in EXAMPLES]
    assert {k: kinds.count(k) for k in sorted(set(kinds))} == {
        "compact": 2,
        "declarations": 12,
        "graph": 4,
        "rust": 10,
        "statements": 5,
    }
    for _, kind, text in EXAMPLES:
        if kind == "rust":  # nothing of the language hides there
            assert not re.search(r"^\s*(op|assign|block|cache\.\w+) ", text, re.M)


@pytest.mark.parametrize("name,kind,text", EXPLICIT, ids=[e[0] for e in EXPLICIT])
def test_example(openinfer, tmp_path, name, kind, text):
    source, printed, again = (tmp_path / f for f in ("source.oi", "printed.oi", "again.oi"))
    source.write_text(text, encoding="utf-8")
    for a, b in ((source, printed), (printed, again)):
        openinfer("graph", a, "--to", "text", "-o", b)
    assert printed.read_text() == again.read_text()

    def graph(path):
        return openinfer("graph", path, "--to", "json", "--deterministic").stdout

    assert graph(source) == graph(printed)
    formatted = openinfer("fmt", source).stdout
    source.write_text(formatted, encoding="utf-8")
    assert openinfer("fmt", source).stdout == formatted
    assert graph(source) == graph(printed)


@pytest.mark.parametrize("name,kind,text", [e for e in EXPLICIT if e[1] == "graph"], ids=lambda v: str(v)[:6])
def test_whole_graphs_check(openinfer, tmp_path, name, kind, text):
    """The condensed overview graph is wrong on purpose of brevity; the others are clean."""
    source = tmp_path / "graph.oi"
    source.write_text(text, encoding="utf-8")
    overview = "K[l, step] >> h" in text
    result = openinfer("check", source, code=1 if overview else 0)
    codes = set(re.findall(r"error\[(E\d+)\]", result.stderr))
    assert codes == ({"E050", "E051"} if overview else set())
