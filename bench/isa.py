"""SmolLM2 as emitted C for every kind of instructions this machine has, beside llama.cpp built for it.

    python bench/isa.py --model FOLDER[:T]... --peer PROGRAM --gguf MODEL.gguf [--threads 2] [--rounds 3] [--targets cpu_amx,...]

FOLDER holds model.oinf, prefill.oi and decode.oi (tools/models.py; bench/random_gguf.py makes weights where there
are none), PROGRAM is bench/peers/llama.c. Programs take turns; medians count. Prefill is 512 tokens, by us in chunks
of T (32), which the model was made with, by llama.cpp at once; decoding begins at an empty context or behind 1,024
tokens. The first chunk, which also touches all weights for the first time, counts as the second; llama.cpp is warm,
too.
"""

import argparse
import pathlib
import statistics
import struct
import subprocess
import tempfile

import emitted

TARGETS = {"cpu_avx2": {"avx2", "fma"}, "cpu_avx512": {"avx512bw", "avx512_vnni"}, "cpu_amx": {"amx_int8", "amx_bf16", "avx512_vnni"},
           "cpu_amx_bf16": {"amx_int8", "amx_bf16", "avx512_vnni", "avx512_bf16"}}  # fmt: skip
PROMPT, LONG = 512, 1024
CASES = ["prefill 512", "decode", "decode at 1,024"]


def ours(program, threads, size):
    chunk = struct.pack(f"<{size + 1}i", *range(5, 5 + size), size)
    last = b"\0" + chunk + struct.pack("<i", 0)
    prompt = program.times(chunk + struct.pack("<i", 1) + last, [PROMPT // size - 1, 1], 0, threads)
    steps = program.times(struct.pack("<i", 5), LONG + 32, 1, threads)
    return PROMPT / (prompt[1] + sum(prompt[1:])), 1 / statistics.median(steps[4:36]), 1 / statistics.median(steps[LONG:])


def theirs(args):
    """The better of attention in one pass and not, case by case."""
    runs = []
    for flash in "01":
        words = [args.peer, args.gguf, str(args.threads), "1", flash]
        runs.append(map(float, subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()))
    return tuple(map(max, *runs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", action="append", required=True)
    parser.add_argument("--peer")
    parser.add_argument("--gguf")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--targets", default=",".join(TARGETS))
    args = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as temp:
        here = [t for t, needs in TARGETS.items() if needs <= emitted.isas()]
        here = [t for t in here if t in args.targets.split(",")]
        for t in sorted(set(args.targets.split(",")) - set(here)):
            print(f"left out: {t}: this machine has not its instructions")
        programs = {}
        for model in args.model:
            folder, size = (model.split(":") + ["32"])[:2]
            graphs = [pathlib.Path(folder) / g for g in ("prefill.oi", "decode.oi")]
            for t in here:
                program = emitted.Program(pathlib.Path(temp) / f"{t}_{size}", "llm", graphs, f"{folder}/model.oinf", t)
                programs[f"{t}, chunks of {size}"] = (program, int(size))
        for _ in range(args.rounds):
            for name, (program, size) in programs.items():
                found.setdefault(name, []).append(ours(program, args.threads, size))
            if args.peer:
                found.setdefault("llama.cpp", []).append(theirs(args))
    print(f"{'tokens/s, ' + str(args.threads) + ' threads':32}" + "".join(f"{c:>20}" for c in CASES))
    peer = [statistics.median(v) for v in zip(*found["llama.cpp"])] if args.peer else None
    for t, rounds in found.items():
        mine = [statistics.median(v) for v in zip(*rounds)]
        ratios = [f"{m:12.1f} ({m / p:4.2f}x)" if peer else f"{m:20.1f}" for m, p in zip(mine, peer or mine)]
        print(f"{t:32}" + "".join(f"{r:>20}" for r in ratios))


if __name__ == "__main__":
    main()
