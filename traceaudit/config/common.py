"""The only reader of settings: turns what the user typed into the options of the analyses.

Every value arrives as the text that was typed, so that 3.3 ms is 3300000 ns and not a float nearby. What is missing,
contradictory or meaningless becomes a `UsageError` that says what to type instead.
"""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from traceaudit.config.files import existing
from traceaudit.errors import UsageError
from traceaudit.model.options import ReconcileOptions, Selection, Speedup, StepOptions, WhatIfOptions
from traceaudit.model.results import Wall
from traceaudit.units import NS_PER_MS, NS_PER_S

MOST = 10**9
"""Of steps, requests, ranks and milliseconds a step (11.6 days): larger numbers are slips of the keyboard."""

SMALLEST_FACTOR = 1e-6

__all__ = ["SelectionFlags", "StepFlags", "WallFlags", "reconcile_options", "wall_of", "whatif_options"]


@dataclass(frozen=True, slots=True)
class WallFlags:
    """The ways of saying how long a step takes outside the profiler, as typed; None where not given.

    Attributes
    ----------
    wall_ms
        Milliseconds a step.
    wall_total_ms, wall_steps
        Milliseconds of a run and its number of steps.
    tokens_per_second, concurrency, accept_length
        Output rate, requests that run at once, and tokens a request gains in a step (1 without speculation).
    bench_result
        Path of a benchmark's result file; `concurrency` then says how many requests the server ran at once.
    """

    wall_ms: str | None = None
    wall_total_ms: str | None = None
    wall_steps: int | None = None
    tokens_per_second: str | None = None
    concurrency: int | None = None
    accept_length: str | None = None
    bench_result: str | None = None


@dataclass(frozen=True, slots=True)
class StepFlags:
    """How to find steps, as typed; None where not given."""

    step_annotation: str | None = None
    steps: int | None = None


@dataclass(frozen=True, slots=True)
class SelectionFlags:
    """What to look at, as typed; None where not given."""

    rank: int | None = None
    device: int | None = None
    step: int | None = None


def reconcile_options(
    *,
    wall: WallFlags = WallFlags(),
    steps: StepFlags = StepFlags(),
    selection: SelectionFlags = SelectionFlags(),
    scheduler: str | None = None,
) -> ReconcileOptions:
    """Check the flags against each other and turn them into options.

    Raises
    ------
    UsageError
        If a value means nothing, or flags contradict each other or lack a partner.

    Examples
    --------
    >>> reconcile_options(wall=WallFlags(wall_ms="3.3")).wall
    Wall(step_ns=3300000, source='--wall-ms 3.3', low_ns=None, high_ns=None)
    """
    return ReconcileOptions(
        steps=_steps(steps, selection),
        wall=wall_of(wall),
        selection=_selection(selection),
        scheduler=_pattern("--scheduler", scheduler),
    )


def whatif_options(
    base: ReconcileOptions, *, speedups: tuple[str, ...], remove_gaps: bool, graph_replay: bool
) -> WhatIfOptions:
    """Turn the changes that were asked for into options.

    Raises
    ------
    UsageError
        If a speed-up is not ``REGEX=FACTOR`` with a positive factor, ``2x``, ``1.5`` or ``inf``.

    Examples
    --------
    >>> whatif_options(ReconcileOptions(), speedups=("gemm=2x",), remove_gaps=False, graph_replay=False).speedups[
    ...     0
    ... ].factor
    2.0
    """
    return WhatIfOptions(base, tuple(_speedup(text) for text in speedups), remove_gaps, graph_replay)


def _speedup(text: str) -> Speedup:
    pattern, equals, factor = text.rpartition("=")
    hint = "write REGEX=FACTOR, for example --speedup 'attention=2x' or --speedup 'schedule=inf'"
    if not equals or not pattern:
        raise UsageError(f"--speedup {text!r} has no factor", hint=hint)
    try:
        value = float(factor.strip().removesuffix("x"))
    except ValueError:
        value = 0.0
    if not value > 0:
        raise UsageError(f"--speedup {text!r} has no positive factor: {factor!r}", hint=hint)
    if value < SMALLEST_FACTOR:
        raise UsageError(
            f"--speedup {text!r}: the factor is below {SMALLEST_FACTOR:g}",
            hint="from 1e-6 (a million times slower) to inf; 2 halves the time",
        )
    compiled = _pattern("--speedup", pattern)
    assert compiled is not None  # noqa: S101  (the pattern is not empty)
    return Speedup(text, compiled, value)


def wall_of(flags: WallFlags) -> Wall | None:
    """Return the step time that the flags state, None if they state none.

    A rate gives ``concurrency * accept_length / tokens_per_second``; everything is exact until the last rounding to
    whole nanoseconds.

    Raises
    ------
    UsageError
        If a value means nothing, or flags contradict each other or lack a partner.

    Examples
    --------
    >>> wall_of(WallFlags(tokens_per_second="28", concurrency=16))
    Wall(step_ns=571428571, source='16 running / 28 tokens/s', low_ns=None, high_ns=None)
    """
    _one_wall(flags)
    _partners(flags)
    if flags.wall_ms is not None:
        value = _positive("--wall-ms", flags.wall_ms)
        return _wall(value * NS_PER_MS, f"--wall-ms {flags.wall_ms.strip()}")
    if flags.wall_total_ms is not None and flags.wall_steps is not None:
        total = _positive("--wall-total-ms", flags.wall_total_ms)
        count = _count("--wall-steps", flags.wall_steps)
        return _wall(total * NS_PER_MS / count, f"--wall-total-ms {flags.wall_total_ms.strip()} / {count} steps")
    if flags.tokens_per_second is not None and flags.concurrency is not None:
        return _wall_of_rate(flags.tokens_per_second, flags.concurrency, flags.accept_length)
    return None if flags.bench_result is None else _wall_of_file(flags.bench_result, flags.concurrency)


def _one_wall(flags: WallFlags) -> None:
    given = [
        flag
        for flag, value in (
            ("--wall-ms", flags.wall_ms),
            ("--wall-total-ms", flags.wall_total_ms),
            ("--tokens-per-second", flags.tokens_per_second),
            ("--bench-result", flags.bench_result),
        )
        if value is not None
    ]
    if len(given) > 1:
        raise UsageError(
            f"{' and '.join(given)} each state the step time",
            hint="give one of --wall-ms, --wall-total-ms, --tokens-per-second and --bench-result",
        )


def _partners(flags: WallFlags) -> None:
    rate, file = flags.tokens_per_second is not None, flags.bench_result is not None
    needs = (
        ("--wall-total-ms", flags.wall_total_ms, "--wall-steps N", flags.wall_steps is not None),
        ("--wall-steps", flags.wall_steps, "--wall-total-ms T", flags.wall_total_ms is not None),
        ("--tokens-per-second", flags.tokens_per_second, "--concurrency N", flags.concurrency is not None),
        ("--concurrency", flags.concurrency, "--tokens-per-second R or --bench-result FILE", rate or file),
        ("--accept-length", flags.accept_length, "--tokens-per-second R", rate),
    )
    for flag, value, partner, present in needs:
        if value is not None and not present:
            raise UsageError(f"{flag} alone does not state a step time", hint=f"add {partner}")


def _wall_of_rate(rate: str, concurrency: int, accept_length: str | None) -> Wall:
    tokens = _positive("--tokens-per-second", rate)
    running = _count("--concurrency", concurrency)
    if accept_length is None:
        return _wall(running * NS_PER_S / tokens, f"{running} running / {rate.strip()} tokens/s")
    accept = _positive("--accept-length", accept_length)
    if accept < 1:
        raise UsageError(
            f"--accept-length must be at least 1, found {accept_length!r}",
            hint="a request gains at least one token a step; engines log the mean as accept length",
        )
    source = f"{running} running x {accept_length.strip()} accepted / {rate.strip()} tokens/s"
    return _wall(running * accept * NS_PER_S / tokens, source)


def _wall_of_file(path: str, concurrency: int | None) -> Wall:
    from traceaudit.ingest.benchmark import read_benchmark, step_wall

    running = None if concurrency is None else _count("--concurrency", concurrency)
    wall = step_wall(read_benchmark(existing("--bench-result", path)), running=running)
    return _wall(Fraction(wall.step_ns), wall.source)


def _wall(value: Fraction, source: str) -> Wall:
    step_ns = round(value)
    if step_ns < 1:
        raise UsageError(f"a step of less than a nanosecond: {source}", hint="check the unit: milliseconds a step")
    if step_ns > MOST * NS_PER_MS:
        raise UsageError(f"a step of more than {MOST:.0e} ms: {source}", hint="check the unit: milliseconds a step")
    return Wall(step_ns, source)


def _positive(flag: str, text: str) -> Fraction:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise UsageError(f"{flag} is not a number: {text!r}", hint="write it as 3.3 or 1e3, without a unit") from None
    if not number.is_finite() or number <= 0:
        raise UsageError(f"{flag} must be positive and finite, found {text!r}", hint="write it as 3.3 or 1e3")
    if not -30 <= number.adjusted() <= 30:  # noqa: PLR2004  (a Fraction of 1e999999 would fill the memory)
        raise UsageError(f"{flag} is no time or rate of any step: {text!r}", hint="check the unit and the exponent")
    return Fraction(number)


def _count(flag: str, value: int) -> int:
    if value < 1:
        raise UsageError(f"{flag} must be at least 1, found {value}", hint="give a whole number above 0")
    if value > MOST:
        raise UsageError(f"{flag} must be at most {MOST}, found {value}", hint="check the number")
    return value


def _steps(flags: StepFlags, selection: SelectionFlags) -> StepOptions:
    if flags.steps is None:
        return StepOptions(annotation=_pattern("--step-annotation", flags.step_annotation))
    if flags.step_annotation is not None:
        raise UsageError(
            "--steps and --step-annotation contradict each other",
            hint="--steps N divides the whole trace; --step-annotation REGEX finds steps in it",
        )
    if selection.step is not None:
        raise UsageError(
            "--step and --steps contradict each other",
            hint="--steps N divides the whole trace, which leaves no single step to look at",
        )
    return StepOptions(divide_by=_count("--steps", flags.steps))


def _selection(flags: SelectionFlags) -> Selection:
    for flag, value in (("--rank", flags.rank), ("--device", flags.device), ("--step", flags.step)):
        if value is not None and value < 0:
            raise UsageError(f"{flag} must be 0 or more, found {value}", hint="they count from 0")
        if value is not None and value > MOST:
            raise UsageError(f"{flag} must be at most {MOST}, found {value}", hint="they count from 0")
    return Selection(rank=flags.rank, device=flags.device, step=flags.step)


def _pattern(flag: str, text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    if not text:
        raise UsageError(f"{flag} is empty and would match every name", hint=f"write {flag} REGEX")
    try:
        return re.compile(text)
    except re.error as exc:
        raise UsageError(
            f"{flag} is no regular expression: {text!r}: {exc}", hint="escape ( ) [ ] . * + ? as \\("
        ) from exc
