"""Random graphs: the synthesized program does what the simulator does. See tests/synthfuzz."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from conftest import BIN, REPO

FUZZ = REPO / "tests/synthfuzz/fuzz.py"


def run(folder, *words):
    # the generator asks the library which calls there are: the plain one, Python cannot load a sanitized one
    env = {**os.environ, "OPENINFER_BUILD": str(REPO / "build")} if os.environ.get("OPENINFER_SANITIZED") else None
    return subprocess.run([sys.executable, FUZZ, "--bin", BIN, "--out", folder, *map(str, words)],
                          capture_output=True, text=True, timeout=1800, env=env)  # fmt: skip


@pytest.mark.parametrize(
    "code, said",
    [
        ("", None),
        ("static int n; if (n++ == 4) s->oi_state_data.step += 1;", "8"),  # memory of its own, that no state has
        (  # what each instance has, and lasts, but is not saved
            "static const void *who[2]; static int n[2]; int i = who[0] && who[0] != s; who[i] = s; s->y[0] += (float)n[i]++;",
            "8",
        ),
    ],
)
def test_a_second_instance_shakes_the_first(openinfer, tmp_path, code, said):
    """What fuzz.py builds half of its programs with notices what lasts outside of the state."""
    graph = tmp_path / "count.oi"
    graph.write_text("""
dynamic { x: f32[4]; }
constant { w: f32[4, 4] @init(0.5); }
volatile { y: f32[4]; }
persistent { step: i32 @init(0); K(t): f32[4] @table @cap(t=20); }
block entry { assign t: f32[4]; cache.write x >> K[step]; cache.increment step; op matmul(w, x) >> t; op matmul(w, t) >> y; return y; }
""")
    cc = tmp_path / "cc"
    cc.write_text(f"""#!/bin/sh
case "$*" in *" count.c")
    {{ cat count.c; echo '#undef count_step'; echo 'int count_step(count *s);'
      echo 'int count_step(count *s) {{ int r = honest_step(s); {code} return r; }}'; }} > tampered.c
    exec gcc -Dcount_step=honest_step -O1 -c -o count.o tampered.c;;
esac
exec gcc "$@"
""")
    cc.chmod(0o755)
    env = {"SHAKEN_CC": str(cc)}
    result = openinfer("verify", graph, "--cc", FUZZ.with_name("shaking_cc"), code=1 if said else 0, env=env)
    assert f"it ended with exit code {said}" in result.stderr if said else "8 steps compared: they agree" in result.stdout


@pytest.mark.parametrize("seed", [1, 2])  # 500 in all, on two processors
def test_random_graphs(tmp_path, sanitized, seed):
    count = 25 if sanitized else 250
    result = run(tmp_path, "--count", count, "--seed", seed)
    assert result.returncode == 0, result.stdout + result.stderr
    last = result.stdout.splitlines()[-1]
    assert last.endswith("were not well typed") and int(last.split()[0]) >= count, result.stdout
    assert int(last.split()[-5]) <= count // 50, "the generator writes what the language does not allow"


def test_a_wrong_program_is_reduced(tmp_path):
    """With a compiler that turns additions into subtractions a graph is found and made small."""
    compiler = tmp_path / "bin/cc"
    compiler.parent.mkdir()
    compiler.write_text(f"""#!/bin/sh
for f in "$@"; do case "$f" in main.c|hal.c) ;; *.c) sed -i 's/\\(v[0-9]*\\) + \\(v[0-9]*\\)/\\1 - \\2/' "$f";; esac; done
exec {shutil.which("cc")} "$@"
""")
    compiler.chmod(0o755)
    env = {**os.environ, "PATH": f"{compiler.parent}:{os.environ['PATH']}"}
    result = subprocess.run([sys.executable, FUZZ, "--bin", BIN, "--out", tmp_path / "out", "--count", "300", "--seed", "6"],
                            capture_output=True, text=True, timeout=1800, env=env)  # fmt: skip
    assert result.returncode == 1, result.stdout
    reduced = next(pathlib.Path(tmp_path / "out").glob("failed*/reduced.oi")).read_text()
    original = next(pathlib.Path(tmp_path / "out").glob("failed*/original.oi")).read_text()
    ops = [line for line in reduced.splitlines() if line.strip().startswith("op ")]
    assert len(reduced) < len(original) and 1 <= len(ops) <= 3, reduced
