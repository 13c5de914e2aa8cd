"""Why the device waited. Times in µs; the first row of each trace is at 0."""

import pytest
from builders import TraceBuilder
from views import audit_of, view_of

from traceaudit.analyses.gaps import CAUSES, find_gaps
from traceaudit.model.options import StepOptions
from traceaudit.model.results.gaps import Limit, OtherThread

SCHEDULE = "vllm/v1/core/sched/scheduler.py(221): schedule"


def gaps_of(trace, **more):
    view = view_of(trace)
    return find_gaps(view, audit_of(view), StepOptions(), **more)


def row(report, position, before, after):
    """Return the row of one kind of gap."""
    (found,) = [one for one in report.gaps if (one.position, one.before, one.after) == (position, before, after)]
    return found


def causes(found):
    return {name: time / 1000 for name, time in found.causes.items()}


def standard(steps=3):
    """Return steps of 100: launch [10, 14), kernel [20, 50)."""
    trace = TraceBuilder()
    for i in range(steps):
        trace.annotation(f"ProfilerStep#{i}", at=100 * i, dur=100)
        trace.launch(at=100 * i + 10, dur=4).kernel("gemm", at=100 * i + 20, dur=30)
    return trace


def one_step(length=100):
    trace = TraceBuilder()
    trace.annotation("ProfilerStep#0", at=0, dur=length)
    return trace


class TestFolding:
    def test_equal_gaps_of_all_steps_are_one_row(self):
        """
        leads   20 + 20 + 20 before the first gemm of each step, whatever another step ran before
        trails  50 + 50 + 50 after the last gemm of each step
        """
        report = gaps_of(standard())
        assert (report.steps_used, report.window_ns, report.idle_ns) == (3, 300_000, 210_000)
        assert [(one.position, one.before, one.after, one.count, one.total_ns // 1000) for one in report.gaps] == [
            ("trailing", "gemm", None, 3, 150),
            ("leading", None, "gemm", 3, 60),
        ]

    def test_what_a_row_says(self):
        """Gaps of 20: 10 host, then the call of 4 and 6 of delivery."""
        found = row(gaps_of(standard()), "leading", None, "gemm")
        assert found.per_step_ns == 20_000
        assert (found.median_ns, found.p90_ns, found.max_ns) == (20_000, 20_000, 20_000)
        assert (found.host_ns, found.latency_ns, found.graph_ns, found.unknown_ns) == (30_000, 30_000, 0, 0)
        assert causes(found) == {"unrecorded": 30, "delivery": 18, "launch_call": 12}
        assert found.cause == "unrecorded"
        assert found.where is None

    def test_median_and_ninth_decile_of_single_gaps(self):
        """Eleven gaps between a and a of 1, 2 ... 10 and 100: the median is 6, nine tenths reach to 10."""
        trace = one_step(2000)
        at = 0
        for gap in [*range(1, 11), 100, 0]:
            trace.launch(at=at, dur=1).kernel("a", at=at + 2, dur=10)
            at += 10 + gap
        found = row(gaps_of(trace), "between", "a", "a")
        assert (found.count, found.median_ns, found.p90_ns, found.max_ns) == (11, 6_000, 10_000, 100_000)

    def test_a_gap_across_steps_counts_in_each(self):
        """A gap of 70 is 50 of one step and 20 of the next: two rows, and together all idle time."""
        report = gaps_of(standard(2))
        assert sum(one.total_ns for one in report.gaps) == report.idle_ns == 140_000
        assert sum(one.count for one in report.gaps) == 4

    def test_a_step_that_was_left_out_is_not_there(self):
        trace = standard(4)
        trace.launch(at=16, dur=1).kernel("extra", at=60, dur=5)
        report = gaps_of(trace)
        assert report.steps_used == 3
        assert {one.position for one in report.gaps} == {"leading", "trailing"}, "only step 0 has a gap between its ops"

    def test_no_idle_time_no_row(self):
        trace = one_step(50)
        trace.launch(at=0, dur=1).kernel("gemm", at=0, dur=50)
        report = gaps_of(trace)
        assert (report.gaps, report.idle_ns) == ((), 0)


class TestCauses:
    def between(self, trace, before="a", after="b"):
        return causes(row(gaps_of(trace), "between", before, after))

    def test_what_the_host_did(self):
        """a [0, 10), b launched at 90: scheduling [20, 50), a wait [60, 75), the rest unrecorded."""
        trace = one_step()
        trace.launch(at=0, dur=1).kernel("a", at=0, dur=10)
        trace.python(SCHEDULE, at=20, dur=30)
        trace.call("cudaStreamSynchronize", at=60, dur=15)
        trace.launch(at=90, dur=2).kernel("b", at=95, dur=5)
        assert self.between(trace) == {"unrecorded": 35, "schedule": 30, "sync": 15, "delivery": 3, "launch_call": 2}
        assert row(gaps_of(trace), "between", "a", "b").where == "scheduler.py:schedule; cudaStreamSynchronize"

    def test_at_most_three_places_are_named(self):
        trace = one_step()
        trace.launch(at=0, dur=1).kernel("a", at=0, dur=10)
        for i in range(4):
            trace.annotation(f"part {i}", at=20 + 10 * i, dur=4 + i)
        trace.launch(at=90, dur=2).kernel("b", at=95, dur=5)
        assert row(gaps_of(trace), "between", "a", "b").where == "part 3; part 2; part 1"

    def test_a_compiled_graph_has_one_name_whatever_its_key(self):
        trace = one_step()
        trace.launch(at=0, dur=1).kernel("a", at=0, dur=10)
        trace.annotation("## Call CompiledFxGraph fe4gojamosn6 ##", at=20, dur=30)
        trace.op("## Call CompiledFxGraph fdtnklesum2q ##", at=50, dur=30)
        trace.launch(at=90, dur=2).kernel("b", at=95, dur=5)
        assert self.between(trace) == {"framework": 60, "unrecorded": 20, "delivery": 3, "launch_call": 2}
        assert row(gaps_of(trace), "between", "a", "b").where == "## Call CompiledFxGraph ##"

    def test_turnaround_of_work_that_was_queued(self):
        trace = one_step()
        trace.launch(at=0, dur=1).kernel("a", at=0, dur=10)
        trace.launch(at=2, dur=2).kernel("b", at=13, dur=5)
        assert self.between(trace) == {"turnaround": 3}

    def test_between_two_replays(self):
        """Both graphs were launched before the first ended: nodes of 2 each."""
        trace = one_step()
        trace.graph_launch(at=0, dur=1).kernel("a", at=1, dur=9).kernel("z", at=11, dur=9)
        trace.graph_launch(at=2, dur=2).kernel("b", at=24, dur=5).kernel("c", at=30, dur=5)
        report = gaps_of(trace)
        assert causes(row(report, "between", "z", "b")) == {"between_replays": 4}
        assert causes(row(report, "between", "a", "z")) == {"graph_node": 1}
        assert row(report, "between", "a", "z").graph_ns == 1_000

    def test_from_an_eager_op_to_a_replay_is_no_pause_between_replays(self):
        trace = one_step()
        trace.launch(at=0, dur=1).kernel("a", at=0, dur=10)
        trace.graph_launch(at=2, dur=2).kernel("b", at=24, dur=5).kernel("c", at=30, dur=5)
        assert self.between(trace) == {"turnaround": 14}

    def test_a_recorded_stream_wait(self):
        """b was queued at 2; a wait is recorded from 12 to 17 of the gap [10, 20)."""
        trace = one_step()
        trace.launch(at=0, dur=1).kernel("a", at=0, dur=10)
        trace.launch(at=2, dur=2).kernel("b", at=20, dur=5)
        trace.sync("Stream Wait Event", at=12, dur=5)
        trace.sync("Event Sync", at=17, dur=2)
        assert self.between(trace) == {"stream_wait": 5, "turnaround": 5}

    def test_a_buffer_of_the_profiler_inside_the_call(self):
        """The call [20, 60) takes 30 of it for the profiler's buffer [25, 55)."""
        trace = one_step()
        trace.launch(at=0, dur=1).kernel("a", at=0, dur=10)
        trace.launch(at=20, dur=40).kernel("b", at=65, dur=5)
        trace.overhead(at=25, dur=30)
        assert self.between(trace) == {"profiler_buffer": 30, "unrecorded": 10, "launch_call": 10, "delivery": 5}

    def test_an_op_without_launch_row(self):
        trace = one_step()
        trace.launch(at=0, dur=1).kernel("a", at=0, dur=10)
        trace.orphan().kernel("b", at=13, dur=5)
        found = row(gaps_of(trace), "between", "a", "b")
        assert causes(found) == {"unknown": 3}
        assert found.unknown_ns == 3_000

    def test_every_cause_has_a_name_of_its_own(self):
        assert len(set(CAUSES)) == len(CAUSES)


class TestHostLedger:
    def test_every_instant_of_the_steps(self):
        """Three steps of 100: calls 3 x 4, an op [60, 80) in idle time, a wait [30, 40) under the kernel.

        Each step is idle for 70: 60 before its launch, 4 in the call, and 6 behind it, for which the host does nothing.
        """
        trace = standard()
        trace.op("aten::mm", at=60, dur=20)
        trace.call("cudaStreamSynchronize", at=30, dur=10)
        host = gaps_of(trace).host
        assert (host.thread, host.interval_ns) == ("21878", 300_000)
        shares = {name: (share.total_ns // 1000, share.exposed_ns // 1000) for name, share in host.shares.items()}
        assert {name: share for name, share in shares.items() if share[0]} == {
            "launch_api": (12, 12),
            "framework": (20, 20),
            "sync": (10, 0),
            "unrecorded": (258, 160),
        }

    def test_a_host_that_works_beside_the_gaps_of_a_graph_is_not_exposed(self):
        """Nodes [10, 40) and [50, 90) of one launch, an op [35, 55) over the gap; then the host has the last 10."""
        trace = one_step()
        trace.graph_launch(at=0, dur=4).kernel("a", at=10, dur=30).kernel("b", at=50, dur=40)
        trace.op("aten::mm", at=35, dur=20)
        trace.op("aten::add", at=92, dur=3)
        shares = gaps_of(trace).host.shares
        exposed = {name: share.exposed_ns // 1000 for name, share in shares.items() if share.exposed_ns}
        assert exposed == {"launch_api": 4, "framework": 3, "unrecorded": 7}

    def test_each_gap_counts_for_the_thread_that_ends_it(self):
        """Thread 2 launches once, at 60 for [62, 70): in [50, 62) the device waits for it, whatever thread 1 does."""
        trace = one_step()
        trace.launch(at=0, dur=2).kernel("a", at=0, dur=50)
        trace.launch(at=60, dur=2, thread=2).kernel("b", at=62, dur=8)
        trace.op("aten::mm", at=40, dur=40)
        trace.launch(at=80, dur=2).kernel("c", at=82, dur=18)
        host = gaps_of(trace).host
        exposed = {name: share.exposed_ns // 1000 for name, share in host.shares.items() if share.exposed_ns}
        assert exposed == {"framework": 10, "launch_api": 2}
        assert host.others == (OtherThread("21879", 12_000),)
        assert host.host_cost_ns == 24_000

    def test_what_is_exposed_of_all_threads_is_the_host_cost(self):
        """
        thread 1   0 L 2          30 L 33                    80 L 82
        thread 2                            50 L 51
        thread 3          20 L 24                  64 L 70
        device     0 a 10  21 b 28  34 c 40   52 d 60  71 e 75   83 f 100

        Idle before b [10, 21): 10 until the call of thread 3 begins and 1 in it. Before c [28, 34): 2, then the call
        of 3, and 1 of delivery. Before d [40, 52): 10 and 1 of thread 2, 1 of delivery. Before e [60, 71): 4 and 6 of
        thread 3. Before f [75, 83): 5 and 2 of thread 1.
        """
        trace = one_step()
        trace.launch(at=0, dur=2).kernel("a", at=0, dur=10)
        trace.launch(at=20, dur=4, thread=3).kernel("b", at=21, dur=7)
        trace.launch(at=30, dur=3).kernel("c", at=34, dur=6)
        trace.launch(at=50, dur=1, thread=2).kernel("d", at=52, dur=8)
        trace.launch(at=64, dur=6, thread=3).kernel("e", at=71, dur=4)
        trace.launch(at=80, dur=2).kernel("f", at=83, dur=17)
        view = view_of(trace)
        audit = audit_of(view)
        host = find_gaps(view, audit, StepOptions()).host
        assert host.others == (OtherThread("21880", 21_000), OtherThread("21879", 11_000))
        assert sum(share.exposed_ns for share in host.shares.values()) == 5_000 + 7_000
        assert host.host_cost_ns == audit.ledger.host_cost_ns == 44_000

    def test_no_thread_is_known(self):
        """Nothing was launched and no marker tells a thread: all is unrecorded."""
        trace = TraceBuilder()
        trace.orphan().kernel("a", at=0, dur=20)
        trace.orphan().kernel("b", at=30, dur=20)
        trace.op("aten::mm", at=0, dur=10)
        host = gaps_of(trace).host
        assert (host.thread, host.interval_ns) == ("none", 50_000)
        assert host.shares["unrecorded"].total_ns == 50_000


class TestVerdict:
    def test_host_bound(self):
        """Idle for the host 60 of 100 and 4 in launch calls."""
        report = gaps_of(standard())
        assert report.verdict is Limit.HOST_BOUND
        assert report.shares == pytest.approx(
            {"device_bound": 0.3, "comm_bound": 0, "copy_bound": 0, "sync_bound": 0, "host_bound": 0.64}
        )

    @pytest.mark.parametrize(
        ("kind", "verdict"),
        [
            ("gemm", Limit.DEVICE_BOUND),
            ("ncclDevKernel_AllReduce", Limit.COMM_BOUND),
            ("memcpy", Limit.COPY_BOUND),
        ],
    )
    def test_bound_by_what_the_device_does(self, kind, verdict):
        """95 of 100 of one kind: the device alone takes nearly the step, as the host does."""
        trace = one_step()
        launch = trace.launch(at=0, dur=1)
        launch.memcpy(at=0, dur=95) if kind == "memcpy" else launch.kernel(kind, at=0, dur=95)
        report = gaps_of(trace)
        assert report.verdict is verdict
        assert report.shares[verdict.value] == 0.95

    def test_a_busy_device_that_no_faster_op_would_speed_up_is_the_hosts(self):
        """60 of 100, and a host of 100 that never waits: without the op, the step would still take 100."""
        trace = one_step()
        trace.launch(at=0, dur=1).kernel("gemm", at=0, dur=60)
        report = gaps_of(trace)
        assert report.verdict is Limit.HOST_BOUND
        assert report.shares["device_bound"] == 0.6

    def test_a_busy_device_that_the_host_waits_for_is_not(self):
        """60 of 100: the host launches, waits for the op until 65, and works for 35. Alone neither takes 90."""
        trace = one_step()
        trace.launch(at=0, dur=1).kernel("gemm", at=0, dur=60)
        trace.call("cudaStreamSynchronize", at=5, dur=60)
        assert gaps_of(trace).verdict is Limit.DEVICE_BOUND

    def test_nothing_holds_half(self):
        """Compute 40, comm 20, host 40 behind a wait for both: alone neither side takes 90."""
        trace = one_step()
        trace.launch(at=0, dur=1).kernel("gemm", at=0, dur=40).kernel("ncclDevKernel_AllReduce", at=40, dur=20)
        trace.call("cudaStreamSynchronize", at=5, dur=55)
        report = gaps_of(trace)
        assert report.verdict is Limit.MIXED
        assert max(report.shares.values()) == 0.4

    def test_the_host_binds_whatever_holds_half(self):
        """The same without the wait: the host is ahead of the device and takes all of 100, as in what-if."""
        trace = one_step()
        trace.launch(at=0, dur=1).kernel("gemm", at=0, dur=40).kernel("ncclDevKernel_AllReduce", at=40, dur=20)
        assert gaps_of(trace).verdict is Limit.HOST_BOUND

    def test_a_wait_owns_the_idle_time_in_which_it_blocks(self):
        """Kernel [0, 20), a wait [10, 90) that returns long after it: 70 of the idle 80 are the wait's."""
        trace = one_step()
        trace.launch(at=0, dur=1).kernel("gemm", at=0, dur=20)
        trace.call("cudaStreamSynchronize", at=10, dur=80)
        report = gaps_of(trace)
        assert report.verdict is Limit.SYNC_BOUND
        assert report.shares["sync_bound"] == pytest.approx(0.7)
        assert report.shares["host_bound"] == pytest.approx(0.1)

    def test_a_wait_owns_the_refill_if_the_host_would_run_ahead(self):
        """Two kernels in a step of 150; the wait [25, 61) drains the queue at 60, the next launch is at 90.

        Without the wait the host needs 150 - 36 = 114 of the step. With kernels of 40 (busy 80) it would not run ahead
        anyway: the wait owns the 1 in which it blocks an idle device. With kernels of 58 (busy 116) it would: the 30
        until the next launch are the wait's doing.
        """

        def trace(length):
            made = one_step(150)
            made.launch(at=0, dur=1).kernel("gemm", at=60 - length, dur=length)
            made.call("cudaStreamSynchronize", at=25, dur=36)
            made.launch(at=90, dur=1).kernel("gemm", at=92, dur=length)
            return made

        behind, ahead = gaps_of(trace(40)), gaps_of(trace(58))
        assert behind.shares["sync_bound"] == pytest.approx(1 / 150)
        assert ahead.shares["sync_bound"] == pytest.approx(30 / 150)


class TestShortGaps:
    def test_the_tax_of_short_kernels(self):
        """Kernels of 2 behind calls of 4, gaps of 3, 3 and 12; between rows only, below 10."""
        trace = one_step()
        for i, at in enumerate((10, 15, 20, 34)):
            trace.launch(at=at - 8, dur=4).kernel(f"k{i}", at=at, dur=2)
        short = gaps_of(trace).short
        assert (short.limit_ns, short.gaps, short.time_ns) == (10_000, 2, 6_000)
        assert (short.kernels, short.shorter_than_launch) == (4, 4)

    def test_another_limit(self):
        trace = one_step()
        for i, at in enumerate((10, 15, 20, 34)):
            trace.launch(at=at - 8, dur=4).kernel(f"k{i}", at=at, dur=5 - i)
        assert gaps_of(trace, short_ns=3_000).short.gaps == 1
        assert gaps_of(trace, short_ns=3_000).short.shorter_than_launch == 2

    def test_nodes_of_a_graph_have_no_call_of_their_own(self):
        trace = one_step()
        trace.graph_launch(at=0, dur=20).kernel("a", at=5, dur=1).kernel("b", at=7, dur=1)
        assert gaps_of(trace).short.shorter_than_launch == 0


class TestQueueDepth:
    def test_launches_whose_op_has_not_started(self):
        """Each step has one launch that waits from 10 to 20: 0.1 on average."""
        assert gaps_of(standard()).queue_depth == pytest.approx(0.1)

    def test_a_host_that_runs_ahead(self):
        """Three launches at 0, 1, 2; kernels of 30 at 10, 40, 70: waiting 10 + 39 + 68 of 100."""
        trace = one_step()
        for i in range(3):
            trace.launch(at=i, dur=1).kernel("gemm", at=10 + 30 * i, dur=30)
        assert gaps_of(trace).queue_depth == pytest.approx((10 + 39 + 68) / 100)

    def test_a_replay_waits_until_its_first_node(self):
        trace = one_step()
        trace.graph_launch(at=0, dur=5).kernel("a", at=10, dur=5).kernel("b", at=60, dur=5)
        assert gaps_of(trace).queue_depth == pytest.approx(0.1)

    def test_an_op_before_its_launch_never_waited(self):
        trace = one_step()
        trace.launch(at=30, dur=5).kernel("a", at=10, dur=50)
        assert gaps_of(trace).queue_depth == 0


def test_the_path_is_that_of_a_typical_step():
    """Windows 100, 130 and 80: the first is the median.

    The last step is more than a tenth off and is left out, of two the shorter counts as typical: step 0. Its host
    went on to the next launch at 110 and never waited for the kernel [20, 50).
    """
    trace = TraceBuilder()
    for i, (at, length) in enumerate(((0, 100), (100, 130), (230, 80))):
        trace.annotation(f"ProfilerStep#{i}", at=at, dur=length)
        trace.launch(at=at + 10, dur=4).kernel("gemm", at=at + 20, dur=30)
    path = gaps_of(trace).path
    assert (path.step, path.window_ns) == (0, 100_000)
    assert {(part.kind, part.name): part.time_ns // 1000 for part in path.parts} == {
        ("host", "cudaLaunchKernel"): 86 + 10,
        ("launch_call", "cudaLaunchKernel"): 4,
    }


def test_a_step_without_ops_is_not_the_typical_one():
    """Windows 100 with gemm [20, 50), launched at 10, and 10 with nothing: the shorter would say nothing."""
    trace = TraceBuilder()
    trace.annotation("ProfilerStep#0", at=0, dur=100)
    trace.launch(at=10, dur=4).kernel("gemm", at=20, dur=30)
    trace.annotation("ProfilerStep#1", at=100, dur=10)
    report = gaps_of(trace)
    assert report.steps_used == 2
    assert report.path.step == 0
    assert {kind: time // 1000 for kind, time in report.path.by_kind().items()} == {
        "host": 10 + 50,
        "op": 30,
        "delivery": 6,
        "launch_call": 4,
    }


def test_a_wait_for_a_collective_shows_as_the_collective():
    """
    stream 8      5 all-reduce 60
    stream 7   2 a 10               75 b 90    the wait is enqueued between a's launch and b's; b restarts 15 behind

    The all-reduce halved in time would have let b start at 47.5: on the path are 55 of communication, not 65 of queue.
    """
    trace = one_step(90)
    trace.launch(at=0, dur=1).kernel("a", at=2, dur=8)
    trace.launch(at=1, dur=1).kernel("ncclDevKernel_AllReduce", at=5, dur=55, stream=8)
    trace.call("hipStreamWaitEvent", at=2, dur=0.5)
    trace.launch(at=3, dur=1).kernel("b", at=75, dur=15)
    path = gaps_of(trace).path
    assert {(part.kind, part.name, part.op_kind): part.time_ns // 1000 for part in path.parts} == {
        ("op", "ncclDevKernel_AllReduce", "comm"): 55,
        ("op", "b", "compute"): 15,
        ("event", "b", None): 15,
        ("delivery", "ncclDevKernel_AllReduce", None): 3,
        ("launch_call", "cudaLaunchKernel", None): 2,
    }
    assert path.of_op_kinds("comm", "compute") == 70_000
