"""The gaps of a device and the ops on either side of them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceaudit.model import intervals
from traceaudit.model.intervals import Intervals
from traceaudit.model.schema import I64, DeviceOps

__all__ = ["Gaps", "gaps_of"]


@dataclass(frozen=True, slots=True)
class Gaps:
    """Maximal stretches without any op on the device, from the earliest row of the trace to the latest.

    Attributes
    ----------
    start_ns, end_ns
        The gap.
    before, after
        Row (in the device's ops) that ends last before the gap, and that starts at its end; -1 if none.
    """

    start_ns: I64
    end_ns: I64
    before: I64
    after: I64


def gaps_of(ops: DeviceOps, busy: Intervals, start_ns: int, end_ns: int) -> Gaps:
    """Return the gaps of a device with their neighbours.

    Of ops that start together at a gap's end the one whose launch began first is `after`; of those that end together
    at its start, the one that started last is `before`. Ops without duration are nobody's neighbour.
    """
    timed = np.flatnonzero(ops.end_ns > ops.start_ns)
    free = intervals.gaps(busy, start_ns, end_ns)
    starts, ends = ops.start_ns[timed], ops.end_ns[timed]
    launch = ops.launch[timed]
    by_start = np.lexsort((np.where(launch < 0, np.iinfo(np.int64).max, launch), starts))
    by_end = np.lexsort((starts, ends))
    after = _at(timed[by_start], np.searchsorted(starts[by_start], free.end, "left"))
    before = _at(timed[by_end], np.searchsorted(ends[by_end], free.start, "right") - 1)
    return Gaps(free.start, free.end, before, after)


def _at(rows: I64, position: npt.NDArray[np.intp]) -> I64:
    if not len(rows):
        return np.full(len(position), -1, np.int64)
    inside = (position >= 0) & (position < len(rows))
    return np.where(inside, rows[np.clip(position, 0, len(rows) - 1)], -1)
