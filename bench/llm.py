"""SmolLM2 as emitted C beside llama.cpp, in one run: runs alternate, medians and spread, ratios.

    python bench/llm.py [--model build/models/smollm2] [--threads 2] [--rounds 5]

The program is synthesized for this machine (cpu_avx2) and times its own steps: decoding at a short context, and
chunks of 32 tokens of a prompt. llama.cpp (llama-cpp-python) decodes the same way and reads 512 tokens at once.
"""

import argparse
import glob
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

REPO = pathlib.Path(__file__).resolve().parent.parent
CHUNK = 32


def build(model, folder):
    words = [REPO / "build/bin/openinfer", "synth", model / "prefill.oi", model / "decode.oi", "--model",
             model / "model.oinf", "--target", "cpu_avx2", "-o", folder, "--name", "llm"]  # fmt: skip
    subprocess.run(words, check=True)
    subprocess.run(["make", "-s", "-C", folder], check=True)


def times(folder, graph, steps, threads):
    """Seconds of each step of the graph: 0 reads a chunk, 1 decodes."""
    tokens = struct.pack("<i", 5) if graph else struct.pack(f"<{CHUNK}i", *range(5, 5 + CHUNK)) + struct.pack("<i", CHUNK)
    done = subprocess.run([folder / "llm", folder / "weights.bin", str(steps)], input=bytes([graph]) + tokens,
                          capture_output=True, check=True, env={**os.environ, "THREADS": str(threads)})  # fmt: skip
    out, at, found = done.stdout, 0, []
    while at + 32 <= len(out):
        _, name, rank, size = struct.unpack("<4Q", out[at : at + 32])
        at += 32 + name + 16 * rank
        found.append(struct.unpack("<Q", out[at : at + 8])[0] / 1e9)
        at += size
    return found


class Peer:
    def __init__(self, model, threads):
        from llama_cpp import Llama

        (path,) = glob.glob(str(model / "source/*.gguf"))
        self.llama = Llama(path, n_ctx=2048, n_threads=threads, n_threads_batch=threads, n_batch=512, verbose=False)

    def read(self):
        self.llama.reset()
        start = time.perf_counter()
        self.llama.eval([1000 + 37 * i % 30000 for i in range(512)])
        return 512 / (time.perf_counter() - start)

    def decode(self, n=32):
        self.llama.reset()
        self.llama.eval([5, 6, 7, 8])
        start = time.perf_counter()
        for i in range(n):
            self.llama.eval([100 + i])
        return n / (time.perf_counter() - start)


def show(what, values):
    low, high = min(values), max(values)
    print(f"  {what:<28} {statistics.median(values):8.1f} tokens/s  ({low:.1f} to {high:.1f})")
    return statistics.median(values)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", type=pathlib.Path, default=REPO / "build/models/smollm2")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    a = p.parse_args()
    if not (a.model / "model.oinf").exists():
        print(f"SmolLM2: left out, there is no {a.model} (make models)")
        return 0
    try:
        peer = Peer(a.model, a.threads)
    except ImportError:
        peer = None
        print("llama.cpp: left out, llama-cpp-python is not installed")
    with tempfile.TemporaryDirectory() as temp:
        folder = pathlib.Path(temp) / "llm"
        build(a.model, folder)
        ours = {"decode": [], "read": []}
        theirs = {"decode": [], "read": []}
        for _ in range(a.rounds):
            ours["decode"].append(1 / statistics.median(times(folder, 1, 40, a.threads)))
            ours["read"].append(CHUNK / statistics.median(times(folder, 0, 16, a.threads)))
            if peer:
                theirs["decode"].append(peer.decode())
                theirs["read"].append(peer.read())
    print(f"SmolLM2-135M Q4_1, {a.threads} threads, {a.rounds} rounds")
    for what in ("decode", "read"):
        mine = show(f"{what}, emitted C", ours[what])
        if peer:
            print(f"  {what}: {mine / show(f'{what}, llama.cpp', theirs[what]):.2f} times llama.cpp")
    return 0


if __name__ == "__main__":
    sys.exit(main())
