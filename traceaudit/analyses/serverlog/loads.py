"""Parts of a log between two idle times, and the samples of each engine in them."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from traceaudit.model.serverlines import EventKind, LineRef, Sample, SampleKind, ServerLog
from traceaudit.units import NS_PER_S

__all__ = ["EngineSamples", "engines_of", "loads_of"]

IDLE_NS = 60 * NS_PER_S
IDLE_LINES = 8
EMPTY_LINES = 2


@dataclass(frozen=True, slots=True)
class EngineSamples:
    """The samples of one engine in the order of time.

    Attributes
    ----------
    batch
        Samples that tell the batch.
    work
        The same, and the prefill lines between them.
    steps
        Samples that tell single passes, where the batch comes from another kind of line.
    """

    id: str
    process: str
    engine: str
    batch: tuple[Sample, ...]
    work: tuple[Sample, ...]
    steps: tuple[Sample, ...] = ()


def engines_of(log: ServerLog) -> tuple[EngineSamples, ...]:
    """Part the samples by engine.

    Of an engine that several ranks speak for, the lowest is heard: the others repeat it. Lines that sum all engines
    are left out if the engines have lines of their own.
    """
    kinds = {sample.kind for sample in log.samples}
    main = next(kind for kind in SampleKind if kind in kinds and kind is not SampleKind.PREFILL)
    samples = log.samples
    if any(sample.pieces == 1 and sample.kind is main for sample in samples):
        samples = tuple(sample for sample in samples if sample.pieces == 1)
    keys = dict.fromkeys(_key(sample) for sample in samples if sample.kind is main)
    processes = {process for process, _ in keys}
    by_key: dict[tuple[str, str], list[Sample]] = {}
    for sample in samples:
        if sample.kind in (main, SampleKind.PREFILL):
            by_key.setdefault(_key(sample), []).append(sample)
    found = []
    for process, engine in sorted(keys, key=_order):
        work = _lowest_rank(by_key[process, engine])
        batch = tuple(sample for sample in work if sample.kind is main)
        name = " ".join(part for part in (process if len(processes) > 1 else "", engine) if part)
        found.append(EngineSamples(name or "0", process, engine, batch, work, _passes(samples, main, process, engine)))
    return tuple(found[:1]) if _replicas(found) else tuple(found)


def loads_of(log: ServerLog, engines: Sequence[EngineSamples]) -> tuple[tuple[EngineSamples, ...], ...]:
    """Cut where the server was idle: a long time without a line, several lines with an empty batch, or a new start."""
    chosen = {id(sample) for engine in engines for sample in engine.work}
    ordered = [sample for sample in log.samples if id(sample) in chosen]
    boundary = max(IDLE_NS, IDLE_LINES * max((_spacing(engine.batch) for engine in engines), default=0))
    starts = [event.line for event in log.events if event.kind is EventKind.START]
    numbers: dict[int, int] = {}
    load, empty, last = 0, 0, None
    for sample in ordered:
        if sample.running > 0 or sample.kind is SampleKind.PREFILL:
            if last is not None and _idle(last, sample, empty, len(engines), boundary, starts):
                load += 1
            last, empty = sample, 0
        else:
            empty += 1
        numbers[id(sample)] = load
    parts = (_part(engines, numbers, index) for index in range(load + 1))
    return tuple(part for part in parts if part)


def _key(sample: Sample) -> tuple[str, str]:
    return sample.process, sample.engine


def _order(key: tuple[str, str]) -> tuple[str, int, str]:
    digits = "".join(filter(str.isdecimal, key[1]))
    return key[0], int(digits or -1), key[1]


def _replicas(engines: Sequence[EngineSamples]) -> bool:
    """Tell whether all ranks hold all requests, as TensorRT-LLM's do without attention data parallelism."""
    pairs = [sample.requests for engine in engines for sample in engine.batch]
    return len({engine.process for engine in engines}) == 1 and all(pair and pair[0] == pair[1] for pair in pairs)


def _lowest_rank(samples: list[Sample]) -> tuple[Sample, ...]:
    lowest = min((sample.rank for sample in samples), default=())
    return tuple(sample for sample in samples if sample.rank == lowest)


def _passes(samples: Iterable[Sample], main: SampleKind, process: str, engine: str) -> tuple[Sample, ...]:
    """Find the iteration lines of an engine; another process of the server may have written them."""
    if main is SampleKind.ITERATION:
        return ()
    named = [sample for sample in samples if sample.kind is SampleKind.ITERATION and sample.engine == engine]
    same = [sample for sample in named if sample.process == process]
    return tuple(same or named)


def _spacing(samples: Sequence[Sample]) -> int:
    times = [sample.time_ns for sample in samples if sample.time_ns is not None and sample.running > 0]
    gaps = [later - earlier for earlier, later in pairwise(times) if later > earlier]
    return int(statistics.median(gaps)) if gaps else 0


def _idle(last: Sample, now: Sample, empty: int, engines: int, boundary_ns: int, starts: list[LineRef]) -> bool:
    if last.time_ns is not None and now.time_ns is not None and now.time_ns - last.time_ns > boundary_ns:
        return True
    if now.kind is not SampleKind.ITERATION and empty >= EMPTY_LINES * engines:
        return True
    return last.time_ns is None and any(
        start.path == now.line.path == last.line.path and last.line.number < start.number < now.line.number
        for start in starts
    )


def _part(engines: Sequence[EngineSamples], numbers: dict[int, int], index: int) -> tuple[EngineSamples, ...]:
    found = []
    for engine in engines:
        batch = tuple(sample for sample in engine.batch if numbers[id(sample)] == index)
        if batch:
            work = tuple(sample for sample in engine.work if numbers[id(sample)] == index)
            found.append(EngineSamples(engine.id, engine.process, engine.engine, batch, work, engine.steps))
    return tuple(found)
