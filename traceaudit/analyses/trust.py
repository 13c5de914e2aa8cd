"""Whether a device's time line can be believed: findings that need the steps and the ledger, not the rows alone."""

import numpy as np

from traceaudit.model import intervals
from traceaudit.model.causes import blocking_rows
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.findings import CODES, Finding, Severity
from traceaudit.model.markers import PROFILER_STEP
from traceaudit.model.occupancy import Owner
from traceaudit.model.results import DeviceAudit, StepItem, StepKind, StepMean, StepSource
from traceaudit.model.windows import EARLIER, NONE
from traceaudit.model.wording import counted, milliseconds

__all__ = ["doubted", "other_batch", "timeline_findings", "wall_findings"]

SPANNED_FRAC = 0.9
"""A blocking call spans a wait when it covers this share: the host then waited for work that the trace lacks."""

AT_STAKE_FRAC = 0.10
"""A finding that concerns this share of the device's span makes its idle time worthless: an error."""

NEGLIGIBLE_FRAC = 0.01
"""Ops outside steps below this share of op time change no conclusion."""

ALMOST_ALL_FRAC = 0.9
"""One step or op with this share of the time leaves the others nothing to be steps of."""

DILATION_NOTE, DILATION_WARNING = 1.02, 1.10
"""Profiled over unprofiled step: below the first it is noise; above the second idle time is the profiler's."""

BUSY_TOLERANCE = 1.02
"""Busy time may exceed the wall by clock and thermal noise between two runs, not by more."""


def timeline_findings(view: DeviceView, audit: DeviceAudit) -> tuple[Finding, ...]:
    """Return what the time line and the steps show about the trace."""
    found = (
        _pending(view),
        _edge_loss(view),
        _pauses(view, audit),
        _outside(view),
        _earlier(view),
        *_uneven(view, audit),
    )
    return tuple(finding for finding in found if finding is not None)


def other_batch(audit: DeviceAudit, given: int | None) -> Finding | None:
    """Return the finding that the steps in the mean carry another batch in their names than the one given.

    Where they carry several, any between the smallest and the largest may be their mean.
    """
    named = sorted({item.batch for item in audit.steps.items if item.used and item.batch is not None})
    if given is None or not named or named[0] <= given <= named[-1]:
        return None
    ran = f"{named[0]:,}" if len(named) == 1 else f"{named[0]:,} to {named[-1]:,}"
    return Finding(
        "batch_mismatch",
        Severity.WARNING,
        f"the steps ran batch {ran} by their names, not {given:,}",
        "give the batch that ran: bytes and floor of a model are of the batch given",
        rank=audit.rank,
        device=audit.device,
    )


def wall_findings(audit: DeviceAudit) -> tuple[Finding, ...]:
    """Return what the wall clock shows about the profiled run."""
    step, rank, device = audit.step, audit.rank, audit.device
    if step.wall_ns is None:
        return ()
    if step.busy_ns > BUSY_TOLERANCE * step.wall_ns:
        message = (
            f"the device is busy {milliseconds(step.busy_ns)} a step, the wall says {milliseconds(step.wall_ns)}: "
            "trace and wall clock do not describe the same run"
        )
        hint = "check that batch, context, clocks and the number of steps behind the wall are those of the trace"
        impact = round(step.busy_ns - step.wall_ns)
        return (Finding("wall_below_busy", Severity.ERROR, message, hint, impact_ns=impact, rank=rank, device=device),)
    if step.dilation is None or step.dilation <= DILATION_NOTE:
        return ()
    severity = Severity.WARNING if step.dilation > DILATION_WARNING else Severity.INFO
    message = (
        f"the profiled step takes {milliseconds(step.window_ns)}, the wall says {milliseconds(step.wall_ns)}: "
        f"{step.dilation:.2f} times as long; {_added_share(step)} of the idle time is the profiler's own doing"
        if severity is Severity.WARNING
        else f"the profiled step is {100 * (step.dilation - 1):.1f} % longer than the wall's"
    )
    hint = (
        "busy time stands as measured; profile with fewer options (no stacks, no shapes) to see the idle time at full "
        "speed"
    )
    impact = round(step.window_ns - step.wall_ns)
    return (Finding("profiler_dilation", severity, message, hint, impact_ns=impact, rank=rank, device=device),)


def _added_share(step: StepMean) -> str:
    """Return how much of the profiled idle time is the difference to the wall, as a share."""
    added = step.window_ns - (step.wall_ns or 0)
    return f"{100 * min(added / step.idle_ns, 1):.0f} %" if step.idle_ns else "none"


def doubted(findings: tuple[Finding, ...], rank: int, device: int) -> frozenset[str]:
    """Return the quantities of a device that warnings and errors make doubtful (`Code.doubts`)."""
    doubts: frozenset[str] = frozenset()
    for finding in findings:
        here = finding.rank in (None, rank) and finding.device in (None, device)
        if here and finding.severity is not Severity.INFO:
            doubts |= CODES[finding.code].doubts
    return doubts


def _pending(view: DeviceView) -> Finding | None:
    pending, ops, gaps = view.occupancy.pending, view.ops, view.occupancy.gaps
    if not len(pending.op):
        return None
    host = view.trace.host
    rows = blocking_rows(view.trace, ops) & (view.trace.threads.rank[host.thread] == view.rank)
    blocked = intervals.union(host.start_ns[rows], host.end_ns[rows])
    start = ops.start_ns[pending.op]
    spanned = intervals.covered(blocked, start - pending.wait_ns, start) >= SPANNED_FRAC * pending.wait_ns
    lost = np.isin(gaps.after, pending.op)
    impact = int((gaps.end_ns - gaps.start_ns)[lost & (gaps.before >= 0)].sum())
    at_stake = impact > AT_STAKE_FRAC * view.totals.span_ns
    edge = view.windows.edge_ns
    inside = bool((lost & (gaps.end_ns > edge[0]) & (gaps.start_ns < edge[-1])).any())
    worst = np.argsort(-pending.wait_ns, kind="stable")[:3]
    hint = "rows were cut away: record again with a longer capture or fewer activities, and do not trust the idle time"
    return Finding(
        "idle_while_pending",
        Severity.ERROR if spanned.any() or at_stake else Severity.WARNING,
        f"{counted(len(pending.op), 'op')} queued up to {milliseconds(float(pending.wait_ns.max()))} before starting "
        "on a device that shows no op meanwhile"
        + (", while a blocking call waits for the device" if spanned.any() else "")
        + ("" if inside else "; this lies outside the windows of the steps"),
        hint,
        count=len(pending.op),
        impact_ns=impact,
        rank=view.rank,
        device=view.device,
        examples=tuple(
            f"{view.trace.names[ops.name[pending.op[i]]]} at {milliseconds(float(start[i]))} "
            f"waited {milliseconds(float(pending.wait_ns[i]))}"
            for i in worst
        ),
    )


def _edge_loss(view: DeviceView) -> Finding | None:
    if not view.windows.starts_pending:
        return None
    lost = int(view.windows.edge_ns[0] - view.marks.start_ns[0])
    message = (
        f"the first {milliseconds(lost)} of the first step show no op though its work was queued: "
        "the capture lacks what ran before"
    )
    hint = "the first window begins at its first op; start the profiler some steps earlier"
    return Finding(
        "capture_edge_loss", Severity.WARNING, message, hint, impact_ns=lost, rank=view.rank, device=view.device
    )


def _pauses(view: DeviceView, audit: DeviceAudit) -> Finding | None:
    if not view.pauses:
        return None
    time = sum(until - start for start, until in view.pauses)
    counted_in = any(item.used and _paused(view, item) for item in audit.steps.items)
    message = (
        f"the file holds {len(view.pauses) + 1} captures; nothing was recorded in the {milliseconds(time)} between them"
        + (", which the window takes for idle time" if counted_in else "")
    )
    hint = "split the file, or look at steps of one capture" if counted_in else None
    severity = Severity.ERROR if counted_in else Severity.INFO
    return Finding(
        "capture_edge_loss", severity, message, hint, len(view.pauses), time, rank=view.rank, device=view.device
    )


def _outside(view: DeviceView) -> Finding | None:
    outside = view.windows.step == NONE
    if not outside.any():
        return None
    time = int((view.ops.end_ns - view.ops.start_ns)[outside].sum())
    share = time / max(view.totals.op_time_ns, 1)
    severity = Severity.WARNING if share > NEGLIGIBLE_FRAC else Severity.INFO
    message = f"{counted(int(outside.sum()), 'op')} ({milliseconds(time)}) launched in no step or without a launch row"
    hint = "their time stays in the accounts of the windows they ran in; they are no step's own"
    count = int(outside.sum())
    return Finding(
        "ops_outside_steps", severity, message, hint, count=count, impact_ns=time, rank=view.rank, device=view.device
    )


def _earlier(view: DeviceView) -> Finding | None:
    earlier = view.windows.step == EARLIER
    if not earlier.any():
        return None
    time = int((view.ops.end_ns - view.ops.start_ns)[earlier].sum())
    count = int(earlier.sum())
    message = f"{counted(count, 'op')} ({milliseconds(time)}) of work launched before the first step"
    return Finding(
        "ops_outside_steps",
        Severity.INFO,
        message,
        None,
        count=count,
        impact_ns=time,
        rank=view.rank,
        device=view.device,
    )


def _uneven(view: DeviceView, audit: DeviceAudit) -> list[Finding]:
    """Look for steps that are none: without ops, or next to one that holds almost everything."""
    items = [item for item in audit.steps.items if not _paused(view, item)]
    if audit.steps.source is StepSource.WHOLE_TRACE:
        remarks = _startup(view, audit)
    elif len(items) > 1:
        remarks = [*_skipped_markers(audit.steps.items), *_empty(items), *_one_step(items), *_one_op(view)]
    else:
        remarks = []
    return [
        Finding(
            "steps_uneven",
            Severity.WARNING,
            text,
            "look at the table of steps, and name one with --step",
            count=count,
            impact_ns=time,
            rank=view.rank,
            device=view.device,
        )
        for text, count, time in remarks
    ]


def _paused(view: DeviceView, item: StepItem) -> bool:
    end = item.start_ns + item.window_ns
    return any(start < end and item.start_ns < until for start, until in view.pauses)


def _empty(items: list[StepItem]) -> list[tuple[str, int, int]]:
    empty = [item for item in items if not item.device_ops and item.kind is not StepKind.IDLE]
    if not empty:
        return []
    time = sum(item.window_ns for item in empty)
    return [(f"{len(empty)} of {counted(len(items), 'step')} without any op", len(empty), time)]


def _one_step(items: list[StepItem]) -> list[tuple[str, int, int]]:
    longest, whole = max(items, key=lambda item: item.window_ns), sum(item.window_ns for item in items)
    if longest.window_ns <= ALMOST_ALL_FRAC * whole:
        return []
    share = 100 * longest.window_ns / whole
    return [(f"step {longest.index} of {len(items)} takes {share:.0f} % of all", 1, longest.window_ns)]


def _one_op(view: DeviceView) -> list[tuple[str, int, int]]:
    duration = view.ops.end_ns - view.ops.start_ns
    longest, whole = int(duration.max()), int(duration.sum())
    if longest <= ALMOST_ALL_FRAC * whole:
        return []
    name = view.short_names[view.trace.names[int(view.ops.name[int(duration.argmax())])]]
    return [(f"one op, {name}, takes {100 * longest / whole:.0f} % of op time", 1, longest)]


def _skipped_markers(items: tuple[StepItem, ...]) -> list[tuple[str, int, int]]:
    """Look for numbers missing among profiler steps: the step before then holds the work of several."""
    numbers = [
        int(item.name.partition("#")[2]) if item.name and PROFILER_STEP.fullmatch(item.name) else None for item in items
    ]
    remarks = []
    for item, number, following in zip(items, numbers, numbers[1:], strict=False):
        if number is not None and following is not None and following > number + 1:
            missing = following - number - 1
            what = f"ProfilerStep#{number} is followed by #{following}: {counted(missing, 'marker')} missing"
            remarks.append((f"{what}, so its window may hold {missing + 1} steps", missing, item.window_ns))
    return remarks


def _startup(view: DeviceView, audit: DeviceAudit) -> list[tuple[str, int, int]]:
    """Flag a gap longer than a mean step, when a whole trace is divided into several."""
    if audit.ledger.steps < 2:  # noqa: PLR2004  (one step has no other to be unlike)
        return []
    edge = view.windows.edge_ns
    idle = view.occupancy.owner >= Owner.IDLE_GRAPH
    free = intervals.union(view.occupancy.edge_ns[:-1][idle], view.occupancy.edge_ns[1:][idle])
    inside = intervals.clip(free, int(edge[0]), int(edge[-1]))
    longest = int((inside.end - inside.start).max(initial=0))
    if longest <= audit.step.window_ns:
        return []
    return [
        (
            f"a gap of {milliseconds(longest)} is longer than a mean step ({milliseconds(audit.step.window_ns)})",
            1,
            longest,
        )
    ]
