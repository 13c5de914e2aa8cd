"""Where the steps of a trace are: markers in its host rows, or what repeats on the device.

A step's *host interval* runs from its marker's start to the next marker's start, since engines work between markers;
the last one ends with its marker where markers touch, else with the last host row.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from traceaudit.errors import UsageError
from traceaudit.model import apis, cycles, markers
from traceaudit.model.options import StepOptions
from traceaudit.model.results import StepSource
from traceaudit.model.schema import I64, DeviceOps, HostCategory
from traceaudit.model.trace import Trace
from traceaudit.model.wording import counted

__all__ = ["StepMarks", "find_steps", "marker_rows"]

TOUCHING_FRAC = 0.001
"""Markers touch when what lies between them is below this share of a step: the engine has no room to work there."""


@dataclass(frozen=True, slots=True)
class StepMarks:
    """The steps of one device, as host intervals.

    Attributes
    ----------
    source, reason
        Where they come from and why that source was taken.
    names
        Marker's name of each step, None where the source has none.
    start_ns, end_ns
        Host intervals.
    touching
        Whether each marker ends where the next begins.
    thread
        Row in `Threads` of the thread that carries the markers, -1 if there are none.
    """

    source: StepSource
    reason: str
    names: tuple[str | None, ...]
    start_ns: I64
    end_ns: I64
    touching: bool
    thread: int = -1


def find_steps(trace: Trace, ops: DeviceOps, options: StepOptions) -> StepMarks:
    """Find the steps of a device by the first source that applies.

    Parameters
    ----------
    ops
        The device's ops.

    Raises
    ------
    UsageError
        If `options.annotation` finds no row, or the trace has fewer ops than the steps asked for.
    """
    if options.divide_by is not None:
        if options.divide_by > len(trace.ops):
            raise UsageError(
                f"--steps {options.divide_by}: the trace has {counted(len(trace.ops), 'device op')}",
                where=trace.source.path,
                hint="a step has at least one",
            )
        return _whole(trace, ops, f"divided into {options.divide_by} as asked")
    if options.annotation is not None:
        return _asked(trace, ops, options)
    for attempt in _attempts(trace, ops):
        if attempt is not None:
            return attempt
    return _whole(trace, ops, "no step markers, no repeated graph launches, no repeating kernels")


def marker_rows(trace: Trace, options: StepOptions) -> npt.NDArray[np.bool_]:
    """Tell which host rows are step markers of any source; they say nothing about what the host did."""
    known = np.array([markers.source_of(name) is not None for name in trace.names], np.bool_)
    if options.annotation is not None:
        known |= np.array([options.annotation.search(name) is not None for name in trace.names], np.bool_)
    marking: npt.NDArray[np.bool_] = (trace.host.category == HostCategory.ANNOTATION) & known[trace.host.name]
    return marking


def _attempts(trace: Trace, ops: DeviceOps) -> Iterator[StepMarks | None]:
    """Try each source in turn, lazily."""
    rank = _rank_of(ops)
    for source in markers.NAMED_SOURCES:
        rows = _annotations(trace, rank, partial(_marks, source))
        yield _marked(trace, rank, rows, source, counted(len(rows), "annotation")) if len(rows) else None
    yield _graph_launches(trace, ops)
    yield _kernel_cycle(trace, ops)


def _marks(source: StepSource, name: str) -> bool:
    return markers.source_of(name) is source


def _asked(trace: Trace, ops: DeviceOps, options: StepOptions) -> StepMarks:
    pattern = options.annotation
    assert pattern is not None  # noqa: S101  (the caller looked)
    rank = _rank_of(ops)
    for category in (HostCategory.ANNOTATION, HostCategory.CPU_OP, HostCategory.PYTHON):
        rows = _annotations(trace, rank, lambda name: pattern.search(name) is not None, category)
        if len(rows):
            return _marked(
                trace, rank, rows, StepSource.ANNOTATION, f"{counted(len(rows), 'row')} found by {pattern.pattern!r}"
            )
    names = sorted({trace.names[code] for code in trace.host.name[trace.host.category == HostCategory.ANNOTATION]})
    raise UsageError(
        f"no annotation, op or frame matches {pattern.pattern!r}",
        where=trace.source.path,
        hint=f"annotations in the trace: {', '.join(map(repr, names[:8])) or 'none'}",
    )


def _annotations(
    trace: Trace, rank: int, wanted: Callable[[str], bool], category: HostCategory = HostCategory.ANNOTATION
) -> I64:
    """Return the outermost host rows of a rank whose names are wanted."""
    host = trace.host
    candidates = np.flatnonzero((host.category == category) & (trace.threads.rank[host.thread] == rank))
    used = np.unique(host.name[candidates])
    good = used[[wanted(trace.names[code]) for code in used]] if len(used) else used
    rows = candidates[np.isin(host.name[candidates], good)]
    return rows[_outermost(host.start_ns[rows].tolist(), host.end_ns[rows].tolist())]


def _outermost(start: list[int], end: list[int]) -> list[int]:
    """Return the positions of rows that begin when the one taken before has ended."""
    chosen: list[int] = []
    for position, at in enumerate(start):
        if not chosen or at >= end[chosen[-1]]:
            chosen.append(position)
    return chosen


def _marked(trace: Trace, rank: int, rows: I64, source: StepSource, reason: str) -> StepMarks:
    host = trace.host
    start, end = host.start_ns[rows], host.end_ns[rows]
    between = start[1:] - end[:-1]
    touching = source is StepSource.PROFILER_STEP or bool(
        len(rows) > 1 and (between <= TOUCHING_FRAC * np.diff(start)).all()
    )
    names = tuple(trace.names[code] for code in host.name[rows])
    last = int(end[-1]) if touching else _last_host_end(trace, rank)
    return StepMarks(source, reason, names, start, np.append(start[1:], last), touching, int(host.thread[rows[0]]))


def _last_host_end(trace: Trace, rank: int) -> int:
    return int(trace.host.end_ns[trace.threads.rank[trace.host.thread] == rank].max(initial=0))


def _graph_launches(trace: Trace, ops: DeviceOps) -> StepMarks | None:
    """Take repeated graph launches as steps: one each, or as many as make up the repeating group."""
    rank, host = _rank_of(ops), trace.host
    is_graph = np.array([apis.is_graph_launch(name) for name in trace.names], np.bool_)
    rows = np.flatnonzero(
        (host.category == HostCategory.API) & is_graph[host.name] & (trace.threads.rank[host.thread] == rank)
    )
    if len(rows) < 2:  # noqa: PLR2004  (one launch repeats nothing)
        return None
    signature = _graph_signatures(ops, rows)
    group = cycles.period_of(signature) if len(np.unique(signature)) > 1 else 1
    if group is None:
        return None
    first = rows[::group]
    reason = counted(len(rows), "graph launch", "graph launches") + (f" in groups of {group}" if group > 1 else "")
    return _from_starts(trace, rank, host.start_ns[first], StepSource.GRAPH_LAUNCH, reason)


def _graph_signatures(ops: DeviceOps, launches: I64) -> I64:
    """Give launches of one graph the same number: by the graph's id, else by the names of the ops."""
    keys: dict[object, int] = {}
    order = np.argsort(ops.launch, kind="stable")
    first = np.searchsorted(ops.launch[order], launches, "left")
    last = np.searchsorted(ops.launch[order], launches, "right")
    numbers = []
    for begin, end in zip(first, last, strict=True):
        own = order[begin:end]
        graph = int(ops.graph[own[0]]) if len(own) else -1
        key: object = graph if graph >= 0 else np.sort(ops.name[own]).tobytes()
        numbers.append(keys.setdefault(key, len(keys)) if len(own) else -1)
    signature = np.array(numbers, np.int64)
    recorded = signature[signature >= 0]
    if len(recorded):  # a launch whose rows are missing is taken for the most common graph
        signature[signature < 0] = np.bincount(recorded).argmax()
    return signature


def _kernel_cycle(trace: Trace, ops: DeviceOps) -> StepMarks | None:
    """Take the repeating sequence of launched kernels as steps, if there is one."""
    launched = np.flatnonzero(ops.launch >= 0)
    launched = launched[np.argsort(ops.launch[launched], kind="stable")]
    codes = ops.name[launched].astype(np.int64)
    period = cycles.period_of(codes) if len(codes) else None
    if period is None or period < MIN_CYCLE_OPS:
        return None
    start = trace.host.start_ns[ops.launch[launched]]
    pause = np.diff(start, prepend=start[0])
    begins = cycles.anchor_positions(codes, period, pause)
    reason = f"the sequence of kernels repeats every {period} ops"
    return _from_starts(trace, _rank_of(ops), start[begins], StepSource.KERNEL_CYCLE, reason)


MIN_CYCLE_OPS = 4
"""Shorter cycles are loops over one op, not steps of a model."""


def _from_starts(trace: Trace, rank: int, start: I64, source: StepSource, reason: str) -> StepMarks:
    end = np.append(start[1:], _last_host_end(trace, rank))
    return StepMarks(source, reason, (None,) * len(start), start, end, touching=False)


def _whole(trace: Trace, ops: DeviceOps, reason: str) -> StepMarks:
    launches = trace.host.start_ns[ops.launch[ops.launch >= 0]]
    first = int(np.concatenate((ops.start_ns, launches)).min())
    last = int(ops.end_ns.max())
    return StepMarks(
        StepSource.WHOLE_TRACE, reason, (None,), np.array([first], np.int64), np.array([last], np.int64), touching=True
    )


def _rank_of(ops: DeviceOps) -> int:
    return int(ops.rank[0])
