"""Random chains of windows: convolutions of all sorts, pools, maps and sums with what came before, as kernels that can
take turns row by row (src/synth/pipeline.c) and some that cannot."""

import math
import random

from generate import Graph


class Chain:
    def __init__(self, rng, dtype, prefix, most):
        self.rng, self.dtype, self.prefix, self.most = rng, dtype, prefix, most
        self.constants, self.assigned, self.lines, self.tensors, self.n = [], [], [], {}, 0
        self.whole = dtype != "f32"  # integers: sums are wider, and come back to 8 bits

    def name(self, stem):
        self.n += 1
        return f"{self.prefix}{stem}{self.n}"

    def constant(self, dtype, shape):
        name = self.name("w")
        low, high = (-1.0, 1.0) if dtype == "f32" else (-100, 100)
        self.constants.append(f"  {name}: {dtype}[{', '.join(map(str, shape))}];")
        self.tensors[name] = (dtype, tuple(shape), self.rng.getrandbits(30), low, high)
        return name

    def put(self, op, args, attrs, shape, dtype=None):
        out = self.name("t")
        self.assigned.append(f"  assign {out}: {dtype or self.dtype}[{', '.join(map(str, shape))}];")
        words = [*args, *(f"{k}={v}" for k, v in attrs.items())]
        self.lines.append(f"  op {op}({', '.join(words)}) >> {out};")
        return out

    def back(self, sums, shape, bits):
        """Sums of integers as bytes again."""
        less = self.put("shr", [sums], {"bits": bits}, shape, "i32")
        return self.put("cast", [less], {"to": self.dtype}, shape)

    def window(self, h, w):
        """Kernel, strides, pads and the size that comes of it."""
        rng = self.rng
        kernel = [rng.choice((1, 2, 3, 3, 3, 5)) for _ in range(2)]
        strides = [rng.choice((1, 1, 1, 2, 3)) for _ in range(2)]
        pads = [rng.randint(0, k - 1) for k in kernel * 2]
        if rng.random() < 0.5:
            strides, pads = [1, 1], [(k - 1) // 2 for k in kernel] + [k // 2 for k in kernel]
        size = [(n + pads[a] + pads[a + 2] - kernel[a]) // strides[a] + 1 for a, n in enumerate((h, w))]
        return kernel, strides, pads, size

    def conv(self, v, kind):
        rng, (name, n, c, h, w) = self.rng, v
        kernel, strides, pads, size = ([1, 1], [1, 1], [0] * 4, [h, w]) if kind == "points" else self.window(h, w)
        m = c * rng.choice((1, 1, 2)) if kind == "deep" else rng.randint(1, 8)
        if min(size) < 1 or n * m * math.prod(size) > self.most:
            return None
        group = c if kind == "deep" else 1
        args = [name, self.constant(self.dtype, (m, c // group, *kernel))]
        if rng.random() < 0.5:
            args.append(self.constant("i32" if self.whole else self.dtype, (m,)))
        attrs = {"strides": strides, "pads": pads, "group": group}
        if kind == "dense" and rng.random() < 0.1 and min(h, w) > 2 * max(kernel):
            attrs = {"dilations": [2, 1], "group": 1}
            size = [h - 2 * (kernel[0] - 1), w - kernel[1] + 1]
        shape = (n, m, *size)
        if not self.whole:
            return self.put("conv", args, attrs, shape), *shape
        sums = self.put("conv", args, {**attrs, "acc": "[i32]"}, shape, "i32")
        return self.back(sums, shape, rng.randint(5, 9)), *shape

    def pool(self, v):
        name, n, c, h, w = v
        kernel, strides, pads, size = self.window(h, w)
        op = self.rng.choice(("max_pool", "avg_pool") if not self.whole else ("max_pool",))
        if min(size) < 1:
            return None
        return self.put(op, [name], {"kernel": kernel, "strides": strides, "pads": pads}, (n, c, *size)), n, c, *size

    def map(self, v):
        name, *shape = v
        return self.put(self.rng.choice(("relu", "neg", "abs")), [name], {}, shape), *shape

    def sum(self, v, known):
        """With what has the same shape: a residual."""
        name, *shape = v
        other = self.rng.choice([o for o in known if o[1:] == v[1:]] or [v])[0]
        if not self.whole:
            return self.put("add", [name, other], {}, shape), *shape
        wide = [self.put("cast", [o], {"to": "i32"}, shape, "i32") for o in (name, other)]
        return self.back(self.put("add", wide, {}, shape, "i32"), shape, 1), *shape

    def two(self, v):
        """Two ways to the same place."""
        shape = [*v[1:]]
        ways = [self.conv(v, "points"), self.conv(v, "points")]
        if None in ways or ways[0][1:] != ways[1][1:]:
            return self.map(v)
        shape = ways[0][1:]
        return self.sum(ways[0], [ways[1]])[0], *shape

    def layers(self, v, n):
        known = [v]
        for _ in range(n):
            kind = self.rng.random()
            out = (self.conv(v, "dense") if kind < 0.3 else self.conv(v, "deep") if kind < 0.5 else self.conv(v, "points")
                   if kind < 0.65 else self.pool(v) if kind < 0.75 else self.map(v) if kind < 0.85 else
                   self.sum(v, known) if kind < 0.95 else self.two(v))  # fmt: skip
            if out:
                v = out
                known.append(v)
        return known


def make(seed, prefix="c_", dtype=None, most=4000, widths=(3, 12)):
    """A graph that is one chain, with its last value and at times some before as results."""
    rng = random.Random(f"chain {seed}")
    chain = Chain(rng, dtype or rng.choice(("f32", "i8", "i8")), prefix, most)
    shape = (rng.choice((1, 1, 1, 2)), rng.randint(1, 6), rng.randint(6, 24), rng.randint(*widths))
    known = chain.layers((f"{prefix}x", *shape), rng.randint(3, 10))
    results = {known[-1][0]: known[-1], **({(o := rng.choice(known))[0]: o} if rng.random() < 0.4 else {})}
    results.pop(f"{prefix}x", None)
    if not results:
        return make(f"{seed} again", prefix, dtype, most, widths)
    dims = "[{}]".format(", ".join(map(str, shape)))
    shown = [f"  {n}_y: {chain.dtype}[{', '.join(map(str, v[1:]))}];" for n, v in results.items()]
    copies = [f"  op relu({n}) >> {n}_y;" for n in results]
    text = "\n".join([
        f"dynamic {{\n  {prefix}x: {chain.dtype}{dims};\n}}",
        *(["constant {", *chain.constants, "}"] if chain.constants else []),
        "volatile {", *shown, "}",
        "block entry {", *chain.assigned, *chain.lines, *copies,
        f"  return {', '.join(n + '_y' for n in results)};", "}", "",
    ])  # fmt: skip
    inputs = {f"{prefix}x": f"random:{rng.getrandbits(20)}:{'-2:2' if chain.dtype == 'f32' else '-128:127'}"}
    return Graph(text, chain.tensors, inputs)
