"""A trace as facts: tables, names, devices and what was found while reading it."""

from collections.abc import Mapping
from dataclasses import dataclass

from traceaudit.model.findings import Finding
from traceaudit.model.schema import Collectives, DeviceOps, HostRows, Overheads, Syncs, Threads

__all__ = ["DeviceInfo", "RecordedWall", "Trace", "TraceSource"]


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device as the trace lists it; None where the writer does not say."""

    rank: int
    device: int
    name: str | None
    sms: int | None = None
    memory_bytes: int | None = None
    compute_major: int | None = None
    compute_minor: int | None = None


@dataclass(frozen=True, slots=True)
class RecordedWall:
    """Unprofiled step times that the recorder stored in the trace, in ns, one for each repeat."""

    wall_ns_per_step: tuple[int, ...]
    batch: int | None = None
    context: int | None = None


@dataclass(frozen=True, slots=True)
class TraceSource:
    """What the file is.

    Attributes
    ----------
    path
        As given by the user; ``-`` for standard input.
    events
        Rows in the events array, whatever their kind.
    bytes_read
        Decompressed size in bytes.
    writer
        What wrote the file, as far as its features tell; None if they do not.
    time_resolution_ns
        1 for decimal microseconds, 1000 for whole ones.
    origin_ns
        Unix time of the table's time 0 in ns; None where the file does not tell.
    categories
        Rows by category as written ("" for rows without one) and phase, such as ``("kernel", "X")``.
    versions
        Version keys of the file, such as ``cuda_runtime_version``.
    capture_ns
        Start and end of the capture in table time, None where the file does not tell.
    captures_ns
        The same for each of several captures in one file, in time order; what lies between them was not recorded.
    """

    path: str
    events: int
    bytes_read: int
    writer: str | None
    time_resolution_ns: int
    origin_ns: int | None
    categories: Mapping[tuple[str, str], int]
    versions: Mapping[str, str]
    capture_ns: tuple[int, int] | None
    captures_ns: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace file as frozen tables.

    Attributes
    ----------
    source
        What the file is.
    names
        Texts that the tables' codes stand for.
    details
        Raw JSON texts that `HostRows.detail` stands for (op shapes, dtypes, Triton metadata).
    ops, host, threads, syncs, overheads, collectives
        The tables; see `traceaudit.model.schema`.
    devices
        Devices listed by the file, used or not.
    ranks
        Ranks whose rows the file holds.
    world_size
        Ranks of the run, None where the file does not tell.
    wall
        Unprofiled step times stored by the recorder, if any.
    findings
        What was found while reading and checking the rows.
    """

    source: TraceSource
    names: tuple[str, ...]
    details: tuple[bytes, ...]
    ops: DeviceOps
    host: HostRows
    threads: Threads
    syncs: Syncs
    overheads: Overheads
    collectives: Collectives
    devices: tuple[DeviceInfo, ...]
    ranks: tuple[int, ...]
    world_size: int | None
    wall: RecordedWall | None
    findings: tuple[Finding, ...]
