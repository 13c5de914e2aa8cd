"""The host at full speed: how much of a plan's host time was the profiler's doing.

A profiled host is slower: every recorded row costs it time, and so does every op that a graph launch enqueues. With the
wall of the unprofiled step known, the cost of a row is fitted so that the re-timed plan takes as long as the wall. How
the profiler spreads its cost is not recorded, so there is a second model, in which all host time shrinks by one factor;
predictions are given for both.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from traceaudit.model import intervals
from traceaudit.model.intervals import Intervals
from traceaudit.model.plan import Plan
from traceaudit.model.retime import F64, Costs, recorded_costs, retime
from traceaudit.model.schema import I64
from traceaudit.model.timeline import EdgeType, NodeType
from traceaudit.units import NS_PER_US

__all__ = ["HostModel", "HostTime", "as_profiled", "assumed", "by_factor", "by_row", "host_time"]

PRECISION = 1e-4
"""The fit ends when the re-timed step is this close to the wall, relative."""

CLOSE_FRAC = PRECISION / 10
"""How close to the end of that range an amount is looked for, relative to the step."""

SAME_FRAC = 0.01
"""Amounts that differ by no more than this share are the same."""

ROUNDS = 20
"""Re-timings of one fit at most; about six are enough."""

ROW_COST = "every recorded row cost the host"
TOO_MUCH = ", more than recording can cost, so that some of it has another cause"

ROW_COST_NS = 2_000.0
"""What recording one row usually costs a host: the eager recordings in `traces/` show 1.6 to 3.7 us."""

MOST_ROW_COST_NS = 20_000.0
"""What recording one row can cost: several times what is seen where rows are many and explain the whole dilation."""


AS_PROFILED = "the host was no slower than without the profiler"


@dataclass(frozen=True, slots=True)
class HostTime:
    """The host's part of a plan, or what of it lies in a set of intervals.

    Attributes
    ----------
    lag_ns, lag_rows
        Time of each edge of a host thread, and rows that begin in it; 0 for other edges.
    call_ns, call_rows
        Time of each call, and ops it enqueued (1 if none); 0 for ops. A part of a call has that part of its ops.
    """

    lag_ns: F64
    lag_rows: F64
    call_ns: F64
    call_rows: F64


@dataclass(frozen=True, slots=True)
class HostModel:
    """A plan at full speed.

    Attributes
    ----------
    name
        What was assumed.
    factor, row_cost_ns
        The host takes `factor` of its profiled time, less `row_cost_ns` a row.
    costs
        Durations, lags and delays under it.
    rest_ns
        Per step, what the baseline (the wall, else the profiled window) has beyond the re-timed plan: time that the
        trace does not contain or that its dependencies do not explain, or, if negative, that no model could remove.
    """

    name: str
    factor: float
    row_cost_ns: float
    costs: Costs
    rest_ns: float

    @property
    def as_recorded(self) -> bool:
        """Whether the host takes the time that the trace shows."""
        return self.factor == 1 and not self.row_cost_ns

    def at_full_speed(self, time_ns: F64, rows: F64) -> F64:
        """Return what profiled host time with so many rows takes without the profiler; never below 0."""
        return np.maximum(self.factor * time_ns - self.row_cost_ns * rows, 0)


def as_profiled(plan: Plan, baseline_ns: float) -> HostModel:
    """Take the plan as recorded; the difference to the baseline stays outside."""
    costs = recorded_costs(plan)
    return HostModel(AS_PROFILED, 1.0, 0.0, costs, baseline_ns - retime(plan, costs))


def by_row(plan: Plan, wall_ns: float) -> tuple[HostModel, ...]:
    """Fit one cost for every recorded host row and every op enqueued.

    Where the device bounds the step, a range of costs gives the wall; the usual one is taken if it lies in the range.
    The range ends at the most that recording a row can cost, unless the wall needs more.

    Returns
    -------
    tuple of HostModel
        By the likely cost first, then by the least and by the largest that the wall allows.
    """
    host = host_time(plan)

    def shrunk(cost: float) -> HostModel:
        return _shrunk(plan, host, _row_cost(cost), 1.0, cost)

    largest = float(max(host.call_ns.max(initial=0), host.lag_ns.max(initial=0)))
    least, most = _allowed(plan, wall_ns, shrunk, largest)
    most = min(most, max(least, MOST_ROW_COST_NS))
    costs = dict.fromkeys((min(max(ROW_COST_NS, least), most), least, most))
    return tuple(_fitted(plan, wall_ns, shrunk(cost)) for cost in costs)


def _row_cost(cost_ns: float) -> str:
    if not cost_ns:
        return AS_PROFILED
    return f"{ROW_COST} {_cost_text(cost_ns)}"


def _cost_text(cost_ns: float) -> str:
    return f"{cost_ns / NS_PER_US:,.1f} µs{TOO_MUCH if cost_ns > MOST_ROW_COST_NS else ''}"


def assumed(models: Sequence[HostModel]) -> str:
    """Say what models assume, each thing once: costs of a row together, by the likeliest first."""
    costs = list(dict.fromkeys(_cost_text(model.row_cost_ns) for model in models if model.row_cost_ns))
    others = list(dict.fromkeys(model.name for model in models if not model.row_cost_ns))
    return "; or ".join([f"{ROW_COST} {' or '.join(costs)}", *others] if costs else others)


def by_factor(plan: Plan, wall_ns: float) -> HostModel:
    """Fit the least factor by which all time of the host shrank."""
    host = host_time(plan)

    def shrunk(part: float) -> HostModel:
        left = 100 * (1 - part)
        name = f"all host time shrank to {left:.0f} %" if left >= 1 else "the host took no time at all"
        return _shrunk(plan, host, name if part else AS_PROFILED, 1 - part, 0.0)

    least, _ = _allowed(plan, wall_ns, shrunk, 1.0)
    return _fitted(plan, wall_ns, shrunk(least))


def host_time(plan: Plan, within: Intervals | None = None) -> HostTime:
    """Return the host's part of a plan; with intervals, what of it lies in them."""
    stretches, timeline, is_op = plan.stretches, plan.timeline, plan.node_type == NodeType.OP
    start, end = timeline.start_ns[plan.node], timeline.end_ns[plan.node]
    length, share = stretches.until_ns - stretches.since_ns, np.ones(len(plan.node))
    if within is not None:
        length = intervals.covered(within, stretches.since_ns, stretches.until_ns)
        share = intervals.covered(within, start, end) / np.maximum(end - start, 1)
    ops = np.bincount(plan.edge_source[plan.edge_type == EdgeType.LAUNCH], minlength=len(plan.node))
    return HostTime(
        lag_ns=_by_edge(plan, length),
        lag_rows=_by_edge(plan, _rows(plan, within)),
        call_ns=np.where(is_op, 0.0, share * plan.duration_ns),
        call_rows=np.where(is_op, 0.0, share * np.maximum(ops, 1)),
    )


def _by_edge(plan: Plan, amount: I64) -> F64:
    """Sum what the stretches of each edge have, less the waits in them."""
    return np.bincount(plan.stretches.edge, plan.stretches.sign * amount, minlength=len(plan.edge_lag_ns)).astype(
        np.float64
    )


def _rows(plan: Plan, within: Intervals | None) -> I64:
    """Count the rows of its thread that begin in each stretch, and in the intervals."""
    host, stretches = plan.timeline.view.trace.host, plan.stretches
    counts = np.zeros(len(stretches.edge), np.int64)
    for thread in np.unique(stretches.thread).tolist():
        starts = host.start_ns[host.thread == thread]
        if within is not None:
            starts = starts[intervals.contains(within, starts)]
        mine = stretches.thread == thread
        first = np.searchsorted(starts, stretches.since_ns[mine], "left")
        counts[mine] = np.searchsorted(starts, stretches.until_ns[mine], "left") - first
    return counts


def _shrunk(plan: Plan, host: HostTime, name: str, factor: float, row_cost_ns: float) -> HostModel:
    """Return a plan whose host takes a share of its time, less a cost for every row; the rest is not fitted."""
    base = recorded_costs(plan)
    model = HostModel(name, factor, row_cost_ns, base, 0.0)
    is_op, of_host = plan.node_type == NodeType.OP, plan.edge_type == EdgeType.HOST
    lag = np.minimum(base.lag_ns, model.at_full_speed(np.maximum(base.lag_ns, 0), host.lag_rows))
    duration = model.at_full_speed(base.duration_ns, host.call_rows)
    costs = Costs(np.where(is_op, base.duration_ns, duration), np.where(of_host, lag, base.lag_ns), base.delay_ns)
    return replace(model, costs=costs)


def _allowed(plan: Plan, wall_ns: float, shrunk: Callable[[float], HostModel], largest: float) -> tuple[float, float]:
    """Return the least and the largest amount for which the plan takes the wall, or comes as close to it as it can."""

    @cache
    def step(amount: float) -> float:
        return retime(plan, shrunk(amount).costs)

    closest = max(wall_ns, step(largest))
    longest, shortest = closest * (1 + PRECISION / 2), closest * (1 - PRECISION / 2)
    least = _first(step, longest, 0.0, largest)
    beyond = min(least + max(least, largest * SAME_FRAC) * SAME_FRAC, largest)
    if step(beyond) < shortest:
        return least, least
    return least, _first(step, shortest, beyond, largest)


def _first(step: Callable[[float], float], goal_ns: float, low: float, high: float) -> float:
    """Return the least amount for which a step takes no longer than a goal, nearly; the largest if it never does.

    The step falls with the amount, less and less (each cycle of the graph loses time until it has none), so lines
    through the last two amounts come close within a few rounds.
    """
    above, below = step(low) - goal_ns, step(high) - goal_ns
    if above <= 0 or below >= 0:
        return low if above <= 0 else high
    amount, excess = low, above
    guess = low + (high - low) * SAME_FRAC
    for _ in range(ROUNDS):
        before, earlier, amount = amount, excess, guess if low < guess < high else (low + high) / 2
        excess = step(amount) - goal_ns
        if abs(excess) <= CLOSE_FRAC * goal_ns:
            return amount
        low, high = (amount, high) if excess > 0 else (low, amount)
        guess = amount - excess * (amount - before) / (excess - earlier) if excess != earlier else low
    return high


def _fitted(plan: Plan, wall_ns: float, model: HostModel) -> HostModel:
    """Shrink the device's own gaps as well if the host alone cannot explain the wall."""
    retimed = retime(plan, model.costs)
    if retimed > wall_ns * (1 + PRECISION):
        costs, device = model.costs, _device_lags(plan)

        def tightened(part: float) -> HostModel:
            return replace(
                model, costs=replace(costs, lag_ns=np.where(device, (1 - part) * costs.lag_ns, costs.lag_ns))
            )

        model = tightened(_allowed(plan, wall_ns, tightened, 1.0)[0])
        retimed = retime(plan, model.costs)
    return replace(model, rest_ns=wall_ns - retimed)


def _device_lags(plan: Plan) -> npt.NDArray[np.bool_]:
    return np.isin(plan.edge_type, [EdgeType.GRAPH, EdgeType.STREAM, EdgeType.EVENT])
