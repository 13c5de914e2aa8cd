"""Where HTA 0.5.0 gives another number, each with the sum that shows which one is right.

Every test checks our number and the number HTA is known to give; both are derived in its docstring. It then fails as
expected, so that a version of HTA that gives the right number is noticed.
"""

import pytest
from builders import TraceBuilder
from differential.theirs import HtaDiffers
from renderers import render

pytest.importorskip("hta")


def differs(reason):
    return pytest.mark.xfail(raises=HtaDiffers, strict=True, reason=reason)


def stepped(*, steps=2, length=100) -> TraceBuilder:
    trace = TraceBuilder(rank=0, world_size=1)
    for step in range(steps):
        trace.annotation(f"ProfilerStep#{step}", at=step * length, dur=length)
    return trace


@differs("HTA rounds each start up and each end down to whole microseconds")
def test_kernels_between_whole_microseconds(ours, theirs, compare):
    """Four kernels of 1.6 µs are 6.4 µs; rounded inwards they are 0 + 1 + 1 + 1.

    ::

        [10.2, 11.8) -> [11, 11)   [20.0, 21.6) -> [20, 21)   [30.5, 32.1) -> [31, 32)   [40.4, 42.0) -> [41, 42)
    """
    trace = stepped()
    for at in (10.2, 20.0, 30.5, 40.4):
        trace.launch(at=at - 6).kernel(at=at, dur=1.6)
    data = render(trace, "kineto-2.6")
    (device,) = ours(data).devices
    compare(device.totals.busy_ns / 1000, theirs(data).temporal()["busy"], right=6.4, known=3)


@differs("HTA holds times in float64, which knows quarters of a microsecond since 1970")
def test_the_clock_that_times_count_from(ours, theirs, compare):
    """One kernel [10.1, 12.9): 2.8 µs on any clock.

    From a base, HTA rounds it to [11, 12), 1 µs. Since 1970 the start is read as 10.0 and the end as 12.75, which it
    rounds to [10, 12), 2 µs.
    """
    trace = stepped()
    trace.launch(at=2).kernel(at=10.1, dur=2.8)
    based, absolute = render(trace, "kineto-2.6"), render(trace, "nightly-epoch")
    assert ours(based).devices[0].totals == ours(absolute).devices[0].totals
    (device,) = ours(absolute).devices
    found = [theirs(data).kernels()["gemm_kernel"]["sum"] for data in (based, absolute)]
    compare([device.totals.busy_ns / 1000] * 2, found, right=[2.8, 2.8], known=[1, 2])


@differs("with two steps or more, HTA drops device ops that have no launch row")
def test_ops_without_a_launch(ours, theirs, compare):
    """Busy is [10, 20) + [120, 150) + [160, 170) = 50; without the op that has no launch, 20, and idle 140 of 160."""
    trace = stepped()
    trace.launch(at=2).kernel(at=10, dur=10)
    trace.orphan().kernel(at=120, dur=30)
    trace.launch(at=152).kernel(at=160, dur=10)
    data = render(trace, "kineto-2.2")
    (device,) = ours(data).devices
    hta = theirs(data).temporal()
    assert (hta["idle"], hta["span"]) == (140, 160)
    compare(device.totals.busy_ns / 1000, hta["busy"], right=50, known=20)


@differs("by default, HTA drops the last profiler step")
def test_the_last_step(ours, theirs, compare):
    """One kernel of 10 µs in each of three steps: 30 busy in a span of 210; without the last, 20 in 110."""
    trace = stepped(steps=3)
    for step in range(3):
        trace.launch(at=100 * step + 2).kernel(at=100 * step + 10, dur=10)
    data = render(trace, "kineto-2.2")
    (device,) = ours(data).devices
    hta = theirs(data, last_step=False).temporal()
    mine = device.totals.busy_ns / 1000, device.totals.span_ns / 1000
    compare(mine, (hta["busy"], hta["span"]), right=(30, 210), known=(20, 110))


@differs("HTA merges the devices of a file into one time line")
def test_two_devices(ours, theirs, compare):
    """Device 0 runs [10, 20) and [40, 50), device 1 runs [20, 40): each idles while the other runs, HTA sees none."""
    trace = stepped()
    trace.devices = 2
    trace.launch(at=2).kernel(at=10, dur=10)
    trace.launch(at=8, device=1).kernel(at=20, dur=20)
    trace.launch(at=30).kernel(at=40, dur=10)
    data = render(trace, "kineto-2.2")
    idle = sum(device.totals.idle_ns for device in ours(data).devices) / 1000
    compare(idle, theirs(data).temporal()["idle"], right=20, known=0)


@differs("HTA counts rows that are written twice twice")
def test_duplicate_rows(tables, theirs, compare):
    """One kernel of 10 µs, written twice."""
    trace = stepped()
    launch = trace.launch(at=2)
    launch.kernel(at=10, dur=10).kernel(at=10, dur=10)
    data = render(trace, "kineto-2.2")
    ops = tables(data).ops
    mine = int((ops.end_ns - ops.start_ns).sum()) / 1000
    compare(mine, theirs(data).kernels()["gemm_kernel"]["sum"], right=10, known=20)


@differs("HTA adds durations up whatever their sign")
def test_negative_durations(tables, theirs, compare):
    """Kernels of 10 and -4 µs: the second has no length to be known, so 10 is what the file tells; HTA says 6."""
    trace = stepped()
    trace.launch(at=2).kernel(at=10, dur=10)
    trace.launch(at=30).kernel(at=40, dur=-4)
    data = render(trace, "kineto-2.2")
    read = tables(data)
    assert "negative_duration" in {finding.code for finding in read.findings}
    mine = int((read.ops.end_ns - read.ops.start_ns).sum()) / 1000
    compare(mine, theirs(data).kernels()["gemm_kernel"]["sum"], right=10, known=6)


@differs("HTA believes any duration")
def test_absurd_durations(ours, theirs, compare):
    """A kernel of 10^13 µs, 115 days, beside one of 10 µs."""
    trace = stepped()
    trace.launch(at=2).kernel(at=10, dur=10)
    trace.launch(at=30).kernel(at=40, dur=10**13)
    data = render(trace, "kineto-2.2")
    report = ours(data)
    assert "absurd_duration" in {finding.code for finding in report.completeness.findings}
    compare(report.devices[0].totals.busy_ns / 1000, theirs(data).temporal()["busy"], right=10, known=10**13 + 10)


@differs("with more than ten names of a type, HTA's statistics are over each name's sum")
def test_statistics_of_many_kernels(tables, theirs, compare):
    """`k0` runs four times, for 1, 2, 3 and 4 µs, mean 2.5; ten other names run once. HTA gives 10, the sum."""
    trace = stepped()
    at = 10
    for dur in (1, 2, 3, 4):
        trace.launch(at=at - 5, dur=1).kernel("k0", at=at, dur=dur)
        at += 6
    for number in range(1, 11):
        trace.launch(at=at - 3, dur=1).kernel(f"k{number}", at=at, dur=1)
        at += 4
    data = render(trace, "kineto-2.2")
    read = tables(data)
    mine = read.ops.end_ns - read.ops.start_ns
    mean = float(mine[read.ops.name == read.names.index("k0")].mean()) / 1000
    compare(mean, theirs(data).kernels()["k0"]["mean"], right=2.5, known=10)


@differs("HTA's launch statistics know no graph launches")
def test_launches_of_graphs(tables, theirs, compare):
    """One graph launch with three ops and one kernel launch: both launches have their ops."""
    trace = stepped()
    launch = trace.graph_launch(at=2)
    for node in range(3):
        launch.kernel(f"node_{node}", at=10 + 10 * node, dur=8)
    trace.launch(at=50).kernel(at=60, dur=10)
    data = render(trace, "kineto-2.2")
    launched = len(set(tables(data).ops.launch.tolist()))
    compare(launched, theirs(data).launches(), right=2, known=1)


@differs("HTA gives gaps inside a graph no cause of their own")
def test_gaps_inside_a_graph(ours, theirs, compare):
    """Two nodes of one replay with 40 µs between them: idle inside the graph. HTA files them under `other`, 0
    unexplained is right.
    """
    trace = stepped()
    trace.graph_launch(at=2).kernel("a", at=10, dur=10).kernel("b", at=60, dur=10)
    data = render(trace, "kineto-2.2")
    (device,) = ours(data).devices
    assert device.ledger.accounts.idle_graph == 40_000
    assert device.ledger.accounts.idle_unknown == 0
    compare(0, theirs(data).idle_by_stream()[7, "other"], right=0, known=40)


@differs("HTA charges a whole gap to the host, though it had launched for part of it")
def test_latency_of_a_launch(ours, theirs, compare):
    """A gap [20, 40), and the launch of the op that ends it begins at 30: 10 µs are the host's and 10 are latency.

    ::

        host                      launch [30, 34)
        device   [10, 20)                       [40, 50)
    """
    trace = TraceBuilder(rank=0, world_size=1)
    trace.annotation("ProfilerStep#0", at=0, dur=50)
    trace.launch(at=2).kernel(at=10, dur=10)
    trace.launch(at=30).kernel(at=40, dur=10)
    data = render(trace, "kineto-2.2")
    (device,) = ours(data).devices
    accounts = device.ledger.accounts
    assert accounts.idle_latency == 8_000 + 10_000  # before the first op, its launch begins at 2
    between = accounts.idle_host - 2_000
    compare(between / 1000, theirs(data).idle_by_stream()[7, "host_wait"], right=10, known=20)


@differs("HTA's idle time is that of streams, which does not add up to the device's")
def test_idle_time_of_two_streams(ours, theirs, compare):
    """Stream 7 runs [10, 20) and [40, 50), stream 20 runs [20, 40): the device is never idle, stream 7 is for 20 µs."""
    trace = stepped()
    trace.launch(at=2).kernel(at=10, dur=10)
    trace.launch(at=8).kernel(at=20, dur=20, stream=20)
    trace.launch(at=30).kernel(at=40, dur=10)
    data = render(trace, "kineto-2.2")
    (device,) = ours(data).devices
    compare(device.totals.idle_ns / 1000, sum(theirs(data).idle_by_stream().values()), right=0, known=20)


@differs("HTA measures a gap from the op that started last, not from the one that ended last")
def test_overlapping_ops_of_a_stream(ours, theirs, compare):
    """[10, 30), [15, 25) inside it, then [40, 50): a gap of 10. HTA has 15 - 30 = -15 and 40 - 25 = 15, in all 0."""
    trace = stepped()
    trace.graph_launch(at=2).kernel("a", at=10, dur=20).kernel("b", at=15, dur=10).kernel("c", at=40, dur=10)
    data = render(trace, "kineto-2.2")
    (device,) = ours(data).devices
    compare(device.totals.idle_ns / 1000, sum(theirs(data).idle_by_stream().values()), right=10, known=0)


@pytest.mark.parametrize(
    ("name", "kind", "known"),
    [
        pytest.param("void SyncBatchNorm<float>()", "COMPUTATION", None, marks=differs("HTA takes 'Sync' for a wait")),
        pytest.param("rcclGenericKernel", "COMMUNICATION", "COMPUTATION", marks=differs("HTA knows no RCCL")),
        pytest.param(
            "void vllm::cross_device_reduce_1stage<__half, 2>()",
            "COMMUNICATION",
            "COMPUTATION",
            marks=differs("HTA knows no all-reduce but NCCL's"),
        ),
    ],
)
def test_kinds_of_kernels(tables, theirs, compare, name, kind, known):
    """A kernel beside a plain one of another length; the type is the one under which its 30 µs are."""
    trace = stepped()
    trace.launch(at=2).kernel(name, at=10, dur=30)
    trace.launch(at=40).kernel("plain", at=50, dur=5)
    data = render(trace, "kineto-2.2")
    ours = {0: "COMPUTATION", 1: "COMMUNICATION"}[int(tables(data).ops.kind[0])]
    types = theirs(data).time_by_type()
    hta = next((one for one, time in types.items() if time in (30, 35)), None)
    hta = None if known is None and types.get("COMPUTATION") == 5 else hta
    compare(ours, hta, right=kind, known=known)


@differs("HTA counts waits that the host recorded as busy time of the device")
def test_synchronisation_rows(ours, theirs, compare):
    """One kernel [10, 20); a wait for its stream is drawn on the device until 90: 10 µs busy, HTA says 80 in a span of
    80.
    """
    trace = stepped()
    trace.launch(at=2).kernel(at=10, dur=10)
    call = trace.call("cudaStreamSynchronize", at=12, dur=78)
    trace.sync("Stream Sync", at=20, dur=70, stream=7, correlation=call.correlation)
    data = render(trace, "kineto-2.2")
    (device,) = ours(data).devices
    compare(device.totals.busy_ns / 1000, theirs(data).temporal()["busy"], right=10, known=80)


@differs("HTA's span runs from the first op to the last, so a step that waits at its start is not idle")
def test_idle_time_before_the_first_op(ours, theirs, compare):
    """A step of 100 µs with one kernel [90, 100): 90 µs idle; HTA sees a span of 10 without any."""
    trace = TraceBuilder(rank=0, world_size=1)
    trace.annotation("ProfilerStep#0", at=0, dur=100)
    trace.launch(at=80).kernel(at=90, dur=10)
    data = render(trace, "kineto-2.2")
    (device,) = ours(data).devices
    compare(device.step.idle_ns / 1000, theirs(data).temporal()["idle"], right=90, known=0)


def one_kernel(writer):
    trace = TraceBuilder(rank=0, world_size=1)
    trace.launch(at=2).kernel(at=10, dur=10)
    return render(trace, writer)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(one_kernel("bare-list"), id="list", marks=pytest.mark.xfail(raises=AttributeError, strict=True)),
        pytest.param(one_kernel("quoted"), id="quoted times", marks=pytest.mark.xfail(raises=TypeError, strict=True)),
        pytest.param(
            one_kernel("kineto-2.2")[:-200], id="truncated", marks=pytest.mark.xfail(raises=ValueError, strict=True)
        ),
    ],
)
def test_files_that_hta_cannot_read(ours, theirs, data):
    """The kernel's 10 µs are in the file."""
    (device,) = ours(data).devices
    assert device.totals.busy_ns == 10_000
    assert theirs(data).temporal()["busy"] == 10
