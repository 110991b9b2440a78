"""C++ programs use the library and synthesized programs as C programs do."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import BIN, REPO

BUILD = pathlib.Path(os.environ.get("OPENINFER_BUILD") or pathlib.Path(BIN).parent.parent)
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
COMPILERS = ["g++", "clang++"]


def compile_with(words, cwd):
    if not shutil.which(words[0]):
        pytest.skip(f"{words[0]} is not installed")
    done = subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# -- openinfer.h --

LIBRARY_PROGRAM = r"""
#include <openinfer.h>

template <typename T> static bool comes_back(oi_exec *, T, oi_dtype want, const T *data)
{
    return OI_DTYPE_OF(data) == want && OI_DTYPE_OF(const_cast<T *>(data)) == want;
}

int main()
{
    oi_graph *g = OI_GRAPH(dynamic { x: f32[4]; n: i64[2]; } volatile { y: f32[4]; m: i64[2]; }
                           block entry { op relu(x) >> y; op neg(n) >> m; return; });
    oi_diag *d = oi_diag_new();
    oi_sim *sim = nullptr;
    oi_exec *exec = nullptr;
    if (oi_sim_new(nullptr, g, nullptr, &sim, d) != OI_OK || oi_exec_new(sim, &exec, d) != OI_OK)
        return 1;
    float x[] = {-1, 2, -3, 4};
    const int64_t n[] = {5, -6};
    OI_INSERT(exec, x, x, 4);
    if (OI_TRY_INSERT(exec, n, n, 2, d) != OI_OK)
        return 2;
    OI_STEP(exec);
    uint64_t n_y = 0, n_m = 0;
    const float *y = OI_FETCH_F32(exec, y, &n_y);
    const int64_t *m = nullptr;
    if (OI_TRY_FETCH_I64(exec, m, &m, &n_m, d) != OI_OK)
        return 3;
    if (n_y != 4 || y[0] != 0 || y[3] != 4 || n_m != 2 || m[0] != -5 || m[1] != 6)
        return 4;
    const bool flag = true;
    const uint8_t byte = 1;
    const double wide = 1;
    if (!comes_back(exec, flag, OI_BOOL, &flag) || !comes_back(exec, byte, OI_U8, &byte) || !comes_back(exec, wide, OI_F64, &wide))
        return 5;
    oi_exec_free(exec);
    oi_sim_free(sim);
    oi_graph_free(g);
    oi_diag_free(d);
    return 0;
}
"""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_library(tmp_path, compiler, sanitized):
    (tmp_path / "main.cpp").write_text(LIBRARY_PROGRAM)
    words = [compiler, "-std=c++11", *STRICT, f"-I{REPO}/include", "main.cpp", "-o", "main"]
    if sanitized:  # the library wants another runtime: compiling is what is left
        compile_with([*words[:-2], "-fsyntax-only"], tmp_path)
        return
    compile_with([*words, f"-L{BUILD}", "-lopeninfer", f"-Wl,-rpath,{BUILD}"], tmp_path)
    assert subprocess.run([tmp_path / "main"]).returncode == 0


# -- synthesized programs --

# Names that are keywords of C++ and not of C, one table that grows, and two graphs.
GRAPH = """
dynamic { this: f32[4]; x: f32[4]; }
volatile { class: f32[4]; new: f32[4]; y: f32[4]; }
persistent { step: i32 @init(0); K(t): f32[4] @table @cap(t=5); template: f32[4]; }
block entry {
  op add(x, this) >> class;
  op relu(class) >> new;
  cache.write new >> template;
  cache.write new >> K[step];
  cache.increment step;
  op BODY(new) >> y;
  return class, new, y;
}
"""

PROGRAM = r"""
#include "g.h"
#include <cstdio>
#include <vector>

static g program;

static_assert(g_STRUCT_BYTES == sizeof(g) && g_STRUCT_ALIGN == alignof(g), "the macros say what the compiler does");

int main(int argc, char **argv)
{
    alignas(g_WEIGHTS_ALIGN) static unsigned char weights[g_WEIGHTS_BYTES];
    std::FILE *f = std::fopen(argv[argc - 1], "rb");
    if (!f || std::fread(weights, 1, sizeof weights, f) != sizeof weights)
        return 1;
    std::fclose(f);
    if (g_check_weights(weights, sizeof weights) != g_OK || g_init(&program, weights, sizeof weights) != g_OK)
        return 2;
    for (int i = 0; i < 4; i++)
        program.FIRST.x[i] = static_cast<float>(i);
    std::vector<unsigned char> saved(g_SAVED_BYTES);
    g_save(&program, saved.data());
    for (int i = 0; i < 5; i++)
        if (STEP(&program) != g_OK)
            return 3;
    if (program.FIRST.y[3] != 3 || STEP(&program) != g_ERROR_RANGE)
        return 4;
    if (g_load(&program, saved.data(), saved.size()) != g_OK || STEP(&program) != g_OK)
        return 5;
    saved[saved.size() - 1] ^= 1;
    return g_load(&program, saved.data(), saved.size()) == g_ERROR_STATE_DAMAGED ? 0 : 6;
}
"""


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("several", [False, True])
def test_synthesized_program(openinfer, tmp_path, compiler, several):
    graphs = []
    for name, op in [("g", "relu"), ("h", "abs")][: 1 + several]:
        graphs.append(tmp_path / f"{name}.oi")
        graphs[-1].write_text(GRAPH.replace("BODY", op))
    openinfer("synth", *graphs, "--name", "g", "--target", "cpu_scalar", "-o", tmp_path / "out")
    first, step = ("graph", "g_graph_step") if several else ("", "g_step")
    if several:
        step = re.search(r"^int (g_\w+_step)\(g", (tmp_path / "out/g.h").read_text(), re.M)[1]
        first = step[len("g_") : -len("_step")]
    program = PROGRAM.replace("STEP(", f"{step}(").replace("FIRST.", f"{first}." if first else "")
    (tmp_path / "out/main.cpp").write_text(program)
    compile_with(["gcc", "-std=c11", "-O1", "-fno-strict-aliasing", "-c", "g.c"], tmp_path / "out")
    compile_with([compiler, "-std=c++11", *STRICT, "main.cpp", "g.o", "-o", "main", "-lm"], tmp_path / "out")
    assert subprocess.run([tmp_path / "out/main", tmp_path / "out/weights.bin"]).returncode == 0


@pytest.mark.parametrize("compiler", ["gcc", "clang", *COMPILERS])
@pytest.mark.parametrize("more", [[], ["--weights", "embed"], ["--partition-all"], ["--target", "cortex_m4"]])
def test_headers_need_nothing(openinfer, tmp_path, compiler, more):
    """As the first thing of a file, in C99 and in C++11."""
    (tmp_path / "g.oi").write_text(GRAPH.replace("BODY", "relu"))
    target = [] if "--target" in more else ["--target", "cpu_avx2"]
    openinfer("synth", tmp_path / "g.oi", *target, *more, "-o", tmp_path / "out")
    suffix, standard = ("cpp", "c++11") if compiler in COMPILERS else ("c", "c99")
    (tmp_path / f"out/use.{suffix}").write_text('#include "g.h"\n#include "g.h"\nint use(g *s);\nint use(g *s) { return g_step(s); }\n')
    compile_with([compiler, f"-std={standard}", *STRICT, "-fsyntax-only", f"use.{suffix}"], tmp_path / "out")


THREADS = r"""
#include "hal.h"
#include "team.h"
#include "g.h"
#include <atomic>

static g program;
static team threads;

static int count(void *ctx, int, int)
{
    static_cast<std::atomic<int> *>(ctx)->fetch_add(1);
    return 0;
}

extern "C" const size_t c_size, c_align, c_seats;

int main(int argc, char **argv)
{
    if (c_size != sizeof(team) || c_align != alignof(team) || c_seats != offsetof(team, seats))
        return 1;
    size_t size = 0;
    const void *weights = hal_map(argv[argc - 1], &size);
    if (!weights || g_check_weights(weights, size) != g_OK || g_init(&program, weights, size) != g_OK)
        return 2;
    if (team_start(&threads, -3) != 3)
        return 3;
    std::atomic<int> calls{0};
    if (team_run(&threads, count, &calls) != 0 || calls != 3)
        return 4;
    program.oi_team = &threads;
    for (int i = 0; i < 4; i++)
        program.x[i] = static_cast<float>(i);
    if (g_step(&program) != g_OK || program.y[3] != 3)
        return 5;
    team_stop(&threads);
    hal_stop(0, nullptr);
}
"""
SIZES = """#include "team.h"
extern const size_t c_size, c_align, c_seats;
const size_t c_size = sizeof(team), c_align = _Alignof(team), c_seats = offsetof(team, seats);
"""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_host_with_threads(openinfer, tmp_path, compiler):
    """hal.h and team.h, too, are headers of C++: a team has the size there that it has in C."""
    (tmp_path / "g.oi").write_text(GRAPH.replace("BODY", "relu"))
    out = tmp_path / "out"
    (tmp_path / "four.json").write_text('{"extends": "cpu_scalar", "cpu": {"threads": 4}}')
    openinfer("synth", tmp_path / "g.oi", "--target", tmp_path / "four.json", "--partition-all", "-o", out)
    (out / "main.cpp").write_text(THREADS)
    (out / "sizes.c").write_text(SIZES)
    compile_with(["gcc", "-std=c11", "-O1", "-pthread", "-c", "g.c", "team.c", "hal.c", "sizes.c"], out)
    objects = ["g.o", "team.o", "hal.o", "sizes.o"]
    compile_with([compiler, "-std=c++11", *STRICT, "-pthread", "main.cpp", *objects, "-o", "main", "-lm"], out)
    assert subprocess.run([out / "main", out / "weights.bin"]).returncode == 0
