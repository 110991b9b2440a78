"""all-MiniLM-L6-v2 for onnxruntime and for torch, from the same safetensors file, each in its own best words:
onnxruntime's fused attention, skip-norm and gelu, torch's scaled_dot_product_attention. f32, one sentence."""

HEADS, LAYERS, EPS = 6 * 2, 6, 1e-12


def layer_names(n):
    at = f"encoder.layer.{n}"
    return {"q": f"{at}.attention.self.query", "k": f"{at}.attention.self.key", "v": f"{at}.attention.self.value",
            "o": f"{at}.attention.output.dense", "norm1": f"{at}.attention.output.LayerNorm",
            "up": f"{at}.intermediate.dense", "down": f"{at}.output.dense", "norm2": f"{at}.output.LayerNorm"}  # fmt: skip


def embedded(w, tokens):
    """What every one of them starts with: looking up rows is not what is compared."""
    e = "embeddings"
    return (w[f"{e}.word_embeddings.weight"][tokens] + w[f"{e}.position_embeddings.weight"][: len(tokens)]
            + w[f"{e}.token_type_embeddings.weight"][0])  # fmt: skip


def onnx_model(w):
    """Embedded tokens x[1, T, D] to y[1, T, D], as bytes of an ONNX file."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    nodes, weights, ms = [], [], "com.microsoft"

    def weight(name, value):
        weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(kind, inputs, out, domain="", **attrs):
        nodes.append(helper.make_node(kind, inputs, [out], domain=domain, **attrs))
        return out

    def product(x, name, out):
        return node("MatMul", [x, weight(f"{name}.w", w[f"{name}.weight"].T)], out)

    def norm(name):
        return [weight(f"{name}.g", w[f"{name}.weight"]), weight(f"{name}.b", w[f"{name}.bias"])]

    x = node("LayerNormalization", ["x", *norm("embeddings.LayerNorm")], "x0", epsilon=EPS, axis=-1)
    for n in range(LAYERS):
        of = layer_names(n)
        bias = weight(f"qkv{n}.b", np.concatenate([w[f"{of[p]}.bias"] for p in "qkv"]))
        qkv = [product(x, of[p], f"{p}{n}") for p in "qkv"]
        a = node("MultiHeadAttention", [*qkv, bias], f"a{n}", domain=ms, num_heads=HEADS)
        a = product(a, of["o"], f"o{n}")
        ob = weight(f"o{n}.b", w[f"{of['o']}.bias"])
        x = node("SkipLayerNormalization", [a, x, *norm(of["norm1"]), ob], f"m{n}", domain=ms, epsilon=EPS)
        up = node("BiasGelu", [product(x, of["up"], f"u{n}"), weight(f"u{n}.b", w[f"{of['up']}.bias"])], f"g{n}", domain=ms)
        down, db = product(up, of["down"], f"d{n}"), weight(f"d{n}.b", w[f"{of['down']}.bias"])
        last = "y" if n == LAYERS - 1 else f"x{n + 1}"
        x = node("SkipLayerNormalization", [down, x, *norm(of["norm2"]), db], last, domain=ms, epsilon=EPS)
    io = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, "T", 384]) for name in "xy"]
    graph = helper.make_graph(nodes, "minilm", io[:1], io[1:], weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ms, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def torch_function(w):
    """x[1, T, D] to y[1, T, D], both torch tensors."""
    import torch
    import torch.nn.functional as f

    t = {name: torch.from_numpy(value) for name, value in w.items() if value.dtype == "float32"}

    def linear(x, name):
        return f.linear(x, t[f"{name}.weight"], t[f"{name}.bias"])

    def norm(x, name):
        return f.layer_norm(x, x.shape[-1:], t[f"{name}.weight"], t[f"{name}.bias"], EPS)

    def split(x):
        return x.view(1, x.shape[1], HEADS, -1).transpose(1, 2)

    def run(x):
        x = norm(x, "embeddings.LayerNorm")
        for n in range(LAYERS):
            of = layer_names(n)
            q, k, v = (split(linear(x, of[p])) for p in "qkv")
            a = f.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
            x = norm(x + linear(a, of["o"]), of["norm1"])
            x = norm(x + linear(f.gelu(linear(x, of["up"])), of["down"]), of["norm2"])
        return x

    return run
