"""ONNX's node tests as emitted C: `python as_c.py [--every N] [WORD...]`.

Each test that passes in the simulator (backend.py) is synthesized for cpu_scalar, built, run and compared with the
simulator by `openinfer verify`.
"""

import collections
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import backend
import session

BIN = os.environ.get("OPENINFER_BIN") or str(session.BUILD / "bin/openinfer")
FLAGS = "-O0 -w"  # the compiler's optimiser is not what is tried here
LONGEST = 4096  # numbers that a command line takes, of types that numpy's files do not have


def given_as(folder, v, values):
    """--set NAME=...: a file, or the numbers themselves."""
    if v.dtype in session.PACKED or v.dtype in ("bf16", "f8"):
        if values.size > LONGEST:
            raise backend.Fail(f"an input of {values.size} numbers of type {v.dtype} fits no command line")
        kind = float if v.dtype in ("bf16", "f8") else int
        return f"{v.label}=" + ",".join(str(kind(n)) for n in values.reshape(-1))
    np.save(folder / f"{v.label}.npy", values)
    return f"{v.label}={folder / v.label}.npy"


def check(case, where):
    backend.check_types(case)
    names = [i.name for i in case.model.graph.input]
    inputs, _ = case.data_sets[0]
    given = {k: backend.array(v) for k, v in zip(names, inputs) if v is not None}
    program = backend.imported(case, given)
    folder = pathlib.Path(where)
    text = backend.write_text(program, [])
    (folder / "m.oi").write_text(text)
    backend.write_package(str(folder / "m.oinf"), program)
    sets = [word for v in program.inputs for word in ("--set", given_as(folder, v, given[v.name]))]
    command = [BIN, "verify", str(folder / "m.oi"), "--model", str(folder / "m.oinf"), "--target", "cpu_scalar", "--steps", "1",
               "--no-per-node", "--cflags", FLAGS, *sets]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise backend.Fail(" ".join((done.stderr + done.stdout).replace(str(folder) + "/", "").split())[:200])


def outcome(case):
    """(name, None) for a test that agrees, (name, reason) for one that does not, nothing for one that is outside."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            check(case, folder)
        except backend.Skip:
            return None
        except (backend.Fail, backend.OinfError) as e:
            return case.name, str(e)
        return case.name, None


def run(cases, known):
    """What does not agree, and how many do; `known` do not pass in the simulator."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [o for o in pool.map(outcome, [c for c in cases if c.name not in known]) if o is not None]
    return {name: reason for name, reason in found if reason}, sum(reason is None for _, reason in found)


def main(words):
    every = 1
    if words[:1] == ["--every"]:
        every, words = int(words[1]), words[2:]
    lines = (pathlib.Path(__file__).parent / "not_passing.txt").read_text(encoding="utf-8").splitlines()
    failed, passed = run(backend.cases(words)[::every], {line.split(": ", 1)[0] for line in lines[1:]})
    for name, reason in failed.items():
        print(f"{name}: {reason}")
    for reason, n in collections.Counter(r.split(":")[0] for r in failed.values()).most_common(5):
        print(f"{n} tests: {reason}")
    total = passed + len(failed)
    print(f"{passed} of {total} programs in C agree with the simulator ({100 * passed / max(1, total):.1f} %)")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
