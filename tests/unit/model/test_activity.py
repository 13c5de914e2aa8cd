"""What a host thread worked on, by engine phase and kind of row. Times in µs.

Every trace has a step [0, 200) and a launch on thread 1 at 0; the thread is cut over [10, 110).
"""

import numpy as np
import pytest
from builders import TraceBuilder
from views import view_of

from traceaudit.model.activity import Activity, ThreadActivity
from traceaudit.model.options import StepOptions

SCHEDULE = "vllm/v1/core/sched/scheduler.py(221): schedule"
PREPARE = "vllm/v1/worker/gpu_model_runner.py(9): _prepare_inputs"
OUTPUT = "vllm/v1/sample/sampler.py(9): forward"
FORWARD = "vllm/v1/worker/gpu_model_runner.py(9): _model_forward"


@pytest.fixture
def trace():
    made = TraceBuilder()
    made.annotation("ProfilerStep#1", at=0, dur=200)
    made.launch(at=0, dur=2).kernel("a", at=0, dur=5)
    return made


def activities(trace, *, thread=None):
    """Return what thread 1 did over [10, 110): µs by activity, and check that every instant has one."""
    view = view_of(trace)
    activity = ThreadActivity(view, StepOptions())
    chosen = activity.main_thread if thread is None else thread
    start, end = np.array([10_000], np.int64), np.array([110_000], np.int64)
    found = activity.cut(np.array([chosen], np.int64), start, end)
    times: dict[str, float] = {}
    for number, a, b in zip(found.activity.tolist(), found.start_ns.tolist(), found.end_ns.tolist(), strict=True):
        name = list(Activity)[number].value
        times[name] = times.get(name, 0) + (b - a) / 1000
    assert sum(times.values()) == 100
    return times


def test_numbers_are_positions():
    assert [activity.number for activity in Activity] == list(range(len(Activity)))


def test_rows_by_their_kind(trace):
    trace.call("cudaLaunchKernel", at=10, dur=1)
    trace.call("cudaMalloc", at=20, dur=2)
    trace.call("cudaEventQuery", at=30, dur=3)
    trace.op("aten::mm", at=40, dur=4)
    trace.annotation("mine", at=50, dur=5)
    trace.python("a.py(1): f", at=60, dur=6)
    trace.call("cudaStreamSynchronize", at=70, dur=7)
    trace.overhead(at=80, dur=8)
    assert activities(trace) == {
        "launch_api": 1,
        "memory": 2,
        "other_api": 3,
        "framework": 4,
        "annotation": 5,
        "python": 6,
        "sync": 7,
        "profiler": 8,
        "unrecorded": 100 - 36,
    }


@pytest.mark.parametrize(("frame", "phase"), [(SCHEDULE, "schedule"), (PREPARE, "prepare"), (OUTPUT, "output")])
def test_a_phase_holds_everything_in_it_but_waits_and_the_profiler(trace, frame, phase):
    """[20, 80) of the phase; in it op, call and frame, a wait of 5 and a profiler row of 3."""
    trace.python(frame, at=20, dur=60)
    trace.op("aten::mm", at=25, dur=5)
    trace.call("cudaMalloc", at=35, dur=5)
    trace.python("a.py(1): helper", at=45, dur=5)
    trace.call("cudaStreamSynchronize", at=55, dur=5)
    trace.overhead(at=65, dur=3)
    assert activities(trace) == {phase: 52, "sync": 5, "profiler": 3, "unrecorded": 40}


def test_forward_holds_python_and_annotations_alone(trace):
    """[20, 80) of the forward pass with an op of 10, a call of 5 and an annotation of 7."""
    trace.python(FORWARD, at=20, dur=60)
    trace.op("aten::mm", at=30, dur=10)
    trace.call("cudaLaunchKernel", at=45, dur=5)
    trace.annotation("layer", at=60, dur=7)
    assert activities(trace) == {"forward": 60 - 15, "framework": 10, "launch_api": 5, "unrecorded": 40}


def test_scheduling_wins_where_phases_nest(trace):
    """Scheduling [30, 50) inside the forward pass [20, 80), and output [40, 90) across its end."""
    trace.python(FORWARD, at=20, dur=60)
    trace.python(OUTPUT, at=40, dur=50)
    trace.python(SCHEDULE, at=30, dur=20)
    assert activities(trace) == {"forward": 10, "schedule": 20, "output": 40, "unrecorded": 30}


def test_a_phase_of_another_thread_is_not_this_ones(trace):
    """Thread 2 schedules; thread 1 shows nothing, and frames are no work of the process (see below)."""
    trace.python(SCHEDULE, at=20, dur=60, thread=2)
    assert activities(trace) == {"unrecorded": 100}


def test_annotations_name_phases_too(trace):
    trace.annotation("schedule", at=20, dur=30)
    trace.annotation("gpu_model_runner: sample", at=60, dur=30)
    assert activities(trace) == {"schedule": 30, "output": 30, "unrecorded": 40}


class TestOtherThreads:
    def test_silence_while_another_thread_works(self, trace):
        """Thread 2 runs an op [30, 50) and a call [60, 65); thread 1 shows an op [40, 45) of its own."""
        trace.op("aten::mm", at=40, dur=5)
        trace.op("aten::mm", at=30, dur=20, thread=2)
        trace.call("cudaLaunchKernel", at=60, dur=5, thread=2)
        assert activities(trace) == {"framework": 5, "other_thread": 15 + 5, "unrecorded": 75}

    def test_a_thread_that_waits_is_not_at_work(self, trace):
        """Waiting calls give up the interpreter's lock."""
        trace.call("cudaStreamSynchronize", at=30, dur=20, thread=2)
        assert activities(trace) == {"unrecorded": 100}

    def test_its_frames_and_annotations_do_not_count(self, trace):
        trace.annotation("mine", at=30, dur=20, thread=2)
        assert activities(trace) == {"unrecorded": 100}

    def test_an_unknown_thread_has_no_others(self, trace):
        """Thread -1: nothing is known of it but the profiler's own rows."""
        trace.op("aten::mm", at=30, dur=20, thread=2)
        trace.overhead(at=60, dur=10)
        assert activities(trace, thread=-1) == {"profiler": 10, "unrecorded": 90}


class TestMainThread:
    def test_the_one_that_launches_most_ops(self, trace):
        """Thread 2 launches two ops, thread 1 one."""
        trace.launch(at=120, dur=2, thread=2).kernel("b", at=125, dur=1).kernel("c", at=130, dur=1)
        view = view_of(trace)
        thread = ThreadActivity(view, StepOptions()).main_thread
        assert view.trace.names[view.trace.threads.tid[thread]] == "21879"

    def test_that_of_the_markers_where_nothing_was_launched(self):
        made = TraceBuilder()
        made.annotation("ProfilerStep#1", at=0, dur=200, thread=3)
        made.op("aten::mm", at=0, dur=2, thread=1)
        made.orphan().kernel("a", at=0, dur=5)
        view = view_of(made)
        assert ThreadActivity(view, StepOptions()).main_thread == view.marks.thread >= 0
