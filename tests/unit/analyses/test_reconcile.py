"""The ledger of a device. Times in µs; the first row of each trace is at 0.

The standard step: markers [0, 100) and [100, 200) and so on, in each a launch [10, 14), its kernel [20, 50).

    0 ... 10 host, 10 ... 14 launch call, 14 ... 20 delivery, 20 ... 50 compute, 50 ... 100 host
"""

import re
from dataclasses import replace

import pytest
from builders import TraceBuilder
from views import audit_of, trace_of, view_of

from traceaudit.analyses.reconcile import LARGEST_FRAMES
from traceaudit.model.options import StepOptions
from traceaudit.model.results import (
    Accounts,
    IdleLatency,
    IdlePosition,
    StepKind,
    StepSource,
)


def us(accounts):
    """Return a frozen set of sums in µs, without the parts that are 0."""
    return {name: value / 1000 for name in accounts.__dataclass_fields__ if (value := getattr(accounts, name))}


def standard(steps=3, *, marker="ProfilerStep#{}", length=100):
    trace = TraceBuilder()
    for i in range(steps):
        at = 100 * i
        trace.annotation(marker.format(i), at=at, dur=length)
        trace.launch(at=at + 10, dur=4).kernel("gemm", at=at + 20, dur=30)
    return trace


def used(audit):
    return [item.used for item in audit.steps.items]


class TestLedger:
    def test_three_steps(self):
        """A gap from 50 to 120 in the time line ends with a launch at 110: 60 host, of which 50 trail and 10 lead."""
        audit = audit_of(standard(3))
        ledger = audit.ledger
        assert (ledger.steps, ledger.window_ns, ledger.wall_ns) == (3, 300_000, None)
        assert us(ledger.accounts) == {"compute": 90, "idle_host": 180, "idle_latency": 30}
        assert us(ledger.idle_latency_by) == {"launch_call": 12, "delivery": 18}
        assert us(ledger.idle_by_position) == {"leading": 60, "trailing": 150}
        assert ledger.host_cost_ns == 192_000
        assert audit.steps.source is StepSource.PROFILER_STEP

    def test_each_step(self):
        first, second, _ = audit_of(standard(3)).steps.items
        assert (second.index, second.name, second.start_ns, second.window_ns) == (1, "ProfilerStep#1", 100_000, 100_000)
        assert (second.device_ops, second.op_time_ns, second.own_busy_ns) == (1, 30_000, 30_000)
        assert (second.kind, second.batch, second.tokens) == (StepKind.UNKNOWN, None, None)
        assert first.accounts == second.accounts
        assert us(first.accounts) == {"compute": 30, "idle_host": 60, "idle_latency": 10}

    def test_own_busy_is_the_union_of_a_steps_own_ops(self):
        """A second kernel [40, 60) overlaps the first by 10: op time 50, own busy 40."""
        trace = standard(1)
        trace.launch(at=15, dur=4).kernel("other", at=40, dur=20, stream=8)
        (item,) = audit_of(trace).steps.items
        assert (item.device_ops, item.op_time_ns, item.own_busy_ns) == (2, 50_000, 40_000)

    def test_markers_tell_kind_batch_and_tokens(self):
        item = audit_of(standard(2, marker="step[decode bs=4{}]")).steps.items[1]
        assert (item.kind, item.batch, item.tokens) == (StepKind.DECODE, 41, 41)

    def test_work_of_others_counts_in_the_window_it_ran_in(self):
        """An op without launch row [60, 70) in step 0 is no step's own, but compute in its window."""
        trace = standard(3)
        trace.orphan().kernel("orphan", at=60, dur=10)
        audit = audit_of(trace)
        assert audit.steps.items[0].device_ops == 1
        assert us(audit.steps.items[0].accounts)["compute"] == 40
        assert us(audit.ledger.accounts)["idle_unknown"] == 10

    def test_the_mean_step(self):
        step = audit_of(standard(3)).step
        assert (step.window_ns, step.busy_ns, step.idle_ns) == (100_000, 30_000, 70_000)
        assert (step.wall_ns, step.wall_source, step.residual_ns, step.dilation, step.full_speed_idle_ns) == (None,) * 5


class TestWall:
    def test_a_longer_wall_leaves_a_residual(self):
        audit = audit_of(standard(3), wall_us=130)
        assert (audit.ledger.wall_ns, audit.ledger.residual_ns) == (390_000, 90_000)
        step = audit.step
        assert (step.wall_ns, step.wall_source, step.residual_ns) == (130_000, "--wall-ms", 30_000)
        assert (step.dilation, step.full_speed_idle_ns) == (None, 100_000)

    def test_a_shorter_wall_is_dilation(self):
        step = audit_of(standard(3), wall_us=80).step
        assert (step.residual_ns, step.dilation, step.full_speed_idle_ns) == (-20_000, 1.25, 50_000)

    def test_a_wall_below_busy_is_never_clamped(self):
        step = audit_of(standard(3), wall_us=20).step
        assert (step.residual_ns, step.busy_ns, step.full_speed_idle_ns) == (-80_000, 30_000, None)

    def test_a_wall_of_the_window_is_neither(self):
        step = audit_of(standard(3), wall_us=100).step
        assert (step.residual_ns, step.dilation) == (0, None)


class TestDividedTrace:
    def test_one_item_and_many_steps(self):
        """From the first launch at 10 to the last op's end at 250: 240, divided by 3."""
        audit = audit_of(standard(3), steps=StepOptions(divide_by=3), wall_us=90)
        assert (audit.ledger.steps, len(audit.steps.items), audit.steps.used) == (3, 1, 1)
        assert audit.ledger.window_ns == 240_000
        assert audit.step.window_ns == 80_000
        assert audit.ledger.wall_ns == 270_000


class TestLeftOut:
    def reasons(self, trace, **options):
        return [item.left_out for item in audit_of(trace, **options).steps.items]

    def test_steps_that_are_alike_are_all_used(self):
        assert self.reasons(standard(3)) == [None] * 3

    def test_a_last_step_without_end_marker(self):
        """Markers of 50 in steps of 100 do not touch: where the last step ends is not recorded."""
        *reasons, last = self.reasons(standard(4, marker="step[decode bs={}]", length=50))
        assert reasons == [None] * 3
        assert "end marker" in last

    def test_a_single_step_is_used_whatever_it_is(self):
        assert self.reasons(standard(1, marker="step[decode bs={}]", length=50)) == [None]

    @pytest.mark.parametrize(("which", "expected"), [(0, [False, True, True, True]), (3, [True, True, True, False])])
    def test_an_end_step_with_another_number_of_ops(self, which, expected):
        trace = standard(4)
        trace.launch(at=100 * which + 16, dur=1).kernel("extra", at=100 * which + 40, dur=5, stream=8)
        assert used(audit_of(trace)) == expected

    def test_a_middle_step_stays_whatever_it_holds(self):
        trace = standard(3)
        trace.launch(at=116, dur=1).kernel("extra", at=140, dur=5, stream=8)
        assert used(audit_of(trace))[1]

    @pytest.mark.parametrize(("end", "expected"), [(310, True), (311, False), (290, True), (289, False)])
    def test_a_last_step_off_by_more_than_a_tenth(self, end, expected):
        """Windows of 100, 100 and `end` - 200; the median of the others is 100. The last marker is the last row."""
        trace = TraceBuilder()
        for i, stop in enumerate((100, 200, end)):
            trace.annotation(f"ProfilerStep#{i}", at=100 * i, dur=stop - 100 * i)
            trace.launch(at=100 * i + 10, dur=4).kernel("gemm", at=100 * i + 20, dur=30)
        assert used(audit_of(trace))[2] is expected

    def test_two_steps_have_no_usual_one(self):
        trace = standard(2)
        trace.launch(at=16, dur=1).kernel("extra", at=40, dur=5, stream=8)
        assert used(audit_of(trace)) == [True, True]

    def test_windows_without_length_are_no_measure(self):
        """Step 0's kernel ends at 500, behind all markers: the others' windows are empty, each with its own copy."""
        trace = TraceBuilder()
        for i in range(4):
            trace.annotation(f"ProfilerStep#{i}", at=10 * i, dur=10)
            if i:
                trace.launch(at=10 * i + 1, dur=1).memcpy("copy", at=10 * i + 2, dur=1, stream=9)
        trace.launch(at=1, dur=1).kernel("gemm", at=2, dur=498)
        audit = audit_of(trace)
        assert [item.window_ns for item in audit.steps.items] == [500_000, 0, 0, 0]
        assert used(audit) == [False, True, True, True]
        assert audit.step.window_ns == 0

    def test_the_step_asked_for_and_no_other(self):
        audit = audit_of(standard(3), step=2)
        assert used(audit) == [False, False, True]
        assert (audit.ledger.steps, audit.ledger.window_ns) == (1, 100_000)


class TestPausedCapture:
    """A file may hold several captures; what lies between them was not recorded."""

    def paused(self, trace, *pauses):
        """Return the ledger of a trace with captures [0, a), [b, c), ... in µs, given as their pauses."""
        view = view_of(trace)
        starts = [0, *(until for _, until in pauses)]
        ends = [*(start for start, _ in pauses), 10_000]
        captures = tuple((a * 1000, b * 1000) for a, b in zip(starts, ends, strict=True))
        source = replace(view.trace.source, captures_ns=captures)
        return audit_of(replace(view, trace=replace(view.trace, source=source)))

    def test_a_step_in_which_the_capture_paused_is_left_out(self):
        audit = self.paused(standard(4), (160, 180))
        assert used(audit) == [True, False, True, True]

    def test_between_steps_it_harms_none(self):
        assert used(self.paused(standard(4), (200, 200))) == [True] * 4

    def test_a_trace_of_one_step_has_nothing_else_to_show(self):
        assert used(self.paused(standard(1), (60, 80))) == [True]

    def test_when_all_others_are_cut_the_last_counts(self):
        """Two steps: the first holds the pause, the last has no end marker."""
        audit = self.paused(standard(2, marker="step[decode bs={}]", length=50), (60, 80))
        assert used(audit) == [False, True]

    def test_when_every_step_holds_a_pause_all_count(self):
        audit = self.paused(standard(2), (60, 80), (160, 180))
        assert used(audit) == [True, True]


class TestHostTimes:
    def test_unions_over_all_threads_clipped_to_the_windows(self):
        """Launch calls 3 x 4; one of thread 2 [12, 20) overlaps the first: 4 + 6 more; one before the steps."""
        trace = TraceBuilder()
        for i in range(3):
            trace.annotation(f"ProfilerStep#{i}", at=100 * i + 50, dur=100)
            trace.launch(at=100 * i + 60, dur=4).kernel("gemm", at=100 * i + 70, dur=30)
        trace.call("cudaLaunchKernel", at=62, dur=8, thread=2)
        trace.call("cudaLaunchKernel", at=0, dur=55, thread=2)
        assert audit_of(trace).host.launch_api_ns == (5 + 10 + 4 + 4) * 1000

    def test_waits_and_the_host_time_they_leave_behind(self):
        """A sync [30, 55) outlasts the kernel at 50: the gap [50, 110) began while it blocked: 60 of idle_host."""
        trace = standard(2)
        trace.call("cudaStreamSynchronize", at=30, dur=25)
        host = audit_of(trace).host
        assert (host.sync_ns, host.idle_host_after_sync_ns) == (25_000, 60_000)

    def test_calls_that_block_are_no_launches(self):
        """cudaMemcpy both enqueues and waits."""
        trace = standard(1)
        trace.call("cudaMemcpy", at=60, dur=20)
        host = audit_of(trace).host
        assert (host.launch_api_ns, host.sync_ns) == (4_000, 20_000)

    def test_scheduling_by_annotation_and_frame(self):
        """schedule [0, 8) in idle; a frame [45, 60) of which 10 lie in idle; nested rows count once."""
        frame = "vllm/v1/core/sched/scheduler.py(221): schedule"
        trace = standard(1)
        trace.annotation("schedule", at=0, dur=8)
        trace.python(frame, at=45, dur=15)
        trace.annotation("schedule", at=50, dur=5)
        host = audit_of(trace).host
        assert (host.scheduler_ns, host.scheduler_exposed_ns) == (23_000, 18_000)
        assert host.scheduler_names == {"schedule": 13_000, frame: 15_000}

    def test_names_of_the_users_choice(self):
        trace = standard(1)
        trace.annotation("pick requests", at=0, dur=8)
        assert audit_of(trace).host.scheduler_ns == 0
        host = audit_of(trace, scheduler=re.compile("^pick")).host
        assert (host.scheduler_ns, host.scheduler_names) == (8_000, {"pick requests": 8_000})

    def test_rows_outside_the_used_steps_do_not_count(self):
        trace = standard(3)
        trace.annotation("schedule", at=0, dur=8)
        assert audit_of(trace, step=1).host.scheduler_ns == 0

    def test_rows_of_other_ranks_do_not_count(self):
        trace = trace_of(standard(1))
        calls = trace.threads.replace(rank=trace.threads.rank + 1)
        host = audit_of(view_of(replace(trace, threads=calls))).host
        assert (host.launch_api_ns, host.sync_ns) == (0, 0)


class TestResolution:
    def test_exact_times_have_no_error(self):
        assert audit_of(standard(3)).resolution_error_ns == 0

    def test_whole_microseconds_bound_the_error_by_the_ops_of_a_step(self):
        """Steps 0 and 1 hold one op each, step 2 three: 5 ops in 3 steps, and 1 000 ns a row."""
        trace = standard(3)
        trace.launch(at=216, dur=1).kernel("a", at=230, dur=5, stream=8).kernel("b", at=240, dur=5, stream=8)
        view = view_of(trace)
        coarse = replace(view, trace=replace(view.trace, source=replace(view.trace.source, time_resolution_ns=1000)))
        assert audit_of(coarse, step=2).resolution_error_ns == 3_000
        assert audit_of(coarse).resolution_error_ns == 1_000


def test_accounts_of_every_kind_in_one_step():
    """
    0-10 host; call [10, 12); delivery to 15; compute [15, 25) with a copy [20, 30) behind it; comm [30, 40);
    graph call [38, 45): gap [40, 50) is call to 45, delivery to 50; nodes [50, 55) and [58, 60), graph 3 between;
    orphan [70, 75): unknown 10; then host to 100.
    """
    trace = TraceBuilder()
    trace.annotation("ProfilerStep#0", at=0, dur=100)
    trace.launch(at=10, dur=2).kernel("gemm", at=15, dur=10)
    trace.launch("cudaMemcpyAsync", at=13, dur=1).memcpy(at=20, dur=10, stream=9)
    trace.launch(at=16, dur=2).kernel("ncclDevKernel_AllReduce", at=30, dur=10, stream=20)
    trace.graph_launch(at=38, dur=7).kernel("a", at=50, dur=5).kernel("b", at=58, dur=2)
    trace.orphan().kernel("orphan", at=70, dur=5)
    ledger = audit_of(trace).ledger
    assert ledger.accounts == Accounts(
        compute=10_000 + 5_000 + 2_000 + 5_000,
        exposed_comm=10_000,
        exposed_copy=5_000,
        idle_graph=3_000,
        idle_latency=5_000 + 10_000,
        idle_host=10_000 + 25_000,
        idle_unknown=10_000,
    )
    assert ledger.idle_latency_by == IdleLatency(launch_call=2_000 + 5_000, delivery=3_000 + 5_000)
    assert ledger.idle_by_position == IdlePosition(leading=15_000, between=10_000 + 3_000 + 10_000, trailing=25_000)


def test_as_many_frames_are_named_as_promised():
    assert LARGEST_FRAMES == 20
