"""What `inspect` answers."""

from collections.abc import Mapping
from dataclasses import dataclass

from traceaudit.model.results.completeness import Completeness
from traceaudit.model.results.ledger import StepSource, Totals
from traceaudit.model.trace import TraceSource

__all__ = [
    "DeviceInventory",
    "Inspection",
    "LaunchCoverage",
]


@dataclass(frozen=True, slots=True)
class LaunchCoverage:
    """How many calls of one enqueuing API have device ops, and how many ops they have; API None: ops without launch."""

    rank: int
    api: str | None
    calls: int
    calls_with_ops: int
    ops: int
    op_time_ns: int


@dataclass(frozen=True, slots=True)
class DeviceInventory:
    """What one device holds in the trace."""

    rank: int
    device: int
    name: str | None
    streams: int
    ops_by_kind: Mapping[str, int]
    totals: Totals
    step_source: StepSource
    step_reason: str
    steps: int


@dataclass(frozen=True, slots=True)
class Inspection:
    """The result of `inspect`: what the files are and whether to believe them."""

    sources: tuple[TraceSource, ...]
    path: str
    completeness: Completeness
    devices: tuple[DeviceInventory, ...]
    coverage: tuple[LaunchCoverage, ...]
    ranks: tuple[int, ...]
    world_size: int | None
