"""`serverlog` for a pull request or an issue. Text of the log is escaped: no markup, mention or HTML gets through."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from traceaudit.report.format import duration
from traceaudit.report.markdown import code, escape
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

if TYPE_CHECKING:
    from traceaudit.model.results.serverlog import ServerReport

__all__ = ["serverlog"]

MOST_ROWS = 25
SHOWN_LINES = 3


def serverlog(result: "ServerReport", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write a server log's report."""
    ran, rest = headline(result)
    lines = [
        f"### traceaudit serverlog: {code(result.path, cell=False)}",
        "",
        f"{'🟡' if result.findings else '🟢'} **{escape(ran)}**: {escape(rest)} ({escape(source_text(result))})",
        "",
    ]
    for finding in result.findings:
        hint = f" *{escape(finding.hint)}*" if finding.hint else ""
        lines.append(f"- **{finding.code}** ({finding.severity}): {escape(finding.message)}.{hint}")
    lines += ["", *_table(ENGINE_HEADINGS, "l" + "r" * 9 + "l", _engines(result))]
    lines += _causes(result)
    lines += _readings(result)
    lines += _left_out(result)
    if result.notes:
        lines += ["**Notes**", ""]
        lines += [
            f"- {escape(note.text)}{_places(result, [line.number for line in note.lines])}" for note in result.notes
        ]
    return "\n".join(lines).rstrip() + "\n"


def _engines(result: "ServerReport") -> Iterable[Sequence[str]]:
    return ([escape(cell) for cell in engine_cells(engine)] for engine in result.engines[:MOST_ROWS])


def _places(result: "ServerReport", numbers: Sequence[int]) -> str:
    if not numbers or len(result.sources) > 1:
        return ""
    return f" (line {', '.join(map(str, numbers))})"


def _causes(result: "ServerReport") -> list[str]:
    lines = ["**What holds the batch**", ""]
    named = len(result.sources) > 1
    seen: set[tuple[str, str]] = set()
    for engine in result.engines:
        key = (str(engine.cause.limit), engine.cause.reason)
        if key in seen or len(seen) >= SHOWN_LINES:
            continue
        seen.add(key)
        lines.append(f"- **{escape(str(engine.cause.limit))}**: {escape(engine.cause.reason)}")
        shown = engine.cause.lines[:SHOWN_LINES]
        lines += [f"  - {escape(place(line, named=named))}: {code(line.text, cell=False)}" for line in shown]
    return [*lines, ""]


def _readings(result: "ServerReport") -> list[str]:
    if not result.readings:
        return []
    named = len(result.sources) > 1
    rows = (
        (
            duration(item.step_ns) + (f" ± {duration(item.error_ns)}" if item.error_ns else ""),
            decision(item),
            NAMES[item.kind],
            escape(item.arithmetic),
            escape(item.reason + ("" if item.line is None else f" ({place(item.line, named=named)})")),
        )
        for item in result.readings
    )
    return _table(("step", "holds", "reading", "from", "because"), "rllll", rows)


def _left_out(result: "ServerReport") -> list[str]:
    rows = merged(result)
    if not rows:
        return []
    named = len(result.sources) > 1
    cells = (
        (
            escape(engine.id),
            USES[item.use],
            f"{item.samples:,}",
            f"{item.batch_min} to {item.batch_max}",
            escape(f"{place(item.first, named=named)} to {item.last.number}"),
        )
        for engine, item in rows[:MOST_ROWS]
    )
    return _table(("engine", "left out", "samples", "batch", "lines"), "llrrl", cells)


def _table(headings: Sequence[str], sides: str, rows: Iterable[Sequence[str]]) -> list[str]:
    rule = {"l": ":--", "r": "--:"}
    lines = [f"| {' | '.join(headings)} |", f"| {' | '.join(rule[side] for side in sides)} |"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return [*lines, ""]
