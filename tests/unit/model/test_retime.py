"""Re-timing: what would have happened, had some of it taken less. Times in µs.

Host-bound, two steps of 100:

    host    |0   10 L 14          |100  110 L 114         |200
    device          20 a 40              120 b 140

Device-bound, three steps launched ahead; windows [0, 65), [65, 125), [125, 185):

    host    |0 2L3 |10 12L13 |20 22L23 |30
    device    5----- a -----65----- b -----125----- c -----185
"""

from dataclasses import replace

import numpy as np
import pytest
from builders import TraceBuilder
from views import audit_of, view_of

from traceaudit.model.retime import plan_of, recorded_lags, retime
from traceaudit.model.timeline import EdgeType, NodeType, timeline_of


def markers(*starts, end):
    trace = TraceBuilder()
    for i, (start, stop) in enumerate(zip(starts, [*starts[1:], end], strict=True)):
        trace.annotation(f"ProfilerStep#{i}", at=start, dur=stop - start)
    return trace


def host_bound():
    trace = markers(0, 100, end=200)
    trace.launch(at=10, dur=4).kernel("a", at=20, dur=20)
    trace.launch(at=110, dur=4).kernel("b", at=120, dur=20)
    return trace


def device_bound():
    trace = markers(0, 10, 20, end=30)
    for i, name in enumerate("abc"):
        trace.launch(at=10 * i + 2, dur=1).kernel(name, at=5 + 60 * i, dur=60)
    return trace


def planned(trace):
    view = view_of(trace)
    return plan_of(timeline_of(view), audit_of(view))


def retimed(trace, *, ops=1.0, host=1.0, calls=1.0):
    """Return when the last window would end with all op times, host lags and call times scaled; µs."""
    plan = planned(trace)
    is_op = plan.node_type == NodeType.OP
    duration = plan.duration_ns * np.where(is_op, ops, calls)
    tails = plan.node_type[plan.tail_source] != NodeType.OP
    of_host = np.concatenate((plan.edge_type == EdgeType.HOST, tails, np.ones(len(plan.head), np.bool_)))
    return retime(plan, duration, recorded_lags(plan) * np.where(of_host, host, 1.0)) / 1000


class TestHostBound:
    def test_without_change_it_ends_as_recorded(self):
        plan = planned(host_bound())
        assert (plan.start_ns, plan.end_ns, plan.steps) == (0, 200_000, 2)
        assert retimed(host_bound()) == 200

    def test_faster_ops_buy_nothing(self):
        assert retimed(host_bound(), ops=0) == 200

    def test_slower_ops_cost_only_what_shows(self):
        """Four times: a [20, 100), b [120, 200) still ends with the step. Five times: a [20, 120), then the 5 of an
        unseen hand-over, b [125, 225).
        """
        assert retimed(host_bound(), ops=4) == 200
        assert retimed(host_bound(), ops=5) == 225

    def test_a_faster_host_buys_its_share(self):
        """Lags 10, 96 and 86 halved, calls of 4 kept: 5 + 4 + 48 + 4 + 43."""
        assert retimed(host_bound(), host=0.5) == 104

    def test_a_host_without_work_leaves_calls_and_deliveries(self):
        """Calls [0, 4) and [4, 8); a [10, 30) behind a delivery of 6, b behind it by the 5 of an unseen hand-over."""
        assert retimed(host_bound(), host=0) == 55

    def test_calls_count_too(self):
        assert retimed(host_bound(), calls=0) == 192


class TestDeviceBound:
    def test_without_change_it_ends_as_recorded(self):
        assert retimed(device_bound()) == 185

    def test_faster_ops_buy_their_time(self):
        """a [5, 35), b [35, 65), c [65, 95)."""
        assert retimed(device_bound(), ops=0.5) == 95

    def test_until_the_host_is_in_the_way(self):
        """Ops of no length: the host's own end of the last step, 23 + 7, remains."""
        assert retimed(device_bound(), ops=0) == 30

    def test_a_faster_host_buys_the_first_launch_alone(self):
        """The first call begins at 0 instead of 2."""
        assert retimed(device_bound(), host=0) == 183


class TestWaits:
    def make(self):
        """
        host    |0  5 L 7   20------ sync ------70        |100
        device      10------- a -------65
        """
        trace = markers(0, end=100)
        trace.launch(at=5, dur=2).kernel("a", at=10, dur=55)
        trace.call("cudaStreamSynchronize", at=20, dur=50)
        return trace

    def test_a_wait_ends_when_its_op_does(self):
        """a takes 22 and ends at 32; the wait wakes up 5 later at 37, and the host's 30 follow."""
        assert retimed(self.make()) == 100
        assert retimed(self.make(), ops=0.4) == 67

    def test_a_wait_for_nothing_takes_a_few_microseconds(self):
        """a takes no time: begin at 20, 3 for the call, 30 behind it."""
        assert retimed(self.make(), ops=0) == 53

    def test_or_as_long_as_the_shortest_seen(self):
        """A second wait [75, 76) found its op done: 1 is what a call takes. a ends at 10: 20 + 1, then 5 + 1 + 24."""
        trace = self.make()
        trace.call("cudaStreamSynchronize", at=75, dur=1)
        assert retimed(trace) == 100
        assert retimed(trace, ops=0) == 51


class TestPlan:
    def test_earlier_work_keeps_its_time(self):
        """An op of before the first step runs [5, 50); a waits for it in its queue, whatever happens to a.

        Recorded: a [52, 72) in step [10, 100). The queue's hand-over of 2 stays, so a begins at 52.
        """
        trace = markers(10, 100, end=200)
        trace.launch(at=0, dur=1).kernel("before", at=5, dur=45)
        trace.launch(at=20, dur=4).kernel("a", at=52, dur=20)
        trace.launch(at=120, dur=4).kernel("b", at=130, dur=20)
        plan = planned(trace)
        (position,) = [i for i, node in enumerate(plan.node.tolist()) if plan.timeline.name_of(node) == "a"]
        assert plan.floor_ns[position] == 52_000
        assert retimed(trace) == 200

    def test_a_window_that_ends_with_work_of_steps_before(self):
        """Step 2 alone is used and has no op; it ends when step 0's kernel does, at 500."""
        trace = markers(0, 10, 20, end=30)
        trace.launch(at=1, dur=1).kernel("a", at=2, dur=498)
        trace.call("cudaStreamSynchronize", at=21, dur=1)
        view = view_of(trace)
        audit = audit_of(view, step=2)
        plan = plan_of(timeline_of(view), audit)
        assert (plan.first_step, plan.steps) == (2, 1)
        assert retime(plan, plan.duration_ns.astype(float), recorded_lags(plan)) == plan.end_ns == 500_000

    def test_the_longest_run_of_used_steps(self):
        """Of four steps, each with one launch, the second is left out by hand: steps 2 and 3 are the longest run."""
        trace = markers(0, 100, 200, 300, end=400)
        for i in range(4):
            trace.launch(at=100 * i + 10, dur=4).kernel("a", at=100 * i + 20, dur=20)
        view = view_of(trace)
        audit = audit_of(view)
        items = tuple(replace(item, left_out="odd" if item.index == 1 else None) for item in audit.steps.items)
        chosen = replace(audit, steps=replace(audit.steps, items=items))
        plan = plan_of(timeline_of(view), chosen)
        assert (plan.first_step, plan.steps, plan.start_ns, plan.end_ns) == (2, 2, 200_000, 400_000)
        nobody = tuple(replace(item, left_out="odd") for item in items)
        assert plan_of(timeline_of(view), replace(audit, steps=replace(audit.steps, items=nobody))) is None

    @pytest.mark.parametrize(("most", "steps"), [(2, 1), (5, 2), (6, 3), (1, 1)])
    def test_as_many_whole_steps_as_fit(self, monkeypatch, most, steps):
        """Each of the three steps is two nodes, a call and an op; one step is always taken."""
        monkeypatch.setattr("traceaudit.model.retime.MAX_NODES", most)
        assert planned(device_bound()).steps == steps

    def test_ops_without_calls_keep_their_place(self):
        """A whole trace without any launch row: a [0, 10), b [15, 20); the gap is the queue's, 5 as recorded."""
        trace = TraceBuilder()
        trace.orphan().kernel("a", at=0, dur=10)
        trace.orphan().kernel("b", at=15, dur=5)
        assert retimed(trace) == 20
        assert retimed(trace, ops=0) == 5

    def test_no_used_step_has_a_node(self):
        """The step has no call; its op has no launch row."""
        trace = markers(0, end=100)
        trace.orphan().kernel("a", at=10, dur=5)
        assert planned(trace) is None

    def test_nothing_unexplained_is_negative(self):
        for trace in (host_bound(), device_bound()):
            assert (planned(trace).delay_ns >= 0).all()
