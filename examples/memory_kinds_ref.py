"""What memory_kinds.oi must give."""

import numpy as np

from reference import main, relu


def reference(run):
    a = run.tensor("a")
    alpha, beta, gamma = map(run.number, ("alpha", "beta", "gamma"))
    best = np.zeros_like(a)
    for step in run.steps(4):
        x = run.random("x", a.shape, -5, 5)
        y = relu(x * alpha + a * beta + gamma, slope=0.01, top=6.0)
        best = np.maximum(best, y)
        run.expect("y", y)
        run.expect("a", a * beta)  # from the model's a in every step, not from the last product
        run.expect("best", best)
        run.expect("bias", gamma)
        run.expect("runs", np.int32(step + 1))


if __name__ == "__main__":
    main(reference)
