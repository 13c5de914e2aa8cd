"""The ledger of a device: where the steps went, and how that compares with the wall clock."""

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from traceaudit.model import apis, intervals
from traceaudit.model.causes import FIXED_CAUSES, CauseCutter, blocking_rows, frame_label, launching_threads
from traceaudit.model.deviceview import DeviceView, own_ops
from traceaudit.model.intervals import Intervals
from traceaudit.model.markers import label_of
from traceaudit.model.occupancy import Owner
from traceaudit.model.options import ReconcileOptions
from traceaudit.model.pieces import Pieces, cut
from traceaudit.model.results import (
    Accounts,
    DeviceAudit,
    HostTimes,
    IdleLatency,
    IdlePosition,
    Ledger,
    StepItem,
    StepMean,
    Steps,
    Wall,
)
from traceaudit.model.scheduling import is_scheduling
from traceaudit.model.schema import I64, HostCategory
from traceaudit.model.steps import marker_rows
from traceaudit.model.trace import Trace

__all__ = ["LARGEST_FRAMES", "reconcile", "scheduler_rows"]

LARGEST_FRAMES = 20
"""Python frames named in `idle_host_by`; the rest is summed as ``python:other``."""

EDGE_STEP_FRAC = 0.10
"""A first or last step whose window is further than this from the others' median was cut by the capture."""

_LATENCY = (Owner.LAUNCH_CALL, Owner.DELIVERY, Owner.TURNAROUND)


def reconcile(view: DeviceView, options: ReconcileOptions, wall: Wall | None) -> DeviceAudit:
    """Account for every nanosecond of the device's steps.

    Parameters
    ----------
    view
        The device.
    options
        Settings; `options.wall` is not looked at.
    wall
        Step time from outside the profiler, if there is one.
    """
    pieces = cut(view.occupancy, view.windows.edge_ns)
    items = _select_step(_left_out(view, _items(view, pieces)), options.selection.step)
    steps = Steps(view.marks.source, view.marks.reason, items)
    used = np.array([item.used for item in items], np.bool_)
    count = options.steps.divide_by or int(used.sum())
    blocked = blocking_rows(view.trace, view.ops)
    ignored = marker_rows(view.trace, options.steps)
    ledger = _ledger(view, pieces, used, count, _causes(view, pieces, used, blocked, ignored), wall)
    return DeviceAudit(
        rank=view.rank,
        device=view.device,
        name=view.name,
        totals=view.totals,
        steps=steps,
        ledger=ledger,
        host=_host_times(view, pieces, used, blocked, options),
        step=_mean(ledger, wall),
        resolution_error_ns=_resolution_error(view, items, count),
        doubtful=frozenset(),
    )


def _items(view: DeviceView, pieces: Pieces) -> list[StepItem]:
    """Describe each step: its own ops, and the accounts of its window."""
    edge = view.windows.edge_ns
    table = _by_window(pieces, len(edge) - 1)
    ops = view.ops
    items = []
    for index, rows in enumerate(own_ops(view)):
        name = view.marks.names[index]
        label = label_of(name or "")
        start, end = ops.start_ns[rows], ops.end_ns[rows]
        items.append(
            StepItem(
                index=index,
                name=name,
                kind=label.kind,
                batch=label.batch,
                tokens=label.tokens,
                start_ns=int(edge[index]),
                window_ns=int(edge[index + 1] - edge[index]),
                device_ops=len(rows),
                op_time_ns=int((end - start).sum()),
                own_busy_ns=intervals.measure(intervals.union(start, end)),
                accounts=_accounts(table[index]),
                left_out=None,
            )
        )
    return items


def _by_window(pieces: Pieces, windows: int) -> I64:
    """Sum the pieces by window and owner."""
    table = np.zeros((windows, len(Owner)), np.int64)
    np.add.at(table, (pieces.window, pieces.owner), pieces.length_ns)
    return table


def _accounts(sums: I64) -> Accounts:
    return Accounts(
        compute=int(sums[Owner.COMPUTE]),
        exposed_comm=int(sums[Owner.EXPOSED_COMM]),
        exposed_copy=int(sums[Owner.EXPOSED_COPY]),
        idle_graph=int(sums[Owner.IDLE_GRAPH]),
        idle_latency=int(sums[list(_LATENCY)].sum()),
        idle_host=int(sums[Owner.IDLE_HOST]),
        idle_unknown=int(sums[Owner.IDLE_UNKNOWN]),
    )


def _left_out(view: DeviceView, items: list[StepItem]) -> tuple[StepItem, ...]:
    """Leave steps out of the mean that the capture cut: the first or last, when unlike the others."""
    paused = {item.index: "the capture paused inside it" for item in items if _paused(view, item)}
    reasons, last = dict(paused), len(items) - 1
    if not view.marks.touching and last > 0:
        reasons.setdefault(last, "the last step has no end marker")
    if last >= 2:  # noqa: PLR2004  (two others are needed to say what is usual)
        for index in (0, last):
            others = [item for item in items if item.index != index]
            unlike = _unlike(items[index], others)
            if unlike and index not in reasons:
                reasons[index] = unlike
    if len(reasons) == len(items):  # a mean needs a step
        reasons = paused if len(paused) < len(items) else {}
    return tuple(replace(item, left_out=reasons[item.index]) if item.index in reasons else item for item in items)


def _paused(view: DeviceView, item: StepItem) -> bool:
    """Tell whether a step's window holds time between two captures; a trace of one step has nothing else to show."""
    end = item.start_ns + item.window_ns
    many = len(view.marks.start_ns) > 1
    return many and any(start < end and item.start_ns < until for start, until in view.pauses)


def _unlike(item: StepItem, others: list[StepItem]) -> str | None:
    ops = float(np.median([other.device_ops for other in others]))
    window = float(np.median([other.window_ns for other in others]))
    if item.device_ops != ops:
        return f"{item.device_ops} ops where the others have {ops:g}"
    if abs(item.window_ns - window) > EDGE_STEP_FRAC * window:
        return (
            f"its window is {item.window_ns / window:.2f} times the others'"
            if window
            else "the others' windows are empty"
        )
    return None


def _select_step(items: tuple[StepItem, ...], chosen: int | None) -> tuple[StepItem, ...]:
    """Use the step asked for, and only that."""
    if chosen is None:
        return items
    return tuple(replace(item, left_out=None if item.index == chosen else "not the step asked for") for item in items)


def _ledger(
    view: DeviceView,
    pieces: Pieces,
    used: npt.NDArray[np.bool_],
    count: int,
    host_by: Mapping[str, int],
    wall: Wall | None,
) -> Ledger:
    sums = _by_window(pieces, len(used))[used].sum(axis=0)
    window = np.diff(view.windows.edge_ns)[used].sum()
    mine = used[pieces.window] & (pieces.gap >= 0)
    position = np.zeros(3, np.int64)
    np.add.at(position, pieces.position[mine], pieces.length_ns[mine])
    return Ledger(
        steps=count,
        window_ns=int(window),
        wall_ns=None if wall is None else wall.step_ns * count,
        accounts=_accounts(sums),
        idle_latency_by=IdleLatency(*(int(sums[part]) for part in _LATENCY)),
        idle_host_by=host_by,
        idle_by_position=IdlePosition(*(int(value) for value in position)),
    )


def _causes(
    view: DeviceView,
    pieces: Pieces,
    used: npt.NDArray[np.bool_],
    blocked: npt.NDArray[np.bool_],
    ignored: npt.NDArray[np.bool_],
) -> dict[str, int]:
    """Split `idle_host` by what the launching thread was doing."""
    mine = np.flatnonzero(used[pieces.window] & (pieces.owner == Owner.IDLE_HOST))
    thread = launching_threads(view, pieces.gap[mine])
    cutter = CauseCutter(view.trace, view.rank, blocked, ignored)
    category = np.append(view.trace.host.category, np.int8(0))  # the last entry answers for -1, no row
    sums = np.zeros((len(FIXED_CAUSES) + len(view.trace.names), len(HostCategory)), np.int64)
    for part in cutter.chunks(thread, pieces.start_ns[mine], pieces.end_ns[mine]):
        np.add.at(sums, (part.label, category[part.row]), part.end_ns - part.start_ns)
    return _named_causes(view, sums)


def _named_causes(view: DeviceView, sums: I64) -> dict[str, int]:
    """Give causes (by label and category of the row) their texts; frames beyond the largest are ``python:other``."""
    result = dict.fromkeys(FIXED_CAUSES, 0)
    frames: dict[str, int] = {}
    for label, category in np.argwhere(sums).tolist():
        code, time = label - len(FIXED_CAUSES), int(sums[label, category])
        if code < 0:
            result[FIXED_CAUSES[label]] += time
        elif category == HostCategory.ANNOTATION:
            text = f"annotation:{view.trace.names[code]}"
            result[text] = result.get(text, 0) + time
        else:
            text = f"python:{frame_label(view.trace.names[code])}"
            frames[text] = frames.get(text, 0) + time
    ranked = sorted(frames.items(), key=lambda frame: (-frame[1], frame[0]))
    result.update(ranked[:LARGEST_FRAMES])
    rest = sum(time for _, time in ranked[LARGEST_FRAMES:])
    if rest:
        result["python:other"] = rest
    unrecorded = result.pop("unrecorded")
    return {**result, "unrecorded": unrecorded}


def _host_times(
    view: DeviceView,
    pieces: Pieces,
    used: npt.NDArray[np.bool_],
    blocked: npt.NDArray[np.bool_],
    options: ReconcileOptions,
) -> HostTimes:
    host, names = view.trace.host, view.trace.names
    mine = view.trace.threads.rank[host.thread] == view.rank
    edge = view.windows.edge_ns
    windows = intervals.union(edge[:-1][used], edge[1:][used])
    scheduling = np.flatnonzero(mine & _scheduling_rows(view, options))
    scheduler = _within(view, scheduling, windows)
    enqueues = np.array([apis.role_of(name) is apis.ApiRole.LAUNCH for name in names], np.bool_)
    launches = np.flatnonzero(mine & (host.category == HostCategory.API) & enqueues[host.name] & ~blocked)
    sync = _within(view, np.flatnonzero(mine & blocked), windows)
    after_sync = _drained(
        view, pieces, used, intervals.union(host.start_ns[mine & blocked], host.end_ns[mine & blocked])
    )
    return HostTimes(
        scheduler_ns=intervals.measure(scheduler),
        scheduler_exposed_ns=intervals.measure(intervals.subtract(scheduler, view.occupancy.busy)),
        launch_api_ns=intervals.measure(_within(view, launches, windows)),
        sync_ns=intervals.measure(sync),
        idle_host_after_sync_ns=after_sync,
        scheduler_names={
            names[code]: intervals.measure(_within(view, scheduling[host.name[scheduling] == code], windows))
            for code in np.unique(host.name[scheduling]).tolist()
        },
    )


def _scheduling_rows(view: DeviceView, options: ReconcileOptions) -> npt.NDArray[np.bool_]:
    """Tell which host rows are engine scheduling, by the maintained list and the user's pattern."""
    host, names = view.trace.host, view.trace.names
    found = np.zeros(len(host), np.bool_)
    for category in ENGINE_ROWS:
        rows = host.category == category
        if not rows.any():
            continue
        known = np.array([is_scheduling(name, category) for name in names], np.bool_)
        found |= rows & known[host.name]
    return found if options.scheduler is None else found | scheduler_rows(view.trace, options.scheduler)


def scheduler_rows(trace: Trace, pattern: re.Pattern[str]) -> npt.NDArray[np.bool_]:
    """Tell which host rows the user's pattern names: annotations and Python frames whose name it finds."""
    host = trace.host
    rows = np.isin(host.category, ENGINE_ROWS)
    named = [code for code in np.unique(host.name[rows]).tolist() if pattern.search(trace.names[code]) is not None]
    return rows & np.isin(host.name, named)


ENGINE_ROWS = (HostCategory.ANNOTATION, HostCategory.PYTHON)
"""Kinds of host rows that an engine's own functions leave."""


def _within(view: DeviceView, rows: I64, windows: Intervals) -> Intervals:
    host = view.trace.host
    return intervals.intersect(intervals.union(host.start_ns[rows], host.end_ns[rows]), windows)


def _drained(view: DeviceView, pieces: Pieces, used: npt.NDArray[np.bool_], sync: Intervals) -> int:
    """Return the `idle_host` time of gaps that began while a call blocked."""
    mine = np.flatnonzero(used[pieces.window] & (pieces.owner == Owner.IDLE_HOST))
    begun = intervals.contains(sync, view.occupancy.gaps.start_ns[pieces.gap[mine]])
    return int(pieces.length_ns[mine[begun]].sum())


def _mean(ledger: Ledger, wall: Wall | None) -> StepMean:
    count = ledger.steps
    window, busy = ledger.window_ns / count, ledger.accounts.busy / count
    residual = None if wall is None else wall.step_ns - window
    return StepMean(
        wall_ns=None if wall is None else wall.step_ns,
        wall_source=None if wall is None else wall.source,
        window_ns=window,
        busy_ns=busy,
        idle_ns=ledger.accounts.idle / count,
        residual_ns=residual,
        dilation=window / wall.step_ns if wall is not None and window > wall.step_ns else None,
        full_speed_idle_ns=wall.step_ns - busy if wall is not None and wall.step_ns >= busy else None,
        wall_low_ns=None if wall is None else wall.low_ns,
        wall_high_ns=None if wall is None else wall.high_ns,
    )


def _resolution_error(view: DeviceView, items: tuple[StepItem, ...], count: int) -> int:
    """Bound the error of the mean step's busy and idle time: each row's length is off by less than the resolution."""
    resolution = view.trace.source.time_resolution_ns
    if resolution <= 1:
        return 0
    return resolution * sum(item.device_ops for item in items if item.used) // count
