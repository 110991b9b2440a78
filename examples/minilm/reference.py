"""all-MiniLM-L6-v2 in numpy, from the safetensors file: a sentence's tokens become a vector of length 1."""

import math

import numpy as np

N_LAYERS, HEADS, EPS = 6, 12, 1e-12


def load(path):
    from safetensors import safe_open

    with safe_open(str(path), "np") as f:
        return {name: f.get_tensor(name) for name in f.keys()}


def layernorm(x, w, name):
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + np.float32(EPS)) * w[f"{name}.weight"] + w[f"{name}.bias"]


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf, otypes=[np.float32])(x / math.sqrt(2)))


def attention(q, k, v):
    """[T, D] each, in heads."""
    def split(a):
        return a.reshape(len(a), HEADS, -1).transpose(1, 0, 2)

    q, k, v = map(split, (q, k, v))
    scores = q @ k.transpose(0, 2, 1) / np.float32(math.sqrt(q.shape[-1]))
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return (weights @ v).transpose(1, 0, 2).reshape(v.shape[1], -1)


def embed(w, tokens):
    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    e = "embeddings"
    x = (w[f"{e}.word_embeddings.weight"][tokens] + w[f"{e}.position_embeddings.weight"][: len(tokens)]
         + w[f"{e}.token_type_embeddings.weight"][0])
    x = layernorm(x, w, f"{e}.LayerNorm")
    for n in range(N_LAYERS):
        at = f"encoder.layer.{n}"
        a = attention(*(linear(x, f"{at}.attention.self.{part}") for part in ("query", "key", "value")))
        x = layernorm(x + linear(a, f"{at}.attention.output.dense"), w, f"{at}.attention.output.LayerNorm")
        y = linear(gelu(linear(x, f"{at}.intermediate.dense")), f"{at}.output.dense")
        x = layernorm(x + y, w, f"{at}.output.LayerNorm")
    mean = x.mean(axis=0)
    return mean / np.linalg.norm(mean)
