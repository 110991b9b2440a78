"""SmolLM2 as emitted C beside llama.cpp, in one run, in turn.

    python bench/llm.py [--json] [--threads 2] [--rounds 5]

The program is synthesized for this machine and times its own steps: decoding at a short context, decoding after 1024
tokens, and chunks of 32 tokens of a prompt, of which the last gives logits. llama.cpp (llama-cpp-python) decodes the
same way and reads 512 tokens at once. A last case is the program as its plain nests alone make it, beside the simulator with its tuned kernels.
"""

import json
import statistics
import struct
import sys
import tempfile
import time

import emitted
import rows

CHUNK, PROMPT, CONTEXT = 32, 512, 1024
DECODE, PREFILL, LATE = "smollm2 decode", "smollm2 prefill 512", "smollm2 late decode at 1024"
PLAIN = "smollm2 plain nests decode"
BARS = {DECODE: 1.8, LATE: 1.8, PREFILL: 2.5}
MACS = 134515008  # by a token: every weight once
HEAD = 49152 * 576  # weights that only the last token of a prompt meets


class Ours:
    def __init__(self, model, folder, threads):
        self.program = emitted.Program(folder, "llm", [model / "prefill.oi", model / "decode.oi"], model / "model.oinf")
        self.threads = threads

    def decode(self):
        return 1 / statistics.median(self.program.times(struct.pack("<i", 5), 40, 1, self.threads))

    def chunk(self, more):
        return struct.pack(f"<{CHUNK + 2}i", *range(5, 5 + CHUNK), CHUNK, more)

    def prefill(self):
        n = PROMPT // CHUNK - 1
        *times, last = self.program.times(self.chunk(1) + b"\0" + self.chunk(0), [n, 1], 0, self.threads)
        return PROMPT / (n * statistics.median(times) + last)

    def late(self):
        n = CONTEXT // CHUNK
        inputs = self.chunk(1) + struct.pack("<Bi", 1, 5)
        return 1 / statistics.median(self.program.times(inputs, [n, n], 0, self.threads)[n:])


class Peer:
    def __init__(self, model, threads):
        from llama_cpp import Llama

        (path,) = (model / "source").glob("*.gguf")
        self.llama = Llama(str(path), n_ctx=2048, n_threads=threads, n_threads_batch=threads, n_batch=512, verbose=False)

    def prefill(self):
        self.llama.reset()
        start = time.perf_counter()
        self.llama.eval([1000 + 37 * i % 30000 for i in range(PROMPT)])
        return PROMPT / (time.perf_counter() - start)

    def decode(self, n=32, context=4):
        self.llama.reset()
        self.llama.eval([5 + i for i in range(context)])
        start = time.perf_counter()
        for i in range(n):
            self.llama.eval([100 + i])
        return n / (time.perf_counter() - start)

    def late(self):
        return self.decode(context=CONTEXT)


def plain_beside_simulator(model):
    """Tokens/s of both, by `openinfer bench`."""
    words = ["bench", model / "decode.oi", "--model", model / "model.oinf", "--target", emitted.target(), "--without",
             "recipes", "--against", "sim", "--set", "tokens=5", "--steps", "30", "--json"]  # fmt: skip
    said = json.loads(rows.program(emitted.OPENINFER, *words))
    return [1e9 / row["median_ns"] for row in said["rows"]]


def measure(o):
    model = o.models / "smollm2"
    wanted = [case for case in (DECODE, LATE, PREFILL) if o.wants(case)]
    if not wanted and not o.wants(PLAIN):
        return
    if not (model / "model.oinf").exists():
        yield rows.left_out("smollm2", "the model", f"there is no {model} (make models)")
        return
    if o.wants(PLAIN):
        ours, peer = zip(*(plain_beside_simulator(model) for _ in range(o.rounds)))
        yield rows.row(PLAIN, "tokens/s", list(ours), list(peer), "the simulator", bar=1, threads=o.threads)
    if not wanted:
        return
    try:
        peer = Peer(model, o.threads)
    except ImportError:
        peer = None
        yield rows.left_out("smollm2", "llama.cpp", "llama-cpp-python is not installed")
    size = (model / "model.oinf").stat().st_size
    caches = 2 * 30 * 192 * 2 * CONTEXT
    works = {DECODE: {"bytes": size, "macs": MACS, "arithmetic": "int8"},
             LATE: {"bytes": size + caches, "macs": MACS, "arithmetic": "int8"},
             PREFILL: {"macs": MACS - HEAD, "touches": size / PROMPT, "arithmetic": "int8"}}  # fmt: skip
    with tempfile.TemporaryDirectory() as temp:
        ours = Ours(model, temp, o.threads)
        for case in wanted:
            name = case.split()[1]
            both = [getattr(side, name) for side in (ours, peer) if side]
            yield rows.row(case, "tokens/s", *rows.alternate(o.rounds, *both), peer_name="llama.cpp",
                           bar=BARS[case], threads=o.threads, **works[case])  # fmt: skip


if __name__ == "__main__":
    sys.exit(rows.main(measure, __doc__))
