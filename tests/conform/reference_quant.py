"""Quantised tensors: what their ops mean, in numpy."""

import numpy as np

from reference import op, result


def in_blocks(w, rows):
    """Scales or offsets, one per element of w [N, K]."""
    return np.repeat(rows.astype(np.float32), w.shape[1] // max(1, rows.shape[1]), axis=1)


def quantise_rows(x, blocks):
    """Integers (f64, exact), and one factor per block: x [M, K]."""
    v = x.reshape(x.shape[0], blocks, x.shape[1] // max(1, blocks))
    top = np.abs(v).max(axis=2) if v.size else np.zeros(v.shape[:2], np.float32)
    d = (top / np.float32(127)).astype(np.float32)
    bad = ~np.isfinite(top)
    safe = np.where((d > 0) & ~bad, d, np.float32(1))[:, :, None]
    ratio = np.where((d > 0)[:, :, None] & ~bad[:, :, None], v, 0).astype(np.float32) / safe
    whole = np.trunc(ratio)
    q = np.clip(whole + np.copysign(np.abs(ratio - whole) >= 0.5, ratio), -127, 127)
    return q.astype(np.int64), np.where(bad, np.float32(np.nan), d)


@op("qlinear")
def _(inputs, attrs, out_dtype, out_shape):
    rest = list(inputs[2:])
    bias = rest.pop().values.astype(np.float32) if rest and rest[-1].values.ndim == 1 else np.float32(0)
    w = inputs[1].values.astype(np.int64)
    scale = rest[0].values.astype(np.float32)
    offset = rest[1].values.astype(np.float32) if len(rest) > 1 else np.zeros_like(scale)
    x = inputs[0].values.astype(np.float32).reshape(int(np.prod(out_shape[:-1], dtype=np.int64)), w.shape[1])
    if attrs.get("act") == "q8":
        blocks = scale.shape[1]
        q, d = quantise_rows(x, blocks)
        products = np.einsum("mbg,nbg->mnb", q, w.reshape(w.shape[0], blocks, w.shape[1] // max(1, blocks)))
        terms = d[:, None].astype(np.float64) * (scale[None].astype(np.float64) * products + offset[None].astype(np.float64) * q.sum(axis=2)[:, None])
        y = terms.sum(axis=2)
    else:
        real = (in_blocks(w, scale) * w.astype(np.float32) + in_blocks(w, offset)).astype(np.float64)
        y = x.astype(np.float64) @ real.T
    return result(out_dtype, (y.astype(np.float32) + bias).reshape(out_shape))
