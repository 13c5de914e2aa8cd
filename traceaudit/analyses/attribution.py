"""Device time by kernel: every launch of a name on a device, most op time first."""

import numpy as np

from traceaudit.model import intervals
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.kinds import RULES
from traceaudit.model.results import DeviceKernels, KernelRow
from traceaudit.model.schema import I32, I64, DeviceOps, Kind

__all__ = ["attribute"]


def attribute(view: DeviceView, *, step: int | None = None) -> DeviceKernels:
    """Group a device's ops by name and kind.

    Parameters
    ----------
    view
        The device.
    step
        Only the own ops of this step (index), None for all ops of the trace.
    """
    ops = view.ops if step is None else view.ops.take(np.flatnonzero(view.windows.step == step))
    duration = ops.end_ns - ops.start_ns
    total = int(duration.sum())
    sms = _multiprocessors(view)
    rows = [_row(view, ops, duration, group, total, sms) for group in _groups(ops)]
    rows.sort(key=lambda row: (-row.op_time_ns, row.name))
    busy = intervals.measure(intervals.union(ops.start_ns, ops.end_ns))
    return DeviceKernels(view.rank, view.device, view.name, total, busy, tuple(rows))


def _groups(ops: DeviceOps) -> list[I64]:
    """Return the rows of each (name, kind) in order of start."""
    if not len(ops):
        return []
    key = ops.name.astype(np.int64) * len(Kind) + ops.kind
    order = np.argsort(key, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key[order])) + 1)


def _row(view: DeviceView, ops: DeviceOps, duration: I64, group: I64, total: int, sms: int | None) -> KernelRow:
    own = duration[group]
    first = int(group[0])
    grid = _usual(ops.grid_x[group], ops.grid_y[group], ops.grid_z[group])
    return KernelRow(
        name=view.trace.names[ops.name[first]],
        kind=Kind(int(ops.kind[first])).name.lower(),
        rule=RULES[int(ops.kind_rule[first])].reason,
        launches=len(group),
        op_time_ns=int(own.sum()),
        share_of_op_time_frac=float(own.sum() / total) if total else 0.0,
        mean_ns=float(own.mean()),
        min_ns=int(own.min()),
        p50_ns=float(np.median(own)),
        max_ns=int(own.max()),
        grid=grid,
        block=_usual(ops.block_x[group], ops.block_y[group], ops.block_z[group]),
        blocks_per_sm=None if grid is None or not sms else grid[0] * grid[1] * grid[2] / sms,
        flags=("impossible_overlap",) if ops.clipped_ns[group].any() else (),
    )


def _usual(x: I32, y: I32, z: I32) -> tuple[int, int, int] | None:
    """Return the most frequent triple, None if it is not recorded."""
    triples, counts = np.unique(np.stack((x, y, z), axis=1), axis=0, return_counts=True)
    best = triples[counts.argmax()]
    return None if best.min() < 0 else (int(best[0]), int(best[1]), int(best[2]))


def _multiprocessors(view: DeviceView) -> int | None:
    for info in view.trace.devices:
        if (info.rank, info.device) == (view.rank, view.device):
            return info.sms
    counts = {info.sms for info in view.trace.devices}
    return counts.pop() if len(counts) == 1 else None
