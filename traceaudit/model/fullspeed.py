"""The host at full speed: how much of a plan's host time was the profiler's doing.

A profiled host is slower: every recorded row costs it time, and so does every op that a graph launch enqueues. With the
wall of the unprofiled step known, the cost of a row is fitted so that the re-timed plan takes as long as the wall. How
the profiler spreads its cost is not recorded, so there is a second model, in which all host time shrinks by one factor;
predictions are given for both.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from traceaudit.model.retime import F64, Plan, recorded_lags, retime
from traceaudit.model.schema import I64
from traceaudit.model.timeline import EdgeType, NodeType
from traceaudit.units import NS_PER_US

__all__ = ["Costs", "HostModel", "as_profiled", "by_factor", "by_row"]

PRECISION = 1e-4
"""The fit ends when the re-timed step is this close to the wall, relative."""

ROUNDS = 20

ROW_COST_NS = 2_000.0
"""What recording one row usually costs a host: the eager recordings in `traces/` show 1.6 to 3.7 us."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Durations of a plan's positions and lags of its edges and tails, as `retime` takes them; ns."""

    duration_ns: F64
    lag_ns: F64


@dataclass(frozen=True, slots=True)
class HostModel:
    """A plan at full speed.

    Attributes
    ----------
    name
        What was assumed.
    costs
        Durations and lags under it.
    rest_ns
        Per step, what the wall has beyond the re-timed plan: time that the trace does not contain, or, if negative,
        that no model could remove.
    """

    name: str
    costs: Costs
    rest_ns: float


def as_profiled(plan: Plan, wall_ns: float | None) -> HostModel:
    """Take the plan as recorded; the difference to the wall stays outside."""
    costs = Costs(plan.duration_ns.astype(np.float64), recorded_lags(plan))
    step = _step(plan, costs)
    return HostModel("host as profiled", costs, 0.0 if wall_ns is None else wall_ns - step)


def by_row(plan: Plan, wall_ns: float) -> tuple[HostModel, ...]:
    """Fit one cost for every recorded host row and every op enqueued.

    Where the device bounds the step, a range of costs gives the wall; the usual one is taken if it lies in the range.

    Returns
    -------
    tuple of HostModel
        By the likely cost first, then by the least and by the largest that the wall allows.
    """
    base = as_profiled(plan, wall_ns)
    rows_before, rows_of = _rows(plan)

    def shrunk(cost: float) -> Costs:
        duration = base.costs.duration_ns - cost * rows_of
        lag = base.costs.lag_ns - cost * rows_before
        return Costs(np.maximum(duration, 0), _host_only(plan, base.costs.lag_ns, np.maximum(lag, 0)))

    largest = float(max(base.costs.duration_ns.max(initial=0), base.costs.lag_ns.max(initial=0)))
    least, most = _allowed(plan, wall_ns, shrunk, largest)
    costs = dict.fromkeys((min(max(ROW_COST_NS, least), most), least, most))
    return tuple(_fitted(plan, wall_ns, shrunk(cost), _row_cost(cost)) for cost in costs)


def _row_cost(cost_ns: float) -> str:
    return f"every recorded row cost the host {cost_ns / NS_PER_US:,.1f} µs"


def by_factor(plan: Plan, wall_ns: float) -> HostModel:
    """Fit the least factor by which all time of the host shrank."""
    base = as_profiled(plan, wall_ns)
    is_op = plan.node_type == NodeType.OP

    def shrunk(part: float) -> Costs:
        duration = np.where(is_op, base.costs.duration_ns, (1 - part) * base.costs.duration_ns)
        return Costs(duration, _host_only(plan, base.costs.lag_ns, (1 - part) * base.costs.lag_ns))

    least, _ = _allowed(plan, wall_ns, shrunk, 1.0)
    left = 100 * (1 - least)
    name = f"all host time shrank to {left:.0f} %" if left >= 1 else "the host took no time at all"
    return _fitted(plan, wall_ns, shrunk(least), name)


def _allowed(plan: Plan, wall_ns: float, shrunk: Callable[[float], Costs], largest: float) -> tuple[float, float]:
    """Return the least and the largest amount for which the plan takes the wall, or comes as close to it as it can."""
    closest = max(wall_ns, _step(plan, shrunk(largest)))
    longest, shortest = closest * (1 + PRECISION), closest * (1 - PRECISION)
    least = _first(lambda amount: _step(plan, shrunk(amount)) <= longest, largest)
    most = _first(lambda amount: _step(plan, shrunk(amount)) < shortest, largest)
    return least, max(least, most)


def _first(holds: Callable[[float], bool], largest: float) -> float:
    """Return the least amount from which on a condition holds, or nearly; the largest if it never does."""
    if holds(0.0) or not holds(largest):
        return 0.0 if holds(0.0) else largest
    low, high = 0.0, largest
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _fitted(plan: Plan, wall_ns: float, costs: Costs, name: str) -> HostModel:
    """Shrink the device's own gaps as well if the host alone cannot explain the wall."""
    if _step(plan, costs) > wall_ns * (1 + PRECISION):
        fastest, device = costs, _device_lags(plan)

        def tightened(part: float) -> Costs:
            return Costs(fastest.duration_ns, np.where(device, (1 - part) * fastest.lag_ns, fastest.lag_ns))

        costs = tightened(_allowed(plan, wall_ns, tightened, 1.0)[0])
    return HostModel(name, costs, wall_ns - _step(plan, costs))


def _step(plan: Plan, costs: Costs) -> float:
    return (retime(plan, costs.duration_ns, costs.lag_ns) - plan.start_ns) / plan.steps


def _host_only(plan: Plan, recorded: F64, changed: F64) -> F64:
    """Change lags of the host thread only: edges of program order, tail and head."""
    return np.where(_host_lags(plan), changed, recorded)


def _host_lags(plan: Plan) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    tails = plan.node_type[plan.tail_source] != NodeType.OP
    return np.concatenate((plan.edge_type == EdgeType.HOST, tails, np.ones(len(plan.head), np.bool_)))


def _device_lags(plan: Plan) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    kinds = np.isin(plan.edge_type, [EdgeType.GRAPH, EdgeType.STREAM, EdgeType.EVENT])
    return np.concatenate((kinds, np.zeros(len(plan.tail_source) + len(plan.head), np.bool_)))


def _rows(plan: Plan) -> tuple[I64, I64]:
    """Count the host rows behind each lag, and those (or ops enqueued) of each position."""
    timeline, is_op = plan.timeline, plan.node_type == NodeType.OP
    target = np.repeat(np.arange(len(plan.node)), np.diff(plan.edge_first))
    before = np.zeros(len(plan.edge_lag_ns) + len(plan.tail_source) + len(plan.head), np.int64)
    host = np.flatnonzero(plan.edge_type == EdgeType.HOST)
    begin = timeline.end_ns[plan.node[plan.edge_source[host]]]
    before[host] = _between(plan, plan.node[target[host]], begin, timeline.start_ns[plan.node[target[host]]])
    tails = np.flatnonzero(~is_op[plan.tail_source])
    since = timeline.end_ns[plan.node[plan.tail_source[tails]]]
    before[len(plan.edge_lag_ns) + tails] = _between(
        plan, plan.node[plan.tail_source[tails]], since, since + plan.tail_lag_ns[tails]
    )
    heads = plan.node[plan.head]
    before[len(before) - len(heads) :] = _between(
        plan, heads, np.full(len(heads), plan.start_ns), timeline.start_ns[heads]
    )
    ops = np.bincount(plan.edge_source[plan.edge_type == EdgeType.LAUNCH], minlength=len(plan.node))
    return before, np.where(is_op, 0, np.maximum(ops, 1))


def _between(plan: Plan, call: I64, begin: I64, end: I64) -> I64:
    """Count rows of a call's thread that begin in a stretch of time."""
    host = plan.timeline.view.trace.host
    counts = np.zeros(len(call), np.int64)
    thread = host.thread[plan.timeline.row[call]]
    for one in np.unique(thread):
        starts = host.start_ns[host.thread == one]
        mine = thread == one
        counts[mine] = np.searchsorted(starts, end[mine], "left") - np.searchsorted(starts, begin[mine], "left")
    return np.maximum(counts, 0)
