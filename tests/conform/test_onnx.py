"""Ops that equal ONNX operators, against ONNX's own reference evaluator at the opset the registry names."""

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import library
from cases import rng_for
from tensors import Tensor


def evaluate(operator, opset, inputs, attrs, n_out=1):
    names = [f"i{k}" if v is not None else "" for k, v in enumerate(inputs)]
    outs = [f"o{k}" for k in range(n_out)]
    node = helper.make_node(operator, names, outs, **attrs)
    given = [(n, v) for n, v in zip(names, inputs) if v is not None]
    graph = helper.make_graph(
        [node], "one", [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in given],
        [helper.make_tensor_value_info(o, onnx.TensorProto.UNDEFINED, None) for o in outs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return ReferenceEvaluator(model).run(None, dict(given))


def ours(op, inputs, attrs, shapes):
    tensors = [Tensor({"float32": "f32", "int64": "i64", "bool": "bool"}[str(v.dtype)], v) for v in inputs]
    results = {}
    for device in library.devices():
        got = library.run(op, tensors, attrs, [("f32", s) for s in shapes], device)
        results[device] = [t.values for t in (got if isinstance(got, list) else [got])]
    return results


def agree(operator, opset, onnx_inputs, onnx_attrs, op, inputs, attrs, pick=None, tolerance=2e-5):
    want = evaluate(operator, opset, onnx_inputs, onnx_attrs, n_out=pick[1] if pick else 1)
    want = [np.asarray(w) for w in (pick[0](want) if pick else want)]
    for device, got in ours(op, inputs, attrs, [w.shape for w in want]).items():
        for g, w in zip(got, want):
            np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance, err_msg=f"{op} on {device}")


def f(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


UNARY = {"sigmoid": ("Sigmoid", 13), "tanh": ("Tanh", 13), "exp": ("Exp", 13), "sin": ("Sin", 7), "cos": ("Cos", 7), "erf": ("Erf", 13),
         "atan": ("Atan", 7), "sinh": ("Sinh", 9), "cosh": ("Cosh", 9), "asinh": ("Asinh", 9), "softplus": ("Softplus", 1),
         "softsign": ("Softsign", 1), "mish": ("Mish", 18), "hard_swish": ("HardSwish", 14), "elu": ("Elu", 6), "celu": ("Celu", 12),
         "selu": ("Selu", 6), "hard_sigmoid": ("HardSigmoid", 6), "gelu": ("Gelu", 20), "silu": ("Swish", 24)}


@pytest.mark.parametrize("op", UNARY)
def test_functions(op):
    x = f(rng_for(op), 6, 50) * 3
    for attrs in {"gelu": [{}, {"approximate": "tanh"}], "elu": [{}, {"alpha": 0.5}]}.get(op, [{}]):
        agree(*UNARY[op], [x], attrs, op, [x], attrs)


@pytest.mark.parametrize("op, operator", [("softmax", "Softmax"), ("log_softmax", "LogSoftmax")])
def test_softmax(op, operator):
    x = f(rng_for(op), 3, 4, 5) * 4
    for axis in (-1, 0, 1):
        agree(operator, 13, [x], {"axis": axis}, op, [x], {"axis": axis})


def test_norms():
    rng = rng_for("norms")
    x, w, b = f(rng, 2, 3, 4, 5), f(rng, 5), f(rng, 5)
    agree("LayerNormalization", 17, [x, w, b], {"epsilon": 1e-3}, "layernorm", [x, w, b], {"eps": 1e-3})
    agree("LayerNormalization", 17, [x, f(rng, 4, 5) * 0 + 1], {"axis": 2}, "layernorm", [x, np.ones((4, 5), np.float32)], {"axis": 2})
    agree("RMSNormalization", 23, [x, w], {}, "rmsnorm", [x, w], {})
    # its evaluator forgets the magnitude for p = 1
    agree("LpNormalization", 1, [np.abs(x)], {"axis": 1, "p": 1}, "lp_normalize", [np.abs(x)], {"axis": 1, "p": 1})
    agree("LpNormalization", 1, [x], {"axis": -1, "p": 2}, "lp_normalize", [x], {})
    x, w, b = f(rng, 2, 6, 4, 5), f(rng, 6), f(rng, 6)
    agree("GroupNormalization", 21, [x, w, b], {"num_groups": 3}, "groupnorm", [x, w, b], {"groups": 3})
    agree("InstanceNormalization", 6, [x, w, b], {}, "instancenorm", [x, w, b], {})
    mean, var = f(rng, 6), np.abs(f(rng, 6)) + 0.1
    agree("BatchNormalization", 15, [x, w, b, mean, var], {}, "batchnorm", [x, w, b, mean, var], {})


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("dim", [0, 4])
def test_rope(interleaved, dim):
    rng = rng_for("rope", interleaved, dim)
    half = (dim or 8) // 2
    cos, sin = f(rng, 50, half), f(rng, 50, half)
    positions = rng.integers(0, 50, (2, 5))
    attrs = {"interleaved": bool(interleaved), **({"dim": dim} if dim else {})}
    for shape, heads in (((2, 3, 5, 8), 0), ((2, 5, 24), 3)):
        x = f(rng, *shape)
        agree("RotaryEmbedding", 23, [x, cos, sin, positions],
              {"interleaved": interleaved, "rotary_embedding_dim": dim, **({"num_heads": heads} if heads else {})},
              "rope", [x, positions, cos, sin], {**attrs, "heads": heads})


@pytest.mark.parametrize("causal", [0, 1])
def test_attention(causal):
    rng = rng_for("attention", causal)
    q, k, v = f(rng, 2, 4, 5, 8), f(rng, 2, 2, 5, 8), f(rng, 2, 2, 5, 6)
    agree("Attention", 23, [q, k, v], {"is_causal": causal}, "sdpa", [q, k, v], {"causal": bool(causal)})
    agree("Attention", 23, [q, k, v], {"is_causal": causal, "scale": 0.3}, "sdpa", [q, k, v], {"causal": bool(causal), "scale": 0.3})
    mask = rng.random((5, 5)) < 0.7
    mask[:, 0] = True
    for m in (mask, f(rng, 5, 5), f(rng, 2, 4, 5, 5)):
        agree("Attention", 23, [q, k, v, m], {"is_causal": causal}, "sdpa", [q, k, v, m], {"causal": bool(causal)})
    q, k, v = f(rng, 2, 5, 32), f(rng, 2, 5, 16), f(rng, 2, 5, 16)
    agree("Attention", 23, [q, k, v], {"is_causal": causal, "q_num_heads": 4, "kv_num_heads": 2},
          "sdpa", [q, k, v], {"causal": bool(causal), "heads": 4, "kv_heads": 2})


@pytest.mark.parametrize("bias", [False, True])
def test_cells(bias):
    """One step of the sequence operators."""
    rng = rng_for("cells", bias)
    x, h, c = f(rng, 3, 5), f(rng, 3, 7), f(rng, 3, 7)
    for op, operator, n, extra, pick in (
            ("lstm_cell", "LSTM", 4, [{}], 2), ("rnn_cell", "RNN", 1, [{}], 1),
            ("gru_cell", "GRU", 3, [{}, {"linear_before_reset": True}], 1)):
        w, r = f(rng, 7 * n, 5) * 0.5, f(rng, 7 * n, 7) * 0.5
        b = f(rng, 14 * n) * 0.5 if bias else None
        states = [h, c] if op == "lstm_cell" else [h]
        for attrs in extra:
            theirs = [x[None], w[None], r[None], b[None] if bias else None, None, *[s[None] for s in states]]
            agree(operator, 14, theirs, {"hidden_size": 7, **{k: int(v) for k, v in attrs.items()}},
                  op, [x, *states, w, r] + ([b] if bias else []), attrs,
                  pick=(lambda out: [o[0] for o in out[1:]], 1 + pick))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_sequences(direction):
    rng = rng_for("sequences", direction)
    d = 2 if direction == "bidirectional" else 1
    x = f(rng, 4, 3, 5)
    for op, operator, n, attrs, states in (("lstm", "LSTM", 4, {}, 2), ("rnn", "RNN", 1, {}, 1), ("gru", "GRU", 3, {}, 1),
                                           ("gru", "GRU", 3, {"linear_before_reset": True}, 1)):
        w, r, b = f(rng, d, 7 * n, 5) * 0.5, f(rng, d, 7 * n, 7) * 0.5, f(rng, d, 14 * n) * 0.5
        first = [f(rng, d, 3, 7) for _ in range(states)]
        agree(operator, 14, [x, w, r, b, None, *first], {"hidden_size": 7, "direction": direction, **{k: int(v) for k, v in attrs.items()}},
              op, [x, w, r, b, *first], {"direction": direction, **attrs}, pick=(lambda out: out, 1 + states))


def test_windows_back_to_an_image():
    rng = rng_for("col2im")
    for image, kernel, attrs in (((5, 6), (2, 3), {}), ((5, 5), (3, 3), {"pads": [1, 1, 1, 1]}), ((7, 6), (2, 2), {"strides": [2, 3], "dilations": [3, 2], "pads": [1, 0, 2, 1]}), ((9,), (3,), {"strides": [2]}),
                                 ((3, 4, 3), (2, 2, 3), {})):  # fmt: skip
        n = len(image)
        pads, strides, dilations = (attrs.get(k, [d] * m) for k, d, m in (("pads", 0, 2 * n), ("strides", 1, n), ("dilations", 1, n)))
        fits = [(image[i] + pads[i] + pads[n + i] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1 for i in range(n)]
        x = f(rng, 2, 3 * int(np.prod(kernel)), int(np.prod(fits)))
        agree("Col2Im", 18, [x, np.array(image), np.array(kernel)], {"pads": pads, "strides": strides, "dilations": dilations},
              "col2im", [x], {"kernel": list(kernel), **attrs})


@pytest.mark.parametrize("equation, shapes", [("ab,bc,cd->ad", [(3, 4), (4, 5), (5, 2)]), ("...i,...i,i->...", [(2, 3, 4), (3, 4), (4,)]),
                                              ("bi,ij,bj", [(2, 3), (3, 4), (2, 4)]), ("a,b,c,d,e,f->fb", [(2,), (3,), (2,), (2,), (3,), (2,)])])
def test_einsum_of_several(equation, shapes):
    inputs = [f(rng_for("einsum", equation, i), *s) for i, s in enumerate(shapes)]
    agree("Einsum", 12, inputs, {"equation": equation}, "einsum", inputs, {"equation": equation})
