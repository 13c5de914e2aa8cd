"""Step windows. Times in µs; the first row of each trace is at 0.

b(s) = max(h0(s), min(end of earlier work, first own kernel)), on the main stream, never going back.
"""

from builders import TraceBuilder
from views import view_of

from traceaudit.model.options import StepOptions
from traceaudit.model.windows import EARLIER, NONE


def steps(*starts, end, marker="ProfilerStep#{}"):
    """Return a trace with touching markers."""
    trace = TraceBuilder()
    for i, (start, stop) in enumerate(zip(starts, [*starts[1:], end], strict=True)):
        trace.annotation(marker.format(i), at=start, dur=stop - start)
    return trace


def edges(trace, **options):
    """Return the window boundaries in µs."""
    return [edge / 1000 for edge in view_of(trace, **options).windows.edge_ns.tolist()]


def step_of(trace):
    """Return the step of each op by its name."""
    view = view_of(trace)
    names = [view.trace.names[code] for code in view.ops.name]
    return dict(zip(names, view.windows.step.tolist(), strict=True))


def test_a_synchronous_engine_gets_its_host_intervals():
    """
    host    |0    launch 10     |100   launch 110      |200
    device          20--80               120--180
    Each step's kernel ends before the next marker: windows are the markers.
    """
    trace = steps(0, 100, end=200)
    trace.launch(at=10).kernel("a", at=20, dur=60)
    trace.launch(at=110).kernel("b", at=120, dur=60)
    assert edges(trace) == [0, 100, 200]


def test_an_engine_that_runs_ahead_gets_its_device_periods():
    """
    host    |0 |10 |20       30|
    device    5-----65-----125-----185
    b(1) = max(10, min(65, 65)), b(2) = max(20, min(125, 125)); the end max(30, 185).
    """
    trace = steps(0, 10, 20, end=30)
    for i, name in enumerate("abc"):
        trace.launch(at=10 * i + 2).kernel(name, at=5 + 60 * i, dur=60)
    assert edges(trace) == [0, 65, 125, 185]


def test_a_pause_before_the_next_kernel_belongs_to_the_next_step():
    """a [5, 65), b [70, 130), launched ahead: b(1) = max(10, min(65, 70)) = 65."""
    trace = steps(0, 10, end=20)
    trace.launch(at=2).kernel("a", at=5, dur=60)
    trace.launch(at=12).kernel("b", at=70, dur=60)
    assert edges(trace) == [0, 65, 130]


def test_a_kernel_that_begins_before_earlier_work_ends():
    """Dependent launch: b begins at 60 while a runs until 65: b(1) = max(10, min(65, 60)) = 60."""
    trace = steps(0, 10, end=20)
    trace.launch(at=2).kernel("a", at=5, dur=60)
    trace.launch(at=12).kernel("b", at=60, dur=60)
    assert edges(trace) == [0, 60, 120]


def test_work_launched_before_the_first_step_is_earlier():
    """'before' runs [5, 50) into the first step, whose kernel begins at 55: b(0) = max(10, min(50, 55)) = 50."""
    trace = steps(10, 100, end=200)
    trace.launch(at=0).kernel("before", at=5, dur=45)
    trace.launch(at=20).kernel("a", at=55, dur=20)
    trace.launch(at=120).kernel("b", at=130, dur=20)
    assert edges(trace) == [50, 100, 200]
    assert step_of(trace) == {"before": EARLIER, "a": 0, "b": 1}


def test_ops_without_launch_before_the_first_kernel_are_earlier():
    """A replay begun before the capture: nodes at 2 and 20 have no launch row; 'late' at 60 is of no step."""
    trace = steps(0, 100, end=200)
    trace.orphan().kernel("x", at=2, dur=10)
    trace.orphan().kernel("y", at=20, dur=15)
    trace.launch(at=5).kernel("a", at=40, dur=10)
    trace.orphan().kernel("late", at=60, dur=10)
    trace.launch(at=120).kernel("b", at=130, dur=20)
    assert step_of(trace) == {"x": EARLIER, "y": EARLIER, "a": 0, "late": NONE, "b": 1}
    assert edges(trace) == [35, 100, 200]


def test_without_any_own_kernel_nothing_is_earlier():
    """No step has a kernel, so no op without launch can be said to be before the first."""
    trace = steps(0, 100, end=200)
    trace.orphan().kernel("x", at=20, dur=15)
    assert step_of(trace) == {"x": NONE}
    assert edges(trace) == [0, 100, 200]


def test_ops_launched_behind_the_last_step_are_of_no_step():
    trace = steps(0, 100, end=200)
    trace.launch(at=10).kernel("a", at=20, dur=10)
    trace.launch(at=200).kernel("behind", at=210, dur=10)
    assert step_of(trace) == {"a": 0, "behind": NONE}
    assert edges(trace) == [0, 100, 200]


def test_the_main_stream_decides():
    """Stream 7 computes 30 + 30, stream 8 10 + 10 that end late and a copy on stream 9: they move no window."""
    trace = steps(0, 100, end=200)
    trace.launch(at=1).kernel("a", at=5, dur=30).kernel("side", at=100, dur=10, stream=8)
    trace.launch(at=2).memcpy("copy", at=90, dur=60, stream=9)
    trace.launch(at=101).kernel("b", at=150, dur=30).kernel("side 2", at=250, dur=10, stream=8)
    assert edges(trace) == [0, 100, 200]


def test_replays_that_change_streams_count_all_compute_kernels():
    """Step 0 computes on stream 7, step 1 on 8, step 2 on 9: no main stream; copies still do not count.

    Kernels [5, 65), [65, 125), [125, 185), launched ahead; the copy [125, 400) on stream 7 is not the end.
    """
    trace = steps(0, 10, 20, end=30)
    for i in range(3):
        trace.launch(at=10 * i + 2).kernel(f"k{i}", at=5 + 60 * i, dur=60, stream=7 + i)
    trace.launch(at=25).memcpy("copy", at=125, dur=275)
    assert edges(trace) == [0, 65, 125, 185]


def test_nine_steps_in_ten_make_a_main_stream():
    """10 steps of which one computes elsewhere: stream 7 is main still, and the odd kernel [95, 300) ends no window."""
    trace = steps(*range(0, 100, 10), end=100)
    for i in range(9):
        trace.launch(at=10 * i + 1).kernel(f"k{i}", at=10 * i + 2, dur=5)
    trace.launch(at=91).kernel("odd", at=95, dur=3, stream=8)
    trace.launch(at=92).memcpy("copy", at=98, dur=200, stream=8)
    assert edges(trace) == [float(edge) for edge in range(0, 101, 10)]


def test_without_compute_all_ops_count():
    """Only copies: all streams count, but none is a kernel, so that earlier work alone moves a window.

    Step 0's copy ends at 150: b(1) = max(100, min(150, never)) = 150.
    """
    trace = steps(0, 100, end=200)
    trace.launch(at=1).memcpy("copy", at=5, dur=145)
    trace.launch(at=101).memcpy("copy 2", at=160, dur=20, stream=8)
    assert edges(trace) == [0, 150, 200]


def test_a_step_without_kernels_begins_when_earlier_work_ends():
    """Step 1 is empty; step 0's kernel runs until 150: b(1) = max(100, min(150, never)) = 150, b(2) = max(200, 150)."""
    trace = steps(0, 100, 200, end=300)
    trace.launch(at=1).kernel("a", at=5, dur=145)
    trace.launch(at=210).kernel("c", at=220, dur=10)
    assert edges(trace) == [0, 150, 200, 300]


def test_windows_never_go_back():
    """a of step 0 runs [5, 150), step 1 is empty, step 2's kernel overlaps a: [120, 160).

    b(1) = max(100, min(150, never)) = 150; b(2) = max(110, min(150, 120)) = 120 would go back, so it is 150.
    """
    trace = steps(0, 100, 110, end=200)
    trace.launch(at=1).kernel("a", at=5, dur=145)
    trace.launch(at=112).kernel("c", at=120, dur=40)
    assert edges(trace) == [0, 150, 150, 200]


def test_an_empty_step_after_late_work_is_no_time():
    """Work of step 0 ends at 500, behind all markers: the others' windows are empty and the last ends there."""
    trace = steps(0, 10, 20, end=30)
    trace.launch(at=1).kernel("a", at=2, dur=498)
    assert edges(trace) == [0, 500, 500, 500]


def test_markers_that_do_not_touch_run_to_the_last_host_row():
    trace = TraceBuilder()
    trace.annotation("step[decode bs=1]", at=0, dur=40)
    trace.annotation("step[decode bs=1]", at=100, dur=40)
    trace.launch(at=10).kernel("a", at=20, dur=10)
    trace.launch(at=110).kernel("b", at=120, dur=10)
    trace.op("aten::sample", at=150, dur=30)
    assert edges(trace) == [0, 100, 180]


def test_the_last_window_holds_the_last_own_op():
    """b runs [120, 250), beyond the last marker's end at 200."""
    trace = steps(0, 100, end=200)
    trace.launch(at=10).kernel("a", at=20, dur=10)
    trace.launch(at=110).kernel("b", at=120, dur=130)
    assert edges(trace) == [0, 100, 250]


class TestPendingFirstOp:
    def test_the_first_window_begins_with_it(self):
        """Launched [1, 5), first op of the device at 600: 595 unexplained, so b(0) = 600 instead of 0."""
        trace = steps(0, 700, end=800)
        trace.launch(at=1).kernel("a", at=600, dur=10)
        trace.launch(at=710).kernel("b", at=720, dur=10)
        assert view_of(trace).windows.starts_pending
        assert edges(trace) == [600, 700, 800]

    def test_not_behind_earlier_work(self):
        """An op launched before the first step runs [2, 10); what the first window holds is in the trace."""
        trace = steps(1, 700, end=800)
        trace.launch(at=0, dur=1).kernel("before", at=2, dur=8)
        trace.launch(at=11).kernel("a", at=600, dur=10)
        trace.launch(at=710).kernel("b", at=720, dur=10)
        assert not view_of(trace).windows.starts_pending
        assert edges(trace) == [10, 700, 800]

    def test_not_behind_an_op_of_a_later_step(self):
        """b of step 1 runs [20, 30), before the pending op of step 0: the device does show an earlier op."""
        trace = steps(0, 10, end=800)
        trace.launch(at=1).kernel("a", at=600, dur=10)
        trace.launch(at=11).kernel("b", at=20, dur=10)
        view = view_of(trace)
        assert [view.trace.names[view.ops.name[op]] for op in view.occupancy.pending.op.tolist()] == ["a"]
        assert not view.windows.starts_pending
        assert edges(trace) == [0, 20, 800]

    def test_later_windows_follow_it(self):
        """The op [600, 610) of step 0 is pending; step 1, marked at 10, begins when it ends: max(10, min(610, 630))."""
        trace = steps(0, 10, end=700)
        trace.launch(at=1).kernel("a", at=600, dur=10)
        trace.launch(at=620).kernel("b", at=630, dur=10)
        assert edges(trace) == [600, 610, 700]


def test_a_whole_trace_is_one_window_that_owns_every_op():
    """From the first launch at 4 to the last op's end at 60; rows of the host before and behind do not count."""
    trace = TraceBuilder()
    trace.op("aten::mm", at=0, dur=2)
    trace.launch(at=4).kernel("a", at=10, dur=10)
    trace.orphan().kernel("b", at=40, dur=20)
    trace.op("aten::mm", at=70, dur=2)
    assert step_of(trace) == {"a": 0, "b": 0}
    assert edges(trace) == [4, 60]
    assert edges(trace, steps=StepOptions(divide_by=2)) == [4, 60]
