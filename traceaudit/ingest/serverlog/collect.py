"""What the line readers fill while they go through one file."""

from dataclasses import dataclass, field, replace

from traceaudit.ingest.serverlog.prefix import Clock, ShortClock
from traceaudit.model.serverlines import Event, EventKind, LineRef, Sample, Setting, Software
from traceaudit.units import NS_PER_S

__all__ = ["Collected", "Line", "Speaker"]

TEXT_LIMIT = 400
PAIRED_FRAC = 0.9
YEAR_NS = 366 * 24 * 3600 * NS_PER_S  # of `prefix.ANY_YEAR`, a leap year


@dataclass(frozen=True, slots=True)
class Line:
    """One clean line and where it stands."""

    path: str
    number: int
    text: str

    def ref(self) -> LineRef:
        """Return the line as evidence."""
        text = self.text.strip()
        return LineRef(self.path, self.number, text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 1] + "…")


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who wrote a message: the engine software, the process, and the data-parallel engine."""

    software: Software
    process: str
    engine: str = ""
    rank: tuple[int, ...] = ()


@dataclass(slots=True)
class Collected:
    """Samples, settings and events of one file, in its order."""

    samples: list[Sample] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    latest: dict[tuple[str, str], int] = field(default_factory=dict)
    again: bool = False
    duplicates: int = 0
    _repeats: list[int] = field(default_factory=list)
    _event_again: list[bool] = field(default_factory=list)
    _years: int = 0
    _short_ns: int | None = None

    def sample(self, sample: Sample, clock: Clock | None) -> None:
        """Take a sample; `clock` is when it was written."""
        if clock is not None:
            time_ns = self._year_of(clock) if isinstance(clock, ShortClock) else clock.time_ns
            sample = replace(sample, time_ns=time_ns, time_resolution_ns=clock.resolution_ns)
        if self.again:
            self._repeats.append(len(self.samples))
        self.latest[sample.process, sample.engine] = self.latest[sample.process, "*"] = len(self.samples)
        self.samples.append(sample)

    def previous(self, speaker: Speaker) -> Sample | None:
        """Return the latest sample of the same engine."""
        index = self.latest.get((speaker.process, speaker.engine))
        return None if index is None else self.samples[index]

    def amend(
        self, process: str, engine: str, *, accept_length: float | None = None, step_ns: int | None = None
    ) -> None:
        """Add to the latest sample of an engine (``*``: of the process) what a later line says about it."""
        index = self.latest.get((process, engine))
        if index is None:
            return
        if accept_length is not None:
            self.samples[index] = replace(self.samples[index], accept_length=accept_length)
        if step_ns is not None:
            self.samples[index] = replace(self.samples[index], step_ns=step_ns)

    def setting(self, line: Line, speaker: Speaker, name: str, value: int | None) -> None:
        """Take a setting, unless the line does not have it."""
        if value is not None:
            self.settings.append(Setting(name, value, speaker.software, line.ref(), speaker.process, speaker.engine))

    def settle(self) -> None:
        """Drop the second of each pair of equal lines if nearly all lines come in pairs: two handlers wrote them.

        Where only some do, they are lines of engines that run alike.
        """
        if len(self._repeats) < PAIRED_FRAC * len(self.samples) / 2:
            return
        repeats = set(self._repeats)
        self.duplicates = len(repeats)
        self.samples = [sample for index, sample in enumerate(self.samples) if index not in repeats]
        self.events = [event for event, again in zip(self.events, self._event_again, strict=True) if not again]

    def event(self, line: Line, speaker: Speaker, kind: EventKind, count: int | None = None) -> None:
        """Take an event."""
        self._event_again.append(self.again)
        self.events.append(Event(kind, speaker.software, line.ref(), speaker.process, speaker.engine, count))

    def _year_of(self, clock: Clock) -> int:
        """Add the years that have passed: without one, a new year looks like a long way back."""
        if self._short_ns is not None and clock.time_ns < self._short_ns - YEAR_NS // 2:
            self._years += 1
        self._short_ns = clock.time_ns
        return clock.time_ns + self._years * YEAR_NS
