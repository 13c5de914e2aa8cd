"""What `reconcile` answers: totals, steps, the ledger, and the mean step.

Durations are integer nanoseconds unless a field says otherwise. `Ledger` sums the steps used, `StepMean` divides it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from traceaudit.model.results.completeness import Completeness
from traceaudit.model.results.conservation import Sums, conserve
from traceaudit.model.trace import TraceSource

__all__ = [
    "Accounts",
    "DeviceAudit",
    "HostTimes",
    "IdleLatency",
    "IdlePosition",
    "Ledger",
    "Reconciliation",
    "StepItem",
    "StepKind",
    "StepMean",
    "StepSource",
    "Steps",
    "Totals",
    "Wall",
]


class StepSource(StrEnum):
    """Where the steps come from, in the order in which they are tried."""

    ANNOTATION = "annotation"
    PROFILER_STEP = "profiler_step"
    SGLANG = "sglang"
    VLLM = "vllm"
    GRAPH_LAUNCH = "graph_launch"
    KERNEL_CYCLE = "kernel_cycle"
    WHOLE_TRACE = "whole_trace"


class StepKind(StrEnum):
    """What an engine step works on."""

    DECODE = "decode"
    PREFILL = "prefill"
    MIXED = "mixed"
    IDLE = "idle"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Accounts(Sums):
    """Who owns the device, in ns; the parts sum to the window (DESIGN of the ledger: docs/concepts)."""

    compute: int = 0
    exposed_comm: int = 0
    exposed_copy: int = 0
    idle_graph: int = 0
    idle_latency: int = 0
    idle_host: int = 0
    idle_unknown: int = 0

    @property
    def busy(self) -> int:
        """Time in which at least one device op runs."""
        return self.compute + self.exposed_comm + self.exposed_copy

    @property
    def idle(self) -> int:
        """Time in which no device op runs."""
        return self.idle_graph + self.idle_latency + self.idle_host + self.idle_unknown


@dataclass(frozen=True, slots=True)
class IdleLatency(Sums):
    """Parts of `idle_latency`: the launch call runs, it returned inside the gap, it had returned before the gap."""

    launch_call: int = 0
    delivery: int = 0
    turnaround: int = 0


@dataclass(frozen=True, slots=True)
class IdlePosition(Sums):
    """Idle time by where its gap lies in the window."""

    leading: int = 0
    between: int = 0
    trailing: int = 0


@dataclass(frozen=True, slots=True)
class Totals:
    """A device over the whole trace: span from first to last op, gaps inside it."""

    device_ops: int
    op_time_ns: int
    busy_ns: int
    span_ns: int
    gaps: int

    @property
    def idle_ns(self) -> int:
        """Span minus busy."""
        return self.span_ns - self.busy_ns


@dataclass(frozen=True, slots=True)
class StepItem:
    """One step: its own ops by launch, and the accounts of its window.

    Attributes
    ----------
    left_out
        Why the step is not in the mean; None when it is used.
    """

    index: int
    name: str | None
    kind: StepKind
    batch: int | None
    tokens: int | None
    start_ns: int
    window_ns: int
    device_ops: int
    op_time_ns: int
    own_busy_ns: int
    accounts: Accounts
    left_out: str | None

    def __post_init__(self) -> None:
        """Check that the accounts sum to the window."""
        conserve(f"accounts of step {self.index}", self.accounts.total(), self.window_ns)

    @property
    def used(self) -> bool:
        """Whether the step is part of the ledger and the mean."""
        return self.left_out is None


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a device and where they come from; `reason` says why that source was taken."""

    source: StepSource
    reason: str
    items: tuple[StepItem, ...]

    @property
    def used(self) -> int:
        """Number of steps in the mean."""
        return sum(item.used for item in self.items)

    @property
    def batch(self) -> int | None:
        """The batch that all steps in the mean carry in their names, None if they carry none or several."""
        batches = {item.batch for item in self.items if item.used}
        return batches.pop() if len(batches) == 1 else None


@dataclass(frozen=True, slots=True)
class Wall:
    """A step time from outside the profiler, and who says so; with the range of its repeats, if there are several."""

    step_ns: int
    source: str
    low_ns: int | None = None
    high_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where the used steps' time went; sums exactly."""

    steps: int
    window_ns: int
    wall_ns: int | None
    accounts: Accounts
    idle_latency_by: IdleLatency
    idle_host_by: Mapping[str, int]
    idle_by_position: IdlePosition

    def __post_init__(self) -> None:
        """Check every conservation law of the ledger."""
        conserve("accounts", self.accounts.total(), self.window_ns)
        conserve("idle_latency_by", self.idle_latency_by.total(), self.accounts.idle_latency)
        conserve("idle_host_by", sum(self.idle_host_by.values()), self.accounts.idle_host)
        conserve("idle_by_position", self.idle_by_position.total(), self.accounts.idle)

    @property
    def residual_ns(self) -> int | None:
        """Wall minus window: time that the trace does not contain, negative if the profiler added some."""
        return None if self.wall_ns is None else self.wall_ns - self.window_ns

    @property
    def host_cost_ns(self) -> int:
        """What the host cost the device: idle_host plus the launch calls inside gaps."""
        return self.accounts.idle_host + self.idle_latency_by.launch_call


@dataclass(frozen=True, slots=True)
class HostTimes:
    """Unions over all threads of the rank, clipped to the used windows.

    Attributes
    ----------
    scheduler_ns, scheduler_exposed_ns
        Engine scheduling functions, and the part that falls in idle.
    launch_api_ns
        Calls that enqueue.
    sync_ns
        Calls that block.
    idle_host_after_sync_ns
        `idle_host` time of gaps that began while a call blocked: the queue was drained and had to be filled again.
    scheduler_names
        The row names counted as scheduling, with their time.
    """

    scheduler_ns: int
    scheduler_exposed_ns: int
    launch_api_ns: int
    sync_ns: int
    idle_host_after_sync_ns: int
    scheduler_names: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StepMean:
    """The ledger divided by its steps.

    Attributes
    ----------
    dilation
        window / wall when the window is longer, else None.
    full_speed_idle_ns
        wall - busy: the idle time of the unprofiled step, estimated; None without a wall or when busy exceeds it.
    wall_low_ns, wall_high_ns
        Shortest and longest of the wall's repeats; None without repeats.
    """

    wall_ns: int | None
    wall_source: str | None
    window_ns: float
    busy_ns: float
    idle_ns: float
    residual_ns: float | None
    dilation: float | None
    full_speed_idle_ns: float | None
    wall_low_ns: int | None = None
    wall_high_ns: int | None = None

    @property
    def wall_range_frac(self) -> float | None:
        """The range of the wall's repeats over the wall; None without repeats."""
        if not self.wall_ns or self.wall_low_ns is None or self.wall_high_ns is None:
            return None
        return (self.wall_high_ns - self.wall_low_ns) / self.wall_ns


@dataclass(frozen=True, slots=True)
class DeviceAudit:
    """Everything `reconcile` says about one device.

    Attributes
    ----------
    resolution_error_ns
        Bound on the error of busy and idle of the mean step that coarse times cause, 0 for ns times.
    doubtful
        Names of numbers (as in the JSON contract) that a finding makes doubtful.
    """

    rank: int
    device: int
    name: str | None
    totals: Totals
    steps: Steps
    ledger: Ledger
    host: HostTimes
    step: StepMean
    resolution_error_ns: int
    doubtful: frozenset[str]


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The result of `reconcile`: one or several trace files (ranks), their findings and devices."""

    sources: tuple[TraceSource, ...]
    path: str
    completeness: Completeness
    devices: tuple[DeviceAudit, ...]
