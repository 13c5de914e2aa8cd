"""From the lines of a log to the batch that ran and the step time that it implies."""

import statistics
from collections.abc import Sequence
from dataclasses import replace

from traceaudit.analyses.serverlog.checks import (
    Totals,
    batch_mismatch,
    engine_missing,
    graph_note,
    log_truncated,
    notes_on_engine,
    notes_on_log,
)
from traceaudit.analyses.serverlog.limit import Facts, cause_of
from traceaudit.analyses.serverlog.loads import EngineSamples, engines_of, loads_of
from traceaudit.analyses.serverlog.readings import same_batch, step_readings
from traceaudit.analyses.serverlog.steady import Steady, steady_of, stretches_of
from traceaudit.analyses.serverlog.steptime import engine_readings, rates_of, step_of
from traceaudit.errors import UsageError
from traceaudit.model.results.serverlog import EngineLog, LoadItem, Note, ServerReport, Use
from traceaudit.model.serverlines import EventKind, LineRef, Sample, ServerLog, ServerLogOptions, Setting

__all__ = ["serverlog"]

FEWEST_FOR_MATCH = 3
DEFAULTS = ServerLogOptions()


def serverlog(log: ServerLog, options: ServerLogOptions = DEFAULTS) -> ServerReport:
    """Find the steady state of each engine, sum the engines, and compare with what was expected.

    The step time is ``requests in the batch * accept length / tokens per second``, with the medians over the steady
    samples.

    Raises
    ------
    UsageError
        If `options` ask for a load that is not there or expect a batch below one.
    """
    if options.expected is not None and options.expected < 1:
        raise UsageError(f"the expected batch must be at least 1, found {options.expected}")
    whole = engines_of(log)
    parts = loads_of(log, whole)
    items = tuple(_load_item(index, part) for index, part in enumerate(parts, start=1))
    chosen, why = _choose(items, parts, options)
    judged = [(engine, steady_of(engine.batch)) for engine in parts[chosen - 1]]
    engines, notes = _engines(log, whole, judged)
    totals = _totals(engines)
    sizes = [setting for setting in log.settings if setting.name == "dp_size"]
    missing = engine_missing(log, whole, sizes)
    findings = (log_truncated(log), batch_mismatch(engines, totals, options.expected, missing), missing)
    report = ServerReport(
        path=log.sources[0].path if len(log.sources) == 1 else f"{len(log.sources)} files",
        software=log.software,
        sources=log.sources,
        engines=engines,
        loads=items,
        load=chosen,
        expected=options.expected,
        steady_batch=totals.batch,
        tokens_per_second=totals.tokens_per_second,
        accept_length=totals.accept_length,
        implied_step_ns=_implied(engines, totals),
        readings=(),
        findings=tuple(finding for finding in findings if finding is not None),
        notes=tuple(why + notes + notes_on_log(log)),
    )
    return replace(report, readings=step_readings(report))


def _load_item(index: int, engines: Sequence[EngineSamples]) -> LoadItem:
    rates = [rates_of(steady_of(engine.batch).samples) for engine in engines]
    samples = [sample for engine in engines for sample in engine.batch]
    known = [rate.tokens_per_second for rate in rates if rate.tokens_per_second is not None]
    first = min(samples, key=_place)
    last = max(samples, key=_place)
    total = sum(known) if len(known) == len(rates) else None
    return LoadItem(index, len(samples), sum(rate.batch for rate in rates), total, first.line, last.line)


def _place(sample: Sample) -> tuple[int, str, int]:
    return sample.time_ns or 0, sample.line.path, sample.line.number


def _choose(
    items: Sequence[LoadItem], parts: Sequence[Sequence[EngineSamples]], options: ServerLogOptions
) -> tuple[int, list[Note]]:
    """Take the load that was asked for, else the one that ran the expected batch, else the one with most work."""
    if options.load is not None:
        if not 1 <= options.load <= len(items):
            raise UsageError(f"the log has {len(items)} loads, not a load {options.load}", hint="they count from 1")
        return options.load, []
    if len(items) == 1:
        return 1, []
    work = [sum(sample.running for engine in part for sample in engine.batch) for part in parts]
    order = sorted(range(len(items)), key=lambda index: -work[index])
    expected = options.expected
    fits = [
        index
        for index in order
        if expected and same_batch(items[index].steady_batch, expected) and items[index].samples >= FEWEST_FOR_MATCH
    ]
    best = fits[0] if fits else order[0]
    reason = f"the one that ran {expected}" if fits else "the one with most work"
    text = f"{len(items)} loads with idle time between them; load {best + 1} is looked at, {reason}"
    return best + 1, [Note(text, (items[best].first,))]


def _engines(
    log: ServerLog, whole: Sequence[EngineSamples], judged: Sequence[tuple[EngineSamples, Steady]]
) -> tuple[tuple[EngineLog, ...], list[Note]]:
    found, notes = [], []
    for engine, steady in judged:
        everything = next(item for item in whole if item.id == engine.id)
        retractions = _retractions(log, engine)
        result = _engine(log, everything, engine, steady, retractions)
        found.append(result)
        notes += notes_on_engine(result, steady.samples, [line for line, _ in retractions])
        captured = _setting(log, "graph_max_batch", engine)
        note = graph_note(everything.batch, captured)
        if note is not None:
            notes.append(note if len(judged) == 1 else Note(f"{result.id}: {note.text}", note.lines))
    silent = [item.id for item in whole if item.id not in {engine.id for engine in found}]
    if silent:
        notes.append(Note(f"no line in this load from {', '.join(silent[:8])}"))
    return tuple(found), notes


def _engine(
    log: ServerLog,
    whole: EngineSamples,
    engine: EngineSamples,
    steady: Steady,
    retractions: Sequence[tuple[LineRef, int]],
) -> EngineLog:
    rates = rates_of(steady.samples)
    use_of = {id(sample): use for sample, use in zip(engine.batch, steady.uses, strict=True)}
    uses = [use_of.get(id(sample), Use.OTHER_LOAD) for sample in whole.batch]
    batches = [sample.running for sample in steady.samples]
    told = [sample.graph for sample in whole.batch if sample.graph is not None]
    facts = Facts(
        cap=_setting(log, "running_cap", engine),
        cap_given=_setting(log, "running_cap_given", engine),
        dp_size=_setting(log, "dp_size", engine),
        cache=_setting(log, "cache_tokens", engine),
        retractions=tuple(line for line, _ in retractions),
    )
    readings = engine_readings(engine, steady.samples, rates, _setting(log, "log_interval", engine))
    preempted = sum(sample.retracted or 0 for sample in engine.batch if sample.kind.value != "decode")
    return EngineLog(
        id=engine.id,
        pieces=max(sample.pieces for sample in engine.batch),
        samples=len(whole.batch),
        steady_batch=rates.batch,
        steady_min=min(batches, default=0),
        steady_max=max(batches, default=0),
        max_batch=max(sample.running for sample in whole.batch),
        queue_median=_median([sample.queue for sample in steady.samples]),
        cache_frac=_median([sample.cache_frac for sample in steady.samples]),
        context_tokens=_context(steady.samples),
        graph_false=sum(not graph for graph in told) if told else None,
        tokens_per_second=rates.tokens_per_second,
        accept_length=rates.accept_length,
        implied_step_ns=readings[0].step_ns if readings else None,
        cap=facts.cap.value if facts.cap else None,
        retracted=preempted + sum(count for _, count in retractions),
        cause=cause_of(steady.samples, rates.batch, rates.line, facts),
        stretches=stretches_of(whole.batch, uses),
        readings=readings,
        decided_by=rates.line,
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _context(samples: Sequence[Sample]) -> int | None:
    """Return the tokens that a request has in the cache."""
    held = [(sample.cache_tokens, sample.running) for sample in samples]
    each = _median([tokens / running for tokens, running in held if tokens is not None and running])
    return round(each) if each else None


def _setting(log: ServerLog, name: str, engine: EngineSamples) -> Setting | None:
    """Return the setting that was made for this engine: its own line first, the last before its first sample."""
    first = engine.batch[0].line

    def rank(setting: Setting) -> tuple[bool, bool, bool, int]:
        before = setting.line.path == first.path and setting.line.number < first.number
        return setting.process == engine.process, setting.engine == engine.engine, before, setting.line.number

    return max((setting for setting in log.settings if setting.name == name), key=rank, default=None)


def _retractions(log: ServerLog, engine: EngineSamples) -> list[tuple[LineRef, int]]:
    """Return the lines between the engine's first and last sample that tell of requests put back."""
    first, last = engine.batch[0].line, engine.batch[-1].line
    return [
        (event.line, event.count or 1)
        for event in log.events
        if event.kind is EventKind.RETRACTION
        and event.process == engine.process
        and event.engine in ("", engine.engine)
        and event.line.path in (first.path, last.path)
        and (event.line.path != first.path or event.line.number > first.number)
        and (event.line.path != last.path or event.line.number < last.number)
    ]


def _totals(engines: Sequence[EngineLog]) -> Totals:
    batch = sum(engine.steady_batch for engine in engines)
    running = [engine for engine in engines if engine.steady_batch]
    rates = [engine.tokens_per_second for engine in running if engine.tokens_per_second is not None]
    rate = sum(rates) if rates and len(rates) == len(running) else None
    accepted = sum(engine.steady_batch * (engine.accept_length or 1.0) for engine in running)
    spoken = any(engine.accept_length is not None for engine in running)
    return Totals(batch, rate, accepted / batch if spoken and batch else None)


def _implied(engines: Sequence[EngineLog], totals: Totals) -> int | None:
    step_ns = step_of(totals.batch, totals.accept_length, totals.tokens_per_second)
    if step_ns is not None or len(engines) != 1:
        return step_ns
    return engines[0].implied_step_ns
