"""Elementwise mathematics: numpy in f64, rounded once. numpy's own f64 functions stray by an ulp or two, so
f64 results are held to a few; f32 to the 2 ulp the catalog promises for single functions."""

import math

import numpy as np

from reference_ops import REFERENCE, ROUNDED, kind, number, numbers, result
from tensors import Tensor

LOOSE = {"f64": 8}  # two libraries


def wide(t):
    return t.values.astype(np.float64)


def function(name, fn, ulps=2):
    """One function of the mathematics, of one or more inputs."""
    def run(inputs, attrs, out_dtype, out_shape):
        return result(out_dtype, fn(*[wide(t) for t in inputs]))
    REFERENCE[name] = run
    ROUNDED[name] = {"f32": ulps, **LOOSE}


def erf(x):
    return np.array([math.erf(v) for v in np.ravel(x)]).reshape(np.shape(x))


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


for one in ("tanh", "exp", "log", "sin", "cos", "tan", "sinh", "cosh"):
    function(one, getattr(np, one))
for one in ("sin", "cos", "tan", "sinh", "cosh", "tanh"):
    function("a" + one, getattr(np, "arc" + one))
function("erf", erf)
function("sigmoid", sigmoid)
function("rsqrt", lambda x: 1 / np.sqrt(x))
function("softplus", lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))
function("atan2", np.arctan2)


def activation(name, fn, alias={}, **defaults):
    """Several steps, of which the last may cancel: held to the catalog's tolerance."""
    def run(inputs, attrs, out_dtype, out_shape):
        attrs = {alias.get(k, k): v for k, v in attrs.items()}
        given = {k: attrs.get(k, v) for k, v in defaults.items()}
        given = {k: v if isinstance(v, str) else np.float64(number(inputs[0].dtype, v)) for k, v in given.items()}
        return result(out_dtype, fn(wide(inputs[0]), **given))
    REFERENCE[name] = run
    ROUNDED[name] = None


def gelu(x, approximate):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


activation("silu", lambda x, beta: x * sigmoid(beta * x), {"alpha": "beta"}, beta=1)
activation("gelu", gelu, approximate="none")
activation("mish", lambda x: x * np.tanh(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))))
activation("softsign", lambda x: x / (1 + np.abs(x)))
activation("elu", lambda x, alpha: np.where(x < 0, alpha * np.expm1(x), x), alpha=1)
activation("celu", lambda x, alpha: np.where(x < 0, alpha * np.expm1(x / alpha), x), alpha=1)
activation("selu", lambda x, alpha, gamma: gamma * np.where(x < 0, alpha * np.expm1(x), x),
           alpha=1.67326319217681884765625, gamma=1.05070102214813232421875)
activation("hard_sigmoid", lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), alpha=0.2, beta=0.5)
activation("hard_swish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1))


def register(name):
    def keep(fn):
        REFERENCE[name] = fn
        return fn
    return keep


@register("sqrt")
def _(inputs, attrs, out_dtype, out_shape):
    return result(out_dtype, np.sqrt(numbers(inputs[0])))


@register("square")
def _(inputs, attrs, out_dtype, out_shape):
    return result(out_dtype, np.multiply(numbers(inputs[0]), numbers(inputs[0])))


@register("prelu")
def _(inputs, attrs, out_dtype, out_shape):
    x, slope = numbers(inputs[0]), numbers(inputs[1])
    return result(out_dtype, np.where(x < 0, slope * x, x))


@register("pow")
def _(inputs, attrs, out_dtype, out_shape):
    if kind(inputs[0]) == "F":
        return result(out_dtype, np.power(*[wide(t) for t in inputs]))
    bits = 8 * inputs[0].values.dtype.itemsize

    def one(x, y):
        x, y = int(x), int(y)
        if y < 0:
            return {1: 1, -1: -1 if y & 1 else 1}.get(x, 0)
        v = pow(x, y, 1 << bits)
        return v - (1 << bits) if kind(inputs[0]) == "S" and v >> (bits - 1) else v
    x, y = np.broadcast_arrays(inputs[0].values, inputs[1].values)
    return Tensor(out_dtype, np.array([one(a, b) for a, b in zip(x.ravel(), y.ravel())], x.dtype).reshape(x.shape))


ROUNDED["pow"] = {"f32": 2, **LOOSE}


@register("mod")
def _(inputs, attrs, out_dtype, out_shape):
    x, y = np.broadcast_arrays(numbers(inputs[0]), numbers(inputs[1]))
    if kind(inputs[0]) == "F":
        return result(out_dtype, np.mod(x, y))
    return result(out_dtype, np.where(y == 0, 0, np.mod(x, np.where(y == 0, 1, y).astype(x.dtype))))


@register("where")
def _(inputs, attrs, out_dtype, out_shape):
    shape = np.broadcast_shapes(*[t.values.shape for t in inputs])
    cond, a, b = [np.broadcast_to(t.values, shape) for t in inputs]
    out = a.copy()
    out[~cond] = b[~cond]
    return Tensor(out_dtype, out)


for same in ("identity", "dropout"):
    REFERENCE[same] = lambda inputs, attrs, out_dtype, out_shape: Tensor(out_dtype, inputs[0].values.copy())
