"""What is raised, with which count, time at stake and severity; and what stays quiet."""

import pytest
from builders import TraceBuilder
from renderers import COARSE, KINETO, render

from traceaudit.model.findings import Severity


@pytest.fixture
def check(read_data):
    """Render, read, and return the findings by code."""

    def run(trace, writer="kineto-2.6"):
        read = read_data(render(trace, writer))
        assert len({finding.code for finding in read.findings}) == len(read.findings)
        return {finding.code: finding for finding in read.findings}, read

    return run


def healthy(steps=4):
    """Return steps of one eager kernel and one graph of two kernels on two streams."""
    trace = TraceBuilder()
    for step in range(steps):
        at = 1000 * step
        trace.annotation(f"ProfilerStep#{step}", at=at, dur=1000)
        trace.op("aten::mm", at=at + 10, dur=20)
        trace.launch(at=at + 15).kernel("eager", at=at + 40, dur=100)
        trace.graph_launch(at=at + 50).kernel("a", at=at + 140, dur=200).kernel("b", at=at + 150, dur=300, stream=13)
        trace.call("cudaDeviceSynchronize", at=at + 60, dur=900)
    return trace


@pytest.mark.parametrize("writer", KINETO)
def test_a_healthy_trace_is_quiet(check, writer):
    found, _ = check(healthy(), writer)
    assert set(found) == ({"coarse_timestamps"} if writer in COARSE else set())


def test_graph_replays_without_rows(check):
    """Three of four graph launches of the same 500 µs lack their rows: 3 x 500 of 400 + 500 + 1500 µs."""
    trace = healthy()
    last = max(op.correlation for op in trace.ops)
    trace.ops = [op for op in trace.ops if op.name == "eager" or op.correlation == last]
    found, _ = check(trace)
    uneven = found["graph_replay_uneven"]
    assert (uneven.count, uneven.impact_ns, uneven.severity) == (3, 1_500_000, Severity.ERROR)
    assert "3 of 4 graph launches" in uneven.message
    assert found["launch_without_op"].count == 3
    assert found["launch_without_op"].impact_ns == 1_500_000
    assert len(uneven.examples) == 3


def test_graph_replays_with_fewer_rows_than_siblings(check):
    """One of six replays lacks its kernel b of 300 µs."""
    trace = healthy(6)
    lost = next(op for op in trace.ops if op.name == "b")
    trace.ops.remove(lost)
    found, _ = check(trace)
    assert (found["graph_replay_uneven"].count, found["graph_replay_uneven"].impact_ns) == (1, 300_000)
    assert found["graph_replay_uneven"].severity is Severity.WARNING
    assert set(found) == {"graph_replay_uneven"}


def test_different_graphs_in_turn_are_even(check):
    """Two graphs, A B A B A B: unlike each other, each like its siblings, with ids and without."""
    for ids in (False, True):
        trace = TraceBuilder()
        for step in range(3):
            at = 1000 * step
            graph = {"graph id": 4} if ids else {}
            trace.graph_launch(at=at).kernel("a", at=at + 50, dur=100, **graph).kernel(
                "b", at=at + 150, dur=10, **graph
            )
            graph = {"graph id": 9} if ids else {}
            trace.graph_launch(at=at + 20).kernel("a", at=at + 300, dur=100, **graph)
        found, read = check(trace)
        assert found == {}
        assert set(read.ops.graph.tolist()) == ({4, 9} if ids else {-1})


def test_graph_ids_group_replays(check):
    """Replays of graph 4 have two ops, but for one; no order repeats."""
    trace = TraceBuilder()
    for step, names in enumerate(["ab", "c", "ab", "a", "ab", "d", "ab"]):
        launch = trace.graph_launch(at=1000 * step)
        for place, name in enumerate(names):
            graph = 4 if name in "ab" else 7 + step
            launch.kernel(name, at=1000 * step + 50 + 100 * place, dur=80, **{"graph id": graph})
    found, _ = check(trace)
    assert (found["graph_replay_uneven"].count, found["graph_replay_uneven"].impact_ns) == (1, 80_000)


def test_launches_in_a_stream_capture_have_no_ops(check):
    """Five launches between begin and end of a capture enqueue nothing; one outside does, and lost its op."""
    trace = healthy()
    trace.call("cudaStreamBeginCapture", at=5000, dur=1)
    for number in range(5):
        trace.launch(at=5010 + 10 * number)
    trace.call("cudaStreamEndCapture", at=5100, dur=1)
    trace.launch(at=5200)
    trace.launch(at=5300).kernel("eager", at=5400, dur=100)
    found, _ = check(trace)
    assert set(found) == {"launch_without_op"}
    assert found["launch_without_op"].count == 1
    assert found["launch_without_op"].impact_ns == 100_000
    assert "5 more during a stream capture" in found["launch_without_op"].message


def test_launches_at_the_end_are_cut_off_by_the_capture(check):
    """Two kernel launches come after all that have ops; the mean of their kind is 100 µs, that of four eager ops."""
    trace = healthy()
    trace.launch(at=4000)
    trace.launch(at=4010)
    found, _ = check(trace)
    assert set(found) == {"capture_edge_loss"}
    assert (found["capture_edge_loss"].count, found["capture_edge_loss"].impact_ns) == (2, 200_000)


def test_driver_row_under_a_runtime_row(check):
    """Both rows share the correlation; the launch is the one named so, and the other lacks nothing."""
    trace = TraceBuilder()
    launch = trace.launch("cudaLaunchKernel", at=0, dur=10).kernel(at=20, dur=5)
    trace.call("cuModuleGetFunction", at=3, dur=2).correlation = launch.correlation
    trace.launch("cudaLaunchKernel", at=30, dur=10).kernel(at=50, dur=5)
    found, read = check(trace)
    assert found == {}
    assert [read.names[read.host.name[row]] for row in read.ops.launch] == ["cudaLaunchKernel"] * 2
    trace.call("cuLaunchKernel", at=32, dur=6).correlation = launch.correlation + 2
    found, read = check(trace)
    assert found == {}
    assert [read.names[read.host.name[row]] for row in read.ops.launch] == ["cudaLaunchKernel", "cuLaunchKernel"]


def test_ops_queued_before_the_capture(check):
    """600 µs of 9600 come before all launched ops of the queue, then 2600 of 11 600: normal, no step owns them."""
    trace = TraceBuilder()
    trace.orphan().kernel("early", at=-100, dur=600)
    for step in range(3):
        trace.launch(at=10 * step).kernel(at=500 + 3000 * step, dur=3000)
    found, _ = check(trace)
    assert found["op_without_launch"].severity is Severity.INFO
    assert (found["op_without_launch"].count, found["op_without_launch"].impact_ns) == (1, 600_000)
    trace.orphan().kernel("earlier", at=-3000, dur=2000)
    found, _ = check(trace)
    assert found["op_without_launch"].severity is Severity.INFO
    assert found["op_without_launch"].impact_ns == 2_600_000


def test_ops_without_launch_in_the_middle(check):
    """1500 of 4500 µs have no launch, between ops that have one: error."""
    trace = TraceBuilder()
    for step in range(3):
        launch = trace.orphan() if step == 1 else trace.launch(at=10 * step)
        launch.kernel(at=500 + 1500 * step, dur=1500)
    found, _ = check(trace)
    assert found["op_without_launch"].severity is Severity.ERROR
    assert found["op_without_launch"].impact_ns == 1_500_000


def test_a_trace_without_api_rows(check):
    trace = TraceBuilder()
    trace.orphan().kernel(at=0, dur=100).kernel(at=200, dur=100)
    found, _ = check(trace)
    assert found["op_without_launch"].severity is Severity.WARNING
    assert "no API rows at all" in found["op_without_launch"].message


def overrunning():
    """Return one queue: 0+90, 100+1 600 000 (damaged), 500+90, 610+380; host rows end at 54."""
    trace = TraceBuilder()
    for number, (at, dur) in enumerate([(0, 90), (100, 1_600_000), (500, 90), (610, 380)]):
        trace.launch(at=-20 + 20 * number).kernel(f"k{number}", at=at, dur=dur)
    return trace


def test_damaged_end_is_clipped_at_the_next_start(check):
    """100 to 500 remains of the damaged op: 1 599 600 of 1 600 560 µs are removed."""
    found, read = check(overrunning())
    assert read.ops.end_ns.tolist() == [110_000, 520_000, 610_000, 1_010_000]
    assert read.ops.clipped_ns.tolist() == [0, 1_599_600_000, 0, 0]
    overlap = found["impossible_overlap"]
    assert (overlap.count, overlap.impact_ns, overlap.severity) == (1, 1_599_600_000, Severity.ERROR)
    assert "k1" in overlap.examples[0]


def test_dependent_launch_and_branches_are_legal(check):
    """A kernel starts before the one ahead of it ends; a branch holds another inside it; both end in the capture."""
    trace = TraceBuilder()
    trace.launch(at=-30).kernel("gemm", at=0, dur=20)
    trace.launch(at=-20).kernel("norm", at="17.5", dur="4.5")
    trace.graph_launch(at=-10).kernel("long", at=30, dur=500).kernel("inside", at=40, dur=20).kernel(
        "tail", at=530, dur=9
    )
    trace.call("cudaDeviceSynchronize", at=0, dur=560)
    found, read = check(trace)
    assert found == {}
    assert not read.ops.clipped_ns.any()


def test_the_last_op_may_hold_a_shorter_one(check):
    """Without a row that ends later: 1000 µs on the queue, and 15 µs inside it near its end."""
    trace = TraceBuilder()
    trace.launch(at=-20).kernel("long", at=0, dur=1000)
    trace.launch(at=-10).kernel("inside", at=980, dur=15)
    assert check(trace)[0] == {}


def test_clock_skew(check):
    """Two of four ops start before their launch, by 2 and 5 µs, in a span of 3300: little, so a remark."""
    trace = TraceBuilder()
    for number, early in enumerate([0, 2, 0, 5]):
        trace.launch(at=1000 * number).kernel(at=1000 * number - early, dur=300)
    found, read = check(trace)
    skew = found["clock_skew"]
    assert (skew.count, skew.impact_ns, skew.severity) == (2, 7_000, Severity.INFO)
    assert "0.005 ms at most" in skew.message
    assert len(read.ops) == 4
    for op in trace.ops:
        op.start_ns -= 100_000
    assert check(trace)[0]["clock_skew"].severity is Severity.ERROR


def test_whole_microseconds_allow_a_skew_of_one(check):
    trace = TraceBuilder()
    trace.launch(at=0).kernel(at=-1, dur=300)
    trace.launch(at=400).kernel(at=410, dur=300)
    assert set(check(trace, "kineto-2.2")[0]) == {"coarse_timestamps"}
    assert "clock_skew" in check(trace, "kineto-2.6")[0]


def test_zero_and_negative_and_absurd_durations(check):
    """0+20, 20+0, 20+10 stay; one of -3.2 µs and one of two days are left out."""
    trace = TraceBuilder()
    for at, dur in [(0, 20), (20, 0), (20, 10)]:
        trace.launch(at=at - 15).kernel(at=at, dur=dur)
    found, _ = check(trace)
    assert set(found) == {"zero_duration"}
    assert (found["zero_duration"].count, found["zero_duration"].severity) == (1, Severity.WARNING)
    trace.launch(at=20).kernel(at=40, dur="-3.2")
    trace.launch(at=25).kernel(at=60, dur=2 * 86_400 * 10**6)
    found, read = check(trace)
    assert (found["negative_duration"].count, found["negative_duration"].impact_ns) == (1, 3200)
    assert found["absurd_duration"].count == 1
    assert len(read.ops) == 3


def test_copies_of_nothing_take_no_time(check):
    trace = TraceBuilder()
    trace.launch("cudaMemcpyAsync", at=0).memcpy(at=10, dur=0, size=0)
    trace.launch(at=20).kernel(at=30, dur=10)
    assert check(trace)[0]["zero_duration"].severity is Severity.INFO


def test_records_without_times(read_data):
    """ts 0 and dur 0 among times since 1970: never filled in. So is a row days away from all others."""
    row = '{"ph":"X","cat":"Kernel","name":"k","pid":0,"tid":"stream 7","ts":%s,"dur":%s,"args":{"device":0}}'
    times = [("1620000000000100", "40"), ("0", "0"), ("1620000000000150", "60"), ("12", "7")]
    read = read_data(("[" + ",".join(row % pair for pair in times) + "]").encode())
    assert read.ops.start_ns.tolist() == [0, 50_000]
    (dropped,) = [finding for finding in read.findings if finding.code == "rows_dropped"]
    assert dropped.count == 2
    assert "1 without times, 1 more than a day away" in dropped.message


def test_rows_written_twice(check):
    """Three ops of 100 µs, one of them twice: one copy goes. An op of no duration may look like another."""
    trace = TraceBuilder()
    for number in range(3):
        trace.launch(at=200 * number).kernel(at=200 * number + 10, dur=100)
    trace.ops.append(trace.ops[1])
    found, read = check(trace)
    assert len(read.ops) == 3
    assert (found["duplicate_rows"].count, found["duplicate_rows"].impact_ns) == (1, 100_000)
    assert found["duplicate_rows"].severity is Severity.ERROR
    twice = TraceBuilder()
    twice.launch(at=0).memset(at=10, dur=0, size=0).memset(at=10, dur=0, size=0)
    found, read = check(twice)
    assert len(read.ops) == 2
    assert "duplicate_rows" not in found


def test_findings_name_the_rank(check):
    trace = overrunning()
    trace.rank, trace.world_size = 3, 4
    found, _ = check(trace)
    assert found["impossible_overlap"].rank == 3
