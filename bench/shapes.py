"""Shapes of one op at a time, drawn at random, as ONNX models: what bench/sweep.py measures.

A family is a row of FAMILIES: `draw(rng)` gives the sizes of one shape as a dict, or None when it drew one that is too
small or too large to tell anything; `build(m, **sizes)` adds nodes to the Model m. A size named in `varied` may be
changed a little, for the neighbours of a shape.
"""

import math
import random

import numpy as np
from onnx import TensorProto, helper, numpy_helper

LEAST, MOST = 1e6, 1.5e8  # multiply-adds of a product
FEWEST, LARGEST = 3e4, 3e6  # elements of anything else


class Model:
    """Nodes with their inputs and weights. `macs`: what the shape has to multiply, or its elements."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.inputs, self.weights, self.given, self.work, self.n = [], [], [], {}, 0, 0

    def values(self, shape, dtype):
        if dtype == np.float32:
            return self.rng.uniform(-1, 1, shape).astype(np.float32)
        if dtype == bool:
            return self.rng.random(shape) < 0.8
        info = np.iinfo(dtype)
        return self.rng.integers(info.min, info.max + 1, shape).astype(dtype)

    def x(self, *shape, dtype=np.float32):
        name = f"x{len(self.inputs)}"
        self.given[name] = self.values(shape, dtype)
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape))
        return name

    def w(self, *shape, dtype=np.float32):
        return self.constant(self.values(shape, dtype) / (np.float32(math.sqrt(math.prod(shape[1:]) or 1)) if dtype == np.float32 else 1),
                             dtype)  # fmt: skip

    def constant(self, value, dtype):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value).astype(dtype), name))
        return name

    def __call__(self, op, *inputs, outputs=1, **attrs):
        self.n += 1
        names = [f"t{self.n}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, [i or "" for i in inputs], names, **attrs))
        return names[0] if outputs == 1 else names

    def onnx(self, results):
        results = [results] if isinstance(results, str) else results
        outs = [helper.make_tensor_value_info(r, TensorProto.UNDEFINED, None) for r in results]
        graph = helper.make_graph(self.nodes, "shape", self.inputs, outs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
        import onnx

        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        known = {v.name: v for v in inferred.graph.value_info}
        known.update({o.name: o for o in inferred.graph.output})
        del model.graph.output[:]
        model.graph.output.extend(known[r] for r in results)
        for out in model.graph.output:  # ops that are functions may have no inferred type
            if not out.type.tensor_type.elem_type:
                out.type.tensor_type.elem_type = TensorProto.FLOAT
        return model


def log(rng, low, high):
    """Between low and high, as often below as above their geometric mean; round numbers now and then."""
    n = round(math.exp(rng.uniform(math.log(low), math.log(high))))
    if n > 12 and rng.random() < 0.5:
        n = max(low, n // 8 * 8)
    return int(n)


def fits(work, least=LEAST, most=MOST):
    return least <= work <= most


# -- convolutions --


def window_out(n, k, stride, dilation, pad):
    return (n + 2 * pad - (k - 1) * dilation - 1) // stride + 1


def draw_conv(rng, axes, kind):
    kernel = [rng.choice((1, 3, 3, 3, 5, 7) if axes > 1 else (1, 3, 3, 5, 7, 11, 15))] * axes
    if axes == 3:
        kernel = [rng.choice((1, 3, 3))] * 3
    if axes == 2 and rng.random() < 0.1:
        kernel = rng.choice(([1, 5], [5, 1], [3, 1], [1, 7]))
    if kind == "deep" and max(kernel) == 1:
        return None
    high = {1: 16000, 2: 160, 3: 32}[axes]
    size = [log(rng, {1: 40, 2: 5, 3: 4}[axes], high)] * axes
    if axes == 2 and rng.random() < 0.3:
        size = [log(rng, 5, high), log(rng, 5, high)]
    stride = rng.choice((1, 1, 1, 2)) if max(kernel) > 1 else rng.choice((1, 1, 1, 1, 2))
    dilation = rng.choice((2, 3, 4)) if kind == "dilated" else 1
    group, c, m = 1, log(rng, 1, 384), log(rng, 4, 384)
    if kind == "grouped":
        group = rng.choice((2, 4, 8, 16))
        c, m = group * log(rng, 2, 64), group * log(rng, 2, 64)
    if kind == "deep":
        c = group = m = log(rng, 8, 512)
    s = {"batch": rng.choice((1, 1, 1, 1, 2)), "c": c, "m": m, "size": size, "kernel": kernel, "stride": stride,
         "dilation": dilation, "group": group, "relu": rng.random() < 0.4}  # fmt: skip
    return s if conv_fits(s) else None


def conv_fits(s):
    out = [window_out(n, k, s["stride"], s["dilation"], (k - 1) * s["dilation"] // 2) for n, k in zip(s["size"], s["kernel"])]
    if min(out) < 1 or s["batch"] * s["c"] * math.prod(s["size"]) > 4 * LARGEST or s["m"] * math.prod(out) > 4 * LARGEST:
        return False
    return fits(s["batch"] * s["m"] * math.prod(out) * s["c"] // s["group"] * math.prod(s["kernel"]))


def build_conv(m, batch, c, m_, size, kernel, stride, dilation, group, relu):
    pads = [(k - 1) * dilation // 2 for k in kernel] * 2
    y = m("Conv", m.x(batch, c, *size), m.w(m_, c // group, *kernel), m.w(m_), kernel_shape=kernel, pads=pads, group=group,
          strides=[stride] * len(size), dilations=[dilation] * len(size))  # fmt: skip
    return m("Relu", y) if relu else y


def draw_transposed(rng):
    axes = rng.choice((1, 2, 2))
    stride = rng.choice((1, 2, 2, 2, 4))
    kernel = [rng.choice((stride, stride + 1, 2 * stride, 3))] * axes
    size = [log(rng, 20, 2000) if axes == 1 else log(rng, 4, 64)] * axes
    s = {"c": log(rng, 4, 256), "m": log(rng, 1, 256), "size": size, "kernel": kernel, "stride": stride}
    return s if fits(s["c"] * s["m"] * math.prod(size) * math.prod(kernel)) and kernel[0] >= stride else None


def build_transposed(m, c, m_, size, kernel, stride):
    return m("ConvTranspose", m.x(1, c, *size), m.w(c, m_, *kernel), m.w(m_), kernel_shape=kernel, strides=[stride] * len(size),
             pads=[(k - stride) // 2 for k in kernel] * 2)  # fmt: skip


# -- products --


def draw_linear(rng):
    rows = rng.choice((1, 1, 2, 4, 7, 8, 16, 33, 64, 100, 128, 197, 256, 512))
    s = {"rows": rows, "k": log(rng, 32, 3072), "n": log(rng, 16, 3072), "bias": rng.random() < 0.6,
         "end": rng.choice(("", "", "relu", "gelu", "sigmoid", "residual"))}  # fmt: skip
    return s if fits(rows * s["k"] * s["n"], 3e5) else None


def build_linear(m, rows, k, n, bias, end):
    y = m("MatMul", m.x(rows, k), m.w(k, n))
    if bias:
        y = m("Add", y, m.w(n))
    if end == "residual":
        return m("Add", y, m.x(rows, n))
    return m({"relu": "Relu", "gelu": "Gelu", "sigmoid": "Sigmoid"}[end], y) if end else y


def draw_batched(rng):
    s = {"stack": log(rng, 2, 64), "rows": log(rng, 1, 512), "k": log(rng, 4, 512), "n": log(rng, 1, 512),
         "kind": rng.choice(("both", "both", "both", "shared b", "shared a", "weights", "two stacks"))}  # fmt: skip
    return s if fits(s["stack"] * s["rows"] * s["k"] * s["n"], 3e5) else None


def build_batched(m, stack, rows, k, n, kind):
    if kind == "two stacks":
        return m("MatMul", m.x(2, stack, rows, k), m.x(1, stack, k, n))
    a = m.x(rows, k) if kind == "shared a" else m.x(stack, rows, k)
    b = m.x(k, n) if kind == "shared b" else m.w(stack, k, n) if kind == "weights" else m.x(stack, k, n)
    return m("MatMul", a, b)


# -- attention --


def draw_attention(rng):
    heads = rng.choice((1, 2, 4, 6, 8, 12, 16))
    shared = rng.choice([g for g in (1, 1, 2, 3, 4) if heads % g == 0])
    queries = rng.choice((1, 1, 4, log(rng, 8, 512), log(rng, 8, 512)))
    s = {"heads": heads, "kv": heads // shared, "queries": queries, "keys": queries if rng.random() < 0.4 and queries > 4 else log(rng, 16, 1024),
         "depth": rng.choice((16, 32, 40, 64, 64, 64, 80, 128)), "mask": rng.choice(("", "", "causal", "added"))}  # fmt: skip
    return s if fits(2 * heads * queries * s["keys"] * s["depth"], 3e5) else None


def build_attention(m, heads, kv, queries, keys, depth, mask):
    q, k, v = m.x(1, heads, queries, depth), m.x(1, kv, keys, depth), m.x(1, kv, keys, depth)
    return m("Attention", q, k, v, *([m.x(queries, keys)] if mask == "added" else []), is_causal=int(mask == "causal"))


# -- rows and reductions --


def shape_of(rng, rank=None, least=FEWEST, most=LARGEST):
    rank = rank or rng.randint(2, 4)
    for _ in range(100):
        shape = [log(rng, 1, 2048 if rank < 4 else 256) for _ in range(rank)]
        if fits(math.prod(shape), least, most):
            return shape
    return [64, 1024]


def draw_softmax(rng):
    shape = shape_of(rng)
    return {"shape": shape, "axis": rng.choice((len(shape) - 1, len(shape) - 1, rng.randrange(len(shape)))),
            "op": rng.choice(("Softmax", "Softmax", "Softmax", "LogSoftmax"))}  # fmt: skip


def build_softmax(m, shape, axis, op):
    return m(op, m.x(*shape), axis=axis)


def draw_norm(rng):
    op = rng.choice(("LayerNormalization", "LayerNormalization", "RMSNormalization", "InstanceNormalization", "GroupNormalization"))
    shape = shape_of(rng, rng.choice((3, 4)) if op[0] in "IG" else rng.choice((2, 3)))
    if op == "GroupNormalization":
        shape[1] = shape[1] // 4 * 4 + 4
    return {"op": op, "shape": shape}


def build_norm(m, op, shape):
    x = m.x(*shape)
    if op == "InstanceNormalization":
        return m(op, x, m.w(shape[1]), m.w(shape[1]))
    if op == "GroupNormalization":
        return m(op, x, m.w(shape[1]), m.w(shape[1]), num_groups=4)
    return m(op, x, m.w(shape[-1]), *([m.w(shape[-1])] if op[0] == "L" else []))


def draw_reduce(rng):
    shape = shape_of(rng)
    n = rng.choice((1, 1, 1, min(2, len(shape) - 1)))
    return {"op": rng.choice(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ArgMax")), "shape": shape,
            "axes": sorted(rng.sample(range(len(shape)), n))}  # fmt: skip


def build_reduce(m, op, shape, axes):
    if op == "ArgMax":
        return m(op, m.x(*shape), axis=axes[0])
    return m(op, m.x(*shape), m.constant(axes, np.int64), keepdims=0)


def draw_pool(rng):
    kernel = rng.choice((2, 2, 3, 3, 3, 5, 7, 13))
    stride = rng.choice((1, 1, 2, 2, kernel))
    axes = rng.choice((1, 2, 2, 2))
    size = [log(rng, 14, 200) for _ in range(axes)] if axes == 2 else [log(rng, 100, 8000)]
    c = log(rng, 1, 256)
    op = rng.choice(("MaxPool", "MaxPool", "AveragePool", "GlobalAveragePool"))
    return {"op": op, "c": c, "size": size, "kernel": kernel, "stride": stride} if fits(c * math.prod(size), FEWEST, LARGEST) else None


def build_pool(m, op, c, size, kernel, stride):
    x = m.x(1, c, *size)
    if op[0] == "G":
        return m(op, x)
    more = {"count_include_pad": 0} if op[0] == "A" else {}
    return m(op, x, kernel_shape=[kernel] * len(size), strides=[stride] * len(size), pads=[(kernel - 1) // 2] * (2 * len(size)), **more)


# -- moves and maps --


def draw_resize(rng):
    c, size = log(rng, 1, 128), [log(rng, 8, 160), log(rng, 8, 160)]
    scale = rng.choice((2, 2, 0.5, 1.5, 3))
    work = c * math.prod(size) * scale * scale
    return {"c": c, "size": size, "scale": scale, "mode": rng.choice(("nearest", "linear", "linear", "cubic"))} if fits(work, FEWEST, LARGEST) else None


def build_resize(m, c, size, scale, mode):
    return m("Resize", m.x(1, c, *size), None, m.constant([1, 1, scale, scale], np.float32), mode=mode)


def draw_transpose(rng):
    shape = shape_of(rng)
    perm = list(range(len(shape)))
    while perm == sorted(perm):
        rng.shuffle(perm)
    return {"shape": shape, "perm": perm}


def build_transpose(m, shape, perm):
    return m("Transpose", m.x(*shape), perm=perm)


def draw_move(rng):
    shape = shape_of(rng)
    axis = rng.randrange(len(shape))
    return {"op": rng.choice(("Concat", "Gather", "Slice", "Pad", "Expand")), "shape": shape, "axis": axis}


def build_move(m, op, shape, axis):
    n = shape[axis]
    if op == "Concat":
        return m(op, m.x(*shape), m.x(*shape), axis=axis)
    if op == "Gather":
        return m(op, m.x(*shape), m.constant(m.rng.integers(0, n, max(1, n)), np.int64), axis=axis)
    if op == "Slice":
        return m(op, m.x(*shape), *(m.constant([v], np.int64) for v in (n // 4, n, axis, 1)))
    if op == "Pad":
        pads = [0] * (2 * len(shape))
        pads[axis] = pads[axis + len(shape)] = 3
        return m(op, m.x(*shape), m.constant(pads, np.int64), mode="constant")
    less = [1 if a == axis else d for a, d in enumerate(shape)]
    return m("Mul", m.x(*shape), m.x(*less))


def draw_map(rng):
    return {"op": rng.choice(("Add", "Mul", "Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Gelu", "HardSwish", "Sqrt", "Silu")), "shape": shape_of(rng)}


def build_map(m, op, shape):
    x = m.x(*shape)
    if op in ("Add", "Mul"):
        return m(op, x, m.x(*shape))
    if op == "Silu":
        return m("Mul", x, m("Sigmoid", x))
    return m("Sqrt", m("Abs", x)) if op == "Sqrt" else m(op, x)


# -- recurrences --


def draw_recurrent(rng):
    s = {"op": rng.choice(("LSTM", "GRU")), "steps": log(rng, 1, 64), "batch": rng.choice((1, 1, 1, 2, 4, 16)),
         "width": log(rng, 16, 512), "hidden": log(rng, 16, 512)}  # fmt: skip
    return s if fits(4 * s["steps"] * s["batch"] * s["hidden"] * (s["width"] + s["hidden"])) else None


def build_recurrent(m, op, steps, batch, width, hidden):
    gates = 4 if op == "LSTM" else 3
    more = {"linear_before_reset": 1} if op == "GRU" else {}
    outs = m(op, m.x(steps, batch, width), m.w(1, gates * hidden, width), m.w(1, gates * hidden, hidden), m.w(1, 2 * gates * hidden),
             outputs=3 if op == "LSTM" else 2, hidden_size=hidden, **more)  # fmt: skip
    return outs[0]


# -- bytes --


def scales(m, n=1):
    return m.constant(m.rng.uniform(0.01, 0.02, n) if n > 1 else 0.015, np.float32)


def draw_qconv(rng):
    return draw_conv(rng, rng.choice((1, 2, 2, 2)), rng.choice(("dense", "dense", "dense", "deep", "dilated")))


def build_qconv(m, batch, c, m_, size, kernel, stride, dilation, group, relu):
    pads = [(k - 1) * dilation // 2 for k in kernel] * 2
    zero = m.constant(128, np.uint8)
    w = m.w(m_, c // group, *kernel, dtype=np.int8)
    bias = m.constant(m.rng.integers(-1000, 1000, m_), np.int32)
    return m("QLinearConv", m.x(batch, c, *size, dtype=np.uint8), scales(m), zero, w, scales(m, m_), m.constant(np.zeros(m_), np.int8),
             m.constant(0.5, np.float32), zero, bias, kernel_shape=kernel, pads=pads, group=group, strides=[stride] * len(size),
             dilations=[dilation] * len(size))  # fmt: skip


def draw_qlinear(rng):
    rows = rng.choice((1, 1, 2, 4, 8, 16, 33, 64, 128, 197, 256))
    s = {"rows": rows, "k": log(rng, 32, 3072), "n": log(rng, 16, 3072), "kind": rng.choice(("qlinear", "integer", "dynamic"))}
    return s if fits(rows * s["k"] * s["n"], 1e6) else None


def build_qlinear(m, rows, k, n, kind):
    w, zero, none = m.w(k, n, dtype=np.int8), m.constant(128, np.uint8), m.constant(0, np.int8)
    if kind == "qlinear":
        return m("QLinearMatMul", m.x(rows, k, dtype=np.uint8), scales(m), zero, w, scales(m), none, m.constant(0.5, np.float32), zero)
    if kind == "integer":
        return m("MatMulInteger", m.x(rows, k, dtype=np.uint8), w, zero, none)
    x, scale, at = m("DynamicQuantizeLinear", m.x(rows, k), outputs=3)
    sums = m("Cast", m("MatMulInteger", x, w, at, none), to=TensorProto.FLOAT)
    return m("Mul", sums, m("Mul", scale, scales(m)))


def conv_family(axes, kind):
    return (lambda rng: draw_conv(rng, axes, kind), build_conv, ("c", "m", "size"))


# name: draw, build, the sizes that may vary a little
FAMILIES = {
    "conv1d": conv_family(1, "dense"),
    "conv2d": conv_family(2, "dense"),
    "linear": (draw_linear, build_linear, ("rows", "k", "n")),
    "batched": (draw_batched, build_batched, ("stack", "rows", "k", "n")),
    "softmax": (draw_softmax, build_softmax, ("shape",)),
    "attention": (draw_attention, build_attention, ("queries", "keys")),
    "pool": (draw_pool, build_pool, ("c", "size")),
    "transpose": (draw_transpose, build_transpose, ("shape",)),
    "transposed": (draw_transposed, build_transposed, ("c", "m", "size")),
    "deep": (lambda rng: draw_conv(rng, rng.choice((1, 2, 2)), "deep"), build_conv, ("size",)),
    "grouped": (lambda rng: draw_conv(rng, rng.choice((1, 2, 2)), "grouped"), build_conv, ("size",)),
    "dilated": (lambda rng: draw_conv(rng, rng.choice((1, 2)), "dilated"), build_conv, ("c", "m", "size")),
    "conv3d": (lambda rng: draw_conv(rng, 3, rng.choice(("dense", "dense", "deep"))), build_conv, ("size",)),
    "norm": (draw_norm, build_norm, ()),
    "reduce": (draw_reduce, build_reduce, ("shape",)),
    "resize": (draw_resize, build_resize, ("c", "size")),
    "move": (draw_move, build_move, ("shape",)),
    "map": (draw_map, build_map, ("shape",)),
    "recurrent": (draw_recurrent, build_recurrent, ("width", "hidden")),
    "qconv": (draw_qconv, build_qconv, ("size",)),
    "qlinear": (draw_qlinear, build_qlinear, ("rows", "k", "n")),
}
BYTES = ("qconv", "qlinear")  # compared with the peer's int8


def draw(family, seed, n):
    """The sizes of shape n of a family."""
    rng = random.Random(f"{seed} {family} {n}")
    while True:
        sizes = FAMILIES[family][0](rng)
        if sizes:
            return sizes


def model(family, sizes, seed):
    m = Model(seed)
    words = {"m_" if k == "m" else k: v for k, v in sizes.items()}
    results = FAMILIES[family][1](m, **words)
    return m.onnx(results), m.given


def words(sizes):
    """A shape in a line."""
    def one(v):
        return "x".join(map(str, v)) if isinstance(v, list) else str(v)

    return " ".join(f"{k}={one(v)}" for k, v in sizes.items() if v not in (False, ""))


def neighbours(family, sizes, rng):
    """The same shape with one size changed by one, or by a twentieth."""
    varied = [k for k in FAMILIES[family][2] if sizes.get("group", 1) == 1 or k == "size"]
    for delta in (-1, 1, -0.05, 0.05):
        name = rng.choice(varied) if varied else None
        if name is None:
            return
        near = dict(sizes)
        value = sizes[name]
        at = rng.randrange(len(value)) if isinstance(value, list) else None
        n = value if at is None else value[at]
        n = n + delta if isinstance(delta, int) else n + (round(n * delta) or (1 if delta > 0 else -1))
        if n < 1:
            continue
        near[name] = n if at is None else [n if i == at else d for i, d in enumerate(value)]
        yield near
