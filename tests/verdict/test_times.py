"""Times that cannot be, and times that merely look odd."""

import json

import pytest
from builders import TraceBuilder
from renderers import render
from verdict.traces import decode, kernels, replays

from traceaudit.report import render as report


def pending(steps, wait_us, *, blocked) -> TraceBuilder:
    """Return a decode whose last step's kernel starts `wait_us` after its launch returned, on an idle device.

    The launch returns at 110 of its step; the step and all that follows the kernel shift by what it waits beyond 10 µs.
    """
    trace = decode(steps)
    later = round((wait_us - 10) * 1000)
    at = (steps - 1) * 1_000_000
    for row in (*trace.ops, *trace.host):
        if row.start_ns >= at + 120_000:
            row.start_ns += later
    trace.host[-4].dur_ns += later
    assert trace.host[-4].name.startswith("ProfilerStep")
    if blocked:
        trace.call("cudaEventSynchronize", at=at / 1000 + 111, dur=wait_us)
    return trace


def test_a_wait_through_which_the_host_blocked(only):
    """20 ms after its launch; the gap runs from the last op of the step before, at 3850, to 4110 + 20000."""
    assert only("idle_while_pending", pending(5, 20_000, blocked=True)) == ("unreliable", ("error", 1, 20_260_000))


def test_a_wait_that_costs_little(only):
    """300 µs after the launch, in 20 steps: the gap of 560 µs is below a tenth of the span of 20 ms."""
    assert only("idle_while_pending", pending(20, 300, blocked=False)) == ("partial", ("warning", 1, 560_000))


def test_a_long_wait_is_an_error_without_a_blocking_call(only):
    """3000 µs: the gap of 3260 µs is more than a tenth of the span of some 8 ms."""
    assert only("idle_while_pending", pending(5, 3000, blocked=False)) == ("unreliable", ("error", 1, 3_260_000))


@pytest.mark.parametrize(("wait_us", "is_pending"), [(250, False), (250.001, True)])
def test_waits_up_to_250_us_are_ordinary(found, wait_us, is_pending):
    _, findings = found(pending(20, wait_us, blocked=True))
    assert bool(findings["idle_while_pending"]) == is_pending


@pytest.mark.parametrize(("wait_us", "is_pending"), [(1000, False), (1000.001, True)])
def test_a_slow_system_is_measured_by_its_own_waits(found, wait_us, is_pending):
    """Every other op starts 100 µs after its launch returned; ten times that is the limit."""
    trace = TraceBuilder()
    at = 0.0
    for number in range(12):
        wait = wait_us if number == 7 else 100
        trace.launch(at=at, dur=10).kernel(f"k{number % 4}", at=at + 10 + wait, dur=50)
        at += wait + 200
    _, findings = found(trace)
    assert bool(findings["idle_while_pending"]) == is_pending


def test_a_starved_device_is_idle(found, audited):
    """The host works 50 ms before each launch, and each op follows its launch at once: idle, and the host's."""
    trace = TraceBuilder()
    for step in range(4):
        at = 60_000 * step
        trace.annotation(f"ProfilerStep#{step}", at=at, dur=60_000)
        trace.python("scheduler.py(1): schedule", at=at + 10, dur=50_000)
        trace.launch(at=at + 50_100, dur=10).kernel("k", at=at + 50_120, dur=3000)
        trace.call("cudaStreamSynchronize", at=at + 50_200, dur=4000)
    assert found(trace) == ("complete", {})
    (device,) = audited(trace).devices
    assert device.ledger.accounts.idle_unknown == 0


def test_a_recorded_wait_of_a_stream_holds_an_op_back(found):
    """A copy engine of another process holds stream 7 for 2 ms: a `Stream Wait Event` row covers the wait but for 20
    µs.
    """
    trace = pending(5, 2000, blocked=False)
    trace.sync("Stream Wait Event", at=4120, dur=1980, stream=7)
    assert found(trace)[0] == "complete"


def test_an_op_behind_another_stream_is_not_alone_on_the_device(found):
    """An op that waits 3 ms for an op of another stream: the device is busy meanwhile."""
    trace = pending(5, 3000, blocked=True)
    trace.launch(at=4108, dur=2).kernel("other", at=4112, dur=2990, stream=20)
    assert "idle_while_pending" not in found(trace)[1]


@pytest.mark.parametrize("how", ["the call takes long", "an overhead row"])
def test_a_module_that_loads_at_the_first_launch(found, how):
    """The first launch of a kernel loads its module, 40 ms: inside the call, or shown by the profiler."""
    trace = TraceBuilder()
    slow = how == "the call takes long"
    trace.annotation("ProfilerStep#0", at=0, dur=41_000)
    trace.launch(at=10, dur=40_000 if slow else 10).kernel("a", at=40_020, dur=600)
    if not slow:
        trace.overhead("Runtime Triggered Module Loading", at=21, dur=39_900)
    for step in range(1, 5):
        trace.annotation(f"ProfilerStep#{step}", at=40_000 + 1000 * step, dur=1000)
        trace.launch(at=40_000 + 1000 * step + 100, dur=10).kernel("a", at=40_000 + 1000 * step + 120, dur=600)
    assert "idle_while_pending" not in found(trace)[1]


def test_an_op_that_never_ends(only, audited):
    """In step 2 a kernel lasts 50 ms; the next op of its queue starts at 2750. 2120 + 50000 - 2750 = 49370 µs go."""
    trace = decode()
    kernels(trace, "a")[2].dur_ns = 50_000_000
    assert only("impossible_overlap", trace) == ("unreliable", ("error", 1, 49_370_000))
    (device,) = audited(trace).devices
    assert device.totals.busy_ns == 4 * 700_000 + 630_000 + 100_000


def test_an_overrun_of_a_few_percent(only):
    """In the last of 20 steps a kernel lasts 1200 µs, to 20 320: 20 320 - 19 750 = 570 of 14 600."""
    trace = decode(20)
    kernels(trace, "a")[-1].dur_ns = 1_200_000
    assert only("impossible_overlap", trace) == ("partial", ("warning", 1, 570_000))


@pytest.mark.parametrize("early_ns", [1, 40, 3000])
def test_dependent_launch_and_rounding(found, early_ns):
    """The copy starts a little before the kernel ahead of it ends: 1 ns on ROCm, tens of ns of rounding, 3 µs of
    dependent launch.
    """
    trace = decode()
    for op in kernels(trace, "b"):
        op.start_ns = op.start_ns - 30_000 - early_ns
    for row in trace.host:
        if row.name == "cudaMemcpyAsync":
            row.start_ns -= 100_000
    assert found(trace) == ("complete", {})


def test_branches_of_a_graph_that_share_a_number(found):
    """A short branch runs wholly inside a long one, on the same stream number."""
    trace = replays()
    for op in kernels(trace, "y"):
        op.start_ns -= 150_000
        op.dur_ns = 100_000
    assert found(trace) == ("complete", {})


@pytest.mark.parametrize(
    ("early_us", "verdict", "severity"),
    [(30, "complete", "info"), (100, "partial", "warning"), (600, "unreliable", "error")],
)
def test_an_op_before_its_launch(only, early_us, verdict, severity):
    """One launch recorded late; the span from the first op to the last is 4850 - 120 = 4730 µs."""
    trace = decode()
    (row,) = [row for row in trace.host if row.correlation == kernels(trace, "b")[2].correlation]
    row.start_ns = 2_750_000 + early_us * 1000
    assert only("clock_skew", trace) == (verdict, (severity, 1, early_us * 1000))


def test_an_op_that_starts_while_its_call_runs(found):
    """The call returns at 110, the op starts at 105."""
    trace = decode()
    for op in kernels(trace, "a"):
        op.start_ns -= 15_000
    assert found(trace) == ("complete", {})


def test_an_op_without_duration(only):
    trace = decode()
    kernels(trace, "a")[2].dur_ns = 0
    assert only("zero_duration", trace) == ("partial", ("warning", 1, None))


def test_whole_microseconds_hide_short_ops(only):
    """Ops below 1 µs read 0 in whole microseconds; each may be 1 µs."""
    trace = decode()
    kernels(trace, "a")[2].dur_ns = 0
    assert only("zero_duration", trace, writer="kineto-2.2") == ("complete", ("info", 1, 1_000))


@pytest.mark.parametrize(("steps", "verdict", "severity"), [(5, "unreliable", "error"), (20, "partial", "warning")])
def test_a_negative_duration(only, steps, verdict, severity):
    """One of 10 ops, one of 40; how long it was is not known, so its share of the rows counts."""
    trace = decode(steps)
    kernels(trace, "a")[2].dur_ns = -7_000
    assert only("negative_duration", trace) == (verdict, (severity, 1, 7_000))


@pytest.mark.parametrize(("steps", "verdict", "severity"), [(5, "unreliable", "error"), (20, "partial", "warning")])
def test_an_absurd_duration(only, steps, verdict, severity):
    trace = decode(steps)
    kernels(trace, "a")[2].dur_ns = 3 * 86_400 * 10**9
    assert only("absurd_duration", trace) == (verdict, (severity, 1, None))


def test_whole_microseconds(only, audited):
    """Ten ops, each within 1 µs; two a step, so busy and idle of the mean step are within ±2 µs."""
    assert only("coarse_timestamps", decode(), writer="kineto-2.2") == ("complete", ("info", 10, 10_000))
    result = audited(decode(), writer="kineto-2.2")
    assert result.devices[0].resolution_error_ns == 2_000
    assert "±" in report("reconcile", "table", result)
    assert "±" in report("reconcile", "markdown", result)
    (device,) = json.loads(report("reconcile", "json", result))["devices"]
    assert device["step"]["resolution_error_ns"] == 2_000


def test_nanoseconds_have_no_bound(found, audited):
    assert "coarse_timestamps" not in found(decode())[1]
    assert "±" not in report("reconcile", "table", audited(decode()))


def test_whole_values_with_decimals_are_nanoseconds(found):
    """Times that happen to be whole are written `120.000` by a writer of nanoseconds; the text decides."""
    assert "coarse_timestamps" not in found(render(decode(), "python"))[1]
