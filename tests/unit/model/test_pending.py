"""Pending ops: launched long ago, the device idle, and nothing recorded that could have held them. Times in µs."""

import pytest
from builders import TraceBuilder
from views import view_of


def pending(builder):
    """Return the pending ops as (name, wait in µs)."""
    view = view_of(builder)
    found = view.occupancy.pending
    names = view.trace.names
    return [
        (names[view.ops.name[op]], wait / 1000)
        for op, wait in zip(found.op.tolist(), found.wait_ns.tolist(), strict=True)
    ]


def quick_ops(trace, count, *, first=10_000, wait=10):
    """Add ops that start `wait` after their call of 4 returned, on an idle device."""
    for i in range(count):
        at = first + 100 * i
        trace.launch(at=at, dur=4).kernel("quick", at=at + 4 + wait, dur=20)


def test_the_very_first_op_may_be_pending():
    """Call [0, 4), op at 404: 400 after the call returned, the others wait 10."""
    trace = TraceBuilder()
    trace.launch(at=0, dur=4).kernel("late", at=404, dur=5)
    quick_ops(trace, 3)
    assert pending(trace) == [("late", 400)]


@pytest.mark.parametrize(("start", "expected"), [(254, []), (254.001, [("late", 250.001)])])
def test_a_quarter_of_a_millisecond_is_ordinary(start, expected):
    trace = TraceBuilder()
    trace.launch(at=0, dur=4).kernel("late", at=start, dur=5)
    quick_ops(trace, 3)
    assert pending(trace) == expected


@pytest.mark.parametrize(("wait", "expected"), [(400, []), (400.001, [("late", 400.001)])])
def test_a_slow_system_waits_longer(wait, expected):
    """The others wait 40 each: only above 10 x 40 is an op pending."""
    trace = TraceBuilder()
    trace.launch(at=0, dur=4).kernel("late", at=4 + wait, dur=5)
    quick_ops(trace, 3, wait=40)
    assert pending(trace) == expected


def test_the_median_is_that_of_the_others():
    """Waits 300 and 40: for the first the others' median is 40 (400 needed), for the second 300."""
    trace = TraceBuilder()
    trace.launch(at=0, dur=4).kernel("late", at=304, dur=5)
    quick_ops(trace, 1, wait=40)
    assert pending(trace) == []
    quick_ops(trace, 1, first=20_000, wait=10)
    assert pending(trace) == [("late", 300)]


def test_the_wait_begins_with_the_end_of_the_last_earlier_op():
    """Call [0, 4); an op runs until 300; the next begins at 500: it waited 200, which is ordinary."""
    trace = TraceBuilder()
    trace.launch(at=0, dur=4).kernel("first", at=10, dur=290).kernel("second", at=500, dur=5)
    quick_ops(trace, 3)
    assert pending(trace) == []


def test_an_op_behind_another_waits_for_the_device():
    """The same, but the second begins at 700: 400 after the first ended."""
    trace = TraceBuilder()
    trace.launch(at=0, dur=4).kernel("first", at=10, dur=290).kernel("second", at=700, dur=5)
    quick_ops(trace, 3)
    assert pending(trace) == [("second", 400)]


def test_recorded_waits_and_the_profiler_excuse():
    """1 000 of waiting; a stream wait covers [100, 600), the profiler [500, 800): 300 are left, 250 needed."""
    trace = TraceBuilder()
    trace.launch(at=0, dur=4).kernel("late", at=1004, dur=5)
    quick_ops(trace, 3)
    assert pending(trace) == [("late", 1000)]
    trace.sync("Stream Wait Event", at=100, dur=500)
    trace.overhead(at=500, dur=300)
    assert pending(trace) == [("late", 300)]
    trace.overhead(at=900, dur=60)
    assert pending(trace) == []


def test_other_rows_of_the_device_excuse_nothing():
    """A context sync waits on the host and holds no op back; a wait of another device neither."""
    trace = TraceBuilder(devices=2)
    trace.launch(at=0, dur=4).kernel("late", at=1004, dur=5)
    quick_ops(trace, 3)
    trace.sync("Context Sync", at=100, dur=900)
    trace.sync("Stream Wait Event", at=100, dur=900, device=1)
    assert pending(trace) == [("late", 1000)]


def test_a_call_that_still_runs_is_no_waiting():
    """Call [0, 1000): the op began while it ran, so nothing was waited for."""
    trace = TraceBuilder()
    trace.launch(at=0, dur=1000).kernel("early", at=900, dur=5)
    quick_ops(trace, 3)
    assert pending(trace) == []


def test_an_op_without_launch_is_not_pending():
    trace = TraceBuilder()
    trace.call("cudaMalloc", at=0)
    trace.orphan().kernel("orphan", at=5000, dur=5)
    assert pending(trace) == []


def test_one_launched_op_has_no_others():
    """No other op sets a measure: the floor of 250 alone decides."""
    trace = TraceBuilder()
    trace.launch(at=0, dur=4).kernel("late", at=255, dur=5)
    assert pending(trace) == [("late", 251)]
