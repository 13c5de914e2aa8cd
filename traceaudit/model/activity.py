"""What a host thread worked on, by engine phase and kind of row: the causes of host time, told apart."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from traceaudit.model import apis, intervals
from traceaudit.model.causes import FIXED_CAUSES, CauseCutter, Causes, blocking_rows, dispatching_rows
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.options import StepOptions
from traceaudit.model.scheduling import HostPhase, phase_of
from traceaudit.model.schema import I64, HostCategory
from traceaudit.model.steps import marker_rows

__all__ = ["Activities", "Activity", "ThreadActivity"]


class Activity(StrEnum):
    """What the host does at an instant.

    `SCHEDULE`, `PREPARE` and `OUTPUT` are engine phases with everything inside them but blocking calls and the
    profiler; `FORWARD` is Python around the model's dispatch. `OTHER_THREAD` is time without a row of the thread while
    another thread of the process runs ops or calls: it may hold the interpreter's lock.
    """

    SYNC = "sync"
    SCHEDULE = "schedule"
    PREPARE = "prepare"
    OUTPUT = "output"
    LAUNCH_API = "launch_api"
    MEMORY = "memory"
    OTHER_API = "other_api"
    FRAMEWORK = "framework"
    FORWARD = "forward"
    PYTHON = "python"
    ANNOTATION = "annotation"
    PROFILER = "profiler"
    OTHER_THREAD = "other_thread"
    UNRECORDED = "unrecorded"

    @property
    def number(self) -> int:
        """Position among the activities."""
        return _NUMBER[self]


_NUMBER = {activity: number for number, activity in enumerate(Activity)}
_OF_CATEGORY = {
    HostCategory.API: Activity.OTHER_API,
    HostCategory.CPU_OP: Activity.FRAMEWORK,
    HostCategory.ANNOTATION: Activity.ANNOTATION,
    HostCategory.PYTHON: Activity.PYTHON,
}
_OF_ROLE = {apis.ApiRole.LAUNCH: Activity.LAUNCH_API, apis.ApiRole.MEMORY: Activity.MEMORY}
_OF_PHASE = {
    HostPhase.SCHEDULE: Activity.SCHEDULE,
    HostPhase.PREPARE: Activity.PREPARE,
    HostPhase.OUTPUT: Activity.OUTPUT,
    HostPhase.FORWARD: Activity.FORWARD,
}


@dataclass(frozen=True, slots=True)
class Activities:
    """Parts of the given stretches with what the host did.

    Attributes
    ----------
    stretch
        Which of the given stretches the part lies in.
    activity
        `Activity.number` of what the host did.
    row
        Host row that decided, -1 if none.
    start_ns, end_ns
        The part.
    """

    stretch: I64
    activity: I64
    row: I64
    start_ns: I64
    end_ns: I64


class ThreadActivity:
    """Cuts stretches of host threads by activity; prepared once for a device.

    Parameters
    ----------
    view
        The device.
    steps
        How steps were found: their markers say nothing about what the host did.
    """

    def __init__(self, view: DeviceView, steps: StepOptions) -> None:
        trace, host = view.trace, view.trace.host
        self._view = view
        self._blocked = blocking_rows(trace, view.ops)
        self._cutter = CauseCutter(trace, view.rank, self._blocked, marker_rows(trace, steps))
        self._of_row = _activity_of_rows(view)
        self._phases = _phases_by_thread(view)
        self._others: dict[int, intervals.Intervals] = {}
        launched = view.ops.launch[view.ops.launch >= 0]
        threads, counts = np.unique(host.thread[launched], return_counts=True)
        self.main_thread = int(threads[counts.argmax()]) if len(threads) else view.marks.thread

    def cut(self, thread: I64, start_ns: I64, end_ns: I64) -> Activities:
        """Cut disjoint, sorted stretches, each on one thread (-1: none is known)."""
        parts = list(self.chunks(thread, start_ns, end_ns)) or [_nothing()]
        return Activities(*(np.concatenate(columns) for columns in zip(*map(_columns, parts), strict=True)))

    def chunks(self, thread: I64, start_ns: I64, end_ns: I64) -> Iterator[Activities]:
        """Cut as `cut` does, some stretches of one thread at a time, so that memory stays small on long traces."""
        for causes in self._cutter.chunks(thread, start_ns, end_ns):
            one = int(thread[causes.stretch[0]]) if len(causes.stretch) else -1
            activity = self._in_phases(self._plain(causes), one, causes.start_ns)
            found = Activities(causes.stretch, activity, causes.row, causes.start_ns, causes.end_ns)
            yield self._contended(found, one)

    def _plain(self, causes: Causes) -> I64:
        """Return the activity of each part by its row alone."""
        fixed = np.array([Activity(name).number for name in FIXED_CAUSES], np.int64)
        rowless = fixed[np.minimum(causes.label, len(fixed) - 1)]
        activity = np.where(causes.row >= 0, np.append(self._of_row, 0)[causes.row], rowless)
        blocked = np.append(self._blocked, np.False_)[causes.row]
        return np.where(blocked, Activity.SYNC.number, activity)

    def _in_phases(self, activity: I64, thread: int, at: I64) -> I64:
        """Give parts of a thread inside the rows of an engine phase that phase."""
        result = activity.copy()
        kept = np.isin(activity, [Activity.SYNC.number, Activity.PROFILER.number])
        loose = np.isin(activity, [Activity.PYTHON.number, Activity.ANNOTATION.number])
        for phase, rows in self._phases.get(thread, ()):
            open_to = loose if phase is HostPhase.FORWARD else ~kept
            result[intervals.contains(rows, at) & open_to] = _OF_PHASE[phase].number
        return result

    def _contended(self, parts: Activities, thread: int) -> Activities:
        """Tell apart unrecorded time in which another thread of the process is at work."""
        silent = parts.activity == Activity.UNRECORDED.number
        split = (
            _restricted(parts, np.flatnonzero(~silent), intervals.EMPTY),
            _restricted(parts, np.flatnonzero(silent), self._others_of(thread)),
        )
        return Activities(*(np.concatenate(column) for column in zip(*split, strict=True)))

    def _others_of(self, thread: int) -> intervals.Intervals:
        """Return when other threads of the thread's process run ops or calls that do not block."""
        if thread < 0:
            return intervals.EMPTY
        if thread not in self._others:
            threads, host = self._view.trace.threads, self._view.trace.host
            same = (threads.rank == threads.rank[thread]) & (threads.pid == threads.pid[thread])
            same[thread] = False
            busy = np.isin(host.category, [HostCategory.CPU_OP, HostCategory.API]) & ~self._blocked
            rows = busy & same[host.thread]
            self._others[thread] = intervals.union(host.start_ns[rows], host.end_ns[rows])
        return self._others[thread]


def _activity_of_rows(view: DeviceView) -> I64:
    """Return the activity of each host row by its category and, for calls, its role."""
    trace, host = view.trace, view.trace.host
    by_category = np.array([_OF_CATEGORY[category].number for category in HostCategory], np.int64)
    by_call = np.array([_OF_ROLE.get(apis.role_of(name), Activity.OTHER_API).number for name in trace.names], np.int64)
    activity = np.where(host.category == HostCategory.API, by_call[host.name], by_category[host.category])
    return np.where(dispatching_rows(trace), Activity.FRAMEWORK.number, activity)


def _phases_by_thread(view: DeviceView) -> dict[int, list[tuple[HostPhase, intervals.Intervals]]]:
    """Return when each thread is in each engine phase; scheduling last, so that it wins where phases nest."""
    trace, host = view.trace, view.trace.host
    order = (HostPhase.FORWARD, HostPhase.PREPARE, HostPhase.OUTPUT, HostPhase.SCHEDULE)
    number = {phase: i for i, phase in enumerate(order)}
    found = np.full(len(host), -1, np.int8)
    for category in (HostCategory.PYTHON, HostCategory.ANNOTATION):
        phases = [phase_of(name, category) for name in trace.names]
        of_name = np.array([-1 if phase is None else number[phase] for phase in phases], np.int8)
        mine = host.category == category
        found[mine] = of_name[host.name[mine]]
    result: dict[int, list[tuple[HostPhase, intervals.Intervals]]] = {}
    for i, phase in enumerate(order):
        rows = np.flatnonzero(found == i)
        for one in np.unique(host.thread[rows]).tolist():
            own = rows[host.thread[rows] == one]
            result.setdefault(one, []).append((phase, intervals.union(host.start_ns[own], host.end_ns[own])))
    return result


def _columns(parts: Activities) -> tuple[I64, I64, I64, I64, I64]:
    return parts.stretch, parts.activity, parts.row, parts.start_ns, parts.end_ns


def _nothing() -> Activities:
    none = np.empty(0, np.int64)
    return Activities(none, none, none, none, none)


def _restricted(
    parts: Activities, rows: npt.NDArray[np.intp], others: intervals.Intervals
) -> tuple[I64, I64, I64, I64, I64]:
    """Return some parts as columns, cut where other threads work."""
    columns = (parts.stretch[rows], parts.activity[rows], parts.row[rows], parts.start_ns[rows], parts.end_ns[rows])
    if not len(others.start) or not len(rows):
        return columns
    stretch, activity, row, start, end = columns
    order = np.argsort(start, kind="stable")
    stretch, activity, row, start, end = (column[order] for column in (stretch, activity, row, start, end))
    edge = intervals.edges(start, end, *others)
    part = np.searchsorted(start, edge[:-1], "right") - 1
    inside = (part >= 0) & (edge[:-1] < end[np.maximum(part, 0)])
    part, at, until = part[inside], edge[:-1][inside], edge[1:][inside]
    working = intervals.contains(others, at)
    return stretch[part], np.where(working, Activity.OTHER_THREAD.number, activity[part]), row[part], at, until
