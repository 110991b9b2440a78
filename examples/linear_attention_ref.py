"""What linear_attention.oi must give, computed the other way round: as attention over all steps."""

import numpy as np

from reference import main


def reference(run):
    D, K = run.size("D", "K")
    Wq, Wk, Wv = (run.tensor(n).astype(np.float64) for n in ("Wq", "Wk", "Wv"))
    decay, eps = float(run.number("decay")), float(np.float32(0.01))
    keys, values = [], []
    for step in run.steps(6):
        x = run.random("x", [1, D])[0].astype(np.float64)
        keys.append(np.maximum(x @ Wk, 0) + eps)
        values.append(x @ Wv)
        q = np.maximum(x @ Wq, 0) + eps
        age = decay ** np.arange(step, -1, -1)
        weight = age * (np.array(keys) @ q)
        run.expect("y", (weight @ np.array(values) / weight.sum())[None].astype(np.float32), k=D)
        state = (np.array(keys) * age[:, None]).T @ np.array(values)
        run.expect("state", state.astype(np.float32), k=D)
        run.expect("norm", (age @ np.array(keys))[None].astype(np.float32), k=D)


if __name__ == "__main__":
    main(reference)
