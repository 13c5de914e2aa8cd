"""Operands of a framework op as the profiler records them: dims, data type, strides, scalar values."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["DTYPE_BYTES", "OpCall", "Operand", "compute_dtype", "op_call"]

DTYPE_BYTES: dict[str, int] = {
    "double": 8,
    "float": 4,
    "c10::Half": 2,
    "c10::BFloat16": 2,
    "long int": 8,
    "long": 8,
    "long long": 8,
    "unsigned long": 8,
    "int": 4,
    "unsigned int": 4,
    "short int": 2,
    "short": 2,
    "unsigned short": 2,
    "signed char": 1,
    "unsigned char": 1,
    "bool": 1,
    "c10::Float8_e4m3fn": 1,
    "c10::Float8_e5m2": 1,
    "c10::Float8_e4m3fnuz": 1,
    "c10::Float8_e5m2fnuz": 1,
    "c10::Float8_e8m0fnu": 1,
    "c10::Float4_e2m1fn_x2": 1,  # two values a byte, and dims count bytes
    "c10::complex<float>": 8,
    "c10::complex<double>": 16,
}
"""Bytes of an element by the name that the profiler writes."""

SCALAR_TYPES: dict[int, str] = {
    0: "unsigned char",
    1: "signed char",
    2: "short int",
    3: "int",
    4: "long int",
    5: "c10::Half",
    6: "float",
    7: "double",
    11: "bool",
    15: "c10::BFloat16",
    23: "c10::Float8_e5m2",
    24: "c10::Float8_e4m3fn",
}
"""torch's numbers of data types, as concrete inputs hold them (c10/core/ScalarType.h)."""

_COMPUTE = {"c10::Half": "fp16", "c10::BFloat16": "bf16", "float": "fp32", "signed char": "int8"}


@dataclass(frozen=True, slots=True)
class Operand:
    """One input of an op.

    Attributes
    ----------
    dims
        Sizes; empty for scalars and for tensors without dimension.
    dtype
        Name of the element type, ``Scalar`` and the like for what is no tensor.
    strides
        In elements; None where not recorded.
    value
        A scalar as text, empty for tensors.
    members
        Tensors of a list.
    cut
        Whether the profiler cut the sizes off, so that `dims` says nothing.
    """

    dims: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None
    value: str = ""
    members: tuple["Operand", ...] = ()
    cut: bool = False

    @property
    def is_tensor(self) -> bool:
        """Whether it is one tensor of a known type and size."""
        return not self.cut and self.dtype in DTYPE_BYTES

    @property
    def numel(self) -> int:
        """Elements."""
        return math.prod(self.dims)

    @property
    def item_bytes(self) -> int:
        """Bytes of an element."""
        return DTYPE_BYTES[self.dtype]

    @property
    def stored(self) -> int:
        """Elements that lie in memory: dimensions that repeat the same ones (stride 0) count once."""
        if self.strides is None or len(self.strides) != len(self.dims):
            return self.numel
        return math.prod(size for size, stride in zip(self.dims, self.strides, strict=True) if stride or not size)

    @property
    def size_bytes(self) -> int:
        """Bytes of the elements in memory."""
        return self.stored * self.item_bytes

    def integer(self) -> int | None:
        """Return the scalar as an integer, None if it is none."""
        try:
            return int(self.value)
        except ValueError:
            return None

    def integers(self) -> tuple[int, ...] | None:
        """Return the scalar list as integers, None if it is none."""
        try:
            values = json.loads(self.value)
        except ValueError:
            return None
        if not isinstance(values, list) or not all(isinstance(value, int) for value in values):
            return None
        return tuple(values)


@dataclass(frozen=True, slots=True)
class OpCall:
    """A call of a framework op with its operands, as recorded.

    Attributes
    ----------
    extra
        What compilers add: ``kernel_backend``, ``kernel_num_gb``, ``kernel_flop``, ``kernel_name`` and the like.
    """

    name: str
    operands: tuple[Operand, ...]
    extra: Mapping[str, object]

    @property
    def complete(self) -> bool:
        """Whether no operand's dims were cut off."""
        return not any(item.cut for item in self.operands)

    def tensors(self) -> Iterator[Operand]:
        """Yield the tensors, those of lists included, in order."""
        for item in self.operands:
            if item.members:
                yield from (member for member in item.members if member.is_tensor)
            elif item.is_tensor:
                yield item

    def lengths(self) -> Iterator[int]:
        """Yield the sizes of every axis of every operand, those of lists included."""
        for item in self.operands:
            for one in item.members or (item,):
                yield from one.dims

    def tensor(self, index: int) -> Operand | None:
        """Return the operand at a position if it is a tensor."""
        if index >= len(self.operands) or not self.operands[index].is_tensor:
            return None
        return self.operands[index]

    def flag(self, index: int) -> bool:
        """Return the scalar at a position as a truth value."""
        return index < len(self.operands) and self.operands[index].value == "True"

    def integer(self, index: int) -> int | None:
        """Return the scalar at a position as an integer."""
        return self.operands[index].integer() if index < len(self.operands) else None

    def dtype_at(self, index: int) -> str | None:
        """Return the data type that the scalar at a position names."""
        number = self.integer(index)
        return None if number is None else SCALAR_TYPES.get(number)


def op_call(name: str, detail: bytes) -> OpCall:
    """Decode what the trace holds of an op's inputs (`Trace.details`).

    Examples
    --------
    >>> call = op_call("aten::relu", b'{"Input Dims":[[2,3]],"Input type":["float"],"Input Strides":[[0,1]]}')
    >>> call.operands[0].numel, call.operands[0].size_bytes
    (6, 12)
    """
    try:
        record = json.loads(detail)
    except ValueError:
        record = {}
    if not isinstance(record, dict):
        record = {}
    dims = _listed(record, "Input Dims", "Input dims")
    types = _listed(record, "Input type")
    strides = _listed(record, "Input Strides")
    values = _listed(record, "Concrete Inputs")
    operands = tuple(
        _operand(dims[index], _at(types, index), _at(strides, index), _at(values, index)) for index in range(len(dims))
    )
    extra = {key: value for key, value in record.items() if key.startswith("kernel_") or key in {"grid", "num_warps"}}
    return OpCall(name, operands, extra)


def compute_dtype(dtype: str) -> str | None:
    """Return the key of the compute peak for products of this element type.

    Examples
    --------
    >>> compute_dtype("c10::Float8_e4m3fn"), compute_dtype("c10::BFloat16"), compute_dtype("bool")
    ('fp8', 'bf16', None)
    """
    if dtype.startswith("c10::Float8"):
        return "fp8"
    if dtype.startswith("c10::Float4"):
        return "fp4"
    return _COMPUTE.get(dtype)


def _listed(record: Mapping[str, Any], *keys: str) -> list[Any]:
    found: object = next((record[key] for key in keys if key in record), [])
    return found if isinstance(found, list) else []


def _at(items: list[Any], index: int) -> Any:  # noqa: ANN401  (whatever the JSON holds)
    return items[index] if index < len(items) else None


def _operand(dims: object, dtype: object, strides: object, value: object) -> Operand:
    kind = dtype if isinstance(dtype, str) else ""
    text = value if isinstance(value, str) else "" if value is None else str(value)
    if isinstance(dims, list) and any(isinstance(item, list) for item in dims):
        return Operand((), kind, value=text, members=_members(dims, kind, strides))
    return _sized(dims, kind, strides, text)


def _members(dims: list[Any], kind: str, strides: object) -> tuple[Operand, ...]:
    """Read a list of tensors; the profiler does not say their type, which is that of the list if that names one."""
    steps = strides if isinstance(strides, list) else []
    return tuple(_sized(size, kind, _at(steps, index), "") for index, size in enumerate(dims))


def _sized(dims: object, kind: str, strides: object, text: str) -> Operand:
    sizes = _sizes(dims)
    return Operand(sizes or (), kind, _sizes(strides), text, cut=sizes is None)


def _sizes(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
        return None
    return tuple(value)
