"""A GGUF file with the tensors of another and random weights: to measure a model's shape where its weights are not.

    python bench/random_gguf.py MODEL.gguf OUT.gguf [--head]

Of MODEL.gguf only what stands before the tensors' data is read, so that its beginning will do; --head writes just
that beginning. Scales are such that numbers stay as large as a trained model's: real ones, no NaN.
"""

import argparse
import struct

import numpy as np

FIXED = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of a value by its type
TEXT, LIST = 8, 9
F32, Q4_1, Q8_0 = 0, 3, 8


class Head:
    """What stands before the data: tensors as (type, elements, offset), and where the data begins."""

    def __init__(self, data):
        self.data, self.at = data, 0
        magic, _, n_tensors, n_pairs = self.take("<4sIQQ")
        assert magic == b"GGUF", "no GGUF file"
        align = 32
        for _ in range(n_pairs):
            name, kind = self.text(), self.take("<I")[0]
            at = self.at
            self.skip(kind)
            if name == b"general.alignment":
                align = struct.unpack_from("<I", data, at)[0]
        self.tensors = []
        for _ in range(n_tensors):
            self.text()
            dims = self.take(f"<{self.take('<I')[0]}Q")
            self.tensors.append((*self.take("<I"), int(np.prod(dims)), *self.take("<Q")))
        self.size = (self.at + align - 1) // align * align

    def take(self, form):
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values

    def text(self):
        (n,) = self.take("<Q")
        self.at += n
        return self.data[self.at - n : self.at]

    def skip(self, kind):
        if kind == TEXT:
            self.text()
        elif kind == LIST:
            of, n = self.take("<IQ")
            if of in FIXED:
                self.at += n * FIXED[of]
            else:
                for _ in range(n):
                    self.skip(of)
        else:
            self.at += FIXED[kind]


def weights(rng, kind, n):
    if kind == F32:  # norms
        return (1 + 0.1 * rng.standard_normal(n, dtype=np.float32)).tobytes()
    blocks = n // 32
    block = {Q4_1: [("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)], Q8_0: [("d", "<f2"), ("q", "i1", 32)]}[kind]
    out = np.zeros(blocks, np.dtype(block))
    step = 0.01 if kind == Q4_1 else 0.001
    out["d"] = step * (0.5 + rng.random(blocks))
    if kind == Q4_1:
        out["m"] = out["d"].astype(np.float32) * -7.5
    out["q"] = rng.integers(0, 256, out["q"].shape, np.uint8).view(out["q"].dtype)
    return out.tobytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--head", action="store_true")
    args = parser.parse_args()
    with open(args.model, "rb") as f:
        data = f.read(64 << 20)
    head = Head(data)
    with open(args.out, "wb") as f:
        f.write(data[: head.size].ljust(head.size, b"\0"))
        rng = np.random.default_rng(1)
        for kind, n, offset in [] if args.head else head.tensors:
            f.seek(head.size + offset)
            f.write(weights(rng, kind, n))


if __name__ == "__main__":
    main()
