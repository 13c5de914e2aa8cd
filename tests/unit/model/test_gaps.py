"""Gaps and their neighbours. Times in µs in the drawings, ns in the tables."""

from builders import TraceBuilder
from views import trace_of

from traceaudit.model import intervals
from traceaudit.model.gaps import gaps_of


def neighbours(builder, end_us=100):
    """Return the gaps of a trace as (start, end, op before, op after), in µs and by name."""
    trace = trace_of(builder)
    busy = intervals.union(trace.ops.start_ns, trace.ops.end_ns)
    gaps = gaps_of(trace.ops, busy, 0, end_us * 1000)
    names = [trace.names[code] for code in trace.ops.name] + [None]
    return [
        (start // 1000, end // 1000, names[before], names[after])
        for start, end, before, after in zip(
            gaps.start_ns.tolist(), gaps.end_ns.tolist(), gaps.before.tolist(), gaps.after.tolist(), strict=True
        )
    ]


def test_gaps_before_between_and_behind():
    """The row at 0 begins the trace; a runs [10, 20), b [20, 30) touches it, c [50, 60)."""
    trace = TraceBuilder()
    trace.launch(at=0).kernel("a", at=10, dur=10).kernel("b", at=20, dur=10).kernel("c", at=50, dur=10)
    assert neighbours(trace) == [(0, 10, None, "a"), (30, 50, "b", "c"), (60, 100, "c", None)]


def test_of_ops_that_start_together_the_first_launched_ends_the_gap():
    """The launch at 5 enqueues late [30, 40), the one at 0 early [30, 35): early ends the gap, whatever the order."""
    trace = TraceBuilder()
    trace.launch(at=5).kernel("late", at=30, dur=10, stream=8)
    trace.launch(at=0).kernel("early", at=30, dur=5)
    assert neighbours(trace, 40) == [(0, 30, None, "early")]


def test_a_launched_op_comes_before_one_without_launch():
    trace = TraceBuilder()
    trace.orphan().kernel("orphan", at=30, dur=5, stream=8)
    trace.launch(at=0).kernel("launched", at=30, dur=10)
    assert neighbours(trace, 40) == [(0, 30, None, "launched")]


def test_of_ops_that_end_together_the_last_started_comes_before_the_gap():
    trace = TraceBuilder()
    trace.launch(at=0).kernel("short", at=15, dur=5).kernel("long", at=0, dur=20, stream=8)
    assert neighbours(trace, 40) == [(20, 40, "short", None)]


def test_ops_of_no_length_are_nobodys_neighbour():
    """[0, 10), [20, 20), [30, 40): one gap from 10 to 30."""
    trace = TraceBuilder()
    trace.launch(at=0).kernel("a", at=0, dur=10).kernel("nothing", at=20, dur=0).kernel("b", at=30, dur=10)
    assert neighbours(trace, 40) == [(10, 30, "a", "b")]


def test_a_device_without_any_length_is_one_gap():
    trace = TraceBuilder()
    trace.launch(at=0).kernel("nothing", at=20, dur=0)
    assert neighbours(trace, 40) == [(0, 40, None, None)]
