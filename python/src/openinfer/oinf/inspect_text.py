"""A package as text, byte for byte as the C tool `openinfer inspect` prints it.

Three paragraphs (sizevars, metadata, tensors) in name order, separated by blank lines; an
empty paragraph is left out with its blank line. Tensors are separated by blank lines.

Values
  floats            %.6g (nan, inf, -inf); NaN has no sign
  integers          decimal; sub-byte types and bitset tensors too
  bool              true, false
  str               quoted; `"` and `\\` escaped by `\\`; \\n \\r \\t \\b \\f; other control characters \\u00XX
  bitset            `mask: bitset[12] = 0d 02`, the first 4 bytes; no bits: `bitset[0] = { }`
Lists
  up to 10 values   { a, b, c }
  more              { a, b, c, d, e, ..., v, w, x, y, z }
  none              { }
Text stored as a list of u8 (UTF-8, no control characters but \\n \\r \\t, something outside the
alphabet of names)
                    name: text[42] = "..."                 beyond 160 bytes cut, followed by ` ...`
Arrays (tensors, and other metadata ndarrays)
  rank 0            name: dtype = value
  no element        name: dtype[0, 4] = { }
  rank 1            name: dtype[8] = { ... }
  rank >= 2         name: dtype[8, 6] = {<space>
                    { one row along dim 0, flattened, as a list } ,     min(dim0, 5) times
                    ...                                    if rows remain
                    }
  no data           name: dtype[4, 4] -- uninitialized     (rank 0: name: dtype -- uninitialized)
After a tensor with data (never after metadata)
  - [nbytes: N, min: a, max: b, mean: c, median: d, std: e, inf: n, nan: n]
    over finite values, sums exactly rounded, in float64; -0 counts as 0; inf and nan only
    when n > 0; min and max of integers (bool as 0 and 1) are plain integers, all else %.6g; no finite value: only nbytes, inf and nan; no
    element: `- [nbytes: 0]` and no hist line.
  - hist: {([lo, hi], n), ([lo, hi], n)}
    bool: both ([0, 0], n) and ([1, 1], n), also when one is 0; integers with max-min <= 20:
    each value that occurs; else, w = (max-min)/10 in float64, bin i = [min+i*w, min+(i+1)*w],
    a value goes to min(9, floor((x-min)/w)), edges %.6g, empty bins omitted; all values equal:
    one bin ([v, v], n); no finite value: {}.
After any tensor with parameters
  - quant: scheme=S, scale=per_tensor(s), zero_point=per_tensor(z)
    per channel: per_channel(axis=1, { s0, s1 }) with the list rule; without: zero_point=none

JSON: keys sorted, indent 2, as Python's json module lays it out, except that floats are
%.9g (f64: %.17g) and NaN and infinities are the strings "nan", "inf", "-inf". Metadata is
{"dtype", "value"} for scalars, str and bitset (a list of 0 and 1), with "dims" and a flat
list of values for ndarrays. Tensors are {"data_nbytes", "data_offset", "dims", "dtype",
"flags", "quant"}, with "quant_nbytes" and "quant_offset" when HAS_QUANT; quant is null or
{"scale", "scheme", "zero_point"} of {"axis", "mode", "values"}, a missing zero point null.
"""

from __future__ import annotations

import math
import re
from typing import Any, Callable, Dict, List, Optional, Sequence

from . import _np
from .dtypes import DType
from .quant import QuantParams
from .read import MetaValue, Package, Tensor, _Array
from .stats import Stats, stats_of_raw, stats_of_values
from .types import OinfError
from .write import HAS_QUANT

ROWS = 5
WHOLE = 10
EDGE = 5
TEXT_LOOKED_AT = 16 << 20  # bytes; longer ones are shown as numbers
TEXT_SHOWN = 160  # bytes

_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BEYOND_NAMES = re.compile(rb"[^A-Za-z0-9._-]")


def inspect_text(package: Package, tensor: Optional[str] = None) -> str:
    """The whole listing, or that of one tensor; ends with a newline unless empty."""
    if tensor is not None:
        return "\n".join(tensor_lines(find_tensor(package, tensor))) + "\n"
    paragraphs = []
    if package.sizevars:
        paragraphs.append([f"{k} := {v}" for k, v in sorted(package.sizevars.items())])
    if package.metadata:
        keys = sorted(package.metadata)
        paragraphs.append([line for k in keys for line in meta_lines(package.metadata[k])])
    paragraphs.extend(tensor_lines(package.tensors[k]) for k in sorted(package.tensors))
    return "\n\n".join("\n".join(p) for p in paragraphs) + ("\n" if paragraphs else "")


def find_tensor(package: Package, name: str) -> Tensor:
    if name not in package.tensors:
        raise OinfError(f"no tensor named {name!r}", package.path)
    return package.tensors[name]


# ---- values -------------------------------------------------------------------------


def format_float(v: float) -> str:
    return "%.6g" % v if v == v else "nan"


def format_value(v: Any) -> str:
    if isinstance(v, bool):
        return "true" if v else "false"
    return format_float(v) if isinstance(v, float) else str(v)


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def quote(text: str) -> str:
    def one(c: str) -> str:
        if c in _ESCAPES:
            return _ESCAPES[c]
        return f"\\u{ord(c):04x}" if ord(c) < 0x20 or ord(c) == 0x7F else c

    return '"' + "".join(map(one, text)) + '"'


def format_list(count: int, values: Callable[[int, int], List[Any]]) -> str:
    """`{ a, b }` of `count` values, where values(start, n) fetches some."""
    if count == 0:
        return "{ }"
    if count <= WHOLE:
        parts = list(map(format_value, values(0, count)))
    else:
        parts = list(map(format_value, values(0, EDGE))) + ["..."]
        parts += map(format_value, values(count - EDGE, EDGE))
    return "{ " + ", ".join(parts) + " }"


# ---- entries ------------------------------------------------------------------------


def array_lines(a: _Array) -> List[str]:
    """`name: dtype[dims] = ...` and its rows."""
    if not a.dims:
        return [f"{a.name}: {a.dtype.name} = {format_value(a.values(0, 1)[0])}"]
    head = f"{a.name}: {a.dtype.name}[{', '.join(map(str, a.dims))}] = "
    if len(a.dims) == 1 or a.numel == 0:
        return [head + format_list(a.numel, a.values)]
    row = a.numel // a.dims[0]
    lines = [head + "{ "]
    for i in range(min(a.dims[0], ROWS)):
        lines.append(format_list(row, lambda start, n: a.values(i * row + start, n)) + " ,")
    if a.dims[0] > ROWS:
        lines.append("...")
    return lines + ["}"]


def text_of(v: MetaValue) -> Optional[bytes]:
    """The bytes of text that is stored as a list of u8, because no `str` may hold it."""
    if v.kind != "ndarray" or v.dtype.name != "u8" or len(v.dims) != 1 or not 0 < v.numel <= TEXT_LOOKED_AT:
        return None
    raw = bytes(v.values(0, v.numel))
    if _CONTROL.search(raw) or not _BEYOND_NAMES.search(raw):
        return None
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return raw


def meta_lines(v: MetaValue) -> List[str]:
    raw = text_of(v)
    if raw is not None:
        shown = raw[:TEXT_SHOWN].decode("utf-8", errors="ignore") if len(raw) > TEXT_SHOWN else raw.decode("utf-8")
        cut = " ..." if len(raw) > TEXT_SHOWN else ""
        return [f"{v.name}: text[{len(raw)}] = {quote(shown)}{cut}"]
    if v.kind == "str":
        return [f"{v.name}: str = {quote(v.value)}"]
    if v.kind == "bitset":
        bits = v.value
        shown = " ".join(f"{b:02x}" for b in bits.data[:4]) or "{ }"
        return [f"{v.name}: bitset[{bits.bit_count}] = {shown}"]
    return array_lines(v)


def tensor_lines(t: Tensor) -> List[str]:
    if not t.has_data:
        dims = f"[{', '.join(map(str, t.dims))}]" if t.dims else ""
        lines = [f"{t.name}: {t.dtype.name}{dims} -- uninitialized"]
    else:
        lines = array_lines(t) + summary_lines(t)
    if t.quant is not None:
        lines.append("- quant: " + format_quant(t.quant))
    return lines


def tensor_stats(t: Tensor) -> Stats:
    if _np.available() is None:
        return stats_of_values(t.values(), t.dtype)
    try:
        return stats_of_raw(t.raw(), t.dtype, t.numel, t._strict)
    except OinfError as e:
        raise t._placed(e) from None


def summary_lines(t: Tensor) -> List[str]:
    if t.numel == 0:
        return ["- [nbytes: 0]"]
    s = tensor_stats(t)
    parts = [f"nbytes: {t.data_nbytes}"]
    if s.n:
        parts += [f"min: {format_value(s.min)}", f"max: {format_value(s.max)}"]
        parts += [f"{k}: {format_float(v)}" for k, v in (("mean", s.mean), ("median", s.median), ("std", s.std))]
    parts += [f"{k}: {n}" for k, n in (("inf", s.n_inf), ("nan", s.n_nan)) if n]
    bins = [f"([{format_value(lo)}, {format_value(hi)}], {n})" for lo, hi, n in s.hist]
    return [f"- [{', '.join(parts)}]", f"- hist: {{{', '.join(bins)}}}"]


def format_quant(quant: QuantParams) -> str:
    def part(mode: str, axis: int, values: Sequence[Any]) -> str:
        if mode == "per_tensor":
            return f"per_tensor({format_value(values[0])})"
        shown = format_list(len(values), lambda start, n: list(values[start : start + n]))
        return f"per_channel(axis={axis}, {shown})"

    zp = quant.zero_point
    scale = part(quant.scale.mode, quant.scale.axis, quant.scale.values)
    zero_point = part(zp.mode, zp.axis, zp.values) if zp else "none"
    return f"scheme={quant.scheme}, scale={scale}, zero_point={zero_point}"


# ---- JSON ---------------------------------------------------------------------------


def inspect_json(package: Package, tensor: Optional[str] = None) -> str:
    """The listing as JSON; with a tensor name, only that tensor."""
    if tensor is not None:
        tensors = {tensor: tensor_json(find_tensor(package, tensor))}
        return to_json({"sizevars": {}, "metadata": {}, "tensors": tensors}) + "\n"
    tree = {
        "sizevars": package.sizevars,
        "metadata": {k: meta_json(v) for k, v in package.metadata.items()},
        "tensors": {k: tensor_json(t) for k, t in package.tensors.items()},
    }
    return to_json(tree) + "\n"


class _Literal(str):
    """A number already spelled."""


def _json_float(v: float, dtype: DType) -> Any:
    if not math.isfinite(v):
        return format_float(v)
    return _Literal(("%.17g" if dtype.name == "f64" else "%.9g") % v)


def meta_json(v: MetaValue) -> Dict[str, Any]:
    if v.kind == "str":
        return {"dtype": "str", "value": v.value}
    if v.kind == "bitset":
        return {"dtype": "bitset", "value": [int(b) for b in v.value]}
    values = v.values()
    if v.dtype.is_float:
        values = [_json_float(x, v.dtype) for x in values]
    if v.kind == "scalar":
        return {"dtype": v.dtype.name, "value": values[0]}
    return {"dtype": v.dtype.name, "dims": list(v.dims), "value": values}


def tensor_json(t: Tensor) -> Dict[str, Any]:
    out: Dict[str, Any] = {
        "dtype": t.dtype.name,
        "dims": list(t.dims),
        "flags": t.flags,
        "data_offset": t.data_offset,
        "data_nbytes": t.data_nbytes,
        "quant": quant_json(t.quant),
    }
    if t.flags & HAS_QUANT:
        out["quant_offset"] = t.quant_offset
        out["quant_nbytes"] = t.quant_nbytes
    return out


def quant_json(quant: Optional[QuantParams]) -> Optional[Dict[str, Any]]:
    if quant is None:
        return None
    scale, zp = quant.scale, quant.zero_point
    values = [_Literal("%.9g" % s) for s in scale.values]
    return {
        "scheme": quant.scheme,
        "scale": {"mode": scale.mode, "axis": scale.axis, "values": values},
        "zero_point": zp and {"mode": zp.mode, "axis": zp.axis, "values": list(zp.values)},
    }


def to_json(v: Any, indent: str = "") -> str:
    """Sorted keys, two spaces; text stays UTF-8."""
    if v is None:
        return "null"
    if isinstance(v, _Literal):
        return v
    if isinstance(v, str):
        return quote(v)
    if isinstance(v, (bool, int)):
        return format_value(v)
    inner = indent + "  "
    if isinstance(v, dict):
        parts = [f"{inner}{quote(k)}: {to_json(v[k], inner)}" for k in sorted(v)]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}" if parts else "{}"
    parts = [inner + to_json(x, inner) for x in v]
    return "[\n" + ",\n".join(parts) + f"\n{indent}]" if parts else "[]"
