"""Random graphs through `openinfer verify`, many in one program; one that differs is reduced.

    python tests/synthfuzz/fuzz.py [--count 500] [--seed 1] [--batch 25] [--out FOLDER] [--bin PATH]

Exit: 0 all agree, 1 something differs (the graph, its model and the reduced form lie in the folder).
"""

import argparse
import collections
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent.parent
sys.path[:0] = [str(HERE), str(REPO / "python/src")]
import chains  # noqa: E402
import generate  # noqa: E402
from calls import Calls  # noqa: E402
from openinfer.oinf import PackageWriter, StreamTensor  # noqa: E402
from openinfer.oinf.random import random_bytes  # noqa: E402

STEPS = 4
# target, flags, more options; in turn. Free-running on another order of additions a comparison may flip, so
# there nodes are judged one by one. The others have two instances interleaved, and one goes on from every state that
# the other saved.
NO_CACHE = str(HERE / "no_cache.json")
SHAKEN = ["--cc", str(HERE / "shaking_cc")]
WAYS = [
    ("cpu_scalar", "-O0", SHAKEN),
    ("cpu_avx2", "-O1", ["--per-node"]),
    ("cpu_scalar", "-O0", ["--per-node"]),
    ("cpu_scalar", "-O0 -fsanitize=address,undefined -fno-sanitize-recover=all", SHAKEN),
    (NO_CACHE, "-O1", SHAKEN),  # kernels take turns wherever they can
]


def fits(graph):
    return all(len(shape) <= 8 for _, shape, *_ in graph.tensors.values())


def write_model(path, graphs):
    with PackageWriter(path) as package:
        for graph in graphs:
            for name, (dtype, shape, *how) in graph.tensors.items():
                data = how[0] if len(how) == 1 else random_bytes(dtype, *how, math.prod(shape))
                package.add_tensor(name, StreamTensor(dtype, shape, data))


class Fuzz:
    def __init__(self, binary, folder):
        self.bin, self.folder = binary, pathlib.Path(folder)
        text = self.call("ops", "--json").stdout
        self.ops = json.loads(text)["ops"]
        self.refused = collections.Counter()
        self.agreed = self.invalid = 0
        self.calls = Calls()
        self.passes = re.search(r"they are (.*)\)", self.call("synth", "x.oi", "-o", "x", "--without", "?").stderr)[1].split(", ")

    def call(self, *words):
        return subprocess.run([self.bin, *map(str, words)], capture_output=True, text=True, timeout=600)

    def verify(self, paths, model, inputs, way, steps=STEPS):
        target, flags, more = way
        sets = [w for name, value in inputs.items() for w in ("--set", f"{name}={value}")]
        words = [*paths, "--model", model, "--target", target, "--cflags", flags, "--steps", steps, "--in-turn"]
        nodes = [] if "--per-node" in more else ["--no-per-node"]
        result = self.call("verify", *words, *more, *nodes, *sets)
        if result.returncode < 0:
            result.stderr += f"openinfer was ended by signal {-result.returncode}\n"
        return result

    # -- one batch --

    def batch(self, seeds, number):
        """Verifies graphs of these seeds together. Returns (seed, graph, way) of one that differs, or None."""
        target, flags, more = WAYS[number % len(WAYS)]
        if number % 3 == 2:  # one pass less, each in turn
            more = [*more, "--without", self.passes[number // 3 % len(self.passes)]]
        way = target, flags, more
        where = self.folder / f"batch{number}"
        where.mkdir(parents=True, exist_ok=True)
        graphs = {}
        for seed in seeds:
            name = f"g{seed}"
            if target == NO_CACHE and seed % 2:  # where memory is looked at, half of them are chains and nothing else
                graph = chains.make(seed, f"{name}_")
            else:
                graph = generate.make(seed, self.ops, f"{name}_", self.calls)
            graphs[name] = (seed, graph)
            if seed % 5 == 0 and graph.persistent and graph.persistent[0]:  # a second graph over the same state
                graphs[f"{name}b"] = (seed, generate.make(f"{seed} beside", self.ops, f"{name}b_", self.calls, graph))
        for name, (_, graph) in graphs.items():
            (where / f"{name}.oi").write_text(graph.text)
        model = where / "model.oinf"
        write_model(model, [g for _, g in graphs.values()])
        while graphs:
            inputs = {k: v for _, g in graphs.values() for k, v in g.inputs.items()}
            result = self.verify([where / f"{n}.oi" for n in graphs], model, inputs, way)
            if result.returncode == 0:
                self.agreed += len(graphs)
                return None
            bad = self.refusal(result, graphs)
            if not bad:
                return self.find(result, graphs, where, way)
            del graphs[bad]
        return None

    def refusal(self, result, graphs):
        """The graph that the checks or the synthesizer refuse, counted by why."""
        match = re.search(r"(g\d+b?)\.oi:\d+:\d+: error\[(E\d+)\]: (.*)", result.stderr)
        if not match or match[1] not in graphs:
            return None
        known = match[2] in ("E060", "E062") or "yet" in match[3]
        self.refused[f"{match[2]}: {match[3]}" if known else f"NOT WELL TYPED {match[2]}: {match[3]}"] += 1
        self.invalid += not known
        op = re.match(r"'(\w+)' cannot be synthesized yet", match[3])
        if op:  # once is enough
            self.ops = [o for o in self.ops if o["name"] != op[1]]
            self.calls.names = [o for o in self.calls.names if o != op[1]]
        return match[1]

    def find(self, result, graphs, where, way):
        """The one of a batch that differs when it is alone."""
        named = re.findall(r"graph (g\d+b?)", result.stderr)
        order = sorted(graphs, key=lambda n: n not in named)
        for name in order:
            seed, graph = graphs[name]
            alone = self.verify([where / f"{name}.oi"], where / "model.oinf", graph.inputs, way)
            if alone.returncode != 0:
                return seed, graph, way, alone.stderr
        for name in order:  # two over one state
            if f"{name}b" not in graphs:
                continue
            inputs = {**graphs[name][1].inputs, **graphs[f"{name}b"][1].inputs}
            both = self.verify([where / f"{name}.oi", where / f"{name}b.oi"], where / "model.oinf", inputs, way)
            if both.returncode != 0:
                return None, None, way, f"{name}.oi and {name}b.oi in {where}, {way}:\n{both.stderr}"
        return None, None, way, result.stderr

    # -- reduction --

    def differs(self, text, graph, way, where, wanted):
        path = where / "smaller.oi"
        path.write_text(text)
        names = set(re.findall(r"\w+", text))
        inputs = {k: v for k, v in graph.inputs.items() if k in names}
        result = self.verify([path], where / "model.oinf", inputs, way)
        return result.returncode != 0 and self.kind(result.stderr) == wanted

    @staticmethod
    def kind(stderr):
        if "openinfer was ended" in stderr:
            return "openinfer"
        if "did not build" in stderr:
            return "build"
        if "did not finish" in stderr:
            return "crash"
        if "differs from the simulator" in stderr:
            return "differs"
        return "refused"

    def reduce(self, graph, way, where, stderr):
        """Leaves out statements, then declarations, as long as it still differs in the same way."""
        where.mkdir(parents=True, exist_ok=True)
        write_model(where / "model.oinf", [graph])
        wanted = self.kind(stderr)
        lines = graph.text.splitlines()
        smaller = True
        while smaller:
            smaller = False
            for i in reversed(range(len(lines))):
                words = lines[i].strip()
                if words.startswith(("return", "await", "block", "yield")) or words in ("}", ""):
                    continue
                rest = lines[:i] + lines[i + 1 :]
                if words.endswith("{") and words.startswith("loop"):  # the loop around, not what is in it
                    end = next(j for j in range(i, len(lines)) if lines[j] == lines[i][: -len(words)] + "}")
                    rest = lines[:i] + lines[i + 1 : end] + lines[end + 1 :]
                elif words.endswith("{"):
                    continue
                if self.differs("\n".join(rest) + "\n", graph, way, where, wanted):
                    lines, smaller = rest, True
                    break
        text = "\n".join(lines) + "\n"
        text = re.sub(r"^(dynamic|volatile|constant|persistent) \{\n\}\n\n?", "", text, flags=re.M)
        (where / "reduced.oi").write_text(text)
        (where / "original.oi").write_text(graph.text)
        return text

    def run(self, count, seed, batch, goes_on=False):
        """Until `count` graphs agree. Returns 0, or 1 with everything said about the one that differs; or goes on
        without its batch."""
        number = n_wrong = 0
        if count <= 1000:  # making the cases of all ops takes a while: each seed takes others
            self.calls.some(70, seed)
        while self.agreed < count:
            first = seed * 1_000_000 + number * batch
            wrong = self.batch(range(first, first + batch), number)
            number += 1
            if wrong:
                n_wrong += 1
                self.report(wrong)
                sys.stdout.flush()
                if not goes_on:
                    return 1
            print(f"{self.agreed} agree, {sum(self.refused.values())} refused", file=sys.stderr)
        self.reasons()
        if n_wrong:
            print(f"{n_wrong} batches differ")
        print(f"{self.agreed} random graphs agree (seed {seed}), {self.invalid} were not well typed")
        return 1 if n_wrong else 0

    def reasons(self):
        for reason, n in self.refused.most_common(25):
            print(f"  refused {n}: {reason}")

    def report(self, wrong):
        self.reasons()
        seed, graph, way, stderr = wrong
        print(stderr)
        if graph is None or self.kind(stderr) == "refused":
            print("the graphs differ only together" if graph is None else f"seed {seed}, {way}")
            return 1
        where = self.folder / f"failed{seed}"
        text = self.reduce(graph, way, where, stderr)
        print(f"seed {seed}, {way}; reduced to {where}/reduced.oi:\n\n{text}")
        sets = " ".join(f"--set {k}={v}" for k, v in graph.inputs.items() if k in text)
        print(f"openinfer verify {where}/reduced.oi --model {where}/model.oinf --target {way[0]} "
              f'--cflags "{way[1]}" --steps {STEPS} {" ".join(way[2])} {sets}')  # fmt: skip
        return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=25)
    parser.add_argument("--out", default=None)
    parser.add_argument("--go-on", action="store_true", help="after one that differs")
    parser.add_argument("--bin", default=os.environ.get("OPENINFER_BIN") or str(REPO / "build/bin/openinfer"))
    args = parser.parse_args()
    folder = args.out or tempfile.mkdtemp(prefix="synthfuzz-")
    return Fuzz(args.bin, folder).run(args.count, args.seed, args.batch, args.go_on)


if __name__ == "__main__":
    sys.exit(main())
