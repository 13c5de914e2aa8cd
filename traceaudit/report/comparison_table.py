"""`diff` and `check` on a terminal: the verdict, what decides, the rows that matter, the step."""

from typing import TYPE_CHECKING

from traceaudit.model.results.diff import Outcome
from traceaudit.report.comparison_words import (
    MEASURE_LABELS,
    Row,
    change_texts,
    headline,
    kernels_text,
    measure_rows,
    noise_note,
    noise_text,
    notes,
    rows_that_matter,
    share_text,
    side_text,
    unsettled,
)
from traceaudit.report.format import Scale, count_text, scale_for
from traceaudit.report.registry import PLAIN_PAGE, Page
from traceaudit.report.terminal.canvas import LEAST_NAME, Canvas, Column
from traceaudit.report.terminal.verdict import add_findings

if TYPE_CHECKING:
    from traceaudit.model.results.diff import CheckResult

__all__ = ["check", "diff"]

STYLES = {Outcome.PASS: "bold green", Outcome.FAIL: "bold red", Outcome.INCONCLUSIVE: "bold yellow"}
MOST_ROWS = 15
MOST_RULINGS = 8
MOST_CHANGES = 8


def diff(result: "CheckResult", page: Page = PLAIN_PAGE) -> str:
    """Write a comparison."""
    return _page("diff", result, page)


def check(result: "CheckResult", page: Page = PLAIN_PAGE) -> str:
    """Write a judgement."""
    return _page("check", result, page)


def _page(command: str, result: "CheckResult", page: Page) -> str:
    canvas = Canvas(page)
    comparison = result.diff
    canvas.line((f"traceaudit {command}", "bold"), f"  {comparison.base.label} -> {comparison.head.label}")
    canvas.paragraph((f"{result.verdict}".upper(), STYLES[result.verdict]), ("  " + headline(result), ""), hang=2)
    for outcome, style in ((Outcome.FAIL, "red"), (Outcome.INCONCLUSIVE, "yellow")):
        messages = unsettled(result, outcome)
        for message in messages[:MOST_RULINGS]:
            canvas.paragraph((f"{outcome:<13}", style), (message, ""), indent=2, hang=13)
        if len(messages) > MOST_RULINGS:
            canvas.paragraph((f"{len(messages) - MOST_RULINGS} more; --format json lists them", "dim"), indent=2)
    add_findings(canvas, result.completeness.findings)
    for note in notes(result):
        canvas.paragraph(("- ", "bold"), (note, ""), indent=2, hang=2)
    if comparison.comparable:
        _kernels(canvas, result)
        _changes(canvas, result)
    _step(canvas, result)
    canvas.heading("Sides")
    for name, side in (("base", comparison.base), ("head", comparison.head)):
        canvas.paragraph((f"{name}  ", "dim"), (side_text(side), ""), indent=2, hang=6)
    return canvas.text()


def _kernels(canvas: Canvas, result: "CheckResult") -> None:
    rows, more = rows_that_matter(result, MOST_ROWS)
    if not rows:
        return
    scale = scale_for(max(max(row.effect.base_ns or 0, row.effect.head_ns or 0) for row in rows))
    canvas.heading("Kernels", f"per step, {scale.unit}; what decides first")
    columns = [
        Column("base", right=True),
        Column("head", right=True),
        Column("change", right=True),
        Column("", right=True),
        Column("noise", right=True, drop=1),
        Column("launches", right=True, drop=2),
        Column("status"),
        Column("name", flexible=True, least=LEAST_NAME),
    ]
    canvas.table(columns, [_row(row, scale) for row in rows])
    if more:
        canvas.paragraph((f"{count_text(more, 'more row')}; --format json lists all", "dim"), indent=2)


def _row(row: Row, scale: Scale) -> list[str]:
    effect = row.effect
    mark = " !" if row.violates else " ?" if row.suspects else ""
    return [
        "-" if effect.base_ns is None else scale.text(effect.base_ns),
        "-" if effect.head_ns is None else scale.text(effect.head_ns),
        scale.text(effect.delta_ns),
        share_text(effect),
        "±" + scale.text(effect.noise_ns),
        row.launches,
        row.status + mark,
        row.name + row.size,
    ]


def _changes(canvas: Canvas, result: "CheckResult") -> None:
    changed = [(kernel, texts) for kernel in result.diff.kernels if (texts := change_texts(result.diff, kernel))]
    if not changed:
        return
    canvas.heading("Launched otherwise")
    for kernel, texts in changed[:MOST_CHANGES]:
        canvas.paragraph((result.diff.called(kernel) + "  ", "dim"), ("; ".join(texts), ""), indent=2, hang=2)
    if len(changed) > MOST_CHANGES:
        canvas.paragraph((f"{len(changed) - MOST_CHANGES} more; --format json lists all", "dim"), indent=2)


def _step(canvas: Canvas, result: "CheckResult") -> None:
    rows = measure_rows(result)
    scale = scale_for(max((max(row.effect.base_ns or 0, row.effect.head_ns or 0) for row in rows), default=0))
    canvas.heading("Step", f"per step, {scale.unit}")
    columns = [
        *(Column(name, right=True) for name in ("base", "head", "change", "", "noise")),
        Column("judged"),
        Column("", flexible=True),
    ]
    table = []
    for row in rows:
        effect = row.effect
        judged = "yes" if row.judged or row.violates or row.suspects else "no"
        table.append(
            [
                *("-" if time is None else scale.text(time) for time in (effect.base_ns, effect.head_ns)),
                scale.text(effect.delta_ns),
                share_text(effect),
                noise_text(row, scale.text),
                judged + (" !" if row.violates else " ?" if row.suspects else ""),
                MEASURE_LABELS.get(row.name, row.name),
            ]
        )
    canvas.table(columns, table)
    note = noise_note(rows)
    if note:
        canvas.paragraph((note, "dim"), indent=2, hang=2)
    text = f"device ops a step: {result.diff.launches_base:,} -> {result.diff.launches_head:,}"
    canvas.paragraph((f"{text}; {kernels_text(result)}", "dim"), indent=2)
