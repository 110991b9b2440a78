"""What cache_ops.oi must give."""

import numpy as np

from reference import main


def reference(run):
    D = run.size("D")
    up, seen = 10, []
    for step in run.steps(5):
        seen.append(run.random("x", [D]))
        up += 6 + int(run.insert("amount", step, "i32"))
        run.expect("up", np.int32(up))
        run.expect("down", np.int32(10 - 3 * (step + 1)))
        run.expect("wheel", np.uint8((250 + 3 * (step + 1)) % 256))  # past 255 in the second step
        run.expect("gauge", np.float32(0.5 + step + 1))
        run.expect("scratch", np.int32(7))
        K = np.stack([seen, seen])
        K[1, 0] = 0
        K = K[:1] if step == 0 else K  # of layer 1 nothing is left in the first step
        run.expect("kept", K)
        run.expect("K", K)
        run.expect("V", np.zeros((0, 0, D), np.float32))
        run.expect("step", np.int32(step + 1))


if __name__ == "__main__":
    main(reference)
