"""SmolLM2 as emitted C for every kind of instructions this machine has, beside llama.cpp built for it.

    python bench/isa.py --model FOLDER[:T]... --peer PROGRAM --gguf MODEL.gguf [--threads 2] [--rounds 3] [--targets cpu_amx,...]

FOLDER holds model.oinf, prefill.oi and decode.oi (tools/models.py; bench/random_gguf.py makes weights where there
are none), PROGRAM is bench/peers/llama.c. Programs take turns; medians count. What is measured, and how, is bench/llm.py's; T (32)
is the size of chunks that the model was made with.
"""

import argparse
import pathlib
import statistics
import tempfile

import emitted
import llm
import rows

TARGETS = {"cpu_avx2": {"avx2", "fma"}, "cpu_avx512": {"avx512bw", "avx512_vnni"}, "cpu_amx": {"amx_int8", "amx_bf16", "avx512_vnni"},
           "cpu_amx_bf16": {"amx_int8", "amx_bf16", "avx512_vnni", "avx512_bf16"}}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", action="append", required=True)
    parser.add_argument("--peer")
    parser.add_argument("--gguf")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--targets", default=",".join(TARGETS))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temp:
        here = [t for t, needs in TARGETS.items() if needs <= emitted.isas()]
        here = [t for t in here if t in args.targets.split(",")]
        for t in sorted(set(args.targets.split(",")) - set(here)):
            print(f"left out: {t}: this machine has not its instructions")
        programs = {}
        for model in args.model:
            folder, size = (model.split(":") + ["32"])[:2]
            for t in here:
                made = llm.Ours(pathlib.Path(folder), pathlib.Path(temp) / f"{t}_{size}", args.threads, t, int(size))
                programs[f"{t}, chunks of {size}"] = made.all
        if args.peer:
            programs["llama.cpp"] = llm.Peer(args.peer, args.gguf, args.threads).all
        found = dict(zip(programs, rows.alternate(args.rounds, *programs.values())))
    print(f"{'tokens/s, ' + str(args.threads) + ' threads':32}" + "".join(f"{c.removeprefix('smollm2 '):>20}" for c in llm.CASES))
    peer = [statistics.median(v) for v in zip(*found["llama.cpp"])] if args.peer else None
    for t, rounds in found.items():
        mine = [statistics.median(v) for v in zip(*rounds)]
        ratios = [f"{m:12.1f} ({m / p:4.2f}x)" if peer else f"{m:20.1f}" for m, p in zip(mine, peer or mine)]
        print(f"{t:32}" + "".join(f"{r:>20}" for r in ratios))


if __name__ == "__main__":
    main()
