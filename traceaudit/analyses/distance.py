"""From the floor to the measured step: kernels below the speed of light, idle time, and what the trace lacks.

``measured = floor + (kernels - floor) + exposed comm + exposed copy + idle + outside``, in integers. Kernel time is
split into classes by name: an instant belongs to matrix products if one runs, else to attention if that runs, else to
the others. Weights are the floor of the matrix products, caches that of attention.
"""

import numpy as np

from traceaudit.model import intervals
from traceaudit.model.bytes.kernelclass import KernelClass, kernel_class
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.intervals import Intervals
from traceaudit.model.results import DeviceAudit
from traceaudit.model.results.distance import Distance, Part
from traceaudit.model.results.roofline import Roofline
from traceaudit.model.schema import Kind

__all__ = ["distance"]

WEIGHTS, ATTENTION, OTHER = "weight_kernels", "attention_kernels", "other_kernels"
CLASSES = {
    KernelClass.GEMM: WEIGHTS,
    KernelClass.EXPERTS: WEIGHTS,
    KernelClass.ATTENTION: ATTENTION,
}


def distance(view: DeviceView, audit: DeviceAudit, floor: Roofline) -> Distance | None:
    """Decompose what lies between the expected floor and the mean step.

    Parameters
    ----------
    view, audit
        The device and its ledger; the wall is the ledger's.
    floor
        The floor of one step.

    Returns
    -------
    Distance or None
        None where no step is used.

    Notes
    -----
    Where the profiler made the step longer than the wall, idle is the wall minus busy and nothing is outside; else
    idle is as profiled and the residual is outside. Where compute bounds the floor, all of it belongs to the matrix
    products.
    """
    ledger = audit.ledger
    if not ledger.steps:
        return None
    took = _kernel_times(view, audit)
    floors = _floors(floor, took, ledger.steps)
    least = floor.floor.minimum_ns / floor.floor.expected_ns
    leasts = {WEIGHTS: round(least * floors[WEIGHTS]), ATTENTION: floors[ATTENTION]}
    if floor.floor.bound != "memory" or floor.setting.pp > 1:  # other kernels may hold part of it; or other devices
        leasts = {}
    parts = [Part(name, took[name] - floors[name], took[name], floors[name], leasts.get(name, 0)) for name in took]
    accounts = ledger.accounts
    parts += [
        Part(name, time_ns, time_ns, 0)
        for name, time_ns in (("exposed_comm", accounts.exposed_comm), ("exposed_copy", accounts.exposed_copy))
    ]
    measured = ledger.window_ns if ledger.wall_ns is None else ledger.wall_ns
    full_speed = accounts.busy <= measured < ledger.window_ns
    idle = measured - accounts.busy if full_speed else accounts.idle
    outside = measured - accounts.busy - idle
    parts += [Part(name, time_ns, time_ns, 0) for name, time_ns in (("idle", idle), ("outside", outside))]
    return Distance(
        steps=ledger.steps,
        floor_ns=sum(floors.values()),
        measured_ns=measured,
        from_wall=ledger.wall_ns is not None,
        full_speed=full_speed,
        parts=tuple(parts),
    )


def _kernel_times(view: DeviceView, audit: DeviceAudit) -> dict[str, int]:
    """Share the account `compute` of the used windows out to the classes."""
    ops, edge = view.ops, view.windows.edge_ns
    used = np.array([item.used for item in audit.steps.items], np.bool_)
    windows = intervals.union(edge[:-1][used], edge[1:][used])
    names = np.array([CLASSES.get(kernel_class(name), OTHER) for name in view.trace.names], np.object_)
    compute = ops.kind == Kind.COMPUTE
    taken = intervals.EMPTY
    times: dict[str, int] = {}
    for name in (WEIGHTS, ATTENTION, OTHER):
        rows = np.flatnonzero(compute & (names[ops.name] == name))
        running = intervals.intersect(intervals.union(ops.start_ns[rows], ops.end_ns[rows]), windows)
        times[name] = intervals.measure(intervals.subtract(running, taken))
        taken = _joined(taken, running)
    return times


def _joined(a: Intervals, b: Intervals) -> Intervals:
    return intervals.union(np.concatenate((a.start, b.start)), np.concatenate((a.end, b.end)))


def _floors(floor: Roofline, took: dict[str, int], steps: int) -> dict[str, int]:
    """Share the floor out to the classes; one without any kernel leaves its part to the others."""
    total = floor.floor.expected_ns * steps
    cache, weights = floor.kv_bytes, floor.weight_bytes.expected
    memory_bound = floor.floor.bound == "memory" and cache + weights > 0
    attention = total * cache // (cache + weights) if memory_bound else 0
    shares = {WEIGHTS: total - attention, ATTENTION: attention, OTHER: 0}
    for name in (WEIGHTS, ATTENTION):
        if not took[name]:
            shares[OTHER] += shares[name]
            shares[name] = 0
    return shares
