"""The composer: files in, results out. Times in µs."""

import re

import pytest
from builders import TraceBuilder
from renderers import render
from views import wall_of

from traceaudit import audit
from traceaudit.errors import MissingDataError, TraceFormatError, UsageError
from traceaudit.model.findings import Severity, Verdict
from traceaudit.model.options import ReconcileOptions, Selection, Speedup, StepOptions, WhatIfOptions
from traceaudit.model.results import Wall


def steps(count=3, **more):
    """Return steps of 100: launch [10, 14), kernel [20, 50)."""
    trace = TraceBuilder(**more)
    for i in range(count):
        trace.annotation(f"ProfilerStep#{i}", at=100 * i, dur=100)
        trace.launch(at=100 * i + 10, dur=4).kernel("gemm", at=100 * i + 20, dur=30)
    return trace


@pytest.fixture
def write(tmp_path):
    """Write a trace and return its path."""

    def call(trace, name="trace.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(render(trace))
        return str(path)

    return call


def with_pending(trace):
    """Add an op that waited 400 on an idle device."""
    trace.launch(at=1000, dur=4).kernel("late", at=1404, dur=5)
    trace.annotation("ProfilerStep#9", at=900, dur=600)
    return trace


class TestCommands:
    def test_reconcile(self, write):
        path = write(steps())
        found = audit.reconcile(path, ReconcileOptions())
        assert (found.path, [source.path for source in found.sources]) == (path, [path])
        assert found.completeness.verdict is Verdict.COMPLETE
        (device,) = found.devices
        assert (device.ledger.window_ns, device.ledger.accounts.compute) == (300_000, 90_000)
        assert device.doubtful == frozenset()

    def test_reconcile_marks_what_findings_make_doubtful(self, write):
        found = audit.reconcile(write(with_pending(steps())), ReconcileOptions())
        assert found.completeness.verdict is Verdict.UNRELIABLE
        assert "idle_ns" in found.devices[0].doubtful

    def test_reconcile_with_a_wall(self, write):
        found = audit.reconcile(write(steps()), ReconcileOptions(wall=wall_of(80)))
        assert [finding.code for finding in found.completeness.findings] == ["profiler_dilation"]
        assert found.devices[0].ledger.residual_ns == -60_000

    def test_gaps(self, write):
        found = audit.gaps(write(with_pending(steps())), ReconcileOptions())
        assert found.completeness.verdict is Verdict.UNRELIABLE
        assert found.devices[0].idle_ns == sum(row.total_ns for row in found.devices[0].gaps)
        assert audit.gaps(write(steps()), ReconcileOptions(wall=wall_of(80))).completeness.findings

    def test_whatif(self, write):
        change = Speedup("gemm=inf", re.compile("gemm"), float("inf"))
        found = audit.whatif(write(steps()), WhatIfOptions(speedups=(change,)))
        assert (found.devices[0].predicted_ns, found.devices[0].naive_ns) == (100_000, 70_000)
        dilated = audit.whatif(write(steps()), WhatIfOptions(base=ReconcileOptions(wall=wall_of(80))))
        assert [finding.code for finding in dilated.completeness.findings] == ["profiler_dilation"]

    def test_whatif_needs_launches(self, write):
        trace = TraceBuilder()
        trace.annotation("ProfilerStep#0", at=0, dur=100)
        trace.orphan().kernel("gemm", at=0, dur=5)
        with pytest.raises(MissingDataError):
            audit.whatif(write(trace), WhatIfOptions())

    def test_kernels(self, write):
        found = audit.kernels(write(with_pending(steps())), ReconcileOptions())
        assert [(row.name, row.launches) for row in found.devices[0].kernels] == [("gemm", 3), ("late", 1)]
        assert found.completeness.verdict is Verdict.UNRELIABLE
        one = audit.kernels(write(steps()), ReconcileOptions(selection=Selection(step=1)))
        assert one.devices[0].kernels[0].launches == 1

    def test_inspect(self, write):
        found = audit.inspect(write(steps(rank=3, world_size=8)), ReconcileOptions())
        assert (found.ranks, found.world_size) == ((3,), 8)
        assert [(device.device, device.steps) for device in found.devices] == [(0, 3)]
        assert [(row.api, row.calls, row.ops) for row in found.coverage] == [("cudaLaunchKernel", 3, 3)]

    def test_inspect_needs_no_device_op(self, write):
        trace = TraceBuilder()
        trace.op("aten::mm", at=0, dur=5)
        found = audit.inspect(write(trace), ReconcileOptions())
        assert (found.devices, found.world_size) == ((), None)

    def test_progress_is_told(self, write):
        told = []
        audit.reconcile(write(steps()), ReconcileOptions(), progress=lambda *state: told.append(state))
        assert told[-1][0] > 0

    def test_other_names_are_no_command(self):
        with pytest.raises(AttributeError, match="has no attribute 'oops'"):
            audit.oops  # noqa: B018


class TestWall:
    def recorded(self, *repeats):
        trace = steps()
        trace.keys["traceaudit"] = {"schema_version": 1, "wall_ns_per_step": list(repeats)}
        return trace

    def test_what_the_recorder_stored_is_the_wall(self, write):
        """Median of 90, 130 and 100."""
        step = audit.reconcile(write(self.recorded(90_000, 130_000, 100_000)), ReconcileOptions()).devices[0].step
        assert step.wall_ns == 100_000
        assert step.wall_source == "recorder (median of 3 unprofiled repeats, 90 µs to 0.13 ms)"
        assert (step.wall_low_ns, step.wall_high_ns) == (90_000, 130_000)
        assert step.wall_range_frac == pytest.approx(0.4)

    def test_one_repeat_has_no_range(self, write):
        step = audit.reconcile(write(self.recorded(90_000)), ReconcileOptions()).devices[0].step
        assert step.wall_source == "recorder (one unprofiled repeat)"
        assert (step.wall_low_ns, step.wall_high_ns, step.wall_range_frac) == (None, None, None)

    def test_the_users_wall_wins(self, write):
        options = ReconcileOptions(wall=Wall(150_000, "by hand"))
        step = audit.reconcile(write(self.recorded(90_000)), options).devices[0].step
        assert (step.wall_ns, step.wall_source) == (150_000, "by hand")


class TestSelection:
    def test_a_step_that_is_not_there(self, write):
        with pytest.raises(UsageError, match="no step 3") as caught:
            audit.reconcile(write(steps()), ReconcileOptions(selection=Selection(step=3)))
        assert "3 steps" in caught.value.hint

    def test_a_device_that_is_not_there(self, write):
        with pytest.raises(UsageError, match="no device matches") as caught:
            audit.reconcile(write(steps()), ReconcileOptions(selection=Selection(device=7)))
        assert caught.value.hint == "the trace holds rank 0 device 0"

    def test_inspect_refuses_a_device_that_is_not_there(self, write):
        for selection, told in ((Selection(rank=5), "--rank"), (Selection(device=7), "--device")):
            with pytest.raises(UsageError, match=f"no device matches {told} — ") as caught:
                audit.inspect(write(steps()), ReconcileOptions(selection=selection))
            assert caught.value.hint == "the trace holds rank 0 device 0"

    def test_inspect_refuses_a_device_of_a_trace_without_any(self, write):
        trace = TraceBuilder()
        trace.op("aten::mm", at=0, dur=5)
        assert audit.inspect(write(trace), ReconcileOptions()).devices == ()
        with pytest.raises(UsageError, match="no device matches") as caught:
            audit.inspect(write(trace), ReconcileOptions(selection=Selection(device=0)))
        assert caught.value.hint == "the trace holds no device op"

    def test_a_scheduler_pattern_must_find_a_row(self, write):
        trace = steps()
        trace.annotation("pick requests", at=0, dur=8)
        path = write(trace)
        for command in (audit.reconcile, audit.gaps):
            assert command(path, ReconcileOptions(scheduler=re.compile("^pick"))).devices
            with pytest.raises(UsageError, match="no annotation or Python frame matches --scheduler 'pikc'") as caught:
                command(path, ReconcileOptions(scheduler=re.compile("pikc")))
            assert caught.value.hint.endswith("'pick requests'")

    def test_no_device_op_at_all(self, write):
        trace = TraceBuilder()
        trace.op("aten::mm", at=0, dur=5)
        with pytest.raises(TraceFormatError, match="no device op in the trace"):
            audit.reconcile(write(trace), ReconcileOptions())

    def test_steps_by_annotation(self, write):
        options = ReconcileOptions(steps=StepOptions(annotation=re.compile("ProfilerStep#[12]")))
        assert len(audit.reconcile(write(steps()), options).devices[0].steps.items) == 2


class TestRanks:
    def test_a_folder_of_ranks(self, write, tmp_path):
        """Devices come by rank, whatever the order of the files; findings name the rank they are of."""
        write(with_pending(steps(rank=1, world_size=2)), "ranks/a.json")
        odd = steps(rank=0, world_size=2)
        odd.orphan().kernel("orphan", at=60, dur=5)
        write(odd, "ranks/b.json")
        found = audit.reconcile(str(tmp_path / "ranks"), ReconcileOptions())
        assert [device.rank for device in found.devices] == [0, 1]
        assert len(found.sources) == 2
        ranks = {finding.code: finding.rank for finding in found.completeness.findings}
        assert ranks["op_without_launch"] == 0
        assert ranks["idle_while_pending"] == 1
        assert "idle_ns" in found.devices[1].doubtful
        assert "idle_ns" not in found.devices[0].doubtful

    def test_one_rank_of_a_folder(self, write, tmp_path):
        write(steps(rank=1, world_size=2), "ranks/a.json")
        write(steps(rank=0, world_size=2), "ranks/b.json")
        found = audit.reconcile(str(tmp_path / "ranks"), ReconcileOptions(selection=Selection(rank=1)))
        assert [device.rank for device in found.devices] == [1]

    def test_names_say_ranks_where_files_do_not(self, write, tmp_path):
        write(steps(), "ranks/rank5.json")
        write(steps(), "ranks/rank2.json")
        found = audit.reconcile(str(tmp_path / "ranks"), ReconcileOptions())
        assert [device.rank for device in found.devices] == [2, 5]
        assert "ranks_assumed" not in {finding.code for finding in found.completeness.findings}

    def test_separate_runs_are_no_ranks(self, write, tmp_path):
        for name in ("before", "after"):
            write(steps(), f"runs/{name}.json")
        found = audit.reconcile(str(tmp_path / "runs"), ReconcileOptions())
        (assumed,) = [finding for finding in found.completeness.findings if finding.code == "ranks_assumed"]
        assert (assumed.severity, assumed.count) == (Severity.WARNING, 2)
        assert found.completeness.findings[0] is assumed

    def test_two_files_of_one_rank(self, write, tmp_path):
        write(steps(rank=1, world_size=2), "ranks/a.json")
        write(steps(rank=1, world_size=2), "ranks/b.json")
        with pytest.raises(TraceFormatError, match="two files of one folder hold rank 1"):
            audit.reconcile(str(tmp_path / "ranks"), ReconcileOptions())

    def test_one_file_of_several_ranks_misses_the_others(self, write):
        found = audit.reconcile(write(steps(rank=1, world_size=2)), ReconcileOptions())
        (missing,) = [finding for finding in found.completeness.findings if finding.code == "rank_missing"]
        assert missing.severity is Severity.INFO
