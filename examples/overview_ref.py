"""What overview.oi must give. The input of the last step is not finite."""

import numpy as np

from reference import main, matmul, relu


def reference(run):
    B, D = run.size("B", "D")
    layers = int(run.number("num_layers"))
    W = [run.tensor(f"W.{l}") for l in range(layers)]
    K = np.zeros((layers, 1, B, D), np.float16)
    for step in run.steps(4):
        x = run.random("x", [B, D], -2, 2)
        if step == 3:
            x[1, 2] = np.inf
            run.insert("x", x)
        h = relu(matmul(x, W[0]), slope=0.01, top=6.0)
        K = np.concatenate([K, np.zeros((layers, 1, B, D), np.float16)], axis=1)
        for l in range(layers):
            h = matmul(h + K[l, step].astype(np.float32), W[l])
            K[l, step + 1] = h.astype(np.float16)
        ok = bool(np.isfinite(h).all())
        assert ok == (step < 3)
        h = h + run.number("alpha") if ok else np.zeros_like(h)
        run.expect("h", h, k=D, via="f16")
        run.expect("cond", ok)
        if ok:  # an infinite input leaves infinities or NaN, depending on the order of the sums
            run.expect("K", K, k=D)
        run.expect("step", np.int32(step + 1))


if __name__ == "__main__":
    main(reference)
