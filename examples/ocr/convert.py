"""convert.py CLS.onnx OUT.oinf: the weights of the direction classifier as direction.oi wants them.

Each batch normalisation becomes part of the convolution before it, W' = W s and b' = offset - mean s
with s = scale / sqrt(variance + eps). Blocks 6 to 9 have 88, 88, 40 and 48 channels inside; the
narrower ones get more that are all zero and add nothing, so that one loop runs all four.
"""

import sys
import tempfile

import numpy as np

from openinfer.oinf import PackageWriter, read_oinf
from openinfer.oinf.__main__ import main as oinf

EPS = 1e-5
WIDTH, SQUEEZED = 88, 22  # of blocks 6 to 9


def folded(w, conv, bn):
    s = w[f"{bn}_scale"].astype(np.float64) / np.sqrt(w[f"{bn}_variance"].astype(np.float64) + EPS)
    weight = w[f"{conv}_weights"] * s.reshape(-1, 1, 1, 1)
    return weight.astype(np.float32), (w[f"{bn}_offset"] - w[f"{bn}_mean"] * s).astype(np.float32)


def grown(a, *shape):
    out = np.zeros(shape, np.float32)
    out[tuple(slice(n) for n in a.shape)] = a
    return out


def block(w, b):
    """{name: array} of block b."""
    t = {}
    for name, part in (("expand", "expand"), ("deep", "depthwise"), ("narrow", "linear")):
        t[name], t[f"{name}_b"] = folded(w, f"conv{b}_{part}", f"conv{b}_{part}_bn")
    if f"conv{b}_se_1_weights" in w:
        for name, part in (("squeeze", "se_1"), ("excite", "se_2")):
            t[name], t[f"{name}_b"] = w[f"conv{b}_{part}_weights"], w[f"conv{b}_{part}_offset"]
    return t


def filled(t):
    """A block of WIDTH channels inside, the new ones zero."""
    shapes = {"expand": (WIDTH, 16, 1, 1), "expand_b": (WIDTH,), "deep": (WIDTH, 1, 5, 5), "deep_b": (WIDTH,),
              "squeeze": (SQUEEZED, WIDTH, 1, 1), "squeeze_b": (SQUEEZED,), "excite": (WIDTH, SQUEEZED, 1, 1),
              "excite_b": (WIDTH,), "narrow": (16, WIDTH, 1, 1), "narrow_b": (16,)}
    return {name: grown(t[name], *shape) for name, shape in shapes.items()}


def tensors(w):
    out = {"classes": w["fc_0.w_0"], "classes_b": w["fc_0.b_0"]}
    out["stem"], out["stem_b"] = folded(w, "conv1", "conv1_bn")
    out["last"], out["last_b"] = folded(w, "conv_last", "conv_last_bn")
    for b in range(2, 13):
        t = block(w, b)
        out |= {f"{name}.{b}": a for name, a in (filled(t) if 6 <= b <= 9 else t).items()}
    return out


def main(source, target):
    with tempfile.TemporaryDirectory() as folder:
        plain = f"{folder}/plain.oinf"
        if oinf(["convert", source, "-o", plain, "-q"]):
            sys.exit(1)
        package = read_oinf(plain)
        w = {name: np.array(package.tensors[name].numpy()) for name in package.tensors}
    with PackageWriter(target) as out:
        for name, array in tensors(w).items():
            out.add_tensor(name, np.ascontiguousarray(array))


if __name__ == "__main__":
    main(*sys.argv[1:])
