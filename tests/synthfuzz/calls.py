"""Calls of every op, with their tensors: the cases of tests/conform, the small ones among them."""

import dataclasses
import math
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "conform"))
MOST_ELEMENTS, PER_OP = 700, 60


@dataclasses.dataclass(frozen=True)
class Call:
    op: str
    inputs: tuple  # (dtype, shape, bytes)
    attrs: tuple  # (name, as it is written)
    outputs: tuple  # (dtype, shape)


def word(value, dtypes):
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return value if value in dtypes else f'"{value}"'
    if isinstance(value, int):
        return str(value)
    return "[" + ", ".join(word(v, dtypes) for v in value) + "]"


def small(case):
    dtypes = [t.dtype for t in case.inputs if t is not None] + [case.out_dtype]
    return (not case.base and all(t is not None for t in case.inputs) and "bitset" not in dtypes
            and not isinstance(case.attrs.get("kv_len"), (list, tuple))
            and sum(t.values.size for t in case.inputs) + math.prod(case.out_shape) <= MOST_ELEMENTS)  # fmt: skip


class Calls:
    """calls(rng) -> one of them. Ops that the synthesizer has not learned yet are left out."""

    def __init__(self, without=()):
        import cases
        from tensors import DTYPES, Tensor

        self.cases, self.dtypes, self.tensor = cases, DTYPES, Tensor
        self.names = [op for op in cases.OPS if op not in without]
        self.known = {}

    def some(self, n, seed):
        self.names = random.Random(seed).sample(self.names, n)

    def of(self, op):
        if op not in self.known:
            fits = []
            for case in self.cases.cases_for(op):
                if small(case):
                    fits.append(case)
            self.known[op] = fits[:: max(1, len(fits) // PER_OP)]
        return self.known[op]

    def __call__(self, rng):
        fits = self.of(rng.choice(self.names))
        if not fits:
            return None
        case = rng.choice(fits)
        inputs = tuple((t.dtype, tuple(t.values.shape), self.tensor(t.dtype, t.values).storage()[0].tobytes())
                       for t in case.inputs)  # fmt: skip
        attrs = tuple((k, word(v, self.dtypes)) for k, v in case.attrs.items() if v is not None)
        outputs = tuple((d, tuple(s)) for d, s in [(case.out_dtype, case.out_shape), *case.more])
        return Call(case.op, inputs, attrs, outputs)
