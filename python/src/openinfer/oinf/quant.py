"""Quantisation parameters and their payload (spec section 5).

    0  u32 scheme   4  u32 scale_mode   8 u32 zp_mode   12 u32 reserved
    16 u64 scale_axis  24 u64 scale_count  32 u64 zp_axis  40 u64 zp_count
    48 f32 scales[scale_count], i32 zps[zp_count], zero padding to 8

real = scale * (q - zero_point)
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any, Iterable, Optional, Sequence, Tuple

from .dtypes import BY_NAME, encode_list
from .types import OinfError

HEAD = struct.Struct("<IIIIQQQQ")
SCHEMES = {1: "symmetric", 2: "asymmetric"}
MODES = {0: "none", 1: "per_tensor", 2: "per_channel"}


def _flat(values: Any) -> Tuple[Any, ...]:
    return tuple(values.tolist()) if hasattr(values, "tolist") else tuple(values)


@dataclass(frozen=True)
class QuantScale:
    """Scales, as they are stored: rounded to f32."""

    mode: str
    axis: int
    values: Tuple[float, ...]

    @classmethod
    def per_tensor(cls, value: float) -> "QuantScale":
        return cls("per_tensor", 0, _round_f32([value]))

    @classmethod
    def per_channel(cls, axis: int, values: Iterable[float]) -> "QuantScale":
        return cls("per_channel", axis, _round_f32(_flat(values)))


@dataclass(frozen=True)
class QuantZeroPoint:
    mode: str
    axis: int
    values: Tuple[int, ...]

    @classmethod
    def per_tensor(cls, value: int) -> "QuantZeroPoint":
        return cls("per_tensor", 0, (value,))

    @classmethod
    def per_channel(cls, axis: int, values: Iterable[int]) -> "QuantZeroPoint":
        return cls("per_channel", axis, _flat(values))


@dataclass(frozen=True)
class QuantParams:
    scheme: str
    scale: QuantScale
    zero_point: Optional[QuantZeroPoint] = None

    def encode(self, dims: Sequence[int]) -> bytes:
        """The payload for a tensor of these dims; raises when a rule is broken."""
        scheme = _code(SCHEMES, self.scheme, "scheme")
        scale_mode = _code(MODES, self.scale.mode, "scale mode")
        zp = self.zero_point or QuantZeroPoint("none", 0, ())
        zp_mode = _code(MODES, zp.mode, "zero point mode")
        head = (
            scheme, scale_mode, zp_mode, 0,
            self.scale.axis, len(self.scale.values), zp.axis, len(zp.values),
        )  # fmt: skip
        reason = check_head(head, dims) or check_scales(self.scale.values)
        if reason:
            raise OinfError(f"quant: {reason}")
        body = encode_list(self.scale.values, "f32") + encode_list(zp.values, BY_NAME["i32"])
        blob = HEAD.pack(*head) + body
        return blob + bytes(-len(blob) % 8)


def _code(table: Any, name: str, what: str) -> int:
    for code, known in table.items():
        if known == name:
            return int(code)
    raise OinfError(f"quant: unknown {what} {name!r}")


def _round_f32(values: Sequence[Any]) -> Tuple[float, ...]:
    raw = encode_list(values, "f32")
    return tuple(struct.unpack(f"<{len(values)}f", raw))


def check_head(head: Sequence[int], dims: Sequence[int]) -> Optional[str]:
    """Why the fixed part breaks a rule, or None. Says nothing about the file yet."""
    scheme, scale_mode, zp_mode, reserved, scale_axis, scale_count, zp_axis, zp_count = head
    if scheme not in SCHEMES:
        return f"unknown scheme {scheme}"
    if scale_mode not in (1, 2):
        return f"unknown scale mode {scale_mode}"
    if zp_mode not in MODES:
        return f"unknown zero point mode {zp_mode}"
    if reserved:
        return "reserved field is not 0"
    reason = _check_axis("scale", scale_mode, scale_axis, scale_count, dims)
    if reason:
        return reason
    if zp_mode == 0:
        return "zero point fields set without a zero point" if zp_axis or zp_count else None
    if scheme == 1:
        return "the symmetric scheme forbids a zero point"
    if zp_mode != scale_mode:
        return f"zero point is {MODES[zp_mode]} but scale is {MODES[scale_mode]}"
    if (zp_axis, zp_count) != (scale_axis, scale_count):
        return "zero point axis and count differ from the scale's"
    return None


def _check_axis(what: str, mode: int, axis: int, count: int, dims: Sequence[int]) -> Optional[str]:
    if mode == 1:
        return None if axis == 0 and count == 1 else f"per tensor {what} needs axis 0 and count 1"
    if not 0 <= axis < len(dims):
        return f"{what} axis {axis} is not below the rank {len(dims)}"
    if count != dims[axis]:
        return f"{count} {what} values for a dimension of {dims[axis]}"
    return None


def check_scales(scales: Iterable[float]) -> Optional[str]:
    for s in scales:
        if not (math.isfinite(s) and s > 0):
            return f"scale {s:.6g} is not finite and positive"
    return None


def decode_body(head: Sequence[int], body: bytes) -> QuantParams:
    """Parameters from a checked head and the scales and zero points that follow it."""
    scheme, scale_mode, zp_mode, _, scale_axis, n_scale, zp_axis, n_zp = head
    scales = struct.unpack_from(f"<{n_scale}f", body)
    zps = struct.unpack_from(f"<{n_zp}i", body, 4 * n_scale)
    zero_point = QuantZeroPoint(MODES[zp_mode], zp_axis, zps) if zp_mode else None
    return QuantParams(SCHEMES[scheme], QuantScale(MODES[scale_mode], scale_axis, scales), zero_point)
