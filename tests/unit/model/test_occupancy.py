"""Who owns the device at each instant. Times in µs; the first row of each trace is at 0."""

import pytest
from builders import TraceBuilder
from views import view_of

from traceaudit.model.occupancy import Owner


def owners(builder):
    """Return the time line as [(start, end, owner)], in µs, pieces of one owner joined."""
    found = view_of(builder).occupancy
    line = []
    for start, end, owner in zip(
        found.edge_ns[:-1].tolist(), found.edge_ns[1:].tolist(), found.owner.tolist(), strict=True
    ):
        name = Owner(owner).name.lower()
        if line and line[-1][2] == name:
            line[-1] = (line[-1][0], end / 1000, name)
        else:
            line.append((start / 1000, end / 1000, name))
    return line


class TestBusy:
    def test_compute_comes_before_comm_and_comm_before_copies(self):
        """
        copy      0         40
        comm        10   30
        compute        20      50
        owner     copy comm compute
        """
        trace = TraceBuilder()
        trace.launch(at=0).memcpy(at=0, dur=40, stream=9)
        trace.launch(at=1).kernel("ncclDevKernel_AllReduce", at=10, dur=20, stream=8)
        trace.launch(at=2).kernel("gemm", at=20, dur=30)
        assert owners(trace) == [(0, 10, "exposed_copy"), (10, 20, "exposed_comm"), (20, 50, "compute")]

    def test_what_lies_under_compute_shows_when_compute_ends(self):
        """compute [0, 10), comm [0, 20), memset [0, 30)."""
        trace = TraceBuilder()
        trace.launch(at=0).kernel("gemm", at=0, dur=10).memset(at=0, dur=30, stream=9)
        trace.launch(at=1).kernel("ncclDevKernel_AllReduce", at=0, dur=20, stream=8)
        assert owners(trace) == [(0, 10, "compute"), (10, 20, "exposed_comm"), (20, 30, "exposed_copy")]


class TestLatency:
    def test_the_call_then_the_delivery(self):
        """a [0, 10); call [14, 20) launches b at 27: host until 14, call until 20, then delivery."""
        trace = TraceBuilder()
        trace.launch(at=0, dur=2).kernel("a", at=0, dur=10)
        trace.launch(at=14, dur=6).kernel("b", at=27, dur=5)
        assert owners(trace) == [
            (0, 10, "compute"),
            (10, 14, "idle_host"),
            (14, 20, "launch_call"),
            (20, 27, "delivery"),
            (27, 32, "compute"),
        ]

    def test_a_call_that_began_before_the_gap(self):
        """a [0, 10); call [8, 12) launches b at 15: call until 12, then delivery."""
        trace = TraceBuilder()
        trace.launch(at=0, dur=2).kernel("a", at=0, dur=10)
        trace.launch(at=8, dur=4).kernel("b", at=15, dur=5)
        assert owners(trace)[1:3] == [(10, 12, "launch_call"), (12, 15, "delivery")]

    @pytest.mark.parametrize("returned", [9, 10])
    def test_a_call_that_returned_before_the_gap_is_turnaround(self, returned):
        """a [0, 10); the call of b returned by then; b begins at 13."""
        trace = TraceBuilder()
        trace.launch(at=0, dur=2).kernel("a", at=0, dur=10)
        trace.launch(at=5, dur=returned - 5).kernel("b", at=13, dur=5)
        assert owners(trace)[1:2] == [(10, 13, "turnaround")]

    def test_an_op_that_starts_before_its_call_returns(self):
        """a [0, 10); call [12, 30) launches b at 15: there is no delivery."""
        trace = TraceBuilder()
        trace.launch(at=0, dur=2).kernel("a", at=0, dur=10)
        trace.launch(at=12, dur=18).kernel("b", at=15, dur=20)
        assert owners(trace)[1:3] == [(10, 12, "idle_host"), (12, 15, "launch_call")]

    def test_an_op_that_starts_before_its_call(self):
        """Clock skew: a [0, 10), b at 15 by a call at 17. Latency is clamped to 0: all of the gap is the host's."""
        trace = TraceBuilder()
        trace.launch(at=0, dur=2).kernel("a", at=0, dur=10)
        trace.launch(at=17, dur=4).kernel("b", at=15, dur=5)
        assert owners(trace)[1:2] == [(10, 15, "idle_host")]

    def test_the_first_launched_of_two_ops_that_start_together_decides(self):
        """Both begin at 20; the calls are [12, 13) and [15, 16): latency begins at 12."""
        trace = TraceBuilder()
        trace.launch(at=0, dur=2).kernel("a", at=0, dur=10)
        trace.launch(at=15, dur=1).kernel("b", at=20, dur=5)
        trace.launch(at=12, dur=1).kernel("c", at=20, dur=5, stream=8)
        assert owners(trace)[1:4] == [(10, 12, "idle_host"), (12, 13, "launch_call"), (13, 20, "delivery")]

    def test_an_op_of_no_length_does_not_split_a_gap(self):
        """a [0, 10), nothing at 14, b at 20 by a call [12, 13): one gap, and b's call decides all of it."""
        trace = TraceBuilder()
        trace.launch(at=0, dur=2).kernel("a", at=0, dur=10).kernel("nothing", at=14, dur=0)
        trace.launch(at=12, dur=1).kernel("b", at=20, dur=5)
        assert owners(trace)[1:4] == [(10, 12, "idle_host"), (12, 13, "launch_call"), (13, 20, "delivery")]


class TestGraph:
    def test_between_ops_of_one_launch_once_its_call_returned(self):
        """Call [0, 12); nodes [5, 10), [15, 20), [22, 30): call until 12, then the graph's own gaps."""
        trace = TraceBuilder()
        trace.graph_launch(at=0, dur=12).kernel("a", at=5, dur=5).kernel("b", at=15, dur=5).kernel("c", at=22, dur=8)
        assert owners(trace) == [
            (0, 5, "launch_call"),
            (5, 10, "compute"),
            (10, 12, "launch_call"),
            (12, 15, "idle_graph"),
            (15, 20, "compute"),
            (20, 22, "idle_graph"),
            (22, 30, "compute"),
        ]

    def test_between_two_replays_is_turnaround(self):
        """Both launched by 8; the first replay ends at 20, the second begins at 24."""
        trace = TraceBuilder()
        trace.graph_launch(at=0, dur=4).kernel("a", at=5, dur=15)
        trace.graph_launch(at=4, dur=4).kernel("a", at=24, dur=15)
        assert owners(trace)[2:3] == [(5, 20, "compute")]
        assert owners(trace)[3:4] == [(20, 24, "turnaround")]

    def test_a_pending_node_is_not_the_graphs_doing(self):
        """Call [0, 4); nodes [5, 10) and [610, 620): 600 behind its predecessor, the only other wait is 1."""
        trace = TraceBuilder()
        trace.graph_launch(at=0, dur=4).kernel("a", at=5, dur=5).kernel("b", at=610, dur=10)
        assert owners(trace)[3:4] == [(10, 610, "idle_unknown")]


class TestUnknownAndHost:
    def test_an_op_without_launch_row(self):
        trace = TraceBuilder()
        trace.launch(at=0, dur=2).kernel("a", at=0, dur=10)
        trace.orphan().kernel("orphan", at=15, dur=5)
        assert owners(trace)[1:2] == [(10, 15, "idle_unknown")]

    def test_a_pending_op(self):
        """Launched [0, 2), on an idle device from 10 on, starts at 400: 390 that the trace does not explain."""
        trace = TraceBuilder()
        trace.launch(at=0, dur=2).kernel("a", at=0, dur=10).kernel("b", at=400, dur=5)
        assert owners(trace)[1:2] == [(10, 400, "idle_unknown")]

    def test_behind_the_last_op_the_host_is_due(self):
        trace = TraceBuilder()
        trace.launch(at=0, dur=2).kernel("a", at=0, dur=10)
        trace.op("aten::mm", at=5, dur=20)
        assert owners(trace) == [(0, 10, "compute"), (10, 25, "idle_host")]

    def test_a_trace_without_host_rows(self):
        """Nothing says who launched: the gap between the ops is unknown."""
        trace = TraceBuilder()
        trace.orphan().kernel("a", at=0, dur=10)
        trace.orphan().kernel("b", at=15, dur=5)
        assert owners(trace) == [(0, 10, "compute"), (10, 15, "idle_unknown"), (15, 20, "compute")]
