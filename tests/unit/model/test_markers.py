"""Names of step markers, in the spellings of the wild."""

import pytest

from traceaudit.model.markers import StepLabel, label_of, source_of
from traceaudit.model.results import StepKind, StepSource

DECODE, PREFILL, MIXED, IDLE = StepKind.DECODE, StepKind.PREFILL, StepKind.MIXED, StepKind.IDLE
UNKNOWN = StepKind.UNKNOWN


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("ProfilerStep#0", StepSource.PROFILER_STEP),
        ("ProfilerStep#123", StepSource.PROFILER_STEP),
        ("ProfilerStep", None),
        ("ProfilerStep#2 of 5", None),
        ("step[decode bs=64]", StepSource.SGLANG),
        ("step[idle]", StepSource.SGLANG),
        ("my step[decode bs=64]", None),
        ("step[]", None),
        ("execute_context_0(0)_generation_16(16)", StepSource.VLLM),
        ("execute_context_2_generation_3", StepSource.VLLM),
        ("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)", StepSource.VLLM),
        ("worker: execute_context_0(0)_generation_16(16)", StepSource.VLLM),
        ("execute_model", None),
        ("schedule", None),
    ],
)
def test_source(name, source):
    assert source_of(name) is source


@pytest.mark.parametrize(
    ("name", "kind", "batch", "tokens"),
    [
        ("step[decode bs=64]", DECODE, 64, 64),
        ("step[DECODE bs=64]", DECODE, 64, 64),
        ("step[ForwardMode.DECODE bs=64]", DECODE, 64, 64),
        ("step[decode bs=64 toks=192]", DECODE, 64, 192),
        ("step[TARGET_VERIFY bs=8]", DECODE, 8, None),
        ("step[draft_extend bs=8 toks=32]", DECODE, 8, 32),
        ("step[prefill bs=3 toks=4096]", PREFILL, 3, 4096),
        ("step[EXTEND bs=3 toks=4096 extra=x]", PREFILL, 3, 4096),
        ("step[split_prefill bs=1]", PREFILL, 1, None),
        ("step[mixed bs=18 ext=512 dec=17]", MIXED, 18, 529),
        ("step[mixed bs=18 ext=512]", MIXED, 18, None),
        ("step[idle]", IDLE, None, None),
        ("step[dummy_first bs=1]", IDLE, 1, None),
        ("step[ new_mode bs=4 ]", UNKNOWN, 4, None),
    ],
)
def test_label_of_sglang(name, kind, batch, tokens):
    assert label_of(name) == StepLabel(kind, batch, tokens)


@pytest.mark.parametrize(
    ("name", "kind", "batch", "tokens"),
    [
        ("execute_context_0(0)_generation_16(16)", DECODE, 16, 16),
        ("execute_context_2(900)_generation_0(0)", PREFILL, 2, 900),
        ("execute_context_2(900)_generation_14(14)", MIXED, 16, 914),
        ("execute_context_0(0)_generation_0(0)", IDLE, 0, 0),
        ("execute_context_1_generation_3", MIXED, 4, None),
        ("execute_5_context_1(888_788544)_generation_3(3_9)", MIXED, 4, 891),
        ("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)", DECODE, 32, 32),
        ("execute_context_0(?)_generation_16(16)", DECODE, 16, None),
    ],
)
def test_label_of_vllm(name, kind, batch, tokens):
    assert label_of(name) == StepLabel(kind, batch, tokens)


def test_other_names_say_nothing():
    assert label_of("ProfilerStep#3") == label_of("") == StepLabel(UNKNOWN, None, None)
