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

# What the projects below compute: numbers that come out exactly.
SMALL = """
dynamic { x: f32[8]; w: f32[8]; }
constant { shift: f32[8] @init(2.0); }
volatile { y: f32[8]; n: i32[8]; }
block entry {
  assign a: f32[8]; assign c: i32[8];
  op mul(x, w) >> a;
  op add(a, shift) >> y;
  op cast(y, to=i32) >> c;
  op cumsum(c, axis=0) >> n;
  return;
}
"""

# C and C++ alike: 0 when all is as it should be.
CHECK = """
static g program;
static int check(const void *weights, size_t size)
{
    int i, sum = 0;
    if (g_check_weights(weights, size) != g_OK || g_init(&program, weights, size) != g_OK)
        return 1;
    for (i = 0; i < 8; i++) {
        program.x[i] = (float)i;
        program.w[i] = 3.0f;
    }
    if (g_step(&program) != g_OK)
        return 2;
    for (i = 0; i < 8; i++) {
        sum += 3 * i + 2;
        if (program.y[i] != (float)(3 * i + 2) || program.n[i] != sum)
            return 3;
    }
    return 0;
}
"""
USER = '#include "g.h"\n' + CHECK + "int main(void)\n{\n    return check(g_weights, sizeof g_weights);\n}\n"


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
    arena = [t for t in plan["buffers"] if t["space"] == "arena"]
    clashes = [
        (a["name"], b["name"])
        for a in arena
        for b in arena
        if a["dtype"] != b["dtype"] and a["offset"] < b["offset"] + b["bytes"] and b["offset"] < a["offset"] + a["bytes"]
    ]
    text = (out / "g.c").read_text()
    assert clashes and text.count("oi_reuse(s->oi_arena);") >= len({name for pair in clashes for name in pair})


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


# -- inside other projects --


@pytest.fixture
def guest(openinfer, tmp_path):
    """guest(TARGET) -> the folder of the program that SMALL is, its weights compiled in."""

    def make(target):
        graph = tmp_path / "small.oi"
        graph.write_text(SMALL)
        (tmp_path / "host").mkdir()
        openinfer("synth", graph, "--target", target, "--name", "g", "--weights", "embed", "-o", tmp_path / "host/g")
        return tmp_path / "host/g"

    return make


@pytest.mark.parametrize("target", ["cpu_scalar", "cpu_avx2"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_in_a_plain_c_project(needs_target, guest, compiler, target):
    """C99, every warning an error, one call of the compiler."""
    need(compiler)
    needs_target(target)
    own = guest(target)
    (own.parent / "user.c").write_text(USER)
    run(compiler, "-std=c99", "-pedantic", *WARNINGS, "-Ig", "user.c", "g/g.c", "g/weights.c", "-lm", "-o", "user", cwd=own.parent)
    run(own.parent / "user")


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_in_a_cplusplus_project(needs_target, guest, compiler):
    need(compiler)
    needs_target("cpu_avx2")
    own = guest("cpu_avx2")
    (own.parent / "user.cpp").write_text(USER)
    run("cc", "-c", *WARNINGS, "g/g.c", "g/weights.c", cwd=own.parent)
    words = ["-std=c++11", "-pedantic", *WARNINGS, "-Ig", "user.cpp", "g.o", "weights.o", "-lm", "-o", "user"]
    run(compiler, *words, cwd=own.parent)
    run(own.parent / "user")


@pytest.mark.parametrize("settings", [[], ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_COMPILER=clang"]], ids=["default", "clang"])
def test_in_a_foreign_cmake_project(needs_target, guest, tmp_path, settings):
    """It adds the folder and links the library; its own standard and warnings hold for the program, too."""
    needs_target("cpu_avx2")
    need(*(["clang"] if settings else []))
    own = guest("cpu_avx2")
    (own.parent / "user.c").write_text(USER)
    (own.parent / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(host C)\nset(CMAKE_C_STANDARD 99)\n"
        "add_compile_options(-Wall -Wextra -Werror -pedantic)\nadd_subdirectory(g)\n"
        "add_executable(user user.c)\ntarget_link_libraries(user PRIVATE g)\n"
    )
    configure(own.parent, tmp_path / "build", *settings)
    run(tmp_path / "build/user")
    assert not list((tmp_path / "build/g").glob("g")), "the demo is no part of another project"


STARTUP = CHECK + r"""
/* Sections of its own, a memcpy of its own. */
extern uint32_t own_stack[], own_bss[], own_bss_end[], own_data[], own_data_end[], own_data_load[];
int copies;
void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    char *t = to;
    const char *f = from;
    copies++;
    while (n--) {
        *t++ = *f++;
        __asm__ volatile("" : : : "memory");
    }
    return to;
}
static void leave(int code)
{
    uint32_t arguments[2] = {0x20026, (uint32_t)code};
    register uint32_t r0 __asm__("r0") = 0x20;
    register uint32_t *r1 __asm__("r1") = arguments;
    for (;;)
        __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}
void power_on(void)
{
    for (uint32_t *p = own_data, *f = own_data_load; p < own_data_end;)
        *p++ = *f++;
    for (uint32_t *p = own_bss; p < own_bss_end;)
        *p++ = 0;
    leave(check(g_weights, sizeof g_weights));
}
__attribute__((section(".own_vectors"), used)) static void *const table[] = {own_stack, (void *)power_on};
"""

SCRIPT = """
ENTRY(power_on)
MEMORY { ROM (rx) : ORIGIN = 0, LENGTH = 256K  SRAM (rwx) : ORIGIN = 0x20010000, LENGTH = 64K }
SECTIONS
{
  .rom : { KEEP(*(.own_vectors)) *(.text .text.* .rodata .rodata.*) } > ROM
  .ram : { own_data = .; *(.data .data.*) . = ALIGN(4); own_data_end = .; } > SRAM AT > ROM
  own_data_load = LOADADDR(.ram);
  .zero (NOLOAD) : { own_bss = .; *(.bss .bss.* COMMON) . = ALIGN(4); own_bss_end = .; } > SRAM
  own_stack = ORIGIN(SRAM) + LENGTH(SRAM);
  /DISCARD/ : { *(.ARM.exidx*) *(.comment) *(.eh_frame*) }
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_in_a_freestanding_cortex_m_project(guest, level):
    """Its own start, its own linker script and its own memcpy: of the program only the parts that compute are taken."""
    need("arm-none-eabi-gcc", "qemu-system-arm")
    host = guest("cortex_m4").parent
    (host / "start.c").write_text('#include "g.h"\n' + STARTUP)
    (host / "own.ld").write_text(SCRIPT)
    flags = ["-mcpu=cortex-m4", "-mthumb", level, *WARNINGS, "-Ig"]
    run("arm-none-eabi-gcc", *flags, "-nostdlib", "-T", "own.ld", "start.c", "g/g.c", "g/weights.c", "g/freestanding.c",
        "-lgcc", "-o", "host.elf", cwd=host)  # fmt: skip
    run("qemu-system-arm", "-M", "mps2-an386", "-display", "none", "-serial", "null", "-monitor", "none",
        "-semihosting-config", "enable=on,target=native", "-kernel", "host.elf", cwd=host, timeout=30)  # fmt: skip
