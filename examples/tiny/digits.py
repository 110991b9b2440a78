"""Digits of 8 x 8 pixels, drawn by ourselves, and small networks with weights of one or two bits that learn them.

A pixel has 16 shades, as in the well-known set of scanned digits. The networks keep float weights while they learn
and compute with what is left of them: their sign, or nothing where they are small (straight-through estimation).
"""

import numpy as np

FONT = (
    "01110 10001 10011 10101 11001 10001 01110", "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00010 00100 01000 11111", "11111 00010 00100 00010 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010", "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110", "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110", "01110 10001 10001 01111 00001 00010 01100",
)  # fmt: skip
LAYERS = (64, 32, 32, 10)
SHIFTS = (3, 2)  # a hidden layer divides its sums by a power of two


def samples(n, seed):
    """Pictures of 0 ... 15 as rows of 64, and which digits they are: moved, dimmed, noisy."""
    rng = np.random.default_rng(seed)
    glyphs = np.array([[[int(c) for c in row] for row in digit.split()] for digit in FONT])
    kinds = rng.integers(0, 10, n)
    pictures = np.zeros((n, 8, 8))
    for picture, kind in zip(pictures, kinds):
        top, left = rng.integers(0, 2), rng.integers(0, 4)
        picture[top : top + 7, left : left + 5] = glyphs[kind] * rng.uniform(0.6, 1.0)
    noisy = pictures * 15 + rng.normal(0, 1.5, pictures.shape)
    return np.clip(np.rint(noisy), 0, 15).reshape(n, 64), kinds


def coarse(w, is_ternary):
    signs = np.where(w >= 0, 1.0, -1.0)
    return signs * (np.abs(w) > 0.4 * np.abs(w).mean()) if is_ternary else signs


def forward(x, weights, biases):
    """Activations of all layers, as the integer graph computes them."""
    found = [x]
    for w, b, shift in zip(weights, biases, (*SHIFTS, None)):
        sums = found[-1] @ w + np.rint(b)
        found.append(sums if shift is None else np.clip(np.floor(sums / 2**shift), 0, 127))
    return found


def train(is_ternary, steps=600, batch=200):
    """Weights of {-1, 0, 1} or {-1, 1} and whole biases, layer by layer."""
    rng = np.random.default_rng(7)
    floats = [rng.normal(0, 1 / np.sqrt(n), (n, m)) for n, m in zip(LAYERS, LAYERS[1:])]
    floats += [np.zeros(m) for m in LAYERS[1:]]
    moments = [[np.zeros_like(p), np.zeros_like(p)] for p in floats]
    pictures, kinds = samples(8000, 1)
    for step in range(steps):
        chosen = rng.integers(0, len(pictures), batch)
        weights = [coarse(w, is_ternary) for w in floats[:3]]
        found = forward(pictures[chosen], weights, floats[3:])
        scores = found[-1] / 64
        shares = np.exp(scores - scores.max(1, keepdims=True))
        error = (shares / shares.sum(1, keepdims=True) - np.eye(10)[kinds[chosen]]) / batch / 64
        gradients = [None] * 6
        for layer in (2, 1, 0):
            gradients[layer] = found[layer].T @ error
            gradients[layer + 3] = error.sum(0)
            if layer:
                inside = (found[layer] > 0) & (found[layer] < 127)
                error = error @ weights[layer].T * inside / 2 ** SHIFTS[layer - 1]
        for i, (p, g, m) in enumerate(zip(floats, gradients, moments)):
            m[0] = 0.9 * m[0] + 0.1 * g
            m[1] = 0.99 * m[1] + 0.01 * g * g
            rate = (0.01 if i < 3 else 2.0) * (1 - step / steps)
            p -= rate * (m[0] / (1 - 0.9 ** (step + 1))) / (np.sqrt(m[1] / (1 - 0.99 ** (step + 1))) + 1e-12)
    weights = [coarse(w, is_ternary).astype(int) for w in floats[:3]]
    return weights, [np.rint(b).astype(int) for b in floats[3:]]


def share_right(weights, biases, n=2000):
    """How many unseen digits the network knows."""
    pictures, kinds = samples(n, 2)
    return float((forward(pictures, weights, biases)[-1].argmax(1) == kinds).mean())
