"""Random graphs in the compact form. Each is also written out in the explicit form by this generator itself, loops
unrolled and every value under a name of its own, so that the lowering is judged by something that does not share it.

    python tests/synthfuzz/compact.py [--count 1000] [--seed 1] [--batch 25] [--out FOLDER] [--bin PATH]

For each graph: lowered text and compact text are one graph, it lays out and checks cleanly; the simulator gives the
same bytes for the compact and the unrolled text, state included; and the synthesized C agrees (`openinfer verify`).
Exit: 0 all agree, 1 something differs.
"""

import argparse
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent.parent
sys.path[:0] = [str(HERE), str(REPO / "python/src")]
from openinfer.oinf import PackageWriter, StreamTensor  # noqa: E402
from openinfer.oinf.random import random_bytes  # noqa: E402

B, D, V, LAYERS, CTX, STEPS = 2, 4, 7, 2, 3, 3
FLOATS = ("f32", "f32", "f16")
MAPS = ("relu", "tanh", "sigmoid", "silu", "abs")
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
POOL = ("x", "y", "h", "a", "b", "l", "step", "q", "gate")
# families of tensors: pattern, shape; every one exists for the layers 0 ... LAYERS - 1, in f32 and f16
FAMILIES = {"W.{}": (D, D), "norm.{}": (D,), "blk.{}.up": (D, 2 * D)}


def tensors():
    found = {}
    for n, (pattern, shape) in enumerate(FAMILIES.items()):
        for dtype in ("f32", "f16"):
            for l in range(LAYERS):
                found[f"{dtype}.{pattern.format(l)}"] = (dtype, shape, 100 * n + l)
    for dtype in ("f32", "f16"):
        found[f"emb.{dtype}"] = (dtype, (V, D), 7)
        found[f"head.{dtype}"] = (dtype, (D, V), 8)
    return found


def write_model(path):
    with PackageWriter(path) as package:
        for name, value in {"B": B, "D": D, "n_layers": LAYERS, "ctx": CTX}.items():
            package.add_sizevar(name, value)
        for name, (dtype, shape, seed) in tensors().items():
            data = random_bytes(dtype, seed, -0.7, 0.7, math.prod(shape))
            package.add_tensor(name, StreamTensor(dtype, shape, data))


def broadcast(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    if any(x != y and 1 not in (x, y) for x, y in zip(a, b)):
        return None
    return tuple(max(x, y) for x, y in zip(a, b))


class Expr:
    """What is written, its types, and how the unrolled text gets it: emit(out, env) -> its names there."""

    def __init__(self, text, types, emit, strength=9):
        self.text, self.types, self.emit, self.strength = text, types, emit, strength

    @property
    def type(self):
        return self.types[0]

    def inside(self, least):
        return self.text if self.strength >= least else f"({self.text})"


class Unrolled:
    """The explicit text being written."""

    def __init__(self):
        self.declared, self.lines, self.n, self.known = [], [], 0, {}

    def new(self, dtype, shape):
        self.n += 1
        dims = f"[{', '.join(map(str, shape))}]" if shape else ""
        self.lines.append(f"  assign val{self.n}: {dtype}{dims};")
        return f"val{self.n}"

    def op(self, name, args, attrs, types):
        outs = [self.new(*t) for t in types]
        words = [*args, *(f"{k}={v}" for k, v in attrs)]
        self.lines.append(f"  op {name}({', '.join(words)}) >> {', '.join(outs)};")
        return outs

    def constant(self, key, dtype, shape, more):
        if (key, dtype) not in self.known:
            name = self.known[key, dtype] = f"k{len(self.known)}"
            dims = f"[{', '.join(map(str, shape))}]" if shape else ""
            self.declared.append(f"  {name}: {dtype}{dims} {more};")
        return self.known[key, dtype]


class Maker:
    def __init__(self, seed):
        self.rng = random.Random(f"compact {seed}")
        self.inputs = {"x": ("f32", (B, D)), "tok": ("i32", (B,)), "step": ("i32", ())}
        if self.rng.random() < 0.5:
            self.inputs["z"] = (self.rng.choice(FLOATS), self.rng.choice(((B, D), (D,), (B, 1))))
        self.caches = {}  # name -> dtype; every row has the shape [B, D]
        for name in self.rng.sample(("kv", "past"), self.rng.choice((0, 1, 1, 2))):
            self.caches[f"{name}_{seed}"] = self.rng.choice(FLOATS)  # graphs of one program share what has one name
        self.written = set()
        self.loops = []  # open ones: index, range
        self.program = []  # functions (out, env) that write the unrolled text
        self.depth = 0

    # -- expressions --

    def call(self, name, args, attrs, types, extra=None):
        """op(args, attrs), at times as a pipe or with hints; `extra(env)`: attributes that only the unrolled text says."""
        words = [f"{k}={v}" for k, v in attrs]
        texts = [a.text for a in args]
        text, strength = f"{name}({', '.join(texts + words)})", 9
        if args and self.rng.random() < 0.25:
            text, strength = f"{args[0].inside(1)} |> {name}({', '.join(texts[1:] + words)})", 1

        def emit(out, env):
            names = [a.emit(out, env)[0] for a in args]
            return out.op(name, names, [*attrs, *(extra(out, env) if extra else [])], types)

        return Expr(text, types, emit, strength)

    def name(self, scope, v):
        return Expr(v, [scope[v]], lambda out, env: [env[v]])

    def model(self, key, dtype, shape):
        return Expr(f'model["{key}"]', [(dtype, shape)],
                    lambda out, env: [out.constant(key, dtype, shape, f'@ref("{key}")')])  # fmt: skip

    def family(self, dtype):
        """A tensor chosen by a loop's index, where there is a loop."""
        pattern, shape = self.rng.choice(list(FAMILIES.items()))
        known = [i for i, n in self.loops if n in (LAYERS, 1)]
        if not known:
            return self.model(f"{dtype}.{pattern.format(self.rng.randrange(LAYERS))}", dtype, shape)
        index = self.rng.choice(known)
        key = f"{dtype}.{pattern}"
        how = self.rng.random()
        text = f'format!("{key.format("{" + index + "}")}")' if how < 0.6 else f'format!("{key.format("{}")}", {index})'
        if how > 0.9:
            text = f'format!("{key.format("{}")}", ({index}+1)%n_layers)'

        def emit(out, env):
            l = (env[f"#{index}"] + (how > 0.9)) % LAYERS
            return [out.constant(key.format(l), dtype, shape, f'@ref("{key.format(l)}")')]

        return Expr(f"model[{text}]", [(dtype, shape)], emit)

    def literal(self, dtype):
        if self.rng.random() < 0.3:
            value = str(self.rng.randint(1, 3))
        else:
            value = str(self.rng.choice((0.5, 0.25, 1.5, -2.0, 1e-3)))
        return value, Expr(value, [(dtype, ())], lambda out, env: [out.constant(value, dtype, (), f"@init({value})")])

    def leaf(self, scope, dtype):
        fits = [v for v, t in scope.items() if t[0] == dtype]
        kind = self.rng.random()
        if fits and kind < 0.75:
            return self.name(scope, self.rng.choice(fits))
        if kind < 0.9:
            return self.family(dtype)
        tok = [v for v, t in scope.items() if t == ("i32", (B,))]
        if not tok:
            return self.family(dtype)
        table = self.model(f"emb.{dtype}", dtype, (V, D))
        return self.call("gather", [table, self.name(scope, self.rng.choice(tok))], [], [(dtype, (B, D))])

    def binary(self, scope, dtype, depth):
        op = self.rng.choice(("add", "add", "sub", "mul", "mul", "div"))
        x = self.expr(scope, dtype, depth - 1)
        if op == "div" or self.rng.random() < 0.35:
            text, y = self.literal(dtype)
            if self.rng.random() < 0.4 and op != "div":
                x, y = y, x
        else:
            y = self.expr(scope, dtype, depth - 1)
        shape = broadcast(x.type[1], y.type[1])
        if shape is None or math.prod(shape) > 400:
            return x if x.type[1] else y
        least = 2 if op in ("add", "sub") else 3
        types = [(dtype, shape)]
        return Expr(f"{x.inside(least)} {SIGNS[op]} {y.inside(least + 1)}", types,
                    lambda out, env: out.op(op, [a.emit(out, env)[0] for a in (x, y)], [], types), least)  # fmt: skip

    def expr(self, scope, dtype, depth):
        rng = self.rng
        if depth == 0:
            return self.leaf(scope, dtype)
        kind = rng.random()
        x = self.expr(scope, dtype, depth - 1)
        shape = x.type[1]
        if kind < 0.35:
            return self.binary(scope, dtype, depth)
        if kind < 0.5:
            return self.call(rng.choice(MAPS), [x], [], x.types)
        if kind < 0.55:
            return Expr(f"-{x.inside(9)}", x.types, lambda out, env: out.op("neg", x.emit(out, env), [], x.types), 4)
        if kind < 0.75 and shape and shape[-1] == D:
            w = rng.choice([self.family(dtype), self.model(f"head.{dtype}", dtype, (D, V))])
            if len(w.type[1]) == 2:
                return self.call("matmul", [x, w], [], [(dtype, (*shape[:-1], w.type[1][-1]))])
            return self.call("rmsnorm", [x, w], [("eps", "1e-5")], x.types)
        if kind < 0.82 and shape:
            return self.call("softmax", [x], [("axis", "-1")], x.types)
        if kind < 0.9 and shape:
            to = (dtype, (*shape[:-1], shape[-1] * 2))
            return self.call("concat", [x, x], [("axis", "-1")], [to])
        if kind < 0.97:
            other = "f16" if dtype == "f32" else "f32"
            y = self.expr(scope, other, depth - 1)
            types = [(dtype, y.type[1])]
            how = rng.choice(("cast({}, {})", "cast({}, to={})"))
            return Expr(how.format(y.text, dtype), types,
                        lambda out, env: out.op("cast", y.emit(out, env), [("to", dtype)], types))  # fmt: skip
        return x

    # -- statements: each returns its lines, and puts what it does into `to` --

    def may_bind(self, scope, outer, v, type_):
        if v in self.caches or v == "l" and self.loops:
            return False
        return not self.loops or v not in scope or scope[v] == type_

    def target(self, scope, type_):
        known = [v for v in POOL if self.may_bind(scope, None, v, type_)]
        return self.rng.choice(known) if known else None

    def bind(self, scope, to):
        e = self.expr(scope, self.rng.choice(FLOATS), self.rng.randint(1, 3))
        v = self.target(scope, e.type)
        if v is None:
            return []
        hints = " @ { fuse: true }" if e.strength < 9 and self.rng.random() < 0.2 else ""
        known = v in scope and self.rng.random() < 0.5
        scope[v] = e.type

        def run(out, env):
            env[v] = e.emit(out, env)[0]
            env.pop(f"len {v}", None)

        to.append(run)
        return [f"{'' if known else 'let '}{v} = {e.text}{hints};"]

    def copy(self, scope, to):
        source = self.rng.choice(list(scope))
        v = self.target(scope, scope[source])
        if v is None:
            return []
        scope[v] = scope[source]

        def run(out, env):
            env[v] = env[source]
            if f"len {source}" in env:
                env[f"len {v}"] = env[f"len {source}"]
            else:
                env.pop(f"len {v}", None)

        to.append(run)
        return [f"let {v} = {source};"]

    def split(self, scope, to):
        fits = [v for v, t in scope.items() if t[1] and t[1][-1] % 2 == 0 and t[0] in FLOATS]
        if not fits:
            return []
        source = self.rng.choice(fits)
        dtype, shape = scope[source]
        half = (dtype, (*shape[:-1], shape[-1] // 2))
        names = [v for v in POOL if self.may_bind(scope, None, v, half)]
        if len(names) < 2:
            return []
        a, b = self.rng.sample(names, 2)
        scope[a] = scope[b] = half

        def run(out, env):
            env[a], env[b] = out.op("split", [env[source]], [("axis", "-1")], [half, half])
            env.pop(f"len {a}", None)
            env.pop(f"len {b}", None)

        to.append(run)
        return [f"let ({a}, {b}) = split({source}, axis=-1);"]

    def layer(self):
        """A layer as written, and its number."""
        known = [i for i, n in self.loops if n in (LAYERS, 1)]
        if known and self.rng.random() < 0.8:
            index = self.rng.choice(known)
            return index, lambda env: env[f"#{index}"]
        l = self.rng.randrange(LAYERS)
        return str(l), lambda env: l

    def when(self, scope):
        """A step as written, and as the unrolled text says it (it is below CTX)."""
        if scope.get("step") == ("i32", ()) and self.rng.random() < 0.7:
            return "step", lambda env: env["step"]
        n = self.rng.randrange(CTX)
        return str(n), lambda env: str(n)

    def write(self, scope, to):
        fits = [v for v, t in scope.items() if t[1] == (B, D) and t[0] in FLOATS]
        if not fits or not self.caches:
            return []
        kv, (layer, l), (step, s) = self.rng.choice(list(self.caches)), self.layer(), self.when(scope)
        k, v = self.rng.choice(fits), self.rng.choice(fits)
        dtype = self.caches[kv]
        self.written.add(kv)

        def run(out, env):
            for name, x, t in ((k, env[k], "k"), (v, env[v], "v")):
                if scope_types[name] != dtype:
                    (x,) = out.op("cast", [x], [("to", dtype)], [(dtype, (B, D))])
                out.lines.append(f"  cache.write {x} >> {kv}_{t}[{l(env)}, {s(env)}];")

        scope_types = {k: scope[k][0], v: scope[v][0]}
        to.append(run)
        return [f"kv_write({kv}, layer={layer}, step={step}, k={k}, v={v});"]

    def read(self, scope, to):
        """Rows so far; and, mostly, attention over them."""
        usable = sorted(self.written)
        type_ = None
        if not usable:
            return []
        kv = self.rng.choice(usable)
        type_ = (self.caches[kv], (CTX, B, D))
        names = [v for v in ("k_all", "v_all", *POOL) if self.may_bind(scope, None, v, type_)]
        if len(names) < 2:
            return []
        k, v = self.rng.sample(names, 2)
        (layer, l), (step, s) = self.layer(), self.when(scope)
        scope[k] = scope[v] = type_

        def run(out, env):
            # the step may be k or v itself
            at = s(env)
            for name, t in ((k, "k"), (v, "v")):
                u = out.new(*type_)
                out.lines.append(f"  cache.read {kv}_{t}[{l(env)}, 0..{CTX}] >> {u};")
                env[name] = u
            if at.isdigit():
                env[f"len {k}"] = str(int(at) + 1)
            else:
                one = out.constant("1", "i32", (), "@init(1)")
                (env[f"len {k}"],) = out.op("add", [at, one], [], [("i32", ())])
            env.pop(f"len {v}", None)

        to.append(run)
        lines = [f"let ({k}, {v}) = kv_read({kv}, layer={layer}, step={step});"]
        return lines + (self.attend(scope, to) if self.rng.random() < 0.8 else [])

    def attend(self, scope, to):
        rows = [v for v, t in scope.items() if t[1] == (CTX, B, D)]
        queries = [v for v, t in scope.items() if t[1] == (B, D)]
        pairs = [(q, k, v) for q in queries for k in rows for v in rows if scope[k][0] == scope[q][0] == scope[v][0]]
        if not pairs:
            return []
        q, k, v = self.rng.choice(pairs)
        type_ = scope[q]
        name = self.target(scope, type_)
        if name is None:
            return []
        scope[name] = type_

        def run(out, env):
            more = [("kv_len", env[f"len {k}"])] if f"len {k}" in env else []
            (env[name],) = out.op("sdpa", [env[q], env[k], env[v]], more, [type_])
            env.pop(f"len {name}", None)

        to.append(run)
        return [f"let {name} = sdpa({q}, {k}, {v}) @ {{ fuse: true }};"]

    def loop(self, scope, to):
        index = self.rng.choice([i for i in ("l", "i", "j", "n") if i not in scope and i not in [x for x, _ in self.loops]])
        turns = self.rng.choice((LAYERS, LAYERS, 1, 3, 0))
        inner, body = dict(scope), []
        self.loops.append((index, turns))
        self.depth += 1
        before = set(self.written)
        lines = []
        for _ in range(self.rng.randint(1, 4)):
            lines += ["  " + x for x in self.statement(inner, body)]
        self.depth -= 1
        self.loops.pop()
        if turns == 0:
            self.written = before if not self.written - before else self.written
        end = "n_layers" if turns == LAYERS and self.rng.random() < 0.6 else str(turns)
        # what is bound outside keeps its type; what is new ends
        changed = [v for v in scope if any(x.strip().startswith((f"{v} = ", f"let {v} = ")) for x in lines)]
        value = self.rng.choice(changed) if changed and self.rng.random() < 0.4 else None

        def run(out, env):
            for turn in range(turns):
                env[f"#{index}"] = turn
                for f in body:
                    f(out, env)
                for v in set(inner) - set(scope):
                    env.pop(v, None)
                    env.pop(f"len {v}", None)

        to.append(run)
        head = f"for {index} in 0..{end} {{"
        return [f"let {value} = {head}" if value else head, *lines, "};" if value else "}"]

    def statement(self, scope, to):
        kind = self.rng.random()
        if kind < 0.5:
            return self.bind(scope, to)
        if kind < 0.56:
            return self.copy(scope, to)
        if kind < 0.64:
            return self.split(scope, to)
        if kind < 0.74:
            return self.write(scope, to)
        if kind < 0.82:
            return self.read(scope, to)
        if kind < 0.86:
            return self.attend(scope, to)
        return self.loop(scope, to) if self.depth < 2 else self.bind(scope, to)

    def graph(self):
        scope, body, lines = dict(self.inputs), [], []
        for kv in self.caches:  # a first row says what shape rows have
            lines.append(f"kv_write({kv}, layer=0, step=step, k=x, v=x);")
            self.written.add(kv)

            def run(out, env, kv=kv):
                x = env["x"]
                if self.caches[kv] != "f32":
                    (x,) = out.op("cast", [x], [("to", self.caches[kv])], [(self.caches[kv], (B, D))])
                    (y,) = out.op("cast", [env["x"]], [("to", self.caches[kv])], [(self.caches[kv], (B, D))])
                else:
                    y = x
                out.lines.append(f"  cache.write {x} >> {kv}_k[0, {env['step']}];")
                out.lines.append(f"  cache.write {y} >> {kv}_v[0, {env['step']}];")

            body.append(run)
        for _ in range(self.rng.randint(2, 7)):
            lines += self.statement(scope, body)
        outputs = self.rng.sample(sorted(scope), min(len(scope), self.rng.randint(1, 3)))
        return self.compact(lines, outputs), self.unrolled(body, outputs)

    # -- the two texts --

    def compact(self, lines, outputs):
        sizes = {B: self.rng.choice(("B", str(B))), D: self.rng.choice(("D", str(D)))}
        dims = {n: ", ".join(sizes.get(d, str(d)) for d in s) for n, (_, s) in self.inputs.items()}
        out = ["model: model,", "inputs: {", *(f"  {n}: {t}[{dims[n]}]," for n, (t, _) in self.inputs.items()), "},"]
        if self.caches:
            shape = lambda: self.rng.choice(("", f", shape=[B, {D}]"))  # noqa: E731
            out += ["state: {", *(f"  {n}: kv_cache({t}, layers=n_layers, cap=ctx{shape()})," for n, t in self.caches.items()), "},"]
        return "\n".join([*out, *lines, f"output {', '.join(outputs)};", ""])

    def unrolled(self, body, outputs):
        out, env = Unrolled(), {v: v for v in self.inputs}
        for f in body:
            f(out, env)
        declared = [f"  {n}: {t}{list(s) if s else ''};" for n, (t, s) in self.inputs.items()]
        tables = [f"  {n}_{x}(l, t): {t}[{B}, {D}] @table @fixed(l={LAYERS}, t={CTX});" for n, t in self.caches.items() for x in "kv"]
        return "\n".join([
            "dynamic {", *declared, "}",
            *(["constant {", *out.declared, "}"] if out.declared else []),
            *(["persistent {", *tables, "}"] if tables else []),
            "block entry {", *out.lines, f"  return {', '.join(env[v] for v in outputs)};", "}", "",
        ])  # fmt: skip


class Trial:
    def __init__(self, binary, folder):
        self.bin, self.folder = binary, pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.model = self.folder / "model.oinf"
        write_model(self.model)
        self.n_raised = 0
        self.sets = ["tok=random:3:0:6", "x=random:5:-1:1", "z=random:6:-1:1"]

    def call(self, *words):
        result = subprocess.run([self.bin, *map(str, words)], capture_output=True, text=True, timeout=600)
        assert result.returncode == 0, f"openinfer {' '.join(map(str, words))}: exit {result.returncode}\n{result.stderr[:3000]}"
        return result.stdout

    def json(self, path):
        return self.call("graph", path, "--model", self.model, "--to", "json", "--deterministic")

    def simulate(self, path, inputs, more):
        """The bytes of everything returned, in order, and of the state, step after step."""
        nodes = json.loads(self.json(path))["blocks"]["entry"]["nodes"]
        names = [*nodes[-1]["kind"]["Return"]["values"], *more]
        out = path.with_suffix(".out")
        self.call("run", path, "--model", self.model, *inputs, "--steps", STEPS, "--out", out, "--fetch", ",".join(names))
        return [(out / f"{name}.{step}.npy").read_bytes() for name in names for step in range(STEPS)]

    def inputs(self, text):
        steps = self.folder / "step"
        if not steps.exists():
            import numpy as np

            steps.mkdir()
            for i in range(8):
                np.save(steps / f"{i}.npy", np.array(i % CTX, np.int32))
        sets = [s for s in self.sets if f"  {s.split('=')[0]}: " in text]
        return [w for s in [*sets, f"step=@{steps}/{{step}}.npy"] for w in ("--set", s)]

    def one(self, seed):
        """The path of the compact text, when all its forms agree."""
        maker = Maker(seed)
        compact, unrolled = maker.graph()
        path, lowered, other = (self.folder / f"{stem}{seed}.oi" for stem in ("c", "low", "u"))
        path.write_text(compact)
        other.write_text(unrolled)
        self.call("check", "--strict", path, "--model", self.model)
        lowered.write_text(self.call("graph", path, "--model", self.model, "--to", "text"))
        assert self.json(path) == self.json(lowered), f"{path} and {lowered} are different graphs"
        laid_out = self.folder / f"fmt{seed}.oi"
        laid_out.write_text(self.call("fmt", path))
        assert self.json(path) == self.json(laid_out), f"{path} changes when it is laid out"
        self.call("fmt", "--check", laid_out)
        inputs, tables = self.inputs(compact), [f"{n}_{x}" for n in maker.caches for x in "kv"]
        assert self.simulate(path, inputs, tables) == self.simulate(other, inputs, tables), f"{path} and {other} differ"
        back = self.folder / f"back{seed}.oi"
        if self.raised(lowered, back):
            assert self.simulate(path, inputs, tables) == self.simulate(back, inputs, tables), f"{path} and {back} differ"
        return path, inputs

    def raised(self, lowered, back):
        """The lowered text in the compact form again, where that can say it."""
        words = [self.bin, "fmt", "--to", "compact", "--model", self.model, lowered]
        result = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=600)
        assert result.returncode == 0 or set(re.findall(r"error\[(\w+)\]", result.stderr)) == {"E085"}, result.stderr
        back.write_text(result.stdout)
        self.n_raised += result.returncode == 0
        return result.returncode == 0

    def run(self, count, seed, batch):
        for first in range(0, count, batch):
            made = [self.one(seed * 1_000_000 + first + i) for i in range(min(batch, count - first))]
            inputs = max((i for _, i in made), key=len)
            way = [["cpu_scalar", "-O0"], ["cpu_avx2", "-O1"]][first // batch % 2]
            more = ["--per-node"] if way[0] == "cpu_avx2" else ["--no-per-node"]
            self.call("verify", *[p for p, _ in made], "--model", self.model, "--target", way[0], "--cflags", way[1],
                      "--steps", STEPS, "--in-turn", *inputs, *more)  # fmt: skip
            print(f"{min(first + batch, count)} agree", file=sys.stderr)
        print(f"{count} random compact graphs agree (seed {seed}), {self.n_raised} of them also there and back")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=25)
    parser.add_argument("--out", default=None)
    parser.add_argument("--bin", default=os.environ.get("OPENINFER_BIN") or str(REPO / "build/bin/openinfer"))
    args = parser.parse_args()
    try:
        Trial(args.bin, args.out or tempfile.mkdtemp(prefix="compact-")).run(args.count, args.seed, args.batch)
    except AssertionError as failure:
        print(failure)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
