"""What CONTRIBUTING.md says a change touches is all that it touches, tried in a copy: a target is a folder and a line; ops
of every kind and a recipe are the rows and files that its table names."""

import os
import pathlib
import platform
import shutil
import subprocess
import sys

import pytest

from conftest import REPO

BUILD = pathlib.Path(os.environ.get("OPENINFER_BUILD", REPO / "build"))


def test_a_target_is_a_folder_and_a_line(tmp_path, example_package):
    """The null target under another name takes devices of its own vendor, ahead of all others."""
    if not shutil.which("cc"):
        pytest.skip("cc is not installed")
    if os.environ.get("OPENINFER_SANITIZED"):
        pytest.skip("the library is linked without its sanitizer")
    emit = tmp_path / "src/emit"
    (emit / "copycat").mkdir(parents=True)
    text = (REPO / "src/emit/null/null.c").read_text()
    assert text.count("d->api == OI_DEVICE_NULL") == 1 and text.count("oi_target_null") == 1
    text = text.replace("d->api == OI_DEVICE_NULL", 'strcmp(d->vendor, "copycat") == 0').replace("oi_target_null", "oi_target_copycat")
    (emit / "copycat/copycat.c").write_text(text)
    lines = (REPO / "src/emit/targets.c").read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip().startswith("X(c)"))
    lines.insert(at, "    X(copycat) \\")
    (emit / "targets.c").write_text("\n".join(lines) + "\n")
    flags = ["-std=c17", "-D_POSIX_C_SOURCE=200809L", "-DOI_BUILD_TYPE=\"\"", "-DOI_BUILD_SANITIZERS=\"\"", "-DOI_BUILD_JSON=\"\""]
    flags += [f"-I{REPO}/include", f"-I{REPO}/src", f"-I{BUILD}/generated"]
    sources = [*emit.glob("*.c"), *emit.glob("copycat/*.c"), *(REPO / "cli").glob("*.c")]
    libraries = subprocess.run(["pkg-config", "--libs", "json-c"], capture_output=True, text=True, check=True).stdout.split()
    command = ["cc", *flags, "-o", tmp_path / "openinfer", *sources, BUILD / "libopeninfer.a", *libraries, "-lm", "-lpthread"]
    made = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    device = tmp_path / "copycat.json"
    device.write_text('{"extends": "cpu_scalar", "device": {"type": "cpu", "vendor": "copycat", "name": "a copy"}}')
    words = ["synth", REPO / "examples/linear.oi", "--model", example_package("linear"), "--target", device, "-o", tmp_path / "out"]
    run = subprocess.run([tmp_path / "openinfer", *map(str, words)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "kernel matmul_add_y(" in (tmp_path / "out/linear.txt").read_text()


# -- ops and a recipe: the library is built anew --

MAP = """{"name": "thrice", "class": "map", "inputs": ["x"], "dtypes": "F", "out": "same", "shape": "same",
 "flags": ["inplace"], "expr": "x + x + x", "doc": "Three times x."},
"""
COMPOSITE = """{"name": "plus_square", "class": "composite", "inputs": ["x"], "dtypes": "F", "out": "same", "shape": "same",
 "flags": [], "body": ["op mul(x, x) >> y;", "op add(x, y) >> out;"], "doc": "x plus its square."},
"""
CUSTOM = """{"name": "recast", "class": "custom", "kernel": "recast", "inputs": ["x"], "dtypes": "N bool", "out": "attr:to", "shape": "same_bits",
 "attrs": {"to": {"kind": "dtype", "dtypes": "N", "required": true, "doc": "Element type of the result."}},
 "flags": [], "doc": "bitcast under another name."},
"""
BODY = """/* plus_square.h: x + x * x in vectors. */
#ifndef OI_BODY_PLUS_SQUARE_H
#define OI_BODY_PLUS_SQUARE_H

#include "body/gemm.h"

/* Elements first ... last - 1. */
static inline void oi_plus_square(const float *restrict x, float *restrict out, int64_t first,
                                  int64_t last)
{
    int64_t i = first;
    for (; i + OI_VF <= last; i += OI_VF) {
        const oi_vf v = oi_vf_load(x + i);
        oi_vf_store(out + i, oi_vf_add(v, oi_vf_mul(v, v)));
    }
    for (; i < last; i++) {
        const float y = x[i] * x[i];
        out[i] = x[i] + y;
    }
}

#endif
"""
PLAN = """/* plus_square.c: which calls plus_square.h takes. */
#include "recipe/recipe.h"

bool oi_recipe_plus_square(const oi_recipe_call *c, oi_recipe_plan *out)
{
    const oi_operand *x = &c->q->in[0];
    if (x->dtype != OI_F32 || x->rank != 1 || x->dims[0] == 0)
        return false;
    out->function = "oi_plus_square";
    oi_recipe_arg_add(out, OI_ARG_IN, 0);
    oi_recipe_arg_add(out, OI_ARG_OUT, 0);
    oi_recipe_arg_add(out, OI_ARG_FIRST, 0);
    oi_recipe_arg_add(out, OI_ARG_LAST, 0);
    out->extent = x->dims[0];
    out->unit = oi_recipe_lanes(c->target);
    return true;
}
"""
BODY_TEST = """#include "trial.h"

#include "body/plus_square.h"

static void body(const char *function, const trial_arg *a)
{
    assert_string_equal(function, "oi_plus_square");
    oi_plus_square(a[0].in, a[1].out, a[2].n, a[3].n);
}

static void test_lengths(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 70; n += 3) {
        trial t;
        trial_begin(&t, "plus_square", (uint64_t)n);
        trial_input(&t, false, OI_F32, 1, 1, &n);
        t.is_exact = true;
        assert_true(trial_end(&t, OI_F32, 1, &n, body));
    }
}

int trial_all(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
"""
REFERENCE = """'''The ops of a test, in numpy.'''

from reference_ops import numbers, op, result
from tensors import Tensor


@op("thrice")
def _(inputs, attrs, out_dtype, out_shape):
    x = numbers(inputs[0])
    return result(out_dtype, x + x + x)


@op("plus_square")
def _(inputs, attrs, out_dtype, out_shape):
    x = numbers(inputs[0])
    return result(out_dtype, x + x * x)


@op("recast")
def _(inputs, attrs, out_dtype, out_shape):
    return Tensor.from_storage(attrs["to"], inputs[0].values.shape, Tensor(inputs[0].dtype, inputs[0].values).storage()[0])
"""
CASES = """'''What is tried of the ops of a test.'''

from cases import map_cases
from cases_signal import bitcast_cases

CASES = {"recast": bitcast_cases, "plus_square": map_cases}
"""
GRAPH = """dynamic { x: f32[100]; }
volatile { a: f32[100]; b: f32[100]; c: i32[100]; }
block entry {
  op thrice(x) >> a;
  op plus_square(x) >> b;
  op recast(x, to=i32) >> c;
  return a, b, c;
}
"""


def change(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1, f"{path}: {old}"
    path.write_text(text.replace(old, new))


def extend(tree):
    """What CONTRIBUTING.md lists, and nothing else."""
    change(tree / "ops/ops.json", '{"name": "neg", ', MAP + COMPOSITE + CUSTOM + '{"name": "neg", ')
    own = (tree / "src/kernel/custom/bitcast.c").read_text()
    (tree / "src/kernel/custom/recast.c").write_text(own.replace("bitcast", "recast"))
    (tree / "src/body/plus_square.h").write_text(BODY)
    (tree / "src/recipe/plus_square.c").write_text(PLAN)
    (tree / "src/recipe/plus_square_test.c").write_text(BODY_TEST)
    change(tree / "src/recipe/table.c", "const oi_recipe oi_recipes[] = {\n",
           'const oi_recipe oi_recipes[] = {\n    {"plus_square in vectors", OI_OP_PLUS_SQUARE, true, oi_recipe_plus_square},\n')  # fmt: skip
    change(tree / "src/recipe/recipe.h", "bool oi_recipe_qlinear(",
           "bool oi_recipe_plus_square(const oi_recipe_call *c, oi_recipe_plan *out);\nbool oi_recipe_qlinear(")  # fmt: skip
    (tree / "tests/conform/reference_own.py").write_text(REFERENCE)
    (tree / "tests/conform/cases_own.py").write_text(CASES)


def test_ops_and_a_recipe_in_a_copy(tmp_path):
    """Minutes: the library is built anew. `make test-long` does it."""
    if not os.environ.get("OPENINFER_LONG"):
        pytest.skip("the library is built anew: make test-long")
    if os.environ.get("OPENINFER_SANITIZED") or platform.machine() != "x86_64":
        pytest.skip("one build, on x86, is enough")
    tree = tmp_path / "tree"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, capture_output=True, text=True, check=True).stdout
    for name in filter(None, tracked.split("\0")):
        if not name.startswith("tests/fuzz/corpus/"):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPO / name, tree / name)
    extend(tree)
    environment = {**os.environ, "CCACHE_BASEDIR": str(tmp_path), "CCACHE_NOHASHDIR": "1"}
    command = [tree / "tools/build.sh", "default", "openinfer_cli", "openinfer_shared", "plus_square_test_avx2"]
    made = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment)
    assert made.returncode == 0, made.stderr[-3000:]
    build = tree / "build"
    if "avx2" in pathlib.Path("/proc/cpuinfo").read_text():
        subprocess.run([build / "bin/plus_square_test_avx2"], check=True, capture_output=True)
    (tmp_path / "g.oi").write_text(GRAPH)
    for target in ("cpu_scalar", "cpu_avx2"):
        run = subprocess.run([build / "bin/openinfer", "verify", tmp_path / "g.oi", "--target", target, "--keep", tmp_path / target],
                             capture_output=True, text=True)  # fmt: skip
        assert run.returncode == 0 and "they agree" in run.stdout, run.stdout + run.stderr
    assert "oi_plus_square(" in (tmp_path / "cpu_avx2/g.c").read_text()
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_conform.py", "-k", "thrice or plus_square or recast"]
    done = subprocess.run(words, cwd=tree / "tests/conform", capture_output=True, text=True,
                          env={**environment, "OPENINFER_BUILD": str(build), "OPENINFER_BIN": str(build / "bin/openinfer")})  # fmt: skip
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout[-3000:]
