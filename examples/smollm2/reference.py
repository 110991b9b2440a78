"""SmolLM2 in numpy: an f32 forward pass of the same weights, dequantised, all tokens at once.

The weights come from the GGUF file through the `gguf` package, so that our converter, our kernels and
this share nothing. Q and K rows of the file are ordered for rotating neighbours (2i, 2i+1).
"""

import numpy as np

N_LAYERS, D, HEADS, KV_HEADS, DH, THETA, EPS = 30, 576, 9, 3, 64, 100000.0, 1e-5


def load(path):
    """{name: f32 array} of a GGUF file."""
    import gguf

    return {t.name: np.asarray(gguf.quants.dequantize(t.data, t.tensor_type), np.float32)
            for t in gguf.GGUFReader(path).tensors}


def rmsnorm(x, scale):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(EPS)) * scale


def rope(x, positions):
    """x [T, heads, DH]: pairs (2i, 2i+1) turn by position * THETA^(-2i/DH)."""
    angles = positions[:, None] * THETA ** (-np.arange(0, DH, 2) / DH)
    cos, sin = (f(angles).astype(np.float32)[:, None, :] for f in (np.cos, np.sin))
    even, odd = x[..., 0::2], x[..., 1::2]
    out = np.empty_like(x)
    out[..., 0::2] = even * cos - odd * sin
    out[..., 1::2] = even * sin + odd * cos
    return out


def attention(q, k, v):
    """q [T, HEADS, DH], k and v [T, KV_HEADS, DH]; each token sees those before it and itself."""
    n = len(q)
    k, v = (np.repeat(a, HEADS // KV_HEADS, axis=1) for a in (k, v))
    scores = np.einsum("qhd,khd->hqk", q, k) / np.float32(np.sqrt(DH))
    scores = np.where(np.tril(np.ones((n, n), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("hqk,khd->qhd", weights, v)


def forward(w, tokens):
    """Logits [T, V] after each token."""
    positions = np.arange(len(tokens))
    x = w["token_embd.weight"][tokens]
    for layer in range(N_LAYERS):
        def times(a, name):
            return a @ w[f"blk.{layer}.{name}.weight"].T

        h = rmsnorm(x, w[f"blk.{layer}.attn_norm.weight"])
        q = rope(times(h, "attn_q").reshape(-1, HEADS, DH), positions)
        k = rope(times(h, "attn_k").reshape(-1, KV_HEADS, DH), positions)
        v = times(h, "attn_v").reshape(-1, KV_HEADS, DH)
        x = x + times(attention(q, k, v).reshape(-1, HEADS * DH), "attn_output")
        h = rmsnorm(x, w[f"blk.{layer}.ffn_norm.weight"])
        gate = times(h, "ffn_gate")
        x = x + times(gate / (1 + np.exp(-gate)) * times(h, "ffn_up"), "ffn_down")
    return rmsnorm(x, w["output_norm.weight"]) @ w["token_embd.weight"].T
