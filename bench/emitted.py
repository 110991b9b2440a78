"""Emitted programs: made for this machine by `openinfer synth` and their Makefile, timed by their own main.c."""

import json
import os
import pathlib
import struct
import subprocess

import rows

OPENINFER = pathlib.Path(os.environ.get("OPENINFER_BIN", rows.REPO / "build/bin/openinfer"))


def isas():
    """Instruction sets of this machine, as the kernel names them."""
    try:
        words = pathlib.Path("/proc/cpuinfo").read_text().split()
    except OSError:
        return set()
    return set(words)


def target():
    """The built-in profile that fits this machine best."""
    has = isas()
    if {"amx_int8", "amx_bf16", "avx512_vnni"} <= has:
        return "cpu_amx"
    if "avx512_vnni" in has and "avx512bw" in has:
        return "cpu_avx512"
    if "avx2" in has and "fma" in has:
        return "cpu_avx2"
    return "cpu_neon" if "asimd" in has else "cpu_scalar"


class Program:
    """graphs of one model as a program in `folder`."""

    def __init__(self, folder, name, graphs, model=None, device=None):
        self.folder, self.name = pathlib.Path(folder), name
        with_model = ["--model", model] if model else []
        rows.program(OPENINFER, "synth", *graphs, *with_model, "--target", device or target(), "-o", folder,
                     "--name", name, "--weights", "file")  # fmt: skip
        rows.program("make", "-s", "-C", folder, stderr=subprocess.DEVNULL)

    def cost(self, graph=0):
        """What the plan counts for a step: `macs` and `bytes_moved`."""
        return json.loads((self.folder / "plan.json").read_text())["graphs"][graph]["cost"]

    def times(self, inputs, steps, graph=0, threads=2):
        """Seconds of each step of a graph, all with the same inputs: bytes, one after the other.

        Several numbers of steps: of as many inputs, each after the first begun by the byte of its graph."""
        counts = steps if isinstance(steps, list) else [steps]
        words = [str(self.folder / self.name), str(self.folder / "weights.bin"), *map(str, counts)]
        done = subprocess.run(words, input=bytes([graph]) + inputs, stdout=subprocess.PIPE, check=True,
                              env={**os.environ, "THREADS": str(threads)})  # fmt: skip
        out, at, found = done.stdout, 0, []
        while at + 32 <= len(out):
            _, name, rank, size = struct.unpack("<4Q", out[at : at + 32])
            at += 32 + name + 16 * rank
            found.append(struct.unpack("<Q", out[at : at + 8])[0] / 1e9)
            at += size
        return found
