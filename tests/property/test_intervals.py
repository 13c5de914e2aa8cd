"""Interval algebra against an oracle of single nanoseconds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceaudit.model import intervals
from traceaudit.model.intervals import Intervals

SPAN = 40
PAIRS = st.lists(st.tuples(st.integers(0, SPAN), st.integers(0, SPAN)), max_size=8)


def bitmap(pairs: list[tuple[int, int]]) -> set[int]:
    """Return every nanosecond that any of the intervals holds."""
    return {t for start, end in pairs for t in range(start, end)}


def canonical(pairs: list[tuple[int, int]]) -> Intervals:
    start = np.array([a for a, _ in pairs], np.int64)
    return intervals.union(start, np.array([b for _, b in pairs], np.int64))


def held(result: Intervals) -> set[int]:
    """Return the nanoseconds of a set, after checking that it is canonical."""
    assert (result.end > result.start).all()
    assert (result.start[1:] > result.end[:-1]).all(), "members must neither overlap nor touch"
    return bitmap(list(zip(result.start.tolist(), result.end.tolist(), strict=True)))


@given(PAIRS)
def test_union_holds_what_any_member_holds(pairs: list[tuple[int, int]]) -> None:
    result = canonical(pairs)
    assert held(result) == bitmap(pairs)
    assert intervals.measure(result) == len(bitmap(pairs))


@given(PAIRS, PAIRS)
def test_intersect_and_subtract(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    assert held(intervals.intersect(canonical(a), canonical(b))) == bitmap(a) & bitmap(b)
    assert held(intervals.subtract(canonical(a), canonical(b))) == bitmap(a) - bitmap(b)


@given(PAIRS, st.integers(0, SPAN), st.integers(0, SPAN))
def test_clip_and_gaps_share_a_window(pairs: list[tuple[int, int]], start: int, end: int) -> None:
    window = set(range(start, end))
    assert held(intervals.clip(canonical(pairs), start, end)) == bitmap(pairs) & window
    assert held(intervals.gaps(canonical(pairs), start, end)) == window - bitmap(pairs)


@given(PAIRS, st.lists(st.integers(-2, SPAN + 2), min_size=1, max_size=6))
def test_contains(pairs: list[tuple[int, int]], at: list[int]) -> None:
    found = intervals.contains(canonical(pairs), np.array(at, np.int64))
    assert found.tolist() == [t in bitmap(pairs) for t in at]


@given(PAIRS, PAIRS.filter(bool))
def test_covered(pairs: list[tuple[int, int]], windows: list[tuple[int, int]]) -> None:
    start = np.array([a for a, _ in windows], np.int64)
    end = np.array([b for _, b in windows], np.int64)
    expected = [len(bitmap(pairs) & set(range(a, b))) for a, b in windows]
    assert intervals.covered(canonical(pairs), start, end).tolist() == expected
