"""The kernel-timeline graph: nodes, typed edges, slack. Times in µs; the first row of each trace is at 0."""

import networkx as nx
import numpy as np
import pytest
from builders import TraceBuilder
from views import trace_of, view_of

from traceaudit.model.dependencies import _latest_before
from traceaudit.model.timeline import EdgeType, NodeType, timeline_of


def label(timeline, node):
    """Return a node as kind and name, such as ``op a``."""
    return f"{NodeType(int(timeline.node_type[node])).name.lower()} {timeline.name_of(node)}"


def edges(trace, kind=None):
    """Return the edges as {(source, target): slack in µs}, all or those of one type."""
    timeline = timeline_of(view_of(trace))
    return {
        (label(timeline, source), label(timeline, target)): slack / 1000
        for source, target, edge_type, slack in zip(
            timeline.source.tolist(),
            timeline.target.tolist(),
            timeline.edge_type.tolist(),
            timeline.slack_ns.tolist(),
            strict=True,
        )
        if kind is None or edge_type == kind
    }


def inferred(trace, kind):
    """Return the pairs of one type whose edge is inferred."""
    timeline = timeline_of(view_of(trace))
    chosen = (timeline.edge_type == kind) & timeline.inferred
    return [
        (label(timeline, source), label(timeline, target))
        for source, target in zip(timeline.source[chosen].tolist(), timeline.target[chosen].tolist(), strict=True)
    ]


class TestHostAndLaunch:
    def test_calls_of_a_thread_in_program_order(self):
        """Calls A [0, 4) and B [10, 14) on thread 1, C [5, 9) on thread 2: A to B only, 6 apart."""
        trace = TraceBuilder()
        for name, at, thread in (("cudaLaunchKernel", 0, 1), ("cudaLaunchKernelExC", 10, 1), ("cuLaunchKernel", 5, 2)):
            trace.launch(name, at=at, dur=4, thread=thread).kernel(f"k{at}", at=at + 20, dur=1, stream=at)
        assert edges(trace, EdgeType.HOST) == {("launch cudaLaunchKernel", "launch cudaLaunchKernelExC"): 6}

    def test_a_launch_and_its_ops(self):
        """Call at 0; ops at 20 and 30: slack is from the call's start."""
        trace = TraceBuilder()
        trace.graph_launch(at=0, dur=4).kernel("a", at=20, dur=5).kernel("b", at=30, dur=5)
        assert edges(trace, EdgeType.LAUNCH) == {
            ("launch cudaGraphLaunch", "op a"): 20,
            ("launch cudaGraphLaunch", "op b"): 30,
        }

    def test_calls_that_do_nothing_for_the_device_are_no_nodes(self):
        """Queries and allocations are left out; a launch without recorded ops and event calls are in."""
        trace = TraceBuilder()
        trace.launch(at=0, dur=4).kernel("a", at=20, dur=5)
        for at, name in enumerate(
            ("cudaEventQuery", "cudaMalloc", "cudaGraphLaunch", "cudaEventRecord", "cudaStreamWaitEvent"), start=1
        ):
            trace.call(name, at=10 * at, dur=2)
        timeline = timeline_of(view_of(trace))
        assert sorted(label(timeline, node) for node in range(len(timeline))) == [
            "launch cudaGraphLaunch",
            "launch cudaLaunchKernel",
            "op a",
            "wait cudaEventRecord",
            "wait cudaStreamWaitEvent",
        ]

    def test_an_op_without_launch_has_no_such_edge(self):
        trace = TraceBuilder()
        trace.orphan().kernel("a", at=0, dur=5)
        assert edges(trace) == {}

    def test_an_op_before_its_launch_leads_backward_and_is_dropped(self):
        """Clock skew: op [5, 25), its call at 10."""
        trace = TraceBuilder()
        trace.op("aten::mm", at=0, dur=1)
        trace.launch(at=10, dur=4).kernel("a", at=5, dur=20)
        timeline = timeline_of(view_of(trace))
        assert timeline.dropped == 1
        assert edges(trace) == {}


class TestQueues:
    def test_ops_of_a_queue_in_order(self):
        """a [5, 10), b [20, 30) on stream 7, c [12, 14) on stream 8."""
        trace = TraceBuilder()
        trace.launch(at=0).kernel("a", at=5, dur=5)
        trace.launch(at=1).kernel("b", at=20, dur=10)
        trace.launch(at=2).kernel("c", at=12, dur=2, stream=8)
        assert edges(trace, EdgeType.STREAM) == {("op a", "op b"): 10}

    def test_dependent_launch_has_negative_slack(self):
        """b begins at 8 while a runs until 10."""
        trace = TraceBuilder()
        trace.launch(at=0).kernel("a", at=5, dur=5)
        trace.launch(at=1).kernel("b", at=8, dur=10)
        assert edges(trace, EdgeType.STREAM) == {("op a", "op b"): -2}

    def test_inside_a_replay_what_ended_last_on_another_queue_counts_as_well(self):
        """a [5, 10) and b [5, 15) on two queues, c [18, 20) on a's: c waited for a by its queue, for b by the graph."""
        trace = TraceBuilder()
        launch = trace.graph_launch(at=0, dur=4)
        launch.kernel("a", at=5, dur=5).kernel("b", at=5, dur=10, stream=8).kernel("c", at=18, dur=2)
        assert edges(trace, EdgeType.GRAPH) == {("op a", "op c"): 8, ("op b", "op c"): 3}
        assert edges(trace, EdgeType.STREAM) == {}

    def test_a_replay_waits_for_the_work_before_it_on_other_queues(self):
        """eager [5, 40) on 7; a replay launched at 10 on queue 30, its nodes [42, 50), [51, 60).

        The replay's first node waited for the op that still ran when it was launched; its second is no boundary.
        """
        trace = TraceBuilder()
        trace.launch(at=0, dur=2).kernel("eager", at=5, dur=35)
        trace.graph_launch(at=10, dur=2).kernel("a", at=42, dur=8, stream=30).kernel("b", at=51, dur=9, stream=30)
        assert edges(trace, EdgeType.STREAM) == {("op eager", "op a"): 2}
        assert inferred(trace, EdgeType.STREAM) == [("op eager", "op a")]

    def test_work_behind_a_replay_waits_for_its_last_op(self):
        """Nodes [5, 10), [11, 40) on queue 30; an eager op launched at 20 on stream 7 begins at 43."""
        trace = TraceBuilder()
        trace.graph_launch(at=0, dur=2).kernel("a", at=5, dur=5, stream=30).kernel("b", at=11, dur=29, stream=30)
        trace.launch(at=20, dur=2).kernel("eager", at=43, dur=5)
        assert edges(trace, EdgeType.STREAM) == {("op b", "op eager"): 3}

    def test_an_op_launched_when_the_replay_was_over_waited_for_nothing(self):
        trace = TraceBuilder()
        trace.graph_launch(at=0, dur=2).kernel("a", at=5, dur=5, stream=30).kernel("b", at=11, dur=9, stream=30)
        trace.launch(at=25, dur=2).kernel("eager", at=43, dur=5)
        assert edges(trace, EdgeType.STREAM) == {}

    def test_times_are_compared_exactly_on_long_traces(self):
        """Two members of launch ten million: the first ends 1 ns after the second begins, a hundred seconds in.

        As float64, the launch's number times the span is above 2**59: a nanosecond would be lost.
        """
        group = np.array([10_000_000, 10_000_000], np.int64)
        start = np.array([0, 10**11], np.int64)
        assert [pair.tolist() for pair in _latest_before(group, start, np.array([10**11 + 1, 10**11 + 5]))] == [[], []]
        assert [pair.tolist() for pair in _latest_before(group, start, np.array([10**11, 10**11 + 5]))] == [[0], [1]]


def wait_row(kind, at, *, stream, correlation, on_stream=-1, on_correlation=-1):
    """Return a `cuda_sync` row as the file has it; the offset is the renderer's."""
    ts = 4_402_211_000_000 + at
    args = {
        "cuda_sync_kind": kind,
        "stream": stream,
        "correlation": correlation,
        "device": 0,
        "wait_on_stream": on_stream,
        "wait_on_cuda_event_record_corr_id": on_correlation,
    }
    return {"ph": "X", "cat": "cuda_sync", "name": kind, "pid": 0, "tid": stream, "ts": ts, "dur": 1, "args": args}


class TestEvents:
    def make(self):
        """Stream 7: a [10, 30). Stream 8: b [50, 60), and before it other [3, 4). Event recorded at 2, waited for at 4.

        thread 1:  other(0)  a(1)  record(2)  wait(4)  b(6)
        """
        trace = TraceBuilder()
        trace.launch(at=0, dur=1).kernel("other", at=3, dur=1, stream=8)
        trace.launch(at=1, dur=1).kernel("a", at=10, dur=20)
        record = trace.call("cudaEventRecord", at=2, dur=1)
        wait = trace.call("cudaStreamWaitEvent", at=4, dur=1)
        trace.launch(at=6, dur=1).kernel("b", at=50, dur=10, stream=8)
        return trace, record, wait

    def test_a_recorded_wait(self):
        """b, the next op on the waiting stream, waited for a, the last recorded on the other: slack 50 - 30."""
        trace, record, wait = self.make()
        row = wait_row(
            "Stream Wait Event",
            4,
            stream=8,
            correlation=wait.correlation,
            on_stream=7,
            on_correlation=record.correlation,
        )
        read = trace_of(trace, events=[row])
        assert edges(read, EdgeType.EVENT) == {("op a", "op b"): 20}
        assert inferred(read, EdgeType.EVENT) == []

    @pytest.mark.parametrize("missing", ["wait", "record", "op before", "op behind"])
    def test_a_recorded_wait_that_joins_nothing(self, missing):
        trace, record, wait = self.make()
        row = wait_row(
            "Stream Wait Event",
            4,
            stream=9 if missing == "op behind" else 8,
            correlation=999 if missing == "wait" else wait.correlation,
            on_stream=9 if missing == "op before" else 7,
            on_correlation=999 if missing == "record" else record.correlation,
        )
        assert edges(trace_of(trace, events=[row]), EdgeType.EVENT) == {}

    def test_a_wait_inferred_from_timing(self):
        """Without records: b begins 4 behind a on another stream, a wait was enqueued, nothing else explains it."""
        trace, _, wait = self.make()
        trace.ops[-1].start_ns = 34_000
        wait.thread = 2
        assert edges(trace, EdgeType.EVENT) == {("op a", "op b"): 4}
        assert inferred(trace, EdgeType.EVENT) == [("op a", "op b")]

    @pytest.mark.parametrize("start", [35.001, 50])
    def test_too_late_to_have_waited(self, start):
        """The wait is another thread's: timing alone has to tell."""
        trace, _, wait = self.make()
        trace.ops[-1].start_ns = round(start * 1000)
        wait.thread = 2
        assert edges(trace, EdgeType.EVENT) == {}

    def test_a_wait_inferred_from_the_order_of_calls(self):
        """The wait was enqueued between other and b: b restarts 20 behind a, which explains 23 of 43."""
        trace, _, _ = self.make()
        assert edges(trace, EdgeType.EVENT) == {("op a", "op b"): 20}
        assert inferred(trace, EdgeType.EVENT) == [("op a", "op b")]

    @pytest.mark.parametrize(("start", "waited"), [(52.999, True), (53, False)])
    def test_what_it_waited_for_explains_more_than_what_is_left(self, start, waited):
        """b's call returned at 7 and a ended at 30: 23 are explained."""
        trace, _, _ = self.make()
        trace.ops[-1].start_ns = round(start * 1000)
        assert bool(edges(trace, EdgeType.EVENT)) is waited

    @pytest.mark.parametrize(("start", "waited"), [(250, True), (250.001, False)])
    def test_a_restart_takes_at_most_50(self, start, waited):
        """a is longer, [10, 200)."""
        trace, _, _ = self.make()
        trace.ops[1].dur_ns, trace.ops[-1].start_ns = 190_000, round(start * 1000)
        assert bool(edges(trace, EdgeType.EVENT)) is waited

    def test_a_wait_concerns_the_next_op_of_its_queue_alone(self):
        """Another op of stream 8 was launched at 5, between the wait and b: the wait was its own, or none of theirs."""
        trace, _, _ = self.make()
        trace.launch(at=5, dur=0.5).kernel("next", at=6, dur=1, stream=8)
        assert edges(trace, EdgeType.EVENT) == {}

    def test_no_wait_for_what_was_launched_behind_it(self):
        """a's launch moves to 5, behind the wait at 4."""
        trace, _, _ = self.make()
        trace.host[1].start_ns = 5_000
        assert edges(trace, EdgeType.EVENT) == {}

    def test_of_several_the_last_to_end_counts(self):
        """c [12, 40) on a third stream was launched before the wait as well, d [12, 45) behind it."""
        trace, _, _ = self.make()
        trace.launch(at=3, dur=0.5).kernel("c", at=12, dur=28, stream=9)
        trace.launch(at=5, dur=0.5).kernel("d", at=12, dur=33, stream=10)
        assert edges(trace, EdgeType.EVENT) == {("op c", "op b"): 10}

    def test_no_wait_was_enqueued(self):
        trace = TraceBuilder()
        trace.launch(at=1, dur=1).kernel("a", at=10, dur=20)
        trace.launch(at=6, dur=1).kernel("b", at=34, dur=10, stream=8)
        assert edges(trace, EdgeType.EVENT) == {}

    def test_what_explains_itself_waited_for_nothing_else(self):
        """b's call returned at 31, 3 before b began: its launch explains the start."""
        trace = TraceBuilder()
        trace.call("cudaStreamWaitEvent", at=0, dur=1)
        trace.launch(at=1, dur=1).kernel("a", at=10, dur=20)
        trace.launch(at=28, dur=3).kernel("b", at=34, dur=10, stream=8)
        assert edges(trace, EdgeType.EVENT) == {}


class TestSyncs:
    def test_a_wait_for_the_op_that_ended_last_before_it_returned(self):
        """a [5, 20), b [22, 40); the call [10, 43) returned 3 after b. c was launched behind it."""
        trace = TraceBuilder()
        trace.launch(at=0, dur=2).kernel("a", at=5, dur=15)
        trace.launch(at=3, dur=2).kernel("b", at=22, dur=18)
        trace.call("cudaStreamSynchronize", at=10, dur=33)
        assert edges(trace, EdgeType.SYNC) == {("op b", "sync cudaStreamSynchronize"): 3}
        assert inferred(trace, EdgeType.SYNC) == [("op b", "sync cudaStreamSynchronize")]

    def test_no_wait_for_what_was_launched_later(self):
        """Another thread launches b at 12, behind the call's begin at 10: the call did not wait for it."""
        trace = TraceBuilder()
        trace.call("cudaStreamSynchronize", at=10, dur=33)
        trace.launch(at=12, dur=2, thread=2).kernel("b", at=22, dur=18)
        trace.op("aten::mm", at=0, dur=1)
        assert edges(trace, EdgeType.SYNC) == {}

    def test_a_wait_beside_another_thread_that_launches(self):
        """a [5, 35) was launched before the call [10, 43), b [36, 40) by another thread meanwhile: it waited for a."""
        trace = TraceBuilder()
        trace.launch(at=0, dur=2).kernel("a", at=5, dur=30)
        trace.call("cudaStreamSynchronize", at=10, dur=33)
        trace.launch(at=12, dur=2, thread=2).kernel("b", at=36, dur=4)
        assert edges(trace, EdgeType.SYNC) == {("op a", "sync cudaStreamSynchronize"): 8}

    def test_a_call_before_all_ops_waited_for_none(self):
        trace = TraceBuilder()
        trace.call("cudaStreamSynchronize", at=0, dur=3)
        trace.launch(at=4, dur=2).kernel("b", at=22, dur=18)
        assert edges(trace, EdgeType.SYNC) == {}

    def test_a_synchronous_copy_is_two_nodes(self):
        """cudaMemcpy [10, 50) of a copy [20, 45): a launch of no length at 10 and a wait that returned 5 behind it."""
        trace = TraceBuilder()
        trace.launch("cudaLaunchKernel", at=0, dur=2).kernel("a", at=5, dur=2)
        trace.launch("cudaMemcpy", at=10, dur=40).memcpy("copy", at=20, dur=25)
        timeline = timeline_of(view_of(trace))
        nodes = {
            label(timeline, node): (int(timeline.start_ns[node]) // 1000, int(timeline.end_ns[node]) // 1000)
            for node in range(len(timeline))
        }
        assert nodes == {
            "launch cudaLaunchKernel": (0, 2),
            "launch cudaMemcpy": (10, 10),
            "sync cudaMemcpy": (10, 50),
            "op a": (5, 7),
            "op copy": (20, 45),
        }
        assert edges(trace) == {
            ("launch cudaLaunchKernel", "launch cudaMemcpy"): 8,
            ("launch cudaMemcpy", "sync cudaMemcpy"): 0,
            ("launch cudaLaunchKernel", "op a"): 5,
            ("launch cudaMemcpy", "op copy"): 10,
            ("op a", "op copy"): 13,
            ("op copy", "sync cudaMemcpy"): 5,
        }
        assert inferred(trace, EdgeType.SYNC) == []


class TestSteps:
    def make(self):
        trace = TraceBuilder()
        trace.annotation("ProfilerStep#0", at=10, dur=90)
        trace.annotation("ProfilerStep#1", at=100, dur=100)
        trace.launch(at=0, dur=2).kernel("before", at=5, dur=2)
        trace.launch(at=20, dur=2).kernel("a", at=110, dur=5)
        trace.launch(at=120, dur=2).kernel("b", at=130, dur=5)
        trace.launch(at=210, dur=2).kernel("behind", at=220, dur=5)
        return trace

    def test_ops_belong_to_the_step_of_their_launch(self):
        timeline = timeline_of(view_of(self.make()))
        steps = {label(timeline, node): int(timeline.step[node]) for node in range(len(timeline)) if node > 3}
        assert steps == {"op before": -1, "op a": 0, "op b": 1, "op behind": -1}
        assert timeline.step[:4].tolist() == [-1, 0, 1, -1]

    def test_a_graph_of_one_step(self):
        timeline = timeline_of(view_of(self.make()))
        graph = timeline.to_networkx(step=1)
        assert sorted(graph.nodes[node]["label"] for node in graph) == ["b", "cudaLaunchKernel"]
        assert [graph.edges[edge] for edge in graph.edges] == [
            {"type": "launch", "slack_ns": 10_000, "inferred": False}
        ]

    def test_a_graph_of_the_whole_trace_can_be_written(self, tmp_path):
        timeline = timeline_of(view_of(self.make()))
        graph = timeline.to_networkx()
        assert len(graph) == len(timeline) == 8
        node = next(node for node in graph if graph.nodes[node]["label"] == "a")
        assert graph.nodes[node] == {
            "label": "a",
            "type": "op",
            "kind": "compute",
            "start_ns": 110_000,
            "end_ns": 115_000,
            "duration_ns": 5_000,
            "step": 0,
            "queue": 7,
        }
        call = graph.nodes[1]
        assert (call["type"], call["kind"], call["queue"]) == ("launch", "", 0)
        nx.write_graphml(graph, tmp_path / "step.graphml")
        assert len(nx.read_graphml(tmp_path / "step.graphml")) == 8
