"""Threads that take turns; times in µs. Ops of the framework fill the work of both threads:

thread 1 |0 forward, L[90, 100)  100|                       |200 synchronize  300|
thread 2                            |100 backward, L[190, 200)  200|
device                               110 a 120                     205 b         298
"""

from builders import TraceBuilder
from views import audit_of, view_of

from traceaudit.model.handover import handovers_of
from traceaudit.model.plan import plan_of
from traceaudit.model.retime import Costs, recorded_costs, retime
from traceaudit.model.sides import sides_of
from traceaudit.model.timeline import NodeType, timeline_of


def steps(*, second=2, wait=100, count=2):
    """Return steps in which one thread launches, another goes on, and the first waits for the device."""
    trace, length = TraceBuilder(), 200 + wait
    for i in range(count):
        at = i * length
        trace.annotation(f"ProfilerStep#{i}", at=at, dur=length)
        trace.op("forward", at=at, dur=100)
        trace.launch(at=at + 90, dur=10).kernel("a", at=at + 110, dur=10)
        trace.op("backward", at=at + 100, dur=100, thread=second)
        trace.launch(at=at + 190, dur=10, thread=second).kernel("b", at=at + 205, dur=wait - 7)
        trace.call("cudaDeviceSynchronize", at=at + 200, dur=wait)
    return trace


def planned(trace):
    view = view_of(trace)
    return plan_of(timeline_of(view), audit_of(view))


def instant(plan):
    """Return the costs with ops of no time."""
    costs = recorded_costs(plan)
    duration = [
        0.0 if kind == NodeType.OP else own for kind, own in zip(plan.node_type, costs.duration_ns, strict=True)
    ]
    return Costs(costs.duration_ns * 0 + duration, costs.lag_ns, costs.delay_ns)


def waits(trace, *, until):
    """Return from when to when threads wait for one another."""
    timeline = timeline_of(view_of(trace))
    found = handovers_of(timeline, timeline.order, (0, until * 1000))
    return sorted(zip((found.since_ns // 1000).tolist(), (found.until_ns // 1000).tolist(), strict=True))


class TestTurns:
    def test_a_pause_in_which_the_other_thread_works_is_a_wait(self):
        """The second waits [0, 100), [200, 400) and [500, 600), half of it for a blocked call; the first between."""
        assert waits(steps(), until=600) == [(0, 100), (100, 200), (200, 400), (400, 500), (500, 600)]

    def test_without_ops_the_turns_and_the_call_remain(self):
        """200 of both threads' work, then 7 from the launch to b (5) and from b to the wait's end (2)."""
        plan = planned(steps())
        assert retime(plan, recorded_costs(plan)) == 300_000
        assert retime(plan, instant(plan)) == 207_000

    def test_the_longer_the_wait_the_more_is_the_device_s(self):
        """Of 1100 the host has 207: what follows the wait is not its work."""
        plan = planned(steps(wait=900))
        assert retime(plan, instant(plan)) == 207_000
        assert sides_of(plan, recorded_costs(plan)).host_ns == 207_000

    def test_one_thread_is_as_before(self):
        plan = planned(steps(second=1))
        assert retime(plan, instant(plan)) == 207_000


class TestWorkOfItsOwn:
    def test_a_short_call_of_another_thread_is_no_turn(self):
        """Thread 1 has 4 ms of its own between two launches; thread 2 copies for 20 µs in the middle of them."""
        trace = TraceBuilder()
        trace.annotation("ProfilerStep#0", at=0, dur=4_020)
        trace.launch(at=0, dur=10).kernel("a", at=20, dur=10)
        trace.launch("cudaMemcpyAsync", at=2_000, dur=20, thread=2).memcpy(at=2_030, dur=10, stream=8)
        trace.launch(at=4_010, dur=10).kernel("b", at=4_020, dur=10)
        assert waits(trace, until=4_020) == []

    def test_a_thread_that_goes_on_when_a_blocking_call_returns_waited_for_it(self):
        """Thread 2 blocks [15, 990) for a; thread 1 launches again 10 after that: it waits [10, 990)."""
        trace = TraceBuilder()
        trace.launch(at=0, dur=10).kernel("a", at=20, dur=960)
        trace.call("cudaEventSynchronize", at=15, dur=975, thread=2)
        trace.launch(at=1_000, dur=10).kernel("b", at=1_015, dur=10)
        assert (10, 990) in waits(trace, until=1_010)
