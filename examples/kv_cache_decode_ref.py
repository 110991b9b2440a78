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


def decode(run, K, V, step, tok, mask):
    """The logits of one step; adds this step's keys and values to K and V."""
    x = run.tensor("tok_embeddings")[tok]
    for l in range(len(K)):
        q, k, v = (matmul(x, run.tensor(f"{w}.{l}")) for w in ("Wq", "Wk", "Wv"))
        K[l, step], V[l, step] = k.astype(np.float16), v.astype(np.float16)
        a = attention(q, K[l, : step + 1], V[l, : step + 1], mask != 0, run.size("n_heads"))
        x = x + matmul(a, run.tensor(f"Wo.{l}"))
    return matmul(x, run.tensor("lm_head"))


def empty_caches(run):
    shape = run.size("n_layers", "ctx_len", "B", "D")
    return np.zeros(shape, np.float16), np.zeros(shape, np.float16)


def reference(run):
    run.seed = 1
    B, D, vocabulary, ctx = run.size("B", "D", "V", "ctx_len")
    K, V = empty_caches(run)
    for step in run.steps(ctx):
        tok = run.random("tok", [B], 0, vocabulary - 1, "i32")
        mask = np.ones((B, 1, 1, ctx), np.uint8)
        mask[1, :, :, 0] = 0  # in the first step sequence 1 sees nothing at all, and gets zeros
        mask = run.insert("mask", mask, "u8")
        logits = decode(run, K, V, step, tok, mask[:, 0, 0])
        run.expect("logits", logits, k=D, via="f16")
        run.expect("next", run.clear_choice(logits))
        run.expect("kv_k", K, k=D)
        run.expect("kv_v", V, k=D)
        run.expect("step", np.int32(step + 1))


if __name__ == "__main__":
    main(reference)
