"""Windows that slide: convolution and pooling."""

import numpy as np

from cases import Case, accumulators, dtypes_of, rng_for, sliced, tensor
from reference_window import per_axis, places
from tensors import DTYPES

# x, w, attributes
CONV = {
    "plain": ((2, 3, 7), (4, 3, 3), {}), "one": ((1, 1, 1), (1, 1, 1), {}), "pointwise": ((2, 5, 4, 3), (6, 5, 1, 1), {}),
    "padded": ((1, 2, 5, 6), (3, 2, 3, 3), {"pads": 1}), "uneven": ((1, 2, 5, 6), (3, 2, 2, 4), {"pads": [0, 2, 1, 3], "strides": [2, 3]}),
    "larger kernel": ((1, 1, 2, 3), (2, 1, 5, 5), {"pads": [2, 2, 2, 2]}), "long stride": ((1, 2, 9), (2, 2, 2), {"strides": 4}),
    "dilated": ((1, 2, 11), (2, 2, 3), {"dilations": 3, "pads": [2, 1]}), "groups": ((2, 6, 5), (4, 3, 3), {"group": 2, "pads": 1}),
    "depthwise": ((1, 5, 6, 6), (5, 1, 3, 3), {"group": 5, "pads": 1, "strides": 2}), "multiplied": ((1, 3, 6), (6, 1, 2), {"group": 3}),
    "no batch": ((0, 2, 5), (3, 2, 2), {}), "no filters": ((2, 2, 5), (0, 2, 2), {}), "no channels": ((1, 0, 5), (2, 0, 2), {}),
    "3d": ((1, 2, 4, 5, 3), (2, 2, 2, 3, 2), {"pads": [1, 0, 1, 0, 1, 0], "strides": [2, 1, 1]}),
    "upper": ((1, 2, 6, 5), (2, 2, 3, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 1]}),
    "lower": ((1, 2, 6, 5), (2, 2, 4, 2), {"auto_pad": "SAME_LOWER", "strides": 2}), "valid": ((1, 2, 6), (2, 2, 3), {"auto_pad": "VALID"}),
    "long": ((1, 2, 1200), (3, 2, 5), {"pads": 2}), "rows": ((1, 40, 9, 11), (20, 40, 3, 3), {"pads": 1}),
}


def conv_out(x, w, attrs):
    return (x[0], w[0], *places(attrs, x[2:], w[2:]))


def conv_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        accs = [(None, dtype)] if DTYPES[dtype].kind == "F" else []
        accs += [(a, o) for a, o in accumulators(op, dtype) if a is not None]
        for n, (acc, out) in enumerate(accs):
            few = n > 0 and (DTYPES[dtype].kind == "F" or n > 1)
            for name, (x, w, attrs) in CONV.items():
                if few and name not in ("padded", "groups"):
                    continue
                rng = rng_for(op, dtype, str(acc), name)
                more = {"acc": acc} if acc else {}
                inputs = [tensor(rng, dtype, x, True), tensor(rng, dtype, w, True)]
                terms = int(np.prod(w[1:]))
                yield Case(op, inputs, {**attrs, **more}, out, conv_out(x, w, attrs), name, summed=(out if DTYPES[out].kind == "F" else "f32", terms))
                if DTYPES[dtype].kind == "F" and name in ("plain", "padded", "groups", "rows"):
                    inputs = inputs + [tensor(rng, dtype, (w[0],), True)]
                    yield Case(op, inputs, {**attrs, **more}, out, conv_out(x, w, attrs), name + ", bias", summed=(out, terms))
    for dtype in ("f32", "f16", "f64"):
        rng = rng_for(op, dtype, "others")
        x, w = (2, 4, 7, 6), (6, 2, 3, 3)
        attrs = {"group": 2, "pads": 1}
        yield Case(op, [sliced(rng, dtype, x, True), sliced(rng, dtype, w, True)], attrs, dtype, conv_out(x, w, attrs), "sliced")
        yield Case(op, [tensor(rng, dtype, (2, 4, 6, 6), True), tensor(rng, dtype, (4, 4, 3, 3), True)], {"pads": 1}, dtype, (2, 4, 6, 6), "in place", 0)
        x, w = (2, 16, 40, 37), (24, 16, 3, 3)
        yield Case(op, [tensor(rng, dtype, x, True), tensor(rng, dtype, w, True), tensor(rng, dtype, (24,), True)], {"pads": 1, "strides": 2}, dtype,
                   conv_out(x, w, {"pads": 1, "strides": 2}), "large", summed=(dtype, 144))
        x, w = (1, 24, 33, 70), (24, 1, 5, 5)
        attrs = {"pads": 2, "group": 24}
        yield Case(op, [tensor(rng, dtype, x, True), tensor(rng, dtype, w, True)], attrs, dtype, conv_out(x, w, attrs), "large", summed=(dtype, 25))
        yield Case(op, [tensor(rng, dtype, (1, 2, 6)), tensor(rng, dtype, (3, 2, 3))], {"pads": 1}, dtype, (1, 3, 6), "awkward", summed=(dtype, 6))
    rng = rng_for(op, "int bias")
    inputs = [tensor(rng, "i8", (1, 3, 8)), tensor(rng, "i8", (4, 3, 3)), tensor(rng, "i32", (4,), True)]
    yield Case(op, inputs, {"acc": "i32"}, "i32", (1, 4, 6), "int bias")


SPREAD = {
    "plain": ((2, 3, 5), (3, 4, 3), {}, (7,)), "one": ((1, 1, 1), (1, 1, 1), {}, (1,)),
    "strided": ((1, 2, 4, 3), (2, 3, 3, 3), {"strides": 2}, (9, 7)), "padded": ((1, 2, 4, 3), (2, 3, 3, 4), {"strides": [2, 3], "pads": [1, 0, 1, 2]}, (7, 8)),
    "more": ((1, 2, 4), (2, 3, 3), {"strides": 3, "output_padding": 2}, (14,)), "dilated": ((1, 2, 5), (2, 2, 3), {"dilations": 2, "strides": 2}, (13,)),
    "dilated 3": ((1, 2, 5), (2, 2, 3), {"dilations": 3, "strides": 2, "pads": [2, 1]}, (12,)),
    "shape": ((1, 2, 4, 4), (2, 2, 3, 3), {"strides": 2, "output_shape": [10, 8]}, (10, 8)), "groups": ((2, 4, 5), (4, 3, 3), {"group": 2}, (7,)),
    "upper": ((1, 2, 4), (2, 2, 5), {"strides": 2, "auto_pad": "SAME_UPPER"}, (8,)), "lower": ((1, 2, 4), (2, 2, 4), {"strides": 3, "auto_pad": "SAME_LOWER"}, (12,)),
    "gaps": ((1, 2, 4), (2, 2, 2), {"strides": 5}, (17,)), "3d": ((1, 2, 2, 3, 2), (2, 1, 2, 2, 3), {"strides": [1, 2, 2]}, (3, 6, 5)), "no batch": ((0, 2, 4), (2, 1, 2), {}, (5,)),
}


def conv_transpose_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for name, (x, w, attrs, spatial) in SPREAD.items():
            rng = rng_for(op, dtype, name)
            inputs = [tensor(rng, dtype, x, True), tensor(rng, dtype, w, True)]
            out = (x[0], w[1] * attrs.get("group", 1), *spatial)
            yield Case(op, inputs, attrs, dtype, out, name, summed=(dtype, int(np.prod(w))))
            yield Case(op, inputs + [tensor(rng, dtype, (out[1],), True)], attrs, dtype, out, name + ", bias", summed=(dtype, int(np.prod(w))))
        rng = rng_for(op, dtype, "others")
        yield Case(op, [sliced(rng, dtype, (1, 2, 4, 3), True), sliced(rng, dtype, (2, 3, 3, 3), True)], {"strides": 2}, dtype, (1, 3, 9, 7), "sliced",
                   summed=(dtype, 18))


POOL = {
    "plain": ((2, 3, 7), {"kernel": 3}), "one": ((1, 1, 1), {"kernel": 1}), "square": ((1, 2, 6, 5), {"kernel": [2, 2], "strides": 2}),
    "padded": ((1, 2, 6, 5), {"kernel": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}), "long stride": ((1, 2, 9), {"kernel": 2, "strides": 4}),
    "larger kernel": ((1, 2, 2, 3), {"kernel": 4, "pads": 2}), "dilated": ((1, 2, 9, 8), {"kernel": 3, "dilations": [2, 3], "pads": 1}),
    "ceil": ((1, 2, 7, 8), {"kernel": 3, "strides": 2, "ceil_mode": True, "pads": [0, 1, 0, 0]}), "ceil 2": ((1, 1, 5), {"kernel": 2, "strides": 3, "ceil_mode": True, "pads": 1}),
    "upper": ((1, 2, 6, 5), {"kernel": 3, "strides": 2, "auto_pad": "SAME_UPPER"}), "lower": ((1, 2, 6, 5), {"kernel": [2, 4], "strides": 2, "auto_pad": "SAME_LOWER"}),
    "valid": ((1, 2, 6), {"kernel": 4, "auto_pad": "VALID"}), "3d": ((1, 2, 4, 5, 3), {"kernel": [2, 3, 2], "strides": [1, 2, 1]}), "no batch": ((0, 2, 5), {"kernel": 2}),
    "no channels": ((2, 0, 5), {"kernel": 2}), "long": ((1, 2, 1300), {"kernel": 3}), "large": ((2, 9, 60, 70), {"kernel": 3, "pads": 1}),
}


def pool_shape(x, attrs):
    return (*x[:2], *places(attrs, x[2:], per_axis(attrs, "kernel", len(x) - 2, 1)))


def pool_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for name, (x, attrs) in POOL.items():
            ways = [{}, {"count_include_pad": True}] if op == "avg_pool" else [{}]
            for way in ways:
                for plain in (True, False) if op == "max_pool" else (True,):
                    rng = rng_for(op, dtype, name, str(way), plain)
                    out = pool_shape(x, attrs)
                    more = (("i64", out),) if op == "max_pool" and not plain else ()
                    yield Case(op, [tensor(rng, dtype, x, plain)], {**attrs, **way}, dtype, out, name, more=more)
        rng = rng_for(op, dtype, "others")
        attrs = {"kernel": 3, "strides": 2, "pads": 1}
        yield Case(op, [sliced(rng, dtype, (2, 3, 6, 5), True)], attrs, dtype, pool_shape((2, 3, 6, 5), attrs), "sliced")
        yield Case(op, [tensor(rng, dtype, (1, 2, 6, 6), True)], {"kernel": 3, "pads": 1}, dtype, (1, 2, 6, 6), "in place", 0)


def global_cases(op, row):
    shapes = [(2, 3, 7), (1, 1, 1), (2, 3, 4, 5), (1, 2, 3, 2, 4), (0, 2, 3), (2, 0, 3), (2, 700, 3, 3), (1, 2, 700)]
    for dtype in dtypes_of(row["dtypes"]):
        for x in shapes:
            for plain in (True, False):
                if not plain and op == "global_avg_pool" and len(x) > 3:
                    continue
                rng = rng_for(op, dtype, x, plain)
                yield Case(op, [tensor(rng, dtype, x, plain)], {}, dtype, (*x[:2], *[1] * (len(x) - 2)), "global")
        rng = rng_for(op, dtype, "others")
        yield Case(op, [sliced(rng, dtype, (2, 3, 4, 5), True)], {}, dtype, (2, 3, 1, 1), "sliced")


def im2col_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for name, (x, attrs) in POOL.items():
            if "ceil_mode" in attrs or "auto_pad" in attrs or name == "large":
                continue
            rng = rng_for(op, dtype, name)
            kernel = per_axis(attrs, "kernel", len(x) - 2, 1)
            out = (x[0], x[1] * int(np.prod(kernel)), int(np.prod(places(attrs, x[2:], kernel))))
            yield Case(op, [tensor(rng, dtype, x)], attrs, dtype, out, name)
        rng = rng_for(op, dtype, "others")
        yield Case(op, [sliced(rng, dtype, (2, 3, 5, 4))], {"kernel": 2, "pads": 1}, dtype, (2, 12, 30), "sliced")


COL2IM = {
    "plain": ((2, 3), (5, 6), {"kernel": [2, 3]}), "one": ((1, 1), (1,), {"kernel": 1}), "line": ((2, 3), (9,), {"kernel": 3, "strides": 2}),
    "padded": ((1, 2), (5, 5), {"kernel": 3, "pads": 1}), "uneven": ((1, 2), (5, 6), {"kernel": [2, 4], "pads": [0, 2, 1, 3], "strides": [2, 3]}),
    "dilated": ((1, 2), (7, 6), {"kernel": [2, 3], "dilations": [3, 2], "pads": [1, 0, 2, 1]}), "gaps": ((1, 1), (9, 4), {"kernel": [2, 1], "strides": [4, 3]}),
    "3d": ((1, 2), (3, 4, 3), {"kernel": [2, 2, 3], "strides": [1, 2, 1]}), "no batch": ((0, 2), (4, 4), {"kernel": 2}), "shape": ((2, 2), (4, 5), {"kernel": 2, "shape": [4, 5]}),
    "large": ((2, 5), (40, 50), {"kernel": 3, "pads": 1}),
}


def col2im_cases(op, row):
    for dtype in dtypes_of(row["dtypes"]):
        for name, (lead, spatial, attrs) in COL2IM.items():
            rng = rng_for(op, dtype, name)
            kernel = per_axis(attrs, "kernel", len(spatial), 1)
            x = (lead[0], lead[1] * int(np.prod(kernel)), int(np.prod(places(attrs, spatial, kernel))))
            summed = (dtype if DTYPES[dtype].kind == "F" else "f32", int(np.prod(kernel)))
            yield Case(op, [tensor(rng, dtype, x, True)], attrs, dtype, (*lead, *spatial), name, summed=summed)
        rng = rng_for(op, dtype, "others")
        yield Case(op, [sliced(rng, dtype, (2, 12, 30), True)], {"kernel": 2, "pads": 1}, dtype, (2, 3, 5, 4), "sliced", summed=("f32", 4))
    for dtype in ("f32", "f16", "f64"):
        rng = rng_for(op, dtype, "awkward")
        yield Case(op, [tensor(rng, dtype, (1, 12, 12))], {"kernel": 2}, dtype, (1, 3, 4, 5), "awkward", summed=(dtype, 4))


CASES = {"conv": conv_cases, "col2im": col2im_cases, "conv_transpose": conv_transpose_cases, "max_pool": pool_cases, "avg_pool": pool_cases,
         "global_avg_pool": global_cases, "global_max_pool": global_cases, "im2col": im2col_cases}
