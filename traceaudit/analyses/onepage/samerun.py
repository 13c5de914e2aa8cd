"""Whether a server's log and a trace can be of one run."""

from collections.abc import Iterator

import numpy as np

from traceaudit.model import apis
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.results import DeviceAudit, Wall
from traceaudit.model.results.serverlog import ServerReport
from traceaudit.model.wording import brief

__all__ = ["eager_trace", "other_run"]

LIKE_FACTOR = 1.3
"""The step by a log holds scheduling and prefill beside what a recorder times, but not this much more."""

MOSTLY = 0.5
HARDLY = 0.1


def other_run(
    report: ServerReport, logged: Wall | None, recorded: Wall | None, view: DeviceView, audit: DeviceAudit
) -> Iterator[str]:
    """Yield what contradicts that the log is of the run of the trace: the step time, or a replay that the log denies.

    Parameters
    ----------
    report, logged
        The log, and the step time that follows from it, None where none does.
    recorded
        The step as the trace's own recorder timed it, None where it did not.
    view, audit
        The device and its steps.
    """
    if recorded is not None and logged is not None:
        ratio = logged.step_ns / recorded.step_ns
        if not 1 / LIKE_FACTOR <= ratio <= LIKE_FACTOR:
            yield (
                f"the log's step takes {brief(logged.step_ns)}, that of the trace {brief(recorded.step_ns)} by its "
                "own recorder"
            )
    off, samples = _without_graph(report)
    share = _graph_share(view, audit)
    if off == samples and share is not None and share >= MOSTLY:
        yield f"no step of the log's {samples} samples is replayed from a graph, those of the trace are"


def eager_trace(report: ServerReport, view: DeviceView, audit: DeviceAudit) -> str:
    """Say that the log's steps are replayed from a graph and the trace's are not; else empty.

    That alone is no other run: a profiler may keep an engine from replaying, or leave out what a graph launched.
    """
    off, samples = _without_graph(report)
    share = _graph_share(view, audit)
    if off != 0 or share is None or share > HARDLY:
        return ""
    return f"all steps of the log's {samples} samples are replayed from a graph, those of the trace are not"


def _without_graph(report: ServerReport) -> tuple[int | None, int]:
    """Return the samples without graph replay, None if no line tells, and all samples."""
    told = [engine for engine in report.engines if engine.graph_false is not None]
    if len(told) != len(report.engines) or not told:
        return None, 0
    return sum(engine.graph_false or 0 for engine in told), sum(engine.samples for engine in told)


def _graph_share(view: DeviceView, audit: DeviceAudit) -> float | None:
    """Return the share of the used steps' ops that a graph launched; None where no row tells."""
    ops, host = view.ops, view.trace.host
    used = [item.index for item in audit.steps.items if item.used]
    rows = np.flatnonzero(np.isin(view.windows.step, used) & ((ops.graph > 0) | (ops.launch >= 0)))
    if not len(rows):
        return None
    graphs = np.array([apis.is_graph_launch(name) for name in view.trace.names], np.bool_)
    known = ops.launch[rows] >= 0
    by_graph = ops.graph[rows] > 0
    by_graph[known] |= graphs[host.name[ops.launch[rows[known]]]]
    return float(by_graph.mean())
