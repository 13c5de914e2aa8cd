"""What `gaps` answers: why the device waited, gap by gap, and whether host or device leads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from traceaudit.model.results.completeness import Completeness
from traceaudit.model.results.conservation import conserve
from traceaudit.model.trace import TraceSource

__all__ = [
    "CriticalPath",
    "DeviceGaps",
    "GapReport",
    "GapRow",
    "HostLedger",
    "HostShare",
    "Limit",
    "OtherThread",
    "PathPart",
    "ShortGaps",
]


class Limit(StrEnum):
    """What bounds the steps: the largest share of the window, `MIXED` when none holds half of it."""

    DEVICE_BOUND = "device_bound"
    HOST_BOUND = "host_bound"
    SYNC_BOUND = "sync_bound"
    COPY_BOUND = "copy_bound"
    COMM_BOUND = "comm_bound"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class GapRow:
    """The same gap in every step: equal position and neighbours.

    Attributes
    ----------
    position
        ``leading``, ``between`` or ``trailing`` in its window.
    before, after
        Names of the ops on either side, None where there is none.
    count
        Gaps folded into the row, over the used steps.
    total_ns, per_step_ns
        Their time, and that divided by the used steps.
    median_ns, p90_ns, max_ns
        Of one gap.
    host_ns, latency_ns, graph_ns, unknown_ns
        Parts of the total by who owns them; they sum to it.
    causes
        Parts of the total by cause, largest first; they sum to it.
    where
        Innermost frames or annotations that the host was in, largest first, "; " between them; None if nothing says.
    """

    position: str
    before: str | None
    after: str | None
    count: int
    total_ns: int
    per_step_ns: float
    median_ns: float
    p90_ns: float
    max_ns: int
    host_ns: int
    latency_ns: int
    graph_ns: int
    unknown_ns: int
    causes: Mapping[str, int]
    where: str | None

    def __post_init__(self) -> None:
        """Check that owners and causes sum to the total."""
        conserve("owners of a gap", self.host_ns + self.latency_ns + self.graph_ns + self.unknown_ns, self.total_ns)
        conserve("causes of a gap", sum(self.causes.values()), self.total_ns)

    @property
    def cause(self) -> str:
        """The largest cause."""
        return max(self.causes, key=lambda name: self.causes[name])


@dataclass(frozen=True, slots=True)
class HostShare:
    """Time of the launching thread on one thing: in the host intervals, and while the device waited for the thread.

    The device waits for a thread in the `idle_host` and `launch_call` of the used windows that end with its launches.
    """

    total_ns: int
    exposed_ns: int


@dataclass(frozen=True, slots=True)
class OtherThread:
    """A thread that launches too, by its id as written, and how long the device waited for it; ns."""

    thread: str
    exposed_ns: int


@dataclass(frozen=True, slots=True)
class HostLedger:
    """What the launching thread did over the host intervals of the used steps; the totals sum to them.

    What is exposed of it and of the other threads sums to the host cost.

    Attributes
    ----------
    thread
        Id, as written, of the thread with most launches.
    interval_ns
        Sum of the host intervals.
    host_cost_ns
        The ledger's `idle_host` and `launch_call`.
    shares
        By activity: ``schedule``, ``prepare``, ``forward``, ``output`` (engine phases by name), ``launch_api``,
        ``sync``, ``memory``, ``framework``, ``python``, ``annotation``, ``other_api``, ``profiler``, ``unrecorded``.
    others
        Other threads that the device waited for, most first.
    """

    thread: str
    interval_ns: int
    host_cost_ns: int
    shares: Mapping[str, HostShare]
    others: tuple[OtherThread, ...] = ()

    def __post_init__(self) -> None:
        """Check that the totals sum to the host intervals, and what is exposed to the host cost."""
        conserve("host ledger", sum(share.total_ns for share in self.shares.values()), self.interval_ns)
        own_ns = sum(share.exposed_ns for share in self.shares.values())
        conserve("exposed host time", own_ns + sum(one.exposed_ns for one in self.others), self.host_cost_ns)


@dataclass(frozen=True, slots=True)
class ShortGaps:
    """The tax of short kernels: gaps below `limit_ns`, and kernels shorter than their own launch call."""

    limit_ns: int
    gaps: int
    time_ns: int
    kernels: int
    shorter_than_launch: int


@dataclass(frozen=True, slots=True)
class PathPart:
    """All stretches of a critical path of one kind about one op or call; None for no name.

    `op_kind` says what an op that runs is for, ``compute``, ``comm``, ``memcpy`` or ``memset``; else it is None.
    """

    kind: str
    name: str | None
    count: int
    time_ns: int
    op_kind: str | None = None


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """What bound one step, from the start of its window to the end; the parts sum to it, most time first."""

    step: int
    window_ns: int
    parts: tuple[PathPart, ...]

    def __post_init__(self) -> None:
        """Check that the parts sum to the window."""
        conserve("critical path", sum(part.time_ns for part in self.parts), self.window_ns)

    def of_op_kinds(self, *op_kinds: str) -> int:
        """Return the time in which ops of these kinds run; ns."""
        return sum(part.time_ns for part in self.parts if part.op_kind in op_kinds)

    def by_kind(self) -> dict[str, int]:
        """Return the time of each kind of stretch, most first; ns."""
        sums: dict[str, int] = {}
        for part in self.parts:
            sums[part.kind] = sums.get(part.kind, 0) + part.time_ns
        return dict(sorted(sums.items(), key=lambda one: -one[1]))


@dataclass(frozen=True, slots=True)
class DeviceGaps:
    """The gaps of one device, most time first.

    Attributes
    ----------
    verdict, shares
        What bounds the steps, and the shares of the window by which it was decided.
    idle_ns
        Idle time of the used windows; the rows sum to it.
    path
        The critical path of a typical step.
    short_names
        A short form of the name of each op, different for different names.
    queue_depth
        Launches whose first op has not started, time-weighted mean; below 1 the host chases the device.
    """

    rank: int
    device: int
    name: str | None
    steps_used: int
    window_ns: int
    idle_ns: int
    verdict: Limit
    shares: Mapping[str, float]
    gaps: tuple[GapRow, ...]
    host: HostLedger
    short: ShortGaps
    queue_depth: float
    path: CriticalPath
    short_names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that the gaps sum to the idle time."""
        conserve("gaps", sum(row.total_ns for row in self.gaps), self.idle_ns)

    def shown(self, name: str) -> str:
        """Return the short form of an op's name, or the name where there is none."""
        return self.short_names.get(name, name)


@dataclass(frozen=True, slots=True)
class GapReport:
    """The result of `gaps`."""

    sources: tuple[TraceSource, ...]
    path: str
    completeness: Completeness
    devices: tuple[DeviceGaps, ...]
