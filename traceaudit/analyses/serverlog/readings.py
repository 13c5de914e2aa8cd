"""Every reading of the step time that a log allows, and the line that decides between them."""

from collections.abc import Sequence

from traceaudit.analyses.serverlog.steptime import step_of
from traceaudit.model.results.ledger import Wall
from traceaudit.model.results.serverlog import EngineLog, ReadingKind, ServerReport, StepReading
from traceaudit.model.serverlines import LineRef

__all__ = ["SAME_BATCH_FRAC", "log_readings", "same_batch", "step_readings", "wall_of_log"]

SAME_BATCH_FRAC = 0.05
SAME_RATE_FRAC = 0.15
SAME_COUNT_FRAC = 0.1
MOST_ENGINES = 1024


def same_batch(ran: int, expected: int) -> bool:
    """Tell whether a batch is the expected one, within 5 %.

    Examples
    --------
    >>> same_batch(125, 128), same_batch(15, 16)
    (True, False)
    """
    return abs(ran - expected) <= SAME_BATCH_FRAC * expected


def log_readings(
    engines: Sequence[EngineLog], batch: int, accept_length: float | None, tokens_per_second: float | None
) -> tuple[StepReading, ...]:
    """Return what the log itself says: the engines' sum, and what the busiest engine's lines add."""
    if not engines:
        return ()
    if len(engines) == 1:
        return engines[0].readings
    busiest = max(engines, key=lambda engine: (engine.steady_samples, engine.steady_batch))
    found = []
    if (step_ns := step_of(batch, accept_length, tokens_per_second)) is not None:
        text = _arithmetic(batch, accept_length, tokens_per_second)
        reason = f"batches and rates of {len(engines)} engines summed"
        line = busiest.decided_by
        found.append(StepReading(ReadingKind.LOG, step_ns, text, holds=True, reason=reason, line=line))
    for item in busiest.readings:
        if item.kind is not ReadingKind.LOG:
            text = f"{busiest.id}: {item.arithmetic}"
            found.append(StepReading(item.kind, item.step_ns, text, item.holds, item.reason, item.line, item.error_ns))
    return tuple(found)


def step_readings(
    report: ServerReport, *, tokens_per_second: float | None = None, concurrency: int | None = None
) -> tuple[StepReading, ...]:
    """Compare the log with what was measured from outside, the readings that hold first.

    Parameters
    ----------
    report
        The log.
    tokens_per_second
        Output rate that a client measured; None takes the log's own.
    concurrency
        Requests that the client kept open; None takes the expected batch of the report.

    Notes
    -----
    With R the client's rate, T the log's, N the concurrency and B the log's batch: ``N / R`` holds if B is N;
    ``B / R`` holds if T is R, so that the log covers the whole rate; ``B / (R / k)``, k engines like this one, holds
    if T is R / k. Without T nothing decides between the last two.
    """
    own = log_readings(report.engines, report.steady_batch, report.accept_length, report.tokens_per_second)
    rate = tokens_per_second or report.tokens_per_second
    count = concurrency or report.expected
    line = report.decided_by[0] if report.decided_by else None
    found = [*own]
    if rate and report.steady_batch:
        if tokens_per_second and (reading := _log_batch(report, rate, line)):
            found.append(reading)
        if count:
            outside = (_given(report, rate, count, line), _engines(report, rate, count, line))
            found += [reading for reading in outside if reading is not None]
    return tuple(sorted(found, key=lambda reading: {True: 0, None: 1, False: 2}[reading.holds]))


def wall_of_log(readings: Sequence[StepReading]) -> Wall | None:
    """Return the step time to compare a trace of decode steps with, and the line that it comes from.

    The first reading that holds, and of those the one without prefill time, if there is one; without any that holds,
    the first that nothing speaks against.
    """
    usable = [reading for reading in readings if reading.holds is not False]
    decode = [reading for reading in usable if reading.kind is ReadingKind.DECODE_ONLY]
    best = next(iter([*decode, *usable]), None)
    if best is None or best.step_ns < 1:
        return None
    where = "" if best.line is None else f", {best.line.path}:{best.line.number}"
    return Wall(best.step_ns, f"server log: {best.arithmetic}{where}")


def _arithmetic(batch: int, accept_length: float | None, rate: float | None) -> str:
    accept = f" x {accept_length:.4g} accepted" if accept_length else ""
    return f"{batch} running{accept} / {rate:,.6g} tokens/s"


def _given(report: ServerReport, rate: float, count: int, line: LineRef | None) -> StepReading | None:
    step_ns = step_of(count, report.accept_length, rate)
    if step_ns is None:
        return None
    holds = same_batch(report.steady_batch, count)
    reason = f"the log shows {report.steady_batch} running" + ("" if holds else f", not {count}")
    return StepReading(ReadingKind.GIVEN, step_ns, _arithmetic(count, report.accept_length, rate), holds, reason, line)


def _log_batch(report: ServerReport, rate: float, line: LineRef | None) -> StepReading | None:
    step_ns = step_of(report.steady_batch, report.accept_length, rate)
    own = report.tokens_per_second
    if step_ns is None:
        return None
    holds: bool | None = None
    if own is None:
        reason = "the log has no rate: whether other engines share the given one stays open"
    elif abs(own - rate) <= SAME_RATE_FRAC * rate:
        holds, reason = True, f"the log's own rate is {own:,.6g} tokens/s: it covers the whole rate"
    elif own < rate:
        holds = False
        reason = f"the log's own rate is {own:,.6g} tokens/s, only {100 * own / rate:.0f} % of the given one"
    else:
        reason = f"the log's own rate is {own:,.6g} tokens/s: the given one also counts queueing, ramp or drain"
    text = _arithmetic(report.steady_batch, report.accept_length, rate)
    return StepReading(ReadingKind.LOG_BATCH, step_ns, text, holds, reason, line)


def _engines(report: ServerReport, rate: float, count: int, line: LineRef | None) -> StepReading | None:
    """Read the log as one of k engines that share rate and requests."""
    batch, own = report.steady_batch, report.tokens_per_second
    copies = round(count / batch)
    if not 2 <= copies <= MOST_ENGINES or abs(count - copies * batch) > SAME_COUNT_FRAC * count:  # noqa: PLR2004
        return None
    share = rate / copies
    step_ns = step_of(batch, report.accept_length, share)
    if step_ns is None:
        return None
    holds: bool | None = None
    if own is None:
        reason = f"the log has no rate; {share:,.4g} tokens/s on this line would prove it"
    elif abs(own - share) <= SAME_RATE_FRAC * share:
        holds = True
        reason = f"the log's own rate is {own:,.6g} tokens/s, 1/{copies} of the whole: other engines are not in it"
    else:
        holds, reason = False, f"the log's own rate is {own:,.6g} tokens/s, not {share:,.4g}"
    what = "engines" if len(report.engines) == 1 else "logs like this"
    text = f"{copies} {what} of {batch} running at {share:,.4g} tokens/s each"
    return StepReading(ReadingKind.ENGINES, step_ns, text, holds, reason, line)
