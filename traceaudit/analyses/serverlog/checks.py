"""Findings and notes about a log: another batch, absent engines, passes without graph, doubtful clocks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from traceaudit.analyses.serverlog.loads import EngineSamples
from traceaudit.analyses.serverlog.readings import same_batch
from traceaudit.analyses.serverlog.steptime import agrees, step_of
from traceaudit.model.findings import Finding, Severity
from traceaudit.model.results.serverlog import EngineLog, Limit, Note, ReadingKind
from traceaudit.model.serverlines import LineRef, Sample, ServerLog, Setting, Software
from traceaudit.units import NS_PER_MS

__all__ = [
    "Totals",
    "batch_mismatch",
    "engine_missing",
    "graph_note",
    "log_truncated",
    "notes_on_engine",
    "notes_on_log",
]

HINTS = {
    Limit.CLIENT: "raise the client's concurrency, or look for requests that end early or a proxy that holds them back",
    Limit.SERVER_CAP: "raise the cap on running requests; with DP it is divided over the ranks",
    Limit.KV_CACHE: "free cache space: shorter contexts, a larger memory fraction, a smaller cache type",
    Limit.UNKNOWN: "give the log from the server's start on: its first lines name the caps",
}
WANDERING_FRAC = 0.25
SHARED_LOG_FRAC = 0.15
SHARED_LEAST = 1.5
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the engines."""

    batch: int
    tokens_per_second: float | None
    accept_length: float | None


def batch_mismatch(
    engines: Sequence[EngineLog], totals: Totals, expected: int | None, missing: Finding | None
) -> Finding | None:
    """Find a batch that is more than 5 % off the expected one; what is at stake is the difference in the step time."""
    if expected is None or not engines or same_batch(totals.batch, expected):
        return None
    rates = totals.accept_length, totals.tokens_per_second
    ran_ns, expected_ns = step_of(totals.batch, *rates), step_of(expected, *rates)
    decisive = max(engines, key=lambda engine: engine.steady_batch)
    split = f" ({' + '.join(str(engine.steady_batch) for engine in engines)})" if 1 < len(engines) <= 16 else ""  # noqa: PLR2004
    shown_lines = decisive.cause.lines or tuple(line for line in (decisive.decided_by,) if line is not None)
    reason = decisive.cause.reason if missing is None else "engines are absent from the log"
    return Finding(
        "batch_mismatch",
        Severity.WARNING,
        f"the server ran {totals.batch} requests at once{split}, not {expected}: {reason}",
        hint=HINTS[decisive.cause.limit] if missing is None else missing.hint,
        count=totals.batch,
        impact_ns=None if ran_ns is None or expected_ns is None else abs(expected_ns - ran_ns),
        examples=tuple(_place(line) for line in shown_lines[:SHOWN]),
    )


def engine_missing(log: ServerLog, engines: Sequence[EngineSamples], sizes: Sequence[Setting]) -> Finding | None:
    """Find engines that the settings, the numbering, or the count of requests tell of, and that have no line."""
    summed = [sample for engine in engines for sample in engine.batch[:1] if sample.pieces > 1]
    if summed:
        return None
    numbers = sorted({int(n) for engine in engines for n in re.findall(r"(?:DP|Engine )(\d{1,6})$", engine.engine)})
    size = max(sizes, key=lambda setting: setting.value, default=None)
    wanted = max(size.value if size else 0, numbers[-1] + 1 if numbers else 0)
    if wanted > max(len(engines), 1):
        absent = [n for n in range(min(wanted, 4096)) if n not in numbers] if numbers else []
        named = ", ".join(map(str, absent[:8])) + (" …" if len(absent) > 8 else "")  # noqa: PLR2004
        return Finding(
            "engine_missing",
            Severity.WARNING,
            f"{wanted} data-parallel engines, and the log has lines of {len(engines)}"
            + (f": {named} {'is' if len(absent) == 1 else 'are'} absent" if absent else ""),
            hint="give the logs of all nodes and ranks; batch and rate below are of the engines seen",
            count=wanted - len(engines),
            examples=(_place(size.line),) if size and size.value == wanted else (),
        )
    return _unheard_rank(engines) if log.software is Software.TRTLLM and len(engines) == 1 else None


def _unheard_rank(engines: Sequence[EngineSamples]) -> Finding | None:
    last = engines[0].batch[-1]
    if last.requests is None or last.requests[0] >= last.requests[1]:
        return None
    own, everyone = last.requests
    return Finding(
        "engine_missing",
        Severity.WARNING,
        f"{engines[0].id} fetched {own} of {everyone} requests: the other ranks are not in the log",
        hint="set TLLM_PROFILE_LOG_RANKS=all",
        examples=(_place(last.line),),
    )


def graph_note(samples: Sequence[Sample], captured: Setting | None) -> Note | None:
    """Tell which samples ran without graph replay, and whether the captured sizes explain it."""
    eager = [sample for sample in samples if sample.graph is False]
    told = sum(sample.graph is not None for sample in samples)
    if not eager:
        return None
    batches = [sample.running for sample in eager]
    text = f"{len(eager)} of {told} samples ran without graph replay, at a batch of {min(batches)} to {max(batches)}"
    if captured is None:
        return Note(text, (eager[0].line,))
    above = all(batch > captured.value for batch in batches)
    explained = "all above" if above else "not all above"
    return Note(f"{text}, {explained} the largest captured size, {captured.value}", (eager[0].line, captured.line))


def notes_on_engine(engine: EngineLog, steady: Sequence[Sample], retractions: Sequence[LineRef]) -> list[Note]:
    """Tell what makes the steady state of one engine less than certain."""
    found = []
    name = "" if engine.id == "0" else f"{engine.id}: "
    line = () if engine.decided_by is None else (engine.decided_by,)
    if engine.steady_batch and engine.steady_max - engine.steady_min > 2 * max(WANDERING_FRAC * engine.steady_batch, 1):
        text = f"the batch is not steady: {engine.steady_min} to {engine.steady_max} around {engine.steady_batch}"
        found.append(Note(name + text, line))
    if len(steady) < SHOWN:
        found.append(Note(f"{name}{len(steady)} steady samples only", line))
    if retractions:
        text = f"{name}{engine.retracted} requests put back for lack of cache space"
        found.append(Note(text, tuple(retractions[:SHOWN])))
    if (disagreement := _spacing_note(engine)) is not None:
        found.append(Note(f"{name}{disagreement.text}", disagreement.lines))
    return found


def _spacing_note(engine: EngineLog) -> Note | None:
    """Compare the spacing of the lines with the rate: they must agree where no prefill lies in between."""
    by_kind = {reading.kind: reading for reading in engine.readings}
    spacing = by_kind.get(ReadingKind.LINE_SPACING)
    rate = by_kind.get(ReadingKind.DECODE_ONLY) or by_kind.get(ReadingKind.LOG)
    if spacing is None or rate is None:
        return None
    if agrees(spacing, rate.step_ns):
        return None
    factor = rate.step_ns / max(spacing.step_ns, 1)
    lines = tuple(line for line in (spacing.line, rate.line) if line is not None)
    spaced_ms, rate_ms = spacing.step_ns / NS_PER_MS, rate.step_ns / NS_PER_MS
    text = f"the lines' spacing gives {spaced_ms:,.4g} ms a pass, batch over rate {rate_ms:,.4g} ms"
    if factor >= SHARED_LEAST and abs(factor - round(factor)) <= SHARED_LOG_FRAC * factor:
        return Note(f"{text}: {round(factor)} engines without rank tags may share this log", lines)
    return Note(f"{text}: the log interval is not the one assumed, or the engine idles between passes", lines)


def log_truncated(log: ServerLog) -> Finding | None:
    """Find files that end early: the load after their last line, and its batch, are not known."""
    cut = [source for source in log.sources if source.damage]
    if not cut:
        return None
    first = cut[0]
    more = f", and {len(cut) - 1} more files end early" if len(cut) > 1 else ""
    return Finding(
        "log_truncated",
        Severity.WARNING,
        f"{first.path} ends early after {first.lines:,} lines ({first.damage}){more}; what follows is not known",
        hint="the copy is incomplete, or the file was still being written; copy it again",
        count=len(cut),
        examples=tuple(f"{source.path}: {source.damage}" for source in cut[:SHOWN]),
    )


def notes_on_log(log: ServerLog) -> list[Note]:
    """Tell what was left out of the input."""
    found = [Note(text) for text in log.notes]
    if log.others:
        found.append(Note(f"{log.others:,} samples of other engines or of scraped metrics left out"))
    for source in log.sources:
        if source.duplicates:
            found.append(Note(f"{source.path}: {source.duplicates:,} lines are written twice in a row; one is kept"))
        if source.cut_lines:
            found.append(Note(f"{source.path}: {source.cut_lines:,} lines longer than 64 KiB were cut"))
    return found


def _place(line: LineRef) -> str:
    return f"{line.path}:{line.number}: {line.text}"
