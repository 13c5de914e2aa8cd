"""The critical path of a window, walked back from its end. Times in µs; the first row of each trace is at 0."""

import itertools

from builders import TraceBuilder
from views import view_of

from traceaudit.model.criticalpath import critical_path
from traceaudit.model.timeline import timeline_of


def path(trace, start, end):
    """Return the path as [(kind, name of the op or call, start, end)], and check that it fills the window."""
    timeline = timeline_of(view_of(trace))
    found = critical_path(timeline, start * 1000, end * 1000)
    assert found[0].start_ns == start * 1000
    assert found[-1].end_ns == end * 1000
    assert all(a.end_ns == b.start_ns for a, b in itertools.pairwise(found))
    return [
        (
            part.kind.value,
            timeline.name_of(part.node) if part.node >= 0 else None,
            part.start_ns / 1e3,
            part.end_ns / 1e3,
        )
        for part in found
    ]


def test_launch_wait_launch():
    """
    host     10 L 14  16--- sync ---45  50 L 54
    device              20 a 40               60 b 80      the window is [0, 100)
    """
    trace = TraceBuilder()
    trace.op("aten::mm", at=0, dur=100)
    trace.launch("cuLaunchKernel", at=10, dur=4).kernel("a", at=20, dur=20)
    trace.call("cudaStreamSynchronize", at=16, dur=29)
    trace.launch("cudaLaunchKernel", at=50, dur=4).kernel("b", at=60, dur=20)
    assert path(trace, 0, 100) == [
        ("host", "cuLaunchKernel", 0, 10),
        ("launch_call", "cuLaunchKernel", 10, 14),
        ("delivery", "a", 14, 20),
        ("op", "a", 20, 40),
        ("wake_up", "cudaStreamSynchronize", 40, 45),
        ("host", "cudaLaunchKernel", 45, 50),
        ("launch_call", "cudaLaunchKernel", 50, 54),
        ("delivery", "b", 54, 60),
        ("op", "b", 60, 80),
        ("host", None, 80, 100),
    ]


def test_up_to_the_windows_end_the_host_worked_for_the_next_launch():
    """The same, and a third launch [110, 114) behind the window: its host never waited for b [60, 80)."""
    trace = TraceBuilder()
    trace.op("aten::mm", at=0, dur=100)
    trace.launch("cuLaunchKernel", at=10, dur=4).kernel("a", at=20, dur=20)
    trace.call("cudaStreamSynchronize", at=16, dur=29)
    trace.launch("cudaLaunchKernel", at=50, dur=4).kernel("b", at=60, dur=20)
    trace.launch("cudaLaunchKernelExC", at=110, dur=4).kernel("c", at=120, dur=20)
    assert path(trace, 0, 100)[-3:] == [
        ("host", "cudaLaunchKernel", 45, 50),
        ("launch_call", "cudaLaunchKernel", 50, 54),
        ("host", "cudaLaunchKernelExC", 54, 100),
    ]


def test_a_gap_at_the_end_is_that_of_the_op_that_ends_it():
    """Launched at [3, 5), b begins at 43: at 42 it is still its turn in the queue that lasts."""
    trace = TraceBuilder()
    trace.launch(at=0, dur=2).kernel("a", at=10, dur=30)
    trace.launch(at=3, dur=2).kernel("b", at=43, dur=27)
    assert path(trace, 0, 42)[-2:] == [("op", "a", 10, 40), ("queue", "b", 40, 42)]


def test_a_thread_whose_first_launch_comes_next_says_nothing():
    """Thread 2 launches c at 110, behind the window, and nothing before: what ended last is b, the host behind it."""
    trace = TraceBuilder()
    trace.launch(at=50, dur=4).kernel("b", at=60, dur=20)
    trace.op("aten::mm", at=0, dur=100)
    trace.launch(at=110, dur=4, thread=2).kernel("c", at=120, dur=20)
    assert path(trace, 0, 100)[-2:] == [("op", "b", 60, 80), ("host", None, 80, 100)]


def test_without_an_op_inside_or_behind_the_window_the_host_has_it():
    """a [10, 40) is over before the window [50, 100) begins, and nothing is launched any more."""
    trace = TraceBuilder()
    trace.launch(at=0, dur=2).kernel("a", at=10, dur=30)
    trace.op("aten::mm", at=0, dur=100)
    assert path(trace, 50, 100) == [("host", None, 50, 100)]


def test_up_to_the_first_launch_of_all_the_host_has_the_window():
    """a is launched at 60, behind the window [0, 50), in which nothing is recorded."""
    trace = TraceBuilder()
    trace.op("aten::mm", at=0, dur=100)
    trace.launch(at=60, dur=2).kernel("a", at=70, dur=30)
    assert path(trace, 0, 50) == [("host", None, 0, 50)]


def test_up_to_an_op_whose_launch_is_missing_nothing_says_what_the_window_waited_for():
    """a [70, 100) has no launch row, and ends the gap that holds the window [0, 50)."""
    trace = TraceBuilder()
    trace.op("aten::mm", at=0, dur=100)
    trace.orphan().kernel("a", at=70, dur=30)
    assert path(trace, 0, 50) == [("before", None, 0, 50)]


def test_of_ops_that_run_up_to_the_end_the_first_to_end_counts():
    """a [10, 60) on 7 ends with the window, b [20, 90) on 8 does not."""
    trace = TraceBuilder()
    trace.launch(at=0, dur=2).kernel("a", at=10, dur=50)
    trace.launch(at=3, dur=2).kernel("b", at=20, dur=70, stream=8)
    assert path(trace, 0, 60)[-1] == ("op", "a", 10, 60)


def test_a_queue_of_work():
    """Launched early at [0, 2) and [3, 5): a [10, 40), b [43, 70) in one queue."""
    trace = TraceBuilder()
    trace.launch(at=0, dur=2).kernel("a", at=10, dur=30)
    trace.launch(at=3, dur=2).kernel("b", at=43, dur=27)
    assert path(trace, 0, 70) == [
        ("launch_call", "cudaLaunchKernel", 0, 2),
        ("delivery", "a", 2, 10),
        ("op", "a", 10, 40),
        ("queue", "b", 40, 43),
        ("op", "b", 43, 70),
    ]


def test_a_window_may_begin_and_end_inside_an_element():
    """The same from 20 to 60: inside a, inside b."""
    trace = TraceBuilder()
    trace.launch(at=0, dur=2).kernel("a", at=10, dur=30)
    trace.launch(at=3, dur=2).kernel("b", at=43, dur=27)
    assert path(trace, 20, 60) == [("op", "a", 20, 40), ("queue", "b", 40, 43), ("op", "b", 43, 60)]


def test_inside_a_replay():
    trace = TraceBuilder()
    trace.graph_launch(at=0, dur=4).kernel("a", at=10, dur=10).kernel("b", at=22, dur=8)
    assert path(trace, 0, 30) == [
        ("launch_call", "cudaGraphLaunch", 0, 4),
        ("delivery", "a", 4, 10),
        ("op", "a", 10, 20),
        ("graph", "b", 20, 22),
        ("op", "b", 22, 30),
    ]


def test_across_queues():
    """b on stream 8 waited for a on stream 7: 3 behind its end, a wait was enqueued, launched long before."""
    trace = TraceBuilder()
    trace.launch(at=0, dur=2).kernel("a", at=10, dur=30)
    trace.call("cudaStreamWaitEvent", at=3, dur=1)
    trace.launch(at=5, dur=2).kernel("b", at=43, dur=7, stream=8)
    assert path(trace, 0, 50)[-3:] == [("op", "a", 10, 40), ("event", "b", 40, 43), ("op", "b", 43, 50)]


def test_an_op_that_starts_before_its_call_returns():
    """Call [10, 30), op [15, 40): of the call only what lies before the op bound it."""
    trace = TraceBuilder()
    trace.op("aten::mm", at=0, dur=40)
    trace.launch(at=10, dur=20).kernel("a", at=15, dur=25)
    assert path(trace, 0, 40) == [
        ("host", "cudaLaunchKernel", 0, 10),
        ("launch_call", "cudaLaunchKernel", 10, 15),
        ("op", "a", 15, 40),
    ]


def test_a_wait_in_vain_is_the_calls_own_time():
    """a ends at 30; the wait [40, 43) and another [50, 55) behind it find nothing to wait for."""
    trace = TraceBuilder()
    trace.launch(at=0, dur=2).kernel("a", at=10, dur=20)
    trace.call("cudaStreamSynchronize", at=40, dur=3)
    trace.call("cudaDeviceSynchronize", at=50, dur=5)
    assert path(trace, 0, 60) == [
        ("launch_call", "cudaLaunchKernel", 0, 2),
        ("host", "cudaStreamSynchronize", 2, 40),
        ("sync", "cudaStreamSynchronize", 40, 43),
        ("host", "cudaDeviceSynchronize", 43, 50),
        ("sync", "cudaDeviceSynchronize", 50, 55),
        ("host", "cudaDeviceSynchronize", 55, 60),
    ]


def test_an_op_without_launch_is_bound_from_outside():
    trace = TraceBuilder()
    trace.op("aten::mm", at=0, dur=50)
    trace.orphan().kernel("a", at=20, dur=10)
    assert path(trace, 0, 30) == [("before", None, 0, 20), ("op", "a", 20, 30)]


def test_a_window_in_which_nothing_ends():
    trace = TraceBuilder()
    trace.launch(at=0, dur=2).kernel("a", at=10, dur=90)
    assert path(trace, 20, 60) == [("op", "a", 20, 60)]
