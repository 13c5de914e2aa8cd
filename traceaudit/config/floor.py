"""From the flags of `roofline` to a checked request."""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from traceaudit.analyses.roofline import Measurement, Napkin
from traceaudit.config.common import WallFlags, wall_of
from traceaudit.errors import UsageError
from traceaudit.model.hardware import Peaks, lookup
from traceaudit.model.llm.quantisation import KvDtype
from traceaudit.model.llm.workload import Parallelism, Workload
from traceaudit.model.results.roofline import Reading

__all__ = ["RooflineFlags", "RooflineRequest", "roofline_request"]

SUFFIXES = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
LARGEST = Decimal(10) ** 18
MOST_REQUESTS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineFlags:
    """What the user typed; None where not given."""

    model: str | None = None
    gpu: str | None = None
    batch: int | None = None
    context: str | None = None
    tp: int = 1
    ep: int = 1
    dp: int = 1
    pp: int = 1
    weights_dtype: str | None = None
    kv_dtype: str | None = None
    draft_tokens: int = 0
    checkpoint: str | None = None
    params: str | None = None
    bits: str | None = None
    peak_gbps: str | None = None
    peak_tflops: str | None = None
    wall_ms: str | None = None
    tokens_per_second: str | None = None
    concurrency: int | None = None
    accept_length: str | None = None


@dataclass(frozen=True, slots=True)
class RooflineRequest:
    """A question that makes sense: a model or a napkin, what runs, and what it is held against.

    Attributes
    ----------
    model
        Path of a configuration, or name of a packaged model; None with `napkin`.
    """

    model: str | None
    napkin: Napkin | None
    checkpoint: str | None
    weights_dtype: str | None
    workload: Workload
    peaks: Peaks
    measurement: Measurement


def roofline_request(flags: RooflineFlags) -> RooflineRequest:
    """Check the flags against each other.

    Raises
    ------
    UsageError
        If a value means nothing, or flags contradict each other or lack a partner.
    UnknownHardwareError
        If the device has no known peaks and none are given.
    """
    model, sketch = _subject(flags)
    if flags.batch is None and sketch is None and "," not in (flags.context or ""):
        raise UsageError("no --batch", hint="--batch B counts the requests that run in a step, by the server's log")
    if flags.context is None and sketch is None:
        raise UsageError("no --context", hint="--context C gives the tokens in the cache of a request")
    workload = Workload(
        contexts=_contexts(flags.context or "0", flags.batch),
        tokens_per_request=1 + _not_negative("--draft-tokens", flags.draft_tokens),
        draft_passes=flags.draft_tokens,
        kv_dtype=_kv_dtype(flags.kv_dtype),
        parallelism=Parallelism(flags.tp, flags.ep, flags.dp, flags.pp),
    )
    peaks = Peaks.of(
        None if flags.gpu is None else lookup(flags.gpu),
        gbps=_optional("--peak-gbps", flags.peak_gbps),
        tflops=_optional("--peak-tflops", flags.peak_tflops),
    )
    return RooflineRequest(
        model, sketch, flags.checkpoint, flags.weights_dtype, workload, peaks, _measurement(flags, workload)
    )


def _subject(flags: RooflineFlags) -> tuple[str | None, Napkin | None]:
    if flags.params is None and flags.bits is None:
        model = flags.model or flags.checkpoint
        if model is None:
            raise UsageError("no model", hint="--model config.json, a packaged model's name, or --params N --bits B")
        return model, None
    if flags.model or flags.checkpoint:
        raise UsageError("--params and --bits are the form without --model and --checkpoint")
    if flags.params is None or flags.bits is None:
        raise UsageError("--params and --bits go together", hint="--params 13e9 --bits 4")
    for flag, value in (
        ("--weights-dtype", flags.weights_dtype),
        ("--kv-dtype", flags.kv_dtype),
        ("--ep", flags.ep - 1),
    ):
        if value:
            raise UsageError(f"{flag} needs --model: the napkin form has no parts")
    return None, Napkin(_amount("--params", flags.params), _amount("--bits", flags.bits))


def _contexts(text: str, batch: int | None) -> tuple[int, ...]:
    try:
        lengths = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--context is no number of tokens: {text!r}", hint="--context 512, or 512,768,1024") from None
    if batch is not None and not 1 <= batch <= MOST_REQUESTS:
        raise UsageError(f"--batch must be at least 1, found {batch}" if batch < 1 else f"--batch {batch} is no step")
    if len(lengths) == 1:
        return lengths * (batch or 1)
    if batch is not None and len(lengths) != batch:
        raise UsageError(f"--context has {len(lengths)} lengths for --batch {batch}", hint="give one, or one for each")
    return lengths


def _kv_dtype(text: str | None) -> KvDtype | None:
    if text is None or text == "auto":
        return None
    name = {"fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "bfloat16": "bf16", "float16": "fp16"}.get(text, text)
    try:
        return KvDtype(name)
    except ValueError:
        raise UsageError(f"unknown cache type {text!r}", hint=f"take one of {', '.join(KvDtype)}") from None


def _measurement(flags: RooflineFlags, workload: Workload) -> Measurement:
    """Return the measured step; where the client offered another number of requests than ran, both readings of it."""
    accept = 1.0 if flags.accept_length is None else _amount("--accept-length", flags.accept_length)
    if not 1 <= accept <= workload.tokens_per_request:
        raise UsageError(
            f"--accept-length {accept:g} with {workload.tokens_per_request} tokens of a request in the step",
            hint="between 1 and 1 + draft tokens, the bonus token counted",
        )
    if flags.tokens_per_second is None:
        if flags.concurrency is not None:
            raise UsageError("--concurrency alone does not state a step time", hint="add --tokens-per-second R")
        wall = wall_of(WallFlags(wall_ms=flags.wall_ms))
        return Measurement(accept, () if wall is None else (Reading(wall.step_ns, wall.source),))
    running = workload.batch * workload.parallelism.dp
    counts = dict.fromkeys((running, flags.concurrency or running))
    return Measurement(accept, tuple(_rate_reading(flags, count, running) for count in counts))


def _rate_reading(flags: RooflineFlags, count: int, running: int) -> Reading:
    wall = wall_of(
        WallFlags(
            wall_ms=flags.wall_ms,
            tokens_per_second=flags.tokens_per_second,
            concurrency=count,
            accept_length=flags.accept_length,
        )
    )
    if wall is None:
        raise UsageError("--tokens-per-second states no step time")
    what = "" if count == running else ", if the offered concurrency ran"
    return Reading(wall.step_ns, wall.source + what)


def _optional(flag: str, text: str | None) -> float | None:
    return None if text is None else _amount(flag, text)


def _not_negative(flag: str, value: int) -> int:
    if value < 0:
        raise UsageError(f"{flag} must be 0 or more, found {value}")
    return value


def _amount(flag: str, text: str) -> float:
    """Read a positive number, with K, M, B or T behind it for powers of a thousand."""
    match = re.fullmatch(r"\s*([0-9.eE+_-]+)\s*([KMBTkmbt]?)\s*", text)
    try:
        number = Decimal(match[1]) * SUFFIXES.get(match[2].upper(), 1) if match else Decimal("NaN")
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or not 0 < number <= LARGEST:
        raise UsageError(f"{flag} is no positive number: {text!r}", hint="write it as 13e9 or 1792, without a unit")
    return float(number)
