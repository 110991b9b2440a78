"""One random graph that is well typed, as text, with the tensors its model must have."""

import dataclasses
import math
import random

FLOATS = ("f32", "f32", "f32", "f32", "f64", "f16", "bf16", "f8")
WHOLE = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
PACKED = ("i4", "u4", "i2", "u2", "i1", "u1")
DTYPES = FLOATS * 2 + WHOLE + PACKED + ("bool", "bool")
RANGES = {"bool": (0, 1), "i1": (-1, 0), "i2": (-2, 1), "i4": (-8, 7), "u1": (0, 1), "u2": (0, 3), "u4": (0, 15)}
DIMS = (1, 1, 2, 3, 4, 5, 7, 8)
MOST_ELEMENTS = 600


def is_float(dtype):
    return dtype in FLOATS


def value_range(dtype):
    if is_float(dtype):
        return -2.0, 2.0
    return RANGES.get(dtype) or ((-9, 9) if dtype[0] == "i" else (0, 9))


@dataclasses.dataclass(frozen=True)
class Value:
    name: str
    dtype: str
    shape: tuple


@dataclasses.dataclass(frozen=True)
class Open:
    """A value with lengths that only the run knows: None in its shape."""

    name: str
    dtype: str
    shape: tuple


@dataclasses.dataclass
class Graph:
    text: str
    tensors: dict  # name in the model -> (dtype, shape, seed, low, high), or the bytes in place of the rest
    inputs: dict  # name -> what --set gives it
    persistent: tuple = ()  # what another graph may share: declarations, counters, tables, growing ones


def broadcast(*shapes):
    rank = max(map(len, shapes))
    out = []
    for i in range(rank):
        dims = {s[i - rank + len(s)] for s in shapes if i - rank + len(s) >= 0} - {1}
        if len(dims) > 1:
            return None
        out.append(dims.pop() if dims else 1)
    return tuple(out)


class Maker:
    def __init__(self, rng, ops, prefix):
        self.rng, self.ops, self.prefix = rng, ops, prefix
        self.sections = {"dynamic": [], "volatile": [], "constant": [], "persistent": []}
        self.values = []  # what can be read
        self.writable = []  # assigned temporaries
        self.tensors, self.inputs, self.blocks = {}, {}, []
        self.assigned, self.lines, self.n = [], [], 0
        self.depth, self.indices = 1, []
        self.counters, self.tables, self.growing = [], [], []
        self.open = []  # values with lengths that only the run knows
        self.cases = None  # cases(op) -> a list of calls with their tensors
        self.lent, self.was_lent = set(), []
        self.in_entry = True

    # -- names and declarations --

    def name(self, stem):
        self.n += 1
        return f"{self.prefix}{stem}{self.n}"

    def declare(self, kind, stem, dtype, shape, more=""):
        name = self.name(stem)
        dims = f"[{', '.join(map(str, shape))}]" if shape else ""
        self.sections[kind].append(f"  {name}: {dtype}{dims}{more};")
        return Value(name, dtype, tuple(shape))

    def constant(self, dtype, shape, low=None, high=None):
        v = self.declare("constant", "w", dtype, shape)
        lo, hi = value_range(dtype)
        self.tensors[v.name] = (dtype, tuple(shape), self.rng.getrandbits(30),
                                lo if low is None else low, hi if high is None else high)  # fmt: skip
        return v

    def dynamic(self, dtype, shape):
        v = self.declare("dynamic", "x", dtype, shape)
        lo, hi = value_range(dtype)
        self.inputs[v.name] = f"random:{self.rng.getrandbits(20)}:{lo}:{hi}"
        return v

    def shape(self, rank=None):
        while True:
            rank_ = self.rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4)) if rank is None else rank
            shape = tuple(self.rng.choice(DIMS) for _ in range(rank_))
            if self.rng.random() < 0.01 and shape:
                shape = (0,) + shape[1:]
            if math.prod(shape) <= MOST_ELEMENTS:
                return shape

    def readable(self):
        return [v for v in self.values if v.name not in self.lent]

    def pick(self, dtypes=None, test=None):
        """A value that may be read, of one of these dtypes; a new constant when there is none."""
        fits = [v for v in self.readable() if (not dtypes or v.dtype in dtypes) and (not test or test(v))]
        if fits and self.rng.random() < 0.9:
            return self.rng.choice(fits[-6:] if self.rng.random() < 0.6 else fits)
        known = [d for d in DTYPES if not dtypes or d in dtypes]
        if not known:
            return None
        shape = self.shape()
        while test and not test(Value("", known[0], shape)):
            shape = self.shape()
        return self.constant(self.rng.choice(known), shape)

    def output(self, dtype, shape):
        """Where a result goes: something of that type that may be written, or something new."""
        fits = [v for v in self.writable if (v.dtype, v.shape) == (dtype, shape) and v.name not in self.lent]
        if fits and self.rng.random() < 0.35:
            return self.rng.choice(fits)
        if self.in_entry and self.rng.random() < 0.8:
            v = Value(self.name("t"), dtype, tuple(shape))
            dims = f"[{', '.join(map(str, shape))}]" if shape else ""
            self.assigned.append(f"  assign {v.name}: {dtype}{dims};")
        else:
            v = self.declare("volatile", "v", dtype, shape)
        self.writable.append(v)
        return v

    def put(self, text):
        self.lines.append("  " * self.depth + text)

    def known(self, v):
        if v not in self.values:
            self.values.append(v)

    # -- ops --

    def emit(self, op, args, attrs, dtype, shape):
        required = {a["name"] for a in op["attrs"] if a["required"]}
        if math.prod(shape) > MOST_ELEMENTS or not required <= set(attrs):
            return False
        out = self.output(dtype, tuple(shape))
        words = [v.name for v in args] + [f"{k}={w}" for k, w in attrs.items()]
        self.put(f"op {op['name']}({', '.join(words)}) >> {out.name};")
        self.known(out)
        return True

    def result_dtype(self, op, first):
        rule = op["outputs"][0]["dtypes"].split()[0]
        return first if rule in ("same", "acc") else rule

    def allowed(self, op, k=0):
        return set(op["dtypes"])

    def attr(self, op, dtype):
        """Some of the optional attributes of an elementwise op."""
        attrs, rng = {}, self.rng
        names = {a["name"]: a for a in op["attrs"]}
        number = (lambda: round(rng.uniform(-3, 3), 3)) if is_float(dtype) else (lambda: rng.randint(*value_range(dtype)))
        if op["name"] == "clamp":
            low, high = sorted((number(), number()))
            attrs = {"min": low, "max": high}
        elif op["name"] in ("shl", "shr"):
            attrs = {"bits": rng.randint(0, 9)}
        elif op["name"] in ("fill", "fill_nan_like"):
            attrs = {"value": "true" if dtype == "bool" else number()}
        elif op["name"] == "relu" and is_float(dtype) and rng.random() < 0.6:
            attrs = {"negative_slope": round(rng.uniform(0, 1), 2)}
            if rng.random() < 0.5:
                attrs["clamp_max"] = round(rng.uniform(0.1, 2), 2)
        elif op["name"] == "round" and rng.random() < 0.5:
            attrs = {"mode": '"half_even"'}
        elif "div_by_zero_mask" in names and rng.random() < 0.5:
            attrs = {"div_by_zero_mask": number()}
        elif "nan" in names and rng.random() < 0.3:
            attrs = {"nan": '"ignore"'}
        return attrs

    def same(self, op):
        x = self.pick(self.allowed(op))
        if not x:
            return False
        if op["name"] == "cast":
            to = self.rng.choice(DTYPES)
            attrs = {"to": to}
            if self.rng.random() < 0.4:
                attrs["rounding_mode"] = '"' + self.rng.choice(("trunc", "floor", "ceil", "nearest", "nearest_even")) + '"'
            if self.rng.random() < 0.3:
                attrs["saturate"] = "false"
            return self.emit(op, [x], attrs, to, x.shape)
        return self.emit(op, [x], self.attr(op, x.dtype), self.result_dtype(op, x.dtype), x.shape)

    def scalar_or_same(self, op):
        x = self.pick(self.allowed(op))
        return x and self.emit(op, [x], {}, "bool", self.rng.choice(((), x.shape)))

    def broadcast(self, op):
        x = self.pick(self.allowed(op))
        if not x:
            return False
        args = [x]
        for port in op["inputs"][1:]:
            if port["optional"]:
                continue
            wanted = {"bool"} if port["name"] == "cond" else {x.dtype}
            y = self.pick(wanted, lambda v: broadcast(v.shape, *(a.shape for a in args)) is not None)
            args.append(y)
        if op["inputs"][0]["name"] == "cond":  # where(cond, a, b)
            a = self.pick(set(op["dtypes"]) - {"bitset"})
            args = [self.pick({"bool"}, lambda v: broadcast(v.shape, a.shape) is not None), a]
            args.append(self.pick({a.dtype}, lambda v: broadcast(v.shape, *(b.shape for b in args)) is not None))
            return self.emit(op, args, {}, a.dtype, broadcast(*(a.shape for a in args)))
        shape = broadcast(*(a.shape for a in args))
        return self.emit(op, args, self.attr(op, x.dtype), self.result_dtype(op, x.dtype), shape)

    def axes(self, x):
        n = self.rng.randint(1, len(x.shape))
        axes = sorted(self.rng.sample(range(len(x.shape)), n))
        return axes, [a - len(x.shape) if self.rng.random() < 0.3 else a for a in axes]

    def reduce(self, op):
        x = self.pick(self.allowed(op), lambda v: v.shape)
        axes, written = self.axes(x)
        keep = self.rng.random() < 0.4
        shape = tuple(1 if i in axes else d for i, d in enumerate(x.shape) if keep or i not in axes)
        attrs = {"axes": written, **({"keepdims": "true"} if keep else {})}
        return self.emit(op, [x], attrs, x.dtype, shape)

    def argreduce(self, op):
        x = self.pick(self.allowed(op), lambda v: v.shape and 0 not in v.shape)
        axis = self.rng.randrange(len(x.shape))
        keep = self.rng.random() < 0.4
        shape = tuple(1 if i == axis else d for i, d in enumerate(x.shape) if keep or i != axis)
        attrs = {"axis": axis, **({"keepdims": "true"} if keep else {})}
        if self.rng.random() < 0.3:
            attrs["select_first"] = "false"
        return self.emit(op, [x], attrs, self.rng.choice(("i64", "i32")), shape)

    def along_axes(self, op):
        x = self.pick(self.allowed(op), lambda v: v.shape)
        names = {a["name"] for a in op["attrs"]}
        axes, written = self.axes(x)
        if op["name"] == "roll":
            attrs = {"axes": written, "shifts": [self.rng.randint(-3, 3) for _ in axes]}
        elif op["name"] == "iota":
            attrs = {"axis": written[0]}
        elif "axes" in names:
            attrs = {"axes": written}
        else:
            attrs = {"axis": written[0]}
            for flag in ("exclusive", "reverse"):
                if flag in names and self.rng.random() < 0.3:
                    attrs[flag] = "true"
        return self.emit(op, [x], attrs, self.result_dtype(op, x.dtype), x.shape)

    def matmul(self, op):
        x = self.pick(self.allowed(op) & set(DTYPES), lambda v: v.shape and 0 not in v.shape)
        n = self.rng.choice(DIMS)
        turned = self.rng.random() < 0.3 and "transpose_b" in {a["name"] for a in op["attrs"]}
        shape = (n, x.shape[-1]) if turned else (x.shape[-1], n)
        w = self.constant(x.dtype, shape)
        out = x.shape[:-1] + (n,)
        return self.emit(op, [x, w], {"transpose_b": "true"} if turned else {}, self.result_dtype(op, x.dtype), out)

    def gather(self, op):
        x = self.pick(self.allowed(op) & set(DTYPES), lambda v: v.shape and 0 not in v.shape)
        axis = self.rng.randrange(len(x.shape))
        n = x.shape[axis]
        beyond = self.rng.random() < 0.05  # an index out of range: both must say so
        idx = self.constant(self.rng.choice(("i32", "i64")), self.shape(self.rng.choice((0, 1, 1, 2))), -n, n - 1 + beyond)
        return self.emit(op, [x, idx], {"axis": axis}, x.dtype, x.shape[:axis] + idx.shape + x.shape[axis + 1 :])

    def transpose(self, op):
        x = self.pick(set(DTYPES), lambda v: len(v.shape) > 1)
        perm = self.rng.sample(range(len(x.shape)), len(x.shape))
        return self.emit(op, [x], {"perm": perm}, x.dtype, tuple(x.shape[p] for p in perm))

    def reshape(self, op):
        x = self.pick(set(DTYPES), lambda v: v.shape)
        n, shape = math.prod(x.shape), []
        for d in (2, 3, 4, 5, 7):
            if n and n % d == 0 and self.rng.random() < 0.5:
                shape.append(d)
                n //= d
        return self.emit(op, [x], {}, x.dtype, (*shape, n))

    def unsqueeze(self, op):
        x = self.pick(set(DTYPES), lambda v: len(v.shape) < 4)
        axis = self.rng.randint(0, len(x.shape))
        return self.emit(op, [x], {"axes": [axis]}, x.dtype, x.shape[:axis] + (1,) + x.shape[axis:])

    def concat(self, op):
        x = self.pick(set(DTYPES), lambda v: v.shape)
        axis = self.rng.randrange(len(x.shape))
        others = [v for v in self.readable() if v.dtype == x.dtype and len(v.shape) == len(x.shape)
                  and all(i == axis or a == b for i, (a, b) in enumerate(zip(v.shape, x.shape)))]  # fmt: skip
        args = [x] + [self.rng.choice(others) if others else x for _ in range(self.rng.randint(1, 2))]
        shape = list(x.shape)
        shape[axis] = sum(v.shape[axis] for v in args)
        return self.emit(op, args, {"axis": axis}, x.dtype, shape)

    def slice(self, op):
        x = self.pick(set(DTYPES), lambda v: v.shape and 0 not in v.shape)
        axis = self.rng.randrange(len(x.shape))
        n = x.shape[axis]
        start = self.rng.randrange(n)
        end = self.rng.randint(start + 1, n)
        step = self.rng.choice((1, 1, 2, 3))
        shape = list(x.shape)
        shape[axis] = -(-(end - start) // step)
        attrs = {"starts": [start], "ends": [end], "axes": [axis], "steps": [step]}
        return self.emit(op, [x], attrs, x.dtype, shape)

    def pad(self, op):
        x = self.pick(set(DTYPES) - {"bool"}, lambda v: v.shape and 0 not in v.shape)
        before = [self.rng.randint(0, 2) for _ in x.shape]
        after = [self.rng.randint(0, 2) for _ in x.shape]
        mode = self.rng.choice(("constant", "constant", "edge"))
        attrs = {"pads": before + after, "mode": f'"{mode}"'}
        return self.emit(op, [x], attrs, x.dtype, [a + d + b for a, d, b in zip(before, x.shape, after)])

    def tile(self, op):
        x = self.pick(set(DTYPES), lambda v: v.shape)
        repeats = [self.rng.choice((1, 1, 2, 3)) for _ in x.shape]
        return self.emit(op, [x], {"repeats": repeats}, x.dtype, [a * b for a, b in zip(x.shape, repeats)])

    def matrix(self, op):
        x = self.pick(set(DTYPES), lambda v: len(v.shape) > 1)
        return self.emit(op, [x], {"upper": self.rng.choice(("true", "false"))}, x.dtype, x.shape)

    def along(self, op):
        x = self.pick(self.allowed(op) & set(FLOATS), lambda v: v.shape and 0 not in v.shape)
        return self.emit(op, [x], {"axis": self.rng.randrange(-len(x.shape), len(x.shape))}, x.dtype, x.shape)

    def norm(self, op):
        x = self.pick({"f32", "f16", "f64"} & self.allowed(op), lambda v: v.shape and 0 not in v.shape)
        args = [x, self.constant(x.dtype, x.shape[-1:])]
        return self.emit(op, args, {}, x.dtype, x.shape)

    # -- any op, as the conformance cases call it --

    def case(self):
        """A call of any op at all: inputs are what there is of that type and shape, else the case's own."""
        if not self.cases:
            return False
        fits = self.cases(self.rng)
        if fits is None:
            return False
        args = []
        for dtype, shape, data in fits.inputs:
            same = [v for v in self.readable() if (v.dtype, v.shape) == (dtype, shape) and is_float(dtype)]
            if same and self.rng.random() < 0.7:
                args.append(self.rng.choice(same))
                continue
            v = self.declare("constant", "w", dtype, shape)
            self.tensors[v.name] = (dtype, shape, data)
            args.append(v)
        outs = [self.output(dtype, shape) for dtype, shape in fits.outputs]
        if len({v.name for v in outs}) != len(outs):
            return False
        words = [v.name for v in args] + [f"{k}={w}" for k, w in fits.attrs]
        self.put(f"op {fits.op}({', '.join(words)}) >> {', '.join(v.name for v in outs)};")
        for v in outs:
            self.known(v)
        return True

    # -- lengths that only the run knows --

    def open_output(self, dtype, shape):
        fits = [v for v in self.open if (v.dtype, v.shape) == (dtype, shape)]
        if fits and self.rng.random() < 0.3:
            return self.rng.choice(fits)
        v = Open(self.name("o"), dtype, tuple(shape))
        dims = ", ".join("?" if d is None else str(d) for d in shape)
        if self.in_entry and self.rng.random() < 0.7:
            self.assigned.append(f"  assign {v.name}: {dtype}[{dims}];")
        else:
            self.sections["volatile"].append(f"  {v.name}: {dtype}[{dims}];")
        return v

    def open_known(self, v):
        if v not in self.open:
            self.open.append(v)

    def open_read(self):
        """All or the first entries of a table, or of a matrix that grows."""
        tables = [t for t in self.tables if t[1] and math.prod(t[1]) * math.prod(t[0].shape) <= 2000]
        if self.growing and (not tables or self.rng.random() < 0.4):
            v, rank = self.rng.choice(self.growing)
            scalars = [self.rng.choice([c.name for c in self.counters] + ["0", "1", "2"]) for _ in range(rank)]
            where, shape = self.rng.choice([
                ("[]", (None,) * rank), (f"[{', '.join(scalars)}]", (None,) * rank),
                *([("[0, ]", (None,)), ("[, 0]", (None,)), ("[0..-1, 0..1]", (None, 1))] if rank == 2 else []),
            ])  # fmt: skip
        elif tables:
            v, most = self.rng.choice(tables)
            rest = self.place(most[1:])[1:-1] if len(most) > 1 and self.rng.random() < 0.5 else None
            first = self.rng.choice(["", "0..", "0..-1"] + [f"0..{c.name}" for c in self.counters])
            where = f"[{first}{', ' + rest if rest else ''}]" if first or rest else "[]"
            shape = (None,) + (() if rest else (None,) * (len(most) - 1)) + v.shape
        else:
            return False
        out = self.open_output(v.dtype, shape)
        self.put(f"cache.read {v.name}{where} >> {out.name};")
        self.open_known(out)
        return True

    def open_write(self):
        if not self.growing:
            return False
        v, rank = self.rng.choice(self.growing)
        mine = [x for x in self.open if (x.dtype, x.shape) == (v.dtype, (None,) * rank)]
        if not mine:
            return False
        self.put(f"cache.write {self.rng.choice(mine).name} >> {v.name}[];")  # another shape: both must say so
        return True

    def open_op(self):
        if not self.open:
            return self.open_read()
        x = self.rng.choice(self.open[-4:])
        name, shape, args, attrs, dtype = None, x.shape, [x.name], {}, x.dtype
        fixed = [i for i, d in enumerate(x.shape) if d is not None]
        kind = self.rng.choice(("map", "map", "two", "two", "reduce", "scalar", "transpose", "softmax", "matmul",
                                "concat", "cast", "slice", "pad", "gather", "flat", "transfer"))  # fmt: skip
        axis = self.rng.randrange(len(x.shape))
        if kind == "map":
            name = self.rng.choice(("neg", "abs", "relu", "sign")) if not x.dtype.startswith(("u", "b")) else None
            dtype = "i8" if name == "sign" else dtype
        elif kind == "two":
            others = [v for v in self.open if (v.dtype, v.shape) == (x.dtype, x.shape)]
            name, args = self.rng.choice(("add", "mul", "max")), [x.name, self.rng.choice(others).name]
        elif kind == "scalar":
            name, args = self.rng.choice(("add", "mul")), [x.name, self.constant(x.dtype, ()).name]
        elif kind == "reduce":
            name, attrs = self.rng.choice(("sum_axis", "max_axis", "mean_axis")), {"axes": [axis]}
            shape = shape[:axis] + shape[axis + 1 :]
        elif kind == "transpose" and len(shape) > 1:
            perm = self.rng.sample(range(len(shape)), len(shape))
            name, attrs, shape = "transpose", {"perm": perm}, tuple(shape[p] for p in perm)
        elif kind == "softmax" and is_float(x.dtype):
            name, attrs = "softmax", {"axis": axis}
        elif kind == "matmul" and shape[-1] and is_float(x.dtype) and len(shape) > 1:
            n = self.rng.choice((1, 3, 4))
            name, args, shape = "matmul", [x.name, self.constant(x.dtype, (shape[-1], n)).name], (*shape[:-1], n)
        elif kind == "concat":
            name, args, attrs = "concat", [x.name, x.name], {"axis": axis}
            shape = shape[:axis] + (shape[axis] and 2 * shape[axis],) + shape[axis + 1 :]
        elif kind == "cast":
            name, dtype = "cast", self.rng.choice(("f32", "i32", "f16", "i8"))
            attrs = {"to": dtype}
        elif kind == "slice":
            name, attrs = "slice", {"starts": [self.rng.choice((0, 1, -2))], "ends": [self.rng.choice((2, 100, -1))], "axes": [axis]}
            shape = shape[:axis] + (None,) + shape[axis + 1 :]
        elif kind == "pad" and x.dtype != "bool":
            name, attrs = "pad", {"pads": [1] * len(shape) + [0] * len(shape)}
            shape = tuple(d and d + 1 for d in shape)
        elif kind == "gather" and shape[axis]:
            idx = self.constant("i64", (2,), 0, shape[axis] - 1)
            name, args, attrs = "gather", [x.name, idx.name], {"axis": axis}
            shape = shape[:axis] + (2,) + shape[axis + 1 :]
        elif kind == "flat" and len(fixed) < len(shape):
            name, attrs, shape = "flatten", {"axis": axis}, (None, None)
        if kind != "transfer" and (not name or len(shape) == 0):
            return False
        if kind == "transfer":
            out = self.open_output(dtype, tuple(None for _ in shape))
            if out == x:
                return False
            self.put(f"transfer {x.name} >> {out.name};")
        else:
            out = self.open_output(dtype, shape)
            words = args + [f"{k}={w}" for k, w in attrs.items()]
            self.put(f"op {name}({', '.join(words)}) >> {out.name};")
        self.open_known(out)
        return True

    def open_any(self):
        if self.indices or not self.in_entry:  # lengths would have to be followed through loops
            return False
        kind = self.rng.random()
        return self.open_read() if kind < 0.3 else self.open_write() if kind < 0.4 else self.open_op()

    def grower(self):
        name, rank = self.name("A"), self.rng.choice((1, 2, 2))
        axes = [f"{self.prefix}g{self.n}_{i}" for i in range(rank)]
        first = [self.rng.choice((1, 2, 3)) for _ in axes]
        bounds = ", ".join(f"{a}={self.rng.choice((2, 4, 7))}" for a in axes)
        dtype = self.rng.choice(("f32", "f32", "f16", "i32", "i8"))
        kind = f"@auto_dim({', '.join(axes)}) @{self.rng.choice(('cap', 'fixed'))}({bounds})"
        self.sections["persistent"].append(f"  {name}({', '.join(axes)}): {dtype}[{', '.join(map(str, first))}] {kind};")
        self.growing.append((Value(name, dtype, tuple(first)), rank))

    def op(self):
        """One op; what cannot be made from what there is, is not made."""
        made = {w for w in dir(self) if not w.startswith("_")}
        fits = [o for o in self.ops if o["shape"] in made and o["class"] != "custom"]
        classes = sorted({o["class"] for o in fits})
        cls = self.rng.choice(classes + ["map", "map"])
        op = self.rng.choice([o for o in fits if o["class"] == cls])
        return getattr(self, op["shape"])(op)

    # -- statements --

    def counter(self):
        v = self.declare("persistent", "n", "i32", (), f" @init({self.rng.randint(0, 2)})")
        self.counters.append(v)

    def table(self):
        name, shape = self.name("K"), self.shape()
        dtype = self.rng.choice(DTYPES)
        dims = f"[{', '.join(map(str, shape))}]" if shape else ""
        rank = self.rng.choice((0, 1, 1, 1, 2))
        axes = [f"{self.prefix}a{self.n}_{i}" for i in range(rank)]
        most = [self.rng.choice((2, 3, 6, 12)) for _ in axes]
        bounds = ", ".join(f"{a}={m}" for a, m in zip(axes, most))
        kind = f" @table @{self.rng.choice(('cap', 'fixed'))}({bounds})" if axes else ""
        init = f" @init({self.rng.choice((1, 0.5)) if is_float(dtype) else 1})" if self.rng.random() < 0.3 and dtype != "bool" else ""
        if init and not value_range(dtype)[1] >= 1:
            init = ""
        self.sections["persistent"].append(f"  {name}{'(' + ', '.join(axes) + ')' if axes else ''}: {dtype}{dims}{init}{kind};")
        self.tables.append((Value(name, dtype, shape), most))

    def place(self, most):
        """One index per axis of a table: usually inside, sometimes not."""
        words = []
        for m in most:
            choice = self.rng.random()
            if choice < 0.3 and self.counters:
                words.append(self.rng.choice(self.counters).name)
            elif choice < 0.5 and self.indices:
                words.append(self.rng.choice(self.indices)[0])
            else:
                words.append(str(self.rng.randrange(m)))
        return f"[{', '.join(words)}]" if words else ""

    def cache(self):
        kind = self.rng.random()
        if kind < 0.25 and self.counters:
            c = self.rng.choice(self.counters).name
            self.put(self.rng.choice((f"cache.increment {c};", f"cache.increment 2 {c};", f"cache.decrement {c};"))
                     if self.rng.random() < 0.9 else f"cache.reset {c};")  # fmt: skip
        elif not self.tables:
            return False
        else:
            v, most = self.rng.choice(self.tables)
            if kind < 0.6:
                source = self.pick({v.dtype}, lambda x: x.shape == v.shape) if 0 not in v.shape else None
                if not source or source.shape != v.shape:
                    return False
                self.put(f"cache.write {source.name} >> {v.name}{self.place(most)};")
            elif kind < 0.93:
                if most and self.rng.random() < 0.3:  # a slice of the last axis
                    a = self.rng.randrange(most[-1])
                    b = self.rng.randint(a + 1, most[-1])
                    where = self.place(most[:-1])
                    where = f"{where[:-1]}, {a}..{b}]" if where else f"[{a}..{b}]"
                    out = self.output(v.dtype, (b - a, *v.shape))
                else:
                    where, out = self.place(most), self.output(v.dtype, v.shape)
                if math.prod(out.shape) > MOST_ELEMENTS:
                    return False
                self.put(f"cache.read {v.name}{where} >> {out.name};")
                self.known(out)
            else:
                self.put(f"cache.reset {v.name}{self.place(most) if self.rng.random() < 0.5 else ''};")
        return True

    def transfer(self):
        v = self.pick()
        out = self.output(v.dtype, v.shape)
        if out == v:
            return False
        self.put(f"transfer {v.name} >> {out.name};")
        self.known(out)
        return True

    def loop(self):
        if self.depth > 2:
            return False
        index, first = self.name("i"), self.rng.randint(0, 1)
        end = self.rng.randint(0, 3)
        self.put(f"loop {self.name('l')} ({index} in {first}..{end}) {{")
        self.depth += 1
        self.indices.append((index, end))
        before = len(self.values)
        self.body(self.rng.randint(1, 4))
        if end <= first:  # never runs: what it would have written is still zeros, and may be read
            self.values[before:] = self.values[before:]
        self.indices.pop()
        self.depth -= 1
        self.put("}")
        return True

    def branch(self):
        if self.indices or not self.in_entry:
            return False
        cond = self.pick({"bool", "i32", "f32"}, lambda v: v.shape == ())
        names = []
        for _ in range(2):
            name = self.name("b")
            lines, depth = self.lines, self.depth
            self.lines, self.depth, self.in_entry = [f"block {name} {{"], 1, False
            self.body(self.rng.randint(1, 3))
            self.lines.append("  return;\n}\n")
            self.blocks.append("\n".join(self.lines))
            self.lines, self.depth, self.in_entry = lines, depth, True
            names.append(name)
        self.put(f"branch {cond.name} {names[0]} {names[1]};")
        return True

    def consumers(self):
        """Something is lent, one or two blocks work on it meanwhile, and give it back."""
        if self.indices or not self.in_entry or self.lent:
            return False
        mine = [v for v in self.writable if v in self.values and v not in self.was_lent]
        if not mine:
            return False
        v = self.rng.choice(mine)
        self.was_lent.append(v)  # one block may change it, in the whole graph
        seen, writable = list(self.values), list(self.writable)
        made = []
        for k in range(self.rng.randint(1, 2)):
            name = self.name("c")
            lines, depth = self.lines, self.depth
            self.lines, self.depth, self.in_entry = [f"block {name} {{", f"  await {v.name};"], 1, False
            self.values, self.writable = [x for x in seen if x == v or x not in writable], []
            tables, counters = self.tables, self.counters
            self.tables, self.counters = [], []
            for _ in range(self.rng.randint(1, 3)):
                self.op()
            if k == 0 and self.rng.random() < 0.5 and is_float(v.dtype):
                self.put(f"op neg({v.name}) >> {v.name};")
            self.lines.append(f"  yield {v.name};\n}}\n")
            self.blocks.append("\n".join(self.lines))
            made += self.writable
            self.tables, self.counters = tables, counters
            self.lines, self.depth, self.in_entry = lines, depth, True
        self.values, self.writable = seen, writable
        self.put(f"yield {v.name};")
        self.lent.add(v.name)
        for _ in range(self.rng.randint(0, 2)):
            self.op()
        self.lent.clear()
        self.put(f"await {v.name};")
        for x in made:
            self.known(x)
        return True

    def body(self, n):
        for _ in range(n):
            for _ in range(10):
                kind = self.rng.random()
                way = (self.op if kind < 0.44 else self.case if kind < 0.60 else self.open_any if kind < 0.72 else self.cache if kind < 0.84 else self.transfer if kind < 0.88 else
                       self.loop if kind < 0.93 else self.branch if kind < 0.96 else self.consumers if kind < 0.98 else None)  # fmt: skip
                if way is None:
                    self.put("barrier;")
                    break
                if way():
                    break

    def windows(self):
        """A chain of convolutions and their like, over an input of its own."""
        from chains import Chain

        dtype = self.rng.choice(("f32", "i8"))
        x = self.dynamic(dtype, (self.rng.choice((1, 1, 2)), self.rng.randint(1, 4), self.rng.randint(5, 16), self.rng.randint(2, 6)))
        chain = Chain(self.rng, dtype, f"{x.name}_", MOST_ELEMENTS)
        known = chain.layers((x.name, *x.shape), self.rng.randint(2, 6))[1:]
        self.sections["constant"] += chain.constants
        self.tensors.update(chain.tensors)
        self.assigned += chain.assigned
        self.lines += chain.lines
        for name, *shape in known[-1:] + self.rng.sample(known, min(len(known), self.rng.randint(0, 1))):
            self.known(Value(name, dtype, tuple(shape)))
            self.writable.append(Value(name, dtype, tuple(shape)))

    def graph(self):
        rng = self.rng
        for _ in range(rng.randint(1, 3)):
            self.values.append(self.dynamic(rng.choice(DTYPES), self.shape()))
        for _ in range(rng.randint(0, 2)):
            self.counter()
        for _ in range(rng.randint(0, 2)):
            self.table()
        if rng.random() < 0.2:
            self.grower()
        if rng.random() < 0.4:
            dtype = rng.choice(FLOATS)
            self.values.append(self.declare("volatile", "v", dtype, self.shape(), f" @init({rng.choice((0.5, -1.0, 2.0))})"))
        self.body(rng.randint(3, 12))
        if rng.random() < 0.2:
            self.windows()
        mine = [v for v in self.values if v in self.writable]
        outputs = rng.sample(mine, rng.randint(1, len(mine))) if mine else [self.values[0]]
        outputs += rng.sample(self.open, min(len(self.open), rng.randint(0, 3)))
        self.put(f"return {', '.join(v.name for v in outputs)};")
        sections = [f"{kind} {{\n" + "\n".join(lines) + "\n}\n" for kind, lines in self.sections.items() if lines]
        entry = "block entry {\n" + "\n".join([*self.assigned, *self.lines]) + "\n}\n"
        shared = (self.sections["persistent"], self.counters, self.tables, self.growing)
        return Graph("\n".join([*sections, entry, *self.blocks]), self.tensors, self.inputs, shared)


def make(seed, ops, prefix, cases=None, beside=None):
    """The graph of the seed; `beside` another one it shares what lasts."""
    maker = Maker(random.Random(seed), ops, prefix)
    maker.cases = cases
    if beside:
        declared, counters, tables, growing = beside.persistent
        maker.sections["persistent"] = list(declared)
        maker.counters, maker.tables, maker.growing = list(counters), list(tables), list(growing)
    return maker.graph()
