"""The keys around the events: devices, ranks, base time, versions, and the wall that a recorder stored."""

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from traceaudit.ingest.clean import ABSURD_NS
from traceaudit.ingest.decode import Failure
from traceaudit.ingest.repair import MAX_REPAIRED_BYTES, repair
from traceaudit.ingest.times import text_to_ns
from traceaudit.model.trace import RecordedWall

__all__ = ["ListedDevice", "TopKeys", "nests_deeper", "parse_top_keys"]

_T = TypeVar("_T")
_SPACE = b" \t\r\n\0"
_MAX_RANK = 1 << 31
_DIGITS = len(str(_MAX_RANK))
_MAX_MATCHES = 8  # of a key in a broken text

VERSION_KEYS = (
    "schemaVersion",
    "cupti_version",
    "cuda_runtime_version",
    "cuda_driver_version",
    "roctracer_version",
    "rocprofiler-sdk_version",
    "hip_runtime_version",
    "hip_driver_version",
    "xpupti_version",
    "vllm_version",
)


class ListedDevice(Struct, rename="camel"):
    """An element of ``deviceProperties``."""

    id: int | str | None = None
    name: str | None = None
    total_global_mem: int | None = None
    compute_major: int | None = None
    compute_minor: int | None = None
    num_sms: int | None = None
    max_compute_units: int | None = None


class _Distributed(Struct):
    backend: str | None = None
    rank: int | str | None = None
    world_size: int | str | None = None
    nccl_version: str | None = None


class _Wall(Struct):
    schema_version: int
    wall_ns_per_step: list[int | float]
    batch: int | None = None
    context: int | None = None


class _Keys(Struct):
    device_properties: Raw | UnsetType = msgspec.field(default=UNSET, name="deviceProperties")
    distributed: Raw | UnsetType = msgspec.field(default=UNSET, name="distributedInfo")
    base_time: Raw | UnsetType = msgspec.field(default=UNSET, name="baseTimeNanoseconds")
    trace_name: Raw | UnsetType = msgspec.field(default=UNSET, name="traceName")
    display_unit: Raw | UnsetType = msgspec.field(default=UNSET, name="displayTimeUnit")
    metadata: Raw | UnsetType = msgspec.field(default=UNSET, name="metadata")
    wall: Raw | UnsetType = msgspec.field(default=UNSET, name="traceaudit")
    schema: Raw | UnsetType = msgspec.field(default=UNSET, name="schemaVersion")
    cupti: Raw | UnsetType = msgspec.field(default=UNSET, name="cupti_version")
    cuda_runtime: Raw | UnsetType = msgspec.field(default=UNSET, name="cuda_runtime_version")
    cuda_driver: Raw | UnsetType = msgspec.field(default=UNSET, name="cuda_driver_version")
    roctracer: Raw | UnsetType = msgspec.field(default=UNSET, name="roctracer_version")
    rocprofiler: Raw | UnsetType = msgspec.field(default=UNSET, name="rocprofiler-sdk_version")
    hip_runtime: Raw | UnsetType = msgspec.field(default=UNSET, name="hip_runtime_version")
    hip_driver: Raw | UnsetType = msgspec.field(default=UNSET, name="hip_driver_version")
    xpupti: Raw | UnsetType = msgspec.field(default=UNSET, name="xpupti_version")
    vllm: Raw | UnsetType = msgspec.field(default=UNSET, name="vllm_version")


_KEYS = msgspec.json.Decoder(_Keys)
_WRITTEN: dict[str, str] = {item.encode_name: item.name for item in msgspec.structs.fields(_Keys)}


@dataclass(frozen=True, slots=True)
class TopKeys:
    """What the object around the events says.

    Attributes
    ----------
    base_ns
        Unix time in ns that is to be added to every time, None where the writer has none.
    devices
        Devices listed.
    rank, world_size, backend
        From the process group, None without one.
    versions
        Version keys by name.
    wall
        Unprofiled step times that the recorder stored.
    present
        Keys of interest that the object has.
    repairs
        Repairs that the text around the events needed.
    unreadable
        Where that text is broken beyond repair (byte in it), None if it is not.
    truncated
        The text ends early.
    extra
        What follows the first document, empty if nothing does.
    """

    base_ns: int | None = None
    devices: tuple[ListedDevice, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    backend: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    wall: RecordedWall | None = None
    present: frozenset[str] = frozenset()
    repairs: dict[str, int] = field(default_factory=dict)
    unreadable: int | None = None
    truncated: bool = False
    extra: bytes = b""


def nests_deeper(head: bytes) -> bool:
    """Return whether a key that follows `head` belongs to an object inside the outermost one."""
    try:
        _KEYS.decode(head + b'"":0}')
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        return Failure.of(exc).truncated
    return False


def parse_top_keys(head: bytes, tail: bytes) -> TopKeys:
    """Decode the object around the events, given as its text before and after them; an empty head means a bare list."""
    if not head:
        return TopKeys(extra=tail.strip(_SPACE))
    text = head + b"0" + tail
    try:
        return _read(_KEYS.decode(text))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        failure = Failure.of(exc)
    if failure.trailing and failure.position is not None:
        # The decoder was not given the bracket that `Failure` takes off, so its place is one further.
        end = failure.position
        extra = text[end:].strip(_SPACE)
        return _with(_read(_KEYS.decode(text[:end])), extra=extra)
    fixed = repair(text, _parses) if len(text) <= MAX_REPAIRED_BYTES else None
    if fixed is not None:
        return _with(_read(_KEYS.decode(fixed[0])), repairs=fixed[1])
    return _with(_read(_find_keys(text)), truncated=failure.truncated, unreadable=failure.position or 0)


def _with(keys: TopKeys, **changes: Any) -> TopKeys:  # noqa: ANN401  (fields of any type)
    from dataclasses import replace

    return replace(keys, **changes)


def _parses(text: bytes) -> bool:
    try:
        _KEYS.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _find_keys(text: bytes) -> _Keys:
    """Find the keys one by one in a text that is no object any more."""
    found = _Keys()
    for written, name in _WRITTEN.items():
        matches = re.finditer(rb'"%b"\s*:\s*' % re.escape(written.encode()), text)
        for match in islice(matches, _MAX_MATCHES):
            value = _value_at(memoryview(text)[match.end() :])
            if value is not None:
                setattr(found, name, Raw(value))
    return found


def _value_at(text: memoryview) -> bytes | None:
    try:
        msgspec.json.decode(text, type=Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        failure = Failure.of(exc)
        return bytes(text[: failure.position]) if failure.trailing and failure.position else None
    return bytes(text)


def _read(keys: _Keys) -> TopKeys:
    distributed = _get(keys.distributed, _Distributed)
    versions = {name: _text(getattr(keys, _WRITTEN[name])) for name in VERSION_KEYS}
    if distributed is not None and distributed.nccl_version:
        versions["nccl_version"] = distributed.nccl_version
    return TopKeys(
        base_ns=_base(keys.base_time),
        devices=_devices(keys.device_properties),
        rank=_as_rank(distributed.rank) if distributed else None,
        world_size=_as_int(distributed.world_size) if distributed else None,
        backend=distributed.backend if distributed else None,
        versions={name: text for name, text in versions.items() if text},
        wall=_wall(keys.wall),
        present=frozenset(written for written, name in _WRITTEN.items() if getattr(keys, name) is not UNSET),
    )


def _get(value: Raw | UnsetType, kind: type[_T]) -> _T | None:
    if isinstance(value, UnsetType):
        return None
    try:
        return msgspec.json.decode(value, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _devices(value: Raw | UnsetType) -> tuple[ListedDevice, ...]:
    listed = (_get(item, ListedDevice) for item in _get(value, list[Raw]) or ())
    return tuple(device for device in listed if device is not None)


def _base(value: Raw | UnsetType) -> int | None:
    if isinstance(value, UnsetType):
        return None
    ns = text_to_ns(bytes(value).strip(b'"') + b"e-3")  # the same reader, of ns instead of µs
    return ns if ns > 0 else None


def _wall(value: Raw | UnsetType) -> RecordedWall | None:
    text = _get(value, str)  # add_metadata stores texts, add_metadata_json stores objects
    wall = _get(Raw(text.encode()) if text is not None else value, _Wall)
    if wall is None or not wall.wall_ns_per_step:
        return None
    if min(wall.wall_ns_per_step) < 1 or max(wall.wall_ns_per_step) > ABSURD_NS:
        return None
    return RecordedWall(tuple(round(ns) for ns in wall.wall_ns_per_step), wall.batch, wall.context)


def _text(value: Raw | UnsetType) -> str:
    if isinstance(value, UnsetType):
        return ""
    return bytes(value).strip(b'" ').decode("utf-8", "replace")


def _as_rank(value: int | str | None) -> int | None:
    rank = _as_int(value)
    return rank if rank is not None and 0 <= rank < _MAX_RANK else None


def _as_int(value: int | str | None) -> int | None:
    if isinstance(value, str):
        value = int(value) if value.isascii() and value.isdigit() and len(value) <= _DIGITS else None
    return value if value is not None and abs(value) < _MAX_RANK else None
