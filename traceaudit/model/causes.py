"""What a host thread was doing while the device waited for it: a cause for every instant of `idle_host`."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from traceaudit.model import apis, intervals
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.dispatch import dispatch_label, is_dispatch
from traceaudit.model.hoststack import stretches
from traceaudit.model.schema import I64, DeviceOps, HostCategory
from traceaudit.model.trace import Trace

__all__ = [
    "FIXED_CAUSES",
    "CauseCutter",
    "Causes",
    "blocking_rows",
    "dispatching_rows",
    "frame_label",
    "launching_threads",
    "row_label",
]

SYNC, LAUNCH_API, OTHER_API, FRAMEWORK, PROFILER, UNRECORDED = range(6)
FIXED_CAUSES = ("sync", "launch_api", "other_api", "framework", "profiler", "unrecorded")
"""Causes that do not carry a name; annotations and frames follow as ``annotation:NAME`` and ``python:FRAME``."""

CHUNK, CHUNK_ROWS = 4096, 32768
"""Stretches, and host rows they lie among, that are looked at at a time."""

BLOCKING_LAUNCHES_FRAC, FEWEST_LAUNCHES = 0.9, 10
"""Share of launches that outlast their ops, of at least so many, from which on launches are taken to block. Recordings
without ``CUDA_LAUNCH_BLOCKING`` show at most one in a hundred."""

_SYNCHRONIZE = re.compile(r"synchronize of \S*(?:Event|Stream)\b")
_ADDRESS = re.compile(r"\s*(?:object )?at 0x[0-9a-fA-F]+")
_FRAME = re.compile(r"(?P<file>.*?)\((?P<line>\d+)\): (?P<function>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Causes:
    """Parts of the given stretches, each with one cause.

    Attributes
    ----------
    stretch
        Which of the given stretches the part lies in.
    row
        Host row that decided, -1 if none is open or a row of the profiler decided.
    label
        Cause: an index into `FIXED_CAUSES`, or their number plus a code into `Trace.names` for named rows.
    start_ns, end_ns
        The part.
    """

    stretch: I64
    row: I64
    label: I64
    start_ns: I64
    end_ns: I64


def blocking_rows(trace: Trace, ops: DeviceOps) -> npt.NDArray[np.bool_]:
    """Tell which host rows block: blocking calls, copies that outlast their own op, and frames that synchronise.

    A launch that returns after its short kernel ended was slow, or its thread lost the processor: it waited for
    nothing. Only where nearly all do, launches block (``CUDA_LAUNCH_BLOCKING``). ROCm often records no row for the call
    behind a frame that synchronises, so the frame counts.
    """
    host = trace.host
    is_api, is_frame = host.category == HostCategory.API, host.category == HostCategory.PYTHON
    by_name = _of_names(trace, is_api, lambda name: apis.role_of(name) is apis.ApiRole.SYNC or apis.blocks(name))
    frames = _of_names(trace, is_frame, lambda name: _SYNCHRONIZE.search(name) is not None)
    blocked = (is_api & (by_name[host.name] > 0)) | (is_frame & (frames[host.name] > 0))
    finished = np.full(len(host), -1, np.int64)
    launched = ops.launch >= 0
    np.maximum.at(finished, ops.launch[launched], ops.end_ns[launched])
    enqueuing = is_api & (finished >= 0)
    outlasting = enqueuing & (host.end_ns > finished)
    may_block = _of_names(trace, is_api, apis.may_block)[host.name] > 0
    launches, late = int((enqueuing & ~may_block).sum()), int((outlasting & ~may_block).sum())
    if launches < FEWEST_LAUNCHES or late < BLOCKING_LAUNCHES_FRAC * launches:
        outlasting &= may_block
    blocking: npt.NDArray[np.bool_] = blocked | outlasting
    return blocking


def dispatching_rows(trace: Trace) -> npt.NDArray[np.bool_]:
    """Tell which host rows are the framework's: its ops, and the annotations that it writes itself."""
    category = trace.host.category
    annotations = category == HostCategory.ANNOTATION
    own = _of_names(trace, annotations, is_dispatch)[trace.host.name] > 0
    rows: npt.NDArray[np.bool_] = (category == HostCategory.CPU_OP) | (annotations & own)
    return rows


def launching_threads(view: DeviceView, gap: I64) -> I64:
    """Return the thread of the launch that ends each gap; of the last launch before, where no op follows."""
    gaps, ops = view.occupancy.gaps, view.ops
    launched = np.flatnonzero(ops.launch >= 0)
    last = int(view.trace.host.thread[ops.launch[launched].max()]) if len(launched) else view.marks.thread
    after = gaps.after[gap]
    thread = np.full(len(gap), last, np.int64)
    follows = after >= 0
    thread[follows] = view.trace.host.thread[ops.launch[after[follows]]]
    return thread


class CauseCutter:
    """Cuts stretches of host threads by what the thread was doing; prepared once for a rank.

    Parameters
    ----------
    trace
        The trace.
    rank
        The rank whose profiler overhead counts on every thread.
    blocked
        Host rows that block (`blocking_rows`).
    ignored
        Host rows that say nothing (step markers).
    """

    def __init__(self, trace: Trace, rank: int, blocked: npt.NDArray[np.bool_], ignored: npt.NDArray[np.bool_]) -> None:
        self._trace = trace
        self._label = np.append(_row_labels(trace, blocked), 0)  # the last entry answers for -1, no row
        self._usable = ~ignored & (trace.host.end_ns > trace.host.start_ns)
        own = trace.overheads.rank == rank
        self._overhead = trace.overheads.start_ns[own], trace.overheads.end_ns[own]

    def cut(self, thread: I64, start_ns: I64, end_ns: I64) -> Causes:
        """Cut disjoint, sorted stretches, each on one thread (-1: no thread is known)."""
        parts = list(self.chunks(thread, start_ns, end_ns)) or [_nothing()]
        return Causes(*(np.concatenate(columns) for columns in zip(*map(_columns, parts), strict=True)))

    def chunks(self, thread: I64, start_ns: I64, end_ns: I64) -> Iterator[Causes]:
        """Cut as `cut` does, some stretches at a time, so that memory stays small on long traces."""
        for one in np.unique(thread).tolist():
            mine = np.flatnonzero(thread == one)
            rows = np.flatnonzero((self._trace.host.thread == one) & self._usable)
            row_start, row_end = self._trace.host.start_ns[rows], self._trace.host.end_ns
            part = np.searchsorted(row_start, start_ns[mine]) // CHUNK_ROWS + np.arange(len(mine)) // CHUNK
            near, begun = rows[:0], 0
            for some in np.split(mine, np.flatnonzero(np.diff(part)) + 1):
                until = int(np.searchsorted(row_start, end_ns[some[-1]], "left"))
                near, begun = np.concatenate((near, rows[begun:until])), max(begun, until)
                near = near[row_end[near] > start_ns[some[0]]]
                yield self._cut_some(near, some, start_ns, end_ns)

    def _cut_some(self, rows: I64, mine: I64, start_ns: I64, end_ns: I64) -> Causes:
        start, end = start_ns[mine], end_ns[mine]
        rows, row_start, row_end = self._open_rows(rows, int(start[0]), int(end[-1]))
        open_rows = stretches(row_start, row_end)
        edge = intervals.edges(start, end, open_rows.edge)
        where = np.searchsorted(start, edge[:-1], "right") - 1
        inside = (where >= 0) & (edge[:-1] < end[np.maximum(where, 0)])
        at, until = edge[:-1][inside], edge[1:][inside]
        top = np.append(open_rows.row, -1)[np.searchsorted(open_rows.edge, at, "right") - 1]
        row = np.append(rows, -1)[top]
        label = np.where(row >= 0, self._label[row], np.where(top >= 0, PROFILER, UNRECORDED))
        return Causes(mine[where[inside]], row, label, at, until)

    def _open_rows(self, rows: I64, start: int, end: int) -> tuple[I64, I64, I64]:
        """Return a thread's rows and those of the profiler (as -1) that touch a stretch of time, outermost first."""
        host = self._trace.host
        begin, until = self._overhead
        near = (begin < end) & (until > start)
        if not near.any():
            return rows, host.start_ns[rows], host.end_ns[rows]
        row_start = np.concatenate((host.start_ns[rows], begin[near]))
        row_end = np.concatenate((host.end_ns[rows], until[near]))
        rows = np.concatenate((rows, np.full(int(near.sum()), -1, np.int64)))
        order = np.lexsort((-row_end, row_start))
        return rows[order], row_start[order], row_end[order]


def frame_label(name: str) -> str:
    """Return a Python frame as file base name and function, without line and addresses.

    Examples
    --------
    >>> frame_label("vllm/v1/core/sched/scheduler.py(221): schedule")
    'scheduler.py:schedule'
    """
    found = _FRAME.fullmatch(name)
    if found is None:
        return _ADDRESS.sub("", name)
    base = re.split(r"[\\/]", found["file"])[-1]
    return _ADDRESS.sub("", f"{base}:{found['function']}")


def row_label(name: str, category: int) -> str:
    """Return the name of a host row without what changes from run to run."""
    return frame_label(name) if category == HostCategory.PYTHON else dispatch_label(name)


@lru_cache(maxsize=4096)
def _api_label(name: str) -> int:
    return LAUNCH_API if apis.role_of(name) is apis.ApiRole.LAUNCH else OTHER_API


def _row_labels(trace: Trace, blocked: npt.NDArray[np.bool_]) -> I64:
    """Return the cause that each host row stands for."""
    host = trace.host
    is_api = host.category == HostCategory.API
    by_api = _of_names(trace, is_api, _api_label)
    label = host.name.astype(np.int64) + len(FIXED_CAUSES)
    label[is_api] = by_api[host.name[is_api]]
    label[dispatching_rows(trace)] = FRAMEWORK
    label[blocked] = SYNC
    return label


def _of_names(trace: Trace, rows: npt.NDArray[np.bool_], decide: Callable[[str], int]) -> I64:
    """Decide for each name that some of the rows have; a trace has many more names than API calls have."""
    table = np.zeros(len(trace.names), np.int64)
    used = np.flatnonzero(np.bincount(trace.host.name[rows], minlength=len(table)))
    table[used] = [decide(trace.names[code]) for code in used.tolist()]
    return table


def _columns(causes: Causes) -> tuple[I64, I64, I64, I64, I64]:
    return causes.stretch, causes.row, causes.label, causes.start_ns, causes.end_ns


def _nothing() -> Causes:
    none = np.empty(0, np.int64)
    return Causes(none, none, none, none, none)
