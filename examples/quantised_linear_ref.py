"""What quantised_linear.oi must give. Every step is exact or a single f32 rounding."""

import numpy as np

from reference import main, relu


def quantise(x, scale, lowest, highest):
    return np.clip(np.rint(x / scale), lowest, highest).astype(np.int32)


def reference(run):
    B, D = run.size("B", "D")
    w8, w4 = run.tensor("w8").astype(np.int32), run.tensor("w4").astype(np.int32)
    x_scale, h_scale = run.number("x_scale"), run.number("h_scale")
    for _ in run.steps(3):
        x = run.random("x", [B, D], -2.5, 2.5)  # some of it beyond what i8 can hold
        xq = quantise(x, x_scale, -128, 127)
        assert np.abs(x / x_scale).max() > 129, "nothing saturates"
        run.expect("xq", xq.astype(np.int8))
        run.expect("sum8", xq @ w8)
        h = (xq @ w8).astype(np.float32) * run.tensor("w8_scale") * x_scale + run.tensor("b8")
        hq = quantise(relu(h), h_scale, -8, 7)
        run.expect("hq", hq.astype(np.int8))
        run.expect("sum4", hq @ w4)
        run.expect("y", (hq @ w4).astype(np.float32) * run.tensor("w4_scale") * h_scale)


if __name__ == "__main__":
    main(reference)
