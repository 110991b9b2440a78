"""What cache_step.oi must give: with one position to attend to, the value itself."""

import numpy as np

from reference import main


def reference(run):
    B, D, H, Dh = run.size("B", "D", "H", "Dh")
    for step in run.steps(3):
        run.random("x", [B, D])
        run.expect("h", np.full((B, D), 0.5, np.float32))
        run.expect("K", np.zeros((10, step + 1, H, Dh), np.float16))
        run.expect("V", np.full((10, step + 1, H, Dh), 0.5, np.float16))
        run.expect("step", np.int32(step + 1))


if __name__ == "__main__":
    main(reference)
