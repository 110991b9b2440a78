"""What kv_cache_decode.oi must give, up to a full cache; one position of one sequence is masked."""

import numpy as np

from reference import main, matmul, softmax


def attention(q, k, v, visible, heads):
    """q [B, D] over k and v [T, B, D]; visible [B, T]."""
    B, D = q.shape
    T = len(k)
    q, k, v = (t.astype(np.float64).reshape(*t.shape[:-1], heads, D // heads) for t in (q, k, v))
    scores = np.einsum("bhd,tbhd->bht", q, k) / np.sqrt(D // heads)
    scores = np.where(visible[:, None, :T], scores, -np.inf)
    return np.einsum("bht,tbhd->bhd", softmax(scores), v).reshape(B, D).astype(np.float32)


def reference(run):
    run.seed = 1
    B, D, V, L, heads, ctx = run.size("B", "D", "V", "n_layers", "n_heads", "ctx_len")
    K, Vs = (np.zeros((L, ctx, B, D), np.float16) for _ in range(2))
    for step in run.steps(ctx):
        tok = run.random("tok", [B], 0, V - 1, "i32")
        mask = np.ones((B, 1, 1, ctx), np.uint8)
        mask[1, :, :, 0] = 0
        mask = run.insert("mask", mask, "u8")[:, 0, 0]
        x = run.tensor("tok_embeddings")[tok]
        for l in range(L):
            q, k, v = (matmul(x, run.tensor(f"{w}.{l}")) for w in ("Wq", "Wk", "Wv"))
            K[l, step], Vs[l, step] = k.astype(np.float16), v.astype(np.float16)
            # in the first step sequence 1 may see nothing at all, and gets zeros
            a = attention(q, K[l, : step + 1], Vs[l, : step + 1], mask != 0, heads)
            x = x + matmul(a, run.tensor(f"Wo.{l}"))
        logits = matmul(x, run.tensor("lm_head"))
        run.expect("logits", logits, k=D, via="f16")
        run.expect("next", run.clear_choice(logits))
        run.expect("kv_k", K, k=D)
        run.expect("kv_v", Vs, k=D)
        run.expect("step", np.int32(step + 1))


if __name__ == "__main__":
    main(reference)
