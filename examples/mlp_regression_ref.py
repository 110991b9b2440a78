"""What mlp_regression.oi must give."""

import numpy as np

from reference import main, matmul, relu


def reference(run):
    B, D, H, O = run.size("B", "D", "H", "O")
    w1, b1, w2, b2 = map(run.tensor, ("w1", "b1", "w2", "b2"))
    for _ in run.steps(3):
        x = run.random("x", [B, D])
        target = run.random("target", [B, O])
        y = matmul(relu(matmul(x, w1) + b1), w2) + b2
        run.expect("y", y, k=H)
        run.expect("loss", np.float32(np.mean(np.square(y.astype(np.float64) - target))), k=H)


if __name__ == "__main__":
    main(reference)
