"""What the host side of an engine step works on: engine functions and annotations by name, kept as data.

Two questions are answered from one table. `is_scheduling` finds the time in which an engine decides what runs next;
`phase_of` sorts host rows into the phases of a step. Rows that enclose the forward pass (event loops, ``step``,
``run_busy_loop``) are in neither: their time is that of everything inside them.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from traceaudit.model.schema import HostCategory

__all__ = ["ANNOTATIONS", "FRAMES", "AnnotationRule", "FrameRule", "HostPhase", "is_scheduling", "phase_of"]


class HostPhase(StrEnum):
    """What the host does for a step.

    `SCHEDULE` chooses requests and reserves their cache; `PREPARE` builds the inputs of the model; `FORWARD` dispatches
    the model; `OUTPUT` samples, reads results back and gives them to requests.
    """

    SCHEDULE = "schedule"
    PREPARE = "prepare"
    FORWARD = "forward"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class FrameRule:
    """Python frames of an engine: `file` ends the path of the file (whole parts), `functions` are its functions."""

    phase: HostPhase
    engine: str
    file: str
    functions: frozenset[str]


@dataclass(frozen=True, slots=True)
class AnnotationRule:
    """Annotations whose whole name `pattern` matches."""

    phase: HostPhase
    engine: str
    pattern: re.Pattern[str]


def _frames(phase: HostPhase, engine: str, file: str, functions: str) -> FrameRule:
    return FrameRule(phase, engine, file, frozenset(functions.split()))


def _notes(phase: HostPhase, engine: str, pattern: str) -> AnnotationRule:
    return AnnotationRule(phase, engine, re.compile(pattern))


FRAMES: tuple[FrameRule, ...] = (
    # vLLM: V1 has vllm/v1/core/sched/scheduler.py, V0 vllm/core/scheduler.py. update_from_output is output processing.
    _frames(HostPhase.SCHEDULE, "vllm", "sched/scheduler.py", "_make_cached_request_data get_grammar_bitmask"),
    _frames(HostPhase.SCHEDULE, "vllm", "sched/async_scheduler.py", "schedule _update_after_schedule"),
    _frames(HostPhase.SCHEDULE, "vllm", "core/scheduler.py", "_schedule_default _schedule_chunked_prefill"),
    _frames(HostPhase.SCHEDULE, "vllm", "core/kv_cache_manager.py", "allocate_slots get_computed_blocks"),
    _frames(HostPhase.OUTPUT, "vllm", "sched/scheduler.py", "update_from_output"),
    _frames(HostPhase.OUTPUT, "vllm", "core/scheduler.py", "update_from_output"),
    _frames(HostPhase.OUTPUT, "vllm", "engine/output_processor.py", "process_outputs"),
    _frames(HostPhase.OUTPUT, "vllm", "output_processor/single_step.py", "process_outputs process_prompt_logprob"),
    _frames(HostPhase.OUTPUT, "vllm", "sample/sampler.py", "forward sample"),
    _frames(HostPhase.OUTPUT, "vllm", "layers/sampler.py", "forward"),
    _frames(
        HostPhase.OUTPUT, "vllm", "worker/gpu_model_runner.py", "_sample sample _bookkeeping_sync _to_list get_output"
    ),
    _frames(
        HostPhase.PREPARE,
        "vllm",
        "worker/gpu_model_runner.py",
        "_prepare_inputs _update_states _preprocess _prepare_input_ids _build_attention_metadata",
    ),
    _frames(HostPhase.PREPARE, "vllm", "worker/model_runner.py", "prepare_model_input prepare_inputs"),
    _frames(HostPhase.FORWARD, "vllm", "worker/gpu_model_runner.py", "_model_forward"),
    # SGLang. run_batch encloses the forward pass, process_batch_result follows it.
    _frames(
        HostPhase.SCHEDULE,
        "sglang",
        "managers/scheduler.py",
        "get_next_batch_to_run get_new_batch_prefill _get_new_batch_prefill_raw update_running_batch "
        "prepare_mlp_sync_batch prepare_dp_attn_batch get_new_prebuilt_batch get_next_disagg_decode_batch_to_run "
        "get_next_disagg_prefill_batch_to_run",
    ),
    _frames(
        HostPhase.SCHEDULE,
        "sglang",
        "managers/schedule_batch.py",
        "prepare_for_decode prepare_for_extend prepare_for_idle "
        "check_decode_mem retract_decode filter_batch merge_batch",
    ),
    _frames(HostPhase.SCHEDULE, "sglang", "managers/schedule_policy.py", "calc_priority add_one_req add_chunked_req"),
    _frames(HostPhase.PREPARE, "sglang", "managers/schedule_batch.py", "get_model_worker_batch"),
    _frames(HostPhase.PREPARE, "sglang", "model_executor/forward_batch_info.py", "init_new prepare_mlp_sync_batch"),
    _frames(HostPhase.PREPARE, "sglang", "model_executor/cuda_graph_runner.py", "replay_prepare"),
    _frames(
        HostPhase.FORWARD,
        "sglang",
        "model_executor/model_runner.py",
        "forward _forward_raw forward_decode forward_extend forward_split_prefill forward_idle",
    ),
    _frames(HostPhase.FORWARD, "sglang", "model_executor/cuda_graph_runner.py", "replay"),
    _frames(HostPhase.OUTPUT, "sglang", "model_executor/model_runner.py", "sample"),
    _frames(HostPhase.OUTPUT, "sglang", "layers/sampler.py", "forward"),
    _frames(HostPhase.OUTPUT, "sglang", "managers/scheduler.py", "process_batch_result process_batch_result_decode"),
    _frames(
        HostPhase.OUTPUT,
        "sglang",
        "managers/scheduler_output_processor_mixin.py",
        "process_batch_result_decode process_batch_result_prefill stream_output",
    ),
    # TensorRT-LLM, PyTorch backend.
    _frames(
        HostPhase.SCHEDULE,
        "trtllm",
        "pyexecutor/py_executor.py",
        "_schedule _prepare_and_schedule_batch _balance_adp_requests _pad_attention_dp_dummy_request",
    ),
    _frames(HostPhase.SCHEDULE, "trtllm", "pyexecutor/resource_manager.py", "prepare_resources"),
    _frames(HostPhase.PREPARE, "trtllm", "pyexecutor/model_engine.py", "_prepare_inputs _prepare_tp_inputs"),
    _frames(HostPhase.FORWARD, "trtllm", "pyexecutor/model_engine.py", "_forward_step model_forward"),
    _frames(HostPhase.OUTPUT, "trtllm", "pyexecutor/sampler.py", "sample_async update_requests"),
    _frames(
        HostPhase.OUTPUT,
        "trtllm",
        "pyexecutor/py_executor.py",
        "_sample_async _update_requests _handle_responses _process_previous_batch",
    ),
    # LMDeploy, PyTorch backend.
    _frames(HostPhase.SCHEDULE, "lmdeploy", "paging/scheduler.py", "_schedule_prefill _schedule_decoding"),
    _frames(HostPhase.PREPARE, "lmdeploy", "engine/inputs_maker.py", "create_model_inputs"),
    # Forks and engines built alike: the file says what its function of that name does.
    _frames(HostPhase.SCHEDULE, "any", "scheduler.py", "schedule _schedule schedule_request schedule_requests"),
)

ANNOTATIONS: tuple[AnnotationRule, ...] = (
    # Such as schedule, Scheduler::schedule, engine: scheduler, python scheduler; no learning rate's and no whole run.
    _notes(
        HostPhase.SCHEDULE,
        "any",
        r"(?i)(?!(?:.*[\W_])?(?:lr|run|loop)[\W_])"
        r"(?:[\w ]+(?:\.|::|: ?|/))*(?:\w*[_ ])?schedul(?:e|er|ing)(?:_batch|_requests?)?",
    ),
    _notes(HostPhase.SCHEDULE, "vllm", r"schedule: .+"),
    _notes(
        HostPhase.SCHEDULE,
        "sglang",
        r"(?:\w+(?:\.|::))*(?:get_next_batch_to_run|get_new_batch_prefill|update_running_batch)",
    ),
    _notes(HostPhase.PREPARE, "vllm", r"gpu_model_runner: preprocess|Preprocess"),
    _notes(HostPhase.PREPARE, "trtllm", r"_prepare_(?:tp_)?inputs"),
    _notes(HostPhase.FORWARD, "vllm", r"gpu_model_runner: forward|Forward"),
    _notes(HostPhase.FORWARD, "trtllm", r"_forward_step(?: \d+.*)?"),
    _notes(
        HostPhase.OUTPUT,
        "vllm",
        r"gpu_model_runner: (?:sample|bookkeep|postprocess|ModelRunnerOutput|AsyncGPUModelRunnerOutput)"
        r"|Sample|Bookkeep|Postprocess|core step: (?:update_from_output|process_\w+)",
    ),
    _notes(
        HostPhase.OUTPUT, "trtllm", r"_sample_async|_update_requests|_handle_responses|sample_async|update_requests"
    ),
)

_FRAME = re.compile(r"(?P<path>.+)\(\d+\): (?:\w+\.)*(?P<function>\w+)")


@lru_cache(maxsize=16384)
def phase_of(name: str, category: HostCategory) -> HostPhase | None:
    """Return the phase of a step that a host row belongs to by its name, None where the tables do not say.

    Python frames count by file and function, annotations by their whole name. Framework ops and API calls have no phase
    of their own: they belong to the row around them.

    Examples
    --------
    >>> str(phase_of("vllm/v1/core/sched/scheduler.py(221): schedule", HostCategory.PYTHON))
    'schedule'
    >>> str(phase_of("gpu_model_runner: sample", HostCategory.ANNOTATION))
    'output'
    >>> phase_of("vllm/v1/engine/core.py(310): step", HostCategory.PYTHON) is None
    True
    """
    if category == HostCategory.PYTHON:
        frame = _FRAME.fullmatch(name)
        if frame is None:
            return None
        path, function = "/" + frame["path"].replace("\\", "/"), frame["function"]
        return next(
            (rule.phase for rule in FRAMES if function in rule.functions and path.endswith("/" + rule.file)), None
        )
    if category == HostCategory.ANNOTATION:
        return next((rule.phase for rule in ANNOTATIONS if rule.pattern.fullmatch(name)), None)
    return None


def is_scheduling(name: str, category: HostCategory) -> bool:
    """Return whether a host row is an engine deciding what runs next.

    Examples
    --------
    >>> is_scheduling("sglang/srt/managers/scheduler.py(1502): get_next_batch_to_run", HostCategory.PYTHON)
    True
    >>> is_scheduling("sglang/srt/managers/scheduler.py(980): event_loop_overlap", HostCategory.PYTHON)
    False
    >>> is_scheduling("Scheduler::schedule", HostCategory.ANNOTATION)
    True
    """
    return phase_of(name, category) is HostPhase.SCHEDULE
