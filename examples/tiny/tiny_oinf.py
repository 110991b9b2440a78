"""Writes the package of a tiny model: tiny_oinf.py NAME [FILE.oinf], NAME as the graph's without .oi.

The weights are our own, drawn with fixed seeds and scaled so that activations keep their size from layer
to layer. NAME_i8 has integer weights, biases of 32 bits and, per output, the multiplier over 2^24 that
brings a sum back to 8 bits; NAME_i6 the same with weights of 6 bits. digits_t1 and digits_t2 learn theirs, in a second.
"""

import math
import pathlib
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checkout  # noqa: E402, F401  finds openinfer.oinf in a checkout
from openinfer.oinf import PackageWriter, TensorSpec
from openinfer.oinf.random import random_values
from package import uniform

# Every layer: weights, bias, multiplier, shape. Matrices are [inputs, outputs], windows [outputs, inputs, ...].


def dense(name, inputs, outputs, last=False):
    return name, f"{name}_b", None if last else f"{name}_m", [inputs, outputs]


def window(name, outputs, inputs, *kernel, last=False):
    return name, f"{name}_b", None if last else f"{name}_m", [outputs, inputs, *kernel]


def numbered(name, l, shape, bias=None, multiplier=None):
    return f"{name}.{l}", f"{bias or name + '_b'}.{l}", f"{multiplier or name + '_m'}.{l}", shape


MODELS = {
    "jet_mlp": [
        ("w0", "b0", "m0", [16, 64]),
        ("w1", "b1", "m1", [64, 32]),
        ("w2", "b2", "m2", [32, 32]),
        ("w3", "b3", None, [32, 5]),
    ],
    "autoencoder": [
        dense("first", 640, 128),
        *[numbered("W", l, [128, 128], "b", "m") for l in range(6)],
        dense("narrow", 128, 8),
        dense("widen", 8, 128),
        dense("last", 128, 640),
    ],
    "ds_cnn": [
        window("stem", 64, 1, 10, 4),
        *[numbered("deep", l, [64, 1, 3, 3]) for l in range(4)],
        *[numbered("point", l, [64, 64, 1, 1]) for l in range(4)],
        dense("words", 64, 12, last=True),
    ],
    "resnet8": [
        window("stem", 16, 3, 3, 3),
        window("a0", 16, 16, 3, 3),
        window("a1", 16, 16, 3, 3),
        window("b0", 32, 16, 3, 3),
        window("b1", 32, 32, 3, 3),
        window("b2", 32, 16, 1, 1),
        window("c0", 64, 32, 3, 3),
        window("c1", 64, 64, 3, 3),
        window("c2", 64, 32, 1, 1),
        dense("kinds", 64, 10, last=True),
    ],
    "wake_word": [
        window("deep_in", 40, 1, 8),
        window("point_in", 32, 40, 1),
        *[numbered("deep", l, [32, 1, 8]) for l in range(3)],
        *[numbered("point", l, [32, 32, 1]) for l in range(3)],
        window("words", 3, 32, 1, last=True),
    ],
    "digits_conv": [
        window("first", 4, 1, 3, 3),
        window("second", 8, 4, 3, 3),
        dense("kinds", 8, 10, last=True),
    ],
}
FLOATS = [name for name in MODELS if name != "digits_conv"]


def sizes(shape):
    """Inputs of one sum, outputs, and the shape that a value per output broadcasts with."""
    if len(shape) == 2:
        return shape[0], shape[1], [shape[1]]
    return math.prod(shape[1:]), shape[0], [shape[0], *[1] * (len(shape) - 2)]


def add_floats(out, seed, weight, bias, shape):
    inputs, outputs, _ = sizes(shape)
    limit = math.sqrt(6 / inputs)  # half of the sums fall to the rectifier
    out.add_tensor(weight, uniform(seed, shape, -limit, limit))
    out.add_tensor(bias, uniform(seed + 1, [outputs], -0.1, 0.1))


def nested(values, shape):
    if len(shape) == 1:
        return values
    part = len(values) // shape[0]
    return [nested(values[i * part : (i + 1) * part], shape[1:]) for i in range(shape[0])]


def add_integers(out, seed, weight, bias, multiplier, shape, bits):
    inputs, outputs, apart = sizes(shape)
    most = 2 ** (bits - 1) - 1
    out.add_tensor(weight, uniform(seed, shape, -most, most, "i8"))
    out.add_tensor(bias, uniform(seed + 1, [outputs], -2000, 2000, "i32"))
    if multiplier:
        usual = 2**24 * 1.4 / (math.sqrt(inputs) * (most * 73 / 127))  # what a weight is on average
        spread = random_values("f64", seed + 2, 0.7, 1.3, outputs)
        out.add_tensor(multiplier, TensorSpec(nested([round(usual * s) for s in spread], apart), "i64"))


def write_digits(out, word):
    import digits  # needs numpy

    weights, biases = digits.train(word == "t2")
    for i, (w, b) in enumerate(zip(weights, biases)):
        out.add_tensor(f"w{i}", TensorSpec(w.tolist(), word))
        out.add_tensor(f"b{i}", TensorSpec(b.tolist(), "i32"))


def write_fir_word(out):
    """Band passes around four frequencies, and a layer that looks for the first two."""
    taps = [
        [[round(24 * math.cos(math.pi * (f + 1) * (t - 7.5) / 5) * math.sin(math.pi * (t + 0.5) / 16)) for t in range(16)]]
        for f in range(4)
    ]
    out.add_tensor("taps", TensorSpec(taps, "i8"))
    out.add_tensor("words", TensorSpec([[9, -4], [5, 3], [-7, 6], [-6, 8]], "i8"))
    out.add_tensor("words_b", TensorSpec([-100, -250], "i32"))


def write_lstm_cell(out):
    out.add_tensor("W", uniform(11, [8, 32], -90, 90, "i8"))
    out.add_tensor("R", uniform(12, [8, 32], -90, 90, "i8"))
    out.add_tensor("b", uniform(13, [32], -3000, 3000, "i32"))
    places = [(i - 128) / 16 for i in range(256)]
    out.add_tensor("sigmoid", TensorSpec([min(127, round(128 / (1 + math.exp(-v)))) for v in places], "i8"))
    out.add_tensor("tanh", TensorSpec([min(127, round(128 * math.tanh(v))) for v in places], "i8"))


OWN = {
    "digits_t1": lambda out: write_digits(out, "t1"),
    "digits_t2": lambda out: write_digits(out, "t2"),
    "fir_word_i8": write_fir_word,
    "lstm_cell_i8": write_lstm_cell,
}
NAMES = [*FLOATS, *[f"{name}_i8" for name in MODELS], "jet_mlp_i6", *OWN]


def write(name, path):
    stem, _, kind = name.rpartition("_i")
    with PackageWriter(path) as out:
        if name in OWN:
            OWN[name](out)
            return
        for weight, bias, multiplier, shape in MODELS[stem or name]:
            seed = zlib.crc32(f"{name}/{weight}".encode())
            if stem:
                add_integers(out, seed, weight, bias, multiplier, shape, int(kind))
            else:
                add_floats(out, seed, weight, bias, shape)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.exit(f"usage: tiny_oinf.py {'|'.join(NAMES)} [FILE.oinf]")
    target = sys.argv[2] if len(sys.argv) > 2 else f"{sys.argv[1]}.oinf"
    write(sys.argv[1], target)
    print(f"wrote {target}")
