"""Words that the terminal and the Markdown report of ``serverlog`` share."""

from typing import TYPE_CHECKING

from traceaudit.model.results.serverlog import ReadingKind, Use
from traceaudit.report.format import count_text, duration, percent

if TYPE_CHECKING:
    from traceaudit.model.results.serverlog import EngineLog, ServerReport, StepReading, Stretch
    from traceaudit.model.serverlines import LineRef

__all__ = ["ENGINE_HEADINGS", "NAMES", "USES", "decision", "engine_cells", "headline", "merged", "place", "source_text"]

NAMES = {
    ReadingKind.LOG: "batch over rate",
    ReadingKind.DECODE_ONLY: "the same, decode only",
    ReadingKind.LINE_SPACING: "spacing of the lines",
    ReadingKind.DEVICE_STEP: "stated by the server",
    ReadingKind.HOST_STEP: "host loop, stated",
    ReadingKind.INTER_TOKEN: "time between tokens",
    ReadingKind.GIVEN: "expected batch over rate",
    ReadingKind.LOG_BATCH: "log's batch, given rate",
    ReadingKind.ENGINES: "several such engines",
}
USES = {
    Use.STEADY: "steady",
    Use.FIRST: "first line after idle or start",
    Use.RAMP: "ramp",
    Use.DRAIN: "drain",
    Use.IDLE: "idle",
    Use.OTHER_LOAD: "another load",
}
ENGINE_HEADINGS = (
    "engine",
    "batch",
    "range",
    "max",
    "queue",
    "cache",
    "graph off",
    "tokens/s",
    "accept",
    "step",
    "limit",
)


def headline(result: "ServerReport") -> tuple[str, str]:
    """Return what ran, and the step time that follows."""
    ran = f"BATCH {result.steady_batch}"
    if result.expected is not None:
        agrees = all(finding.code != "batch_mismatch" for finding in result.findings)
        ran += f", as expected ({result.expected})" if agrees else f", NOT {result.expected}"
    parts = [count_text(len(result.engines), "engine")]
    if result.tokens_per_second is not None:
        parts.append(f"{result.tokens_per_second:,.6g} tokens/s")
    if result.implied_step_ns is not None:
        parts.append(f"step {duration(result.implied_step_ns)}")
    return ran, ", ".join(parts)


def source_text(result: "ServerReport") -> str:
    """Say what was read."""
    lines = sum(source.lines for source in result.sources)
    return f"{result.software}, {count_text(len(result.sources), 'file')}, {count_text(lines, 'line')}"


def engine_cells(engine: "EngineLog") -> tuple[str, ...]:
    """Write one engine as a row of `ENGINE_HEADINGS`."""
    dash = "-"
    return (
        engine.id + (f" ({engine.pieces} summed)" if engine.pieces > 1 else ""),
        str(engine.steady_batch),
        f"{engine.steady_min} to {engine.steady_max}",
        str(engine.max_batch),
        dash if engine.queue_median is None else f"{engine.queue_median:g}",
        dash if engine.cache_frac is None else percent(engine.cache_frac, 1),
        dash if engine.graph_false is None else f"{engine.graph_false:,} of {engine.samples:,}",
        dash if engine.tokens_per_second is None else f"{engine.tokens_per_second:,.6g}",
        dash if engine.accept_length is None else f"{engine.accept_length:.4g}",
        dash if engine.implied_step_ns is None else duration(engine.implied_step_ns),
        str(engine.cause.limit),
    )


def merged(result: "ServerReport") -> list[tuple["EngineLog", "Stretch"]]:
    """Return the stretches of all engines that were left out, in their order."""
    return [(engine, item) for engine in result.engines for item in engine.stretches if item.use is not Use.STEADY]


def decision(reading: "StepReading") -> str:
    """Say whether a reading holds.

    Examples
    --------
    >>> from traceaudit.model.results.serverlog import StepReading
    >>> decision(StepReading(ReadingKind.GIVEN, 1, "16 / 28", holds=False, reason="8 ran"))
    'no'
    """
    return {True: "yes", False: "no", None: "open"}[reading.holds]


def place(line: "LineRef", *, named: bool) -> str:
    """Name a line, with its file where there are several.

    Examples
    --------
    >>> from traceaudit.model.serverlines import LineRef
    >>> place(LineRef("a.log", 3, "…"), named=False), place(LineRef("a.log", 3, "…"), named=True)
    ('line 3', 'a.log:3')
    """
    return f"{line.path}:{line.number}" if named else f"line {line.number}"
