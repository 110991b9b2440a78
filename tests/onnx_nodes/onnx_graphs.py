"""Models as exporters write them, for tests: transformers in the forms of several frameworks, small patterns."""

import contextlib
import math

import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper


class Maker:
    """An ONNX graph, node by node; names carry the scope as those of torch do."""

    def __init__(self, opset=17):
        self.opset, self.nodes, self.weights, self.inputs = opset, [], [], []
        self.rng, self.path, self.used = np.random.default_rng(0), [], {}

    @contextlib.contextmanager
    def scope(self, name):
        self.path.append(name)
        yield
        self.path.pop()

    def name(self, last):
        name = "/" + "/".join([*self.path, last])
        n = self.used[name] = self.used.get(name, -1) + 1
        return f"{name}_{n}" if n else name

    def input(self, name, shape, kind=T.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def const(self, array, name=None):
        name = name or f"onnx::Constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def number(self, value):
        return self.const(np.float32(value))

    def weight(self, *dims, name="weight"):
        values = self.rng.standard_normal(dims).astype(np.float32) / math.sqrt(dims[0])
        return self.const(values, ".".join([*(p.strip("/") for p in self.path), name]))

    def op(self, kind, *inputs, n=1, **attrs):
        name = self.name(kind)
        outputs = [f"{name}_output_{i}" for i in range(n)]
        self.nodes.append(helper.make_node(kind, list(inputs), outputs, name=name, **attrs))
        return outputs[0] if n == 1 else outputs

    def model(self, *outputs, kinds=None):
        for node in self.nodes:
            node.output[:] = [f"y{outputs.index(o)}" if o in outputs else o for o in node.output]
            node.input[:] = [f"y{outputs.index(i)}" if i in outputs else i for i in node.input]
        infos = [helper.make_tensor_value_info(f"y{i}", (kinds or [T.FLOAT] * len(outputs))[i], None) for i in range(len(outputs))]
        graph = helper.make_graph(self.nodes, "g", self.inputs, infos, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)

    # ---- layers ----

    def linear(self, name, x, n, m, bias=True):
        with self.scope(name):
            values = self.rng.standard_normal((n, m)).astype(np.float32) / math.sqrt(n)
            y = self.op("MatMul", x, self.const(values, f"onnx::MatMul_{len(self.weights)}"))
            return self.op("Add", self.weight(m, name="bias"), y) if bias else y

    def layernorm(self, name, x, d):
        """The nodes of exporters before opset 17."""
        with self.scope(name):
            mean = self.op("ReduceMean", x, axes=[-1], keepdims=1)
            less = self.op("Sub", x, mean)
            var = self.op("ReduceMean", self.op("Pow", less, self.number(2)), axes=[-1], keepdims=1)
            y = self.op("Div", less, self.op("Sqrt", self.op("Add", var, self.number(1e-5))))
            return self.op("Add", self.op("Mul", y, self.weight(d)), self.weight(d, name="bias"))

    def rmsnorm(self, name, x, d):
        with self.scope(name):
            mean = self.op("ReduceMean", self.op("Pow", x, self.number(2)), axes=[-1], keepdims=1)
            root = self.op("Sqrt", self.op("Add", mean, self.number(1e-6)))
            return self.op("Mul", self.weight(d), self.op("Mul", x, self.op("Div", self.number(1), root)))

    def gelu(self, x):
        bell = self.op("Add", self.op("Erf", self.op("Div", x, self.number(math.sqrt(2)))), self.number(1))
        return self.op("Mul", self.op("Mul", x, bell), self.number(0.5))

    def gelu_tanh(self, x):
        cube = self.op("Mul", self.op("Pow", x, self.number(3)), self.number(0.044715))
        inner = self.op("Mul", self.op("Add", x, cube), self.number(math.sqrt(2 / math.pi)))
        return self.op("Mul", self.op("Mul", x, self.number(0.5)), self.op("Add", self.op("Tanh", inner), self.number(1)))

    def shape(self, x, *dims):
        return self.op("Reshape", x, self.const(np.array(dims, np.int64)))

    def heads(self, x, t, h, d):
        return self.op("Transpose", self.shape(x, 1, t, h, d), perm=[0, 2, 1, 3])

    def joined(self, o, t, width):
        return self.shape(self.op("Transpose", o, perm=[0, 2, 1, 3]), 1, t, width)

    def rotate(self, x, cos, sin, d):
        at = lambda a, b: [self.const(np.array([v], np.int64)) for v in (a, b, 3)]  # noqa: E731
        low, high = self.op("Slice", x, *at(0, d // 2)), self.op("Slice", x, *at(d // 2, 2**63 - 1))
        turned = self.op("Concat", self.op("Neg", high), low, axis=-1)
        return self.op("Add", self.op("Mul", x, cos), self.op("Mul", turned, sin))

    def repeated(self, x, t, hk, n, d):
        wide = self.op("Expand", self.op("Unsqueeze", x, self.const(np.array([2]))), self.const(np.array([1, hk, n, t, d])))
        return self.shape(wide, 1, hk * n, t, d)


def gpt(layers=12, t=8, d=16, h=2):
    """q, k and v in one product, a mask of a constant, tanh gelu, norms first."""
    m = Maker()
    ids = m.input("ids", [1, t], T.INT64)
    with m.scope("wte"):
        x = m.op("Gather", m.weight(50, d), ids)
    x = m.op("Add", x, m.const(m.rng.standard_normal((1, t, d)).astype(np.float32), "wpe.weight"))
    shown = m.const(np.tril(np.ones((1, 1, t, t), bool)), "causal")
    for layer in range(layers):
        with m.scope(f"h.{layer}"):
            y = m.layernorm("ln_1", x, d)
            with m.scope("attn"):
                parts = m.op("Split", m.linear("c_attn", y, d, 3 * d), m.const(np.array([d] * 3)), n=3, axis=2)
                q, k, v = (m.heads(p, t, h, d // h) for p in parts)
                scores = m.op("Div", m.op("MatMul", q, m.op("Transpose", k, perm=[0, 1, 3, 2])), m.number(math.sqrt(d // h)))
                p = m.op("Softmax", m.op("Where", shown, scores, m.number(np.finfo(np.float32).min)), axis=-1)
                y = m.linear("c_proj", m.joined(m.op("MatMul", p, v), t, d), d, d)
            x = m.op("Add", x, y)
            with m.scope("mlp"):
                y = m.gelu_tanh(m.linear("c_fc", m.layernorm("ln_2", x, d), d, 4 * d))
                y = m.linear("c_proj", y, 4 * d, d)
            x = m.op("Add", x, y)
    return m.model(m.layernorm("ln_f", x, d))


def bert(layers=12, t=8, d=16, h=2):
    """Three products, a mask of the input, erf gelu, norms last."""
    m = Maker()
    ids, mask = m.input("ids", [1, t], T.INT64), m.input("mask", [1, t], T.INT64)
    with m.scope("embeddings"):
        x = m.layernorm("LayerNorm", m.op("Gather", m.weight(50, d), ids), d)
    wide = m.op("Unsqueeze", m.op("Unsqueeze", mask, m.const(np.array([1]))), m.const(np.array([2])))
    hidden = m.op("Mul", m.op("Sub", m.number(1), m.op("Cast", wide, to=T.FLOAT)), m.number(np.finfo(np.float32).min))
    for layer in range(layers):
        with m.scope(f"layer.{layer}"):
            with m.scope("attention"):
                q, k, v = (m.heads(m.linear(name, x, d, d), t, h, d // h) for name in ("query", "key", "value"))
                scores = m.op("Div", m.op("MatMul", q, m.op("Transpose", k, perm=[0, 1, 3, 2])), m.number(math.sqrt(d // h)))
                p = m.op("Softmax", m.op("Add", scores, hidden), axis=-1)
                y = m.linear("dense", m.joined(m.op("MatMul", p, v), t, d), d, d)
                x = m.layernorm("LayerNorm", m.op("Add", y, x), d)
            with m.scope("output"):
                y = m.linear("dense", m.gelu(m.linear("up", x, d, 4 * d)), 4 * d, d)
                x = m.layernorm("LayerNorm", m.op("Add", y, x), d)
    return m.model(x)


def llama(layers=4, t=8, d=16, h=4, hk=2):
    """Rotary embedding computed from positions, keys shared by heads, scaling of q and k, rmsnorm and a gate."""
    m = Maker()
    ids, positions = m.input("ids", [1, t], T.INT64), m.input("positions", [1, t], T.INT64)
    size = d // h
    with m.scope("embed"):
        x = m.op("Gather", m.weight(50, d), ids)
    at = m.op("Cast", m.op("Unsqueeze", positions, m.const(np.array([1]))), to=T.FLOAT)
    rates = m.const((10000.0 ** (-np.arange(0, size, 2) / size)).astype(np.float32).reshape(1, -1, 1), "rates")
    angles = m.op("Transpose", m.op("MatMul", rates, at), perm=[0, 2, 1])
    both = m.op("Concat", angles, angles, axis=-1)
    cos, sin = (m.op("Unsqueeze", m.op(f, both), m.const(np.array([1]))) for f in ("Cos", "Sin"))
    mask = m.const(np.triu(np.full((t, t), -np.inf, np.float32), 1)[None, None], "mask")
    root = m.number(size**-0.25)
    for layer in range(layers):
        with m.scope(f"layers.{layer}"):
            y = m.rmsnorm("input_layernorm", x, d)
            with m.scope("self_attn"):
                q = m.rotate(m.heads(m.linear("q_proj", y, d, d, False), t, h, size), cos, sin, size)
                k = m.rotate(m.heads(m.linear("k_proj", y, d, hk * size, False), t, hk, size), cos, sin, size)
                v = m.heads(m.linear("v_proj", y, d, hk * size, False), t, hk, size)
                k, v = (m.repeated(w, t, hk, h // hk, size) for w in (k, v))
                k = m.op("Mul", m.op("Transpose", k, perm=[0, 1, 3, 2]), root)
                scores = m.op("Add", m.op("MatMul", m.op("Mul", q, root), k), mask)
                y = m.joined(m.op("MatMul", m.op("Softmax", scores, axis=-1), v), t, d)
                x = m.op("Add", x, m.linear("o_proj", y, d, d, False))
            y = m.rmsnorm("post_norm", x, d)
            gate = m.linear("gate", y, d, 2 * d, False)
            gate = m.op("Mul", gate, m.op("Sigmoid", gate))
            y = m.op("Mul", gate, m.linear("up", y, d, 2 * d, False))
            x = m.op("Add", x, m.linear("down", y, 2 * d, d, False))
    return m.model(m.rmsnorm("norm", x, d))


def vit(layers=4, t=8, d=16, h=2):
    """q, k and v taken out of one product by indices, batch second, gemm with reshapes around it."""
    m = Maker()
    x = m.input("x", [1, t, d])
    for layer in range(layers):
        with m.scope(f"blocks.{layer}"):
            turned = m.op("Transpose", m.op("LayerNormalization", x, m.weight(d), m.weight(d, name="bias")), perm=[1, 0, 2])
            parts = m.op("Transpose", m.shape(m.linear("qkv", turned, d, 3 * d), t, 1, 3, d), perm=[2, 0, 1, 3])
            q, k, v = (m.op("Gather", parts, m.const(np.int64(i)), axis=0) for i in range(3))
            q, k, v = (m.op("Transpose", m.shape(p, t, h, d // h), perm=[1, 0, 2]) for p in (q, k, v))
            scores = m.op("Mul", m.op("MatMul", q, m.op("Transpose", k, perm=[0, 2, 1])), m.number((d // h) ** -0.5))
            y = m.op("MatMul", m.op("Softmax", scores, axis=-1), v)
            y = m.op("Gemm", m.shape(m.op("Transpose", y, perm=[1, 0, 2]), t, d), m.weight(d, d, name="o"), m.weight(d, name="ob"), transB=1)
            x = m.op("Add", x, m.op("Transpose", m.shape(y, t, 1, d), perm=[1, 0, 2]))
    return m.model(x)


def convs():
    """Convolutions with everything that can be folded into their weights, and activations by their parts."""
    m = Maker()
    x = m.input("x", [1, 3, 9, 9])
    c = lambda n, *d: m.const((m.rng.random((n, *d)) + 0.5).astype(np.float32))  # noqa: E731
    x = m.op("Conv", x, m.weight(4, 3, 3, 3), pads=[1, 1, 1, 1])
    x = m.op("BatchNormalization", x, c(4), c(4), c(4), c(4))
    x = m.op("Mul", x, m.op("HardSigmoid", x, alpha=1 / 6, beta=0.5))
    x = m.op("Conv", x, m.weight(4, 2, 1, 1, name="second"), c(4), group=2)
    x = m.op("Add", m.op("Mul", x, m.number(1.5)), c(4, 1, 1))
    limited = m.op("Clip", m.op("Add", x, m.number(3)), m.number(0), m.number(6))
    x = m.op("Div", m.op("Mul", x, limited), m.number(6))
    x = m.op("ConvTranspose", x, m.weight(4, 2, 2, 2, name="third"), strides=[2, 2])
    x = m.op("BatchNormalization", x, c(2), c(2), c(2), c(2))
    limited = m.op("Clip", m.op("Add", x, m.number(3)), m.number(0), m.number(6))
    x = m.op("Mul", x, m.op("Mul", limited, m.number(1 / 6)))
    top = m.op("ReduceMax", x, axes=[1], keepdims=1)
    e = m.op("Exp", m.op("Sub", x, top))
    return m.model(m.op("Div", e, m.op("ReduceSum", e, m.const(np.array([1])), keepdims=1)))


def cnn(residual=False):
    """A small classifier of pictures, as quantisers take them."""
    m = Maker()
    x = m.input("x", [1, 3, 16, 16])
    layer = lambda name, x, *dims, **attrs: m.op("Conv", x, m.weight(*dims, name=name), m.weight(dims[0], name=f"{name}.b"), **attrs)  # noqa: E731
    x = m.op("Relu", layer("stem", x, 8, 3, 3, 3, pads=[1, 1, 1, 1]))
    y = m.op("Relu", layer("depth", x, 8, 1, 3, 3, pads=[1, 1, 1, 1], group=8))
    y = layer("point", y, 8, 8, 1, 1)
    x = m.op("MaxPool", m.op("Relu", m.op("Add", x, y) if residual else y), kernel_shape=[2, 2], strides=[2, 2])
    x = m.shape(m.op("GlobalAveragePool", x), 1, 8) if residual else m.shape(x, 1, 512)
    return m.model(m.op("Gemm", x, m.weight(10, 8 if residual else 512, name="kinds"), m.weight(10, name="kinds.b"), transB=1))
