"""The audit on one page: a reconciliation with what the server ran, the floor, the kernels, and what a fix buys."""

from dataclasses import dataclass
from enum import StrEnum

from traceaudit.errors import InvariantError
from traceaudit.model.results.completeness import Completeness
from traceaudit.model.results.kernels import KernelPart, KernelRow
from traceaudit.model.results.ledger import DeviceAudit, Reconciliation, Wall
from traceaudit.model.results.roofline import Roofline
from traceaudit.model.results.serverlog import ServerReport, StepReading
from traceaudit.model.trace import TraceSource

__all__ = ["Fix", "FixKind", "FloorSide", "GainBound", "KernelLine", "NoFloor", "OnePage", "ServerSide", "StepChoice"]


@dataclass(frozen=True, slots=True)
class StepChoice:
    """The step time that everything is held against, and why that one.

    Attributes
    ----------
    wall
        The step time taken; None where nothing states one.
    reason
        Why it was taken.
    given
        What the user stated, where the log's reading was taken before it; else None.
    readings
        Every reading that the log allows, those that hold first.
    """

    wall: Wall | None
    reason: str
    given: Wall | None = None
    readings: tuple[StepReading, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerSide:
    """What the server's log says of the step.

    Attributes
    ----------
    asked
        Requests that should have run at once, over all engines; None where nobody said.
    engine_batch
        Requests in the batch of the busiest engine: the batch of one step.
    trace_batch
        The batch that the trace's steps carry in their name, None if they carry none or several.
    """

    report: ServerReport
    asked: int | None
    engine_batch: int
    trace_batch: int | None


@dataclass(frozen=True, slots=True)
class FloorSide:
    """The floor and where its inputs come from.

    Attributes
    ----------
    gpu_source, batch_source, context_source
        Who says which device, batch and context it is.
    asked
        The floor at the batch that was asked for, where another one ran.
    """

    roofline: Roofline
    gpu_source: str
    batch_source: str
    context_source: str
    asked: Roofline | None = None


@dataclass(frozen=True, slots=True)
class NoFloor:
    """Why the floor of a model that was given is not known, and what would tell it."""

    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class KernelLine:
    """A kernel and what the step would save without it; times in ns a step.

    Attributes
    ----------
    row
        Its launches over the whole trace.
    share_of_busy_frac
        Its op time over the op time of all kernels.
    save_ns
        Re-timed: what the step loses when it takes no time, hidden time left out; None where nothing can be re-timed.
    """

    row: KernelRow
    op_time_ns: float
    launches: float
    share_of_busy_frac: float
    save_ns: float | None

    def share_of(self, part: KernelPart) -> float:
        """Return the op time of a part of its launches over the op time of all kernels."""
        return self.share_of_busy_frac * part.per_step_ns / self.op_time_ns if self.op_time_ns else 0.0


@dataclass(frozen=True, slots=True)
class GainBound:
    """What work on the largest kernels can buy at most.

    Attributes
    ----------
    baseline_ns
        The wall, or the window where there is none.
    busy_share_frac
        f: busy over baseline.
    names
        The largest kernels that together hold three quarters of the op time, three at most.
    top_share_frac
        s: their share of the op time.
    profile_factor
        ``1 / (1 - s)``, which takes busy time for the whole step; None if they are all of it.
    naive_factor
        ``1 / (1 - f s)``.
    retimed_ns, retimed_factor
        The step without them, re-timed on the graph of launches and queues, and how much faster that is.
    tokens_per_second
        The rate now, None where it is not known.
    """

    baseline_ns: float
    busy_share_frac: float
    names: tuple[str, ...]
    top_share_frac: float
    profile_factor: float | None
    naive_factor: float | None
    retimed_ns: float
    retimed_factor: float | None
    tokens_per_second: float | None


class FixKind(StrEnum):
    """Where a fix lies."""

    RECORD = "record"
    HOST = "host"
    KERNEL = "kernel"
    BATCH = "batch"
    OUTSIDE = "outside"
    COMM = "comm"
    COPY = "copy"
    CACHE = "cache"


@dataclass(frozen=True, slots=True)
class Fix:
    """Something to do, and what it buys.

    Attributes
    ----------
    what
        What to do, in the imperative; ``{names}`` stands for the names.
    names
        The kernels or host rows that it is about; empty where it is about none.
    evidence
        What shows that it is worth it.
    is_bound
        Whether it can buy no more; else the figures are estimates.
    step_ns
        The step with this fix and those before it; None where that is not known.
    factor
        Tokens per second with it over without it; None where that is not known.
    tokens_per_second
        The rate with this fix and those before it; None where the rate now is not known.
    floor_binds
        Whether the floor keeps the step, or kernels of which no bytes are known, from being shorter still.
    """

    kind: FixKind
    what: str
    names: tuple[str, ...]
    evidence: str
    step_ns: float | None
    factor: float | None
    tokens_per_second: float | None
    is_bound: bool = True
    floor_binds: bool = False


@dataclass(frozen=True, slots=True)
class OnePage:
    """The result of `reconcile` with a server's log or a model.

    Attributes
    ----------
    reconciliation
        The ledger of every device; its findings include the server's.
    device
        The device that the page is about: the one with the longest step.
    server, floor, gain
        None where they were not asked for, or where the trace does not allow them.
    no_floor
        Why there is no floor though a model was given; else None.
    kernels
        By what removing them would save, most first; then by op time.
    hidden
        Kernels with much op time whose removal would save almost nothing.
    fixes
        What to do, in this order; each holds with those before it done.
    """

    reconciliation: Reconciliation
    device: DeviceAudit
    step: StepChoice
    server: ServerSide | None
    floor: FloorSide | None
    kernels: tuple[KernelLine, ...]
    hidden: tuple[KernelLine, ...]
    gain: GainBound | None
    fixes: tuple[Fix, ...]
    no_floor: NoFloor | None = None

    def __post_init__(self) -> None:
        """Check that the page's device is one of the reconciliation's, and that a floor is known or not."""
        if self.floor is not None and self.no_floor is not None:
            raise InvariantError("the page has a floor and a reason why it has none")
        if self.device not in self.reconciliation.devices:
            raise InvariantError("the page is about a device that is not in the reconciliation")

    @property
    def sources(self) -> tuple[TraceSource, ...]:
        """The trace files."""
        return self.reconciliation.sources

    @property
    def path(self) -> str:
        """The trace as given."""
        return self.reconciliation.path

    @property
    def completeness(self) -> Completeness:
        """The findings about the trace, the wall, and the server."""
        return self.reconciliation.completeness
