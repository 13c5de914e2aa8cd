"""Re-timing of a plan: how long its steps would take, had some of it taken less time.

Every node starts when its last predecessor allows it. The plan is gone through round after round, until the time of a
round no longer changes: the steady state.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceaudit.model.plan import Plan
from traceaudit.model.timeline import EdgeType, NodeType

__all__ = ["F64", "Costs", "recorded_costs", "retime"]

F64 = npt.NDArray[np.float64]

MAX_ROUNDS = 12
"""Rounds of a plan until its time no longer changes; four are enough for most."""

STEADY_NS = 0.01
"""Times of a round that differ by no more are the same."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Durations and delays of a plan's positions, and lags of its edges; ns."""

    duration_ns: F64
    lag_ns: F64
    delay_ns: F64


def recorded_costs(plan: Plan) -> Costs:
    """Return durations, lags and delays as recorded."""
    return Costs(
        plan.duration_ns.astype(np.float64), plan.edge_lag_ns.astype(np.float64), plan.delay_ns.astype(np.float64)
    )


def retime(plan: Plan, costs: Costs) -> float:
    """Return what a step would take in the steady state, in ns: the mean over the plan.

    A round takes what the slowest node takes from one round to the next. That never grows from round to round, and ends
    at the largest mean of a cycle of the graph. It is taken over two rounds at once, since what waits for the step
    before the last may alternate.
    """
    schedule = _Schedule(plan, costs)
    ends = [schedule.round(), schedule.round()]
    times: list[float] = []
    while len(times) < 2 or (times[-2] - times[-1] > STEADY_NS and len(times) < MAX_ROUNDS):  # noqa: PLR2004  (a pair)
        ends.append(schedule.round())
        times.append(float((ends[-1] - ends[-3]).max()) / 2)
    return times[-1] / plan.steps


class _Schedule:
    """A plan with costs, visited round by round; the first begins with everything done at 0."""

    def __init__(self, plan: Plan, costs: Costs) -> None:
        self._size = len(plan.node)
        self._duration: list[float] = costs.duration_ns.tolist()
        self._delay: list[float] = costs.delay_ns.tolist()
        self._lag: list[float] = costs.lag_ns.tolist()
        self._waits: list[bool] = (plan.node_type == NodeType.SYNC).tolist()
        self._first: list[int] = plan.edge_first.tolist()
        self._source: list[int] = np.where(plan.edge_back, plan.edge_source + self._size, plan.edge_source).tolist()
        self._kind: list[int] = plan.edge_type.tolist()
        self._end = [0.0] * (2 * self._size)  # of this round, then of the one before

    def round(self) -> F64:
        """Visit the positions in order; return when each is done."""
        end, source, lag, kind = self._end, self._source, self._lag, self._kind
        end[self._size :] = end[: self._size]
        start = [0.0] * self._size
        launch, sync = int(EdgeType.LAUNCH), int(EdgeType.SYNC)
        for i in range(self._size):
            begin = released = 0.0
            for edge in range(self._first[i], self._first[i + 1]):
                ready = end[source[edge]] + lag[edge]
                if kind[edge] == launch:
                    begin = max(begin, ready, start[source[edge]])
                elif kind[edge] == sync:
                    released = max(released, ready)
                else:
                    begin = max(begin, ready)
            if self._waits[i]:
                start[i] = begin
                end[i] = max(begin + self._duration[i], released) + self._delay[i]
            else:
                start[i] = begin + self._delay[i]
                end[i] = start[i] + self._duration[i]
        return np.array(end[: self._size])
