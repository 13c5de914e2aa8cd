"""The device's time line cut by windows: the smallest parts that every ledger is a sum of."""

from dataclasses import dataclass

import numpy as np

from traceaudit.model import intervals
from traceaudit.model.occupancy import Occupancy
from traceaudit.model.schema import I8, I64

__all__ = ["Pieces", "cut"]

LEADING, BETWEEN, TRAILING = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Pieces:
    """Parts of the time line that lie in one window, have one owner and belong to at most one gap.

    Attributes
    ----------
    start_ns, end_ns
        The part.
    owner
        `Owner` of the device.
    gap
        Row in the device's gaps, -1 if busy.
    window
        Window it lies in.
    position
        For idle parts whether the gap leads the window (0), lies between ops (1) or trails it (2); a window without
        any op is one leading gap.
    """

    start_ns: I64
    end_ns: I64
    owner: I8
    gap: I64
    window: I64
    position: I8

    @property
    def length_ns(self) -> I64:
        """Length of each part."""
        return self.end_ns - self.start_ns


def cut(occupancy: Occupancy, edge_ns: I64) -> Pieces:
    """Cut a time line by touching windows.

    Parameters
    ----------
    edge_ns
        Window boundaries in rising order; window ``i`` is ``[edge_ns[i], edge_ns[i + 1])``.
    """
    inner = occupancy.edge_ns[(occupancy.edge_ns > edge_ns[0]) & (occupancy.edge_ns < edge_ns[-1])]
    edge = intervals.edges(inner, edge_ns)
    start, end = edge[:-1], edge[1:]
    piece = np.searchsorted(occupancy.edge_ns, start, "right") - 1
    gap = occupancy.gap[piece]
    window = np.searchsorted(edge_ns, start, "right") - 1
    return Pieces(start, end, occupancy.owner[piece], gap, window, _positions(occupancy, edge_ns, gap, window))


def _positions(occupancy: Occupancy, edge_ns: I64, gap: I64, window: I64) -> I8:
    position = np.full(len(gap), BETWEEN, np.int8)
    idle = np.flatnonzero(gap >= 0)
    gaps = occupancy.gaps
    position[idle[gaps.end_ns[gap[idle]] >= edge_ns[window[idle] + 1]]] = TRAILING
    position[idle[gaps.start_ns[gap[idle]] <= edge_ns[window[idle]]]] = LEADING
    return position
