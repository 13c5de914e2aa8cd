"""Which side bounds a plan's steps: what host and device would each take if the other took no time."""

from dataclasses import dataclass

import numpy as np

from traceaudit.model.plan import Plan
from traceaudit.model.retime import Costs, retime
from traceaudit.model.timeline import EdgeType, NodeType

__all__ = ["BOUND_FRAC", "Sides", "sides_of"]

BOUND_FRAC = 0.9
"""A side that alone takes this share of the step bounds it."""

_DEVICE_EDGES = [EdgeType.STREAM, EdgeType.GRAPH, EdgeType.EVENT]


@dataclass(frozen=True, slots=True)
class Sides:
    """What each side would take alone, in ns a step."""

    host_ns: float
    device_ns: float

    def binding(self, step_ns: float) -> str:
        """Say which side alone takes nearly the step: ``host``, ``device``, ``both`` or ``neither``."""
        found = {"host": self.host_ns, "device": self.device_ns}
        names = [name for name, alone_ns in found.items() if alone_ns >= BOUND_FRAC * step_ns]
        return names[0] if len(names) == 1 else "both" if names else "neither"


def sides_of(plan: Plan, costs: Costs) -> Sides:
    """Re-time a plan once without the device's ops and own gaps, and once without the host's work and calls."""
    is_op = plan.node_type == NodeType.OP
    of_device, of_host = np.isin(plan.edge_type, _DEVICE_EDGES), plan.edge_type == EdgeType.HOST
    overlap = np.minimum(costs.lag_ns, 0.0)
    host = Costs(
        duration_ns=np.where(is_op, 0.0, costs.duration_ns),
        lag_ns=np.where(of_device, overlap, costs.lag_ns),
        delay_ns=np.where(is_op, 0.0, costs.delay_ns),
    )
    device = Costs(
        duration_ns=np.where(is_op, costs.duration_ns, 0.0),
        lag_ns=np.where(of_host, overlap, costs.lag_ns),
        delay_ns=np.where(is_op, costs.delay_ns, 0.0),
    )
    return Sides(retime(plan, host), retime(plan, device))
