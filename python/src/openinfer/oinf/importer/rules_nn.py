"""Rules of layers: convolution, pooling, normalisation, attention, recurrence, signals."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Tuple

from ..convert.weights import need_numpy
from .lowering import Node
from .rules_other import batchnorm_of_training, column_major
from .rules import attributes, optional, row_of, rule, short
from .values import Unsupported, Value

WINDOW = {"kernel_shape", "strides", "pads", "dilations", "auto_pad", "ceil_mode"}


def window(n: Node, op: str, leave: frozenset[str] = frozenset()) -> Dict[str, Any]:
    """Attributes of a window; those without effect are left out of the text."""
    attrs = attributes(n, row_of(op), leave)
    if attrs.get("auto_pad", "NOTSET") != "NOTSET":
        attrs.pop("pads", None)
    for name, default in (("strides", 1), ("dilations", 1), ("pads", 0), ("output_padding", 0)):
        if name in attrs and all(v == default for v in attrs[name]):
            del attrs[name]
    return attrs


@rule("Conv", "ConvInteger")
def conv(n: Node) -> None:
    op = "conv" if n.op == "Conv" else "conv_integer"
    leave = frozenset({"kernel_shape"})
    n.emit(op, n.given(), window(n, op, leave))


@rule("ConvTranspose")
def conv_transpose(n: Node) -> None:
    attrs = window(n, "conv_transpose", frozenset({"kernel_shape", "output_padding", "output_shape"}))
    for name in ("output_padding", "output_shape"):
        if n.attrs.get(name) and any(n.attrs[name]):
            attrs[name] = list(n.attrs[name])
    if "output_shape" in attrs:
        attrs["output_shape"] = attrs["output_shape"][-(n.x(0).rank - 2) :]
    n.emit("conv_transpose", n.given(), attrs)


@rule("MaxPool")
def max_pool(n: Node) -> None:
    attrs = window(n, "max_pool", frozenset({"storage_order"}))
    if n.attrs.get("storage_order") and n.wants(1):
        places = n.temp(n.out(1))
        n.emit_many("max_pool", [n.x(0)], attrs, [n.out(0) if n.wants(0) else n.temp(n.x(0), n.out(1).shape), places])
        column_major(n, places, n.x(0).dims(), n.out(1))
        return
    n.emit_many("max_pool", [n.x(0)], attrs, [n.out(i) for i in range(len(n.outputs)) if n.wants(i)])


@rule("AveragePool", "LpPool")
def pool(n: Node) -> None:
    op = "avg_pool" if n.op == "AveragePool" else "lp_pool"
    n.emit(op, [n.x(0)], window(n, op))


@rule("LRN")
def lrn(n: Node) -> None:
    """x / (bias + alpha/size * sum of squares of near channels) ** beta; the sum is a pool over channels."""
    x, size = n.x(0), n.attrs["size"]
    dims = x.dims()
    flat = (dims[0], 1, dims[1], math.prod(dims[2:]))
    squares = n.emit("square", [x], {}, n.temp(x))
    rows = n.emit("reshape", [squares], {}, n.temp(x, flat))
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    means = n.emit("avg_pool", [rows], {"kernel": [size, 1], "pads": [before, 0, after, 0], "count_include_pad": True}, n.temp(rows))
    scaled = n.emit("mul", [means, n.scalar(n.attrs["alpha"], x)], {}, n.temp(rows))
    base = n.emit("add", [scaled, n.scalar(n.attrs["bias"], x)], {}, n.temp(rows))
    power = n.emit("pow", [base, n.scalar(n.attrs["beta"], x)], {}, n.temp(rows))
    n.emit("div", [x, n.emit("reshape", [power], {}, n.temp(x))])


@rule("BatchNormalization")
def batch_norm(n: Node) -> None:
    if n.attrs.get("training_mode"):
        batchnorm_of_training(n)
        return
    if n.attrs.get("is_test") == 0 or len([o for o in n.outputs if o]) > 1:
        raise Unsupported("batch normalisation of training, in the form of old opsets")
    if n.attrs.get("spatial", 1) == 0:
        raise Unsupported("batch normalisation with a mean for every element")
    x, others = n.x(0), [n.x(i) for i in range(1, 5)]
    if any(v.dtype != x.dtype for v in others):
        raise Unsupported("batch normalisation with several element types")
    n.emit("batchnorm", [x, *others], eps(n))


def eps(n: Node) -> Dict[str, Any]:
    return optional(short(n.attrs.get("epsilon", 1e-5)), "eps", 1e-05)


@rule("InstanceNormalization")
def instance_norm(n: Node) -> None:
    n.emit("instancenorm", n.given(), eps(n))


@rule("GroupNormalization")
def group_norm(n: Node) -> None:
    if n.opset < 21:
        raise Unsupported("group normalisation with a scale for every group")
    n.out().shape = n.x(0).shape  # ONNX infers none
    n.emit("groupnorm", n.given(), {"groups": n.attrs["num_groups"], **eps(n)})


@rule("LayerNormalization", "RMSNormalization")
def layer_norm(n: Node) -> None:
    x, axis = n.x(0), n.attrs.get("axis", -1)
    if len([o for o in n.outputs if o]) > 1:
        raise Unsupported("normalisation with its mean and deviation as results")
    rest = x.dims()[axis % x.rank :]
    if any(v.dims() != rest or v.dtype != x.dtype for v in n.given()[1:]):
        raise Unsupported("a scale that is not of the shape of what is normalised")
    n.emit("layernorm" if n.op.startswith("Layer") else "rmsnorm", n.given(), {**optional(axis, "axis", -1), **eps(n)})


@rule("LpNormalization")
def lp_normalize(n: Node) -> None:
    n.emit("lp_normalize", [n.x(0)], {**optional(n.attrs.get("axis"), "axis", -1), **optional(n.attrs.get("p"), "p", 2)})


@rule("Gemm")
def gemm(n: Node) -> None:
    attrs = attributes(n, row_of("gemm"), frozenset({"broadcast"}))
    n.emit("gemm", n.given(), {k: v for k, v in attrs.items() if v != 1.0 or isinstance(v, bool)})


def shortened(n: Node, x: Value, axis: int, length: int) -> Value:
    """The first elements along the axis."""
    shape = [length if d == axis else size for d, size in enumerate(x.dims())]
    return n.emit("slice", [x], {"starts": [0], "ends": [length], "axes": [axis]}, n.temp(x, tuple(shape)))


def seen_keys(n: Node, inputs: List[Value]) -> Tuple[List[Value], bool]:
    """Query i sees the keys up to number i. The causal attention of sdpa aligns the last query with the last key, so the
    numbers must be the same: keys after the last query are left out, or a mask says what is seen."""
    axis = inputs[0].rank - 2
    queries, keys = (x.dims()[axis] for x in inputs[:2])
    if queries < keys:
        seen = [inputs[0], *(shortened(n, x, axis, queries) for x in inputs[1:3])]
        return [*seen, *(shortened(n, x, x.rank - 1, queries) for x in inputs[3:])], True
    if queries > keys and len(inputs) > 3:
        raise Unsupported("causal attention with a mask and more queries than keys")
    if queries > keys:
        return [*inputs, n.const(need_numpy().tri(queries, keys, dtype=bool), "bool", "seen")], False
    return inputs, True


@rule("Attention")
def attention(n: Node) -> None:
    refused = [i for i in (4, 5, 6) if n.has(i)]
    if refused or len([o for o in n.outputs if o]) > 1 or n.attrs.get("softcap"):
        raise Unsupported("attention with past keys, with several results or with a cap")
    q, k = n.x(0), n.x(1)
    causal, inputs = bool(n.attrs.get("is_causal")), n.given()
    if n.has(3):
        if n.x(3).dims()[-1] != k.dims()[-2]:
            raise Unsupported("a mask that is shorter than the keys")
    attrs: Dict[str, Any] = {}
    if "scale" in n.attrs:
        attrs["scale"] = short(n.attrs["scale"])
    if q.rank == 3:
        attrs.update({"heads": n.attrs["q_num_heads"], "kv_heads": n.attrs["kv_num_heads"]})
    if causal:
        inputs, causal = seen_keys(n, inputs)
    n.emit("sdpa", inputs, {**attrs, **optional(causal, "causal", False)})


@rule("RotaryEmbedding")
def rotary(n: Node) -> None:
    if not n.has(3):
        raise Unsupported("a table of angles for every position")
    x, dim = n.x(0), n.attrs.get("rotary_embedding_dim", 0)
    attrs = {
        **optional(bool(n.attrs.get("interleaved")), "interleaved", False), **optional(dim, "dim", 0),
        **optional(n.attrs.get("num_heads", 0) if x.rank == 3 else 0, "heads", 0),
    }  # fmt: skip
    n.emit("rope", [x, n.x(3), n.x(1), n.x(2)], attrs)


# ---- recurrence ----

ACTIVATIONS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


@rule("LSTM", "GRU", "RNN")
def recurrent(n: Node) -> None:
    attrs = recurrent_attrs(n)
    x, h = n.x(0), n.x(2).dims()[-1]
    d = n.x(1).dims()[0]
    batch_first = n.attrs.get("layout") == 1
    if batch_first:
        x = n.emit("transpose", [x], {"perm": [1, 0, 2]}, n.temp(x, swap(x.dims())))
    t, b = x.dims()[0], x.dims()[1]
    if n.has(4) and any(int(v) != t for v in n.constant(4).reshape(-1)):
        raise Unsupported("sequences of different lengths")
    given = operands(n, x, h, d, b, batch_first)
    results = [((t, d, b, h), "y"), ((d, b, h), "h_last"), ((d, b, h), "c_last")][: 3 if n.op == "LSTM" else 2]
    outs = []
    for i, (shape, name) in enumerate(results):
        outs.append(n.out(i) if n.wants(i) and not batch_first else n.temp(x, shape, name=name))
        if n.wants(i) and not batch_first:
            outs[i].shape = shape
    n.emit_many(n.op.lower(), given, attrs, outs)
    if batch_first:
        for i, value in enumerate(outs):
            if n.wants(i):
                perm = [2, 0, 1, 3] if i == 0 else [1, 0, 2]
                n.out(i).shape = tuple(value.dims()[p] for p in perm)
                n.emit("transpose", [value], {"perm": perm}, n.out(i))


def swap(dims: List[int]) -> Any:
    return (dims[1], dims[0], *dims[2:])


def recurrent_attrs(n: Node) -> Dict[str, Any]:
    want = ACTIVATIONS[n.op]
    found = n.attrs.get("activations") or []
    names = [a.decode() if isinstance(a, bytes) else a for a in found]
    attrs: Dict[str, Any] = {**optional(n.attrs.get("direction"), "direction", "forward")}
    if n.op == "RNN" and names and len(set(names)) == 1 and names[0] in ("Tanh", "Relu", "Sigmoid"):
        attrs.update(optional(names[0].lower(), "activation", "tanh"))
    elif names and names != want * (len(names) // len(want)):
        raise Unsupported(f"the functions {', '.join(names)} of its gates")
    if n.op == "LSTM" and (n.has(7) or n.attrs.get("input_forget")):
        raise Unsupported("peepholes, or a forget gate that is one minus the input gate")
    if "clip" in n.attrs:
        if n.op != "LSTM":
            raise Unsupported("a limit of its gates")
        attrs["clip"] = short(n.attrs["clip"])
    if n.op == "GRU":
        attrs.update(optional(bool(n.attrs.get("linear_before_reset")), "linear_before_reset", False))
    return attrs


def operands(n: Node, x: Value, h: int, d: int, b: int, batch_first: bool) -> List[Value]:
    """x, W, R, bias and the first states but for zeros; where one is left out and a later one is given, zeros stand in."""
    np = need_numpy()
    states = [5, 6] if n.op == "LSTM" else [5]
    given: List[Optional[Value]] = [x, n.x(1), n.x(2), n.x(3) if n.has(3) else None]
    for i in states:
        value = n.x(i) if n.has(i) else None
        if value is not None and value.data is not None and not value.data.any():
            value = None
        if value is not None and batch_first:
            value = n.emit("transpose", [value], {"perm": [1, 0, 2]}, n.temp(value, swap(value.dims())))
        given.append(value)
    while given[-1] is None:
        given.pop()
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[n.op]
    shapes = [(d, 2 * gates * h), (d, b, h), (d, b, h)]
    zero = n.scalar(0, x).data
    return [v if v is not None else n.const(np.broadcast_to(zero, shapes[i - 3]), x.dtype, "zeros") for i, v in enumerate(given)]


# ---- signals ----


@rule("DFT")
def dft(n: Node) -> None:
    x = n.x(0)
    axis = int(n.constant(2).reshape(-1)[0]) if n.has(2) else n.attrs.get("axis", -2 if n.opset >= 20 else 1)
    attrs: Dict[str, Any] = {**optional(axis, "axis", -2)}
    if n.has(1):
        attrs["length"] = int(n.constant(1).reshape(-1)[0])
    for name in ("inverse", "onesided"):
        attrs.update(optional(bool(n.attrs.get(name)), name, False))
    n.emit("dft", [x], attrs)


@rule("STFT")
def stft(n: Node) -> None:
    attrs: Dict[str, Any] = {"frame_step": int(n.constant(1).reshape(-1)[0])}
    if n.has(3):
        attrs["frame_length"] = int(n.constant(3).reshape(-1)[0])
    attrs.update(optional(bool(n.attrs.get("onesided", 1)), "onesided", True))
    size = attrs.get("frame_length") or n.x(2).dims()[0]
    if n.out().shape is not None and n.attrs.get("onesided", 1):  # some versions of ONNX infer both sides
        n.out().shape = (*n.out().dims()[:2], size // 2 + 1, 2)
    n.emit("stft", [n.x(0), *([n.x(2)] if n.has(2) else [])], attrs)


@rule("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix")
def tables(n: Node) -> None:
    for i in range(len(n.inputs)):
        n.constant(i)
    raise Unsupported("this table cannot be computed at import time")
