"""Convolutions and chains of them as emitted C beside onnxruntime, on one thread and on two.

    python bench/conv.py [--cases WORDS] [--rounds 5]

Both get the same weights and the same input. i8: bytes into sums of 32 bits, which become bytes again by a bias, a factor and
rounding; onnxruntime does that by QLinearConv. u8: qconv itself, with zero points of activations. Whole models in integers: bench/tiny.py.
"""

import dataclasses
import pathlib
import sys
import tempfile

import emitted
import models
import rows
import tiny

sys.path.insert(0, str(rows.REPO / "python/src"))
from openinfer.oinf import TensorSpec, write_oinf  # noqa: E402


@dataclasses.dataclass
class Layer:
    m: int  # filters; 0: a channel of its own for each of as many as there are
    kernel: int = 3
    stride: int = 1
    relu: bool = True


DEEP, DEEP_2 = Layer(0), Layer(0, stride=2)


def point(m):
    return Layer(m, 1)


# name: channels, height = width, layers
CASES = {
    "depthwise 32x112": (32, 112, [DEEP]),
    "depthwise 64x112 stride 2": (64, 112, [DEEP_2]),
    "depthwise 256x28": (256, 28, [DEEP]),
    "depthwise 512x14": (512, 14, [DEEP]),
    "pointwise 32-64x112": (32, 112, [point(64)]),
    "pointwise 128-128x56": (128, 56, [point(128)]),
    "pointwise 512-512x14": (512, 14, [point(512)]),
    "dense 3-32x224 stride 2": (3, 224, [Layer(32, stride=2)]),
    "dense 64-64x56": (64, 56, [Layer(64)]),
    "dense 256-256x14": (256, 14, [Layer(256)]),
    "mobile chain 32x112": (32, 112, [DEEP, point(64), DEEP_2, point(128), DEEP, point(128), DEEP_2, point(256)]),
    "mobile chain 16x224": (16, 224, [DEEP, point(32), DEEP, point(32), DEEP, point(32)]),
    "mobile chain 16x512": (16, 512, [DEEP, point(32), DEEP, point(32)]),
    "dense chain 16x512": (16, 512, [Layer(16), Layer(16), Layer(16)]),
}
TYPES = ("f32", "i8", "u8")
BYTES = ("depthwise 32x112", "pointwise 128-128x56", "dense 64-64x56", "mobile chain 32x112")  # of i8 and u8
X_ZERO = 20  # of u8, and of what they become


@dataclasses.dataclass
class Model:
    tensors: dict


@dataclasses.dataclass
class Made:
    """Layers with their sizes and weights."""

    dtype: str
    channels: int
    size: int
    shapes: list  # of every layer's result: channels, size
    weights: list  # (w, b)
    factors: list  # i8: of the sums
    layers: list
    macs: int


def make(np, dtype, channels, size, layers):
    rng = np.random.default_rng(1)
    made = Made(dtype, channels, size, [], [], [], layers, 0)
    c, s = channels, size
    for layer in layers:
        m, each, k = layer.m or c, c if layer.m else 1, layer.kernel
        shape = (m, each, k, k)
        if dtype == "f32":
            w = (rng.standard_normal(shape) / (each * k * k) ** 0.5).astype(np.float32)
            b = rng.standard_normal(m).astype(np.float32)
        else:
            w, b = rng.integers(-100, 100, shape).astype(np.int8), rng.integers(-500, 500, m).astype(np.int32)
        made.factors.append(float(np.float32(1 / (60.0 * (each * k * k) ** 0.5))))
        s = (s - 1) // layer.stride + 1
        made.macs += m * each * k * k * s * s
        made.weights.append((w, b))
        made.shapes.append((m, s))
        c = m
    return made


def graph_of(made):
    """The layers in our own language."""
    dims = [f"[1, {c}, {s}, {s}]" for c, s in [(made.channels, made.size), *made.shapes]]
    weights, block = [], []
    names = ["x", *(f"x{i}" for i in range(1, len(made.layers))), "y"]
    for i, (layer, (w, _)) in enumerate(zip(made.layers, made.weights)):
        shape, d, pad = ", ".join(map(str, w.shape)), dims[i + 1], layer.kernel // 2
        group = 1 if layer.m else w.shape[0]
        words = f"pads=[{pad}, {pad}, {pad}, {pad}], strides=[{layer.stride}, {layer.stride}], group={group}"
        of = names[i + 1]
        if of != "y":
            block.append(f"assign {of}: {made.dtype}{d};")
        if made.dtype == "f32":
            weights.append(f"w{i}: f32[{shape}]; b{i}: f32[{w.shape[0]}];")
            block.append(f"assign s{i}: f32{d}; op conv({names[i]}, w{i}, b{i}, {words}) >> s{i}; op relu(s{i}) >> {of};")
            continue
        if made.dtype == "u8":
            weights.append(f"w{i}: i8[{shape}]; b{i}: i32[{w.shape[0]}]; f{i}: f32;")
            block.append(f"op qconv({names[i]}, one, zero, w{i}, f{i}, w_zero, one, zero, b{i}, {words}) >> {of};")
            continue
        weights.append(f"w{i}: i8[{shape}]; b{i}: i32[{w.shape[0]}, 1, 1]; f{i}: f32[1];")
        block.append(f"assign s{i}: i32{d}; assign t{i}: i32{d}; assign g{i}: f32{d}; assign h{i}: f32{d};")
        block.append(f"assign r{i}: f32{d}; assign c{i}: f32{d};")
        block.append(f"op conv({names[i]}, w{i}, {words}, acc=[i32]) >> s{i}; op add(s{i}, b{i}) >> t{i};")
        block.append(f"op cast(t{i}, to=f32) >> g{i}; op mul(g{i}, f{i}) >> h{i}; op round(h{i}) >> r{i};")
        block.append(f"op clamp(r{i}, min=0, max=127) >> c{i}; op cast(c{i}, to=i8) >> {of};")
    if made.dtype == "u8":
        weights.append(f"one: f32 @init(1); zero: u8 @init({X_ZERO}); w_zero: i8 @init(0);")
    return "\n".join([f"dynamic {{ x: {made.dtype}{dims[0]}; }}", "constant {", *weights, "}",
                      f"volatile {{ y: {made.dtype}{dims[-1]}; }}", "block entry {", *block, "return y;", "}\n"])  # fmt: skip


def tensors_of(np, made):
    tensors = {}
    for i, (w, b) in enumerate(made.weights):
        tensors[f"w{i}"] = TensorSpec(w)
        tensors[f"b{i}"] = TensorSpec(b.reshape(-1, 1, 1) if made.dtype == "i8" else b)
        if made.dtype != "f32":
            tensors[f"f{i}"] = TensorSpec(np.array([made.factors[i]] if made.dtype == "i8" else made.factors[i], np.float32))
    return tensors


def onnx_of(np, made):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes, known = [], []
    names = ["x", *(f"x{i}" for i in range(1, len(made.layers))), "y"]

    def constant(name, value):
        known.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    one = zero = None
    if made.dtype != "f32":
        one, zero = constant("one", np.float32(1)), constant("zero", np.int8(0))
        x_zero = zero if made.dtype == "i8" else constant("x_zero", np.uint8(X_ZERO))
    for i, (layer, (w, b)) in enumerate(zip(made.layers, made.weights)):
        pad, of = layer.kernel // 2, names[i + 1]
        words = {"pads": [pad] * 4, "strides": [layer.stride] * 2, "group": 1 if layer.m else w.shape[0]}
        constant(f"w{i}", w), constant(f"b{i}", b)
        if made.dtype == "f32":
            nodes.append(helper.make_node("Conv", [names[i], f"w{i}", f"b{i}"], [f"s{i}"], **words))
            nodes.append(helper.make_node("Relu", [f"s{i}"], [of]))
            continue
        constant(f"f{i}", np.float32(made.factors[i]))
        to = f"s{i}" if made.dtype == "i8" else of
        nodes.append(helper.make_node("QLinearConv", [names[i], one, x_zero, f"w{i}", f"f{i}", zero, one, x_zero, f"b{i}"], [to], **words))
        if made.dtype == "i8":
            nodes.append(helper.make_node("Relu", [to], [of]))
    kind = {"f32": TensorProto.FLOAT, "i8": TensorProto.INT8, "u8": TensorProto.UINT8}[made.dtype]
    given = helper.make_tensor_value_info("x", kind, (1, made.channels, made.size, made.size))
    c, s = made.shapes[-1]
    graph = helper.make_graph(nodes, "g", [given], [helper.make_tensor_value_info("y", kind, (1, c, s, s))], known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def random_input(np, made):
    rng = np.random.default_rng(2)
    shape = (1, made.channels, made.size, made.size)
    if made.dtype == "f32":
        return rng.standard_normal(shape).astype(np.float32)
    return rng.integers(0, 127, shape).astype(np.int8 if made.dtype == "i8" else np.uint8)


def compare(o, np, case, made, folder):
    x = random_input(np, made)
    graph = folder / "g.oi"
    graph.write_text(graph_of(made))
    write_oinf(Model(tensors_of(np, made)), folder / "g.oinf")
    program = emitted.Program(folder / "out", "conv", [graph], folder / "g.oinf")
    peers = models.onnx_runs(onnx_of(np, made), {"x": x}, o.threads)
    for t, run in zip(sorted({1, o.threads}), peers):
        name = f"{case}, {t} threads"
        if not o.wants(name):
            continue
        ours = models.timed_program(program, x.tobytes(), t)
        yield rows.row(name, "ms", *rows.alternate(o.rounds, ours, models.timed(run)), peer_name="onnxruntime",
                       macs=made.macs, arithmetic="f32" if made.dtype == "f32" else "int8", threads=t)  # fmt: skip


def measure(o):
    try:
        import numpy
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as e:
        yield rows.left_out("conv", "onnxruntime", f"{e.name} is not installed")
        return
    for dtype in TYPES:
        for name, shape in CASES.items():
            case = f"conv {dtype} {name}"
            if dtype != "f32" and name not in BYTES:
                continue
            if not any(o.wants(f"{case}, {t} threads") for t in {1, o.threads}):
                continue
            with tempfile.TemporaryDirectory() as folder:
                yield from compare(o, numpy, case, make(numpy, dtype, *shape), pathlib.Path(folder))

    for name in tiny.INPUTS:
        if any(o.wants(f"conv i8 {name}, {t} threads") for t in {1, o.threads}):
            with tempfile.TemporaryDirectory() as folder:
                yield from tiny.compare(o, numpy, name, pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(rows.main(measure, __doc__))
