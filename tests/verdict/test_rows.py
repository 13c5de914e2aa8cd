"""Rows that do not match each other: each finding where it is due, with severity and time at stake; and where it is
not.
"""

import pytest
from verdict.traces import calls, decode, kernels, replays, without


def test_launches_without_ops_that_hold_a_fifth_of_the_time(only):
    """Two of five kernels lost: at 600 µs each, 1200 of 3500 µs."""
    trace = decode()
    assert only("launch_without_op", without(trace, *kernels(trace, "a")[1:3])) == (
        "unreliable",
        ("error", 2, 1_200_000),
    )


def test_a_launch_without_op_that_holds_some_time(only):
    """One of five copies of 100 µs lost: 100 of 3500 µs, 2.9 %."""
    trace = decode()
    assert only("launch_without_op", without(trace, kernels(trace, "b")[2])) == ("partial", ("warning", 1, 100_000))


def test_a_launch_without_op_that_holds_next_to_nothing(only):
    """One of five copies of 5 µs lost: 5 of 3025 µs, 0.17 %."""
    trace = decode(copy_us=5)
    assert only("launch_without_op", without(trace, kernels(trace, "b")[2])) == ("complete", ("info", 1, 5_000))


def test_launches_in_a_stream_capture_enqueue_nothing(found):
    trace = decode()
    trace.call("cudaStreamBeginCapture", at=2000, dur=2)
    for at in range(2005, 2060, 5):
        trace.launch(at=at, dur=2)
    trace.graph_launch(at=2060, dur=2)
    trace.call("cudaStreamEndCapture", at=2070, dur=2)
    verdict, findings = found(trace)
    assert verdict == "complete"
    assert not findings


def test_ops_without_launch_that_hold_a_third_of_the_time(only):
    """Launches of two of five kernels lost: 1200 of 3500 µs."""
    trace = decode()
    gone = calls(trace, "cudaLaunchKernel")[1:3]
    assert only("op_without_launch", without(trace, *gone)) == ("unreliable", ("error", 2, 1_200_000))


def test_an_op_without_launch_that_holds_some_time(only):
    """The launch of one copy lost: 100 of 3500 µs."""
    trace = decode()
    assert only("op_without_launch", without(trace, calls(trace, "cudaMemcpyAsync")[2])) == (
        "partial",
        ("warning", 1, 100_000),
    )


@pytest.mark.parametrize("stream", [7, 13])
def test_ops_queued_before_the_capture_are_noted(only, stream):
    """A replay begun before the capture runs on into it: 80 µs before every launched op of its queue (or of the device,
    if its queue has none). No step counts it as its own, so no step is the worse for it.
    """
    trace = decode()
    trace.orphan().kernel("earlier", at=20, dur=80, stream=stream)
    assert only("op_without_launch", trace) == ("complete", ("info", 1, 80_000))


def test_ops_queued_before_the_capture_are_noted_however_long_they_take(audited):
    """A backlog of 9 ms ahead of five steps of 700 µs each: 72 % of the op time, all before the steps' own ops."""
    trace = decode()
    for row in (*trace.ops, *trace.host):
        row.start_ns += 10_000_000
    for place in range(9):
        trace.orphan().kernel("earlier", at=100 + 1000 * place, dur=1000)
    report = audited(trace)
    (finding,) = [f for f in report.completeness.findings if f.code == "op_without_launch"]
    assert (finding.severity, finding.count, finding.impact_ns) == ("info", 9, 9_000_000)
    assert report.completeness.verdict == "complete"
    (device,) = report.devices
    assert [item.op_time_ns for item in device.steps.items] == [700_000] * 5


def test_head_and_middle_are_judged_apart(only):
    """A head of 80 µs and, in the middle, one kernel of 600 of 3580 µs without launch: 16.8 %, an error for the middle
    alone.
    """
    trace = decode()
    trace.orphan().kernel("earlier", at=20, dur=80)
    gone = calls(trace, "cudaLaunchKernel")[2]
    assert only("op_without_launch", without(trace, gone)) == ("unreliable", ("error", 2, 680_000))


def test_a_queue_without_any_launch_is_no_head(only):
    """Ops of an API that is not recorded, on a queue of their own, after the device's first launched op: 5 x 100 of
    4000 µs.
    """
    trace = decode()
    for step in range(5):
        trace.orphan().kernel("driver", at=1000 * step + 855, dur=100, stream=13)
    assert only("op_without_launch", trace) == ("unreliable", ("error", 5, 500_000))


def test_a_device_without_any_launch_has_no_head(only):
    """All launches of device 1 lost: nothing tells when the capture caught up with it."""
    trace = decode()
    trace.devices = 2
    for step in range(5):
        trace.orphan(device=1).kernel("c", at=1000 * step + 100, dur=500)
    assert only("op_without_launch", trace) == ("unreliable", ("error", 5, 2_500_000))


def test_replays_left_with_one_stray_row_each(only):
    """Four of five replays show one op of 200 µs of 600: 4 x 400 µs are missing."""
    trace = replays()
    kept = {id(kernels(trace, "xyz"[step % 3])[step]) for step in range(4)}
    kept |= {id(kernels(trace, name)[4]) for name in "xyz"}
    lost = [op for op in trace.ops if op.name in "xyz" and id(op) not in kept]
    assert only("graph_replay_uneven", without(trace, *lost)) == ("unreliable", ("error", 4, 1_600_000))


@pytest.mark.parametrize("graph_id", [None, 3])
@pytest.mark.parametrize("markers", [True, False])
def test_one_op_of_one_replay_lost(only, graph_id, markers):
    """200 of 5 x 620 µs: 6.5 %."""
    trace = replays(graph_id=graph_id, markers=markers)
    lost = kernels(trace, "y")[2]
    assert only("graph_replay_uneven", without(trace, lost)) == ("partial", ("warning", 1, 200_000))


def test_a_step_that_only_a_stray_kernel_covers_is_not_covered(only):
    """Two of five replays lost whole; the steps still hold their sampling kernel. 2 x 600 of 3100 µs."""
    trace = replays()
    lost = [kernels(trace, name)[step] for name in "xyz" for step in (1, 3)]
    assert only("graph_replay_uneven", without(trace, *lost)) == ("unreliable", ("error", 2, 1_200_000))


def test_replays_that_change_order_and_streams_are_equal(found):
    """The multiset counts: nodes of a graph may come in another order and on other internal streams."""
    trace = replays()
    first, second = kernels(trace, "x")[2], kernels(trace, "y")[2]
    first.start_ns, second.start_ns = second.start_ns, first.start_ns
    first.stream = 31
    verdict, findings = found(trace)
    assert verdict == "complete"
    assert not findings


def test_two_graphs_in_turn_are_two_graphs(found):
    """One graph for large batches, one for small: every second step replays the other one."""
    trace = replays(6, markers=False)
    zs = kernels(trace, "z")
    for step in (1, 3, 5):
        zs[step].name = "z_small"
    verdict, findings = found(trace)
    assert verdict == "complete"
    assert not findings


@pytest.mark.parametrize("steps", [1, 3])
def test_a_model_cut_into_one_graph_a_layer(found, steps):
    """The last piece of each step holds a part of what the layers' pieces hold; that is how engines cut models."""
    from builders import TraceBuilder

    trace = TraceBuilder()
    for step in range(steps):
        at = 2000 * step
        trace.annotation("execute_context_0(0)_generation_8(8)", at=at, dur=1900)
        pieces = [
            ("embed", "norm", "qkv"),
            *[("proj", "norm", "mlp", "norm", "qkv")] * 10,
            ("proj", "norm", "mlp", "norm"),
        ]
        for place, piece in enumerate(pieces):
            launch = trace.graph_launch(at=at + 10 + 100 * place, dur=5)
            for node, name in enumerate(piece):
                launch.kernel(name, at=at + 30 + 100 * place + 10 * node, dur=9)
            trace.launch(at=at + 20 + 100 * place).kernel("attention", at=at + 85 + 100 * place, dur=10)
    verdict, findings = found(trace)
    assert "graph_replay_uneven" not in findings
    assert verdict == "complete"


def test_a_row_written_twice(only):
    """One kernel of 600 µs twice: 600 beside 3500 µs; the op time stays 3500."""
    trace = decode()
    trace.ops.append(kernels(trace, "a")[2])
    assert only("duplicate_rows", trace) == ("unreliable", ("error", 1, 600_000))


def test_a_short_row_written_twice(only):
    trace = decode()
    trace.ops.append(kernels(trace, "b")[2])
    assert only("duplicate_rows", trace) == ("partial", ("warning", 1, 100_000))


def test_nodes_of_a_graph_that_look_alike_are_no_duplicates(found):
    """Two branches of a graph run the same kernel at the same time on two streams."""
    trace = replays()
    for op in kernels(trace, "x"):
        twin = type(op)(**{**vars(op), "stream": 31})
        trace.ops.append(twin)
    verdict, findings = found(trace)
    assert verdict == "complete"
    assert "duplicate_rows" not in findings


def test_a_clean_trace_has_no_finding(found):
    for trace in (decode(), replays(), replays(graph_id=3), replays(markers=False)):
        assert found(trace) == ("complete", {})
