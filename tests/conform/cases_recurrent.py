"""Recurrent cells: sizes, biases, orders of gates."""

import numpy as np

from cases import Case, dtypes_of, rng_for, sliced, tensor
from tensors import DTYPES

SIZES = {"odd": (3, 5, 7), "one": (1, 1, 1), "wide": (2, 4, 33), "no batch": (0, 3, 4), "silero": (1, 128, 128)}
ATTRS = {
    "lstm_cell": [{}, {"order": "ifgo"}, {"clip": 0.5}, {"order": "ifgo", "clip": 1.5}],
    "gru_cell": [{}, {"order": "rzn"}, {"linear_before_reset": True}, {"order": "rzn", "linear_before_reset": True}],
    "rnn_cell": [{}, {"activation": "relu"}, {"activation": "sigmoid"}],
}
GATES = {"lstm_cell": 4, "gru_cell": 3, "rnn_cell": 1}


def small(t):
    """Weights: sums stay where the functions bend."""
    t.values = (t.values.astype(np.float32) * 0.5).astype(DTYPES[t.dtype].array)
    return t


def cell_cases(op, row):
    n, states = GATES[op], 2 if op == "lstm_cell" else 1
    for dtype in dtypes_of(row["dtypes"]):
        for name, (b, i, h) in SIZES.items():
            for k, attrs in enumerate(ATTRS[op]):
                for bias in (False, True):
                    rng = rng_for(op, dtype, name, k, bias)
                    make = sliced if name == "odd" and k == 0 else tensor
                    inputs = [make(rng, dtype, (b, i), True)] + [make(rng, dtype, (b, h), True) for _ in range(states)]
                    inputs += [small(tensor(rng, dtype, (n * h, i), True)), small(tensor(rng, dtype, (n * h, h), True))]
                    if bias:
                        inputs.append(small(tensor(rng, dtype, (2 * n * h,), True)))
                    more = ((dtype, (b, h)),) * (states - 1)
                    yield Case(op, inputs, attrs, dtype, (b, h), name, more=more, summed=(dtype, i + h))
        rng = rng_for(op, dtype, "large")
        inputs = [tensor(rng, dtype, (64, 40), True)] + [tensor(rng, dtype, (64, 50), True) for _ in range(states)]
        inputs += [small(tensor(rng, dtype, (n * 50, 40), True)), small(tensor(rng, dtype, (n * 50, 50), True))]
        yield Case(op, inputs, {}, dtype, (64, 50), "large", more=((dtype, (64, 50)),) * (states - 1), summed=(dtype, 90))


def sequence_cases(op, row):
    n, states = GATES[op + "_cell"], 2 if op == "lstm" else 1
    for dtype in dtypes_of(row["dtypes"]):
        for name, (t, b, i, h) in {"odd": (4, 3, 5, 6), "one": (1, 1, 1, 1), "long": (70, 1, 2, 3)}.items():
            for direction in (None, "reverse", "bidirectional"):
                for given in range(3 + states) if name == "odd" else (1,):
                    for k, extra in enumerate(ATTRS[op + "_cell"][:1 if name == "long" else None]):
                        if k and given != 1:
                            continue
                        rng = rng_for(op, dtype, name, direction, given, k)
                        d = 2 if direction == "bidirectional" else 1
                        shapes = [(t, b, i), (d, n * h, i), (d, n * h, h), (d, 2 * n * h), (d, b, h), (d, b, h)][: 3 + min(given, 1 + states)]
                        inputs = [small(tensor(rng, dtype, s, True)) for s in shapes]
                        attrs = {**extra, **({"direction": direction} if direction else {}), **({"hidden_size": h} if given == 1 else {})}
                        yield Case(op, inputs, attrs, dtype, (t, d, b, h), name, more=((dtype, (d, b, h)),) * states, summed=(dtype, t * (i + h)))


CASES = {**{op: cell_cases for op in GATES}, **{op.removesuffix("_cell"): sequence_cases for op in GATES}}
