"""`gaps` on a terminal: the verdict, what bounds the steps, and the gaps worth closing first."""

from typing import TYPE_CHECKING

from traceaudit.report.format import count_text, duration, percent, scale_for
from traceaudit.report.gaps_words import CAUSES, host_rows, mark_of, remarks, verdict_line
from traceaudit.report.registry import PLAIN_PAGE, Page
from traceaudit.report.terminal.canvas import LEAST_NAME, Canvas, Column
from traceaudit.report.terminal.verdict import add_title, add_verdict

if TYPE_CHECKING:
    from traceaudit.model.results.gaps import DeviceGaps, GapReport, GapRow

__all__ = ["MOST_ROWS", "gaps", "neighbours"]

MOST_ROWS = 12


def gaps(result: "GapReport", page: Page = PLAIN_PAGE) -> str:
    """Write a gap report."""
    canvas = Canvas(page)
    add_title(canvas, "gaps", result.path, result.sources)
    add_verdict(canvas, result.completeness)
    for device in result.devices:
        _device(canvas, device, mark_of(result.completeness, device))
    return canvas.text()


def _device(canvas: Canvas, device: "DeviceGaps", mark: str) -> None:
    steps = max(device.steps_used, 1)
    where = f"rank {device.rank}, device {device.device}, {device.name or 'unknown device'}"
    canvas.heading("Bound", verdict_line(device, mark))
    canvas.paragraph(
        (f"{where}; mean of {count_text(steps, 'step')}; window {duration(device.window_ns / steps)}, idle ", ""),
        (f"{duration(device.idle_ns / steps)}{mark} a step", ""),
        indent=2,
    )
    for text in remarks(device, mark):
        canvas.paragraph(("- " + text, ""), indent=2, hang=2)
    _gap_table(canvas, device, mark)
    _host_table(canvas, device, mark)


def _gap_table(canvas: Canvas, device: "DeviceGaps", mark: str) -> None:
    shown, rest = device.gaps[:MOST_ROWS], device.gaps[MOST_ROWS:]
    if not shown:
        canvas.heading("Gaps", "none: the device never waits")
        return
    steps = max(device.steps_used, 1)
    scale = scale_for(shown[0].per_step_ns)
    canvas.heading("Gaps", f"per step, in {scale.unit}; the same gap of every step is one row")
    columns = [
        Column("a step", right=True),
        Column("idle", right=True),
        Column("count", right=True, drop=3),
        Column("median", right=True, drop=2),
        Column("max", right=True, drop=1),
        Column("cause"),
        Column("from", flexible=True, least=LEAST_NAME),
        Column("to", flexible=True, least=LEAST_NAME),
    ]
    canvas.table(
        columns,
        [
            [
                scale.text(row.per_step_ns) + mark,
                percent(row.total_ns, device.idle_ns) + mark,
                f"{row.count / steps:,.3g}",
                scale.text(row.median_ns),
                scale.text(row.max_ns),
                CAUSES[row.cause],
                *neighbours(device, row),
            ]
            for row in shown
        ],
    )
    for row in shown[:3]:
        if row.where:
            canvas.paragraph(
                (f"{scale.text(row.per_step_ns)} {scale.unit}: ", "dim"), (row.where, "dim"), indent=2, hang=2
            )
    if rest:
        time = duration(sum(row.total_ns for row in rest) / steps)
        canvas.paragraph((f"{len(rest)} more rows with {time} a step; --format csv lists them", "dim"), indent=2)


def neighbours(device: "DeviceGaps", row: "GapRow") -> tuple[str, str]:
    """Name what lies on either side of a gap."""
    before = "step start" if row.position == "leading" else device.shown(row.before or "no op")
    after = "step end" if row.position == "trailing" else device.shown(row.after or "no op")
    return before, f"→ {after}"


def _host_table(canvas: Canvas, device: "DeviceGaps", mark: str) -> None:
    interval_ns = device.host.interval_ns / max(device.steps_used, 1)
    scale = scale_for(interval_ns)
    rows = host_rows(device, scale, mark)
    if not rows:
        return
    canvas.heading(
        "Host",
        f"thread {device.host.thread}, {duration(interval_ns)} a step in {scale.unit}; "
        "exposed: while the device waits for it",
    )
    canvas.table([Column("total", right=True), Column("exposed", right=True), Column("activity")], rows)
