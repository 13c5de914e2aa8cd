"""What a host thread was doing at each instant: of the rows open then, the one that began last.

Rows of a thread usually nest, but need not (annotations that overlap, rows of the profiler itself); the rule holds for
any rows. Nearest-greater-end pointers make it vectorised: from the row that began last before an instant, following
pointers skips only rows that have ended.
"""

from typing import NamedTuple

import numpy as np

from traceaudit.model.intervals import edges
from traceaudit.model.schema import I64

__all__ = ["Stretches", "stretches"]


class Stretches(NamedTuple):
    """A thread's time cut where its innermost row changes: ``row[i]`` is open from ``edge[i]`` on, -1 for none."""

    edge: I64
    row: I64


def stretches(start: I64, end: I64) -> Stretches:
    """Cut a thread's time by its innermost row.

    Parameters
    ----------
    start, end
        Rows sorted by start, rows that begin together with the longest first; ns.

    Returns
    -------
    Stretches
        Edges in rising order; before the first and from the last edge on no row is open (the last ``row`` is -1).

    Examples
    --------
    >>> stretches(np.array([0, 2]), np.array([10, 4]))
    Stretches(edge=array([ 0,  2,  4, 10]), row=array([ 0,  1,  0, -1]))
    """
    if not len(start):
        return Stretches(np.empty(0, np.int64), np.empty(0, np.int64))
    edge = edges(start, end)
    row = np.searchsorted(start, edge, "right") - 1
    outer = _nearest_longer(end)
    closed = np.flatnonzero((row >= 0) & (end[np.maximum(row, 0)] <= edge))
    while len(closed):
        row[closed] = outer[row[closed]]
        still = row[closed] >= 0
        closed = closed[still]
        closed = closed[end[row[closed]] <= edge[closed]]
    return Stretches(edge, row.astype(np.int64))


def _nearest_longer(end: I64) -> I64:
    """Return for each row the nearest earlier row that ends later, -1 if none does.

    All rows between a row and its pointer end no later than the row; jumping over a pointer keeps that true even before
    the pointer is final, so all rows can jump at once and distances about double each round.
    """
    pointer = np.arange(-1, len(end) - 1, dtype=np.int64)
    pending = np.arange(len(end))
    while True:
        pending = pending[pointer[pending] >= 0]
        pending = pending[end[pointer[pending]] <= end[pending]]
        if not len(pending):
            return pointer
        pointer[pending] = pointer[pointer[pending]]
