"""From the flags of `roofline` to a checked request."""

from dataclasses import dataclass

from traceaudit.analyses.roofline import Measurement, Napkin
from traceaudit.config.common import WallFlags, wall_of
from traceaudit.config.running import cached_tokens, kv_dtype, peak, positive_amount, spread
from traceaudit.config.workload import RooflineFlags
from traceaudit.errors import UnknownHardwareError, UsageError
from traceaudit.model.hardware import Device, Peaks, lookup
from traceaudit.model.kerneloptions import PeakOptions
from traceaudit.model.llm.workload import Parallelism, Workload
from traceaudit.model.results.roofline import Reading

__all__ = ["RooflineFlags", "RooflineRequest", "peak_options", "roofline_request", "workload_of"]


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


def roofline_request(flags: RooflineFlags, *, peaks: Peaks | None = None) -> RooflineRequest:
    """Check the flags against each other.

    `peaks` are those of the device, where a trace told them; else the flags do.

    Raises
    ------
    UsageError
        If a value means nothing, or flags contradict each other or lack a partner.
    UnknownHardwareError
        If the device has no known peaks and none are given.
    """
    spread(tp=flags.tp, ep=flags.ep, dp=flags.dp, pp=flags.pp)
    model, sketch = _subject(flags)
    workload = workload_of(flags, sketch)
    return RooflineRequest(
        model,
        sketch,
        flags.checkpoint,
        flags.weights_dtype,
        workload,
        peaks or _peaks(flags),
        _measurement(flags, workload),
    )


def workload_of(flags: RooflineFlags, sketch: Napkin | None = None) -> Workload:
    """Return what runs in the step; a napkin needs neither batch nor context.

    Raises
    ------
    UsageError
        If a value means nothing, or batch or context is missing.
    """
    if flags.batch is None and sketch is None and "," not in (flags.context or ""):
        raise UsageError("no --batch", hint="--batch B counts the requests that run in a step, by the server's log")
    if flags.context is None and sketch is None:
        raise UsageError("no --context", hint="--context C gives the tokens in the cache of a request")
    return Workload(
        contexts=cached_tokens("0" if flags.context is None else flags.context, flags.batch),
        tokens_per_request=1 + _not_negative("--draft-tokens", flags.draft_tokens),
        draft_passes=flags.draft_tokens,
        kv_dtype=kv_dtype(flags.kv_dtype),
        parallelism=Parallelism(flags.tp, flags.ep, flags.dp, flags.pp),
    )


def peak_options(flags: RooflineFlags) -> PeakOptions:
    """Return the peaks that are given by hand.

    Raises
    ------
    UsageError
        If one is no peak of any device.
    """
    return PeakOptions(
        gbps=None if flags.peak_gbps is None else peak("--peak-gbps", flags.peak_gbps),
        tflops=None if flags.peak_tflops is None else peak("--peak-tflops", flags.peak_tflops),
    )


def _peaks(flags: RooflineFlags) -> Peaks:
    given = peak_options(flags)
    device = None if flags.gpu is None else _device(flags.gpu, given)
    return Peaks.of(device, gbps=given.gbps, tflops=given.tflops, name=flags.gpu)


def _device(name: str, given: PeakOptions) -> Device | None:
    """Find the device; where its bandwidth is given by hand, it need not be in the table."""
    try:
        return lookup(name)
    except UnknownHardwareError:
        if given.gbps is None:
            raise
        return None


def _subject(flags: RooflineFlags) -> tuple[str | None, Napkin | None]:
    if flags.params is None and flags.bits is None:
        model = flags.model or flags.checkpoint
        if model is None:
            raise UsageError("no model", hint="--model config.json, a packaged model's name, or --params N --bits B")
        return model, None
    if flags.model or flags.checkpoint:
        raise UsageError(
            "--params and --bits are the form without --model and --checkpoint", hint="give one of the two forms"
        )
    if flags.params is None or flags.bits is None:
        raise UsageError("--params and --bits go together", hint="--params 13e9 --bits 4")
    for flag, value in (
        ("--weights-dtype", flags.weights_dtype),
        ("--kv-dtype", flags.kv_dtype),
        ("--ep", flags.ep - 1),
    ):
        if value:
            raise UsageError(
                f"{flag} needs --model: the napkin form has no parts",
                hint="--model config.json, or a packaged model's name",
            )
    return None, Napkin(positive_amount("--params", flags.params), positive_amount("--bits", flags.bits))


def _measurement(flags: RooflineFlags, workload: Workload) -> Measurement:
    """Return the measured step; where the client offered another number of requests than ran, both readings of it."""
    accept = 1.0 if flags.accept_length is None else positive_amount("--accept-length", flags.accept_length)
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
    counts = dict.fromkeys((running, running if flags.concurrency is None else flags.concurrency))
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
        raise UsageError("--tokens-per-second states no step time", hint="add --concurrency N")
    what = "" if count == running else ", if the offered concurrency ran"
    return Reading(wall.step_ns, wall.source + what)


def _not_negative(flag: str, value: int) -> int:
    if value < 0:
        raise UsageError(f"{flag} must be 0 or more, found {value}", hint="give a whole number from 0")
    return value
