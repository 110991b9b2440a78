"""Emitted C is free of warnings in a project that asks for many: every example and tiny model, for a host with vectors
and without, and for Cortex-M."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from conftest import BIN, REPO

sys.path[:0] = [str(REPO / "examples/tiny")]
import tiny_oinf  # noqa: E402

WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wcast-qual", "-Werror", "-fsyntax-only"]
GRAPHS = sorted(REPO.glob("examples/*.oi")) + sorted(REPO.glob("examples/tiny/*.oi"))
# gcc looks at vectors, clang at plain C; both look at everything below.
TARGETS = {
    "cpu_avx2": [["gcc"]],
    "cpu_scalar": [["clang"]],
    "cortex_m4": [["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-ffreestanding"]],
}
ALL = {
    "cpu_avx2": [["gcc"], ["clang"]],
    "cpu_amx": [["gcc"], ["clang"]],
    "cpu_neon_dotprod": [["aarch64-linux-gnu-gcc", "-march=armv8.2-a+dotprod"]],
    "cortex_m4": [["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-ffreestanding"]],
    "cortex_m55": [["arm-none-eabi-gcc", "-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard", "-ffreestanding"]],
    "rv32imac": [["riscv64-unknown-elf-gcc", "-march=rv32imac", "-mabi=ilp32", "-ffreestanding"]],
}


@pytest.fixture(scope="module")
def package(example_package, tmp_path_factory):
    def of(graph: pathlib.Path):
        if graph.parent.name != "tiny":
            return example_package(graph.stem)
        path = tmp_path_factory.mktemp("tiny") / f"{graph.stem}.oinf"
        tiny_oinf.write(graph.stem, str(path))
        return path

    return of


def look_at(graph, package, folder, targets, every_file):
    for target, compilers in targets.items():
        out = folder / target
        done = subprocess.run([BIN, "synth", graph, "--model", package, "--target", target, "-o", out], capture_output=True, text=True)
        if done.returncode:  # a board may be too small, or may lack a function of f64
            assert target.startswith("cortex") and re.search(r"error\[E06[02]\]", done.stderr), done.stderr
            continue
        files = [f.name for f in sorted(out.glob("*.c")) if every_file or f.stem == graph.stem]
        assert f"{graph.stem}.c" in files
        for compiler in compilers:
            if not shutil.which(compiler[0]):
                pytest.skip(f"no {compiler[0]} here")
            made = subprocess.run([*compiler, *WARNINGS, *files], cwd=out, capture_output=True, text=True)
            assert made.returncode == 0, f"{target}, {compiler[0]}:\n{made.stderr[:3000]}"


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: g.stem)
def test_no_warning(graph, package, tmp_path):
    look_at(graph, package(graph), tmp_path, TARGETS, False)


@pytest.mark.parametrize("name", ["quantised_linear", "sliding_window", "tiny/ds_cnn_i8", "tiny/digits_conv_i8"])
def test_no_warning_in_any_file(name, package, tmp_path):
    graph = REPO / f"examples/{name}.oi"
    look_at(graph, package(graph), tmp_path, ALL, True)
