"""What consumers.oi must give."""

import numpy as np

from reference import main, matmul, relu


def reference(run):
    B, D = run.size("B", "D")
    for _ in run.steps(3):
        x = run.random("x", [B, D], -10, 10)
        scaled = x * run.number("scale")
        run.expect("h", relu(matmul(x, run.tensor("W.0")), top=6.0) + scaled, k=D)
        run.expect("x", scaled)
        run.expect("peak", x.max(axis=1))  # of what was lent
        run.expect("average", x.mean(axis=1, dtype=np.float64).astype(np.float32), k=D)


if __name__ == "__main__":
    main(reference)
