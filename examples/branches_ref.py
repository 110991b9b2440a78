"""What branches.oi must give: NaN in one row of step 1."""

import numpy as np

from reference import main, matmul, relu


def reference(run):
    B, D = run.size("B", "D")
    for step in run.steps(3):
        x = run.random("x", [B, D], -10, 10)
        if step == 1:
            x[1, 3] = np.nan
            run.insert("x", x)
        h = matmul(x, run.tensor("W.0"))
        ok = bool(np.isfinite(h).all())
        h = relu(h) if ok else np.where(np.isnan(h), np.float32(0), h)
        assert ok == (step != 1)
        run.expect("cond", ok)
        run.expect("h", np.clip(h + run.tensor("bias"), -4, 4), k=D)


if __name__ == "__main__":
    main(reference)
