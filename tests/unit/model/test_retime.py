"""Re-timing: how long the steps would take in the steady state, had some of it taken less. Times in µs.

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

from traceaudit.model.plan import plan_of
from traceaudit.model.retime import Costs, recorded_costs, retime
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
    """Return how long the plan would take with all op times, host lags and call times scaled; µs."""
    plan = planned(trace)
    is_op, of_host = plan.node_type == NodeType.OP, plan.edge_type == EdgeType.HOST
    costs = recorded_costs(plan)
    duration = costs.duration_ns * np.where(is_op, ops, calls)
    return (
        retime(plan, Costs(duration, costs.lag_ns * np.where(of_host, host, 1.0), costs.delay_ns)) * plan.steps / 1000
    )


class TestHostBound:
    def test_without_change_it_takes_what_is_recorded(self):
        plan = planned(host_bound())
        assert (plan.start_ns, plan.end_ns, plan.steps) == (0, 200_000, 2)
        assert retimed(host_bound()) == 200

    def test_faster_ops_buy_nothing(self):
        assert retimed(host_bound(), ops=0) == 200

    def test_slower_ops_cost_only_what_shows(self):
        """Four times: two of 80 and two unseen hand-overs of 5 hide. Five times: two of 100 and 5 do not."""
        assert retimed(host_bound(), ops=4) == 200
        assert retimed(host_bound(), ops=5) == 210

    def test_a_faster_host_buys_its_share(self):
        """Lags 10, 96 and 86 halved, calls of 4 kept: 5 + 4 + 48 + 4 + 43."""
        assert retimed(host_bound(), host=0.5) == 104

    def test_a_host_without_work_leaves_calls_and_deliveries(self):
        """The host needs 8, so the device never waits for it: two ops of 20, each behind an unseen hand-over of 5."""
        assert retimed(host_bound(), host=0) == 50

    def test_calls_count_too(self):
        assert retimed(host_bound(), calls=0) == 192


class TestDeviceBound:
    def test_the_first_launch_is_hidden_in_the_steady_state(self):
        """185 as recorded, of which 5 fill an empty queue."""
        assert retimed(device_bound()) == 180

    def test_faster_ops_buy_their_time(self):
        assert retimed(device_bound(), ops=0.5) == 90

    def test_until_the_host_is_in_the_way(self):
        """Ops of no length: the host's 30 remain."""
        assert retimed(device_bound(), ops=0) == 30

    def test_a_faster_host_buys_nothing(self):
        assert retimed(device_bound(), host=0) == 180


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


def test_the_slowest_counts_though_another_ends_later():
    """Thread 1 takes 5 a step; of thread 2 only the calls of 1 are left, and its op comes 300 behind them.

    What ends last grows by 1 a step, and would for sixty rounds more; the step takes 5.
    """
    trace = markers(0, 5, end=10)
    for at in (0, 5):
        trace.launch(at=at + 1, dur=1).kernel("a", at=at + 3, dur=0.5)
        trace.launch(at=at + 1, dur=1, thread=2).kernel("b", at=at + 3, dur=0.5, stream=8)
    plan = planned(trace)
    late = np.array([plan.timeline.name_of(node) == "b" for node in plan.node.tolist()])
    of_late = (plan.edge_type == EdgeType.LAUNCH) & late[plan.edge_target]
    late_calls = np.isin(np.arange(len(plan.node)), plan.edge_source[of_late])
    costs = recorded_costs(plan)
    lag = costs.lag_ns.copy()
    lag[(plan.edge_type == EdgeType.HOST) & late_calls[plan.edge_target]] = 0
    lag[plan.edge_type == EdgeType.STREAM] = 0
    lag[of_late] = 300_000
    assert retime(plan, replace(costs, lag_ns=lag)) == 5_000


class TestPlan:
    def test_the_first_waits_for_what_is_last(self):
        """Back at the first call lies the host's time behind the last call and before the first: 86 + 10."""
        plan = planned(host_bound())
        back = np.flatnonzero(plan.edge_back)
        columns = (plan.edge_type, plan.edge_source, plan.edge_target, plan.edge_lag_ns)
        assert {tuple(int(column[edge]) for column in columns) for edge in back} == {
            (EdgeType.HOST, 2, 0, 96_000),
            (EdgeType.STREAM, 3, 1, 5_000),
        }
        stretches = plan.stretches
        assert sorted(zip(stretches.since_ns.tolist(), stretches.until_ns.tolist(), strict=True)) == [
            (0, 10_000),
            (14_000, 110_000),
            (114_000, 200_000),
        ]

    def test_a_wait_for_the_step_before(self):
        """
        Each step launches, then waits for the op of the step before, of 95 from 20 on:

        host    |0 2L6  6- wait -20        |100 102L106 106- wait -120 ...
        device            20------ a -----------------115 120 ...

        Steps 2 and 3 are planned: the wait of step 2, for the op of step 1, is for that of step 3 in the next round.
        """
        trace = markers(0, 100, 200, 300, end=400)
        for at in (0, 100, 200, 300):
            trace.launch(at=at + 2, dur=4).kernel("a", at=at + 20, dur=95)
            trace.call("cudaEventSynchronize", at=at + 6, dur=14)
        view = view_of(trace)
        audit = audit_of(view)
        items = tuple(replace(item, left_out="odd" if item.index < 2 else None) for item in audit.steps.items)
        plan = plan_of(timeline_of(view), replace(audit, steps=replace(audit.steps, items=items)))
        (edge,) = np.flatnonzero(plan.edge_back & (plan.edge_type == EdgeType.SYNC))
        ops = np.flatnonzero(plan.node_type == NodeType.OP)
        waits = np.flatnonzero(plan.node_type == NodeType.SYNC)
        assert (plan.edge_source[edge], plan.edge_target[edge]) == (ops[-1], waits[0])
        assert retime(plan, recorded_costs(plan)) == 100_000

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
        monkeypatch.setattr("traceaudit.model.plan.MAX_NODES", most)
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
