"""The rules of the house that a program can check: sizes, includes, headers, lists that must agree."""

import json
import pathlib
import platform
import re
import shutil
import subprocess

import pytest

from conftest import REPO

C_FILES = sorted(
    p.relative_to(REPO)
    for folder in ("src", "cli", "chat", "include", "tests", "tools", "examples")
    for p in (REPO / folder).rglob("*.[ch]")
)
# Who may include whom. A folder may always include itself.
MAY_INCLUDE = {
    "base": set(),
    "body": {"base"},
    "kernel": {"base", "body"},
    "oinf": {"base"},
    "graph": {"base"},
    "device": {"base"},
    "dsl": {"base", "graph"},
    "check": {"base", "graph", "oinf"},
    "program": {"base", "graph", "oinf", "kernel"},
    "compact": {"base", "graph", "oinf", "dsl", "program"},
    "sim": {"base", "graph", "oinf", "dsl", "program", "kernel", "recipe"},
    "recipe": {"base", "body", "kernel", "device"},
    "plan": {"base", "graph", "program", "kernel", "device", "recipe"},
    "synth": {"base", "graph", "oinf", "program", "kernel", "device", "recipe", "plan"},
    "emit": {"base", "graph", "oinf", "program", "kernel", "device", "recipe", "plan"},
    "driver": {"base", "graph", "oinf", "program", "kernel", "device", "plan", "synth", "emit"},
    "gpu": {"base", "graph", "program", "kernel", "device", "recipe", "plan", "synth", "emit", "sim"},
    "verify": {"base", "device", "recipe", "plan"},
}


def read(path: pathlib.Path) -> str:
    return (REPO / path).read_text(encoding="utf-8")


def test_there_is_something_to_check():
    assert len(C_FILES) > 20


@pytest.mark.parametrize("path", C_FILES, ids=str)
def test_files_are_under_800_lines(path):
    whole_api = path == pathlib.Path("include/openinfer.h")  # one header by design: users read one file
    assert read(path).count("\n") <= (1600 if whole_api else 800)


@pytest.mark.parametrize("path", C_FILES, ids=str)
def test_functions_are_under_60_lines(path):
    """A function starts at a "{" in column 0 and ends at the next "}" there. Lines that are only text
    or a row of the test list do not count; only a lexer's or a dispatcher's switch may be longer."""
    start = None
    lines = read(path).splitlines()
    for n, line in enumerate(lines, 1):
        if line == "{":
            start = n
        elif line == "}" and start is not None:
            body = [x for x in lines[start : n - 1] if not re.match(r'\s*(".*"[;,)]*$|cmocka_unit_test)', x)]
            long = len(body) > 60
            assert not long or any("switch (" in x for x in body), f"{path}:{start}: {n - start} lines"
            start = None


@pytest.mark.parametrize("path", [p for p in C_FILES if p.parts[0] in ("src", "cli")], ids=str)
def test_includes_point_one_way(path):
    included = re.findall(r'^#include "([^"]+)"', read(path), re.M)
    if path.parts[0] == "cli":
        assert set(included) <= {"cli.h", "commands.h", "openinfer.h"}
        return
    own = path.parts[1]
    assert own in MAY_INCLUDE, f"say in tests/test_layout.py what src/{own} may include"
    for name in included:
        folder = name.split("/")[0]
        if "/" in name and folder != own:
            assert folder in MAY_INCLUDE[own], f"{path} includes {name}"


TUNING = re.compile(r"(?:->|\.)tuning\.")


@pytest.mark.parametrize("path", [p for p in C_FILES if p.parts[:2] == ("src", "emit")], ids=str)
def test_emitters_weigh_nothing(path):
    """What a device is tuned for is for passes; a target tells them in oi_caps."""
    if path.name != "target.c":
        assert not TUNING.search(read(path)), f"{path} decides by tuning"


DEVICE_TYPE = re.compile(r"\bOI_DEVICE_(GPU|CPU|MCU|FPGA)\b")


@pytest.mark.parametrize("path", [p for p in C_FILES if p.parts[0] == "src"], ids=str)
def test_only_targets_know_the_type_of_a_device(path):
    """Passes ask what a target can do (oi_caps), never what kind of device it is for."""
    is_target = path.parts[1] == "emit" and len(path.parts) > 3
    if path.parts[1] == "device" or is_target or path.name.endswith("_test.c"):
        return
    assert not DEVICE_TYPE.search(read(path)), f"{path} asks for the type of a device"


HELPERS = re.findall(r'X\(\w+, "(\w+)"', read(pathlib.Path("src/base/expr.h")))


@pytest.mark.parametrize("path", [p for p in C_FILES if p.parts[:2] in (("src", "synth"), ("src", "emit"), ("src", "recipe"))], ids=str)
def test_no_pass_compares_ops_as_text(path):
    """Ops and helpers are ids (oi_op_id, oi_helper_id); what passes ask of them is a flag or a field of the row."""
    assert len(HELPERS) > 50
    if path.name.endswith("_test.c"):
        return
    ops = {name for row in json.loads(read(pathlib.Path("ops/ops.json")))["ops"] for name in [row["name"], *row.get("aliases", [])]}
    ops -= {"min", "max"}  # also attributes
    code = re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)
    for call in re.findall(r"\b(?:strn?cmp|strstr|memcmp|is_word|is_call)\(((?:[^()]|\([^()]*\))*)\)", code):
        assert "op->name" not in call and "helper->name" not in call, f"{path} compares {call}"
        if re.search(r"(?:->|\.)s\s*,", call):
            continue  # an attribute's word
        named = set(re.findall(r'"(\w+)"', call)) & (ops | set(HELPERS))
        assert not named, f"{path} compares with the name of {named}"
    assert "oi_meaning_parse" not in code and "oi_op_find(" not in code, f"{path} looks for ops or parses at run time"


# Who may search text, and why. Decisions are in the plan; no emitter finds them in what it printed.
READS_TEXT = {
    "helpers.c": "definitions that a body needs: op rows and helpers decide which",
    "settle.c": "names of the graph become final in the text of a function",
    "out.c": "NAME in our own constant templates",
    "vulkan/lang.c": "GLSL reserves names with two underscores",
    "kernel.c": "definitions of run-time lengths that a body uses (oi_text_has_word)",
    "c/kernel.c": "scalars that a kernel's body uses (oi_text_has_word)",
    "c/measure.c": "the call graph that a compiler wrote",
    "c/tool.c": "the log of a build",
    "cuda/files.c": "memory of a block that kernels use (oi_text_has_word)",
    "cuda/kernel.c": "memory in which lanes of a kernel exchange sums (oi_text_has_word)",
    "cuda/step.c": "helpers of the language that the device's code calls (oi_text_has_word)",
    "vulkan/shader.c": "extensions for types that helpers use (oi_text_has_word)",
}


@pytest.mark.parametrize("path", [p for p in C_FILES if p.parts[:2] == ("src", "emit")], ids=str)
def test_emitters_decide_nothing_by_reading_what_they_printed(path):
    own = "/".join(path.parts[2:])
    if own.startswith(("c/host/", "vulkan/host/")):
        return  # files that programs carry along
    code = re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)
    found = re.findall(r"\b(?:strstr|memmem|oi_text_has_word|oi_text_has_own)\(", code)
    assert not found or path.suffix == ".h" or own in READS_TEXT, f"{path}: {found}"
    if own in ("kernel.c", "c/kernel.c", "vulkan/shader.c"):
        assert set(found) == {"oi_text_has_word("}, f"{path}: {found}"


def test_a_custom_op_is_a_row_and_a_file():
    """A row names its file in src/kernel/custom. No other file lists these ops."""
    rows = {r["name"]: r for r in json.loads(read(pathlib.Path("ops/ops.json")))["ops"] if "kernel" in r}
    assert len(rows) > 10
    for row in rows.values():
        assert f"const oi_custom oi_custom_{row['kernel']} =" in read(pathlib.Path(f"src/kernel/custom/{row['kernel']}.c"))
    custom = {name for name, row in rows.items() if row["class"] == "custom"}
    ids = re.compile(r"\bOI_OP_(%s)\b" % "|".join(name.upper() for name in custom))
    build = re.search(r"\b(%s)\b" % "|".join(custom - {"sort", "unique"}), read(pathlib.Path("CMakeLists.txt")))
    assert not build, build
    for path in C_FILES:
        if path.parts[0] == "src" and path.parts[2] != "custom" and not path.name.endswith("_test.c"):
            assert not ids.search(read(path)), f"{path}: {ids.search(read(path))[0]}"


def test_every_folder_says_what_it_is():
    targets = [p for p in (REPO / "src/emit").iterdir() if (p / "target.c").exists() or p.name == "null"]
    for folder in [*(REPO / "src").iterdir(), *targets, REPO / "cli"]:
        assert (folder / "README.md").exists(), f"{folder} has no README.md"


HEADERS = [p for p in C_FILES if p.suffix == ".h" and p.name != "commands.h"]


@pytest.mark.parametrize("path", HEADERS, ids=str)
def test_every_header_compiles_alone(path):
    if not shutil.which("cc"):
        pytest.skip("no cc here")
    command = ["cc", "-std=c17", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-Iinclude"]
    command += ["-Isrc", "-Ibuild/generated", "-fsyntax-only", "-x", "c", "-"]
    flags = {"avx2": ["-mavx2", "-mfma", "-mf16c"], "dotprod": ["-march=armv8.2-a+dotprod"]}
    flags["avx512"] = [*flags["avx2"], "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq"]
    flags["avx512vnni"] = [*flags["avx512"], "-mavx512vnni"]
    flags["amx"] = [*flags["avx512vnni"], "-mavx512bf16", "-mamx-tile", "-mamx-int8", "-mamx-bf16"]
    folder = path.parts[2] if len(path.parts) > 3 and path.parts[1] == "body" else "avx2"
    flags["scalar"] = []
    flags["dsp"] = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=soft"]
    flags["mve"] = ["-mcpu=cortex-m55+nofp", "-mthumb", "-mfloat-abi=hard"]
    if folder in ("neon", "dotprod", "dsp", "mve"):  # bodies are for a target
        compiler = "arm-none-eabi-gcc" if folder in ("dsp", "mve") else "aarch64-linux-gnu-gcc"
        command = [compiler, *command[1:], *flags.get(folder, [])]
        if not shutil.which(command[0]):
            pytest.skip(f"no {command[0]} here")
    elif path.parts[1] == "body":
        if platform.machine() not in ("x86_64", "AMD64"):
            pytest.skip("checked on x86")
        command += flags[folder]
    elif path.parts[1] == "emulate" and not pathlib.Path("/usr/include/simde").exists():
        pytest.skip("no libsimde-dev here")
    elif path.parts[-2] == "cuda_on_cpu":
        command = ["c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++", "-"]
    source = f'#include "{path}"\n'
    result = subprocess.run([*command, "-I."], input=source, cwd=REPO, text=True, capture_output=True)
    assert result.returncode == 0, result.stderr


def test_the_library_never_prints_exits_or_aborts():
    """Nothing in src/ but tests may write to the terminal or end the program. OI_GRAPH, whose promise
    is to stop, is in the public header. Files that emitted programs carry along
    are theirs; the probe is a program of its own."""
    for path in C_FILES:
        if path.parts[0] != "src" or path.name.endswith("_test.c"):
            continue
        if path.parts[:2] == ("src", "emit") and path.parts[3:4] == ("host",) or path.parts[:3] == ("src", "verify", "probe"):
            continue
        text = read(path).replace("abort(); /* our own bug", "/*")  # cannot be reached by input
        text = text.replace("_exit(127); /* a child that could", "/*")  # not our process
        code = re.sub(r"/\*.*?\*/|\"(\\.|[^\"\\])*\"", "", text, flags=re.S)
        found = [m[0] for m in re.finditer(r"\b(printf|puts|putchar|perror|exit|_exit|abort) *\(", code)]
        found += re.findall(r"\b(?:stdout|stderr)\b", code)
        assert not found, f"{path}: {found}"


def test_every_package_is_weighed():
    """packages.txt is what set-up reads; docs/dependencies.md says why each entry is there."""
    page = read(pathlib.Path("docs/dependencies.md"))
    rows = [r.split(None, 3) for r in read(pathlib.Path("packages.txt")).splitlines() if r and r[0] != "#"]
    assert rows
    for group, kind, name, purpose in rows:
        assert kind in ("apt", "pip", "wheel") and purpose
        assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", page), f"{name} is not weighed"


def test_no_machine_of_ours_in_the_tree():
    if not shutil.which("git") or not (REPO / ".git").exists():
        pytest.skip("no git checkout to look at")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, capture_output=True, text=True)
    assert tracked.returncode == 0, tracked.stderr
    home = re.compile(r"/(home|root|work)/[a-z]")
    for name in filter(None, tracked.stdout.split("\0")):
        if name.startswith("tests/fuzz/corpus/"):
            continue
        try:
            text = read(pathlib.Path(name))
        except (UnicodeDecodeError, IsADirectoryError, FileNotFoundError):
            continue
        if name != "tests/test_layout.py":
            assert not home.search(text), f"{name} names a path of somebody's machine"
