"""Device time by kernel: every launch of a group on a device, most op time first."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from traceaudit.model import intervals
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.grids import ByGrid
from traceaudit.model.kernelgroups import KernelGroup
from traceaudit.model.kinds import RULES
from traceaudit.model.launchshape import LaunchShape, waves
from traceaudit.model.results.kernels import DeviceKernels, KernelFill, KernelRow
from traceaudit.model.schema import I32, I64, Kind
from traceaudit.model.shortnames import core_of
from traceaudit.model.trace import DeviceInfo

__all__ = ["attribute", "chosen_ops"]

P99 = 99


def chosen_ops(view: DeviceView, step: int | None) -> I64:
    """Return the rows of a step's own ops, or of all ops of the device."""
    return np.arange(len(view.ops)) if step is None else np.flatnonzero(view.windows.step == step)


def attribute(
    view: DeviceView,
    groups: Sequence[KernelGroup],
    *,
    step: int | None = None,
    used: Sequence[bool] | None = None,
    wall_ns: int | None = None,
) -> DeviceKernels:
    """Make a row of each group of a device's ops.

    Launches and op time are those of all chosen ops; what is said of a step is the mean of the own ops of the used
    steps, since a trace also holds ops before, between and after them.

    Parameters
    ----------
    view
        The device.
    groups
        Its ops in groups, most op time first.
    step
        The step that the groups are of (index), None for all ops of the trace.
    used
        Whether each step counts; None takes all.
    wall_ns
        Wall of one step.
    """
    rows = chosen_ops(view, step)
    start, end = view.ops.start_ns[rows], view.ops.end_ns[rows]
    total = int((end - start).sum())
    busy = intervals.measure(intervals.union(start, end))
    counted = _counted(view, step, used)
    steps = int(counted.sum())
    info = view.info
    made = [_row(view, group, total, info) for group in groups]
    short = view.short_names
    own = _own(view, counted)
    shares = [
        _shared(view, row, group.ops[own[group.ops]], busy, steps, wall_ns)
        for row, group in zip(made, groups, strict=True)
    ]
    finished = tuple(_with(row, short[row.name], share) for row, share in zip(made, shares, strict=True))
    return DeviceKernels(view.rank, view.device, view.name, total, busy, finished, steps=steps or None)


def _counted(view: DeviceView, step: int | None, used: Sequence[bool] | None) -> npt.NDArray[np.bool_]:
    """Return whether each step counts."""
    count = len(view.windows.edge_ns) - 1
    if step is not None:
        used = [index == step for index in range(count)]
    return np.ones(count, np.bool_) if used is None else np.array(used, np.bool_)


def _own(view: DeviceView, counted: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return whether each op is a counted step's own."""
    own = np.zeros(len(view.ops), np.bool_)
    inside = np.flatnonzero(view.windows.step >= 0)
    own[inside] = counted[view.windows.step[inside]]
    return own


def _shared(
    view: DeviceView, row: KernelRow, own: I64, busy: int, steps: int, wall_ns: int | None
) -> dict[str, float | None]:
    time = int((view.ops.end_ns[own] - view.ops.start_ns[own]).sum())
    return {
        "per_step_ns": time / steps if steps else None,
        "launches_per_step": len(own) / steps if steps else None,
        "share_of_busy_frac": row.op_time_ns / busy if busy else None,
        "share_of_wall_frac": time / (steps * wall_ns) if wall_ns and steps else None,
    }


def _with(row: KernelRow, short: str, shares: dict[str, float | None]) -> KernelRow:
    return replace(row, short_name="" if short == row.name else short, **shares)  # type: ignore[arg-type]


def _row(view: DeviceView, group: KernelGroup, total: int, info: DeviceInfo | None) -> KernelRow:
    ops = view.ops
    own = ops.end_ns[group.ops] - ops.start_ns[group.ops]
    first = int(group.ops[0])
    name = view.trace.names[ops.name[first]]
    grids = ByGrid.of(ops, group.ops)
    foremost = group.ops[grids.members(0)]
    grid = grids.grid[0]
    block = _usual(ops.block_x[foremost], ops.block_y[foremost], ops.block_z[foremost])
    sms = info.sms if info else None
    return KernelRow(
        name=name,
        kind=Kind(int(ops.kind[first])).name.lower(),
        rule=RULES[int(ops.kind_rule[first])].reason,
        launches=len(group.ops),
        op_time_ns=int(own.sum()),
        share_of_op_time_frac=float(own.sum() / total) if total else 0.0,
        mean_ns=float(own.mean()),
        min_ns=int(own.min()),
        p50_ns=float(np.median(own)),
        max_ns=int(own.max()),
        grid=grid,
        block=block,
        blocks_per_sm=None if grid is None or not sms else grid[0] * grid[1] * grid[2] / sms,
        flags=("impossible_overlap",) if ops.clipped_ns[group.ops].any() else (),
        p99_ns=float(np.percentile(own, P99)),
        grids=None if grid is None else len(grids.grid),
        op=group.op,
        site=group.site,
        operands=group.operands,
        strides_tell=group.strides_tell,
        copied_bytes=_copied(ops.copied[group.ops]),
        fill=_fill(name, grid, block, ops.registers[foremost], ops.shared_mem[foremost], info),
    )


def _fill(
    name: str,
    grid: tuple[int, int, int] | None,
    block: tuple[int, int, int] | None,
    registers: I32,
    shared: I32,
    info: DeviceInfo | None,
) -> KernelFill:
    regs, mem = _most(registers), _most(shared)
    capability = None
    if info is not None and info.compute_major is not None and info.compute_minor is not None:
        capability = (info.compute_major, info.compute_minor)
    count = waves(LaunchShape(grid, block, regs, mem), capability, info.sms if info else None)
    whole = None if count is None else max(-(-count // 1), 1.0)
    return KernelFill(
        registers=regs,
        shared_mem_bytes=mem,
        waves=count,
        idle_slots_frac=None if count is None or whole is None else 1 - count / whole,
        core=core_of(name),
    )


def _copied(sizes: I64) -> int | None:
    """Return the size of each copy, None where they differ or none is recorded."""
    size = int(sizes[0])
    return size if size >= 0 and (sizes == size).all() else None


def _most(values: I32) -> int | None:
    """Return the most frequent value, None if it is not recorded."""
    found, counts = np.unique(values, return_counts=True)
    best = int(found[counts.argmax()])
    return None if best < 0 else best


def _usual(x: I32, y: I32, z: I32) -> tuple[int, int, int] | None:
    """Return the most frequent triple, None if it is not recorded."""
    triples, counts = np.unique(np.stack((x, y, z), axis=1), axis=0, return_counts=True)
    best = triples[counts.argmax()]
    return None if best.min() < 0 else (int(best[0]), int(best[1]), int(best[2]))
