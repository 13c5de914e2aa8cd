"""Step times that the lines of one engine give: by rate, by their spacing, and as the server states them."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from traceaudit.analyses.serverlog.loads import EngineSamples
from traceaudit.model.results.serverlog import ReadingKind, StepReading
from traceaudit.model.serverlines import LineRef, Sample, SampleKind, Setting, Software
from traceaudit.units import NS_PER_S

__all__ = ["DEFAULT_INTERVAL", "Rates", "agrees", "arithmetic_of", "engine_readings", "rates_of", "step_of"]

DEFAULT_INTERVAL = 40
SAME_FRAC = 0.05
AGREE_FRAC = 0.1
SHORTEST_TICKS = 5
LONGEST_NS = 10**18


@dataclass(frozen=True, slots=True)
class Rates:
    """Batch, rate and acceptance of the steady samples, and the line that stands for them."""

    batch: int
    tokens_per_second: float | None
    accept_length: float | None
    line: LineRef | None


def rates_of(steady: Sequence[Sample]) -> Rates:
    """Take the medians over the steady samples; of the batch the lower one, which some line really shows."""
    if not steady:
        return Rates(0, None, None, None)
    batch = statistics.median_low(sample.running for sample in steady)
    rates = [sample.tokens_per_second for sample in steady if sample.tokens_per_second]
    rate = statistics.median(rates) if rates else _counted_rate(steady)
    accepts = [sample.accept_length for sample in steady if sample.accept_length]
    accept = statistics.median(accepts) if accepts else None
    best = min(steady, key=lambda s: (abs(s.running - batch), abs((s.tokens_per_second or 0) - (rate or 0))))
    return Rates(batch, rate, accept, best.line)


def step_of(batch: int, accept_length: float | None, tokens_per_second: float | None) -> int | None:
    """Return ``batch * accept length / tokens per second`` in ns, None without a rate.

    Examples
    --------
    >>> step_of(8, None, 28.0)
    285714286
    """
    if not batch or not tokens_per_second:
        return None
    step_ns = batch * (accept_length or 1.0) / tokens_per_second * NS_PER_S
    return round(step_ns) if step_ns < LONGEST_NS else None


def engine_readings(
    engine: EngineSamples, steady: Sequence[Sample], rates: Rates, interval: Setting | None
) -> tuple[StepReading, ...]:
    """Return every step time that the engine's own lines give."""
    rate = _by_rate(rates)
    decode = _decode_only(engine, steady, rates)
    spacing = _spacing(engine, steady, interval)
    if spacing is not None and (best := decode or rate) is not None and agrees(spacing, best.step_ns):
        spacing = replace(spacing, holds=True)
    found = [rate, decode, spacing, *_stated(engine, steady, rates)]
    return tuple(reading for reading in found if reading is not None)


def agrees(spacing: StepReading, step_ns: int) -> bool:
    """Tell whether the lines' spacing bears a step time out, within 10 % or what the clock's step allows."""
    return abs(spacing.step_ns - step_ns) <= max(AGREE_FRAC * step_ns, spacing.error_ns or 0)


def _counted_rate(steady: Sequence[Sample]) -> float | None:
    """Count the tokens of single passes over their time; None under speculation, where drafts are not told apart."""
    first, last = steady[0], steady[-1]
    if first.kind is not SampleKind.ITERATION or first.time_ns is None or last.time_ns is None:
        return None
    elapsed_ns = last.time_ns - first.time_ns
    plain = sum(sample.step_tokens in (None, sample.running) or bool(sample.prefill) for sample in steady)
    if elapsed_ns < SHORTEST_TICKS * first.time_resolution_ns or plain < (1 - SAME_FRAC) * len(steady):
        return None
    return sum(sample.running for sample in steady[1:]) / elapsed_ns * NS_PER_S


def _by_rate(rates: Rates) -> StepReading | None:
    step_ns = step_of(rates.batch, rates.accept_length, rates.tokens_per_second)
    if step_ns is None:
        return None
    reason = "batch and rate of the steady lines"
    return StepReading(ReadingKind.LOG, step_ns, arithmetic_of(rates), holds=True, reason=reason, line=rates.line)


def arithmetic_of(rates: Rates) -> str:
    """Write how a step time comes about.

    Examples
    --------
    >>> arithmetic_of(Rates(8, 28.0, None, None))
    '8 running / 28 tokens/s'
    """
    accept = f" x {rates.accept_length:g} accepted" if rates.accept_length else ""
    return f"{rates.batch} running{accept} / {rates.tokens_per_second:,.6g} tokens/s"


def _decode_only(engine: EngineSamples, steady: Sequence[Sample], rates: Rates) -> StepReading | None:
    """Read lines without prefill work since the line before; None where that changes nothing."""
    kept = {id(sample) for sample in steady}
    clean = [now for _, now in _clean_pairs(engine, kept) if now.tokens_per_second]
    times = [step for s in clean if (step := step_of(s.running, s.accept_length, s.tokens_per_second))]
    whole = step_of(rates.batch, rates.accept_length, rates.tokens_per_second)
    if not times or whole is None or len(clean) == len(steady):
        return None
    step_ns = round(statistics.median(times))
    if abs(step_ns - whole) <= SAME_FRAC * whole:
        return None
    best = min(clean, key=lambda s: abs((step_of(s.running, s.accept_length, s.tokens_per_second) or 0) - step_ns))
    return StepReading(
        ReadingKind.DECODE_ONLY,
        step_ns,
        f"median of {len(times)} of {len(steady)} steady lines",
        holds=True,
        reason="lines with no prefill since the line before; the rate of the others counts prefill time",
        line=best.line,
    )


def _clean_pairs(engine: EngineSamples, kept: set[int]) -> Iterable[tuple[Sample, Sample]]:
    """Yield successive kept lines of equal batch with no prefill work in between."""
    before: Sample | None = None
    for sample in engine.work:
        if sample.kind is SampleKind.PREFILL:
            before = None
            continue
        clean = before is not None and id(sample) in kept and not sample.prefill
        if clean and before is not None and abs(sample.running - before.running) <= SAME_FRAC * sample.running:
            yield before, sample
        before = sample if sample.running else None


def _spacing(engine: EngineSamples, steady: Sequence[Sample], interval: Setting | None) -> StepReading | None:
    """Divide the time from line to line by the passes in between: independent of batch and rate."""
    if not steady or steady[0].kind not in (SampleKind.DECODE, SampleKind.ITERATION):
        return None
    chains, elapsed_ns, passes, pairs = 0, 0, 0, 0
    last: Sample | None = None
    for before, now in _clean_pairs(engine, {id(sample) for sample in steady}):
        if before.time_ns is None or now.time_ns is None:
            continue
        between = _passes_between(before, now, interval)
        if between <= 0 or now.time_ns < before.time_ns:
            continue
        chains += before is not last
        last = now
        elapsed_ns, passes, pairs = elapsed_ns + now.time_ns - before.time_ns, passes + between, pairs + 1
    error_ns = chains * steady[0].time_resolution_ns
    if not passes or elapsed_ns <= error_ns:
        return None
    assumed = interval is None and steady[0].kind is SampleKind.DECODE and steady[0].iteration is None
    return StepReading(
        ReadingKind.LINE_SPACING,
        round(elapsed_ns / passes),
        f"{elapsed_ns / NS_PER_S:,.6g} s between lines / {passes:,} passes",
        None,
        f"{pairs} pairs of lines with no prefill in between"
        + (f"; {DEFAULT_INTERVAL} passes from line to line assumed" if assumed else ""),
        interval.line if interval else steady[0].line,
        round(error_ns / passes),
    )


def _passes_between(before: Sample, now: Sample, interval: Setting | None) -> int:
    if before.iteration is not None and now.iteration is not None:
        return now.iteration - before.iteration
    return interval.value if interval else DEFAULT_INTERVAL


def _stated(engine: EngineSamples, steady: Sequence[Sample], rates: Rates) -> list[StepReading]:
    """Collect the times that the server states itself, decode passes only."""
    kind = ReadingKind.INTER_TOKEN if steady and steady[0].kind is SampleKind.SCRAPE else ReadingKind.DEVICE_STEP
    times = [sample for sample in steady if sample.step_ns and not (sample.prefill and kind is ReadingKind.DEVICE_STEP)]
    if not times and engine.steps:
        times = [s for s in engine.steps if s.step_ns and not s.prefill and _alike(s.running, rates.batch)]
    found = [_median_of(kind, times, [sample.step_ns or 0 for sample in times])] if times else []
    hosts = [sample for sample in steady if sample.host_step_ns and not sample.prefill]
    if hosts:
        found.append(_median_of(ReadingKind.HOST_STEP, hosts, [sample.host_step_ns or 0 for sample in hosts]))
    return found


def _alike(one: int, other: int) -> bool:
    return abs(one - other) <= max(0.5, 2 * SAME_FRAC * other)


def _median_of(kind: ReadingKind, samples: Sequence[Sample], times_ns: Sequence[int]) -> StepReading:
    step_ns = statistics.median_low(times_ns)
    line = samples[times_ns.index(step_ns)].line
    what = {
        ReadingKind.DEVICE_STEP: "the server's own time of a pass"
        + (", idle gaps included" if samples[0].software is Software.TRTLLM else ""),
        ReadingKind.HOST_STEP: "the server's own time of the host loop",
        ReadingKind.INTER_TOKEN: "mean time between a request's outputs, waiting for prefill included",
    }[kind]
    return StepReading(kind, step_ns, f"median of {len(times_ns):,} samples", None, what, line)
