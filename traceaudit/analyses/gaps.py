"""Why the device waited: its gaps with their causes, folded over the steps."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from traceaudit.model import intervals
from traceaudit.model.activity import Activities, Activity, ThreadActivity
from traceaudit.model.causes import launching_threads, row_label
from traceaudit.model.criticalpath import PathKind, Stretch, critical_path
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.occupancy import Owner
from traceaudit.model.options import StepOptions
from traceaudit.model.pieces import Pieces, cut
from traceaudit.model.plan import plan_of
from traceaudit.model.results import DeviceAudit
from traceaudit.model.results.gaps import (
    CriticalPath,
    DeviceGaps,
    GapRow,
    HostLedger,
    HostShare,
    Limit,
    OtherThread,
    PathPart,
    ShortGaps,
)
from traceaudit.model.retime import recorded_costs
from traceaudit.model.schema import I64, HostCategory, Kind
from traceaudit.model.sides import sides_of
from traceaudit.model.timeline import Timeline, timeline_of

__all__ = ["SHORT_GAP_NS", "find_gaps"]

SHORT_GAP_NS = 10_000
"""Gaps below this between launches issued back to back are the tax of short kernels."""

HALF = 0.5
NAMES_SHOWN = 3
POSITIONS = ("leading", "between", "trailing")

DELIVERY, TURNAROUND, LAUNCH_CALL = "delivery", "turnaround", "launch_call"
_BY_OWNER = {
    Owner.IDLE_GRAPH: "graph_node",
    Owner.LAUNCH_CALL: LAUNCH_CALL,
    Owner.DELIVERY: DELIVERY,
    Owner.TURNAROUND: TURNAROUND,
    Owner.IDLE_UNKNOWN: "unknown",
}
CAUSES = (
    *_BY_OWNER.values(),
    "profiler_buffer",
    "stream_wait",
    "between_replays",
    *(activity.value for activity in Activity),
)
"""Causes of idle time: parts of latency first, then what the host did."""

_OF_ACTIVITY = np.array([CAUSES.index(activity) for activity in Activity], np.int64)


def find_gaps(view: DeviceView, audit: DeviceAudit, steps: StepOptions, *, short_ns: int = SHORT_GAP_NS) -> DeviceGaps:
    """Fold the gaps of the used steps by their neighbours and say what caused them.

    Parameters
    ----------
    view, audit
        The device and its ledger.
    steps
        How the steps were found.
    short_ns
        Limit of short gaps, in ns.
    """
    used = np.array([item.used for item in audit.steps.items], np.bool_)
    pieces = cut(view.occupancy, view.windows.edge_ns)
    idle = np.flatnonzero(used[pieces.window] & (pieces.gap >= 0))
    activity = ThreadActivity(view, steps)
    rows = _rows(view, pieces, idle, activity, audit.ledger.steps)
    host = _host_ledger(view, pieces, used, activity, audit.ledger.host_cost_ns)
    timeline = timeline_of(view)
    verdict, shares = _verdict(audit, host, host_binds=_host_binds(timeline, audit))
    return DeviceGaps(
        rank=view.rank,
        device=view.device,
        name=view.name,
        steps_used=audit.ledger.steps,
        window_ns=audit.ledger.window_ns,
        idle_ns=audit.ledger.accounts.idle,
        verdict=verdict,
        shares=shares,
        gaps=rows,
        host=host,
        short=_short(view, pieces, idle, short_ns),
        queue_depth=_queue_depth(view, used),
        path=_typical_path(timeline, audit),
        short_names=view.short_names,
    )


class _Tally:
    """Sums of idle time by group of gaps: by cause, and by the host row that decided."""

    def __init__(self, view: DeviceView, groups: int) -> None:
        self._host = view.trace.host
        self._names = len(view.trace.names)
        self.causes = np.zeros((groups, len(CAUSES)), np.int64)
        self.places: dict[int, int] = {}

    def add(self, group: I64, cause: I64, length: I64) -> None:
        """Book time of latency, graph or unknown."""
        np.add.at(self.causes, (group, cause), length)

    def add_host(self, group: I64, found: Activities) -> None:
        """Book time of the host, with the rows that decided."""
        length = found.end_ns - found.start_ns
        np.add.at(self.causes, (group, _OF_ACTIVITY[found.activity]), length)
        known = found.row >= 0
        row = found.row[known]
        key = (group[known] * self._names + self._host.name[row]) * len(HostCategory) + self._host.category[row]
        keys, inverse = np.unique(key, return_inverse=True)
        sums = np.zeros(len(keys), np.int64)
        np.add.at(sums, inverse, length[known])
        for one, time in zip(keys.tolist(), sums.tolist(), strict=True):
            self.places[one] = self.places.get(one, 0) + time

    def where(self, view: DeviceView) -> dict[int, str]:
        """Name the innermost host rows of each group that took most of its time."""
        listed: dict[int, list[str]] = {}
        for key, _ in sorted(self.places.items(), key=lambda place: (-place[1], place[0])):
            rest, category = divmod(key, len(HostCategory))
            group, code = divmod(rest, self._names)
            text = row_label(view.trace.names[code], category)
            names = listed.setdefault(group, [])
            if len(names) < NAMES_SHOWN and text not in names:
                names.append(text)
        return {group: "; ".join(names) for group, names in listed.items()}


def _tallied(view: DeviceView, pieces: Pieces, idle: I64, group: I64, activity: ThreadActivity, groups: int) -> _Tally:
    """Give every idle instant a cause."""
    tally = _Tally(view, groups)
    owner, length = pieces.owner[idle], pieces.length_ns[idle]
    for kind, name in _BY_OWNER.items():
        mine = np.flatnonzero(owner == kind)
        excused, instead = _excused(view, pieces, idle[mine], kind)
        tally.add(group[mine], np.full(len(mine), instead, np.int64), excused)
        tally.add(group[mine], _default_cause(view, pieces, idle[mine], name), length[mine] - excused)
    host = np.flatnonzero(owner == Owner.IDLE_HOST)
    rows = idle[host]
    thread = launching_threads(view, pieces.gap[rows])
    for found in activity.chunks(thread, pieces.start_ns[rows], pieces.end_ns[rows]):
        tally.add_host(group[host[found.stretch]], found)
    return tally


def _excused(view: DeviceView, pieces: Pieces, rows: I64, owner: Owner) -> tuple[I64, int]:
    """Return how much of each piece a profiler's buffer or a recorded stream wait explains, and that cause."""
    trace = view.trace
    start, end = pieces.start_ns[rows], pieces.end_ns[rows]
    if owner == Owner.LAUNCH_CALL:
        mine = trace.overheads.rank == view.rank
        busy = intervals.union(trace.overheads.start_ns[mine], trace.overheads.end_ns[mine])
        return intervals.covered(busy, start, end), CAUSES.index("profiler_buffer")
    if owner in (Owner.DELIVERY, Owner.TURNAROUND):
        waits = np.array(["wait event" in trace.names[code].lower() for code in trace.syncs.name], np.bool_)
        mine = waits & (trace.syncs.rank == view.rank)
        busy = intervals.union(trace.syncs.start_ns[mine], trace.syncs.end_ns[mine])
        return intervals.covered(busy, start, end), CAUSES.index("stream_wait")
    return np.zeros(len(rows), np.int64), 0


def _default_cause(view: DeviceView, pieces: Pieces, rows: I64, name: str) -> I64:
    """Return the cause of pieces by owner; turnaround between two graph launches is told apart."""
    cause = np.full(len(rows), CAUSES.index(name), np.int64)
    if name != TURNAROUND or not len(rows):
        return cause
    gaps, ops = view.occupancy.gaps, view.ops
    before, after = gaps.before[pieces.gap[rows]], gaps.after[pieces.gap[rows]]
    launches, counts = np.unique(ops.launch[ops.launch >= 0], return_counts=True)
    graphs = launches[counts > 1]
    between = (before >= 0) & (after >= 0) & np.isin(ops.launch[before], graphs) & np.isin(ops.launch[after], graphs)
    cause[between] = CAUSES.index("between_replays")
    return cause


def _rows(view: DeviceView, pieces: Pieces, idle: I64, activity: ThreadActivity, steps: int) -> tuple[GapRow, ...]:
    """Fold gaps with equal position and neighbours into rows, most time first."""
    if not len(idle):
        return ()
    gaps, names = view.occupancy.gaps, np.append(view.ops.name, np.int32(-1)).astype(np.int64)
    before, after = names[gaps.before[pieces.gap[idle]]], names[gaps.after[pieces.gap[idle]]]
    position = pieces.position[idle].astype(np.int64)
    before[position == POSITIONS.index("leading")] = -1  # what ran before the window is another step's
    after[position == POSITIONS.index("trailing")] = -1
    size = len(view.trace.names) + 1
    key = (position * size + before + 1) * size + after + 1
    groups, group = np.unique(key, return_inverse=True)
    tally = _tallied(view, pieces, idle, group, activity, len(groups))
    where, owners = tally.where(view), _owners(pieces, idle, group, len(groups))
    occurrences = _occurrences(pieces, idle, group, len(groups))
    texts = (*view.trace.names, None)  # the last stands for -1, no op
    rows = [
        GapRow(
            position=POSITIONS[one // size**2],
            before=texts[one // size % size - 1],
            after=texts[one % size - 1],
            count=len(occurrences[i]),
            total_ns=int(occurrences[i].sum()),
            per_step_ns=float(occurrences[i].sum()) / steps,
            median_ns=float(np.median(occurrences[i])),
            p90_ns=float(np.quantile(occurrences[i], 0.9)),
            max_ns=int(occurrences[i].max()),
            host_ns=int(owners[i, 0]),
            latency_ns=int(owners[i, 1]),
            graph_ns=int(owners[i, 2]),
            unknown_ns=int(owners[i, 3]),
            causes=_named(tally.causes[i]),
            where=where.get(i),
        )
        for i, one in enumerate(groups.tolist())
    ]
    return tuple(sorted(rows, key=lambda row: -row.total_ns))


def _owners(pieces: Pieces, idle: I64, group: I64, groups: int) -> I64:
    """Sum each group by who owns the time: host, latency, graph, unknown."""
    owners = np.zeros((groups, 4), np.int64)
    side = np.full(len(Owner), 1, np.int64)
    side[[Owner.IDLE_HOST, Owner.IDLE_GRAPH, Owner.IDLE_UNKNOWN]] = 0, 2, 3
    np.add.at(owners, (group, side[pieces.owner[idle]]), pieces.length_ns[idle])
    return owners


def _occurrences(pieces: Pieces, idle: I64, group: I64, groups: int) -> list[I64]:
    """Return the lengths of the gaps of each group; the part of a gap in one window counts as one."""
    window, gap = pieces.window[idle], pieces.gap[idle]
    begins = np.flatnonzero(np.concatenate(([True], (window[1:] != window[:-1]) | (gap[1:] != gap[:-1]))))
    length = np.add.reduceat(pieces.length_ns[idle], begins)
    order = np.argsort(group[begins], kind="stable")
    return np.split(length[order], np.searchsorted(group[begins][order], np.arange(1, groups)))


def _named(sums: I64) -> dict[str, int]:
    order = np.argsort(-sums, kind="stable")
    return {CAUSES[i]: int(sums[i]) for i in order.tolist() if sums[i] > 0}


def _host_ledger(
    view: DeviceView, pieces: Pieces, used: npt.NDArray[np.bool_], activity: ThreadActivity, cost_ns: int
) -> HostLedger:
    """Account for the launching thread over the host intervals of the used steps, and for who else is waited for."""
    start, end = view.marks.start_ns[used], view.marks.end_ns[used]
    thread = activity.main_thread
    awaited = np.flatnonzero(used[pieces.window] & np.isin(pieces.owner, [Owner.IDLE_HOST, Owner.LAUNCH_CALL]))
    awaited_of = launching_threads(view, pieces.gap[awaited])
    mine = awaited[awaited_of == thread]
    total = _by_activity(activity, thread, start, end)
    exposed = _by_activity(activity, thread, pieces.start_ns[mine], pieces.end_ns[mine])
    shares = {one.value: HostShare(int(total[one.number]), int(exposed[one.number])) for one in Activity}
    times = np.zeros(len(view.trace.threads), np.int64)
    np.add.at(times, awaited_of[awaited_of != thread], pieces.length_ns[awaited[awaited_of != thread]])
    others = [
        OtherThread(_thread_id(view, one), int(times[one])) for one in np.argsort(-times, kind="stable") if times[one]
    ]
    return HostLedger(_thread_id(view, thread), int((end - start).sum()), cost_ns, shares, tuple(others))


def _by_activity(activity: ThreadActivity, thread: int, start: I64, end: I64) -> I64:
    """Sum disjoint, sorted stretches of a thread by what it did."""
    sums = np.zeros(len(Activity), np.int64)
    for found in activity.chunks(np.full(len(start), thread, np.int64), start, end):
        np.add.at(sums, found.activity, found.end_ns - found.start_ns)
    return sums


def _thread_id(view: DeviceView, thread: int) -> str:
    return view.trace.names[view.trace.threads.tid[thread]] if thread >= 0 else "none"


def _verdict(audit: DeviceAudit, host: HostLedger, *, host_binds: bool) -> tuple[Limit, Mapping[str, float]]:
    """Decide by the largest share of the window.

    Blocking calls own the idle time in which they block. They own the time to fill a drained queue as well, if the
    host's own work is shorter than the device's: without the calls it would have run ahead. Where the host alone takes
    the step and the device alone does not, it is the host's, however busy the device is: faster ops would gain nothing.
    """
    ledger = audit.ledger
    window = max(ledger.window_ns, 1)
    sync = host.shares[Activity.SYNC.value]
    runs_ahead = host.interval_ns - sync.total_ns < ledger.accounts.busy
    drained = audit.host.idle_host_after_sync_ns if runs_ahead else 0
    blocked = min(ledger.host_cost_ns, max(sync.exposed_ns, drained))
    parts = {
        Limit.DEVICE_BOUND: ledger.accounts.compute,
        Limit.COMM_BOUND: ledger.accounts.exposed_comm,
        Limit.COPY_BOUND: ledger.accounts.exposed_copy,
        Limit.SYNC_BOUND: blocked,
        Limit.HOST_BOUND: ledger.host_cost_ns - blocked,
    }
    best = max(parts, key=lambda limit: parts[limit])
    shares = {limit.value: time / window for limit, time in parts.items()}
    if host_binds and best is not Limit.SYNC_BOUND:
        return Limit.HOST_BOUND, shares
    return (best if parts[best] >= HALF * window else Limit.MIXED), shares


def _host_binds(timeline: Timeline, audit: DeviceAudit) -> bool:
    """Tell whether the host alone takes nearly the step, and the device alone does not."""
    plan = plan_of(timeline, audit)
    if plan is None:
        return False
    return sides_of(plan, recorded_costs(plan)).binding(audit.step.window_ns) == "host"


def _short(view: DeviceView, pieces: Pieces, idle: I64, limit: int) -> ShortGaps:
    gaps, ops, host = view.occupancy.gaps, view.ops, view.trace.host
    chosen = np.unique(pieces.gap[idle[pieces.position[idle] == POSITIONS.index("between")]])
    length = (gaps.end_ns - gaps.start_ns)[chosen]
    both = (gaps.before[chosen] >= 0) & (gaps.after[chosen] >= 0)
    short = both & (length < limit)
    launched = np.flatnonzero(ops.launch >= 0)
    launches, counts = np.unique(ops.launch[launched], return_counts=True)
    single = launched[np.isin(ops.launch[launched], launches[counts == 1])]
    call = host.end_ns[ops.launch[single]] - host.start_ns[ops.launch[single]]
    shorter = int((ops.end_ns[single] - ops.start_ns[single] < call).sum())
    return ShortGaps(limit, int(short.sum()), int(length[short].sum()), len(ops), shorter)


def _queue_depth(view: DeviceView, used: npt.NDArray[np.bool_]) -> float:
    """Return the time-weighted mean number of launches whose first op has not started."""
    ops, edge = view.ops, view.windows.edge_ns
    launched = np.flatnonzero(ops.launch >= 0)
    calls, first = np.unique(ops.launch[launched], return_index=True)
    windows = intervals.union(edge[:-1][used], edge[1:][used])
    waiting = intervals.covered(windows, view.trace.host.start_ns[calls], ops.start_ns[launched[first]])
    return float(waiting.sum()) / max(intervals.measure(windows), 1)


def _typical_path(timeline: Timeline, audit: DeviceAudit) -> CriticalPath:
    """Return the critical path of the used step with the median window, of those with ops where any has some."""
    used = [item for item in audit.steps.items if item.used]
    ranked = sorted([item for item in used if item.device_ops] or used, key=lambda item: item.window_ns)
    step = ranked[(len(ranked) - 1) // 2]
    sums: dict[tuple[str, str | None, str | None], tuple[int, int]] = {}
    for stretch in critical_path(timeline, step.start_ns, step.start_ns + step.window_ns):
        name = timeline.name_of(stretch.node) if stretch.node >= 0 else None
        key = (stretch.kind.value, name, _op_kind(timeline.view, timeline, stretch))
        count, time = sums.get(key, (0, 0))
        sums[key] = (count + 1, time + stretch.end_ns - stretch.start_ns)
    parts = [PathPart(kind, name, count, time, op_kind) for (kind, name, op_kind), (count, time) in sums.items()]
    return CriticalPath(step.index, step.window_ns, tuple(sorted(parts, key=lambda part: -part.time_ns)))


def _op_kind(view: DeviceView, timeline: Timeline, stretch: Stretch) -> str | None:
    """Return what the op of a stretch is for, None unless an op runs."""
    if stretch.kind is not PathKind.OP:
        return None
    return Kind(int(view.ops.kind[timeline.row[stretch.node]])).name.lower()
