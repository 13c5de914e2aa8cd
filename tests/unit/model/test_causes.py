"""What a host thread was doing. Times in µs; the first row of each trace is at 0."""

import re

import pytest
from builders import TraceBuilder
from views import audit_of, trace_of, view_of

from traceaudit.model.causes import FIXED_CAUSES, CauseCutter, blocking_rows, frame_label, launching_threads
from traceaudit.model.options import StepOptions


def causes(trace, **options):
    """Return the causes of `idle_host` that took time, in µs."""
    by = audit_of(trace, **options).ledger.idle_host_by
    assert list(by)[-1] == "unrecorded"
    return {name: time / 1000 for name, time in by.items() if time}


def waiting(end=100, *, thread=1):
    """Return a step [0, 100) in which the device runs [0, 10) and then waits for a launch of that thread at `end`."""
    trace = TraceBuilder()
    trace.annotation("ProfilerStep#1", at=0, dur=120)
    trace.launch(at=0, dur=2, thread=thread).kernel("a", at=0, dur=10)
    trace.launch(at=end, dur=2, thread=thread).kernel("b", at=end + 2, dur=18)
    return trace


class TestWhichRowDecides:
    def test_nothing_recorded(self):
        assert causes(waiting()) == {"unrecorded": 90}

    def test_the_open_row_that_began_last(self):
        """
        frame      10---------------80
        op            20------50
        malloc           30-40
        """
        trace = waiting()
        trace.python("a.py(1): f", at=10, dur=70)
        trace.op("aten::mm", at=20, dur=30)
        trace.call("cudaMalloc", at=30, dur=10)
        assert causes(trace) == {"python:a.py:f": 40, "framework": 20, "other_api": 10, "unrecorded": 20}

    def test_rows_need_not_nest(self):
        """Annotations [10, 50) and [30, 70) overlap: the later one decides from 30 on."""
        trace = waiting()
        trace.annotation("one", at=10, dur=40)
        trace.annotation("two", at=30, dur=40)
        assert causes(trace) == {"annotation:one": 20, "annotation:two": 40, "unrecorded": 30}

    def test_an_earlier_row_shows_again_when_the_later_ends(self):
        """[10, 90) and, inside, [20, 40) and [30, 50)."""
        trace = waiting()
        trace.annotation("outer", at=10, dur=80)
        trace.annotation("one", at=20, dur=20)
        trace.annotation("two", at=30, dur=20)
        assert causes(trace) == {
            "annotation:outer": 50,
            "annotation:one": 10,
            "annotation:two": 20,
            "unrecorded": 10,
        }

    def test_rows_outside_the_gap_do_not_count(self):
        """[5, 15) overlaps the gap from 10 on."""
        trace = waiting()
        trace.op("aten::mm", at=5, dur=10)
        assert causes(trace) == {"framework": 5, "unrecorded": 85}

    def test_step_markers_of_any_source_are_no_rows(self):
        """Another engine's marker [10, 90) hides nothing; the marker that was asked for is no cause either."""
        trace = waiting()
        trace.annotation("step[decode bs=1]", at=10, dur=80)
        trace.annotation("tick", at=0, dur=120)
        assert causes(trace) == {"annotation:tick": 90}
        asked = StepOptions(annotation=re.compile("tick"))
        assert causes(trace, steps=asked) == {"unrecorded": 90}

    def test_other_threads_do_not_count(self):
        trace = waiting()
        trace.op("aten::mm", at=10, dur=50, thread=2)
        assert causes(trace) == {"unrecorded": 90}


class TestWhichThread:
    def test_that_of_the_launch_that_ends_the_gap(self):
        """Thread 2 launches b at 100."""
        trace = waiting()
        trace.launch(at=50, dur=2, thread=2).kernel("c", at=52, dur=10, stream=8)
        trace.op("on 1", at=70, dur=30)
        trace.op("on 2", at=20, dur=30, thread=2)
        assert causes(trace) == {"framework": 30 + 30, "unrecorded": 10 + 8}

    def test_that_of_the_last_launch_where_no_op_follows(self):
        """Step [0, 120); thread 2 launched last; the device is done at 20."""
        trace = TraceBuilder()
        trace.annotation("ProfilerStep#1", at=0, dur=120)
        trace.launch(at=0, dur=2).kernel("a", at=0, dur=10)
        trace.launch(at=5, dur=2, thread=2).kernel("b", at=10, dur=10)
        trace.annotation("on 2", at=30, dur=40, thread=2)
        trace.annotation("on 1", at=20, dur=100)
        assert causes(trace) == {"annotation:on 2": 40, "unrecorded": 60}

    def test_that_of_the_marker_where_nothing_was_launched(self):
        """Step [0, 120) on thread 2; an op without launch row runs [0, 20)."""
        trace = TraceBuilder()
        trace.annotation("ProfilerStep#1", at=0, dur=120, thread=2)
        trace.orphan().kernel("a", at=0, dur=20)
        trace.annotation("on 2", at=30, dur=40, thread=2)
        trace.annotation("on 1", at=20, dur=100)
        assert causes(trace) == {"annotation:on 2": 40, "unrecorded": 60}

    def test_none_where_there_is_no_marker_either(self):
        trace = TraceBuilder()
        trace.orphan().kernel("a", at=0, dur=20)
        trace.op("aten::mm", at=0, dur=100)
        view = view_of(trace)
        assert launching_threads(view, view.occupancy.gap[view.occupancy.gap >= 0]).tolist() == [-1]


class TestSync:
    @pytest.mark.parametrize(
        "name", ["cudaStreamSynchronize", "hipEventSynchronize", "cudaMemcpy", "hipMemcpyWithStream"]
    )
    def test_a_blocking_call(self, name):
        trace = waiting()
        trace.call(name, at=20, dur=30)
        assert causes(trace) == {"sync": 30, "unrecorded": 60}

    def test_an_enqueuing_call_that_outlasts_its_own_op(self):
        """cudaMemcpyAsync [5, 40) of a copy [10, 20): from 20 to 40 it waits for nothing but itself."""
        trace = waiting()
        trace.launch("cudaMemcpyAsync", at=5, dur=35).memcpy(at=10, dur=10)
        assert causes(trace) == {"sync": 20, "unrecorded": 60}

    @pytest.mark.parametrize("name", ["cudaLaunchKernel", "cuLaunchKernelEx", "cudaGraphLaunch", "cudaMemsetAsync"])
    def test_a_launch_that_outlasts_its_own_op_was_slow(self, name):
        """The launch [15, 50) of an op [20, 25): from 25 to 50 its thread waited for nothing."""
        trace = waiting()
        trace.launch(name, at=15, dur=35).kernel("x", at=20, dur=5)
        found = causes(trace)
        assert found == {"launch_api": 25, "unrecorded": 5 + 50}

    @pytest.mark.parametrize(("late", "blocks"), [(9, True), (8, False)])
    def test_launches_block_where_nearly_all_outlast_their_ops(self, late, blocks):
        """Ten launches 5 long on another queue; the ops of `late` end at 3, those of the rest at 8; a copy is none."""
        trace = TraceBuilder()
        for at in range(10):
            trace.launch(at=20 * at, dur=5).kernel("k", at=20 * at + 2, dur=1 if at < late else 6)
        trace.launch("cudaMemcpyAsync", at=300, dur=5).memcpy(at=302, dur=6)
        view = view_of(trace)
        assert int(blocking_rows(view.trace, view.ops).sum()) == (late if blocks else 0)

    def test_one_that_returns_with_its_op_does_not_block(self):
        """The call [5, 20) of a copy [10, 20) is over when the copy is."""
        trace = waiting()
        trace.launch("cudaMemcpyAsync", at=5, dur=15).memcpy(at=10, dur=10)
        assert causes(trace) == {"unrecorded": 80}

    def test_the_last_op_of_a_launch_counts(self):
        """A launch [15, 50) of ops [30, 35) and [60, 65): it returned before the second ended."""
        trace = waiting()
        trace.launch("cudaGraphLaunch", at=15, dur=35).kernel("x", at=30, dur=5).kernel("y", at=60, dur=5)
        assert causes(trace) == {"unrecorded": 5 + 35}

    @pytest.mark.parametrize(
        "frame",
        [
            "<built-in method synchronize of torch.cuda.Event object at 0x7f>",
            "<built-in method synchronize of Event object at 0x7f>",
            "<built-in method synchronize of Stream object>",
        ],
    )
    def test_a_frame_that_synchronises(self, frame):
        """ROCm often has no row for the call behind it."""
        trace = waiting()
        trace.python(frame, at=20, dur=30)
        assert causes(trace) == {"sync": 30, "unrecorded": 60}

    def test_other_frames_and_annotations_of_that_name_do_not(self):
        trace = waiting()
        trace.python("<built-in method synchronize of Worker object at 0x7f>", at=20, dur=30)
        trace.annotation("synchronize of torch.cuda.Event", at=60, dur=10)
        assert causes(trace) == {
            "python:<built-in method synchronize of Worker>": 30,
            "annotation:synchronize of torch.cuda.Event": 10,
            "unrecorded": 50,
        }

    def test_rows_that_block(self):
        """The copy's call [5, 40) outlasts its copy, the launch's does not; a launch without ops never does."""
        trace = waiting()
        trace.launch("cudaMemcpyAsync", at=5, dur=35).memcpy(at=10, dur=10)
        trace.call("cudaMemcpyAsync", at=50, dur=40)
        trace.call("cudaDeviceSynchronize", at=95, dur=1)
        view = view_of(trace)
        host = view.trace.host
        found = [
            (view.trace.names[host.name[row]], int(host.start_ns[row]) // 1000)
            for row in blocking_rows(view.trace, view.ops).nonzero()[0].tolist()
        ]
        assert found == [("cudaMemcpyAsync", 5), ("cudaDeviceSynchronize", 95)]


class TestProfiler:
    def test_its_rows_count_on_every_thread(self):
        """Profiler [20, 50), inside it an op [30, 40) that began later, around it a frame from 15."""
        trace = waiting(thread=2)
        trace.python("a.py(1): f", at=15, dur=50, thread=2)
        trace.overhead(at=20, dur=30)
        trace.op("aten::mm", at=30, dur=10, thread=2)
        assert causes(trace) == {"profiler": 20, "framework": 10, "python:a.py:f": 5 + 15, "unrecorded": 40}

    def test_a_row_of_the_profiler_that_begins_with_another_lies_inside_it(self):
        trace = waiting()
        trace.op("aten::mm", at=20, dur=30)
        trace.overhead(at=20, dur=10)
        assert causes(trace) == {"profiler": 10, "framework": 20, "unrecorded": 60}

    def test_rows_far_from_the_gap_change_nothing(self):
        trace = waiting()
        trace.overhead(at=200, dur=10)
        assert causes(trace) == {"unrecorded": 90}


class TestNames:
    def test_launch_calls_and_others(self):
        """A call that enqueues for no op of the trace, a query, and a name nobody knows."""
        trace = waiting()
        trace.call("cudaLaunchKernel", at=20, dur=5)
        trace.call("cudaEventQuery", at=30, dur=7)
        trace.call("somethingElse", at=40, dur=1)
        assert causes(trace) == {"launch_api": 5, "other_api": 8, "unrecorded": 77}

    def test_one_name_in_several_categories(self):
        """An annotation, a framework op and a call named alike: the category of each row decides."""
        trace = waiting()
        trace.annotation("cudaMalloc", at=20, dur=10)
        trace.op("cudaMalloc", at=40, dur=15)
        trace.call("cudaMalloc", at=60, dur=20)
        assert causes(trace) == {"annotation:cudaMalloc": 10, "framework": 15, "other_api": 20, "unrecorded": 45}

    @pytest.mark.parametrize(
        "name",
        [
            "## Call CompiledFxGraph fe4gojamosn6hdsis7gixa6hvnaw7nwlnbowzurj3ynqdbzfa5bu ##",
            "Torch-Compiled Region: 0/1",
            "TorchDynamo Cache Lookup",
            "Pregraph bytecode",
            "AOTDispatcher Runtime Wrapper Prologue",
            "nccl:all_reduce",
        ],
    )
    def test_annotations_of_the_framework_are_framework(self, name):
        """They come as ops or as annotations, by the version of torch: the cause is one, and carries no key."""
        trace = waiting()
        trace.annotation(name, at=20, dur=10)
        trace.op(name, at=40, dur=15)
        assert causes(trace) == {"framework": 25, "unrecorded": 65}

    def test_parts_of_the_program_that_torch_names_are_annotations(self):
        trace = waiting()
        trace.annotation("Optimizer.step#SGD.step", at=20, dur=10)
        trace.annotation("## forward ##", at=40, dur=15)
        assert causes(trace) == {
            "annotation:Optimizer.step#SGD.step": 10,
            "annotation:## forward ##": 15,
            "unrecorded": 65,
        }

    def test_frames_of_one_function_are_one_cause(self):
        """The line number and the address of an object say nothing about where the time went."""
        trace = waiting()
        trace.python("/x/sched.py(10): schedule", at=20, dur=10)
        trace.python("/y/sched.py(12): schedule", at=40, dur=15)
        assert causes(trace) == {"python:sched.py:schedule": 25, "unrecorded": 65}

    def test_the_twenty_largest_frames_and_the_rest(self):
        """22 frames of 1, 2, ... 22 µs: the two smallest, 1 + 2, are summed."""
        trace = TraceBuilder()
        trace.annotation("ProfilerStep#1", at=0, dur=400)
        trace.launch(at=0, dur=2).kernel("a", at=0, dur=10)
        at = 20
        for length in range(1, 23):
            trace.python(f"f.py({length}): f{length}", at=at, dur=length)
            at += length
        found = causes(trace)
        assert found.pop("unrecorded") == 390 - 253
        assert found.pop("python:other") == 3
        assert list(found.items()) == [(f"python:f.py:f{n}", n) for n in range(22, 2, -1)]

    @pytest.mark.parametrize(
        ("name", "label"),
        [
            ("vllm/v1/core/sched/scheduler.py(221): schedule", "scheduler.py:schedule"),
            ("C:\\site-packages\\torch\\nn\\modules\\module.py(1775): _call_impl", "module.py:_call_impl"),
            ("engine.py(3): <lambda>", "engine.py:<lambda>"),
            ("<built-in method run of Engine object at 0x7f12ab>", "<built-in method run of Engine>"),
            ("nn.Module: Linear_3", "nn.Module: Linear_3"),
            ("a.py(1): f of X at 0xAB", "a.py:f of X"),
            ("odd\nname.py(1): two\nlines", "odd\nname.py:two\nlines"),
        ],
    )
    def test_frame_label(self, name, label):
        assert frame_label(name) == label


class TestCutter:
    def test_nothing_to_cut(self):
        trace = trace_of(waiting())
        view = view_of(trace)
        none = view.occupancy.gap[:0]
        blocked = blocking_rows(trace, view.ops)
        found = CauseCutter(trace, 0, blocked, ~blocked).cut(none, none, none)
        assert [len(column) for column in (found.stretch, found.row, found.label, found.start_ns, found.end_ns)] == [
            0
        ] * 5

    def test_many_stretches_are_cut_as_few(self, monkeypatch):
        """In chunks of two stretches the causes are those of one cut."""
        trace = TraceBuilder()
        trace.annotation("ProfilerStep#1", at=0, dur=300)
        for i in range(9):
            trace.launch(at=30 * i + 20, dur=2).kernel("a", at=30 * i + 25, dur=5)
            trace.annotation("outer" if i % 3 else "inner", at=30 * i, dur=45)
        view = view_of(trace)
        whole = causes(view)
        monkeypatch.setattr("traceaudit.model.causes.CHUNK", 2)
        assert causes(view) == whole
        assert set(whole) >= {"annotation:outer", "annotation:inner"}

    def test_fixed_causes_are_always_there(self):
        assert set(FIXED_CAUSES) <= set(audit_of(waiting()).ledger.idle_host_by)
