"""ResNet-8 and DS-CNN in integers (examples/tiny) as emitted C beside onnxruntime: rows of bench/conv.py.

The peer has the same weights: a multiplier over 2^24 is the factor of QLinearConv, a residual is QLinearAdd. It rounds factors
to f32 and halves to even, so that its results may differ by one.
"""

import sys

import rows

TINY = rows.REPO / "examples/tiny"
sys.path[:0] = [str(rows.REPO / "python/src"), str(rows.REPO / "examples"), str(TINY)]

INPUTS = {"resnet8_i8": (1, 3, 32, 32), "ds_cnn_i8": (1, 1, 49, 10)}
OUTPUTS = {"resnet8_i8": (1, 10), "ds_cnn_i8": (1, 12)}


class Graph:
    """Nodes of onnx over the tensors of a package."""

    def __init__(self, np, tensors):
        self.np, self.tensors, self.nodes, self.known = np, tensors, [], []
        self.one, self.zero = self.constant("one", np.float32(1)), self.constant("zero", np.int8(0))

    def constant(self, name, value):
        from onnx import numpy_helper

        self.known.append(numpy_helper.from_array(self.np.asarray(value), name))
        return name

    def node(self, kind, inputs, of, domain="", **words):
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, [of], domain=domain, **words))
        return of

    def conv(self, x, w, bias, multiplier, of, relu=True, **words):
        scale = (self.np.asarray(self.tensors[multiplier]).reshape(-1) / 2**24).astype(self.np.float32)
        zeros = self.np.zeros(len(scale), self.np.int8)
        names = [self.constant(w, self.tensors[w]), self.constant(f"{w} scale", scale), self.constant(f"{w} zero", zeros)]
        bias = self.constant(bias, self.tensors[bias])
        self.node("QLinearConv", [x, self.one, self.zero, *names, self.one, self.zero, bias], of + " sum" if relu else of, **words)
        return self.node("Relu", [of + " sum"], of) if relu else of

    def add(self, a, b, of):
        scaled = [a, self.one, self.zero, b, self.one, self.zero, self.one, self.zero]
        return self.node("Relu", [self.node("QLinearAdd", scaled, of + " sum", "com.microsoft")], of)

    def end(self, x, w, bias):
        """The mean of all places, and a last matrix."""
        scaled = [x, self.one, self.zero, self.one, self.zero]
        mean = self.node("QLinearGlobalAveragePool", scaled, "mean", "com.microsoft", channels_last=0)
        self.node("Flatten", [mean], "flat")
        self.node("MatMulInteger", ["flat", self.constant(w, self.tensors[w])], "product")
        self.node("Add", ["product", self.constant(bias, self.tensors[bias])], "y")


def resnet8(g):
    pad, half = {"pads": [1] * 4}, {"strides": [2, 2]}
    last = g.conv("x", "stem", "stem_b", "stem_m", "u", **pad)
    first = g.conv(last, "a0", "a0_b", "a0_m", "a0 out", **pad)
    last = g.add(g.conv(first, "a1", "a1_b", "a1_m", "a1 out", relu=False, **pad), last, "a")
    for n in "bc":
        names = [(f"{n}{i}", f"{n}{i}_b", f"{n}{i}_m", f"{n}{i} out") for i in range(3)]
        first = g.conv(last, *names[0], auto_pad="SAME_UPPER", **half)
        second = g.conv(first, *names[1], relu=False, **pad)
        last = g.add(second, g.conv(last, *names[2], relu=False, **half), n)
    g.end(last, "kinds", "kinds_b")


def ds_cnn(g):
    last = g.conv("x", "stem", "stem_b", "stem_m", "a", auto_pad="SAME_UPPER", strides=[2, 2])
    for l in range(4):
        last = g.conv(last, f"deep.{l}", f"deep_b.{l}", f"deep_m.{l}", f"deep out {l}", group=64, pads=[1] * 4)
        last = g.conv(last, f"point.{l}", f"point_b.{l}", f"point_m.{l}", f"point out {l}")
    g.end(last, "words", "words_b")


def onnx_of(np, name, tensors):
    from onnx import TensorProto, helper

    g = Graph(np, tensors)
    {"resnet8_i8": resnet8, "ds_cnn_i8": ds_cnn}[name](g)
    given = helper.make_tensor_value_info("x", TensorProto.INT8, INPUTS[name])
    made = helper.make_tensor_value_info("y", TensorProto.INT32, OUTPUTS[name])
    graph = helper.make_graph(g.nodes, "g", [given], [made], g.known)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def compare(o, np, name, folder):
    import emitted
    import models
    import tiny_oinf
    from openinfer.oinf import read_oinf

    package = folder / f"{name}.oinf"
    tiny_oinf.write(name, str(package))
    tensors = {n: t.numpy() for n, t in read_oinf(package).tensors.items()}
    x = np.random.default_rng(2).integers(-128, 128, INPUTS[name]).astype(np.int8)
    program = emitted.Program(folder / name, name, [TINY / f"{name}.oi"], package)
    peers = models.onnx_runs(onnx_of(np, name, tensors), {"x": x}, o.threads)
    macs = program.cost()["macs"]
    for t, run in zip(sorted({1, o.threads}), peers):
        case = f"conv i8 {name}, {t} threads"
        if o.wants(case):
            ours = models.timed_program(program, x.tobytes(), t)
            yield rows.row(case, "ms", *rows.alternate(o.rounds, ours, models.timed(run)), peer_name="onnxruntime",
                           macs=macs, arithmetic="int8", threads=t)  # fmt: skip
