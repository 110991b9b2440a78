"""What stability_guard.oi must give: broken inputs in steps 1, 3 and 4."""

import numpy as np

from reference import main, matmul


def reference(run):
    B, D = run.size("B", "D")
    W, gain = run.tensor("W"), run.number("gain")
    last, failures = np.zeros((B, D), np.float32), 0
    for step in run.steps(6):
        x = run.random("x", [B, D])
        if step in (1, 3, 4):
            x[0, step] = {1: np.nan, 3: np.inf, 4: 3e38}[step]  # the last one overflows in the sum
            x[0, 0] = -x[0, step]
            run.insert("x", x)
        y = matmul(x, W) * gain
        ok = bool(np.isfinite(y).all())
        assert ok == (step not in (1, 3, 4))
        last, failures = (y, failures) if ok else (last, failures + 1)
        run.expect("ok", ok)
        run.expect("y", last, k=D)
        run.expect("last_good", last, k=D)
        run.expect("failures", np.uint32(failures))


if __name__ == "__main__":
    main(reference)
