"""Random graphs of integers through `openinfer verify`: one kernel after the other (fpga_generic) with loops, branches
and state, and without them as a pipeline (fpga_pipelined), or a folded one, in turn.

    python tests/synthfuzz/circuits.py [--count 200] [--seed 1] [--batch 25] [--out FOLDER] [--bin PATH]

Exit: as fuzz.py.
"""

import collections
import json
import random
import sys

import fuzz
import generate

DTYPES = generate.WHOLE * 2 + generate.PACKED + ("bool", "bool")
FOLDED = str(fuzz.HERE / "folded.json")


class Integers(generate.Maker):
    """Loops, branches, tables and ops, without what has no hardware form: lengths of the run, consumers."""

    def body(self, n):
        for _ in range(n):
            for _ in range(10):
                kind = self.rng.random()
                way = (self.op if kind < 0.70 else self.cache if kind < 0.84 else self.transfer if kind < 0.88 else
                       self.loop if kind < 0.95 else self.branch)  # fmt: skip
                if way():
                    break

    def table(self):
        """Every entry exists from the first step on, or the table would grow."""
        before = len(self.sections["persistent"])
        super().table()
        self.sections["persistent"][before:] = [
            line.replace("@cap(", "@fixed(") for line in self.sections["persistent"][before:]
        ]

    def shape(self, rank=None):
        while 0 in (shape := super().shape(rank)):
            pass
        return shape

    def may_return(self, v):
        return True

    def graph(self):
        rng = self.rng
        for _ in range(rng.randint(1, 3)):
            self.values.append(self.dynamic(rng.choice(generate.DTYPES), self.shape()))
        for _ in range(rng.randint(0, 2)):
            self.counter()
        for _ in range(rng.randint(0, 2)):
            self.table()
        self.body(rng.randint(3, 10))
        mine = [v for v in self.values if v in self.writable and self.may_return(v)]
        outputs = rng.sample(mine, rng.randint(1, len(mine))) if mine else [self.values[0]]
        self.put(f"return {', '.join(v.name for v in outputs)};")
        sections = [f"{kind} {{\n" + "\n".join(lines) + "\n}\n" for kind, lines in self.sections.items() if lines]
        entry = "block entry {\n" + "\n".join([*self.assigned, *self.lines]) + "\n}\n"
        return generate.Graph("\n".join([*sections, entry, *self.blocks]), self.tensors, self.inputs)


class Straight(Integers):
    """Ops, one after the other, and results that hang on an input: what has a pipelined form."""

    def __init__(self, *words):
        super().__init__(*words)
        self.moving = set()

    def body(self, n):
        for _ in range(n):
            for _ in range(10):
                if self.op():
                    break

    def counter(self):
        self.dynamic(self.rng.choice(generate.DTYPES), self.shape())

    table = counter

    def emit(self, op, args, attrs, dtype, shape):
        before = len(self.lines)
        if not super().emit(op, args, attrs, dtype, shape):
            return False
        out = self.lines[before].rsplit(">> ", 1)[1].rstrip(";")
        moving = any(v.name in self.moving | set(self.inputs) for v in args)
        (self.moving.add if moving else self.moving.discard)(out)
        return True

    def may_return(self, v):
        return v.name in self.moving


def make(seed, ops, prefix, cases=None, beside=None):
    known = [op for op in ops if set(op["dtypes"]) & set(DTYPES)]
    kind = Straight if seed % 2 else Integers
    generate.DTYPES = tuple(d for d in DTYPES if kind is Integers or d != "u64")
    return kind(random.Random(seed), known, prefix).graph()


class Circuits(fuzz.Fuzz):
    forms = collections.Counter()

    def verify(self, paths, model, inputs, way, steps=fuzz.STEPS):
        out = self.folder / "circuit"
        target, flags, more = way
        result = super().verify(paths, model, inputs, (target, flags, [*more, "--keep", out]), steps)
        if result.returncode == 0:
            circuit = json.loads((out / "plan.json").read_text())["circuit"]
            self.forms["pipelined" if circuit["pipelined"] else f"not pipelined: {circuit['serial_why']}"] += 1
        return result

    def run(self, *words):
        code = super().run(*words)
        for form, n in self.forms.most_common():
            print(f"{n} {form}")
        return code


if __name__ == "__main__":
    generate.make = make
    fuzz.Fuzz = Circuits
    fuzz.WAYS = [(target, "", []) for target in ("fpga_generic", "fpga_pipelined", "fpga_generic", FOLDED)]
    sys.exit(fuzz.main())
