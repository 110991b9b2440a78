"""Emitted C as part of projects that know nothing of it: no flag is needed for it to be right, only its own files are
taken, and warnings are errors."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from conftest import REPO

sys.path[:0] = [str(REPO / "examples"), str(REPO / "python/src")]

COMPILERS = ["gcc", "clang"]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]

# Products that are added to something, which compilers like to join; and memory that holds floats, then integers.
GRAPH = """
dynamic { x: f32[40000]; w: f32[40000]; }
volatile { y: f32[40000]; n: i32[40000]; far: f64[40000]; }
block entry {
  assign a: f32[40000]; assign b: f32[40000]; assign c: i32[40000]; assign d: i32[40000]; assign e: f64[40000];
  op mul(x, w) >> a;
  op add(a, x) >> y;
  op softmax(y) >> a;
  op cumsum(a, axis=0) >> b;
  op softmax(b) >> a;
  op cumsum(a, axis=0) >> y;
  op mul(x, w) >> b;
  op add(b, y) >> y;
  op cast(y, to=i32) >> c;
  op cumsum(c, axis=0) >> d;
  op cumsum(d, axis=0) >> c;
  op cumsum(c, axis=0) >> n;
  op cast(n, to=f64) >> e;
  op cumsum(e, axis=0) >> e;
  op cumsum(e, axis=0) >> far;
  return;
}
"""


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")


def run(*words, cwd=None, code=0, **more):
    result = subprocess.run([str(w) for w in words], cwd=cwd, capture_output=True, text=True, **more)
    assert result.returncode == code or code is None, result.stdout + result.stderr
    return result


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("builds") / "graph.oi"
    path.write_text(GRAPH)
    return path


@pytest.fixture
def emitted(openinfer, graph, tmp_path):
    """emitted(TARGET, ...) -> the folder of the program g."""

    def make(target, *more):
        out = tmp_path / target
        openinfer("synth", graph, "--target", target, "--name", "g", "-o", out, *more)
        return out

    return make


# -- no flags --


@pytest.fixture
def bare(tmp_path):
    """bare(COMPILER, FLAGS) -> a compiler that is given these flags and none of those that a Makefile has."""

    def make(compiler, flags):
        script = tmp_path / f"bare-{compiler}"
        script.write_text(
            "#!/bin/bash\n"
            'for word do case $word in -std=*|-f*|-m*|-W*|-O*|-pedantic) ;; *) words+=("$word") ;; esac; done\n'
            f'exec {compiler} {flags} "${{words[@]}}"\n'
        )
        script.chmod(0o755)
        return script

    return make


@pytest.mark.parametrize("flags", ["-O0", "-O3 -std=gnu17 -fstrict-aliasing", "-O2 -std=c99"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_no_flag_is_needed(openinfer, needs_target, graph, bare, compiler, flags):
    need(compiler)
    needs_target("cpu_avx2")
    result = openinfer("verify", graph, "--target", "cpu_avx2", "--cc", bare(compiler, flags), "--per-node")
    assert "they agree" in result.stdout


def fused(folder, compiler, source):
    """Instructions of the object that join a product and a sum."""
    run(compiler, "-O3", "-c", source, "-o", "x.o", cwd=folder)
    return len(re.findall(r"\tv?f(?:n?m(?:add|sub)|ml[as])", run("objdump", "-d", "x.o", cwd=folder).stdout))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_products_and_sums_are_rounded_one_by_one(emitted, compiler):
    """As the file says itself. Without its word the compiler would join them, which shows that it counts."""
    need(compiler, "objdump")
    out = emitted("cpu_avx2")
    text = (out / "g.c").read_text()
    (out / "without.c").write_text(re.sub(r"#pragma (STDC FP_CONTRACT|GCC optimize).*", "", text))
    assert fused(out, compiler, "g.c") == 0
    assert fused(out, compiler, "without.c") > 0


def test_memory_changes_its_type_in_order(emitted):
    """Before memory is written under another type than it was read, the program says so. Only then: it costs a little."""
    out = emitted("cpu_scalar")
    plan = json.loads((out / "plan.json").read_text())
    arena = [t for t in plan["tensors"] if t["space"] == "arena"]
    clashes = [
        (a["name"], b["name"])
        for a in arena
        for b in arena
        if a["dtype"] != b["dtype"] and a["offset"] < b["offset"] + b["bytes"] and b["offset"] < a["offset"] + a["bytes"]
    ]
    text = (out / "g.c").read_text()
    assert clashes and text.count("reuse(s->arena);") >= len({name for pair in clashes for name in pair})


def test_memory_of_one_type_needs_no_order(openinfer, tmp_path):
    (tmp_path / "one.oi").write_text(
        "dynamic { x: f32[9]; }\nvolatile { y: f32[9]; }\nblock entry {\n  assign a: f32[9]; assign b: f32[9];\n"
        "  op softmax(x) >> a;\n  op cumsum(a, axis=0) >> b;\n  op softmax(b) >> a;\n  op cumsum(a, axis=0) >> y;\n  return;\n}\n"
    )
    openinfer("synth", tmp_path / "one.oi", "--target", "cpu_scalar", "-o", tmp_path / "out")
    assert "reuse(" not in (tmp_path / "out/one.c").read_text()


@pytest.mark.parametrize(
    "compiler, flags, target, says",
    [
        ("gcc", "-ffast-math", "cpu_scalar", "do not use -ffast-math"),
        ("clang", "-Ofast", "cpu_avx2", "do not use -ffast-math"),
        ("gcc", "-m32 -mno-sse", "cpu_scalar", "use -msse2 -mfpmath=sse"),
        ("clang --target=aarch64-linux-gnu", "-O1", "cpu_neon_dotprod", "needs -march=armv8.2-a+dotprod"),
        ("aarch64-linux-gnu-gcc", "-O1", "cpu_avx2", "this program is for x86 processors"),
        ("gcc", "-O1", "cpu_neon", "this program is for Arm processors with NEON"),
    ],
)
def test_what_only_a_flag_can_give_is_an_error_that_names_it(emitted, compiler, flags, target, says):
    need(compiler.split()[0])
    if "dotprod" in target and int(run("clang", "-dumpversion").stdout.split(".")[0]) >= 16:
        pytest.skip("this clang takes the attribute")
    out = emitted(target)
    said = run(*compiler.split(), *flags.split(), "-fsyntax-only", "g.c", cwd=out, code=None)
    assert said.returncode != 0 and says in said.stderr


@pytest.mark.parametrize("target", ["cpu_scalar", "cpu_avx512", "cpu_amx"])
def test_make_takes_any_flags(emitted, target):
    out = emitted(target, "--weights", "embed")
    run("make", "-s", "-C", out, "CFLAGS=-O2")
    assert (out / "g").exists()


# -- the CMake file --


def configure(folder, build, *more):
    need("cmake")
    run("cmake", "-S", folder, "-B", build, *more)
    run("cmake", "--build", build)


def test_cmake_makes_a_library_and_its_demo(emitted, tmp_path):
    out = emitted("cpu_avx2")
    configure(out, tmp_path / "both")
    assert (tmp_path / "both/libg.a").exists() and (tmp_path / "both/g").exists()
    configure(out, tmp_path / "library", "-Dg_DEMO=OFF")
    assert (tmp_path / "library/libg.a").exists() and not (tmp_path / "library/g").exists()
