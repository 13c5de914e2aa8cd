"""The file, the ends of the capture, the steps and the ranks."""

import pytest
from builders import TraceBuilder
from renderers import render
from verdict.traces import calls, decode, kernels, replays, without

from traceaudit import audit
from traceaudit.errors import TraceFormatError
from traceaudit.model.options import ReconcileOptions


def test_a_file_that_ends_early(only):
    data = render(decode())
    verdict, (severity, _, _) = only("file_truncated", data[: len(data) // 2])
    assert (verdict, severity) == ("unreliable", "error")


def test_a_file_that_ends_after_its_events(only):
    """All events are there, the keys behind them are not."""
    data = render(decode(), "kineto-2.4")
    cut = data.rindex(b'"traceName"')
    verdict, (severity, _, _) = only("file_truncated", data[:cut])
    assert (verdict, severity) == ("partial", "warning")


def test_a_file_that_had_to_be_repaired(only):
    """A raw line feed and a bell in one name: repaired, times as written, nothing lost."""
    data = render(decode()).replace(b'"a"', b'"a\n\x07"', 1)
    assert only("file_repaired", data) == ("complete", ("info", 2, None))


def test_rows_that_cannot_be_placed(only):
    """One of ten ops has no time."""
    data = render(decode(), "compact").replace(b'"ts": 4402211002120.000, "dur": 600.000, ', b"", 1)
    assert only("rows_dropped", data) == ("unreliable", ("error", 1, None))


def test_a_second_document(only):
    data = render(decode())
    assert only("second_document", data + data) == ("partial", ("warning", 1, None))


@pytest.mark.parametrize("tail", [b"", b"\n\n", b"\0\0\0"])
def test_padding_is_no_second_document(found, tail):
    assert found(render(decode()) + tail) == ("complete", {})


def test_the_capture_ends_before_the_last_ops(only):
    """The last step's kernel and copy are not shown: at the mean of their kind, 600 + 100 of 3500 µs."""
    trace = decode()
    without(trace, kernels(trace, "a")[-1], kernels(trace, "b")[-1])
    assert only("capture_edge_loss", trace) == ("unreliable", ("error", 2, 700_000))


def test_the_capture_ends_before_a_last_copy(only):
    """The last copy of 5 µs is not shown: 5 of 3025 µs."""
    trace = decode(copy_us=5)
    assert only("capture_edge_loss", without(trace, kernels(trace, "b")[-1])) == ("complete", ("info", 1, 5_000))


def test_the_capture_begins_within_a_step(only, audited):
    """The first op starts 8 ms after its launch on a device that shows nothing before: that time is not idle.

    The first window begins with the op, at 8120; the marker began at 0. What is shown is shown right, so the steps
    stand.
    """
    trace = decode()
    for row in (*trace.ops, *trace.host[1:]):
        if row.start_ns >= 120_000:
            row.start_ns += 8_000_000
    trace.host[0].dur_ns += 8_000_000
    assert only("capture_edge_loss", trace) == ("partial", ("warning", None, 8_120_000))
    (device,) = audited(trace).devices
    assert device.steps.items[0].start_ns == 8_120_000


def test_a_step_that_waits_for_its_host_is_whole(found):
    """The first launch comes 900 µs into the capture and its op follows at once: idle, not lost."""
    trace = decode()
    for row in (*trace.ops, *trace.host[1:]):
        row.start_ns += 900_000
    trace.host[0].dur_ns += 900_000
    assert "capture_edge_loss" not in found(trace)[1]


def test_no_device_op_at_all(tmp_path):
    trace = decode()
    trace.ops = []
    path = tmp_path / "trace.json"
    path.write_bytes(render(trace))
    completeness = audit.inspect(str(path), ReconcileOptions()).completeness
    assert completeness.verdict == "unreliable"
    assert {finding.code: finding.severity for finding in completeness.findings}["device_without_ops"] == "error"
    with pytest.raises(TraceFormatError, match="no device op"):
        audit.reconcile(str(path), ReconcileOptions())


def test_a_listed_device_that_was_not_used(found):
    trace = decode()
    trace.devices = 8
    assert found(trace) == ("complete", {})


def test_ops_of_no_step(found):
    """The launch of one kernel of 600 of 3500 µs is lost: it is no step's own."""
    trace = decode()
    _, findings = found(without(trace, calls(trace, "cudaLaunchKernel")[2]))
    (finding,) = findings["ops_outside_steps"]
    assert (finding.severity, finding.count, finding.impact_ns) == ("warning", 1, 600_000)


def test_work_from_before_the_steps_is_noted(found):
    """A launch before the first marker."""
    trace = decode()
    trace.launch(at=-300, dur=10).kernel("warmup", at=-280, dur=200)
    verdict, findings = found(trace)
    (finding,) = findings["ops_outside_steps"]
    assert (verdict, finding.severity, finding.count, finding.impact_ns) == ("complete", "info", 1, 200_000)


def test_a_burst_outside_the_markers(found):
    """Steps whose work is launched between markers: it belongs to the step whose marker came last; after the last, to
    none.

    vLLM's markers cover the forward pass, [0, 400) of each 1000 µs; kernels launched at 500 are within the step's
    interval.
    """
    trace = TraceBuilder()
    for step in range(4):
        at = 1000 * step
        trace.annotation("execute_context_0(0)_generation_8(8)", at=at, dur=400)
        trace.launch(at=at + 500, dur=10).kernel("late", at=at + 520, dur=300)
        trace.call("cudaStreamSynchronize", at=at + 520, dur=400)
    assert found(trace) == ("complete", {})


def test_a_step_without_ops(only):
    """One of five SGLang steps launches nothing; its window is 1000 µs."""
    trace = replays()
    gone = [row for row in (*trace.ops, *trace.host) if 2_000_000 < row.start_ns < 3_000_000]
    assert only("steps_uneven", without(trace, *gone)) == ("partial", ("warning", 1, 1_000_000))


def test_an_idle_step_has_no_ops(found):
    """Engines with data-parallel attention mark steps in which a rank has nothing to do."""
    trace = replays()
    for row in calls(trace, "step[decode bs=8]")[2:3]:
        row.name = "step[idle]"
    gone = [row for row in (*trace.ops, *trace.host) if 2_000_000 < row.start_ns < 3_000_000]
    assert found(without(trace, *gone)) == ("complete", {})


def test_a_step_that_holds_almost_everything(only):
    """The last of five steps, of 1000 µs each, goes on for 60 ms: 61 of 65 ms."""
    trace = decode()
    calls(trace, "ProfilerStep#4")[0].dur_ns += 60_000_000
    verdict, (severity, count, impact) = only("steps_uneven", trace)
    assert (verdict, severity, count, impact) == ("partial", "warning", 1, 61_000_000)


def test_an_op_that_holds_almost_everything(found):
    """One kernel of 60 ms beside 2.9 ms of others: 95 % of the op time; so does its step."""
    trace = decode()
    kernels(trace, "a")[2].dur_ns += 59_400_000
    for row in (*trace.ops, *trace.host):
        if row.start_ns > 2_120_000:
            row.start_ns += 59_400_000
    calls(trace, "ProfilerStep#2")[0].dur_ns += 59_400_000
    _, findings = found(trace)
    assert any("one op, a, takes 95 % of op time" in finding.message for finding in findings["steps_uneven"])


def test_a_single_step_may_be_one_op(found):
    trace = TraceBuilder()
    trace.annotation("ProfilerStep#7", at=0, dur=1000)
    trace.launch(at=10).kernel("all", at=30, dur=900)
    assert found(trace) == ("complete", {})


def test_a_numbered_marker_lost(only):
    """ProfilerStep#2 of five is missing; step #1 now holds 2000 µs."""
    trace = decode()
    assert only("steps_uneven", without(trace, *calls(trace, "ProfilerStep#2"))) == (
        "partial",
        ("warning", 1, 2_000_000),
    )


def test_numbers_need_not_begin_at_0_and_may_repeat(found):
    """A schedule with warm-up begins later; one version of PyTorch wrote a number twice."""
    trace = decode()
    for row in trace.host:
        if row.name.startswith("ProfilerStep"):
            row.name = {"ProfilerStep#3": "ProfilerStep#7", "ProfilerStep#4": "ProfilerStep#8"}.get(
                row.name, f"ProfilerStep#{int(row.name[13:]) + 5}"
            )
    assert found(trace) == ("complete", {})


def of_rank(rank, *, offset_us=0, late_us=0):
    """Return four steps with an all-reduce each, whose rows are all `offset_us` later than those of rank 0."""
    trace = TraceBuilder(rank=rank, world_size=2)
    args = {
        "Collective name": "allreduce",
        "Process Group Name": "0",
        "In msg nelems": 4096,
        "Out msg nelems": 4096,
        "Group size": 2,
        "dtype": "BFloat16",
    }
    for step in range(4):
        at = 1000 * step + offset_us
        trace.annotation(f"ProfilerStep#{step}", at=at, dur=1000)
        trace.launch(at=at + 10).kernel("gemm", at=at + 30, dur=500)
        trace.launch("cudaLaunchKernelExC", at=at + 20).kernel(
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", at=at + 540 + late_us, dur=100 - late_us, stream=20, **args
        )
    return trace


def test_all_ranks_on_one_clock(found):
    verdict, findings = found({"rank0.json": of_rank(0), "rank1.json": of_rank(1)})
    assert (verdict, dict(findings)) == ("complete", {})


def test_a_rank_whose_clock_is_off(found):
    """Rank 1 is 50 ms ahead; the collectives of both end together."""
    _, findings = found({"rank0.json": of_rank(0), "rank1.json": of_rank(1, offset_us=50_000)})
    (finding,) = findings["rank_clock_offset"]
    assert finding.impact_ns == 50_000_000


def test_an_absent_rank(found):
    """A folder should hold all ranks; a single file was chosen."""
    verdict, findings = found({"rank0.json": of_rank(0)})
    assert (verdict, findings["rank_missing"][0].severity, findings["rank_missing"][0].count) == (
        "partial",
        "warning",
        1,
    )
    verdict, findings = found(of_rank(0))
    assert (verdict, findings["rank_missing"][0].severity) == ("complete", "info")
