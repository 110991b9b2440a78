"""Recurrent cells in f64, gate by gate as ONNX writes them."""

import numpy as np

from reference_ops import result
from reference_math import register, sigmoid, wide
from tensors import Tensor


def parts(inputs, n_state, gates, order, standard):
    """x, the states, and W, R, bias of W, bias of R by gate letter."""
    x, *states = [wide(t) for t in inputs[: 1 + n_state]]
    w, r = wide(inputs[1 + n_state]), wide(inputs[2 + n_state])
    hidden = r.shape[1]
    b = wide(inputs[3 + n_state]) if len(inputs) > 3 + n_state else np.zeros(2 * gates * hidden)
    at = {g: slice(i * hidden, (i + 1) * hidden) for i, g in enumerate(order)}
    rb = {g: slice((i + gates) * hidden, (i + gates + 1) * hidden) for i, g in enumerate(order)}
    return x, states, {s: (w[at[g]].T, r[at[g]].T, b[at[g]], b[rb[g]]) for g, s in zip(order, standard)}


@register("lstm_cell")
def _(inputs, attrs, out_dtypes, out_shapes):
    order = attrs.get("order", "iofc")
    x, (h, c), gate = parts(inputs, 2, 4, order, order.replace("g", "c"))
    clip = attrs.get("clip", np.inf)
    pre = {g: np.clip(x @ w + h @ r + wb + rb, -clip, clip) for g, (w, r, wb, rb) in gate.items()}
    new = sigmoid(pre["f"]) * c + sigmoid(pre["i"]) * np.tanh(pre["c"])
    return [result(out_dtypes[0], sigmoid(pre["o"]) * np.tanh(new)), result(out_dtypes[1], new)]


@register("gru_cell")
def _(inputs, attrs, out_dtype, out_shape):
    order = attrs.get("order", "zrh")
    x, (h,), gate = parts(inputs, 1, 3, order, order.replace("n", "h"))
    z, r = [sigmoid(x @ gate[g][0] + h @ gate[g][1] + gate[g][2] + gate[g][3]) for g in "zr"]
    w, u, wb, rb = gate["h"]
    inner = r * (h @ u + rb) if attrs.get("linear_before_reset") else (r * h) @ u + rb
    return result(out_dtype, (1 - z) * np.tanh(x @ w + inner + wb) + z * h)


@register("rnn_cell")
def _(inputs, attrs, out_dtype, out_shape):
    x, (h,), gate = parts(inputs, 1, 1, "i", "i")
    w, r, wb, rb = gate["i"]
    f = {"tanh": np.tanh, "relu": lambda v: np.maximum(v, 0), "sigmoid": sigmoid}[attrs.get("activation", "tanh")]
    return result(out_dtype, f(x @ w + h @ r + wb + rb))


def sequence(cell, n_state):
    """The cell, step by step, in the types of the whole: nothing is rounded in between."""
    from reference_ops import REFERENCE

    def run(inputs, attrs, out_dtypes, out_shapes):
        x, w, r = [wide(t) for t in inputs[:3]]
        n, batch, hidden = x.shape[0], x.shape[1], r.shape[2]
        b = wide(inputs[3]) if len(inputs) > 3 else None
        states = [wide(t) for t in inputs[4:]]
        states += [np.zeros((w.shape[0], batch, hidden))] * (n_state - len(states))
        y, last = np.zeros(out_shapes[0]), [s.copy() for s in states]
        own = {k: v for k, v in attrs.items() if k != "direction"}
        for d in range(w.shape[0]):
            steps = range(n)
            if d == 1 or attrs.get("direction") == "reverse":
                steps = reversed(steps)
            for t in steps:
                args = [x[t], *[s[d] for s in last], w[d], r[d]] + ([b[d]] if b is not None else [])
                kinds = ["f64"] * n_state
                got = REFERENCE[cell]([Tensor("f64", v) for v in args], own, *([kinds, None] if n_state > 1 else ["f64", None]))
                for s, v in zip(last, got if isinstance(got, list) else [got]):
                    s[d] = v.values
                y[t, d] = last[0][d]
        return [result(t, v) for t, v in zip(out_dtypes, [y, *last])]
    register(cell.removesuffix("_cell"))(run)


sequence("lstm_cell", 2)
sequence("gru_cell", 1)
sequence("rnn_cell", 1)
