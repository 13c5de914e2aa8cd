"""A time line cut by windows. Times in ns.

busy      10..20      30..40                 gaps [0, 10)  [20, 30)  [40, 60)
windows 0     15    25     35   50   60
"""

import numpy as np
from builders import TraceBuilder
from views import view_of

from traceaudit.model.pieces import BETWEEN, LEADING, TRAILING, cut


def pieces_of(*edges):
    """Return the pieces as (start, end, window, gap, position or None if busy)."""
    trace = TraceBuilder()
    trace.orphan().kernel("a", at="0.010", dur="0.010").kernel("b", at="0.030", dur="0.010")
    trace.op("aten::mm", at=0, dur="0.060")
    pieces = cut(view_of(trace).occupancy, np.array(edges, np.int64))
    assert pieces.length_ns.tolist() == (pieces.end_ns - pieces.start_ns).tolist()
    return [
        (start, end, window, gap, position if gap >= 0 else None)
        for start, end, window, gap, position in zip(
            pieces.start_ns.tolist(),
            pieces.end_ns.tolist(),
            pieces.window.tolist(),
            pieces.gap.tolist(),
            pieces.position.tolist(),
            strict=True,
        )
    ]


def test_one_window_over_everything():
    assert pieces_of(0, 60) == [
        (0, 10, 0, 0, LEADING),
        (10, 20, 0, -1, None),
        (20, 30, 0, 1, BETWEEN),
        (30, 40, 0, -1, None),
        (40, 60, 0, 2, TRAILING),
    ]


def test_a_gap_on_a_boundary_trails_one_window_and_leads_the_next():
    assert pieces_of(15, 25, 35) == [
        (15, 20, 0, -1, None),
        (20, 25, 0, 1, TRAILING),
        (25, 30, 1, 1, LEADING),
        (30, 35, 1, -1, None),
    ]


def test_a_gap_that_begins_or_ends_with_the_window():
    assert pieces_of(20, 40) == [(20, 30, 0, 1, LEADING), (30, 40, 0, -1, None)]
    assert pieces_of(10, 30) == [(10, 20, 0, -1, None), (20, 30, 0, 1, TRAILING)]


def test_a_window_without_any_op_is_one_leading_gap():
    assert pieces_of(42, 50, 60) == [(42, 50, 0, 2, LEADING), (50, 60, 1, 2, LEADING)]


def test_empty_windows_hold_nothing():
    assert pieces_of(12, 12, 18) == [(12, 18, 1, -1, None)]
    assert pieces_of(12, 12) == []
