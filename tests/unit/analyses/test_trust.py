"""Whether a time line can be believed. Times in µs; the first row of each trace is at 0."""

from dataclasses import replace

import pytest
from builders import TraceBuilder
from views import audit_of, view_of

from traceaudit.analyses.trust import doubted, other_batch, timeline_findings, wall_findings
from traceaudit.model.findings import CODES, Finding, Severity
from traceaudit.model.options import StepOptions

INFO, WARNING, ERROR = Severity.INFO, Severity.WARNING, Severity.ERROR


def findings(trace, code=None, *, steps=None):
    view = trace if hasattr(trace, "occupancy") else view_of(trace, steps=steps)
    found = timeline_findings(view, audit_of(view, steps=steps))
    return [one for one in found if code is None or one.code == code]


def the(trace, code, **options):
    (found,) = findings(trace, code, **options)
    return found


def regular(count=4, *, ops=True):
    """Return steps of 1 000 with a kernel [20, 520) each."""
    trace = TraceBuilder()
    for i in range(count):
        trace.annotation(f"ProfilerStep#{i}", at=1000 * i, dur=1000)
        if ops:
            trace.launch(at=1000 * i + 10, dur=4).kernel("gemm", at=1000 * i + 20, dur=500)
    return trace


def test_a_clean_trace_has_no_finding():
    assert findings(regular()) == []


class TestOtherBatch:
    def found(self, given, *batches):
        trace = TraceBuilder()
        for i, batch in enumerate(batches):
            trace.annotation(f"step[DECODE bs={batch}]", at=1000 * i, dur=1000)
            trace.launch(at=1000 * i + 10, dur=4).kernel("gemm", at=1000 * i + 20, dur=500)
        return other_batch(audit_of(view_of(trace)), given)

    def test_names_that_say_another_batch(self):
        found = self.found(4, 32, 32)
        assert (found.code, found.severity) == ("batch_mismatch", WARNING)
        assert found.message == "the steps ran batch 32 by their names, not 4"
        assert self.found(4, 30, 32, 31).message == "the steps ran batch 30 to 32 by their names, not 4"

    def test_nothing_to_find(self):
        assert self.found(32, 32, 32) is None
        assert self.found(31, 30, 32) is None
        assert self.found(None, 32, 32) is None
        assert other_batch(audit_of(view_of(regular())), 4) is None


class TestPending:
    def late(self, *, wait=400):
        """Return four steps and, in the second, an op launched [1530, 1534) that starts `wait` after its call."""
        trace = regular()
        trace.launch(at=1530, dur=4).kernel("late", at=1534 + wait, dur=5)
        return trace

    def test_an_op_that_waited_without_reason(self):
        """The gap from 1 520 to 1 934 is 414 of a span of 3 500: 12 %, more than a tenth: an error."""
        found = the(self.late(), "idle_while_pending")
        assert (found.severity, found.count, found.impact_ns) == (ERROR, 1, 414_000)
        assert (found.rank, found.device) == (0, 0)
        assert found.examples == ("late at 1.934 ms waited 0.400 ms",)

    def test_a_small_loss_is_a_warning(self):
        """The same gap in a span of 9 500 is 4 %."""
        trace = regular(10)
        trace.launch(at=1530, dur=4).kernel("late", at=1934, dur=5)
        assert the(trace, "idle_while_pending").severity is WARNING

    @pytest.mark.parametrize(("covered", "severity"), [(359, WARNING), (360, ERROR)])
    def test_a_blocking_call_that_spans_the_wait_makes_it_an_error(self, covered, severity):
        """Nine tenths of the wait of 400 are 360."""
        trace = regular(10)
        trace.launch(at=1530, dur=4).kernel("late", at=1934, dur=5)
        trace.call("cudaStreamSynchronize", at=1934 - covered, dur=covered + 20)
        assert the(trace, "idle_while_pending").severity is severity

    def test_the_three_longest_waits_are_shown(self):
        trace = regular(20)
        for i, wait in enumerate((300, 410, 420, 430)):
            trace.launch(at=1530 + 1000 * i, dur=4).kernel(f"k{i}", at=1534 + 1000 * i + wait, dur=5)
        found = the(trace, "idle_while_pending")
        assert found.count == 4
        assert [text.split()[0] for text in found.examples] == ["k3", "k2", "k1"]
        assert found.impact_ns == (300 + 410 + 420 + 430 + 4 * 14) * 1000

    def test_time_before_the_first_op_is_not_lost_inside_the_span(self):
        """The very first op is pending: nothing before it is inside the device's span."""
        trace = TraceBuilder()
        trace.annotation("ProfilerStep#0", at=0, dur=2000)
        trace.launch(at=10, dur=4).kernel("late", at=1014, dur=5)
        found = the(trace, "idle_while_pending")
        assert (found.severity, found.impact_ns) == (WARNING, 0)


class TestEdges:
    def test_a_first_step_that_begins_with_a_pending_op(self):
        """Marker at 0, op at 700, launched [10, 14): 700 without any op."""
        trace = TraceBuilder()
        for i in range(3):
            trace.annotation(f"ProfilerStep#{i}", at=1000 * i, dur=1000)
            trace.launch(at=1000 * i + 10, dur=4).kernel("gemm", at=1000 * i + (20 if i else 700), dur=200)
        found = the(trace, "capture_edge_loss")
        assert (found.severity, found.impact_ns) == (WARNING, 700_000)

    def test_ops_of_no_step(self):
        """An op without launch row [600, 610) among 4 x 500: 10 of 2 010, less than a hundredth: only a note."""
        trace = regular()
        trace.orphan().kernel("orphan", at=600, dur=10)
        found = the(trace, "ops_outside_steps")
        assert (found.severity, found.count, found.impact_ns) == (INFO, 1, 10_000)

    def test_much_work_of_no_step(self):
        """30 of 2 030 is more than a hundredth."""
        trace = regular()
        trace.orphan().kernel("orphan", at=600, dur=30)
        assert the(trace, "ops_outside_steps").severity is WARNING

    def test_work_of_earlier_steps_is_a_note_whatever_its_share(self):
        trace = TraceBuilder()
        trace.launch(at=0, dur=4).kernel("before", at=5, dur=900)
        trace.annotation("ProfilerStep#0", at=50, dur=1000)
        trace.launch(at=60, dur=4).kernel("gemm", at=910, dur=100)
        found = the(trace, "ops_outside_steps")
        assert (found.severity, found.count, found.impact_ns) == (INFO, 1, 900_000)
        assert "before the first" in found.message


class TestUnevenSteps:
    def messages(self, trace, **options):
        found = findings(trace, "steps_uneven", **options)
        assert {one.severity for one in found} <= {WARNING}
        return [(one.message, one.count, one.impact_ns) for one in found]

    def test_steps_without_ops(self):
        """Two more steps of 1 000 with nothing in them."""
        trace = regular(4)
        for i in (4, 5):
            trace.annotation(f"ProfilerStep#{i}", at=1000 * i, dur=1000)
        ((message, count, impact),) = self.messages(trace)
        assert "2 of 6 steps" in message
        assert (count, impact) == (2, 2_000_000)

    def test_idle_steps_may_be_empty(self):
        trace = TraceBuilder()
        for i in range(4):
            trace.annotation(f"step[decode bs={i}]" if i % 2 else "step[idle]", at=1000 * i, dur=1000)
            if i % 2:
                trace.launch(at=1000 * i + 10, dur=4).kernel("gemm", at=1000 * i + 20, dur=500)
        assert self.messages(trace) == []

    def test_one_step_with_almost_all_the_time(self):
        """Windows of 1 000 and one of 40 000: 93 %."""
        trace = regular(3)
        trace.annotation("ProfilerStep#3", at=3000, dur=40_000)
        trace.launch(at=3010, dur=4).kernel("gemm", at=3020, dur=500)
        ((message, count, impact),) = self.messages(trace)
        assert message.startswith("step 3 of 4 takes 93 %")
        assert (count, impact) == (1, 40_000_000)

    def test_one_op_with_almost_all_the_time(self):
        """Ops of 1 in steps of 1 000, one of 900: 900 of 903."""
        trace = TraceBuilder()
        for i in range(4):
            trace.annotation(f"ProfilerStep#{i}", at=1000 * i, dur=1000)
            trace.launch(at=1000 * i + 10, dur=4).kernel(
                "long" if i == 2 else "short", at=1000 * i + 20, dur=900 if i == 2 else 1
            )
        ((message, count, impact),) = self.messages(trace)
        assert message.startswith("one op, long, takes 100 %")
        assert (count, impact) == (1, 900_000)

    def test_missing_numbers_of_profiler_steps(self):
        """#1 is followed by #4: two are missing, so that the window of 3 000 may hold three steps."""
        trace = TraceBuilder()
        for number, at in ((0, 0), (1, 1000), (4, 4000), (5, 5000)):
            trace.annotation(f"ProfilerStep#{number}", at=at, dur=1000)
            trace.launch(at=at + 10, dur=4).kernel("gemm", at=at + 20, dur=500)
        ((message, count, impact),) = self.messages(trace)
        assert "#1 is followed by #4" in message
        assert (count, impact) == (2, 3_000_000)

    def test_a_trace_of_one_step_is_never_uneven(self):
        trace = TraceBuilder()
        trace.annotation("ProfilerStep#0", at=0, dur=1000)
        trace.launch(at=10, dur=4).kernel("gemm", at=20, dur=900)
        assert self.messages(trace) == []

    def test_a_whole_trace_that_is_not_divided_is_one_step(self):
        trace = TraceBuilder()
        trace.launch(at=0, dur=4).kernel("a", at=5, dur=5)
        trace.launch(at=900, dur=4).kernel("b", at=905, dur=5)
        assert self.messages(trace) == []

    def test_a_start_up_gap_in_a_divided_trace(self):
        """910 in all, 2 steps of 455; the gap [10, 905) is longer than a step."""
        trace = TraceBuilder()
        trace.launch(at=0, dur=4).kernel("a", at=5, dur=5)
        trace.launch(at=900, dur=4).kernel("b", at=905, dur=5)
        ((message, count, impact),) = self.messages(trace, steps=StepOptions(divide_by=2))
        assert "0.895 ms" in message
        assert (count, impact) == (1, 895_000)
        assert self.messages(trace, steps=StepOptions(divide_by=1)) == []

    def test_a_divided_trace_without_a_long_gap(self):
        """700 in all, 2 steps of 350: gaps of 95 are shorter."""
        trace = TraceBuilder()
        for i in range(7):
            trace.launch(at=100 * i, dur=4).kernel("a", at=100 * i + 5, dur=5 + 90 * (i == 6))
        assert self.messages(trace, steps=StepOptions(divide_by=2)) == []


class TestPauses:
    def paused(self, trace, start, until):
        view = view_of(trace)
        captures = ((0, start * 1000), (until * 1000, 100_000_000))
        source = replace(view.trace.source, captures_ns=captures)
        return replace(view, trace=replace(view.trace, source=source))

    def test_outside_the_used_steps_it_is_a_note(self):
        """The step in which the capture paused is left out of the mean."""
        found = the(self.paused(regular(), 1600, 1900), "capture_edge_loss")
        assert (found.severity, found.count, found.impact_ns) == (INFO, 1, 300_000)

    def test_inside_the_only_step_it_makes_idle_time_worthless(self):
        found = the(self.paused(regular(1), 600, 900), "capture_edge_loss")
        assert (found.severity, found.impact_ns) == (ERROR, 300_000)


class TestWall:
    def finding(self, wall_us):
        """Return what a wall says of steps of 1 000 with 500 busy."""
        return [(one.code, one.severity, one.impact_ns) for one in wall_findings(audit_of(regular(), wall_us=wall_us))]

    def test_no_wall_no_word(self):
        assert wall_findings(audit_of(regular())) == ()

    @pytest.mark.parametrize("wall", [2000, 1000, 981])
    def test_up_to_two_percent_are_noise(self, wall):
        assert self.finding(wall) == []

    def test_a_little_dilation_is_a_note(self):
        """1 000 / 950 is 1.053."""
        assert self.finding(950) == [("profiler_dilation", INFO, 50_000)]

    def test_more_is_a_warning(self):
        """1 000 / 900 is 1.11."""
        assert self.finding(900) == [("profiler_dilation", WARNING, 100_000)]

    @pytest.mark.parametrize(("wall", "code"), [(491, "profiler_dilation"), (490, "wall_below_busy")])
    def test_a_wall_that_the_device_alone_exceeds(self, wall, code):
        """500 busy: above 1.02 x 490 = 499.8, below 1.02 x 491."""
        assert [found[0] for found in self.finding(wall)] == [code]

    def test_wall_below_busy_tells_by_how_much(self):
        assert self.finding(400) == [("wall_below_busy", ERROR, 100_000)]


class TestDoubts:
    def test_warnings_and_errors_make_their_numbers_doubtful(self):
        one = Finding("clock_skew", WARNING, "x", rank=0, device=0)
        two = Finding("rows_dropped", ERROR, "x")
        assert doubted((one, two), 0, 0) == CODES["clock_skew"].doubts | CODES["rows_dropped"].doubts

    def test_notes_do_not(self):
        assert doubted((Finding("rows_dropped", INFO, "x"),), 0, 0) == frozenset()

    def test_findings_of_other_places_do_not(self):
        elsewhere = (Finding("rows_dropped", ERROR, "x", rank=1), Finding("rows_dropped", ERROR, "x", rank=0, device=1))
        assert doubted(elsewhere, 0, 0) == frozenset()
        assert doubted(elsewhere, 0, 1) == CODES["rows_dropped"].doubts
