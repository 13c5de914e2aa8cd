"""What `serverlog` answers: the batch that ran, the step time it implies, and what held the batch down."""

from dataclasses import dataclass
from enum import StrEnum

from traceaudit.errors import InvariantError
from traceaudit.model.findings import Finding
from traceaudit.model.results.completeness import Completeness
from traceaudit.model.serverlines import LineRef, ServerSource, Software

__all__ = [
    "Cause",
    "EngineLog",
    "Limit",
    "LoadItem",
    "Note",
    "ReadingKind",
    "ServerReport",
    "StepReading",
    "Stretch",
    "Use",
]


class Limit(StrEnum):
    """What held the batch where it was."""

    KV_CACHE = "kv_cache"
    SERVER_CAP = "server_cap"
    CLIENT = "client"
    UNKNOWN = "unknown"


class Use(StrEnum):
    """What a sample was used for."""

    STEADY = "steady"
    FIRST = "first"
    RAMP = "ramp"
    DRAIN = "drain"
    IDLE = "idle"
    OTHER_LOAD = "other_load"


class ReadingKind(StrEnum):
    """Where a step time comes from.

    Attributes
    ----------
    LOG
        The log's batch over the log's own rate.
    DECODE_ONLY
        The same, from lines with no prefill work since the line before.
    LINE_SPACING
        Time from line to line over the passes in between.
    DEVICE_STEP, HOST_STEP, INTER_TOKEN
        A time that the server states itself: of the device, of the host loop, between a request's tokens.
    GIVEN
        The batch that was expected, over the rate that was given (or the log's).
    LOG_BATCH
        The log's batch over the rate that was given.
    ENGINES
        Several engines like the one in the log share the rate that was given.
    """

    LOG = "log"
    DECODE_ONLY = "decode_only"
    LINE_SPACING = "line_spacing"
    DEVICE_STEP = "device_step"
    HOST_STEP = "host_step"
    INTER_TOKEN = "inter_token"  # noqa: S105  (no secret)
    GIVEN = "given"
    LOG_BATCH = "log_batch"
    ENGINES = "engines"


@dataclass(frozen=True, slots=True)
class Note:
    """A remark with the lines that show it."""

    text: str
    lines: tuple[LineRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Cause:
    """The limit of the batch, why it is thought to be the one, and the lines that show it."""

    limit: Limit
    reason: str
    lines: tuple[LineRef, ...] = ()


@dataclass(frozen=True, slots=True)
class StepReading:
    """One way to read a step time from the log, and whether the log bears it out.

    Attributes
    ----------
    step_ns
        The step time.
    arithmetic
        How it comes about, such as ``8 running / 28 tokens/s``.
    holds
        True or False where a line decides, None where nothing does.
    reason
        What speaks for or against it.
    line
        The line that decides.
    error_ns
        Bound on its error from coarse clocks, None if there is none of that kind.
    """

    kind: ReadingKind
    step_ns: int
    arithmetic: str
    holds: bool | None
    reason: str
    line: LineRef | None = None
    error_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Successive samples of one engine with the same use, from the first line to the last."""

    use: Use
    samples: int
    first: LineRef
    last: LineRef
    batch_min: int
    batch_max: int


@dataclass(frozen=True, slots=True)
class EngineLog:
    """One data-parallel engine over the chosen load.

    Attributes
    ----------
    id
        As the log names it; "0" if it has no name.
    pieces
        Engines that its lines sum, 1 normally.
    samples
        All its samples, the stretches' sum.
    steady_batch
        Lower median of the requests in the batch over the steady samples.
    steady_min, steady_max
        Their range.
    max_batch
        Largest of all samples.
    queue_median, cache_frac
        Medians over the steady samples; None where the lines do not tell.
    context_tokens
        Median of the cache slots held over the requests in the batch: tokens of a request, rounded up to pages.
    graph_false
        Samples whose last step was not replayed from a graph, None where no line tells.
    tokens_per_second, accept_length
        Medians over the steady samples.
    implied_step_ns
        ``steady_batch * accept_length / tokens_per_second``; without a rate a time that the server states itself.
    cap
        Most requests it takes, where the log tells.
    retracted
        Requests put back for lack of cache space.
    decided_by
        The steady line that stands for the batch.
    """

    id: str
    pieces: int
    samples: int
    steady_batch: int
    steady_min: int
    steady_max: int
    max_batch: int
    queue_median: float | None
    cache_frac: float | None
    context_tokens: int | None
    graph_false: int | None
    tokens_per_second: float | None
    accept_length: float | None
    implied_step_ns: int | None
    cap: int | None
    retracted: int
    cause: Cause
    stretches: tuple[Stretch, ...]
    readings: tuple[StepReading, ...]
    decided_by: LineRef | None

    def __post_init__(self) -> None:
        """Check that every sample is accounted for."""
        counted = sum(stretch.samples for stretch in self.stretches)
        if counted != self.samples:
            raise InvariantError(f"engine {self.id}: stretches hold {counted} of {self.samples} samples")

    @property
    def steady_samples(self) -> int:
        """Number of samples in the steady state."""
        return sum(stretch.samples for stretch in self.stretches if stretch.use is Use.STEADY)


@dataclass(frozen=True, slots=True)
class LoadItem:
    """One load between two idle times: what it ran over all engines."""

    index: int
    samples: int
    steady_batch: int
    tokens_per_second: float | None
    first: LineRef
    last: LineRef


@dataclass(frozen=True, slots=True)
class ServerReport:
    """The result of `serverlog`.

    Attributes
    ----------
    load
        Which of `loads` (counted from 1) the engines describe.
    steady_batch, tokens_per_second
        Sums over the engines.
    implied_step_ns
        ``steady_batch * accept length / tokens_per_second`` of the sums.
    readings
        Every reading of the step time that the log allows, the one to take first.
    """

    path: str
    software: Software
    sources: tuple[ServerSource, ...]
    engines: tuple[EngineLog, ...]
    loads: tuple[LoadItem, ...]
    load: int
    expected: int | None
    steady_batch: int
    tokens_per_second: float | None
    accept_length: float | None
    implied_step_ns: int | None
    readings: tuple[StepReading, ...]
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]

    @property
    def completeness(self) -> Completeness:
        """The findings, worst first; none of them is about a trace."""
        return Completeness.of(self.findings)

    @property
    def context_tokens(self) -> int | None:
        """Tokens of a request in the busiest engine, None where its lines do not tell."""
        busiest = max(self.engines, key=lambda engine: engine.steady_batch, default=None)
        return None if busiest is None else busiest.context_tokens

    @property
    def decided_by(self) -> tuple[LineRef, ...]:
        """The line of each engine that stands for its batch."""
        return tuple(engine.decided_by for engine in self.engines if engine.decided_by is not None)
