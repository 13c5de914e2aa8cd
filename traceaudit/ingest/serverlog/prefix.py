"""What stands before a message: clock, process, and the ranks of the engine."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from traceaudit.units import NS_PER_S

__all__ = ["Clock", "ShortClock", "clock_in", "process_in"]

ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
US = re.compile(r"(\d\d)/(\d\d)/(\d{4})-(\d\d):(\d\d):(\d\d)")
SHORT = re.compile(r"\b(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
COMPOSE = re.compile(r"^\s*([\w.-]{1,80})\s+\| ")
KUBECTL = re.compile(r"^\s*\[?(pod/[\w.-]{1,100}(?:/[\w.-]{1,100})?)\]? ")
PID = re.compile(r"\((?:[\w.]{1,60} )?pid=(\d{1,10})(?:, ip=([\w.:]{1,45}))?\)")
JOURNAL = re.compile(r"\b[\w.@-]{1,60}\[(\d{1,10})\]: ")
ANY_YEAR = 2000  # a leap year: vLLM writes none


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day as ns since 1970, without time zone, and the step of the clock that wrote it."""

    time_ns: int
    resolution_ns: int


@dataclass(frozen=True, slots=True)
class ShortClock(Clock):
    """A time without its year."""


def clock_in(text: str) -> Clock | None:
    """Return the last full time that stands in `text`, else the last one without a year, else None.

    Examples
    --------
    >>> clock_in("[2026-01-02 03:04:05.250 TP0]").resolution_ns
    1000000
    >>> clock_in("no time here")
    """
    for pattern, order in ((ISO, (0, 1, 2)), (US, (2, 0, 1))):
        if found := pattern.findall(text):
            groups = found[-1]
            year, month, day = (int(groups[i]) for i in order)
            return _clock(Clock, (year, month, day, *map(int, groups[3:6])), groups[6] if len(groups) > 6 else "")  # noqa: PLR2004
    if found := SHORT.findall(text):
        groups = found[-1]
        return _clock(ShortClock, (ANY_YEAR, *map(int, groups[:5])), groups[5])
    return None


def process_in(text: str) -> str:
    """Return what tells processes apart in an interleaved log, "" if nothing does.

    Examples
    --------
    >>> process_in("decode-1  | (EngineActor pid=77, ip=10.0.0.2) ")
    'decode-1 pid 77 ip 10.0.0.2'
    """
    parts = [match[1] for pattern in (COMPOSE, KUBECTL) if (match := pattern.match(text))]
    if match := PID.search(text):
        parts += [f"pid {match[1]}", *([f"ip {match[2]}"] if match[2] else [])]
    elif match := JOURNAL.search(text):
        parts.append(f"pid {match[1]}")
    return " ".join(parts)


def _clock(kind: type[Clock], numbers: tuple[int, ...], fraction: str) -> Clock | None:
    try:
        seconds = int(datetime(*numbers, tzinfo=UTC).timestamp())  # type: ignore[arg-type,misc]
    except ValueError:
        return None
    return kind(seconds * NS_PER_S + int((fraction or "0").ljust(9, "0")), NS_PER_S // 10 ** len(fraction))
