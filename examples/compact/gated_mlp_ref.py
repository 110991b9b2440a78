"""What gated_mlp.oi must give."""

import checkout  # noqa: F401  finds what follows in a checkout
import numpy as np

from reference import main, matmul


def rmsnorm(x, scale, eps=1e-5):
    x = x.astype(np.float64)
    return (x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * scale).astype(np.float32)


def reference(run):
    B, D, L = run.size("B", "D", "n_layers")
    run.seed = 1
    for _ in run.steps(3):
        x = run.random("x", [B, D])
        for l in range(L):
            both = matmul(rmsnorm(x, run.tensor(f"norm.{l}"), 1e-6), run.tensor(f"up.{l}")).astype(np.float64)
            gate, up = np.split(both, 2, axis=-1)
            x = x + np.float32(0.5) * matmul((gate / (1 + np.exp(-gate)) * up).astype(np.float32), run.tensor(f"down.{l}"))
        x = rmsnorm(x, run.tensor("norm.out")).astype(np.float16)
        logits = matmul(x, run.tensor("head").T)
        run.expect("logits", logits, k=D)
        run.expect("worst", run.clear_choice(-logits.astype(np.float32)))


if __name__ == "__main__":
    main(reference)
