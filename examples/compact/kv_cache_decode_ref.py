"""What kv_cache_decode.oi must give, up to a full cache; one position of one sequence is masked."""

import checkout  # noqa: F401  finds what follows in a checkout
import numpy as np

from reference import main, matmul, softmax


def attention(q, k, v, visible):
    """q [B, D] over k and v [T, B, D], one head; visible [B, T]."""
    q, k, v = (t.astype(np.float64) for t in (q, k, v))
    scores = np.einsum("bd,tbd->bt", q, k) / np.sqrt(q.shape[-1])
    scores = np.where(visible[:, : len(k)], scores, -np.inf)
    return np.einsum("bt,tbd->bd", softmax(scores), v).astype(np.float16)


def reference(run):
    B, L, ctx = run.size("B", "n_layers", "ctx_len")
    table = run.tensor("tok_embeddings")
    vocabulary, D = table.shape
    K, V = np.zeros((L, ctx, B, D), np.float16), np.zeros((L, ctx, B, D), np.float16)
    for step in run.steps(ctx):
        tok = run.random("tok", [B], 0, vocabulary - 1, "i32")
        run.insert("step", step, "i32")
        mask = np.ones((B, 1, 1, ctx), np.uint8)
        mask[1, :, :, 0] = step == 0  # sequence 1 forgets where it began
        mask = run.insert("mask", mask, "u8")
        x = table[tok].astype(np.float16)
        for l in range(L):
            q, k, v = (matmul(x, run.tensor(f"{w}.{l}")) for w in ("Wq", "Wk", "Wv"))
            K[l, step], V[l, step] = k, v
            a = attention(q, K[l, : step + 1], V[l, : step + 1], mask[:, 0, 0] != 0)
            x = x + matmul(a, run.tensor(f"Wo.{l}"))
        run.expect("x", x, k=D)
        run.expect("logits", matmul(x, run.tensor("lm_head")), k=D * L)
        run.expect("kv_k", K, k=D)
        run.expect("kv_v", V, k=D)


if __name__ == "__main__":
    main(reference)
