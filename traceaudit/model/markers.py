"""Names of step markers: which annotations mark an engine step, and what they say about it.

Sources: torch.profiler's schedule (`ProfilerStep#N`), SGLang's `step[...]`, vLLM's `execute_context_…_generation_…`.
"""

import re
from dataclasses import dataclass

from traceaudit.model.results import StepKind, StepSource

__all__ = ["NAMED_SOURCES", "StepLabel", "label_of", "source_of"]

PROFILER_STEP = re.compile(r"ProfilerStep#\d{1,18}")
SGLANG = re.compile(r"step\[\s*(?P<mode>[^\s\]]+)(?P<fields>[^\]]*)\]")
VLLM = re.compile(
    r"execute_(?:(?P<new>\d{1,18})_)?context_(?P<context>\d{1,18})(?:\((?P<context_tokens>[^)]*)\))?"
    r"_generation_(?P<generation>\d{1,18})(?:\((?P<generation_tokens>[^)]*)\))?"
)
_TOKENS = re.compile(
    r"(?:sq)?(\d{1,18})"
)  # "16", "888_788544" (tokens, then their squares), "sq32sk32785…" (query tokens first)
NAMED_SOURCES = (StepSource.PROFILER_STEP, StepSource.SGLANG, StepSource.VLLM)
"""Sources recognised by a marker's name, in the order in which they are tried."""

_MODES = {
    "decode": StepKind.DECODE,
    "target_verify": StepKind.DECODE,
    "draft_extend": StepKind.DECODE,
    "prefill": StepKind.PREFILL,
    "extend": StepKind.PREFILL,
    "split_prefill": StepKind.PREFILL,
    "mixed": StepKind.MIXED,
    "idle": StepKind.IDLE,
    "dummy_first": StepKind.IDLE,
}


@dataclass(frozen=True, slots=True)
class StepLabel:
    """What a marker's name says of its step: requests and tokens are None where it does not say."""

    kind: StepKind = StepKind.UNKNOWN
    batch: int | None = None
    tokens: int | None = None


def source_of(name: str) -> StepSource | None:
    """Return which named source an annotation marks a step of, None if none.

    Examples
    --------
    >>> source_of("step[decode bs=64]")
    <StepSource.SGLANG: 'sglang'>
    """
    if PROFILER_STEP.fullmatch(name):
        return StepSource.PROFILER_STEP
    if SGLANG.fullmatch(name):
        return StepSource.SGLANG
    return StepSource.VLLM if VLLM.search(name) else None


def label_of(name: str) -> StepLabel:
    """Read kind, batch and tokens from a marker's name.

    Examples
    --------
    >>> label_of("execute_context_0(0)_generation_16(16)")
    StepLabel(kind=<StepKind.DECODE: 'decode'>, batch=16, tokens=16)
    """
    if found := SGLANG.search(name):
        return _sglang(found["mode"], found["fields"])
    if found := VLLM.search(name):
        return _vllm(found)
    return StepLabel()


def _sglang(mode: str, rest: str) -> StepLabel:
    mode = mode.lower().removeprefix("forwardmode.")
    kind = _MODES.get(mode, StepKind.UNKNOWN)
    counts = {key: int(value) for key, value in re.findall(r"(\w+)=(\d{1,18})(?!\d)", rest)}
    tokens = counts.get("toks")
    if tokens is None and mode == "decode":
        tokens = counts.get("bs")
    if tokens is None and "ext" in counts and "dec" in counts:
        tokens = counts["ext"] + counts["dec"]
    return StepLabel(kind, counts.get("bs"), tokens)


def _vllm(found: re.Match[str]) -> StepLabel:
    context, generation = int(found["context"]), int(found["generation"])
    kind = {
        (False, False): StepKind.IDLE,
        (False, True): StepKind.DECODE,
        (True, False): StepKind.PREFILL,
        (True, True): StepKind.MIXED,
    }[context > 0, generation > 0]
    counts = [_TOKENS.match(found[part] or "") for part in ("context_tokens", "generation_tokens")]
    tokens = sum(int(count[1]) for count in counts if count) if all(counts) else None
    return StepLabel(kind, context + generation, tokens)
