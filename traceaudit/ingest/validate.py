"""Checks of the tables against each other, and the repairs that they allow; what was found comes out as findings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from traceaudit.ingest.clean import ABSURD_NS, Rejected
from traceaudit.ingest.coverage import find_launches_without_ops, find_ops_without_launches
from traceaudit.ingest.normalize import Tables
from traceaudit.ingest.overlaps import clip_damaged
from traceaudit.ingest.replays import find_uneven_replays
from traceaudit.ingest.severity import WARNING_SHARE, by_share, examples_of, in_ms, percent
from traceaudit.model.findings import Finding, Severity
from traceaudit.model.schema import DeviceOps, HostRows
from traceaudit.units import NS_PER_S, NS_PER_US

__all__ = ["Checked", "check_tables"]

_RERECORD = "record again; if it comes back, the profiler's clock or buffers are at fault"


@dataclass(frozen=True, slots=True)
class Checked:
    """Device ops after repairs, and the findings."""

    ops: DeviceOps
    findings: tuple[Finding, ...]


def check_tables(tables: Tables, *, window_end_ns: int | None, resolution_ns: int) -> Checked:
    """Check the tables, leave out duplicates and clip damaged ops.

    Parameters
    ----------
    window_end_ns
        End of the capture in table time, None where the file does not tell.
    resolution_ns
        What a difference of times is exact to: 1, or 1000 where the file has whole microseconds.
    """
    ops, duplicates = _without_duplicates(tables.ops, tables.names)
    host_end = int(tables.host.end_ns.max()) if len(tables.host) else None
    ops, overlaps = clip_damaged(ops, host_end, window_end_ns, tables.names)
    findings = [
        *_rejected(tables.device_rejected, len(ops), "device"),
        *_rejected(tables.host_rejected, len(tables.host), "host"),
        *duplicates,
        *overlaps,
        *_zero_durations(ops, tables.names, resolution_ns),
        *_skew(ops, tables.host, tables.names, resolution_ns),
        *find_launches_without_ops(ops, tables.host, tables.threads, tables.names),
        *find_ops_without_launches(ops, tables.host, tables.names),
        *find_uneven_replays(ops, tables.host, tables.names),
        *_coarse_times(ops, resolution_ns),
        *_no_ops(ops),
    ]
    if len(tables.ranks) == 1:
        findings = [replace(finding, rank=tables.ranks[0]) for finding in findings]
    return Checked(ops, tuple(findings))


def _without_duplicates(ops: DeviceOps, names: Sequence[str]) -> tuple[DeviceOps, list[Finding]]:
    """Leave out rows that repeat another in all that identifies an op.

    An op of some duration cannot run twice at once on one queue; ops of no duration can look alike.
    """
    if len(ops) < 2:  # noqa: PLR2004  (one row repeats nothing)
        return ops, []
    keys = (ops.end_ns, ops.start_ns, ops.name, ops.correlation, ops.graph_node, ops.stream, ops.device, ops.rank)
    order = np.lexsort(keys)
    same = np.ones(len(ops) - 1, dtype=bool)
    for column in keys:
        same &= column[order][1:] == column[order][:-1]
    length = ops.end_ns - ops.start_ns
    extra = np.sort(order[1:][same & (length[order][1:] > 0)])
    if not len(extra):
        return ops, []
    kept = np.ones(len(ops), dtype=bool)
    kept[extra] = False
    time, total = int(length[extra].sum()), int(length[kept].sum())
    finding = Finding(
        "duplicate_rows",
        by_share(time, total),
        f"{len(extra)} device rows are written twice ({in_ms(time)}, {percent(time, total)} of the op time); one of "
        "each is kept",
        hint="the file was merged or exported twice",
        count=len(extra),
        impact_ns=time,
        examples=examples_of(f"{names[ops.name[row]]} at {in_ms(ops.start_ns[row])}" for row in extra.tolist()),
    )
    return ops.take(kept), [finding]


def _rejected(rejected: Rejected, kept: int, what: str) -> Iterator[Finding]:
    """Report rows left out for their times; how long they were is unknown, so their number decides."""
    # A device row is never lost without a word: one may be the longest of all.
    at_least = Severity.WARNING if what == "device" else Severity.INFO
    if rejected.negative:
        yield Finding(
            "negative_duration",
            by_share(rejected.negative, kept + rejected.negative, at_least=at_least),
            f"{rejected.negative} {what} rows end before they start, by {in_ms(rejected.negative_ns)} in all; left out",
            hint=_RERECORD,
            count=rejected.negative,
            impact_ns=rejected.negative_ns,
        )
    if rejected.absurd:
        yield Finding(
            "absurd_duration",
            by_share(rejected.absurd, kept + rejected.absurd, at_least=at_least),
            f"{rejected.absurd} {what} rows last longer than {ABSURD_NS // (3600 * NS_PER_S)} hours; left out",
            hint=_RERECORD,
            count=rejected.absurd,
        )
    lost = rejected.without_times + rejected.far_away
    if lost:
        reasons = []
        if rejected.without_times:
            reasons.append(f"{rejected.without_times} without times")
        if rejected.far_away:
            reasons.append(f"{rejected.far_away} more than a day away from all others")
        yield Finding(
            "rows_dropped",
            by_share(lost, kept + lost, at_least=at_least),
            f"{lost} of {kept + lost} {what} rows cannot be placed in time ({', '.join(reasons)}); left out",
            hint=_RERECORD,
            count=lost,
        )


def _zero_durations(ops: DeviceOps, names: Sequence[str], resolution_ns: int) -> Iterator[Finding]:
    rows = np.flatnonzero(ops.end_ns == ops.start_ns)
    if not len(rows):
        return
    timed = int((ops.copied[rows] != 0).sum())  # a copy of nothing takes no time
    if resolution_ns > 1:
        why, hint, impact = "shorter than the file's resolution", None, len(rows) * resolution_ns
        severity = Severity.INFO  # part of the bound of `coarse_timestamps`
    else:
        why, hint, impact = "without a duration", _RERECORD, None
        severity = Severity.WARNING if timed >= WARNING_SHARE * len(ops) else Severity.INFO
    yield Finding(
        "zero_duration",
        severity,
        f"{len(rows)} of {len(ops)} device ops are {why}; kept",
        hint=hint if timed else None,
        count=len(rows),
        impact_ns=impact,
        examples=examples_of(f"{names[ops.name[row]]} at {in_ms(ops.start_ns[row])}" for row in rows.tolist()),
    )


def _skew(ops: DeviceOps, host: HostRows, names: Sequence[str], resolution_ns: int) -> Iterator[Finding]:
    launched = np.flatnonzero(ops.launch >= 0)
    early = host.start_ns[ops.launch[launched]] - ops.start_ns[launched]
    # Whole microseconds are cut off on both sides, so a difference of one means nothing.
    rows = launched[early > (resolution_ns if resolution_ns > 1 else 0)]
    if not len(rows):
        return
    early = host.start_ns[ops.launch[rows]] - ops.start_ns[rows]
    span = int(ops.end_ns.max() - ops.start_ns.min())
    total = int(early.sum())
    worst = rows[np.argsort(-early, kind="stable")]
    yield Finding(
        "clock_skew",
        by_share(total, span),
        f"{len(rows)} of {len(launched)} launched ops start before their launch does, by {in_ms(int(early.max()))} at "
        f"most and {in_ms(total)} in all ({percent(total, span)} of the span); kept, their latency counts as 0",
        hint="clocks of host and device disagree; the split of idle time is off by as much",
        count=len(rows),
        impact_ns=total,
        examples=examples_of(
            f"{names[ops.name[row]]} at {in_ms(ops.start_ns[row])}, launched at {in_ms(host.start_ns[ops.launch[row]])}"
            for row in worst.tolist()
        ),
    )


def _coarse_times(ops: DeviceOps, resolution_ns: int) -> Iterator[Finding]:
    if resolution_ns <= 1 or not len(ops):
        return
    bound = len(ops) * resolution_ns
    yield Finding(
        "coarse_timestamps",
        Severity.INFO,
        f"times are whole microseconds: a start or duration is up to {resolution_ns // NS_PER_US} µs too small, so "
        f"busy and idle are within ±{in_ms(bound)} over the {len(ops)} device ops (±1 µs for each op of a step)",
        hint="PyTorch 2.4 and later record nanoseconds",
        count=len(ops),
        impact_ns=bound,
    )


def _no_ops(ops: DeviceOps) -> Iterator[Finding]:
    if not len(ops):
        yield Finding(
            "device_without_ops",
            Severity.ERROR,
            "the trace has no device op, so nothing can be said of the device",
            hint="record with ProfilerActivity.CUDA (or XPU, …), and check that the profiler may read its counters",
            count=0,
        )
