"""tests/tools/quick_cc.c, through which the other tests compile: it gives what the compiler itself would give."""

import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import BIN

QUICK = pathlib.Path(BIN).with_name("quick_cc")


class Compiler:
    """A compiler that counts its calls, below quick_cc in PATH."""

    def __init__(self, folder, name, script):
        self.folder, self.log = folder, folder / "log"
        for where in ("quick", "own", "kept", "source"):
            (folder / where).mkdir()
        (folder / "quick" / name).symlink_to(QUICK)
        own = folder / "own" / name
        own.write_text(f"#!/bin/sh\necho \"$*\" >> {self.log}\n{script}\n")
        own.chmod(0o755)
        path = f"{folder / 'quick'}:{folder / 'own'}:{os.environ['PATH']}"
        self.env = {**os.environ, "PATH": path, "OPENINFER_QUICK_CC": str(folder / "kept")}
        self.name = name

    def __call__(self, *words, **env):
        return subprocess.run([self.name, *words], cwd=self.folder / "source", env={**self.env, **env}, capture_output=True, text=True)

    def calls(self):
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0

    def write(self, name, text):
        (self.folder / "source" / name).write_text(text)

    def object(self):
        return (self.folder / "source/a.o").read_bytes()


@pytest.fixture
def copying(tmp_path):
    """Its objects are the text of the source and of the header."""
    cc = Compiler(tmp_path, "gcc", "cat a.c a.h > a.o; grep -h warn a.c >&2; ! grep -q wrong a.c")
    cc.write("a.c", '#include "a.h"\n')
    cc.write("a.h", "int x;\n")
    return cc


def test_the_same_text_is_compiled_once(copying):
    for _ in range(2):
        assert copying("-O1", "-c", "-o", "a.o", "a.c").returncode == 0
        assert copying.object() == b'#include "a.h"\nint x;\n'
        (copying.folder / "source/a.o").unlink()
    assert copying.calls() == 1


def test_anything_else_is_compiled(copying):
    words = ["-O1", "-c", "-o", "a.o", "a.c"]
    copying(*words)
    copying("-O2", *words[1:])
    assert copying.calls() == 2
    copying.write("a.h", "int y;\n")
    copying(*words)
    assert copying.calls() == 3 and b"int y;" in copying.object()
    copying.write("a.c", '#include "a.h"\nint z;\n')
    copying(*words)
    assert copying.calls() == 4 and b"int z;" in copying.object()
    for n, more in enumerate((["-I."], ["-include", "a.h"], ["-MD"])):  # what it is made of is not known
        for i in (1, 2):
            copying(*words, *more)
            assert copying.calls() == 4 + 2 * n + i
    copying.write("a.c", '#include "elsewhere/b.h"\n')
    before = copying.calls()
    for i in (1, 2):
        copying(*words)
        assert copying.calls() == before + i
    copying(*words, OPENINFER_QUICK_CC="")
    assert copying.calls() == before + 3


def test_what_the_compiler_says_is_said_every_time(copying):
    for text, code in (("/* warn */", 0), ("wrong warn", 1), ("wrong", 1)):
        copying.write("a.c", text + "\n")
        for _ in range(2):
            before = copying.calls()
            done = copying("-c", "-o", "a.o", "a.c")
            assert done.returncode == code and copying.calls() == before + 1
            assert done.stderr == (text + "\n" if "warn" in text else "")


@pytest.mark.skipif("avx2" not in pathlib.Path("/proc/cpuinfo").read_text() or not shutil.which("gcc"), reason="no gcc for AVX2")
@pytest.mark.parametrize("flags", ["-O3", "-O0 -fsanitize=address,undefined"])
def test_a_precompiled_header_changes_no_code(tmp_path, flags):
    cc = Compiler(tmp_path, "gcc", 'PATH=${PATH#*:}; PATH=${PATH#*:}; exec gcc "$@"')
    text = "\n#include <string.h>\n#include <immintrin.h>\nvoid f{i}(float *x);\nvoid f{i}(float *x)\n{{\n"
    text += "    _mm256_storeu_ps(x, _mm256_add_ps(_mm256_loadu_ps(x + {i}), _mm256_set1_ps((float)strlen((char *)x))));\n}}\n"
    words = [*flags.split(), "-Wall", "-Werror", "-Winvalid-pch", "-mavx2", "-c", "-o", "a.o", "a.c"]
    for i in range(2):
        cc.write("a.c", text.format(i=i))
        done = cc(*words)
        assert done.returncode == 0, done.stderr
        quick = cc.object()
        cc(*words, OPENINFER_QUICK_CC="")
        assert cc.object() == quick
    assert len(list((tmp_path / "kept").glob("*.gch"))) == 1
    with_header = [line for line in cc.log.read_text().splitlines() if "-include" in line]
    assert len(with_header) == 2 and cc.calls() == 5
