"""The launches of each kernel by what they are there for: one name may copy the cache here and join two rows there."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from traceaudit.analyses.bandwidth.context import Context
from traceaudit.analyses.bandwidth.judge import NEAR
from traceaudit.analyses.bandwidth.rates import rates_of
from traceaudit.model.bytes.kernelclass import KernelClass, kernel_class
from traceaudit.model.bytes.shares import OpWork
from traceaudit.model.bytes.work import Family
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.hardware import Peaks
from traceaudit.model.kernelgroups import KernelGroup
from traceaudit.model.results.kernels import Ceilings, DeviceKernels, KernelPart, KernelRow, LaunchUse
from traceaudit.model.schema import I64, Kind

__all__ = ["with_parts"]

LIGHT_NS = 20_000
"""A kernel shorter than this mostly starts and ends."""

MOST_BLOCKS_PER_SM = 64
"""Twice what any multiprocessor holds at once: more blocks of a kernel walk through data, known or not."""

_HEAVY = {KernelClass.GEMM, KernelClass.EXPERTS, KernelClass.ATTENTION}


def with_parts(
    view: DeviceView,
    kernels: DeviceKernels,
    groups: Sequence[KernelGroup],
    work: OpWork,
    peaks: Peaks | None,
    ceilings: Ceilings,
    counted: I64,
) -> DeviceKernels:
    """Part the launches of each row by use.

    Parameters
    ----------
    view, kernels, groups
        The device, its rows, and the ops of each.
    work
        What each op moves.
    peaks, ceilings
        What rates are held against.
    counted
        Ops of the used steps, from which the means of a step are made.
    """
    steps = len(np.unique(view.windows.step[counted])) or 1
    device = Context(view, work, peaks, ceilings, steps, 0)
    is_counted = np.zeros(len(view.ops), np.bool_)
    is_counted[counted] = True
    rows = tuple(
        replace(row, parts=tuple(_parts(row, group.ops, device, is_counted)))
        for row, group in zip(kernels.kernels, groups, strict=True)
    )
    return replace(kernels, kernels=rows)


def _parts(row: KernelRow, ops: I64, device: Context, is_counted: np.ndarray) -> Iterator[KernelPart]:
    members: dict[LaunchUse, list[I64]] = {}
    for alike in _alike(ops, device):
        members.setdefault(_use(row, alike, device), []).append(alike)
    duration = device.view.ops.end_ns - device.view.ops.start_ns
    for use, found in members.items():
        part = np.sort(np.concatenate(found))
        own = part[is_counted[part]]
        yield KernelPart(
            use=use,
            per_step_ns=float(duration[own].sum()) / device.steps,
            launches_per_step=len(own) / device.steps,
            rates=rates_of(part, duration[part], device)[0],
            widens=_widens(part, device),
            ops=tuple(part.tolist()),
        )


def _alike(ops: I64, device: Context) -> Iterator[I64]:
    """Yield launches of one piece of work and one grid, which are judged together: single times scatter."""
    of = device.view.ops
    keys = np.stack((device.work.work[ops], of.grid_x[ops], of.grid_y[ops], of.grid_z[ops]))
    _, place, counts = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
    order = np.argsort(place.ravel(), kind="stable")
    yield from np.split(ops[order], np.cumsum(counts)[:-1])


def _use(row: KernelRow, ops: I64, device: Context) -> LaunchUse:
    """Say what launches that are alike are there for."""
    if row.kind != Kind.COMPUTE.name.lower():
        return LaunchUse.WORK
    work = device.work.of(int(ops[0]))
    if work is not None and work.family is Family.CACHE:
        return LaunchUse.COPY
    mean_ns = float((device.view.ops.end_ns[ops] - device.view.ops.start_ns[ops]).mean())
    reads_weights = kernel_class(row.name) in _HEAVY or (work is not None and work.family.streams)
    if reads_weights or mean_ns >= LIGHT_NS or _by_bytes(ops, mean_ns, device):
        return LaunchUse.WORK
    return LaunchUse.LIGHT


def _by_bytes(ops: I64, mean_ns: float, device: Context) -> bool:
    """Tell whether the bytes of launches explain their time, or their grid says that they walk through many."""
    if device.work.known[ops[0]]:
        gbps = device.ceilings.gbps
        return gbps is not None and float(device.work.moved_bytes[ops].mean()) / gbps >= NEAR * mean_ns
    of, info = device.view.ops, device.view.info
    blocks = int(of.grid_x[ops[0]]) * int(of.grid_y[ops[0]]) * int(of.grid_z[ops[0]])
    return info is not None and info.sms is not None and blocks > MOST_BLOCKS_PER_SM * info.sms


def _widens(ops: I64, device: Context) -> bool:
    """Tell whether most of the bytes are written by launches that write a multiple of what they read."""
    widening = np.array([work.widens for work in device.work.works] or [False])
    moved = device.work.moved_bytes[ops]
    return 2 * int(moved[widening[np.maximum(device.work.work[ops], 0)]].sum()) > int(moved.sum())
