"""What a trace holds: devices with their ops and steps, and which launch calls have device ops."""

from collections.abc import Mapping, Sequence

import numpy as np

from traceaudit.model import apis, intervals
from traceaudit.model.results import DeviceInventory, LaunchCoverage, Totals
from traceaudit.model.schema import I64, DeviceOps, HostCategory, Kind
from traceaudit.model.steps import StepMarks
from traceaudit.model.trace import Trace

__all__ = ["device_inventories", "launch_coverage"]


def device_inventories(
    trace: Trace, steps: Mapping[tuple[int, int], StepMarks], names: Mapping[tuple[int, int], str | None]
) -> tuple[DeviceInventory, ...]:
    """Count what each device holds, in the order of rank and device; only devices with steps are looked at.

    Parameters
    ----------
    steps
        Steps by (rank, device).
    names
        Device names by (rank, device).
    """
    return tuple(
        _device(trace.ops.take((trace.ops.rank == rank) & (trace.ops.device == device)), rank, device, marks, names)
        for (rank, device), marks in sorted(steps.items(), key=lambda item: item[0])
    )


def launch_coverage(trace: Trace, ranks: Sequence[int] | None = None) -> tuple[LaunchCoverage, ...]:
    """Tell for each rank and enqueuing API how many calls have device ops; the last row of a rank: ops without a call.

    An API counts when it is known to enqueue or when any of its calls has an op. Most ops first.

    Parameters
    ----------
    ranks
        Ranks to look at, all that the trace holds if None.
    """
    rows: list[LaunchCoverage] = []
    for rank in trace.ranks if ranks is None else ranks:
        rows += _coverage_of_rank(trace, rank)
    return tuple(rows)


def _device(
    ops: DeviceOps, rank: int, device: int, marks: StepMarks, names: Mapping[tuple[int, int], str | None]
) -> DeviceInventory:
    kinds = np.bincount(ops.kind, minlength=len(Kind))
    return DeviceInventory(
        rank=rank,
        device=device,
        name=names.get((rank, device)),
        streams=len(np.unique(ops.stream)),
        ops_by_kind={kind.name.lower(): int(kinds[kind]) for kind in Kind if kinds[kind]},
        totals=_totals(ops),
        step_source=marks.source,
        step_reason=marks.reason,
        steps=len(marks.start_ns),
    )


def _totals(ops: DeviceOps) -> Totals:
    busy = intervals.union(ops.start_ns, ops.end_ns)
    span_ns = int(ops.end_ns.max() - ops.start_ns.min()) if len(ops) else 0
    return Totals(
        device_ops=len(ops),
        op_time_ns=int((ops.end_ns - ops.start_ns).sum()),
        busy_ns=intervals.measure(busy),
        span_ns=span_ns,
        gaps=max(len(busy.start) - 1, 0),
    )


def _coverage_of_rank(trace: Trace, rank: int) -> list[LaunchCoverage]:
    host, ops = trace.host, trace.ops.take(trace.ops.rank == rank)
    linked = ops.launch >= 0
    api = np.flatnonzero((host.category == HostCategory.API) & (trace.threads.rank[host.thread] == rank))
    op_count, op_time = _by_launch(ops.take(linked), len(host))
    has_ops = op_count > 0
    # A launch row of another category (an RPD or Ascend row) counts as well: what enqueued is what enqueued.
    rows = np.union1d(api, np.flatnonzero(has_ops))
    coverage = []
    for code in np.unique(host.name[rows]):
        own = rows[host.name[rows] == code]
        if apis.role_of(trace.names[code]) is not apis.ApiRole.LAUNCH and not has_ops[own].any():
            continue
        coverage.append(
            LaunchCoverage(
                rank=rank,
                api=trace.names[code],
                calls=len(own),
                calls_with_ops=int(has_ops[own].sum()),
                ops=int(op_count[own].sum()),
                op_time_ns=int(op_time[own].sum()),
            )
        )
    coverage.sort(key=lambda row: (-row.ops, -row.calls, row.api or ""))
    return [*coverage, *_without_launch(ops.take(~linked), rank)]


def _by_launch(ops: DeviceOps, rows: int) -> tuple[I64, I64]:
    """Count the ops of each host row, and sum their time, in integers."""
    count, time_ns = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    np.add.at(count, ops.launch, 1)
    np.add.at(time_ns, ops.launch, ops.end_ns - ops.start_ns)
    return count, time_ns


def _without_launch(ops: DeviceOps, rank: int) -> list[LaunchCoverage]:
    if not len(ops):
        return []
    time_ns = int((ops.end_ns - ops.start_ns).sum())
    return [LaunchCoverage(rank=rank, api=None, calls=0, calls_with_ops=0, ops=len(ops), op_time_ns=time_ns)]
