"""Whatever a graph calls things, the program compiles, and its header does in C and C++."""

import re
import shutil
import subprocess
import sys

import pytest
from conftest import REPO

sys.path.insert(0, str(REPO / "python/src"))
from openinfer.oinf import PackageWriter  # noqa: E402

COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]

KEYWORDS = """int register _Static_assert _Bool _Complex _Alignas _Generic __func__ __FILE__ __LINE__ __GNUC__ asm typeof
class namespace new delete this template virtual bool true and xor not_eq constexpr nullptr thread_local""".split()
MACROS = """NULL EOF INT64_MAX UINT8_MAX SIZE_MAX HUGE_VAL INFINITY NAN M_PI I errno stdin stdout unix linux alignas
static_assert assert EXIT_FAILURE CHAR_BIT EINVAL SIGINT PRIu64 FLT_MAX BUFSIZ st_mtime si_pid ATOMIC_FLAG_INIT""".split()
LIBRARY = """expf exp memcpy memset memcmp floor fmaxf sqrtf abs isnan signbit div index y0 j1 gamma read write time exit
main malloc printf float32_t FILE setjmp qsort""".split()
TYPES = "int64_t uint8_t size_t int8_t".split()  # in C++ a member hides a type that later members have
OURS = """oi_end oi_exp_f32 oi_get_i4 oi_check oi_state_data oi_weights OI_MIXED x_int x_x_int kernel_add_y block_entry finish_add_y
meet team team_chunk hal_read s e i j k acc v0 at0 from0 i0 to from part parts failed next first last turn made need keep
weights arena before noted check check_ctx mark waits size bytes w head hash error program put nothing K_size K_written
oi_n0 oi_has_K next_graph best size1 row0 x_n0 T_n0""".split()
NAMES = list(dict.fromkeys(KEYWORDS + MACROS + LIBRARY + TYPES + OURS))
SYSTEM = ("assert ctype errno fenv float inttypes limits locale math setjmp signal stdarg stddef stdint stdio stdlib "
          "string time wchar sys/types sys/stat unistd pthread").split()  # fmt: skip


def check_c(compiler, path, *flags):
    run = subprocess.run(
        [compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *flags, path],
        capture_output=True, text=True)  # fmt: skip
    assert run.returncode == 0, run.stderr[:3000]


def check_header(folder, name, compilers=COMPILERS):
    """After all the headers that a host may include."""
    host = folder / "host.c"
    host.write_text("#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n" + "".join(f"#include <{h}.h>\n" for h in SYSTEM) + f'#include "{name}.h"\n'
                    + f"int host({name} *s);\nint host({name} *s)\n{{\n    return {name}_init(s, 0, 0) == {name}_OK;\n}}\n")  # fmt: skip
    for compiler in compilers:
        check_c(compiler, host)
        cpp = {"gcc": "g++", "clang": "clang++"}[compiler]
        if shutil.which(cpp):
            run = subprocess.run([cpp, "-x", "c++", "-std=c++11", "-Wall", "-Werror", "-fsyntax-only", host], capture_output=True, text=True)
            assert run.returncode == 0, run.stderr[:3000]
    host.unlink()


def check_program(folder, name):
    for compiler in COMPILERS:
        for path in (folder / "main.c", folder / f"{name}.c"):
            check_c(compiler, path, *(["-mavx2", "-mfma", "-mf16c"] if path.stem == name else []))
    check_header(folder, name)


def graph_of(names):
    """Every name is an input, and an output or persistent or local, in kernels with and without counters."""
    lines = ["dynamic {", *[f"  {n}: f32[4, 3];" for n in names], "}", "volatile {"]
    lines += [f"  out_{i}: f32[4, 3];" for i in range(len(names))]
    lines += ["}", "block entry {"]
    for i, n in enumerate(names):
        other = names[i - 1]
        lines += [f"  op add({n}, {other}) >> out_{i};", f"  op softmax(out_{i}, axis=1) >> out_{i};",
                  f"  op pow(out_{i}, {n}) >> out_{i};"]  # fmt: skip
    return "\n".join([*lines, "  return;", "}"]) + "\n"


def synth(openinfer, folder, text, *more, name="p", target="cpu_scalar"):
    graph = folder / "graph.oi"
    graph.write_text(text)
    said = openinfer("synth", graph, "--target", target, "--name", name, "-o", folder / "out", *more).stderr
    own = re.search(rf"^openinfer synth: '{re.escape(name)}' is called (\w+)|$", said, re.M)
    return folder / "out", own.group(1) or name, said


@pytest.mark.parametrize("target", ["cpu_scalar", "cpu_avx2"])
def test_inputs_and_locals(openinfer, tmp_path, target):
    out, name, said = synth(openinfer, tmp_path, graph_of(NAMES), target=target)
    check_program(out, name)
    header = (out / "p.h").read_text()
    for n in NAMES:
        member = re.search(rf"\bfloat (x_)*{n}\[12\];", header)
        assert member, n
        is_renamed = member.group(1) is not None
        is_renamed &= not n.startswith("x_")
        assert is_renamed == (n in KEYWORDS + MACROS + TYPES and n != "assert" or n.startswith(("oi_", "OI_"))), n
        assert is_renamed == (f": '{n}' is called" in said), n
        assert not is_renamed or re.search(rf"^ \*   {n} is x_", header, re.M), n


def test_outputs(openinfer, tmp_path):
    lines = ["dynamic { given: f32[4, 3]; }", "volatile {", *[f"  {n}: f32[4, 3];" for n in NAMES], "}", "block entry {"]
    lines += [f"  op relu(given) >> {n};\n  op softmax({n}, axis=1) >> {n};" for n in NAMES]
    out, name, _ = synth(openinfer, tmp_path, "\n".join([*lines, "  return;", "}"]))
    check_program(out, name)


def test_persistents_and_locals_of_blocks(openinfer, tmp_path):
    lines = ["dynamic { given: f32[3]; }", "volatile { y: f32[3]; }", "persistent {"]
    lines += [f"  {n}: f32[3];" for n in NAMES]
    lines += ["}", "block entry {", "  assign t: f32[3];"]
    for n in NAMES:
        lines += [f"  cache.read {n} >> t;", "  op add(t, given) >> t;", f"  cache.write t >> {n};"]
    out, name, _ = synth(openinfer, tmp_path, "\n".join([*lines, "  transfer t >> y;", "  return;", "}"]))
    check_program(out, name)


def test_tables_that_grow(openinfer, tmp_path):
    names = ["int", "errno", "K", "K_size", "size_K", "s", "e", "to", "from", "oi_size_K", "at0"]
    lines = ["dynamic { given: f32[3]; at: i32; }", "volatile { y: f32[3]; }", "persistent {"]
    lines += [f"  {n}(r): f32[3] @table @cap(r=4);" for n in names] + ["}", "block entry {"]
    lines += [f"  cache.write given >> {n}[at];\n  cache.read {n}[at] >> y;" for n in names]
    out, name, _ = synth(openinfer, tmp_path, "\n".join([*lines, "  return;", "}"]))
    check_program(out, name)


def test_indices_blocks_and_tables(openinfer, tmp_path):
    some = [n for n in NAMES if n not in ("given", "y")]
    lines = ["dynamic { given: f32[3]; n: i64; }", "volatile { y: f32[3]; }", "block entry {"]
    for i, n in enumerate(some):
        lines += [f"  loop l{i} ({n} in 0..n) {{ op add(y, given) >> y; branch {n}_b; branch {n}; }}"]
    lines += ["  return;", "}"]
    for n in some:
        lines += [f"block {n} {{ op mul(y, given) >> y; return; }}", f"block {n}_b {{ op neg(y) >> y; return; }}"]
    out, name, _ = synth(openinfer, tmp_path, "\n".join(lines))
    check_program(out, name)


@pytest.mark.parametrize("target", ["cpu_avx2", "cortex_m4"])
def test_sizes_of_the_model(openinfer, tmp_path, target):
    """In dims, limits of loops, attributes and tables; half of them come from the package, half from the command line."""
    lines = ["dynamic { n: i64; }", "volatile {"]
    lines += [f"  x_{i}: f32[{n}, 3] @init(1);\n  out_{i}: f32[3];" for i, n in enumerate(NAMES)]
    lines += ["}", "persistent {", *[f"  K_{i}(r, {n}): f32[3] @table @cap(r={n}, {n}=2);" for i, n in enumerate(NAMES[:9])]]
    lines += ["}", "block entry {"]
    for i, n in enumerate(NAMES):
        lines += [f"  op sum_axis(x_{i}, axes=[{n} - 4]) >> out_{i};"]
        lines += [f"  loop l{i} (at in 0..{n}) {{ op relu(out_{i}) >> out_{i}; }}"]
    with PackageWriter(tmp_path / "m.oinf") as package:
        for n in NAMES[::2]:
            package.add_sizevar(n, 4)
    sizes = [word for n in NAMES[1::2] for word in ("--size", f"{n}=4")]
    text = "\n".join([*lines, "  return;", "}"]) + "\n"
    out, name, said = synth(openinfer, tmp_path, text, "--model", tmp_path / "m.oinf", *sizes, target=target)
    assert "is called" not in said, "a size is a number in what is written: no name of it can collide"
    if target == "cpu_avx2":
        check_program(out, name)
    else:
        check_c("gcc", out / f"{name}.c", "-ffreestanding")


TEXT = "dynamic { x: f32[4]; }\nvolatile { y: f32[4]; }\npersistent { k: f32[4]; }\nblock entry {\n  assign t: f32[4];\n" \
       "  cache.read k >> t;\n  op add(x, t) >> y;\n  cache.write y >> k;\n  return;\n}\n"  # fmt: skip
PROGRAMS = """hal start freestanding expf clean Makefile makefile main team needs weights all test m run install int class
errno unix atomic mtx pthread_attr index read time s e i w x y k size bytes program put check mark spent oi_end oi_exp
kernel kernel_add block block_entry finish hal_read _x __x printf size_t int64_t NULL I p_init error state graph"""


@pytest.mark.parametrize("name", PROGRAMS.split())
def test_programs(openinfer, tmp_path, name):
    out, own, said = synth(openinfer, tmp_path, TEXT, "--weights", "embed", name=name)
    for path in ("main.c", f"{own}.c"):
        check_c("gcc", out / path)
    check_header(out, own, COMPILERS if len(name) > 1 and name in "hal expf int class errno".split() else ["gcc"])
    if name in ("hal", "expf", "clean", "Makefile", "main"):
        subprocess.run(["make", "-s", "CC=cc", "CFLAGS=-O0"], cwd=out, check=True)
        assert (out / own).exists()
        subprocess.run(["make", "-s", "clean"], cwd=out, check=True)
        assert not (out / own).exists()


@pytest.mark.parametrize("name", ["hal", "start", "freestanding"])
def test_programs_for_microcontrollers(openinfer, tmp_path, name):
    out, own, _ = synth(openinfer, tmp_path, TEXT, name=name, target="cortex_m4")
    assert own == f"program_{name}"
    assert {f"{own}.c", f"{own}.h", "hal.h", "start.c", "freestanding.c"} <= {p.name for p in out.iterdir()}


def test_names_of_the_emitted_files(openinfer, tmp_path):
    """A program may be called like anything at file scope in what is written beside it."""
    made = ["--per-node"]
    out, _, _ = synth(openinfer, tmp_path, TEXT, *made, name="zzz")
    text = "".join((out / f).read_text() for f in ("main.c", "zzz.c", "hal.h"))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    found = {w for line in text.splitlines() if re.match(r"(static|enum|typedef|int|void|extern)\b", line)
             for w in re.findall(r"([A-Za-z_]\w*) *(?=[\[(;=])", line) if "zzz" not in w}  # fmt: skip
    assert {"put", "program", "step_graph", "kernel_add_y", "hal_read"} <= found
    for name in sorted(found):
        again, own, _ = synth(openinfer, tmp_path / "again" if (tmp_path / "again").mkdir(exist_ok=True) is None else None,
                              TEXT, *made, name=name)  # fmt: skip
        for path in ("main.c", f"{own}.c"):
            check_c(COMPILERS[0], again / path)
        shutil.rmtree(again)


@pytest.mark.parametrize("kind", ["macros", "names"])
def test_words_are_complete(kind):
    """The lists cover what the C headers of this machine define."""
    listed = set((REPO / f"src/emit/c/words/{kind}.txt").read_text().split())
    both = listed | set((REPO / "src/emit/c/words/macros.txt").read_text().split())
    here = subprocess.run([sys.executable, REPO / "tools/cwords.py", kind, "--strict"], capture_output=True, text=True, check=True)
    assert set(here.stdout.split()) <= both
    lines = (REPO / f"src/emit/c/words/{kind}.txt").read_bytes().split(b"\n")
    assert lines == sorted(lines[:-1]) + [b""], "in the order of bytes: names.c searches by halves"
