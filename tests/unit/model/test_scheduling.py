"""Which host rows count as engine scheduling, and the phases of the others."""

import pytest

from traceaudit.model.scheduling import HostPhase, is_scheduling, phase_of
from traceaudit.model.schema import HostCategory

FRAMES = {
    HostPhase.SCHEDULE: [
        "vllm/v1/core/sched/scheduler.py(221): schedule",
        "/usr/lib/python3/site-packages/vllm/v1/core/sched/scheduler.py(221): schedule",
        "/opt/my engines/vllm/v1/core/sched/scheduler.py(221): Scheduler.schedule",
        "C:\\vllm\\v1\\core\\sched\\scheduler.py(221): schedule",
        "vllm/core/scheduler.py(1200): _schedule",
        "vllm/v1/core/kv_cache_manager.py(200): allocate_slots",
        "sglang/srt/managers/scheduler.py(1502): get_next_batch_to_run",
        "sglang/srt/managers/scheduler.py(1600): get_new_batch_prefill",
        "sglang/srt/managers/scheduler.py(1700): update_running_batch",
        "sglang/srt/managers/schedule_batch.py(1700): prepare_for_decode",
        "tensorrt_llm/_torch/pyexecutor/py_executor.py(900): _schedule",
        "tensorrt_llm/_torch/pyexecutor/scheduler.py(200): schedule_request",
        "lmdeploy/pytorch/paging/scheduler.py(300): schedule",
        "scheduler.py(10): schedule",
    ],
    HostPhase.PREPARE: [
        "vllm/v1/worker/gpu_model_runner.py(1188): _prepare_inputs",
        "vllm/v1/worker/gpu_model_runner.py(800): _update_states",
        "sglang/srt/model_executor/forward_batch_info.py(250): init_new",
        "tensorrt_llm/_torch/pyexecutor/model_engine.py(1800): _prepare_inputs",
    ],
    HostPhase.FORWARD: [
        "vllm/v1/worker/gpu_model_runner.py(2460): _model_forward",
        "sglang/srt/model_executor/cuda_graph_runner.py(700): replay",
    ],
    HostPhase.OUTPUT: [
        "vllm/v1/sample/sampler.py(80): forward",
        "vllm/v1/engine/output_processor.py(320): process_outputs",
        "vllm/v1/core/sched/scheduler.py(900): update_from_output",
        "sglang/srt/managers/scheduler.py(1900): process_batch_result",
    ],
}

NO_FRAMES = [
    "sglang/srt/managers/scheduler.py(980): event_loop_overlap",
    "sglang/srt/managers/scheduler.py(950): event_loop_normal",
    "sglang/srt/managers/scheduler.py(1750): run_batch",
    "vllm/v1/engine/core.py(310): step",
    "vllm/v1/engine/core.py(700): run_busy_loop",
    "vllm/v1/core/sched/my_scheduler.py.orig(1): schedule",
    "torch/optim/lr_scheduler.py(100): step",
    "torch/optim/lr_scheduler.py(100): schedule",
    "torch/profiler/profiler.py(400): schedule",
    "<built-in method schedule of Scheduler object at 0x7f>",
    "nn.Module: Scheduler_0",
    "schedule",
]


@pytest.mark.parametrize(("phase", "name"), [(phase, name) for phase, names in FRAMES.items() for name in names])
def test_frames(phase: HostPhase, name: str) -> None:
    assert phase_of(name, HostCategory.PYTHON) is phase
    assert is_scheduling(name, HostCategory.PYTHON) is (phase is HostPhase.SCHEDULE)


@pytest.mark.parametrize("name", NO_FRAMES)
def test_loops_and_namesakes_have_no_phase(name: str) -> None:
    assert phase_of(name, HostCategory.PYTHON) is None


@pytest.mark.parametrize(
    "name",
    [
        "schedule",
        "scheduler",
        "Scheduler",
        "scheduler.schedule",
        "Scheduler::schedule",
        "vllm.engine.Scheduler.schedule",
        "_schedule",
        "engine: schedule",
        "core step: schedule",
        "schedule: allocate_slots",
        "python scheduler",
        "schedule_batch",
        "get_next_batch_to_run",
    ],
)
def test_annotations_of_scheduling(name: str) -> None:
    assert is_scheduling(name, HostCategory.ANNOTATION)


@pytest.mark.parametrize(
    "name",
    [
        "scheduler_step",
        "scheduler.step",
        "lr_scheduler",
        "LR scheduler",
        "run_scheduler",
        "loop: scheduler",
        "scheduler_loop",
        "reschedules",
        "execute_context_0(0)_generation_64(64)",
        "ProfilerStep#3",
        "step[decode bs=8]",
        "",
    ],
)
def test_annotations_that_are_no_scheduling(name: str) -> None:
    assert not is_scheduling(name, HostCategory.ANNOTATION)


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("gpu_model_runner: preprocess", HostPhase.PREPARE),
        ("gpu_model_runner: forward", HostPhase.FORWARD),
        ("Forward", HostPhase.FORWARD),
        ("gpu_model_runner: sample", HostPhase.OUTPUT),
        ("_handle_responses", HostPhase.OUTPUT),
        ("gpu_model_runner: eplb", None),
    ],
)
def test_phases_of_annotations(name: str, phase: HostPhase | None) -> None:
    assert phase_of(name, HostCategory.ANNOTATION) is phase


@pytest.mark.parametrize("category", [HostCategory.API, HostCategory.CPU_OP])
def test_other_rows_have_no_phase(category: HostCategory) -> None:
    assert phase_of("schedule", category) is None
