"""What attn_cache.oi must give."""

import numpy as np

from reference import main, matmul, softmax


def reference(run):
    B, D, H, Dh, L = run.size("B", "D", "H", "Dh", "num_layers")
    K, V = (np.zeros((L, 0, H, Dh), np.float16) for _ in range(2))
    for step in run.steps(5):
        h = run.random("x", [B, D], -2, 2)
        K, V = (np.concatenate([t, np.zeros((L, 1, H, Dh), np.float16)], axis=1) for t in (K, V))
        for l in range(L):
            m = h.mean(axis=0, dtype=np.float64).astype(np.float32)
            for n in range(H):
                K[l, step, n] = matmul(m, run.tensor(f"Wk.{l}.{n}")).astype(np.float16)
                V[l, step, n] = matmul(m, run.tensor(f"Wv.{l}.{n}")).astype(np.float16)
            q = matmul(h, run.tensor(f"W.{l}")).reshape(B, H, Dh)
            scores = np.einsum("bhd,thd->bht", q, K[l].astype(np.float64)) / np.sqrt(Dh)
            a = np.einsum("bht,thd->bhd", softmax(scores), V[l].astype(np.float64))
            h = h + a.reshape(B, D).astype(np.float32)
        run.expect("y", h, k=D, via="f16")
        run.expect("K", K, k=D)
        run.expect("V", V, k=D)
        run.expect("step", np.int32(step + 1))


if __name__ == "__main__":
    main(reference)
