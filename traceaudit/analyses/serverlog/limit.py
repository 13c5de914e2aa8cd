"""What held the batch where it was, with the lines that show it."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from traceaudit.model.results.serverlog import Cause, Limit
from traceaudit.model.serverlines import LineRef, Sample, Setting

__all__ = ["Facts", "cause_of"]

FULL_FRAC = 0.9
FULL_LIKELY_FRAC = 0.8
PINNED_LINES = 3
CAP_LEAST = 4


@dataclass(frozen=True, slots=True)
class Facts:
    """What the log tells about admission to one engine.

    Attributes
    ----------
    cap, cap_given, dp_size, cache
        Settings, None where the log has no such line.
    retractions
        Lines on requests put back for lack of cache space.
    """

    cap: Setting | None = None
    cap_given: Setting | None = None
    dp_size: Setting | None = None
    cache: Setting | None = None
    retractions: tuple[LineRef, ...] = ()


def cause_of(steady: Sequence[Sample], batch: int, line: LineRef | None, facts: Facts) -> Cause:
    """Decide by queue, cap and cache, in that order.

    Nobody waits: the client sends no more. Somebody waits: the cap, if the batch is at it or one below (SGLang with
    chunked prefill); else the cache, if it is 80 % full (90 % where the batch never moves) or requests were put back;
    else a cap that the log does not name, if the batch never moves.
    """
    lines = () if line is None else (line,)
    queue = _median([sample.queue for sample in steady])
    elsewhere = _median([sample.transfer for sample in steady])
    cache = _median([sample.cache_frac for sample in steady])
    if not steady:
        return Cause(Limit.UNKNOWN, "no steady state")
    if queue:
        return _held_back(steady, batch, f"{queue:g} requests wait", cache, lines, facts)
    if elsewhere:
        return _transfer(elsewhere, cache, lines, facts)
    if queue is None:
        return Cause(Limit.UNKNOWN, "the lines do not tell how many requests wait", lines)
    return Cause(Limit.CLIENT, "no request waits (median queue 0): the client sends no more at once", lines)


def _held_back(
    steady: Sequence[Sample], batch: int, waits: str, cache: float | None, lines: tuple[LineRef, ...], facts: Facts
) -> Cause:
    if (found := _cap(steady, batch, waits, lines, facts)) is not None:
        return found
    pinned = _pinned(steady)
    if facts.retractions or (cache is not None and cache >= (FULL_FRAC if pinned else FULL_LIKELY_FRAC)):
        return _cache(batch, waits, cache, lines, facts)
    if pinned:
        fill = "" if cache is None else f" and the KV cache is {_percent(cache)} full"
        guess = _not_the_known_cap(facts) + _divided_guess(batch, facts)
        text = f"the batch stays at {batch} while {waits}{fill}: a cap that the log does not name{guess}"
        return Cause(Limit.SERVER_CAP, text, lines)
    return Cause(Limit.UNKNOWN, f"{waits}, and neither a cap nor the cache explains it", lines)


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def _transfer(waiting: float, cache: float | None, lines: tuple[LineRef, ...], facts: Facts) -> Cause:
    waits = f"{waiting:g} requests wait for cache space or for their cache from the prefill server"
    if facts.retractions or (cache is not None and cache >= FULL_FRAC):
        return _cache(None, waits, cache, lines, facts)
    fill = "" if cache is None else f"; the KV cache is {_percent(cache)} full"
    return Cause(Limit.UNKNOWN, f"{waits}{fill}: prefill or transfer holds the batch down", lines)


def _cap(steady: Sequence[Sample], batch: int, waits: str, lines: tuple[LineRef, ...], facts: Facts) -> Cause | None:
    cap, source = _effective(facts)
    if cap is None or source is None:
        return None
    below = cap - 1 if cap >= CAP_LEAST else cap
    if batch < below or max(sample.running for sample in steady) > cap:
        return None
    one_below = ", one below the cap" if batch < cap else ""
    text = f"{waits} while the batch is {batch}{one_below}: max {cap} running requests{_division(cap, facts)}"
    given = facts.cap_given.line if facts.cap_given else None
    shown = [*lines, source, *([given] if given and given != source else [])]
    return Cause(Limit.SERVER_CAP, text, tuple(shown))


def _effective(facts: Facts) -> tuple[int | None, LineRef | None]:
    if facts.cap is not None:
        return facts.cap.value, facts.cap.line
    if facts.cap_given is None:
        return None, None
    ranks = facts.dp_size.value if facts.dp_size and facts.dp_size.value > 1 else 1
    return facts.cap_given.value // ranks, facts.cap_given.line


def _division(cap: int, facts: Facts) -> str:
    if facts.cap_given is None or facts.dp_size is None or facts.dp_size.value <= 1:
        return ""
    if facts.cap_given.value // facts.dp_size.value != cap:
        return ""
    return f" an engine, {facts.cap_given.value} divided over {facts.dp_size.value} DP ranks"


def _not_the_known_cap(facts: Facts) -> str:
    cap, _ = _effective(facts)
    return "" if cap is None else f" (max_running_requests is {cap})"


def _divided_guess(batch: int, facts: Facts) -> str:
    if facts.dp_size is None or facts.dp_size.value <= 1:
        return ""
    ranks = facts.dp_size.value
    return f"; a cap of {batch * ranks} divided over {ranks} DP ranks would be {batch}"


def _cache(batch: int | None, waits: str, cache: float | None, lines: tuple[LineRef, ...], facts: Facts) -> Cause:
    parts = [waits]
    if cache is not None:
        at_batch = "" if batch is None else f" at a batch of {batch}"
        parts.append(f"the KV cache is {_percent(cache)} full{at_batch}")
    if facts.retractions:
        parts.append(f"{len(facts.retractions)} lines tell of requests put back for lack of space")
    shown = [*lines, *facts.retractions[:1], *([facts.cache.line] if facts.cache else [])]
    return Cause(Limit.KV_CACHE, ", ".join(parts), tuple(shown))


def _pinned(steady: Sequence[Sample]) -> bool:
    return len(steady) >= PINNED_LINES and len({sample.running for sample in steady}) == 1
