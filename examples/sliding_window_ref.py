"""What sliding_window.oi must give: more steps than the window is long."""

import numpy as np

from reference import main


def reference(run):
    D, N = run.size("D", "N")
    seen, ring = [], np.zeros((N, D), np.float32)
    for step in run.steps(8):
        seen.append(run.random("x", [D]))
        ring[step % N] = seen[-1]
        run.expect("mean", np.mean(seen[-N:], axis=0, dtype=np.float64).astype(np.float32), k=N)
        run.expect("window", ring)
        run.expect("ring", ring)
        run.expect("filled", np.int32(min(step + 1, N)))
        run.expect("step", np.int32(step + 1))


if __name__ == "__main__":
    main(reference)
