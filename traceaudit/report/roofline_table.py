"""`roofline` on a terminal: the floor first, then what it is made of, then what it takes for granted."""

from typing import TYPE_CHECKING

from traceaudit.report.distance_words import distance_notes, distance_rows
from traceaudit.report.format import bytes_text, duration, factor, percent, scale_for
from traceaudit.report.registry import PLAIN_PAGE, Page
from traceaudit.report.roofline_words import (
    compute_text,
    exchange_text,
    floor_rows,
    gap_texts,
    ranks_text,
    requests_text,
    size_text,
)
from traceaudit.report.terminal.canvas import Canvas, Column
from traceaudit.report.terminal.verdict import add_verdict

if TYPE_CHECKING:
    from traceaudit.model.results.roofline import Roofline

__all__ = ["roofline"]


def roofline(result: "Roofline", page: Page = PLAIN_PAGE) -> str:
    """Write a floor."""
    canvas = Canvas(page)
    setting = result.setting
    canvas.paragraph(("traceaudit roofline", "bold"), (f"  {setting.model} on {setting.gpu or 'a GPU'}", ""), hang=2)
    canvas.line((f"{size_text(setting)}; {requests_text(setting)}; {ranks_text(setting)}", "dim"), indent=2)
    for line in setting.description:
        canvas.line((line, "dim"), indent=2)
    if result.findings:
        add_verdict(canvas, result.completeness)
    _floor(canvas, result)
    _distance(canvas, result)
    _components(canvas, result)
    exchanged = exchange_text(result.communication)
    if exchanged:
        canvas.heading("Communication", "not part of the floor")
        canvas.paragraph((exchanged, ""), indent=2)
    canvas.heading("Assumptions")
    for text in result.assumptions:
        canvas.paragraph((f"- {text}", ""), indent=2, hang=2)
    return canvas.text()


def _floor(canvas: Canvas, result: "Roofline") -> None:
    canvas.heading("Floor of the step", f"at {result.peak_gbps:,.0f} GB/s; {compute_text(result)}")
    gap = result.gap
    columns = [Column("bound"), Column("bytes a GPU", right=True), Column("time", right=True)]
    rows = [[name, size, time, meaning] for name, size, time, meaning in floor_rows(result)]
    canvas.table([*columns, Column("when", flexible=True)], rows)
    canvas.paragraph((f"{result.tokens_per_second_at_floor:,.0f} tokens/s at the expected floor", "bold"), indent=2)
    if gap is None:
        return
    canvas.heading("Measured", f"{duration(gap.measured.step_ns)} a step: {factor(gap.factor)} over the expected floor")
    for text in gap_texts(gap):
        canvas.paragraph((text, ""), indent=2, hang=2)


def _distance(canvas: Canvas, result: "Roofline") -> None:
    """Lay out the way from the floor to the step of a trace."""
    distance = result.distance
    if distance is None:
        return
    rows = distance_rows(distance)
    scale = scale_for(max(row[1] for row in rows))
    canvas.heading("From the floor to the step", f"{scale.unit} a step")
    names = ("took", "floor", "over floor")
    canvas.table(
        [Column("term", flexible=True), *(Column(name, right=True) for name in names), Column("share", right=True)],
        [
            [name, scale.text(took), scale.text(floor), scale.text(beyond), percent(beyond, rows[-1][3])]
            for name, took, floor, beyond in rows
        ],
    )
    for text in distance_notes(distance):
        canvas.paragraph((text, "dim"), indent=2, hang=2)


def _components(canvas: Canvas, result: "Roofline") -> None:
    canvas.heading("Bytes a GPU reads", "in expectation, for one step")
    total = result.weight_bytes.expected + result.kv_bytes
    canvas.table(
        [
            Column("part", flexible=True),
            Column("bytes", right=True),
            Column("share", right=True),
            Column("stored as"),
            Column("over tp"),
        ],
        [
            [
                item.name.replace("_", " "),
                bytes_text(item.size.expected),
                percent(item.size.expected, total),
                item.format,
                item.sharing,
            ]
            for item in sorted(result.components, key=lambda item: -item.size.expected)
        ],
    )
    canvas.line(f"{bytes_text(result.weight_bytes.expected)} weights, {bytes_text(result.kv_bytes)} cache", indent=2)
