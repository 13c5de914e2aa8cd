"""Findings: typed remarks with stable codes, and the completeness verdict they lead to."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["CODES", "Code", "Finding", "Severity", "Verdict", "verdict_of"]


class Severity(StrEnum):
    """How much a finding matters."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Verdict(StrEnum):
    """Whether the trace can be believed."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    UNRELIABLE = "unreliable"


@dataclass(frozen=True, slots=True)
class Code:
    """What a finding code means.

    Attributes
    ----------
    meaning
        In one clause.
    about_trace
        Whether it bears on the completeness of the trace.
    doubts
        Numbers of the JSON contract that it makes doubtful when it is a warning or an error.
    """

    meaning: str
    about_trace: bool
    doubts: frozenset[str] = frozenset()


_SPLIT = frozenset({"idle_graph", "idle_latency", "idle_host", "idle_unknown"})
_IDLE = _SPLIT | {"idle_ns"}
_LOST = _IDLE | {"busy_ns", "op_time_ns"}

CODES: dict[str, Code] = {
    "launch_without_op": Code("an enqueuing API row has no device op", about_trace=True, doubts=_LOST),
    "op_without_launch": Code("a device op has no launch row", about_trace=True, doubts=_SPLIT),
    "graph_replay_uneven": Code(
        "launches of one graph have no rows, or other rows than their siblings", about_trace=True, doubts=_LOST
    ),
    "idle_while_pending": Code(
        "work was queued while the device shows no op: rows were cut away", about_trace=True, doubts=_IDLE | {"busy_ns"}
    ),
    "impossible_overlap": Code(
        "an op overruns the next on its queue and the capture's end", about_trace=True, doubts=_LOST
    ),
    "clock_skew": Code("ops start before their launch", about_trace=True, doubts=_SPLIT),
    "zero_duration": Code("device ops of no duration", about_trace=True, doubts=_LOST),
    "negative_duration": Code("rows that end before they start; left out", about_trace=True, doubts=_LOST),
    "absurd_duration": Code("rows far longer than any capture; left out", about_trace=True, doubts=_LOST),
    "duplicate_rows": Code("rows written twice; one is kept", about_trace=True, doubts=frozenset({"op_time_ns"})),
    "coarse_timestamps": Code("times are whole microseconds", about_trace=True),
    "file_truncated": Code("the file ends early", about_trace=True, doubts=_LOST),
    "file_repaired": Code("the file was not valid and was repaired", about_trace=True),
    "rows_dropped": Code("rows could not be used", about_trace=True, doubts=_LOST),
    "second_document": Code("more than one JSON document in the file", about_trace=True, doubts=_LOST),
    "capture_edge_loss": Code("rows are missing at the ends of the capture", about_trace=True, doubts=_IDLE),
    "device_without_ops": Code("no device op in the trace", about_trace=True),
    "ops_outside_steps": Code("device ops that belong to no step", about_trace=True),
    "steps_uneven": Code("steps without ops, or one step or op with almost all the time", about_trace=True),
    "spinning_collective": Code("a collective kernel waits inside for other ranks", about_trace=False),
    "profiler_dilation": Code("the profiled step is longer than the wall clock's", about_trace=False, doubts=_IDLE),
    "wall_below_busy": Code(
        "the wall clock is shorter than the device's busy time: not the same run", about_trace=False
    ),
    "batch_mismatch": Code("another batch ran than the one given", about_trace=False),
    "over_peak": Code("a rate above the device's peak", about_trace=False),
    "cache_resident": Code("a rate above memory bandwidth, from a working set that fits in cache", about_trace=False),
    "kv_copied": Code("the KV cache is copied within a step", about_trace=False),
    "re_reads": Code("attention reads keys and values once for each query head", about_trace=False),
    "underfilled_grid": Code("fewer blocks than multiprocessors", about_trace=False),
    "rank_clock_offset": Code("the clock of a rank is off", about_trace=True),
    "ranks_assumed": Code("files are taken as ranks of one run, which none of them says", about_trace=False),
    "rank_missing": Code("ranks of the run are absent", about_trace=True),
    "rank_skew": Code("a rank arrives late at collectives", about_trace=False),
    "engine_missing": Code("a data-parallel engine is absent from the log", about_trace=False),
    "log_truncated": Code("the server's log ends early: its compressed file is cut or damaged", about_trace=False),
    "unlike_runs": Code("two sides of a comparison are not comparable", about_trace=False),
    "baseline_regressed": Code("the base is slower than its own record", about_trace=False),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A typed remark on the data or on the run.

    Attributes
    ----------
    code
        A key of `CODES`.
    severity
        How much it matters.
    message
        What was found, with its evidence, in one sentence.
    hint
        What to do about it, or None.
    count
        How many rows, launches or steps are concerned.
    impact_ns
        Time at stake.
    rank, device
        Where, if it is one place.
    examples
        The worst cases, at most three.
    """

    code: str
    severity: Severity
    message: str
    hint: str | None = None
    count: int | None = None
    impact_ns: int | None = None
    rank: int | None = None
    device: int | None = None
    examples: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse codes that are not declared."""
        if self.code not in CODES:
            raise ValueError(f"unknown finding code: {self.code!r}")


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """Judge a trace by the findings that are about the trace itself.

    Examples
    --------
    >>> verdict_of([Finding("clock_skew", Severity.WARNING, "2 ops start early")])
    <Verdict.PARTIAL: 'partial'>
    """
    severities = {finding.severity for finding in findings if CODES[finding.code].about_trace}
    if Severity.ERROR in severities:
        return Verdict.UNRELIABLE
    return Verdict.PARTIAL if Severity.WARNING in severities else Verdict.COMPLETE
