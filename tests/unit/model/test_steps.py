"""Where steps come from: each source in its turn. Times in µs; the first row of each trace is at 0."""

import re
from dataclasses import replace

import pytest
from builders import TraceBuilder
from views import trace_of, view_of, views_of

from traceaudit.errors import UsageError
from traceaudit.model.options import StepOptions
from traceaudit.model.results import StepSource
from traceaudit.model.steps import marker_rows


def marks_of(trace, *, annotation=None, divide_by=None):
    pattern = None if annotation is None else re.compile(annotation)
    return view_of(trace, steps=StepOptions(pattern, divide_by)).marks


def intervals_of(marks):
    """Return the host intervals in µs."""
    return [(a / 1000, b / 1000) for a, b in zip(marks.start_ns.tolist(), marks.end_ns.tolist(), strict=True)]


def marked(*rows, last_row=200, thread=1):
    """Return a trace with annotations (name, start, duration), a kernel, and a host row that ends at `last_row`."""
    trace = TraceBuilder()
    trace.launch(at=0, dur=2).kernel("gemm", at=3, dur=2)
    for name, at, dur in rows:
        trace.annotation(name, at=at, dur=dur, thread=thread)
    trace.op("aten::end", at=last_row - 1, dur=1)
    return trace


class TestMarkers:
    def test_profiler_steps_always_touch(self):
        """Steps [10, 30) and [50, 70): host intervals [10, 50) and [50, 70), the last to its marker's end."""
        marks = marks_of(marked(("ProfilerStep#1", 10, 20), ("ProfilerStep#2", 50, 20)))
        assert marks.source is StepSource.PROFILER_STEP
        assert marks.reason == "2 annotations"
        assert marks.names == ("ProfilerStep#1", "ProfilerStep#2")
        assert intervals_of(marks) == [(10, 50), (50, 70)]
        assert marks.touching

    def test_engine_markers_with_room_between_them(self):
        """The last step runs to the last host row at 200: engines work behind their markers."""
        marks = marks_of(marked(("step[decode bs=4]", 10, 20), ("step[decode bs=5]", 50, 20)))
        assert marks.source is StepSource.SGLANG
        assert intervals_of(marks) == [(10, 50), (50, 200)]
        assert not marks.touching

    @pytest.mark.parametrize(("between", "touching"), [(0.1, True), (0.101, False)])
    def test_engine_markers_touch_within_a_thousandth(self, between, touching):
        """Steps begin 100 apart, so that up to 0.1 between them is no room to work in."""
        name = "execute_context_0(0)_generation_4(4)"
        marks = marks_of(marked((name, 10, 100 - between), (name, 110, 50)))
        assert marks.source is StepSource.VLLM
        assert marks.touching is touching
        assert intervals_of(marks)[1] == ((110, 160) if touching else (110, 200))

    def test_one_engine_marker_does_not_touch(self):
        assert intervals_of(marks_of(marked(("step[idle]", 10, 20)))) == [(10, 200)]

    def test_of_overlapping_markers_the_outermost_counts(self):
        """[10, 50) holds [10, 20) and [30, 40); [45, 60) begins inside it; [50, 70) begins as it ends."""
        rows = [(10, 40), (10, 10), (30, 10), (45, 15), (50, 20)]
        marks = marks_of(marked(*((f"ProfilerStep#{i}", at, dur) for i, (at, dur) in enumerate(rows))))
        assert marks.names == ("ProfilerStep#0", "ProfilerStep#4")

    def test_sources_in_order(self):
        """With all kinds of markers profiler steps win, then SGLang's, then vLLM's."""
        rows = [("ProfilerStep#1", 10, 9), ("step[idle]", 20, 9), ("execute_context_0(0)_generation_4(4)", 30, 9)]
        for i, source in enumerate((StepSource.PROFILER_STEP, StepSource.SGLANG, StepSource.VLLM)):
            assert marks_of(marked(*rows[i:])).source is source

    def test_the_thread_of_the_markers_is_kept(self):
        view = view_of(marked(("ProfilerStep#1", 10, 9), thread=2))
        thread = view.trace.threads.tid[view.marks.thread]
        assert view.trace.names[thread] == "21879"

    def test_ops_named_like_markers_are_none(self):
        trace = marked()
        trace.op("step[decode bs=1]", at=10, dur=5)
        trace.op("step[decode bs=2]", at=20, dur=5)
        assert marks_of(trace).source is StepSource.WHOLE_TRACE


class TestAskedFor:
    def test_annotations_come_first(self):
        trace = marked(("tick 1", 10, 5), ("tick 2", 30, 5), ("ProfilerStep#1", 40, 5))
        trace.op("tick 3", at=60, dur=5)
        marks = marks_of(trace, annotation="^tick")
        assert marks.source is StepSource.ANNOTATION
        assert "2 rows" in marks.reason
        assert "'^tick'" in marks.reason
        assert marks.names == ("tick 1", "tick 2")

    def test_ops_then_frames_where_no_annotation_matches(self):
        trace = marked(("other", 10, 5))
        trace.python("engine.py(3): tick", at=70, dur=5)
        assert marks_of(trace, annotation="tick").names == ("engine.py(3): tick",)
        trace.op("tick op", at=60, dur=5)
        assert marks_of(trace, annotation="tick").names == ("tick op",)

    def test_nothing_matches(self):
        with pytest.raises(UsageError, match="no annotation, op or frame matches 'tick'") as caught:
            marks_of(marked(("one", 10, 5), ("two", 20, 5)), annotation="tick")
        assert caught.value.hint == "annotations in the trace: 'one', 'two'"

    def test_nothing_could_match(self):
        with pytest.raises(UsageError) as caught:
            marks_of(marked(), annotation="tick")
        assert caught.value.hint == "annotations in the trace: none"

    def test_a_whole_trace_is_divided(self):
        """From the first launch or op to the last op's end, whatever the markers say."""
        marks = marks_of(marked(("ProfilerStep#1", 10, 20)), divide_by=1)
        assert (marks.source, marks.reason) == (StepSource.WHOLE_TRACE, "divided into 1 as asked")
        assert intervals_of(marks) == [(0, 5)]

    def test_more_steps_than_ops_mean_nothing(self):
        with pytest.raises(UsageError, match="--steps 4: the trace has 1 device op"):
            marks_of(marked(("ProfilerStep#1", 10, 20)), divide_by=4)


def replays(*graphs, **more):
    """Return a trace of graph launches every 100; a graph is a text, each letter a kernel, "" has no rows."""
    trace = TraceBuilder()
    for i, graph in enumerate(graphs):
        launch = trace.graph_launch(at=100 * i, dur=5)
        for j, letter in enumerate(graph):
            launch.kernel(letter, at=100 * i + 10 + 5 * j, dur=4, **more)
    return trace


class TestGraphLaunches:
    def test_one_graph_replayed(self):
        """Three launches, the last step runs to the last host row, the third call's end at 205."""
        marks = marks_of(replays("abc", "abc", "abc"))
        assert (marks.source, marks.reason) == (StepSource.GRAPH_LAUNCH, "3 graph launches")
        assert intervals_of(marks) == [(0, 100), (100, 200), (200, 205)]
        assert marks.names == (None, None, None)
        assert marks.thread == -1

    def test_piecewise_graphs_repeat_in_groups(self):
        marks = marks_of(replays("ab", "cd", "cd", "ab", "cd", "cd"))
        assert marks.reason == "6 graph launches in groups of 3"
        assert intervals_of(marks) == [(0, 300), (300, 505)]

    def test_launches_without_rows_count_as_the_common_graph(self):
        """The rows of two of five replays are missing; those of one name are the same graph."""
        marks = marks_of(replays("abc", "", "abc", "", "abc"))
        assert marks.reason == "5 graph launches"
        assert len(marks.start_ns) == 5

    def test_without_any_rows_of_replays_each_is_a_step(self):
        trace = replays("", "", "")
        trace.launch(at=250, dur=2).kernel("gemm", at=260, dur=5)
        assert len(marks_of(trace).start_ns) == 3

    def test_a_graphs_id_tells_graphs_of_equal_kernels_apart(self):
        """Two graphs of the same kernels, replayed in turn, are one step together."""
        trace = TraceBuilder()
        for i in range(4):
            graph = {"graph id": 7 + i % 2}
            trace.graph_launch(at=100 * i, dur=5).kernel("a", at=100 * i + 10, dur=5, **graph)
        assert marks_of(trace).reason == "4 graph launches in groups of 2"

    def test_one_launch_repeats_nothing(self):
        assert marks_of(replays("abc")).source is StepSource.WHOLE_TRACE

    def test_launches_that_do_not_repeat_are_no_steps(self):
        """Five different graphs in no order."""
        assert marks_of(replays("ab", "cd", "ef", "gh", "ij")).source is StepSource.WHOLE_TRACE


def eager(sequence, *, gap=10):
    """Return a trace of single launches, one for each letter, `gap` apart."""
    trace = TraceBuilder()
    for i, letter in enumerate(sequence):
        trace.launch(at=gap * i, dur=2).kernel(letter, at=gap * i + 3, dur=5)
    return trace


class TestKernelCycle:
    def test_a_repeating_sequence(self):
        """'abcd' three times, launches 10 apart; the last step ends with the last call at 112."""
        marks = marks_of(eager("abcdabcdabcd"))
        assert (marks.source, marks.reason) == (StepSource.KERNEL_CYCLE, "the sequence of kernels repeats every 4 ops")
        assert intervals_of(marks) == [(0, 40), (40, 80), (80, 112)]

    def test_short_cycles_are_loops_over_one_op(self):
        assert marks_of(eager("abcabcabcabc")).source is StepSource.WHOLE_TRACE

    def test_ops_without_launch_are_not_part_of_it(self):
        trace = eager("abcdabcdabcd")
        trace.orphan().kernel("x", at=9, dur=1)
        assert len(marks_of(trace).start_ns) == 3

    def test_nothing_launched(self):
        trace = TraceBuilder()
        trace.orphan().kernel("a", at=0, dur=5)
        marks = marks_of(trace)
        assert marks.source is StepSource.WHOLE_TRACE
        assert marks.reason == "no step markers, no repeated graph launches, no repeating kernels"
        assert intervals_of(marks) == [(0, 5)]


def test_each_rank_has_its_own_markers():
    """Markers of another rank are no steps of this one."""
    trace = trace_of(marked(("ProfilerStep#1", 10, 20)))
    moved = trace.ops.replace(rank=trace.ops.rank + 1)
    (view,) = views_of(replace(trace, ops=moved))
    assert view.marks.source is StepSource.WHOLE_TRACE


def test_marker_rows_are_annotations_of_any_source_or_asked_for():
    trace = trace_of(marked(("ProfilerStep#1", 10, 9), ("step[idle]", 20, 9), ("tick", 30, 9), ("schedule", 40, 9)))
    names = [trace.names[code] for code in trace.host.name]
    plain = marker_rows(trace, StepOptions())
    asked = marker_rows(trace, StepOptions(re.compile("tick|gemm|aten")))
    assert {name for name, one in zip(names, plain, strict=True) if one} == {"ProfilerStep#1", "step[idle]"}
    assert {name for name, one in zip(names, asked, strict=True) if one} == {"ProfilerStep#1", "step[idle]", "tick"}
