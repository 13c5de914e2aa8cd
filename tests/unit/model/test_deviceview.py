"""Devices of a trace. Times in µs."""

from dataclasses import replace

from builders import TraceBuilder
from views import trace_of, view_of, views_of

from traceaudit.model.deviceview import own_ops
from traceaudit.model.options import Selection
from traceaudit.model.results import Totals
from traceaudit.model.trace import DeviceInfo


def two_devices():
    trace = TraceBuilder(devices=2)
    trace.launch(at=0).kernel("a", at=10, dur=10).kernel("b", at=15, dur=10, stream=8)
    trace.launch(at=5, device=1).kernel("c", at=30, dur=10)
    return trace_of(trace)


def moved_to_rank(trace, rank):
    return replace(trace, ops=trace.ops.replace(rank=trace.ops.rank * 0 + rank))


def test_devices_come_by_rank_and_ordinal():
    views = views_of(two_devices())
    assert [(view.rank, view.device, len(view.ops)) for view in views] == [(0, 0, 2), (0, 1, 1)]


def test_a_selection_leaves_some():
    trace = two_devices()
    assert [view.device for view in views_of(trace, selection=Selection(device=1))] == [1]
    assert views_of(trace, selection=Selection(rank=1)) == []
    assert len(views_of(trace, selection=Selection(rank=0))) == 2


def test_totals_are_of_the_whole_trace():
    """Ops [10, 20), [15, 25), [40, 45): op time 25, busy 15 + 5, span 35, one gap."""
    trace = TraceBuilder()
    trace.launch(at=0).kernel("a", at=10, dur=10).kernel("b", at=15, dur=10, stream=8).kernel("c", at=40, dur=5)
    totals = view_of(trace).totals
    assert totals == Totals(device_ops=3, op_time_ns=25_000, busy_ns=20_000, span_ns=35_000, gaps=1)
    assert totals.idle_ns == 15_000


def test_ops_of_no_length_alone_have_no_gap():
    trace = TraceBuilder()
    trace.launch(at=0).kernel("a", at=10, dur=0)
    assert view_of(trace).totals == Totals(device_ops=1, op_time_ns=0, busy_ns=0, span_ns=0, gaps=0)


def test_the_time_line_reaches_to_the_last_row_of_any_kind():
    """Op until 20, a row of the profiler until 50."""
    trace = TraceBuilder()
    trace.launch(at=0).kernel("a", at=10, dur=10)
    trace.overhead(at=40, dur=10)
    assert view_of(trace).occupancy.edge_ns[-1] == 50_000


class TestNames:
    def test_a_listed_device(self):
        trace = replace(two_devices(), devices=(DeviceInfo(0, 0, "one", 10), DeviceInfo(0, 1, "two", 20)))
        assert [(view.name, view.info.sms) for view in views_of(trace)] == [("one", 10), ("two", 20)]

    def test_a_device_that_is_not_listed_takes_what_all_share(self):
        trace = moved_to_rank(two_devices(), 3)
        alike = replace(trace, devices=(DeviceInfo(0, 0, "one", 10), DeviceInfo(0, 1, "one", 10)))
        assert [(view.name, view.info.sms) for view in views_of(alike)] == [("one", 10)] * 2

    def test_nothing_is_shared(self):
        trace = moved_to_rank(two_devices(), 3)
        other = replace(trace, devices=(DeviceInfo(0, 0, "one", 10), DeviceInfo(0, 1, "two", 10)))
        assert [(view.name, view.info) for view in views_of(other)] == [(None, None)] * 2
        assert [(view.name, view.info) for view in views_of(replace(trace, devices=()))] == [(None, None)] * 2


def test_own_ops_come_step_by_step_in_order_of_start():
    """Steps [0, 100) and [100, 200): b was launched first but starts later; the last op is of no step."""
    trace = TraceBuilder()
    trace.annotation("ProfilerStep#0", at=0, dur=100)
    trace.annotation("ProfilerStep#1", at=100, dur=100)
    trace.launch(at=1).kernel("b", at=60, dur=5, stream=8)
    trace.launch(at=5).kernel("a", at=50, dur=5)
    trace.launch(at=110).kernel("c", at=120, dur=5)
    trace.launch(at=250).kernel("d", at=260, dur=5)
    view = view_of(trace)
    names = [[view.trace.names[view.ops.name[row]] for row in rows.tolist()] for rows in own_ops(view)]
    assert names == [["a", "b"], ["c"]]
