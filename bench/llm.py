"""SmolLM2 as emitted C beside llama.cpp, in one run, in turn.

    python bench/llm.py [--json] [--threads 2] [--rounds 5]

The program is synthesized for this machine and times its own steps: decoding at a short context, decoding behind
1,024 tokens, and reading a prompt of 512 in chunks, of which the last gives logits. llama.cpp is the library of
llama-cpp-python, built for this machine and called from C (bench/peers/llama.c); of attention in one pass and not,
the better counts, case by case. Where there are tiles of bf16, chunks have 128 tokens and are computed in bf16, and
another row says what 8 bits and chunks of 32 do. A last case is the program as its plain nests alone make it, beside the
simulator with its tuned kernels.
"""

import importlib.util
import json
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile

import emitted
import rows

PROMPT, CONTEXT, DECODED = 512, 1024, 32
DECODE, PREFILL, LATE = "smollm2 decode", "smollm2 prefill 512", "smollm2 late decode at 1024"
EIGHTS, PLAIN = "smollm2 in 8 bits prefill 512", "smollm2 plain nests decode"
CASES = [PREFILL, DECODE, LATE]  # as a side measures them
BARS = {DECODE: 1.8, LATE: 1.8, PREFILL: 2.5}
MACS = 134515008  # by a token: every weight once
HEAD = 49152 * 576  # weights that only the last token of a prompt meets


class Ours:
    """A program for a target, of a folder with prefill.oi, decode.oi and model.oinf, whose T is `chunk`."""

    def __init__(self, model, folder, threads, target=None, chunk=32):
        graphs = [model / "prefill.oi", model / "decode.oi"]
        self.program = emitted.Program(folder, "llm", graphs, model / "model.oinf", target)
        self.threads, self.chunk = threads, chunk

    def part(self, more):
        return struct.pack(f"<{self.chunk + 2}i", *range(5, 5 + self.chunk), self.chunk, more)

    def prefill(self):
        """The first chunk, which also touches all weights for the first time, counts as the second."""
        n = PROMPT // self.chunk - 1
        times = self.program.times(self.part(1) + b"\0" + self.part(0), [n, 1], 0, self.threads)
        return PROMPT / (times[1] + sum(times[1:]))

    def decode(self):
        return 1 / statistics.median(self.program.times(struct.pack("<i", 5), 8 + DECODED, 1, self.threads)[8:])

    def late(self):
        n = CONTEXT // self.chunk
        inputs = self.part(1) + struct.pack("<Bi", 1, 5)
        return 1 / statistics.median(self.program.times(inputs, [n, DECODED], 0, self.threads)[n:])

    def all(self):
        return self.prefill(), self.decode(), self.late()


def peer_program(folder):
    """bench/peers/llama.c with the library of llama-cpp-python; None: that is not there."""
    spec = importlib.util.find_spec("llama_cpp")
    if spec is None:
        return None
    package = pathlib.Path(spec.origin).parent
    out = pathlib.Path(folder) / "llama"
    rows.program("cc", "-O2", rows.REPO / "bench/peers/llama.c", "-I", package.parent / "include", "-L", package / "lib",
                 f"-Wl,-rpath,{package / 'lib'}", "-lllama", "-lggml", "-lggml-base", "-lm", "-o", out)  # fmt: skip
    return out


class Peer:
    def __init__(self, program, gguf, threads):
        self.words = [str(program), str(gguf), str(threads), "1"]

    def run(self, flash):
        done = subprocess.run([*self.words, flash], capture_output=True, text=True, check=True)
        return map(float, done.stdout.split())

    def all(self):
        """The better of attention in one pass and not, case by case."""
        return tuple(map(max, self.run("0"), self.run("1")))


def plain_beside_simulator(model):
    """Tokens/s of both, by `openinfer bench`."""
    words = ["bench", model / "decode.oi", "--model", model / "model.oinf", "--target", emitted.target(), "--without",
             "recipes", "--against", "sim", "--set", "tokens=5", "--steps", "30", "--json"]  # fmt: skip
    said = json.loads(rows.program(emitted.OPENINFER, *words))
    return [1e9 / row["median_ns"] for row in said["rows"]]


def large_chunks(model):
    """The same model in chunks of 128."""
    folder = model.parent / "smollm2_128"
    rows.program(sys.executable, rows.REPO / "tools/models.py", "--out", model.parent, "smollm2", "--folder", folder, "--size",
                 "T=128")  # fmt: skip
    return folder


def programs(model, temp, threads):
    """What counts, and the same in 8 bits where that is another."""
    if "avx512_bf16" not in emitted.isas() or emitted.target() != "cpu_amx":
        return Ours(model, temp / "c", threads), None
    half = Ours(large_chunks(model), temp / "half", threads, "cpu_amx_bf16", 128)
    return half, Ours(model, temp / "c", threads)


def beside_llama(o, model, temp, wanted):
    peer = peer_program(temp)
    if peer is None:
        yield rows.left_out("smollm2", "llama.cpp", "llama-cpp-python is not installed")
    (gguf,) = (model / "source").glob("*.gguf")
    ours, eights = programs(model, temp, o.threads)
    sides = {"ours": ours, "peer": peer and Peer(peer, gguf, o.threads), "eights": eights}
    sides = {name: side.all for name, side in sides.items() if side}
    found = dict(zip(sides, rows.alternate(o.rounds, *sides.values())))
    size = (model / "model.oinf").stat().st_size
    caches = 2 * 30 * 192 * 2 * CONTEXT
    works = {DECODE: {"bytes": size, "macs": MACS, "arithmetic": "int8"},
             LATE: {"bytes": size + caches, "macs": MACS, "arithmetic": "int8"},
             PREFILL: {"macs": MACS - HEAD, "touches": size / PROMPT, "arithmetic": "tile" if eights else "int8"}}  # fmt: skip
    works[EIGHTS] = works[PREFILL]
    for case, side in [(case, "ours") for case in CASES] + [(EIGHTS, "eights")]:
        if case in wanted and side in found:
            at = CASES.index(case) if case in CASES else 0
            both = [[all[at] for all in found[s]] for s in (side, "peer") if s in found]
            yield rows.row(case, "tokens/s", *both, peer_name="llama.cpp", bar=BARS.get(case), threads=o.threads, **works[case])


def measure(o):
    model = o.models / "smollm2"
    wanted = [case for case in [*CASES, EIGHTS] if o.wants(case)]
    if not wanted and not o.wants(PLAIN):
        return
    if not (model / "model.oinf").exists():
        yield rows.left_out("smollm2", "the model", f"there is no {model} (make models)")
        return
    if o.wants(PLAIN):
        ours, peer = zip(*(plain_beside_simulator(model) for _ in range(o.rounds)))
        yield rows.row(PLAIN, "tokens/s", list(ours), list(peer), "the simulator", bar=1, threads=o.threads)
    if wanted:
        with tempfile.TemporaryDirectory() as temp:
            yield from beside_llama(o, model, pathlib.Path(temp), wanted)


if __name__ == "__main__":
    sys.exit(rows.main(measure, __doc__))
