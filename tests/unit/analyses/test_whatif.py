"""What a change would buy. Times in µs.

Host-bound, two steps of 100, the chain of the host is 10 + 4 + 96 + 4 + 86:

    host    |0   10 L 14          |100  110 L 114         |200
    device          20 a 40              120 b 140

Device-bound, three steps launched ahead; windows [0, 65), [65, 125), [125, 185), 61.67 a step:

    host    |0 2L3 |10 12L13 |20 22L23 |30
    device    5----- a -----65----- b -----125----- c -----185
"""

import re

import numpy as np
import pytest
from builders import TraceBuilder
from views import audit_of, view_of

from traceaudit.analyses.whatif import GRAPH_LAUNCH_NS, GRAPH_NODE_NS, gains_of, predict
from traceaudit.errors import MissingDataError, UsageError
from traceaudit.model.options import Speedup, WhatIfOptions

HIDDEN = "part of it is hidden behind the host"
MORE = "removes time of the host or gaps as well"


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


def whatif(trace, *speedups, wall_us=None, ranked=None, **changes):
    """Predict with speed-ups such as ``("a|b", 2)``."""
    view = view_of(trace)
    options = WhatIfOptions(
        speedups=tuple(Speedup(f"{text}={factor}", re.compile(text), factor) for text, factor in speedups), **changes
    )
    more = {} if ranked is None else {"ranked": ranked}
    return predict(view, audit_of(view, wall_us=wall_us), options, **more)


def test_without_a_change_the_step_is_the_baseline():
    for trace in (host_bound(), device_bound()):
        found = whatif(trace)
        assert found.baseline_ns == found.predicted_ns == found.low_ns == found.high_ns == found.naive_ns
        assert (found.changed_op_time_ns, found.matched) == (0, {})


def test_a_change_of_some_ops_leaves_the_others_of_the_name():
    """Of a twice 60 on the device, the second alone takes half as long: 30 of 185 go, 10 a step."""
    trace = markers(0, 10, 20, end=30)
    for i, name in enumerate("aab"):
        trace.launch(at=10 * i + 2, dur=1).kernel(name, at=5 + 60 * i, dur=60)
    view = view_of(trace)
    change = Speedup("a", re.compile("a"), 2.0, (1,))
    found = predict(view, audit_of(view), WhatIfOptions(speedups=(change,)))
    assert (found.matched, found.changed_op_time_ns) == ({"a": 1}, pytest.approx(10_000))
    assert found.predicted_ns == pytest.approx((185_000 - 30_000) / 3)


class TestHostBound:
    def test_removing_a_kernel_buys_nothing(self):
        """b takes 20 of 200: the naive bound says 90 a step, but the host takes 100 whatever the device does."""
        found = whatif(host_bound(), ("b", float("inf")))
        assert (found.baseline_ns, found.predicted_ns, found.naive_ns) == (100_000, 100_000, 90_000)
        assert (found.changed_op_time_ns, found.matched, found.steps) == (10_000, {"b=inf": 1}, 2)
        assert found.bound_by == "host"
        assert found.busy_share_frac == 0.2
        assert any(HIDDEN in reason for reason in found.reasons)
        assert any("no wall given" in reason for reason in found.reasons)

    def test_no_kernel_gains(self):
        gains = whatif(host_bound()).kernels
        assert sorted((gain.name, gain.op_time_ns, gain.save_ns, gain.naive_save_ns) for gain in gains) == [
            ("a", 10_000, 0, 10_000),
            ("b", 10_000, 0, 10_000),
        ]

    @pytest.mark.parametrize(("at", "dur"), [(50, 40), (0, 8), (150, 30)])
    def test_removing_host_work_buys_its_time(self, at, dur):
        """Between the calls, before the first, behind the last."""
        trace = host_bound()
        trace.annotation("schedule", at=at, dur=dur)
        found = whatif(trace, ("schedule", float("inf")))
        assert found.predicted_ns == 100_000 - dur * 500
        assert found.naive_ns == 100_000
        assert any(MORE in reason for reason in found.reasons)

    def test_half_the_host_work_buys_half(self):
        trace = host_bound()
        trace.python("sched.py(1): schedule", at=50, dur=40)
        assert whatif(trace, ("schedule", 2)).predicted_ns == 90_000

    def test_slower_host_work_costs(self):
        """Factor 0.5 doubles the 40."""
        trace = host_bound()
        trace.annotation("schedule", at=50, dur=40)
        assert whatif(trace, ("schedule", 0.5)).predicted_ns == 120_000

    def test_a_frame_around_a_call_saves_the_call_too(self):
        """[9, 15) holds 1 of the 10 before the call, its 4, and 1 behind it: 6 of 200."""
        trace = host_bound()
        trace.python("a.py(1): f", at=9, dur=6)
        assert whatif(trace, ("a.py", float("inf"))).predicted_ns == 97_000

    def test_calls_and_framework_ops_are_no_work_that_can_be_named(self):
        trace = host_bound()
        trace.op("schedule", at=50, dur=40)
        with pytest.raises(UsageError, match="nothing in the steps matches 'schedule'"):
            whatif(trace, ("schedule", 2))
        with pytest.raises(UsageError):
            whatif(trace, ("cudaLaunchKernel", 2))

    def test_rows_outside_the_steps_do_not_match(self):
        trace = host_bound()
        trace.annotation("schedule", at=200, dur=40)
        with pytest.raises(UsageError):
            whatif(trace, ("schedule", 2))

    def test_a_slower_kernel_costs_what_shows(self):
        """b takes five times as long, [120, 220), and hides behind the host of the next step, which launches at 210.

        Ten times, it takes 200, and with a and two hand-overs of 5 the device has 230 for two steps. The naive bound
        says 140 and 190.
        """
        found = whatif(host_bound(), ("b", 0.2))
        assert (found.predicted_ns, found.naive_ns) == (100_000, 140_000)
        found = whatif(host_bound(), ("b", 0.1))
        assert (found.predicted_ns, found.naive_ns) == (115_000, 190_000)

    def test_as_a_graph(self):
        """A call of 4 in each step stays: a graph launch of 10 would be slower. Of 15 it becomes one of 10."""
        assert GRAPH_LAUNCH_NS == 10_000
        assert whatif(host_bound(), graph_replay=True).predicted_ns == 100_000
        trace = markers(0, 100, end=200)
        for at in (0, 100):
            trace.launch(at=at + 10, dur=15).kernel("a", at=at + 30, dur=20)
        found = whatif(trace, graph_replay=True)
        assert found.predicted_ns == 95_000
        assert found.bound_by == "host"

    def test_a_replay_hides_the_host_behind_the_one_before(self):
        """Each step: 50 of host, two launches, a 40, b 40 behind it by 2; b hides behind the next step's 50.

        As graphs: 50 + 10 + 16 of host, 40 + 0.5 + 40 of ops and 2 from one replay to the next. The 50 before the first
        replay fill an empty queue, which no later step does; 76 are over nine tenths of 82.5.
        """
        assert GRAPH_NODE_NS == 500
        trace = markers(0, 100, end=200)
        for at in (0, 100):
            trace.launch(at=at + 50, dur=4).kernel("a", at=at + 56, dur=40)
            trace.launch(at=at + 80, dur=4).kernel("b", at=at + 98, dur=40)
        found = whatif(trace, wall_us=100, graph_replay=True)
        assert found.predicted_ns == pytest.approx(82_500, rel=1e-3)
        assert found.bound_by == "both"

    @pytest.mark.parametrize("wall_us", [None, 60, 100])
    def test_without_gaps_the_ops_remain(self, wall_us):
        """And nothing else, however late an op began: b waited 5 longer than a for its delivery."""
        trace = markers(0, 100, end=200)
        trace.launch(at=10, dur=4).kernel("a", at=20, dur=20)
        trace.launch(at=110, dur=4).kernel("b", at=130, dur=20)
        found = whatif(trace, remove_gaps=True, wall_us=wall_us)
        assert (found.predicted_ns, found.low_ns, found.high_ns) == (20_000, 20_000, 20_000)
        assert found.bound_by == "device"

    def test_time_outside_the_trace_is_no_gap(self):
        """Wall 120: 20 of it are not in the trace, half of the 40 that remain. Wall 1000: nearly all."""
        found = whatif(host_bound(), remove_gaps=True, wall_us=120)
        assert found.predicted_ns == 40_000
        assert "20 µs a step of the wall are not in the trace and stay" in found.reasons
        found = whatif(host_bound(), remove_gaps=True, wall_us=1000)
        assert (found.predicted_ns, found.bound_by) == (920_000, "outside")

    def test_overlapping_changes_of_the_host_multiply(self):
        """[40, 90) twice as fast, [50, 90) of it twice again: 5 + 10 of 50 are left, 17.5 a step saved."""
        trace = host_bound()
        trace.annotation("outer", at=40, dur=50)
        trace.annotation("inner", at=50, dur=40)
        assert whatif(trace, ("outer", 2), ("inner", 2)).predicted_ns == 82_500
        assert whatif(trace, ("inner", 2), ("outer", 2)).predicted_ns == 82_500

    def test_a_kernel_can_go_with_its_launch(self):
        """a: its op [8, 18) launches nothing else, 10 of two steps. b: its call of 4. The layer launches both."""
        trace = host_bound()
        trace.op("layer", at=5, dur=120)
        trace.op("aten::a", at=8, dur=10)
        gains = whatif(trace).kernels
        assert [(gain.name, gain.save_ns, gain.save_with_launch_ns) for gain in gains] == [
            ("a", 0, 5_000),
            ("b", 0, 2_000),
        ]

    def test_of_a_graph_only_the_kernel_goes(self):
        trace = markers(0, 100, end=200)
        for at in (0, 100):
            trace.graph_launch(at=at + 10, dur=4).kernel("a", at=at + 20, dur=20).kernel("b", at=at + 41, dur=20)
        assert [gain.save_with_launch_ns for gain in whatif(trace).kernels] == [0, 0]


class TestNoise:
    def test_a_wall_just_shorter_than_busy(self):
        """Busy 60 a step, wall 59.5: busy is the baseline, and twice as fast ops take no less than half of it."""
        found = whatif(device_bound(), wall_us=59.5)
        assert found.baseline_ns == found.predicted_ns == pytest.approx(60_000)
        assert found.busy_share_frac == 1
        assert "the wall is shorter than busy by the noise between two runs: busy is the baseline" in found.reasons
        half = whatif(device_bound(), ("a|b|c", 2), wall_us=59.5)
        assert half.low_ns >= 30_000
        assert half.predicted_ns == pytest.approx(30_000)


class TestQueues:
    def test_what_hides_behind_another_queue(self):
        """The copy [20, 100) beside a kernel [20, 100): twice as fast it gains nothing, and not for the host."""
        trace = markers(0, 10, 20, end=30)
        for i in range(3):
            trace.launch(at=10 * i + 1, dur=1).kernel("k", at=20 + 80 * i, dur=80)
            trace.launch(at=10 * i + 3, dur=1).kernel("copy", at=20 + 80 * i, dur=80, stream=8)
        found = whatif(trace, ("copy", 2))
        assert found.bound_by == "device"
        assert any("hidden behind other ops of the device" in reason for reason in found.reasons)

    def test_ops_of_several_queues_may_overlap_more_without_gaps(self):
        """One after the other, [20, 60) and [60, 100), for no recorded reason: 40 are left of 80."""
        trace = markers(0, end=100)
        trace.launch(at=1, dur=1).kernel("a", at=20, dur=40)
        trace.launch(at=3, dur=1).kernel("b", at=60, dur=40, stream=8)
        found = whatif(trace, remove_gaps=True)
        assert found.predicted_ns == 40_000
        assert any("shorter than the 80 µs in which ops ran" in reason for reason in found.reasons)


class TestDeviceBound:
    def test_faster_kernels_buy_their_time(self):
        """All twice as fast: c ends at 95."""
        found = whatif(device_bound(), ("a|b|c", 2))
        assert found.baseline_ns == pytest.approx(185_000 / 3)
        assert found.predicted_ns == pytest.approx(95_000 / 3)
        assert found.naive_ns == pytest.approx(95_000 / 3)
        assert found.matched == {"a|b|c=2": 3}
        assert found.bound_by == "device"
        assert not any(HIDDEN in reason or MORE in reason for reason in found.reasons)

    def test_gains_are_ranked_by_what_they_save(self):
        """Each is 60 of three steps. In a host-bound step they are ranked by what goes with their launches."""
        gains = {gain.name: gain.save_ns for gain in whatif(device_bound()).kernels}
        assert gains == pytest.approx({"a": 20_000, "b": 20_000, "c": 20_000})

    def test_groups_of_ops_have_gains_too(self):
        """Each is 60 of three steps, and the host is ahead: without a and b, 120 of 180 are gone."""
        trace = view_of(device_bound())
        rows = [np.array([0, 1]), np.array([2])]
        assert gains_of(trace, audit_of(device_bound()), rows) == pytest.approx([40_000, 20_000])
        assert gains_of(trace, audit_of(device_bound()), rows, ranked=1) == [pytest.approx(40_000), None]

    def test_as_many_gains_as_asked_for(self):
        assert len(whatif(device_bound(), ranked=1).kernels) == 1

    def test_several_changes_multiply(self):
        """a: 2 x 3 times as fast, 10; b and c twice, 30 each: 5 + 10, b at its launch's 15, then 30 + 30."""
        found = whatif(device_bound(), ("a|b|c", 2), ("a", 3))
        assert found.predicted_ns == pytest.approx(75_000 / 3)
        assert found.matched == {"a|b|c=2": 3, "a=3": 1}

    def test_neither_side_alone(self):
        """Two steps of 100: each launches [10, 14), runs [20, 60) and waits until 62; then the host has 38.

        Without the host's time between calls the device takes much less than the step; so does the host without ops.
        """
        trace = markers(0, 100, end=200)
        for at in (0, 100):
            trace.launch(at=at + 10, dur=4).kernel("a", at=at + 20, dur=40)
            trace.call("cudaStreamSynchronize", at=at + 15, dur=47)
        assert whatif(trace).bound_by == "neither"

    def test_both_sides_alone(self):
        """The host takes 100 a step, a kernel of 90 and its hand-over of 5 take 95."""
        trace = markers(0, 100, end=200)
        for at in (0, 100):
            trace.launch(at=at + 2, dur=4).kernel("a", at=at + 8, dur=90)
        assert whatif(trace).bound_by == "both"

    def test_without_gaps_dependent_launches_still_overlap(self):
        """a [5, 65), b [60, 120) on one queue, launched ahead: the device is busy for 115."""
        trace = markers(0, end=120)
        trace.launch(at=1, dur=1).kernel("a", at=5, dur=60)
        trace.launch(at=3, dur=1).kernel("b", at=60, dur=60)
        assert whatif(trace, remove_gaps=True).predicted_ns == 115_000


class TestWall:
    def test_the_baseline_is_the_wall(self):
        found = whatif(host_bound(), wall_us=60)
        assert found.baseline_ns == 60_000
        for step in (found.predicted_ns, found.low_ns, found.high_ns):
            assert step == pytest.approx(60_000, rel=1e-6)
        assert found.busy_share_frac == pytest.approx(1 / 3)
        assert any("full speed" in reason for reason in found.reasons)

    def test_models_of_the_profilers_cost_give_a_range(self):
        """Scheduling takes 40 of 200 profiled, at full speed 120. What goes is what it takes at full speed.

        Shrunk by one factor it takes 24, 12 a step. By row: the calls lose 4 each, the other 72 are three rows (two
        markers, the annotation) of 24: scheduling takes 16, 8 a step. No row costs so much to record.
        """
        trace = host_bound()
        trace.annotation("schedule", at=50, dur=40)
        found = whatif(trace, ("schedule", float("inf")), wall_us=60)
        assert found.low_ns == pytest.approx(48_000, rel=1e-3)
        assert found.predicted_ns == found.high_ns == pytest.approx(52_000, rel=1e-3)
        assert any("24.0 µs, more than recording can cost" in reason for reason in found.reasons)

    @pytest.mark.parametrize("wall_us", [40, 60, 80, 100])
    @pytest.mark.parametrize("factor", [2, 4, 0.5])
    def test_a_host_faster_by_a_factor_saves_no_more_than_that(self, wall_us, factor):
        """The markers hold all of the host's time, in steps that the host bounds: Amdahl's law with a share of 1."""
        trace = markers(0, 100, end=200)
        trace.launch(at=10, dur=4).kernel("a", at=20, dur=1)
        trace.launch(at=110, dur=4).kernel("b", at=120, dur=1)
        found = whatif(trace, ("ProfilerStep", factor), wall_us=wall_us)
        for step in (found.predicted_ns, found.low_ns, found.high_ns):
            assert step == pytest.approx(wall_us * 1000 / factor, rel=1e-3)

    def test_what_the_trace_does_not_contain_stays(self):
        """Wall 120: 20 a step are not in the trace."""
        found = whatif(device_bound(), ("a|b|c", 2), wall_us=120)
        rest = 120_000 - 185_000 / 3
        assert found.predicted_ns == pytest.approx(95_000 / 3 + rest)
        assert (found.low_ns, found.high_ns) == (found.predicted_ns, found.predicted_ns)
        assert any("not in the trace" in reason for reason in found.reasons)

    def test_host_bound_at_any_speed_a_kernel_buys_nothing(self):
        found = whatif(host_bound(), ("b", float("inf")), wall_us=80)
        assert found.predicted_ns == pytest.approx(80_000, rel=1e-3)
        assert found.naive_ns == 70_000


def test_no_step_to_re_time():
    trace = markers(0, end=100)
    trace.orphan().kernel("a", at=10, dur=5)
    with pytest.raises(MissingDataError, match="no step to re-time"):
        whatif(trace)


def test_a_step_of_no_time_has_no_busy_share():
    """Step 0's kernel ends at 500, behind all markers: step 1 is used alone and has no window."""
    trace = markers(0, 10, 20, end=30)
    trace.launch(at=1, dur=1).kernel("a", at=2, dur=498)
    trace.call("cudaStreamSynchronize", at=11, dur=1)
    view = view_of(trace)
    found = predict(view, audit_of(view, step=1), WhatIfOptions())
    assert (found.baseline_ns, found.busy_share_frac) == (0, 0)
