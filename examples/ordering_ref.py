"""What ordering.oi must give: barrier and dep change nothing."""

import numpy as np

from reference import main, matmul, relu


def reference(run):
    B, D = run.size("B", "D")
    K = np.zeros((2, 0, B, D), np.float32)
    for step in run.steps(3):
        x = run.random("x", [B, D])
        first = matmul(x, run.tensor("W.0"))
        second = matmul(relu(first), run.tensor("W.1"))
        K = np.concatenate([K, np.stack([first, second])[:, None]], axis=1)
        run.expect("h", second, k=D)
        run.expect("K", K, k=D)
        run.expect("step", np.int32(step + 1))


if __name__ == "__main__":
    main(reference)
