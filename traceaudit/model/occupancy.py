"""The time line of one device: at every instant one account owns it.

`Occupancy` cuts the time from the earliest to the latest row into pieces that are whole in every respect the ledger
cares for: who owns the device, and, if nobody does, which gap the instant lies in, which op ends that gap, and whether
that op's launch has begun, runs, or has returned. Windows are cut from these pieces later, so every ledger is a sum of
pieces and conserves time by construction.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from traceaudit.model import intervals
from traceaudit.model.gaps import Gaps, gaps_of
from traceaudit.model.intervals import Intervals
from traceaudit.model.pending import PendingOps, find_pending
from traceaudit.model.schema import I8, I64, DeviceOps, Kind
from traceaudit.model.trace import Trace

__all__ = ["Occupancy", "Owner", "occupancy_of"]


class Owner(IntEnum):
    """Who owns an instant of the device; the parts of `idle_latency` apart."""

    COMPUTE = 0
    EXPOSED_COMM = 1
    EXPOSED_COPY = 2
    IDLE_GRAPH = 3
    LAUNCH_CALL = 4
    DELIVERY = 5
    TURNAROUND = 6
    IDLE_HOST = 7
    IDLE_UNKNOWN = 8


@dataclass(frozen=True, slots=True)
class Occupancy:
    """A device's time line in pieces ``[edge_ns[i], edge_ns[i + 1])``.

    Attributes
    ----------
    ops
        The device's ops, in the order of the trace.
    busy, compute
        Canonical unions of all ops and of the compute kernels.
    edge_ns
        Piece boundaries, one more than pieces.
    owner
        `Owner` of each piece.
    gap
        Row in `gaps` of each idle piece, -1 for busy ones.
    gaps
        The gaps of the device.
    pending
        Ops that started long after their launch on an idle device; their gaps are `IDLE_UNKNOWN`.
    """

    ops: DeviceOps
    busy: Intervals
    compute: Intervals
    edge_ns: I64
    owner: I8
    gap: I64
    gaps: Gaps
    pending: PendingOps


def occupancy_of(trace: Trace, ops: DeviceOps, start_ns: int, end_ns: int) -> Occupancy:
    """Build the time line of a device from its ops, over ``[start_ns, end_ns)``, which must hold all of them."""
    busy = intervals.union(ops.start_ns, ops.end_ns)
    compute = _union_of(ops, ops.kind == Kind.COMPUTE)
    comm = _union_of(ops, ops.kind == Kind.COMM)
    gaps = gaps_of(ops, busy, start_ns, end_ns)
    launch_start, launch_end = _launch_times(trace, ops, gaps.after)
    pending = find_pending(trace, ops, gaps)
    edge = _edges(start_ns, end_ns, busy, compute, comm, gaps, launch_start, launch_end)
    owner, gap = _owners(edge[:-1], (compute, comm, busy), gaps, launch_start, launch_end)
    unknown = (gaps.after >= 0) & ((launch_start < 0) | np.isin(gaps.after, pending.op))
    owner[_in_gaps(gap, unknown)] = Owner.IDLE_UNKNOWN
    returned = (owner == Owner.DELIVERY) | (owner == Owner.TURNAROUND)
    owner[_in_gaps(gap, _inside_graph(ops, gaps)) & returned] = Owner.IDLE_GRAPH
    return Occupancy(ops, busy, compute, edge, owner, gap, gaps, pending)


def _union_of(ops: DeviceOps, mask: npt.NDArray[np.bool_]) -> Intervals:
    return intervals.union(ops.start_ns[mask], ops.end_ns[mask])


def _launch_times(trace: Trace, ops: DeviceOps, rows: I64) -> tuple[I64, I64]:
    """Return start and end of the launches of device ops, -1 where there is no op or no launch."""
    launch = np.where(rows >= 0, ops.launch[rows], -1) if len(ops) else np.full(len(rows), -1, np.int64)
    if not len(trace.host):
        return np.full(len(rows), -1, np.int64), np.full(len(rows), -1, np.int64)
    known = launch >= 0
    return np.where(known, trace.host.start_ns[launch], -1), np.where(known, trace.host.end_ns[launch], -1)


def _edges(
    start_ns: int, end_ns: int, busy: Intervals, compute: Intervals, comm: Intervals, gaps: Gaps, *inner: I64
) -> I64:
    """Collect every instant at which an owner can change; launch times count inside their own gap only."""
    inside = [times[(times > gaps.start_ns) & (times < gaps.end_ns)] for times in inner]
    return intervals.edges(np.array([start_ns, end_ns], np.int64), *busy, *compute, *comm, *inside)


def _owners(
    at: I64, sets: tuple[Intervals, Intervals, Intervals], gaps: Gaps, launch_start: I64, launch_end: I64
) -> tuple[I8, I64]:
    """Give each piece (by its first instant) its owner, graphs and doubt aside, and its gap."""
    compute, comm, busy = (intervals.contains(part, at) for part in sets)
    owner = np.full(len(at), Owner.IDLE_HOST, np.int8)
    gap = np.where(busy, -1, np.searchsorted(gaps.start_ns, at, "right") - 1).astype(np.int64)
    idle = np.flatnonzero(gap >= 0)
    own = gap[idle]
    begun = (launch_start[own] >= 0) & (at[idle] >= launch_start[own])
    returned = begun & (at[idle] >= launch_end[own])
    owner[idle[begun]] = Owner.LAUNCH_CALL
    owner[idle[returned]] = Owner.TURNAROUND
    owner[idle[returned & (launch_end[own] > gaps.start_ns[own])]] = Owner.DELIVERY
    owner[busy] = Owner.EXPOSED_COPY
    owner[comm] = Owner.EXPOSED_COMM
    owner[compute] = Owner.COMPUTE
    return owner, gap


def _in_gaps(gap: I64, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Tell which pieces lie in one of the chosen gaps."""
    return np.append(chosen, np.False_)[gap]  # the last entry answers for -1, a piece that lies in no gap


def _inside_graph(ops: DeviceOps, gaps: Gaps) -> npt.NDArray[np.bool_]:
    """Tell which gaps lie between two ops of one launch, which is a graph's."""
    both = (gaps.before >= 0) & (gaps.after >= 0)
    if not both.any():
        return both
    before, after = ops.launch[gaps.before], ops.launch[gaps.after]
    inside: npt.NDArray[np.bool_] = both & (before >= 0) & (before == after)
    return inside
