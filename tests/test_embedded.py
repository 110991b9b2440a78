"""Diagnostics of OI_GRAPH point into the C file, though the macro gets its arguments as one line without comments."""

import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import BIN, REPO

BUILD = pathlib.Path(os.environ.get("OPENINFER_BUILD") or pathlib.Path(BIN).parent.parent)

# Two calls. The wrong name of the second one has its like in the first, in a comment and in a string.
PROGRAM = r"""#include <openinfer.h>
#include <stdio.h>
/* OI_GRAPH(dynamic { x: f32[4]; } volatile { y: f32[4]; }) */
static oi_graph *first(void)
{
    return OI_GRAPH(dynamic { x: f32[4]; } volatile { y: f32[4]; }
                    block entry { op relu(x) >> y; return; });
}

static oi_graph *second(void)
{
    return OI_GRAPH /* the call */ (
        dynamic { x: f32[4]; } // ) } wrong
        volatile {
            y: f32[4]; /* a comment over
                          two lines, with "quotes" and /* */
            z: f32[4] @ref("a // b /* c");
        }
        block entry {
            op relu(x) >> y; /* hé */ op relu(y) >> y;
            STATEMENT
            return;
        });
}

int main(void)
{
    oi_diag *d = oi_diag_new();
    oi_graph *one = first(), *two = second();
    if (oi_graph_check(one, NULL, d) != OI_OK)
        return 1;
    if (oi_graph_check(two, NULL, d) != OI_OK)
        oi_diag_print(d, stderr, false);
    oi_graph_free(one);
    oi_graph_free(two);
    oi_diag_free(d);
    return 0;
}
"""
PARSE = 'op relu(x) >> ; // nothing to write'
CHECK = '/* é */ op relu(wrong) >> \\\n                y;'
END = "loop l (i in 0..2) {"


def link(compiler, source, cwd):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    words = [compiler, "-Wall", "-Werror", "-Wno-comment", f"-I{REPO / 'include'}", source]
    words += [BUILD / "libopeninfer.a", "-ljson-c", "-lm", "-pthread", "-o", "program"]
    done = subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def said(cwd):
    return subprocess.run([cwd / "program"], cwd=cwd, capture_output=True, text=True).stderr


def place(text, what):
    """LINE:COL of the last occurrence of `what`."""
    at = text.rindex(what)
    return f"{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("statement, at", [(PARSE, "; // nothing"), (CHECK, "wrong")], ids=["syntax", "check"])
def test_lines_are_those_of_the_file(tmp_path, compiler, statement, at):
    text = PROGRAM.replace("STATEMENT", statement)
    (tmp_path / "program.c").write_text(text)
    link(compiler, "program.c", tmp_path)
    line, col = place(text, at).split(":")
    errors = said(tmp_path)
    shown = text.splitlines()[int(line) - 1]
    assert errors.startswith(f"program.c:{line}:{col}: error["), errors
    assert f"{line:>5} | {shown}\n      | {' ' * (int(col) - 1)}^" in errors, errors


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_without_the_file(tmp_path, compiler):
    """The line is the compiler's for the call; the message says what its column counts."""
    text = PROGRAM.replace("STATEMENT", PARSE)
    (tmp_path / "program.c").write_text(text)
    link(compiler, "program.c", tmp_path)
    (tmp_path / "program.c").rename(tmp_path / "elsewhere.c")
    begin, end = place(text, "OI_GRAPH /*").split(":")[0], place(text, "});\n}\n\nint main").split(":")[0]
    for _ in range(2):
        errors = said(tmp_path)
        where = errors.split(":")
        assert where[0] == "program.c" and where[1] in (begin, end), errors
        assert f"(column {where[2]} of the text of OI_GRAPH in line {where[1]})" in errors, errors
        (tmp_path / "program.c").write_text(text.replace("y: f32[4]; /* a", "y: f32[5]; /* a"))  # another version
    (tmp_path / "program.c").unlink()
    os.mkfifo(tmp_path / "program.c")  # is not waited for
    assert "of the text of OI_GRAPH" in said(tmp_path)


def test_an_end_that_is_missing(tmp_path):
    text = PROGRAM.replace("STATEMENT", END)
    (tmp_path / "program.c").write_text(text)
    link("gcc", "program.c", tmp_path)
    line = place(text, "});\n}\n\nint main").split(":")[0]
    assert f"program.c:{line}:" in said(tmp_path)


def test_calls_with_one_text(tmp_path):
    """The compiler's line tells them apart."""
    call = "OI_GRAPH(dynamic { x: f32[4]; }\n block entry {\n  op relu(x) >> nowhere;\n  return;\n })"
    text = "#include <openinfer.h>\n#include <stdio.h>\nint main(void)\n{\n    oi_diag *d = oi_diag_new();\n"
    for i in range(3):
        text += f"    oi_graph *g{i} = {call};\n    (void)oi_graph_check(g{i}, 0, d);\n    oi_graph_free(g{i});\n"
    text += "    oi_diag_print(d, stderr, false);\n    oi_diag_free(d);\n    return 0;\n}\n"
    (tmp_path / "program.c").write_text(text)
    for compiler in ("gcc", "clang"):
        link(compiler, "program.c", tmp_path)
        lines = [i + 1 for i, line in enumerate(text.splitlines()) if "nowhere" in line]
        found = [int(line.split(":")[1]) for line in said(tmp_path).splitlines() if line.startswith("program.c:") and "error" in line]
        assert found == lines
