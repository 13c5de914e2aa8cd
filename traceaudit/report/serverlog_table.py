"""`serverlog` on a terminal: what ran, why no more, every reading of the step time, and what was left out."""

from typing import TYPE_CHECKING

from traceaudit.report.format import count_text, duration
from traceaudit.report.registry import PLAIN_PAGE, Page
from traceaudit.report.serverlog_words import (
    ENGINE_HEADINGS,
    NAMES,
    USES,
    decision,
    engine_cells,
    headline,
    merged,
    place,
    source_text,
)
from traceaudit.report.terminal.canvas import Canvas, Column
from traceaudit.report.terminal.verdict import add_findings

if TYPE_CHECKING:
    from traceaudit.model.results.serverlog import ServerReport, StepReading
    from traceaudit.model.serverlines import LineRef

__all__ = ["serverlog"]

MOST_ENGINES = 64
MOST_CAUSES = 4
MOST_STRETCHES = 12
MOST_LOADS = 12
SHOWN_LINES = 3
STYLES = {True: "green", None: "", False: "dim"}


def serverlog(result: "ServerReport", page: Page = PLAIN_PAGE) -> str:
    """Write a server log's report."""
    canvas = Canvas(page)
    canvas.line(("traceaudit serverlog", "bold"), f"  {result.path}", (f"  {source_text(result)}", "dim"))
    ran, rest = headline(result)
    canvas.paragraph((ran, "bold yellow" if result.findings else "bold green"), (f"  {rest}", ""), hang=2)
    add_findings(canvas, result.findings)
    _engines(canvas, result)
    _causes(canvas, result)
    _readings(canvas, result)
    _left_out(canvas, result)
    _loads(canvas, result)
    if result.notes:
        canvas.heading("Notes")
        for note in result.notes:
            lines = ", ".join(place(line, named=len(result.sources) > 1) for line in note.lines)
            canvas.paragraph((note.text, ""), (f"  [{lines}]" if lines else "", "dim"), indent=2, hang=2)
    return canvas.text()


def _engines(canvas: Canvas, result: "ServerReport") -> None:
    steady = sum(engine.steady_samples for engine in result.engines)
    samples = sum(engine.samples for engine in result.engines)
    canvas.heading("Steady state", f"{steady:,} of {count_text(samples, 'sample')}; medians")
    columns = [
        Column(name, right=name not in {"engine", "limit"}, flexible=name == "engine") for name in ENGINE_HEADINGS
    ]
    shown = result.engines[:MOST_ENGINES]
    cells = [engine_cells(engine) for engine in shown]
    kept = [number for number in range(len(columns)) if any(row[number] != "-" for row in cells)]
    canvas.table([columns[number] for number in kept], [[row[number] for number in kept] for row in cells])
    if len(result.engines) > len(shown):
        more = count_text(len(result.engines) - len(shown), "more engine")
        canvas.paragraph((f"{more}; --format json lists them", "dim"), indent=2)


def _causes(canvas: Canvas, result: "ServerReport") -> None:
    """Say each limit once, with the lines that show it."""
    canvas.heading("What holds the batch")
    seen: dict[tuple[str, str], list[str]] = {}
    for engine in result.engines:
        seen.setdefault((str(engine.cause.limit), engine.cause.reason), []).append(engine.id)
    lines = {(str(engine.cause.limit), engine.cause.reason): engine.cause.lines for engine in reversed(result.engines)}
    for key, names in list(seen.items())[:MOST_CAUSES]:
        who = f"{', '.join(names[:SHOWN_LINES])}{' …' if len(names) > SHOWN_LINES else ''}: "
        canvas.paragraph(
            (key[0], "bold"), (f"  {who if len(result.engines) > 1 else ''}{key[1]}", ""), indent=2, hang=2
        )
        for line in lines[key][:SHOWN_LINES]:
            _quote(canvas, line, result)


def _quote(canvas: Canvas, line: "LineRef", result: "ServerReport") -> None:
    named = len(result.sources) > 1
    canvas.paragraph((f"{place(line, named=named)}: ", "dim"), (line.text, "dim"), indent=4, hang=2)


def _readings(canvas: Canvas, result: "ServerReport") -> None:
    if not result.readings:
        canvas.heading("Step time", "the lines give no rate and no time")
        return
    canvas.heading("Step time", "every reading, and whether the log bears it out")
    columns = [Column("step", right=True), Column("holds"), Column("reading"), Column("from", flexible=True)]
    rows = [[_step(item), decision(item), NAMES[item.kind], item.arithmetic] for item in result.readings]
    canvas.table(columns, rows)
    for item in result.readings:
        where = "" if item.line is None else f" ({place(item.line, named=len(result.sources) > 1)})"
        canvas.paragraph(
            (f"{NAMES[item.kind]}: ", STYLES[item.holds]), (f"{item.reason}{where}", "dim"), indent=2, hang=2
        )


def _step(reading: "StepReading") -> str:
    error = f" ± {duration(reading.error_ns)}" if reading.error_ns else ""
    return f"{duration(reading.step_ns)}{error}"


def _left_out(canvas: Canvas, result: "ServerReport") -> None:
    rows = merged(result)
    if not rows:
        return
    canvas.heading("Left out", "of the steady state")
    named = len(result.sources) > 1
    columns = [
        Column("engine"),
        Column("why", flexible=True),
        Column("samples", right=True),
        Column("batch"),
        Column("lines"),
    ]
    if len(result.engines) == 1:
        columns = columns[1:]
    shown = [
        [
            *([engine.id] if len(result.engines) > 1 else []),
            USES[item.use],
            f"{item.samples:,}",
            f"{item.batch_min} to {item.batch_max}" if item.batch_min != item.batch_max else str(item.batch_min),
            f"{place(item.first, named=named)}" + (f" to {item.last.number}" if item.samples > 1 else ""),
        ]
        for engine, item in rows[:MOST_STRETCHES]
    ]
    canvas.table(columns, shown)
    if len(rows) > len(shown):
        canvas.paragraph((f"{len(rows) - len(shown)} more; --format json lists them", "dim"), indent=2)


def _loads(canvas: Canvas, result: "ServerReport") -> None:
    if len(result.loads) < 2:  # noqa: PLR2004  (one load is the whole log)
        return
    canvas.heading("Loads", f"{len(result.loads)}, with idle time between them; --load N looks at another one")
    columns = [Column("load", right=True), Column("batch", right=True), Column("tokens/s", right=True)]
    columns += [Column("samples", right=True), Column("from")]
    named = len(result.sources) > 1
    canvas.table(
        columns,
        [
            [
                f"{load.index}{'*' if load.index == result.load else ''}",
                str(load.steady_batch),
                "-" if load.tokens_per_second is None else f"{load.tokens_per_second:,.6g}",
                f"{load.samples:,}",
                f"{place(load.first, named=named)} to {load.last.number}",
            ]
            for load in result.loads[:MOST_LOADS]
        ],
    )
    if len(result.loads) > MOST_LOADS:
        canvas.paragraph((f"{len(result.loads) - MOST_LOADS} more; --format json lists them", "dim"), indent=2)
