"""Write, read and inspect OINF model packages."""

from .dtypes import DType, dtype_of
from .from_dataclass import dataclass_to_oinf, write_oinf
from .quant import QuantParams, QuantScale, QuantZeroPoint
from .read import Limits, MetaValue, Package, Tensor, read_oinf
from .types import (
    ArrayValue, Bitset, OinfError, ScalarValue, SizeVar, StreamTensor, TensorSpec, UninitializedTensor,
)  # fmt: skip
from .write import PackageWriter, write_package

__version__ = "0.1.0"

__all__ = [
    "ArrayValue", "Bitset", "DType", "Limits", "MetaValue", "OinfError", "Package", "PackageWriter",
    "QuantParams", "QuantScale", "QuantZeroPoint", "ScalarValue", "SizeVar", "StreamTensor", "Tensor",
    "TensorSpec", "UninitializedTensor", "dataclass_to_oinf", "dtype_of", "read_oinf", "write_oinf",
    "write_package",
]  # fmt: skip
