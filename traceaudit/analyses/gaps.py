"""Why the device waited: its gaps with their causes, folded over the steps."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from traceaudit.model import intervals
from traceaudit.model.activity import Activity, ThreadActivity
from traceaudit.model.causes import frame_label, launching_threads
from traceaudit.model.criticalpath import critical_path
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.occupancy import Owner
from traceaudit.model.options import StepOptions
from traceaudit.model.pieces import Pieces, cut
from traceaudit.model.results import DeviceAudit
from traceaudit.model.results.gaps import (
    CriticalPath,
    DeviceGaps,
    GapRow,
    HostLedger,
    HostShare,
    Limit,
    PathPart,
    ShortGaps,
)
from traceaudit.model.schema import I64, HostCategory
from traceaudit.model.timeline import timeline_of

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
    parts = _parts(view, pieces, idle, activity)
    rows = _rows(view, pieces, idle, parts, audit.ledger.steps)
    host = _host_ledger(view, used, activity)
    verdict, shares = _verdict(audit, host)
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
        path=_typical_path(view, audit),
    )


class _Parts:
    """Parts of idle pieces by cause: which piece, which cause, how long, which host row decided (-1 for none)."""

    def __init__(self) -> None:
        self._columns: list[tuple[I64, I64, I64, I64]] = []

    def add(self, piece: I64, cause: I64 | int, length: I64, row: I64 | None = None) -> None:
        decided = np.full(len(piece), -1, np.int64) if row is None else row
        self._columns.append((piece, np.broadcast_to(np.asarray(cause, np.int64), piece.shape), length, decided))

    def columns(self) -> tuple[I64, I64, I64, I64]:
        piece, cause, length, row = (np.concatenate(column) for column in zip(*self._columns, strict=True))
        return piece, cause, length, row


def _parts(view: DeviceView, pieces: Pieces, idle: I64, activity: ThreadActivity) -> _Parts:
    """Give every idle instant a cause."""
    parts = _Parts()
    owner, length = pieces.owner[idle], pieces.length_ns[idle]
    for kind, name in _BY_OWNER.items():
        mine = np.flatnonzero(owner == kind)
        excused, instead = _excused(view, pieces, idle[mine], kind)
        parts.add(idle[mine], instead, excused)
        parts.add(idle[mine], _default_cause(view, pieces, idle[mine], name), length[mine] - excused)
    host = idle[owner == Owner.IDLE_HOST]
    thread = launching_threads(view, pieces.gap[host])
    found = activity.cut(thread, pieces.start_ns[host], pieces.end_ns[host])
    cause = np.array([CAUSES.index(one.value) for one in Activity], np.int64)[found.activity]
    parts.add(host[found.stretch], cause, found.end_ns - found.start_ns, found.row)
    return parts


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


def _rows(view: DeviceView, pieces: Pieces, idle: I64, parts: _Parts, steps: int) -> tuple[GapRow, ...]:
    """Fold gaps with equal position and neighbours into rows, most time first."""
    if not len(idle):
        return ()
    gaps, names = view.occupancy.gaps, np.append(view.ops.name, np.int32(-1))
    gap = pieces.gap[idle]
    key = np.stack((pieces.position[idle].astype(np.int64), names[gaps.before[gap]], names[gaps.after[gap]]), axis=1)
    groups, group = np.unique(key, axis=0, return_inverse=True)
    group_of = np.full(len(pieces.gap), -1, np.int64)
    group_of[idle] = group.reshape(-1)
    causes, owners, where = _sums(view, pieces, idle, group_of, parts, len(groups))
    occurrences = _occurrences(pieces, idle, group_of, len(groups))
    rows = [
        GapRow(
            position=POSITIONS[position],
            before=None if before < 0 else view.trace.names[before],
            after=None if after < 0 else view.trace.names[after],
            count=len(occurrences[i]),
            total_ns=int(occurrences[i].sum()),
            per_step_ns=float(occurrences[i].sum()) / steps,
            median_ns=float(np.median(occurrences[i])),
            p90_ns=float(np.quantile(occurrences[i], 0.9)),
            host_ns=int(owners[i, 0]),
            latency_ns=int(owners[i, 1]),
            graph_ns=int(owners[i, 2]),
            unknown_ns=int(owners[i, 3]),
            causes=_named(causes[i]),
            where=where.get(i),
        )
        for i, (position, before, after) in enumerate(groups.tolist())
    ]
    return tuple(sorted(rows, key=lambda row: -row.total_ns))


def _occurrences(pieces: Pieces, idle: I64, group_of: I64, groups: int) -> list[I64]:
    """Return the lengths of the gaps of each group; the part of a gap in one window counts as one."""
    key = np.stack((pieces.window[idle], pieces.gap[idle]), axis=1)
    _, first, one = np.unique(key, axis=0, return_index=True, return_inverse=True)
    length = np.zeros(len(first), np.int64)
    np.add.at(length, one.reshape(-1), pieces.length_ns[idle])
    group = group_of[idle[first]]
    order = np.argsort(group, kind="stable")
    return np.split(length[order], np.searchsorted(group[order], np.arange(1, groups)))


def _sums(
    view: DeviceView, pieces: Pieces, idle: I64, group_of: I64, parts: _Parts, groups: int
) -> tuple[I64, I64, dict[int, str]]:
    """Sum causes and owners of each group, and name where the host was."""
    piece, cause, length, row = parts.columns()
    causes = np.zeros((groups, len(CAUSES)), np.int64)
    np.add.at(causes, (group_of[piece], cause), length)
    owners = np.zeros((groups, 4), np.int64)
    side = np.full(len(Owner), 1, np.int64)
    side[[Owner.IDLE_HOST, Owner.IDLE_GRAPH, Owner.IDLE_UNKNOWN]] = 0, 2, 3
    np.add.at(owners, (group_of[idle], side[pieces.owner[idle]]), pieces.length_ns[idle])
    return causes, owners, _places(view, group_of[piece], row, length)


def _places(view: DeviceView, group: I64, row: I64, length: I64) -> dict[int, str]:
    """Name the innermost host rows of each group that took most of its time."""
    known = row >= 0
    if not known.any():
        return {}
    host = view.trace.host
    key = np.stack((group[known], host.name[row[known]].astype(np.int64), host.category[row[known]]), axis=1)
    keys, inverse = np.unique(key, axis=0, return_inverse=True)
    sums = np.zeros(len(keys), np.int64)
    np.add.at(sums, inverse.reshape(-1), length[known])
    names: dict[int, list[str]] = {}
    for i in np.argsort(-sums, kind="stable").tolist():
        one, code, category = (int(value) for value in keys[i])
        name = view.trace.names[code]
        listed = names.setdefault(one, [])
        if len(listed) < NAMES_SHOWN:
            listed.append(frame_label(name) if category == HostCategory.PYTHON else name)
    return {one: "; ".join(listed) for one, listed in names.items()}


def _named(sums: I64) -> dict[str, int]:
    order = np.argsort(-sums, kind="stable")
    return {CAUSES[i]: int(sums[i]) for i in order.tolist() if sums[i] > 0}


def _host_ledger(view: DeviceView, used: npt.NDArray[np.bool_], activity: ThreadActivity) -> HostLedger:
    """Account for the launching thread over the host intervals of the used steps."""
    start, end = view.marks.start_ns[used], view.marks.end_ns[used]
    thread = activity.main_thread
    found = activity.cut(np.full(len(start), thread, np.int64), start, end)
    length = found.end_ns - found.start_ns
    exposed = length - intervals.covered(view.occupancy.busy, found.start_ns, found.end_ns)
    shares = {}
    for one in Activity:
        mine = found.activity == one.number
        shares[one.value] = HostShare(int(length[mine].sum()), int(exposed[mine].sum()))
    name = view.trace.names[view.trace.threads.tid[thread]] if thread >= 0 else "none"
    return HostLedger(name, int((end - start).sum()), shares)


def _verdict(audit: DeviceAudit, host: HostLedger) -> tuple[Limit, Mapping[str, float]]:
    """Decide by the largest share of the window.

    Blocking calls own the idle time in which they block. They own the time to fill a drained queue as well, if the
    host's own work is shorter than the device's: without the calls it would have run ahead.
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
    return (best if parts[best] >= HALF * window else Limit.MIXED), shares


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


def _typical_path(view: DeviceView, audit: DeviceAudit) -> CriticalPath:
    """Return the critical path of the used step with the median window."""
    used = sorted((item for item in audit.steps.items if item.used), key=lambda item: item.window_ns)
    step = used[(len(used) - 1) // 2]
    timeline = timeline_of(view)
    sums: dict[tuple[str, str | None], tuple[int, int]] = {}
    for stretch in critical_path(timeline, step.start_ns, step.start_ns + step.window_ns):
        key = (stretch.kind.value, timeline.name_of(stretch.node) if stretch.node >= 0 else None)
        count, time = sums.get(key, (0, 0))
        sums[key] = (count + 1, time + stretch.end_ns - stretch.start_ns)
    parts = [PathPart(kind, name, count, time) for (kind, name), (count, time) in sums.items()]
    return CriticalPath(step.index, step.window_ns, tuple(sorted(parts, key=lambda part: -part.time_ns)))
