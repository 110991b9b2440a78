"""Random graphs of integers through `openinfer verify --target fpga_generic`, many in one circuit.

    python tests/synthfuzz/circuits.py [--count 200] [--seed 1] [--batch 25] [--out FOLDER] [--bin PATH]

Exit: as fuzz.py.
"""

import random
import sys

import fuzz
import generate

generate.DTYPES = generate.WHOLE * 2 + generate.PACKED + ("bool", "bool")


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

    def graph(self):
        rng = self.rng
        for _ in range(rng.randint(1, 3)):
            self.values.append(self.dynamic(rng.choice(generate.DTYPES), self.shape()))
        for _ in range(rng.randint(0, 2)):
            self.counter()
        for _ in range(rng.randint(0, 2)):
            self.table()
        self.body(rng.randint(3, 10))
        mine = [v for v in self.values if v in self.writable]
        outputs = rng.sample(mine, rng.randint(1, len(mine))) if mine else [self.values[0]]
        self.put(f"return {', '.join(v.name for v in outputs)};")
        sections = [f"{kind} {{\n" + "\n".join(lines) + "\n}\n" for kind, lines in self.sections.items() if lines]
        entry = "block entry {\n" + "\n".join([*self.assigned, *self.lines]) + "\n}\n"
        return generate.Graph("\n".join([*sections, entry, *self.blocks]), self.tensors, self.inputs)


def make(seed, ops, prefix, cases=None, beside=None):
    known = [op for op in ops if set(op["dtypes"]) & set(generate.DTYPES)]
    return Integers(random.Random(seed), known, prefix).graph()


if __name__ == "__main__":
    generate.make = make
    fuzz.WAYS = [("fpga_generic", "", [])]
    sys.exit(fuzz.main())
