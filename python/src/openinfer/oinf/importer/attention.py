"""Rotary embedding and attention, found through the reshapes and transposes around them.

Heads are looked for in the tensor they were split from: where q, k, v and the result are [B, T, H * D] there, the op
takes that form and the moves between are no longer needed. Otherwise it takes [B, H, T, D].
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..convert.weights import need_numpy
from .patterns import Finder, Match, Rule, close, exact, new, number, same_type, sides
from .values import Statement, Value
from .views import MOVES, Axes, Views, heads_of, normal, reshaped, row_major

LEAST = -1e9  # a number that hides a key where it takes the place of a score: adding it gives the same


# ---- rotary embedding ----


def spread(s: Statement, find: Finder) -> Optional[Match]:
    """cos(concat(f, f)) becomes concat(cos(f), cos(f)), so that the table of half the size is there."""
    both = find.of(s.inputs[0], "concat")
    if both is None or len(both.inputs) != 2 or both.inputs[0] is not both.inputs[1]:
        return None
    f, out = both.inputs[0], s.outputs[0]
    half = Value(out.name, out.dtype, f.shape, scope=out.scope)
    return Match(s, [new(s.op, [f], s.attrs, half, s), new("concat", [half, half], both.attrs, out, s, [both])])


def rope(s: Statement, find: Finder) -> Optional[Match]:
    """x * cos + concat(-x[half:], x[:half]) * sin"""
    for a, b in sides(s):
        straight, turned = find.by(a, "mul"), find.by(b, "mul")
        if straight is None or turned is None:
            continue
        for x, cos in sides(straight):
            for r, sin in sides(turned):
                absorbed = half_turn(r, x, find)
                if absorbed is not None and same_type(x, s.outputs[0]) and x.rank == 4:
                    return rotated(s, x, cos, sin, [straight, turned, *absorbed], find)
    return None


def half_turn(r: Value, x: Value, find: Finder) -> Optional[List[Statement]]:
    """r = concat(-x[half:], x[:half])"""
    both = find.by(r, "concat")
    if both is None or len(both.inputs) != 2 or both.attrs.get("axis") not in (-1, x.rank - 1):
        return None
    minus = find.by(both.inputs[0], "neg")
    if minus is None or x.dims()[-1] % 2:
        return None
    half = x.dims()[-1] // 2
    high, low = half_of(minus.inputs[0], x, half, find), half_of(both.inputs[1], x, half, find)
    if high is None or low is None or high[0] != half or low[0] != 0:
        return None
    return [both, minus, high[1], low[1]]


def half_of(v: Value, x: Value, half: int, find: Finder) -> Optional[Tuple[int, Statement]]:
    """Where v begins in the last axis of x, if it is one half of it."""
    s = find.of(v, "slice", "split")
    if s is None or s.inputs[0] is not x or v.dims() != [*x.dims()[:-1], half]:
        return None
    if s.op == "split":
        return (half * [o is v for o in s.outputs].index(True), s) if s.attrs.get("axis") in (-1, x.rank - 1) else None
    axes = s.attrs.get("axes") or list(range(len(s.attrs["starts"])))
    if [a % x.rank for a in axes] != [x.rank - 1] or s.attrs.get("steps", [1]) != [1]:
        return None
    start = s.attrs["starts"][0]
    return (start % x.dims()[-1] if start < x.dims()[-1] else -1), s


def rotated(s: Statement, x: Value, cos: Value, sin: Value, absorbed: List[Statement], find: Finder) -> Optional[Match]:
    np = need_numpy()
    batch_first = heads_second(x, cos)
    dims = x.dims()
    b, t, d = dims[0], dims[2 if batch_first else 1], dims[3]
    tables = [table(v, batch_first, b, t, d, find, s) for v in (cos, sin)]
    if tables[0] is None or tables[1] is None or tables[0][0].shape != tables[1][0].shape:
        return None
    (c, made_c), (n, made_s) = tables[0], tables[1]
    rows = c.dims()[0]
    positions = np.arange(rows, dtype=np.int64).reshape((b, t) if rows != t else (t,))
    at = Value("positions", "i64", positions.shape, positions)
    made = [*made_c, *made_s]
    if not batch_first:
        source, axes, h = x, row_major([b, t, dims[2] * d]), dims[2]
    else:
        views = Views(find)
        source, axes = views.of(x)
        found = heads_of(axes, source, t, d, dims[:2])
        h = found[1] if found else 0
    if not h:
        return Match(s, [*made, new("rope", [x, at, c, n], {}, s.outputs[0], s, absorbed)], absorbed)
    packed = as_shape(source, (b, t, h * d), made, s)
    y = Value(source.name, x.dtype, (b, t, h * d), scope=source.scope)
    made.append(new("rope", [packed, at, c, n], {"heads": h}, y, s, absorbed))
    if not batch_first:
        made.append(new("reshape", [y], {}, s.outputs[0], s))
    else:
        split = Value(s.outputs[0].name, x.dtype, (b, t, h, d), scope=s.scope)
        made.append(new("reshape", [y], {}, split, s))
        made.append(new("transpose", [split], {"perm": [0, 2, 1, 3]}, s.outputs[0], s))
    return Match(s, made, absorbed)


def as_shape(value: Value, shape: Tuple[int, ...], made: List[Statement], s: Statement) -> Value:
    """The value itself, or its numbers in another shape."""
    if value.shape == shape:
        return value
    out = Value(value.name, value.dtype, shape, scope=value.scope)
    made.append(new("reshape", [value], {}, out, s))
    made[-1].scope = value.scope or s.scope
    return out


def heads_second(x: Value, cos: Value) -> bool:
    """x is [B, H, T, D], not [B, T, H, D]: the table tells, which is the same for all heads."""
    dims = [1] * (4 - cos.rank) + cos.dims()
    return dims[1] == 1 and dims[2] == x.dims()[2]


def table(v: Value, batch_first: bool, b: int, t: int, d: int, find: Finder, s: Statement) -> Optional[Tuple[Value, List[Statement]]]:
    """Half of a table of cosines or sines, [positions, D / 2], where both halves are the same."""
    np = need_numpy()
    dims = [1] * (4 - v.rank) + v.dims()
    n = dims[0]
    if v.rank > 4 or dims != ([n, 1, t, d] if batch_first else [n, t, 1, d]) or n not in (1, b):
        return None
    if v.data is not None:
        data = v.data.reshape(n * t, d)
        if not np.array_equal(data[:, : d // 2], data[:, d // 2 :]):
            return None
        half = np.ascontiguousarray(data[:, : d // 2])
        return Value(v.name, v.dtype, half.shape, half, scope=v.scope), []
    source, axes = Views(find).of(v)
    both = find.of(source, "concat")
    if both is None or normal(axes) != normal(row_major(source.dims())) or source.dims()[-1] != d:
        return None
    if len(both.inputs) != 2 or both.inputs[0] is not both.inputs[1] or both.attrs["axis"] % source.rank != source.rank - 1:
        return None
    made: List[Statement] = []
    return as_shape(both.inputs[0], (n * t, d // 2), made, s), made


# ---- attention ----


class Scores(NamedTuple):
    q: Value
    k: Value  # as the product takes it: [..., D, T]
    scale: float
    mask: Optional[Value]
    causal: bool
    made: List[Statement]  # what computes the mask
    absorbed: List[Statement]


def attention(s: Statement, find: Finder) -> Optional[Match]:
    """matmul(softmax(matmul(q, k) * scale + mask), v)"""
    if s.attrs or not all(v.is_static for v in (*s.inputs, *s.outputs)) or s.outputs[0].rank not in (3, 4):
        return None
    p, absorbed = unguarded(s.inputs[0], find)
    soft = find.of(p, "softmax")
    if soft is None or soft.attrs.get("axis", -1) not in (-1, p.rank - 1) or find.reads(p) != len(absorbed) + 1 - (len(absorbed) > 1):
        return None
    found = scores_of(soft, find)
    if found is None or found.q.rank != s.outputs[0].rank or found.q.dims()[:-2] != p.dims()[:-2]:
        return None
    return Attention(s, found, find, [*absorbed, soft, *found.absorbed]).match()


def unguarded(p: Value, find: Finder) -> Tuple[Value, List[Statement]]:
    """p without where(is_nan(p), 0, p): rows that are hidden as a whole give 0 anyway."""
    guard = find.by(p, "where")
    test = guard and find.by(guard.inputs[0], "is_nan")
    if guard and test and close(guard.inputs[1], 0.0) and test.inputs[0] is guard.inputs[2]:
        return guard.inputs[2], [guard, test]
    return p, []


def scores_of(soft: Statement, find: Finder) -> Optional[Scores]:
    cur, scale, mask, causal = soft.inputs[0], 1.0, None, False
    absorbed: List[Statement] = []
    made: List[Statement] = []
    while True:
        st = find.by(cur, "matmul", "mul", "div", "add", "where")
        if st is None or not same_type(st.outputs[0], soft.outputs[0]):
            return None
        absorbed.append(st)
        if st.op == "matmul":
            break
        if st.op in ("mul", "div"):
            factor = number(st.inputs[1])
            if not factor:
                return None
            scale *= factor if st.op == "mul" else 1 / factor
            cur = st.inputs[0]
            continue
        hidden = mask_of(st, find) if mask is None and not causal and scale == 1.0 else None
        if hidden is None:
            return None
        cur, mask, causal, more = hidden
        made += more
    if st.attrs:
        return None
    q, k = st.inputs
    for i, v in enumerate((q, k)):
        less = find.by(v, "mul", "div")
        factor = number(less.inputs[1]) if less else None
        if less and factor:
            absorbed.append(less)
            scale *= factor if less.op == "mul" else 1 / factor
            q, k = (less.inputs[0], k) if i == 0 else (q, less.inputs[0])
    return Scores(q, k, scale, mask, causal, made, absorbed)


def leads_to_scores(v: Value, find: Finder) -> bool:
    return find.by(v, "matmul", "mul", "div", "add", "where") is not None


def mask_of(st: Statement, find: Finder) -> Optional[Tuple[Value, Optional[Value], bool, List[Statement]]]:
    """The scores below a mask, the mask, whether it is the causal one, and what has to compute it."""
    if st.op == "add":
        for v, mask in sides(st):
            if leads_to_scores(v, find) and v.shape == st.outputs[0].shape and mask.dtype == v.dtype:
                causal = is_causal(mask, v)
                return v, None if causal else mask, causal, []
        return None
    shown, yes, no = st.inputs
    scores, other = (yes, no) if leads_to_scores(yes, find) else (no, yes)
    fill = number(other)
    if fill is None or fill > LEAST or scores.dtype != "f32" or scores.shape != st.outputs[0].shape:
        return None
    np = need_numpy()
    if shown.data is not None:
        data = np.where(shown.data if scores is yes else ~shown.data, np.float32(0), np.float32(fill))
        mask = Value(shown.name, "f32", tuple(data.shape), data, scope=shown.scope, key=shown.key)
        causal = is_causal(mask, scores)
        return scores, None if causal else mask, causal, []
    if scores is yes and math.isinf(fill):
        return scores, shown, False, []
    zero = Value("zero", "f32", (), np.zeros((), np.float32))
    out = Value(shown.name, "f32", shown.shape, scope=st.scope)
    pair = [zero, other] if scores is yes else [other, zero]
    return scores, out, False, [new("where", [shown, *pair], {}, out, st)]


def is_causal(mask: Value, scores: Value) -> bool:
    """A constant that hides what comes later and nothing else."""
    np = need_numpy()
    t = scores.dims()[-1]
    if mask.data is None or scores.dims()[-2] != t or mask.data.size != t * t or mask.dims()[-2:] != [t, t]:
        return False
    data = mask.data.reshape(t, t).astype(np.float64)
    later = np.triu(np.ones((t, t), bool), 1)
    return bool((data[~later] == 0).all() and (data[later] <= LEAST).all())


class Attention:
    """What was found, on its way to an `sdpa`."""

    def __init__(self, s: Statement, found: Scores, find: Finder, absorbed: List[Statement]):
        self.s, self.found, self.find, self.absorbed = s, found, find, absorbed
        self.views = Views(find)
        self.tq, self.d = found.q.dims()[-2:]
        self.tk, self.dv = found.k.dims()[-1], s.outputs[0].dims()[-1]

    def match(self) -> Optional[Match]:
        q, k, v = self.found.q, self.found.k, self.s.inputs[1]
        source, axes = self.views.of(k)
        keys = source, [*axes[:-2], axes[-1], axes[-2]]
        shown = [
            (*self.views.of(q), q.dims()[:-2]),
            self.repeated(keys, k.dims()[:-2], self.tk, self.d),
            self.repeated(self.views.of(v), v.dims()[:-2], self.tk, self.dv),
        ]
        return self.packed(shown) or self.apart()

    def repeated(self, view: Tuple[Value, Axes], lead: List[int], t: int, d: int) -> Tuple[Value, Axes, List[int]]:
        """Keys or values before they are repeated for the queries that share them, and their batch and heads."""
        source, axes = view
        copies = self.find.of(source, "expand")
        if copies is None or not copies.inputs[0].is_static:
            return source, axes, lead
        few, many = copies.inputs[0].dims(), copies.outputs[0].dims()
        if len(few) != 5 or few[2] != 1 or many != [few[0], few[1], many[2], few[3], few[4]] or few[3:] != [t, d]:
            return source, axes, lead
        if normal(axes) != normal(row_major([few[0], few[1] * many[2], t, d])):
            return source, axes, lead
        return (*self.views.of(copies.inputs[0]), few[:2])

    def attrs(self) -> Dict[str, Any]:
        usual = 1 / math.sqrt(self.d)
        same = math.isclose(self.found.scale, usual, rel_tol=1e-6)
        return {**({} if same else {"scale": exact(self.found.scale)}), **({"causal": True} if self.found.causal else {})}

    def packed(self, shown: List[Tuple[Value, Axes, List[int]]]) -> Optional[Match]:
        """All of q, k, v and the result as [B, T, H * D]."""
        sizes = ((self.tq, self.d), (self.tk, self.d), (self.tk, self.dv))
        shapes = [heads_of(axes, x, *size, lead) for (x, axes, lead), size in zip(shown, sizes)]
        if any(x is None for x in shapes):
            return None
        (b, h), (bk, hk), (bv, hv) = (x for x in shapes if x is not None)
        mask = self.mask(b, h)
        end = self.end(b, h)
        if b != bk or b != bv or hk != hv or h % hk or end is None or mask is False:
            return None
        made = list(self.found.made)
        wanted = [(b, t, n * d) for (t, d), n in zip(sizes, (h, hk, hk))]
        inputs = [as_shape(x, shape, made, self.s) for (x, _, _), shape in zip(shown, wanted)]
        last, between = end
        shape = (b, self.tq, h * self.dv)
        out = last if last.shape == shape else Value(last.name, last.dtype, shape, scope=self.s.scope)
        absorbed = [*self.absorbed, *between]
        attrs = {"heads": h, **({} if hk == h else {"kv_heads": hk}), **self.attrs()}
        made.append(new("sdpa", [*inputs, *([mask] if isinstance(mask, Value) else [])], attrs, out, self.s, absorbed))
        if out is not last:
            made.append(new("reshape", [out], {}, last, self.s))
        at = between[-1] if between else self.s
        return Match(at, made, [self.s, *absorbed])

    def mask(self, b: int, h: int) -> Any:
        """The mask as sdpa takes it; False where its shape does not fit."""
        mask = self.found.mask
        if mask is None:
            return None
        if self.found.q.rank == 4 or mask.rank <= 2:
            return mask
        return mask if mask.dims()[0] == 1 or b == 1 and h == 1 else False

    def end(self, b: int, h: int) -> Optional[Tuple[Value, List[Statement]]]:
        """The value that shows the result as [B, T, H * D], and the moves up to it."""
        wanted = normal([(b, h * self.tq * self.dv), (self.tq, self.dv), (h, self.tq * self.dv), (self.dv, 1)])
        cur, axes, between = self.s.outputs[0], row_major(self.s.outputs[0].dims()), []
        while normal(axes) != wanted:
            s = self.find.next(cur, *MOVES)
            if s is None or not s.outputs[0].is_static:
                return None
            if s.op == "transpose":
                axes = [axes[p] for p in s.attrs.get("perm") or list(range(cur.rank))[::-1]]
            else:
                found = reshaped(axes, s.outputs[0].dims())
                if found is None:
                    return None
                axes = found
            between.append(s)
            cur = s.outputs[0]
        s = self.find.next(cur, "reshape")
        if s is not None and s.outputs[0].shape == (b, self.tq, h * self.dv):
            between.append(s)
            cur = s.outputs[0]
        return cur, between

    def apart(self) -> Optional[Match]:
        """The form with an axis of heads."""
        q, v, kt, s = self.found.q, self.s.inputs[1], self.found.k, self.s
        if q.rank != 4 or q.dims()[0] != kt.dims()[0] or v.dims()[:2] != kt.dims()[:2] or q.dims()[1] % kt.dims()[1]:
            return None
        made = list(self.found.made)
        turned = self.find.of(kt, "transpose")
        perm = list(turned.attrs.get("perm") or []) if turned else []
        keys = Value(kt.name, kt.dtype, (*kt.dims()[:2], self.tk, self.d), scope=s.scope)
        if turned and perm == [0, 1, 3, 2]:
            keys = turned.inputs[0]
        elif turned and len(perm) == 4:
            made.append(new("transpose", [turned.inputs[0]], {"perm": [perm[0], perm[1], perm[3], perm[2]]}, keys, s))
        else:
            made.append(new("transpose", [kt], {"perm": [0, 1, 3, 2]}, keys, s))
        inputs = [q, keys, v, *([self.found.mask] if self.found.mask else [])]
        made.append(new("sdpa", inputs, self.attrs(), s.outputs[0], s, self.absorbed))
        return Match(s, made, self.absorbed)


RULES: List[Dict[str, List[Rule]]] = [{"cos": [spread], "sin": [spread]}, {"add": [rope]}, {"matmul": [attention]}]
