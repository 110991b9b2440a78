"""What every op means, in numpy, written by hand from the op catalog. Slow and plain on purpose.

REFERENCE[op](inputs, attrs, out_dtype, out_shape) takes and gives Tensors; of several outputs these are
lists. Narrow floats are computed in
f32 and rounded once; integers of up to 32 bits exactly in 64, then wrapped; 64-bit ones wrap by themselves.
"""

import importlib
import math
import pathlib

import numpy as np

from tensors import DTYPES, Tensor

REFERENCE = {}
ROUNDED = {}  # maps no two libraries round alike: ulps allowed by element type (else 1), or None: the catalog's tolerance
np.seterr(all="ignore")


def op(name):
    def register(fn):
        REFERENCE[name] = fn
        return fn
    return register


def kind(t):
    return DTYPES[t.dtype if isinstance(t, Tensor) else t].kind


# -- in and out of the numbers an op computes with


def numbers(t):
    """Floats as f32 or f64, signed as int64, unsigned as uint64, truths as they are."""
    d, v = DTYPES[t.dtype], t.values
    if d.kind == "F":
        return v if d.name == "f64" else v.astype(np.float32)
    if d.kind == "B":
        return v
    return v.astype(np.uint64 if d.kind in "UX" else np.int64)


def wrap(dtype, v):
    d = DTYPES[dtype]
    bits = v.astype(np.uint64) if v.dtype != np.int64 else v.view(np.uint64)
    if d.bits < 64:
        bits = bits & np.uint64((1 << d.bits) - 1)
    if d.kind == "S":
        top = np.uint64(1 << (d.bits - 1))
        signed = (bits ^ top).view(np.int64) - np.int64(-(2**63) if d.bits == 64 else 1 << (d.bits - 1))
        return signed.astype(d.array)
    return bits.astype(d.array)


def result(dtype, v):
    """Numbers into a tensor: floats rounded, integers wrapped, ternaries by their own rule."""
    d = DTYPES[dtype]
    v = np.asarray(v)
    if d.kind in "FB":
        return Tensor(dtype, v.astype(d.array))
    if dtype == "t1":
        return Tensor(dtype, np.where(v < 0, -1, 1).astype(np.int8))
    if dtype == "t2":
        return Tensor(dtype, np.clip(v, -1, 1).astype(np.int8))
    if v.dtype == np.bool_:
        v = v.astype(np.int64)
    return Tensor(dtype, wrap(dtype, v))


def number(dtype, value):
    """A number attribute taken in the tensor's dtype; bounds beyond it are its own."""
    d = DTYPES[dtype]
    if d.kind == "F":
        rounded = np.asarray(float(value) if not isinstance(value, int) else value, dtype=np.float64).astype(d.array)
        return rounded.astype(np.float64 if dtype == "f64" else np.float32)
    if value == math.inf or value >= d.highest:
        value = d.highest
    elif value <= d.lowest:
        value = d.lowest
    return np.array(int(value), np.uint64 if d.kind in "UX" else np.int64)


def accumulate(inputs, attrs):
    """Inputs converted to the accumulator: numbers, and its dtype."""
    acc = attrs.get("acc")
    if acc is None:
        return [numbers(t) for t in inputs], inputs[0].dtype
    a = acc if isinstance(acc, str) else acc[0]
    return [numbers(convert(t, a, "trunc", False)) for t in inputs], a


def given_out(acc, v, out_dtype):
    """The accumulator's value, rounded or wrapped to it, then converted to the output."""
    inner = result(acc, v)
    return inner if acc == out_dtype else convert(inner, out_dtype, "trunc", False)


# -- conversions


def exact_ints(v):
    return [int(x) for x in v.ravel()]


def to_int(d, x, saturate):
    """A Python integer into the range of d."""
    if d.name == "t1":
        return -1 if x < 0 else 1
    if saturate or d.kind == "T":
        return min(max(x, d.lowest), d.highest)
    x &= (1 << d.bits) - 1
    return x - (1 << d.bits) if d.kind == "S" and x >> (d.bits - 1) else x


def round_one(x, mode):
    """A float to a Python integer."""
    low = math.floor(x)
    if mode == "trunc":
        return math.trunc(x)
    if mode == "floor":
        return low
    if mode == "ceil":
        return math.ceil(x)
    rest = x - low if abs(x) < 2.0**52 else 0.0
    if rest != 0.5:
        return low if rest < 0.5 else low + 1
    if mode == "nearest":
        return low + 1 if x > 0 else low
    return low if low % 2 == 0 else low + 1


def float_to_int(d, x, mode, saturate):
    if math.isnan(x):
        return to_int(d, 0, True)
    if math.isinf(x):
        if d.kind == "T" or saturate:
            return to_int(d, (1 if x > 0 else -1) << 80, True)
        return to_int(d, 0, True)
    return to_int(d, round_one(x, mode), saturate)


def nearest_float(d, values):
    """Integers to a float type with one rounding. numpy does it for f32 and f64; the others pass through
    f64, exact below 2^53, or are rounded by hand."""
    if d.name in ("f32", "f64"):
        return values.ravel().astype(d.array)
    wide = values.ravel().astype(np.float64)
    if not (np.abs(wide) > 2.0**52).any():
        return odd(wide).astype(d.array)
    out = []
    for x in exact_ints(values):
        man = {"f32": 23, "f16": 10, "bf16": 7, "f8": 2}[d.name]
        n, sign = abs(x), -1 if x < 0 else 1
        shift = max(0, n.bit_length() - (man + 1))
        kept, rest = n >> shift, n & ((1 << shift) - 1)
        half = (1 << shift) >> 1
        kept += bool(shift) and (rest > half or (rest == half and kept & 1))
        value = kept << shift
        limit = {"f32": (2**24 - 1) << 104, "f16": 65504, "bf16": 255 << 120, "f8": 57344}[d.name]
        out.append(sign * (float(value) if value <= limit else math.inf))
    return np.array(out, np.float64).astype(d.array)


def convert(t, to, mode, saturate):
    src, d = DTYPES[t.dtype], DTYPES[to]
    shape = t.values.shape
    if d.kind == "B":
        return Tensor(to, (t.values.astype(np.float64) if src.kind == "F" else t.values) != 0)
    if d.kind == "F":
        if src.kind == "F":
            wide = t.values.astype(np.float64)
            if d.name in ("bf16", "f8"):  # ml_dtypes goes through f32: round to odd there first
                wide = odd(wide)
            return Tensor(to, wide.astype(d.array).reshape(shape))
        return Tensor(to, nearest_float(d, t.values).reshape(shape))
    if src.kind == "F":
        values = [float_to_int(d, float(x), mode, saturate) for x in t.values.ravel()]
    else:
        values = [to_int(d, x, saturate) for x in exact_ints(t.values)]
    return Tensor(to, np.array(values, dtype=object).astype(d.array).reshape(shape))


def odd(v):
    """f64 to f32 such that what was cut off shows in the last bit."""
    f = v.astype(np.float32)
    inexact = (f.astype(np.float64) != v) & ~np.isnan(v) & ~np.isinf(f)
    bits = f.view(np.uint32) if f.ndim else np.array(f).view(np.uint32)
    even = (bits & 1) == 0
    step = np.where(np.abs(f.astype(np.float64)) < np.abs(v), 1, -1)
    fixed = (bits.astype(np.int64) + np.where(inexact & even, step, 0)).astype(np.uint32).view(np.float32)
    return np.where(np.isinf(f), f, fixed.reshape(f.shape))


# -- arithmetic


def arithmetic(name, fn, on_bool=None):
    def run(inputs, attrs, out_dtype, out_shape):
        if inputs[0].dtype == "bool":
            return Tensor("bool", on_bool(*[t.values for t in inputs]))
        values, acc = accumulate(inputs, attrs)
        return given_out(acc, fn(*values), out_dtype)
    REFERENCE[name] = run


arithmetic("add", np.add, np.logical_or)
arithmetic("sub", np.subtract)
arithmetic("mul", np.multiply, np.logical_and)
arithmetic("abs", np.abs)


def divide_ints(x, y, how, mask):
    """In 64 bits; MIN / -1 wraps like a negation, and again when it is stored."""
    x, y = np.broadcast_arrays(x, np.asarray(y).astype(x.dtype))
    mask = np.array(mask).astype(x.dtype)
    minus = (y == -1) if x.dtype == np.int64 else np.zeros(y.shape, np.bool_)
    safe = np.where((y == 0) | minus, 1, y).astype(x.dtype)
    floor, rest = np.floor_divide(x, safe), np.remainder(x, safe)
    trunc = floor + ((rest != 0) & (floor < 0) if x.dtype == np.int64 else 0)
    q = {"trunc": trunc, "floor": floor, "rem": x - trunc * safe}[how].astype(x.dtype)
    q = np.where(minus, np.zeros_like(x) if how == "rem" else np.negative(x), q)
    return np.where(y == 0, mask, q)


def store_ints(dtype, values):
    d = DTYPES[dtype]
    flat = [to_int(d, int(v), False) for v in values.ravel()]
    return Tensor(dtype, np.array(flat, dtype=object).astype(d.array).reshape(values.shape))


def division(name, how):
    def run(inputs, attrs, out_dtype, out_shape):
        x, y = numbers(inputs[0]), numbers(inputs[1])
        mask = attrs.get("div_by_zero_mask")
        if kind(inputs[0]) == "F":
            if how == "rem":
                return result(out_dtype, np.fmod(x, y))
            q = x / y
            if mask is not None:
                q = np.where(np.broadcast_to(y, q.shape) == 0, number(inputs[0].dtype, mask), q)
            return result(out_dtype, q)
        return result(out_dtype, divide_ints(x, y, how, 0 if mask is None else int(mask)))
    REFERENCE[name] = run


division("div", "trunc")
division("floor_div", "floor")
division("rem", "rem")


@op("fma")
def _(inputs, attrs, out_dtype, out_shape):
    x, y, z = np.broadcast_arrays(*[numbers(t) for t in inputs])
    exact = [fused(float(a), float(b), float(c), x.dtype) for a, b, c in zip(x.ravel(), y.ravel(), z.ravel())]
    return result(out_dtype, np.array(exact, x.dtype).reshape(x.shape))


def fused(a, b, c, dtype):
    from fractions import Fraction
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return dtype.type(a) * dtype.type(b) + dtype.type(c)
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return dtype.type(a) * dtype.type(b) + dtype.type(c)
    return nearest_of(exact, dtype)


def nearest_of(exact, dtype):
    """A Fraction rounded to nearest even in f32 or f64."""
    man, low, high = (23, -126, 127) if dtype == np.float32 else (52, -1022, 1023)
    n, d = abs(exact.numerator), exact.denominator
    e = n.bit_length() - d.bit_length()
    if (n << max(0, -e)) < (d << max(0, e)):
        e -= 1
    scale = man - max(e, low)
    n, d = (n << scale, d) if scale >= 0 else (n, d << -scale)
    q, r = divmod(n, d)
    q += 2 * r > d or (2 * r == d and q & 1)
    value = math.inf if q.bit_length() - 1 - scale > high else math.ldexp(q, -scale)
    return dtype.type(-value if exact < 0 else value)


@op("neg")
def _(inputs, attrs, out_dtype, out_shape):
    return result(out_dtype, np.negative(numbers(inputs[0])))


@op("recip")
def _(inputs, attrs, out_dtype, out_shape):
    x = numbers(inputs[0])
    q = x.dtype.type(1) / x
    if attrs.get("div_by_zero_mask") is not None:
        q = np.where(x == 0, number(inputs[0].dtype, attrs["div_by_zero_mask"]), q)
    return result(out_dtype, q)


@op("sign")
def _(inputs, attrs, out_dtype, out_shape):
    x = numbers(inputs[0])
    s = (x > 0).astype(np.int64) - (x < 0).astype(np.int64)
    return result(out_dtype, s)


def larger(x, y, ignore):
    m = np.where((x > y) | ((x == y) & ~np.signbit(x)) if x.dtype.kind == "f" else x > y, x, y)
    if x.dtype.kind != "f":
        return m
    nan = np.isnan(x) | np.isnan(y)
    other = np.where(np.isnan(x), y, x)
    return np.where(nan, other if ignore else x.dtype.type(np.nan), m)


def smaller(x, y, ignore):
    if x.dtype.kind == "f":
        return -larger(-x, -y, ignore)
    return np.where(x < y, x, y)


def extremes(name, fn):
    def run(inputs, attrs, out_dtype, out_shape):
        x, y = np.broadcast_arrays(numbers(inputs[0]), numbers(inputs[1]))
        return result(out_dtype, fn(x, y, attrs.get("nan") == "ignore"))
    REFERENCE[name] = run


extremes("max", larger)
extremes("min", smaller)


@op("clamp")
def _(inputs, attrs, out_dtype, out_shape):
    x, d = numbers(inputs[0]), inputs[0].dtype
    low = number(d, attrs.get("min", -math.inf))
    high = number(d, attrs.get("max", math.inf))
    ignore = attrs.get("nan") == "ignore"
    return result(out_dtype, smaller(larger(x, np.broadcast_to(low, x.shape), ignore), np.broadcast_to(high, x.shape), ignore))


@op("relu")
def _(inputs, attrs, out_dtype, out_shape):
    x, d = numbers(inputs[0]), inputs[0].dtype
    slope = number(d, attrs.get("negative_slope", attrs.get("alpha", 0)))
    below = x * slope if kind(d) == "F" else numbers(result(d, x * slope))
    if slope == 0:
        below = np.where(x < 0, x.dtype.type(0), below)
    r = np.where(x >= 0, x, below)
    low, high = number(d, attrs.get("clamp_min", -math.inf)), number(d, attrs.get("clamp_max", math.inf))
    return result(out_dtype, smaller(larger(r, np.broadcast_to(low, r.shape), False), np.broadcast_to(high, r.shape), False))


def rounding(name, fn):
    def run(inputs, attrs, out_dtype, out_shape):
        x = numbers(inputs[0])
        return result(out_dtype, fn(x) if kind(inputs[0]) == "F" else x)
    REFERENCE[name] = run


rounding("floor", np.floor)
rounding("ceil", np.ceil)
rounding("trunc", np.trunc)


@op("round")
def _(inputs, attrs, out_dtype, out_shape):
    x = numbers(inputs[0])
    if attrs.get("mode", "half_away") == "half_even":
        return result(out_dtype, np.rint(x))
    whole = np.trunc(x)
    away = whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0).astype(x.dtype)
    return result(out_dtype, np.copysign(np.where(np.isfinite(x), away, x), x))


# -- bits


def bitwise(name, fn, on_bool):
    def run(inputs, attrs, out_dtype, out_shape):
        if out_dtype == "bool":
            return Tensor("bool", on_bool(*[t.values for t in inputs]))
        return result(out_dtype, fn(*[numbers(t) for t in inputs]))
    REFERENCE[name] = run


bitwise("and", np.bitwise_and, np.logical_and)
bitwise("or", np.bitwise_or, np.logical_or)
bitwise("xor", np.bitwise_xor, np.logical_xor)
bitwise("not", np.bitwise_not, np.logical_not)


def shift(name, left):
    def run(inputs, attrs, out_dtype, out_shape):
        d = DTYPES[out_dtype]
        amount = inputs[1].values if len(inputs) > 1 else np.array(attrs["bits"], dtype=object)
        x, n = np.broadcast_arrays(inputs[0].values, amount)
        out = []
        for a, b in zip(exact_ints(x), exact_ints(n)):
            if b < 0 or b >= d.bits:
                out.append(0 if left or a >= 0 else -1)
            else:
                out.append(a << b if left else a >> b)
        return store_ints(out_dtype, np.array(out, dtype=object).reshape(x.shape))
    REFERENCE[name] = run


shift("shl", True)
shift("shr", False)


@op("popcount")
def _(inputs, attrs, out_dtype, out_shape):
    d = DTYPES[inputs[0].dtype]
    ones = [bin(x & ((1 << d.bits) - 1)).count("1") for x in exact_ints(inputs[0].values)]
    return Tensor("u8", np.array(ones, np.uint8).reshape(out_shape))


# -- comparisons and tests


def comparison(name, fn):
    def run(inputs, attrs, out_dtype, out_shape):
        return Tensor("bool", fn(numbers(inputs[0]), numbers(inputs[1])))
    REFERENCE[name] = run


for _name, _fn in dict(eq=np.equal, ne=np.not_equal, lt=np.less, le=np.less_equal, gt=np.greater,
                       ge=np.greater_equal).items():
    comparison(_name, _fn)


@op("filter")
def _(inputs, attrs, out_dtype, out_shape):
    a, b, cond = inputs
    truth = (numbers(cond) != 0) if cond.dtype != "bool" else cond.values
    return Tensor(out_dtype, np.where(truth, a.values, b.values))


def test(name, fn, over_all):
    def run(inputs, attrs, out_dtype, out_shape):
        truths = fn(numbers(inputs[0]))
        if len(out_shape) == 0:
            truths = np.array(over_all(truths))
        return Tensor("bool", truths)
    REFERENCE[name] = run


test("is_finite", np.isfinite, np.all)
test("is_nan", np.isnan, np.any)
test("is_inf", np.isinf, np.any)
test("is_neg", lambda x: x < 0, np.any)


@op("fill")
def _(inputs, attrs, out_dtype, out_shape):
    d = DTYPES[out_dtype]
    value = attrs.get("value", 0)
    if d.kind == "F":
        return result(out_dtype, np.full(out_shape, number(out_dtype, value)))
    if out_dtype == "t1":
        value = -1 if value < 0 else 1
    return Tensor(out_dtype, np.full(out_shape, bool(value) if d.kind == "B" else int(value), d.array))


@op("fill_nan_like")
def _(inputs, attrs, out_dtype, out_shape):
    x = numbers(inputs[0])
    return result(out_dtype, np.where(np.isnan(x), number(out_dtype, attrs.get("value", 0)), x))


@op("cast")
def _(inputs, attrs, out_dtype, out_shape):
    return convert(inputs[0], attrs["to"], attrs.get("rounding_mode", "trunc"), attrs.get("saturate", True))


# -- reductions


def rows(v, axes):
    """[kept..., reduced flattened in index order]"""
    axes = [axes] if isinstance(axes, int) else list(axes)
    gone = sorted({a % v.ndim for a in axes})
    kept = [a for a in range(v.ndim) if a not in gone]
    t = np.transpose(v, kept + gone)
    n = int(np.prod([v.shape[a] for a in gone], dtype=np.int64))
    return t.reshape([v.shape[a] for a in kept] + [n])


def fold(v, start, fn):
    """In index order, beginning with the start value."""
    begin = np.full(v.shape[:-1] + (1,), start, v.dtype)
    return fn.accumulate(np.concatenate([begin, v], axis=-1), axis=-1, dtype=v.dtype)[..., -1]


LANES = 16


def declared(v, attrs, start, fn):
    """In the order of the op's row: floats along the last axis in partial sums, then pairwise; all else by index."""
    axes = [attrs["axes"]] if isinstance(attrs["axes"], int) else list(attrs["axes"])
    gone = sorted({a % v.ndim for a in axes})
    in_lanes = v.dtype.kind not in "iub" and v.ndim - 1 in gone and v.shape[-1] >= 2 * LANES and attrs.get("order") != "serial"
    if not in_lanes:
        return fold(rows(v, axes), start, fn)
    kept = [v.shape[a] for a in range(v.ndim) if a not in gone]
    t = rows(v, axes).reshape(kept + [-1, v.shape[-1]])
    more = -v.shape[-1] % LANES
    t = np.concatenate([t, np.full(t.shape[:-1] + (more,), start, t.dtype)], axis=-1)
    t = np.moveaxis(t.reshape(kept + [-1, LANES]), -1, -2)
    t = fold(t, start, fn)
    while t.shape[-1] > 1:
        half = t.shape[-1] // 2
        t = fn(t[..., :half], t[..., half:])
    return t[..., 0]


def fold_pairs(v, start, fn):
    """For what does not mind the grouping."""
    v = np.concatenate([np.full(v.shape[:-1] + (1,), start, v.dtype), v], axis=-1)
    while v.shape[-1] > 1:
        half = v.shape[-1] // 2
        v = np.concatenate([fn(v[..., :half], v[..., half : 2 * half]), v[..., 2 * half :]], axis=-1)
    return v[..., 0]


def reduction(name, start, fn, wide_ints=False, finish=None):
    def run(inputs, attrs, out_dtype, out_shape):
        (v,), acc = accumulate(inputs, attrs)
        if wide_ints and kind(acc) in "SU" and attrs.get("acc") is None:
            acc = {"S": "i64", "U": "u64"}[kind(acc)]
        whole = declared(v, attrs, start, fn)
        v = rows(v, attrs["axes"])
        if kind(acc) != "F":  # modulo 2^width it does not matter when one wraps, but finish must see it
            whole = numbers(result(acc, whole))
        if finish:
            whole = finish(whole, v.shape[-1])
        return given_out(acc, whole.reshape(out_shape), out_dtype)
    REFERENCE[name] = run


def mean(total, n):
    if total.dtype.kind == "f":
        return total / total.dtype.type(n)
    return divide_ints(total, np.array(n), "trunc", 0)


reduction("sum_axis", 0, np.add)
reduction("prod_axis", 1, np.multiply)
reduction("mean_axis", 0, np.add, True, mean)


def extreme_axis(name, fn, empty):
    def run(inputs, attrs, out_dtype, out_shape):
        v = rows(numbers(inputs[0]), attrs["axes"])
        d = DTYPES[inputs[0].dtype]
        ignore = attrs.get("nan") == "ignore"
        whole = fold_pairs(v, np.array(getattr(d, empty)).astype(v.dtype), lambda a, x: fn(a, x, ignore))
        return result(out_dtype, whole.reshape(out_shape))
    REFERENCE[name] = run


extreme_axis("max_axis", larger, "lowest")
extreme_axis("min_axis", smaller, "highest")


def position(name, sign):
    def run(inputs, attrs, out_dtype, out_shape):
        v = rows(numbers(inputs[0]), attrs["axis"])
        first = attrs.get("select_first", True)
        flat = v.reshape(-1, v.shape[-1])
        best = flat.max(axis=1, keepdims=True) if sign > 0 else flat.min(axis=1, keepdims=True)
        is_best = flat == best
        out = is_best.argmax(axis=1) if first else v.shape[-1] - 1 - is_best[:, ::-1].argmax(axis=1)
        if v.dtype.kind == "f":  # the first of them wins
            is_nan = np.isnan(flat)
            out = np.where(is_nan.any(axis=1), is_nan.argmax(axis=1), out)
        return Tensor(out_dtype, out.astype(DTYPES[out_dtype].array).reshape(out_shape))
    REFERENCE[name] = run


position("argmax_axis", 1)
position("argmin_axis", -1)


# -- products and movement


@op("matmul")
def _(inputs, attrs, out_dtype, out_shape):
    x, y = inputs[0].values, inputs[1].values
    if attrs.get("transpose_a") and x.ndim > 1:
        x = np.swapaxes(x, -1, -2)
    if attrs.get("transpose_b") and y.ndim > 1:
        y = np.swapaxes(y, -1, -2)
    if inputs[0].dtype == "bool":
        return Tensor("bool", np.matmul(x.astype(np.int64), y.astype(np.int64)).astype(np.bool_).reshape(out_shape))
    (a, b), acc = accumulate([Tensor(inputs[0].dtype, x), Tensor(inputs[1].dtype, y)], attrs)
    if a.ndim == 1:
        a = a[None, :]
    if b.ndim == 1:
        b = b[:, None]
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    total = np.zeros(lead + (a.shape[-2], b.shape[-1]), a.dtype)
    for k in range(a.shape[-1]):
        total = total + a[..., :, k, None] * b[..., None, k, :]
    return given_out(acc, total.reshape(out_shape), out_dtype)


@op("gather")
def _(inputs, attrs, out_dtype, out_shape):
    data, idx = inputs
    i = idx.values.astype(np.int64)
    axis = attrs.get("axis", 0)
    return Tensor(out_dtype, np.take(data.values, np.where(i < 0, i + data.values.shape[axis], i), axis=axis))


# -- attention


def attend(q, k, v, scale, hidden=None, added=None):
    """q [B,H,Tq,D], k [B,H,Tk,D], v [B,H,Tk,Dv], all of one float type."""
    s = np.einsum("bhqd,bhkd->bhqk", q, k).astype(q.dtype) * q.dtype.type(scale)
    if added is not None:
        s = s + added
    if hidden is not None:
        s = np.where(hidden, -np.inf, s).astype(q.dtype)
    if s.shape[-1] == 0:
        return np.zeros(q.shape[:-1] + (v.shape[-1],), q.dtype)
    top = s.max(axis=-1, keepdims=True)
    e = np.where(top == -np.inf, 0, np.exp(s - top)).astype(q.dtype)
    total = e.sum(axis=-1, keepdims=True)
    p = np.where(total == 0, 0, e / total).astype(q.dtype)
    return np.einsum("bhqk,bhkd->bhqd", p, v)


def to_bf16(x):
    """The nearest bf16, of two the even one; x is f32 or f64 and not near the smallest numbers."""
    m, e = np.frexp(x)
    return np.where(np.isfinite(x), np.ldexp(np.rint(m * 256) / 256, e), x).astype(x.dtype)


def steps_of_32(a, b):
    """a [.., M, K] times b [.., K, N]: every step sums its even products and its odd ones apart."""
    total = np.zeros(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1]), a.dtype)
    for at in range(0, a.shape[-1], 32):
        sums = np.zeros((2, *total.shape), a.dtype)
        for k in range(at, min(at + 32, a.shape[-1])):
            sums[k % 2] += a[..., :, k, None] * b[..., None, k, :]
        total += sums[0] + sums[1]
    return total


def exp_f32(x):
    """e^x step by step as src/body/math.h has it: where the result is rounded to bf16, a last bit counts."""
    f = np.float32
    c = np.clip(x, f(-104), f(89))
    n = (c * f(1.44269504) + f(12582912)) - f(12582912)
    r = (c - n * f(float.fromhex("0x1.62e4p-1"))) - n * f(1.42860682e-06)
    q = np.full_like(x, 0.00139507239)
    for a in (0.00836902505, 0.0416662023, 0.166665177, 0.5):
        q = q * r + f(a)
    p = f(1) + (r + r * r * q)
    half = np.floor(np.nan_to_num(n) / 2).astype(np.int32)
    return np.ldexp(np.ldexp(p, half), np.nan_to_num(n).astype(np.int32) - half)


def attend_bf16(q, k, v, scale, hidden, added):
    """attend with act="bf16", the very steps of the definition."""
    s = steps_of_32(to_bf16(q), to_bf16(k).swapaxes(2, 3)) * q.dtype.type(scale)
    s = np.where(hidden, -np.inf, s if added is None else s + added).astype(q.dtype)
    if s.shape[-1] == 0:
        return np.zeros(q.shape[:-1] + (v.shape[-1],), q.dtype)
    top = s.max(axis=-1, keepdims=True)
    below = s - np.where(top == -np.inf, 0, top).astype(q.dtype)
    p = to_bf16(exp_f32(below) if q.dtype == np.float32 else np.exp(below))
    total = np.zeros(p.shape[:-1] + (1,), q.dtype)
    for i in range(p.shape[-1]):
        total[..., 0] += p[..., i]
    o = steps_of_32(p, to_bf16(v))
    return np.where(total == 0, 0, o / total).astype(q.dtype)


def in_order(a, b):
    """a [.., M, K] times b [.., K, N], a product after the other: where sums are rounded to f16, a last bit counts."""
    total = np.zeros(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1]), a.dtype)
    for k in range(a.shape[-1]):
        total += a[..., :, k, None] * b[..., None, k, :]
    return total


def attend_f16(q, k, v, scale, hidden, added):
    """attend with act="f16": factors are rounded, the division comes last."""
    q, k, v = (t.astype(np.float16).astype(q.dtype) for t in (q, k, v))
    s = in_order(q, k.swapaxes(2, 3)) * q.dtype.type(scale)
    s = np.where(hidden, -np.inf, s if added is None else s + added).astype(q.dtype)
    if s.shape[-1] == 0:
        return np.zeros(q.shape[:-1] + (v.shape[-1],), q.dtype)
    top = s.max(axis=-1, keepdims=True)
    below = s - np.where(top == -np.inf, 0, top).astype(q.dtype)
    p = (exp_f32(below) if q.dtype == np.float32 else np.exp(below)).astype(np.float16).astype(q.dtype)
    total = in_order(p, np.ones((p.shape[-1], 1), q.dtype))
    return np.where(total == 0, 0, in_order(p, v) / total).astype(q.dtype)


def split_heads(x, heads, time_first):
    x = x.transpose(1, 0, 2) if time_first else x
    return x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads).transpose(0, 2, 1, 3)


@op("sdpa")
def _(inputs, attrs, out_dtype, out_shape):
    wide = np.float64 if inputs[0].dtype == "f64" else np.float32
    q, k, v = (t.values.astype(wide) for t in inputs[:3])
    packed, decode = q.ndim < 4, q.ndim == 2
    if packed:
        heads = attrs.get("heads", 1)
        dh = q.shape[-1] // heads
        kv_heads = attrs.get("kv_heads", k.shape[-1] // dh)
        q = split_heads(q[:, None, :] if decode else q, heads, False)
        k, v = split_heads(k, kv_heads, decode), split_heads(v, kv_heads, decode)
    repeat = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, repeat, axis=1), np.repeat(v, repeat, axis=1)
    b, h, tq, dh = q.shape
    tk = k.shape[2]
    length = np.broadcast_to(np.array(attrs.get("kv_len", tk)), (b,))
    j = np.arange(tk)
    hidden = np.broadcast_to((j >= length[:, None])[:, None, None, :], (b, h, tq, tk))
    if attrs.get("causal"):
        i = np.arange(tq)
        late = j[None, None, :] > (i[None, :] + length[:, None] - tq)[:, :, None]
        hidden = hidden | late[:, None]
    added = None
    if len(inputs) > 3:
        mask = inputs[3]
        if kind(mask) == "F":
            added = np.broadcast_to(mask.values.astype(wide), (b, h, tq, tk))
        else:
            hidden = hidden | (np.broadcast_to(mask.values, (b, h, tq, tk)) == 0)
    scale = number(inputs[0].dtype, attrs["scale"]) if "scale" in attrs else wide(1) / np.sqrt(wide(dh))
    rounded = {"bf16": attend_bf16, "f16": attend_f16}.get(attrs.get("act"))
    if rounded:
        shown = (j < length[:, None])[:, None, :, None]  # values beyond kv_len are never looked at
        y = rounded(q, k, np.where(shown, v, 0).astype(wide), scale, hidden, added)
    else:
        y = attend(q, k, v, scale, hidden, added)
    if packed:
        y = y.transpose(0, 2, 1, 3).reshape(out_shape)
    return result(out_dtype, y)


@op("attn")
def _(inputs, attrs, out_dtype, out_shape):
    wide = np.float64 if inputs[0].dtype == "f64" else np.float32
    h, k, v, w = (t.values.astype(wide) for t in inputs)
    if k.ndim == 2:
        k, v = k[None], v[None]
    t, heads, dh = k.shape
    b = h.shape[0]
    q = np.matmul(h, w).reshape(b, heads, 1, dh)
    k = np.broadcast_to(k.transpose(1, 0, 2), (b, heads, t, dh))
    v = np.broadcast_to(v.transpose(1, 0, 2), (b, heads, t, dh))
    scale = number(inputs[0].dtype, attrs["scale"]) if "scale" in attrs else wide(1) / np.sqrt(wide(dh))
    return result(out_dtype, attend(q, k, v, scale).reshape(out_shape))


# reference_FAMILY.py says what the ops of a family mean
for path in sorted(pathlib.Path(__file__).parent.glob("reference_*.py")):
    importlib.import_module(path.stem)
