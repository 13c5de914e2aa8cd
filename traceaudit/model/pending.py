"""Ops that were queued long before they show on an idle device: rows of the trace were cut away.

A launched op on an idle device starts within microseconds. When one starts much later, and nothing recorded held it
back, the device was not idle: what it did is missing from the trace.
"""

from dataclasses import dataclass

import numpy as np

from traceaudit.model import intervals
from traceaudit.model.gaps import Gaps
from traceaudit.model.schema import I64, DeviceOps
from traceaudit.model.trace import Trace

__all__ = ["PENDING_FACTOR", "PENDING_FLOOR_NS", "PendingOps", "find_pending"]

PENDING_FLOOR_NS = 250_000
"""Waits up to this are ordinary: first launches, clock changes, a busy driver."""

PENDING_FACTOR = 10
"""A wait must exceed this many times the median of the other ops' waits, so that slow systems trip nothing."""


@dataclass(frozen=True, slots=True)
class PendingOps:
    """Pending ops of one device: row in its ops, and how long each waited without recorded reason, in ns."""

    op: I64
    wait_ns: I64


def find_pending(trace: Trace, ops: DeviceOps, gaps: Gaps) -> PendingOps:
    """Find the pending ops among those that end a gap.

    The wait runs from the later of the end of the op's launch and the end of the last earlier op to the op's start;
    the part covered by recorded stream waits or profiler overhead does not count.
    """
    launched = gaps.after >= 0
    launched[launched] = ops.launch[gaps.after[launched]] >= 0
    if not launched.any():
        return PendingOps(np.empty(0, np.int64), np.empty(0, np.int64))
    rows = gaps.after[launched]
    launch = ops.launch[rows]
    since = np.where(gaps.before >= 0, gaps.start_ns, np.iinfo(np.int64).min)[launched]
    begin, end = np.maximum(trace.host.end_ns[launch], since), ops.start_ns[rows]
    wait = np.maximum(end - begin, 0) - intervals.covered(_excuses(trace, ops), begin, end)
    late = wait > np.maximum(PENDING_FLOOR_NS, PENDING_FACTOR * _median_of_others(wait))
    return PendingOps(rows[late], wait[late])


def _median_of_others(wait: I64) -> I64:
    """Return for each value the (lower) median of all the others; 0 where there are none."""
    count = len(wait)
    if count < 2:  # noqa: PLR2004  (one value has no others)
        return np.zeros(count, np.int64)
    order = np.argsort(wait, kind="stable")
    ranked = wait[order]
    middle = (count - 2) // 2
    result = np.empty(count, np.int64)
    result[order] = np.where(np.arange(count) <= middle, ranked[middle + 1], ranked[middle])
    return result


def _excuses(trace: Trace, ops: DeviceOps) -> intervals.Intervals:
    """Return when a recorded stream wait on this device, or the profiler itself, could hold ops back."""
    rank, device = int(ops.rank[0]), int(ops.device[0])
    syncs, overheads = trace.syncs, trace.overheads
    names = np.array(["wait event" in trace.names[code].lower() for code in syncs.name], np.bool_)
    waits = names & (syncs.rank == rank) & ((syncs.device == device) | (syncs.device < 0))
    own = overheads.rank == rank
    return intervals.union(
        np.concatenate((syncs.start_ns[waits], overheads.start_ns[own])),
        np.concatenate((syncs.end_ns[waits], overheads.end_ns[own])),
    )
