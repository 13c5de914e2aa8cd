"""Arguments of rows, decoded for those categories that need some, all rows of a block at once."""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET, Raw, Struct, UnsetType

from traceaudit.ingest.decode import Row

__all__ = [
    "UNKNOWN_STREAM",
    "ApiArgs",
    "DeviceArgs",
    "SyncArgs",
    "api_args",
    "as_int",
    "compact",
    "details",
    "device_args",
    "int64",
    "stream_of_text",
    "sync_args",
]

_T = TypeVar("_T", bound=Struct)
UNKNOWN_STREAM = -1
"""Stands for the queue of an op where the writer names none: ops that share it need not be in order."""

_INT64_BITS = 64
_LINE_END = b"\n"


class DeviceArgs(Struct, gc=False):
    """What device rows say; -1 where they do not."""

    device: int = -1
    stream: int | None = None
    original_stream: int | None = None
    correlation: int = 0
    graph: int = msgspec.field(default=-1, name="graph id")
    graph_node: int = msgspec.field(default=-1, name="graph node id")
    grid: list[int] | None = None
    block: list[int] | None = None
    registers: int = msgspec.field(default=-1, name="registers per thread")
    shared_mem: int = msgspec.field(default=-1, name="shared memory")
    copied: int = msgspec.field(default=-1, name="bytes")
    from_device: int = msgspec.field(default=-1, name="fromDevice")
    ascend_stream: int | None = msgspec.field(default=None, name="Stream Id")
    sycl_queue: int | str | None = msgspec.field(default=None, name="sycl queue")
    collective: str | None = msgspec.field(default=None, name="Collective name")
    group: str | None = msgspec.field(default=None, name="Process Group Name")
    dtype: str | None = None
    in_elements: int = msgspec.field(default=-1, name="In msg nelems")
    out_elements: int = msgspec.field(default=-1, name="Out msg nelems")
    in_size: int = msgspec.field(default=-1, name="In msg size")
    out_size: int = msgspec.field(default=-1, name="Out msg size")
    group_size: int = msgspec.field(default=-1, name="Group size")


class ApiArgs(Struct, gc=False):
    """What API rows say."""

    correlation: int = 0


class SyncArgs(Struct, gc=False):
    """What the rows of waits say; -1 where they do not."""

    device: int = -1
    stream: int = -1
    correlation: int = 0
    wait_on_stream: int = -1
    wait_on_correlation: int = msgspec.field(default=-1, name="wait_on_cuda_event_record_corr_id")


class _Details(Struct, omit_defaults=True, gc=False):
    """What framework ops say of their inputs, and Inductor of its kernels; kept as written."""

    input_dims: Raw | UnsetType = msgspec.field(default=UNSET, name="Input Dims")
    input_dims_old: Raw | UnsetType = msgspec.field(default=UNSET, name="Input dims")
    input_type: Raw | UnsetType = msgspec.field(default=UNSET, name="Input type")
    input_strides: Raw | UnsetType = msgspec.field(default=UNSET, name="Input Strides")
    concrete_inputs: Raw | UnsetType = msgspec.field(default=UNSET, name="Concrete Inputs")
    kernel_file: Raw | UnsetType = UNSET
    kernel_hash: Raw | UnsetType = UNSET
    kernel_backend: Raw | UnsetType = UNSET
    kernel_name: Raw | UnsetType = UNSET
    kernel_kwargs: Raw | UnsetType = UNSET
    kernel_num_gb: Raw | UnsetType = UNSET
    kernel_flop: Raw | UnsetType = UNSET
    grid: Raw | UnsetType = UNSET
    num_warps: Raw | UnsetType = UNSET
    num_stages: Raw | UnsetType = UNSET


_DETAILS = msgspec.json.Decoder(list[_Details])
_ONE_DETAILS = msgspec.json.Decoder(_Details)
_ENCODER = msgspec.json.Encoder()
_ANY_OBJECT = msgspec.json.Decoder(dict[str, Any])
_LISTS: dict[type[Struct], msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
    for kind in (DeviceArgs, ApiArgs, SyncArgs)
}


def device_args(rows: Sequence[Row]) -> list[DeviceArgs]:
    """Decode the arguments of device rows."""
    return _decode(rows, DeviceArgs)


def api_args(rows: Sequence[Row]) -> list[ApiArgs]:
    """Decode the arguments of API rows."""
    return _decode(rows, ApiArgs)


def sync_args(rows: Sequence[Row]) -> list[SyncArgs]:
    """Decode the arguments of the rows of waits."""
    return _decode(rows, SyncArgs)


def details(rows: Sequence[Row]) -> list[bytes]:
    """Return the details of framework ops as JSON objects, ``{}`` for rows without."""
    try:
        decoded = _DETAILS.decode(b"[" + b",".join([row.args for row in rows]) + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        decoded = [_one_details(row.args) for row in rows]
    encoded = _ENCODER.encode_lines(decoded)
    if encoded.count(_LINE_END) == len(rows):
        return encoded.split(_LINE_END)[:-1]
    # Values printed over several lines hold line ends of their own.
    return list(map(_ENCODER.encode, decoded))


def compact(text: bytes) -> bytes:
    r"""Return the JSON text without insignificant space, and with what is no UTF-8 replaced.

    Examples
    --------
    >>> compact(b'{"a": [1,\n 2]}')
    b'{"a":[1,2]}'
    """
    return msgspec.json.format(text.decode("utf-8", "replace").encode(), indent=-1)


def _one_details(args: Raw) -> _Details:
    try:
        return _ONE_DETAILS.decode(args)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Details()


def _decode(rows: Sequence[Row], kind: type[_T]) -> list[_T]:
    try:
        decoded: list[_T] = _LISTS[kind].decode(b"[" + b",".join([row.args for row in rows]) + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [_decode_one(row.args, kind) for row in rows]
    return decoded


def _decode_one(args: Raw, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(args, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        written = _ANY_OBJECT.decode(bytes(args).decode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return kind()
    found = {}
    for item in msgspec.structs.fields(kind):
        if item.encode_name in written:
            value = _coerced(written[item.encode_name], item.type)
            if value is not None:
                found[item.name] = value
    return kind(**found)


def _coerced(value: object, kind: object) -> object:
    if kind in (int, int | None):
        return as_int(value)
    if kind == str | None:
        return str(value) if isinstance(value, str | int) else None
    if kind == list[int] | None:
        numbers = [as_int(item) for item in value] if isinstance(value, list) else [None]
        return None if None in numbers else numbers
    return value if isinstance(value, str | int) else None


def as_int(value: object) -> int | None:
    """Return the integer that a value of JSON stands for, None if it is none.

    Examples
    --------
    >>> as_int("0x10"), as_int(7.0), as_int("N/A")
    (16, 7, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str):
        try:
            return int(value, 0) if value[:2].lower() == "0x" else int(value)
        except ValueError:
            return None
    return value if isinstance(value, int) else None


def stream_of_text(text: str) -> int | None:
    """Return the number of a stream given in words.

    Examples
    --------
    >>> stream_of_text("stream 7"), stream_of_text("12"), stream_of_text("default")
    (7, 12, None)
    """
    return as_int(text.strip().lower().removeprefix("stream").strip())


def int64(values: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return integers as int64; larger ones keep their lowest 64 bits."""
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        mask, half = (1 << _INT64_BITS) - 1, 1 << (_INT64_BITS - 1)
        return np.array([((value & mask) ^ half) - half for value in values], dtype=np.int64)
