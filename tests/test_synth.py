"""Synthesized C does what the simulator does, and keeps what it promises.

Every example is synthesized, built under the strictest warnings with both compilers, with and without
sanitizers, run, and compared with the simulator after every step and after every node. Then the promises of
the emitted code itself: same input, same bytes; states that can be saved, moved and interleaved; no
allocation; weights that do not belong are refused; a run that fails leaves nothing behind.
"""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import BIN, REPO

EXAMPLES = REPO / "examples"
sys.path[:0] = [str(EXAMPLES), str(REPO / "python/src")]
import run_all  # noqa: E402

NAMES = run_all.NAMES

NOALLOC = str(REPO / "tests/noalloc/cc")  # gcc, and the program ends when it asks for memory while it runs
STRICT = "-Wall -Wextra -Werror -pedantic"
SANITIZED = f"-O0 -g {STRICT} -fsanitize=address,undefined -fno-sanitize-recover=all"
WAYS = {  # name: target, compiler, its flags (None: those of the Makefile), more options
    "scalar-gcc": ("cpu_scalar", "gcc", f"-O2 {STRICT}", []),
    "avx2-gcc": ("cpu_avx2", NOALLOC, None, ["--partition-all"]),
    "avx2-gcc-nodes": ("cpu_avx2", "gcc", f"-O2 {STRICT}", ["--per-node"]),
    "avx2-clang": ("cpu_avx2", "clang", f"-O2 {STRICT}", []),
    "scalar-clang-nodes-sanitized": ("cpu_scalar", "clang", SANITIZED, ["--per-node"]),
    "avx2-gcc-sanitized": ("cpu_avx2", "gcc", SANITIZED, []),
    "neon": ("cpu_neon", "aarch64-linux-gnu-gcc", f"-O2 {STRICT}", []),
    "neon-nodes": ("cpu_neon", "aarch64-linux-gnu-gcc", f"-O2 {STRICT}", ["--per-node"]),
    "avx512-gcc-nodes": ("cpu_avx512", "gcc", f"-O2 {STRICT}", ["--per-node"]),
    "amx-gcc": ("cpu_amx", "gcc", f"-O2 {STRICT}", []),
    "dotprod": ("cpu_neon_dotprod", "aarch64-linux-gnu-gcc", f"-O2 {STRICT}", []),
}
if os.environ.get("OPENINFER_SANITIZED"):  # what is emitted was judged already: now it is about who emits it
    WAYS = {"avx2-gcc-quick": ("cpu_avx2", "gcc", "-O0", []), "scalar-gcc-nodes": ("cpu_scalar", "gcc", "-O0", ["--per-node"])}


def ways_for(i):
    """Of the i-th example: all of them take minutes. Each has the Makefile's flags, a sanitizer and two of the
    others, in turn, so that every way meets many examples."""
    if os.environ.get("OPENINFER_LONG") or len(WAYS) < 4:
        return list(WAYS)
    strict = [way for way in WAYS if way.endswith("sanitized")]
    others = [way for way in WAYS if way not in strict and way != "avx2-gcc"]
    return ["avx2-gcc", strict[i % 2], others[2 * i % len(others)], others[(2 * i + 1) % len(others)]]


@pytest.fixture(scope="module")
def example(example_package, example_reference):
    """example(NAME) -> the words that name its graph and model, and give integers values that mean something."""
    pytest.importorskip("numpy", reason="inputs are made with numpy")
    import numpy as np

    known = {}

    def write(name):
        if name not in known:
            folder, about = example_reference(name)
            words = [str(EXAMPLES / f"{name}.oi"), "--model", str(example_package(name))]
            for x in about["inputs"]:
                first = folder / "in" / x / "0.npy"
                if np.load(first).dtype.kind in "iub":  # floats are random, new ones in every step
                    words += ["--set", f"{x}={first}"]
            known[name] = words
        return known[name]

    return write


def tool_is_here(compiler):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    if compiler.startswith("aarch64") and not shutil.which("qemu-aarch64"):
        pytest.skip("qemu-user is not installed")


@pytest.mark.parametrize("name, way", [(name, way) for i, name in enumerate(NAMES) for way in ways_for(i)])
def test_example(openinfer, needs_target, example, name, way):
    target, compiler, flags, more = WAYS[way]
    tool_is_here(compiler)
    needs_target(target)
    flagged = [] if flags is None else ["--cflags", flags]
    result = openinfer("verify", *example(name), "--target", target, "--cc", compiler, *flagged, *more)
    assert "8 steps compared" in result.stdout and "they agree" in result.stdout
    assert "output " in result.stdout or "state " in result.stdout


def test_a_program_that_asks_for_memory_is_ended(openinfer, example, tmp_path):
    for code, status in (("void *volatile p = malloc(8); free(p);", 1), ("", 0)):
        cc = tampering(tmp_path, "minimal", f"extern void *malloc(unsigned long); extern void free(void *); {code}")
        said = openinfer("verify", *example("minimal"), "--cc", NOALLOC, "--cflags", "-O1", code=status, env={"NOALLOC_CC": cc})
        assert ("it ended with exit code 9" in said.stderr) == bool(code)
        assert ("the program asks for memory while it runs" in said.stderr) == bool(code)


# -- verify itself ------------------------------------------------------------------------------------------


def tampering(tmp_path, name, code):
    """A compiler that puts `code` behind every step of the program: what verify must notice."""
    script = tmp_path / "cc"
    script.write_text(f"""#!/bin/sh
case "$*" in *" {name}.c")
    {{ cat {name}.c; echo '#undef {name}_step'; echo 'int {name}_step({name} *s);'
      echo 'int {name}_step({name} *s) {{ int r = honest_step(s); {code} return r; }}'; }} > tampered.c
    exec gcc -D{name}_step=honest_step -O1 -c -o {name}.o tampered.c;;
esac
exec gcc "$@"
""")
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize(
    "name, code, said",
    [
        ("minimal", "s->y[3] += 0.25f;", "output y: element 3"),
        ("ordering", "s->oi_state_data.step += 1;", "state step"),
        ("ordering", "s->oi_state_data.oi_size_K[1] -= 1;", "state K: its size along axis 1"),
        ("linear", "if (s->y[0] != 0) r = 47;", "the program's step gives 47, the simulator's 0"),
        ("linear", "if (s->y[0] != 0) *(volatile char *)0 = 1;", "it was ended by signal 11"),
    ],
)
def test_verify_notices(openinfer, example, tmp_path, name, code, said):
    result = openinfer("verify", *example(name), "--cc", tampering(tmp_path, name, code), code=1)
    assert said in result.stderr, result.stderr
    assert "step 0" in result.stderr or "step 1" in result.stderr


def test_verify_names_the_node(openinfer, example, tmp_path):
    """A kernel that is wrong is found by name, although only the end of the chain is compared."""
    script = tmp_path / "cc"
    script.write_text("""#!/bin/sh
case "$*" in *" mlp_regression.c") sed -i 's/>= 0.0f) ? \\([a-z0-9]*\\)/>= 0.0f) ? 2.0f * \\1/' mlp_regression.c;; esac
exec gcc "$@"
""")
    script.chmod(0o755)
    result = openinfer("verify", *example("mlp_regression"), "--cc", script, code=1)
    assert "node by node" in result.stderr and "relu" in result.stderr, result.stderr


BESIDE = """
dynamic { x: f32[8]; y: f32[8]; }
volatile { z: f32[8]; }
block entry { op mul(x, y) >> z; op add(z, x) >> z; return z; }
"""


@pytest.mark.parametrize("change, is_found", [("*= 1.1f", True), ("= -s->z[5]", True), ("*= 1.000001f", False)])
def test_verify_finds_a_small_wrong_value_beside_a_huge_one(openinfer, tmp_path, change, is_found):
    """Every element has a tolerance of its own: a tenth of 0.002 shows beside 1e12, a last bit is no difference."""
    graph = tmp_path / "beside.oi"
    graph.write_text(BESIDE)
    result = openinfer("verify", graph, "--set", "x=1e6,0.5,0.25,1,-0.5,0.001,0.3,0.7", "--set", "y=1e6,1,1,1,1,1,1,1", "--steps",
                       "1", "--cc", tampering(tmp_path, "beside", f"s->z[5] {change};"), code=int(is_found))  # fmt: skip
    if is_found:
        assert "output z: element 5" in result.stderr and "0.002" in result.stderr, result.stderr
    else:
        row = [line for line in result.stdout.splitlines() if line.startswith("output")][0].split()
        assert 0 < float(row[4]) < float(row[6]) < 1e-4 and 5e-7 < float(row[5]) < 2e-6, row  # absolute, allowed; relative


def test_verify_judges_nodes_without_being_asked(openinfer, tmp_path):
    graph = tmp_path / "beside.oi"
    graph.write_text(BESIDE)
    words = ["verify", graph, "--steps", "2", "--cflags", "-O0"]
    both = openinfer(*words, nodes="auto").stdout
    assert "output   z " in both and "entry:0 mul >> z" in both and "2 steps compared: they agree" in both
    whole = openinfer(*words, "--no-per-node").stdout
    assert "output   z " in whole and "entry:0" not in whole and "node by node" not in whole
    openinfer("verify", graph, "--per-node", "--no-per-node", code=2)
    openinfer(*words, "--node-seconds", "0", code=2)

    slow = tmp_path / "slow"
    slow.write_text('#!/bin/sh\ncase "$*" in *beside.c) sleep 1;; esac\nexec gcc "$@"\n')
    slow.chmod(0o755)
    left = openinfer(*words, "--cc", slow, "--node-seconds", "1", nodes="auto").stdout
    assert "entry:0" not in left and re.search(r"^node by node: left out, it would take about \d s; --per-node does it$", left, re.M)
    said = json.loads(openinfer(*words, "--json", nodes="auto").stdout)
    assert said["per_node"]["judged"] and {row["what"] for row in said["rows"]} == {"output", "node"}


def test_verify_finds_a_wrong_node_that_the_program_hides(openinfer, tmp_path):
    """The program's kernels are right; the code of a single node is not. Only the second run has it."""
    graph = tmp_path / "beside.oi"
    graph.write_text(BESIDE)
    script = tmp_path / "cc"
    script.write_text("""#!/bin/sh
case "$*" in *" beside.c") sed -i '/kernel_mul_z(/,/^}/s/x.i. [*]/1.01f * &/' beside.c;; esac
exec gcc "$@"
""")
    script.chmod(0o755)
    openinfer("verify", graph, "--cc", script)
    result = openinfer("verify", graph, "--cc", script, nodes="auto", code=1)
    assert "node entry:0 mul" in result.stderr, result.stderr


FAILS_LATER = """
dynamic { x: f32[4]; at: i32; }
constant { table: f32[3, 4] @init(0.5); }
volatile { row: f32[4]; }
persistent { step: i32 @init(0); K(t): f32[4] @table @cap(t=5); sum: f32[4]; }
block entry {
  assign s: f32[4];
  cache.read sum >> s;
  op add(s, x) >> s;
  cache.write s >> sum;
  cache.write x >> K[step];
  cache.increment step;
  op gather(table, at, axis=0) >> row;
  return row;
}
"""


@pytest.mark.parametrize("way", ["--per-node", None])
@pytest.mark.parametrize("at, failed", [("2", 4), ("3", 9), ("-3", 4), ("-4", 9)])
def test_failing_steps(openinfer, tmp_path, at, failed, way):
    """A full table (E047) and an index out of range (E047), in steps that had changed things before."""
    graph = tmp_path / "fails.oi"
    graph.write_text(FAILS_LATER)
    words = [way] if way else []
    result = openinfer("verify", graph, "--steps", "9", "--set", f"at={at}", "--cflags", "-O1", *words)
    assert f"9 steps compared, {failed} of them ended with the same error: they agree" in result.stdout


def test_several_graphs(openinfer, tmp_path):
    """Two graphs over one state: what one writes the other reads."""
    (tmp_path / "put.oi").write_text("""
dynamic { x: f32[4]; }
persistent { n: i32 @init(0); K(t): f32[4] @table @cap(t=20); }
block entry { cache.write x >> K[n]; cache.increment n; return; }
""")
    (tmp_path / "get.oi").write_text("""
volatile { y: f32[4]; first: f32[4]; }
persistent { n: i32 @init(0); K(t): f32[4] @table @cap(t=20); }
block entry { cache.read K[0] >> first; op relu(first) >> y; return y; }
""")
    words = [tmp_path / "put.oi", tmp_path / "get.oi", "--cflags", "-O1"]
    for more in ([], ["--in-turn"], ["--in-turn", "--per-node"]):
        result = openinfer("verify", *words, "--steps", "4", *more)
        assert "they agree" in result.stdout
        assert f"{8 if more else 4} steps compared" in result.stdout


def test_missing_tools(openinfer, example, tmp_path):
    (tmp_path / "empty").mkdir()
    result = openinfer("verify", *example("minimal"), code=3, env={"PATH": str(tmp_path / "empty")})
    assert "not installed" in result.stderr and "package" in result.stderr
    result = openinfer("verify", *example("minimal"), "--cc", "no-such-compiler", code=3)
    assert "no-such-compiler: error: is not installed" in result.stderr
    result = openinfer("verify", *example("minimal"), "--target", "cpu_neon", "--cc", "gcc",
                       code=3, env={"PATH": str(tmp_path / "empty")})  # fmt: skip
    assert "make" in result.stderr
    result = openinfer("verify", *example("minimal"), "--cflags", "-no-such-flag", code=1)
    assert "did not build" in result.stderr and "no-such-flag" in result.stderr
    result = openinfer("verify", *example("minimal"), "--target", "null", code=3)
    assert "cannot be built and run here" in result.stderr


def test_wrong_words(openinfer, example):
    openinfer("verify", *example("minimal"), "--set", "nothing=1", code=2)
    openinfer("verify", *example("minimal"), "--set", "x=1,2", code=2)
    openinfer("verify", *example("minimal"), "--steps", "0", code=2)
    openinfer("verify", code=2)


# -- promises of the emitted code ---------------------------------------------------------------------------


def synth(openinfer, example, name, out, *more):
    words = example(name)[:3]  # --set is for runs
    openinfer("synth", *words, "--target", "cpu_scalar", "-o", out, *more)
    return out


@pytest.mark.parametrize("name", NAMES)
def test_same_bytes(openinfer, example, tmp_path, name):
    first, again = (synth(openinfer, example, name, tmp_path / d) for d in ("first", "another_place"))
    files = sorted(p.name for p in first.iterdir())
    assert {f"{name}.h", f"{name}.c", "main.c", "hal.h", "hal.c", "Makefile", "weights.bin"} <= set(files)
    assert files == sorted(p.name for p in again.iterdir())
    for file in files:
        assert (first / file).read_bytes() == (again / file).read_bytes(), file


DRIVER = r"""
/* Two instances, saved states and a counted allocator around one program. */
#include "NAME.h"
#include "hal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t k);
extern void *__libc_realloc(void *p, size_t n);
static unsigned long n_allocations;
void *malloc(size_t n) { n_allocations++; return __libc_malloc(n); }
void *calloc(size_t n, size_t k) { n_allocations++; return __libc_calloc(n, k); }
void *realloc(void *p, size_t n) { n_allocations++; return __libc_realloc(p, n); }

#define STEPS 6
static NAME a, b, c;
static unsigned char saved[NAME_SAVED_BYTES], other[NAME_SAVED_BYTES], wanted[STEPS][sizeof a.OUTPUT];

static void feed(NAME *s, int step, int seed)
{
    for (size_t i = 0; i < sizeof s->INPUT / sizeof s->INPUT[0]; i++)
        s->INPUT[i] = (float)((i * 7u + (unsigned)step * 13u + (unsigned)seed * 5u) % 31u) / 16.0f - 1.0f;
}

static int take(NAME *s, int step, int seed)
{
    feed(s, step, seed);
    return NAME_step(s);
}

#define CHECK(x) do { if (!(x)) { printf("line %d: %s\n", __LINE__, #x); return 1; } } while (0)

int main(int argc, char **argv)
{
    size_t size;
    const void *w = hal_map(argv[argc - 1], &size);
    CHECK(w);
    unsigned char *bad = malloc(size + 64), *at = bad + (64 - (size_t)bad % 64) % 64;
    memcpy(at, w, size);
    CHECK(NAME_init(&a, at, size - 1) != 0);
    at[9] ^= 1;
    CHECK(NAME_init(&a, at, size) != 0);
    at[9] ^= 1;
    at[0] ^= 1;
    CHECK(NAME_init(&a, at, size) != 0);

    CHECK(NAME_init(&a, w, size) == 0 && NAME_init(&b, w, size) == 0 && NAME_init(&c, w, size) == 0);
    n_allocations = 0;
    for (int i = 0; i < STEPS; i++) {
        CHECK(take(&a, i, 0) == 0);
        memcpy(wanted[i], &a.OUTPUT, sizeof a.OUTPUT);
        if (i == STEPS / 2 - 1)
            NAME_save(&a, saved);
    }
    NAME_save(&a, other);

    /* another instance goes on from the saved state: the same bits */
    CHECK(NAME_load(&b, saved, sizeof saved) == 0);
    for (int i = STEPS / 2; i < STEPS; i++) {
        CHECK(take(&b, i, 0) == 0);
        CHECK(memcmp(wanted[i], &b.OUTPUT, sizeof b.OUTPUT) == 0);
    }
    NAME_save(&b, saved);
    CHECK(memcmp(saved, other, sizeof saved) == 0);
    CHECK(NAME_load(&b, saved, sizeof saved - 1) != 0);
    saved[0] ^= 1;
    CHECK(NAME_load(&b, saved, sizeof saved) != 0);

    /* back to the beginning, and a third one with other inputs between the steps */
    NAME_reset(&a);
    for (int i = 0; i < STEPS; i++) {
        CHECK(take(&c, i, 1 + i) == 0);
        CHECK(take(&a, i, 0) == 0);
        CHECK(memcmp(wanted[i], &a.OUTPUT, sizeof a.OUTPUT) == 0);
    }
    NAME_save(&a, saved);
    CHECK(memcmp(saved, other, sizeof saved) == 0);
    CHECK(n_allocations == 0);
    puts("fine");
    return 0;
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize(
    "name, input, output",
    [("overview", "x", "h"), ("linear_attention", "x", "y"), ("ordering", "x", "h"), ("streaming_pipeline", "frame", "scores")],
)  # fmt: skip
def test_instances(openinfer, example, tmp_path, name, input, output, compiler):
    tool_is_here(compiler)
    where = synth(openinfer, example, name, tmp_path / "out")
    text = (where / f"{name}.h").read_text()
    assert f" {input}[" in text and f" {output}[" in text
    driver = DRIVER.replace("NAME", name).replace("INPUT", input).replace("OUTPUT", output)
    (where / "driver.c").write_text(driver)
    subprocess.run([compiler, "-std=c11", "-O2", "-fno-builtin",
                    "-o", "driver", "driver.c", f"{name}.c", "hal.c", "-lm"], cwd=where, check=True)  # fmt: skip
    result = subprocess.run([where / "driver", where / "weights.bin"], capture_output=True, text=True)
    assert result.returncode == 0 and result.stdout == "fine\n", result.stdout + result.stderr


def test_main_refuses_other_weights(openinfer, example, tmp_path):
    where = synth(openinfer, example, "linear", tmp_path / "out")
    other = synth(openinfer, example, "minimal", tmp_path / "other")
    subprocess.run(["make", "-s", "CC=gcc"], cwd=where, check=True)
    for weights, says in ((other / "weights.bin", b"do not belong"), (where / "Makefile", b"do not belong"),
                          (tmp_path / "nothing.bin", b"cannot be read")):  # fmt: skip
        result = subprocess.run([where / "linear", weights], input=b"", capture_output=True)
        assert result.returncode == 1 and says in result.stderr


# -- nothing half-written -----------------------------------------------------------------------------------


def limited(size):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.parametrize("size", [0, 100, 1000, 3000])
def test_full_disk(example, tmp_path, size):
    """A file that cannot be written: no folder, nor anything beside it."""
    out = tmp_path / "out"
    words = [BIN, "synth", *example("mlp_regression")[:3], "--target", "cpu_scalar", "-o", str(out)]
    result = subprocess.run(words, capture_output=True, text=True, preexec_fn=limited(size))
    assert result.returncode == 3 and result.stderr
    assert list(tmp_path.iterdir()) == []


def test_earlier_program_survives(openinfer, example, tmp_path):
    out = synth(openinfer, example, "mlp_regression", tmp_path / "out")
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    words = [BIN, "synth", *example("minimal")[:3], "--target", "cpu_scalar", "-o", str(out)]
    result = subprocess.run(words, capture_output=True, text=True, preexec_fn=limited(500))
    assert result.returncode == 3
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    assert list(tmp_path.iterdir()) == [out]


def test_killed_runs_are_cleaned_up(openinfer, example, tmp_path):
    """What a killed run left beside the output goes with the next one; what others own stays."""
    host = os.uname().nodename[:63]
    dead = subprocess.Popen(["true"])
    dead.wait()
    stale = tmp_path / f"out.openinfer-{host}-{dead.pid}-abc123"
    others = [tmp_path / f"out.openinfer-{host}-{os.getpid()}-abc123",  # a run that lives
              tmp_path / f"out.openinfer-elsewhere-{dead.pid}-abc123",  # another machine's
              tmp_path / "out.abc123", tmp_path / f"out2.openinfer-{host}-{dead.pid}-abc123"]  # fmt: skip
    for path in [stale, *others]:
        path.mkdir()
        (path / "linear.c").write_text("int half;")
    words = [str(w) for w in example("linear") if not str(w).startswith("--set")]
    openinfer("synth", *words[:3], "--target", "cpu_scalar", "-o", str(tmp_path / "out") + "/")
    assert (tmp_path / "out/linear.c").exists() and not stale.exists()
    assert all((path / "linear.c").exists() for path in others)


@pytest.mark.parametrize("base", ["cpu_scalar", "cortex_m4"])
def test_big_endian_devices_are_refused(openinfer, example, tmp_path, base):
    """Weights are little-endian, embedded ones too: a program would find every number reversed."""
    device = tmp_path / "big.json"
    device.write_text(json.dumps({"extends": base, "cpu": {"endianness": "big"}, "preferences": {"embed_weights": "always"}}))
    result = openinfer("synth", *example("linear")[:3], "--target", device, "-o", tmp_path / "out", code=1)
    assert "error[E060]" in result.stderr and "it is big-endian" in result.stderr and not (tmp_path / "out").exists()


def test_big_endian_compilers_are_refused(openinfer, example, tmp_path):
    openinfer("synth", *example("linear")[:3], "--target", "cpu_scalar", "-o", tmp_path / "out")
    big = ["gcc", "-std=c11", "-fsyntax-only", "-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__", "linear.c"]
    done = subprocess.run(big, cwd=tmp_path / "out", capture_output=True, text=True)
    assert done.returncode and "weights and packed elements are little-endian" in done.stderr


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_device_with_c99(openinfer, example, tmp_path, compiler):
    """All that is emitted for one thread is C99, and its Makefile says so."""
    tool_is_here(compiler)
    device = tmp_path / "old.json"
    device.write_text('{"extends": "cpu_scalar", "cpu": {"c_standard": "c99"}}')
    strict = tmp_path / "strict"
    strict.write_text(f'#!/bin/sh\ncase " $* " in *" -std=c99 "*) ;; *.c*) exit 9 ;; esac\nexec {compiler} -Werror "$@"\n')
    strict.chmod(0o755)
    openinfer("synth", *example("linear")[:3], "--target", device, "-o", tmp_path / "out")
    subprocess.run(["make", "-s", f"CC={strict}"], cwd=tmp_path / "out", check=True)
    openinfer("verify", *example("linear"), "--target", device, "--cc", strict)


def test_c99_for_a_microcontroller(openinfer, example, tmp_path):
    device = tmp_path / "old.json"
    device.write_text('{"extends": "cortex_m4", "cpu": {"c_standard": "c99"}}')
    openinfer("synth", *example("linear")[:3], "--target", device, "-o", tmp_path / "out")
    assert "-std=c99" in (tmp_path / "out/Makefile").read_text()
    for path in ("linear.c", "main.c", "weights.c", "freestanding.c"):
        words = ["gcc", "-std=c99", "-m32", "-ffreestanding", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", path]
        subprocess.run(words, cwd=tmp_path / "out", check=True)


def test_threads_need_c11(openinfer, tmp_path):
    """They share steps with the atomics of C11."""
    graph = tmp_path / "large.oi"
    graph.write_text("dynamic { x: f32[2000, 2000]; }\nvolatile { y: f32[2000, 2000]; }\nblock entry { op exp(x) >> y; return; }\n")
    for threads in (4, 1):
        device = tmp_path / f"old{threads}.json"
        device.write_text(f'{{"extends": "cpu_scalar", "cpu": {{"c_standard": "c99", "threads": {threads}}}}}')
        result = openinfer("synth", graph, "--target", device, "-o", tmp_path / "out", code=int(threads > 1))
        assert (tmp_path / "out").exists() == (threads == 1)
        assert threads == 1 or ("E060" in result.stderr and "cpu.threads to 1" in result.stderr)


def test_verify_leaves_nothing(openinfer, example, tmp_path):
    openinfer("verify", *example("minimal"), "--cflags", "-O0", env={"TMPDIR": str(tmp_path)})
    openinfer("verify", *example("minimal"), "--cflags", "-broken", code=1, env={"TMPDIR": str(tmp_path)})
    assert list(tmp_path.iterdir()) == []
    kept = tmp_path / "kept"
    openinfer("verify", *example("minimal"), "--cflags", "-O0", "--keep", kept)
    assert (kept / "minimal.c").exists() and (kept / "minimal").exists()


# -- bench --------------------------------------------------------------------------------------------------


def test_bench(openinfer, example, tmp_path):
    words = ["bench", *example("kv_cache_decode"), "--steps", "40", "--cflags", "-O1"]
    result = openinfer(*words, "--target", "cpu_scalar", "--against", "sim", "--json")
    about = json.loads(result.stdout)
    assert about["steps"] == 40 and [r["name"] for r in about["rows"]] == ["cpu_scalar", "sim"]
    for r in about["rows"]:  # its cache is full after eight steps, and starts anew
        assert 0 < r["least_ns"] <= r["low_ns"] <= r["median_ns"] <= r["high_ns"]
    text = openinfer(*words, "--against", "sim").stdout
    assert "median" in text and "cpu_scalar" in text and "speed / sim" in text
    openinfer(*words, "--steps", "0", code=2)
    openinfer(*words, "--cc", "no-such-compiler", code=3)
    said = openinfer("bench", *example("linear"), "--steps", "20", "--cflags", "-O1")
    assert "GB/s" in said.stdout and said.stderr.count("x is not set") == 1
    row = json.loads(openinfer("bench", *example("linear"), "--steps", "20", "--json").stdout)["rows"][0]
    plan = openinfer("synth", *example("linear")[:3], "--target", "cpu_scalar", "-o", tmp_path / "out")
    cost = json.loads((tmp_path / "out/plan.json").read_text())["graphs"][0]["cost"]
    assert plan.returncode == 0 and row["macs"] == cost["macs"] > 0 and row["bytes_moved"] == cost["bytes_moved"]
    assert row["gflop_per_s"] == pytest.approx(2 * row["macs"] / row["median_ns"], rel=1e-3)
    assert row["gb_per_s"] == pytest.approx(row["bytes_moved"] / row["median_ns"], rel=1e-3)
    openinfer("bench", EXAMPLES / "nothing.oi", code=3)
