"""Ops that move elements: every element type, awkward shapes, slices, in place."""

import reference_move as ref
from cases import Case, dtypes_of, rng_for, sliced, tensor
from tensors import DTYPES

# op: [(label, shapes of the inputs, attributes)]; "large" ones are split among threads
MOVES = {
    "reshape": [
        ("plain", [(2, 6)], {"shape": [3, 4]}), ("infer", [(2, 6)], {"shape": [-1, 3]}), ("keep", [(2, 3, 4)], {"shape": [0, -1]}),
        ("to vector", [(3, 5)], {"shape": [-1]}), ("to scalar", [(1, 1)], {"shape": []}), ("from scalar", [()], {"shape": [1, 1]}),
        ("empty", [(0, 4)], {"shape": [0, 2, 2]}),
        ("odd", [(5, 7)], {"shape": [7, 5]}), ("same", [(5, 7)], {"shape": [0, 0]}), ("number", [(3, 3)], {"shape": 9}),
        ("large", [(300, 401)], {"shape": [401, 300]})],
    "flatten": [
        ("default", [(2, 3, 4)], {}), ("all", [(2, 3)], {"axis": 0}), ("end", [(2, 3)], {"axis": 2}), ("negative", [(2, 3, 4)], {"axis": -1}),
        ("vector", [(5,)], {"axis": 1}), ("empty", [(0, 3)], {}), ("scalar", [()], {"axis": 0}), ("large", [(30, 40, 101)], {})],
    "squeeze": [
        ("all", [(1, 3, 1, 5)], {}), ("one", [(1, 3, 1)], {"axes": [0]}), ("negative", [(1, 3, 1)], {"axes": -1}), ("twice", [(1, 3)], {"axes": [0, -2]}),
        ("none", [(3, 5)], {}), ("to scalar", [(1, 1)], {}), ("empty", [(1, 0)], {"axes": [0]}), ("large", [(1, 120000)], {})],
    "unsqueeze": [
        ("front", [(3, 5)], {"axes": [0]}), ("both", [(3, 5)], {"axes": [0, 3]}), ("negative", [(3, 5)], {"axes": -1}), ("order", [(3,)], {"axes": [2, 0]}),
        ("scalar", [()], {"axes": [0]}), ("empty", [(0, 2)], {"axes": [1]}), ("nothing", [(5, 3)], {"axes": []}), ("large", [(120000,)], {"axes": 1})],
    "transpose": [
        ("reverse", [(3, 5)], {}), ("perm", [(2, 3, 4)], {"perm": [1, 2, 0]}), ("inner", [(2, 3, 4, 5)], {"perm": [0, 2, 1, 3]}),
        ("last", [(3, 17, 40)], {"perm": [0, 2, 1]}), ("identity", [(3, 5)], {"perm": [0, 1]}), ("negative", [(2, 3, 4)], {"perm": [-1, 0, 1]}),
        ("vector", [(7,)], {}), ("scalar", [()], {}), ("empty", [(0, 3)], {}), ("square", [(5, 5)], {}), ("blocks", [(37, 70)], {}),
        ("rank 5", [(2, 3, 1, 4, 5)], {"perm": [4, 2, 0, 3, 1]}), ("large", [(301, 399)], {}), ("large, inner", [(40, 50, 60)], {"perm": [1, 0, 2]})],
    "expand": [
        ("rows", [(5,)], {"shape": [3, 5]}), ("columns", [(3, 1)], {"shape": [3, 4]}), ("both ways", [(3, 1)], {"shape": [1, 4]}), ("scalar", [()], {"shape": [2, 3]}),
        ("less", [(2, 3)], {"shape": [1]}), ("empty", [(1, 3)], {"shape": [0, 3]}), ("nothing", [(3,)], {"shape": []}), ("ends", [(1, 3, 1)], {"shape": [2, 3, 4]}),
        ("large", [(400,)], {"shape": [301, 400]}), ("large, columns", [(301, 1)], {"shape": [301, 400]})],
    "tile": [
        ("both", [(2, 3)], {"repeats": [2, 2]}), ("last", [(2, 3)], {"repeats": [1, 3]}), ("first", [(2, 3)], {"repeats": [3, 1]}), ("zero", [(2, 3)], {"repeats": [0, 1]}),
        ("empty", [(0, 3)], {"repeats": [2, 2]}), ("vector", [(5,)], {"repeats": 3}), ("scalar", [()], {"repeats": []}), ("rank 4", [(2, 1, 3, 2)], {"repeats": [2, 3, 1, 2]}),
        ("large", [(30, 41)], {"repeats": [10, 10]})],
    "concat": [
        ("rows", [(2, 3), (4, 3)], {"axis": 0}), ("columns", [(3, 2), (3, 5), (3, 1)], {"axis": 1}), ("negative", [(2, 3, 2), (2, 3, 4)], {"axis": -1}),
        ("one", [(2, 3)], {"axis": 0}), ("empty", [(0, 3), (2, 3)], {"axis": 0}), ("all empty", [(2, 0), (2, 0)], {"axis": 1}), ("middle", [(2, 1, 3), (2, 4, 3)], {"axis": 1}),
        ("many", [(1, 3)] * 64, {"axis": 0}), ("many vectors", [(i % 4,) for i in range(64)], {"axis": 0}), ("large", [(200, 300), (200, 101)], {"axis": 1})],
    "slice": [
        ("plain", [(5, 7)], {"starts": [1, 2], "ends": [4, 6]}), ("steps", [(9, 7)], {"starts": [0, 1], "ends": [9, 7], "steps": [2, 3]}),
        ("backwards", [(9,)], {"starts": [-1], "ends": [-100], "steps": [-1]}), ("backwards by 3", [(9, 4)], {"starts": [7, 3], "ends": [0, -9], "steps": [-3, -2]}),
        ("axes", [(3, 4, 5)], {"starts": [1], "ends": [3], "axes": [-1]}), ("clamped", [(5,)], {"starts": [-100], "ends": [100]}), ("beyond", [(5, 3)], {"starts": [7], "ends": [9]}),
        ("beyond backwards", [(5, 3)], {"starts": [100], "ends": [1], "steps": [-1]}), ("nothing", [(5, 3)], {"starts": [3], "ends": [1]}), ("huge step", [(5, 3)], {"starts": [1], "ends": [5], "steps": [1 << 62]}),
        ("huge back step", [(5, 3)], {"starts": [4], "ends": [-9], "steps": [-(1 << 63)]}), ("limits", [(5, 3)], {"starts": [-(1 << 63)], "ends": [(1 << 63) - 1]}), ("empty", [(0, 3)], {"starts": [0], "ends": [5]}),
        ("number", [(6,)], {"starts": 2, "ends": 4}), ("large", [(400, 700)], {"starts": [1, 3], "ends": [400, 690], "steps": [1, 2]}), ("large, back", [(301, 400)], {"starts": [300], "ends": [-400], "steps": [-1]})],
    "pad": [
        (f"{mode} {label}", [shape], {"pads": pads, **({"mode": mode} if mode != "constant" else {})})
        for mode in ("constant", "reflect", "edge", "wrap")
        for label, shape, pads in (
            ("around", (3, 5), [1, 2, 2, 1]), ("vector", (4,), [3, 2]), ("cut", (4, 5), [-1, -2, 0, -1]), ("cut and pad", (5, 4), [-1, 2, 3, -1]), ("none", (3, 2), [0, 0, 0, 0]),
            ("deep", (3, 2), [7, 4, 5, 3]), ("one", (1, 3), [2, 1, 2, 0]), ("rank 4", (2, 1, 3, 4), [0, 0, 1, 1, 0, 0, 1, 1]), ("cut all", (3, 4), [-3, 0, 0, 0]), ("scalar", (), []))
    ] + [("empty", [(0, 3)], {"pads": [1, 1, 0, 0]}), ("large", [(300, 395)], {"pads": [2, 3, 2, 3]}), ("large edge", [(300, 395)], {"pads": [2, 3, 2, 3], "mode": "edge"})],
}
# axis, sizes (None: equal parts), parts
SPLITS = [("equal", (6, 4), {}, 3), ("short", (7, 3), {}, 3), ("sizes", (4, 9), {"axis": 1, "sizes": [2, 0, 7]}, 3), ("one", (3, 5), {}, 1), ("negative", (2, 3, 8), {"axis": -1}, 4),
          ("number", (3, 5), {"axis": 1, "sizes": 5}, 1), ("more than there is", (2, 3), {}, 4), ("empty", (0, 3), {}, 2), ("many", (128, 3), {}, 64), ("large", (300, 401), {"axis": 1}, 3)]


def values_for(op, dtype, label):
    """Further numbers for `pad`."""
    d = DTYPES[dtype]
    if op != "pad" or label not in ("constant around", "constant cut and pad", "constant deep"):
        return [{}]
    own = {"F": [1.5, float("nan"), float("-inf"), -3], "B": [True], "T": [-1] if dtype == "t1" else [1], "X": [5]}
    return [{}] + [{"value": v} for v in own.get(d.kind, [d.highest, d.lowest])]


WIDTHS = ("f32", "f64", "bf16", "u8", "i4", "u2", "t1")  # every width of storage


def move_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for i, (label, shapes, attrs) in enumerate(MOVES[op]):
            if i > 3 and dtype not in WIDTHS:
                continue  # types of one width move alike
            for make in (tensor, sliced) if label != "large" and len(shapes) < 20 else (tensor,):
                for n, more in enumerate(values_for(op, dtype, label) if make is tensor else [{}]):
                    if make is sliced and not all(s and all(s) for s in shapes):
                        continue
                    if dtype == "t1" and op == "pad" and "value" not in more and attrs.get("mode") is None:
                        more = {"value": 1}
                    rng = rng_for(op, dtype, label, make.__name__, n)
                    inputs = [make(rng, dtype, s) for s in shapes]
                    want = ref.__dict__["slice_" if op == "slice" else op]([t.values for t in inputs], attrs | more, ())
                    name = label if make is tensor else f"{label}, sliced"
                    yield Case(op, inputs, attrs | more, dtype, want.shape, name)
                    if make is tensor and want.shape == inputs[0].values.shape and want.size:
                        yield Case(op, [make(rng, dtype, s) for s in shapes], attrs | more, dtype, want.shape, f"{name}, in place", 0)
        if op in ("reshape", "expand"):  # the declared shape says it
            rng = rng_for(op, dtype, "declared")
            yield Case(op, [tensor(rng, dtype, (1, 6))], {}, dtype, (2, 3) if op == "reshape" else (4, 6), "declared")


def split_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for i, (label, shape, attrs, n) in enumerate(SPLITS):
            if i > 3 and dtype not in WIDTHS:
                continue
            for make in (tensor, sliced) if all(shape) and label != "large" else (tensor,):
                rng = rng_for(op, dtype, label, make.__name__)
                x = make(rng, dtype, shape)
                parts = [(dtype, p.shape) for p in ref.split([x.values], attrs, None, n)]
                yield Case(op, [x], attrs, *parts[0], label, None, None, tuple(parts[1:]))
                if n == 1 and make is tensor:
                    yield Case(op, [x], attrs, *parts[0], f"{label}, in place", 0)


CASES = {op: move_cases for op in MOVES} | {"split": split_cases}
